"""`indelible explain`."""

from __future__ import annotations

import argparse

import indelible
from indelible.cli import options
from indelible.errors import InputError
from indelible.experiment import MACHINE

HELP = "everything known about a design, a workload, a machine or ordering hardware"
DESCRIPTION = (
    "Explain a design (paper, guarantee, parameters, rules, hardware, file), a\n"
    "workload, a machine (every field with value, unit, range and source), or\n"
    "ordering hardware such as x86 (promise, parameters, rules, the designs on it).\n"
    "`machine:silo` is the machine where a design has the name, too; `order:`,\n"
    "`design:` and `workload:` work likewise. `controller` is a part of a machine,\n"
    "`controller.wpq` one of its fields, `silo.entries` a field of a design or\n"
    "workload, or a rule of a design."
)
EPILOG = """\
examples:
  indelible explain silo
  indelible explain ssp --machine ssp --cores 1
  indelible explain optane --diff cxl
  indelible explain tiny --set controller.wpq=8
  indelible explain order:hops
  indelible explain controller --machine cxl
  indelible explain controller.wpq --machine optane
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of `explain`."""
    parser.add_argument(
        "name",
        nargs="?",
        metavar="NAME",
        help="any name that `list` prints, or hardware that `litmus` runs on",
    )
    parser.add_argument("--diff", metavar="OTHER", help="another machine to show next to it")
    parser.add_argument(
        "--machine",
        type=options.one("machine"),
        metavar="M",
        help=f"the machine of a design's hardware ({MACHINE})",
    )
    parser.add_argument(
        "--cores", type=options.whole(1), metavar="N", help="how many of its cores (all)"
    )
    options.add_settings(parser)
    options.add_common(parser)


def call(args: argparse.Namespace) -> int:
    """Answer `explain`."""
    if args.name is None:
        raise InputError("`indelible explain` needs a name; `indelible list` lists them")
    words = options.given(args, "name", "set", "diff", "machine", "cores")
    return options.reply(args, lambda: indelible.explain(**words))
