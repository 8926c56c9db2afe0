"""The measured numbers of memories as text for a terminal. Returns strings, prints nothing."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

from indelible import text
from indelible.probes import ABOUT
from indelible.results.probe import OFF, Probed

Row = Mapping[str, Any]

#: The mark of a number that is far from the published one.
OFF_MARK = "!"

#: The marks behind published numbers, and their meanings.
FROM_MEMORY, OF_MODEL = "m", "v"
KINDS = {
    FROM_MEMORY: "cited from memory",
    OF_MODEL: "of VANS, a model that was fitted to the hardware, the DIMM's side alone",
}

#: The document that explains why a number differs.
WHY = "docs/model.md, Beside measurements"

HEADERS = ("", "probe", "unit")
PUBLISHED_HEADERS = ("published", "off")


def probed(answer: Probed, width: int | None = None) -> str:
    """Return the table: a row for each probe, a column for each machine."""
    width = width or text.terminal_width()
    rows = answer.rows
    blocks = [_title(answer, width)]
    if answer.interrupted:
        blocks.insert(0, f"interrupted: {len(answer.runs)} of {answer.total} runs had ended")
    for names in _parts(answer, width):
        blocks.append(_table([row for row in rows if row["machine"] in names], names, width))
    blocks += _notes(answer, rows, width)
    return "\n\n".join([*blocks, text.command("repeat", answer.command, width)])


def _title(answer: Probed, width: int) -> str:
    machines = [
        f"machine {memory.machine} · {text.plural(memory.cores, 'core')} ·"
        f" {text.plural(memory.controllers, 'controller')} · domain {memory.domain}"
        f" · seed {answer.seed}"
        for memory in answer.memories
    ]
    return "\n".join(textwrap.fill(line, width) for line in machines)


def _parts(answer: Probed, width: int) -> list[list[str]]:
    """Return the machines in as many tables as it takes."""
    names = [memory.machine for memory in answer.memories]
    rows = answer.rows
    fixed = sum(max(len(str(row[key])) for row in rows) + 2 for key in ("group", "what", "unit"))
    published = sum(len(header) + 4 for header in PUBLISHED_HEADERS)
    is_known = {row["machine"] for row in rows if row["published"] is not None}
    shown = {name: max(len(name), 10) + (published if name in is_known else 0) for name in names}
    return text.fitted(names, shown, max(width - fixed, 0))


def _table(rows: Sequence[Row], names: Sequence[str], width: int) -> str:
    """Return a table with machines side by side, each with its published numbers behind it."""
    by_probe: dict[str, list[Row]] = {}
    for row in rows:
        by_probe.setdefault(row["probe"], []).append(row)
    known = {row["machine"] for row in rows if row["published"] is not None}
    headers = [*HEADERS]
    for name in names:
        headers += [name, *(PUBLISHED_HEADERS if name in known else ())]
    table, group = [], None
    for own in by_probe.values():
        first = own[0]
        line = [first["group"] if first["group"] != group else "", first["what"], first["unit"]]
        group = first["group"]
        for row in own:
            line += [_measured(row)]
            line += [_published(row), _off(row)] if row["machine"] in known else []
        table.append(line)
    return text.columns(headers, table, width, right=range(len(HEADERS), len(headers)))


def _number(value: float, unit: str) -> str:
    """Return a number with its significant digits."""
    return f"{value:.1f}" if unit == "ns" else f"{value:.2f}"


def _measured(row: Row) -> str:
    if row["measured"] is None:
        return text.BLANK
    cores = "" if row["cores"] is None else f" ({row['cores']})"
    return _number(row["measured"], row["unit"]) + cores


def _published(row: Row) -> str:
    if row["published"] is None:
        return ""
    return f"{row['published']:g}" + f" {_kind(row) or ' '}"


def _kind(row: Row) -> str:
    return OF_MODEL if row["of_model"] else FROM_MEMORY if row["from_memory"] else ""


def _off(row: Row) -> str:
    if row["off"] is None:
        return ""
    percent = round(100 * row["off"])
    return (f"{percent:+} % " if percent else "0 % ") + (OFF_MARK if is_off(row) else " ")


def is_off(row: Row) -> bool:
    """Return whether a number is far from the published one."""
    return row["off"] is not None and abs(row["off"]) > OFF


def _notes(answer: Probed, rows: Sequence[Row], width: int) -> list[str]:
    about = [f"{group}: {ABOUT[group]}" for group in answer.groups]
    blocks = ["\n".join(text.footnote("", line, width).strip() for line in about)]
    kinds = {_kind(row) for row in rows} - {""}
    notes = [text.footnote(mark, KINDS[mark], width) for mark in KINDS if mark in kinds]
    if far := [row for row in rows if is_off(row)]:
        limit = f"more than {100 * OFF:.0f} % off; no constant was tuned to hide it. Reasons:"
        notes.append(text.footnote(OFF_MARK, f"{limit} {WHY}", width))
    notes += [text.footnote(" ", _far(row), width) for row in far]
    return [*blocks, *(["\n".join(notes)] if notes else [])]


def _far(row: Row) -> str:
    numbers = [_number(row[name], row["unit"]) for name in ("measured", "published")]
    unit = row["unit"] if row["unit"] == "x" else f" {row['unit']}"
    return f"{row['what']}: {numbers[0]}{unit} here, {numbers[1]}{unit} published ({row['source']})"
