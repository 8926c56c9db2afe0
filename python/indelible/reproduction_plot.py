"""The figure of a paper's claims: what was published beside what comes out, one claim a row.

Nothing is run here. matplotlib is imported inside the functions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import cycle
from typing import TYPE_CHECKING, Any

from indelible.plot import COLOURS, WIDTH_INCHES, styled
from indelible.reproduction import Reproduction

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Row = Mapping[str, Any]

#: Inches that a claim takes, and what stands around the claims of a kind.
ROW_INCHES = 0.21
AROUND_INCHES = 0.75

#: Where the names of the designs of an order stand, in points from their markers, by turns: their
#: neighbours are close.
NAMES_AT = (-4, 4, -10, 10)

PUBLISHED = {"color": COLOURS[5], "marker": "D", "markerfacecolor": "white"}
HERE = {"color": COLOURS[0], "marker": "o"}


@styled
def figure(answer: Reproduction) -> Figure:
    """Return the claims of each kind under each other: orders, factors, changes and shares."""
    from matplotlib.figure import Figure

    rows = [row for row in answer.rows if row["measured"] is not None]
    kinds = (
        ([row for row in rows if not row["unit"]], "times the slowest (published: the order)"),
        ([row for row in rows if row["unit"] == "x"], "factor"),
        ([row for row in rows if row["unit"] in ("%", "share")], "percent"),
    )
    shown = [(claims, label) for claims, label in kinds if claims]
    heights = [AROUND_INCHES + ROW_INCHES * len(claims) for claims, _ in shown]
    drawing = Figure(figsize=(WIDTH_INCHES, 0.5 + sum(heights)), layout="constrained")
    grid = drawing.subplots(len(shown), 1, squeeze=False, height_ratios=heights)
    for axes, (claims, label) in zip(grid[:, 0], shown, strict=True):
        for place, row in enumerate(claims):
            (_numbers if row["unit"] else _order)(axes, place, row)
        _frame(axes, claims, label)
    _legend(drawing)
    drawing.suptitle(f"{answer.paper.title}, machine {answer.paper.machine}", fontsize=8)
    return drawing


def _numbers(axes: Axes, place: int, row: Row) -> None:
    low, high = row["published_range"]
    measured = row["measured"]
    middle = (low + high) / 2
    axes.plot([middle, measured], [place, place], color="0.75", linewidth=1, zorder=1)
    axes.plot([low, high], [place, place], color=COLOURS[5], linewidth=3, zorder=2)
    axes.plot([middle], [place], linestyle="", markersize=5, zorder=3, **PUBLISHED)
    axes.plot([measured], [place], linestyle="", markersize=4.5, zorder=4, **HERE)


def _order(axes: Axes, place: int, row: Row) -> None:
    for mean, offset in zip(row["measured"], cycle(NAMES_AT), strict=False):
        axes.plot([mean["value"]], [place], linestyle="", markersize=4.5, **HERE)
        axes.annotate(
            mean["design"],
            (mean["value"], place),
            xytext=(0, offset),
            textcoords="offset points",
            ha="center",
            va="bottom" if offset > 0 else "top",
            fontsize=5.5,
        )


def _frame(axes: Axes, claims: Sequence[Row], label: str) -> None:
    percent = label == "percent"
    axes.axvline(0 if percent else 1, color="black", linewidth=0.8, linestyle="--", zorder=0.5)
    if not percent:
        from matplotlib.ticker import FixedLocator, FormatStrFormatter, NullFormatter

        axes.set_xscale("log")
        axes.xaxis.set_major_locator(FixedLocator([0.25, 0.5, 1, 2, 4, 8]))
        axes.xaxis.set_major_formatter(FormatStrFormatter("%gx"))
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.minorticks_off()
    axes.set_yticks(
        range(len(claims)),
        [
            f"{row['what']}\n{row['published']}" if not row["unit"] else row["what"]
            for row in claims
        ],
        fontsize=6.5,
    )
    axes.set_ylim(len(claims) - 0.4, -0.6)
    axes.set_xlabel(label, fontsize=7)
    axes.grid(axis="x", color="0.9", linewidth=0.5)
    axes.tick_params(axis="y", length=0)


def _legend(drawing: Figure) -> None:
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], linestyle="", markersize=5, label="published", **PUBLISHED),
        Line2D([], [], linestyle="", markersize=4.5, label="here", **HERE),
    ]
    drawing.legend(handles=handles, loc="outside lower center", ncols=2, frameon=False)
