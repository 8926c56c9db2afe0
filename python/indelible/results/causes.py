"""Why a design is as fast as it is, or faster than another one. Numbers, no drawing.

One half of an answer is what the runs' time or writes consist of, the other what they depend on.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from os import PathLike
from typing import Any

from indelible import stacks, usage
from indelible.changes import DESIGN, MACHINE, Change, Refused
from indelible.commands import flag
from indelible.kept import Taken
from indelible.means import (
    half_width,
    interval_fields,
    log_half_width,
    mean_of_seeds,
    mean_ratio_of_seeds,
)
from indelible.metrics import METRICS
from indelible.results import Shown
from indelible.results.comparison import Comparison, SeededCell
from indelible.results.origin import origin
from indelible.results.run import Run
from indelible.results.sweep import LEAST_LEAD, Point, Sweep
from indelible.rows import rows_as_csv
from indelible.scripts import called

#: The point of a sweep at which nothing is changed.
AS_IT_IS: Point = ("as it is",)

#: The least relative shift of a ratio that counts. Another seed moves it as far (ours: that is how
#: far ratios of runs with eight cores and 2,000 transactions differ between seeds).
LEAST_SHIFT = 0.02

#: The metrics that are explained by the writes, and not by the cores' time.
OF_WRITES = ("pm-writes", "media-lines", "media-bits", "pm-energy")

#: Metrics per transaction that are shown beside how busy the machine was.
ALSO = ("pm-writes", "media-lines")


def distance(factor: float | None) -> float:
    """Return how far a factor is from 1, in logarithms; 0 for an unknown one."""
    if factor is None:
        return 0.0
    return abs(math.log(factor)) if factor else math.inf


@dataclass(frozen=True, repr=False)
class Causes(Shown):
    """One design, or two: runs as they are, and with one field changed at a time."""

    #: All runs; its points are `AS_IT_IS` and the changes.
    sweep: Sweep
    changes: Mapping[Point, Change]
    refused: tuple[Refused, ...]
    by: int
    cores: int | None
    #: The fields and sections that were asked for alone, if any were.
    fields: tuple[str, ...] | None = None

    @property
    def designs(self) -> tuple[str, ...]:
        """One design, or two, of which the second is divided by the first."""
        return self.sweep.designs

    @property
    def interrupted(self) -> bool:
        """Whether not all runs had ended."""
        return self.sweep.interrupted

    @property
    def taken(self) -> Taken | None:
        """How many runs were taken from the folder of kept runs."""
        return self.sweep.taken

    @property
    def passed(self) -> bool:
        """Whether no design failed a crash campaign, as it is or with a change."""
        return self.sweep.passed

    @cached_property
    def as_it_is(self) -> Comparison:
        """The runs without any change."""
        runs = {
            (design, workload, self.cores, seed): run
            for (point, design, workload, seed), run in self.sweep.runs.items()
            if point == AS_IT_IS
        }
        of = self.sweep
        return Comparison(
            designs=of.designs,
            workloads=of.workloads,
            cores=(self.cores,),
            machine=of.machine,
            seeds=of.seeds,
            metric=of.metric,
            normalize=of.designs[0],
            runs=runs,
            verdicts={
                (design, workload, self.cores): verdict
                for (point, design, workload), verdict in of.verdicts.items()
                if point == AS_IT_IS
            },
            is_tested=of.is_tested,
            durability=of.durability,
            interrupted=of.interrupted,
            settings=of.settings,
            txs=of.txs,
            warmup=of.warmup,
            exact=of.exact,
            scripts=of.scripts,
        )

    @property
    def runs(self) -> Mapping[SeededCell, Run]:
        """The runs without any change, which the JSON has as `runs`."""
        return self.as_it_is.runs

    def broken(self, point: Point) -> list[str]:
        """Return the designs that fail a crash campaign with a change, and none without it."""
        return [
            design
            for design in self.designs
            if self.sweep.verdict(point, design).kind == "fail"
            and self.sweep.verdict(AS_IT_IS, design).kind != "fail"
        ]

    def effect(self, point: Point, design: str) -> float | None:
        """Return the metric of a design with a change, relative to the one without it."""
        return mean_ratio_of_seeds(self._effects(point, design))

    def effect_half_width(self, point: Point, design: str) -> float | None:
        """Return half the width of the confidence interval of an effect."""
        return half_width(self._effects(point, design))

    def ratio(self, point: Point = AS_IT_IS) -> float | None:
        """Return the metric of the second design relative to the first; None for one design."""
        return mean_ratio_of_seeds(self._ratios(point))

    def ratio_half_width(self, point: Point = AS_IT_IS) -> float | None:
        """Return half the width of the confidence interval of that ratio."""
        return half_width(self._ratios(point))

    def shift(self, point: Point) -> float | None:
        """Return by how much a change moves that ratio, or the metric of the only design."""
        return mean_ratio_of_seeds(self._shifts(point))

    def shift_half_width(self, point: Point) -> float | None:
        """Return half the width of the confidence interval of a shift."""
        return half_width(self._shifts(point))

    def _shifts(self, point: Point) -> list[float | None]:
        if len(self.designs) == 1:
            return self._effects(point, self.designs[0])
        pairs = zip(self._ratios(point), self._ratios(AS_IT_IS), strict=True)
        return [there / here if there is not None and here else None for there, here in pairs]

    def _ratios(self, point: Point) -> list[float | None]:
        """Return the ratio with each seed."""
        if len(self.designs) == 1:
            return [None for _ in self.sweep.seeds_shown]
        return self._means(self._paired, point, self.designs[1])

    def _effects(self, point: Point, design: str) -> list[float | None]:
        return self._means(self.sweep, point, design)

    def _means(self, of: Sweep, point: Point, design: str) -> list[float | None]:
        """Return each seed's geometric mean of the ratios over the workloads; 0 if one is 0."""
        cells = [(point, design, workload) for workload in of.workloads]
        return [of.mean(cells, seed) for seed in of.seeds_shown]

    @cached_property
    def _paired(self) -> Sweep:
        """The runs, relative to the first design with the same change."""
        return replace(self.sweep, normalize=self.designs[0])

    def whole(self) -> list[Point]:
        """Return the changes all of whose runs with the shown seeds have ended."""
        of = self.sweep
        cells = [*product(self.designs, of.workloads, of.seeds_shown)]
        return [point for point in self.changes if all((point, *cell) in of.runs for cell in cells)]

    def ranked(self) -> list[Point]:
        """Return these changes, the one that moves most first."""
        return sorted(self.whole(), key=lambda point: -self._moved(point))

    def _moved(self, point: Point) -> float:
        """Return how far a change moves the ratio, or without one the design that moves most."""
        if (shift := self.shift(point)) is not None:
            return distance(shift)
        return max(distance(self.effect(point, design)) for design in self.designs)

    def is_seen(self, point: Point) -> bool:
        """Return whether a change moves the ratio, or one of the designs, far enough to be told.

        With several seeds the confidence interval must lie on one side of 1, too.
        """
        moved = [self._shifts(point), *(self._effects(point, design) for design in self.designs)]
        return any(map(self._is_sure, moved))

    def _is_sure(self, factors: list[float | None]) -> bool:
        reach = log_half_width(factors) or 0.0
        return distance(mean_ratio_of_seeds(factors)) >= max(LEAST_SHIFT, reach)

    def side(self, point: Point = AS_IT_IS) -> int | None:
        """Return whether the ratio is above 1 (1), below 1 (-1), or not clearly either (0)."""
        ratios = self._ratios(point)
        if (mean := mean_ratio_of_seeds(ratios)) is None:
            return None
        if distance(mean) < max(math.log(LEAST_LEAD), log_half_width(ratios) or 0.0):
            return 0
        return 1 if mean > 1 else -1

    def hardware(self, design: str) -> list[Point]:
        """Return the changes of the machine and of a design's own fields whose runs have ended."""
        others = {called(name) for name in self.designs if name != design}
        return [
            at
            for at in self.whole()
            if self.changes[at].of in (MACHINE, DESIGN)
            and self.changes[at].field.rpartition(".")[0] not in others
        ]

    def improved_by(self, design: str) -> list[Point] | None:
        """Return the changes of machine and design that improve a design, the largest first.

        A change with which the design fails a crash campaign does not improve it. None if no such
        field was changed, or if neither more nor less of the metric is better.
        """
        is_higher, hardware = METRICS[self.sweep.metric].higher_is_better, self.hardware(design)
        if is_higher is None or not hardware:
            return None
        effects = {point: self.effect(point, design) for point in hardware}
        better = {
            point: distance(effect)
            for point, effect in effects.items()
            if effect is not None and (effect > 1) == is_higher and design not in self.broken(point)
        }
        seen = [point for point in better if self._is_sure(self._effects(point, design))]
        return sorted(seen, key=lambda point: -better[point])

    def notes(self, point: Point = AS_IT_IS) -> list[str]:
        """Return the notes of the runs with a change, such as what hardware a design brings."""
        runs = (run for cell, run in self.sweep.runs.items() if cell[0] == point)
        return [*dict.fromkeys(note for run in runs for note in run.data.get("notes") or [])]

    @property
    def stacked(self) -> stacks.Stacked:
        """What explains the metric: the writes for a metric of writes, else the cores' time."""
        return stacks.WRITES if self.sweep.metric in OF_WRITES else stacks.STALLS

    def stacks(self) -> list[dict[str, Any]]:
        """Return the parts of a transaction of each design; the first design's total is 100."""
        return [
            {"design": row["design"], "total": row["total"], "parts": row["parts"]}
            for row in stacks.rows(self.as_it_is, self.stacked)
            if row["workload"] == stacks.MEAN
        ]

    def busy(self) -> list[dict[str, Any]]:
        """Return how busy the machine was under each design, means over workloads and seeds."""
        answer = self.as_it_is
        found = []
        for design in answer.designs:
            cells = [(design, workload, self.cores) for workload in answer.workloads]
            each = [usage.numbers(answer, cell) for cell in cells]
            numbers = {name: mean_of_seeds(one[name] for one in each) for name in usage.NUMBERS}
            for name in ALSO:
                of = answer.by_metric(name)
                numbers[name.replace("-", "_")] = mean_of_seeds(map(of.value, cells))
            found.append({"design": design, **numbers})
        return found

    @property
    def rows(self) -> list[dict[str, Any]]:
        """A row for each change, the one that moves most first."""
        return [self._row(point) for point in self.ranked()]

    def _row(self, point: Point) -> dict[str, Any]:
        row = self.changes[point].json()
        row["effects"] = {design: self.effect(point, design) for design in self.designs}
        row |= {"ratio": self.ratio(point), "shift": self.shift(point)}
        if len(self.sweep.seeds) > 1:
            row |= interval_fields(row["shift"], self.shift_half_width(point), "shift_")
        row["crash"] = {d: self.sweep.verdict(point, d).json() for d in self.designs}
        return row | {"notes": self.notes(point)}

    def command_with(self, *written: str) -> str:
        """Return the command line that repeats it, and writes this."""
        own = ["--by", str(self.by), *flag("--fields", self.fields)]
        more = [*self.sweep.untested(), *written]
        return self.sweep.line("why", [self.cores], self.sweep.seeds, own, more)

    @property
    def command(self) -> str:
        """The command line that repeats it."""
        return self.command_with()

    def json(self) -> dict[str, Any]:
        """Return the object that `--json` prints."""
        return {
            **self.sweep.asked(),
            "by": self.by,
            "ratio": self.ratio(),
            "stacks": self.stacks(),
            "busy": self.busy(),
            "rows": self.rows,
            "refused": [{**one.change.json(), "reason": one.reason} for one in self.refused],
            "runs": self.as_it_is.rows,
            "cancelled": self.interrupted,
            **origin(self.command, self.sweep.settings),
        }

    def csv(self) -> str:
        """Return the rows as comma-separated values, nested keys joined by dots."""
        return rows_as_csv(self.rows)

    def save(self, path: str | PathLike[str]) -> None:
        """Draw the figure of `--plot` into a .png, .svg or .pdf."""
        from indelible import plots
        from indelible.plots import causes as causes_plot

        plots.save(causes_plot.figure, self, path)

    def report(self, path: str | PathLike[str]) -> None:
        """Write the page of `--report`: the answer as one HTML page, with its JSON."""
        from indelible.pages import report

        report.save(self, path)

    def __repr__(self) -> str:
        return f"<Causes of {', '.join(self.designs)}>"

    def __str__(self) -> str:
        from indelible.text import causes as causes_text

        return causes_text.causes(self)
