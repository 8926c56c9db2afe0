"""The table of a comparison, as text for a terminal. Returns strings and prints nothing."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence
from functools import partial
from itertools import product

from indelible.ignored import joined
from indelible.means import geometric_mean
from indelible.metrics import METRICS
from indelible.results.comparison import NATIVE, ComparedCell, Comparison
from indelible.text import (
    BLANK,
    GAP,
    INTERVAL,
    LOGARITHMIC,
    Note,
    durability_notes,
    fitted,
    footnote,
    half_width_cell,
    interrupted,
    interval_notes,
    kept_notes,
    latency_notes,
    plural,
    quantity,
    ratio_cell,
    refused_notes,
    seeds_said,
    settings_said,
    table_line,
    terminal_width,
    warmup_said,
    zeros_notes,
)
from indelible.text import verdicts as verdicts_text
from indelible.text.verdicts import CRASH_TEST, judged, verdict_text

#: A table as cells: its heads, and rows of as many.
Grid = list[list[str]]

#: The mark of the note on the measured processor.
NATIVE_MARK = "‡"


def comparison(answer: Comparison, width: int | None = None) -> str:
    """Return the table of a paper's evaluation: a block for each number of cores."""
    width = width or terminal_width()
    told = [footnote(*note, width) for note in notes(answer)]
    return with_notes(answer, partial(_block, answer), told, width)


def grid(answer: Comparison, cores: int | None) -> Grid:
    """Return that table turned round: a row for each design, and last what 1.00 is.

    What the crash campaigns said is not in it: it belongs beside the name of a design.
    """
    cells = _cells(answer, cores).values()
    rows = [["design", *_labels(answer)[1:]], *cells, _units(answer, cores)]
    return [row[:-1] for row in rows]


def upright(answer: Comparison, cores: int | None) -> Grid:
    """Return that table as it is printed: a row for each workload, and the verdicts at the end."""
    columns = [_labels(answer), *_cells(answer, cores).values(), _units(answer, cores)]
    return [[*row] for row in zip(*columns, strict=True)]


def with_notes(
    answer: Comparison, block: Callable[[int | None, int], str], notes: Sequence[str], width: int
) -> str:
    """Return a block for each number of cores of a width, and what there is to know below them.

    Behind a view's own notes come those of all: on durability, on the runs, on what was kept.
    """
    blocks = [block(cores, width) for cores in answer.cores]
    if answer.interrupted:
        blocks.insert(0, interrupted(answer, "runs"))
    notes = [*notes, *remarks(answer, width)]
    below = ["\n".join(notes)] if notes else []
    return "\n\n".join([*blocks, *below, *kept_notes(answer.taken, width)])


def remarks(answer: Comparison, width: int) -> list[str]:
    """Return the notes on designs and runs that belong below every view."""
    daggers = durability_notes(answer)
    told = (footnote(*note, width) for note in [*refused_notes(answer), *daggers])
    return [*told, *_run_notes(answer, width)]


def title(answer: Comparison) -> str:
    """Return the title: the metric, and the base of the ratios."""
    metric = METRICS[answer.metric]
    what = f"{metric.title} relative to {answer.labels[answer.normalize]}"
    return ", ".join(filter(None, (what, metric.better)))


def _block(answer: Comparison, cores: int | None, width: int) -> str:
    head = titled(title(answer), where(answer, cores), width)
    labels, units, cells = _labels(answer), _units(answer, cores), _cells(answer, cores)
    feet = len(labels) - 1 - len(answer.workloads)
    stub = max(map(len, labels))
    sizes = {d: max(map(len, column)) for d, column in cells.items()}
    lines = [head]
    for part in fitted([*cells], sizes, width - stub):
        grid = [labels, *(cells[d] for d in part)]
        spans = [stub, *(sizes[d] for d in part)]
        total = sum(spans) + 2 * len(part)
        unit_size = max(map(len, units))
        if total + 2 + unit_size <= width:
            grid.append(units)
            spans.append(unit_size)
            total += 2 + unit_size
        table = [table_line(row, spans, range(1, len(spans))) for row in zip(*grid, strict=True)]
        rule = "-" * total
        lines += ["", table[0], rule, *table[1:-feet], rule, *table[-feet:]]
    return "\n".join(lines)


def _labels(answer: Comparison) -> list[str]:
    """Return the lines before the rows of the table."""
    intervals = [INTERVAL] if _has_intervals(answer) else []
    return ["workload", *answer.workloads, "gmean", *intervals, CRASH_TEST]


def _cells(answer: Comparison, cores: int | None) -> dict[str, list[str]]:
    """Return the columns of the table, each with its head first."""
    cells = {design: _column(answer, design, cores) for design in answer.designs}
    return cells | ({NATIVE: _native_column(answer, cores)} if answer.native else {})


def _units(answer: Comparison, cores: int | None) -> list[str]:
    """Return the last column: the base's values, which are 1.00."""
    values = [answer.value((answer.normalize, workload, cores)) for workload in answer.workloads]
    unit = METRICS[answer.metric].unit
    said = [BLANK if value is None else quantity(value, unit) for value in values]
    return ["1.00 is", *said, *("" for _ in _labels(answer)[1 + len(said) :])]


def where(answer: Comparison, cores: int | None) -> str:
    """Return the machine of a block, its cores, the seeds, and the settings."""
    model, count = answer.core_model(), _cores_said(answer, cores)
    words = [f"machine {answer.machine}", model, count, seeds_said(answer.seeds_shown)]
    words += [*warmup_said(answer.warmup), *settings_said(answer.settings)]
    return " · ".join(filter(None, words))


def with_cores(what: str, answer: Comparison, cores: int | None) -> str:
    """Return a panel's title with the number of cores, if that is known."""
    return ", ".join(filter(None, [what, _cores_said(answer, cores)]))


def machine_said(answer: Comparison, cores: int | None) -> str:
    """Return the machine with the number of cores, and the warm-up if it was given, for a title."""
    machine = with_cores(f"machine {answer.machine}", answer, cores)
    return ", ".join([machine, *warmup_said(answer.warmup)])


def _cores_said(answer: Comparison, cores: int | None) -> str:
    count = answer.cores_used(cores)
    return plural(count, "core") if count else ""


def titled(what: str, where: str, width: int) -> str:
    """Return a table's title, and below it the machine."""
    return "\n".join(
        textwrap.fill(line, width, break_on_hyphens=False, break_long_words=False)
        for line in (what, where)
    )


def _column(answer: Comparison, design: str, cores: int | None) -> list[str]:
    """Return the column of a design: name, ratios, their mean and its interval, and verdict."""
    row = [(design, workload, cores) for workload in answer.workloads]
    values = [ratio_cell(answer.ratio(place), answer.ratio_half_width(place)) for place in row]
    mean = answer.gmean(design, cores)
    values.append(ratio_cell(mean))
    if _has_intervals(answer):
        # The base is 1.00 by definition and has no interval.
        sure = design == answer.normalize
        width = answer.gmean_half_width(design, cores)
        values.append(BLANK if sure else half_width_cell(width, mean))
    return [judged(answer, design), *values, verdict_text(answer.verdict(design, cores))]


def _native_column(answer: Comparison, cores: int | None) -> list[str]:
    """Return the column of this computer's processor, which has no verdict."""
    ratios = [answer.native_ratio(workload, cores) for workload in answer.workloads]
    values = [ratio_cell(r) for r in [*ratios, geometric_mean(ratios)]]
    interval = [BLANK] if _has_intervals(answer) else []
    return [NATIVE + NATIVE_MARK, *values, *interval, BLANK]


def _has_intervals(answer: Comparison) -> bool:
    return len(answer.seeds_shown) > 1


def verdicts_line(answer: Comparison, cores: int | None, width: int) -> str:
    """Return the verdicts of the designs, for below a table of rows."""
    of = partial(answer.verdict, cores=cores)
    return verdicts_text.verdicts_line(answer, of, width)


def verdicts(answer: Comparison, cores: int | None) -> str:
    """Return the verdicts, design by design."""
    return verdicts_text.verdicts(answer, partial(answer.verdict, cores=cores))


def cell_grid(
    answer: Comparison,
    cores: int | None,
    heads: Sequence[str],
    said: Callable[[ComparedCell], Sequence[str]],
) -> Grid:
    """Return a row for each workload and design."""
    rows = [
        [workload, judged(answer, design), *said((design, workload, cores))]
        for workload, design in product(answer.workloads, answer.designs)
    ]
    return [["workload", "design", *heads], *rows]


def by_cell(
    answer: Comparison, cores: int | None, title: str, rows: Sequence[Sequence[str]], width: int
) -> str:
    """Return a table of rows for workloads and designs, and below it the verdicts."""
    tables = stubbed_tables(named_once(rows), width)
    return "\n".join(["\n\n".join([title, *tables]), verdicts_line(answer, cores, width)])


def named_once(rows: Sequence[Sequence[str]]) -> Grid:
    """Return rows in which only the first of a workload names it."""
    before = ["", *(row[0] for row in rows)]
    return [
        ["" if row[0] == above else row[0], *row[1:]]
        for row, above in zip(rows, before, strict=False)
    ]


#: The number of columns that identify a row: a workload and a design.
STUB = 2


def stubbed_tables(
    rows: Sequence[Sequence[str]],
    width: int,
    stub_columns: int = STUB,
    right_from: int | None = None,
) -> list[str]:
    """Return rows of names and numbers in as many tables as it takes to fit.

    The first columns, which say whose a row is, stand in each. Unless it is said from which column
    on cells stand at the right, these stand at the left.
    """
    left_columns = stub_columns if right_from is None else right_from
    grid = [*zip(*rows, strict=True)]
    stub = grid[:stub_columns]
    # By their places, since a design may be named as another column is.
    numbers = dict(enumerate(grid[stub_columns:]))
    sizes = {place: max(map(len, column)) for place, column in numbers.items()}
    stubs = [max(map(len, column)) for column in stub]
    room = width - sum(stubs) - len(GAP) * (stub_columns - 1)
    tables = []
    for part in fitted(numbers, sizes, room):
        spans = [*stubs, *(sizes[place] for place in part)]
        lines = zip(*stub, *(numbers[place] for place in part), strict=True)
        head, *body = (table_line(line, spans, range(left_columns, len(spans))) for line in lines)
        rule = "-" * (sum(spans) + len(GAP) * (len(spans) - 1))
        tables.append("\n".join([head, rule, *body]))
    return tables


def zero_note(answer: Comparison, with_: str = "") -> str:
    """Return the advice where nothing can be relative to the base."""
    return f"{answer.labels[answer.normalize]} is 0 there{with_}: choose --normalize"


def zero_notes(answer: Comparison) -> list[Note]:
    """Return that note if it is of use."""
    bases = (cell for cell in answer.cells() if cell[0] == answer.normalize)
    zeros = [*filter(None, map(answer.zeros, bases))]
    if not zeros:
        return []
    with_ = " with some seeds" if min(zeros) < len(answer.seeds_shown) else ""
    return [(BLANK, zero_note(answer, with_))]


def notes(answer: Comparison) -> list[Note]:
    """Return the notes on the table of ratios."""
    told = (
        _interval_notes(answer) + zero_notes(answer) + zeros_notes(answer) + latency_notes(answer)
    )
    if answer.native:
        processor = next(iter(answer.native.values()))["processor"]
        told.append((NATIVE_MARK, f"measured on {processor}, in DRAM"))
        reasons = (row["reason"] for row in answer.native.values() if "reason" in row)
        told += [(NATIVE_MARK, reason) for reason in dict.fromkeys(reasons)]
    return told


def _run_notes(answer: Comparison, width: int) -> list[str]:
    """Return the runs' own notes, and the notes on designs without a good verdict."""
    told = joined([(run.experiment.design, run.data) for run in answer.runs.values()])
    notes = [footnote("*", note, width) for note in told]
    return [*notes, *verdicts_text.told(answer, width)]


def _interval_notes(answer: Comparison) -> list[Note]:
    """Return the note on the intervals, with the one that is widest for its value."""

    def place(cell: ComparedCell) -> str:
        design, workload, cores = cell
        used = answer.cores_used(cores) or 1
        count = f" with {plural(used, 'core')}" if len(answer.cores) > 1 else ""
        return f"{answer.labels[design]} on {workload}{count}"

    said = (
        "95 %: half the width of gmean's confidence interval over"
        f" {len(answer.seeds_shown)} seeds, {LOGARITHMIC}; the widest of a cell is"
    )
    others = [cell for cell in answer.cells() if cell != answer.base(cell)]
    widths = {place(c): (answer.ratio(c), answer.ratio_half_width(c)) for c in others}
    return interval_notes(said, widths)
