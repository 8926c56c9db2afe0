"""`indelible reproduce`."""

from __future__ import annotations

import argparse

from indelible import reproduction_plot, verbs
from indelible.cli import options, outputs
from indelible.experiment import InputError
from indelible.papers import PAPERS
from indelible.reproduction import Reproduction, reproduction

HELP = "what a paper claims, and the same asked here"
DESCRIPTION = (
    "Run the evaluation of a paper on its machine and print what was published beside\n"
    "what comes out here. No number is tuned, and many differ: docs/fidelity.md says\n"
    "why.\n"
    "\npapers:\n" + "\n".join(f"  {paper.name:<6}{paper.title}" for paper in PAPERS.values())
)
EPILOG = """\
examples:
  indelible reproduce ssp
  indelible reproduce silo --txs 10000
  indelible reproduce loc --json
  indelible reproduce hops --plot hops.pdf --csv hops.csv
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of `reproduce`."""
    parser.add_argument("paper", nargs="?", metavar="PAPER", help=", ".join(PAPERS))
    parser.add_argument(
        "--txs", type=options.whole(1), metavar="N", help="transactions of each core (2,000)"
    )
    outputs.add_options(parser)
    options.add_common(parser)


def call(args: argparse.Namespace) -> int:
    """Answer `reproduce`."""
    if args.paper is None:
        raise InputError(f"`indelible reproduce` needs a paper; there are: {', '.join(PAPERS)}")
    outputs.check(args)

    def show(answer: Reproduction) -> int:
        outputs.show(args, answer, reproduction, reproduction_plot.figure)
        return 0

    return options.answer(lambda: verbs.reproduce(args.paper, txs=args.txs, seed=args.seed), show)
