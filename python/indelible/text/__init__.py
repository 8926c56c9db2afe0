"""Answers as text for a terminal of a given width: the parts that all share.

Each kind of answer is a module. They return strings and print nothing.
"""

from __future__ import annotations

import re
import shutil
import textwrap
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import zip_longest
from typing import Any, TypeVar

from indelible.commands import InPython
from indelible.kept import Taken
from indelible.means import UNSURE, ends, is_unsure
from indelible.metrics import METRICS
from indelible.results.seeds import OfSeeds
from indelible.settings import Pairs

Key = TypeVar("Key")

DAGGER = "†"

BLANK = "-"

#: A note on a table: a mark or a label, and its meaning.
Note = tuple[str, str]

#: The mark of a value whose confidence interval is wide, before the value.
UNSURE_MARK = "~"

#: The label of the note on confidence intervals.
INTERVAL = "± 95 %"

#: What is said of a confidence interval beside half its width.
LOGARITHMIC = "which is symmetric in logarithms"

#: A word of a command as a shell takes it apart: what is between quotes has blanks of its own.
SHELL_WORD = re.compile(r"""(?:[^\s'"\\]|\\.|'[^']*'|"(?:[^"\\]|\\.)*")+""", re.DOTALL)

#: The part of a unit that rounds to a whole one with three digits.
CARRIED = 0.9995

#: The least ratio that is shown.
LEAST_RATIO = 1e-4

#: The least width of a column whose text is wrapped.
LAST_COLUMN = 20

#: The least width of a column whose names are broken, when nothing else makes a table fit.
BROKEN_COLUMN = 12

#: What is between columns, and what is if they do not fit otherwise.
GAP = "  "
NARROW_GAP = " "

#: The most points and seeds that are named of runs that could not be made, or of cells.
REFUSED_SHOWN = 3

DURABILITY_NOTES = {
    "none": "no durability: not crash consistent by design, a bound, not a rival",
    "asynchronous": "weaker durability: a commit returns before it is durable",
}


def terminal_width() -> int:
    """Return the columns of the terminal; 80 where there is none."""
    return shutil.get_terminal_size((80, 24)).columns


# Numbers.


def quantity(value: float, unit: str) -> str:
    """Return a number with a decimal prefix: 12.3 Mtx/s."""
    for factor, prefix in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= CARRIED * factor:
            return f"{digits(value / factor)} {prefix}{unit}"
    return f"{digits(value)} {unit}"


def seconds(value: float) -> str:
    """Return a time with the prefix that suits it."""
    return _of_one(value, "s")


def joules(value: float) -> str:
    """Return an energy with the prefix that suits it."""
    return _of_one(value, "J")


def size(of: float) -> str:
    """Return bytes with the binary prefix that suits them."""
    for unit, factor in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        # What would round to 1024 of the unit below is 1 of this.
        if of >= factor - factor / 2048:
            return f"{max(of / factor, 1.0):.4g} {unit}"
    return f"{of:.0f} B"


def _of_one(value: float, unit: str) -> str:
    """Return an amount of a unit, or of a part of it."""
    for factor, prefix in ((1.0, ""), (1e-3, "m"), (1e-6, "u")):
        if value >= CARRIED * factor:
            return f"{digits(value / factor)} {prefix}{unit}"
    return f"{digits(value / 1e-9)} n{unit}"


def digits(value: float) -> str:
    """Return three significant digits, or two below 0.1, without an exponent."""
    # Which range a number is in is that of the rounded number: 9.999 is 10.0.
    return f"{value:.0f}" if value >= 99.95 else f"{value:.1f}" if value >= 9.995 else ratio(value)


def percentages(parts: Mapping[str, float]) -> dict[str, float]:
    """Return the parts in percent with one decimal, rounded so that they sum to 100.0."""
    total = sum(parts.values())
    if not total:
        return dict.fromkeys(parts, 0.0)
    exact = {name: 1000 * value / total for name, value in parts.items()}
    tenths = {name: int(value) for name, value in exact.items()}
    largest_rest = sorted(exact, key=lambda name: tenths[name] - exact[name])
    for name in largest_rest[: 1000 - sum(tenths.values())]:
        tenths[name] += 1
    return {name: value / 10 for name, value in tenths.items()}


def ratio(value: float) -> str:
    """Return a ratio with two digits behind the point, as in a table of a paper.

    One below 0.1 has two that say something, as far as a column has room for them.
    """
    if 0 < value < LEAST_RATIO:
        return f"<{LEAST_RATIO:g}"
    return f"{value:.{_decimals(value)}f}"


def _decimals(value: float) -> int:
    """Return how many digits a ratio has behind the point."""
    if value <= 0 or value >= 0.1:
        return 0 if value >= 99.995 else 2
    # The exponent of the rounded number: 0.0999 is 0.10.
    return 1 - int(f"{max(value, LEAST_RATIO):.1e}".partition("e")[2])


def ratio_cell(value: float | None, half_width: float | None = None) -> str:
    """Return a ratio, marked if its confidence interval is wide, or a dash for None."""
    mark = UNSURE_MARK if is_unsure(value, half_width) else ""
    return BLANK if value is None else mark + ratio(value)


def half_width_cell(value: float | None, of: float | None = None) -> str:
    """Return half of an interval with the digits of what it is of.

    One that rounds to nothing is not said to be nothing.
    """
    if value is None:
        return BLANK
    if value >= 100:
        return ratio(value)
    digits = 2 if of is None else _decimals(of)
    said = f"{value:.{digits}f}"
    return f"<{10**-digits:.{digits}f}" if value > 0 and not float(said) else said


# Tables.


def columns(
    headers: Sequence[str],
    rows: Iterable[Sequence[str]],
    width: int,
    right: Sequence[int] = (),
) -> str:
    """Return a table that fits, by wrapping the last column first, then the widest, then others."""
    rows = [[str(cell) for cell in row] for row in rows]
    sizes, gap = _sizes([[*cells] for cells in zip(headers, *rows, strict=True)], width)
    lines = []
    for row in (headers, *rows):
        cells = [_wrapped(cell, size) for cell, size in zip(row, sizes, strict=True)]
        lines += [table_line(part, sizes, right, gap) for part in zip_longest(*cells, fillvalue="")]
        if row is headers:
            lines.append("-" * (sum(sizes) + len(gap) * (len(sizes) - 1)))
    return "\n".join(lines)


def _sizes(table: Sequence[Sequence[str]], width: int) -> tuple[list[int], str]:
    """Return how wide the columns of a table are, and what is between them.

    What does not fit is wrapped between words, then has narrow gaps, and last are names broken.
    """
    sizes = [max(map(len, cells)) for cells in table]
    words = [max(len(word) for cell in cells for word in cell.split() or [""]) for cells in table]
    last = len(sizes) - 1
    ranked = sorted(range(last), key=lambda index: -sizes[index])
    widest = ranked[0] if ranked else last
    gaps = len(GAP) * last

    def narrow(index: int, least: int) -> None:
        excess = sum(sizes) + gaps - width
        if excess > 0:
            sizes[index] = min(sizes[index], max(sizes[index] - excess, least))

    narrow(last, LAST_COLUMN)
    narrow(widest, max(words[widest], LAST_COLUMN))
    for index in [*ranked, last]:
        narrow(index, words[index])
    if sum(sizes) + gaps <= width:
        return sizes, GAP
    gaps = len(NARROW_GAP) * last
    narrow(widest, BROKEN_COLUMN)
    return sizes, NARROW_GAP


def _wrapped(cell: str, size: int) -> list[str]:
    """Return a cell in lines; a name stays whole if it fits, and is broken behind a `_` if not."""
    if len(line := " ".join(cell.split())) <= size:
        # Nearly all cells fit, and the code below would take most of the time of a long list.
        return [line]
    parts = rf"\S{{1,{size}}}$|\S{{0,{size - 1}}}_|\S{{1,{size}}}"
    words = (" ".join(re.findall(parts, word)) for word in cell.split())
    return textwrap.wrap(" ".join(words), size, break_on_hyphens=False) or [""]


def table_line(
    cells: Sequence[str], sizes: Sequence[int], right: Sequence[int], gap: str = GAP
) -> str:
    """Return cells padded to their sizes, those in `right` aligned to the right."""
    pairs = enumerate(zip(cells, sizes, strict=True))
    padded = [cell.rjust(size) if i in right else cell.ljust(size) for i, (cell, size) in pairs]
    return gap.join(padded).rstrip()


def fitted(columns: Iterable[Key], sizes: Mapping[Key, int], room: int) -> list[list[Key]]:
    """Return columns in as few parts as make each part fit."""
    parts: list[list[Key]] = [[]]
    left = room
    for column in columns:
        need = sizes[column] + 2
        if need > left and parts[-1]:
            parts.append([])
            left = room
        parts[-1].append(column)
        left -= need
    return parts


def word(value: object) -> str:
    """Return a value of a table: yes or no, or a dash for nothing."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return BLANK if value is None or value == "" else str(value)


def paragraph(label: str, body: str, width: int) -> str:
    """Return a label and its text, wrapped with a hanging indent."""
    hang = " " * LABEL
    return textwrap.fill(
        label.ljust(LABEL) + body, width, subsequent_indent=hang, break_on_hyphens=False
    )


LABEL = 12


def command(label: str, command: str, width: int) -> str:
    """Return a command that can be copied into a shell from however many lines it takes."""
    if isinstance(command, InPython):
        return paragraph(label, command, width)
    # An option stays with its value.
    options: list[str] = []
    for word in SHELL_WORD.findall(command):
        if word.startswith("--") or not options:
            options.append(word)
        else:
            options[-1] += f" {word}"
    lines, room = [""], max(width - LABEL - 2, 20)
    for word in options:
        if lines[-1] and len(lines[-1]) + 1 + len(word) > room:
            lines.append("")
        lines[-1] += f" {word}" if lines[-1] else word
    return label.ljust(LABEL) + (" \\\n" + " " * LABEL).join(lines)


# Names and notes.


def marked(answer: OfSeeds, design: str) -> str:
    """Return the name of a design, with a dagger for weaker durability."""
    weaker = answer.durability.get(design, "synchronous") != "synchronous"
    return answer.labels[design] + (DAGGER if weaker else "")


def durability_notes(answer: OfSeeds) -> list[Note]:
    """Return the notes that explain the daggers."""
    of = answer.durability
    names = {
        kind: [answer.labels[d] for d in answer.designs if of.get(d) == kind]
        for kind in DURABILITY_NOTES
    }
    return [
        (DAGGER, f"{', '.join(names[kind])}: {note}")
        for kind, note in DURABILITY_NOTES.items()
        if names[kind]
    ]


def refused_notes(answer: OfSeeds) -> list[Note]:
    """Return the notes on runs that could not be made, whose cells are empty."""
    places: dict[tuple[str, str], list[str]] = {}
    for row in answer.left_out().get("refused", []):
        words = [f"{key}={value}" for key, value in row.get("point", {}).items()]
        words += [f"seed {row['seed']}"] if len(answer.seeds) > 1 else []
        places.setdefault((_cell_said(answer, row), row["reason"]), []).append(", ".join(words))
    every = Counter(_cell_said(answer, answer.own(cell)) for cell in answer.cells())
    notes = []
    for (name, reason), own in places.items():
        more = f"; and {len(own) - REFUSED_SHOWN} more" if own[REFUSED_SHOWN:] else ""
        at = f" ({'; '.join(own[:REFUSED_SHOWN])}{more})"
        is_all = len(own) == every[name] * len(answer.seeds)
        notes.append(("!", f"{name}{'' if is_all else at}: {reason}"))
    return notes


def _cell_said(answer: OfSeeds, own: Mapping[str, Any]) -> str:
    cores = f", {plural(own['cores'], 'core')}" if own.get("cores") else ""
    return f"{answer.labels[own['design']]} on {own['workload']}{cores}"


def printable(shown: str) -> str:
    """Return text that any terminal for UTF-8 prints: other bytes of a file's name are a `?`."""
    return shown.encode("utf-8", "replace").decode("utf-8")


def plural(count: float, thing: str) -> str:
    """Return how many there are of a thing: `1 core`, `2,000 transactions`."""
    return f"{count:,.0f} {thing}{'' if count == 1 else 's'}"


def machine_title(machine: str, cores: int) -> str:
    """Return the machine of a run as it was asked for, a file by its path."""
    return f"machine {machine} · {plural(cores, 'core')}"


def run_title(row: Mapping[str, Any], machine: str) -> str:
    """Return the workload, the design and the machine of a run."""
    where = machine_title(machine, row["cores"])
    return f"{row['design']} · {row['workload']} · {where} · seed {row['seed']}"


def seeds_said(seeds: Sequence[int]) -> str:
    """Return one seed, or the first and the last of several that follow each other."""
    return f"seed {seeds[0]}" if len(seeds) == 1 else f"seeds {seeds[0]} to {seeds[-1]}"


def warmup_said(warmup: int | None) -> list[str]:
    """Return how many transactions each core makes before counting begins, if that was given."""
    return [] if warmup is None else [f"warm-up {warmup:,}"]


def settings_said(settings: Pairs) -> list[str]:
    """Return each setting as it was given: without it the name of the machine would mislead."""
    return [f"{key}={value}" for key, value in settings]


def interrupted(answer: OfSeeds, what: str) -> str:
    """Return how much of an interrupted answer there is, and what its table shows."""
    total = len(answer.cells()) * len(answer.seeds)
    of = f"; the table is of {seeds_said(answer.seeds_shown)}" if len(answer.seeds) > 1 else ""
    return f"interrupted: {len(answer.runs)} of {total} {what} had ended{of}"


def latency_notes(answer: OfSeeds) -> list[Note]:
    """Return what a commit latency lacks, and that a percentile of too few is the slowest one."""
    if not answer.metric.startswith("commit-latency"):
        return []
    return [("*", "without what a design waits for before the commit begins"), *few_notes(answer)]


def few_notes(answer: OfSeeds) -> list[Note]:
    """Return the note that a percentile of too few commits is that of the slowest one."""
    metric, fewest = METRICS[answer.metric], answer.too_few()
    if fewest is None:
        return []
    of = f"the {metric.title} of {plural(fewest, 'transaction')}, fewer than {metric.least:,}"
    return [("!", f"{of}, is the slowest: raise --txs")]


def zeros_notes(answer: OfSeeds) -> list[Note]:
    """Return the note on cells that are 0 with some of the seeds, whose ratios have no mean."""
    metric, seeds, found = METRICS[answer.metric], answer.seeds_shown, []
    for cell in answer.cells():
        if 0 < answer.zeros(cell) < len(seeds) and not answer.zeros(answer.base(cell)):
            own = answer.own(cell)
            point = "".join(f", {key}={value}" for key, value in own.get("point", {}).items())
            mean = answer.value(cell)
            each = "" if mean is None else f", on average {quantity(mean, metric.unit)}"
            with_ = f"with {answer.zeros(cell)} of {len(seeds)} seeds{each}"
            found.append(f"{_cell_said(answer, own)}{point} ({with_})")
    if not found:
        return []
    more = f"; and {len(found) - REFUSED_SHOWN} more" if found[REFUSED_SHOWN:] else ""
    said = f"{'; '.join(found[:REFUSED_SHOWN])}{more}"
    what = f"{metric.title} of 0 with some seeds, so that the ratios have no geometric mean"
    return [(BLANK, f"{what}: {said}")]


def kept_notes(taken: Taken | None, width: int) -> list[str]:
    """Return the notes on runs whose answers were kept; none if no answer was."""
    if taken is None:
        return []
    return [textwrap.fill(str(taken), width, break_on_hyphens=False, break_long_words=False)]


def interval_notes(
    said: str, widths: Mapping[str, tuple[float | None, float | None]]
) -> list[Note]:
    """Return a note on confidence intervals that ends with the widest for its value.

    The values come with half the width of their intervals, by where they are.
    """
    known = {
        place: (value, half)
        for place, (value, half) in widths.items()
        if value and half is not None
    }
    if not known:
        return []
    place, (value, half) = max(known.items(), key=lambda item: item[1][1] / item[1][0])
    low, high = map(ratio, ends(value, half) or ())
    notes = [("±", f"{said} {place}, {ratio(value)}, from {low} to {high}")]
    if any(is_unsure(*pair) for pair in known.values()):
        limit = f"± {100 * UNSURE:.0f} %"
        wide = (
            f"the interval of this cell is wider than {limit} of its value: more --seeds narrow it"
        )
        notes.append((UNSURE_MARK, wide))
    return notes


def footnote(mark: str, body: str, width: int) -> str:
    """Return a note that begins with its mark."""
    return textwrap.fill(
        f"{mark} {body}",
        width,
        subsequent_indent="  ",
        break_on_hyphens=False,
        break_long_words=False,
    )


def note_text(note: Note, width: int) -> str:
    """Return a note as text: behind a mark, or beside a label."""
    mark, body = note
    return paragraph(mark, body, width) if mark[0].isalnum() else footnote(mark, body, width)
