"""The figure of memories: latency over footprint, bandwidth over cores, amplification over size.

Nothing is run here. matplotlib is imported inside the functions.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from indelible.plots import COLOURS, HEIGHT_INCHES, LINES, MARKERS, WIDTH_INCHES, styled
from indelible.probes import BYTES
from indelible.results.probe import DRAWN, Probed

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: The labels of the axes of each curve.
LABELS = {
    "latency": ("bytes that loads are drawn from", "latency of a load (ns)"),
    "bandwidth": ("cores", "bandwidth (GB/s)"),
    "amplification": ("bytes of a random store", "bytes programmed / stored"),
}

#: The labels in a row of the legend.
LABELS_IN_ROW = 6

#: The most labels of an axis of doubling values.
TICKS = 5


@styled
def figure(answer: Probed) -> Figure:
    """Return a panel for each group that was asked, with a colour for each machine."""
    from matplotlib.figure import Figure

    shown = [name for name in DRAWN if name in answer.groups]
    drawing = Figure(figsize=(WIDTH_INCHES, HEIGHT_INCHES + 0.8), layout="constrained")
    grid = drawing.subplots(1, len(shown), squeeze=False)
    lines = _lines(answer)
    for axes, curve in zip(grid[0], shown, strict=True):
        for (machine, own, series), points in lines.items():
            if own == curve:
                _line(axes, answer, machine, [*_series(lines, curve)].index(series), points)
        _frame(axes, curve, sorted({x for key, p in lines.items() if key[1] == curve for x in p}))
    _legend(drawing, answer, [*_series(lines, "bandwidth")])
    return drawing


def _lines(answer: Probed) -> dict[tuple[str, str, str], dict[int, float]]:
    """Return the points of each line by machine, curve and series."""
    found: dict[tuple[str, str, str], dict[int, float]] = {}
    for row in answer.curves():
        key = (row["machine"], row["curve"], row["series"])
        found.setdefault(key, {})[row["x"]] = row["value"]
    return found


def _series(lines: Mapping[tuple[str, str, str], Any], curve: str) -> dict[str, None]:
    return dict.fromkeys(series for _, own, series in lines if own == curve)


def _line(
    axes: Axes, answer: Probed, machine: str, series: int, points: Mapping[int, float]
) -> None:
    index = [memory.machine for memory in answer.memories].index(machine)
    axes.plot(
        [*points],
        [*points.values()],
        color=COLOURS[index % len(COLOURS)],
        marker=MARKERS[index % len(MARKERS)],
        # Lines of one kind of access share a dash, those of a machine a colour.
        linestyle=LINES[series % len(LINES)],
        linewidth=1.1,
        markersize=3,
    )


def _frame(axes: Axes, curve: str, places: list[int]) -> None:
    axes.set_xscale("log", base=2)
    step = -(-len(places) // TICKS)
    shown = places[::step]
    axes.set_xticks(shown, [_size(x) if curve == "latency" else str(x) for x in shown])
    if curve == "latency":
        from matplotlib.ticker import LogLocator

        axes.set_yscale("log")
        # A small machine's latencies lie within one decade.
        axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axes.yaxis.set_major_formatter("{x:g}")
    else:
        axes.set_ylim(bottom=0)
    axes.minorticks_off()
    axes.grid(color="0.9", linewidth=0.5)
    axes.set_xlabel(LABELS[curve][0], fontsize=7)
    axes.set_ylabel(LABELS[curve][1], fontsize=7)
    axes.tick_params(labelsize=6.5)


def _size(count: int) -> str:
    unit = next(unit for unit in reversed(BYTES) if count >= BYTES[unit])
    return f"{count // BYTES[unit]} {unit}"


def _legend(drawing: Figure, answer: Probed, series: list[str]) -> None:
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], color=COLOURS[i % len(COLOURS)], marker=MARKERS[i % len(MARKERS)], label=n)
        for i, n in enumerate(memory.machine for memory in answer.memories)
    ]
    handles += [
        Line2D([], [], color="0.3", linestyle=LINES[i % len(LINES)], label=name)
        for i, name in enumerate(series)
    ]
    columns = len(handles) if len(handles) <= LABELS_IN_ROW else len(handles) // 2
    drawing.legend(
        handles=handles, loc="outside upper center", ncols=columns, frameon=False, fontsize=6.5
    )
