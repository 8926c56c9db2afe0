"""`indelible record`."""

from __future__ import annotations

import argparse
import subprocess
import sys

import indelible
from indelible.cli import options
from indelible.errors import InputError
from indelible.verbs import record

HELP = "run a program built with `cc`, and write what it does as a trace for --replay"
DESCRIPTION = (
    "Run a program that `indelible cc` has built and record what it does to its\n"
    "persistent memory: files that it maps shared, and what it names with\n"
    "indelible_region(). The trace can be run on every design and crash-tested with\n"
    "the program's own recovery (--replay, --check). docs/recording.md has more."
)
EPILOG = """\
examples:
  indelible record -- ./kv pool
  indelible record --out kv.trace --pool /mnt/pool -- ./kv --items 100
  indelible record --seed 2 -- ./kv pool    # its threads in another order
  indelible crash --design undo@x86 --replay kv.trace --check './kv --verify'
  indelible crash --design silo --replay bank.trace    # of its own transactions
"""

#: The bytes of the units of --most.
UNITS = {"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "B": 1}


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of `record`."""
    parser.add_argument("--out", metavar="FILE", help="the trace (PROGRAM.trace)")
    add_recording(parser)
    parser.add_argument(
        "--seed",
        type=options.whole(0),
        default=1,
        metavar="N",
        help="decides the order in which the program's threads run (1)",
    )
    parser.add_argument(
        "--json",
        action="store_true",
        help="print one JSON object and nothing else: what the program prints goes to standard"
        " error",
    )
    add_program(parser)


def add_recording(parser: argparse.ArgumentParser) -> None:
    """Add the options that say which operations of a program are recorded."""
    parser.add_argument(
        "--pool",
        metavar="FILE",
        help="only this file is persistent memory, and no other that is mapped shared",
    )
    parser.add_argument(
        "--no-loads",
        dest="loads",
        action="store_false",
        help="leave loads out: enough for crash tests, and shorter; time is that of stores alone",
    )
    parser.add_argument(
        "--unseen",
        action="store_true",
        help="treat memory that changed without an observed store as stored just before the next"
        " flush or fence, instead of refusing it",
    )
    parser.add_argument(
        "--most",
        type=_bytes,
        default=record.BYTES_MAX,
        metavar="BYTES",
        help="record at most this much, not counting the lines of the source (256MiB)",
    )


def add_program(parser: argparse.ArgumentParser) -> None:
    """Add the program and its words, behind all options."""
    parser.add_argument(
        "program", nargs=argparse.REMAINDER, metavar="-- PROGRAM ...", help="the program to record"
    )


def program_of(args: argparse.Namespace) -> list[str]:
    """Return the program and its words, or refuse a command without a program."""
    command = args.program[1:] if args.program[:1] == ["--"] else args.program
    if not command:
        verb = f"indelible {args.command}"
        raise InputError(f"`{verb}` needs a program: {verb} -- ./program ...")
    return command


def call(args: argparse.Namespace) -> int:
    """Answer `record`."""
    command = program_of(args)
    out = record.trace_of(command) if args.out is None else args.out
    options.require_writable("--out", out)
    options.require_apart(args, {"--out": out}, *command)
    answer = indelible.record(
        command,
        out,
        stdout=(sys.stderr or subprocess.DEVNULL) if args.json else None,
        **options.given(args, "pool", "loads", "unseen", "most", "seed"),
    )
    options.show_answer(args, answer)
    return 0


def _bytes(word: str) -> int:
    for unit, size in UNITS.items():
        number = word.removesuffix(unit)
        is_count = number != word and number.isdecimal() and number.isascii()
        if is_count and len(number) <= options.DIGITS_MAX and int(number) > 0:
            return int(number) * size
    raise argparse.ArgumentTypeError(f"`{word}` is no size such as 64MiB")
