"""Write sets of transactions, as text for a terminal. Returns strings and prints nothing."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from typing import Any

from indelible.text import columns, paragraph, plural, word


def characterization(answer: Mapping[str, Any], width: int) -> str:
    """Return the table of write sets, with published numbers where there are some."""
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
    title = f"machine {answer['machine']}"
    title += "" if answer["cores"] is None else f" · {plural(answer['cores'], 'core')}"
    title += f" · seed {answer['seed']}"
    title += "" if answer["txs"] is None else f" · {plural(answer['txs'], 'transaction')} a core"
    notes = (
        "Averages and maxima of a transaction. PM %: share of simulated stores that go to"
        " persistent memory. Columns after | are published values; the last max is that of pages."
    )
    blocks = [
        f"Write sets: {title}",
        columns(headers, rows, width, right=range(1, len(headers))),
        textwrap.fill(notes, width),
    ]
    if answer["notes"]:
        blocks.append("\n".join(paragraph("note", note, width) for note in answer["notes"]))
    for row in answer.get("refused", ()):
        blocks.append(paragraph("not run", f"{row['workload']}: {row['reason']}", width))
    if answer["cancelled"]:
        blocks.append("interrupted: what had ended is shown")
    return "\n\n".join(blocks)
