"""The note on runs of recorded programs whose flushes and fences their design ignores.

Such a run is fast because nothing waits, and what the program makes durable by itself is lost.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from indelible import extension
from indelible.design import LINE
from indelible.experiment import Experiment, Script
from indelible.scripts import called, parts
from indelible.settings import number, of_machine

#: A flush or a fence of a trace, or of a store log of pmemcheck.
PERSIST = re.compile(r"^\s*(flush|order|fence)\b|\|(FLUSH|FENCE)\b", re.MULTILINE)

#: The domains in which caches survive as far as there is energy for them, so that there is nothing
#: to flush. The field says how far; with less than a line's they are lost.
CACHES_SURVIVE = ("eadr", "gpf")
ENERGY = "controller.flush_bytes"

#: The model of ordering hardware that does nothing. (Others without fences have nothing to do.)
UNORDERED = "unordered"

#: The design on which flushes and fences do what the program says, and what the note advises.
HEEDS = "undo@x86"
HEED = f"{HEEDS}, undo@hops or undo@eadr"


def note(designs: Sequence[str]) -> str:
    """Return what has to be known of the speed of some designs, given by their labels."""
    *others, last = designs
    names = f"{', '.join(others)} and {last}" if others else last
    return (
        f"on {names} flushes and fences do nothing and take no time: only transactions"
        f" of this program count; compare its own durability on {HEED}"
    )


def with_note(data: Mapping[str, Any], asked: Experiment) -> Mapping[str, Any]:
    """Return a run's answer with that note, if it applies."""
    if not is_ignored(data, asked):
        return data
    return {**data, "notes": [note([called(asked.design)]), *(data.get("notes") or [])]}


def is_ignored(data: Mapping[str, Any], asked: Experiment) -> bool:
    """Return whether a run has ignored flushes and fences that would be needed.

    The simulator counts those that the hardware has.
    """
    if asked.script is None or asked.workload != "replay" or data.get("cancelled"):
        return False
    counts = data["caches"]
    if counts["flushes"] or counts["fences"] or not _persists(asked.script):
        return False
    if _model(asked.design) not in (None, UNORDERED):
        return False
    return data["domain"] not in CACHES_SURVIVE or not _has_energy(asked)


def joined(runs: Sequence[tuple[str, Mapping[str, Any]]]) -> list[str]:
    """Return the notes of runs of designs, each once; those on what is ignored become one."""
    told = dict.fromkeys(text for _, data in runs for text in data.get("notes") or [])
    alone = {note([called(design)]): called(design) for design, _ in runs}
    ignore = [alone[text] for text in told if text in alone]
    rest = [text for text in told if text not in alone]
    return [*([note(ignore)] if ignore else []), *rest]


@lru_cache(maxsize=8)
def _persists(script: Script) -> bool:
    return PERSIST.search(script.text) is not None


def _has_energy(asked: Experiment) -> bool:
    """Return whether there is energy for a line of the caches, where the domain has them saved.

    The simulator gives a design that needs its caches energy for all of them.
    """
    if extension.describe(f"design:{asked.design}")["needs"] == "eadr":
        return True
    rows = extension.describe(f"machine:{asked.machine}", of_machine(asked.settings))["rows"]
    value = next(row["value"] for row in rows if f"{row['section']}.{row['key']}" == ENERGY)
    amount = number(value)
    return amount is not None and (amount[1] != "B" or amount[0] >= LINE)


def _model(design: str) -> str | None:
    log, hardware = parts(design)
    return None if log is None else extension.describe(f"order:{hardware}")["model"]
