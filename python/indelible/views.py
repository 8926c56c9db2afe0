"""The views of a comparison: its ratios, or the numbers that explain them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from indelible import latencies, stacks, summary, tables, usage
from indelible.arguments import one_of
from indelible.plots import comparison as comparison_plot
from indelible.plots import latencies as latencies_plot
from indelible.plots import stacks as stacks_plot
from indelible.plots import summary as summary_plot
from indelible.plots import usage as usage_plot
from indelible.results.comparison import RATIOS, Comparison
from indelible.stacks import Stacked
from indelible.text import Note, note_text, terminal_width
from indelible.text import comparison as comparison_text
from indelible.text import latencies as latencies_text
from indelible.text import stacks as stacks_text
from indelible.text import summary as summary_text
from indelible.text import usage as usage_text
from indelible.text.comparison import Grid, by_cell, titled, where, with_notes

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class View:
    """One way to look at a comparison: as text, as a figure and as rows."""

    #: The contents, for a sentence.
    shows: str
    figure: Callable[[Comparison], Figure]
    rows: Callable[[Comparison], Iterable[dict[str, Any]]]
    title: Callable[[Comparison], str]
    #: The table of one number of cores as cells, without verdicts, and the notes on all tables.
    grid: Callable[[Comparison, int | None], Grid]
    notes: Callable[[Comparison], Sequence[Note]]
    #: The key of its rows in the JSON; the rows of ratios are always there.
    key: str | None = None
    #: The text, if it is not the table of `grid` with the verdicts below it.
    own_text: Callable[[Comparison], str] | None = None
    #: The table as it is printed, if it has room for verdicts.
    printed: Callable[[Comparison, int | None], Grid] | None = None
    #: Refuses a flag that asks for the figure if a library that it needs is missing.
    require: Callable[[str], None] = lambda _flag: None

    def text(self, answer: Comparison) -> str:
        """Return the text that the command prints: a table for each number of cores."""
        if self.own_text is not None:
            return self.own_text(answer)
        width = terminal_width()

        def block(cores: int | None, width: int) -> str:
            head = titled(self.title(answer), where(answer, cores), width)
            return by_cell(answer, cores, head, self.grid(answer, cores), width)

        told = [note_text(note, width) for note in self.notes(answer)]
        return with_notes(answer, block, told, width)


#: The views that are relative to a design's writes, so not to one without durability, which writes
#: next to nothing.
OF_WRITES = ("writes", "summary")


def _stacked(shows: str, of: Stacked, figure: Callable[[Comparison], Figure]) -> View:
    return View(
        shows,
        figure=figure,
        rows=partial(stacks.rows, of=of),
        title=partial(stacks_text.title, of=of),
        grid=partial(stacks_text.grid, of=of),
        notes=partial(stacks_text.notes, of=of),
        key="stacks",
    )


VIEWS = {
    RATIOS: View(
        "a metric",
        figure=comparison_plot.figure,
        rows=tables.compared,
        title=comparison_text.title,
        grid=comparison_text.grid,
        notes=comparison_text.notes,
        own_text=comparison_text.comparison,
        printed=comparison_text.upright,
    ),
    "stalls": _stacked("core time", stacks.STALLS, stacks_plot.stalls_figure),
    "writes": _stacked("what is written", stacks.WRITES, stacks_plot.writes_figure),
    "latencies": View(
        "commit latencies",
        figure=latencies_plot.figure,
        rows=latencies.rows,
        title=lambda _answer: latencies_text.TITLE,
        grid=latencies_text.grid,
        notes=latencies_text.notes,
        key="latencies",
    ),
    "usage": View(
        "how busy the machine was",
        figure=usage_plot.figure,
        rows=usage.rows,
        title=lambda _answer: usage_text.TITLE,
        grid=usage_text.grid,
        notes=usage_text.notes,
        key="usage",
    ),
    "summary": View(
        "a row for each design",
        figure=summary_plot.figure,
        rows=summary.rows,
        title=summary_text.title,
        grid=summary_text.grid,
        notes=summary_text.notes,
        key="summary",
        own_text=summary_text.table,
        printed=summary_text.whole,
        require=summary_plot.require,
    ),
}


def based(answer: Comparison, name: str) -> Comparison:
    """Return a comparison relative to the design that a view of it is relative to.

    That is the base, but of writes the first durable design, unless the caller gave the base.
    """
    if name not in OF_WRITES or answer.is_base_given:
        return answer
    durable = [design for design in answer.designs if answer.durability.get(design) != "none"]
    if answer.normalize in durable or not durable:
        return answer
    return replace(answer, normalize=durable[0])


def view_named(name: str) -> View:
    """Return a view, or refuse and list the known ones."""
    return one_of("view", name, VIEWS)
