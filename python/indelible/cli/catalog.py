"""`indelible list`."""

from __future__ import annotations

import argparse

import indelible
from indelible import text
from indelible.cli import options
from indelible.names import unknown
from indelible.text import explain as explain_text
from indelible.verbs.catalog import KINDS

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
    if args.json:
        options.show_json({"rows": indelible.list(args.kind)})
        return 0
    kinds = KINDS if args.kind is None else [args.kind]
    width = text.terminal_width()
    options.show(
        "\n\n".join(explain_text.catalog(kind, indelible.list(kind), width) for kind in kinds)
    )
    return 0
