"""Many jobs beside each other, a thread each: on the cores of this computer, or on a cluster.

The simulator needs no lock of Python's. Of a job that runs elsewhere a thread here waits for the
answer. The results come in the order of the jobs, whatever order they end in.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections import deque
from collections.abc import Iterable, Sequence
from queue import Empty, SimpleQueue
from typing import Any, Protocol, TypeAlias

from indelible import experiment
from indelible.experiment import InputError, InternalError
from indelible.progress import Meter, Watched
from indelible.scripts import held_still, is_script, running

#: The environment variable that says how many jobs may run beside each other.
JOBS_VARIABLE = "INDELIBLE_JOBS"

#: How long jobs that were told to stop may take to hand in what they have.
GRACE_SECONDS = 0.7

#: What jobs hand in: which one it is, and its answer or what it raised.
Finished: TypeAlias = SimpleQueue[tuple[int, dict[str, Any] | BaseException]]


class Control(Watched, Protocol):
    """What watches and stops a job from another thread."""

    def cancel(self) -> None:
        """Ask the job to stop and to return what it has."""


class Job(Protocol):
    """An experiment, a campaign, or anything else that starts, stops and can be repeated."""

    def start(self, control: Any) -> dict[str, Any]:  # noqa: ANN401
        """Do the work; `control` stops it from another thread."""

    def command(self) -> str:
        """Return the command line that repeats the work."""


class Place(Protocol):
    """Where jobs run."""

    def at_once(self, jobs: Sequence[Any]) -> int:
        """Return how many of them may be under way beside each other."""

    def controls(self, jobs: Sequence[Any]) -> Sequence[Control]:
        """Return what each job is started with, or refuse a job that cannot run there."""

    def state(self) -> str:
        """Return what stands beside how far the jobs are."""


class Here:
    """The cores of this computer."""

    def at_once(self, jobs: Sequence[Job]) -> int:
        """Return how many may run beside each other, whichever they are."""
        return jobs_at_once()

    def controls(self, jobs: Sequence[Job]) -> Sequence[Control]:
        """Return a control of the simulator for each."""
        return [experiment.core.Control(jobs_at_once()) for _ in jobs]

    def state(self) -> str:
        """Return nothing."""
        return ""


class Lost(Exception):  # noqa: N818
    """A job that the place where it ran did not do, which is no answer to what was asked.

    As an `InputError` it would be one: that this campaign cannot be had.
    """


class Interrupted(KeyboardInterrupt):
    """Ctrl-C, with what there was by then in `partial`."""

    def __init__(self, partial: Any) -> None:  # noqa: ANN401
        super().__init__("interrupted")
        self.partial = partial


def workers_available() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def jobs_at_once() -> int:
    """Return how many jobs run beside each other: a core each, unless `INDELIBLE_JOBS` says less.

    A job with large data takes gigabytes, and nothing here knows how many before it runs.
    """
    said = os.environ.get(JOBS_VARIABLE)
    if not said:
        return workers_available()
    if not said.isascii() or not said.isdigit() or int(said) < 1:
        raise InputError(f"{JOBS_VARIABLE} is `{said}`; it takes a whole number from 1 on")
    return min(int(said), workers_available())


def execute(
    jobs: Sequence[Job],
    order: Iterable[int] | None = None,
    what: str = "runs",
    place: Place | None = None,
) -> list[dict[str, Any]]:
    """Do the jobs, starting them in the given order; the first error stops them all.

    Ctrl-C stops them too and raises `Interrupted`, with the results of those that had ended or
    that stopped in time, and `None` for the others. So does a `KeyboardInterrupt` of a job.
    """
    with held_still():
        return _execute(jobs, range(len(jobs)) if order is None else order, what, place or Here())


def _execute(
    jobs: Sequence[Job], order: Iterable[int], what: str, place: Place
) -> list[dict[str, Any]]:
    at_once, controls = place.at_once(jobs), place.controls(jobs)
    waiting = Waiting(order, [_is_script(job) for job in jobs])
    finished: Finished = SimpleQueue()
    results: list[dict[str, Any] | None] = [None] * len(jobs)

    def work() -> None:
        while (index := waiting.take()) is not None:
            try:
                answer: dict[str, Any] | BaseException = jobs[index].start(controls[index])
            # Also what is no `Exception`: the caller waits for an answer of each job.
            except BaseException as error:
                answer = error
            waiting.done(index)
            finished.put((index, answer))

    threads = [threading.Thread(target=work, daemon=True) for _ in range(min(at_once, len(jobs)))]
    try:
        for thread in threads:
            thread.start()
        with Meter(controls, what) as meter:
            for _ in jobs:
                index, result = _await(finished, meter, place)
                if isinstance(result, BaseException):
                    raise _explained(result, jobs[index])
                meter.finish(index)
                results[index] = result
                # Jobs that are short leave no time in which none ends.
                meter.update(place.state())
        # Nothing waits for them any more, and they have nothing left to do.
        for thread in threads:
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

    Two designs in Python beside each other are slower than one after the other, since both wait for
    Python's lock: behind one that runs comes a job that is none.
    """

    def __init__(self, order: Iterable[int], is_script: Sequence[bool]) -> None:
        self._is_script = is_script
        # Each kind with its places in the order of all.
        self._scripts: deque[tuple[int, int]] = deque()
        self._others: deque[tuple[int, int]] = deque()
        for place, index in enumerate(order):
            (self._scripts if is_script[index] else self._others).append((place, index))
        self._changed = threading.Condition()
        self._script_runs = False

    def take(self) -> int | None:
        """Return the next one, when it may begin; nothing if there is none."""
        with self._changed:
            while self._scripts or self._others:
                if (first := self._first()) is not None:
                    _, index = first.popleft()
                    self._script_runs |= self._is_script[index]
                    return index
                self._changed.wait()
        return None

    def _first(self) -> deque[tuple[int, int]] | None:
        """Return the kind whose next one may begin, of both the one that comes first."""
        kinds = (self._others,) if self._script_runs else (self._scripts, self._others)
        return min((kind for kind in kinds if kind), key=lambda kind: kind[0], default=None)

    def done(self, index: int) -> None:
        """Hear that one has ended."""
        with self._changed:
            self._script_runs &= not self._is_script[index]
            self._changed.notify_all()

    def stop(self) -> None:
        """Have no further one begin."""
        with self._changed:
            self._scripts.clear()
            self._others.clear()
            self._changed.notify_all()


def _is_script(job: Job) -> bool:
    asked = getattr(job, "experiment", None)
    return asked is not None and is_script(asked.design)


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
    """Wait a little for the jobs that were told to stop, and take what they have."""
    deadline = time.monotonic() + GRACE_SECONDS
    for thread in threads:
        if thread.ident is not None:
            thread.join(max(deadline - time.monotonic(), 0.0))
    # Nobody can stop a hook of a design in Python that does not return.
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
