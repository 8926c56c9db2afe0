"""The verb `list`: what there is to name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from indelible import extension
from indelible.arguments import named

KINDS = ("designs", "orders", "workloads", "profiles", "machines")


def list(kind: str | None = None) -> Sequence[dict[str, Any]]:
    """Return the designs, orders, workloads, profiles or machines, or all with their kind."""
    if kind is None:
        return [{"kind": kind[:-1], **row} for kind in KINDS for row in extension.catalog(kind)]
    return extension.catalog(named("kind", kind))
