"""Tables as data: rows of entries, each a text or computed from the rows of runs."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from indelible.evaluation import Cell, Quantity, Row, Rows, Value
from indelible.settings import Pairs

#: The seed of the runs behind the document's numbers.
SEED = 1


@dataclass(frozen=True)
class Told:
    """A text that follows from runs."""

    cells: tuple[Cell, ...]
    text: Callable[[Rows], str]


#: An entry of a table: a text, or one that is measured.
Entry = str | Told


@dataclass(frozen=True)
class Grid:
    """A table of Markdown, whose first column has the labels of its rows."""

    header: Sequence[str]
    rows: Sequence[Sequence[Entry]]

    @property
    def cells(self) -> tuple[Cell, ...]:
        """Return the runs that it needs."""
        return tuple(cell for row in self.rows for cell in _cells(row))

    def text(self, rows: Rows) -> str:
        """Return it with what was measured."""
        rule = "|" + "---|" * len(self.header)
        body = [[_text(entry, rows) for entry in row] for row in self.rows]
        head, *lines = (
            "|" + "|".join(f" {e} " if e else " " for e in row) + "|"
            for row in [self.header, *body]
        )
        return "\n".join([head, rule, *lines])


@dataclass(frozen=True)
class Block:
    """A text that the document shows as the output of a command."""

    cells: tuple[Cell, ...]
    tell: Callable[[Rows], str]

    def text(self, rows: Rows) -> str:
        """Return it with what was measured."""
        return textwrap.indent(self.tell(rows), "    ")


@dataclass(frozen=True)
class Table:
    """A measured part of the document: its name there, and its contents."""

    name: str
    what: str
    body: Grid | Block

    @property
    def cells(self) -> tuple[Cell, ...]:
        """Return the runs that it needs."""
        return self.body.cells

    def text(self, rows: Rows) -> str:
        """Return the text between the markers."""
        return self.body.text(rows)


@dataclass(frozen=True)
class Facts:
    """Numbers that a section's prose quotes, each with its name; they are not replaced there."""

    name: str
    what: str
    rows: Sequence[tuple[str, Entry]]

    @property
    def cells(self) -> tuple[Cell, ...]:
        """Return the runs that they need."""
        return tuple(cell for _, entry in self.rows for cell in _cells([entry]))

    def text(self, rows: Rows) -> str:
        """Return a line for each."""
        return "\n".join(f"{what}: {_text(entry, rows)}" for what, entry in self.rows)


def _cells(entries: Sequence[Entry]) -> tuple[Cell, ...]:
    return tuple(cell for entry in entries if isinstance(entry, Told) for cell in entry.cells)


def _text(entry: Entry, rows: Rows) -> str:
    return entry.text(rows) if isinstance(entry, Told) else entry


# Entries.


def shown(template: str, *quantities: Quantity) -> Told:
    """Return numbers in a text, each in the place of a pair of braces."""
    cells = tuple(cell for quantity in quantities for cell in quantity.cells)

    def text(rows: Rows) -> str:
        found = template.format(*(quantity.measure(rows) for quantity in quantities))
        # A number that is rounded to 0 has no sign.
        return re.sub(r"[-+](0(\.0+)?)(?![.\d])", r"\1", found)

    return Told(cells, text)


def each(template: str, quantities: Sequence[Quantity], between: str = ", ") -> Told:
    """Return several numbers in the same form."""
    return shown(between.join([template] * len(quantities)), *quantities)


def labelled(template: str, names: Sequence[str], quantities: Sequence[Quantity]) -> Told:
    """Return several numbers, each behind its name."""
    return shown(", ".join(f"{name} {template}" for name in names), *quantities)


def of_row(cell: Cell, tell: Callable[[Row], str]) -> Told:
    """Return the text about one run."""
    return Told((cell,), lambda rows: tell(rows(cell)))


def joined(template: str, entries: Sequence[Told]) -> Told:
    """Return several texts in one."""
    cells = tuple(cell for entry in entries for cell in entry.cells)
    return Told(cells, lambda rows: template.format(*(entry.text(rows) for entry in entries)))


# Quantities.


def said(words: str) -> Pairs:
    """Return settings as they are written on a command line, with spaces between them."""
    return tuple((key, value) for key, _, value in (word.partition("=") for word in words.split()))


def of_run(cell: Cell, value: Callable[[Row], Any]) -> Quantity:
    """Return a measure of one run as a quantity."""
    return Quantity((cell,), lambda rows: value(rows(cell)))


def per_ended_transaction(value: Value) -> Value:
    """Return the measure for each transaction that has ended, aborted ones included."""
    return lambda row: value(row) / row["txs"]


def less(change: Quantity) -> Quantity:
    """Return a change with the opposite sign: the saving."""
    return Quantity(change.cells, lambda rows: -change.measure(rows))


def ratio(over: Quantity, under: Quantity) -> Quantity:
    """Return one number over another."""
    return Quantity(over.cells + under.cells, lambda rows: over.measure(rows) / under.measure(rows))


def of_all(quantities: Sequence[Quantity], combine: Callable[[Sequence[float]], float]) -> Quantity:
    """Return a function of several numbers, such as their mean."""
    cells = tuple(cell for quantity in quantities for cell in quantity.cells)
    return Quantity(cells, lambda rows: combine([q.measure(rows) for q in quantities]))
