"""`indelible native`."""

from __future__ import annotations

import argparse

from indelible import native, plots
from indelible.cli import options, outputs
from indelible.errors import InputError
from indelible.plots import native as native_plot

HELP = "measure this computer's processor: cached and uncacheable logs"
DESCRIPTION = (
    '`native logging` measures the loop of "Logging in Persistent Memory: to Cache,\n'
    'or Not to Cache?" on the processor that it runs on (x86-64, Linux; no root, no\n'
    "persistent memory): append an entry to a log, fence, store to an array. Each way\n"
    "of writing an entry says what it guarantees after a power failure. --against\n"
    "simulates the same loop on a machine, with log and array in DRAM and in\n"
    "persistent memory of every durability domain."
)
EPILOG = """\
examples:
  indelible native logging
  indelible native logging --quick --plot logging.png
  indelible native logging --against optane
  indelible native logging --variants cached,cached+clwb,movnti4 \\
      --values rand --entries 1,8
  indelible native logging --arrays 1/4llc,1llc,2llc --logs linear,circular \\
      --threads 1,2
"""

#: The benchmarks there are.
BENCHMARKS = ("logging",)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of `native`."""
    parser.add_argument("benchmark", nargs="?", metavar="logging", help="the benchmark")
    parser.add_argument("--quick", action="store_true", help="fewer loops, less time for each")
    lists = {
        "--variants": ("A,B", "ways of writing an entry (all)", options.names),
        "--entries": ("N,N", "entries before a fence (1,2,4,8,16)", options.wholes),
        "--fences": ("A,B", "sfence, mfence, lock, none (sfence)", options.names),
        "--values": ("A,B", "precomputed, xorshift, rand (xorshift)", options.names),
        "--arrays": ("A,B", "sizes: 8MiB, 256KiB, 1/4llc, 2llc (8MiB)", options.names),
        "--logs": ("A,B", "linear, twice the array, or circular (linear)", options.names),
        "--logging": ("A,B", "redo, undo (redo)", options.names),
        "--array-writes": ("A,B", "cached, or flushed: true durability (cached)", options.names),
        "--threads": ("N,N", "threads, each on a processor of its own (1)", options.wholes),
    }
    for flag, (metavar, text, read) in lists.items():
        parser.add_argument(flag, type=read, metavar=metavar, help=text)
    parser.add_argument(
        "--whole", action="store_true", help="each run is a pass over the array, as published"
    )
    parser.add_argument(
        "--against", metavar="M", help="also simulate the same loops on this machine"
    )
    parser.add_argument("--plot", metavar="FILE", help="also draw a figure: .png, .svg or .pdf")
    options.add_common(parser)


def call(args: argparse.Namespace) -> int:
    """Answer `native`."""
    if args.benchmark not in BENCHMARKS:
        asked = "needs a benchmark" if args.benchmark is None else f"has no `{args.benchmark}`"
        raise InputError(f"`indelible native` {asked}; type `indelible native logging`")
    if args.plot is not None:
        plots.check(args.plot, "--plot")
        options.require_writable("--plot", args.plot)

    def show(answer: native.Measurements) -> int:
        options.show_answer(args, answer)
        if answer.interrupted:
            outputs.tell_unwritten(args.plot)
        elif args.plot is not None:
            plots.save(native_plot.figure, answer, args.plot)
            if not args.json:
                options.show(f"\nfigure: {args.plot}")
        return 0

    own = ("variants", "entries", "fences", "values", "arrays", "logs", "logging", "array_writes")
    words = options.given(args, *own, "threads", "quick", "whole", "seed", "against")
    return options.answer(lambda: native.logging(**words), show)
