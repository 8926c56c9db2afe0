"""A sweep as text for a terminal: a row for each point, or for two fields a grid of their values.

Returns strings and prints nothing.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from indelible import text
from indelible.ignored import joined
from indelible.metrics import METRICS
from indelible.results.sweep import Point, Sweep, by_machine
from indelible.settings import ITEMS
from indelible.text import verdicts as verdicts_text
from indelible.text.comparison import Grid, stubbed_tables
from indelible.text.verdicts import judged

#: The head of the grid or the column of leading designs, the word where the two best are level, and
#: the mark behind a design's name if the interval of its lead includes 1.
AHEAD = "ahead"
LEVEL = "level"
DOUBT = "?"

#: A ratio, and half the width of its confidence interval.
Sure = tuple["float | None", "float | None"]


def sweep(answer: Sweep, width: int | None = None) -> str:
    """Return the table: a column for each design, or of one design for each workload.

    Of two fields each has a grid, the first field's values down and the second's across, or a line
    where nothing moves.
    """
    width = width or text.terminal_width()
    blocks = [_title(answer, width)]
    if answer.interrupted:
        blocks.insert(0, text.interrupted(answer, "cells"))
    # Values of fields are aligned like the numbers behind them.
    tables = partial(stubbed_tables, width=width, stub_columns=stubs(answer), right_from=0)
    for name, cells in grids(answer).items():
        if len(answer.vary) == 2 and (same := _same(cells)):
            blocks.append(f"{name}\n{same} at every point")
            continue
        head = f"{name}\n" if name else ""
        blocks += [head + table for table in tables(cells)]
    blocks.append(verdicts_text.verdicts_line(answer, answer.verdict_on_all, width))
    passed = [(">", said) for said in passings(answer)]
    told = [text.footnote(*note, width) for note in [*passed, *notes(answer)]]
    told += verdicts_text.told(answer, width)
    below = ["\n".join(told)] if told else []
    return "\n\n".join([*blocks, *below, *text.kept_notes(answer.taken, width)])


def grids(answer: Sweep) -> dict[str, Grid]:
    """Return the tables as cells, by name; that of all points together has none.

    Of two fields there is one for each column of the list, and one of who is ahead. Of machines
    alone that is a column, too.
    """
    if len(answer.vary) == 2:
        return _planes(answer)
    shown, ahead = columns(answer), _ahead(answer)
    rows = (
        [
            *point,
            *(text.ratio_cell(*value(point)) for value in shown.values()),
            *([ahead[point]] if ahead else []),
        ]
        for point in answer.points
    )
    return {"": [[*answer.vary, *shown, *([AHEAD] if ahead else [])], *rows]}


def _same(cells: Grid) -> str | None:
    """Return the one value of a grid, as of a design that has neither field; None of several."""
    values = {value for _, *row in cells[1:] for value in row}
    return values.pop() if len(values) == 1 else None


def stubs(answer: Sweep) -> int:
    """Return how many columns of each table identify the row."""
    return 1 if len(answer.vary) == 2 else len(answer.vary)


def columns(answer: Sweep) -> dict[str, Callable[[Point], Sure]]:
    """Return the columns of a point, by name, as functions of the point."""
    shown = answer.shown()
    if len(shown) > 1:
        return {judged(answer, d): _mean(answer, d) for d in shown}
    found = {workload: _of(answer, shown[0], workload) for workload in answer.workloads}
    return found | ({"gmean": _mean(answer, shown[0])} if len(answer.workloads) > 1 else {})


def leader(answer: Sweep, row: Mapping[str, Any]) -> list[str]:
    """Return the leading design at a point with its lead, or one word where there is none."""
    if row["design"] is None:
        return [text.BLANK if row["lead"] is None else LEVEL]
    doubt = "" if row.get("sure", True) else DOUBT
    return [text.marked(answer, row["design"]) + doubt, text.ratio(row["lead"])]


def base(answer: Sweep) -> str:
    """Return what is 1.00: a design, or the first point."""
    if answer.normalize is None:
        return _said(answer, answer.points[0])
    return answer.labels[answer.normalize]


def where(answer: Sweep, model: str = "") -> str:
    """Return the machine with a note on its model, and the settings that all points share."""
    machine = "" if answer.machine is None else f"machine {answer.machine}"
    varies = "cores" in answer.vary
    cores = "" if varies else answer.of_runs(lambda row: text.plural(row["cores"], "core"))
    seeds = "" if "seed" in answer.vary else text.seeds_said(answer.seeds_shown)
    own = [*text.warmup_said(answer.warmup), *text.settings_said(answer.settings)]
    words = [machine, model, cores, seeds, *own]
    return " · ".join(filter(None, words))


def _said(answer: Sweep, point: Point) -> str:
    return " ".join(f"{key}={value}" for key, value in answer.named(point).items())


def _of(answer: Sweep, design: str, workload: str) -> Callable[[Point], Sure]:
    def shown(point: Point) -> Sure:
        cell = (point, design, workload)
        return answer.ratio(cell), answer.ratio_half_width(cell)

    return shown


def _mean(answer: Sweep, design: str) -> Callable[[Point], Sure]:
    return lambda point: (answer.gmean(point, design), answer.gmean_half_width(point, design))


def title_lines(answer: Sweep) -> list[str]:
    """Return the title: the metric, the base of the ratios, and the workloads."""
    metric = METRICS[answer.metric]
    what = f"{metric.title}{of(answer)} relative to {relative_to(answer)}"
    lines = [", ".join(filter(None, (what, metric.better)))]
    if len(answer.shown()) > 1:
        over = ", ".join(answer.workloads)
        lines.append(f"geometric means over {over}" if len(answer.workloads) > 1 else over)
    return lines


def of(answer: Sweep) -> str:
    """Return whose the numbers are if they are of one design; no text if they are of several."""
    shown = answer.shown()
    return f" of {judged(answer, shown[0])}" if len(shown) == 1 else ""


def relative_to(answer: Sweep) -> str:
    """Return what is 1.00, and of several designs without a base whose."""
    is_own = answer.normalize is None and len(answer.shown()) > 1
    own = "each design's own at " if is_own else ""
    return f"{own}{base(answer)}"


def axes(answer: Sweep) -> str:
    """Return the fields of the rows and the columns of a grid, or no text without two fields."""
    if len(answer.vary) != 2:
        return ""
    down, across = answer.vary
    return f"rows: {down} · columns: {across}"


def _title(answer: Sweep, width: int) -> str:
    said = [where(answer, answer.core_model()), axes(answer)]
    lines = [*title_lines(answer), *filter(None, said)]
    return "\n".join(textwrap.fill(line, width, break_on_hyphens=False) for line in lines)


def _planes(answer: Sweep) -> dict[str, Grid]:
    """Return a grid for each column of the list, and one of the leading designs."""
    planes = {
        name: {point: text.ratio_cell(*value(point)) for point in answer.points}
        for name, value in columns(answer).items()
    }
    if ahead := _ahead(answer):
        planes[AHEAD] = ahead
    (down, rows), (_, across) = answer.vary.items()
    return {
        name: [[down, *across], *([row, *(shown[row, value] for value in across)] for row in rows)]
        for name, shown in planes.items()
    }


def _ahead(answer: Sweep) -> dict[Point, str]:
    """Return the leading design at each point as a cell; none where nobody could lead."""
    return {tuple(row["point"].values()): " ".join(leader(answer, row)) for row in answer.ahead()}


def notes(answer: Sweep) -> list[text.Note]:
    """Return the notes on the tables."""
    told = [*text.refused_notes(answer), *_ahead_notes(answer), *_items_notes(answer)]
    said = f"95 %: the widest confidence interval over {len(answer.seeds_shown)} seeds is that of"
    widths = {
        f"{name} at {_said(answer, point)}": value(point)
        for name, value in columns(answer).items()
        for point in answer.points
    }
    told += text.interval_notes(said, widths)
    bases = [answer.base(cell) for cell in answer.cells() if cell[1] in answer.shown()]
    zeros = {cell[1]: False for cell in bases if answer.zeros(cell)}
    zeros |= {cell[1]: True for cell in bases if 0 < answer.zeros(cell) < len(answer.seeds_shown)}
    place = "there" if answer.normalize else f"at {base(answer)}"
    told += [
        (
            text.BLANK,
            f"{answer.labels[design]} is 0 {place}{' with some seeds' * is_some}:"
            " choose --normalize",
        )
        for design, is_some in zeros.items()
    ]
    told += text.zeros_notes(answer)
    told += text.latency_notes(answer)
    told += text.durability_notes(answer)
    own = joined([(run.experiment.design, run.data) for run in answer.runs.values()])
    return [*told, *(("*", note) for note in own)]


def _ahead_notes(answer: Sweep) -> list[text.Note]:
    """Return the notes on the leading designs: what is compared, and what is left out."""
    ahead = answer.ahead()
    if not ahead:
        return []
    means = "geometric mean of " if len(answer.workloads) > 1 else ""
    best = "highest" if METRICS[answer.metric].higher_is_better else "lowest"
    said = f"{AHEAD}: the design whose {means}{answer.metric} is {best}, and its lead over the next"
    if others := [design for design in answer.designs if design not in answer.rivals()]:
        said += f"; without {', '.join(answer.labels[design] for design in others)}"
    if len(answer.seeds_shown) == 1:
        said += (
            ". A lead of a few hundredths may be due to this seed: --seeds 5 says how sure it is"
        )
    told = [(">", said)]
    if not answer.interrupted and any(row["lead"] is None for row in ahead):
        none = "a design has no value there, or 0, so none is called ahead"
        told.append((text.BLANK, none))
    if not all(row.get("sure", True) or row["design"] is None for row in ahead):
        doubt = "the 95 % interval of the lead includes 1: more --seeds may decide"
        told.append((DOUBT, doubt))
    return told


def _items_notes(answer: Sweep) -> list[text.Note]:
    """Return the note that workloads have other amounts of data on other machines."""
    given = {*answer.vary, *(key for key, _ in answer.settings)}
    has_own = ITEMS in given or all(f"{name}.items" in given for name in answer.workloads)
    if has_own or len({*answer.items.values()}) < 2:
        return []
    counts = by_machine({name: text.plural(n, "item") for name, n in answer.items.items()})
    return [("*", f"machines differ in data, too: {counts}; --set {ITEMS}=N gives all the same")]


def passings(answer: Sweep) -> list[str]:
    """Return the note on the crossings of designs, if a single field varies."""
    return [_passing(answer, crossing) for crossing in answer.crossings()]


def _passing(answer: Sweep, crossing: Mapping[str, Any]) -> str:
    """Return who passes whom and where, and whether that is sure.

    It is of the metric itself: what the table shows may be relative to each design's own.
    """
    (key,) = answer.vary
    is_sure = crossing.get("sure", True)
    passes = "passes" if is_sure else "may pass"
    doubt = "" if is_sure else ": 1.00 is within ± 95 % of their ratio"
    place = f"{key}={crossing['after']} and {crossing['by']}"
    ahead, behind = (answer.labels[crossing[key]] for key in ("ahead", "behind"))
    pair = f"{ahead} {passes} {behind}"
    return f"{pair} in {answer.metric} between {place}{doubt}"
