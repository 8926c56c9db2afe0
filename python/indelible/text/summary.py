"""A row for each design of a comparison, as a table of text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from indelible.results.comparison import Comparison
from indelible.summary import HALF_WIDTH, RATIOS, Row, is_of_few, lead, rows_of, traded
from indelible.text import (
    BLANK,
    GAP,
    LOGARITHMIC,
    Note,
    few_notes,
    footnote,
    half_width_cell,
    joules,
    paragraph,
    ratio,
    ratio_cell,
    size,
    terminal_width,
    zeros_notes,
)
from indelible.text.comparison import (
    INTERVAL,
    Grid,
    stubbed_tables,
    titled,
    where,
    with_cores,
    with_notes,
    zero_notes,
)
from indelible.text.verdicts import judged, verdict_text

#: What to do about columns for which a terminal is too narrow.
NO_ROOM = "no room here; a wider terminal, --table and --json have them"

#: The heads of the columns, by number.
HEADS = {
    "throughput": "throughput",
    HALF_WIDTH: INTERVAL,
    "commit_latency_p99": "p99",
    "pm_writes": "PM writes",
    "media_bits": "media bits",
    "pm_energy": "energy",
    "state_bytes": "state",
    "flush_energy_uj": "flush",
    "crash": "crash test",
}

#: The columns that are left out on a narrow terminal, in this order.
OPTIONAL = ("flush_energy_uj", "media_bits", "pm_energy", "state_bytes")

#: The mark before the best value of a column.
BEST = "^"
BEST_NOTE = "the best in its column among durable designs that failed no crash test"

DOMINATED_NOTE = (
    "another durable design that failed no crash test promises no less, is at least as good in"
    " {}, and better in one of them"
)
FEW_NOTE = f"; it earns no {BEST}, and no design is dominated by it"

LATENCY_NOTE = "of commit latency, without what a design waits for before the commit begins"


def table(answer: Comparison, width: int | None = None) -> str:
    """Return a table for each number of cores: a row for each design."""
    width = width or terminal_width()
    found = {cores: rows_of(answer, cores) for cores in answer.cores}
    tables = {cores: _columns(answer, rows) for cores, rows in found.items()}
    dropped = _dropped([*tables.values()], width)

    def block(cores: int | None, width: int) -> str:
        head = titled(title(answer), where(answer, cores), width)
        shown = [cells for key, cells in tables[cores].items() if key not in dropped]
        parts = stubbed_tables([*zip(*shown, strict=True)], width, stub_columns=1)
        of_rows = (_fastest(answer, found[cores], cores), _dominated(answer, found[cores]))
        told = [paragraph(label, body, width) for label, body in of_rows if body]
        return "\n".join(["\n\n".join([head, *parts]), *told])

    told = [paragraph(*note, width) for note in _column_notes(answer, found, dropped)]
    marks = [*_few_notes(answer), *_blank_notes(answer, found)]
    told += [footnote(*note, width) for note in marks]
    return with_notes(answer, block, told, width)


def grid(answer: Comparison, cores: int | None) -> Grid:
    """Return that table with all of its columns but that of verdicts."""
    return [row[:-1] for row in whole(answer, cores)]


def whole(answer: Comparison, cores: int | None) -> Grid:
    """Return that table with all of its columns; the last one has the verdicts."""
    columns = _columns(answer, rows_of(answer, cores))
    return [[*row] for row in zip(*columns.values(), strict=True)]


def title(answer: Comparison) -> str:
    """Return the title: the base of the ratios, and the workloads."""
    base, of = answer.labels[answer.normalize], over(", ".join(answer.workloads), answer)
    return f"Designs relative to {base}, {of}"


def notes(answer: Comparison) -> list[Note]:
    """Return the notes: the fastest design, the dominated ones, the columns and the marks."""
    found = {cores: rows_of(answer, cores) for cores in answer.cores}
    told = []
    for cores, rows in found.items():
        for label, body in (_fastest(answer, rows, cores), _dominated(answer, rows)):
            where = with_cores(label, answer, cores) if len(answer.cores) > 1 else label
            told += [(where, body)] if body else []
    marks = _few_notes(answer) + _blank_notes(answer, found)
    return told + _column_notes(answer, found, ()) + marks


def over(workloads: str, answer: Comparison) -> str:
    """Return, for a sentence, over which workloads the numbers are."""
    return f"geometric means over {workloads}" if len(answer.workloads) > 1 else f"on {workloads}"


def _columns(answer: Comparison, rows: Sequence[Row]) -> dict[str, list[str]]:
    """Return the columns by key, each with its head first."""
    columns = {"design": ["design", *(judged(answer, row["design"]) for row in rows)]}
    for key, head in HEADS.items():
        if key == HALF_WIDTH and len(answer.seeds_shown) == 1:
            continue
        best = _best(answer, rows, key) if key in RATIOS else []
        cells = [_cell(answer, row, key) for row in rows]
        marked = [BEST + cell if index in best else cell for index, cell in enumerate(cells)]
        columns[key] = [head, *marked]
    return columns


def _cell(answer: Comparison, row: Row, key: str) -> str:
    value = row[key]
    if key == "crash":
        return verdict_text(answer.verdict(row["design"], row["cores"]))
    if key == HALF_WIDTH:
        # The base is 1.00 by definition and has no interval.
        is_chosen = row["design"] == answer.normalize
        return BLANK if is_chosen else half_width_cell(value, row["throughput"])
    if key in RATIOS:
        return ratio_cell(value)
    if not value:
        return BLANK if value is None else "0"
    return size(value) if key == "state_bytes" else joules(value / 1e6)


def _best(answer: Comparison, rows: Sequence[Row], key: str) -> list[int]:
    """Return the rows with the best value among the rivals; none if all of these are level.

    There is none either of a percentile of too few commits.
    """
    if is_of_few(answer, key):
        return []
    rivals = [
        index
        for index, row in enumerate(rows)
        if answer.is_rival(row["design"]) and row[key] is not None
    ]
    best = [
        index
        for index in rivals
        if all(lead(key, rows[index][key], rows[other][key]) != -1 for other in rivals)
    ]
    return best if len(best) < len(rivals) else []


def _dropped(tables: Sequence[Mapping[str, Sequence[str]]], width: int) -> list[str]:
    """Return the columns to leave out so that every table fits the width."""
    dropped: list[str] = []
    for key in OPTIONAL:
        shown = [[cells for key, cells in table.items() if key not in dropped] for table in tables]
        if all(_width(columns) <= width for columns in shown):
            break
        dropped.append(key)
    return dropped


def _width(columns: Sequence[Sequence[str]]) -> int:
    return sum(max(map(len, cells)) for cells in columns) + len(GAP) * (len(columns) - 1)


def _fastest(answer: Comparison, rows: Sequence[Row], cores: int | None) -> tuple[str, str | None]:
    """Return the note on the fastest design: where it leads the base by most, and by least."""
    label = "fastest"
    known = [r for r in rows if answer.is_rival(r["design"]) and r["throughput"] is not None]
    fastest = max(known, key=lambda row: row["throughput"], default=None)
    if fastest is None:
        return label, None
    of_speed = answer.by_metric("throughput")
    each = {w: of_speed.ratio((fastest["design"], w, cores)) or 0.0 for w in answer.workloads}
    least, most = (end(each, key=lambda workload: each[workload]) for end in (min, max))
    if ratio(each[least]) == ratio(each[most]):
        return label, None
    return label, (
        f"{judged(answer, fastest['design'])}, from {ratio(each[least])} times"
        f" {answer.labels[answer.normalize]} on {least} to {ratio(each[most])} on {most}"
    )


def _dominated(answer: Comparison, rows: Sequence[Row]) -> tuple[str, str]:
    """Return the note on the dominated designs, each with the undominated ones that dominate it."""
    by = {row["design"]: row["dominated_by"] for row in rows}
    told = [
        f"{judged(answer, design)} by {', '.join(judged(answer, o) for o in others if not by[o])}"
        for design, others in by.items()
        if others
    ]
    return "dominated", "; ".join(told)


def _column_notes(
    answer: Comparison, found: Mapping[int | None, Sequence[Row]], dropped: Sequence[str]
) -> list[Note]:
    """Return the notes that explain the columns and the marks."""
    every = [row for rows in found.values() for row in rows]
    of = answer.durability
    later = [answer.labels[d] for d in answer.designs if of.get(d) == "asynchronous"]
    until = f"; for {', '.join(later)}, until the transaction is durable" if later else ""
    writes = ["PM writes are bytes that the write-pending queues accepted"]
    writes += ["media bits are those programmed"] if "media_bits" not in dropped else []
    writes += ["energy is that of PM cells"] if "pm_energy" not in dropped else []
    state = "what a design must save at a power failure, by a battery or ADR"
    flush = "" if "flush_energy_uj" in dropped else "; flush: the energy that this takes"
    seeds = len(answer.seeds_shown)
    sure = (
        f"half the width of throughput's confidence interval over {seeds} seeds, {LOGARITHMIC};"
        " only the means decide what is best or dominated"
    )
    lost = [HEADS[key] for key in HEADS if key in dropped]
    has_best = any(_best(answer, rows, key) for rows in found.values() for key in RATIOS)
    said = {
        "throughput": "higher is better; in every other column, lower is better",
        INTERVAL: sure if seeds > 1 else None,
        "p99": f"{LATENCY_NOTE}{until}",
        "writes": f"per transaction: {', '.join(writes)}",
        "state": None if "state_bytes" in dropped else state + flush,
        "dominated": _dominated_note(answer) if any(r["dominated_by"] for r in every) else None,
        "not shown": f"{', '.join(lost)}: {NO_ROOM}" if lost else None,
        BEST: BEST_NOTE if has_best else None,
    }
    return [(label, body) for label, body in said.items() if body]


def _dominated_note(answer: Comparison) -> str:
    *names, last = (HEADS[key] for key in traded(answer))
    return DOMINATED_NOTE.format(f"{', '.join(names)} and {last}")


def _few_notes(answer: Comparison) -> list[Note]:
    """Return the note that a percentile is that of too few commits."""
    told = few_notes(answer.by_metric(RATIOS["commit_latency_p99"]))
    return [(mark, body + FEW_NOTE) for mark, body in told]


def _blank_notes(answer: Comparison, found: Mapping[int | None, Sequence[Row]]) -> list[Note]:
    """Return the notes that say why numbers are missing, if any are."""
    every = [row for rows in found.values() for row in rows]
    of_base = (zero_notes(answer.by_metric(metric)) for metric in RATIOS.values())
    if notes := next(filter(None, of_base), None):
        return notes
    of_seeds = (zeros_notes(answer.by_metric(metric)) for metric in RATIOS.values())
    if notes := [note for each in of_seeds for note in each]:
        return notes
    told = [key for key in HEADS if key not in (HALF_WIDTH, "crash")]
    if not answer.interrupted and any(row[key] is None for row in every for key in told):
        return [(BLANK, "not known on some workload")]
    return []
