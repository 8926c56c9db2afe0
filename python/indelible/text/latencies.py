"""How long commits of a comparison take, as a table of text."""

from __future__ import annotations

from indelible.latencies import NUMBERS, SHARES, commits, distribution, has_later, is_told, numbers
from indelible.results.comparison import ComparedCell, Comparison
from indelible.text import BLANK, Note
from indelible.text.comparison import Grid, cell_grid

TITLE = "Cycles of a transaction, and of its commit"
NOTE = (
    "from the start of a commit to its acknowledgement; what a design waits for earlier, as an undo"
    " log does at its stores, counts only in a transaction's core time"
)
LATER = "the design acknowledges earlier: until the transaction is durable"
SEEDS_NOTE = "with several seeds: means of each seed's percentiles, and the slowest commit of all"


def notes(answer: Comparison) -> list[Note]:
    """Return the notes below a table of latencies."""
    said = [NOTE, LATER] if has_later(answer) else [NOTE]
    if len(answer.seeds_shown) > 1 and not all(distribution(answer, c) for c in answer.cells()):
        said.append(SEEDS_NOTE)
    return [("*", "; ".join(said))]


def grid(answer: Comparison, cores: int | None) -> Grid:
    """Return a row for each workload and design."""

    def said(cell: ComparedCell) -> list[str]:
        found = numbers(answer, cell) or dict.fromkeys(NUMBERS)
        count = commits(answer, cell)
        return [_said(name, cycles, count) for name, cycles in found.items()]

    return cell_grid(answer, cores, [*NUMBERS.values()], said)


def _said(name: str, cycles: float | None, count: float) -> str:
    """Return a number of cycles as text; a percentile of too few commits is left blank."""
    if cycles is None or not is_told(SHARES.get(name, 0.0), count):
        return BLANK
    return f"{cycles:,.0f}"
