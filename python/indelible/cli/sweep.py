"""`indelible sweep`."""

from __future__ import annotations

import argparse

import indelible
from indelible import sheets
from indelible.cli import options, outputs
from indelible.errors import InputError
from indelible.experiment import MACHINE
from indelible.metrics import metric_named
from indelible.plots import sweep as sweep_plot
from indelible.results.sweep import Sweep
from indelible.settings import MACHINE_FIELD
from indelible.text import sweep as sweep_text
from indelible.verbs import SEED

HELP = "the same runs at several values of a parameter"
DESCRIPTION = (
    "Run every design on every workload at each value of a field of the machine, the\n"
    "design or the workload, or of cores, txs, warmup and seed, or on each of several\n"
    "machines; of several fields at each combination. A row of the table is a point:\n"
    "with one design there is a column per workload, with several a column of\n"
    "geometric means per design; below it is where one design overtakes another, and\n"
    "of machines a column says which is ahead on each. With two fields each of these\n"
    "is a grid, with the first field's values down and the second's across, and one\n"
    "more shows which design is ahead where; --plot draws them as heat maps. Last\n"
    "come the verdicts of a sampled crash campaign, as of compare. Exit code 1 if a\n"
    "design failed it; such a design is never ahead."
)
EPILOG = """\
examples:
  indelible sweep --designs silo --workloads hash,btree \\
      --vary design.buffer_latency=8:128:24
  indelible sweep --designs lad,silo --workloads hash,btree \\
      --vary silo.entries=10,20,40,80
  indelible sweep --designs loc-wal --workloads bplustree,hash --machine loc \\
      --normalize native \\
      --vary loc-wal.sd=1,2,4,8,16,32
  indelible sweep --designs redo-log,ssp --workloads btree-rand \\
      --machine ssp --cores 1 \\
      --vary pm.tWRITE=50ns:450ns:100ns --plot writes.pdf
  indelible sweep --designs undo@x86,silo --workloads hash \\
      --vary cores=1,2,4,8 \\
      --vary controller.noc_latency=5ns,20ns,60ns --plot plane.png
  indelible sweep --designs lad,silo --workloads hash \\
      --vary machine=silo,optane,./far.toml
  indelible sweep --designs lad,silo --workloads hash --cores 8 \\
      --vary warmup=200,3000,12000,25000
  indelible sweep --designs lad,silo --workloads hash \\
      --vary silo.entries=10,20 --seeds 5
  indelible sweep --designs lad,silo --workloads hash,btree --cores 8 \\
      --vary silo.entries=10,20,40 --report entries.html
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of `sweep`."""
    parser.add_argument("--designs", type=options.names, metavar="A,B", help="the designs")
    parser.add_argument("--workloads", type=options.names, metavar="X,Y", help=options.WORKLOADS)
    parser.add_argument(
        "--vary",
        type=options.setting,
        action="append",
        metavar="FIELD=VALUES",
        help="a field as in --set, or machine, cores, txs, warmup or seed, and its values:"
        " 1,2,4 or first:last:step, or of machine names, files or `all`; may be repeated",
    )
    options.add_cores(parser)
    options.add_metric(parser)
    parser.add_argument(
        "--normalize",
        metavar="D",
        help="the design that is 1.00 at each point (each design is, at the first point)",
    )
    outputs.add_options(parser)
    outputs.add_table(parser)
    outputs.add_report(parser, "the whole sweep", "the tables, the figure and every value")
    options.add_crash(parser)
    options.add_keep(parser)
    options.add_dask(parser)
    options.add_seeds(parser)
    options.add_experiment(parser, MACHINE, "2,000")
    options.add_warmup(parser)
    options.add_common(parser)
    parser.set_defaults(seed=None, machine=None)


def call(args: argparse.Namespace) -> int:
    """Answer `sweep`."""
    options.require(args, "designs")
    options.require_workloads(args)
    vary = options.varied(args)
    for field, usual in (("seed", SEED), (MACHINE_FIELD, MACHINE)):
        if getattr(args, field) is None:
            setattr(args, field, usual)
        elif field in vary:
            raise InputError(f"{field} is set twice; keep one")
    metric_named(args.metric)
    if args.plot is not None and len(vary) > 2:
        raise InputError("--plot draws a sweep of one field or two; drop it, or a --vary")
    outputs.check(args)

    def show(answer: Sweep) -> int:
        outputs.show(args, answer, sweep_text.sweep, sweep_plot.figure, table=sheets.swept)
        return 1 if not answer.passed else 2 if answer.refused else 0

    own = ("designs", "workloads", "cores", "metric", "normalize", "seeds", "crash")
    words = options.given(args, *own, "warmup", "keep", "dask", *options.EXPERIMENT)
    return options.answer(lambda: indelible.sweep(vary=vary, **words), show)
