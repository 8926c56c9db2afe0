"""The figures of the paper with this computer's values, and the entries between the paper's.

Nothing is measured here. matplotlib is imported inside the functions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from indelible.native import CACHED, PUBLISHED, SOURCES, UNCACHEABLE, Measurements
from indelible.plots import COLOURS, HATCHES, MARKERS, WIDTH_INCHES, number_decades, styled

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@styled
def figure(measured: Measurements) -> Figure:
    """Return the paper's Figures 2 and 3, and the sweep over the entries of a fence."""
    from matplotlib.figure import Figure

    drawing = Figure(figsize=(WIDTH_INCHES, 5.0), layout="constrained")
    grid = drawing.add_gridspec(2, 2, height_ratios=(1, 1.15))
    _misses(drawing.add_subplot(grid[0, 0]), measured)
    _speedups(drawing.add_subplot(grid[0, 1]), measured)
    _sweep(drawing.add_subplot(grid[1, :]), measured)
    computer = measured.data["computer"]
    drawing.suptitle(
        f"{computer['processor']}, TSC {computer['tsc_hz'] / 1e9:.2f} GHz;"
        " published: Core i7, 3.4 GHz, 8 MB L3",
        fontsize=7,
        color="0.3",
    )
    return drawing


def _misses(axes: Axes, measured: Measurements) -> None:
    """Draw the paper's Figure 2, whose values are not printed: miss rate and time of two logs."""
    rows = {
        row["variant"]: row
        for row in reversed(measured.rows)
        if row["entries_per_fence"] == 1
        and row["variant"] in (CACHED, UNCACHEABLE)
        and (row["value"], row["fence"]) == ("xorshift", "sfence")
    }
    shown = [variant for variant in (CACHED, UNCACHEABLE) if variant in rows]
    counted = all(not isinstance(rows[name]["llc_miss_rate"], str) for name in shown)
    key = "llc_miss_rate" if counted else "modelled_llc_miss_rate_8mib"
    heights = [100 * rows[name][key] for name in shown]
    bars = axes.bar(range(len(shown)), heights, 0.5, color=COLOURS[4], edgecolor="black", lw=0.5)
    axes.bar_label(bars, [f"{height:.0f} %" for height in heights], fontsize=6)
    axes.set_xticks(range(len(shown)), [f"{name} log" for name in shown])
    axes.set_ylim(0, 118)
    axes.set_xlim(-0.6, len(shown) - 0.4)
    how = "counted" if counted else "modelled, 8 MiB LLC"
    axes.set_ylabel(f"LLC miss rate, %\n({how})")
    times = axes.twinx()
    values = [rows[name]["cycles_per_entry"] for name in shown]
    times.plot(range(len(shown)), values, color=COLOURS[5], marker="o", markersize=4)
    for place, value in enumerate(values):
        times.annotate(
            f"{value:,.0f}",
            (place, value),
            xytext=(6, 0),
            textcoords="offset points",
            fontsize=6,
            color=COLOURS[5],
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.5},
        )
    times.set_yscale("log")
    times.set_ylim(1, 10_000)
    _number(times)
    times.spines["right"].set_visible(True)
    times.set_ylabel("cycles an entry (line)", color=COLOURS[5])
    axes.set_title("as Figure 2: misses and time, 1 entry a fence", fontsize=7, loc="left")


def _speedups(axes: Axes, measured: Measurements) -> None:
    """Draw the speed of the cached log over the uncacheable one, for each source of values."""
    series: dict[str, dict[int, float | None]] = {"published": dict(PUBLISHED)}
    for value in SOURCES:
        ratios = {
            entries: measured.ratio(UNCACHEABLE, CACHED, entries, value) for entries in PUBLISHED
        }
        if any(ratios.values()):
            series[f"here, {value}"] = ratios
    width = 0.8 / len(series)
    for index, (label, ratios) in enumerate(series.items()):
        offset = (index - (len(series) - 1) / 2) * width
        heights = [ratios[entries] or 0.0 for entries in PUBLISHED]
        bars = axes.bar(
            [place + offset for place in range(len(PUBLISHED))],
            heights,
            width,
            label=label,
            facecolor=COLOURS[index],
            edgecolor="black",
            linewidth=0.5,
            hatch=HATCHES[index],
        )
        axes.bar_label(bars, [f"{height:.3g}" if height else "" for height in heights], fontsize=6)
    axes.set_yscale("log")
    axes.set_ylim(1, 4000)
    _number(axes)
    axes.set_xticks(
        range(len(PUBLISHED)), ["partial writes\n(1 entry)", "full writes\n(8 entries)"]
    )
    axes.set_ylabel(f"{UNCACHEABLE} over {CACHED}, time")
    axes.legend(fontsize=6, frameon=False, ncols=2, loc="upper center", columnspacing=1.0)
    axes.set_title("as Figure 3: the gap, by where values come from", fontsize=7, loc="left")


def _sweep(axes: Axes, measured: Measurements) -> None:
    """Draw every variant over the entries before a fence."""
    lines: dict[str, dict[int, float]] = {}
    durable: dict[str, bool] = {}
    for row in measured.rows:
        if (row["value"], row["fence"]) == ("xorshift", "sfence"):
            line = lines.setdefault(row["variant"], {})
            line.setdefault(row["entries_per_fence"], row["cycles_per_entry"])
            durable[row["variant"]] = row["guarantee"].startswith("durable")
    for index, (variant, line) in enumerate(lines.items()):
        counts = sorted(line)
        axes.plot(
            counts,
            [line[count] for count in counts],
            color=COLOURS[index % len(COLOURS)],
            marker=MARKERS[index % len(MARKERS)],
            markersize=4,
            linewidth=1,
            linestyle="-" if durable[variant] else ":",
            label=variant if durable[variant] else f"{variant} (not durable)",
        )
    counts = sorted({count for line in lines.values() for count in line})
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xticks(counts, [str(count) for count in counts])
    axes.minorticks_off()
    _number(axes)
    axes.set_xlabel("entries before a fence")
    axes.set_ylabel("cycles an entry")
    axes.grid(axis="y", color="0.9", linewidth=0.5)
    axes.legend(fontsize=6, frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))


def _number(axes: Axes) -> None:
    """Give a logarithmic axis numbers and no powers of ten, which would be formulas."""
    from matplotlib.ticker import StrMethodFormatter

    number_decades(axes.yaxis, StrMethodFormatter("{x:,.0f}"))
