"""`indelible litmus`."""

from __future__ import annotations

import argparse

import indelible
from indelible.cli import options
from indelible.experiment import RANDOM_MAX

HELP = "what a power failure may leave of a few ordered stores"
DESCRIPTION = (
    "Run litmus tests on ordering hardware without a log: the power is cut at every\n"
    "point of many interleavings, with every order of draining tried that the\n"
    "hardware's rules allow, or where a line `sampled` says so a part of them. Exit\n"
    "code 1 if an image was seen that the hardware's persistency model forbids, a\n"
    "rule that is switched off was not caught, or no test could run on some hardware.\n"
    "docs/litmus.md has the format of a test, docs/design.md hardware in Python."
)
EPILOG = """\
examples:
  indelible litmus
  indelible litmus --order hops --order x86
  indelible litmus --order hops mine.litmus --timelines
  indelible litmus --order ./mine.py --random 600 --mutants
  indelible litmus --order hops --program 490 --without line_in_order
  indelible litmus --order hops --set design.entries=1 --set controller.count=4
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of `litmus`."""
    parser.add_argument(
        "--order",
        dest="orders",
        action="append",
        default=[],
        metavar="NAME",
        help="ordering hardware (all), or a Python file with some; may be repeated",
    )
    parser.add_argument(
        "--random",
        type=options.whole(0, RANDOM_MAX),
        default=0,
        metavar="N",
        help="also run this many random programs on each, the same for every seed: with varied"
        " parameters, on small caches, and with writes that overtake each other",
    )
    parser.add_argument(
        "--mutants",
        action="store_true",
        help="also switch off each rule of the hardware, which the tests or random programs must"
        " catch",
    )
    parser.add_argument(
        "--program",
        type=options.whole(1, RANDOM_MAX),
        metavar="K",
        help="run only the random program with this number, and show it, and how a forbidden image"
        " of it came about",
    )
    parser.add_argument(
        "--without", metavar="RULE", help="switch off one rule of the hardware in every run"
    )
    parser.add_argument(
        "--timelines",
        action="store_true",
        help="also show how each image that was seen came about",
    )
    options.add_settings(
        parser,
        "a field of the machine `tiny` or of the hardware (`design`) in every run",
        "some hardware",
        "hops.entries=1",
    )
    parser.add_argument(
        "files", nargs="*", metavar="FILE", help="tests (those that come with the simulator)"
    )
    options.add_common(parser)


def call(args: argparse.Namespace) -> int:
    """Answer `litmus`."""
    own = ("orders", "random", "mutants", "program", "without", "timelines", "set", "seed")
    words = options.given(args, *own)
    return options.reply(
        args,
        lambda: indelible.litmus(*args.files, **words),
        lambda answer: 0 if answer.passed else 1,
    )
