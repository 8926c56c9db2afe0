"""`indelible explore`."""

from __future__ import annotations

import argparse

import indelible
from indelible.cli import crash, options, record
from indelible.experiment import CRASH_MACHINE
from indelible.results.exploration import Exploration
from indelible.verbs import explore
from indelible.verbs.crash import DESIGN

HELP = "record a program in many orders of its threads, and cut the power in each"
DESCRIPTION = (
    "Record a program that `indelible cc` has built once for each of many seeds, each\n"
    "of which runs its threads in another order, and crash-test each trace: with the\n"
    "program's own recovery (--check) or, if it has transactions, with the oracle.\n"
    "Exit code 1 if anything was violated or the program did not end, 2 if there was\n"
    "nothing to check, or --check accepts everything. docs/recording.md has more."
)
EPILOG = """\
examples:
  indelible explore --check './tickets --verify' -- ./tickets pool
  indelible explore --seeds 200 --before 'rm -f pool' --check ./ok -- ./kv pool
  indelible explore --design silo -- ./bank    # of its own transactions
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of `explore`."""
    parser.add_argument(
        "--check",
        metavar="COMMAND",
        help="a program that is run on what power failures leave, as by `crash --check`",
    )
    parser.add_argument(
        "--seeds",
        type=options.whole(1, explore.SEEDS_MAX),
        default=explore.SEEDS,
        metavar="N",
        help=f"how many seeds to try, from --seed on ({explore.SEEDS})",
    )
    parser.add_argument(
        "--before",
        metavar="COMMAND",
        help="run before each recording, so that all of them start alike: 'rm -f pool'",
    )
    parser.add_argument(
        "--design",
        type=options.one("design", options.COMPARED),
        default=DESIGN,
        metavar="D",
        help=f"the design that the program runs on ({DESIGN})",
    )
    options.add_machine(parser, CRASH_MACHINE)
    parser.add_argument(
        "--points",
        type=crash.points,
        metavar="all|N",
        help="power cuts with each seed: at every durable event, or at N of them",
    )
    parser.add_argument(
        "--out",
        default=".",
        metavar="FOLDER",
        help="folder for the traces of failing seeds (the working directory)",
    )
    parser.add_argument(
        "--seconds",
        type=options.above_zero,
        default=explore.SECONDS,
        metavar="N",
        help="time limit of the program, in case its threads wait for each other for ever, and of"
        f" --before ({explore.SECONDS:g})",
    )
    record.add_recording(parser)
    options.add_settings(parser)
    options.add_common(parser)
    record.add_program(parser)


def call(args: argparse.Namespace) -> int:
    """Answer `explore`."""
    command = record.program_of(args)

    def code(answer: Exploration) -> int:
        if answer.failed:
            return 1
        return 0 if answer.checked else 2

    own = ("check", "seeds", "seed", "before", "design", "machine", "points", "set", "out")
    words = options.given(args, *own, "pool", "loads", "unseen", "most", "seconds")
    return options.reply(args, lambda: indelible.explore(command, **words), code)
