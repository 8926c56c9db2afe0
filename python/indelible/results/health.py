"""The answer of `doctor`."""

from __future__ import annotations

from indelible.results import Object


class Health(Object):
    """The object of `doctor --json`, which prints as its table."""

    @property
    def passed(self) -> bool:
        """Whether no check failed; optional parts may be missing."""
        return all(row["ok"] is not False for row in self["checks"])

    def __str__(self) -> str:
        from indelible import text
        from indelible.text import health as health_text

        return health_text.health(self, text.terminal_width())
