"""Names that were mistyped, and those that may have been meant."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def closest_first(name: str, names: Iterable[str]) -> list[str]:
    """Return the names, the most similar to the given one first."""
    return sorted(
        names, key=lambda other: -difflib.SequenceMatcher(None, name.lower(), other.lower()).ratio()
    )
