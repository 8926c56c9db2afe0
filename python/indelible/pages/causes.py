"""The page of `why`: what runs consist of, what they depend on, and the figure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from indelible import pages, text
from indelible.metrics import METRICS
from indelible.pages import LABEL, Figure, simulated
from indelible.pages.simulated import Simulated
from indelible.plots import causes as causes_plot
from indelible.results.causes import Causes
from indelible.text import causes as causes_text
from indelible.text.causes import CHANGE_STUB, TOP
from indelible.text.comparison import Grid, where

#: The name of the figure, and of the table of the changes that move most.
NAME = "changes"


def parts(answer: Causes) -> dict[str, Any]:
    """Return the variables of the page's template."""
    here, title = answer.as_it_is, causes_text.title(answer)
    cores = dict.fromkeys(run.data["cores"] for run in here.runs.values())
    seeds, of = here.seeds_shown, _simulated(answer)
    more = {"fields": _fields(answer), **pages.crash_test(here)}
    behind = _view(answer, NAME, title, causes_text.change_grid(answer, answer.ranked()))
    return {
        "title": _title(answer),
        "asked": pages.asked(here, cores, seeds, more),
        "interrupted": text.interrupted(answer.sweep, "cells") if answer.interrupted else None,
        "main": _view(answer, "values", title, _values(answer)),
        "headline": causes_text.headline(answer),
        "of": None,
        "views": [*_views(answer)],
        "gains": [*causes_text.gains(answer)],
        "figure": pages.drawn(behind, causes_plot.figure, answer, here),
        **pages.parts(of),
        "command": answer.command_with(*simulated.REPORTED),
        "runs": len(answer.sweep.runs),
        "runs_as_they_are": len(here.runs),
        "refused": answer.refused,
    }


def _title(answer: Causes) -> str:
    if len(answer.designs) == 1:
        return f"What {pages.named(answer.sweep)} depends on"
    first, second = answer.designs
    return f"Why {first} and {second} differ on {pages.counted_workloads(answer.sweep)}"


def _fields(answer: Causes) -> str:
    """Return which fields were changed, and how, in words."""
    among = ", ".join(answer.fields or ["every one"])
    how = f"{causes_text.changes_said(answer)}, words replaced by each alternative"
    return f"{among}, one at a time: {how}"


def _simulated(answer: Causes) -> Simulated:
    """Return what was simulated, each field with all values that it was given."""
    changed: dict[str, list[str]] = {}
    for change in answer.changes.values():
        changed.setdefault(change.field, []).append(change.after)
    varied = tuple((field, ", ".join(values)) for field, values in changed.items())
    return Simulated.of(answer.as_it_is, varied)


def _values(answer: Causes) -> Grid:
    """Return the metric of the unchanged designs, in its own unit."""
    here, unit = answer.as_it_is, METRICS[answer.sweep.metric].unit
    rows = []
    for design, name in zip(here.designs, causes_text.marked_names(answer), strict=True):
        values = (here.value((design, workload, answer.cores)) for workload in here.workloads)
        rows.append([name, *(pages.quantity_cell(value, unit) for value in values)])
    return [["as it is", *here.workloads], *rows]


def _views(answer: Causes) -> Iterator[Figure]:
    """Return the tables of a terminal; what moves less than the most is behind the figure."""
    if (stacked := causes_text.stack_grid(answer)) is not None:
        notes = [("*", answer.stacked.note)]
        yield _view(answer, "stacks", causes_text.stack_title(answer), stacked, notes)
    yield _view(answer, "busy", "How busy the machine was", causes_text.busy_grid(answer))
    seen = causes_text.seen(answer)
    shown = seen[:TOP]
    told = causes_text.relative_notes(answer) + causes_text.moving_notes(answer)
    if less := len(seen) - len(shown):
        told.append(("*", f"changes that move less than those above, below the figure: {less}"))
    told += causes_text.widest_notes(answer, shown) + causes_text.own_notes(answer)
    told += pages.verdict_notes(answer.as_it_is)
    told += pages.shown_by(causes_text.broken_by(answer))
    grid = causes_text.change_grid(answer, shown)
    yield _view(answer, NAME, causes_text.changes_title(answer), grid, told)


def _view(
    answer: Causes, name: str, title: str, grid: Grid, notes: Sequence[text.Note] = ()
) -> Figure:
    """Return a table whose first columns identify the row."""
    heads, *rows = grid
    labels = (LABEL,) * (CHANGE_STUB if name == NAME else 1)
    table = pages.table(where(answer.as_it_is, answer.cores), labels, heads, rows)
    return Figure(name, title, None, None, [table], notes)
