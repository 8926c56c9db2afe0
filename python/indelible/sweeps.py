"""A sweep: the same experiments at several values of one or more fields. Numbers, no drawing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import Any

from indelible.means import geometric_mean
from indelible.results import METRICS, Run, rows_as_csv

#: The values of the fields that vary.
Point = tuple[str, ...]

#: One run of a sweep: the values, the design, the workload.
SweepCell = tuple[Point, str, str]


@dataclass(frozen=True, repr=False)
class Sweep:
    """Designs on workloads at points; what an interruption left out is not in `runs`."""

    designs: tuple[str, ...]
    workloads: tuple[str, ...]
    vary: Mapping[str, tuple[str, ...]]
    points: tuple[Point, ...]
    machine: str
    seed: int
    metric: str
    #: The design that is 1.00 at each point; if there is none, each is 1.00 at the first point.
    normalize: str | None
    runs: Mapping[SweepCell, Run]
    durability: Mapping[str, str]
    interrupted: bool = False

    def cells(self) -> list[SweepCell]:
        """Return the cells in the order of the rows."""
        return [(p, d, w) for p in self.points for w in self.workloads for d in self.designs]

    def shown(self) -> tuple[str, ...]:
        """Return the designs that are not 1.00 everywhere."""
        return tuple(d for d in self.designs if d != self.normalize) or self.designs

    def value(self, cell: SweepCell) -> float | None:
        """Return the metric of a cell, in its own unit."""
        run = self.runs.get(cell)
        return None if run is None else METRICS[self.metric].value(run.data)

    def ratio(self, cell: SweepCell) -> float | None:
        """Return the metric of a cell, relative to the base."""
        value, unit = self.value(cell), self.value(self.base(cell))
        return value / unit if value is not None and unit else None

    def base(self, cell: SweepCell) -> SweepCell:
        """Return the cell that is 1.00 for a cell."""
        point, design, workload = cell
        if self.normalize is not None:
            return point, self.normalize, workload
        return self.points[0], design, workload

    def gmean(self, point: Point, design: str) -> float | None:
        """Return the geometric mean of a design's ratios over the workloads."""
        return geometric_mean(self.ratio((point, design, w)) for w in self.workloads)

    def crossings(self) -> list[dict[str, Any]]:
        """Return where one design passes another, if a single field varies.

        Over several workloads a design is ahead if the geometric mean of its values is.
        """
        if len(self.vary) != 1:
            return []
        found = (c for pair in combinations(self.designs, 2) for c in self._crossings(*pair))
        return [*found]

    def _crossings(self, one: str, other: str) -> Iterator[dict[str, Any]]:
        leads = [(point, self._lead(point, one, other)) for point in self.points]
        known = [(point, lead) for point, lead in leads if lead is not None and lead != 1.0]
        for (before, lead), (after, next_lead) in pairwise(known):
            if (lead > 1) != (next_lead > 1):
                ahead, behind = (one, other) if next_lead > 1 else (other, one)
                yield {"ahead": ahead, "behind": behind, "after": before[0], "by": after[0]}

    def _lead(self, point: Point, one: str, other: str) -> float | None:
        """Return by which factor one design is better than another; above 1 it is."""
        cells = [((point, one, w), (point, other, w)) for w in self.workloads]
        values = [(self.value(left), self.value(right)) for left, right in cells]
        lead = geometric_mean(left / right if left and right else None for left, right in values)
        return lead if lead is None or METRICS[self.metric].higher_is_better else 1 / lead

    def named(self, point: Point) -> dict[str, str]:
        """Return the fields of a point, with their values."""
        return dict(zip(self.vary, point, strict=True))

    def json(self) -> dict[str, Any]:
        """Return the object that `--json` prints."""
        means = [
            {"point": self.named(point), "design": design, "value": self.gmean(point, design)}
            for point in self.points
            for design in self.designs
        ]
        return {
            "vary": {key: [*values] for key, values in self.vary.items()},
            "metric": self.metric,
            "normalize": self.normalize,
            "rows": [*self._rows()],
            "gmean": means,
            "crossings": self.crossings(),
            "cancelled": self.interrupted,
        }

    def csv(self) -> str:
        """Return the rows as comma-separated values, nested keys joined by dots."""
        return rows_as_csv(self._rows())

    def _rows(self) -> Iterator[dict[str, Any]]:
        for cell in self.cells():
            if (run := self.runs.get(cell)) is not None:
                point = self.named(cell[0])
                yield {"point": point, **run.data, "normalized": self.ratio(cell)}

    def __repr__(self) -> str:
        return f"<Sweep of {', '.join(self.vary)}: {', '.join(self.designs)}>"

    def __str__(self) -> str:
        from indelible import sweep_text

        return sweep_text.sweep(self)
