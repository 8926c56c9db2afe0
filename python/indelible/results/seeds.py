"""Runs of cells with several seeds, and their means: what comparisons and sweeps are."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import takewhile
from typing import Any

from indelible.commands import flag, flags, line, reads, sets
from indelible.errors import InputError
from indelible.experiment import Script
from indelible.kept import Taken
from indelible.labels import labels
from indelible.means import (
    geometric_mean,
    half_width,
    interval_fields,
    mean_of_seeds,
    mean_ratio_of_seeds,
)
from indelible.metrics import METRICS, transactions
from indelible.names import closest_first
from indelible.results import Shown
from indelible.results.crash import Verdict
from indelible.results.run import Run

#: A run without its seed: a design, a workload, and whatever else varies.
AnyCell = tuple[Any, ...]


def known(what: str, name: object, names: Sequence[Any]) -> Any:  # noqa: ANN401
    """Return the one of `names` that equals `name`, or refuse and list them."""
    for own in names:
        if own == name:
            return own
    words = [*map(str, names)]
    there = closest_first(name, words) if isinstance(name, str) else words
    raise InputError(f"there is no {what} {name!r} here; there are: {', '.join(there)}")


def parts_of(cell: object, *parts: str) -> AnyCell:
    """Return the parts of a cell, or refuse a value that has other parts."""
    if isinstance(cell, Sequence) and not isinstance(cell, str) and len(cell) == len(parts):
        return tuple(cell)
    raise InputError(f"a cell must be ({', '.join(parts)}), not {cell!r}")


@dataclass(frozen=True, repr=False, kw_only=True)
class OfSeeds(Shown, ABC):
    """The runs of cells with each of some seeds; runs that an interruption prevented are missing.

    A number of a cell is the mean over the seeds, unless a seed is given.
    """

    designs: tuple[str, ...]
    workloads: tuple[str, ...]
    #: The machine, None if it varies.
    machine: str | None
    seeds: tuple[int, ...]
    metric: str
    durability: Mapping[str, str]
    #: The runs by cell and seed; the seed is the last part of the key.
    runs: Mapping[AnyCell, Run]
    #: The settings as the caller gave them, without fields that vary; those of a cell are in its
    #: experiment.
    settings: tuple[tuple[str, str], ...] = ()
    #: The transactions of a core, and those before counting begins, None for the default; the order
    #: of time; and the files that workloads read, by their names.
    txs: int | None = None
    warmup: int | None = None
    exact: bool = False
    scripts: Mapping[str, Script] = field(default_factory=dict)
    interrupted: bool = False
    taken: Taken | None = None
    #: Why the runs that could not be made are missing, by cell and seed.
    refused: Mapping[AnyCell, str] = field(default_factory=dict)
    #: The verdicts of the crash campaigns by cell, and whether campaigns were asked for.
    verdicts: Mapping[AnyCell, Verdict] = field(default_factory=dict)
    is_tested: bool = True

    @abstractmethod
    def cells(self) -> Sequence[AnyCell]:
        """Return the cells in the order of the rows."""

    @abstractmethod
    def place(self, cell: AnyCell) -> AnyCell:
        """Return a cell as the rows have it, or refuse an unknown part and list the known ones."""

    @abstractmethod
    def base(self, cell: AnyCell) -> AnyCell:
        """Return the cell that is 1.00 for a cell."""

    @abstractmethod
    def own(self, cell: AnyCell) -> dict[str, Any]:
        """Return the fields that `--json` has for whose numbers a row has."""

    def asked(self) -> dict[str, Any]:
        """Return the fields that `--json` begins with: what was compared, and with which seeds."""
        return {
            "designs": [*self.designs],
            "workloads": [*self.workloads],
            "machine": self.machine,
            "metric": self.metric,
            "seeds": [*self.seeds_shown],
        }

    def left_out(self) -> dict[str, Any]:
        """Return what `--json` has of the runs that could not be made, if there are any."""
        rows = [
            {**self.own(tuple(cell)), "seed": seed, "reason": reason}
            for (*cell, seed), reason in self.refused.items()
        ]
        return {"refused": rows} if rows else {}

    @cached_property
    def seeds_shown(self) -> tuple[int, ...]:
        """The seeds of the means: the first, and those after it all of whose runs ended."""
        cells = self.cells()
        whole = takewhile(
            lambda seed: all(self._has_ended((*cell, seed)) for cell in cells), self.seeds
        )
        return tuple(whole) or self.seeds[:1]

    def _has_ended(self, run: AnyCell) -> bool:
        return run in self.runs or run in self.refused

    @cached_property
    def labels(self) -> Mapping[str, str]:
        """The labels of the designs in tables and figures."""
        return labels(self.designs)

    def verdict_on_all(self, design: str) -> Verdict:
        """Return the verdict of all crash campaigns of a design together.

        A campaign whose verdict holds for several cells counts once.
        """
        return Verdict.all_of(dict.fromkeys(self._verdicts_of[design]))

    def is_rival(self, design: str) -> bool:
        """Return whether a design counts as a rival: it is safe, and announces enough commits."""
        return self.is_safe(design) and not any(v.announced_few for v in self._verdicts_of[design])

    def is_safe(self, design: str) -> bool:
        """Return whether no campaign and no definition says that the design loses data."""
        return all(verdict.safe for verdict in self._verdicts_of[design])

    @property
    def passed(self) -> bool:
        """Whether no design failed a crash campaign that it should have passed."""
        return all(verdict.kind != "fail" for verdict in self.verdicts.values())

    @cached_property
    def _verdicts_of(self) -> Mapping[str, Sequence[Verdict]]:
        found: dict[str, list[Verdict]] = {design: [] for design in self.designs}
        for cell, verdict in self.verdicts.items():
            found[self.own(cell)["design"]].append(verdict)
        return found

    def crash(self, cell: AnyCell) -> dict[str, Any]:
        """Return the verdict of a cell, as the rows of `--json` have it."""
        untested = Verdict("untested", reason="no campaign was run")
        return self.verdicts.get(self.place(cell), untested).json()

    def untested(self) -> list[str]:
        """Return the words of a command line that cuts no power, if none was to be cut."""
        promised = any(self.durability.get(design) != "none" for design in self.designs)
        return [] if self.is_tested and promised else ["--no-crash"]

    def value(self, cell: AnyCell, seed: int | None = None) -> float | None:
        """Return the metric of a cell, in its own unit."""
        if seed is None:
            return mean_of_seeds(self.value(cell, seed) for seed in self.seeds_shown)
        run = self.runs.get((*self.place(cell), known("seed", seed, self.seeds)))
        return None if run is None else METRICS[self.metric].value(run.data)

    def ratio(self, cell: AnyCell, seed: int | None = None) -> float | None:
        """Return the metric of a cell, relative to the base with the same seed."""
        if seed is None:
            return mean_ratio_of_seeds(self.ratio(cell, seed) for seed in self.seeds_shown)
        cell = self.place(cell)
        value, base = self.value(cell, seed), self.value(self.base(cell), seed)
        return value / base if value is not None and base else None

    def too_few(self) -> int | None:
        """Return the fewest transactions of a run, if these are too few for the metric."""
        least = METRICS[self.metric].least
        counts = (transactions(run.data) for run in self.runs.values()) if least > 1 else ()
        fewest = min(counts, default=least)
        return fewest if fewest < least else None

    def zeros(self, cell: AnyCell) -> int:
        """Return with how many of the seeds the metric of a cell is 0."""
        return sum(self.value(cell, seed) == 0 for seed in self.seeds_shown)

    def ratio_half_width(self, cell: AnyCell) -> float | None:
        """Return half the width of the confidence interval of a cell's ratio."""
        return half_width(self.ratio(cell, seed) for seed in self.seeds_shown)

    def mean(self, cells: Sequence[AnyCell], seed: int | None = None) -> float | None:
        """Return the geometric mean of the ratios of some cells."""
        if seed is None:
            return mean_ratio_of_seeds(self.mean(cells, seed) for seed in self.seeds_shown)
        return geometric_mean(self.ratio(cell, seed) for cell in cells)

    def mean_half_width(self, cells: Sequence[AnyCell]) -> float | None:
        """Return half the width of the confidence interval of that mean."""
        return half_width(self.mean(cells, seed) for seed in self.seeds_shown)

    @property
    def machines(self) -> tuple[str, ...]:
        """The machines of the runs."""
        return () if self.machine is None else (self.machine,)

    def core_model(self) -> str:
        """Return the core model and the durability domain, each if `of_runs` has something."""
        words = (
            self.of_runs(lambda row: f"{row['core_model']} core"),
            self.of_runs(lambda row: f"domain {row['domain']}"),
        )
        return " · ".join(filter(None, words))

    def of_runs(self, said: Callable[[Mapping[str, Any]], str]) -> str:
        """Return what is `said` of a run if it is the same of all runs, else no text."""
        words = {said(run.data) for run in self.runs.values()}
        return words.pop() if len(words) == 1 else ""

    def line(
        self,
        verb: str,
        cores: Sequence[int | None],
        seeds: Sequence[int],
        own: Sequence[str],
        more: Sequence[str] = (),
    ) -> str:
        """Return the command line that repeats the runs with these numbers of cores and seeds.

        It has words of its own between those that all have, and more behind these.
        """
        return line(
            verb,
            flags(self, "designs", "workloads", "machine"),
            flag("--cores", [] if None in cores else cores),
            own,
            flag("--seed", seeds[0]) if seeds else [],
            [] if self.metric == "throughput" else ["--metric", self.metric],
            flags(self, "txs", "warmup"),
            flag("--seeds", len(seeds)) if len(seeds) > 1 else [],
            sets(self.settings),
            reads(self.scripts.values()),
            flags(self, "exact"),
            more,
        )

    def means(self, cell: AnyCell) -> dict[str, Any]:
        """Return the fields that `--json` has for a cell with several seeds."""
        ratio = self.ratio(cell)
        interval = interval_fields(ratio, self.ratio_half_width(cell))
        return {"value": self.value(cell), "normalized": ratio, **interval}
