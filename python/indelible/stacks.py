"""The stacks of transactions in a comparison: their core time or their writes, by part."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from indelible.means import mean_of_seeds
from indelible.metrics import transactions
from indelible.results.comparison import ComparedCell, Comparison
from indelible.results.run import Run


@dataclass(frozen=True)
class Stacked:
    """The quantity that a stack divides, and its parts."""

    #: The quantity, for a title.
    title: str
    #: Returns the amounts of a run by part.
    amounts: Callable[[Mapping[str, Any]], Mapping[str, float]]
    #: The parts in the order of a stack, and the head of the column of each.
    parts: Mapping[str, str]
    #: The note about the parts.
    note: str
    #: The unit of the amounts.
    unit: str


STALLS = Stacked(
    "Core time of a transaction",
    lambda row: row["stalls"],
    {
        "compute": "compute",
        "load_miss": "loads",
        "store_buffer_full": "stores",
        "fence": "fence",
        "commit_wait": "commit",
        "log_structure_full": "log",
        "lock": "lock",
        "other": "other",
    },
    "misses that a core waits for behind a fence, a commit or a lock count as that wait",
    "cycles",
)

WRITES = Stacked(
    "PM writes of a transaction",
    lambda row: row["pm_writes"]["by_class"],
    {
        "data": "data",
        "home_write_back": "evicted",
        "log": "log",
        "commit": "commit",
        "metadata": "metadata",
        "consolidation": "consolidation",
        "copy_on_write": "copies",
        "checkpoint": "checkpoint",
        "garbage_collection": "collection",
    },
    "bytes that the write-pending queues accepted; commit: records and marks of commits; evicted:"
    " lines that left the caches by themselves. Dirty lines still in the caches at the end are not"
    " counted, so longer runs show more of them",
    "B",
)

#: The name of the stacks of means.
MEAN = "mean"


def parts(answer: Comparison, of: Stacked, cell: ComparedCell) -> dict[str, float] | None:
    """Return the parts of a transaction's stack; the total of the base with that seed is 100.

    Over several seeds each part is the mean.
    """
    cell = answer.place(cell)
    base = answer.base(cell)
    found: dict[str, list[float]] = {name: [] for name in of.parts}
    for seed in answer.seeds_shown:
        run, other = (answer.runs.get((*place, seed)) for place in (cell, base))
        whole = other and sum(per_transaction(other, of).values())
        if run is None or not whole or not transactions(run.data):
            return None
        for name, amount in per_transaction(run, of).items():
            found[name].append(100 * amount / whole)
    return {name: mean_of_seeds(values) or 0.0 for name, values in found.items()}


def per_transaction(run: Run, of: Stacked) -> dict[str, float]:
    """Return the amount of each part for a committed transaction of a run."""
    count = transactions(run.data)
    return {name: amount / count if count else 0.0 for name, amount in of.amounts(run.data).items()}


def mean_parts(
    answer: Comparison, of: Stacked, design: str, cores: int | None
) -> dict[str, float] | None:
    """Return the arithmetic means of a design's parts over the workloads, which add up, too."""
    cells = [parts(answer, of, (design, workload, cores)) for workload in answer.workloads]
    whole = [cell for cell in cells if cell is not None]
    if not whole or len(whole) < len(cells):
        return None
    return {name: sum(cell[name] for cell in whole) / len(whole) for name in of.parts}


def stacks(
    answer: Comparison, of: Stacked, cores: int | None
) -> dict[str, list[dict[str, float] | None]]:
    """Return the stacks of each design, on each workload and on average."""
    return {
        design: [
            *(parts(answer, of, (design, workload, cores)) for workload in answer.workloads),
            mean_parts(answer, of, design, cores),
        ]
        for design in answer.designs
    }


def rows(answer: Comparison, of: Stacked) -> Iterator[dict[str, Any]]:
    """Return a row for each stack: the total, and the parts, in percent of the base's total."""
    of_base = {"unit": "percent", "relative_to": answer.normalize}
    for cores in answer.cores:
        for design, cells in stacks(answer, of, cores).items():
            for workload, cell in zip([*answer.workloads, MEAN], cells, strict=True):
                own = {"design": design, "cores": answer.cores_used(cores), "workload": workload}
                total = cell and sum(cell.values())
                yield {**own, "total": total, "parts": cell, **of_base}
