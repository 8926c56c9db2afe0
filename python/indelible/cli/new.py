"""`indelible new`."""

from __future__ import annotations

import argparse

import indelible
from indelible.cli import options
from indelible.errors import InputError

HELP = "write a working design to start from, in Python or in Rust"
DESCRIPTION = (
    "Write a design in Python to start from: complete, 200 lines long and correct.\n"
    "Its file can be named wherever a design can: `--design ./mine.py`. Or write\n"
    "ordering hardware (`order`), on which software logs run: `undo@./mine.py`.\n"
    "docs/design.md turns it into another design, and says what hooks there are.\n"
    "\n"
    "With `--rust` it is the same design in Rust, among those of the checkout that\n"
    "you are in: the same numbers, three to five times as fast, after a build.\n"
    "CONTRIBUTING.md goes on from there."
)
EPILOG = """\
examples:
  indelible new design mine
  indelible crash --design ./mine.py --workload scribble --mutants
  indelible compare --designs undo@x86,silo,./mine.py --workloads hash,btree
  indelible new design mine --rust
  indelible new order mine
  indelible litmus --order ./mine.py --random 100 --mutants
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of `new`."""
    parser.add_argument("kind", nargs="?", metavar="KIND", help="`design` or `order`")
    parser.add_argument(
        "name", nargs="?", metavar="NAME", help="what it is called; the file is NAME.py"
    )
    parser.add_argument(
        "--rust",
        action="store_true",
        help="write the design in Rust, and into the list of designs of this checkout",
    )
    options.add_json(parser)


def call(args: argparse.Namespace) -> int:
    """Answer `new`."""
    if args.name is None:
        raise InputError("`indelible new` takes a kind and a name: `indelible new design mine`")
    answer = indelible.new(args.kind, args.name, rust=args.rust)
    options.show_answer(args, answer)
    return 0
