"""Where core time goes: the stalls of a comparison's runs beside each other, as text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from indelible.comparison_text import judged, run_notes, titled, verdict_text
from indelible.means import mean_of_seeds
from indelible.results import Cell, Comparison
from indelible.text import (
    BLANK,
    GAP,
    durability_notes,
    fitted,
    footnote,
    interrupted,
    kept_notes,
    paragraph,
    seeds_said,
    table_line,
    terminal_width,
)

#: What core time is spent on, in the order of a stack, and how the head of a column says it.
PARTS = {
    "compute": "compute",
    "load_miss": "loads",
    "store_buffer_full": "stores",
    "fence": "fence",
    "commit_wait": "commit",
    "log_structure_full": "log",
    "lock": "lock",
    "other": "other",
}

#: A part that is nowhere as much as this has no column.
SHOWN_FROM = 0.5

MEAN = "mean"

HIDDEN = "what a core waits for behind a fence, a commit or a lock, misses too, counts as that"


def parts(answer: Comparison, cell: Cell) -> dict[str, float] | None:
    """Return the core time of a transaction by what it is spent on.

    All of the base's is 100, with the same seed; over several seeds it is the mean.
    """
    cell = answer.place(cell)
    base = answer.base(cell)
    found: dict[str, list[float]] = {name: [] for name in PARTS}
    for seed in answer.seeds_shown:
        run, other = (answer.runs.get((*place, seed)) for place in (cell, base))
        if run is None or other is None or not run.data["txs"] or not other.data["txs"]:
            return None
        whole = sum(other.data["stalls"].values()) / other.data["txs"]
        for name, cycles in run.data["stalls"].items():
            found[name].append(100 * cycles / run.data["txs"] / whole)
    return {name: mean_of_seeds(values) or 0.0 for name, values in found.items()}


def mean_parts(answer: Comparison, design: str, cores: int | None) -> dict[str, float] | None:
    """Return the arithmetic means of a design's parts over the workloads, which add up, too."""
    cells = [parts(answer, (design, workload, cores)) for workload in answer.workloads]
    whole = [cell for cell in cells if cell is not None]
    if not whole or len(whole) < len(cells):
        return None
    return {name: sum(cell[name] for cell in whole) / len(whole) for name in PARTS}


def stacks(answer: Comparison, cores: int | None) -> dict[str, list[dict[str, float] | None]]:
    """Return what each design spends its time on, on each workload and on average."""
    return {
        design: [
            *(parts(answer, (design, workload, cores)) for workload in answer.workloads),
            mean_parts(answer, design, cores),
        ]
        for design in answer.designs
    }


def rows(answer: Comparison) -> Iterator[dict[str, Any]]:
    """Return a row for each stack: the whole, and what it is made of."""
    for cores in answer.cores:
        for design, cells in stacks(answer, cores).items():
            for workload, cell in zip([*answer.workloads, MEAN], cells, strict=True):
                own = {"design": design, "cores": answer.cores_used(cores), "workload": workload}
                yield {**own, "total": cell and sum(cell.values()), "parts": cell}


def stalls(answer: Comparison, width: int | None = None) -> str:
    """Return a table for each number of cores: a row for each workload and design."""
    width = width or terminal_width()
    blocks = [_block(answer, cores, width) for cores in answer.cores]
    if answer.interrupted:
        blocks.insert(0, interrupted(answer, "runs"))
    notes = [footnote("*", HIDDEN, width)]
    notes += durability_notes(answer.designs, answer.durability, width)
    notes += run_notes(answer, width)
    return "\n\n".join([*blocks, "\n".join(notes), *kept_notes(answer.taken, width)])


def _block(answer: Comparison, cores: int | None, width: int) -> str:
    count, model = answer.cores_used(cores), answer.core_model()
    where = [
        f"machine {answer.machine}",
        *([model] if model else []),
        *([f"{count} core{'' if count == 1 else 's'}"] if count else []),
        seeds_said(answer.seeds_shown),
    ]
    base = answer.normalize
    what = f"Core time of a transaction, {base} = 100, lower is better"
    title = titled(what, " · ".join(where), width)
    found = stacks(answer, cores)
    used = [name for name in PARTS if _is_seen(found, name)]
    rows = []
    for index, workload in enumerate([*answer.workloads, MEAN]):
        for design, cells in found.items():
            cell = cells[index]
            values = [BLANK] * (1 + len(used)) if cell is None else _numbers(cell, used)
            name = workload if design == answer.designs[0] else ""
            rows.append([name, judged(answer, design), *values])
    headers = ["workload", "design", "total", *(PARTS[name] for name in used)]
    tables = _tables([headers, *rows], width)
    told = ", ".join(
        f"{judged(answer, design)} {verdict_text(answer.verdict(design, cores))}"
        for design in answer.designs
    )
    shown = "\n\n".join([title, *tables])
    return "\n".join([shown, paragraph("crash test", told, width)])


#: The columns that say whose a row is, and stand in every part of a table.
STUB = 2


def _tables(rows: Sequence[Sequence[str]], width: int) -> list[str]:
    """Return a table in as many parts as it takes for each to fit."""
    grid = [*zip(*rows, strict=True)]
    stub, numbers = grid[:STUB], {column[0]: column for column in grid[STUB:]}
    sizes = {name: max(map(len, column)) for name, column in numbers.items()}
    stubs = [max(map(len, column)) for column in stub]
    room = width - sum(stubs) - len(GAP) * (STUB - 1)
    tables = []
    for part in fitted([*numbers], sizes, room):
        spans = [*stubs, *(sizes[name] for name in part)]
        lines = zip(*stub, *(numbers[name] for name in part), strict=True)
        head, *body = (table_line(line, spans, range(STUB, len(spans))) for line in lines)
        rule = "-" * (sum(spans) + len(GAP) * (len(spans) - 1))
        tables.append("\n".join([head, rule, *body]))
    return tables


def _is_seen(found: Mapping[str, list[dict[str, float] | None]], part: str) -> bool:
    return any(cell and cell[part] >= SHOWN_FROM for cells in found.values() for cell in cells)


def _numbers(cell: Mapping[str, float], used: list[str]) -> list[str]:
    """Return the total and the parts; one that rounds to nothing is a dot."""
    shown = [f"{cell[name]:.0f}" if cell[name] >= SHOWN_FROM else "." for name in used]
    return [f"{sum(cell.values()):.0f}", *shown]
