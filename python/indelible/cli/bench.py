"""`indelible bench`."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from indelible import benchmark, text
from indelible.cli import options
from indelible.text import benchmark as benchmark_text

HELP = "how fast the simulator itself is"
DESCRIPTION = (
    "Measure memory operations per second on this computer, with the simulator and on\n"
    "plain memory, the time of each design next to that of native, and peak memory,\n"
    "with a process for each cell."
)
EPILOG = """\
examples:
  indelible bench
  indelible bench --designs fwb,silo
  indelible bench --quick --json
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of `bench`."""
    parser.add_argument(
        "--designs",
        type=options.names,
        metavar="A,B",
        help="only these, next to native (all)",
    )
    parser.add_argument(
        "--quick", action="store_true", help=f"{benchmark.QUICK} times fewer transactions"
    )
    options.add_common(parser)


def call(args: argparse.Namespace) -> int:
    """Answer `bench`."""
    rows: list[dict[str, Any]] = []

    def show(cancelled: bool) -> None:
        if args.json:
            options.show_json({"rows": rows, "cancelled": cancelled})
        else:
            options.show(benchmark_text.bench(rows, text.terminal_width()))

    cells = len(benchmark.cells(args.designs))
    try:
        for row in benchmark.measure(args.quick, args.seed, args.designs):
            rows.append(row)
            if not args.json and sys.stderr is not None and sys.stderr.isatty():
                print(f"\r{len(rows)}/{cells}", end="\r", file=sys.stderr, flush=True)
    except KeyboardInterrupt:
        show(cancelled=True)
        raise
    show(cancelled=False)
    return 0
