"""Rows of JSON as comma-separated values."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Mapping
from typing import Any


def rows_as_csv(rows: Iterable[Mapping[str, Any]]) -> str:
    """Return rows as comma-separated values, nested keys joined by dots.

    The configuration of a run, which would be most of the columns, is only in the JSON.
    """
    flat = [_flat({key: row[key] for key in row if key != "config"}) for row in rows]
    names = list(dict.fromkeys(name for row in flat for name in row))
    out = io.StringIO()
    writer = csv.DictWriter(out, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(flat)
    return out.getvalue()


def _flat(row: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in row.items():
        if isinstance(value, Mapping):
            flat |= _flat(value, f"{prefix}{key}.")
        else:
            flat[prefix + key] = _cell(value)
    return flat


def _cell(value: object) -> object:
    """Return a value as JSON has it; an empty list is an empty cell."""
    if isinstance(value, (list, tuple)):
        return json.dumps(value) if value else ""
    return json.dumps(value) if isinstance(value, bool) else value
