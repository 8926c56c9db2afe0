"""Batteries of designs as text for a terminal. Returns strings and prints nothing."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping
from typing import Any

from indelible.labels import labels
from indelible.text import columns, machine_title, plural


def battery(answer: Mapping[str, Any], width: int) -> str:
    """Return the batteries of designs: what is saved, the energy for it, and the sizes."""
    where = _where(answer)
    label = labels([*(row["design"] for row in answer["rows"]), *answer["without"]])
    without = ", ".join(label[design] for design in answer["without"])
    if not answer["rows"]:
        told = f"{where}: no battery is needed for {without}"
        return textwrap.fill(told, width, break_on_hyphens=False)
    numbers = ("energy_uj", "supercap_mm3", "supercap_mm2", "li_mm3", "li_mm2")
    rows = [
        [label[row["design"]], source, _significant(of["flush_kb"], 5)]
        + [_significant(of[name], 4) for name in numbers]
        for row in answer["rows"]
        for source, of in (("computed", row), *_published(row))
    ]
    headers = ["design", "source", "flush KB", "energy uJ", "cap mm3", "mm2", "li mm3", "mm2"]
    blocks = [
        f"Batteries: {where}{_dirty(answer)}",
        columns(headers, rows, width, right=range(2, len(headers))),
        textwrap.fill(
            "cap: supercapacitor; li: thin-film lithium battery; mm2: the face of a cube", width
        ),
    ]
    # Settings of one design alone.
    own = [
        f"{label[row['design']]}: {plural(row['cores'], 'core')}{_dirty(row)}"
        for row in answer["rows"]
    ]
    if None in (answer["cores"], answer["dirty_percent"]):
        blocks[-1] += "\n" + textwrap.fill("; ".join(own), width, break_on_hyphens=False)
    if without:
        told = f"no battery: {without}"
        blocks[-1] += "\n" + textwrap.fill(told, width, break_on_hyphens=False)
    return "\n\n".join(blocks)


def _where(answer: Mapping[str, Any]) -> str:
    if answer["cores"] is None:
        return f"machine {answer['machine']}"
    return machine_title(answer["machine"], answer["cores"])


def _dirty(of: Mapping[str, Any]) -> str:
    percent = of["dirty_percent"]
    return "" if percent is None else f" · {percent} % of caches dirty"


def _published(row: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
    """Return what was published of a design's battery with its source, if anything was."""
    published = row["published"]
    return [] if published is None else [(published["source"], published)]


def _significant(value: float, digits: int) -> str:
    """Return so many significant digits without an exponent, whole numbers whole."""
    places = max(digits - 1 - math.floor(math.log10(value)), 0) if value else 0
    shown = f"{value:,.{places}f}"
    return shown.rstrip("0").rstrip(".") if places else shown
