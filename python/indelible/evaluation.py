"""Numbers of runs: which runs a number needs, and how it is computed from their rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from indelible.experiment import Experiment
from indelible.means import geometric_mean
from indelible.settings import Pairs, of_cell

Row = Mapping[str, Any]

#: A measure of one run, from its row.
Value = Callable[[Row], float]

#: A mean of several ratios.
Mean = Callable[[Sequence[float]], float]

#: The default number of transactions of a core.
TXS = 2_000


@dataclass(frozen=True)
class Cell:
    """The parts of a run that differ among runs that are made together."""

    design: str
    workload: str
    cores: int
    settings: Pairs = ()
    #: The factor by which its transactions are larger than others; so many times fewer are run.
    larger: int = 1
    #: Its machine, and its transactions of a core, if these differ from the others'.
    machine: str | None = None
    txs: int | None = None
    #: Whether its ordering points are counted.
    epochs: bool = False
    #: Its transactions before measuring begins, if these are not the default.
    warmup: int | None = None

    def experiment(
        self, machine: str, txs: int | None, seed: int, settings: Pairs = ()
    ) -> Experiment:
        """Return the run, with the common values where the cell has none of its own."""
        own = {key for key, _ in self.settings}
        others = tuple(pair for pair in settings if pair[0] not in own)
        return Experiment(
            self.design,
            self.workload,
            self.machine or machine,
            self.cores,
            self._transactions(txs),
            seed,
            others + self.settings,
            epochs=self.epochs,
            warmup=self.warmup,
        )

    def _transactions(self, asked: int | None) -> int | None:
        """Return how many transactions a core has; None means the default."""
        asked = asked if self.txs is None else self.txs
        return asked if self.larger == 1 else max((asked or TXS) // self.larger, 1)


#: The rows of cells that have been run.
Rows = Callable[[Cell], Row]


# Measures of one run.


def throughput(row: Row) -> float:
    """Return transactions a second."""
    return float(row["throughput_tx_per_s"])


def bytes_accepted(row: Row) -> float:
    """Return the bytes that the write-pending queues accepted."""
    return float(row["pm_writes"]["wpq_bytes"])


def bits(row: Row) -> float:
    """Return the bits of cells that were programmed."""
    return float(row["pm_writes"]["media_bits"])


def lines(row: Row) -> float:
    """Return the lines of cells that were programmed."""
    return float(row["pm_writes"]["media_lines"])


def bytes_of(*names: str) -> Value:
    """Return the measure of the bytes of some classes of writes."""
    return lambda row: float(sum(row["pm_writes"]["by_class"][name] for name in names))


def share_of(name: str) -> Value:
    """Return the measure of the share of a class of writes."""
    return lambda row: bytes_of(name)(row) / bytes_accepted(row)


def words_per_second(row: Row) -> float:
    """Return how many words transactions change in a second."""
    return throughput(row) * float(row["write_set"]["words_avg"])


def per_word(value: Value) -> Value:
    """Return the measure for each word that transactions change."""
    return lambda row: value(row) / (row["txs"] * row["write_set"]["words_avg"])


def counted(name: str) -> Value:
    """Return the measure that reads one of a design's counters."""
    return lambda row: float(row["design_counters"][name])


#: The counters of a design's logs.
_LOGS = ("ignored", "merged", "generated")


def removed(row: Row) -> float:
    """Return the share of a design's logs of all stores that were ignored or merged."""
    ignored, merged, generated = (counted(f"logs_{n}")(row) for n in _LOGS)
    return (ignored + merged) / (ignored + generated)


def ignored(row: Row) -> float:
    """Return the share of a design's logs of all stores that were ignored."""
    ignored, _, generated = (counted(f"logs_{n}")(row) for n in _LOGS)
    return ignored / (ignored + generated)


# Numbers of several runs.


@dataclass(frozen=True)
class Quantity:
    """A number: the runs that it needs, and the function that computes it from their rows."""

    cells: tuple[Cell, ...]
    measure: Callable[[Rows], float]

    def percent(self) -> Quantity:
        """Return a share in percent."""
        return Quantity(self.cells, lambda rows: 100 * self.measure(rows))


def gmean(values: Sequence[float]) -> float:
    """Return the geometric mean, or NaN where there is none."""
    found = geometric_mean(values)
    return math.nan if found is None else found


def mean(values: Sequence[float]) -> float:
    """Return the arithmetic mean."""
    return sum(values) / len(values)


def average(cells: Sequence[Cell], value: Value, mean: Mean = mean) -> Quantity:
    """Return the mean of a measure over runs."""
    cells = tuple(cells)
    return Quantity(cells, lambda rows: mean([value(rows(cell)) for cell in cells]))


@dataclass(frozen=True)
class Over:
    """One design over another on workloads."""

    over: str
    under: str
    workloads: Sequence[str]
    cores: int
    #: Settings of both designs, and of `over` alone; a setting's prefix names whom it is for.
    settings: Pairs = ()
    own: Pairs = ()
    mean: Mean = gmean
    #: As in `Cell`.
    machine: str | None = None
    txs: int | None = None
    warmup: int | None = None

    def pairs(self) -> list[tuple[Cell, Cell]]:
        """Return the runs of each workload."""
        return [
            (
                self._cell(self.over, workload, self.settings + self.own),
                self._cell(self.under, workload, self.settings),
            )
            for workload in self.workloads
        ]

    def _cell(self, design: str, workload: str, settings: Pairs) -> Cell:
        settings = of_cell(settings, design, workload, (self.over, self.under, *self.workloads))
        return Cell(
            design,
            workload,
            self.cores,
            settings,
            machine=self.machine,
            txs=self.txs,
            warmup=self.warmup,
        )

    def _cells(self) -> tuple[Cell, ...]:
        return tuple(cell for pair in self.pairs() for cell in pair)

    def times(self, value: Value = throughput) -> Quantity:
        """Return the factor by which `over` has more than `under`."""
        pairs, mean = self.pairs(), self.mean

        def measure(rows: Rows) -> float:
            return mean([value(rows(over)) / value(rows(under)) for over, under in pairs])

        return Quantity(self._cells(), measure)

    def fewer_times(self, value: Value) -> Quantity:
        """Return the factor by which `over` has less than `under`."""
        pairs, mean = self.pairs(), self.mean

        def measure(rows: Rows) -> float:
            return mean([value(rows(under)) / value(rows(over)) for over, under in pairs])

        return Quantity(self._cells(), measure)

    def change(self, value: Value = throughput) -> Quantity:
        """Return the change in percent."""
        times = self.times(value)
        return Quantity(times.cells, lambda rows: 100 * (times.measure(rows) - 1))
