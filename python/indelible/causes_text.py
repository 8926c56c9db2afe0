"""Why a design is as fast as it is, as text for a terminal. Returns strings and prints nothing."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator, Sequence

from indelible import stacks
from indelible.causes import AS_IT_IS, LEAST_SHIFT, Causes, distance
from indelible.comparison_text import stubbed_tables, titled, where
from indelible.metrics import METRICS
from indelible.sweeps import Point
from indelible.text import (
    BLANK,
    Note,
    durability_notes,
    footnote,
    interrupted,
    interval_notes,
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

#: On which side of 1 a ratio is.
SIDES = {1: "above", 0: "level with", -1: "below"}

#: What the column of the second design over the first is called.
RATIO = "ratio"

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

#: And those of what is written.
WRITTEN = {
    "data": "data",
    "home_write_back": "lines that left by themselves",
    "log": "log",
    "commit": "marks of commits",
    "metadata": "metadata",
    "consolidation": "consolidation",
    "copy_on_write": "copies of pages",
    "checkpoint": "checkpoints",
    "garbage_collection": "garbage collection",
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
    blocks += [_stacks(answer, width), _busy(answer, width), _changes(answer, width, top)]
    notes = [*_notes(answer, width, top), *kept_notes(answer.taken, width)]
    return "\n\n".join([*blocks, *(["\n".join(notes)] if notes else [])])


def _title(answer: Causes, width: int) -> str:
    metric = METRICS[answer.sweep.metric]
    over = ", ".join(answer.sweep.workloads)
    what = f"{metric.title}: {' over '.join(reversed(marked_names(answer)))} on {over}"
    said = ", ".join(filter(None, (what, metric.better)))
    return titled(said, where(answer.as_it_is, answer.cores), width)


def headline(answer: Causes) -> str | None:
    """Return how far one design is from the other, and whether a change turns that round."""
    known = {point: answer.ratio(point) for point in answer.whole()}
    known = {point: value for point, value in known.items() if value is not None}
    here = answer.ratio()
    if here is None or not known:
        return None
    first, second = marked_names(answer)
    means = "the geometric mean of " if len(answer.sweep.workloads) > 1 else ""
    side = SIDES[answer.side()]
    said = f"As it is {means}{second} over {first} is {ratio(here)}"
    turned = [point for point in known if SIDES[answer.side(point)] != side]
    turned.sort(key=lambda point: -distance(known[point]))
    count = f"{len(known)} change{'' if len(known) == 1 else 's'}"
    span = " to ".join(
        f"{ratio(known[point])} ({point[0]})"
        for point in dict.fromkeys(by(known, key=known.__getitem__) for by in (min, max))
    )
    if not turned:
        return f"{said}, and {side} 1 with every one of {count}: {span}."
    if len(turned) == len(known):
        return f"{said}, {side} 1, and with none of {count} so: {span}."
    named = ", ".join(f"{point[0]} ({ratio(known[point])})" for point in turned[:NAMED])
    more = len(turned) - NAMED
    named += f", and {more} more" if more > 0 else ""
    return (
        f"{said}, and {side} 1 with every one of {count} but {len(turned)}: {named}. All: {span}."
    )


def _stacks(answer: Causes, width: int) -> str:
    rows, of = answer.stacks(), answer.stacked
    if any(row["parts"] is None for row in rows):
        return f"{of.title}: {BLANK}"
    names = PARTS | WRITTEN
    used = [n for n in of.parts if any(row["parts"][n] >= stacks.SHOWN_FROM for row in rows)]
    lines = [(names[name], [row["parts"][name] for row in rows]) for name in used]
    lines.sort(key=lambda line: -abs(line[1][-1] - line[1][0]) if len(rows) > 1 else -line[1][0])
    lines.append(("all", [row["total"] for row in rows]))
    title = f"{of.title}; {marked_names(answer)[0]} = 100, lower is better"
    headers = ["part", *marked_names(answer)]
    table = [[name, *(f"{value:.1f}" for value in values)] for name, values in lines]
    if len(rows) > 1:
        headers.append("difference")
        for line, (_, values) in zip(table, lines, strict=True):
            line.append(f"{values[-1] - values[0]:+.1f}")
    shown = stubbed_tables([headers, *table], width, 1)
    return "\n\n".join([textwrap.fill(title, width), *shown])


def _busy(answer: Causes, width: int) -> str:
    rows = answer.busy()
    table = [
        [name, *(BLANK if row[key] is None else said(row[key]) for row in rows)]
        for key, (name, said) in BUSY.items()
        if any(row[key] for row in rows)
    ]
    return "\n\n".join(stubbed_tables([["machine", *marked_names(answer)], *table], width, 1))


def _changes(answer: Causes, width: int, top: int) -> str:
    by = "halved and doubled" if answer.by == 2 else f"divided and multiplied by {answer.by}"
    title = f"One field changed at a time, numbers {by}: what moves most"
    designs = marked_names(answer)
    table = [
        ["field", "as it is", "changed", *designs],
        ["nothing", "", "", *("1.00",) * len(designs)],
    ]
    for point in _shown(answer, top):
        change = answer.changes[point]
        effects = [
            ratio_cell(answer.effect(point, design), answer.effect_half_width(point, design))
            for design in answer.designs
        ]
        table.append([change.field, change.before, change.after, *effects])
    if len(designs) > 1:
        points = [AS_IT_IS, *_shown(answer, top)]
        ratios = [(answer.ratio(point), answer.ratio_half_width(point)) for point in points]
        for line, cell in zip(table, [RATIO, *(ratio_cell(*pair) for pair in ratios)], strict=True):
            line.append(cell)
    return "\n\n".join([textwrap.fill(title, width), *stubbed_tables(table, width, 3)])


def _shown(answer: Causes, top: int) -> list[Point]:
    return [point for point in answer.ranked() if answer.is_seen(point)][:top]


def _notes(answer: Causes, width: int, top: int) -> list[str]:
    said = "each design relative to itself as it is"
    if len(answer.designs) > 1:
        first, second = marked_names(answer)
        said += f"; {RATIO}: {second} over {first}, both changed"
    notes = [footnote("*", said, width), *_zero_notes(answer, width)]
    for design in answer.designs:
        found = answer.improved_by(design)
        if found is not None:
            named = ", ".join(
                f"{at[0]} ({ratio(answer.effect(at, design))})" for at in found[:NAMED]
            )
            gained = (
                f"most is gained by {named}" if named else "no field of the hardware improves it"
            )
            notes.append(footnote(">", f"{_marked(answer, design)}: {gained}", width))
    shown = _shown(answer, top)
    seen = [point for point in answer.ranked() if answer.is_seen(point)]
    longer = [at[0] for at in seen if answer.changes[at].field == "txs"]
    if longer:
        leaves = "does not leave it as it is" if len(longer) == 1 else "do not leave it as it is"
        said = f"{' and '.join(longer)} {leaves}: how long a run is matters (--txs)"
        notes.append(footnote("!", said, width))
    if still := len(answer.ranked()) - len(seen):
        said = f"changes that move nothing by {100 * LEAST_SHIFT:g} %: {still}"
        notes.append(footnote("*", said, width))
    if less := len(seen) - len(shown):
        notes.append(
            footnote("*", f"changes that move less than those above: {less} (--top)", width)
        )
    notes += [footnote(*note, width) for note in _interval_notes(answer, shown)]
    for one in answer.refused[:NAMED]:
        notes.append(footnote(BLANK, f"not run: {one.change}: {one.reason}", width))
    if (more := len(answer.refused) - NAMED) > 0:
        notes.append(footnote(BLANK, f"not run, too: {more} more; --json has why", width))
    notes += durability_notes(answer.designs, answer.sweep.durability, width)
    return notes + [footnote("*", note, width) for note in _run_notes(answer)]


def _run_notes(answer: Causes) -> Iterator[str]:
    """Return what runs say of themselves, with the changes if it is not so without them."""
    said = {point: answer.notes(point) for point in (AS_IT_IS, *answer.ranked())}
    for note in dict.fromkeys(note for notes in said.values() for note in notes):
        points = [point for point, notes in said.items() if note in notes]
        if AS_IT_IS in points:
            yield note
            continue
        more = f" and {len(points) - NAMED} more" if points[NAMED:] else ""
        yield f"with {', '.join(at[0] for at in points[:NAMED])}{more}: {note}"


def _zero_notes(answer: Causes, width: int) -> list[str]:
    """Return of whom nothing can be relative to what it is."""
    of = answer.as_it_is
    places = [(d, w) for d in answer.designs for w in answer.sweep.workloads]
    zeros = [place for place in places if of.value((*place, answer.cores)) == 0]
    return [
        footnote(BLANK, f"{_marked(answer, d)} is 0 on {w}, to which nothing is relative", width)
        for d, w in zeros
    ]


def _interval_notes(answer: Causes, shown: Sequence[Point]) -> list[Note]:
    said = f"95 %: the widest confidence interval over {len(answer.sweep.seeds_shown)} seeds is"
    widths = {}
    for at in shown:
        for design in answer.designs:
            place = f"that of {_marked(answer, design)} with {at[0]}"
            widths[place] = (answer.effect(at, design), answer.effect_half_width(at, design))
        widths[f"that of the {RATIO} with {at[0]}"] = (
            answer.ratio(at),
            answer.ratio_half_width(at),
        )
    return interval_notes(said, widths)


def marked_names(answer: Causes) -> tuple[str, ...]:
    """Return the names of the designs, with what marks weaker durability."""
    return tuple(_marked(answer, design) for design in answer.designs)


def _marked(answer: Causes, design: str) -> str:
    return marked(answer.sweep.durability, design)
