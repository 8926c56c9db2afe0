"""The answer of `explore`."""

from __future__ import annotations

from typing import Any

from indelible.commands import as_json
from indelible.results import Object

#: The probability with which an error in so many orders would have shown (ours: as of intervals).
SURE = 0.95


class Exploration(Object):
    """The object of `explore --json`, which prints as its table."""

    @property
    def interrupted(self) -> bool:
        """Whether seeds are missing: `cancelled` in the JSON."""
        return bool(self["cancelled"])

    @property
    def failed(self) -> list[dict[str, Any]]:
        """The rows of the seeds with which an error was found."""
        return [row for row in self["rows"] if row["wrong"] is not None]

    @property
    def idle(self) -> list[dict[str, Any]]:
        """The rows of the seeds with which the program did nothing to persistent memory."""
        return [row for row in self["rows"] if row["idle"]]

    @property
    def busy(self) -> list[dict[str, Any]]:
        """The rows of the seeds with which there was a recording with something to do."""
        return [row for row in self["rows"] if not row["idle"] and row["refused"] is None]

    @property
    def accepts_all(self) -> bool:
        """Whether the checker refused no image with any seed, not even garbage."""
        told = {row["accepts_all"] for row in self["rows"]} - {None}
        return told == {True}

    @property
    def passed(self) -> bool:
        """Whether there was something to check with every seed, and no error was found."""
        return not self.failed and self.checked

    @property
    def checked(self) -> bool:
        """Whether there was something to check with every seed."""
        return bool(self["rows"]) and all(row["checked"] for row in self["rows"])

    def json(self) -> dict[str, Any]:
        """Return the object that `--json` prints."""
        return {key: as_json(value) for key, value in self.items()}

    def __str__(self) -> str:
        from indelible.text import exploration as exploration_text

        return exploration_text.explored(self)
