"""The figure of how busy banks and queues were: bars and dots, and no ratios."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from indelible import text
from indelible.errors import InputError
from indelible.plots import blocks, entitle, label, look_of, mark, name_groups, styled
from indelible.text import comparison as comparison_text
from indelible.usage import numbers

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from indelible.results.comparison import Comparison

PANEL_INCHES = 1.9

#: The number that the bars show, that of the dots, and the dots' label in the legend.
BUSY, TAKEN = "pm_busy_percent", "wpq_full_percent"
FULL = "write-pending queue full"


@styled
def figure(answer: Comparison) -> Figure:
    """Return a block for each number of cores: a bar for each design, a group a workload."""
    if all(numbers(answer, cell)[BUSY] is None for cell in answer.cells()):
        raise InputError("there is no figure: no run was completed")
    return blocks(answer, _bars, PANEL_INCHES, labels_in_row=5)


def _height(share: float | None) -> float:
    return math.nan if share is None else share


def _bars(axes: Axes, answer: Comparison, cores: int | None) -> None:
    bar = 0.8 / len(answer.designs)
    dots: list[tuple[float, float]] = []
    for index, design in enumerate(answer.designs):
        offset = (index - (len(answer.designs) - 1) / 2) * bar
        places = [place + offset for place in range(len(answer.workloads))]
        found = [numbers(answer, (design, workload, cores)) for workload in answer.workloads]
        banks, full = ([_height(one[name]) for one in found] for name in (BUSY, TAKEN))
        axes.bar(places, banks, bar, label=label(answer, design), **look_of(answer, design, index))
        dots += zip(places, full, strict=True)
        for place, one in zip(places, found, strict=True):
            if one[BUSY] is None:
                mark(axes, text.BLANK, place, 0.0)
    # `clip_on` is off so that dots at the ends of the axis are whole.
    look = {"s": 9, "color": "white", "edgecolor": "black", "linewidth": 0.7, "clip_on": False}
    axes.scatter(*zip(*dots, strict=True), label=FULL, zorder=3, **look)
    # At the end of a short run, the time booked for banks may exceed the run's time.
    axes.set_ylim(0, max([100, *(bar.get_height() for bar in axes.patches)]))
    axes.grid(axis="y", color="0.9", linewidth=0.5)
    axes.set_axisbelow(True)
    axes.margins(x=0.01)
    name_groups(axes, range(len(answer.workloads)), answer.workloads)
    axes.tick_params(axis="x", length=0)
    axes.set_ylabel("Banks of PM are busy\n(% of the time)")
    where = comparison_text.machine_said(answer, cores)
    entitle(axes, f"{where}, {text.seeds_said(answer.seeds_shown)}")
