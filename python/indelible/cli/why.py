"""`indelible why`."""

from __future__ import annotations

import argparse
from functools import partial

import indelible
from indelible.cli import options, outputs
from indelible.experiment import MACHINE
from indelible.metrics import metric_named
from indelible.plots import causes as causes_plot
from indelible.results.causes import Causes
from indelible.text import causes as causes_text
from indelible.verbs.why import BY, BY_MAX

HELP = "why two designs differ, and what that depends on"
DESCRIPTION = (
    "Run two designs, or one, and say what their core time is spent on and how busy\n"
    "the machine was. Then change every field of the machine, the designs and the\n"
    "workloads, one at a time, and run them again: what moves the ratio of the two,\n"
    "what makes each of them better, and whether any change reverses them. Numbers\n"
    "are halved and doubled (--by), words replaced by each alternative. With several\n"
    "workloads, ratios are geometric means. Below are the verdicts of a sampled\n"
    "crash campaign, as of compare. Exit code 1 if a design failed it."
)
EPILOG = """\
examples:
  indelible why --designs undo@x86,silo --workloads hash
  indelible why --designs lad,silo --workloads hash,btree --cores 8 \\
      --fields controller,pm,silo
  indelible why --designs redo-log,ssp --workloads sps --machine ssp \\
      --metric pm-writes
  indelible why --designs kiln --workloads hash --machine loc --by 4 --top 30
  indelible why --designs h-wal,loc-wal --workloads hash --machine loc \\
      --seeds 3 --plot why.pdf --keep rows
  indelible why --designs undo@x86,silo --workloads btree --cores 8 \\
      --report why.html
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of `why`."""
    parser.add_argument(
        "--designs",
        type=options.names,
        metavar="A,B",
        help="two designs, the second relative to the first, or one alone",
    )
    parser.add_argument("--workloads", type=options.names, metavar="X,Y", help=options.WORKLOADS)
    options.add_cores(parser)
    options.add_metric(parser)
    parser.add_argument(
        "--by",
        type=options.whole(2, BY_MAX),
        default=BY,
        metavar="N",
        help=f"what numbers are divided and multiplied by ({BY})",
    )
    parser.add_argument(
        "--fields",
        type=options.names,
        metavar="F,G",
        help="change only these: fields, as in --set, or whole sections: pm, the name of a design"
        " or a workload, or machine for each of its sections (all)",
    )
    parser.add_argument(
        "--top",
        type=options.whole(1),
        default=causes_text.TOP,
        metavar="N",
        help=f"how many changes to show ({causes_text.TOP}); --json, --csv and --report have all",
    )
    outputs.add_options(parser)
    outputs.add_report(parser, "the whole answer", "the tables, the figure and every change")
    options.add_crash(parser)
    options.add_keep(parser)
    options.add_dask(parser)
    options.add_seeds(parser)
    options.add_experiment(parser, MACHINE, "2,000")
    options.add_warmup(parser)
    options.add_common(parser)


def call(args: argparse.Namespace) -> int:
    """Answer `why`."""
    options.require(args, "designs")
    options.require_workloads(args)
    metric_named(args.metric)
    outputs.check(args)

    def show(answer: Causes) -> int:
        outputs.show(args, answer, partial(causes_text.causes, top=args.top), causes_plot.figure)
        return 0 if answer.passed else 1

    own = ("designs", "workloads", "cores", "metric", "by", "fields", "seeds", "crash")
    words = options.given(args, *own, "warmup", "keep", "dask", *options.EXPERIMENT)
    return options.answer(lambda: indelible.why(**words), show)
