"""What figures draw, and what they refuse to."""

from __future__ import annotations

import math
import shutil
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import indelible
from conftest import HERE, needs_core
from indelible import plots, text
from indelible.plots import causes as causes_plot
from indelible.plots import comparison as comparison_plot
from indelible.plots import native as native_plot
from indelible.plots import reproduction as reproduction_plot
from indelible.plots import sweep as sweep_plot
from indelible.views import VIEWS

Command = Callable[..., tuple[int, str, str]]

UNDO_LOG = HERE.parents[1] / "examples" / "designs" / "undo_log.py"
LATENCY = ("--metric", "commit-latency")


def test_a_cell_without_a_ratio_has_a_mark_and_no_bar(fake: ModuleType) -> None:
    answer = indelible.compare(
        ["silo", "undo@x86"], ["hash", "btree"], crash=False, metric="commit-latency"
    )
    for (_, workload, _, _), run in answer.runs.items():
        if workload == "hash":
            run.data["commit_latency_cycles"]["mean"] = 0.0
    (axes,) = comparison_plot.figure(answer).axes
    drawn = [patch.get_height() for patch in axes.patches if patch.get_height() > 0]
    assert drawn == [1.0, 1.0]
    # Both designs on `hash`, and both of their means.
    assert [note.get_text() for note in axes.texts].count("-") == 4


@pytest.mark.parametrize("design", ["silo", "native"])
def test_no_two_of_many_look_alike(fake: ModuleType, design: str) -> None:
    from matplotlib.colors import to_rgb

    many = range(4 * len(plots.COLOURS))
    answer = indelible.compare([design], ["hash"], crash=False)
    looks = [(*plots.look_of(answer, design, index).values(),) for index in many]
    lines = [(look[0], plots.beside_colour(plots.LINES, i)) for i, look in enumerate(looks)]
    points = [(*look.values(),) for look in reproduction_plot.LOOKS[: len(many)]]
    # A hatch can be seen on its bar.
    assert not any(to_rgb(face) == to_rgb(edge) for face, edge, *_ in looks)
    for each in (looks, points, *([lines] if design == "silo" else [])):
        assert len({*each}) == len(many)


def test_values_stand_on_bars_where_there_is_room(fake: ModuleType) -> None:
    few = indelible.compare(["native", "silo"], ["hash", "btree"], crash=False)
    (axes,) = comparison_plot.figure(few).axes
    said = [text.ratio(few.ratio(("silo", name, None))) for name in few.workloads]
    # Of the base the mean alone, since all of it is 1.00.
    means = [text.ratio(few.gmean(design)) for design in few.designs]
    assert [note.get_text() for note in axes.texts] == [means[0], *said, means[1]]
    # The base need not be the first design.
    (other,) = comparison_plot.figure(replace(few, normalize="silo")).axes
    last = replace(few, normalize="silo")
    said = [text.ratio(last.ratio(("native", name, None))) for name in few.workloads]
    assert [note.get_text() for note in other.texts][:2] == said
    assert len(other.texts) == 4
    assert axes.get_title(loc="left").endswith("(higher is better)")
    assert [*axes.lines[0].get_ydata()] == [1, 1]
    many = tuple(f"workload-{index}" for index in range(12))
    runs = {(d, name, *of): run for (d, w, *of), run in few.runs.items() for name in (w, *many)}
    several = replace(few, workloads=(*few.workloads, *many), runs=runs)
    (axes,) = comparison_plot.figure(several).axes
    assert len(axes.texts) == 2


def test_figures_have_our_style_whatever_that_of_a_notebook_is(fake: ModuleType) -> None:
    import matplotlib

    answer = indelible.compare(["native", "silo"], ["hash"], crash=False)
    ours = plots.svg(comparison_plot.figure, answer)
    theirs = {"figure.facecolor": "black", "text.color": "white", "legend.fontsize": 20}
    with matplotlib.rc_context(theirs):
        assert plots.svg(comparison_plot.figure, answer) == ours
        assert matplotlib.rcParams["text.color"] == "white"


def test_changes_are_drawn_where_they_move_what_they_are_of(fake: ModuleType) -> None:
    pair = ["undo@x86", "silo"]
    answer = indelible.why(pair, ["hash"], fields=["controller", "silo"])
    bars, dots = causes_plot.figure(answer).axes
    assert bars.get_xlabel() == "Throughput, silo over undo@x86"
    seen = [point for point in answer.ranked() if answer.is_seen(point)]
    fields = [*dict.fromkeys(answer.changes[point].field for point in seen)]
    named = {
        change.field: f"{change.field} ({change.before})" for change in answer.changes.values()
    }
    assert [label.get_text() for label in bars.get_yticklabels()] == [named[f] for f in fields]
    # What moves most is at the top.
    assert bars.get_ylim()[0] > bars.get_ylim()[1]
    assert [*bars.lines[0].get_xdata()] == [answer.ratio()] * 2
    told = {(note.get_text(), *note.xy) for note in bars.texts}
    fills = {patch.get_x() + patch.get_width(): patch.get_facecolor()[0] for patch in bars.patches}
    assert len(told) == len(fills) == len(seen) > len(fields)
    for point in seen:
        change = answer.changes[point]
        (end,) = (x for said, x, _ in told if said == change.after and x == answer.ratio(point))
        (fill,) = (fill for place, fill in fills.items() if place == pytest.approx(end))
        assert fill == (0.55 if change.is_larger else 1.0)
    drawn = [handle for handle in bars.containers if not handle.get_label().startswith("_")]
    assert {bar.get_label(): bar.patches[0].get_facecolor()[0] for bar in drawn} == {
        "smaller": 1.0,
        "larger": 0.55,
    }
    for design, colour in zip(pair, plots.COLOURS, strict=False):
        marks = {x for one in dots.lines if one.get_color() == colour for x in one.get_xdata()}
        assert marks == {answer.effect(point, design) for point in seen}


def test_intervals_of_changes_are_drawn(fake: ModuleType) -> None:
    pair = ["undo@x86", "silo"]
    answer = indelible.why(pair, ["sqlite"], fields=["silo"], seeds=3)
    drawing = causes_plot.figure(answer)
    assert drawing.get_suptitle().endswith("seeds 1 to 3, 95 % intervals")
    bars, dots = drawing.axes
    seen = [point for point in answer.ranked() if answer.is_seen(point)]
    ends = [interval(answer.ratio(at), answer.ratio_half_width(at)) for at in seen]
    assert sorted(intervals_in(bars)) == [pytest.approx(end) for end in sorted(ends)]
    assert ends
    each = {
        interval(answer.effect(at, design), answer.effect_half_width(at, design))
        for at in seen
        for design in pair
    }
    shown = {*intervals_in(dots)}
    assert shown
    assert all(any(end == pytest.approx(own) for own in each) for end in shown)


def interval(mean: float, half_width: float) -> tuple[float, float]:
    high = half_width + math.sqrt(half_width**2 + mean**2)
    return mean**2 / high, high


def intervals_in(axes: Any) -> list[tuple[float, float]]:  # noqa: ANN401
    """Return the ends of the intervals that are drawn."""
    lines = [line for bar in axes.containers if hasattr(bar, "lines") for line in bar.lines[2]]
    return [(one[0], other[0]) for line in lines for one, other in line.get_segments()]


def test_fields_that_move_most_are_drawn(fake: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    answer = indelible.why(["undo@x86", "silo"], ["hash"], fields=["controller", "silo"])
    most = answer.changes[answer.ranked()[0]]
    monkeypatch.setattr(causes_plot, "TOP", 1)
    labels = causes_plot.figure(answer).axes[0].get_yticklabels()
    assert [label.get_text() for label in labels] == [f"{most.field} ({most.before})"]


def test_places_of_values_are_in_one_unit(fake: ModuleType) -> None:
    for values, places in (
        (["512B", "1KiB", "2MiB", "1GiB"], [512, 1 << 10, 2 << 20, 1 << 30]),
        (["500ps", "1ns", "2us", "1ms"], [0.5, 1, 2e3, 1e6]),
        (["500MHz", "2GHz"], [0.5, 2]),
    ):
        assert sweep_plot._places(values) == pytest.approx(places)
    for most, scale in ((30, "linear"), (40, "log")):
        answer = indelible.sweep(["silo"], ["hash"], {"silo.entries": [4, 20, most]})
        (axes,) = sweep_plot.figure(answer).axes
        assert axes.get_xscale() == scale
        label = "Throughput of silo, higher is better relative to silo.entries=4"
        assert axes.get_ylabel().replace("\n", " ") == label


def test_values_of_a_sweep_do_not_overlap(fake: ModuleType) -> None:
    values = [1, 2, 3, *range(4, 60, 2)]
    answer = indelible.sweep(["silo"], ["hash"], {"txs": values})
    (axes,) = sweep_plot.figure(answer).axes
    shown = [tick.get_text() for tick in axes.get_xticklabels()]
    assert (shown[0], len(axes.get_lines()[0].get_xdata())) == ("1", len(values))
    places = [axes.transData.transform((float(text), 1))[0] for text in shown]
    points = axes.figure.dpi / plots.POINTS
    assert all(other - one > 8 * points for one, other in pairwise(places))
    assert 5 < len(shown) < 20


def test_a_long_name_makes_no_figure_narrower(fake: ModuleType) -> None:
    swept = indelible.sweep(["silo"], ["hash"], {"cores": [1, 2]})
    compared = indelible.compare(["silo"], ["hash"], crash=False, latencies=True)
    views = [(compared, VIEWS[name].figure) for name in ("ratios", "stalls")]
    for answer, figure in [(swept, sweep_plot.figure), *views]:
        drawing = figure(replace(answer, machine="/a_folder/of_machines" * 8 + ".toml"))
        (axes,) = drawing.axes
        assert axes.get_position().width > 0.6
        assert axes._left_title.get_window_extent().x1 <= drawing.bbox.x1


def test_a_long_name_of_a_design_ends_above_its_workload(fake: ModuleType) -> None:
    answer = indelible.compare(["silo"], ["hash"], crash=False)
    long = "a_log_of_my_own_with_a_long_name"
    file = f"./{long}.py"
    runs = {(file, *of): run for (_, *of), run in answer.runs.items()}
    named = replace(answer, designs=(file,), normalize=file, runs=runs)
    (axes,) = VIEWS["stalls"].figure(named).axes
    design, workload = (axes.get_xticklabels(minor=minor)[0] for minor in (True, False))
    assert (design.get_text(), workload.get_text()) == (long, "hash")
    assert design.get_window_extent().y0 > workload.get_window_extent().y1


def test_names_of_many_workloads_stand_upright(fake: ModuleType) -> None:
    few = indelible.compare(["undo@x86", "silo"], ["hash", "btree"], crash=False)
    many = tuple(f"workload-{index}" for index in range(12))
    runs = {(d, name, *of): run for (d, w, *of), run in few.runs.items() for name in (w, *many)}
    several = replace(few, workloads=(*few.workloads, *many), runs=runs)
    for answer, view, turned in (
        (few, "ratios", 0),
        (several, "ratios", 90),
        (several, "usage", 90),
    ):
        (axes,) = VIEWS[view].figure(answer).axes
        assert {tick.get_rotation() for tick in axes.get_xticklabels()} == {turned}
        assert {note.get_rotation() for note in axes.texts} <= {turned}
        names = [tick.get_window_extent() for tick in axes.get_xticklabels()]
        assert not any(one.x1 > other.x0 for one, other in pairwise(names)), view


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


@needs_core
def test_names_of_files_are_no_formulas(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    label = r"a$\foo$b"
    name = f"{label}.py"
    shutil.copy(UNDO_LOG, name)
    small = {"cores": 1, "txs": 20}
    compared = indelible.compare(["silo", name], ["hash"], crash=False, latencies=True, **small)
    for view in VIEWS:
        compared.save("it.svg", view=view)
        assert label in Path("it.svg").read_text(encoding="utf-8")
    designs = ["undo@x86", "silo", name]
    plane = {"cores": [1, 2], "controller.wpq": [32, 64]}
    for vary in ({"cores": [1, 2]}, plane):
        indelible.sweep(designs, ["hash"], vary, txs=20).save("it.svg")
        assert label in Path("it.svg").read_text(encoding="utf-8")
    why = indelible.why(["undo@x86", name], ["hash"], fields=["controller.domain"], **small)
    for suffix in plots.SUFFIXES:
        why.save(f"it{suffix}")
    assert label in Path("it.svg").read_text(encoding="utf-8")


@pytest.mark.parametrize("limits", [(220, 900), (1_100, 1_900), (30, 90), (0.9, 350)])
def test_numbers_of_a_narrow_logarithmic_axis_do_not_overlap(limits: tuple[float, float]) -> None:
    from matplotlib.figure import Figure
    from matplotlib.ticker import EngFormatter

    drawing = Figure(figsize=(1.7, 1.0), layout="constrained")
    axes = drawing.subplots()
    axes.set_xscale("log")
    axes.set_xlim(*limits)
    axes.tick_params(labelsize=8)
    plots.number_decades(axes.xaxis, EngFormatter(sep=""))
    drawing.draw_without_rendering()
    low, high = limits
    shown = [at.label1 for at in axes.xaxis.get_major_ticks() if low <= at.get_loc() <= high]
    places = [label.get_window_extent() for label in shown]
    assert len(places) > 1
    assert not any(one.x1 > other.x0 for one, other in pairwise(places))


def test_a_design_whose_name_begins_with_an_underscore_is_in_the_legend(
    fake: ModuleType,
) -> None:
    compared = indelible.compare(["native", "silo"], ["hash"], crash=False)
    named = replace(compared, durability={})
    vars(named)["labels"] = {"native": "native", "silo": "_mine"}
    swept = indelible.sweep(["native", "silo"], ["hash"], {"cores": [1, 2]})
    vars(swept)["labels"] = named.labels
    for drawing in (comparison_plot.figure(named), sweep_plot.figure(swept)):
        (legend,) = drawing.legends
        names = [one.get_text().split()[0].rstrip("†") for one in legend.get_texts()]
        assert names == ["native", "_mine"]


@pytest.mark.parametrize("count", [3, 7, 33])
def test_a_legend_is_no_wider_than_its_figure(count: int) -> None:
    from matplotlib.figure import Figure
    from matplotlib.patches import Patch

    named = {f"an-order-of-mine-{index} (not crash-safe)": Patch() for index in range(count)}
    with plots.our_style():
        drawing = Figure(figsize=(7, 3), layout="constrained")
        axes = drawing.subplots()
        plots.add_legend(drawing, named, "outside upper center", 5)
        drawing.draw_without_rendering()
    box = drawing.legends[0].get_window_extent()
    assert (box.x0 >= 0, box.x1 <= drawing.bbox.x1) == (True, True)
    assert axes.get_window_extent().height > drawing.dpi


def test_logarithmic_axes_have_numbers(fake: ModuleType) -> None:
    drawing = native_plot.figure(indelible.native.logging(quick=True))
    labels = [label.get_text() for axes in drawing.axes for label in axes.get_yticklabels()]
    assert "1,000" in labels
    assert not [label for label in labels if "$" in label]
