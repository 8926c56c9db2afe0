"""What came of a paper's claims: rows, and the table of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from os import PathLike
from typing import Any

from indelible import text
from indelible.evaluation import Cell
from indelible.papers import Claim, Paper
from indelible.results import Run, rows_as_csv
from indelible.shown import Shown


@dataclass(frozen=True, repr=False)
class Reproduction(Shown):
    """A paper, and the runs that were made for it."""

    paper: Paper
    txs: int | None
    seed: int
    runs: Mapping[Cell, Run]
    interrupted: bool = False

    @property
    def rows(self) -> list[dict[str, Any]]:
        """A row for each claim; what was not run to its end has measured nothing."""
        return [self._row(claim) for claim in self.paper.claims]

    def _row(self, claim: Claim) -> dict[str, Any]:
        row = {
            "what": claim.what,
            "unit": claim.unit,
            "published": _published(claim),
            "published_range": published_range(claim),
        }
        if any(cell not in self.runs for cell in claim.cells):
            return {**row, "measured": None}
        found = claim.measure(lambda cell: self.runs[cell].data)
        if isinstance(found, float):
            return {**row, "measured": found}
        return {**row, "measured": [{"design": name, "value": value} for name, value in found]}

    def json(self) -> dict[str, Any]:
        """Return the object that `--json` prints."""
        return {
            "paper": self.paper.name,
            "title": self.paper.title,
            "machine": self.paper.machine,
            "seed": self.seed,
            "rows": self.rows,
            "runs": [run.json() for run in self.runs.values()],
            "cancelled": self.interrupted,
        }

    def csv(self) -> str:
        """Return a row for each claim as comma-separated values; an order has one a design."""
        return rows_as_csv(self._flat())

    def _flat(self) -> Iterator[dict[str, Any]]:
        for row in self.rows:
            low, high = row.pop("published_range") or (None, None)
            row |= {"published_low": low, "published_high": high, "design": None}
            if isinstance(row["measured"], list):
                for mean in row["measured"]:
                    yield {**row, "design": mean["design"], "measured": mean["value"]}
            else:
                yield row

    def save(self, path: str | PathLike[str]) -> None:
        """Draw the figure of `--plot` into a .png, .svg or .pdf."""
        from indelible import plot, reproduction_plot

        plot.save(reproduction_plot.figure, self, path)

    def __repr__(self) -> str:
        return f"<Reproduction of {self.paper.title}>"

    def __str__(self) -> str:
        return reproduction(self)


def reproduction(answer: Reproduction, width: int | None = None) -> str:
    """Return the table of what was published and what is measured here."""
    width = width or text.terminal_width()
    table = [[row["what"], row["published"], _measured(row)] for row in answer.rows]
    counts = {
        run.data["txs"] // run.data["cores"]
        for cell, run in answer.runs.items()
        if cell.larger == 1
    }
    each = f" · {max(counts):,} transactions a core" if len(counts) == 1 else ""
    blocks = [
        f"{answer.paper.title}\nmachine {answer.paper.machine}{each} · seed {answer.seed}",
        text.columns(["claim", "published", "here"], table, width),
    ]
    if answer.interrupted:
        total = len(answer.paper.cells())
        blocks.insert(0, f"interrupted: {len(answer.runs)} of {total} runs had ended")
    blocks.append("Why what differs does, and what moves it: docs/fidelity.md")
    return "\n\n".join(blocks)


def published_range(claim: Claim) -> tuple[float, float] | None:
    """Return from where to where a published number lies; none of an order."""
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


def _measured(row: Mapping[str, Any]) -> str:
    measured, unit = row["measured"], row["unit"]
    if measured is None:
        return text.BLANK
    match unit:
        case "%":
            return f"{measured:+.1f} %"
        case "share":
            return f"{measured:.1f} %"
        case "x":
            return f"{measured:.3f}x" if 0.1 <= measured < 1 else f"{text.ratio(measured)}x"
    return order(row)


def order(row: Mapping[str, Any]) -> str:
    """Return the measured order of a claim about one, as text."""
    return " < ".join(f"{mean['design']} {text.ratio(mean['value'])}" for mean in row["measured"])
