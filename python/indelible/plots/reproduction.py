"""The figure of a paper's claims: the published and the measured values, one claim a row.

With several values of a field each value has its marker, and an order has a row for each. Nothing
is run here. matplotlib is imported inside the functions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import cycle, product
from typing import TYPE_CHECKING, Any

from indelible.plots import COLOURS, MARKERS, WIDTH_INCHES, filled, styled
from indelible.results.reproduction import Reproduction, Reproductions

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Row = Mapping[str, Any]

#: A claim at the points: its row at each point, by the label in the legend.
Claim = Mapping[str, Row]

#: The height in inches of a claim, of one about an order, which has names beside its markers, and
#: of everything around the claims of a kind.
ROW_INCHES = 0.21
ORDER_INCHES = 0.38
AROUND_INCHES = 0.75

#: The size of the title.
NAME_FONT = 8

#: The vertical offsets of designs' names from their markers in an order, in points, used by turns
#: because neighbours are close.
NAMES_AT = (-4, 4, -10, 10)

PUBLISHED = {"color": COLOURS[5], "marker": "D", "markerfacecolor": "white"}

#: The looks of the measured values, point by point: each colour once, then with other markers.
LOOKS = [
    {"color": colour, "marker": MARKERS[(index + turn) % len(MARKERS)]}
    for turn, (index, colour) in product(range(len(MARKERS)), enumerate(COLOURS))
    if colour != PUBLISHED["color"]
]


@styled
def figure(answer: Reproduction | Reproductions) -> Figure:
    """Return a figure with the claims of each kind below each other: orders, factors, percent."""
    from matplotlib.figure import Figure

    of, varied = {"here": answer}, ""
    machine = "" if answer.used_machine is None else f", machine {answer.used_machine}"
    if isinstance(answer, Reproductions):
        of = {f"here, {' '.join(point)}": found for point, found in answer.points.items()}
        varied = f", at values of {' '.join(answer.vary)}"
        answer = answer.first
    looks = dict(zip(of, cycle(LOOKS), strict=False))
    claims = [
        dict(zip(of, rows, strict=True))
        for rows in zip(*(found.shown for found in of.values()), strict=True)
        if all(row["measured"] is not None for row in rows)
    ]
    # An order has a row for each point, since the markers would overlap in one row.
    orders = [{name: row} for rows in claims for name, row in rows.items() if not row["unit"]]
    kinds = (
        (orders, "relative to what is 1.00 (published: the order)"),
        (_of_units(claims, "x"), "factor"),
        (_of_units(claims, "%", "share"), "percent"),
    )
    shown = [(claims, label) for claims, label in kinds if claims]
    heights = [
        AROUND_INCHES + (ORDER_INCHES if claims is orders else ROW_INCHES) * len(claims)
        for claims, _ in shown
    ]
    drawing = Figure(figsize=(WIDTH_INCHES, 0.5 + sum(heights)), layout="constrained")
    grid = drawing.subplots(len(shown), 1, squeeze=False, height_ratios=heights)
    for axes, (those, label) in zip(grid[:, 0], shown, strict=True):
        for place, claim in enumerate(those):
            (_order if those is orders else _numbers)(axes, place, claim, looks)
        _frame(axes, those, label)
    _legend(drawing, looks)
    title = f"{answer.paper.title}{machine}{varied}"
    drawing.suptitle(filled(title, WIDTH_INCHES, NAME_FONT), fontsize=NAME_FONT)
    return drawing


def _of_units(claims: Sequence[Claim], *units: str) -> list[Claim]:
    return [rows for rows in claims if next(iter(rows.values()))["unit"] in units]


def _numbers(axes: Axes, place: int, claim: Claim, looks: Mapping[str, Any]) -> None:
    low, high = next(iter(claim.values()))["published_range"]
    middle = (low + high) / 2
    for name, row in claim.items():
        measured = row["measured"]
        axes.plot([middle, measured], [place, place], color="0.75", linewidth=1, zorder=1)
        axes.plot([measured], [place], linestyle="", markersize=4.5, zorder=4, **looks[name])
    axes.plot([low, high], [place, place], color=PUBLISHED["color"], linewidth=3, zorder=2)
    axes.plot([middle], [place], linestyle="", markersize=5, zorder=3, **PUBLISHED)


def _order(axes: Axes, place: int, claim: Claim, looks: Mapping[str, Any]) -> None:
    ((name, row),) = claim.items()
    for mean, offset in zip(row["measured"], cycle(NAMES_AT), strict=False):
        axes.plot([mean["value"]], [place], linestyle="", markersize=4.5, **looks[name])
        axes.annotate(
            mean["design"],
            (mean["value"], place),
            xytext=(0, offset),
            textcoords="offset points",
            ha="center",
            va="bottom" if offset > 0 else "top",
            fontsize=5.5,
        )


def _frame(axes: Axes, claims: Sequence[Claim], label: str) -> None:
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
            for row in (next(iter(claim.values())) for claim in claims)
        ],
        fontsize=6.5,
    )
    axes.set_ylim(len(claims) - 0.4, -0.6)
    axes.set_xlabel(label, fontsize=7)
    axes.grid(axis="x", color="0.9", linewidth=0.5)
    axes.tick_params(axis="y", length=0)


def _legend(drawing: Figure, looks: Mapping[str, Any]) -> None:
    from matplotlib.lines import Line2D

    handles = [Line2D([], [], linestyle="", markersize=5, label="published", **PUBLISHED)]
    handles += [
        Line2D([], [], linestyle="", markersize=4.5, label=name, **look)
        for name, look in looks.items()
    ]
    drawing.legend(handles=handles, loc="outside lower center", ncols=4, frameon=False)
