"""Commit latencies as cumulative distributions: a panel for each workload."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from indelible import text
from indelible.errors import InputError
from indelible.latencies import commits, distribution, has_later, is_told
from indelible.plots import (
    COLOURS,
    LINES,
    TITLE_FONT,
    WIDTH_INCHES,
    add_legend,
    beside_colour,
    filled,
    label,
    number_decades,
    styled,
)
from indelible.text import comparison as comparison_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from indelible.results.comparison import Comparison

#: The most panels in a row, and the height of each.
PANELS_IN_ROW = 4
PANEL_INCHES = 1.6

#: Designs in a row of the legend.
LABELS_IN_ROW = 5

#: The ticks of the axis of shares. The tail matters most, so each further nine has equal room.
NINES = (0.0, 0.9, 0.99, 0.999, 0.9999)


@styled
def figure(answer: Comparison) -> Figure:
    """Return a panel for each workload and number of cores, whose vertical axis is one of nines."""
    from matplotlib.figure import Figure

    across = min(len(answer.workloads), PANELS_IN_ROW)
    down = math.ceil(len(answer.workloads) / across)
    count = down * len(answer.cores)
    size = (WIDTH_INCHES, 0.5 + PANEL_INCHES * count)
    drawing = Figure(figsize=size, layout="constrained")
    grid = drawing.subplots(count, across, squeeze=False, sharey=True)
    _number_shares(grid.flat[0], answer)
    for block, cores in enumerate(answer.cores):
        panels = grid[block * down : (block + 1) * down].flat
        for index, axes in enumerate(panels):
            if index >= len(answer.workloads):
                axes.set_visible(False)
                continue
            _panel(axes, answer, answer.workloads[index], cores)
            if index % across == 0:
                axes.set_ylabel("share of commits")
            if index + across >= len(answer.workloads):
                axes.set_xlabel("cycles")
    named = {
        label: handle
        for axes in grid.flat
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)
    }
    if not named:
        raise InputError(_refusal(answer))
    said = [f"machine {answer.machine}", *text.warmup_said(answer.warmup)]
    where = ", ".join([*said, text.seeds_said(answer.seeds_shown), "commits alone"])
    if has_later(answer):
        where += f" ({text.DAGGER} until the transaction is durable)"
    where = filled(where, WIDTH_INCHES)
    drawing.suptitle(where, fontsize=TITLE_FONT, x=0.01, ha="left", color="0.3")
    # At the top the legend and the title would overlap.
    add_legend(drawing, named, "outside lower center", LABELS_IN_ROW)
    return drawing


def _panel(axes: Axes, answer: Comparison, workload: str, cores: int | None) -> None:
    from matplotlib.ticker import EngFormatter

    drawn = _drawn(answer)
    # A design has its number in the comparison, and so the colour of other figures.
    for index, design in enumerate(answer.designs):
        steps = distribution(answer, (design, workload, cores)) if design in drawn else None
        if steps is None:
            continue
        # The curve begins at a share of 0, since no commit is faster than the first step.
        steps = [(steps[0][0], 0.0), *steps]
        axes.plot(
            [cycles for cycles, _ in steps],
            [nines(share) for _, share in steps],
            drawstyle="steps-post",
            color=COLOURS[index % len(COLOURS)],
            linestyle=beside_colour(LINES, index),
            linewidth=1.2,
            label=label(answer, design),
        )
    axes.set_xscale("log")
    number_decades(axes.xaxis, EngFormatter(sep=""))
    axes.grid(color="0.9", linewidth=0.5)
    axes.set_axisbelow(True)
    title = comparison_text.with_cores(workload, answer, cores)
    axes.set_title(title, fontsize=7, loc="left", color="0.3")


def _number_shares(axes: Axes, answer: Comparison) -> None:
    """Give the axis that all panels share as many nines as the fewest commits can show."""
    cells = [cell for cell in answer.cells() if cell[0] in _drawn(answer)]
    fewest = min((count for count in (commits(answer, cell) for cell in cells) if count), default=1)
    told = [share for share in NINES if is_told(share, fewest)]
    axes.set_ylim(0, max(nines(told[-1]), 1.0) * 1.08)
    axes.set_yticks([nines(share) for share in told], [f"{100 * share:g} %" for share in told])


def _refusal(answer: Comparison) -> str:
    """Return the sentence that says why there is no figure."""
    runs = [run.data["commit_latency_cycles"] for run in answer.runs.values()]
    if any("distribution" in latency for latency in runs):
        return "there is no figure of latencies: no transaction was durable when the runs ended"
    return "there is no figure of latencies; compare with latencies=True, or --latencies"


def _drawn(answer: Comparison) -> list[str]:
    """Return the designs that make something durable, or all if none does.

    Commits of the others take no time, and would only make the axis longer.
    """
    durable = [design for design in answer.designs if answer.durability.get(design) != "none"]
    return durable or [*answer.designs]


def nines(share: float) -> float:
    """Return how many nines a share of commits has: one for 90 %, two for 99 %."""
    return -math.log10(max(1 - share, 1e-9))
