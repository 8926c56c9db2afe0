"""`indelible run`."""

from __future__ import annotations

import argparse

import indelible
from indelible.cli import options
from indelible.experiment import MACHINE

HELP = "one workload on one design"
DESCRIPTION = (
    "Run a workload on a design: throughput, latency, PM writes, and where the time\nwent."
)
EPILOG = """\
examples:
  indelible run --design silo --workload btree --cores 8
  indelible run --design undo@x86 --workload hash --set controller.wpq=128
  indelible run --design undo@x86 --workload ctree --machine hops --epochs
  indelible run --design silo --sql script.sql
  indelible run --design silo --ycsb workloada.properties --json
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of `run`."""
    options.add_cell(parser)
    options.add_cores(parser)
    parser.add_argument(
        "--epochs",
        action="store_true",
        help="count ordering points, and what a core stores between them",
    )
    parser.add_argument(
        "--latencies",
        action="store_true",
        help="report the whole distribution of commit latencies, in --json as steps",
    )
    options.add_experiment(parser, MACHINE, "2,000")
    options.add_warmup(parser)
    options.add_common(parser)


def call(args: argparse.Namespace) -> int:
    """Answer `run`."""
    options.require_cell(args)
    own = ("design", "workload", "cores", "epochs", "latencies", "warmup")
    words = options.given(args, *own, *options.EXPERIMENT)
    return options.reply(args, lambda: indelible.run(**words))
