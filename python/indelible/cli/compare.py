"""`indelible compare`."""

from __future__ import annotations

import argparse

from indelible import comparison_text, plot, stalls, stalls_plot, verbs
from indelible.cli import options, outputs
from indelible.experiment import MACHINE, InputError
from indelible.results import METRICS, Comparison, metric_named

HELP = "designs against workloads, as in a paper"
DESCRIPTION = (
    "Run every design on every workload and print the table of a paper's evaluation:\n"
    "relative to one design, geometric mean last, and beside it what a sampled crash\n"
    "campaign said of each design. Exit code 1 if a design failed that. `all` stands\n"
    "for every design or workload."
)
EPILOG = """\
examples:
  indelible compare --designs native,undo@x86,silo --workloads hash,btree \\
      --cores 1,8
  indelible compare --designs undo@x86,silo --workloads all \\
      --metric pm-writes --csv writes.csv
  indelible compare --designs undo@x86,silo --workloads sqlite \\
      --sql mine.sql --plot mine.pdf
  indelible compare --designs undo@x86,silo --workloads hash,btree --seeds 5 \\
      --table means.csv
  indelible compare --designs undo@x86,lad,silo --workloads all --stalls \\
      --plot stalls.pdf
  indelible compare --designs undo@x86,undo@eadr --cores 1 --native \\
      --machine optane \\
      --workloads logcache-cached,logcache-cached+clwb,logcache-movnti4
"""

#: The comparison of `make run`.
DESIGNS = "native,undo@x86,silo"
WORKLOADS = "hash,btree,ycsb,sqlite"
METRIC = "throughput"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of `compare`."""
    parser.add_argument(
        "--designs", type=options.names, default=DESIGNS, metavar="A,B", help=f"({DESIGNS})"
    )
    parser.add_argument(
        "--workloads", type=options.names, default=WORKLOADS, metavar="X,Y", help=f"({WORKLOADS})"
    )
    parser.add_argument(
        "--cores",
        type=options.wholes,
        metavar="N,N",
        help="cores, a block of the table for each number (as the machine has them)",
    )
    parser.add_argument(
        "--metric",
        default=METRIC,
        metavar="METRIC",
        help=f"{', '.join(METRICS)} ({METRIC})",
    )
    parser.add_argument(
        "--normalize", metavar="D", help="the design that is 1.00, compared too (the first)"
    )
    outputs.add_options(parser)
    outputs.add_table(parser)
    parser.add_argument(
        "--no-crash", action="store_true", help="leave the crash campaigns out: no verdicts"
    )
    parser.add_argument(
        "--native",
        action="store_true",
        help="measure the loops of logcache on this computer's processor, too",
    )
    parser.add_argument(
        "--stalls",
        action="store_true",
        help="show what core time is spent on instead of --metric, also in --plot, --table"
        " and as `stacks` in --json",
    )
    options.add_keep(parser)
    options.add_dask(parser)
    options.add_seeds(parser)
    options.add_experiment(parser, MACHINE, "2,000")
    options.add_common(parser)


def call(args: argparse.Namespace) -> int:
    """Answer `compare`."""
    metric_named(args.metric)
    outputs.check(args)
    if args.stalls and (args.native or args.metric != METRIC):
        other = "--native" if args.native else f"--metric {args.metric}"
        raise InputError(f"--stalls shows core time alone: drop {other}")

    def show(answer: Comparison) -> int:
        if args.stalls:
            more = {"stacks": answer.stacks()}
            outputs.show(args, answer, stalls.stalls, stalls_plot.figure, more, Comparison.stacks)
        else:
            text, draw = comparison_text.comparison, plot.figure
            outputs.show(args, answer, text, draw, table=Comparison.table)
        return 0 if answer.passed else 1

    return options.answer(
        lambda: verbs.compare(
            args.designs,
            args.workloads,
            cores=args.cores,
            metric=args.metric,
            normalize=args.normalize,
            seeds=args.seeds,
            crash=not args.no_crash,
            native=args.native,
            keep=args.keep,
            dask=args.dask,
            **options.experiment_arguments(args),
        ),
        show,
    )
