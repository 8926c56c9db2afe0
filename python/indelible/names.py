"""Names that are not known: the error that lists the known ones, the most similar first."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from indelible.errors import InputError


def unknown(what: str, name: str, names: Iterable[str]) -> InputError:
    """Return the error that there is nothing of this name, as the simulator words it."""
    known = ", ".join(closest_first(name, names))
    return InputError(f"unknown {what} `{name}`; there are: {known}")


def closest_first(name: str, names: Iterable[str]) -> list[str]:
    """Return the names, the most similar to the given one first."""
    return sorted(
        names, key=lambda other: -difflib.SequenceMatcher(None, name.lower(), other.lower()).ratio()
    )
