"""Runs that are impossible, among others: errors and notes name them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import indelible
from conftest import needs_core
from indelible.cli import main
from indelible.results.comparison import Comparison
from indelible.results.sweep import Sweep

pytestmark = needs_core

#: What one run alone says, and what it says among runs of other designs.
FULL = "the undo area of a controller is full with 1 line"
ALONE = "--set design.undo_entries=..."
OWN = "--set lad.undo_entries=..."

#: More lines than the undo area of LAD has, on the machine of the smallest caches.
SMALL = {
    "lad.undo_entries": 1,
}


Call = Callable[..., object]


def compared(designs: list[str], workloads: list[str], **asked: Any) -> Comparison:  # noqa: ANN401
    more: dict[str, Any] = {"set": SMALL, "crash": False, "machine": "tiny", "txs": 20}
    return indelible.compare(designs, workloads, **more | asked)


def swept(designs: list[str], workloads: list[str], **asked: Any) -> Sweep:  # noqa: ANN401
    more: dict[str, Any] = {"set": SMALL, "machine": "tiny", "txs": 20}
    vary = {"controller.wpq": [4, 64]}
    return indelible.sweep(designs, workloads, **{"vary": vary, **more, **asked})


def asked_why(designs: list[str], workloads: list[str], **asked: Any) -> object:  # noqa: ANN401
    fields = ["controller.wpq"]
    return indelible.why(designs, workloads, "tiny", txs=20, set=SMALL, fields=fields, **asked)


@pytest.mark.parametrize(
    ("call", "designs", "asked", "name"),
    [
        (compared, ["lad"], {"cores": [1, 2]}, "lad on scribble, 1 core"),
        (compared, ["lad"], {"seeds": 2, "txs": 200}, "lad on scribble, seed 1"),
        (swept, ["lad"], {"vary": {"cores": [2, 1]}}, "lad on scribble, cores=2"),
        (swept, ["lad"], {"vary": {"seed": [2, 1]}, "txs": 200}, "lad on scribble, seed=1"),
        (asked_why, ["silo", "lad"], {}, "lad on scribble"),
    ],
)
def test_an_error_of_one_of_several_runs_names_it(
    call: Call, designs: list[str], asked: dict[str, Any], name: str
) -> None:
    with pytest.raises(indelible.InputError) as error:
        call(designs, ["scribble"], **asked)
    assert str(error.value).startswith(f"{name}: {FULL}")
    assert str(error.value).endswith(ALONE if len(designs) == 1 else OWN)


def test_a_single_run_has_no_name() -> None:
    with pytest.raises(indelible.InputError) as error:
        compared(["lad"], ["scribble"])
    assert str(error.value).startswith(FULL)
    assert str(error.value).endswith(ALONE)


def test_what_no_run_can_have_is_said_without_a_name() -> None:
    with pytest.raises(indelible.InputError, match=r"^cores is 99; machine tiny takes 1 to 4"):
        compared(["silo", "lad"], ["scribble"], cores=99)
    with pytest.raises(indelible.InputError, match=r"^unknown parameter `entires` of design silo"):
        indelible.compare(["native", "silo"], ["hash"], set={"silo.entires": 1})


def test_a_run_that_is_impossible_leaves_an_empty_cell(tmp_path: Path) -> None:
    answer = compared(["silo", "lad"], ["scribble", "hash"], cores=1, keep=tmp_path / "kept")
    refused = ("lad", "scribble", 1)
    assert [*answer.refused] == [(*refused, 1)]
    assert answer.ratio(refused) is None
    assert answer.gmean("lad") is None
    assert answer.ratio(("lad", "hash", 1)) is not None
    (row,) = answer.json()["refused"]
    assert row["reason"].startswith(FULL)
    assert (row["design"], row["workload"], row["cores"], row["seed"]) == (*refused, 1)
    assert len(answer.rows) == 3
    note = f"! lad on scribble, 1 core: {FULL}"
    for shown in (answer, *(answer._text(view) for view in ("stalls", "writes", "usage"))):
        assert note in " ".join(str(shown).split())
    assert note in " ".join(answer.summary().split())
    for view in ("ratios", "stalls", "writes", "usage", "summary"):
        answer.save_table(tmp_path / "t.tex", view)
        assert f"% {note}" in (tmp_path / "t.tex").read_text()
        answer.save(tmp_path / "p.png", view)
    answer.report(tmp_path / "r.html")
    assert FULL in (tmp_path / "r.html").read_text()
    # It is kept like any other answer.
    again = compared(["silo", "lad"], ["scribble", "hash"], cores=1, keep=tmp_path / "kept")
    assert again.taken is not None
    assert (again.taken.count, again.taken.of) == (4, 4)
    assert str(again).replace("4 of 4", "0 of 4") == str(answer)
    # All seeds count, as an interruption left none of them out.
    several = compared(["silo", "lad"], ["scribble", "hash"], cores=1, seeds=2)
    assert several.seeds_shown == (1, 2)
    assert [*several.refused] == [(*refused, 1)]
    assert several.ratio(refused) is None
    assert "! lad on scribble, 1 core (seed 1): " in str(several)


def test_points_at_which_a_run_is_impossible_are_named(tmp_path: Path) -> None:
    answer = swept(["silo", "lad"], ["scribble"])
    assert [(cell[0], cell[1]) for cell in answer.refused] == [(("4",), "lad")]
    assert f"! lad on scribble (controller.wpq=4): {FULL}" in " ".join(str(answer).split())
    (row,) = answer.json()["refused"]
    assert (row["point"], row["design"]) == ({"controller.wpq": 4}, "lad")
    answer.report(tmp_path / "r.html")
    assert "controller.wpq=4): " in (tmp_path / "r.html").read_text()
    many = {"vary": {"controller.wpq": [1, 2, 3, 4, 64]}}
    shown = " ".join(str(swept(["silo", "lad"], ["scribble"], **many)).split())
    assert "(controller.wpq=1; controller.wpq=2; controller.wpq=3; and 1 more): " in shown
    all_of_them = {"vary": {"silo.entries": [8, 10]}}
    shown = " ".join(str(swept(["silo", "lad"], ["scribble"], **all_of_them)).split())
    assert f"! lad on scribble: {FULL}" in shown


@pytest.mark.parametrize("verb", ["compare", "sweep"])
def test_its_exit_code_is_that_of_wrong_input(
    verb: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [verb, "--designs", "silo,lad", "--workloads", "scribble", "--machine", "tiny"]
    words += ["--txs", "20", "--json"]
    words += ["--no-crash"] if verb == "compare" else ["--vary", "controller.wpq=4"]
    assert main([*words, "--set", "lad.undo_entries=1"]) == 2
    out, err = capsys.readouterr()
    assert ([row["design"] for row in json.loads(out)["refused"]], err) == (["lad"], "")
    assert main(words) == 0
    assert "refused" not in json.loads(capsys.readouterr().out)


def test_why_a_design_was_not_tested_names_its_settings(tmp_path: Path) -> None:
    runs = {"txs": 3, "set": {"lad.undo_entries": 1}, "keep": tmp_path}
    answer = indelible.compare(["silo", "lad"], ["btree"], cores=1, **runs)
    reason = answer.verdict("lad").reason
    assert reason is not None
    assert reason.endswith(OWN)
    # The answer that is kept is that of the run alone.
    alone = indelible.compare(["lad"], ["btree"], cores=1, **runs)
    assert alone.taken is not None
    assert (alone.taken.count, alone.taken.of) == (2, 2)
    reason = alone.verdict("lad").reason
    assert reason is not None
    assert reason.endswith(ALONE)
