"""The answer of `probe`: the numbers of memories beside the published ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any

from indelible import probes
from indelible.commands import flag, line, sets
from indelible.errors import InputError
from indelible.evaluation import Cell, Rows
from indelible.probes import KIB, MIB, PROBES, PUBLISHED, Memory, Probe
from indelible.results import Shown
from indelible.results.origin import origin
from indelible.results.run import Run
from indelible.rows import rows_as_csv
from indelible.settings import Pairs

#: Numbers whose relative distance from the published ones is larger are listed under the table.
OFF = 0.25

#: The probes that have a line in the curve over cores.
CURVES = ("read-sequential", "read-random", "ntstore-sequential", "ntstore-random")

#: The groups that have a curve.
DRAWN = ("latency", "bandwidth", "amplification")

#: The footprints of the curve of latencies: the last is this, or four times the last level.
FOOTPRINT_MIN, FOOTPRINT_MAX = 4 * KIB, 64 * MIB


@dataclass(frozen=True, repr=False)
class Probed(Shown):
    """The measured numbers of memories, beside the published ones of real memories."""

    memories: tuple[Memory, ...]
    groups: tuple[str, ...]
    seed: int
    settings: Pairs
    #: Whether the runs of curves were made, too.
    drawn: bool
    runs: Mapping[tuple[str, Cell], Run]
    #: How many runs were planned.
    total: int
    interrupted: bool = False

    @property
    def rows(self) -> list[dict[str, Any]]:
        """Return a row for each machine and probe; a probe with missing runs has no number."""
        asked = [*probes.asked_of(self.groups)]
        return [self._row(memory, probe) for memory in self.memories for probe in asked]

    def _row(self, memory: Memory, probe: Probe) -> dict[str, Any]:
        measured, cores = self._measured(memory, probe)
        known = PUBLISHED.get(memory.machine, {}).get(probe.name)
        published = None if known is None else known.of(memory)
        off = None if measured is None or not published else measured / published - 1
        return {
            "machine": memory.machine,
            "group": probe.group,
            "probe": probe.name,
            "what": probe.what,
            "unit": probe.unit,
            "measured": measured,
            "cores": cores,
            "published": published,
            "off": off,
            "source": None if known is None else known.source,
            "from_memory": None if known is None else known.is_from_memory,
            "of_model": None if known is None else known.is_of_model,
        }

    def _measured(self, memory: Memory, probe: Probe) -> tuple[float | None, int | None]:
        """Return the number, and its number of cores if several were tried."""
        quantity = probe.quantity(memory)
        if quantity is None or any((memory.machine, c) not in self.runs for c in quantity.cells):
            return None, None

        def rows(cell: Cell) -> Mapping[str, Any]:
            return self.runs[memory.machine, cell].data

        return quantity.measure(rows), probe.cores and probe.cores(memory, rows)

    def curves(self) -> list[dict[str, Any]]:
        """Return the points of the figure; empty without `curves`."""
        return [*self._points()] if self.drawn else []

    def _points(self) -> Iterator[dict[str, Any]]:
        for memory in self.memories:

            def rows(cell: Cell, memory: Memory = memory) -> Mapping[str, Any]:
                return self.runs[memory.machine, cell].data

            for curve, series, x, cell in curve_cells(memory, self.groups):
                if (memory.machine, cell) in self.runs:
                    value = _value(memory, curve, cell, rows)
                    own = {"machine": memory.machine, "curve": curve, "series": series}
                    yield {**own, "x": x, "value": value}

    @property
    def command(self) -> str:
        """The command line that repeats it."""
        groups = [] if self.groups == probes.GROUPS else self.groups
        machines = flag("--machines", [memory.machine for memory in self.memories])
        own = [*flag("--only", groups), *sets(self.settings), *flag("--seed", self.seed)]
        return line("probe", machines, own)

    def json(self) -> dict[str, Any]:
        """Return the object that `--json` prints."""
        return {
            "machines": [memory.machine for memory in self.memories],
            "seed": self.seed,
            "rows": self.rows,
            "curves": self.curves(),
            "cancelled": self.interrupted,
            **origin(self.command, self.settings),
        }

    def csv(self) -> str:
        """Return the rows as comma-separated values."""
        return rows_as_csv(self.rows)

    def save(self, path: str | PathLike[str]) -> None:
        """Draw the figure of `--plot` into a .png, .svg or .pdf; its runs are those of `curves`."""
        from indelible import plots
        from indelible.plots import probe as probe_plot

        if not self.drawn:
            raise InputError("there is nothing to draw: ask for the runs with curves=True")
        plots.save(probe_plot.figure, self, path)

    def __repr__(self) -> str:
        return f"<Probed {', '.join(memory.machine for memory in self.memories)}>"

    def __str__(self) -> str:
        from indelible.text import probe as probe_text

        return probe_text.probed(self)


def curve_cells(memory: Memory, groups: Sequence[str]) -> Iterator[tuple[str, str, int, Cell]]:
    """Return the points of the figure: the curve, the line, the place, and the run."""
    if "latency" in groups:
        last = max(4 * memory.levels[-1], FOOTPRINT_MAX)
        spans = (FOOTPRINT_MIN << power for power in range((last // FOOTPRINT_MIN).bit_length()))
        for span in spans:
            if span <= memory.pm // 4:
                yield "latency", "load", span, probes.footprint(span, memory.levels)
    if "bandwidth" in groups:
        for name in CURVES:
            quantity = PROBES[name].quantity(memory)
            cells = () if quantity is None else quantity.cells
            for count, cell in zip(memory.counts(), cells, strict=True):
                yield "bandwidth", PROBES[name].what, count, cell
    if "amplification" in groups:
        for block in probes.BLOCKS:
            yield "amplification", "random", block, probes.counted(memory, "random", block)


def _value(memory: Memory, curve: str, cell: Cell, rows: Rows) -> float:
    match curve:
        case "latency":
            return probes.latency(cell, rows)
        case "bandwidth":
            return probes.bandwidth(cell, rows)
    return probes.amplification(memory, cell, rows)
