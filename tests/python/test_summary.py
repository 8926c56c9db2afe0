"""A row for each design and all that it trades: numbers, who is dominated, the command, figures."""

from __future__ import annotations

import csv
import json
import math
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import indelible
from conftest import needs_core
from indelible import means, summary
from indelible.batteries import Saved
from indelible.plots import summary as summary_plot
from indelible.results.comparison import Comparison
from indelible.text import summary as summary_text

Command = Callable[..., tuple[int, str, str]]

ASKED = ("compare", "--designs", "silo,leaky,native", "--workloads", "hash,btree", "--summary")


def test_a_comparison_knows_what_its_designs_must_save(fake: ModuleType) -> None:
    settings = {"silo.entries": 4, "hash.items": 50, "workload.value": 8, "controller.wpq": 8}
    answer = indelible.compare(
        *(["undo@x86", "silo", "undo@eadr"], ["hash", "btree"]),
        **{"cores": [1, 4], "set": settings, "crash": False},
    )
    # One is none of the stand-in's, which has a battery for all of its own that need one.
    silo, none = Saved(5.3125 * 1024, 61.08032), Saved(0, 0)
    each = {"undo@x86": none, "silo": silo}
    assert answer.saved == {(d, cores): saved for cores in (1, 4) for d, saved in each.items()}
    shared = ("controller.wpq", "8")
    asked = [(row["designs"], row["cores"], row["settings"]) for row in fake.batteries]
    assert asked == [
        (design, cores, settings)
        for cores in (1, 4)
        for design, settings in (
            (["undo@x86"], [shared]),
            (["silo"], [("design.entries", "4"), shared]),
            (["undo@eadr"], [shared]),
        )
    ]


def test_cores_that_were_not_asked_for_are_those_of_the_runs(fake: ModuleType) -> None:
    answer = indelible.compare(["silo"], ["hash"], crash=False)
    assert [row["cores"] for row in fake.batteries] == [8]
    assert [*answer.saved] == [("silo", None)]


DESIGNS = ["undo@x86", "redo@x86", "hops", "silo", "leaky", "native"]

#: What is measured by design and workload: throughput, p99, bytes, bits and energy.
MEASURED = {
    "undo@x86": {"hash": (100.0, 400.0, 50.0, 80.0, 3.0), "btree": (10.0, 500.0, 60.0, 90.0, 4.0)},
    "redo@x86": {"hash": (130.0, 300.0, 40.0, 99.0, 3.0), "btree": (20.0, 450.0, 60.0, 99.0, 9.0)},
    "hops": {"hash": (140.0, 290.0, 30.0, 70.0, 2.5), "btree": (40.0, 350.0, 50.0, 85.0, 3.0)},
    "silo": {"hash": (180.0, 200.0, 20.0, 70.0, 2.0), "btree": (25.0, 300.0, 30.0, 60.0, 3.0)},
    "leaky": {"hash": (500.0, 20.0, 2.0, 7.0, 0.2), "btree": (500.0, 30.0, 3.0, 6.0, 0.3)},
    "native": {"hash": (900.0, 0.0, 1.0, 7.0, 0.1), "btree": (900.0, 0.0, 1.0, 6.0, 0.1)},
}


def compared(
    designs: Sequence[str] = DESIGNS, measured: Mapping[str, Any] = MEASURED, **asked: object
) -> Comparison:
    """Return a comparison whose runs have measured that; a second seed is twice as fast."""
    answer = indelible.compare(designs, ["hash", "btree"], **asked)
    for (design, workload, _, seed), run in answer.runs.items():
        speed, p99, written, bits, energy = measured[design][workload]
        run.data["throughput_tx_per_s"] = speed * seed
        run.data.update({"txs": 1000, "aborted": 0})
        # In nJ a transaction.
        run.data["energy_uj"] = energy
        run.data["commit_latency_cycles"]["p99"] = p99
        run.data["pm_writes"] |= {"wpq_bytes": written * 1000, "media_bits": bits * 1000}
    return answer


def by_hand(design: str, number: int, base: str = "undo@x86") -> float:
    ratios = [MEASURED[design][w][number] / MEASURED[base][w][number] for w in ("hash", "btree")]
    return math.sqrt(ratios[0] * ratios[1])


def row_of(answer: Comparison, design: str) -> dict[str, Any]:
    (row,) = [row for row in answer.summarized() if row["design"] == design]
    return row


def cells(answer: Comparison, width: int = 120) -> dict[str, list[str]]:
    """Return the cells of the first table by the names of designs, and its heads."""
    lines = summary_text.table(answer, width).partition("\n\n")[2].splitlines()
    rows = [re.split(r" {2,}", line) for line in lines[: 2 + len(answer.designs)]]
    return {row[0]: row[1:] for row in rows}


def lines_of(answer: Comparison, label: str) -> list[str]:
    """Return what stands behind a label, which may be in each block and in the notes."""
    shown = re.sub(r"\n {12}", " ", summary_text.table(answer, 100))
    return re.findall(rf"^{label:<12}(.*)$", shown, re.MULTILINE)


def test_numbers_are_geometric_means_of_ratios(fake: ModuleType) -> None:
    answer = compared(metric="media-lines")
    for design in ("redo@x86", "hops", "silo", "leaky"):
        row = row_of(answer, design)
        for number, key in enumerate(summary.RATIOS):
            assert row[key] == pytest.approx(by_hand(design, number)), (design, key)
        assert row["throughput_half_width_95"] is None
    assert row_of(answer, "undo@x86")["pm_energy"] == pytest.approx(1)
    assert answer.metric == "media-lines"
    with pytest.raises(indelible.InputError, match="unknown metric `latency`; there are: "):
        answer.by_metric("latency")
    silo, redo = row_of(answer, "silo"), row_of(answer, "redo@x86")
    assert (silo["state_bytes"], silo["flush_energy_uj"]) == (5440, 61.08032)
    assert (redo["state_bytes"], redo["flush_energy_uj"]) == (0, 0)
    # A commit that takes no time takes less than any, and is no multiple of one.
    assert row_of(answer, "native")["commit_latency_p99"] == 0


def test_a_row_is_what_its_numbers_are(fake: ModuleType) -> None:
    shown = cells(compared())
    heads = "throughput p99 PM writes media bits energy state flush crash test"
    assert " ".join(shown["design"]) == heads
    found = [f"{by_hand('silo', number):.2f}" for number in range(5)]
    assert shown["silo"] == [
        *(found[0], *(f"^{of}" for of in found[1:])),
        *("5.312 KiB", "61.1 uJ", "ok 400"),
    ]
    # What is not crash-safe is the best of nothing.
    assert shown["leaky!"][-1] == "FAIL 5/400"
    assert shown["native†"][1] == "0.00"
    assert not any(cell.startswith("^") for cell in shown["leaky!"] + shown["native†"])
    assert shown["hops†"][0] == f"^{by_hand('hops', 0):.2f}"
    assert shown["redo@x86"][-3:] == ["0", "0", "ok 400"]
    notes = " ".join(summary_text.table(compared(), 100).split())
    assert "for hops, until the transaction is durable" in notes
    unknown = "- not known on some workload"
    assert unknown not in notes
    assert unknown in summary_text.table(replace(compared(), saved={}), 100)


def test_what_is_not_known_of_batteries_is_a_dash(fake: ModuleType) -> None:
    answer = replace(compared(["undo@x86", "silo"]), saved={})
    assert (cells(answer)["silo"][5:7], row_of(answer, "silo")["state_bytes"]) == (["-"] * 2, None)


def test_who_is_better_in_everything_dominates(fake: ModuleType) -> None:
    answer = compared()
    # hops is faster than redo@x86 in each way and needs more to be saved, silo as well. The bound
    # and what fails dominate nobody, and nobody says that they are dominated.
    assert [row["dominated_by"] for row in answer.summarized()] == [
        ["redo@x86"],
        [],
        [],
        [],
        [],
        [],
    ]
    assert lines_of(answer, "dominated")[0] == "undo@x86 by redo@x86"
    free = replace(answer, saved=dict.fromkeys(answer.saved, Saved()))
    dominated = {row["design"]: row["dominated_by"] for row in free.summarized()}
    # Of two that are dominated by the same the one says so of the other, too.
    assert dominated == {
        "undo@x86": ["redo@x86", "silo"],
        "redo@x86": ["silo"],
        **{design: [] for design in ("hops", "silo", "leaky", "native")},
    }
    # hops is faster, and would be no better than what promises more in any case.
    assert lines_of(free, "dominated")[0] == "undo@x86 by silo; redo@x86 by silo"


def test_a_percentile_of_few_commits_earns_and_decides_nothing(fake: ModuleType) -> None:
    for count, is_few in ((100, False), (99, True)):
        answer = compared(["undo@x86", "redo@x86"])
        answer.runs["redo@x86", "hash", None, 1].data.update({"txs": count + 1, "aborted": 1})
        # Its p99 alone would keep undo@x86 from being dominated.
        for workload in answer.workloads:
            answer.runs["undo@x86", workload, None, 1].data["commit_latency_cycles"]["p99"] = 1
            answer.runs["redo@x86", workload, None, 1].data["pm_writes"]["wpq_bytes"] = 1000
        dominated = row_of(answer, "undo@x86")["dominated_by"]
        assert dominated == (["redo@x86"] if is_few else [])
        shown = summary_text.table(answer, 120)
        assert ("^" in cells(answer)["undo@x86"][1]) == (not is_few)
        said = " ".join(shown.split())
        few = "! the 99th percentile of commit latency of 99 transactions, fewer than 100, is the"
        assert (f"{few} slowest: raise --txs; it earns no ^, and no design" in said) == is_few
        assert ("as good in throughput, PM writes and state, and better" in said) == is_few


def test_less_of_a_promise_dominates_none_of_more(fake: ModuleType) -> None:
    measured = MEASURED | {"hops": MEASURED["silo"] | {"btree": (30.0, 200.0, 10.0, 10.0, 1.0)}}
    designs = ["undo@x86", "silo", "hops"]
    answer = compared(designs, measured)
    answer = replace(answer, saved=dict.fromkeys(answer.saved, Saved()))
    assert row_of(answer, "silo")["dominated_by"] == []
    alike = replace(answer, durability=dict.fromkeys(designs, "synchronous"))
    assert row_of(alike, "silo")["dominated_by"] == ["hops"]
    unlike = replace(answer, durability=alike.durability | {"silo": "asynchronous"})
    assert row_of(unlike, "silo")["dominated_by"] == ["hops"]


def test_what_differs_by_rounding_is_level(fake: ModuleType) -> None:
    same = MEASURED["undo@x86"]
    nearly = {w: tuple(value * (1 + 1e-14) for value in each) for w, each in same.items()}
    answer = compared(["undo@x86", "redo@x86"], MEASURED | {"redo@x86": nearly})
    assert [row["dominated_by"] for row in answer.summarized()] == [[], []]
    assert "^" not in summary_text.table(answer, 100)


@pytest.mark.parametrize("number", [0, 1, 2])
def test_who_is_worse_in_one_number_dominates_nobody(fake: ModuleType, number: int) -> None:
    base, best = MEASURED["undo@x86"], MEASURED["redo@x86"]
    worse = {
        w: tuple(
            base[w][n] * (0.9 if n == 0 else 1.1) if n == number else best[w][n] for n in range(5)
        )
        for w in base
    }
    answer = compared(["undo@x86", "redo@x86"], MEASURED | {"redo@x86": worse})
    assert row_of(answer, "undo@x86")["dominated_by"] == []


def test_of_what_is_no_rival_nobody_says_that_it_is_dominated(fake: ModuleType) -> None:
    slow = dict.fromkeys(("hash", "btree"), (1.0, 900.0, 900.0, 900.0, 900.0))
    answer = compared(measured=MEASURED | {"leaky": slow, "native": slow, "undo@x86": slow})
    dominated = {row["design"]: bool(row["dominated_by"]) for row in answer.summarized()}
    assert [design for design in DESIGNS if dominated[design]] == ["undo@x86"]


def test_what_is_not_known_dominates_nobody(fake: ModuleType) -> None:
    answer = compared(["undo@x86", "redo@x86"])
    assert row_of(answer, "undo@x86")["dominated_by"] == ["redo@x86"]
    assert row_of(replace(answer, saved={}), "undo@x86")["dominated_by"] == []


def test_the_fastest_says_where_it_is(fake: ModuleType) -> None:
    told = "hops†, from 1.40 times undo@x86 on hash to 4.00 on btree"
    assert lines_of(compared(), "fastest") == [told]
    # Of what all others are relative to, of one workload and of level ratios nothing is said.
    assert lines_of(compared(normalize="hops"), "fastest") == []
    alike = {"hash": (180.0, *[200.0] * 4), "btree": (18.01, *[300.0] * 4)}
    assert lines_of(compared(["undo@x86", "silo"], MEASURED | {"silo": alike}), "fastest") == []
    one = indelible.compare(["undo@x86", "silo"], ["hash"], crash=False)
    assert "fastest" not in one.summary()
    assert one.summary().startswith("Designs relative to undo@x86, on hash\n")
    assert lines_of(indelible.compare(["undo@x86", "silo"], ["hash", "btree"]), "fastest") == []


def test_each_number_of_cores_is_a_block(fake: ModuleType) -> None:
    answer = compared(["undo@x86", "silo"], cores=[1, 8])
    for (_, _, cores, _), run in answer.runs.items():
        run.data["throughput_tx_per_s"] *= 2 if cores == 8 and run.data["design"] == "silo" else 1
    rows = answer.summarized()
    assert [(row["design"], row["cores"]) for row in rows] == [
        (design, cores) for cores in (1, 8) for design in ("undo@x86", "silo")
    ]
    assert rows[3]["throughput"] == pytest.approx(2 * rows[1]["throughput"])
    assert [line.split()[1] for line in lines_of(answer, "fastest")] == ["from", "from"]
    # Beside each other, as below a page's tables, each says of which it is.
    labels = [label for label, _ in summary_text.notes(answer) if label.startswith("fastest")]
    assert labels == ["fastest, 1 core", "fastest, 8 cores"]
    assert summary_text.table(answer, 100).count("crash test\n---") == 2


def test_a_library_that_is_missing_is_told_before_anything_runs(
    command: Command, fake: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "textalloc", None)
    code, _, complaint = command(*ASKED, "--plot", str(tmp_path / "summary.png"))
    assert (code, fake.asked) == (2, [])
    assert complaint.endswith("--plot needs textalloc: python -m pip install 'indelible[plot]'\n")
    # No other figure needs it.
    words = [word for word in ASKED if word != "--summary"]
    assert command(*words, "--plot", str(tmp_path / "ratios.png"))[0] in (0, 1)


def test_what_writes_nothing_is_the_best_and_dominates(fake: ModuleType) -> None:
    answer = compared(["undo@x86", "redo@x86", "silo"])
    run = answer.runs["redo@x86", "hash", None, 1].data
    run["pm_writes"]["wpq_bytes"] = 0
    assert row_of(answer, "redo@x86")["pm_writes"] == 0
    shown = cells(answer)
    column = shown["design"].index("PM writes")
    assert [shown[d][column][0] for d in ("undo@x86", "redo@x86", "silo")] == ["1", "^", "0"]
    for cell in (("redo@x86", w, None, 1) for w in answer.workloads):
        answer.runs[cell].data["throughput_tx_per_s"] *= 100
        answer.runs[cell].data["commit_latency_cycles"]["p99"] = 1
    answer = replace(answer)
    assert "redo@x86" in row_of(answer, "silo")["dominated_by"]


def test_seeds_have_a_half_width(fake: ModuleType) -> None:
    answer = compared(["undo@x86", "silo"], seeds=2)
    row = row_of(answer, "silo")
    assert row["throughput"] == pytest.approx(by_hand("silo", 0))
    assert row["throughput_half_width_95"] == pytest.approx(0)
    run = answer.runs["silo", "hash", None, 2]
    run.data["throughput_tx_per_s"] *= 1.21
    answer = replace(answer)
    row, each = row_of(answer, "silo"), [by_hand("silo", 0), 1.1 * by_hand("silo", 0)]
    assert row["throughput"] == pytest.approx(math.sqrt(each[0] * each[1]))
    assert row["throughput_half_width_95"] == pytest.approx(means.half_width(each))
    shown = cells(answer)
    assert shown["design"][:2] == ["throughput", "± 95 %"]
    assert shown["undo@x86"][1] == "-"
    assert float(shown["silo"][1]) == pytest.approx(means.half_width(each), abs=0.005)
    assert lines_of(answer, "± 95 %") == [
        "half the width of throughput's confidence interval over 2 seeds, which is symmetric in"
        " logarithms; only the means decide what is best or dominated"
    ]


def test_a_narrow_table_does_without_some_columns(fake: ModuleType) -> None:
    answer = compared(["undo@x86", "redo@x86", "silo"], seeds=2)
    widths = {}
    for width in range(60, 100):
        shown = summary_text.table(answer, width)
        assert max(map(len, shown.splitlines())) <= width
        (head, *_) = [line for line in shown.splitlines() if line.startswith("design")]
        widths.setdefault(len(head.split()), (width, head))
        told = re.findall("not shown (.*?): no room here; a wider", " ".join(shown.split()))
        every = ("media bits", "energy", "state", "flush")
        assert [name for name in every if name not in head] == (told[0].split(", ") if told else [])
    heads = [head.split() for _, head in sorted(widths.values())]
    least = ["design", "throughput", "±", "95", "%", "p99", "PM", "writes", "crash", "test"]
    assert heads[0] == least
    assert heads[1] == [*least[:-2], "state", "crash", "test"]
    assert heads[-1][-4:] == ["state", "flush", "crash", "test"]


def test_what_was_interrupted_is_told(fake: ModuleType) -> None:
    answer = compared(["undo@x86", "silo"])
    runs = {cell: run for cell, run in answer.runs.items() if cell[:2] != ("silo", "btree")}
    some = replace(answer, runs=runs, interrupted=True)
    assert some.summary().startswith("interrupted: 3 of 4 runs had ended")
    assert cells(replace(some, interrupted=False))["silo"][0] == "-"
    assert row_of(some, "silo")["throughput"] is None
    # A mean that is 0 wherever it is known need not be 0.
    answer = compared(["undo@x86", "native"])
    runs = {cell: run for cell, run in answer.runs.items() if cell[:2] != ("native", "btree")}
    assert row_of(answer, "native")["commit_latency_p99"] == 0
    assert row_of(replace(answer, runs=runs), "native")["commit_latency_p99"] is None


def test_the_command_shows_writes_and_draws_them(command: Command, tmp_path: Path) -> None:
    table, rows, figure = (tmp_path / name for name in ("t.csv", "r.csv", "f.svg"))
    words = [*ASKED, "--table", str(table), "--csv", str(rows), "--plot", str(figure)]
    code, shown, _ = command(*words)
    # A design fails its crash test.
    assert (code, f"figure: {figure}" in shown) == (1, True)
    answer = json.loads(command(*ASKED, "--json")[1])
    assert (len(answer["rows"]), answer["normalize"]) == (6, "silo")
    keys = "throughput throughput_half_width_95 throughput_low_95 throughput_high_95"
    keys += " commit_latency_p99 pm_writes media_bits pm_energy"
    keys += " state_bytes flush_energy_uj durability crash dominated_by"
    assert [*answer["summary"][0]] == ["design", "cores", *keys.split()]
    silo, leaky, native = answer["summary"]
    assert (silo["state_bytes"], native["durability"], native["cores"]) == (5440, "none", 8)
    crash = {"verdict": "fail", "points": 400, "violations": 5, "reason": None}
    assert {key: leaky["crash"][key] for key in crash} == crash
    assert leaky["crash"]["command"].startswith("indelible crash --design leaky --workload btree")
    # That of one campaign is not what the points of two are of.
    assert silo["crash"]["command"] is None
    with table.open(encoding="utf-8") as file:
        written = [*csv.DictReader(file)]
    assert [float(row["pm_writes"]) for row in written] == [
        row["pm_writes"] for row in answer["summary"]
    ]
    assert [row["crash.verdict"] for row in written] == ["ok", "fail", "none"]
    with rows.open(encoding="utf-8") as file:
        assert len([*csv.DictReader(file)]) == 6
    assert "Pareto front" in figure.read_text(encoding="utf-8")


def test_a_bound_is_no_base_of_its_own_accord(command: Command) -> None:
    asked = ("compare", "--designs", "native,silo", "--workloads", "hash", "--summary")
    assert "relative to silo" in command(*asked)[1]
    shown = command(*asked, "--normalize", "native")[1]
    assert "relative to native" in shown
    # Of all designs, too, the base is the first that is durable.
    every = ("compare", "--designs", "all", "--workloads", "hash", "--summary", "--no-crash")
    code, shown, _ = command(*every)
    rows = indelible.list("designs")
    first = next(row["name"] for row in rows if row["durability"] != "none")
    assert (code, f"relative to {first}" in shown, first != rows[0]["name"]) == (0, True, True)


def test_nothing_is_relative_to_what_takes_no_time(fake: ModuleType) -> None:
    answer = compared(normalize="native")
    assert row_of(answer, "silo")["commit_latency_p99"] is None
    assert "- native is 0 there: choose --normalize" in summary_text.table(answer, 100)
    assert row_of(answer, "silo")["throughput"] == pytest.approx(by_hand("silo", 0, "native"))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--metric", "pm-writes"], "--summary shows a row for each design alone: drop --metric"),
        (
            ["--native", "--cores", "1"],
            "--summary shows a row for each design alone: drop --native",
        ),
        (["--writes"], "--writes shows what is written alone: drop --summary"),
        (["--latencies"], "--latencies shows commit latencies alone: drop --summary"),
    ],
)
def test_what_is_another_view_is_refused(
    command: Command, fake: ModuleType, words: list[str], said: str
) -> None:
    code, shown, complaint = command(*ASKED, *words)
    assert (code, shown, fake.asked, complaint.count("\n")) == (2, "", [], 1)
    assert said in complaint


def drawn(answer: Comparison) -> tuple[Any, dict[str, Any]]:
    """Return the first panel of the figure, and the names in it."""
    axes = summary_plot.figure(answer).axes[0]
    return axes, {note.get_text(): note for note in axes.texts if note.get_text()}


def assert_apart(axes: Any, names: Mapping[str, Any]) -> None:  # noqa: ANN401
    """Assert that names lie within the axes, and none over another."""
    room = axes.get_window_extent()
    boxes = [note.get_window_extent() for note in names.values()]
    for index, box in enumerate(boxes):
        assert not any(box.overlaps(other) for other in boxes[index + 1 :])
        assert room.x0 < box.x0 < box.x1 < room.x1
        assert room.y0 < box.y0 < box.y1 < room.y1


def test_names_of_points_that_are_close_lie_apart(fake: ModuleType) -> None:
    near = {
        design: {
            w: (base[0] * (1 + index / 500), base[1], base[2] * (1 - index / 500), *base[3:])
            for w, base in MEASURED["undo@x86"].items()
        }
        for index, design in enumerate(DESIGNS[:-1])
    }
    # One far away has all others in one place.
    answer = compared(measured=MEASURED | near)
    axes, names = drawn(answer)
    assert_apart(axes, names)
    # A line leads to names that are not beside their points.
    assert len(axes.get_lines()) > 1


def test_a_design_is_a_point_with_its_name(fake: ModuleType) -> None:
    answer = compared()
    axes, names = drawn(answer)
    assert [*names] == ["undo@x86", "redo@x86", "hops†", "silo", "leaky!", "native†"]
    for design, points in zip(DESIGNS[:4], axes.collections, strict=False):
        row = row_of(answer, design)
        assert [*points.get_offsets()[0]] == [row["throughput"], row["pm_writes"]]
    assert_apart(axes, names)
    # A cross through what failed, a hollow grey point for the bound, and a fill for the others.
    fills = [tuple(points.get_facecolor()[0][:3]) for points in axes.collections]
    hollow = (1.0, 1.0, 1.0)
    assert [fill == hollow for fill in fills] == [False] * 4 + [True, False, True]
    labels = [points.get_label() for points in axes.collections[4:]]
    assert labels[1:] == [summary_plot.UNSAFE, summary_plot.BOUND]
    assert {*axes.collections[-1].get_edgecolor()[0][:3]} == {0.5}
    (legend,) = axes.figure.legends
    assert [text.get_text() for text in legend.get_texts()] == [
        *(summary_plot.FRONT, summary_plot.BOUND, summary_plot.UNSAFE)
    ]


def test_axes_say_what_they_show_and_where_it_is_better(fake: ModuleType) -> None:
    for seeds, sure in ((1, ""), (2, ", 95 % intervals")):
        axes, _ = drawn(compared(["undo@x86", "silo"], seeds=seeds))
        across, up = axes.get_xlabel(), axes.get_ylabel()
        assert across == "Throughput relative to undo@x86 (higher is better)"
        assert up.split("\n") == ["PM writes relative to undo@x86", "(lower is better)"]
        assert axes.get_title(loc="left").endswith(f"geometric means over hash, btree{sure}")


def test_intervals_are_drawn_and_no_name_lies_on_them(fake: ModuleType) -> None:
    answer = compared(["undo@x86", "silo"], seeds=2)
    answer.runs["silo", "hash", None, 2].data["throughput_tx_per_s"] *= 1.01
    axes, names = drawn(answer)
    row = row_of(answer, "silo")
    # The base is what it is divided by, and has none.
    (bar,) = axes.containers
    ((ends,),) = (lines.get_segments() for lines in bar.lines[2])
    reach = [row[f"throughput_{end}_95"] for end in ("low", "high")]
    assert [across for across, _ in ends] == pytest.approx(reach)
    _, up = axes.transData.transform((row["throughput"], row["pm_writes"]))
    box = names["silo"].get_window_extent()
    assert not box.y0 <= up <= box.y1


def test_the_front_is_of_designs_that_are_safe(fake: ModuleType) -> None:
    answer = compared()
    axes, _ = drawn(answer)
    (line,) = (line for line in axes.get_lines() if line.get_label() == summary_plot.FRONT)
    (silo, hops) = ((by_hand(d, 0), by_hand(d, 2)) for d in ("silo", "hops"))
    left, _, _, top = axes.axis()
    corners = [(left, silo[1]), silo, (silo[0], hops[1]), hops, (hops[0], top)]
    assert [*zip(*line.get_data(), strict=True)] == [pytest.approx(corner) for corner in corners]


def test_a_design_that_writes_nothing_is_on_the_front(fake: ModuleType) -> None:
    measured = MEASURED | {"hops": dict.fromkeys(("hash", "btree"), (150.0, 290.0, 0.0, 9.0, 2.0))}
    for designs, scale in ((["undo@x86", "redo@x86", "hops"], "linear"), (DESIGNS, "log")):
        axes, names = drawn(compared(designs, measured))
        assert (axes.get_yscale(), "hops†" in names) == (scale, True)
        # It is the fastest, too, so that nothing else is on the front.
        hops = pytest.approx((math.sqrt(1.5 * 15), axes.get_ylim()[0]))
        (line,) = (line for line in axes.get_lines() if line.get_label() == summary_plot.FRONT)
        assert [*zip(*line.get_data(), strict=True)][1:-1] == [hops]
        assert [tuple(points.get_offsets()[0]) for points in axes.collections].count(hops) == 1
        is_told = axes.get_title(loc="left").endswith("; PM writes of 0 at the edge: hops")
        assert is_told == (scale == "log")


def test_panels_are_of_numbers_of_cores_and_say_what_has_no_place(fake: ModuleType) -> None:
    answer = compared(cores=[1, 8])
    for (design, _, cores, _), run in answer.runs.items():
        if (design, cores) == ("hops", 8):
            run.data["throughput_tx_per_s"] = None
    drawing = summary_plot.figure(answer)
    titles = [axes.get_title(loc="left") for axes in drawing.axes]
    assert titles == [
        "machine silo, 1 core, seed 1, geometric means over hash, btree",
        "machine silo, 8 cores, seed 1, geometric means over hash, btree; without a value: hops",
    ]
    # What differs much is on a logarithmic axis.
    assert [axes.get_xscale() for axes in drawing.axes] == ["log", "log"]
    few = compared(["undo@x86", "silo"], cores=[1, 8])
    scales = [(axes.get_xscale(), axes.get_yscale()) for axes in summary_plot.figure(few).axes]
    assert scales == [("linear", "linear")] * 2
    # Panels that are beside each other have the same axes.
    for workload in few.workloads:
        few.runs["silo", workload, 8, 1].data["pm_writes"]["wpq_bytes"] = 100
    scales = [(axes.get_xscale(), axes.get_yscale()) for axes in summary_plot.figure(few).axes]
    assert scales == [("linear", "log")] * 2


def test_nothing_is_drawn_of_what_is_relative_to_nothing(command: Command, tmp_path: Path) -> None:
    path = tmp_path / "it.png"
    answer = compared(["undo@x86", "silo"])
    for run in answer.runs.values():
        run.data["pm_writes"]["wpq_bytes"] = 0
    with pytest.raises(indelible.InputError, match="undo@x86 is 0 or has no value here; choose"):
        answer.save(path, view="summary")
    assert not path.exists()


@needs_core
def test_it_is_what_the_commands_say_one_by_one() -> None:
    asked = {"cores": 2, "txs": 100, "crash": False}
    answer = indelible.compare(["undo@x86", "loc-wal", "silo"], ["hash", "queue"], **asked)
    saved = indelible.battery(["silo", "undo@x86"], cores=2)["saved"]
    silo = row_of(answer, "silo")
    assert [(row["design"], row["bytes"], row["energy_uj"]) for row in saved] == [
        ("silo", silo["state_bytes"], silo["flush_energy_uj"]),
        ("undo@x86", 0, 0),
    ]
    for key, metric in summary.RATIOS.items():
        other = indelible.compare(answer.designs, answer.workloads, metric=metric, **asked)
        assert silo[key] == other.gmean("silo")
    assert row_of(answer, "loc-wal")["durability"] == "asynchronous"
    assert answer.summary() == summary_text.table(answer)


@needs_core
def test_what_is_saved_is_the_most_with_any_workload() -> None:
    asked = {"cores": 1, "txs": 5, "crash": False}

    def bytes_of(workloads: list[str], **more: object) -> int:
        answer = indelible.compare(["lad"], workloads, **asked, **more)
        return row_of(answer, "lad")["state_bytes"]

    larger = {"queue.controller.wpq": 128}
    alone = bytes_of(["hash"])
    assert bytes_of(["queue"], set=larger) > alone
    assert bytes_of(["hash", "queue"], set=larger) == bytes_of(["queue"], set=larger)
