"""The views of a comparison: its ratios, or the numbers that explain them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from indelible import latencies, stacks, summary, tables, usage
from indelible.names import one_of
from indelible.plots import comparison as comparison_plot
from indelible.plots import latencies as latencies_plot
from indelible.plots import stacks as stacks_plot
from indelible.plots import summary as summary_plot
from indelible.plots import usage as usage_plot
from indelible.results import Comparison
from indelible.text import Note
from indelible.text import comparison as comparison_text
from indelible.text.comparison import Grid

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class View:
    """One way to look at a comparison: as text, as a figure and as rows."""

    #: The contents, for a sentence.
    shows: str
    text: Callable[[Comparison], str]
    figure: Callable[[Comparison], Figure]
    rows: Callable[[Comparison], Iterable[dict[str, Any]]]
    title: Callable[[Comparison], str]
    #: The table of one number of cores as cells, without verdicts, and the notes on all tables.
    grid: Callable[[Comparison, int | None], Grid]
    notes: Callable[[Comparison], Sequence[Note]]
    #: The key of its rows in the JSON; the rows of ratios are always there.
    key: str | None = None
    #: The table as it is printed, if it has room for verdicts.
    printed: Callable[[Comparison, int | None], Grid] | None = None
    #: Refuses a flag that asks for the figure if a library that it needs is missing.
    require: Callable[[str], None] = lambda _flag: None


RATIOS = "ratios"

#: The views that are relative to a design's writes, so not to one without durability, which writes
#: next to nothing.
OF_WRITES = ("writes", "summary")

VIEWS = {
    RATIOS: View(
        "a metric",
        comparison_text.comparison,
        comparison_plot.figure,
        tables.compared,
        comparison_text.title,
        comparison_text.grid,
        comparison_text.notes,
        printed=comparison_text.upright,
    ),
    "stalls": View(
        "core time",
        partial(stacks.table, of=stacks.STALLS),
        stacks_plot.stalls_figure,
        partial(stacks.rows, of=stacks.STALLS),
        partial(stacks.title, of=stacks.STALLS),
        partial(stacks.grid, of=stacks.STALLS),
        partial(stacks.notes, of=stacks.STALLS),
        "stacks",
    ),
    "writes": View(
        "what is written",
        partial(stacks.table, of=stacks.WRITES),
        stacks_plot.writes_figure,
        partial(stacks.rows, of=stacks.WRITES),
        partial(stacks.title, of=stacks.WRITES),
        partial(stacks.grid, of=stacks.WRITES),
        partial(stacks.notes, of=stacks.WRITES),
        "stacks",
    ),
    "latencies": View(
        "commit latencies",
        latencies.table,
        latencies_plot.figure,
        latencies.rows,
        lambda _answer: latencies.TITLE,
        latencies.grid,
        latencies.notes,
        "latencies",
    ),
    "usage": View(
        "how busy the machine was",
        usage.table,
        usage_plot.figure,
        usage.rows,
        lambda _answer: usage.TITLE,
        usage.grid,
        usage.notes,
        "usage",
    ),
    "summary": View(
        "a row for each design",
        summary.table,
        summary_plot.figure,
        summary.rows,
        summary.title,
        summary.grid,
        summary.notes,
        "summary",
        summary.whole,
        summary_plot.require,
    ),
}


def view_named(name: str) -> View:
    """Return a view, or refuse and list the known ones."""
    return one_of("view", name, VIEWS)
