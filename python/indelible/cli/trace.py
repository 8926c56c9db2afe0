"""`indelible trace`."""

from __future__ import annotations

import argparse
import sys

import indelible
from indelible.cli import BAD_INPUT, complain, options, outputs
from indelible.errors import InputError
from indelible.experiment import CRASH_MACHINE, MACHINE, TIMELINE_LENGTH, TIMELINE_START
from indelible.results.timeline import Timeline
from indelible.scripts import called
from indelible.text import timeline as timeline_text

HELP = "what happens during part of a run, for Perfetto or as a list"
DESCRIPTION = (
    "Run a workload on a design and record what happens in a part of it: what each\n"
    "core stores, flushes, fetches and waits for, what each write-pending queue\n"
    "holds, what each bank does, and the design's own events. The file is a trace for\n"
    "https://ui.perfetto.dev; --list prints the same. With --event it is the part\n"
    "before a power cut of `indelible crash`; of one with --check, give its cycle:\n"
    "--for 70cycles ends behind cycle 69."
)
EPILOG = """\
examples:
  indelible trace --design silo --workload btree --cores 8
  indelible trace --design undo@x86 --workload hash --from 50us --for 5us \\
      --out undo.pftrace
  indelible trace --design silo --workload hash --cores 1 --for 1us --list
  indelible trace --design undo@x86 --workload hash --txs 20 \\
      --without flush_log --event 17 --list
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of `trace`."""
    options.add_cell(parser)
    options.add_cores(parser, "all that the machine has; with --event 2")
    parser.add_argument(
        "--from",
        dest="start",
        default=TIMELINE_START,
        metavar="TIME",
        help="start of the window, in simulated time since measuring began, such as 5us or"
        f" 900cycles ({TIMELINE_START})",
    )
    parser.add_argument(
        "--for",
        dest="length",
        default=TIMELINE_LENGTH,
        metavar="TIME",
        help=f"length of the window ({TIMELINE_LENGTH})",
    )
    parser.add_argument(
        "--event",
        type=options.whole(1),
        metavar="N",
        help="end at the power cut that `crash` without --check calls event N, and begin --for"
        f" before it; the machine is then {CRASH_MACHINE} unless given",
    )
    parser.add_argument(
        "--address",
        metavar="ADDRESS",
        help="only events that touch the cache line at this address, such as 0x3f1080",
    )
    parser.add_argument("--without", metavar="RULE", help="switch off one rule of the design")
    parser.add_argument(
        "--out", metavar="FILE", help="the trace for Perfetto (DESIGN-WORKLOAD.pftrace)"
    )
    parser.add_argument(
        "--list", action="store_true", help="print the events; write a file only with --out"
    )
    options.add_experiment(parser, MACHINE, "2,000; with --event 500")
    parser.set_defaults(machine=None)
    options.add_common(parser)


def call(args: argparse.Namespace) -> int:
    """Answer `trace`."""
    options.require_cell(args)
    if args.event is not None and args.start != TIMELINE_START:
        raise InputError("--from and --event both say where the window begins; drop one")
    if args.out is not None:
        options.require_writable("--out", args.out)
        options.require_apart(args, {"--out": args.out})

    def show(answer: Timeline) -> int:
        path = args.out
        if path is None and not (args.list or args.json):
            run = answer.data["run"]
            # A design in a file is called as it is in tables: a path names no file in this folder.
            path = f"{called(run['design'])}-{run['workload']}.pftrace"
            options.require_writable("--out", path)
        if answer.interrupted:
            # No file is written of an interrupted recording.
            outputs.tell_unwritten(path)
            path = None
        elif path is not None and not answer.events:
            complain(f"nothing happened in the window, so nothing was written to {path}")
            path = None
        if path is not None:
            answer.save(path)
        if args.json:
            options.show_json(answer.json() | {"file": path})
        elif args.list:
            # In a file or a pipe each event is one line, so that a search finds all of it.
            options.show(timeline_text.listed(answer, whole=not sys.stdout.isatty()))
        else:
            options.show(timeline_text.summary(answer, path))
        if answer.error is not None:
            complain(f"error: {answer.error}")
            return BAD_INPUT
        return 0

    own = ("design", "workload", "start", "length", "event", "address", "without", "cores")
    words = options.given(args, *own, *options.EXPERIMENT)
    return options.answer(lambda: indelible.trace(**words), show)
