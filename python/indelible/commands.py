"""The command lines that repeat answers, from their words."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from indelible.experiment import Script
    from indelible.settings import Pairs


def line(*words: str | Sequence[str]) -> str:
    """Return a command line, of words and of lists of them."""
    each = [[word] if isinstance(word, str) else word for word in words]
    return shlex.join(["indelible", *(word for several in each for word in several)])


def flag(name: str, value: object) -> list[str]:
    """Return a flag with its value or its list of values; a switch that is on has none.

    Nothing for a switch that is off, and for no value.
    """
    if value is None or value is False or value in ([], ()):
        return []
    several = value if isinstance(value, (list, tuple)) else [value]
    return [name] if value is True else [name, ",".join(map(str, several))]


def flags(of: object, *names: str) -> list[str]:
    """Return the flags that are called as these attributes of an object."""
    each = (flag(f"--{name.replace('_', '-')}", getattr(of, name)) for name in names)
    return [word for words in each for word in words]


def sets(settings: Pairs) -> list[str]:
    """Return the flags of settings."""
    return [word for pair in settings for word in ("--set", "=".join(pair))]


def reads(scripts: Iterable[Script]) -> list[str]:
    """Return the flags of the files that workloads read."""
    return [word for script in scripts for word in (script.flag, script.path)]
