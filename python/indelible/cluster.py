"""Jobs on a Dask cluster: requests go to its workers, and answers come back, both as JSON.

A worker runs `answer` on its own simulator, which has to be the same as ours, byte for byte. Files
that a request names by a path go with it: scripts are text in the request already, and a machine
file becomes a file of its final values. `distributed` is imported inside the functions that need
it, because importing it takes longer than `--help`.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from indelible import extension
from indelible.arguments import named
from indelible.errors import HostError, InputError, InternalError
from indelible.extension import Elsewhere, simulator
from indelible.pool import Here, Lost, Place, jobs_at_once
from indelible.progress import PATIENCE_SECONDS
from indelible.scripts import is_script
from indelible.settings import Pairs, of_machine
from indelible.work import Simulated

if TYPE_CHECKING:
    from distributed import Client, Future

#: The ways to name a cluster: the address of its scheduler, its scheduler file, or a client of it.
Dask: TypeAlias = "str | os.PathLike[str] | Client | None"

#: The most seconds that a scheduler may take to answer, and to close the connection.
CONNECT_SECONDS = 3
LEAVE_SECONDS = 1

#: The most jobs under way (ours: a thread waits here for each, and giving up so many takes half a
#: second). A cluster with more cores than that does not use them all.
SENT_MAX = 500

#: The most characters of their scripts (ours): the scheduler has them all in memory.
SENT_CHARACTERS_MAX = 500_000_000

#: The seconds between two questions to the scheduler how many workers there are.
LOOK_SECONDS = 1.0

#: Workers are sent text for `eval`. A function sent by its name would have to be importable on the
#: scheduler, too, which needs no Indelible; one sent as code would need the very same Python there.
HOME = "__import__('indelible.cluster', fromlist=['cluster'])"


@contextmanager
def place_of(dask: Dask) -> Iterator[Place | Cluster]:
    """Have jobs run on the cluster that is named, or here if none is."""
    if dask is None:
        yield Here()
        return
    client, is_ours = _client(dask)
    try:
        cluster = Cluster(client)
        if other := cluster.other():
            raise InputError(other)
        with warnings.catch_warnings():
            # Dask warns of large requests, but scripts may be long, and `at_once` limits their sum.
            warnings.filterwarnings("ignore", "Sending large graph")
            yield cluster
    finally:
        if is_ours:
            _leave(client)


class Cluster:
    """The workers of a scheduler, those that come later included."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self._workers: int | None = None
        self._looked = -LOOK_SECONDS
        self._start = time.monotonic()
        self._has_told = False

    def at_once(self, jobs: Sequence[Simulated]) -> int:
        """Return how many jobs are under way at most, running or waiting for a worker."""
        scripts = (job.experiment.script for job in jobs)
        longest = max((len(script.text) for script in scripts if script), default=0)
        return max(1, min(SENT_MAX, SENT_CHARACTERS_MAX // max(longest, 1)))

    def controls(self, jobs: Sequence[Simulated]) -> Sequence[Sent]:
        """Return a control that sends each job, or refuse a job that cannot run elsewhere."""
        presets = {row["name"] for row in extension.catalog("machines")}
        machines: dict[tuple[str, Pairs], str] = {}

        def sent(job: Simulated) -> Sent:
            asked = job.experiment
            if is_script(asked.design):
                raise InputError(
                    "`dask` runs no design in Python, which may import what is only here:"
                    f" {asked.design}; leave it out, or run it without `dask`"
                )
            key = (asked.machine, of_machine(asked.settings))
            if asked.machine not in presets and key not in machines:
                machines[key] = _as_file(*key)
            return Sent(self, job.command(), machines.get(key))

        return [*map(sent, jobs)]

    def state(self) -> str:
        """Return how many workers there are; say once on stderr, without a bar, if none is."""
        now = time.monotonic()
        if now - self._looked >= LOOK_SECONDS:
            self._looked = now
            # If the scheduler has gone, the jobs report it.
            with suppress(Exception):
                self._workers = len(self.client.nthreads())
        if self._workers is None:
            return ""
        if self._workers:
            return f"{self._workers} worker{'s' if self._workers > 1 else ''}"
        if now - self._start >= PATIENCE_SECONDS and not self._has_told:
            self._has_told = True
            if sys.stderr is not None and not sys.stderr.isatty():
                print(f"indelible: {self.address} has no worker yet; waiting", file=sys.stderr)
        return "waiting for a worker"

    @property
    def address(self) -> str:
        """The address of the scheduler."""
        return str(self.client.scheduler.address)  # type: ignore[union-attr]

    def other(self) -> str | None:
        """Return what is wrong if a present worker has another simulator than ours, or has none.

        Workers that join later compare simulators in `answer`.
        """
        found = self.client.run(eval, f"{HOME}.simulator()", on_error="return")
        for worker, own in sorted(found.items()):
            if isinstance(own, ImportError):
                return f"worker {worker} has no Indelible ({own}); install it where workers run"
            if isinstance(own, str) and own != simulator():
                return _differs(worker, own)
        return None


class Sent(Elsewhere):
    """A job's way to a worker: its `ask` waits for the answer, and `cancel` ends that."""

    def __init__(self, cluster: Cluster, command: str, machine: str | None) -> None:
        self._cluster, self._command, self._machine = cluster, command, machine
        self._future: Future[Any] | None = None
        self._is_cancelled = False

    def cancel(self) -> None:
        """Give the job up; if it has not begun, it never does."""
        self._is_cancelled = True
        if (future := self._future) is not None:
            future.cancel()

    def ask(self, verb: str, request: str) -> str:
        """Return what a worker answers, or raise what it says."""
        kind, text, worker = self._sent((verb, request, self._machine, simulator()))
        match kind:
            case "HostError":
                raise HostError(text)
            case "InputError":
                raise InputError(text)
            case "InternalError":
                raise InternalError(text)
            case "other":
                raise Lost(_differs(worker, text))
        return text

    def _sent(self, asked: tuple[str, str, str | None, str]) -> tuple[str, str, str]:
        from distributed import KilledWorker

        client = self._cluster.client
        try:
            # Not pure: Dask would otherwise share one result among equal requests of any command.
            future = client.submit(eval, f"{HOME}.answer(*asked)", {"asked": asked}, pure=False)
            self._future = future
            if self._is_cancelled:
                # `cancel` was called before there was a future to cancel.
                future.cancel()
            return future.result()
        except ImportError as error:
            said = f"a worker has no Indelible ({error}); install it where workers run"
            raise Lost(self._cluster.other() or said) from None
        except KilledWorker as error:
            times = error.allowed_failures + 1
            raise Lost(
                f"{times} worker{'s' if times > 1 else ''} died of the same job, last"
                f" {error.last_worker.address}, as they do without enough memory: {self._command}"
            ) from None
        except CancelledError:
            raise Lost(f"the scheduler {self._cluster.address} has gone or dropped a job") from None
        except Exception as error:
            said = " ".join(f"{type(error).__name__}: {error}".split())
            raise Lost(f"a worker could not do a job: {said}: {self._command}") from None
        finally:
            # Without this reference, the cluster does not keep the result.
            self._future = None


def answer(verb: str, request: str, machine: str | None, asker: str) -> tuple[str, str, str]:
    """Answer a request on a worker; return the kind of answer, its text, and the worker's address.

    Errors are returned as text, too, because a worker writes into its log what a job raises.
    """
    from distributed import get_worker

    own, worker = simulator(), get_worker().address
    if own != asker:
        return "other", own, worker
    try:
        return "answer", _answer(verb, request, machine), worker
    except (InputError, InternalError) as error:
        return type(error).__name__, str(error), worker


def _answer(verb: str, request: str, machine: str | None) -> str:
    # By the worker's own `INDELIBLE_JOBS` and processors, which may differ from the asking host's.
    control = extension.core.Control(jobs_at_once())
    if machine is None:
        return extension.ask(verb, request, control)
    with tempfile.TemporaryDirectory(prefix="indelible-") as folder:
        file = Path(folder) / "machine.toml"
        file.write_text(machine, encoding="utf-8")
        there = json.loads(request) | {"machine": str(file)}
        return extension.ask(verb, json.dumps(there), control)


def _differs(worker: str, own: str) -> str:
    return (
        f"worker {worker} has the simulator {own}, and here it is {simulator()}; install the same"
        " there and start the worker again"
    )


def _as_file(name: str, settings: Pairs) -> str:
    """Return a machine that is no preset as the text of a file that needs no other file.

    The text includes the settings, since other values may be computed from them; the worker applies
    them once more. Errors in the machine's own file are reported here, with their line.
    """
    about = extension.describe(f"machine:{name}", settings)
    lines = [f"name = {json.dumps(about['name'], ensure_ascii=False)}"]
    # JSON and TOML write numbers and plain strings alike.
    lines += [
        f"{row['section']}.{row['key']} = {json.dumps(row['value'], ensure_ascii=False)}"
        for row in about["rows"]
    ]
    return "\n".join(lines) + "\n"


def _client(dask: object) -> tuple[Client, bool]:
    """Return a client of the named scheduler, and whether it is ours to close."""
    is_name = isinstance(dask, (str, os.PathLike))
    try:
        from distributed import Client
    except ImportError:
        if not is_name:
            raise InputError(_no_cluster(dask)) from None
        raise InputError(
            "`dask` needs distributed: python -m pip install 'indelible[dask]'"
        ) from None
    except Exception as error:
        why = " ".join(str(error).split())
        raise InputError(f"`dask` needs distributed, which does not work here: {why}") from None
    if not is_name:
        if not isinstance(dask, Client) or dask.asynchronous:
            raise InputError(_no_cluster(dask))
        return dask, False
    address = named("dask", dask)
    where = {"scheduler_file": address} if os.path.isfile(address) else {"address": address}
    if "address" in where and (address.endswith(".json") or "/" in address.partition("://")[0]):
        raise InputError(f"{address}: there is no such scheduler file")
    # A client whose constructor fails must be closed like any other, or it complains when deleted.
    client = Client.__new__(Client)
    try:
        connected = {**where, "timeout": CONNECT_SECONDS, "set_as_default": False}
        client.__init__(**connected)  # type: ignore[misc]
        return client, True
    except Exception as error:
        _leave(client)
        why = " ".join(str(error).split()) or type(error).__name__
        raise InputError(
            f"no Dask scheduler answers at `{address}` ({why}); name the address that"
            " `dask scheduler` shows, such as tcp://head:8786, or its scheduler file"
        ) from None


def _leave(client: Client) -> None:
    """Close a client without its log's traceback: a lost scheduler has been reported already."""
    log = logging.getLogger("distributed.client")
    level = log.level
    log.setLevel(logging.CRITICAL)
    try:
        with suppress(Exception):
            client.close(LEAVE_SECONDS)
    finally:
        log.setLevel(level)


def _no_cluster(dask: object) -> str:
    return (
        "`dask` is the address of a scheduler or a `distributed.Client` that is not asynchronous,"
        f" and not {dask!r}"
    )
