"""The stacks of transactions in a comparison, as text: their core time or their writes, by part."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from indelible.means import mean_of_seeds
from indelible.metrics import transactions
from indelible.results.comparison import Cell, Comparison
from indelible.results.run import Run
from indelible.text import BLANK, Note, quantity
from indelible.text.comparison import Grid, judged, zero_note


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
    #: Returns the total of a stack in its own unit, as text.
    said: Callable[[float], str]


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
    "{:,.0f} cycles".format,
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
    partial(quantity, unit="B"),
)

#: The least amount for which a part gets a column.
SHOWN_FROM = 0.5

MEAN = "mean"

#: The label of the row of means in a table.
MEAN_LABEL = "arith. mean"
MEAN_NOTE = (
    "means are arithmetic, so that parts add up, and depend on which design is 100; --metric shows"
    " geometric means of ratios"
)


def parts(answer: Comparison, of: Stacked, cell: Cell) -> dict[str, float] | None:
    """Return the parts of a transaction's stack; the total of the base with that seed is 100.

    Over several seeds each part is the mean.
    """
    cell = answer.place(cell)
    base = answer.base(cell)
    found: dict[str, list[float]] = {name: [] for name in of.parts}
    for seed in answer.seeds_shown:
        run, other = (answer.runs.get((*place, seed)) for place in (cell, base))
        whole = other and sum(_each(other, of).values())
        if run is None or not whole or not transactions(run.data):
            return None
        for name, amount in _each(run, of).items():
            found[name].append(100 * amount / whole)
    return {name: mean_of_seeds(values) or 0.0 for name, values in found.items()}


def _each(run: Run, of: Stacked) -> dict[str, float]:
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
    """Return a row for each stack: the total, and the parts."""
    for cores in answer.cores:
        for design, cells in stacks(answer, of, cores).items():
            for workload, cell in zip([*answer.workloads, MEAN], cells, strict=True):
                own = {"design": design, "cores": answer.cores_used(cores), "workload": workload}
                yield {**own, "total": cell and sum(cell.values()), "parts": cell}


def notes(answer: Comparison, of: Stacked) -> list[Note]:
    """Return the notes below a table of stacks."""
    told = [("*", of.note)]
    if len(answer.workloads) > 1:
        told.append(("*", MEAN_NOTE))
    bases = {(*answer.base(cell), seed) for cell in answer.cells() for seed in answer.seeds_shown}
    runs = [run for base in bases if (run := answer.runs.get(base)) is not None]
    if any(not any(_each(run, of).values()) for run in runs):
        told.append((BLANK, zero_note(answer)))
    return told


def title(answer: Comparison, of: Stacked) -> str:
    """Return the title of stacks: the quantity, and the design whose total is 100."""
    return f"{of.title}, {answer.labels[answer.normalize]} = 100, lower is better"


def grid(answer: Comparison, cores: int | None, of: Stacked) -> Grid:
    """Return a row for each workload and design, and after those the means of designs."""
    found = stacks(answer, of, cores)
    used = [name for name in of.parts if _is_seen(found, name)]
    lines = []
    for index, workload in enumerate([*answer.workloads, MEAN]):
        if workload == MEAN and len(answer.workloads) == 1:
            break
        for design, cells in found.items():
            cell = cells[index]
            values = [BLANK] * (1 + len(used)) if cell is None else _numbers(cell, used)
            name = MEAN_LABEL if workload == MEAN else workload
            whole = "" if workload == MEAN else _whole(answer, of, (design, workload, cores))
            lines.append([name, judged(answer, design), *values, whole])
    heads = ["workload", "design", "total", *(of.parts[name] for name in used), "transaction"]
    return [heads, *lines]


def _whole(answer: Comparison, of: Stacked, cell: Cell) -> str:
    """Return the total of a transaction's stack in its own unit, as text."""
    place = answer.place(cell)
    runs = [answer.runs.get((*place, seed)) for seed in answer.seeds_shown]
    mean = mean_of_seeds(None if run is None else sum(_each(run, of).values()) for run in runs)
    return BLANK if mean is None else of.said(mean)


def _is_seen(found: Mapping[str, list[dict[str, float] | None]], part: str) -> bool:
    return any(cell and cell[part] >= SHOWN_FROM for cells in found.values() for cell in cells)


def _numbers(cell: Mapping[str, float], used: list[str]) -> list[str]:
    """Return the total and the parts; a part that rounds to 0 is a dot."""
    shown = [f"{cell[name]:.0f}" if cell[name] >= SHOWN_FROM else "." for name in used]
    return [f"{sum(cell.values()):.0f}", *shown]
