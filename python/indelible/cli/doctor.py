"""`indelible doctor`."""

from __future__ import annotations

import argparse

from indelible import health
from indelible.cli import options

HELP = "does what is installed here work?"
DESCRIPTION = (
    "Check in a few seconds that what is installed here answers as it should: that a\n"
    "run gives the same answer twice, that a design recovers from power failures, and\n"
    "that the oracle notices a rule that is switched off. Say what optional libraries\n"
    "and tools are missing, what for, and how to get them. Exit code 1 if a check\n"
    "fails."
)
EPILOG = """\
examples:
  indelible doctor
  indelible doctor --json
"""

FAILED = 1


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of `doctor`."""
    parser.add_argument(
        "--json", action="store_true", help="print one JSON object and nothing else"
    )


def call(args: argparse.Namespace) -> int:
    """Answer `doctor`."""

    def show(answer: health.Health) -> int:
        if args.json:
            options.show_json(answer)
        else:
            options.show(str(answer))
        return 0 if answer.passed else FAILED

    return options.answer(health.doctor, show)
