"""Figures of a sweep: lines over the values of one field, or heat maps over those of two.

Nothing is run here. matplotlib is imported inside the functions.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from indelible import text
from indelible.errors import InputError
from indelible.means import is_unsure, reaches
from indelible.metrics import METRICS
from indelible.plots import (
    COLOURS,
    DECADE,
    HEIGHT_INCHES,
    INTERVAL_LOOK,
    LINE_HEIGHT,
    MARKERS,
    NAMED_WORKLOADS,
    POINTS,
    STYLE,
    WIDTH_INCHES,
    add_legend,
    entitle,
    filled,
    in_legend,
    label,
    require_ratios,
    room_of,
    styled,
    widest,
)
from indelible.results.sweep import Point, Sweep
from indelible.settings import MACHINE_FIELD, number
from indelible.text import sweep as sweep_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Colormap, Normalize
    from matplotlib.figure import Figure

    #: A colour as red, green, blue, and perhaps opacity.
    Colour = tuple[float, ...] | str

#: Units that may be mixed among the values of one axis, with their sizes.
SCALES = (
    {"ps": 1e-3, "ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9},
    {"B": 1.0, "KiB": 2.0**10, "MiB": 2.0**20, "GiB": 2.0**30, "TiB": 2.0**40},
    {"MHz": 1e-3, "GHz": 1.0},
)

#: Lines in a row of the legend.
LABELS_IN_ROW = 4

#: The look of lines of designs that are not crash-safe.
UNSAFE_LINE = {"linestyle": ":", "fillstyle": "none"}

#: The look of lines over machines, which have no order in which one could go to the next.
UNJOINED = {"linestyle": ""}

#: The most labels of an axis that are set level; more are turned. And the part of an axis's width
#: that lines take.
LEVEL_LABELS = 7
USED = 0.9

#: The part of the height of a figure with lines that is not beside their axis, in inches.
AROUND_INCHES = 0.6

#: Blue below 1, grey at 1 and yellow above, with lightness that grows with the value (Nunez et al.,
#: 2018); reversed where lower is better.
COLOUR_MAP = "cividis"

#: The least reach of a heat map's colours from 1, as a factor; with less, noise would look like a
#: result.
LEAST_REACH = 1.1

#: The font sizes in points: of the texts in cells where there is room, the least for these, of the
#: names of panels, and of everything around them.
CELL_FONT = 6.5
LEAST_FONT = 4.5
NAME_FONT = 8
SMALL_FONT = 7

#: In inches: the largest height of a cell, and of a panel; the room around a panel's cells at the
#: sides, and above and below; the length of the colour bar, and its height with the title.
CELL_INCHES = 0.29
PANEL_INCHES = 4.0
BESIDE_INCHES = 0.25
ABOVE_INCHES = 0.45
BAR_LENGTH_INCHES = 2.6
BAR_INCHES = 1.2

#: The most of a cell that text may fill.
FILLED = 0.86

#: The colours of cells without a value, and of cells where designs are level.
BARE = "white"
LEVEL_COLOUR = "0.85"


@styled
def figure(answer: Sweep) -> Figure:
    """Return lines for a sweep of one field, and heat maps for a sweep of two."""
    require_ratios(answer, answer.normalize or f"each design at {sweep_text.base(answer)}")
    if len(answer.vary) > 2:
        count = len(answer.vary)
        raise InputError(f"a figure shows a sweep of one field or two, not of {count}")
    return _lines(answer) if len(answer.vary) == 1 else _maps(answer)


# One field.


def _lines(answer: Sweep) -> Figure:
    """Return a line for each design, or if there is one design, for each workload and the mean.

    Over machines it is markers alone.
    """
    from matplotlib.figure import Figure

    ((key, values),) = answer.vary.items()
    drawing = Figure(figsize=(WIDTH_INCHES / 2, HEIGHT_INCHES), layout="constrained")
    axes = drawing.subplots()
    places, columns, designs = _places(values), sweep_text.columns(answer), answer.shown()
    has_several = len(designs) > 1
    whose = designs if has_several else designs * len(columns)
    for index, (design, (name, value)) in enumerate(zip(whose, columns.items(), strict=True)):
        told = label(answer, design) if has_several else in_legend(name)
        look: dict[str, Any] = {"linewidth": 1.2, "markersize": 4, "label": told}
        look |= {} if answer.is_safe(design) else UNSAFE_LINE
        look |= UNJOINED if key == MACHINE_FIELD else {}
        look |= {"color": COLOURS[index % len(COLOURS)], "marker": MARKERS[index % len(MARKERS)]}
        shown = [value(point) for point in answer.points]
        # Lines go from left to right, in whichever order the values were asked for.
        along = sorted(zip(places, shown, strict=True), key=lambda one: one[0])
        ordered = [place for place, _ in along]
        heights = [math.nan if height is None else height for _, (height, _) in along]
        sides = [*zip(*(reaches(*pair) for _, pair in along), strict=True)]
        if any(map(any, sides)):
            axes.errorbar(ordered, heights, sides, **look, **INTERVAL_LOOK)
        else:
            axes.plot(ordered, heights, **look)
    axes.axhline(1.0, color="black", linewidth=0.8, linestyle="--", zorder=0.5)
    axes.grid(axis="y", color="0.9", linewidth=0.5)
    if min(places) > 0 and max(places) >= DECADE * min(places):
        axes.set_xscale("log")
    _name_values(axes, dict(zip(places, values, strict=True)))
    axes.set_xlabel(key)
    room = HEIGHT_INCHES - AROUND_INCHES
    beside = [filled(line, room, STYLE["font.size"]) for line in _label(answer).split("\n")]
    axes.set_ylabel("\n".join(beside))
    sure = ", 95 % intervals" if len(answer.seeds_shown) > 1 else ""
    entitle(axes, "; ".join([sweep_text.where(answer) + sure, *_over(answer)]))
    handles, labels = axes.get_legend_handles_labels()
    named = dict(zip(labels, handles, strict=True))
    add_legend(drawing, named, "outside upper center", LABELS_IN_ROW)
    return drawing


def _name_values(axes: Axes, values: Mapping[float, str]) -> None:
    """Write as many values below their places as there is room for, turned if there are many."""
    turned = STYLE["font.size"] * math.sqrt(2)
    told = {place: widest([value]) * STYLE["font.size"] for place, value in values.items()}
    level, slanted = (_apart(axes, sizes) for sizes in (told, dict.fromkeys(values, turned)))
    is_level = len(values) <= LEVEL_LABELS and len(level) == len(values)
    shown = level if is_level else slanted
    axes.set_xticks(shown, [values[place] for place in shown], rotation=0 if is_level else 45)
    axes.minorticks_off()


def _apart(axes: Axes, sizes: Mapping[float, float]) -> list[float]:
    """Return the places, from the left on, at which things of these sizes do not overlap."""
    along = math.log if axes.get_xscale() == "log" else float
    low, high = (along(end) for end in (min(sizes), max(sizes)))
    unit = room_of(axes, 1) * USED / ((high - low) or 1.0)
    found: list[float] = []
    end = -math.inf
    for place in sorted(sizes):
        middle, half = (along(place) - low) * unit, sizes[place] / 2
        if middle - half >= end:
            found.append(place)
            end = middle + half
    return found


def _over(answer: Sweep) -> list[str]:
    """Return the workloads of lines that are designs; lines of a single design are workloads."""
    if len(answer.shown()) == 1:
        return []
    count = len(answer.workloads)
    named = sweep_text.title_lines(answer)[1]
    return [named if count <= NAMED_WORKLOADS else f"geometric means over {count} workloads"]


def _label(answer: Sweep) -> str:
    metric = METRICS[answer.metric]
    what = ", ".join(filter(None, (metric.title + sweep_text.of(answer), metric.better)))
    return f"{what}\nrelative to {sweep_text.relative_to(answer)}"


def _places(values: Sequence[str]) -> Sequence[float]:
    """Return the places of values: as numbers if all are of one kind, else at equal distances."""
    numbers = [known for known in map(number, values) if known is not None]
    if len(numbers) < len(values):
        return range(len(values))
    if len({unit for _, unit in numbers}) == 1:
        return [float(count) for count, _ in numbers]
    for scale in SCALES:
        if all(unit in scale for _, unit in numbers):
            return [float(count) * scale[unit] for count, unit in numbers]
    return range(len(values))


# Two fields.


@dataclass(frozen=True)
class Panel:
    """A heat map to be drawn: the texts and the colours of the points' cells."""

    name: str
    said: Mapping[Point, str]
    colours: Mapping[Point, Colour]


@dataclass(frozen=True)
class Layout:
    """The arrangement of panels in rows and columns, and their sizes in inches."""

    across: int
    rows: int
    #: Whether the panel of the leading design is below all others, as wide as they are together.
    is_ahead_alone: bool
    width: float
    cell_width: float
    cell_height: float
    height: float


def _maps(answer: Sweep) -> Figure:
    """Return a map for each design, or if there is one design, for each workload and the mean.

    Where designs compete, one more map shows which is ahead.
    """
    from matplotlib import colormaps
    from matplotlib.cm import ScalarMappable
    from matplotlib.figure import Figure

    norm = _norm(answer)
    panels = _ratio_panels(answer, colormaps[_colour_map(answer)], norm)
    ahead = _ahead_panel(answer)
    layout = _layout(answer, panels, ahead)
    size = (layout.width, BAR_INCHES + layout.height * layout.rows)
    drawing = Figure(figsize=size, layout="constrained")
    grid = drawing.add_gridspec(layout.rows, layout.across)
    drawn = []
    for index, panel in enumerate([*panels, *([ahead] if ahead else [])]):
        row, column = divmod(index, layout.across)
        is_alone = panel is ahead and layout.is_ahead_alone
        axes = drawing.add_subplot(grid[-1, :] if is_alone else grid[row, column])
        _draw(axes, answer, panel)
        # Axes are named at the left, and below panels that have no full row below them.
        is_lowest = panel is ahead or (row + 2) * layout.across > len(panels)
        _name_axes(axes, answer, layout, across=is_lowest, down=is_alone or column == 0)
        drawn.append(axes)
    _add_bar(drawing, drawn[: len(panels)], ScalarMappable(norm, _colour_map(answer)), answer)
    said = [*sweep_text.title_lines(answer), _marks(answer)]
    _entitle(drawing, said)
    # The room in cells is known only when everything around them has its place.
    drawing.draw_without_rendering()
    for axes in drawn:
        _fit(axes, answer)
    if ahead and not drawn[-1].texts[0].get_visible():
        _add_names(drawn[-1], answer)
    return drawing


def _colour_map(answer: Sweep) -> str:
    """Return the colour map of ratios, in which better is lighter."""
    return COLOUR_MAP if METRICS[answer.metric].higher_is_better else f"{COLOUR_MAP}_r"


def _add_bar(drawing: Figure, of: Sequence[Axes], colours: ScalarMappable, answer: Sweep) -> None:
    """Draw the colour bar below the panels that use it."""
    place = of[0].get_subplotspec().get_gridspec()
    width = drawing.get_figwidth() * min(len(of), place.ncols) / place.ncols
    bar = drawing.colorbar(
        colours,
        ax=of,
        location="bottom",
        aspect=40,
        fraction=0.05,
        shrink=min(1.0, BAR_LENGTH_INCHES / width),
    )
    ticks = [colours.norm.vmax**part for part in (-1, -0.5, 0, 0.5, 1)]
    bar.set_ticks(ticks, labels=[text.ratio(tick) for tick in ticks])
    bar.ax.minorticks_off()
    bar.ax.tick_params(labelsize=SMALL_FONT)
    bar.set_label(_label(answer), fontsize=SMALL_FONT)


def _add_names(axes: Axes, answer: Sweep) -> None:
    """Add a legend of designs' colours above a panel whose cells have no room for names."""
    from matplotlib.patches import Patch

    handles = [
        Patch(color=colour, label=in_legend(text.marked(answer, design)))
        for design, colour in leading_colours(answer).items()
    ]
    axes.set_title(axes.get_title(), loc="left", fontsize=NAME_FONT, pad=3)
    axes.set_title("")
    look = {"frameon": False, "fontsize": SMALL_FONT, "ncols": len(handles), "borderpad": 0}
    axes.legend(handles=handles, loc="lower right", bbox_to_anchor=(1, 1), **look)


def _entitle(drawing: Figure, lines: Sequence[str]) -> None:
    """Write lines above all panels, broken where the drawing ends."""
    said = "\n".join(filled(line, drawing.get_figwidth(), SMALL_FONT) for line in lines)
    look = {"fontsize": SMALL_FONT, "x": 0.01, "ha": "left", "color": "0.3", "linespacing": 1.15}
    drawing.suptitle(said, **look)


def _marks(answer: Sweep) -> str:
    """Return the machine of the runs, and the meaning of the marks in cells."""
    shown = [
        pair for value in sweep_text.columns(answer).values() for pair in map(value, answer.points)
    ]
    notes = [sweep_text.where(answer)]
    if any(is_unsure(*pair) for pair in shown):
        notes.append(f"{text.UNSURE_MARK} 95 % interval wider than ± 5 %")
    if any(row["design"] and not row.get("sure", True) for row in answer.ahead()):
        notes.append(f"{sweep_text.DOUBT} 95 % interval of the lead includes 1")
    return ", ".join(notes)


def _norm(answer: Sweep) -> Normalize:
    """Return the scale of colours, which is logarithmic with 1 in its middle."""
    from matplotlib.colors import LogNorm

    values = [
        value(point)[0] for value in sweep_text.columns(answer).values() for point in answer.points
    ]
    reach = max([LEAST_REACH, *(max(value, 1 / value) for value in values if value)])
    # A ratio of 0 has the colour of the lower end.
    return LogNorm(1 / reach, reach, clip=True)


def _ratio_panels(answer: Sweep, colour_map: Colormap, norm: Normalize) -> list[Panel]:
    panels = []
    for name, value in sweep_text.columns(answer).items():
        shown = {point: value(point) for point in answer.points}
        said = {point: text.ratio_cell(*pair) for point, pair in shown.items()}
        colours = {
            point: BARE if ratio is None else colour_map(float(norm(ratio)))
            for point, (ratio, _) in shown.items()
        }
        panels.append(Panel(name, said, colours))
    return panels


def _ahead_panel(answer: Sweep) -> Panel | None:
    """Return the map of the leading designs, or None if designs do not compete."""
    rows = {tuple(row["point"].values()): row for row in answer.ahead()}
    if not rows:
        return None
    own = leading_colours(answer)
    bare = {True: BARE, False: LEVEL_COLOUR}
    colours = {
        point: own[row["design"]] if row["design"] else bare[row["lead"] is None]
        for point, row in rows.items()
    }
    said = {point: "\n".join(sweep_text.leader(answer, row)) for point, row in rows.items()}
    return Panel(sweep_text.AHEAD, said, colours)


def leading_colours(answer: Sweep) -> dict[str, str]:
    """Return the colours of the designs that are ahead somewhere, which are few.

    A colour that is used again is half as far from white.
    """
    from matplotlib.colors import to_hex, to_rgb

    ahead = {row["design"] for row in answer.ahead()}
    found = {}
    for index, design in enumerate(name for name in answer.designs if name in ahead):
        turn, place = divmod(index, len(COLOURS))
        found[design] = to_hex([1 - (1 - part) / 2**turn for part in to_rgb(COLOURS[place])])
    return found


def _layout(answer: Sweep, panels: Sequence[Panel], ahead: Panel | None) -> Layout:
    """Return the arrangement of the panels in which their texts can be read.

    Names of designs are wider than ratios. If a row has room for only one panel with names, but for
    several with ratios, the panel of the leading design is put below the others.
    """
    (down, rows), (across, columns) = answer.vary.items()
    label = _inches([across], SMALL_FONT)

    def fit(panel: Panel, width: float) -> int:
        cells = len(columns) * _inches(panel.said.values(), CELL_FONT) / FILLED
        own = max(cells, label, _inches([panel.name], NAME_FONT)) + BESIDE_INCHES
        return max(1, int((width - BESIDE_INCHES) / own))

    def fit_all(width: float) -> int:
        return min(fit(panel, width) for panel in [*panels, *([ahead] if ahead else [])])

    count = len(panels) + (ahead is not None)
    is_narrow = fit_all(WIDTH_INCHES) > 1 and count <= fit_all(WIDTH_INCHES / 2)
    width = WIDTH_INCHES / 2 if is_narrow else WIDTH_INCHES
    in_row = fit_all(width)
    of_ratios = min(fit(panel, width) for panel in panels)
    is_alone = ahead is not None and in_row == 1 < min(of_ratios, len(panels))
    lines = math.ceil((count - is_alone) / (of_ratios if is_alone else in_row))
    # The panels are spread evenly over the rows.
    beside = math.ceil((count - is_alone) / lines)
    cell_width = (width / beside - BESIDE_INCHES) / len(columns)
    cell_height = min(CELL_INCHES, PANEL_INCHES / len(rows))
    is_turned = _inches(columns, SMALL_FONT) > FILLED * cell_width
    height = max(cell_height * len(rows), _inches([down], SMALL_FONT)) + ABOVE_INCHES
    height += _inches(columns, SMALL_FONT) * is_turned
    return Layout(beside, lines + is_alone, is_alone, width, cell_width, cell_height, height)


def _inches(said: Iterable[str], font: float) -> float:
    """Return the width of the widest line of texts in inches."""
    return widest(said) * font / POINTS


def _draw(axes: Axes, answer: Sweep, panel: Panel) -> None:
    """Draw the cells of a panel as the table has them, the first at the top left."""
    from matplotlib.colors import to_rgb
    from matplotlib.patches import Rectangle

    rows, columns = answer.vary.values()
    for y, row in enumerate(rows):
        for x, column in enumerate(columns):
            colour = to_rgb(panel.colours[row, column])
            cell = Rectangle((x - 0.5, y - 0.5), 1, 1, facecolor=colour, edgecolor="white")
            axes.add_patch(cell)
            # The text is no part of the layout, since it is fitted into its cell later.
            axes.text(
                x,
                y,
                panel.said[row, column],
                ha="center",
                va="center",
                color="white" if _is_dark(colour) else "black",
                in_layout=False,
            )
    axes.set_xlim(-0.5, len(columns) - 0.5)
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.set_title(panel.name, fontsize=NAME_FONT, pad=3)
    axes.spines[:].set_visible(False)


def _name_axes(axes: Axes, answer: Sweep, layout: Layout, *, across: bool, down: bool) -> None:
    """Name the fields, and as many of their values as there is room for."""
    rows, columns = answer.vary.values()
    is_turned = _inches(columns, SMALL_FONT) > FILLED * layout.cell_width
    line = SMALL_FONT * LINE_HEIGHT / POINTS
    every = {
        "x": math.ceil(line / layout.cell_width) if is_turned else 1,
        "y": math.ceil(line / layout.cell_height),
    }
    axes.set_xticks(range(len(columns))[:: every["x"]], columns[:: every["x"]])
    axes.set_yticks(range(len(rows))[:: every["y"]], rows[:: every["y"]])
    axes.tick_params(length=0, labelsize=SMALL_FONT, labelbottom=across, labelleft=down)
    axes.tick_params(axis="x", rotation=90 if is_turned else 0)
    down_field, across_field = answer.vary
    if across:
        axes.set_xlabel(across_field, fontsize=SMALL_FONT)
    if down:
        axes.set_ylabel(down_field, fontsize=SMALL_FONT)


def _is_dark(colour: Sequence[float]) -> bool:
    """Return whether white is read better on a colour than black (WCAG's relative luminance)."""
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in colour]
    luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    return luminance < 0.18


def _fit(axes: Axes, answer: Sweep) -> None:
    """Give the texts in cells a size at which they fit, or hide them."""
    rows, columns = map(len, answer.vary.values())
    room = axes.get_window_extent()
    points = POINTS / axes.figure.dpi
    width, height = room.width * points / columns, room.height * points / rows
    said = [words.get_text() for words in axes.texts]
    lines = max(words.count("\n") + 1 for words in said)
    size = FILLED * min(width / widest(said), height / (lines * LINE_HEIGHT))
    for words in axes.texts:
        words.set_fontsize(min(size, CELL_FONT))
        words.set_visible(size >= LEAST_FONT)
