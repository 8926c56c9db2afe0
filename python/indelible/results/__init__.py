"""The answers of calls, as rows of data: each prints like its command, also in a notebook.

Each kind is a module; here are the bases, and the answers that are nothing but their JSON.
"""

from __future__ import annotations

import html
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

from indelible.results.origin import origin


class Shown:
    """An answer whose `str` is the table that its command prints."""

    def _repr_html_(self) -> str:
        """Return the same lines as a terminal shows, for a notebook."""
        return f"<pre>{html.escape(str(self))}</pre>"


class OfJson(Shown, ABC):
    """An answer with the keys of its JSON as attributes."""

    data: Mapping[str, Any]

    @property
    @abstractmethod
    def settings(self) -> dict[str, str]:
        """The settings as they were given."""

    @property
    @abstractmethod
    def command(self) -> str:
        """The command line that repeats it."""

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401
        if name == "data" or name.startswith("__"):
            raise AttributeError(name)
        if name not in self.data:
            raise AttributeError(f"there is no `{name}`; there are: {', '.join(self.json())}")
        return self.data[name]

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self.data]

    @property
    def interrupted(self) -> bool:
        """Whether it was interrupted, so that results are missing: `cancelled` in the JSON."""
        return bool(self.data.get("cancelled"))

    def json(self) -> dict[str, Any]:
        """Return the object that `--json` prints: the results, and what was asked."""
        # Of a run its own data say the version, which another simulator may have.
        return {**self.data, **origin(self.command, self.settings), **self.data}


class Object(Shown, dict[str, Any]):
    """An answer that is itself the object that `--json` prints."""

    def json(self) -> dict[str, Any]:
        """Return the object that `--json` prints."""
        return dict(self)


class _Interruptible(Object):
    """An answer whose JSON says whether it was interrupted."""

    @property
    def interrupted(self) -> bool:
        """Whether results are missing: `cancelled` in the JSON."""
        return bool(self.get("cancelled"))


class Battery(Object):
    """The object of `battery --json`, which prints as its table."""

    def __str__(self) -> str:
        from indelible import text
        from indelible.text import battery as battery_text

        return battery_text.battery(self, text.terminal_width())


class Characterization(_Interruptible):
    """The object of `characterize --json`, which prints as its table."""

    def __str__(self) -> str:
        from indelible import text
        from indelible.text import characterization as characterization_text

        return characterization_text.characterization(self, text.terminal_width())


class Explanation(Object):
    """The object of `explain --json`, which prints as its tables."""

    def __str__(self) -> str:
        from indelible import text
        from indelible.text import explain as explain_text

        return explain_text.explanation(self, text.terminal_width())


class Benchmark(_Interruptible):
    """The object of `bench --json`, which prints as its table."""

    def __str__(self) -> str:
        from indelible import text
        from indelible.text import benchmark as benchmark_text

        return benchmark_text.bench(self, text.terminal_width())
