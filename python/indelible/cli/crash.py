"""`indelible crash`."""

from __future__ import annotations

import argparse

import indelible
from indelible.cli import options
from indelible.experiment import CRASH_MACHINE
from indelible.results.crash import Crash
from indelible.verbs.crash import DESIGN

HELP = "cut the power, recover, check what is left"
DESCRIPTION = (
    "Cut the power at every durable event of a run, or at some of them; recover from\n"
    "what was left in PM, cutting the power again at each write of the recovery;\n"
    "check the result against an exact oracle. From some of what recovery left,\n"
    "machines are switched on again, and their power is cut again. Exit code 1 if\n"
    "anything was violated or a mutant was not caught, 2 if no transaction stored\n"
    "anything to check, or --check accepts everything, even garbage."
)
EPILOG = """\
examples:
  indelible crash --design silo --workload scribble --points all
  indelible crash --design silo --workload scribble --mutants
  indelible crash --design ./mine.py --workload hash --trials all
  indelible crash --design undo@x86 --workload btree --points 1000 --seed 7
  indelible crash --design ssp --workload sqlite --txs 50 --lives 3
  indelible crash --design silo --workload scribble --without undo_newest_first
  indelible crash --design ./mine.py --workload hash --smallest
  indelible crash --design undo@x86 --workload hash --txs 50 --event 300
  indelible crash --replay mine.trace --check ./verify
  indelible crash --replay mine.trace --check ./verify --leave-out all
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of `crash`."""
    options.add_cell(parser, f"the design (of a trace, with --replay: {DESIGN})")
    options.add_cores(parser, "2; with --check, of threads")
    parser.add_argument(
        "--points",
        type=points,
        metavar="all|N",
        help="power cuts: at every durable event, or at N of them",
    )
    parser.add_argument(
        "--event",
        type=options.whole(1),
        metavar="N",
        help="cut the power only at event N, as violations and `trace` number them, and say what is"
        " left there of each core's transactions",
    )
    parser.add_argument(
        "--mutants",
        nargs="?",
        const=True,
        default=False,
        metavar="RULE",
        help="also disable each rule of the design (or only RULE); each must be caught",
    )
    parser.add_argument(
        "--trials",
        type=points,
        metavar="all|N",
        help="also try the design on all or N of the 360 small stress machines that --mutants uses:"
        " tiny caches, writes that overtake each other, small structures, later lives",
    )
    parser.add_argument(
        "--without",
        metavar="RULE",
        help="switch off one rule of the design; the campaign should then find a violation",
    )
    parser.add_argument(
        "--smallest",
        action="store_true",
        help="if the campaign itself finds something, look for the smallest run that still violates"
        " something: few transactions, on few cores, with one of nine seeds",
    )
    parser.add_argument(
        "--no-nested",
        dest="nested",
        action="store_false",
        help="do not cut the power during recovery",
    )
    parser.add_argument(
        "--lives",
        type=options.whole(1),
        metavar="N",
        help="how often a machine boots: 2 = recover, boot, run on, cut again (2 if the workload"
        " can resume; 1 with --sql)",
    )
    parser.add_argument(
        "--check",
        metavar="COMMAND",
        help="a program of yours that is run on what power failures leave of a trace (--replay),"
        " with one file per region appended to its arguments; it accepts with exit code 0"
        " (docs/replay.md)",
    )
    parser.add_argument(
        "--images", metavar="FOLDER", help="folder for the files that --check rejects"
    )
    parser.add_argument(
        "--leave-out",
        type=points,
        metavar="all|N",
        help="also leave out each flush and fence of the trace (or N of them), one at a time; those"
        " that --check does not notice are not needed, or not checked",
    )
    parser.add_argument(
        "--keep",
        metavar="FOLDER",
        help="store the result of the campaign in this folder, or reuse that of the same campaign;"
        " not with --check, whose answers are those of a program of yours",
    )
    options.add_dask(parser, "; not with --check, which runs a program of yours")
    options.add_experiment(parser, CRASH_MACHINE, "500, or a trace once with --check")
    options.add_common(parser)


def points(word: str) -> int | str:
    """Read `all` or a number."""
    if word == "all":
        return word
    try:
        return options.whole(1)(word)
    except argparse.ArgumentTypeError as error:
        raise argparse.ArgumentTypeError(f"{error}, or `all`") from None


def call(args: argparse.Namespace) -> int:
    """Answer `crash`."""
    if args.replay is None:
        options.require_cell(args)

    def code(answer: Crash) -> int:
        if answer.failed:
            return 1
        # The input may have nothing that a design could get wrong, which then proves nothing.
        return 0 if answer.checked or answer.interrupted else 2

    own = ("design", "workload", "cores", "points", "event", "mutants", "nested", "without")
    more = ("lives", "check", "images", "leave_out", "trials", "smallest", "keep", "dask")
    words = options.given(args, *own, *more, *options.EXPERIMENT)
    return options.reply(args, lambda: indelible.crash(**words), code)
