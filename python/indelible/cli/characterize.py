"""`indelible characterize`."""

from __future__ import annotations

import argparse

import indelible
from indelible.cli import options
from indelible.verbs import characterize

HELP = "what the transactions of a workload write, next to published values"
DESCRIPTION = (
    "Run workloads without persistence and print what their transactions write:\n"
    "lines, pages of 4 KiB and words, stores, and the share of the stores that go to\n"
    "persistent memory (loads do not count). Next to it stand the values that a paper\n"
    "published for the workload, if one did (`indelible list profiles`)."
)
EPILOG = """\
examples:
  indelible characterize
  indelible characterize --workloads rbtree-rand,rbtree-zipf --txs 100000
  indelible characterize --workloads memcached --set workload.set_percent=5 \\
      --json
  indelible characterize --sql mine.sql
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of `characterize`."""
    parser.add_argument(
        "--workloads",
        type=options.names,
        metavar="X,Y",
        help="the workloads (those of --sql, --ycsb and --replay, or else the profiles with"
        " published values)",
    )
    parser.add_argument(
        "--cores", type=options.whole(1), default=1, metavar="N", help="number of cores (1)"
    )
    options.add_machine(parser, characterize.ON)
    parser.add_argument(
        "--txs",
        type=options.whole(1),
        default=characterize.TXS,
        metavar="N",
        help=f"transactions per core ({characterize.TXS:,})",
    )
    options.add_settings(parser)
    options.add_files(parser)
    options.add_common(parser)


def call(args: argparse.Namespace) -> int:
    """Answer `characterize`."""
    own = ("workloads", "machine", "cores", "txs", "seed", "set", "sql", "ycsb", "replay")
    words = options.given(args, *own)
    return options.reply(
        args,
        lambda: indelible.characterize(**words),
        lambda answer: 2 if answer.get("refused") else 0,
    )
