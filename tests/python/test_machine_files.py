"""Machines of one's own, in files, on the real simulator."""

from __future__ import annotations

from pathlib import Path

import pytest

import indelible
from conftest import needs_core
from indelible.text import run as run_text
from indelible.text import timeline as timeline_text

pytestmark = needs_core

FAR = """\
name = "far"
extends = "tiny"
[controller]
link_latency = "70ns"
"""


@pytest.fixture
def far(tmp_path: Path) -> str:
    """Return the path of a machine whose file calls it `far`."""
    path = tmp_path / "a.toml"
    path.write_text(FAR, encoding="utf-8")
    return str(path)


def test_what_is_shown_of_a_machine_in_a_file_is_its_path(far: str) -> None:
    run = indelible.run("silo", "scribble", far, cores=1, txs=5)
    assert run_text.run(run).startswith(f"silo · scribble · machine {far} · 1 core · seed 1\n")
    assert run.machine == "far"
    crash = indelible.crash("silo", "scribble", far, cores=1, txs=2, points=1)
    assert str(crash).startswith(
        f"silo · scribble · machine {far} · 1 core · seed 1 · domain adr\n"
    )
    traced = indelible.trace("silo", "scribble", far, cores=1, txs=2, length="20ns")
    assert timeline_text.summary(traced, None).startswith(
        f"silo · scribble · machine {far} · 1 core"
    )
    for designs in (["silo"], ["silo", "native"]):
        battery = indelible.battery(designs, far, cores=1, set={"silo.entries": 4})
        assert str(battery).startswith(f"Batteries: machine {far} · 1 core · ")
        assert battery["machine"] == far


def test_two_variants_of_a_machine_are_told_apart(far: str, tmp_path: Path) -> None:
    farther = tmp_path / "b.toml"
    farther.write_text(FAR.replace("70ns", "90ns"), encoding="utf-8")
    both = indelible.explain(f"machine:{far}", diff=str(farther))
    assert str(both).startswith(f"machines {far} and {farther}: 1 of ")
    hardware = str(indelible.explain("silo", machine=far, cores=1))
    assert f"Hardware added to machine {far} with 1 core\n" in hardware


def test_what_has_a_name_and_in_which_unit_a_source_gives_a_time_is_shown() -> None:
    assert "see also    machine:silo" in str(indelible.explain("silo"))
    rows = str(indelible.explain("machine:silo")).splitlines()
    (hit,) = (row for row in rows if row.startswith("l1d.data_latency"))
    (read,) = (row for row in rows if row.startswith("pm.tREAD"))
    assert "2ns (4cycles)" in hit
    assert "50ns" in read
    assert "cycles)" not in read


def test_tables_say_what_was_set() -> None:
    settings = {"core.rob": 32, "silo.entries": 8}
    runs = {"cores": 1, "txs": 5, "set": settings}
    varied = indelible.sweep("silo", "hash", {"pm.tREAD": ["50ns", "90ns"]}, **runs)
    for answer in (indelible.compare(["lad", "silo"], "hash", crash=False, **runs), varied):
        head = " ".join(str(answer).split("\n\n")[0].split())
        assert head.endswith("seed 1 · core.rob=32 · silo.entries=8")
