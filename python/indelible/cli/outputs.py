"""The outputs of a table of many runs beside text: JSON, rows in a file, a figure, a page.

No file is written of an interrupted answer: it would look like a whole one, or replace one.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast

from indelible import files, plots, typeset
from indelible.cli import complain, letters, options
from indelible.errors import InputError
from indelible.pages import report

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Table(Protocol):
    """An answer of many runs."""

    @property
    def interrupted(self) -> bool:
        """Whether results are missing."""

    def json(self) -> dict[str, Any]:
        """Return the object that `--json` prints."""

    def csv(self) -> str:
        """Return the rows as comma-separated values."""


Answer = TypeVar("Answer", bound=Table)

#: The word that names standard output in place of a file.
STDOUT = "-"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add `--plot` and `--csv`."""
    parser.add_argument("--plot", metavar="FILE", help="also draw a figure: .png, .svg or .pdf")
    parser.add_argument(
        "--csv",
        metavar="FILE",
        help="also write the rows as CSV; `-` prints them instead of the table",
    )
    # Some commands have more outputs: see `add_table` and `add_report`.
    parser.set_defaults(table=None, report=None)


def add_table(parser: argparse.ArgumentParser) -> None:
    """Add `--table`, for answers whose table is not their rows."""
    parser.add_argument(
        "--table",
        metavar="FILE",
        help="also write what the table shows: .tex (for \\input; it needs booktabs), .md, or .csv,"
        " with unrounded means over seeds and workloads and the half widths of their 95 %%"
        " intervals",
    )


def add_report(parser: argparse.ArgumentParser, what: str, shown: str) -> None:
    """Add `--report`, which writes `what` as a page that shows it as `shown`."""
    parser.add_argument(
        "--report",
        metavar="FILE",
        help=f"also write {what} as one HTML page: {shown}, what was simulated, and the rows as"
        " JSON",
    )


def check(args: argparse.Namespace) -> None:
    """Refuse files that cannot be written, before anything is run."""
    if args.plot is not None:
        plots.check(args.plot, "--plot")
        options.require_writable("--plot", args.plot)
    if args.csv == STDOUT:
        if args.json:
            raise InputError("--json and --csv - both go to standard output; drop one")
    elif args.csv is not None:
        options.require_writable("--csv", args.csv)
    if args.table is not None:
        typeset.check(args.table, "--table")
        options.require_writable("--table", args.table)
    if args.report is not None:
        report.check(args.report, args.command, "--report")
        options.require_writable("--report", args.report)
    names = ("plot", "csv", "table", "report")
    files = {f"--{name}": getattr(args, name) for name in names}
    for (one, path), (other, same) in combinations(files.items(), 2):
        if None not in (path, same) and Path(path).resolve() == Path(same).resolve():
            raise InputError(f"{one} and {other} both name {same}: one would replace the other")
    options.require_apart(args, files)


@dataclass(frozen=True)
class _Whole:
    """An answer together with what a view of it adds."""

    answer: Table
    more: Mapping[str, Any]

    def json(self) -> dict[str, Any]:
        """Return the object that `--json` prints."""
        return {**self.answer.json(), **self.more}


def show(
    args: argparse.Namespace,
    answer: Answer,
    text: Callable[[Answer], str],
    draw: Callable[[Answer], Figure],
    more: Mapping[str, Any] | None = None,
    table: Callable[[Answer, str], str] | None = None,
) -> None:
    """Write the files that were asked for, and print an answer, in JSON together with `more`.

    The files come first, since whoever reads standard output may stop reading; and the answer is
    printed even if a file cannot be written.
    """
    alone = args.csv == STDOUT
    whole = _Whole(answer, more or {})
    if more:
        options.tell(whole)
    written: list[str] = []
    try:
        if not answer.interrupted:
            _save(args, answer, draw, table, written)
    finally:
        if args.json:
            options.show_json(whole.json())
        elif not alone:
            options.show("\n\n".join([text(answer), *written]))
        elif not answer.interrupted:
            print(letters.fitted(answer.csv(), sys.stdout), end="")
    if answer.interrupted:
        tell_unwritten(args.csv, args.table, args.plot, args.report)


def _save(
    args: argparse.Namespace,
    answer: Answer,
    draw: Callable[[Answer], Figure],
    table: Callable[[Answer, str], str] | None,
    written: list[str],
) -> None:
    """Write the files that were asked for, and note what is to be said of them."""
    if args.csv is not None and args.csv != STDOUT:
        _write("--csv", args.csv, answer.csv())
    if args.table is not None and table is not None:
        _write("--table", args.table, table(answer, args.table))
    if args.plot is not None:
        plots.save(draw, answer, args.plot)
        written.append(f"figure: {args.plot}")
    if args.report is not None:
        # Only the commands whose answers have a page have the option.
        report.save(cast(report.Reported, answer), args.report)
        written.append(f"report: {args.report}")


def _write(flag: str, path: str, text: str) -> None:
    with files.naming(f"{flag} {path}"):
        files.write(path, text)


def tell_unwritten(*paths: str | None) -> None:
    """Say which of the requested files were not written."""
    asked = ["standard output" if path == STDOUT else path for path in paths if path is not None]
    if asked:
        complain(f"interrupted, so nothing was written to {' and '.join(asked)}")
