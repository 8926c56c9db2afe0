"""The answers of verbs: a run, a crash campaign, a comparison. Rows of data, no drawing."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import takewhile
from os import PathLike
from typing import TYPE_CHECKING, Any

from indelible.errors import InputError
from indelible.experiment import Campaign, Experiment, LitmusTests
from indelible.kept import Taken
from indelible.labels import labels
from indelible.means import geometric_mean, half_width, mean_of_seeds, mean_ratio_of_seeds
from indelible.metrics import METRICS, metric_named
from indelible.names import closest_first
from indelible.rows import rows_as_csv
from indelible.shown import Answer, Shown
from indelible.smallest import Done, smallest

if TYPE_CHECKING:
    from indelible.batteries import Saved
    from indelible.views import View


@dataclass(frozen=True, repr=False)
class Run(Answer):
    """One run: `run.throughput_tx_per_s`, `run.stalls`, ... are the keys of its JSON."""

    data: Mapping[str, Any]
    experiment: Experiment

    @property
    def settings(self) -> dict[str, str]:
        """The settings over the defaults of machine, design and workload."""
        return dict(self.experiment.settings)

    @property
    def command(self) -> str:
        """The command line that repeats the run."""
        return self.experiment.command()

    def json(self) -> dict[str, Any]:
        """Return the object that `--json` prints: the results, the settings and the command."""
        return {**self.data, "settings": self.settings, "command": self.command}

    def __repr__(self) -> str:
        return f"<Run {self.experiment.command()}>"

    def __str__(self) -> str:
        from indelible.text import run as run_text

        return run_text.run(self)


@dataclass(frozen=True, repr=False)
class Crash(Answer):
    """One crash campaign: `crash.points`, `crash.violations`, ... are the keys of its JSON."""

    data: Mapping[str, Any]
    campaign: Campaign
    taken: Taken | None = None

    @staticmethod
    def of(data: dict[str, Any], campaign: Campaign) -> Crash:
        """Return an answer of the simulator, with the command that repeats each finding."""
        # The defaults are filled in, since another version may have others.
        said = replace(campaign.experiment, cores=data["cores"], txs=data["txs"])
        lives = data["lives"] if data["lives"] > 1 else campaign.lives
        campaign = replace(campaign, experiment=said, lives=lives)
        replay = replace(campaign, mutants=False, leave_out=None, trials=None).command()
        data["violations"] = [
            row | {"replay": replay, "timeline": seen and f"{seen.command()} --list"}
            for row in data["violations"]
            for seen in (campaign.recording(row),)
        ]
        if "mutants" in data:
            data["mutants"] = [
                row | {"replay": campaign.trial(row).command()} if row["caught"] else row
                for row in (row | {"doc": row["doc"].strip()} for row in data["mutants"])
            ]
        if wrong := (data.get("trials") or {}).get("wrong"):
            wrong["replay"] = campaign.trial(wrong).command()
        if "left_out" in data:
            data["left_out"] = [
                row | {"replay": campaign.without_persist(row).command()}
                for row in data["left_out"]
            ]
        return Crash(data, campaign)

    def with_smallest(self, done: Done) -> Crash:
        """Return the answer with the smallest run found, by campaigns of `done`, that fails, too.

        `smallest` in the JSON is null if no smaller run fails.
        """
        found = smallest(self.campaign, self.data["violations"][0], done)
        if found is not None:
            own, one = Crash.of(found["answer"], found["campaign"]), found["campaign"].experiment
            found = {
                **{name: getattr(one, name) for name in ("cores", "txs", "seed")},
                "tried": found["tried"],
                "violations": own.data["violations"],
                "command": own.campaign.command(),
            }
        return replace(self, data={**self.data, "smallest": found})

    @property
    def passed(self) -> bool:
        """Whether there was something to check, nothing was violated, and each mutant caught."""
        return self.checked and not self.failed

    @property
    def checked(self) -> bool:
        """Whether there was something to check, in the campaign and in its trials, if any."""
        trials = self.data.get("trials") or {}
        return self.data["checked"] and bool(trials.get("checked", 1) or not trials["runs"])

    @property
    def failed(self) -> bool:
        """Whether there was a violation, also in a trial, or a mutant was not caught."""
        mutants = self.data.get("mutants", [])
        trials = self.data.get("trials") or {"wrong": None, "runs": 1}
        untried = not trials["runs"] and not self.data.get("cancelled")
        wrong = self.data["violations"] or trials["wrong"] or untried
        return bool(wrong) or not all(mutant["caught"] for mutant in mutants)

    def __repr__(self) -> str:
        return f"<Crash {self.campaign.command()}>"

    def __str__(self) -> str:
        from indelible.text import crash as crash_text

        return crash_text.crash(self)


@dataclass(frozen=True, repr=False)
class Litmus(Answer):
    """Litmus tests on ordering hardware: `litmus.rows` has a row for each test and order."""

    data: Mapping[str, Any]
    tests: LitmusTests

    @property
    def passed(self) -> bool:
        """Whether no order left a forbidden outcome, and each rule switched off was caught.

        Not so if no test fitted an order, since then nothing is known about it.
        """
        return not (
            any(map(is_wrong, self.data["rows"]))
            or self.unfit
            or any(row["violation"] is not None for row in self.data.get("random", ()))
            or any(is_missed(row) for row in self.data.get("mutants", ()))
        )

    @property
    def unfit(self) -> list[str]:
        """The orders that none of the tests fitted, so that nothing is known about them."""
        rows = [*self.data["rows"], *self.data.get("random", ())]
        asked = dict.fromkeys(row["order"] for row in rows)
        known = {row["order"] for row in rows if row["images"] or row["violation"] is not None}
        return [order for order in asked if order not in known]

    def __repr__(self) -> str:
        return f"<Litmus {self.tests.command()}>"

    def __str__(self) -> str:
        from indelible.text import litmus as litmus_text

        return litmus_text.litmus(self)


def is_wrong(row: Mapping[str, Any]) -> bool:
    """Return whether a test showed that an order does not keep its promise."""
    return row["violation"] is not None or (row["seen"] and not row["allowed"])


def is_missed(mutant: Mapping[str, Any]) -> bool:
    """Return whether switching a rule off was not noticed, though it is not declared needless."""
    return not mutant["caught"] and mutant["needless"] is None


def failed_points(campaign: Mapping[str, Any]) -> int:
    """Return how many power cuts of a campaign had violations; one cut may have several."""
    return len({(row["event"], str(row["after"])) for row in campaign["violations"]})


def known(what: str, name: object, names: Sequence[Any]) -> Any:  # noqa: ANN401
    """Return the one of `names` that equals `name`, or refuse and list them."""
    for own in names:
        if own == name:
            return own
    words = [*map(str, names)]
    there = closest_first(name, words) if isinstance(name, str) else words
    raise InputError(f"there is no {what} {name!r} here; there are: {', '.join(there)}")


@dataclass(frozen=True)
class Verdict:
    """The result of a design's crash campaigns.

    `kind` is `ok`, `fail`, `none` (not crash consistent by design) or `untested` (with the reason).
    """

    kind: str
    points: int = 0
    violations: int = 0
    command: str | None = None
    reason: str | None = None
    #: Whether an asynchronous design announced too few of its transactions as durable.
    announced_few: bool = False

    @property
    def safe(self) -> bool:
        """Whether a speed may be shown without a warning."""
        return self.kind in ("ok", "untested")

    @staticmethod
    def all_of(verdicts: Iterable[Verdict]) -> Verdict:
        """Return one verdict for several campaigns: the worst of theirs."""
        verdicts = list(verdicts)
        points = sum(verdict.points for verdict in verdicts)
        violations = sum(verdict.violations for verdict in verdicts)
        for kind in ("fail", "none", "untested", "ok"):
            for verdict in verdicts:
                if verdict.kind == kind:
                    return replace(verdict, points=points, violations=violations)
        return Verdict("untested", reason="no campaign was run")

    def json(self) -> dict[str, Any]:
        """Return the object that stands in the rows of `compare --json`."""
        return {
            "verdict": self.kind,
            "points": self.points,
            "violations": self.violations,
            "command": self.command,
            "reason": self.reason,
        }


#: The views whose rows are stacks, and the key of commit latencies in a row.
STACKED = ("stalls", "writes")
LATENCY = "commit_latency_cycles"

#: The name in place of a design's where this computer's processor was measured.
NATIVE = "this CPU"

#: One cell of a comparison: design, workload, number of cores (`None` if none was asked for).
Cell = tuple[str, str, "int | None"]

#: One run of a comparison: its cell, and the seed.
SeededCell = tuple[str, str, "int | None", int]

#: A run without its seed: a design, a workload, and whatever else varies.
AnyCell = tuple[Any, ...]


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
    machine: str
    seeds: tuple[int, ...]
    metric: str
    durability: Mapping[str, str]
    #: The runs by cell and seed; the seed is the last part of the key.
    runs: Mapping[AnyCell, Run]
    #: The settings as the caller gave them, without fields that vary; those of a cell are in its
    #: experiment.
    settings: tuple[tuple[str, str], ...] = ()
    interrupted: bool = False
    taken: Taken | None = None

    @abstractmethod
    def cells(self) -> Sequence[AnyCell]:
        """Return the cells in the order of the rows."""

    @abstractmethod
    def place(self, cell: AnyCell) -> AnyCell:
        """Return a cell as the rows have it, or refuse an unknown part and list the known ones."""

    @abstractmethod
    def base(self, cell: AnyCell) -> AnyCell:
        """Return the cell that is 1.00 for a cell."""

    @cached_property
    def seeds_shown(self) -> tuple[int, ...]:
        """The seeds of the means: the first, and those after it all of whose runs ended."""
        cells = self.cells()
        whole = takewhile(
            lambda seed: all((*cell, seed) in self.runs for cell in cells), self.seeds
        )
        return tuple(whole) or self.seeds[:1]

    @cached_property
    def labels(self) -> Mapping[str, str]:
        """The labels of the designs in tables and figures."""
        return labels(self.designs)

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

    def ratio_half_width(self, cell: AnyCell) -> float | None:
        """Return how far the confidence interval of a cell's ratio goes to either side."""
        return half_width(self.ratio(cell, seed) for seed in self.seeds_shown)

    def mean(self, cells: Sequence[AnyCell], seed: int | None = None) -> float | None:
        """Return the geometric mean of the ratios of some cells."""
        if seed is None:
            return mean_ratio_of_seeds(self.mean(cells, seed) for seed in self.seeds_shown)
        return geometric_mean(self.ratio(cell, seed) for cell in cells)

    def mean_half_width(self, cells: Sequence[AnyCell]) -> float | None:
        """Return how far the confidence interval of that mean goes to either side."""
        return half_width(self.mean(cells, seed) for seed in self.seeds_shown)

    def core_model(self) -> str:
        """Return the core model and the durability domain, each if it is the same in all runs."""
        rows = [run.data for run in self.runs.values()]
        models = dict.fromkeys(f"{row['core_model']} core" for row in rows)
        domains = dict.fromkeys(f"domain {row['domain']}" for row in rows)
        return " · ".join(word for words in (models, domains) if len(words) == 1 for word in words)

    def means(self, cell: AnyCell) -> dict[str, Any]:
        """Return the fields that `--json` has for a cell with several seeds."""
        return {
            "value": self.value(cell),
            "normalized": self.ratio(cell),
            "half_width_95": self.ratio_half_width(cell),
        }


@dataclass(frozen=True, repr=False, kw_only=True)
class Comparison(OfSeeds):
    """The answer of `compare`: designs against workloads."""

    cores: tuple[int | None, ...]
    normalize: str
    verdicts: Mapping[Cell, Verdict]
    #: The measurements on this computer's processor, by workload and number of threads.
    native: Mapping[tuple[str, int | None], Mapping[str, Any]] = field(default_factory=dict)
    #: What must be saved at a power failure, as far as known, by design and number of cores.
    saved: Mapping[tuple[str, int | None], Saved] = field(default_factory=dict)
    #: Whether the caller gave the base, which then is that of the views of writes, too.
    is_base_given: bool = False

    def cells(self) -> list[Cell]:
        """Return the cells in the order of the rows."""
        return [(d, w, c) for c in self.cores for w in self.workloads for d in self.designs]

    def place(self, cell: Cell) -> Cell:
        """Return a cell as the rows have it; `None` may also be the machine's number of cores."""
        design, workload, cores = parts_of(cell, "design", "workload", "cores")
        design = known("design", design, self.designs)
        return design, known("workload", workload, self.workloads), self._cores(cores)

    def _cores(self, cores: int | None) -> int | None:
        """Return a number of cores as `compare` was given it; None is the only one, if there is."""
        if cores is None and len(self.cores) == 1:
            return self.cores[0]
        asked = {self.cores_used(count): count for count in self.cores}
        return asked[known("number of cores", cores, [*asked])]

    def by_metric(self, name: str) -> Comparison:
        """Return the same runs compared by another metric.

        What was measured on this computer is its throughput, and beside no other metric.
        """
        metric_named(name)
        return replace(self, metric=name, native=self.native if name == self.metric else {})

    def base(self, cell: Cell) -> Cell:
        """Return the cell that is 1.00 for a cell."""
        return (self.normalize, *cell[1:])

    def native_ratio(self, workload: str, cores: int | None = None) -> float | None:
        """Return the throughput measured on this computer, relative to the base design's."""
        _, workload, cores = self.place((self.normalize, workload, cores))
        measured = self.native.get((workload, cores), {}).get("throughput_tx_per_s")
        base = self.value((self.normalize, workload, cores))
        return measured / base if measured and base else None

    def gmean(self, design: str, cores: int | None = None, seed: int | None = None) -> float | None:
        """Return the geometric mean of a design's ratios over the workloads."""
        return self.mean(self._row(design, cores), seed)

    def gmean_half_width(self, design: str, cores: int | None = None) -> float | None:
        """Return how far the confidence interval of a design's mean goes to either side."""
        return self.mean_half_width(self._row(design, cores))

    def _row(self, design: str, cores: int | None) -> list[Cell]:
        return [self.place((design, workload, cores)) for workload in self.workloads]

    def verdict(self, design: str, cores: int | None = None) -> Verdict:
        """Return the verdict of a design's crash campaigns on all workloads together."""
        cells = self._row(design, cores)
        return Verdict.all_of(self.verdicts[cell] for cell in cells if cell in self.verdicts)

    def is_rival(self, design: str) -> bool:
        """Return whether a design counts as a rival: it is safe, and announces enough commits."""
        promises = [v for cell, v in self.verdicts.items() if cell[0] == design]
        return self.is_safe(design) and not any(v.announced_few for v in promises)

    def is_safe(self, design: str) -> bool:
        """Return whether no campaign and no definition says that the design loses data."""
        return all(v.safe for cell, v in self.verdicts.items() if cell[0] == design)

    @property
    def passed(self) -> bool:
        """Whether no design failed a crash campaign that it should have passed."""
        return all(verdict.kind != "fail" for verdict in self.verdicts.values())

    def json(self) -> dict[str, Any]:
        """Return the object that `--json` prints."""
        means = [self._gmean_row(design, cores) for cores in self.cores for design in self.designs]
        answer = {
            "metric": self.metric,
            "normalize": self.normalize,
            "rows": self.rows,
            "gmean": means,
            "cancelled": self.interrupted,
        }
        if len(self.seeds) > 1:
            answer |= {"seeds": [*self.seeds_shown], "cells": [*map(self._summary, self.cells())]}
        if self.native:
            answer["native"] = [
                {**row, "normalized": self.native_ratio(*key)} for key, row in self.native.items()
            ]
        return answer

    def csv(self) -> str:
        """Return the rows as comma-separated values, nested keys joined by dots.

        Distributions, which would be tables of their own, are only in the JSON.
        """
        rows = [row | {LATENCY: {**row[LATENCY]}} for row in self.rows]
        for row in rows:
            row[LATENCY].pop("distribution", None)
        return rows_as_csv([*rows, *self._measured()])

    def table(self) -> list[dict[str, Any]]:
        """Return the rows of the table: one for each cell, and `gmean` for the means of designs.

        Over several seeds a row has their mean, and half the width of its confidence interval.
        """
        from indelible import tables

        return [*tables.compared(self)]

    def save_table(self, path: str | PathLike[str], view: str = "ratios") -> None:
        """Write the table of `--table` into a .csv, .tex or .md; `view` is as in `save`."""
        from indelible import sheets

        sheets.save(path, sheets.compared(self, path, view))

    def stalls(self) -> str:
        """Return the table of `compare --stalls`: what core time is spent on."""
        return self._text("stalls")

    def writes(self) -> str:
        """Return the table of `compare --writes`: what is written to persistent memory, and why."""
        return self._text("writes")

    def latencies(self) -> str:
        """Return the table of `compare --latencies`: percentiles of how long commits take."""
        return self._text("latencies")

    def usage(self) -> str:
        """Return the table of `compare --usage`: how busy caches, queues and banks were."""
        return self._text("usage")

    def summary(self) -> str:
        """Return the table of `compare --summary`: a row for each design, with gains and costs."""
        return self._text("summary")

    def save(self, path: str | PathLike[str], view: str = "ratios") -> None:
        """Draw the figure of `--plot` into a .png, .svg or .pdf.

        `view` is `ratios`, `stalls`, `writes`, `usage`, `summary` or, if the comparison was made
        with `latencies=True`, `latencies`.
        """
        from indelible import plots

        shown, answer = self._viewed(view)
        plots.save(shown.figure, answer, path)

    def report(self, path: str | PathLike[str]) -> None:
        """Write the page of `--report`: the answer as one HTML page, with its rows as JSON."""
        from indelible.pages import report

        report.save(self, path)

    def stacks(self, view: str = "stalls") -> list[dict[str, Any]]:
        """Return a row for each stack of the figure of `--stalls` or of `--writes`.

        On each workload the total of the design that is 1.00 is 100.
        """
        if view not in STACKED:
            raise InputError(f"the view of stacks must be {' or '.join(STACKED)}, not {view!r}")
        return self._view_rows(view)

    def percentiles(self) -> list[dict[str, Any]]:
        """Return the numbers of `--latencies`, in cycles: a row for each design and workload."""
        return self._view_rows("latencies")

    def used(self) -> list[dict[str, Any]]:
        """Return the numbers of `--usage`: a row for each design and workload."""
        return self._view_rows("usage")

    def summarized(self) -> list[dict[str, Any]]:
        """Return the numbers of `--summary`: a row for each number of cores and design."""
        return self._view_rows("summary")

    def _text(self, view: str) -> str:
        shown, answer = self._viewed(view)
        return shown.text(answer)

    def _view_rows(self, view: str) -> list[dict[str, Any]]:
        shown, answer = self._viewed(view)
        return [*shown.rows(answer)]

    def _viewed(self, view: str) -> tuple[View, Comparison]:
        """Return a view, and this comparison relative to the design that it is relative to."""
        from indelible.views import based, view_named

        return view_named(view), based(self, view)

    def _measured(self) -> Iterator[dict[str, Any]]:
        """Return the measurements on this computer as rows with the columns of runs."""
        for (workload, cores), row in self.native.items():
            yield {
                "design": NATIVE,
                "workload": workload,
                "machine": row["processor"],
                "cores": cores,
                "seed": self.seeds[0],
                "throughput_tx_per_s": row["throughput_tx_per_s"],
                "normalized": self.native_ratio(workload, cores),
                "notes": [row["reason"]] if "reason" in row else [],
            }

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The rows of the JSON, one for each run."""
        return [*self._rows()]

    def _rows(self) -> Iterator[dict[str, Any]]:
        untested = Verdict("untested", reason="no campaign was run")
        for cell in self.cells():
            for seed in self.seeds:
                if (run := self.runs.get((*cell, seed))) is not None:
                    crash = self.verdicts.get(cell, untested).json()
                    yield {**run.json(), "normalized": self.ratio(cell, seed), "crash": crash}

    def _gmean_row(self, design: str, cores: int | None) -> dict[str, Any]:
        mean = {"value": self.gmean(design, cores)}
        if len(self.seeds) > 1:
            mean["half_width_95"] = self.gmean_half_width(design, cores)
        return {"design": design, "cores": self.cores_used(cores), **mean}

    def _summary(self, cell: Cell) -> dict[str, Any]:
        design, workload, cores = cell
        own = {"design": design, "workload": workload, "cores": self.cores_used(cores)}
        return {**own, **self.means(cell)}

    def cores_used(self, cores: int | None) -> int | None:
        """Return the number of cores that the machine chose, if none was asked for."""
        if cores is not None:
            return cores
        return next((run.data["cores"] for cell, run in self.runs.items() if cell[2] is None), None)

    def __repr__(self) -> str:
        return f"<Comparison of {', '.join(self.designs)} over {', '.join(self.workloads)}>"

    def __str__(self) -> str:
        from indelible.text import comparison as comparison_text

        return comparison_text.comparison(self)
