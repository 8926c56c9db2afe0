"""Measurements of the processor as text for a terminal. Returns strings and prints nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from indelible import text
from indelible.native import (
    CACHED,
    DURABLE,
    PUBLISHED,
    ROW,
    SIMULATED,
    SOURCES,
    UNCACHEABLE,
    Measurements,
)

Row = Mapping[str, Any]

#: The fields that identify a table: all except those of its rows and columns.
SECTION = ROW[3:]

#: The two logs of the paper.
LOGS = (CACHED, UNCACHEABLE)

#: The least share of interrupted time, in percent, that gets a note on other programs.
BUSY_PERCENT = 5.0

#: The beginning of a note that says why nothing was counted.
COUNTERS = "counters: "


def answer(measured: Measurements, width: int | None = None) -> str:
    """Return the tables, the paper's ratios beside ours, and the notes."""
    width = width or text.terminal_width()
    parts = [_title(measured.data["computer"])]
    if measured.interrupted:
        parts[0] += "\ninterrupted: this is what had been measured by then"
    sections: dict[tuple[Any, ...], list[Row]] = {}
    for row in measured.rows:
        sections.setdefault(tuple(row[name] for name in SECTION), []).append(row)
    for rows in sections.values():
        parts += _section(rows, width)
    parts += _ratios(measured)
    if measured.simulated:
        parts.append(_beside(measured, width))
    parts.append("\n".join(_notes(measured, width)))
    return "\n\n".join(part for part in parts if part)


def _title(computer: Mapping[str, Any]) -> str:
    words = [computer["processor"]]
    if computer["hypervisor"]:
        words.append(f"virtual ({computer['hypervisor']})")
    words.append(text.plural(computer["processors"], "processor"))
    if computer["llc_bytes"]:
        words.append(f"LLC {text.size(computer['llc_bytes'])}")
    return f"{' · '.join(words)}\nTSC {computer['tsc_hz'] / 1e9:.2f} GHz"


def _section(rows: Sequence[Row], width: int) -> list[str]:
    first = rows[0]
    array = ", array flushed" if first["array_writes"] == "flushed" else ""
    place = (
        f"array {text.size(first['array_bytes'])} · log {first['log']} · {first['logging']}{array}"
        f" · {text.plural(first['threads'], 'thread')}"
    )
    main = (first["value"], first["fence"])
    title = f"{place}\nvalues {main[0]} · fence {main[1]}"
    counted = f"cycles of the TSC for an entry, median of {first['runs']} runs, by entries a fence"
    same = [row for row in rows if (row["value"], row["fence"]) == main]
    others = [row for row in rows if (row["value"], row["fence"]) != main]
    parts = [f"{title}\n{counted}\n\n{_table(same, ('variant',), width)}"]
    if others:
        # The measurements with which these are compared are above them.
        names = [*dict.fromkeys(row["variant"] for row in others)]
        entries = {row["entries_per_fence"] for row in others}
        shown = [r for r in same if r["variant"] in names and r["entries_per_fence"] in entries]
        both = sorted(
            [*shown, *others],
            key=lambda row: (names.index(row["variant"]), row["fence"] != main[1]),
        )
        table = _table(both, ("variant", "value", "fence"), width)
        parts.append(f"other sources of values, and other fences\n\n{table}")
    return parts


def _table(rows: Sequence[Row], words: Sequence[str], width: int) -> str:
    """Return a line for each loop, a column for each number of entries."""
    counts = sorted({row["entries_per_fence"] for row in rows})
    lines: dict[tuple[str, ...], dict[int, Row]] = {}
    for row in rows:
        key = tuple(row[word] for word in words)
        lines.setdefault(key, {})[row["entries_per_fence"]] = row
    table = []
    for key, cells in lines.items():
        numbers = [_cycles(cells[n]["cycles_per_entry"]) if n in cells else "" for n in counts]
        noise = max(row["cv"] for row in cells.values())
        guarantee = next(iter(cells.values()))["guarantee"]
        table.append([*key, *numbers, f"{100 * noise:.0f} %", guarantee])
    headers = [*words, *map(str, counts), "cv <=", "log after power loss"]
    right = range(len(words), len(words) + len(counts) + 1)
    return text.columns(headers, table, width, right=[*right])


def _ratios(measured: Measurements) -> list[str]:
    """Return the paper's pair of ratios for each source of values, on which they depend."""
    table = []
    for value in SOURCES:
        cells = [measured.ratio(UNCACHEABLE, CACHED, entries, value) for entries in PUBLISHED]
        durable = [measured.ratio(DURABLE, UNCACHEABLE, entries, value) for entries in PUBLISHED]
        if any(cells):
            table.append([value, *map(_times, cells), *map(_times, durable)])
    if not table:
        return []
    published = [_times(ratio) for ratio in PUBLISHED.values()]
    table.append(["published", *published, text.BLANK, text.BLANK])
    headers = ["values", "partial", "full", "partial", "full"]
    body = text.columns(headers, table, 80, right=(1, 2, 3, 4)).splitlines()
    above = f"{'':13}{UNCACHEABLE} / {CACHED}  {DURABLE} / {UNCACHEABLE}"
    title = "ratios of times; partial: 1 entry per fence, full: 8 entries, a whole line"
    return ["\n".join([title, "", above, *body])]


def _beside(measured: Measurements, width: int) -> str:
    """Return native and simulated times side by side, in nanoseconds: the clocks differ."""
    native = {_loop(row): row["ns_per_entry"] for row in measured.rows}
    simulated: dict[tuple[Any, ...], dict[str, float]] = {}
    for row in measured.simulated:
        simulated.setdefault(_loop(row), {})[row["place"]] = row["ns_per_entry"]
    varying = [name for name in ROW[2:] if len({row[name] for row in measured.simulated}) > 1]
    columns = [ROW.index(name) for name in ("variant", *varying)]
    table = [
        [
            *[str(loop[index]) for index in columns],
            str(loop[-1]),
            _cycles(native[loop]) if loop in native else text.BLANK,
            *[_cycles(places[place]) for place in SIMULATED],
        ]
        for loop, places in simulated.items()
    ]
    headers = ["variant", *varying, "entries", "native", *SIMULATED]
    right = range(len(columns), len(headers))
    return (
        f"nanoseconds per entry: native, and simulated on machine {measured.machine}\n"
        "dram: array and log in DRAM; the others: in PM, by what survives a power failure\n\n"
        + text.columns(headers, table, width, right=[*right])
    )


def _loop(row: Row) -> tuple[Any, ...]:
    return (*[row[name] for name in ROW], row["entries_per_fence"])


def _notes(measured: Measurements, width: int) -> list[str]:
    data = measured.data
    said = [("LLC misses", _misses(measured))]
    steal = [row["steal_percent"] for row in measured.rows if row["steal_percent"] is not None]
    if steal:
        said.append(("stolen", f"at most {max(steal):.1f} % of the time of a loop"))
    taken = [row["interrupted_percent"] for row in measured.rows]
    if taken and max(taken) >= BUSY_PERCENT:
        said.append(
            (
                "busy",
                f"up to {max(taken):.0f} % of a loop's time went to other programs: not counted",
            )
        )
    huge = data["computer"]["huge_pages"]
    if huge is not None:
        said.append(("huge pages", f"{100 * huge:.0f} % of array and log"))
    for skipped in data["skipped"]:
        said.append(("left out", f"{skipped['variant']}: {skipped['reason']}"))
    said += [("note", note) for note in data["notes"] if not note.startswith(COUNTERS)]
    lines = [text.paragraph(label, body, width) for label, body in said]
    return [*lines, text.command("repeat", measured.command, width)]


def _misses(measured: Measurements) -> str:
    """Return the processor's counts, or why there are none, beside the model's miss rates."""
    first: dict[str, Row] = {}
    for row in measured.rows:
        first.setdefault(row["variant"], row)
    # The paper's two logs, or the variants that were asked for in their place.
    rows = [(variant, first[variant]) for variant in LOGS if variant in first] or [*first.items()]
    if any(isinstance(row["llc_miss_rate"], str) for _, row in rows) or not rows:
        why = [n.removeprefix(COUNTERS) for n in measured.data["notes"] if n.startswith(COUNTERS)]
        said = [f"unsupported ({why[0] if why else 'not counted'})"]
    else:
        said = [f"{variant} {100 * row['llc_miss_rate']:.0f} %" for variant, row in rows]
    modelled = []
    for variant, row in rows:
        here = row["modelled_llc_miss_rate"]
        own = "" if here is None else f" and {100 * here:.0f} % in this one"
        paper = f"{100 * row['modelled_llc_miss_rate_8mib']:.0f} % in an LLC of 8 MiB"
        modelled.append(f"{variant} {paper}{own}")
    if modelled:
        said.append(f"modelled, not measured: {', '.join(modelled)}")
    return "; ".join(said)


def _cycles(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}"


def _times(value: float | None) -> str:
    return text.BLANK if value is None else f"{value:.2f}x"
