"""What figures draw, and what they refuse to."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

import indelible
from indelible import plot

Command = Callable[..., tuple[int, str, str]]

LATENCY = ("--metric", "commit-latency")


def test_a_cell_without_a_ratio_has_a_mark_and_no_bar(fake: ModuleType) -> None:
    answer = indelible.compare(
        ["silo", "undo@x86"], ["hash", "btree"], crash=False, metric="commit-latency"
    )
    for (_, workload, _, _), run in answer.runs.items():
        if workload == "hash":
            run.data["commit_latency_cycles"]["mean"] = 0.0
    (axes,) = plot.figure(answer).axes
    drawn = [patch.get_height() for patch in axes.patches if patch.get_height() > 0]
    assert drawn == [1.0, 1.0]
    # Both designs on `hash`, and both of their means.
    assert [note.get_text() for note in axes.texts].count("-") == 4


@pytest.mark.parametrize(
    "words",
    [
        ["compare", "--no-crash"],
        ["sweep", "--workloads", "hash", "--vary", "cores=1,2", "--normalize", "native"],
    ],
)
def test_no_figure_is_drawn_of_no_ratio(command: Command, tmp_path: Path, words: list[str]) -> None:
    path = tmp_path / "it.png"
    designs = ("--designs", "native,silo")
    code, shown, complaint = command(*words, *designs, *LATENCY, "--plot", str(path))
    assert (code, path.exists(), complaint.count("\n")) == (2, False, 1)
    assert "- native is 0 there: choose --normalize" in shown
    assert "there is no figure: native is 0 here; choose another with --normalize" in complaint


def test_no_sweep_is_drawn_of_no_ratio(command: Command, tmp_path: Path) -> None:
    words = ("sweep", "--designs", "native", "--workloads", "hash", "--vary", "cores=1,2")
    code, _, complaint = command(*words, *LATENCY, "--plot", str(tmp_path / "it.png"))
    assert code == 2
    assert "there is no figure: each design at cores=1 is 0 here; choose" in complaint
