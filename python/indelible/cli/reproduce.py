"""`indelible reproduce`."""

from __future__ import annotations

import argparse

import indelible
from indelible.cli import options, outputs
from indelible.errors import InputError
from indelible.papers import PAPERS
from indelible.plots import reproduction as reproduction_plot
from indelible.results.reproduction import Reproduction, Reproductions
from indelible.text import reproduction as reproduction_text

HELP = "what a paper claims, and what comes out here"
DESCRIPTION = (
    "Run the evaluation of a paper on its machine and print what was published beside\n"
    "what comes out here. No number is tuned, and many differ: docs/fidelity.md says\n"
    "why. With --machine and --set the claims are tried on another machine, with\n"
    "--vary at each value of a field; a claim about that field keeps its own value.\n"
    "\npapers:\n" + "\n".join(f"  {paper.name:<6}{paper.title}" for paper in PAPERS.values())
)
EPILOG = """\
examples:
  indelible reproduce ssp
  indelible reproduce silo --txs 10000
  indelible reproduce loc --json
  indelible reproduce hops --plot hops.pdf --csv hops.csv
  indelible reproduce silo --vary controller.noc_latency=5ns,40ns,100ns
  indelible reproduce ssp --machine optane --set core.cores_max=4
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of `reproduce`."""
    parser.add_argument("paper", nargs="?", metavar="PAPER", help=", ".join(PAPERS))
    parser.add_argument(
        "--vary",
        type=options.setting,
        action="append",
        metavar="FIELD=VALUES",
        help="a field as in --set, or machine, txs or seed, and its values: 1,2,4 or"
        " first:last:step, or of machine names, files or `all`; a column for each",
    )
    parser.add_argument(
        "--machine",
        type=options.one("machine", "reproduce --vary machine="),
        metavar="M",
        help="a machine other than the paper's",
    )
    parser.add_argument(
        "--txs", type=options.whole(1), metavar="N", help="transactions per core (2,000)"
    )
    options.add_settings(parser)
    options.add_keep(parser)
    options.add_dask(parser)
    outputs.add_options(parser)
    options.add_common(parser)


def call(args: argparse.Namespace) -> int:
    """Answer `reproduce`."""
    if args.paper is None:
        raise InputError(f"`indelible reproduce` needs a paper; there are: {', '.join(PAPERS)}")
    vary = options.varied(args)
    outputs.check(args)

    def show(answer: Reproduction | Reproductions) -> int:
        if isinstance(answer, Reproductions):
            outputs.show(args, answer, reproduction_text.reproductions, reproduction_plot.figure)
        else:
            outputs.show(args, answer, reproduction_text.reproduction, reproduction_plot.figure)
        return 0

    words = options.given(args, "paper", "machine", "txs", "seed", "set", "keep", "dask")
    return options.answer(lambda: indelible.reproduce(vary=vary or None, **words), show)
