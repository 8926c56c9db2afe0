"""The answer of `list`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from indelible.results import Shown

#: What there is to name.
KINDS = ("designs", "orders", "workloads", "profiles", "machines")


class Catalog(Shown, list[dict[str, Any]]):
    """The rows of `list --json`, which print as its tables."""

    def __init__(self, rows: Iterable[dict[str, Any]] = (), kind: str | None = None) -> None:
        super().__init__(rows)
        #: What the rows are; None of all kinds, of which each row has its own.
        self.kind = kind

    def of_kinds(self) -> Mapping[str, list[dict[str, Any]]]:
        """Return the rows of each kind."""
        if self.kind is not None:
            return {self.kind: [*self]}
        return {kind: [row for row in self if row["kind"] == kind[:-1]] for kind in KINDS}

    def json(self) -> dict[str, Any]:
        """Return the object that `--json` prints."""
        return {"rows": [*self]}

    def __str__(self) -> str:
        from indelible import text
        from indelible.text import explain as explain_text

        width = text.terminal_width()
        tables = (explain_text.catalog(*each, width) for each in self.of_kinds().items())
        return "\n\n".join(tables)
