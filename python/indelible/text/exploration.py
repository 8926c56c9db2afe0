"""An exploration as text for a terminal. Returns strings and prints nothing."""

from __future__ import annotations

import math
import shlex
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

from indelible import text
from indelible.results.exploration import SURE, Exploration
from indelible.text.crash import ACCEPTS_ALL, OTHER, UNLOOKED, list_violations, nothing_checked

#: The most seeds whose errors are shown; `--json` has them all (ours: a screen).
SEEDS_SHOWN = 3


def explored(answer: Exploration, width: int | None = None) -> str:
    """Return in how many orders a program was tried, and the seeds with errors."""
    width = width or text.terminal_width()
    rows = answer["rows"]
    title = f"{shlex.join(answer['program'])} · {answer['design']} · machine {answer['machine']}"
    lines = [title + _seeds(rows)]
    if answer.interrupted:
        lines.append("interrupted: only these seeds were tried")
    lines.append(text.paragraph("orders", _orders(answer), width))
    lines.append(text.paragraph("power cuts", _cuts(rows), width))
    if codes := _exit_codes(rows):
        lines.append(text.paragraph("exit code", codes, width))
    lines.append(text.paragraph("violations", _verdict(answer), width))
    lines += [text.paragraph("refused", refused, width) for refused in _refused(rows)]
    for row in answer.failed[:SEEDS_SHOWN]:
        lines += _wrong(row, width)
    notes = dict.fromkeys(note for row in answer.busy[:1] for note in row["notes"])
    blind = [ACCEPTS_ALL] if answer.failed and answer.accepts_all else []
    for note in [*answer["notes"], *notes, *blind]:
        lines.append(text.paragraph("note", note, width))
    if answer.failed:
        first = answer.failed[0]
        lines.append(text.command("record", first["record"], width))
        if first["crash"] is not None:
            lines.append(text.command("crash", first["crash"], width))
    return text.printable("\n".join(lines))


def _seeds(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the seeds of the rows, which are consecutive except after an interruption."""
    if not rows:
        return ""
    first, last = rows[0]["seed"], rows[-1]["seed"]
    return f" · seed {first}" if first == last else f" · seeds {first} to {last}"


def _orders(answer: Exploration) -> str:
    threads = max((row["threads"] or 0 for row in answer["rows"]), default=0)
    if answer["orders"] is None:
        many = "1: one thread uses" if threads == 1 else f"unknown: {threads} threads use"
        return f"{many} persistent memory, and the recordings began with different memory"
    if threads == 1 and answer["orders"] == 1:
        return "1: one thread uses persistent memory; seeds choose only which images are tried"
    differ = f"{answer['orders']:,} different ones of {len(answer['rows']):,}"
    return f"{differ}, of {text.plural(threads, 'thread')}" if threads else differ


def _cuts(rows: Sequence[Mapping[str, Any]]) -> str:
    cuts = f"{sum(row['points'] for row in rows):,}"
    images = [row["images"] for row in rows if row["images"] is not None]
    return f"{cuts}; checker run on {text.plural(sum(images), 'image')}" if images else cuts


def _refused(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return why seeds were refused, each reason with its seeds."""
    seeds: dict[str, list[str]] = {}
    for row in rows:
        if row["refused"] is not None:
            seeds.setdefault(row["refused"], []).append(str(row["seed"]))
    return [f"with seeds {', '.join(each)}: {reason}" for reason, each in seeds.items()]


def _exit_codes(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the program's own exit codes that report a failure, if there are any."""
    codes: dict[int, list[str]] = {}
    for row in rows:
        if row["exit_code"]:
            codes.setdefault(row["exit_code"], []).append(str(row["seed"]))
    return "; ".join(f"{code} with seeds {', '.join(seeds)}" for code, seeds in codes.items())


def _verdict(answer: Exploration) -> str:
    rows, failed = answer["rows"], answer.failed
    if not rows:
        return "none: nothing was tried"
    if not failed:
        right = "ok so far" if answer.interrupted else "ok with every seed"
        if (share := answer["would_show"]) is not None:
            percent, sure = math.ceil(100 * share), round(100 * SURE)
            right += f"; an error in {percent} % of such orders would have shown, {sure} % sure"
        if answer.checked:
            return right
        if answer.accepts_all:
            return UNLOOKED
        busy = answer.busy
        if not busy:
            return "nothing was checked: the program did nothing"
        if all(row["checked"] for row in busy):
            return f"ok with {len(busy)} of {len(rows)} seeds; nothing was checked with the others"
        unchecked = max(busy, key=lambda row: (not row["checked"], row["announced_few"]))
        program: dict[str, Any] = {} if answer["check"] is None else {"checker": {}}
        return nothing_checked({**unchecked, **program, "workload": "replay"})
    listed = ", ".join(str(row["seed"]) for row in failed)
    return f"FAIL {len(failed)}/{len(rows)} seeds: {listed}"


def _wrong(row: Mapping[str, Any], width: int) -> list[str]:
    """Return the first error of a seed."""
    head = f"  seed {row['seed']}"
    if row["trace"] is not None:
        head += f", in {row['trace']}"
    if not row["violations"]:
        return [textwrap.fill(f"{head}: {row['wrong']}", width, subsequent_indent="    ")]
    return [head, *list_violations(row["violations"][:1], width, OTHER)]
