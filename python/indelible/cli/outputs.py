"""What a table of many runs may become beside text: JSON, rows in a file, a figure.

No file is written of what was interrupted: it would stand where a whole one does, or replace it.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from indelible import plot
from indelible.cli import complain, letters, options
from indelible.experiment import InputError

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Table(Protocol):
    """An answer of many runs."""

    interrupted: bool

    def json(self) -> dict[str, Any]:
        """Return the object that `--json` prints."""

    def csv(self) -> str:
        """Return the rows as comma-separated values."""


Answer = TypeVar("Answer", bound=Table)

#: The name of a file that is none.
STDOUT = "-"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add `--plot` and `--csv`."""
    parser.add_argument("--plot", metavar="FILE", help="also draw it: .png, .svg or .pdf")
    parser.add_argument(
        "--csv", metavar="FILE", help="also write the rows; to - instead of anything else"
    )


def check(args: argparse.Namespace) -> None:
    """Refuse files that cannot be written, before anything is run."""
    if args.plot is not None:
        plot.check(args.plot)
        options.require_writable("--plot", args.plot)
    if args.csv == STDOUT:
        if args.json:
            raise InputError("--json and --csv - both go to standard output; drop one")
    elif args.csv is not None:
        options.require_writable("--csv", args.csv)
        if args.plot is not None and Path(args.csv).resolve() == Path(args.plot).resolve():
            raise InputError(f"--plot and --csv both name {args.csv}: one would replace the other")


def show(
    args: argparse.Namespace,
    answer: Answer,
    text: Callable[[Answer], str],
    draw: Callable[[Answer], Figure],
) -> None:
    """Print an answer, and write the files that were asked for."""
    alone = args.csv == STDOUT
    if args.json:
        options.show_json(answer.json())
    elif not alone:
        options.show(text(answer))
    if answer.interrupted:
        tell_unwritten(args.csv, args.plot)
        return
    if alone:
        print(letters.fitted(answer.csv(), sys.stdout), end="")
    elif args.csv is not None:
        Path(args.csv).write_text(answer.csv(), encoding="utf-8")
    if args.plot is not None:
        plot.save(draw, answer, args.plot)
        if not args.json and not alone:
            options.show(f"\nfigure: {args.plot}")


def tell_unwritten(*paths: str | None) -> None:
    """Say which of the files that were asked for are as they were."""
    asked = ["standard output" if path == STDOUT else path for path in paths if path is not None]
    if asked:
        complain(f"interrupted, so nothing was written to {' and '.join(asked)}")
