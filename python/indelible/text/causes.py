"""Why a design is as fast as it is, as text for a terminal. Returns strings and prints nothing."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator, Sequence

from indelible.metrics import METRICS
from indelible.results.causes import AS_IT_IS, LEAST_SHIFT, Causes, distance
from indelible.results.sweep import Point
from indelible.text import (
    BLANK,
    Note,
    command,
    durability_notes,
    footnote,
    interrupted,
    interval_notes,
    kept_notes,
    latency_notes,
    plural,
    ratio,
    ratio_cell,
    terminal_width,
)
from indelible.text import verdicts as verdicts_text
from indelible.text.comparison import Grid, stubbed_tables, titled, where
from indelible.text.stacks import SHOWN_FROM
from indelible.text.verdicts import FAILED, judged

#: The default number of changes that have a row.
TOP = 12

#: The most changes that are named of those that improve a design, and of the impossible ones.
NAMED = 3

#: The largest share of changes that a sentence calls exceptions (ours).
FEW = 0.1

#: The words for the side of 1 on which a ratio is.
SIDES: dict[int | None, str] = {1: "above", 0: "level with", -1: "below"}

#: The number of columns that identify the change of a row.
CHANGE_STUB = 3

#: The head of the column of the second design over the first.
RATIO = "ratio"

#: The full names of the parts of core time, where there is room for them.
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

#: The full names of the classes of writes.
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

#: The numbers on how busy the machine was that have a row, and how each is written.
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
    """Return what runs consist of and depend on: three tables and the notes."""
    width = width or terminal_width()
    blocks = [_title(answer, width)]
    if answer.interrupted:
        blocks.insert(0, interrupted(answer.sweep, "cells"))
    if verdict := headline(answer):
        blocks.append(textwrap.fill(verdict, width, break_on_hyphens=False))
    shown = seen(answer)[:top]
    if stacked := stack_grid(answer):
        blocks.append(_headed(stack_title(answer), stacked, width))
    else:
        blocks.append(f"{answer.stacked.title}: {BLANK}")
    blocks += stubbed_tables(busy_grid(answer), width, 1)
    blocks.append(_headed(changes_title(answer), change_grid(answer, shown), width, CHANGE_STUB))
    here = answer.as_it_is
    blocks.append(verdicts_text.verdicts_line(here, here.verdict_on_all, width))
    told = [footnote(*note, width) for note in _notes(answer, shown)]
    told += verdicts_text.told(here, width) + _broken_told(answer, width)
    return "\n\n".join([*blocks, "\n".join([*told, *kept_notes(answer.taken, width)])])


def _title(answer: Causes, width: int) -> str:
    return titled(title(answer), where(answer.as_it_is, answer.cores), width)


def _headed(title: str, rows: Grid, width: int, stub_columns: int = 1) -> str:
    tables = stubbed_tables(rows, width, stub_columns)
    return "\n\n".join([textwrap.fill(title, width), *tables])


def title(answer: Causes) -> str:
    """Return the question: a metric of one design, or of one over the other."""
    metric = METRICS[answer.sweep.metric]
    over = ", ".join(answer.sweep.workloads)
    what = f"{metric.title}: {' over '.join(reversed(marked_names(answer)))} on {over}"
    return ", ".join(filter(None, (what, metric.better)))


def headline(answer: Causes) -> str | None:
    """Return how far one design is from the other, and whether a change reverses their order."""
    # What breaks a design says nothing of how fast it may be.
    sound = (point for point in answer.whole() if not answer.broken(point))
    ratios = ((point, answer.ratio(point)) for point in sound)
    known = {point: value for point, value in ratios if value is not None}
    here = answer.ratio()
    if here is None or not known:
        return None
    first, second = marked_names(answer)
    means = "the geometric mean of " if len(answer.sweep.workloads) > 1 else ""
    side = SIDES[answer.side()]
    said = f"{unsafe_said(answer)}As it is {means}{second} over {first} is {ratio(here)}"
    turned = [point for point in known if SIDES[answer.side(point)] != side]
    turned.sort(key=lambda point: -distance(known[point]))
    count = plural(len(known), "change")
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
    if len(turned) > FEW * len(known):
        kept = f"{len(known) - len(turned)} of {count}"
        return f"{said}, and {side} 1 with {kept}, but not with {named}. All: {span}."
    return (
        f"{said}, and {side} 1 with every one of {count} but {len(turned)}: {named}. All: {span}."
    )


def unsafe_said(answer: Causes) -> str:
    """Return the sentence that designs failed their crash test; no text if none did."""
    of = answer.as_it_is
    failed = [judged(of, d) for d in answer.designs if of.verdict_on_all(d).kind == "fail"]
    if not failed:
        return ""
    if len(failed) > 1:
        return f"{' and '.join(failed)} are not crash-safe, so neither is ahead. "
    return f"{failed[0]} is not crash-safe, so it is never ahead. "


def stack_title(answer: Causes) -> str:
    """Return the title of the first table: its quantity, and its base."""
    return f"{answer.stacked.title}; {marked_names(answer)[0]} = 100, lower is better"


def stack_grid(answer: Causes) -> Grid | None:
    """Return the parts of transactions as cells; None if they are not known."""
    rows, of = answer.stacks(), answer.stacked
    if any(row["parts"] is None for row in rows):
        return None
    names = PARTS | WRITTEN
    used = [n for n in of.parts if any(row["parts"][n] >= SHOWN_FROM for row in rows)]
    lines = [(names[name], [row["parts"][name] for row in rows]) for name in used]
    lines.sort(key=lambda line: -abs(line[1][-1] - line[1][0]) if len(rows) > 1 else -line[1][0])
    lines.append(("all", [row["total"] for row in rows]))
    headers = ["part", *marked_names(answer)]
    table = [[name, *(f"{value:.1f}" for value in values)] for name, values in lines]
    if len(rows) > 1:
        headers.append("difference")
        for line, (_, values) in zip(table, lines, strict=True):
            line.append(f"{values[-1] - values[0]:+.1f}")
    return [headers, *table]


def busy_grid(answer: Causes) -> Grid:
    """Return the load on the machine, and how busy it was, as cells."""
    rows = answer.busy()
    table = [
        [name, *(BLANK if row[key] is None else said(row[key]) for row in rows)]
        for key, (name, said) in BUSY.items()
        if any(row[key] for row in rows)
    ]
    return [["machine", *marked_names(answer)], *table]


def changes_title(answer: Causes) -> str:
    """Return the title of the third table."""
    return f"One field changed at a time, {changes_said(answer)}: what moves most"


def changes_said(answer: Causes) -> str:
    """Return how numbers are changed."""
    by = "halved and doubled" if answer.by == 2 else f"divided and multiplied by {answer.by}"
    return f"numbers {by}"


def change_grid(answer: Causes, points: Sequence[Point]) -> Grid:
    """Return what changes do, one in a row, as cells; `CHANGE_STUB` say which it is."""
    designs = marked_names(answer)
    table = [
        ["field", "as it is", "changed", *designs],
        ["nothing", "", "", *("1.00",) * len(designs)],
    ]
    for point in points:
        change = answer.changes[point]
        effects = [
            ratio_cell(answer.effect(point, design), answer.effect_half_width(point, design))
            for design in answer.designs
        ]
        table.append([change.field, change.before, changed(answer, point), *effects])
    if len(designs) > 1:
        pairs = [(answer.ratio(at), answer.ratio_half_width(at)) for at in (AS_IT_IS, *points)]
        for line, cell in zip(table, [RATIO, *(ratio_cell(*pair) for pair in pairs)], strict=True):
            line.append(cell)
    return table


def changed(answer: Causes, point: Point) -> str:
    """Return the value of a change, marked if it breaks a design."""
    return answer.changes[point].after + (FAILED if answer.broken(point) else "")


def seen(answer: Causes) -> list[Point]:
    """Return the changes that move something far enough, the one that moves most first."""
    return [point for point in answer.ranked() if answer.is_seen(point)]


def _notes(answer: Causes, shown: Sequence[Point]) -> list[Note]:
    """Return the notes on all tables; the last table has these changes."""
    told = relative_notes(answer)
    told += [(">", f"{name}: {gained}") for name, gained in gains(answer)]
    told += moving_notes(answer)
    if less := len(seen(answer)) - len(shown):
        told.append(("*", f"changes that move less than those above: {less} (--top)"))
    told += widest_notes(answer, shown)
    for one in answer.refused[:NAMED]:
        told.append((BLANK, f"not run: {one.change}: {one.reason}"))
    if (more := len(answer.refused) - NAMED) > 0:
        told.append((BLANK, f"not run either: {more} more; --json says why"))
    return told + own_notes(answer)


def broken_by(answer: Causes) -> list[tuple[str, str]]:
    """Return the changes that break a design, each with the command that shows it."""
    return [
        (
            f"{answer.sweep.labels[design]} is not crash-safe with {point[0]}",
            answer.sweep.verdict(point, design).command or "",
        )
        for point in answer.whole()
        for design in answer.broken(point)
    ]


def _broken_told(answer: Causes, width: int) -> list[str]:
    """Return the notes on the first of these changes, and on how many more there are."""
    found, notes = broken_by(answer), []
    for failure, shown_by in found[:NAMED]:
        notes += [footnote(FAILED, f"{failure}; to see it:", width), command("", shown_by, width)]
    if (more := len(found) - NAMED) > 0:
        notes.append(
            footnote(FAILED, f"not crash-safe either: with {more} more; --json says", width)
        )
    return notes


def relative_notes(answer: Causes) -> list[Note]:
    """Return the notes on the base of the changes' numbers, and on missing numbers."""
    said = "each design relative to itself as it is"
    if len(answer.designs) > 1:
        first, second = marked_names(answer)
        said += f"; {RATIO}: {second} over {first}, both changed"
    return [("*", said), *_zero_notes(answer), *latency_notes(answer.sweep)]


def moving_notes(answer: Causes) -> list[Note]:
    """Return the notes that the length of runs matters, and on how many changes move nothing."""
    moving, told = seen(answer), []
    longer = [at[0] for at in moving if answer.changes[at].field == "txs"]
    if longer:
        change = "changes" if len(longer) == 1 else "change"
        told.append(
            ("!", f"{' and '.join(longer)} {change} the result: the length of runs matters (--txs)")
        )
    if still := len(answer.ranked()) - len(moving):
        unsure = ", or whose 95 % interval includes 1" if len(answer.sweep.seeds) > 1 else ""
        told.append(("*", f"changes with an effect below {100 * LEAST_SHIFT:g} %{unsure}: {still}"))
    return told


def gains(answer: Causes) -> Iterator[tuple[str, str]]:
    """Return the notes on which changes of hardware improve each design."""
    for design in answer.designs:
        found = answer.improved_by(design)
        if found is not None:
            named = ", ".join(
                f"{at[0]} ({ratio(answer.effect(at, design) or 0.0)})" for at in found[:NAMED]
            )
            tried = len(answer.hardware(design))
            none = (
                "the one change to the hardware does not improve it"
                if tried == 1
                else f"none of {tried} changes to the hardware improves it"
            )
            yield _marked(answer, design), f"gains most from {named}" if named else none


def own_notes(answer: Causes) -> list[Note]:
    """Return the notes on what designs do not promise, and the runs' own notes."""
    told = durability_notes(answer.sweep)
    return [*told, *(("*", note) for note in _run_notes(answer))]


def _run_notes(answer: Causes) -> Iterator[str]:
    """Return the runs' own notes, with the changes on which a note depends."""
    said = {point: answer.notes(point) for point in (AS_IT_IS, *answer.ranked())}
    for note in dict.fromkeys(note for notes in said.values() for note in notes):
        points = [point for point, notes in said.items() if note in notes]
        if AS_IT_IS in points:
            yield note
            continue
        more = f" and {len(points) - NAMED} more" if points[NAMED:] else ""
        yield f"with {', '.join(at[0] for at in points[:NAMED])}{more}: {note}"


def _zero_notes(answer: Causes) -> list[Note]:
    """Return the notes on designs whose value is 0, to which nothing can be relative."""
    of = answer.as_it_is
    places = [(d, w) for d in answer.designs for w in answer.sweep.workloads]
    zeros = [place for place in places if of.zeros((*place, answer.cores))]
    return [
        (BLANK, f"{_marked(answer, d)} is 0 on {w}: nothing can be relative to it")
        for d, w in zeros
    ]


def widest_notes(answer: Causes, shown: Sequence[Point]) -> list[Note]:
    """Return the note on the widest confidence interval of these changes, if there are any."""
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
    """Return the names of the designs, with the marks of weaker durability."""
    return tuple(_marked(answer, design) for design in answer.designs)


def _marked(answer: Causes, design: str) -> str:
    return judged(answer.as_it_is, design)
