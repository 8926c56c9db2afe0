"""Look-ups by name, with suggestions for mistyped names."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import TypeVar

from indelible.arguments import named
from indelible.errors import InputError

Thing = TypeVar("Thing")


def one_of(what: str, name: object, there: Mapping[str, Thing]) -> Thing:
    """Return the thing with a name, or refuse and list the known names."""
    name = named(what, name)
    if name not in there:
        known = ", ".join(closest_first(name, there))
        raise InputError(f"unknown {what} `{name}`; there are: {known}")
    return there[name]


def closest_first(name: str, names: Iterable[str]) -> list[str]:
    """Return the names, the most similar to the given one first."""
    return sorted(
        names, key=lambda other: -difflib.SequenceMatcher(None, name.lower(), other.lower()).ratio()
    )
