"""What litmus tests saw, as text for a terminal. Returns strings and prints nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from indelible import text
from indelible.results import Litmus, is_wrong

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
    cells = {(row["test"], row["order"]): _cell(row) for row in rows}
    tests = {row["test"]: row["image"] for row in rows}
    table = [
        [test, image, *(cells.get((test, order), text.BLANK) for order in orders)]
        for test, image in tests.items()
    ]
    lines = [text.columns(["test", "image", *orders], table, width), ""]
    shown = set(cells.values())
    lines += [text.paragraph(cell, body, width) for cell, body in CELLS.items() if cell in shown]
    for row in filter(is_wrong, rows):
        why = row["violation"] or f"the image {row['image']} was seen"
        lines += ["", text.paragraph("WRONG", f"{row['test']} on {row['order']}: {why}", width)]
    runs, images = (sum(row[name] for row in rows) for name in ("runs", "images"))
    lines += ["", text.paragraph("checked", f"{images:,} images of {runs:,} runs", width)]
    if answer.data.get("cancelled"):
        lines.append("interrupted: only these tests were run")
    lines.append(text.command("repeat", answer.tests.command(), width))
    return "\n".join(lines)


def _cell(row: Mapping[str, Any]) -> str:
    if is_wrong(row):
        return "WRONG"
    if not row["counted"]:
        return UNASKED
    return ("seen" if row["seen"] else "allowed") if row["allowed"] else "no"
