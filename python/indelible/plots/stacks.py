"""The parts of transactions as stacked bars: a stack for each design and workload."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from indelible import text
from indelible.plots import (
    COLOURS,
    HATCHES,
    HEIGHT_INCHES,
    POINTS,
    beside_colour,
    blocks,
    entitle,
    mark,
    name_groups,
    nothing_to_draw,
    styled,
    widest,
)
from indelible.stacks import STALLS, WRITES, Stacked, stacks
from indelible.text import comparison as comparison_text
from indelible.text.stacks import MEAN_LABEL
from indelible.text.verdicts import judged

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from indelible.results.comparison import Comparison

#: The names of designs below their bars: their font size, the least room for them, and the margin
#: around it, all in points.
NAMES_FONT = 5
NAMES_POINTS = 34
NAMES_MARGIN = 5
#: The least upper end of the axis: a little above the stack of the design that is 100.
HIGHEST = 104
#: Parts in a row of the legend.
LABELS_IN_ROW = 8


@styled
def stalls_figure(answer: Comparison) -> Figure:
    """Return the stacks of core time: a block for each number of cores, the mean at the right."""
    return _figure(answer, STALLS)


@styled
def writes_figure(answer: Comparison) -> Figure:
    """Return the stacks of writes to persistent memory, in the same blocks."""
    return _figure(answer, WRITES)


def _figure(answer: Comparison, of: Stacked) -> Figure:
    found = [stacks(answer, of, cores) for cores in answer.cores]
    if not any(cell for designs in found for cells in designs.values() for cell in cells):
        raise nothing_to_draw(answer)
    inches = HEIGHT_INCHES + (_room_for_names(answer) + 2 * NAMES_MARGIN) / POINTS
    names = [*of.parts.values()]
    return blocks(answer, partial(_bars, of), inches, labels_in_row=LABELS_IN_ROW, labels=names)


def _bars(of: Stacked, axes: Axes, answer: Comparison, cores: int | None) -> None:
    groups = [*answer.workloads, MEAN_LABEL]
    bar = 0.86 / len(answer.designs)
    # The mean is a little apart from the workloads.
    middles = [*range(len(answer.workloads)), len(answer.workloads) + 0.3]
    offsets = [(i - (len(answer.designs) - 1) / 2) * bar for i in range(len(answer.designs))]
    found = stacks(answer, of, cores)
    for index, (part, name) in enumerate(of.parts.items()):
        places, heights, bottoms = [], [], []
        for design, offset in zip(answer.designs, offsets, strict=True):
            for middle, cell in zip(middles, found[design], strict=True):
                below = [*of.parts][:index]
                places.append(middle + offset)
                heights.append(cell[part] if cell else 0.0)
                bottoms.append(sum(cell[other] for other in below) if cell else 0.0)
        if any(heights):
            axes.bar(
                places,
                heights,
                bar * 0.92,
                bottoms,
                label=name,
                color=COLOURS[index % len(COLOURS)],
                hatch=beside_colour(HATCHES, index),
                edgecolor="white",
                linewidth=0.3,
            )
    for design, offset in zip(answer.designs, offsets, strict=True):
        for middle, cell in zip(middles, found[design], strict=True):
            if cell is None:
                mark(axes, text.BLANK, middle + offset, 0.0)
    # Otherwise the line at 100 would lie on the frame where no stack is higher.
    axes.set_ylim(top=max(axes.get_ylim()[1], HIGHEST))
    axes.axhline(100, color="black", linewidth=0.8, linestyle="--", zorder=0.5)
    axes.grid(axis="y", color="0.9", linewidth=0.5)
    axes.set_axisbelow(True)
    # The name of the design in the middle is at the same place as its workload's tick.
    axes.xaxis.remove_overlapping_locs = False
    name_groups(axes, middles, groups)
    axes.tick_params(axis="x", length=0, pad=_room_for_names(answer))
    axes.set_xticks([middle + offset for middle in middles for offset in offsets], minor=True)
    look = {"rotation": 90, "fontsize": NAMES_FONT}
    axes.set_xticklabels(_names(answer) * len(middles), minor=True, **look)
    axes.tick_params(axis="x", which="minor", length=0, pad=2)
    axes.set_ylabel(f"{of.title}\n{answer.labels[answer.normalize]} = 100")
    where = comparison_text.machine_said(answer, cores)
    title = f"{where}, {text.seeds_said(answer.seeds_shown)}"
    entitle(axes, f"{title} (lower is better)")


def _names(answer: Comparison) -> list[str]:
    return [judged(answer, design) for design in answer.designs]


def _room_for_names(answer: Comparison) -> float:
    """Return the room in points for designs' names below the bars; a file may have a long name."""
    return max(NAMES_POINTS, widest(_names(answer)) * NAMES_FONT + NAMES_MARGIN)
