"""Errors of one of several runs name it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import indelible
from conftest import needs_core

pytestmark = needs_core

#: What one run alone says, and what it says among runs of other designs.
FULL = "the undo area of a controller is full with 1 line"
ALONE = "--set design.undo_entries=..."
OWN = "--set lad.undo_entries=..."

#: More lines than the undo area of LAD has, on the machine of the smallest caches.
SMALL = {
    "lad.undo_entries": 1,
}


def compared(designs: list[str], workloads: list[str], **asked: object) -> None:
    indelible.compare(designs, workloads, "tiny", txs=20, set=SMALL, crash=False, **asked)


def swept(designs: list[str], workloads: list[str], **asked: object) -> None:
    vary = {"controller.wpq": [4, 8], "silo.entries": [10]}
    indelible.sweep(designs, workloads, vary, "tiny", txs=20, set=SMALL, **asked)


def asked_why(designs: list[str], workloads: list[str], **asked: object) -> None:
    fields = ["controller.wpq"]
    indelible.why(designs, workloads, "tiny", txs=20, set=SMALL, fields=fields, **asked)


@pytest.mark.parametrize(
    ("call", "asked", "name"),
    [
        (compared, {"cores": [1]}, "lad on scribble, 1 core"),
        (compared, {"cores": 2}, "lad on scribble, 2 cores"),
        (compared, {}, "lad on scribble"),
        (compared, {"seeds": 2}, "lad on scribble, seed 1"),
        (swept, {}, "lad on scribble, controller.wpq=4, silo.entries=10"),
        (asked_why, {}, "lad on scribble"),
    ],
)
def test_an_error_of_one_of_several_runs_names_it(
    call: Callable[..., None], asked: dict[str, object], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("INDELIBLE_JOBS", "1")
    with pytest.raises(indelible.InputError) as error:
        call(["silo", "lad"], ["scribble"], **asked)
    assert str(error.value).startswith(f"{name}: {FULL}")
    assert str(error.value).endswith(OWN)


def test_a_single_run_has_no_name_and_one_design_no_settings_of_its_own() -> None:
    with pytest.raises(indelible.InputError) as error:
        compared(["lad"], ["scribble"])
    assert str(error.value).startswith(FULL)
    assert str(error.value).endswith(ALONE)
    with pytest.raises(indelible.InputError) as error:
        compared(["lad"], ["scribble", "hash"], cores=1)
    assert str(error.value).startswith(f"lad on scribble, 1 core: {FULL}")
    assert str(error.value).endswith(ALONE)


def test_what_no_run_can_have_is_said_without_a_name() -> None:
    with pytest.raises(indelible.InputError, match=r"^cores is 99; machine tiny takes 1 to 4"):
        compared(["silo", "lad"], ["scribble"], cores=99)
    with pytest.raises(indelible.InputError, match=r"^unknown parameter `entires` of design silo"):
        indelible.compare(["native", "silo"], ["hash"], set={"silo.entires": 1})


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
