"""The figure of `why`: a bar for each change, from the ratio without it to the ratio with it.

Nothing is run here. matplotlib is imported inside the functions.
"""

from __future__ import annotations

import math
import textwrap
from typing import TYPE_CHECKING, Any

from indelible.errors import InputError
from indelible.means import reaches
from indelible.metrics import METRICS
from indelible.plots import (
    COLOURS,
    INTERVAL_LOOK,
    MARKERS,
    UNSAFE_HATCH,
    WIDTH_INCHES,
    label,
    styled,
)
from indelible.results.causes import AS_IT_IS, Causes
from indelible.results.sweep import Point
from indelible.text.causes import TOP, changed, marked_names
from indelible.text.comparison import where

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: The fill styles of marks for smaller and larger numbers, and for other words.
FILLS = {False: "none", True: "full", None: "left"}

#: The height of all bars of a field together, in rows.
BAR = 0.66

#: The height of a field's row, and of everything around the rows, in inches.
ROW_INCHES = 0.24
AROUND_INCHES = 1.1

#: The looks of bars for smaller and larger numbers, and for other words, in no design's colours.
BARS = {
    False: {"label": "smaller", "color": "white"},
    True: {"label": "larger", "color": "0.55"},
    None: {"label": "another word", "color": "white", "hatch": UNSAFE_HATCH},
}

#: Letters of a line below a panel.
LETTERS = 44

#: The ratio of the ends of an axis up to which it has as many ticks as fit.
NARROW = 3

#: The room beside the bars for the texts at their ends, as a part of the bars' range.
MARGIN = 0.22


@styled
def figure(answer: Causes) -> Figure:
    """Return the figure of how changes move the ratio of two designs, and each of the two."""
    from matplotlib.figure import Figure

    fields = _fields(answer)
    if not fields:
        raise InputError("there is no figure: no change has an effect that could be drawn")
    pair = len(answer.designs) > 1
    size = (WIDTH_INCHES, AROUND_INCHES + ROW_INCHES * len(fields))
    drawing = Figure(figsize=size, layout="constrained")
    panels = drawing.subplots(1, 1 + pair, sharey=True, squeeze=False)[0]
    names = marked_names(answer)
    told = tuple(label(answer.as_it_is, design) for design in answer.designs)
    metric = METRICS[answer.sweep.metric].title
    if pair:
        _bars(panels[0], answer, fields)
        panels[0].set_xlabel(_wrapped(f"{metric}, {names[-1]} over {names[0]}"))
    _dots(panels[-1], answer, fields, told)
    panels[-1].set_xlabel(_wrapped(f"{metric}, each relative to itself as it is"))
    labels = [f"{field} ({answer.changes[points[0]].before})" for field, points in fields.items()]
    panels[0].set_yticks(range(len(fields)), labels, fontsize=6.5)
    panels[0].set_ylim(len(fields) - 0.4, -0.6)
    for axes in panels:
        _frame(axes)
    over = ", ".join(answer.sweep.workloads)
    sure = ", 95 % intervals" if len(answer.sweep.seeds_shown) > 1 else ""
    title = f"{over} · {where(answer.as_it_is, answer.cores)}{sure}"
    drawing.suptitle(title, fontsize=7, color="0.3", wrap=True)
    drawing.legend(loc="outside lower center", ncols=5, frameon=False)
    return drawing


def _wrapped(label: str) -> str:
    """Return a label that is no wider than its panel."""
    return textwrap.fill(label, LETTERS, break_on_hyphens=False)


def _fields(answer: Causes) -> dict[str, list[Point]]:
    """Return the fields that move most, each with its changes that can be drawn."""
    seen = [point for point in answer.ranked() if answer.is_seen(point) and _can_be(answer, point)]
    fields = [*dict.fromkeys(answer.changes[point].field for point in seen)][:TOP]
    return {
        field: [p for p, change in answer.changes.items() if change.field == field and p in seen]
        for field in fields
    }


def _can_be(answer: Causes, point: Point) -> bool:
    """Return whether a change has numbers that lie on a logarithmic axis."""
    numbers = [answer.effect(point, design) for design in answer.designs]
    numbers += [answer.ratio(point)] if len(answer.designs) > 1 else []
    return all(numbers)


def _ratio(answer: Causes, point: Point) -> float:
    found = answer.ratio(point)
    return math.nan if found is None else found


def _bars(axes: Axes, answer: Causes, fields: dict[str, list[Point]]) -> None:
    here = _ratio(answer, AS_IT_IS)
    told: set[str | None] = set()
    for place, points in enumerate(fields.values()):
        ends = {point: _ratio(answer, point) for point in points}
        # Bars on the same side of the present ratio are drawn one above the other.
        sides = [sum((end > here) == side for end in ends.values()) for side in (True, False)]
        rows = max(sides)
        for index, (point, there) in enumerate(ends.items()):
            change, height = answer.changes[point], BAR / rows
            at = place if rows == 1 else place + height * (index - (len(ends) - 1) / 2)
            look: dict[str, Any] = dict(BARS[change.is_larger])
            if look["label"] in told:
                del look["label"]
            told.add(look.get("label"))
            look |= {"height": height, "edgecolor": "black", "linewidth": 0.4}
            axes.barh(at, there - here, left=here, **look)
            down, up = reaches(there, answer.ratio_half_width(point))
            _interval(axes, there, at, (down, up))
            axes.annotate(
                changed(answer, point),
                (there + up if there > here else there - down, at),
                xytext=(2 if there > here else -2, 0),
                textcoords="offset points",
                ha="left" if there > here else "right",
                va="center",
                fontsize=5.5,
            )
    axes.axvline(here, color="black", linewidth=0.8)
    down, up = reaches(here, answer.ratio_half_width())
    if down or up:
        axes.axvspan(here - down, here + up, color="0.93", zorder=0.4)


def _interval(axes: Axes, x: float, y: float, reach: tuple[float, float]) -> None:
    """Draw the confidence interval of a value, if it has one."""
    if any(reach):
        sides = [[side] for side in reach]
        axes.errorbar(x, y, xerr=sides, fmt="none", ecolor="0.4", zorder=2.5, **INTERVAL_LOOK)


def _dots(
    axes: Axes, answer: Causes, fields: dict[str, list[Point]], names: tuple[str, ...]
) -> None:
    for index, (design, name) in enumerate(zip(answer.designs, names, strict=True)):
        look = {"color": COLOURS[index], "marker": MARKERS[index], "markersize": 4}
        for is_larger, fill in FILLS.items():
            marks = [
                (point, place + 0.16 * (2 * index - 1) * (len(names) > 1))
                for place, points in enumerate(fields.values())
                for point in points
                if answer.changes[point].is_larger is is_larger
            ]
            values = [answer.effect(point, design) for point, _ in marks]
            places = [place for _, place in marks]
            for value, (point, place) in zip(values, marks, strict=True):
                reach = reaches(value, answer.effect_half_width(point, design))
                _interval(axes, value or math.nan, place, reach)
            # With a single design there are no bars whose legend would explain the fills.
            what = f"{name}, {BARS[is_larger]['label']}" if len(names) == 1 else name
            told = "" if len(names) > 1 and is_larger is not True else what
            if values or told == name:
                axes.plot(values, places, linestyle="", label=told, fillstyle=fill, **look)


def _frame(axes: Axes) -> None:
    from matplotlib.ticker import FormatStrFormatter, LogLocator, MaxNLocator, NullFormatter

    axes.set_xscale("log")
    axes.margins(x=MARGIN)
    low, high = axes.get_xlim()
    wide = LogLocator(base=10, subs=(1, 2, 5), numticks=8)
    axes.xaxis.set_major_locator(MaxNLocator(5) if high < NARROW * low else wide)
    axes.xaxis.set_major_formatter(FormatStrFormatter("%gx"))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.axvline(1, color="0.6", linewidth=0.8, linestyle="--", zorder=0.5)
    axes.grid(axis="x", color="0.9", linewidth=0.5)
    axes.grid(axis="y", color="0.95", linewidth=0.5)
    axes.set_axisbelow(True)
    axes.tick_params(axis="y", length=0)
