"""The results of a paper's claims, as text for a terminal. Returns strings and prints nothing."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

from indelible import text
from indelible.papers import Paper
from indelible.results.reproduction import Reproduction, Reproductions

#: The width of a claim where there are many columns.
CLAIM_WIDTH = 24

#: The least width of a text beside its option; with less room it is put below.
MOVED_WIDTH = 24


def reproduction(answer: Reproduction, width: int | None = None) -> str:
    """Return the table of the published and the measured values."""
    width = width or text.terminal_width()
    table = [[row["what"], row["published"], measured(row)] for row in answer.shown]
    said = [f"{key}={value}" for key, value in answer.settings]
    return _told(
        [answer], said, [text.columns(["claim", "published", "here"], table, width)], width
    )


def reproductions(answer: Reproductions, width: int | None = None) -> str:
    """Return the table of the published values and of those measured at each point."""
    width = width or text.terminal_width()
    heads = [" ".join(point) for point in answer.points]
    # Each claim, with its row at each point.
    claims = [*zip(*(at_point.shown for at_point in answer.points.values()), strict=True)]
    numbers = [rows for rows in claims if rows[0]["unit"]]
    orders = [rows for rows in claims if not rows[0]["unit"]]
    columns = {
        head: [head, *(measured(rows[place]) for rows in numbers)]
        for place, head in enumerate(heads)
    }
    stub = (
        ["claim", *(rows[0]["what"] for rows in numbers)],
        ["published", *(rows[0]["published"] for rows in numbers)],
    )
    sizes = {head: max(map(len, column)) for head, column in columns.items()}
    room = width - CLAIM_WIDTH - 2 - max(map(len, stub[1]))
    tables = []
    for part in text.fitted(heads, sizes, room):
        header, *body = zip(*stub, *(columns[head] for head in part), strict=True)
        tables.append(text.columns(header, body, width, right=range(2, len(header))))
    tables += [_order_lines(heads, rows, width) for rows in orders]
    kept = [f"{key}={value}" for key, value in answer.kept]
    return _told(
        [*answer.points.values()], [*kept, f"columns: {', '.join(answer.vary)}"], tables, width
    )


def _told(
    answers: Sequence[Reproduction], said: Sequence[str], tables: Sequence[str], width: int
) -> str:
    """Return the tables with their title before them and the notes behind."""
    first = answers[0]
    machines = {answer.used_machine for answer in answers}
    words = [f"machine {first.used_machine}"] if len(machines) == 1 else []
    counts = {
        run.data["txs"] // run.data["cores"]
        for answer in answers
        for cell, run in answer.runs.items()
        if cell.larger == 1
    }
    if len(counts) == 1:
        words.append(f"{text.plural(counts.pop(), 'transaction')} a core")
    seeds = {answer.seed for answer in answers}
    words += [f"seed {first.seed}"] if len(seeds) == 1 else []
    title = textwrap.fill(" · ".join([*words, *said]), width, break_on_hyphens=False)
    blocks = [f"{first.paper.title}\n{title}", *tables]
    if first.interrupted:
        # A run that several points share was made once.
        total = {run for answer in answers for run in answer.plan().values()}
        done = {run.experiment for answer in answers for run in answer.runs.values()}
        blocks.insert(0, f"interrupted: {len(done)} of {len(total)} runs had ended")
    notes = [_moved_by(first.paper, width), *text.kept_notes(first.taken, width)]
    return "\n\n".join([*blocks, *notes])


def _moved_by(paper: Paper, width: int) -> str:
    """Return the options that change a paper's numbers, and where the causes are explained."""
    size = max(len(option) for option, _ in paper.moved_by)
    # Without room beside the options, the texts are put below them.
    beside = width >= size + 4 + MOVED_WIDTH
    lines = [
        textwrap.fill("What moves them, each alone; why, and what else: docs/fidelity.md", width)
    ]
    for option, what in paper.moved_by:
        lines += [] if beside else [f"  {option}"]
        head, indent = (f"  {option.ljust(size)}  ", size + 4) if beside else ("    ", 4)
        line = textwrap.fill(head + what, width, subsequent_indent=" " * indent)
        lines.append(line)
    return "\n".join(lines)


def _order_lines(heads: Sequence[str], rows: Sequence[Mapping[str, Any]], width: int) -> str:
    """Return a claim about an order at each point."""
    size = max(map(len, heads))
    claim = f"{rows[0]['what']}; published: {rows[0]['published']}"
    lines = [textwrap.fill(claim, width, break_on_hyphens=False)]
    for head, row in zip(heads, rows, strict=True):
        indent = " " * (size + 4)
        line = f"  {head.rjust(size)}  {measured(row)}"
        lines.append(textwrap.fill(line, width, subsequent_indent=indent, break_on_hyphens=False))
    return "\n".join(lines)


def measured(row: Mapping[str, Any]) -> str:
    """Return the measured value of a claim's row as text."""
    found, unit = row["measured"], row["unit"]
    if found is None:
        return text.BLANK
    match unit:
        case "%":
            return f"{found:+.1f} %"
        case "share":
            return f"{found:.1f} %"
        case "x":
            return f"{found:.3f}x" if 0.1 <= found < 1 else f"{text.ratio(found)}x"
    return order(row)


def order(row: Mapping[str, Any]) -> str:
    """Return the measured order of a claim about one, as text."""
    return " < ".join(f"{mean['design']} {text.ratio(mean['value'])}" for mean in row["measured"])
