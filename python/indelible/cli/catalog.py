"""`indelible list`."""

from __future__ import annotations

import argparse

import indelible
from indelible.cli import options
from indelible.names import unknown
from indelible.results.catalog import KINDS

HELP = "list the designs, ordering hardware, workloads, profiles and machines"
DESCRIPTION = (
    "List the designs, the orders (hardware that orders stores, for software logs),\n"
    "the workloads, the profiles (workloads with a paper's settings) or the\n"
    "machines; all of them without an argument."
)
EPILOG = """\
examples:
  indelible list
  indelible list designs
  indelible list machines --json
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of `list`."""
    parser.add_argument("kind", nargs="?", metavar="KIND", help=", ".join(KINDS))
    options.add_common(parser)


def call(args: argparse.Namespace) -> int:
    """Answer `list`."""
    if args.kind is not None and args.kind not in KINDS:
        raise unknown("kind", args.kind, KINDS)
    return options.reply(args, lambda: indelible.list(args.kind))
