"""The stacks of transactions in a comparison, as a table of text."""

from __future__ import annotations

from collections.abc import Mapping

from indelible.means import mean_of_seeds
from indelible.results.comparison import ComparedCell, Comparison
from indelible.stacks import MEAN, Stacked, per_transaction, stacks
from indelible.text import BLANK, Note, quantity
from indelible.text.comparison import Grid, zero_note
from indelible.text.verdicts import judged

#: The least amount for which a part gets a column.
SHOWN_FROM = 0.5

#: The label of the row of means in a table.
MEAN_LABEL = "arith. mean"
MEAN_NOTE = (
    "means are arithmetic, so that parts add up, and depend on which design is 100; --metric shows"
    " geometric means of ratios"
)


def notes(answer: Comparison, of: Stacked) -> list[Note]:
    """Return the notes below a table of stacks."""
    told = [("*", of.note)]
    if len(answer.workloads) > 1:
        told.append(("*", MEAN_NOTE))
    bases = {(*answer.base(cell), seed) for cell in answer.cells() for seed in answer.seeds_shown}
    runs = [run for base in bases if (run := answer.runs.get(base)) is not None]
    if any(not any(per_transaction(run, of).values()) for run in runs):
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


def _whole(answer: Comparison, of: Stacked, cell: ComparedCell) -> str:
    """Return the total of a transaction's stack in its own unit, as text."""
    place = answer.place(cell)
    runs = [answer.runs.get((*place, seed)) for seed in answer.seeds_shown]
    mean = mean_of_seeds(
        None if run is None else sum(per_transaction(run, of).values()) for run in runs
    )
    return BLANK if mean is None else _amount(mean, of)


def _amount(value: float, of: Stacked) -> str:
    """Return a total in its own unit, as text."""
    return quantity(value, "B") if of.unit == "B" else f"{value:,.0f} {of.unit}"


def _is_seen(found: Mapping[str, list[dict[str, float] | None]], part: str) -> bool:
    return any(cell and cell[part] >= SHOWN_FROM for cells in found.values() for cell in cells)


def _numbers(cell: Mapping[str, float], used: list[str]) -> list[str]:
    """Return the total and the parts; a part that rounds to 0 is a dot."""
    shown = [f"{cell[name]:.0f}" if cell[name] >= SHOWN_FROM else "." for name in used]
    return [f"{sum(cell.values()):.0f}", *shown]
