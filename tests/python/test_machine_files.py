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
