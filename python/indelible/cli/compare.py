"""`indelible compare`."""

from __future__ import annotations

import argparse
from functools import partial
from typing import Any

import indelible
from indelible import sheets
from indelible.cli import options, outputs
from indelible.errors import InputError
from indelible.experiment import MACHINE
from indelible.metrics import metric_named
from indelible.results.comparison import Comparison
from indelible.verbs import compare
from indelible.views import RATIOS, VIEWS, based

HELP = "designs on workloads, as in a paper's evaluation"
DESCRIPTION = (
    "Run every design on every workload and print the table of a paper's evaluation:\n"
    "relative to one design, geometric mean last, and below it the verdict of a\n"
    "sampled crash campaign for each design. Exit code 1 if a design failed it. `all`\n"
    "stands for every design, or for every workload but logcache, probe, replay and\n"
    "scribble, which say little of designs or stand for no program."
)
EPILOG = """\
examples:
  indelible compare --designs native,undo@x86,silo --workloads hash,btree \\
      --cores 1,8
  indelible compare --designs undo@x86,silo --workloads all \\
      --metric pm-writes --csv writes.csv
  indelible compare --designs undo@x86,silo --sql mine.sql --plot mine.pdf
  indelible compare --designs undo@x86,silo --workloads hash,btree --seeds 5 \\
      --table means.tex
  indelible compare --designs undo@x86,lad,silo --workloads all --stalls \\
      --plot stalls.pdf
  indelible compare --designs undo-log,redo-log,ssp --workloads hash-rand,sps \\
      --machine ssp --writes
  indelible compare --designs ec-wal,loc-wal --workloads hash,sps \\
      --machine loc --latencies --plot latencies.pdf
  indelible compare --designs lad,silo --workloads hash,btree \\
      --cores 1,8 --usage
  indelible compare --designs undo@x86,base,fwb,lad,silo --workloads all \\
      --summary --plot summary.pdf
  indelible compare --designs undo@x86,lad,silo --workloads hash,btree \\
      --cores 8 --report report.html
  indelible compare --designs undo@x86,undo@eadr --cores 1 --native \\
      --machine optane \\
      --workloads logcache-cached,logcache-cached+clwb,logcache-movnti4
"""

#: The default designs and workloads, which `make run` compares.
DESIGNS, WORKLOADS = (",".join(names) for names in (compare.DESIGNS, compare.WORKLOADS))

#: The flags of the views that are shown instead of a metric, with their help.
SHOWN = {
    "stalls": "show what core time is spent on instead of --metric, also in --plot, --table"
    " and as `stacks` in --json",
    "writes": "show what is written to persistent memory and why, in the same way",
    "latencies": "show percentiles of how long commits take, also in --table and as"
    " `latencies` in --json; --plot draws their distributions",
    "usage": "show how busy caches, write-pending queues, banks and buses were, also in --table and"
    " as `usage` in --json; --plot draws banks and queues",
    "summary": "show a row for each design: throughput, p99 of commits, writes, energy, what a"
    " power failure leaves to be saved, and the crash test; also in --table and as `summary` in"
    " --json; --plot draws throughput against writes",
}


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of `compare`."""
    parser.add_argument(
        "--designs",
        type=options.names,
        default=DESIGNS,
        metavar="A,B",
        help=f"the designs ({DESIGNS})",
    )
    parser.add_argument(
        "--workloads",
        type=options.names,
        metavar="X,Y",
        help=f"the workloads (those of --sql, --ycsb and --replay, or else {WORKLOADS})",
    )
    parser.add_argument(
        "--cores",
        type=options.wholes,
        metavar="N,N",
        help="numbers of cores, with a block of the table for each (all that the machine has)",
    )
    options.add_metric(parser)
    parser.add_argument(
        "--normalize",
        metavar="D",
        help="the baseline, added if not compared (default: the first; with --writes and --summary"
        " the first that is durable)",
    )
    outputs.add_options(parser)
    outputs.add_table(parser)
    outputs.add_report(parser, "the whole comparison", "every view as a figure and a table")
    options.add_crash(parser)
    parser.add_argument(
        "--native",
        action="store_true",
        help="also measure the loops of logcache on this computer's processor",
    )
    for view, shown in SHOWN.items():
        parser.add_argument(f"--{view}", action="store_true", help=shown)
    options.add_keep(parser)
    options.add_dask(parser)
    options.add_seeds(parser)
    options.add_experiment(parser, MACHINE, "2,000")
    options.add_warmup(parser)
    options.add_common(parser)


def call(args: argparse.Namespace) -> int:
    """Answer `compare`."""
    metric_named(args.metric)
    outputs.check(args)
    asked = _view_asked(args)
    view = VIEWS[asked]
    if args.plot is not None:
        view.require("--plot")

    def show(answer: Comparison) -> int:
        answer = based(answer, asked)
        more: dict[str, Any] = {}
        if view.key is not None:
            more = {view.key: [*view.rows(answer)], "command": answer.command_with(asked)}
        table = partial(sheets.compared, view=asked)
        outputs.show(args, answer, view.text, view.figure, more, table)
        return 1 if not answer.passed else 2 if answer.refused else 0

    own = ("designs", "workloads", "cores", "metric", "normalize", "seeds", "crash", "native")
    words = options.given(args, *own, "warmup", "keep", "dask", *options.EXPERIMENT)
    latencies = args.latencies and _needs_distributions(args)
    return options.answer(lambda: indelible.compare(**words, latencies=latencies), show)


def _needs_distributions(args: argparse.Namespace) -> bool:
    """Return whether the view of latencies needs whole distributions, as that of joined seeds does.

    A bundle always has the object of `--json`, whatever files the command writes. Where they are
    not needed they are not asked for: to `--keep`, a run that has one is another run.
    """
    drawn = args.plot is not None or args.report is not None
    return args.json or options.is_heard() or drawn or args.seeds > 1


def _view_asked(args: argparse.Namespace) -> str:
    """Return the view that was asked for, or refuse flags that cannot go with it."""
    asked = [view for view in SHOWN if getattr(args, view)]
    if not asked:
        return RATIOS
    view, *others = asked
    if others or args.native or args.metric != options.METRIC:
        metric = f"--metric {args.metric}"
        other = f"--{others[0]}" if others else "--native" if args.native else metric
        raise InputError(f"--{view} shows {VIEWS[view].shows} alone: drop {other}")
    return view
