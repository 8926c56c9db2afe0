"""`indelible new`."""

from __future__ import annotations

import argparse

from indelible.cli import options
from indelible.experiment import InputError
from indelible.starting import new

HELP = "write a design in Python, to begin with"
DESCRIPTION = (
    "Write a design of your own in Python, to begin with: a whole one of 200 lines,\n"
    "which is right. Its file is a design everywhere: `--design ./mine.py`. Or write\n"
    "ordering hardware (`order`), on which software logs stand: `undo@./mine.py`.\n"
    "docs/design.md makes another one of it, and says what hooks there are."
)
EPILOG = """\
examples:
  indelible new design mine
  indelible crash --design ./mine.py --workload scribble --mutants
  indelible compare --designs undo@x86,silo,./mine.py --workloads hash,btree
  indelible new order mine
  indelible litmus --order ./mine.py --random 100 --mutants
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of `new`."""
    parser.add_argument("kind", nargs="?", metavar="KIND", help="`design` or `order`")
    parser.add_argument("name", nargs="?", metavar="NAME", help="its file is NAME.py")
    parser.add_argument(
        "--json", action="store_true", help="print one JSON object and nothing else"
    )


def call(args: argparse.Namespace) -> int:
    """Answer `new`."""
    if args.name is None:
        raise InputError("`indelible new` takes a kind and a name: `indelible new design mine`")
    answer = new(args.kind, args.name)
    if args.json:
        options.show_json(answer.json())
    else:
        options.show(str(answer))
    return 0
