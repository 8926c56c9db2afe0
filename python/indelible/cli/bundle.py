"""`indelible bundle`, and `indelible verify`, which repeats the command of one."""

from __future__ import annotations

import argparse
import io
import os
import shlex
import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import Any

from indelible import bundles
from indelible.cli import INTERRUPTED, complain, letters, options
from indelible.errors import InputError
from indelible.files import naming

HELP = "run a command and keep all that it reads and answers, for others to repeat"
DESCRIPTION = (
    "Run a command, and keep in a new folder its words, the files that these name\n"
    "(machines, scripts, traces, litmus tests, designs in Python with what they\n"
    "import from their folder), what it printed, its answer as JSON, and what --plot,\n"
    "--csv, --table and --report wrote: the artefact of a paper. `indelible verify\n"
    "FOLDER` repeats it anywhere and says whether the answer is the same. The\n"
    f"commands are {', '.join(bundles.BUNDLED)}."
)
EPILOG = """\
examples:
  indelible bundle figure5 -- compare --designs undo@x86,silo \\
      --workloads hash,btree --plot figure5.pdf
  indelible bundle table2 -- sweep --designs lad,./mine.py --workloads hash \\
      --machine ./far.toml --vary cores=1,2,4,8
  indelible bundle tests -- crash --design ./mine.py --workload scribble \\
      --mutants
  indelible verify figure5
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of `bundle`."""
    parser.add_argument("folder", nargs="?", metavar="FOLDER", help="the folder to create")
    parser.add_argument(
        "--json",
        action="store_true",
        help="print one JSON object and nothing else; before `--`",
    )
    parser.add_argument(
        "words", nargs=argparse.REMAINDER, metavar="-- COMMAND ...", help="the command to run"
    )


def call(args: argparse.Namespace) -> int:
    """Answer `bundle`."""
    words, is_json = list(args.words), args.json
    # argparse passes on the words behind the folder unread, a `--json` among them.
    while words[:1] == ["--json"]:
        words, is_json = words[1:], True
    if words and words[0] != "--" and words[0].startswith("-"):
        raise InputError(f"unknown option `{words[0]}` of `indelible bundle`")
    words = words[1:] if words[:1] == ["--"] else words
    if args.folder in (None, "--") or not words:
        raise InputError("`indelible bundle` takes a folder and a command: FOLDER -- COMMAND ...")
    folder = Path(args.folder)
    command = bundles.split(words, folder)
    if folder.exists():
        raise InputError(f"{folder} already exists; choose another name")
    with naming(folder):
        folder.mkdir()
    try:
        code = _made(folder, command, show=not is_json)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    if not (folder / bundles.MANIFEST).exists():
        shutil.rmtree(folder, ignore_errors=True)
        complain(f"{folder} was not made: the command was not completed")
        return code
    if is_json:
        manifest, _ = bundles.read(folder)
        said = {"folder": str(folder), **manifest, "command": bundles.command_of(manifest)}
        options.show_json(said)
    else:
        options.show(
            f"\nbundle: {folder}; `indelible verify {shlex.quote(args.folder)}` repeats it"
        )
    return code


def _made(folder: Path, command: bundles.Words, *, show: bool) -> int:
    """Run a command, and write its bundle; return its exit code."""
    bundles.copy(command, folder)
    start = time.monotonic()
    code, output, answer = done(folder, command.own, show=show)
    took = time.monotonic() - start
    if answer is not None and code != INTERRUPTED:
        bundles.write(folder, command, answer, output, code, took)
    return code


def done(folder: Path, words: Sequence[str], *, show: bool) -> tuple[int, str, Any]:
    """Run a command in a folder; return its exit code, its output, and its answer, if any."""
    from indelible.cli import parser

    heard: list[Any] = []
    printed = _Printed(sys.stdout if show else None)
    with _within(folder), options.listening(heard.append), redirect_stdout(printed):
        args = parser.parse(words)
        code = args.call(args)
    return code, printed.getvalue(), heard[-1].json() if heard else None


class _Printed(io.StringIO):
    """The output of a command, which may also be passed on to another stream."""

    def __init__(self, also: Any) -> None:  # noqa: ANN401
        super().__init__()
        self._also = also

    def write(self, text: str) -> int:
        if self._also is not None:
            self._also.write(letters.fitted(text, self._also))
        return super().write(text)


@contextmanager
def _within(folder: Path) -> Iterator[None]:
    """Make a folder the current one, without leaving Python's compiled files in it.

    These are no part of a bundle, and would contain the names of this computer's folders.
    """
    before, compiles = Path.cwd(), sys.dont_write_bytecode
    with naming(folder):
        os.chdir(folder)
    sys.dont_write_bytecode = True
    try:
        yield
    finally:
        sys.dont_write_bytecode = compiles
        os.chdir(before)
