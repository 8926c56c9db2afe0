"""The answer of `reproduce`: the published and the measured values of a paper's claims."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any

from indelible.commands import flag, line, sets
from indelible.evaluation import Cell, Rows
from indelible.experiment import Experiment
from indelible.extension import describe
from indelible.kept import Taken
from indelible.papers import Claim, Paper
from indelible.results import Shown
from indelible.results.origin import origin
from indelible.results.run import Run
from indelible.results.sweep import Point
from indelible.rows import rows_as_csv
from indelible.settings import MACHINE_FIELD, Pairs, as_value, canonical, of_cell


class OfClaims(Shown, ABC):
    """An answer with a row for each claim, which can be saved as a file and as a figure."""

    @property
    @abstractmethod
    def shown(self) -> list[dict[str, Any]]:
        """The rows, in which the unit of a share is `share`: a change in % is shown with a sign."""

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The rows of the JSON; a claim with missing runs has no measured value."""
        return [{**row, "unit": "%"} if row["unit"] == "share" else row for row in self.shown]

    def csv(self) -> str:
        """Return a row for each claim as comma-separated values; an order has one per design."""
        return rows_as_csv(flat for row in self.rows for flat in _flat(row))

    def save(self, path: str | PathLike[str]) -> None:
        """Draw the figure of `--plot` into a .png, .svg or .pdf."""
        from indelible import plots
        from indelible.plots import reproduction as reproduction_plot

        # Both classes derived from this one have a figure.
        plots.save(reproduction_plot.figure, self, path)  # type: ignore[arg-type]


@dataclass(frozen=True, repr=False)
class Reproduction(OfClaims):
    """A paper, and the runs that were made for it."""

    paper: Paper
    txs: int | None
    seed: int
    runs: Mapping[Cell, Run]
    interrupted: bool = False
    #: A machine in place of the paper's, and settings of all runs that do not set the same field.
    machine: str | None = None
    settings: Pairs = ()
    taken: Taken | None = None

    def plan(self) -> dict[Cell, Experiment]:
        """Return the experiments that its claims need."""
        cells = self.paper.cells()
        names = {name for cell in cells for name in (cell.design, cell.workload)}
        machine = self.used_machine
        # Claims override settings by key, so a field under another name gets its own name first.
        settings = canonical(self.settings, describe(f"machine:{machine}")["rows"])
        plan = {}
        for cell in cells:
            own = of_cell(settings, cell.design, cell.workload, names)
            plan[cell] = cell.experiment(machine, self.txs, self.seed, own)
        return plan

    @property
    def used_machine(self) -> str:
        """The machine of its runs, but for claims that have one of their own."""
        return self.machine or self.paper.machine

    @property
    def shown(self) -> list[dict[str, Any]]:
        """A row for each claim; a claim with missing runs has no measured value."""
        return [self._row(claim) for claim in self.paper.claims]

    def _row(self, claim: Claim) -> dict[str, Any]:
        is_whole = all(cell in self.runs for cell in claim.cells)
        row = row_of(claim, (lambda cell: self.runs[cell].data) if is_whole else None)
        # The row names the claim that it repeats, so that it can be read alone.
        return {"what": row.pop("what"), "same_as": self.paper.same_as(claim), **row}

    def json(self) -> dict[str, Any]:
        """Return the object that `--json` prints."""
        return {
            "paper": self.paper.name,
            "title": self.paper.title,
            "machine": self.used_machine,
            "seed": self.seed,
            "rows": self.rows,
            "runs": [run.json() for run in self.runs.values()],
            "cancelled": self.interrupted,
            **origin(self.command, self.settings),
        }

    @property
    def command(self) -> str:
        """The command line that repeats it."""
        return self.command_at({})

    def command_at(self, vary: Mapping[str, Sequence[str]]) -> str:
        """Return the command line that makes the runs at each value of the fields that vary."""
        kept = tuple(pair for pair in self.settings if pair[0] not in vary)
        return line(
            *("reproduce", self.paper.name),
            [] if MACHINE_FIELD in vary else flag("--machine", self.machine),
            [word for key, of in vary.items() for word in ("--vary", f"{key}={','.join(of)}")],
            [] if "txs" in vary else flag("--txs", self.txs),
            sets(kept),
            [] if "seed" in vary else flag("--seed", self.seed),
        )

    def __repr__(self) -> str:
        return f"<Reproduction of {self.paper.title}>"

    def __str__(self) -> str:
        from indelible.text import reproduction as reproduction_text

        return reproduction_text.reproduction(self)


@dataclass(frozen=True, repr=False)
class Reproductions(OfClaims):
    """A paper's claims at each value of some fields."""

    vary: Mapping[str, tuple[str, ...]]
    points: Mapping[Point, Reproduction]

    @property
    def first(self) -> Reproduction:
        """The claims at the first point."""
        return next(iter(self.points.values()))

    @property
    def used_machine(self) -> str | None:
        """The machine of the runs, None if it varies."""
        return None if MACHINE_FIELD in self.vary else self.first.used_machine

    @property
    def interrupted(self) -> bool:
        """Whether not all runs had ended."""
        return self.first.interrupted

    @property
    def taken(self) -> Taken | None:
        """How many runs of all points were taken from the folder of kept runs."""
        return self.first.taken

    @property
    def shown(self) -> list[dict[str, Any]]:
        """A row for each claim at each point."""
        return [
            {"point": dict(zip(self.vary, map(as_value, point), strict=True)), **row}
            for point, answer in self.points.items()
            for row in answer.shown
        ]

    def json(self) -> dict[str, Any]:
        """Return the object that `--json` prints; a run that several points share is there once."""
        runs = {
            run.experiment: run for answer in self.points.values() for run in answer.runs.values()
        }
        return {
            **self.first.json(),
            "machine": self.used_machine,
            "vary": {key: [*map(as_value, values)] for key, values in self.vary.items()},
            "rows": self.rows,
            "runs": [run.json() for run in runs.values()],
            **origin(self.command, self.kept),
        }

    @property
    def command(self) -> str:
        """The command line that repeats it."""
        return self.first.command_at(self.vary)

    @property
    def kept(self) -> Pairs:
        """The settings that are the same at all points."""
        return tuple(pair for pair in self.first.settings if pair[0] not in self.vary)

    def __repr__(self) -> str:
        return f"<Reproductions of {self.first.paper.title}: {', '.join(self.vary)}>"

    def __str__(self) -> str:
        from indelible.text import reproduction as reproduction_text

        return reproduction_text.reproductions(self)


def row_of(claim: Claim, rows: Rows | None) -> dict[str, Any]:
    """Return the row of a claim: the published value, and with `rows` of runs the measured one."""
    row = {
        "what": claim.what,
        "unit": claim.unit,
        "published": _published(claim),
        "published_range": published_range(claim),
    }
    found = None if rows is None else claim.measure(rows)
    if found is None or isinstance(found, float):
        return {**row, "measured": found}
    return {**row, "measured": [{"design": name, "value": value} for name, value in found]}


def _flat(row: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Return the rows of one claim in a file: one, or for an order one per design."""
    low, high = row.pop("published_range") or (None, None)
    row |= {"published_low": low, "published_high": high, "design": None}
    if isinstance(row["measured"], list):
        for mean in row["measured"]:
            yield {**row, "design": mean["design"], "measured": mean["value"]}
    else:
        yield row


def published_range(claim: Claim) -> tuple[float, float] | None:
    """Return the least and the largest published value; None for an order."""
    match claim.published:
        case str():
            return None
        case (low, high):
            return low, high
        case value:
            return value, value


def _published(claim: Claim) -> str:
    if (numbers := published_range(claim)) is None:
        return str(claim.published)
    return " to ".join(dict.fromkeys(_as_published(value, claim.unit) for value in numbers))


def _as_published(value: float, unit: str) -> str:
    match unit:
        case "%":
            return f"{value:+g} %"
        case "share":
            return f"{value:g} %"
    return f"{value:g}x"
