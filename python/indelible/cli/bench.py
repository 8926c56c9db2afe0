"""`indelible bench`."""

from __future__ import annotations

import argparse

import indelible
from indelible import benchmark
from indelible.cli import options

HELP = "how fast the simulator itself is"
DESCRIPTION = (
    "Measure memory operations per second on this computer, with the simulator and on\n"
    "plain memory, the time of each design next to that of native, and peak memory,\n"
    "with a process for each cell."
)
EPILOG = """\
examples:
  indelible bench
  indelible bench --designs fwb,silo
  indelible bench --quick --json
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of `bench`."""
    parser.add_argument(
        "--designs",
        type=options.names,
        metavar="A,B",
        help="only these, next to native (all)",
    )
    parser.add_argument(
        "--quick", action="store_true", help=f"{benchmark.QUICK} times fewer transactions"
    )
    options.add_common(parser)


def call(args: argparse.Namespace) -> int:
    """Answer `bench`."""
    words = options.given(args, "quick", "designs", "seed")
    return options.reply(args, lambda: indelible.bench(**words))
