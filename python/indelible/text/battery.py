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
    by_adr = _by_adr(answer, label, width)
    if not answer["rows"]:
        told = f"{where}: no battery is needed for {without}"
        return "\n".join([textwrap.fill(told, width, break_on_hyphens=False), *by_adr])
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
    blocks[-1] += "".join(f"\n{line}" for line in by_adr)
    return "\n\n".join(blocks)


def _by_adr(answer: Mapping[str, Any], label: Mapping[str, str], width: int) -> list[str]:
    """Return what designs have ADR save of their own, without a battery; nothing if none does."""
    batteries = {row["design"]: row for row in answer["rows"]}
    told = []
    for saved in answer["saved"]:
        of = batteries.get(saved["design"], {"flush_kb": 0.0, "energy_uj": 0.0})
        size, energy = saved["bytes"] / 1024 - of["flush_kb"], saved["energy_uj"] - of["energy_uj"]
        if size > 0:
            name = label[saved["design"]]
            told.append(f"{name} {_significant(size, 5)} KB ({_significant(energy, 4)} uJ)")
    if not told:
        return []
    line = f"saved by ADR's own energy: {', '.join(told)}"
    return [textwrap.fill(line, width, break_on_hyphens=False)]


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
