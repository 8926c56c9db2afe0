"""The command `indelible`: words in, text or one JSON object out.

Exit codes: 0 fine, 1 a violation was found, 2 bad input, 3 a bug of ours, 130 interrupted.
"""

from __future__ import annotations

import importlib
import os
import sys
import threading
from collections.abc import Sequence
from typing import TextIO

from indelible.cli import letters

DEBUG = "INDELIBLE_DEBUG"

BAD_INPUT = 2
BUG = 3
INTERRUPTED = 130
BROKEN_PIPE = 141


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command with these words, or with those of the process; return the exit code."""
    argv = sys.argv[1:] if argv is None else list(argv)
    if sys.stdout is None:
        complain("error: standard output is closed")
        return BAD_INPUT
    try:
        code = _answer(argv)
        sys.stdout.flush()
    except KeyboardInterrupt:
        complain("interrupted")
        code = INTERRUPTED
    except BrokenPipeError:
        # The reader of our output has gone; Python's flush at exit must not complain.
        _discard(sys.stdout)
        code = BROKEN_PIPE
    except OSError as error:
        # A full disk, say. The flush of the rest at exit must not complain again.
        _discard(sys.stdout)
        complain(f"error: {_refused(error)}")
        code = BAD_INPUT
    return code


def leave(code: int) -> None:
    """End the process if a simulation that did not stop in time would keep the user waiting."""
    if any(thread.daemon for thread in threading.enumerate()):
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
        os._exit(code)


def _answer(argv: Sequence[str]) -> int:
    try:
        importlib.import_module("indelible._core")
    except ImportError as error:
        complain(f"error: the simulator is not built: run `make build` ({error})")
        return BAD_INPUT
    from indelible import progress
    from indelible.cli import parser
    from indelible.errors import InputError

    try:
        args = parser.parse(argv)
        with progress.named(args.command):
            return args.call(args)
    except SystemExit as end:
        # argparse leaves in this way after --help and --version.
        return end.code if isinstance(end.code, int) else BAD_INPUT
    except InputError as error:
        complain(f"error: {error}")
        return BAD_INPUT
    except OSError:
        raise
    except Exception as error:
        if os.environ.get(DEBUG):
            raise
        complain(_bug(error, argv))
        return BUG


def _discard(stream: TextIO) -> None:
    """Discard the contents of a stream's buffer, and everything written later."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _refused(error: OSError) -> str:
    """Return an error of the host as a sentence that names the file."""
    place = "the output" if error.filename is None else str(error.filename)
    return f"{place}: {(error.strerror or str(error)).lower()}"


def _bug(error: Exception, argv: Sequence[str]) -> str:
    import shlex

    from indelible.errors import InternalError

    kind = "" if isinstance(error, InternalError) else f"{type(error).__name__}: "
    return (
        f"internal error: {kind}{error}\n"
        "please report this, unless it is a mistake in a design or workload that you are writing\n"
        f"command: {shlex.join(['indelible', *argv])}\n"
        f"{DEBUG}=1 in the environment shows where it happened"
    )


def complain(sentence: str) -> None:
    """Print a sentence about an error, or about something left undone, on stderr, if it is open."""
    if sys.stderr is None:
        return
    try:
        print(letters.fitted(f"indelible: {sentence}", sys.stderr), file=sys.stderr, flush=True)
    except OSError:
        # On a full disk, say, only the exit code reports the error.
        _discard(sys.stderr)
