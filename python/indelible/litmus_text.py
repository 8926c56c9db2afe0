"""What litmus tests saw, as text for a terminal. Returns strings and prints nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from indelible import text
from indelible.results import Litmus, is_wrong

Row = Mapping[str, Any]

#: In no run did every load have its value, so nothing is known of the image.
UNASKED = "no run"

CELLS = {
    UNASKED: "no run counted: in none did every load have the value that the test gives",
    "seen": "the model of the hardware allows the image, and it was seen",
    "allowed": "the model allows it, and it was not seen",
    "no": "the model forbids it, and it was not seen",
    "WRONG": "the hardware left what its model forbids",
}


def litmus(answer: Litmus, width: int | None = None) -> str:
    """Return the table of tests and ordering hardware, and what is wrong."""
    width = width or text.terminal_width()
    rows = answer.data["rows"]
    orders = list(dict.fromkeys(row["order"] for row in rows))
    tests = _by_test(rows)
    names = _names(answer, tests)
    table = [
        [name, test[0]["image"], *map(_cell, test), *[text.BLANK] * (len(orders) - len(test))]
        for name, test in zip(names, tests, strict=True)
    ]
    lines = [text.columns(["test", "image", *orders], table, width), ""]
    shown = set(map(_cell, rows))
    lines += [text.paragraph(cell, body, width) for cell, body in CELLS.items() if cell in shown]
    for name, test in zip(names, tests, strict=True):
        for row in filter(is_wrong, test):
            why = row["violation"] or f"the image {row['image']} was seen"
            lines += ["", text.paragraph("WRONG", f"{name} on {row['order']}: {why}", width)]
    runs, images = (sum(row[name] for row in rows) for name in ("runs", "images"))
    lines += ["", text.paragraph("checked", f"{images:,} images of {runs:,} runs", width)]
    for row in answer.data.get("random", ()):
        lines += _random(row, width)
    if "mutants" in answer.data:
        lines += ["", *_mutants(answer.data["mutants"], width), ""]
    if answer.data.get("cancelled"):
        lines.append("interrupted: only these tests were run")
    lines.append(text.command("repeat", answer.tests.command(), width))
    return "\n".join(lines)


def _random(row: Row, width: int) -> list[str]:
    """Return what random programs left on ordering hardware, and the first that left it wrong."""
    if row["violation"] is None:
        count = f"{row['programs']:,} on {row['order']}: ok, {row['images']:,} images"
        return [text.paragraph("random", count, width)]
    wrong = f"program {row['programs']:,} on {row['order']}: {row['violation']}"
    lines = ["", text.paragraph("WRONG", wrong, width)]
    program = row["program"]
    for word, pairs in (("with", program["settings"]), ("on tiny", program["machine"])):
        lines += [text.paragraph(word, " ".join(pairs), width)] if pairs else []
    for core, steps in enumerate(program["cores"]):
        lines.append(text.paragraph(f"core {core}", ", ".join(steps), width))
    return lines


def _mutants(mutants: Sequence[Row], width: int) -> list[str]:
    """Return what showed that a rule is switched off."""
    if not mutants:
        return ["mutants     none: the hardware has no named rules"]

    def by(row: Row) -> str:
        return row["test"] or (f"random program {row['random']}" if row["caught"] else "")

    table = [
        [row["order"], row["rule"], "caught" if row["caught"] else "NOT CAUGHT", by(row)]
        for row in mutants
    ]
    caught = sum(row["caught"] for row in mutants)
    heads = ["order", "rule switched off", "", "by"]
    return [text.columns(heads, table, width), f"{caught} of {len(mutants)} caught"]


def _by_test(rows: Sequence[Row]) -> list[list[Row]]:
    """Return the rows of each test. All orders are asked of one before the next is."""
    tests: list[list[Row]] = []
    for row in rows:
        if row["order"] == rows[0]["order"]:
            tests.append([])
        tests[-1].append(row)
    return tests


def _names(answer: Litmus, tests: Sequence[Sequence[Row]]) -> list[str]:
    """Return a name for each test: its file's path, if files in two places have one name."""
    names = [test[0]["test"] for test in tests]
    paths = [file.path for file in answer.tests.files] or names
    return [
        name if names.count(name) == 1 else path for name, path in zip(names, paths, strict=False)
    ]


def _cell(row: Row) -> str:
    if is_wrong(row):
        return "WRONG"
    if not row["counted"]:
        return UNASKED
    return ("seen" if row["seen"] else "allowed") if row["allowed"] else "no"
