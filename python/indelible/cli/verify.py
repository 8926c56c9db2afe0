"""`indelible verify`."""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from indelible import bundles
from indelible.cli import INTERRUPTED, bundle, options
from indelible.errors import InputError

HELP = "repeat the command of a bundle and compare the answers"
DESCRIPTION = (
    "Repeat the command of a bundle, in its folder, and compare its answer with that\n"
    "in the bundle: every value but those of the host. Exit code 1 if something\n"
    "differs. Nothing in the folder changes."
)
EPILOG = """\
examples:
  indelible verify figure5
  indelible verify figure5 --json
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of `verify`."""
    parser.add_argument(
        "folder", nargs="?", metavar="FOLDER", help="what `indelible bundle` created"
    )
    options.add_json(parser)


def call(args: argparse.Namespace) -> int:
    """Answer `verify`."""
    if args.folder is None:
        raise InputError("`indelible verify` takes a folder that `indelible bundle` made")
    folder = Path(args.folder)
    manifest, then = bundles.read(folder)
    start = time.monotonic()
    code, _, now = bundle.done(folder, manifest["command"], show=False)
    if code == INTERRUPTED:
        return code
    if now is None:
        raise InputError(f"{folder}: its command has no answer")
    answer = bundles.verified(manifest, then, now, code, time.monotonic() - start)
    options.show_answer(args, answer)
    return 0 if answer.passed else 1
