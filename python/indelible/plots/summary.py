"""Designs as points of throughput and write traffic, with the Pareto front."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from indelible import text
from indelible.means import reaches
from indelible.metrics import METRICS
from indelible.plots import (
    COLOURS,
    DECADE,
    INTERVAL_LOOK,
    NAMED_WORKLOADS,
    blocks,
    entitle,
    missing,
    nothing_to_draw,
    number_decades,
    styled,
)
from indelible.summary import HALF_WIDTH, RATIOS, rows_of
from indelible.text import comparison as comparison_text
from indelible.text.summary import over
from indelible.text.verdicts import judged

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from indelible.results.comparison import Comparison

#: The numbers of the two axes.
ACROSS, UP = "throughput", "pm_writes"

PANEL_INCHES = 3.0

#: The room around the points for their names, as a part of the points' range.
MARGIN = 0.12

#: The room of a logarithmic axis below its least value, as a factor, at whose end a 0 is drawn.
BELOW = 2

#: Half of a marker, and the width of the front, in points.
MARKER, LINE = 3, 1.0

#: The labels of the legend.
FRONT = "Pareto front of durable designs"
BOUND = "no durability: a bound"
UNSAFE = "not crash-safe"

Point = tuple[float, float]


def require(flag: str = "") -> None:
    """Refuse to draw without the library that places names."""
    try:
        import textalloc  # noqa: F401
    except ImportError as error:
        raise missing(error, flag) from None


@styled
def figure(answer: Comparison) -> Figure:
    """Return a panel for each number of cores: each design a point with its name."""
    if not any(_points(answer, cores) for cores in answer.cores):
        raise nothing_to_draw(answer)
    labels = (FRONT, BOUND, UNSAFE)
    drawing = blocks(answer, _panel, PANEL_INCHES, labels_in_row=len(labels), labels=labels)
    # The room for names is known only when everything else has its place.
    drawing.draw_without_rendering()
    for axes, cores in zip(drawing.axes, answer.cores, strict=True):
        _name(axes, answer, cores)
    return drawing


def _points(answer: Comparison, cores: int | None) -> dict[str, Point]:
    """Return the points of the designs whose numbers are known."""
    places = {row["design"]: (row[ACROSS], row[UP]) for row in rows_of(answer, cores)}
    return {design: place for design, place in places.items() if None not in place}


def _edges(answer: Comparison) -> list[float | None]:
    """Return where a 0 is drawn on each axis, if that is logarithmic; None if it is linear.

    The axes of all panels are alike. Values that differ much are on a logarithmic axis.
    """
    every = [point for cores in answer.cores for point in _points(answer, cores).values()]
    found: list[float | None] = []
    for values in zip(*every, strict=True):
        there = [value for value in values if value]
        is_wide = bool(there) and max(there) >= DECADE * min(there)
        found.append(min(there) / BELOW if is_wide else None)
    return found


def _drawn(points: Mapping[str, Point], edges: Sequence[float | None]) -> dict[str, Point]:
    """Return where the points are drawn."""
    across, up = edges
    return {design: (x or across or 0.0, y or up or 0.0) for design, (x, y) in points.items()}


def _reaches(answer: Comparison, cores: int | None) -> dict[str, tuple[float, float]]:
    """Return how far the designs' confidence intervals go to the left and to the right."""
    return {row["design"]: reaches(row[ACROSS], row[HALF_WIDTH]) for row in rows_of(answer, cores)}


def front(answer: Comparison, points: Mapping[str, Point]) -> list[Point]:
    """Return the Pareto front of the rivals' points, from left to right and so from low to high."""
    safe = [place for design, place in points.items() if answer.is_rival(design)]
    found: list[Point] = []
    for across, up in sorted(safe, key=lambda point: (-point[0], point[1])):
        if not found or up < found[-1][1]:
            found.append((across, up))
    return found[::-1]


def _panel(axes: Axes, answer: Comparison, cores: int | None) -> None:
    edges = _edges(answer)
    known = _points(answer, cores)
    points, reach = _drawn(known, edges), _reaches(answer, cores)
    for index, design in enumerate(answer.designs):
        if design in points:
            _draw(axes, answer, index, points[design], reach[design])
    _make_room(axes, edges, [*known.values()])
    if corners := front(answer, points):
        limits = axes.axis()
        look = {"color": "0.3", "linewidth": LINE, "zorder": 0.8, "label": FRONT}
        axes.plot(*zip(*_stairs(axes, corners), strict=True), **look)
        axes.axis(limits)
    axes.grid(color="0.9", linewidth=0.5)
    axes.set_axisbelow(True)
    axes.set_xlabel(f"{_said(answer, ACROSS)} {_better(ACROSS)}")
    axes.set_ylabel(f"{_said(answer, UP)}\n{_better(UP)}")
    entitle(axes, _title(answer, cores))


def _draw(
    axes: Axes, answer: Comparison, index: int, point: Point, reach: tuple[float, float]
) -> None:
    """Draw a design as the other figures do: without a fill if it is not crash-safe."""
    colour, size = COLOURS[index % len(COLOURS)], (2 * MARKER) ** 2
    # What lies at the end of an axis is drawn whole.
    whole = {"clip_on": False, "zorder": 3}
    if any(reach):
        look = {"fmt": "none", "ecolor": "0.5", "zorder": 0.7, **INTERVAL_LOOK}
        axes.errorbar(*point, xerr=[[side] for side in reach], **look)
    if answer.is_safe(design := answer.designs[index]):
        look = {"facecolor": colour, "edgecolor": "black", "linewidth": 0.5}
        axes.scatter(*point, s=size, **look, **whole)
    elif answer.durability.get(design) == "none":
        axes.scatter(*point, s=size, facecolor="white", edgecolor="0.5", label=BOUND, **whole)
    else:
        look = {"color": colour, "linewidth": 1, "label": UNSAFE}
        hollow = {"facecolor": "white", "edgecolor": colour, "linewidth": 0.8}
        axes.scatter(*point, s=size, **hollow, **whole)
        axes.scatter(*point, s=2 * size, marker="x", **look, **whole)


def _make_room(axes: Axes, edges: Sequence[float | None], points: Sequence[Point]) -> None:
    """Leave room for names, and give each axis its scale; a 0 lies at the axis's end."""
    from matplotlib.ticker import StrMethodFormatter

    axes.margins(MARGIN)
    for index, (name, edge) in enumerate(zip("xy", edges, strict=True)):
        if edge is not None:
            axes.set(**{f"{name}scale": "log"})
        axes.autoscale_view()
        has_zero = any(not point[index] for point in points)
        if has_zero or (edge is None and getattr(axes, f"get_{name}lim")()[0] < 0):
            axes.set(**{f"{name}lim": (edge or 0, None)})
        if edge is not None:
            number_decades(getattr(axes, f"{name}axis"), StrMethodFormatter("{x:g}"))


def _stairs(axes: Axes, corners: Sequence[Point]) -> list[Point]:
    """Return the stairs of a front, below and to the right of which there is no safe design."""
    left, _, _, top = axes.axis()
    # From each corner up to the height of the next one, and then across.
    turns = [(here[0], there[1]) for here, there in pairwise(corners)]
    between = [point for pair in zip(corners, turns, strict=False) for point in pair]
    last = corners[-1]
    return [(left, corners[0][1]), *between, last, (last[0], top)]


def _said(answer: Comparison, key: str) -> str:
    return f"{METRICS[RATIOS[key]].title} relative to {answer.labels[answer.normalize]}"


def _better(key: str) -> str:
    return f"({METRICS[RATIOS[key]].better})"


def _title(answer: Comparison, cores: int | None) -> str:
    where = comparison_text.machine_said(answer, cores)
    count, seeds = len(answer.workloads), answer.seeds_shown
    named = ", ".join(answer.workloads) if count <= NAMED_WORKLOADS else f"{count} workloads"
    sure = ", 95 % intervals" if len(seeds) > 1 else ""
    title = f"{where}, {text.seeds_said(seeds)}, {over(named, answer)}{sure}"
    return "; ".join([title, *_apart(answer, cores)])


def _apart(answer: Comparison, cores: int | None) -> Iterator[str]:
    """Return which designs are drawn where their value is not, and which are not drawn."""
    points = _points(answer, cores)
    for index, edge in enumerate(_edges(answer)):
        zeros = [answer.labels[design] for design, point in points.items() if not point[index]]
        if edge is not None and zeros:
            what = METRICS[RATIOS[(ACROSS, UP)[index]]].title
            yield f"{what} of 0 at the edge: {', '.join(zeros)}"
    if absent := [answer.labels[design] for design in answer.designs if design not in points]:
        yield f"without a value: {', '.join(absent)}"


def _name(axes: Axes, answer: Comparison, cores: int | None) -> None:
    """Write the names of points beside them, where they hide neither each other nor a line."""
    require()
    import textalloc

    points, reach = _drawn(_points(answer, cores), _edges(answer)), _reaches(answer, cores)
    if not points:
        return
    corners = front(answer, points)
    lines = [_stairs(axes, corners)] if corners else []
    lines += [
        [(x - reach[design][0], y), (x + reach[design][1], y)]
        for design, (x, y) in points.items()
        if any(reach[design])
    ]
    across, up = zip(*points.values(), strict=True)
    textalloc.allocate(
        axes,
        across,
        up,
        [judged(answer, design) for design in points],
        x_scatter=across,
        y_scatter=up,
        x_lines=[[x for x, _ in line] for line in lines],
        y_lines=[[y for _, y in line] for line in lines],
        textsize=6,
        linecolor="0.6",
        linewidth=0.4,
        avoid_label_lines_overlap=True,
        avoid_crossing_label_lines=True,
    )
