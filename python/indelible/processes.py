"""Programs of the user's that are waited for, and stopped with all that they have started."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any

#: The seconds between two calls of `until`.
STEP_SECONDS = 0.1

#: The seconds within which a program is gone that was killed, unless it is another user's.
GONE_SECONDS = 1.0


class StopError(Exception):
    """A program that was stopped, with the reason as text."""


def finish(program: subprocess.Popen[Any], until: Callable[[], str | None] | None = None) -> int:
    """Wait for a program that was started, and return its exit code.

    The program is stopped, with all that it has started, once `until` returns a reason, and if
    waiting is interrupted, as by Ctrl-C. What a program leaves running at its end runs on.

    Raises:
        StopError: with the reason of `until`.
    """
    try:
        if until is None:
            return program.wait()
        while (code := _wait(program, STEP_SECONDS)) is None:
            if (reason := until()) is not None:
                raise StopError(reason)
        return code
    except BaseException:
        # The number of a process that has ended may be another's by now.
        if program.returncode is None:
            _stop(program)
        raise


def _wait(program: subprocess.Popen[Any], seconds: float) -> int | None:
    """Wait for so long; return the exit code of the program, or None if it still runs."""
    try:
        return program.wait(seconds)
    except subprocess.TimeoutExpired:
        return None


def _stop(program: subprocess.Popen[Any]) -> None:
    """Kill a program with all that it has started.

    Its process group would not do: a program in the foreground of a terminal is in ours, and what
    it has started may be in others. What is held starts nothing more, so none is missed.
    """
    held: set[int] = set()
    while found := _started(program.pid) - held:
        _send(found, signal.SIGSTOP)
        held |= found
    _send(held, signal.SIGKILL)
    _wait(program, GONE_SECONDS)


def _send(processes: Iterable[int], number: signal.Signals) -> None:
    for process in processes:
        # It may be gone by now, or be another user's, as of `sudo`.
        with suppress(ProcessLookupError, PermissionError):
            os.kill(process, number)


def _started(program: int) -> set[int]:
    """Return a process, those that descend from it, and those of its session if it has its own."""
    children: dict[int, list[int]] = {}
    found, begun = set(), [program]
    for process, parent, session in _processes():
        children.setdefault(parent, []).append(process)
        begun += [process] if session == program else []
    while begun:
        process = begun.pop()
        if process not in found:
            found.add(process)
            begun += children.get(process, [])
    return found


def _processes() -> Iterable[tuple[int, int, int]]:
    """Return each process of this computer with its parent and its session (proc(5))."""
    with suppress(FileNotFoundError):
        for name in filter(str.isdigit, os.listdir("/proc")):
            # It may be gone by now.
            with suppress(OSError), open(f"/proc/{name}/stat", "rb") as file:
                # The name of the program, in parentheses, may contain anything.
                _, parent, _, session = file.read().rpartition(b")")[2].split()[:4]
                yield int(name), int(parent), int(session)
