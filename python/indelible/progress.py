"""A progress bar for commands that take longer than two seconds, on stderr if it is a terminal.

In a notebook, which has no terminal, a line below the cell shows the progress. Elsewhere, as in the
log of a batch job, stderr gets a line now and then.
"""

from __future__ import annotations

import importlib
import math
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from datetime import timedelta
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

#: The seconds after which a command shows its progress.
PATIENCE_SECONDS = 2.0

#: The seconds between two drawings of the bar, and between two messages to a notebook.
BAR_SECONDS = 0.1
NOTEBOOK_SECONDS = 0.5

#: The seconds before the first line on a stderr that is no terminal, and between two of them (ours:
#: few in a log, and soon enough that nobody takes the command for dead).
LINE_SECONDS = 30.0

#: What such a line begins with: the command that is answered.
_command: ContextVar[str] = ContextVar("command", default="indelible")


@contextmanager
def named(command: str) -> Iterator[None]:
    """Have lines of progress begin with the name of a command."""
    token = _command.set(command)
    try:
        yield
    finally:
        _command.reset(token)


class Watched(Protocol):
    """The progress of one job, for the bar."""

    @property
    def done(self) -> int:
        """The amount of work that is done."""

    @property
    def total(self) -> int:
        """The total amount of work; 0 while that is not known."""


class Meter:
    """Shows the progress of a set of jobs; use it in a `with` and call `update` now and then."""

    def __init__(self, jobs: Sequence[Watched], what: str) -> None:
        self._jobs = jobs
        self._what = what
        self._finished: set[int] = set()
        self._start = time.monotonic()
        self._terminal = sys.stderr is not None and sys.stderr.isatty()
        self._notebook = None if self._terminal else notebook()
        self._line: Any = None
        self._told = -math.inf
        self._bar: Progress | None = None
        self._task: TaskID | None = None

    def __enter__(self) -> Meter:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.stop()
        if self._line is not None:
            self._line.update(_plain(""), raw=True)

    def finish(self, job: int) -> None:
        """Count a job as finished, whatever its own numbers say."""
        self._finished.add(job)

    def update(self, state: str = "") -> None:
        """Show the progress, if it is time for that, and the state of the place of the jobs."""
        first, every = self._when()
        now = time.monotonic()
        if now - self._start < first or now - self._told < every:
            return
        self._told = now
        # Jobs on a cluster have no `part`.
        parts = [state, *(getattr(job, "part", "") for job in self._jobs)]
        done = ", ".join([self._what, *filter(None, parts)])
        count, total = len(self._finished), len(self._jobs)
        if self._notebook is not None:
            self._tell(f"{count}/{total} {done}")
        elif self._terminal:
            self._draw(f"{count}/{total} {done}")
        else:
            self._print(f"{count} of {total} {done}")

    def _when(self) -> tuple[float, float]:
        """Return the seconds before the progress is shown first, and between two times."""
        if self._terminal:
            return PATIENCE_SECONDS, BAR_SECONDS
        if self._notebook is not None:
            return PATIENCE_SECONDS, NOTEBOOK_SECONDS
        return LINE_SECONDS, LINE_SECONDS

    def _draw(self, done: str) -> None:
        """Draw the bar on a terminal."""
        if self._bar is None or self._task is None:
            self._bar, self._task = self._open()
        self._bar.update(self._task, completed=self.fraction(), done=done, refresh=True)

    def _print(self, done: str) -> None:
        """Print a line on stderr, if that is open and has room: progress is worth no error."""
        if sys.stderr is None:
            return
        after = timedelta(seconds=int(self._told - self._start))
        with suppress(OSError):
            line = f"{_command.get()}: {done}, {self.fraction():.0%}, {after}"
            print(line, file=sys.stderr, flush=True)

    def _tell(self, done: str) -> None:
        """Show the progress in a notebook, in place of what was shown before."""
        shown = _plain(f"{done}  {self.fraction():.0%}  {self._told - self._start:.0f} s")
        if self._line is None and self._notebook is not None:
            self._line = self._notebook.display(shown, raw=True, display_id=True)
        elif self._line is not None:
            self._line.update(shown, raw=True)

    def fraction(self) -> float:
        """Return the part of the work that is done, each job counting the same."""
        parts = [
            1.0 if index in self._finished else min(job.done / job.total, 1.0) if job.total else 0.0
            for index, job in enumerate(self._jobs)
        ]
        return sum(parts) / len(parts)

    def _open(self) -> tuple[Progress, TaskID]:
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            Progress,
            TaskProgressColumn,
            TextColumn,
            TimeElapsedColumn,
            TimeRemainingColumn,
        )

        bar = Progress(
            TextColumn("{task.fields[done]}"),
            BarColumn(bar_width=30),
            TaskProgressColumn(),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            console=Console(stderr=True),
            transient=True,
            auto_refresh=False,
        )
        bar.start()
        return bar, bar.add_task(self._what, total=1.0, done="")


def notebook() -> Any:  # noqa: ANN401
    """Return the module that shows output below a notebook's cell; None outside of notebooks."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    # IPython in a terminal has no kernel.
    return importlib.import_module("IPython.display") if hasattr(shell, "kernel") else None


def _plain(text: str) -> dict[str, str]:
    return {"text/plain": text}
