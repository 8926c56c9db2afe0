"""How busy the machine was in the runs of a comparison: caches, queues, banks and buses."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from indelible.latencies import whole_runs
from indelible.means import mean_of_seeds
from indelible.metrics import METRICS, per_transaction
from indelible.results.comparison import ComparedCell, Comparison


def _percent(part: str, share: str) -> Callable[[Mapping[str, Any]], float]:
    return lambda row: 100 * row[part][share]


#: The numbers that say how busy a part of the machine was: each of a run.
NUMBERS: Mapping[str, Callable[[Mapping[str, Any]], float | None]] = {
    "flushes_per_tx": per_transaction(lambda row: row["caches"]["flushes"]),
    "fences_per_tx": per_transaction(lambda row: row["caches"]["fences"]),
    "llc_misses_per_tx": METRICS["llc-misses"].value,
    "pm_reads_per_tx": METRICS["pm-reads"].value,
    "pm_read_cycles_mean": METRICS["pm-read-latency"].value,
    "wpq_entries_mean": METRICS["wpq-entries"].value,
    "wpq_full_percent": _percent("controllers", "wpq_full_share"),
    "pm_busy_percent": METRICS["pm-busy"].value,
    "bus_busy_percent": _percent("pm_banks", "bus_share"),
}


def numbers(answer: Comparison, cell: ComparedCell) -> dict[str, float | None]:
    """Return how busy the machine was in a cell, as means over seeds; None where unknown."""
    runs = whole_runs(answer, cell)
    if runs is None:
        return dict.fromkeys(NUMBERS)
    return {name: mean_of_seeds(map(value, runs)) for name, value in NUMBERS.items()}


def rows(answer: Comparison) -> Iterator[dict[str, Any]]:
    """Return a row for each number of cores, workload and design."""
    for cores in answer.cores:
        for workload in answer.workloads:
            for design in answer.designs:
                own = {"design": design, "cores": answer.cores_used(cores), "workload": workload}
                yield own | numbers(answer, (design, workload, cores))
