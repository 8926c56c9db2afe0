"""How busy machines were, as text: the table of a comparison, and the lines on one run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from indelible.results.comparison import ComparedCell, Comparison
from indelible.text import BLANK, Note, ratio
from indelible.text.comparison import Grid, cell_grid
from indelible.usage import numbers

TITLE = "How busy the machine was"
NOTES = {
    "counts": "flush, fence, miss (last level), reads (of PM): number per transaction",
    "cycles": "of a read of PM, from its request at the controller until the answer leaves",
    "WPQ": "entries used of each write-pending queue{sizes}; full: % of the time that it is full",
    "banks, bus": "% of the time that those of PM are busy",
}


def _whole(value: float) -> str:
    return f"{value:,.0f}"


def _entries(value: float) -> str:
    """Return a number of queue entries, with a digit if small, since some queues have four."""
    return f"{value:.1f}" if value < 10 else _whole(value)


#: The columns of a comparison's table: the head of each, and how its numbers are written.
COLUMNS: Mapping[str, tuple[str, Callable[[float], str]]] = {
    "flushes_per_tx": ("flush", ratio),
    "fences_per_tx": ("fence", ratio),
    "llc_misses_per_tx": ("miss", ratio),
    "pm_reads_per_tx": ("reads", ratio),
    "pm_read_cycles_mean": ("cycles", _whole),
    "wpq_entries_mean": ("WPQ", _entries),
    "wpq_full_percent": ("full", _whole),
    "pm_busy_percent": ("banks", _whole),
    "bus_busy_percent": ("bus", _whole),
}


def notes(answer: Comparison) -> list[Note]:
    """Return the notes that explain the columns."""
    sizes = {run.data["controllers"]["wpq_size"] for run in answer.runs.values()}
    said = ", which has " + " or ".join(map(str, sorted(sizes))) if sizes else ""
    told = {label: body.format(sizes=said) for label, body in NOTES.items()}
    if len(answer.seeds_shown) > 1:
        told["seeds"] = "each number is the mean over the seeds"
    return [*told.items()]


def grid(answer: Comparison, cores: int | None) -> Grid:
    """Return a row for each workload and design."""

    def said(cell: ComparedCell) -> list[str]:
        found = numbers(answer, cell)
        return [
            BLANK if value is None else COLUMNS[name][1](value) for name, value in found.items()
        ]

    return cell_grid(answer, cores, [head for head, _ in COLUMNS.values()], said)


# One run.


def caches(row: Mapping[str, Any]) -> str | None:
    """Return the share of accesses that each level of the caches could not serve, in percent."""
    caches = row["caches"]
    walks = caches["page_walks"]
    accesses = caches["loads"] + caches["stores"] + walks
    if not accesses:
        return None
    levels = {"first level": "l1d", "second": "l2", "last": "llc"}
    shares = (
        f"{what} {percent(caches[f'{name}_misses'], accesses)}" for what, name in levels.items()
    )
    others = caches["from_other_cores"]
    shared = f"; {percent(others, accesses)} from other cores" if others else ""
    what = "loads, stores and page walks" if walks else "loads and stores"
    return f"misses: {', '.join(shares)} of {accesses:,} {what}{shared}"


def last_level(row: Mapping[str, Any]) -> str:
    """Return how much of the last level was dirty, which in a short run still grows."""
    start, end = (row["caches"][f"llc_dirty_share_at_{when}"] for when in ("start", "end"))
    return f"{percent(start)} of its lines dirty at the start, {percent(end)} at the end"


def ordering(row: Mapping[str, Any], count: float) -> str | None:
    """Return how many flushes and fences transactions have, if they have any."""
    caches = row["caches"]
    kinds = [kind for kind in ("flushes", "fences") if caches[kind]]
    if not kinds or not count:
        return None
    return " and ".join(f"{caches[kind] / count:.2f} {kind}" for kind in kinds) + " a transaction"


def queue(row: Mapping[str, Any]) -> str:
    """Return how full a write-pending queue was, and how much waited for it."""
    controllers = row["controllers"]
    full, waits = controllers["wpq_full_share"], controllers["write_wait_cycles"]
    said = [
        f"{controllers['wpq_entries_mean']:.1f} of {controllers['wpq_size']} entries taken"
        f" (at most {controllers['wpq_entries_max']})"
    ]
    if full:
        said.append(f"full {percent(full)} of the time")
    if waits["count"]:
        said.append(f"{waits['count']:,} writes waited, {_cycles(waits)}")
    return "; ".join(said)


def reads(row: Mapping[str, Any], kind: str) -> str | None:
    """Return how long reads of `pm` or `dram` took, and how many had their row open."""
    times, banks = row["controllers"][f"{kind}_read_cycles"], row[f"{kind}_banks"]
    if not times["count"]:
        return None
    rows = banks["row_hits"], banks["reads"]
    return _cycles(times) + (f"; row open {percent(*rows)}" if banks["reads"] else "")


def banks(row: Mapping[str, Any], kind: str) -> str:
    """Return how busy the banks and the bus of `pm` or `dram` were."""
    banks = row[f"{kind}_banks"]
    return (
        f"busy {percent(banks['busy_share'])} of the time (the busiest"
        f" {percent(banks['busiest_share'])}), the bus {percent(banks['bus_share'])}"
    )


def percent(part: float, whole: float = 1) -> str:
    """Return a share in percent, with three digits."""
    value = 100 * part / whole
    decimals = 0 if value >= 99.95 or not value else 1 if value >= 10 else 2
    return f"{value:.{decimals}f} %"


def _cycles(times: Mapping[str, Any]) -> str:
    return f"{times['mean']:,.0f} cycles on average (at most {times['max']:,})"
