"""Why a design is as fast as it is, as text for a terminal. Returns strings and prints nothing."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable

from indelible import stacks
from indelible.causes import LEAST_SHIFT, Causes
from indelible.comparison_text import titled, where
from indelible.metrics import METRICS
from indelible.sweeps import Point
from indelible.text import (
    BLANK,
    columns,
    durability_notes,
    footnote,
    half_width_cell,
    interrupted,
    kept_notes,
    marked,
    ratio,
    ratio_cell,
    terminal_width,
)

#: So many changes have a row, unless it is said.
TOP = 12

#: So many changes that make a design better are named, and of those that cannot be.
NAMED = 3

#: How the parts of core time are called where there is room for that.
PARTS = {
    "compute": "compute",
    "load_miss": "load misses",
    "store_buffer_full": "store buffer full",
    "fence": "fences",
    "commit_wait": "commit",
    "log_structure_full": "log structure full",
    "lock": "locks",
    "other": "other",
}

#: What of how busy the machine was has a row, and how its numbers are written.
BUSY: dict[str, tuple[str, Callable[[float], str]]] = {
    "flushes_per_tx": ("flushes, a transaction", ratio),
    "fences_per_tx": ("fences", ratio),
    "llc_misses_per_tx": ("misses of the last level", ratio),
    "pm_reads_per_tx": ("lines read from PM", ratio),
    "pm_writes": ("bytes written to PM", "{:,.0f}".format),
    "media_lines": ("lines of media programmed", ratio),
    "pm_read_cycles_mean": ("cycles that a read of PM takes", "{:,.0f}".format),
    "wpq_entries_mean": ("entries taken of a WPQ", "{:.1f}".format),
    "wpq_full_percent": ("% of the time it is full", "{:.0f}".format),
    "pm_busy_percent": ("% of the time banks are busy", "{:.0f}".format),
    "bus_busy_percent": ("% of the time the bus is", "{:.0f}".format),
}


def causes(answer: Causes, width: int | None = None, top: int = TOP) -> str:
    """Return what runs consist of and depend on: three tables, and what there is to know."""
    width = width or terminal_width()
    blocks = [_title(answer, width)]
    if answer.interrupted:
        blocks.insert(0, interrupted(answer.sweep, "cells"))
    if verdict := headline(answer):
        blocks.append(textwrap.fill(verdict, width, break_on_hyphens=False))
    blocks += [_core_time(answer, width), _busy(answer, width), _changes(answer, width, top)]
    notes = [*_notes(answer, width, top), *kept_notes(answer.taken, width)]
    return "\n\n".join([*blocks, *(["\n".join(notes)] if notes else [])])


def _title(answer: Causes, width: int) -> str:
    metric = METRICS[answer.sweep.metric].title
    *others, design = marked_names(answer)
    what = f"{metric} of {design}{f' over {others[0]}' if others else ''}"
    over = ", ".join(answer.sweep.workloads)
    return titled(f"{what} on {over}, and why", where(answer.as_it_is, answer.cores), width)


def headline(answer: Causes) -> str | None:
    """Return how far one design is from the other, and whether a change turns that round."""
    there = {point: answer.ratio(point) for point in answer.changes}
    known = {point: value for point, value in there.items() if value is not None}
    here = answer.ratio()
    if here is None or not known:
        return None
    first, second = marked_names(answer)
    means = "the geometric mean of " if len(answer.sweep.workloads) > 1 else ""
    least, most = (by(known, key=known.__getitem__) for by in (min, max))
    span = f"{ratio(known[least])} ({least[0]}) to {ratio(known[most])} ({most[0]})"
    side = "above" if here > 1 else "below"
    said = f"As it is {means}{second} over {first} is {ratio(here)}"
    turned = [point for point, value in known.items() if (value > 1) != (here > 1)]
    if not turned:
        return f"{said}, and {side} 1 with every change, of {len(known)}: {span}."
    turned.sort(key=lambda point: -abs(math.log(known[point])) if known[point] else 0)
    named = ", ".join(f"{point[0]} ({ratio(known[point])})" for point in turned[:NAMED])
    named += ", ..." if len(turned) > NAMED else ""
    return (
        f"{said}, and {side} 1 with every change, of {len(known)}, but {len(turned)}: {named}. All"
        f" are {span}."
    )


def _core_time(answer: Causes, width: int) -> str:
    rows = answer.core_time()
    if any(row["parts"] is None for row in rows):
        return f"{stacks.STALLS.title}: {BLANK}"
    used = [n for n in PARTS if any(row["parts"][n] >= stacks.SHOWN_FROM for row in rows)]
    lines = [(PARTS[name], [row["parts"][name] for row in rows]) for name in used]
    lines.sort(key=lambda line: -abs(line[1][-1] - line[1][0]) if len(rows) > 1 else -line[1][0])
    lines.append(("all", [row["total"] for row in rows]))
    title = f"{stacks.STALLS.title}; {marked_names(answer)[0]} = 100, lower is better"
    headers = ["core time", *marked_names(answer)]
    table = [[name, *(f"{value:.1f}" for value in values)] for name, values in lines]
    if len(rows) > 1:
        headers.append("difference")
        for line, (_, values) in zip(table, lines, strict=True):
            line.append(f"{values[-1] - values[0]:+.1f}")
    shown = columns(headers, table, width, right=range(1, len(headers)))
    return f"{textwrap.fill(title, width)}\n\n{shown}"


def _busy(answer: Causes, width: int) -> str:
    rows = answer.busy()
    headers = ["the machine", *marked_names(answer)]
    table = [
        [name, *(BLANK if row[key] is None else said(row[key]) for row in rows)]
        for key, (name, said) in BUSY.items()
        if any(row[key] for row in rows)
    ]
    return columns(headers, table, width, right=range(1, len(headers)))


def _changes(answer: Causes, width: int, top: int) -> str:
    by = "halved and doubled" if answer.by == 2 else f"divided and multiplied by {answer.by}"
    title = f"One field changed at a time, numbers {by}: what moves most"
    designs = marked_names(answer)
    headers = ["field", "as it is", "changed", *designs]
    table = [["nothing", "", "", *(ratio(1.0) for _ in designs)]]
    if len(designs) > 1:
        headers.append("ratio")
        table[0].append(ratio_cell(answer.ratio(), answer.ratio_half_width()))
    for point in _shown(answer, top):
        change = answer.changes[point]
        effects = [
            ratio_cell(answer.effect(point, design), answer.effect_half_width(point, design))
            for design in answer.designs
        ]
        row = [change.field, change.before, change.after, *effects]
        if len(designs) > 1:
            row.append(ratio_cell(answer.ratio(point), answer.ratio_half_width(point)))
        table.append(row)
    shown = columns(headers, table, width, right=range(1, len(headers)))
    return f"{textwrap.fill(title, width)}\n\n{shown}"


def _shown(answer: Causes, top: int) -> list[Point]:
    return [point for point in answer.ranked() if answer.is_seen(point)][:top]


def _notes(answer: Causes, width: int, top: int) -> list[str]:
    notes = []
    if len(answer.designs) > 1:
        first, second = marked_names(answer)
        said = f"each relative to itself as it is; ratio: {second} over {first}"
        notes.append(footnote("*", said, width))
        if answer.as_it_is.value((answer.designs[0], answer.sweep.workloads[0], answer.cores)) == 0:
            notes.append(
                footnote(BLANK, f"{answer.designs[0]} is 0 there: name another first", width)
            )
    for design in answer.designs:
        found = answer.held_up(design)[:NAMED]
        named = ", ".join(f"{at[0]} ({ratio(answer.effect(at, design))})" for at in found)
        said = f"most is gained by {named}" if found else "no field of the hardware gains anything"
        notes.append(footnote(">", f"{_marked(answer, design)}: {said}", width))
    shown = _shown(answer, top)
    seen = sum(map(answer.is_seen, answer.changes)) - len(shown)
    if rest := len(answer.ranked()) - len(shown):
        said = f"changes that move nothing by {100 * LEAST_SHIFT:g} %: {rest - seen}"
        said += f"; that move less than those above: {seen} (--top)" if seen else ""
        notes.append(footnote("*", said, width))
    if shown and len(answer.sweep.seeds_shown) > 1:
        widest = half_width_cell(max(answer.shift_half_width(at) or 0.0 for at in shown))
        said = f"95 %: by what factor a change moves what it moves is known to ± {widest} or better"
        notes.append(footnote("*", said, width))
    for one in answer.refused[:NAMED]:
        notes.append(footnote("-", f"not run: {one.change}: {one.reason}", width))
    if (more := len(answer.refused) - NAMED) > 0:
        notes.append(footnote("-", f"{more} more cannot be run; --json has why", width))
    return notes + durability_notes(answer.designs, answer.sweep.durability, width)


def marked_names(answer: Causes) -> tuple[str, ...]:
    """Return the names of the designs, with what marks weaker durability."""
    return tuple(_marked(answer, design) for design in answer.designs)


def _marked(answer: Causes, design: str) -> str:
    return marked(answer.sweep.durability, design)
