"""Sweeps of two fields with canned answers: who is ahead where in the plane, and heat maps."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest
from matplotlib import colormaps

import indelible
from conftest import needs_core
from indelible import text
from indelible.metrics import METRICS
from indelible.plots import COLOURS
from indelible.plots import sweep as sweep_plot
from indelible.results.run import Run
from indelible.results.sweep import Sweep
from indelible.text import sweep as sweep_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Command = Callable[..., tuple[int, str, str]]

LEAKY = ["leaky"]
BOTH = ["silo", "leaky"]

#: Canned: silo is 0.95 and leaky 0.99, and a two-hundredth for each of their entries.
PLANE = {"silo.entries": [4, 12, 20], "leaky.entries": [4, 12]}

#: Who is ahead there, and the lead.
AHEAD = {
    ("4", "4"): ("leaky", 1.01 / 0.97),
    ("4", "12"): ("leaky", 1.05 / 0.97),
    ("12", "4"): (None, 1.0),
    ("12", "12"): ("leaky", 1.05 / 1.01),
    ("20", "4"): ("silo", 1.05 / 1.01),
    ("20", "12"): (None, 1.0),
}


def one(designs: list[str], **more: Any) -> Sweep:  # noqa: ANN401
    """Return designs on one workload in the plane."""
    return indelible.sweep(designs, "hash", PLANE, **more)


def leaders(answer: Sweep) -> dict[tuple[str, ...], tuple[str | None, float | None]]:
    """Return who is ahead at each point, and the lead."""
    return {tuple(r["point"].values()): (r["design"], r["lead"]) for r in answer.ahead()}


def cells(axes: Axes) -> dict[tuple[str, str], str]:
    """Return what is written into the cells of a panel, by the values beside and below them."""
    # Panels that are not at an edge know the values, and do not show them.
    down, across = (
        axis.get_major_formatter().format_ticks(axis.get_majorticklocs())
        for axis in (axes.yaxis, axes.xaxis)
    )
    places = {words.get_position(): words.get_text() for words in axes.texts}
    assert len(places) == len(down) * len(across)
    return {(down[y], across[x]): said for (x, y), said in places.items()}


def panels(answer: Sweep) -> dict[str, Axes]:
    """Return the panels of a figure by their names; the bar of colours has none."""
    return {axes.get_title(): axes for axes in sweep_plot.figure(answer).axes if axes.get_title()}


def without(answer: Sweep, *left_out: tuple[tuple[str, str], str]) -> Sweep:
    """Return a sweep that was interrupted before some designs ended at some points."""
    runs = {cell: run for cell, run in answer.runs.items() if cell[:2] not in left_out}
    assert len(runs) < len(answer.runs)
    return replace(answer, runs=runs, interrupted=True)


def test_who_is_ahead_has_the_best_mean_and_leads_the_second(fake: ModuleType) -> None:
    found = leaders(indelible.sweep([*BOTH, "undo@x86"], ["hash", "btree"], PLANE, crash=False))
    assert found == {at: (name, pytest.approx(lead)) for at, (name, lead) in AHEAD.items()}


def test_the_order_of_designs_does_not_say_who_is_ahead(fake: ModuleType) -> None:
    orders = (["undo@x86", "leaky", "silo"], ["leaky", "undo@x86", "silo"], ["silo", *LEAKY])
    for designs in orders:
        assert {at: name for at, (name, _) in leaders(one(designs)).items()} == {
            at: name for at, (name, _) in AHEAD.items()
        }
    second = {row["second"] for row in one(["undo@x86", "redo@x86", "silo"]).ahead()}
    assert second == {"redo@x86"}


def test_where_less_is_better_who_has_least_is_ahead(fake: ModuleType) -> None:
    assert not METRICS["pm-writes"].higher_is_better
    found = leaders(one(BOTH, metric="pm-writes"))
    # Canned: a design writes the more, the slower it is.
    assert found["20", "4"] == ("silo", pytest.approx(0.99 / 0.95, rel=1e-3))
    assert found["4", "4"] == ("leaky", pytest.approx(1.03 / 0.99, rel=1e-3))


def test_level_designs_have_nobody_ahead(fake: ModuleType) -> None:
    answer = one(BOTH, metric="commit-latency")
    assert {(r["design"], r["lead"], r["second"]) for r in answer.ahead()} == {(None, 1.0, None)}
    assert "\nahead\nlevel at every point\n" in str(answer)


def test_a_lead_that_is_told_as_none_is_none(fake: ModuleType) -> None:
    for factor, leader in ((1.004, None), (1.006, "silo")):
        answer = one(BOTH)
        runs = {cell: Run(dict(run.data), run.experiment) for cell, run in answer.runs.items()}
        slow = runs[("12", "4"), "leaky", "hash", 1].data["throughput_tx_per_s"]
        runs[("12", "4"), "silo", "hash", 1].data["throughput_tx_per_s"] = slow * factor
        found = leaders(replace(answer, runs=runs))["12", "4"]
        assert found == (leader, pytest.approx(factor if leader else 1.0, rel=1e-9))
    assert "--seeds 5 says how sure it is" in " ".join(str(answer).split())


def test_leaders_have_a_colour_each_however_many_they_are(
    fake: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    many = [f"design{number}" for number in range(2 * len(COLOURS))]
    monkeypatch.setattr(Sweep, "ahead", lambda _: [{"design": name} for name in many])
    found = sweep_plot.leading_colours(replace(one(BOTH), designs=tuple(many)))
    assert [*found] == many
    assert [*found.values()][: len(COLOURS)] == [*COLOURS]
    assert len({*found.values()}) == len(many)


def test_what_is_better_is_lighter(fake: ModuleType) -> None:
    light = {}
    for metric in ("throughput", "pm-writes"):
        answer = one(BOTH, metric=metric)
        axes = panels(answer)["silo"]
        assert cells(axes)["4", "4"] == "1.00"
        faces = [sum(patch.get_facecolor()[:3]) for patch in axes.patches]
        # With 20 entries silo is faster, and writes less: the last row is the lightest.
        light[metric] = faces[-1] > faces[0]
    assert light == {"throughput": True, "pm-writes": True}


def test_a_rival_without_a_value_leaves_it_open_who_is_ahead(fake: ModuleType) -> None:
    whole = one([*BOTH, "undo@x86"])
    # That of the last would have changed nothing, but that is not known.
    answer = without(whole, (("20", "4"), "silo"), (("4", "4"), "undo@x86"))
    found = leaders(answer)
    assert found.pop(("20", "4")) == found.pop(("4", "4")) == (None, None)
    assert found == {at: lead for at, lead in leaders(whole).items() if at in found}
    shown = str(answer).splitlines()
    (start,) = [index for index, line in enumerate(shown) if line == "ahead"]
    assert shown[start + 3].split() == ["4", "-", "leaky", "1.08"]


def test_what_has_not_ended_is_not_said_to_have_no_value(fake: ModuleType) -> None:
    answer = without(one([*BOTH, "undo@x86"]), (("20", "4"), "silo"))
    assert None in [lead for _, lead in leaders(answer).values()]
    assert "none is called ahead" not in " ".join(str(answer).split())


def test_nobody_is_ahead_of_who_has_none(fake: ModuleType) -> None:
    answer = one(BOTH)
    runs = {cell: Run(dict(run.data), run.experiment) for cell, run in answer.runs.items()}
    runs[("4", "4"), "silo", "hash", 1].data["throughput_tx_per_s"] = 0.0
    answer = replace(answer, runs=runs, normalize="leaky")
    assert leaders(answer)["4", "4"] == (None, None)
    assert "- a design has no value there, or 0, so none is called ahead" in str(answer)
    # The ratio is known, and has the colour of the least.
    axes = panels(answer)["hash"]
    assert cells(axes)["4", "4"] == "0.00"
    assert axes.patches[0].get_facecolor() == pytest.approx(colormaps[sweep_plot.COLOUR_MAP](0.0))


def test_bounds_are_never_ahead(fake: ModuleType) -> None:
    answer = one([*BOTH, "native", "undo@ideal"])
    assert answer.rivals() == ("silo", "leaky")
    assert {name for name, _ in leaders(answer).values()} == {"silo", "leaky", None}
    assert "lead over the next; without native, undo@ideal" in " ".join(str(answer).split())
    # Without two rivals there is nobody to be ahead of.
    alone = one(["native", "silo"])
    assert alone.ahead() == []
    assert "ahead" not in str(alone)
    assert [*panels(alone)] == ["native†", "silo"]


def test_a_design_that_fails_its_crash_test_is_never_ahead(
    command: Command, fake: ModuleType, tmp_path: Path
) -> None:
    words = ["sweep", "--designs", "silo,leaky,redo@x86", "--workloads", "btree"]
    words += ["--vary", "silo.entries=4,12", "--vary", "leaky.entries=4,12"]
    table = tmp_path / "planes.tex"
    code, shown, _ = command(*words, "--table", str(table))
    assert code == 1
    assert "without leaky" in " ".join(shown.split())
    answer = json.loads(command(*words, "--json")[1])
    assert [row["design"] for row in answer["ahead"]] == ["silo"] * 4
    assert [row["second"] for row in answer["ahead"]] == ["redo@x86"] * 4
    written = table.read_text(encoding="utf-8")
    assert "% leaky! · rows" in written
    assert "% crash test: silo ok 400, leaky! FAIL 10/400, redo@x86 ok 200\n" in written
    # Canned: it is the fastest, as is told where nothing is tested.
    untested = json.loads(command(*words, "--no-crash", "--json")[1])
    assert "leaky" in {row["design"] for row in untested["ahead"]}
    # With the one other design there is no contest.
    assert indelible.sweep(BOTH, "btree", PLANE).ahead() == []


def test_a_design_that_is_one_competes_too(fake: ModuleType) -> None:
    answer = one(BOTH, normalize="leaky")
    assert answer.shown() == ("silo",)
    assert {at: name for at, (name, _) in leaders(answer).items()} == {
        at: name for at, (name, _) in AHEAD.items()
    }
    assert [*panels(answer)] == ["hash", "ahead"]


def test_a_lead_whose_interval_includes_1_is_marked(fake: ModuleType) -> None:
    # Canned: the luck of the designs on sqlite differs by more than they are apart.
    asked = ({"silo.entries": [4, 20], "cores": [1, 8]},)
    for workload, first, sure in (("hash", "leaky", True), ("sqlite", "silo", False)):
        answer = indelible.sweep(BOTH, workload, *asked, seeds=5)
        row = next(r for r in answer.ahead() if [*r["point"].values()] == ["4", "1"])
        assert (row["design"], row["sure"]) == (first, sure)
        said = cells(panels(answer)["ahead"])["4", "1"]
        assert said.split("\n")[0] == (first if sure else f"{first}?")
        assert ("? the 95 % interval of the lead includes 1" in str(answer)) is not sure
    # With two seeds silo leads with both, by factors so unlike that 1 is within the interval.
    both = indelible.sweep(BOTH, "hash", *asked, seeds=2)
    for (_, design, _, seed), run in both.runs.items():
        run.data["throughput_tx_per_s"] = 1.0 if design == "leaky" else 1 + 0.5 * seed
    assert {(row["design"], row["sure"]) for row in both.ahead()} == {("silo", False)}
    assert "disagree" not in str(both)
    assert "sure" not in one(BOTH).ahead()[0]
    # That neither is ahead they agree on, as far as there is anything to say.
    level = one(BOTH, metric="commit-latency", seeds=3)
    assert {(row["design"], row["sure"]) for row in level.ahead()} == {(None, False)}
    assert "includes 1" not in str(level)


def test_json_says_who_is_ahead(command: Command) -> None:
    words = ["sweep", "--designs", "silo,leaky", "--workloads", "hash", "--json"]
    vary = ["--vary", "silo.entries=4,12", "--vary", "leaky.entries=4"]
    answer = json.loads(command(*words, *vary)[1])
    point = {"silo.entries": 4, "leaky.entries": 4}
    first, level = answer["ahead"]
    assert math.isclose(first.pop("lead"), 1.01 / 0.97)
    assert first == {"point": point, "design": "leaky", "second": "silo"}
    assert level == {
        "point": point | {"silo.entries": 12},
        **{"design": None, "second": None, "lead": 1.0},
    }
    assert answer["crossings"] == []
    seeds = json.loads(command(*words, *vary, "--seeds", "3")[1])["ahead"]
    assert [row["sure"] for row in seeds] == [True, False]
    for other in (vary[:2], [*vary, "--vary", "cores=1,2"]):
        assert json.loads(command(*words, *other)[1])["ahead"] == []


def test_a_grid_that_is_too_wide_is_cut_into_parts(command: Command) -> None:
    words = ["sweep", "--designs", "silo,leaky", "--workloads", "hash", "--vary", "cores=1,8"]
    shown = command(*words, "--vary", "silo.entries=1:20:1", columns=60)[1]
    assert max(map(len, shown.splitlines())) <= 60
    heads = [line.split()[1:] for line in shown.splitlines() if line.startswith("cores ")]
    every = [str(n) for n in range(1, 21)]
    assert len(heads) > 3
    assert [value for head in heads for value in head] == every * 3


def test_a_heat_map_has_the_ratios_of_the_grid(fake: ModuleType) -> None:
    answer = indelible.sweep(BOTH, ["hash", "btree"], PLANE, crash=False)
    drawn = panels(answer)
    assert [*drawn] == ["silo", "leaky", "ahead"]
    for design in BOTH:
        ratios = {at: text.ratio(answer.gmean(at, design)) for at in answer.points}
        assert len({*ratios.values()}) > 1
        assert cells(drawn[design]) == ratios
    assert cells(drawn["ahead"])["20", "4"] == "silo\n1.04"
    assert cells(drawn["ahead"])["12", "4"] == "level"
    # Of one design it is each workload, and their mean.
    alone = indelible.sweep("silo", ["hash", "btree"], PLANE)
    assert [*panels(alone)] == ["hash", "btree", "gmean"]


def test_a_heat_map_has_its_values_where_the_table_has_them(fake: ModuleType) -> None:
    vary = {"cores": [8, 1, 2], "silo.entries": [20, 4]}
    answer = indelible.sweep("silo", "hash", vary)
    (axes,) = panels(answer).values()
    ((head, *rows),) = sweep_text.grids(answer).values()
    names = zip(axes.get_yticks(), axes.get_yticklabels(), strict=True)
    down = [label.get_text() for _, label in sorted(names, key=lambda tick: -tick[0])]
    # The last of them is at the bottom.
    bottom, top = axes.get_ylim()
    assert bottom > top
    assert [*reversed(down)] == ["8", "1", "2"] == [row[0] for row in rows]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["20", "4"] == head[1:]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("silo.entries", "cores")
    assert cells(axes)["8", "20"] == "1.00"


def test_colours_are_as_far_from_one_on_both_sides(fake: ModuleType) -> None:
    answer = indelible.sweep("silo", "hash", {"cores": [4, 1, 8], "silo.entries": [4]})
    (axes,) = panels(answer).values()
    light = [sum(axes.patches[row].get_facecolor()[:3]) for row in (1, 0, 2)]
    # A quarter, one, and twice: the quarter is as dark as there is, and twice half as light.
    colours = [colormaps[sweep_plot.COLOUR_MAP](place) for place in (0.0, 0.5, 0.75)]
    assert light == sorted(light) == pytest.approx([sum(c[:3]) for c in colours], abs=0.02)
    _, dark, _ = axes.texts
    assert (dark.get_text(), dark.get_color()) == ("0.25", "white")
    assert axes.texts[-1].get_color() == "black"


def test_marks_in_cells_are_explained_above_them(fake: ModuleType) -> None:
    answer = one(BOTH, seeds=2, normalize="leaky")
    assert not any(
        mark in sweep_plot.figure(answer).get_suptitle() for mark in ("± 5 %", "includes")
    )
    for run in (run for cell, run in answer.runs.items() if cell[1] == "silo" and cell[-1] == 2):
        run.data["throughput_tx_per_s"] *= 1.3
    drawing = sweep_plot.figure(replace(answer))
    assert f"{text.UNSURE_MARK} 95 % interval wider than ± 5 %" in drawing.get_suptitle()
    assert f"{sweep_text.DOUBT} 95 % interval of the lead includes 1" in drawing.get_suptitle()


def test_where_designs_are_level_is_grey_and_not_without_a_value(fake: ModuleType) -> None:
    ahead = panels(one(BOTH))["ahead"]
    colours = {
        said.get_text(): {*cell.get_facecolor()[:3]}
        for cell, said in zip(ahead.patches, ahead.texts, strict=True)
    }
    assert colours["level"] == {float(sweep_plot.LEVEL_COLOUR)}


def test_what_is_missing_is_left_white(fake: ModuleType) -> None:
    drawn = panels(without(one(BOTH), (("12", "12"), "silo")))
    assert cells(drawn["silo"])["12", "12"] == cells(drawn["ahead"])["12", "12"] == "-"
    place = [words.get_text() for words in drawn["silo"].texts].index("-")
    assert drawn["silo"].patches[place].get_facecolor() == (1, 1, 1, 1)


@pytest.mark.parametrize(
    ("designs", "counts"),
    [
        (["silo", "leaky"], (4, 3)),
        (["redo@x86", "undo@x86", "silo", "leaky", "hops"], (6, 8)),
        (["redo@x86", "undo@x86"], (3, 14)),
        (["silo"], (2, 2)),
    ],
)
def test_what_is_written_stays_in_its_cell(
    fake: ModuleType, designs: list[str], counts: tuple[int, int]
) -> None:
    entries, cores = ([*range(1, count + 1)] for count in counts)
    vary = {"controller.of_a_long_name": entries, "cores": cores}
    drawing = sweep_plot.figure(indelible.sweep(designs, "hash", vary))
    seen = 0
    for axes in (axes for axes in drawing.axes if axes.get_title()):
        for patch, words in zip(axes.patches, axes.texts, strict=True):
            cell, written = patch.get_window_extent(), words.get_window_extent()
            assert (cell.x0 <= written.x0, written.x1 <= cell.x1) == (True, True)
            assert (cell.y0 <= written.y0, written.y1 <= cell.y1) == (True, True)
            seen += words.get_visible()
    assert seen == counts[0] * counts[1] * (len(designs) + (len(designs) > 1))


def test_labels_of_panels_do_not_overlap(fake: ModuleType) -> None:
    vary = {"cores": [1, 2], "controller.of_a_long_name": [1000, 2000, 3000]}
    designs = ["redo@x86", "undo@x86", "silo", "leaky", "hops"]
    drawing = sweep_plot.figure(indelible.sweep(designs, "hash", vary))
    for axes in drawing.axes:
        assert axes.get_tightbbox().x0 >= 0
        assert axes.get_tightbbox().x1 <= drawing.bbox.x1
        for other in drawing.axes:
            if other is not axes:
                assert not axes.get_tightbbox().overlaps(other.get_tightbbox())


def test_where_names_have_no_room_a_legend_has_them(fake: ModuleType) -> None:
    vary = {"silo.entries": [4, 20], "leaky.entries": [*range(1, 61)]}
    drawing = sweep_plot.figure(indelible.sweep(BOTH, "hash", vary))
    *_, last = [axes for axes in drawing.axes if axes.texts]
    assert not any(words.get_visible() for words in last.texts)
    # Every other value is named.
    assert [label.get_text() for label in last.get_xticklabels()][:3] == ["1", "3", "5"]
    assert {words.get_text() for words in last.get_legend().get_texts()} == {"silo", "leaky"}


def test_a_sweep_of_three_fields_has_no_figure(fake: ModuleType) -> None:
    answer = indelible.sweep("silo", "hash", {**PLANE, "cores": [1, 2]})
    with pytest.raises(indelible.InputError) as error:
        sweep_plot.figure(answer)
    assert str(error.value) == "a figure shows a sweep of one field or two, not of 3"


@needs_core
def test_a_plane_of_the_simulator_is_drawn(tmp_path: Path) -> None:
    vary = {"cores": [1, 2], "controller.noc_latency": ["5ns", "60ns"]}
    answer = indelible.sweep(["undo@x86", "silo"], "hash", vary, machine="tiny", txs=20)
    speeds = {
        (*map(str, row["point"].values()), row["design"]): row["throughput_tx_per_s"]
        for row in answer.rows
    }
    for row in answer.ahead():
        mine, other = (speeds[(*row["point"].values(), row[k])] for k in ("design", "second"))
        assert row["lead"] == pytest.approx(mine / other)
        assert row["lead"] > 1
    answer.save(tmp_path / "plane.svg")
    drawn = (tmp_path / "plane.svg").read_text(encoding="utf-8")
    assert "controller.noc_latency" in drawn
    assert "ahead" in drawn


def test_values_without_a_unit_are_numbers_in_json() -> None:
    vary = {"pm.tWRITE": ["100ns", "200ns"], "silo.entries": ["4", "20"]}
    answer = indelible.sweep(["silo", "lad"], ["hash"], vary, cores=1, txs=20)
    found = answer.json()
    assert found["vary"] == {"pm.tWRITE": ["100ns", "200ns"], "silo.entries": [4, 20]}
    points = [row["point"] for row in found["gmean"]]
    assert points[0] == {"pm.tWRITE": "100ns", "silo.entries": 4}
    assert [row["point"] for row in found["ahead"]] == points[::2]
    assert all(answer.gmean(point, "silo") for point in points)
