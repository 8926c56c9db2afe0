"""The verb `list`: what there is to name."""

from __future__ import annotations

from indelible import extension
from indelible.arguments import named
from indelible.results.catalog import KINDS, Catalog


def list(kind: str | None = None) -> Catalog:
    """Return the designs, orders, workloads, profiles or machines, or all with their kind.

    The rows are dictionaries; numbers in them have no unit.

    Raises:
        InputError: if there is no such kind.
    """
    if kind is None:
        return Catalog({"kind": of[:-1], **row} for of in KINDS for row in extension.catalog(of))
    return Catalog(extension.catalog(named("kind", kind)), kind)
