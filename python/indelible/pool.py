"""Many jobs at the same time, a thread each: on the cores of this computer, or on a cluster.

The simulator runs without Python's lock. For a job that runs elsewhere, a thread here waits for the
answer. The results are in the order of the jobs, whatever order they end in.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextvars import copy_context
from queue import Empty, SimpleQueue
from typing import Any, Protocol, TypeAlias, TypeVar

from indelible import extension
from indelible.errors import HostError, InputError, InternalError
from indelible.progress import Meter
from indelible.scripts import held_still, is_script, running
from indelible.work import Control, Job

Answer = TypeVar("Answer")

#: The environment variable that says how many jobs may run at the same time.
JOBS_VARIABLE = "INDELIBLE_JOBS"

#: More digits than any number of jobs has.
DIGITS_MAX = 30

#: The seconds that jobs may take, once told to stop, to return the results that they have.
GRACE_SECONDS = 0.7

#: The queue of finished jobs: the index of each, and its answer or the error that it raised.
Finished: TypeAlias = SimpleQueue[tuple[int, dict[str, Any] | BaseException]]


class Place(Protocol):
    """Where jobs run."""

    def at_once(self, jobs: Sequence[Any]) -> int:
        """Return how many of the jobs may be under way at the same time."""

    def controls(self, jobs: Sequence[Any]) -> Sequence[Control]:
        """Return the control to start each job with, or refuse a job that cannot run there."""

    def state(self) -> str:
        """Return the text that is shown beside the progress of the jobs."""


class Here:
    """The cores of this computer."""

    def at_once(self, jobs: Sequence[Job]) -> int:
        """Return how many jobs of any kind may run at the same time."""
        return jobs_at_once()

    def controls(self, jobs: Sequence[Job]) -> Sequence[Control]:
        """Return a control of the simulator for each."""
        return [extension.core.Control(jobs_at_once()) for _ in jobs]

    def state(self) -> str:
        """Return no text."""
        return ""


class Lost(Exception):  # noqa: N818
    """A job that its place failed to do, which says nothing about the request.

    An `InputError` would be an answer: that the campaign is impossible.
    """


class Interrupted(KeyboardInterrupt):
    """Ctrl-C, with the results up to then in `partial`."""

    def __init__(self, partial: Any) -> None:  # noqa: ANN401
        super().__init__("interrupted")
        self.partial = partial


def workers_available() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def jobs_at_once() -> int:
    """Return how many jobs run at the same time: one a core, unless `INDELIBLE_JOBS` says fewer.

    A job with large data takes gigabytes, and nothing here knows how many before it runs.
    """
    said = os.environ.get(JOBS_VARIABLE)
    if not said:
        return workers_available()
    # Python refuses to read some thousand digits.
    is_whole = said.isascii() and said.isdigit() and len(said) <= DIGITS_MAX
    if not is_whole or int(said) < 1:
        raise InputError(f"{JOBS_VARIABLE} must be a whole number from 1 up, not `{said}`")
    return min(int(said), workers_available())


def execute(
    jobs: Sequence[Job], what: str = "runs", place: Place | None = None
) -> list[dict[str, Any]]:
    """Do the jobs, starting them in their order; the first error stops them all.

    Ctrl-C stops them too and raises `Interrupted`, with the results of those that had ended or
    that stopped in time, and `None` for the others. So does a `KeyboardInterrupt` of a job.
    """
    with held_still():
        return _execute(jobs, what, place or Here())


def execute_one(
    job: Job,
    answered: Callable[[dict[str, Any]], Answer],
    what: str = "runs",
    place: Place | None = None,
) -> Answer:
    """Do one job, and return what `answered` makes of its answer.

    `Interrupted` has in `partial` what it makes of the results up to then, or None without any.
    """
    try:
        (data,) = execute([job], what=what, place=place)
    except Interrupted as interrupt:
        (data,) = interrupt.partial
        raise Interrupted(data and answered(data)) from None
    return answered(data)


def _execute(jobs: Sequence[Job], what: str, place: Place) -> list[dict[str, Any]]:
    at_once, controls = place.at_once(jobs), place.controls(jobs)
    waiting = Waiting([_is_script(job) for job in jobs])
    finished: Finished = SimpleQueue()
    results: list[dict[str, Any] | None] = [None] * len(jobs)

    def work() -> None:
        while (index := waiting.take()) is not None:
            try:
                answer: dict[str, Any] | BaseException = jobs[index].start(controls[index])
            # Also an error that is no `Exception`: the caller waits for each job's answer.
            except BaseException as error:
                answer = error
            waiting.done(index)
            finished.put((index, answer))

    # Each thread finds the classes that this call has named.
    contexts = [copy_context() for _ in range(min(at_once, len(jobs)))]
    threads = [threading.Thread(target=own.run, args=(work,), daemon=True) for own in contexts]
    try:
        _start(threads)
        with Meter(controls, what) as meter:
            for _ in jobs:
                index, result = _await(finished, meter, place)
                if isinstance(result, BaseException):
                    raise _explained(result, jobs[index])
                meter.finish(index)
                results[index] = result
                # Short jobs end so often that the wait above never times out.
                meter.update(place.state())
        # All results are here, so the threads are about to end.
        for thread in threads:
            if thread.ident is not None:
                thread.join()
    except KeyboardInterrupt:
        waiting.stop()
        _cancel(controls)
        _collect(finished, threads, results)
        raise Interrupted(results) from None
    except BaseException:
        waiting.stop()
        _cancel(controls)
        _collect(finished, threads, results)
        raise
    return [result for result in results if result is not None]


class Waiting:
    """The jobs that have not begun, in their order.

    Two designs in Python at the same time are slower than one after the other, since both wait for
    Python's lock. So while one runs, the next job is one with a design in Rust, if there is any.
    """

    def __init__(self, is_script: Sequence[bool]) -> None:
        self._is_script = is_script
        self._scripts: deque[int] = deque()
        self._others: deque[int] = deque()
        for index, own in enumerate(is_script):
            (self._scripts if own else self._others).append(index)
        self._changed = threading.Condition()
        self._script_runs = False

    def take(self) -> int | None:
        """Wait until a job may begin and return it; None if there is none left."""
        with self._changed:
            while self._scripts or self._others:
                if (first := self._first()) is not None:
                    index = first.popleft()
                    self._script_runs |= self._is_script[index]
                    return index
                self._changed.wait()
        return None

    def _first(self) -> deque[int] | None:
        """Return the queue of the first job that may begin, or None if none may."""
        kinds = (self._others,) if self._script_runs else (self._scripts, self._others)
        return min((kind for kind in kinds if kind), key=lambda kind: kind[0], default=None)

    def done(self, index: int) -> None:
        """Note that a job has ended."""
        with self._changed:
            self._script_runs &= not self._is_script[index]
            self._changed.notify_all()

    def stop(self) -> None:
        """Let no further job begin."""
        with self._changed:
            self._scripts.clear()
            self._others.clear()
            self._changed.notify_all()


def _is_script(job: Job) -> bool:
    asked = getattr(job, "experiment", None)
    return asked is not None and is_script(asked.design)


def _start(threads: Sequence[threading.Thread]) -> None:
    """Start the threads that this computer lets a process have; one does all jobs, too."""
    for count, thread in enumerate(threads):
        try:
            thread.start()
        except RuntimeError as error:
            if count == 0:
                raise HostError(f"this computer cannot start a thread: {error}") from None
            return


def _await(
    finished: Finished, meter: Meter, place: Place
) -> tuple[int, dict[str, Any] | BaseException]:
    while True:
        try:
            return finished.get(timeout=0.1)
        except Empty:
            meter.update(place.state())


def _cancel(controls: Sequence[Control]) -> None:
    for control in controls:
        control.cancel()


def _collect(
    finished: Finished,
    threads: Sequence[threading.Thread],
    results: list[dict[str, Any] | None],
) -> None:
    """Wait a little for the jobs that were told to stop, and take their results."""
    deadline = time.monotonic() + GRACE_SECONDS
    for thread in threads:
        if thread.ident is not None:
            thread.join(max(deadline - time.monotonic(), 0.0))
    # A hook of a design in Python that does not return cannot be stopped.
    busy = [thread.ident for thread in threads if thread.is_alive() and thread.ident is not None]
    for place in filter(None, map(running, busy)):
        print(f"indelible: did not stop: {place}", file=sys.stderr)
    while not finished.empty():
        index, result = finished.get()
        if not isinstance(result, BaseException):
            results[index] = result


def _explained(error: BaseException, job: Job) -> BaseException:
    if isinstance(error, InternalError):
        return InternalError(f"{error}\nrepeat with: {job.command()}")
    if isinstance(error, Lost):
        return InputError(str(error))
    return error
