"""The tables of comparisons and sweeps as files: CSV, LaTeX or Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from os import PathLike
from typing import Any

from indelible import files, tables, text, typeset
from indelible.errors import InputError
from indelible.results.comparison import Comparison
from indelible.results.seeds import OfSeeds
from indelible.results.sweep import Sweep
from indelible.rows import rows_as_csv
from indelible.text import comparison as comparison_text
from indelible.text import sweep as sweep_text
from indelible.text import verdicts as verdicts_text
from indelible.text.comparison import STUB, where
from indelible.text.verdicts import CRASH_TEST
from indelible.typeset import Sheet
from indelible.views import RATIOS, based, view_named

#: A width at which no note is wrapped: in files each note is one line.
NO_WIDTH = 1_000_000

#: The columns of a comparison that have words and no numbers.
LABELS = ("workload", "design")


def save(path: str | PathLike[str], content: str) -> None:
    """Write a file; an error names it."""
    with files.naming(path):
        files.write(path, content)


def compared(answer: Comparison, path: str | PathLike[str], view: str = RATIOS) -> str:
    """Return a view's table of a comparison in the format that the path's ending says."""
    typeset.check(path)
    shown, answer = view_named(view), based(answer, view)
    if not answer.runs:
        raise _nothing()
    told = [_said(note) for note in shown.notes(answer)]
    if shown.printed is None:
        # The view's table has no column or row for verdicts, so they become notes.
        told += _verdicts(answer)
    told += comparison_text.remarks(answer, NO_WIDTH)
    command = answer.command_with(view, "--table", str(path))
    return _written(path, shown.rows(answer), _compared(answer, view), told, _made(answer, command))


def swept(answer: Sweep, path: str | PathLike[str]) -> str:
    """Return the table of a sweep, or its grids if two fields vary, in the format of the path."""
    typeset.check(path)
    if not answer.runs:
        raise _nothing()
    passings = [(">", said) for said in sweep_text.passings(answer)]
    told = [_said(note) for note in [*passings, *sweep_text.notes(answer)]]
    verdicts = verdicts_text.verdicts(answer, answer.verdict_on_all)
    told.append(_said((CRASH_TEST, verdicts)))
    told += verdicts_text.told(answer, NO_WIDTH)
    command = answer.command_with("--table", str(path))
    return _written(path, tables.swept(answer), _swept(answer), told, _made(answer, command))


def _written(
    path: str | PathLike[str],
    rows: Iterable[Mapping[str, Any]],
    sheets: Iterable[Sheet],
    notes: Sequence[str],
    made: Sequence[str],
) -> str:
    write = typeset.WRITERS.get(typeset.suffix_of(path))
    return rows_as_csv(rows) if write is None else write(sheets, notes, made)


def _compared(answer: Comparison, view: str) -> Iterator[Sheet]:
    """Return a sheet for each number of cores."""
    shown = view_named(view)
    for cores in answer.cores:
        title = [shown.title(answer), where(answer, cores)]
        rows = (shown.printed or shown.grid)(answer, cores)
        words = sum(head in LABELS for head in rows[0])
        if words == STUB:
            starts = [i for i in range(2, len(rows)) if rows[i][0] != rows[i - 1][0]]
            rows = comparison_text.named_once(rows)
        else:
            starts = [1 + len(answer.workloads)] if view == RATIOS else []
        yield Sheet(title, rows, words, starts)


def _swept(answer: Sweep) -> Iterator[Sheet]:
    """Return a sheet for each table of a terminal; values of fields are set as numbers."""
    title = [*sweep_text.title_lines(answer), sweep_text.where(answer, answer.core_model())]
    for name, rows in sweep_text.grids(answer).items():
        said = " · ".join(filter(None, [name, sweep_text.axes(answer)]))
        yield Sheet([*title, *([said] if said else [])], rows, 0)


def _verdicts(answer: Comparison) -> Iterator[str]:
    for cores in answer.cores:
        label = comparison_text.with_cores(CRASH_TEST, answer, cores)
        yield f"{label}: {comparison_text.verdicts(answer, cores)}"


def _said(note: text.Note) -> str:
    """Return a note with its mark, or the name of its column, in front."""
    mark, body = note
    return f"{mark}{':' if mark[0].isalnum() else ''} {body}"


def _made(answer: OfSeeds, command: str) -> list[str]:
    """Return the origin of a table: the command line, and the version of the simulator."""
    versions = dict.fromkeys(run.data["version"] for run in answer.runs.values())
    return [command, f"Indelible {', '.join(versions)}"]


def _nothing() -> InputError:
    return InputError("there is no table: no run was completed")
