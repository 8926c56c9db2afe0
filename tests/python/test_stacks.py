"""What transactions are made of, beside each other: what adds up, the command, its figures."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import indelible
from conftest import needs_core
from indelible import stacks
from indelible.plots import stacks as stacks_plot
from indelible.stacks import STALLS, WRITES
from indelible.text.stacks import MEAN_LABEL

Command = Callable[..., tuple[int, str, str]]
ASKED = ("compare", "--designs", "native,silo", "--workloads", "hash,btree", "--stalls")


@needs_core
def test_parts_add_up_to_the_time_of_a_transaction() -> None:
    answer = indelible.compare(
        ["undo@x86", "silo"], ["hash", "btree"], cores=2, txs=100, seeds=2, crash=False
    )
    for workload in answer.workloads:
        base = stacks.parts(answer, STALLS, ("undo@x86", workload, 2))
        own = stacks.parts(answer, STALLS, ("silo", workload, 2))
        assert base is not None
        assert own is not None
        assert sum(base.values()) == pytest.approx(100)
        # Time is what throughput is the inverse of; the mean of both seeds' times.
        ratios = [answer.ratio(("silo", workload, 2), seed) or 0.0 for seed in answer.seeds]
        assert sum(own.values()) == pytest.approx(sum(100 / ratio for ratio in ratios) / 2)
        # A commit of the software log is fences, one of Silo's is not.
        assert base["fence"] > base["commit_wait"]
        assert own["commit_wait"] > own["fence"]
    mean = stacks.mean_parts(answer, STALLS, "silo", 2)
    each = [
        stacks.parts(answer, STALLS, ("silo", workload, 2)) or {} for workload in answer.workloads
    ]
    assert mean is not None
    assert mean["commit_wait"] == pytest.approx(sum(cell["commit_wait"] for cell in each) / 2)


def test_a_stack_of_the_figure_is_as_high_as_its_parts(fake: object) -> None:
    answer = indelible.compare(["native", "silo"], ["hash", "btree"], crash=False)
    axes = stacks_plot.stalls_figure(answer).axes[0]
    tops: dict[float, float] = {}
    for patch in axes.patches:
        place = round(patch.get_x() + patch.get_width() / 2, 3)
        tops[place] = max(tops.get(place, 0.0), patch.get_y() + patch.get_height())
    totals = [
        sum(cell.values())
        for cells in stacks.stacks(answer, STALLS, None).values()
        for cell in cells
    ]
    assert sorted(tops.values()) == pytest.approx(sorted(totals))
    assert len(totals) == 6


def test_every_stack_has_the_name_of_its_design(fake: object) -> None:
    answer = indelible.compare(["native", "leaky", "silo"], ["hash", "btree"], crash=False)
    axes = stacks_plot.stalls_figure(answer).axes[0]
    assert len(axes.xaxis.get_minorticklocs()) == 3 * 3


def test_names_stand_below_the_stacks_that_they_are_of(fake: object) -> None:
    answer = indelible.compare(["native", "silo"], ["hash", "btree"], crash=False)
    # Nothing of the second is known, in each workload and so in the mean.
    for workload in answer.workloads:
        del answer.runs["silo", workload, None, 1]
    axes = stacks_plot.stalls_figure(answer).axes[0]
    names = [label.get_text() for label in axes.get_xticklabels(minor=True)]
    assert names == ["native†", "silo"] * 3
    places = [*axes.xaxis.get_minorticklocs()]
    heights = dict.fromkeys(places, 0.0)
    for patch in axes.patches:
        (place,) = (at for at in places if abs(at - patch.get_x() - patch.get_width() / 2) < 0.01)
        heights[place] = max(heights[place], patch.get_y() + patch.get_height())
    assert [height == pytest.approx(100) for height in heights.values()] == [True, False] * 3
    assert [note.get_position() for note in axes.texts if note.get_text() == "-"]
    marks = [note.xy[0] for note in axes.texts if note.get_text() == "-"]
    assert marks == pytest.approx(places[1::2])
    groups = [label.get_text() for label in axes.get_xticklabels()]
    assert groups == ["hash", "btree", MEAN_LABEL]
    (line,) = axes.lines
    assert [*line.get_ydata()] == [100, 100]


def test_the_legend_has_what_is_in_any_block(fake: object) -> None:
    answer = indelible.compare(["native", "silo"], ["hash"], cores=[1, 8], crash=False)
    for (_, _, cores, _), run in answer.runs.items():
        run.data["stalls"]["lock"] = 1000 if cores == 8 else 0
    drawing = stacks_plot.stalls_figure(answer)
    assert "lock" in {label.get_text() for label in drawing.legends[0].get_texts()}


def test_the_legend_has_the_order_of_the_stack(fake: object) -> None:
    answer = indelible.compare(["native", "silo"], ["hash"], cores=[1, 8], crash=False)
    for (_, _, cores, _), run in answer.runs.items():
        run.data["stalls"]["load_miss"] = 1000 if cores == 8 else 0
    (legend,) = stacks_plot.stalls_figure(answer).legends
    assert [text.get_text() for text in legend.get_texts()] == ["compute", "loads", "fence"]


def test_what_is_behind_a_lock_is_explained(command: Command) -> None:
    assert "behind a fence, a commit or a lock" in " ".join(command(*ASKED)[1].split())


def test_the_figure_is_drawn(command: Command, tmp_path: Path) -> None:
    path = tmp_path / "stalls.svg"
    code, shown, _ = command(*ASKED, "--plot", str(path))
    assert (code, f"figure: {path}" in shown) == (0, True)
    assert "Core time of a transaction" in path.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("words", "other"),
    [
        (["--metric", "pm-writes"], "--metric pm-writes"),
        (["--native", "--cores", "1"], "--native"),
        (["--writes"], "--writes"),
        (["--latencies"], "--latencies"),
    ],
)
def test_what_has_no_stalls_is_refused(command: Command, words: list[str], other: str) -> None:
    code, _, complaint = command(*ASKED, *words)
    assert code == 2
    assert f"--stalls shows core time alone: drop {other}" in complaint


@needs_core
def test_writes_add_up_to_what_the_metric_says() -> None:
    designs, workloads = ["undo@x86", "redo-log", "ssp", "shadow-paging"], ["hash", "sps"]
    answer = indelible.compare(
        designs, workloads, "ssp", cores=1, txs=300, metric="pm-writes", crash=False
    )
    for workload in workloads:
        for design in designs:
            own = stacks.parts(answer, WRITES, (design, workload, 1))
            assert own is not None
            ratio = answer.ratio((design, workload, 1))
            assert sum(own.values()) == pytest.approx(100 * ratio)
            run = answer.runs[(design, workload, 1, 1)]
            assert {*run.data["pm_writes"]["by_class"]} == {*WRITES.parts}
    shadow = stacks.parts(answer, WRITES, ("shadow-paging", "hash", 1))
    assert shadow is not None
    assert max(shadow, key=lambda name: shadow[name]) == "copy_on_write"


def test_nothing_is_relative_to_a_design_that_writes_nothing(command: Command) -> None:
    asked = [*(word for word in ASKED if word != "--stalls"), "--writes", "--no-crash"]
    asked += ["--set", "fake.silent=native"]
    # A bound is no base of its own accord.
    code, shown, _ = command(*asked)
    assert (code, "relative" in shown, "silo = 100" in shown) == (0, False, True)
    code, shown, _ = command(*asked, "--normalize", "native")
    assert (code, "- native is 0 there: choose --normalize" in shown) == (0, True)
    code, _, complaint = command(*asked, "--normalize", "native", "--plot", "none.svg")
    assert code == 2
    assert "there is no figure: native is 0 or has no value here" in complaint


def test_in_python_a_bound_is_no_base_of_writes_of_its_own_accord(
    fake: object, tmp_path: Path
) -> None:
    asked = {"crash": False, "set": {"fake.silent": "native"}}
    answer, of_native = (
        indelible.compare(["native", "silo"], ["hash", "btree"], normalize=base, **asked)
        for base in (None, "native")
    )

    def bases(answer: indelible.Comparison) -> list[str]:
        table = tmp_path / "it.md"
        answer.save_table(table, "writes")
        heads = [answer.writes(), table.read_text(encoding="utf-8"), answer.stalls()]
        return [head.partition(" = 100")[0].split()[-1] for head in heads]

    assert bases(answer) == ["silo", "silo", "native"]
    assert bases(of_native) == ["native", "native", "native"]
    totals = {row["design"]: row["total"] for row in answer.stacks("writes")}
    assert (totals["native"], round(totals["silo"])) == (0, 100)
    assert {row["total"] for row in of_native.stacks("writes")} == {None}
    answer.save(tmp_path / "it.svg", "writes")
    assert "silo = 100" in (tmp_path / "it.svg").read_text(encoding="utf-8")
    with pytest.raises(indelible.InputError, match="native is 0 or has no value here"):
        of_native.save(tmp_path / "it.svg", "writes")
    assert [row["throughput"] == 1 for row in answer.summarized()] == [False, True]
    assert [row["throughput"] == 1 for row in of_native.summarized()] == [True, False]


def test_a_base_that_writes_nothing_on_one_workload_is_told(fake: object) -> None:
    answer = indelible.compare(["undo@x86", "silo"], ["hash", "btree"], crash=False)
    told = "undo@x86 is 0 there: choose --normalize"
    assert told not in answer.writes()
    written = answer.runs["undo@x86", "btree", None, 1].data["pm_writes"]
    written["by_class"] = dict.fromkeys(written["by_class"], 0)
    assert f"- {told}" in answer.writes()


def test_a_mean_is_of_every_workload_or_of_none(fake: object) -> None:
    answer = indelible.compare(["native", "silo"], ["hash", "btree"], crash=False)
    assert stacks.mean_parts(answer, STALLS, "silo", None) is not None
    del answer.runs["silo", "btree", None, 1]
    assert stacks.parts(answer, STALLS, ("silo", "hash", None)) is not None
    assert stacks.mean_parts(answer, STALLS, "silo", None) is None


def test_all_of_a_stack_is_told_as_it_was_counted(command: Command) -> None:
    asked = [word for word in ASKED if word != "--stalls"]
    shown = command(*asked, "--writes", "--no-crash")[1]
    rows = [line.split() for line in shown.splitlines() if line.lstrip().startswith("silo ")]
    # 171 and 118 and 23 bytes, and of the mean nothing.
    assert [row[-2:] == ["312", "B"] for row in rows] == [True, True, False]
    answer = indelible.compare(["native", "silo"], ["hash"], crash=False)
    assert [row["design"] for row in answer.stacks("writes")] == [
        "native",
        "native",
        "silo",
        "silo",
    ]
    with pytest.raises(
        indelible.InputError, match="the view of stacks must be stalls or writes, not"
    ):
        answer.stacks("latencies")
    assert [row["cycles"]["p99"] for row in answer.percentiles()] == [812, 812]
