"""Measures tables of docs/fidelity.md and its pages; prints the numbers of their prose.

Exit codes: 0 fine, 1 a checked table differs, 2 bad input, 130 interrupted.
"""

from __future__ import annotations

import argparse
import difflib
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from fidelity import document
from fidelity.catalog import ALL
from fidelity.tables import SEED, Facts, Table
from indelible import pool, text
from indelible.errors import InputError
from indelible.evaluation import TXS, Cell, Row
from indelible.experiment import Experiment
from indelible.names import unknown

#: The first page; the other pages are in the folder of the same name.
DOCUMENT = Path(__file__).parents[2] / "docs" / "fidelity.md"

DIFFERS = 1
BAD_INPUT = 2
INTERRUPTED = 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command with these words, or with those of the process; return the exit code."""
    try:
        return _answer(_arguments(argv))
    except InputError as error:
        print(f"fidelity: error: {error}", file=sys.stderr)
        return BAD_INPUT
    except KeyboardInterrupt:
        print("fidelity: interrupted: nothing was written", file=sys.stderr)
        return INTERRUPTED


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser("fidelity", description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="tables or facts; all if none")
    parser.add_argument("--list", action="store_true", help="name what there is, and run nothing")
    parser.add_argument(
        "--check", action="store_true", help="print what differs, write nothing; 1 if anything does"
    )
    return parser.parse_args(argv)


def _answer(args: argparse.Namespace) -> int:
    asked = named(args.names)
    if args.list:
        rows = [[one.name, one.what, str(len({*one.cells}))] for one in asked]
        print(text.columns(["name", "what", "runs"], rows, text.terminal_width(), right=[2]))
        return 0
    tables = [one for one in asked if isinstance(one, Table)]
    facts = [one for one in asked if isinstance(one, Facts)]
    if args.check and not tables:
        raise InputError("facts are printed and stand nowhere: drop --check")
    asked = [*tables] if args.check else asked
    # A missing marker is seen before the runs and not after them.
    document.spread(_pages(), {table.name: "" for table in tables})
    start = time.monotonic()
    made = measured(cell for one in asked for cell in one.cells)

    def row(cell: Cell) -> Row:
        return made[cell]

    texts = {one.name: one.text(row) for one in asked}
    took = time.monotonic() - start
    print(f"fidelity: {len(made):,} runs in {took:,.0f} s", file=sys.stderr)
    # The pages are read again, since they may have been edited during the runs.
    before = _pages()
    after = document.spread(before, {table.name: texts[table.name] for table in tables})
    if args.check:
        return _differs(before, after)
    old = {name: part for page in before.values() for name, part in document.parts(page).items()}
    changed = [table.name for table in tables if old[table.name] != texts[table.name]]
    for path in before:
        if after[path] != before[path]:
            path.write_text(after[path], encoding="utf-8")
    print(f"changed: {', '.join(changed) or 'no table'}")
    for one in facts:
        print(f"\n{one.name}: {one.what}\n{texts[one.name]}")
    return 0


def _pages() -> dict[Path, str]:
    paths = [DOCUMENT, *sorted(DOCUMENT.with_suffix("").glob("*.md"))]
    return {path: path.read_text(encoding="utf-8") for path in paths}


def named(names: Sequence[str]) -> list[Table | Facts]:
    """Return the parts with these names, or all parts."""
    every = {one.name: one for one in ALL}
    for name in names:
        if name not in every:
            raise unknown("table", name, every)
    return [every[name] for name in dict.fromkeys(names or every)]


def measured(cells: Iterable[Cell]) -> dict[Cell, Row]:
    """Make the runs, each once, and return their rows."""
    asked = {cell: cell.experiment("", None, SEED) for cell in cells}
    jobs = ordered(dict.fromkeys(asked.values()))
    rows = dict(zip(jobs, pool.execute(jobs), strict=True)) if jobs else {}
    return {cell: rows[job] for cell, job in asked.items()}


def ordered(experiments: Iterable[Experiment]) -> list[Experiment]:
    """Return runs in their order: the shortest of each kind, then all others, the longest first.

    A setting that a table has wrong is refused before the long part.
    """
    longest = sorted(experiments, key=lambda asked: -(asked.cores or 1) * (asked.txs or TXS))
    kinds = {(asked.machine, asked.design, asked.settings): asked for asked in longest}
    first = {*kinds.values()}
    return sorted(longest, key=lambda asked: asked not in first)


def _differs(before: Mapping[Path, str], after: Mapping[Path, str]) -> int:
    found = "\n".join(
        line
        for path in before
        for line in difflib.unified_diff(
            before[path].splitlines(), after[path].splitlines(), str(path), "measured", lineterm=""
        )
    )
    if found:
        print(found)
    return DIFFERS if found else 0


if __name__ == "__main__":
    sys.exit(main())
