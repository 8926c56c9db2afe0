"""Where core time goes as stacked bars: a stack for each design and workload."""

from __future__ import annotations

from typing import TYPE_CHECKING

from indelible import comparison_text, text
from indelible.plot import COLOURS, HATCHES, HEIGHT_INCHES, blocks, mark, styled
from indelible.stalls import MEAN, PARTS, stacks

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from indelible.results import Comparison

#: Room for the names of designs below their bars, in inches and in points.
NAMES_INCHES = 0.6
NAMES_POINTS = 34
#: How far the axis goes at least: a little beyond the time of the design that is 100.
HIGHEST = 104


@styled
def figure(answer: Comparison) -> Figure:
    """Return stacked bars, a block for each number of cores, the mean at the right."""
    return blocks(
        answer,
        _bars,
        HEIGHT_INCHES + NAMES_INCHES,
        labels_in_row=len(PARTS),
        labels=[*PARTS.values()],
    )


def _bars(axes: Axes, answer: Comparison, cores: int | None) -> None:
    groups = [*answer.workloads, MEAN]
    bar = 0.86 / len(answer.designs)
    # The mean stands a little apart from what it is the mean of.
    middles = [*range(len(answer.workloads)), len(answer.workloads) + 0.3]
    offsets = [(i - (len(answer.designs) - 1) / 2) * bar for i in range(len(answer.designs))]
    found = stacks(answer, cores)
    for index, (part, name) in enumerate(PARTS.items()):
        places, heights, bottoms = [], [], []
        for design, offset in zip(answer.designs, offsets, strict=True):
            for middle, cell in zip(middles, found[design], strict=True):
                below = [*PARTS][:index]
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
                color=COLOURS[index],
                hatch=HATCHES[index],
                edgecolor="white",
                linewidth=0.3,
            )
    for design, offset in zip(answer.designs, offsets, strict=True):
        for middle, cell in zip(middles, found[design], strict=True):
            if cell is None:
                mark(axes, text.BLANK, middle + offset, 0.0)
    # The line at 100 is not to lie half on the frame, where no stack is higher.
    axes.set_ylim(top=max(axes.get_ylim()[1], HIGHEST))
    axes.axhline(100, color="black", linewidth=0.8, linestyle="--", zorder=0.5)
    axes.grid(axis="y", color="0.9", linewidth=0.5)
    axes.set_axisbelow(True)
    # The name of a design in the middle stands where its workload's tick is.
    axes.xaxis.remove_overlapping_locs = False
    axes.set_xticks(middles, groups)
    axes.tick_params(axis="x", length=0, pad=NAMES_POINTS)
    axes.set_xticks([middle + offset for middle in middles for offset in offsets], minor=True)
    names = [comparison_text.judged(answer, design) for design in answer.designs]
    axes.set_xticklabels(names * len(middles), minor=True, rotation=90, fontsize=5)
    axes.tick_params(axis="x", which="minor", length=0, pad=2)
    axes.set_ylabel(f"core time of a transaction\n{answer.normalize} = 100")
    count = answer.cores_used(cores)
    number = f", {count} core{'' if count == 1 else 's'}" if count else ""
    title = f"machine {answer.machine}{number}, {text.seeds_said(answer.seeds_shown)}"
    axes.set_title(f"{title} (lower is better)", fontsize=7, loc="left", color="0.3")
