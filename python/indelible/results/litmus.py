"""The answer of `litmus`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from indelible.experiment import LitmusTests
from indelible.results import OfJson


@dataclass(frozen=True, repr=False)
class Litmus(OfJson):
    """Litmus tests on ordering hardware.

    `litmus.rows` has a row for each image that a test asks about and each order.
    """

    data: Mapping[str, Any]
    tests: LitmusTests

    @property
    def settings(self) -> dict[str, str]:
        """The settings of every run."""
        return dict(self.tests.settings)

    @property
    def command(self) -> str:
        """The command line that repeats it."""
        return self.tests.command()

    @property
    def passed(self) -> bool:
        """Whether no order left a forbidden outcome, and each rule switched off was caught.

        Not so if no test fitted an order, since then nothing is known about it, or if no run of a
        test counted on any order, since then nothing is known of its image.
        """
        return not (
            any(map(is_wrong, self.data["rows"]))
            or self.unfit
            or self.uncounted
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

    @property
    def uncounted(self) -> list[str]:
        """The tests in which no load ever had its value, on any order that they fitted."""
        runs: dict[str, int] = {}
        counted: dict[str, int] = {}
        for row in self.data["rows"]:
            runs[row["test"]] = runs.get(row["test"], 0) + row["runs"]
            counted[row["test"]] = counted.get(row["test"], 0) + row["counted"]
        return [test for test, count in counted.items() if runs[test] and not count]

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
