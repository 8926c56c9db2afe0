"""A sweep: the same experiments at several values of one or more fields. Numbers, no drawing."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations, pairwise
from os import PathLike
from typing import Any

from indelible.errors import InputError
from indelible.means import (
    geometric_mean,
    interval_fields,
    log_half_width,
    mean_ratio_of_seeds,
)
from indelible.metrics import METRICS
from indelible.results.crash import Verdict
from indelible.results.origin import origin
from indelible.results.seeds import AnyCell, OfSeeds, known, parts_of
from indelible.rows import rows_as_csv
from indelible.settings import MACHINE_FIELD, as_value, as_word

#: The least lead that counts: a smaller one is shown as 1.00 (ours).
LEAST_LEAD = 1.005

#: The values of the fields that vary.
Point = tuple[str, ...]

#: One cell of a sweep: the values, the design, the workload. The key of a run also has the seed
#: that was asked for; the point may have another seed.
SweepCell = tuple[Point, str, str]


@dataclass(frozen=True, repr=False, kw_only=True)
class Sweep(OfSeeds):
    """The answer of `sweep`: designs on workloads at points."""

    vary: Mapping[str, tuple[str, ...]]
    points: tuple[Point, ...]
    #: The design that is 1.00 at each point; if None, each design is 1.00 at the first point.
    normalize: str | None
    #: The number of cores, None if it varies or is the machine's.
    cores: int | None = None
    #: How many items workloads have on each machine, if it varies.
    items: Mapping[str, int] = field(default_factory=dict)

    def cells(self) -> list[SweepCell]:
        """Return the cells in the order of the rows."""
        return [(p, d, w) for p in self.points for w in self.workloads for d in self.designs]

    def place(self, cell: SweepCell) -> SweepCell:
        """Return a cell as the rows have it, its values as words."""
        point, design, workload = parts_of(cell, "point", "design", "workload")
        design = known("design", design, self.designs)
        return self._point(point), design, known("workload", workload, self.workloads)

    def _point(self, point: object) -> Point:
        """Return a point from its values; a single value need not be in a list."""
        if isinstance(point, Mapping):
            if {*point} != {*self.vary}:
                raise InputError(f"a point must have {', '.join(self.vary)}, not {[*point]}")
            point = [point[key] for key in self.vary]
        alone = isinstance(point, str) or not isinstance(point, Iterable)
        several: Iterable[object] = (point,) if alone else point  # type: ignore[assignment]
        values = tuple(map(as_word, several))
        # Tables look a point up for each number, so a search through all would be quadratic.
        # The JSON has numbers, which are not always written as they were given: 0.1 for 0.10.
        found = self._known_points.get(values) or self._known_points.get(_numbers(values))
        return found or known("point", values, self.points)

    @cached_property
    def _known_points(self) -> dict[tuple[int | float | str, ...], Point]:
        numbers = {_numbers(point): point for point in reversed(self.points)}
        return numbers | {point: point for point in self.points}

    def shown(self) -> tuple[str, ...]:
        """Return the designs that are not 1.00 everywhere."""
        return tuple(d for d in self.designs if d != self.normalize) or self.designs

    def base(self, cell: SweepCell) -> SweepCell:
        """Return the cell that is 1.00 for a cell."""
        point, design, workload = cell
        if self.normalize is not None:
            return point, self.normalize, workload
        return self.points[0], design, workload

    def gmean(self, point: Point, design: str) -> float | None:
        """Return the geometric mean of a design's ratios over the workloads."""
        return self.mean(self._row(point, design))

    def gmean_half_width(self, point: Point, design: str) -> float | None:
        """Return half the width of the confidence interval of a design's mean."""
        return self.mean_half_width(self._row(point, design))

    def verdict(self, point: Point, design: str) -> Verdict:
        """Return the verdict of a design's crash campaigns at a point on all workloads together."""
        cells = self._row(point, design)
        return Verdict.all_of(self.verdicts[cell] for cell in cells if cell in self.verdicts)

    def _row(self, point: Point, design: str) -> list[SweepCell]:
        return [self.place((point, design, workload)) for workload in self.workloads]

    @property
    def machines(self) -> tuple[str, ...]:
        """The machines of the runs, which may vary."""
        return tuple(self.vary.get(MACHINE_FIELD, super().machines))

    def of_runs(self, said: Callable[[Mapping[str, Any]], str]) -> str:
        """Return what is `said` of a run, of machines that vary with the machines if they differ.

        No text if it is not the same of all runs on one machine.
        """
        of: dict[str, set[str]] = {}
        for (point, *_), run in self.runs.items():
            of.setdefault(self.named(point).get(MACHINE_FIELD, ""), set()).add(said(run.data))
        if any(len(words) > 1 for words in of.values()):
            return ""
        return by_machine({machine: word for machine, (word,) in of.items()})

    def crossings(self) -> list[dict[str, Any]]:
        """Return where one design passes another, if a single field varies.

        Machines have no order in which a design could pass another: `ahead` has who leads on each.
        Over several workloads the geometric means of the designs' values are compared. With several
        seeds a crossing is `sure` if the confidence intervals of the leads at both points exclude
        1. Designs that differ by less than half a hundredth are level, and neither is ahead. A
        design that is no rival passes none, and none passes one that failed a crash campaign.
        """
        if len(self.vary) != 1 or MACHINE_FIELD in self.vary:
            return []
        sound = [d for d in self.designs if self.verdict_on_all(d).kind != "fail"]
        found = (c for pair in combinations(sound, 2) for c in self._crossings(*pair))
        rivals = self.rivals()
        return [crossing for crossing in found if crossing["ahead"] in rivals]

    def _crossings(self, one: str, other: str) -> Iterator[dict[str, Any]]:
        leads = [(point, self._lead(point, one, other)) for point in self.points]
        told = [
            (point, lead) for point, lead in leads if lead and max(lead, 1 / lead) >= LEAST_LEAD
        ]
        for (before, lead), (after, next_lead) in pairwise(told):
            if (lead > 1) != (next_lead > 1):
                ahead, behind = (one, other) if next_lead > 1 else (other, one)
                found: dict[str, Any] = {"ahead": ahead, "behind": behind}
                found |= {"after": before[0], "by": after[0]}
                if len(self.seeds_shown) > 1:
                    found["sure"] = all(self._is_sure(at, one, other) for at in (before, after))
                yield found

    def rivals(self) -> tuple[str, ...]:
        """Return the designs that compete, without those that may lose data."""
        durable = (d for d in self.designs if self.durability.get(d) != "none")
        return tuple(filter(self.is_rival, durable))

    def ahead(self) -> list[dict[str, Any]]:
        """Return which design is ahead at each point, if designs compete.

        Two fields vary, or the machine does.
        The leader is the design with the best metric (over several workloads the geometric mean),
        by the factor `lead` over the `second` best. The design is None where the two are level
        (they differ by less than half a hundredth), or where a rival has no value or 0. With
        several seeds it is `sure` if the confidence interval of the lead excludes 1. The list is
        empty for a metric of which neither more nor less is better.
        """
        is_contest = METRICS[self.metric].higher_is_better is not None
        is_asked = len(self.vary) == 2 or [*self.vary] == [MACHINE_FIELD]
        if not (is_contest and is_asked) or len(self.rivals()) < 2:
            return []
        return [{"point": self.named(point), **self._ahead(point)} for point in self.points]

    def _ahead(self, point: Point) -> dict[str, Any]:
        rivals = self.rivals()
        leads = {design: self._lead(point, design, rivals[0]) or 0.0 for design in rivals}
        found: dict[str, Any] = {"design": None, "lead": None, "second": None}
        # Without the value of every rival, the leader is unknown.
        if all(leads.values()):
            first, second = sorted(rivals, key=lambda design: -leads[design])[:2]
            lead = self._lead(point, first, second) or 0.0
            is_level = lead < LEAST_LEAD
            names = {} if is_level else {"design": first, "second": second}
            found |= {"lead": 1.0 if is_level else lead, **names}
        if len(self.seeds_shown) > 1:
            is_told = found["design"] is not None
            found["sure"] = is_told and self._is_sure(point, found["design"], found["second"])
        return found

    def _is_sure(self, point: Point, one: str, other: str) -> bool:
        """Return whether the confidence interval of a lead is on one side of 1."""
        leads = [self._lead_of_seed(point, one, other, seed) for seed in self.seeds_shown]
        lead, width = mean_ratio_of_seeds(leads), log_half_width(leads)
        return lead is not None and width is not None and abs(math.log(lead)) > width

    def _lead(self, point: Point, one: str, other: str) -> float | None:
        """Return the factor by which one design is better than another; below 1 it is worse."""
        leads = (self._lead_of_seed(point, one, other, seed) for seed in self.seeds_shown)
        return mean_ratio_of_seeds(leads)

    def _lead_of_seed(self, point: Point, one: str, other: str, seed: int) -> float | None:
        cells = zip(self._row(point, one), self._row(point, other), strict=True)
        values = [(self.value(left, seed), self.value(right, seed)) for left, right in cells]
        lead = geometric_mean(left / right if left and right else None for left, right in values)
        return lead if lead is None or METRICS[self.metric].higher_is_better else 1 / lead

    def named(self, point: Point) -> dict[str, str]:
        """Return the fields of a point, with their values as words."""
        return dict(zip(self.vary, point, strict=True))

    def valued(self, point: Point) -> dict[str, int | float | str]:
        """Return the fields of a point, with their values as the JSON has them."""
        return dict(zip(self.vary, _numbers(point), strict=True))

    def command_with(self, *written: str) -> str:
        """Return the command line that repeats it, and writes this."""
        varied = [("--vary", f"{key}={','.join(values)}") for key, values in self.vary.items()]
        own = [word for pair in varied for word in pair]
        own += [] if self.normalize is None else ["--normalize", self.normalize]
        # What varies is not said by what else was asked for.
        seeds = () if "seed" in self.vary else self.seeds
        return self.line("sweep", [self.cores], seeds, own, [*self.untested(), *written])

    @property
    def command(self) -> str:
        """The command line that repeats it."""
        return self.command_with()

    def asked(self) -> dict[str, Any]:
        """Return the fields that `--json` begins with; seeds that vary are those of the points."""
        varied = dict.fromkeys(_numbers(self.vary.get("seed", ())))
        return super().asked() | ({"seeds": [*varied]} if varied else {})

    def json(self) -> dict[str, Any]:
        """Return the object that `--json` prints."""
        means = [self._gmean_row(point, design) for point in self.points for design in self.designs]
        answer: dict[str, Any] = {
            **self.asked(),
            "vary": {key: [*_numbers(values)] for key, values in self.vary.items()},
            "normalize": self.normalize,
            "rows": self.rows,
            "gmean": means,
            "crossings": [
                {**row, "after": as_value(row["after"]), "by": as_value(row["by"])}
                for row in self.crossings()
            ],
            "ahead": [
                {**row, "point": self.valued(point)}
                for point, row in zip(self.points, self.ahead(), strict=False)
            ],
            "cancelled": self.interrupted,
        }
        if len(self.seeds) > 1:
            answer["cells"] = [*map(self._summary, self.cells())]
        return answer | self.left_out() | origin(self.command, self.settings)

    def csv(self) -> str:
        """Return the rows as comma-separated values, nested keys joined by dots."""
        return rows_as_csv(self.rows)

    def save(self, path: str | PathLike[str]) -> None:
        """Draw the figure of `--plot` into a .png, .svg or .pdf; one field varies, or two."""
        from indelible import plots
        from indelible.plots import sweep as sweep_plot

        plots.save(sweep_plot.figure, self, path)

    def report(self, path: str | PathLike[str]) -> None:
        """Write the page of `--report`: the answer as one HTML page, with its rows as JSON."""
        from indelible.pages import report

        report.save(self, path)

    def table(self) -> list[dict[str, Any]]:
        """Return a row for each cell (a mean over seeds), and `gmean` for the means of designs."""
        from indelible import tables

        return [*tables.swept(self)]

    def save_table(self, path: str | PathLike[str]) -> None:
        """Write the table of `--table` into a .csv, .tex or .md."""
        from indelible import sheets

        sheets.save(path, sheets.swept(self, path))

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The rows of the JSON, one for each run."""
        return [*self._rows()]

    def _rows(self) -> Iterator[dict[str, Any]]:
        for cell in self.cells():
            for seed in self.seeds:
                if (run := self.runs.get((*cell, seed))) is not None:
                    point, ratio = self.valued(cell[0]), self.ratio(cell, seed)
                    own = {"normalized": ratio, "crash": self.crash(cell)}
                    yield {"point": point, **run.json(), **own}

    def _gmean_row(self, point: Point, design: str) -> dict[str, Any]:
        mean = {"value": self.gmean(point, design)}
        if len(self.seeds) > 1:
            mean |= interval_fields(mean["value"], self.gmean_half_width(point, design))
        return {"point": self.valued(point), "design": design, **mean}

    def own(self, cell: AnyCell) -> dict[str, Any]:
        """Return the fields that `--json` has for whose numbers a row has."""
        point, design, workload = cell
        return {"point": self.valued(point), "design": design, "workload": workload}

    def _summary(self, cell: SweepCell) -> dict[str, Any]:
        return {**self.own(cell), **self.means(cell)}

    def __repr__(self) -> str:
        return f"<Sweep of {', '.join(self.vary)}: {', '.join(self.designs)}>"

    def __str__(self) -> str:
        from indelible.text import sweep as sweep_text

        return sweep_text.sweep(self)


def by_machine(said: Mapping[str, str]) -> str:
    """Return what is said of each machine, once if it is the same of all, else with their names."""
    machines: dict[str, list[str]] = {}
    for machine, word in said.items():
        machines.setdefault(word, []).append(machine)
    if len(machines) == 1:
        return next(iter(machines))
    return ", ".join(f"{word} ({', '.join(names)})" for word, names in machines.items())


def _numbers(values: Iterable[str]) -> tuple[int | float | str, ...]:
    return tuple(map(as_value, values))
