"""How busy the machine was in the runs of a comparison: caches, queues, banks and buses."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from indelible.latencies import whole_runs
from indelible.means import mean_of_seeds
from indelible.metrics import METRICS, per_transaction
from indelible.results.comparison import Cell, Comparison
from indelible.text import BLANK, Note, ratio
from indelible.text.comparison import Grid, cell_grid


@dataclass(frozen=True)
class Number:
    """A number that says how busy a part of the machine was."""

    #: The head of its column.
    head: str
    #: Returns the number of a run, or None where the run does not have it.
    value: Callable[[Mapping[str, Any]], float | None]
    said: Callable[[float], str] = ratio


def _whole(value: float) -> str:
    return f"{value:,.0f}"


def _entries(value: float) -> str:
    """Return a number of queue entries, with a digit if small, since some queues have four."""
    return f"{value:.1f}" if value < 10 else _whole(value)


def _percent(part: str, share: str) -> Callable[[Mapping[str, Any]], float]:
    return lambda row: 100 * row[part][share]


NUMBERS = {
    "flushes_per_tx": Number("flush", per_transaction(lambda row: row["caches"]["flushes"])),
    "fences_per_tx": Number("fence", per_transaction(lambda row: row["caches"]["fences"])),
    "llc_misses_per_tx": Number("miss", METRICS["llc-misses"].value),
    "pm_reads_per_tx": Number("reads", METRICS["pm-reads"].value),
    "pm_read_cycles_mean": Number("cycles", METRICS["pm-read-latency"].value, _whole),
    "wpq_entries_mean": Number("WPQ", METRICS["wpq-entries"].value, _entries),
    "wpq_full_percent": Number("full", _percent("controllers", "wpq_full_share"), _whole),
    "pm_busy_percent": Number("banks", METRICS["pm-busy"].value, _whole),
    "bus_busy_percent": Number("bus", _percent("pm_banks", "bus_share"), _whole),
}

TITLE = "How busy the machine was"
NOTES = {
    "counts": "flush, fence, miss (last level), reads (of PM): number per transaction",
    "cycles": "of a read of PM, from its request at the controller until the answer leaves",
    "WPQ": "entries used of each write-pending queue{sizes}; full: % of the time that it is full",
    "banks, bus": "% of the time that those of PM are busy",
}


def numbers(answer: Comparison, cell: Cell) -> dict[str, float | None]:
    """Return how busy the machine was in a cell, as means over seeds; None where unknown."""
    runs = whole_runs(answer, cell)
    if runs is None:
        return dict.fromkeys(NUMBERS)
    return {name: mean_of_seeds(map(one.value, runs)) for name, one in NUMBERS.items()}


def rows(answer: Comparison) -> Iterator[dict[str, Any]]:
    """Return a row for each number of cores, workload and design."""
    for cores in answer.cores:
        for workload in answer.workloads:
            for design in answer.designs:
                own = {"design": design, "cores": answer.cores_used(cores), "workload": workload}
                yield own | numbers(answer, (design, workload, cores))


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

    def said(cell: Cell) -> list[str]:
        found = numbers(answer, cell)
        return [
            BLANK if value is None else NUMBERS[name].said(value) for name, value in found.items()
        ]

    return cell_grid(answer, cores, [number.head for number in NUMBERS.values()], said)
