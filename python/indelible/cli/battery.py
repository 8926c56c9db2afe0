"""`indelible battery`."""

from __future__ import annotations

import argparse

import indelible
from indelible.cli import options
from indelible.experiment import MACHINE

HELP = "the energy that a design needs at a power failure, and the size of battery for it"
DESCRIPTION = (
    "Print the battery table: the bytes that each design must save when the power\n"
    "fails, from the structures that it declares (`indelible explain D`), the energy\n"
    "that this takes, and the size of a supercapacitor and of a thin-film battery\n"
    "with that energy. Published values stand beside those of 8 cores of machine\n"
    "`silo`."
)
EPILOG = """\
examples:
  indelible battery
  indelible battery --designs silo --cores 1 --set design.entries=40
  indelible battery --set energy.dirty_share=100% --json
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of `battery`."""
    parser.add_argument(
        "--designs",
        type=options.names,
        metavar="A,B",
        help="the designs (all that need a battery)",
    )
    options.add_cores(parser)
    options.add_machine(parser, MACHINE)
    options.add_settings(parser)
    options.add_common(parser)


def call(args: argparse.Namespace) -> int:
    """Answer `battery`."""
    words = options.given(args, "designs", "machine", "cores", "set")
    return options.reply(args, lambda: indelible.battery(**words))
