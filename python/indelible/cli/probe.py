"""`indelible probe`."""

from __future__ import annotations

import argparse

import indelible
from indelible.cli import options, outputs
from indelible.plots import probe as probe_plot
from indelible.probes import GROUPS
from indelible.results.probe import Probed
from indelible.text import probe as probe_text
from indelible.verbs.probe import MACHINE

HELP = "latency and bandwidth of a machine's memory, next to measurements of real ones"
DESCRIPTION = (
    "Measure the memory of a simulated machine as papers measured real ones: the\n"
    "latency of loads that wait for each other and of a store until it is durable,\n"
    "the bandwidth of accesses that do not wait, and the bytes programmed for each\n"
    "byte stored. Next to machine `optane` stand measurements of Optane DIMMs. What\n"
    "does not come out is marked: docs/model.md says why. Nothing is logged: the\n"
    "probes use the design `undo@x86`, but only its clwb and sfence."
)
EPILOG = """\
examples:
  indelible probe
  indelible probe --machines silo,ssp,cxl
  indelible probe --only bandwidth --set controller.write_buffer_size=64
  indelible probe --machines optane,cxl --plot memories.pdf --csv memories.csv
  indelible probe --machines ./far.toml --json
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of `probe`."""
    parser.add_argument(
        "--machines",
        type=options.names,
        default=[MACHINE],
        metavar="A,B",
        help=f"presets or files, shown side by side, or `all` ({MACHINE})",
    )
    parser.add_argument(
        "--only", type=options.names, metavar="G,H", help=f"some of {', '.join(GROUPS)} (all)"
    )
    parser.add_argument(
        "--set",
        type=options.setting,
        action="append",
        default=[],
        metavar="SECTION.FIELD=VALUE",
        help="override a field of the machines; may be repeated",
    )
    outputs.add_options(parser)
    options.add_common(parser)


def call(args: argparse.Namespace) -> int:
    """Answer `probe`."""
    outputs.check(args)

    def show(answer: Probed) -> int:
        outputs.show(args, answer, probe_text.probed, probe_plot.figure)
        return 0

    words = options.given(args, "machines", "only", "set", "seed")
    return options.answer(lambda: indelible.probe(curves=args.plot is not None, **words), show)
