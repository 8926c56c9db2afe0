"""The note on designs that ignore the flushes and fences of a recorded program."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import indelible
from conftest import needs_core
from indelible import extension
from indelible.cli import main

pytestmark = needs_core

#: A program that makes its own durability, and the same as pmemcheck writes it.
TRACE = "region 0x10000 4096\nmeasured\nstore 0x10000 1\nflush 0x10000\nfence\nstore 0x10040 1\n"
LOG = (
    "START|REGISTER_FILE;/p;0x4000000;0x2000;0x0|STORE;0x4000000;0x1;0x8|FLUSH;0x4000000;0x40"
    "|FENCE|STOP"
)
BODY = "flushes and fences do nothing and take no time: only transactions of this program count"


@pytest.fixture
def trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    Path("own.trace").write_text(TRACE)
    return "own.trace"


def noted(answer: indelible.Run) -> bool:
    return f"on {answer.design} {BODY}" in " ".join(answer.notes)


def test_a_run_has_the_note_where_crash_has_it(trace: str) -> None:
    found = set()
    for design in [row["name"] for row in extension.catalog("designs")]:
        answer = indelible.run(design, replay=trace, machine="tiny")
        campaign = indelible.crash(design, replay=trace, check="true", points=1)
        told = f"on {design} flushes and fences do nothing: "
        assert noted(answer) == any(told in note for note in campaign.notes), design
        found |= {design} if noted(answer) else set()
    assert {"native", "silo", "lad", "kiln", "undo@ideal"} <= found
    assert not {"undo@x86", "undo@hops", "undo@bbb", "undo@eadr", "hops"} & found


def test_only_what_is_ignored_is_noted(trace: str) -> None:
    assert noted(indelible.run("silo", replay=trace))
    survives = {"controller.domain": "eadr"}
    assert not noted(indelible.run("silo", replay=trace, set=survives))
    assert not noted(indelible.run("silo", "hash", txs=5))
    Path("none.trace").write_text(TRACE.replace("flush 0x10000\nfence\n", ""))
    assert not noted(indelible.run("silo", replay="none.trace"))
    Path("log").write_text(LOG)
    assert noted(indelible.run("silo", replay="log"))


def test_caches_that_lack_the_energy_do_not_survive(trace: str) -> None:
    on_cxl = {"replay": trace, "machine": "cxl"}
    assert noted(indelible.run("silo", **on_cxl))
    assert BODY in str(indelible.compare(["silo"], ["replay"], **on_cxl, cores=1, crash=False))
    for energy, is_noted in (("63B", True), ("64B", False), ("1KiB", False)):
        answer = indelible.run("silo", **on_cxl, set={"controller.flush_bytes": energy})
        assert noted(answer) == is_noted, energy
    empty = {"controller.domain": "eadr", "controller.flush_bytes": "0B"}
    assert noted(indelible.run("silo", replay=trace, set=empty))
    # The machine gives it to a design that needs it.
    saved = 'class Saved(Design):\n    """Caches that survive."""\n    needs = "eadr"\n'
    Path("saved.py").write_text(f"from indelible.design import Design\n{saved}")
    assert not noted(indelible.run("./saved.py", replay=trace, set=empty))


def test_a_comparison_has_one_note_for_all(trace: str) -> None:
    answer = indelible.compare(
        ["undo@x86", "silo", "lad"], ["replay"], replay=trace, cores=1, crash=False
    )
    assert f"* on silo and lad {BODY}; compare" in str(answer)
    assert "on silo flushes" not in str(answer)
    assert [any(BODY in note for note in row["notes"]) for row in answer.rows] == [
        False,
        True,
        True,
    ]
    answer.save_table("t.tex")
    assert f"% * on silo and lad {BODY}" in Path("t.tex").read_text()
    swept = indelible.sweep(
        ["undo@x86", "silo"], ["replay"], {"controller.wpq": [32, 64]}, replay=trace
    )
    assert str(swept).count(f"* on silo {BODY}") == 1


def test_the_crash_test_of_such_a_run_is_on_a_design_that_heeds_them(
    trace: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["run", "--replay", trace, "--set", "pm.log_size=1MiB"]
    assert main([*words, "--design", "silo", "--set", "design.entries=4"]) == 0
    out = capsys.readouterr().out
    test = "indelible crash --design undo@x86 --workload replay --replay own.trace --check COMMAND"
    assert f"crash test  {test}\n" in out
    assert main([*words, "--design", "undo@hops", "--set", "design.entries=4"]) == 0
    out = capsys.readouterr().out
    test = test.replace("undo@x86", "undo@hops")
    test = test.replace("--check", "--set design.entries=4 --check")
    assert f"crash test  {test}\n" in out
    # Of transactions the oracle judges, on the design itself.
    Path(trace).write_text(TRACE + "begin\nstore 0x10080 1\ncommit\n")
    assert main([*words, "--design", "silo", "--json"]) == 0
    assert any(BODY in note for note in json.loads(capsys.readouterr().out)["notes"])
    assert main([*words, "--design", "silo"]) == 0
    test = "crash test  indelible crash --design silo --workload replay --replay own.trace\n"
    assert test in capsys.readouterr().out
