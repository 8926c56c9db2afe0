"""Answers as text for a terminal of a given width. Returns strings and prints nothing."""

from __future__ import annotations

import math
import re
import shlex
import shutil
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from itertools import zip_longest
from typing import Any

from indelible import usage_text
from indelible.jobs import portable, survival
from indelible.kept import Taken
from indelible.means import UNSURE, is_unsure
from indelible.metrics import transactions
from indelible.results import OfSeeds, Run

DAGGER = "†"

BLANK = "-"

#: What there is to know of a table: a mark or a label, and what it stands for.
Note = tuple[str, str]

#: The mark of a value whose confidence interval is wide, before the value.
UNSURE_MARK = "~"

#: What stands before how sure means are.
INTERVAL = "± 95 %"

#: No ratio that is less is told.
LEAST_RATIO = 1e-4

#: The least that is left to a column whose text is wrapped.
LAST_COLUMN = 20

#: And one whose names are broken since nothing else has helped.
BROKEN_COLUMN = 12

#: What is told of a distribution: how long these shares of commits take at most, if there are
#: enough for one to be slower.
QUANTILES = (0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99, 0.999, 0.9999)

#: What is between columns, and what is if they do not fit otherwise.
GAP = "  "
NARROW_GAP = " "

DURABILITY_NOTES = {
    "none": "no durability: not crash consistent by design, a bound and not a rival",
    "asynchronous": "weaker durability: a commit returns before it is durable",
}


def terminal_width() -> int:
    """Return the columns of the terminal; 80 where there is none."""
    return shutil.get_terminal_size((80, 24)).columns


# Numbers.


def quantity(value: float, unit: str) -> str:
    """Return a number with a decimal prefix: 12.3 Mtx/s."""
    for factor, prefix in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= factor:
            return f"{_digits(value / factor)} {prefix}{unit}"
    return f"{_digits(value)} {unit}"


def seconds(value: float) -> str:
    """Return a time with the prefix that suits it."""
    return _of_one(value, "s")


def joules(value: float) -> str:
    """Return an energy with the prefix that suits it."""
    return _of_one(value, "J")


def size(of: float) -> str:
    """Return bytes with the binary prefix that suits them."""
    for unit, factor in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if of >= factor:
            return f"{of / factor:.4g} {unit}"
    return f"{of:.0f} B"


def _of_one(value: float, unit: str) -> str:
    """Return what is some of a unit, or a part of it."""
    for factor, prefix in ((1.0, ""), (1e-3, "m"), (1e-6, "u")):
        if value >= factor:
            return f"{_digits(value / factor)} {prefix}{unit}"
    return f"{_digits(value / 1e-9)} n{unit}"


def _digits(value: float) -> str:
    """Return three significant digits, two of what is less than 0.1, without an exponent."""
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else ratio(value)


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
    return f"{value:.0f}" if value >= 100 else f"{value:.{_decimals(value)}f}"


def _decimals(value: float) -> int:
    """Return how many digits behind the point a ratio has."""
    if value <= 0 or value >= 0.1:
        return 2
    # The exponent of what is rounded: 0.0999 is 0.10.
    return 1 - int(f"{max(value, LEAST_RATIO):.1e}".partition("e")[2])


def ratio_cell(value: float | None, half_width: float | None = None) -> str:
    """Return a ratio, marked if its confidence interval is wide, or a dash for nothing."""
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
    least = 10**-digits
    return f"<{least:.{digits}f}" if 0 < value < least / 2 else f"{value:.{digits}f}"


# Tables.


def columns(
    headers: Sequence[str],
    rows: Iterable[Sequence[str]],
    width: int,
    right: Sequence[int] = (),
) -> str:
    """Return a table that fits: the last column is wrapped first, then the widest, then others."""
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
    parts = rf"\S{{1,{size}}}$|\S{{0,{size - 1}}}_|\S{{1,{size}}}"
    words = (" ".join(re.findall(parts, word)) for word in cell.split())
    return textwrap.wrap(" ".join(words), size, break_on_hyphens=False) or [""]


def table_line(
    cells: Sequence[str], sizes: Sequence[int], right: Sequence[int], gap: str = GAP
) -> str:
    """Return cells padded to their sizes, those of `right` from the left."""
    pairs = enumerate(zip(cells, sizes, strict=True))
    padded = [cell.rjust(size) if i in right else cell.ljust(size) for i, (cell, size) in pairs]
    return gap.join(padded).rstrip()


def fitted(designs: Sequence[str], sizes: Mapping[str, int], room: int) -> list[list[str]]:
    """Return the designs in as many parts as it takes for each part to fit."""
    parts: list[list[str]] = [[]]
    left = room
    for design in designs:
        need = sizes[design] + 2
        if need > left and parts[-1]:
            parts.append([])
            left = room
        parts[-1].append(design)
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
    # An option stays with its value.
    lines, room = [""], max(width - LABEL - 2, 20)
    for word in re.split(r" (?=--)", command):
        if lines[-1] and len(lines[-1]) + 1 + len(word) > room:
            lines.append("")
        lines[-1] += f" {word}" if lines[-1] else word
    return label.ljust(LABEL) + (" \\\n" + " " * LABEL).join(lines)


# Names and notes.


def marked(durability: Mapping[str, str], design: str) -> str:
    """Return the name of a design, with a dagger for weaker durability."""
    weaker = durability.get(design, "synchronous") != "synchronous"
    return design + (DAGGER if weaker else "")


def durability_notes(designs: Sequence[str], durability: Mapping[str, str]) -> list[Note]:
    """Return what the daggers mean."""
    names = {kind: [d for d in designs if durability.get(d) == kind] for kind in DURABILITY_NOTES}
    return [
        (DAGGER, f"{', '.join(names[kind])}: {note}")
        for kind, note in DURABILITY_NOTES.items()
        if names[kind]
    ]


def seeds_said(seeds: Sequence[int]) -> str:
    """Return one seed, or the first and the last of several that follow each other."""
    return f"seed {seeds[0]}" if len(seeds) == 1 else f"seeds {seeds[0]} to {seeds[-1]}"


def interrupted(answer: OfSeeds, what: str) -> str:
    """Return how much there is of what was interrupted, and whose table it makes."""
    total = len(answer.cells()) * len(answer.seeds)
    of = f"; the table is of {seeds_said(answer.seeds_shown)}" if len(answer.seeds) > 1 else ""
    return f"interrupted: {len(answer.runs)} of {total} {what} had ended{of}"


def kept_notes(taken: Taken | None, width: int) -> list[str]:
    """Return what was not run because its answer is kept; nothing is said if none is."""
    if taken is None:
        return []
    return [textwrap.fill(str(taken), width, break_on_hyphens=False, break_long_words=False)]


def interval_notes(
    said: str, widths: Mapping[str, tuple[float | None, float | None]]
) -> list[Note]:
    """Return a note on confidence intervals that ends with the widest for its value.

    The values come with the half of their intervals, by where they are.
    """
    known = {place: pair for place, pair in widths.items() if pair[0] and pair[1] is not None}
    if not known:
        return []
    place, (value, half) = max(known.items(), key=lambda item: item[1][1] / item[1][0])
    notes = [("±", f"{said} {place}, {ratio(value)} ± {half_width_cell(half, value)}")]
    if any(is_unsure(*pair) for pair in known.values()):
        limit = f"± {100 * UNSURE:.0f} %"
        wide = f"the interval of this cell is wider than {limit} of it: more --seeds narrow it"
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


# battery.


def battery(answer: Mapping[str, Any], width: int) -> str:
    """Return the batteries of designs: what they save, what that takes, and how large they are."""
    where = machine_title(answer["machine"], answer["cores"])
    without = ", ".join(answer["without"])
    if not answer["rows"]:
        told = f"{where}: no battery is needed for {without}"
        return textwrap.fill(told, width, break_on_hyphens=False)
    numbers = ("energy_uj", "supercap_mm3", "supercap_mm2", "li_mm3", "li_mm2")
    rows = [
        [row["design"], source, _significant(of["flush_kb"], 5)]
        + [_significant(of[name], 4) for name in numbers]
        for row in answer["rows"]
        for source, of in (("computed", row), *_published(row))
    ]
    headers = ["design", "source", "flush KB", "energy uJ", "cap mm3", "mm2", "li mm3", "mm2"]
    blocks = [
        f"Batteries: {where} · {answer['dirty_percent']} % of caches dirty",
        columns(headers, rows, width, right=range(2, len(headers))),
        textwrap.fill("cap: a supercapacitor, li: a thin-film lithium battery, as cubes", width),
    ]
    if without:
        told = f"no battery: {without}"
        blocks[-1] += "\n" + textwrap.fill(told, width, break_on_hyphens=False)
    return "\n\n".join(blocks)


def _published(row: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
    """Return what was published of a design's battery with its source, if anything was."""
    published = row["published"]
    return [] if published is None else [(published["source"], published)]


def _significant(value: float, digits: int) -> str:
    """Return so many significant digits without an exponent, whole numbers whole."""
    places = max(digits - 1 - math.floor(math.log10(value)), 0) if value else 0
    shown = f"{value:,.{places}f}"
    return shown.rstrip("0").rstrip(".") if places else shown


# characterize.


def characterization(answer: Mapping[str, Any], width: int) -> str:
    """Return what transactions write, with what was published of it where there is something."""
    averages = ("lines_avg", "lines_max", "pages_avg", "pages_max", "words_avg", "stores_avg")
    rows = []
    for row in answer["rows"]:
        cells = [f"{row[name]:.1f}" if name.endswith("_avg") else row[name] for name in averages]
        published = row["published"] or {}
        rows.append(
            [row["workload"], *cells, f"{100 * row['pm_share']:.1f}"]
            + [word(published.get(name)) for name in ("lines", "pages", "pages_max")]
        )
    headers = ["workload", "lines", "max", "pages", "max", "words", "stores", "PM %"]
    headers += ["| lines", "pages", "max"]
    where = machine_title(answer["machine"], answer["cores"])
    title = f"{where} · seed {answer['seed']} · {answer['txs']:,} transactions"
    notes = (
        "Averages and maxima of a transaction; PM %: of the simulated stores, loads are not"
        " counted; to volatile memory they are of locks, or recorded. Behind the bar is what was"
        " published, pages' maximum last."
    )
    blocks = [
        f"Write sets: {title} a core",
        columns(headers, rows, width, right=range(1, len(headers))),
        textwrap.fill(notes, width),
    ]
    if answer["cancelled"]:
        blocks.append("interrupted: what had ended is shown")
    return "\n\n".join(blocks)


# run.


def run(answer: Run, width: int | None = None) -> str:
    """Return one run: what it did, what it cost and where the time went."""
    width = width or terminal_width()
    row = answer.data
    count = transactions(row)
    latency = row["commit_latency_cycles"]
    lines = [run_title(row, answer.experiment.machine)]
    if row.get("cancelled"):
        lines.append("interrupted: this is what had been measured by then")

    def say(label: str, body: str) -> None:
        lines.append(paragraph(label, body, width))

    say("simulated", f"{row['core_model']} core, domain {row['domain']}")
    say(
        "throughput",
        f"{quantity(row['throughput_tx_per_s'], 'tx/s')}: {count:,.0f} transactions"
        f" in {seconds(row['simulated_s'])} of simulated time",
    )
    until = ", until durable" if row["durability"] == "asynchronous" else ""
    say("commit", f"{_latency(latency)} cycles{until}; durability {row['durability']}")
    if steps := latency.get("distribution"):
        told = [q for q in QUANTILES if count * (1 - q) >= 1]
        say("latencies", "  ".join(f"p{100 * q:g} {_quantile(steps, q):,}" for q in told))
    shares = percentages(row["stalls"])
    ranked = sorted(shares, key=lambda name: -shares[name])
    stack = " | ".join(f"{_spaced(n)} {shares[n]:.1f}" for n in ranked if shares[n] >= 0.05)
    say("core time", f"{stack or BLANK} %")
    if accesses := usage_text.caches(row):
        say("caches", accesses)
    if ordered := usage_text.ordering(row, count):
        say("ordering", ordered)
    say("PM writes", _writes(row["pm_writes"], count))
    say("WPQ", usage_text.queue(row))
    took = usage_text.reads(row, "pm")
    say("PM reads", _scalars(row["pm_reads"], count) + (f"; {took}" if took else ""))
    say("PM banks", usage_text.banks(row, "pm"))
    if took := usage_text.reads(row, "dram"):
        say("DRAM", f"reads {took}; banks {usage_text.banks(row, 'dram')}")
    sizes = row["write_set"]
    said = [
        f"{what} {sizes[f'{what}_avg']:.1f}"
        + (f" (max {sizes[f'{what}_max']:,})" if f"{what}_max" in sizes else "")
        for what in ("words", "lines", "pages")
    ]
    say("write set", "  ".join(said) + " a transaction")
    if "epochs" in row:
        say("epochs", _epochs(row["epochs"]))
    # Cells that were neither read nor written took none.
    if energy := row["energy_uj"] / 1e6:
        each = f", {joules(energy / count)}/tx" if count else ""
        say("energy", joules(energy) + each)
    counted = {name: count for name, count in row["design_counters"].items() if count}
    if counted:
        say("design", "  ".join(f"{_spaced(name)} {n:,}" for name, n in counted.items()))
    host = row["host"]
    say(
        "host",
        f"{quantity(host['mem_ops'], '').strip()} memory operations in"
        f" {seconds(host['seconds'])}: {quantity(host['mem_ops_per_s'], '/s')},"
        f" {host['peak_rss_mb']:,.0f} MB",
    )
    for note in row.get("notes") or []:
        say("note", str(note))
    lines.append(command("crash test", _crash_command(answer), width))
    lines.append(command("repeat", answer.experiment.command(), width))
    return "\n".join(lines)


def _latency(latency: Mapping[str, float | None]) -> str:
    known = {name: latency[name] for name in ("p50", "p99", "max", "mean")}
    return "  ".join(
        f"{name} {BLANK if cycles is None else f'{cycles:,.0f}'}" for name, cycles in known.items()
    )


def _quantile(steps: Sequence[Sequence[float]], share: float) -> float:
    """Return how many cycles a share of all commits took at most."""
    return next(cycles for cycles, reached in steps if reached >= share)


def _crash_command(answer: Run) -> str:
    """Return a campaign on what was run, on machine `tiny`.

    The design and the workload are as they are set, and what survives is what survives there.
    Of a trace whose transactions store nothing only a checker knows what is right.
    """
    row = answer.data
    words = [f"indelible crash --design {row['design']} --workload {row['workload']}"]
    if script := answer.experiment.script:
        words.append(f"{script.flag} {shlex.quote(script.path)}")
    settings = portable(answer.experiment.settings) + survival(answer.experiment)
    words += [f"--set {shlex.quote(f'{key}={value}')}" for key, value in settings]
    if row["workload"] == "replay" and not row["write_set"]["lines_max"]:
        words.append("--check COMMAND")
    return " ".join(words)


def machine_title(machine: str, cores: int) -> str:
    """Return what a run was made on: the machine as it was asked for, a file by its path."""
    return f"machine {machine} · {cores} core{'' if cores == 1 else 's'}"


def run_title(row: Mapping[str, Any], machine: str) -> str:
    """Return what was run, and on what."""
    where = machine_title(machine, row["cores"])
    return f"{row['design']} · {row['workload']} · {where} · seed {row['seed']}"


def _spaced(name: str) -> str:
    return name.replace("_", " ")


def _per(value: float, count: float) -> str:
    return _digits(value / count) if count else BLANK


def _epochs(epochs: Mapping[str, Any]) -> str:
    shares = {
        "of one line": "singleton_share",
        "depend on their core's": "self_dependent_share",
        "on another's": "cross_dependent_share",
    }
    said = ", ".join(f"{100 * epochs[name]:.1f} % {what}" for what, name in shares.items())
    return f"{epochs['epochs_per_tx']:.1f} a transaction: {said}"


def _writes(writes: Mapping[str, Any], count: float) -> str:
    total = f"{_per(writes['wpq_bytes'], count)} B/tx accepted"
    classes = {
        name: value["wpq_bytes"] if isinstance(value, Mapping) else value
        for name, value in writes.get("by_class", {}).items()
    }
    parts = " + ".join(f"{_spaced(n)} {_per(v, count)}" for n, v in classes.items() if v)
    media = (
        f"{_per(writes['media_lines'], count)} lines/tx and"
        f" {_per(writes['media_bits'], count)} bits/tx written to the media"
    )
    return f"{total}{f' = {parts}' if parts else ''}; {media}"


def _scalars(reads: Mapping[str, Any] | float, count: float) -> str:
    if isinstance(reads, Mapping):
        return "  ".join(f"{_spaced(n)} {_per(v, count)}/tx" for n, v in reads.items())
    return f"{_per(reads, count)} /tx"


# bench.


def bench(rows: Sequence[Mapping[str, Any]], width: int) -> str:
    """Return how fast the simulator was."""
    headers = [
        "design",
        "workload",
        "cores",
        "footprint",
        "ops/s",
        "slowdown",
        "vs native",
        "peak",
    ]
    table = [
        [
            row["design"],
            row["workload"],
            str(row["cores"]),
            row["footprint"],
            f"{row['mem_ops_per_s'] / 1e6:.1f} M",
            f"{row['slowdown_vs_plain']:.1f}x" if row["slowdown_vs_plain"] else BLANK,
            f"{row['time_vs_native']:.2f}x" if row["time_vs_native"] else BLANK,
            f"{row['peak_rss_mb']:,.0f} MB",
        ]
        for row in rows
    ]
    return columns(headers, table, width, right=(2, 3, 4, 5, 6, 7))
