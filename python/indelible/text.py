"""Answers as text for a terminal of a given width. Returns strings and prints nothing."""

from __future__ import annotations

import re
import shutil
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from indelible.results import METRICS, Comparison, Crash, Run, Verdict, transactions

DAGGER = "†"
BLANK = "-"

#: How many violations are told in full.
VIOLATIONS_SHOWN = 5

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
    for factor, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "us")):
        if value >= factor:
            return f"{_digits(value / factor)} {unit}"
    return f"{_digits(value / 1e-9)} ns"


def _digits(value: float) -> str:
    """Return three significant digits, without an exponent."""
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


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


# Tables.


def columns(
    headers: Sequence[str],
    rows: Iterable[Sequence[str]],
    width: int,
    right: Sequence[int] = (),
) -> str:
    """Return a table whose last column takes what is left of the width, wrapped."""
    rows = [[str(cell) for cell in row] for row in rows]
    sizes = [max(map(len, cells)) for cells in zip(headers, *rows, strict=True)]
    indent = sum(sizes[:-1]) + 2 * (len(sizes) - 1)
    last = max(width - indent, 20)
    sizes[-1] = min(sizes[-1], last)
    lines = [_line(headers, sizes, right), "-" * (indent + sizes[-1])]
    for row in rows:
        first, *more = textwrap.wrap(row[-1], last) or [""]
        lines.append(_line([*row[:-1], first], sizes, right))
        lines += [" " * indent + line for line in more]
    return "\n".join(lines)


def _line(cells: Sequence[str], sizes: Sequence[int], right: Sequence[int]) -> str:
    pairs = enumerate(zip(cells, sizes, strict=True))
    padded = [cell.rjust(size) if i in right else cell.ljust(size) for i, (cell, size) in pairs]
    return "  ".join(padded).rstrip()


def _paragraph(label: str, body: str, width: int) -> str:
    """Return a label and its text, wrapped with a hanging indent."""
    hang = " " * LABEL
    return textwrap.fill(
        label.ljust(LABEL) + body, width, subsequent_indent=hang, break_on_hyphens=False
    )


LABEL = 12


def _command(label: str, command: str, width: int) -> str:
    """Return a command that can be copied into a shell from however many lines it takes."""
    # An option stays with its value.
    lines, room = [""], max(width - LABEL - 2, 20)
    for word in re.split(r" (?=--)", command):
        if lines[-1] and len(lines[-1]) + 1 + len(word) > room:
            lines.append("")
        lines[-1] += f" {word}" if lines[-1] else word
    return label.ljust(LABEL) + (" \\\n" + " " * LABEL).join(lines)


# list and explain.


LIST_COLUMNS = {
    "designs": ("name", "family", "durability", "granularity", "paper", "summary"),
    "workloads": ("name", "shared", "source", "summary"),
    "machines": ("name", "cores", "domain", "summary"),
}


def catalog(kind: str, rows: Sequence[Mapping[str, Any]], width: int) -> str:
    """Return the table of `list`; a narrow one leaves the paper to `explain`."""
    names = [name for name in LIST_COLUMNS[kind] if width >= 100 or name not in ("paper", "source")]
    headers = [kind[:-1], *names[1:]]
    return columns(headers, [[_word(row.get(name)) for name in names] for row in rows], width)


def _word(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return BLANK if value is None or value == "" else str(value)


def explanation(about: Mapping[str, Any], width: int, other: str | None = None) -> str:
    """Return everything known of a design, a workload or a machine."""
    title = f"{about['name']} ({about['kind']})"
    blocks = [title + "\n" + textwrap.fill(about.get("summary") or "", width)]
    facts = {k: v for k, v in about.items() if isinstance(v, (str, bool, int, float))}
    for known in ("kind", "name", "summary", "against"):
        facts.pop(known, None)
    if facts:
        blocks.append("\n".join(_paragraph(k, _word(v), width) for k, v in facts.items()))
    for params in ("params", "parameters"):
        if about.get(params):
            blocks.append("Parameters (--set)\n" + _parameters(about, about[params], width))
    if about.get("rules"):
        rules = [[rule["name"], rule.get("doc", "").strip()] for rule in about["rules"]]
        blocks.append(
            "Rules (crash --mutants switches each off)\n" + columns(["rule", "what"], rules, width)
        )
    if about.get("hardware"):
        names = ("name", "bits", "count", "domain", "where")
        parts = [[_word(part.get(name)) for name in names] for part in about["hardware"]]
        headers = ["structure", *names[1:]]
        blocks.append("Hardware\n" + columns(headers, parts, width, right=(1, 2)))
    if about.get("rows"):
        blocks.append(_machine(about["rows"], about["name"], other or "other", width))
    return "\n\n".join(blocks)


def _parameters(about: Mapping[str, Any], params: Sequence[Mapping[str, Any]], width: int) -> str:
    section = about["kind"]
    rows = []
    for param in params:
        accepted = " | ".join(param.get("choices") or []) or _word(param.get("range"))
        doc = param.get("doc", "").strip()
        name = f"{section}.{param['name']}"
        rows.append([name, _word(param.get("default")), f"{doc} [{accepted}]"])
    return columns(["name", "default", "what [accepted]"], rows, width)


def _machine(rows: Sequence[Mapping[str, Any]], name: str, other: str, width: int) -> str:
    if "other_value" not in rows[0]:
        table = [[_key(row), _word(row["value"]), _described(row)] for row in rows]
        return columns(["field", "value", "what [range] (source)"], table, width)
    table = []
    for row in rows:
        differs = row.get("differs", row["value"] != row["other_value"])
        sources = f"{row.get('source')} / {row.get('other_source')}" if differs else ""
        mark = "*" if differs else ""
        table.append([_key(row), _word(row["value"]), _word(row["other_value"]), mark, sources])
    return columns(["field", name, other, "", "sources, where they differ"], table, width)


def _key(row: Mapping[str, Any]) -> str:
    return f"{row['section']}.{row['key']}"


def _described(row: Mapping[str, Any]) -> str:
    accepted = f" [{row['range']}]" if row.get("range") else ""
    return f"{row.get('doc', '').strip()}{accepted} ({row.get('source')})"


# run.


def run(answer: Run, width: int | None = None) -> str:
    """Return one run: what it did, what it cost and where the time went."""
    width = width or terminal_width()
    row = answer.data
    count = transactions(row)
    latency = row["commit_latency_cycles"]
    title = f"{row['design']} · {row['workload']} · {_machine_title(row)} · seed {row['seed']}"
    lines = [title]
    if row.get("cancelled"):
        lines.append("interrupted: this is what had been measured by then")

    def say(label: str, body: str) -> None:
        lines.append(_paragraph(label, body, width))

    say(
        "throughput",
        f"{quantity(row['throughput_tx_per_s'], 'tx/s')}: {count:,.0f} transactions"
        f" in {seconds(row['simulated_s'])} of simulated time",
    )
    cycles = "  ".join(f"{name} {latency[name]:,.0f}" for name in ("p50", "p99", "max", "mean"))
    say("commit", f"{cycles} cycles; durability {row['durability']}")
    shares = percentages(row["stalls"])
    ranked = sorted(shares, key=lambda name: -shares[name])
    stack = " | ".join(f"{_spaced(n)} {shares[n]:.1f}" for n in ranked if row["stalls"][n])
    say("core time", f"{stack or BLANK} %")
    say("PM writes", _writes(row["pm_writes"], count))
    say("PM reads", _scalars(row["pm_reads"], count))
    sizes = row["write_set"]
    said = [
        f"{what} {sizes[f'{what}_avg']:.1f}"
        + (f" (max {sizes[f'{what}_max']:,})" if f"{what}_max" in sizes else "")
        for what in ("words", "lines", "pages")
    ]
    say("write set", "  ".join(said) + " a transaction")
    energy = row["energy_uj"]
    if isinstance(energy, (int, float)):
        say("energy", f"{energy:,.1f} uJ, {_per(1000 * energy, count)} nJ/tx")
    host = row["host"]
    say(
        "host",
        f"{quantity(host['mem_ops'], '').strip()} memory operations in"
        f" {seconds(host['seconds'])}: {quantity(host['mem_ops_per_s'], '/s')},"
        f" {host['peak_rss_mb']:,.0f} MB",
    )
    for note in row.get("notes") or []:
        say("note", str(note))
    lines.append(_command("crash test", _crash_command(row), width))
    lines.append(_command("repeat", answer.experiment.command(), width))
    return "\n".join(lines)


def _crash_command(row: Mapping[str, Any]) -> str:
    return f"indelible crash --design {row['design']} --workload {row['workload']}"


def _machine_title(row: Mapping[str, Any]) -> str:
    cores = row["cores"]
    return f"machine {row['machine']} · {cores} core{'' if cores == 1 else 's'}"


def _spaced(name: str) -> str:
    return name.replace("_", " ")


def _per(value: float, count: float) -> str:
    return _digits(value / count) if count else BLANK


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


# crash.


def crash(answer: Crash, width: int | None = None) -> str:
    """Return one campaign: how many power failures, what they broke, and how to see it again."""
    width = width or terminal_width()
    row = answer.data
    violations = row["violations"]
    place = _machine_title(row) if "cores" in row else f"machine {row['machine']}"
    lines = [f"{row['design']} · {row['workload']} · {place} · seed {row['seed']}"]
    if row.get("cancelled"):
        lines.append("interrupted: only these points were tried")
    nested = row.get("nested_points", 0)
    again = f" and {nested:,} more during recovery" if nested else ""
    speed = f"{seconds(row['seconds'])}, {quantity(row['points_per_s'], 'points/s')}"
    lines.append(_paragraph("power cuts", f"{row['points']:,}{again} ({speed})", width))
    verdict = (
        f"FAIL {len(violations):,}/{row['points']:,}" if violations else "ok: every one recovered"
    )
    lines.append(_paragraph("violations", verdict, width))
    for violation in violations[:VIOLATIONS_SHOWN]:
        lines.append(textwrap.indent(textwrap.fill(_told(violation), width - 2), "  "))
        if isinstance(violation, Mapping) and violation.get("replay"):
            lines.append(_command("    repeat", violation["replay"], width))
    if len(violations) > VIOLATIONS_SHOWN:
        lines.append(f"  and {len(violations) - VIOLATIONS_SHOWN:,} more: --json has them all")
    if "mutants" in row:
        lines += ["", _mutants(row["mutants"], width), ""]
    for note in row.get("notes") or []:
        lines.append(_paragraph("note", str(note), width))
    lines.append(_command("repeat", answer.campaign.command(), width))
    return "\n".join(lines)


def _mutants(mutants: Sequence[Mapping[str, Any]], width: int) -> str:
    if not mutants:
        return "mutants     none: the design has no named rules"
    rows = [
        [
            mutant["rule"],
            "caught" if mutant["caught"] else "NOT CAUGHT",
            _word(mutant.get("seed")),
            _word(mutant.get("event")),
        ]
        for mutant in mutants
    ]
    return columns(["rule switched off", "campaign", "seed", "event"], rows, width, right=(2, 3))


def _told(violation: object) -> str:
    if not isinstance(violation, Mapping):
        return str(violation)
    place = ", ".join(
        f"{key} {violation[key]}" for key in ("point", "at", "nested", "seed") if violation.get(key)
    )
    what = next((violation[k] for k in ("text", "message", "kind") if violation.get(k)), "violated")
    return f"{what} ({place})" if place else str(what)


# compare.


def comparison(answer: Comparison, width: int | None = None) -> str:
    """Return the table of a paper's evaluation: a block for each number of cores."""
    width = width or terminal_width()
    blocks = [_block(answer, cores, width) for cores in answer.cores]
    if answer.interrupted:
        total = len(answer.cells())
        blocks.insert(0, f"interrupted: {len(answer.runs)} of {total} runs had ended")
    notes = _footnotes(answer, width)
    return "\n\n".join([*blocks, *notes])


def _block(answer: Comparison, cores: int | None, width: int) -> str:
    metric = METRICS[answer.metric]
    better = "higher" if metric.higher_is_better else "lower"
    count = answer.cores_used(cores)
    shown = f" · {count} core{'' if count == 1 else 's'}" if count else ""
    title = (
        f"{metric.title} relative to {answer.normalize}, {better} is better\n"
        f"machine {answer.machine}{shown} · seed {answer.seed}"
    )
    base = [
        BLANK
        if (value := answer.value((answer.normalize, workload, cores))) is None
        else quantity(value, metric.unit)
        for workload in answer.workloads
    ]
    labels = ["workload", *answer.workloads, "gmean", "crash test"]
    stub = max(map(len, labels))
    cells = {design: _column(answer, design, cores) for design in answer.designs}
    units = ["1.00 is", *base, "", ""]
    sizes = {d: max(map(len, column)) for d, column in cells.items()}
    lines = [title]
    for part in _fitted(answer.designs, sizes, width - stub):
        grid = [labels, *(cells[d] for d in part)]
        spans = [stub, *(sizes[d] for d in part)]
        total = sum(spans) + 2 * len(part)
        unit_size = max(map(len, units))
        if total + 2 + unit_size <= width:
            grid.append(units)
            spans.append(unit_size)
            total += 2 + unit_size
        table = [_line(row, spans, range(1, len(spans))) for row in zip(*grid, strict=True)]
        rule = "-" * total
        head, body, mean, crash_row = table[0], table[1:-2], table[-2], table[-1]
        lines += ["", head, rule, *body, rule, mean, crash_row]
    return "\n".join(lines)


def _column(answer: Comparison, design: str, cores: int | None) -> list[str]:
    """Return one design: its name, its ratios, their mean and its verdict."""
    ratios = [answer.ratio((design, workload, cores)) for workload in answer.workloads]
    values = [BLANK if r is None else _ratio(r) for r in [*ratios, answer.gmean(design, cores)]]
    return [marked(answer, design), *values, verdict_text(answer.verdict(design, cores))]


def _ratio(value: float) -> str:
    return f"{value:.2f}" if value < 100 else f"{value:.0f}"


def marked(answer: Comparison, design: str) -> str:
    """Return the name with a dagger for weaker durability and `!` for a failed crash test."""
    weaker = answer.durability.get(design, "synchronous") != "synchronous"
    failed = any(v.kind == "fail" for cell, v in answer.verdicts.items() if cell[0] == design)
    return design + (DAGGER if weaker else "") + ("!" if failed else "")


def verdict_text(verdict: Verdict) -> str:
    """Return what the crash campaigns said, in a few letters."""
    match verdict.kind:
        case "ok":
            return f"ok {verdict.points}"
        case "fail":
            return f"FAIL {verdict.violations}/{verdict.points}"
        case "none":
            return f"none{DAGGER}"
        case _:
            return "untested"


def _fitted(designs: Sequence[str], sizes: Mapping[str, int], room: int) -> list[list[str]]:
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


def _footnotes(answer: Comparison, width: int) -> list[str]:
    notes = []
    cells = answer.cells()
    if any(cell[0] == answer.normalize and answer.value(cell) == 0 for cell in cells):
        notes.append(_note("-", f"{answer.normalize} is 0 there: choose --normalize", width))
    for kind, note in DURABILITY_NOTES.items():
        names = [d for d in answer.designs if answer.durability.get(d) == kind]
        if names:
            notes.append(_note(DAGGER, f"{', '.join(names)}: {note}", width))
    for design in answer.designs:
        verdict = Verdict.all_of(v for cell, v in answer.verdicts.items() if cell[0] == design)
        if verdict.kind == "fail":
            notes.append(f"! {design} is not crash-safe; to see it:")
            notes.append(_command("", verdict.command or "", width))
        elif verdict.kind == "untested" and verdict.reason and verdict.command:
            notes.append(_note("?", f"{design} was not tested: {verdict.reason}", width))
    return ["\n".join(notes)] if notes else []


def _note(mark: str, body: str, width: int) -> str:
    return textwrap.fill(
        f"{mark} {body}",
        width,
        subsequent_indent="  ",
        break_on_hyphens=False,
        break_long_words=False,
    )


# bench.


def bench(rows: Sequence[Mapping[str, Any]], width: int) -> str:
    """Return how fast the simulator was."""
    headers = ["design", "workload", "cores", "footprint", "ops/s", "slowdown", "peak"]
    table = [
        [
            row["design"],
            row["workload"],
            str(row["cores"]),
            row["footprint"],
            f"{row['mem_ops_per_s'] / 1e6:.1f} M",
            f"{row['slowdown_vs_plain']:.1f}x" if row["slowdown_vs_plain"] else BLANK,
            f"{row['peak_rss_mb']:,.0f} MB",
        ]
        for row in rows
    ]
    return columns(headers, table, width, right=(2, 3, 4, 5, 6))
