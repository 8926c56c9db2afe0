"""Bars of a comparison, relative to one of its designs.

matplotlib is imported inside the functions: it takes longer than `--help`.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from indelible import text
from indelible.means import reaches
from indelible.metrics import METRICS
from indelible.plots import (
    HEIGHT_INCHES,
    INTERVAL_LOOK,
    MARK_FONT,
    blocks,
    entitle,
    label,
    look_of,
    mark,
    name_groups,
    require_ratios,
    room_of,
    styled,
    widest,
)
from indelible.results.comparison import Comparison
from indelible.text.comparison import machine_said

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: The most bars in a block for which each has its value on it.
BARS_WITH_VALUES = 25

#: The most bars side by side for which these values are not turned upright.
BARS_ABREAST = 4


@styled
def figure(answer: Comparison) -> Figure:
    """Return grouped bars, a block for each number of cores, the geometric mean at the right."""
    require_ratios(answer, answer.normalize)
    return blocks(answer, _bars, HEIGHT_INCHES, labels_in_row=5)


def _bars(axes: Axes, answer: Comparison, cores: int | None) -> None:
    groups = [*answer.workloads, "gmean"]
    bar = 0.8 / len(answer.designs)
    # The mean is a little apart from the workloads.
    places = [*range(len(answer.workloads)), len(answer.workloads) + 0.3]
    # Side by side, the labels of many narrow bars would overlap.
    room = room_of(axes, len(groups)) * bar / MARK_FONT
    upright = len(answer.designs) > BARS_ABREAST or widest([text.ratio(1)]) > room
    roomy = len(answer.designs) * len(groups) <= BARS_WITH_VALUES
    for index, design in enumerate(answer.designs):
        ratios = [answer.ratio((design, workload, cores)) for workload in answer.workloads]
        ratios.append(answer.gmean(design, cores))
        sides = _sides(answer, design, cores)
        offset = (index - (len(answer.designs) - 1) / 2) * bar
        container = axes.bar(
            [place + offset for place in places],
            [math.nan if ratio is None else ratio for ratio in ratios],
            bar,
            label=label(answer, design),
            **({"yerr": sides, "error_kw": INTERVAL_LOOK} if any(map(any, sides)) else {}),
            **look_of(answer, design, index),
        )
        # With few bars there is room for every value, with many only for those of the means.
        tops = [*zip(container.patches, ratios, sides[1], strict=True)]
        # Of the base it would be 1.00 everywhere.
        is_told = design != answer.normalize and roomy
        has_value = [is_told] * len(answer.workloads) + [room >= 1]
        for (patch, ratio, reach), has in zip(tops, has_value, strict=True):
            middle = patch.get_x() + patch.get_width() / 2
            if ratio is None:
                mark(axes, text.BLANK, middle, 0.0)
            elif has and ratio:
                mark(axes, text.ratio(ratio), middle, ratio + reach, upright)
    axes.axhline(1.0, color="black", linewidth=0.8, linestyle="--", zorder=0.5)
    axes.grid(axis="y", color="0.9", linewidth=0.5)
    axes.set_axisbelow(True)
    axes.margins(x=0.01)
    name_groups(axes, places, groups)
    axes.tick_params(axis="x", length=0)
    metric = METRICS[answer.metric]
    axes.set_ylabel(f"{metric.title}\nrelative to {answer.labels[answer.normalize]}")
    seeds = answer.seeds_shown
    sure = f"95 % intervals over {text.seeds_said(seeds)}" if len(seeds) > 1 else None
    notes = ", ".join(filter(None, (metric.better, sure)))
    where = machine_said(answer, cores)
    title = f"{where} ({notes})" if notes else where
    entitle(axes, title)


def _sides(answer: Comparison, design: str, cores: int | None) -> list[tuple[float, ...]]:
    """Return how far the confidence intervals of a design's bars go down, and how far up."""
    cells = [(design, workload, cores) for workload in answer.workloads]
    found = [reaches(answer.ratio(cell), answer.ratio_half_width(cell)) for cell in cells]
    mean = answer.gmean(design, cores), answer.gmean_half_width(design, cores)
    return [*zip(*found, reaches(*mean), strict=True)]
