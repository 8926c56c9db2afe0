"""`indelible doctor`."""

from __future__ import annotations

import argparse

import indelible
from indelible.cli import options

HELP = "check that this installation works"
DESCRIPTION = (
    "Check in a few seconds that this installation works: that a run gives the same\n"
    "answer twice, that a design recovers from power failures, and that the oracle\n"
    "notices a rule that is switched off. Say which optional libraries and tools are\n"
    "missing, what they are for, and how to get them. Exit code 1 if a check fails."
)
EPILOG = """\
examples:
  indelible doctor
  indelible doctor --json
"""

FAILED = 1


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of `doctor`."""
    options.add_json(parser)


def call(args: argparse.Namespace) -> int:
    """Answer `doctor`."""
    return options.reply(args, indelible.doctor, lambda answer: 0 if answer.passed else FAILED)
