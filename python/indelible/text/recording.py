"""A recording as text."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from indelible import text
from indelible.commands import line, sets
from indelible.results.recording import Recorded


def recorded(answer: Recorded, width: int | None = None) -> str:
    """Return what was recorded, and the command to try next."""
    width = width or text.terminal_width()
    lines = [
        text.paragraph("recorded", shlex.join(answer["program"]), width),
        text.paragraph("memory", "; ".join(map(_region, answer["regions"])), width),
        text.paragraph("did", _counts(answer), width),
    ]
    if answer["threads"] > 1:
        threads = f"{answer['threads']}, in an order of --seed {answer['seed']}"
        lines.append(text.paragraph("threads", threads, width))
    if answer["unseen"]:
        unseen = (
            f"{text.plural(answer['unseen'], 'byte')} changed without a store that was seen; their"
            " order between fences is unknown"
        )
        lines.append(text.paragraph("unseen", unseen, width))
    if answer["exit_code"] != 0:
        lines.append(text.paragraph("exit code", str(answer["exit_code"]), width))
    size = text.quantity(answer["bytes"], "B")
    lines.append(text.paragraph("trace", f"{answer['trace']} ({size})", width))
    lines += [text.paragraph("note", note, width) for note in answer["notes"]]
    if answer["stores"] or answer["streams"]:
        lines.append(text.command("crash test", _crash(answer), width))
    else:
        nothing = "none: the program stored nothing to persistent memory"
        lines.append(text.paragraph("crash test", nothing, width))
    return text.printable("\n".join(lines))


def _crash(answer: Recorded) -> str:
    """Return the command that crash-tests a trace: transactions by the oracle, or by a checker."""
    design, check = ("silo", []) if answer["transactions"] else ("undo@x86", ["--check", "COMMAND"])
    read = ["--design", design, "--replay", answer["trace"]]
    return line("crash", read, sets(answer.room()), check)


def _region(region: Mapping[str, Any]) -> str:
    name = region["file"] or "named by the program"
    return f"{region['bytes']:,} bytes at {region['address']:#x} ({name})"


#: What a recording counts: how one is called, and how several are.
COUNTED = {
    "stores": ("store", "stores"),
    "streams": ("store past the caches", "stores past the caches"),
    "loads": ("load", "loads"),
    "flushes": ("flush", "flushes"),
    "fences": ("fence", "fences"),
    "marks": ("mark", "marks"),
    "transactions": ("transaction", "transactions"),
}


def _counts(answer: Mapping[str, Any]) -> str:
    found = [
        f"{answer[name]:,} {one if answer[name] == 1 else several}"
        for name, (one, several) in COUNTED.items()
        if answer[name]
    ]
    return ", ".join(found) or "nothing"
