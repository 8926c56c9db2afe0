"""What every answer of runs says of its origin: what was set, and the command that repeats it."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from indelible import extension
from indelible.experiment import Script
from indelible.settings import Pairs


def origin(command: str, settings: Pairs | Mapping[str, str] = ()) -> dict[str, Any]:
    """Return the fields that end the JSON of every answer of runs."""
    return {"settings": dict(settings), "command": command, "version": extension.version()}


def line(*words: str | Sequence[str]) -> str:
    """Return a command line, of words and of lists of them."""
    each = [[word] if isinstance(word, str) else word for word in words]
    return shlex.join(["indelible", *(word for several in each for word in several)])


def flag(name: str, value: object) -> list[str]:
    """Return a flag with its value; of none nothing."""
    return [] if value is None else [name, str(value)]


def names(name: str, values: Sequence[object]) -> list[str]:
    """Return a flag with several values; of none nothing."""
    return [name, ",".join(map(str, values))] if values else []


def sets(settings: Pairs) -> list[str]:
    """Return the flags of settings."""
    return [word for pair in settings for word in ("--set", "=".join(pair))]


def reads(scripts: Iterable[Script]) -> list[str]:
    """Return the flags of the files that workloads read."""
    return [word for script in scripts for word in (script.flag, script.path)]
