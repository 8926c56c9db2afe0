"""Every claim of the papers beside the measured values, in short runs and in long ones."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from fidelity.tables import Entry, Grid, Table, Told
from indelible.evaluation import TXS, Cell, Row, Rows
from indelible.papers import PAPERS, Claim, Paper
from indelible.results.reproduction import row_of
from indelible.text.reproduction import measured

#: Transactions of a core: as in all other tables, and as in the issues that asked for this table.
LENGTHS = (TXS, 10_000)


def _here(paper: Paper, claim: Claim, txs: int) -> Told:
    """Return the measured value of a claim."""
    runs = {cell: replace(cell, machine=paper.machine, txs=txs) for cell in claim.cells}

    def text(rows: Rows) -> str:
        def of_claim(cell: Cell) -> Row:
            return rows(runs[cell])

        return measured(row_of(claim, of_claim))

    return Told(tuple(runs.values()), text)


def _rows(paper: Paper) -> Iterator[list[Entry]]:
    for claim in paper.claims:
        published = row_of(claim, None)["published"]
        yield [claim.what, published, *(_here(paper, claim, txs) for txs in LENGTHS)]


PARTS = tuple(
    Table(
        f"claims.{paper.name}",
        f"every claim of {paper.title}",
        Grid(
            (paper.title, "published", *(f"{txs:,} transactions a core" for txs in LENGTHS)),
            [*_rows(paper)],
        ),
    )
    for paper in PAPERS.values()
)
