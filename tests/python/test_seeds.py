"""Several seeds: what is the mean of what, how sure it is, and what is shown and written of it."""

from __future__ import annotations

import csv
import io
import json
import math
import re
import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import indelible
from indelible import means, pool
from indelible.cli import main
from indelible.experiment import Experiment
from indelible.plots import comparison as comparison_plot
from indelible.plots import sweep as sweep_plot
from indelible.results.comparison import Comparison
from indelible.results.run import Run
from indelible.text import comparison as comparison_text

Command = Callable[..., tuple[int, str, str]]

COMPARE = ["compare", "--designs", "undo@x86,silo", "--workloads", "hash,sqlite", "--cores", "8"]

#: Throughputs with the seeds 1, 2 and 3. With the second everything is twice as fast, so what is
#: not divided seed by seed comes out otherwise.
SPEEDS = {
    ("undo@x86", "hash"): (100.0, 200.0, 400.0),
    ("silo", "hash"): (150.0, 340.0, 520.0),
    ("undo@x86", "sqlite"): (10.0, 20.0, 40.0),
    ("silo", "sqlite"): (20.0, 40.0, 80.0),
}


def compared(speeds: Mapping[tuple[str, str], tuple[float | None, ...]]) -> Comparison:
    """Return a comparison that was interrupted if a speed is missing."""
    runs = {
        (design, workload, 8, seed): Run(
            {"throughput_tx_per_s": speed, "core_model": "window", "domain": "adr", "cores": 8},
            Experiment(design, workload),
        )
        for (design, workload), each in speeds.items()
        for seed, speed in enumerate(each, start=1)
        if speed is not None
    }
    return Comparison(
        designs=("undo@x86", "silo"),
        workloads=("hash", "sqlite"),
        cores=(8,),
        machine="silo",
        seeds=tuple(range(1, 1 + len(speeds["silo", "hash"]))),
        metric="throughput",
        normalize="undo@x86",
        runs=runs,
        verdicts={},
        durability={},
        interrupted=any(None in each for each in speeds.values()),
    )


def test_what_differs_between_runs_is_not_said_of_all() -> None:
    answer = compared(SPEEDS)
    assert answer.core_model() == "window core · domain adr"
    for (design, *_), run in answer.runs.items():
        run.data["domain"] = "eadr" if design == "silo" else "adr"
    assert answer.core_model() == "window core"


def test_what_is_1_by_definition_has_no_interval_that_is_the_widest(fake: ModuleType) -> None:
    for designs, told in (("silo", False), (["silo", "leaky"], True)):
        shown = " ".join(str(indelible.compare(designs, "hash", seeds=3)).split())
        assert ("the widest of a cell is leaky on hash, " in shown) == told
        assert ("the widest of a cell is" in shown) == told


def test_quantiles_are_those_of_the_tables() -> None:
    # From table 26.10 of the Handbook: what 97.5 % are below.
    published = {1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776, 9: 2.262, 10: 2.228, 29: 2.045, 60: 2.0}
    for degrees, quantile in published.items():
        assert means.student_t(degrees) == pytest.approx(quantile, abs=5e-4)


def test_intervals_are_student_s() -> None:
    # Of the logarithms to base 2 the mean is 3, the deviation the root of 2.5, and t with 4 degrees
    # of freedom 2.776.
    by_hand = 2.776 * math.sqrt(2.5) / math.sqrt(5) * math.log(2)
    ratios = [2.0, 4.0, 8.0, 16.0, 32.0]
    assert means.log_half_width(ratios) == pytest.approx(by_hand, rel=1e-3)
    inverses = [1 / ratio for ratio in ratios]
    assert means.log_half_width(inverses) == pytest.approx(by_hand, rel=1e-3)
    ends = (8 * math.exp(by_hand), 8 * math.exp(-by_hand))
    half = means.half_width(ratios)
    assert half == pytest.approx((ends[0] - ends[1]) / 2, rel=1e-3)
    assert means.ends(8.0, half) == pytest.approx(ends[::-1], rel=1e-3)
    assert means.reaches(8.0, half) == pytest.approx((8 - ends[1], ends[0] - 8), rel=1e-3)
    assert (means.ends(8.0, None), means.reaches(8.0, None)) == (None, (0.0, 0.0))
    # Not below 0 by rounding, which no figure could draw.
    narrow = [means.reaches(1 + place / 97, 1e-17) for place in range(97)]
    assert min(map(min, narrow)) == 0.0
    assert means.half_width([2.0, 2.0]) == 0.0
    assert means.half_width([2.0]) is None
    assert means.half_width([2.0, None]) is None


def by_hand(ratios: list[float]) -> float:
    """Return half the width of the interval of three ratios."""
    low, high = ends_by_hand(ratios)
    return (high - low) / 2


def ends_by_hand(ratios: list[float]) -> tuple[float, float]:
    """Return the ends of the interval of three ratios; t with 2 degrees of freedom is 4.303."""
    logs = [math.log(ratio) for ratio in ratios]
    mean = sum(logs) / 3
    wide = 4.303 * math.sqrt(sum((log - mean) ** 2 for log in logs) / 2) / math.sqrt(3)
    return math.exp(mean - wide), math.exp(mean + wide)


def test_ratios_are_of_the_same_seed() -> None:
    answer = compared(SPEEDS)
    cell = ("silo", "hash", 8)
    assert [answer.ratio(cell, seed) for seed in (1, 2, 3)] == [1.5, 1.7, 1.3]
    assert answer.ratio(cell) == pytest.approx((1.5 * 1.7 * 1.3) ** (1 / 3))
    assert answer.ratio_half_width(cell) == pytest.approx(by_hand([1.5, 1.7, 1.3]), rel=1e-3)
    assert answer.value(cell) == pytest.approx((150 + 340 + 520) / 3)
    assert answer.ratio_half_width(("silo", "sqlite", 8)) == pytest.approx(0.0)
    assert answer.ratio(("undo@x86", "hash", 8)) == 1.0


def test_the_interval_of_the_mean_is_of_the_seeds_means() -> None:
    answer = compared(SPEEDS)
    each = [math.sqrt(ratio * 2.0) for ratio in (1.5, 1.7, 1.3)]
    assert answer.gmean("silo", 8) == pytest.approx(math.prod(each) ** (1 / 3))
    assert answer.gmean_half_width("silo", 8) == pytest.approx(by_hand(each), rel=1e-3)


def test_what_is_zero_with_every_seed_is_zero() -> None:
    answer = compared({**SPEEDS, ("silo", "hash"): (0.0, 0.0, 0.0)})
    assert answer.ratio(("silo", "hash", 8)) == 0.0
    assert answer.gmean("silo", 8) == 0.0
    assert "~" not in str(answer)


def test_what_is_zero_with_some_seeds_has_no_mean() -> None:
    # One draw would decide that a mean of ratios is 0.
    answer = compared({**SPEEDS, ("silo", "hash"): (150.0, 0.0, 520.0)})
    assert answer.ratio(("silo", "hash", 8)) is None
    assert answer.gmean("silo", 8) is None
    shown = " ".join(comparison_text.comparison(answer, 80).split())
    assert (
        "- Throughput of 0 with some seeds, so that the ratios have no geometric mean: silo on"
        " hash, 8 cores (with 1 of 3 seeds, on average 223 tx/s)"
    ) in shown
    assert "choose --normalize" not in shown
    assert means.mean_ratio_of_seeds([0.0, None]) is None


def test_a_base_that_is_zero_with_some_seeds_is_named() -> None:
    for speeds, told in (((100.0, 0.0, 400.0), " with some seeds"), ((0.0, 0.0, 0.0), "")):
        answer = compared({**SPEEDS, ("undo@x86", "hash"): speeds})
        assert answer.ratio(("silo", "hash", 8)) is None
        shown = comparison_text.comparison(answer, 80)
        assert f"- undo@x86 is 0 there{told}: choose --normalize" in shown
        assert "no geometric mean" not in shown


def test_zeros_of_some_seeds_are_told_in_summaries_sweeps_and_causes(fake: ModuleType) -> None:
    def with_a_zero(answer: Any, design: str, seed: int = 2) -> Any:  # noqa: ANN401
        for cell, run in answer.runs.items():
            if design in cell and cell[-1] == seed:
                run.data["pm_writes"]["wpq_bytes"] = 0
        return answer

    asked = {"seeds": 3, "metric": "pm-writes"}
    of_seeds = "PM writes of 0 with some seeds, so that the ratios have no geometric mean: "
    pair = ["undo@x86", "silo"]
    compared = indelible.compare(pair, "hash", crash=False, **asked)
    shown = " ".join(with_a_zero(compared, "silo").summary().split())
    assert f"- {of_seeds}silo on hash, 8 cores (with 1 of 3 seeds, on average " in shown
    vary = {"undo@x86.entries": [4, 12]}
    for normalize, told in (
        ("undo@x86", f"- {of_seeds}silo on hash, undo@x86.entries=4 (with 1 of 3 seeds, "),
        ("silo", "- silo is 0 there with some seeds: choose --normalize"),
    ):
        swept = indelible.sweep(pair, "hash", vary, normalize=normalize, **asked)
        assert told in " ".join(str(with_a_zero(swept, "silo")).split())
    why = indelible.why(pair, "hash", **asked)
    with_a_zero(why.sweep, "silo")
    assert "- silo is 0 on hash: nothing can be relative to it" in str(why)


def test_a_cell_with_a_wide_interval_is_marked() -> None:
    shown = comparison_text.comparison(compared(SPEEDS), 80)
    assert "silo · window core · domain adr · 8 cores · seeds 1 to 3\n" in shown
    assert re.search(r"^hash +1\.00 +~1\.49 +233 tx/s$", shown, re.MULTILINE)
    assert re.search(r"^sqlite +1\.00 +2\.00 +23\.3 tx/s$", shown, re.MULTILINE)
    assert re.search(r"^gmean +1\.00 +1\.73$\n^± 95 % +- +0\.29$", shown, re.MULTILINE)
    assert "is silo on hash, 1.49, from 1.07 to 2.08" in shown.replace("\n  ", " ")
    steady = compared({**SPEEDS, ("silo", "hash"): (150.0, 303.0, 603.0)})
    assert "~" not in comparison_text.comparison(steady, 80)


def test_an_interrupted_table_is_of_whole_seeds() -> None:
    some = compared({**SPEEDS, ("silo", "hash"): (150.0, 340.0, None)})
    shown = str(some)
    assert shown.startswith("interrupted: 11 of 12 runs had ended; the table is of seeds 1 to 2\n")
    assert some.ratio(("silo", "hash", 8)) == pytest.approx(math.sqrt(1.5 * 1.7))
    assert some.ratio(("silo", "hash", 8), seed=3) is None
    # All that ended is a row, and only whole seeds are in the means.
    answer = some.json()
    assert (len(answer["rows"]), answer["seeds"], answer["cancelled"]) == (11, [1, 2], True)
    first = compared({**SPEEDS, ("silo", "hash"): (None, 340.0, 520.0)})
    assert str(first).startswith("interrupted: 11 of 12 runs had ended; the table is of seed 1\n")
    assert re.search(r"^hash +1\.00 +- +100 tx/s$", str(first), re.MULTILINE)
    assert "± 95 %" not in str(first)


def test_runs_are_made_with_each_seed_and_campaigns_with_one(
    command: Command, fake: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool, "workers_available", lambda: 1)
    assert command(*COMPARE, "--seed", "3", "--seeds", "3")[0] == 0
    asked = [(kind, spec["seed"]) for kind, spec in fake.asked]
    # Seed by seed, so that after Ctrl-C there are whole ones, and verdicts with the first.
    assert asked == [
        *[("run", 3)] * 4,
        *[("crash", 3)] * 4,
        *[("run", 4)] * 4,
        *[("run", 5)] * 4,
    ]


def test_each_seed_is_a_row(command: Command, tmp_path: Path) -> None:
    rows = tmp_path / "rows.csv"
    answer = json.loads(command(*COMPARE, "--seeds", "3", "--csv", str(rows), "--json")[1])
    said = [(row["workload"], row["design"], row["seed"]) for row in answer["rows"]]
    assert said[:4] == [("hash", "undo@x86", seed) for seed in (1, 2, 3)] + [("hash", "silo", 1)]
    assert len(said) == len({*said}) == 12
    ratios = [row["normalized"] for row in answer["rows"] if row["design"] == "silo"]
    (cell,) = [c for c in answer["cells"] if (c["design"], c["workload"]) == ("silo", "hash")]
    assert len({*ratios[:3]}) > 1
    assert cell["normalized"] == pytest.approx(math.prod(ratios[:3]) ** (1 / 3))
    assert cell["half_width_95"] == pytest.approx(means.half_width(ratios[:3]))
    ends = ends_by_hand(ratios[:3])
    assert (cell["low_95"], cell["high_95"]) == pytest.approx(ends, rel=1e-3)
    (mean,) = [mean for mean in answer["gmean"] if mean["design"] == "silo"]
    assert 0 < mean["low_95"] < mean["value"] < mean["high_95"]
    assert mean["high_95"] - mean["low_95"] == pytest.approx(2 * mean["half_width_95"])
    assert answer["seeds"] == [1, 2, 3]
    with rows.open(encoding="utf-8") as file:
        table = [*csv.DictReader(file)]
    assert [row["seed"] for row in table] == ["1", "2", "3"] * 4


def test_one_seed_is_as_without(command: Command, tmp_path: Path) -> None:
    rows, figure = tmp_path / "rows.csv", tmp_path / "figure.svg"
    words = [*COMPARE, "--csv", str(rows), "--plot", str(figure)]
    both = []
    for seeds in ([], ["--seeds", "1"]):
        shown, answer = (command(*words, *seeds, *flag)[1] for flag in ([], ["--json"]))
        both.append((shown, answer, rows.read_text(), figure.read_text()))
    assert both[0] == both[1]
    shown, answer, _, drawn = both[0]
    assert "± 95 %" not in shown + drawn
    assert "cells" not in json.loads(answer)
    # Not by way of a logarithm, which moves last digits.
    for ratio in (0.1, 1.7, 2.9, 12.3):
        assert means.mean_ratio_of_seeds([ratio]) == ratio


def test_intervals_are_drawn() -> None:
    (axes,) = comparison_plot.figure(compared(SPEEDS)).axes
    assert "95 % intervals over seeds 1 to 3" in axes.get_title(loc="left")
    # The base is what it is divided by, so that only the other design has intervals.
    (bars,) = [bars for bars in axes.containers if getattr(bars, "errorbar", None)]
    assert bars.get_label() == "silo"
    _, _, (lines,) = bars.errorbar
    (low, high), *_ = [[y for _, y in segment] for segment in lines.get_segments()]
    assert (low, high) == pytest.approx(ends_by_hand([1.5, 1.7, 1.3]), rel=1e-3)
    # The number on a bar stands above its interval.
    (mark,) = (note for note in axes.texts if note.get_text() == "1.49")
    assert mark.xy[1] == pytest.approx(high)


def test_every_bar_fits_its_axis(fake: ModuleType) -> None:
    rising = indelible.compare(["native", "undo@x86", "silo"], "sqlite", seeds=3, crash=False)
    (axes,) = comparison_plot.figure(rising).axes
    cell = ("silo", "sqlite", None)
    assert axes.get_ylim()[1] > rising.ratio(cell) + rising.ratio_half_width(cell)
    # However wide an interval is, it is above 0.
    wild = compared({**SPEEDS, ("silo", "hash"): (10.0, 900.0, 40.0)})
    assert wild.ratio(("silo", "hash", 8)) < wild.ratio_half_width(("silo", "hash", 8))
    assert 0 < wild.means(("silo", "hash", 8))["low_95"] < wild.ratio(("silo", "hash", 8))
    (axes,) = comparison_plot.figure(wild).axes
    assert axes.get_ylim()[0] == 0


SWEEP = ["sweep", "--designs", "silo,native", "--vary", "silo.entries=4,12", "--seeds", "5"]


def test_a_sweep_divides_seed_by_seed(command: Command, tmp_path: Path) -> None:
    rows = tmp_path / "rows.csv"
    words = [*SWEEP, "--workloads", "hash,sqlite", "--csv", str(rows), "--json"]
    answer = json.loads(command(*words)[1])
    speeds = {
        (row["design"], row["workload"], row["point"]["silo.entries"], row["seed"]): (
            row["throughput_tx_per_s"]
        )
        for row in answer["rows"]
    }
    assert len(speeds) == len(answer["rows"]) == 2 * 2 * 2 * 5
    normalized = [row["normalized"] for row in answer["rows"]]
    assert normalized == [
        speed / speeds[(*cell, 4, seed)] for (*cell, _, seed), speed in speeds.items()
    ]
    of = [("silo", workload) for workload in ("hash", "sqlite")]
    ratios = {
        own: [speeds[(*own, 12, seed)] / speeds[(*own, 4, seed)] for seed in range(1, 6)]
        for own in of
    }
    (cell,) = [
        cell
        for cell in answer["cells"]
        if (cell["design"], cell["workload"], cell["point"]["silo.entries"])
        == ("silo", "sqlite", 12)
    ]
    alone = ratios["silo", "sqlite"]
    assert cell["normalized"] == pytest.approx(math.prod(alone) ** (1 / 5))
    assert cell["half_width_95"] == pytest.approx(means.half_width(alone))
    each = [math.sqrt(one * other) for one, other in zip(*ratios.values(), strict=True)]
    (mean,) = [
        mean
        for mean in answer["gmean"]
        if (mean["design"], mean["point"]["silo.entries"]) == ("silo", 12)
    ]
    assert mean["value"] == pytest.approx(math.prod(each) ** (1 / 5))
    assert mean["half_width_95"] == pytest.approx(means.half_width(each))
    assert math.sqrt(mean["low_95"] * mean["high_95"]) == pytest.approx(mean["value"])
    with rows.open(encoding="utf-8") as file:
        assert [row["seed"] for row in csv.DictReader(file)] == ["1", "2", "3", "4", "5"] * 8


def test_a_sweep_runs_seed_by_seed(
    command: Command, fake: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool, "workers_available", lambda: 1)
    assert command(*SWEEP, "--workloads", "hash,sqlite")[0] == 0
    asked = [(kind, spec["seed"]) for kind, spec in fake.asked]
    # `silo` at two points and `native` at one, since it knows nothing of them. Behind the runs of
    # the first seed are the campaigns, which `native` has none of.
    of_seed = {seed: [("run", seed)] * (2 * 3) for seed in range(1, 6)}
    of_seed[1] += [("crash", 1)] * (2 * 2)
    assert asked == [one for each in of_seed.values() for one in each]


def test_who_passes_whom_is_sure_or_not(command: Command) -> None:
    # Canned: the luck of the designs on sqlite differs by more than they are apart.
    sure = {
        workload: json.loads(command(*SWEEP, "--workloads", workload, "--json")[1])["crossings"]
        for workload in ("hash", "sqlite")
    }
    crossing = {"ahead": "silo", "behind": "native", "after": 4, "by": 12}
    assert sure == {"hash": [crossing | {"sure": True}], "sqlite": [crossing | {"sure": False}]}


def test_intervals_of_a_sweep_are_drawn(fake: ModuleType) -> None:
    asked = ("silo", "sqlite", {"silo.entries": [4, 12]})
    several = indelible.sweep(*asked, seeds=3)
    (axes,) = sweep_plot.figure(several).axes
    title = axes.get_title(loc="left").replace("\n", " ")
    assert title == "machine silo · 8 cores · seeds 1 to 3, 95 % intervals"
    (line,) = axes.containers
    _, _, (lines,) = line.lines
    low, high = (y for _, y in lines.get_segments()[1])
    reach = several.ratio_half_width((("12",), "silo", "sqlite"))
    assert high - low == pytest.approx(2 * reach)
    assert math.sqrt(low * high) == pytest.approx(several.ratio((("12",), "silo", "sqlite")))
    (axes,) = sweep_plot.figure(indelible.sweep(*asked)).axes
    assert (len(axes.containers), axes.get_title(loc="left")[-6:]) == (0, "seed 1")


def test_lines_of_a_sweep_go_from_left_to_right(fake: ModuleType) -> None:
    for field, values, places in (
        ("silo.entries", [12, 4, 20], [4, 12, 20]),
        ("pm.tWRITE", ["0.05us", "150ns", "100ns"], [50, 100, 150]),
        ("pm.tWRITE", ["50ns", "90cycles", "70ns"], [0, 1, 2]),
    ):
        answer = indelible.sweep("silo", "hash", {field: values})
        (axes,) = sweep_plot.figure(answer).axes
        line = axes.get_lines()[0]
        assert [*line.get_xdata()] == pytest.approx(places)
        heights = {str(v): answer.ratio(((str(v),), "silo", "hash")) for v in values}
        if field == "silo.entries":
            assert [*line.get_ydata()] == [heights[str(place)] for place in places]


def test_seeds_and_a_seed_that_varies_are_one_too_many(command: Command, fake: ModuleType) -> None:
    words = ["sweep", "--designs", "silo", "--workloads", "hash", "--vary", "seed=1,2"]
    code, shown, complaints = command(*words, "--seeds", "2")
    assert (code, shown, fake.asked) == (2, "", [])
    sentence = "`seed` varies, and `seeds` takes means over seeds; keep one"
    assert complaints == f"indelible: error: {sentence}\n"
    assert command(*words, "--seeds", "1")[0] == 0


BAD = ["0", "-1", "1.5", "five", "101", ""]


@pytest.mark.parametrize("word", BAD)
def test_a_wrong_number_of_seeds_is_a_sentence(
    command: Command, fake: ModuleType, word: str
) -> None:
    for words in (COMPARE, SWEEP[:-2]):
        code, shown, complaints = command(*words, "--seeds", word)
        assert (code, shown, fake.asked) == (2, "", [])
        assert f"argument --seeds: `{word}` is not a whole number from 1 to 100; `" in complaints
        assert complaints.count("\n") == 1


@pytest.mark.parametrize("seeds", [0, -1, 1.5, "5", 101, None, True])
def test_python_refuses_it_too(fake: ModuleType, seeds: int) -> None:
    for call in (indelible.compare, partial(indelible.sweep, vary={"silo.entries": [4, 8]})):
        with pytest.raises(indelible.InputError) as error:
            call("silo", "hash", seeds=seeds)
        assert str(error.value) == f"`seeds` must be a whole number from 1 to 100, not {seeds!r}"
    assert fake.asked == []


def test_a_terminal_with_ascii_alone_has_the_same_columns(
    fake: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    shown = {}
    for encoding in ("ascii", "utf-8"):
        stream = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
        monkeypatch.setattr(sys, "stdout", stream)
        assert main([*COMPARE, "--seeds", "2"]) == 0
        stream.flush()
        shown[encoding] = stream.buffer.getvalue().decode(encoding).splitlines()
    assert [len(line) for line in shown["ascii"]] == [len(line) for line in shown["utf-8"]]
    assert any(line.startswith("+-95 %  ") for line in shown["ascii"])
