"""The verb `explore`: a program recorded in many orders of its threads, each crash-tested."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shlex
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any

from indelible import extension, files, processes
from indelible import pool as workers
from indelible.arguments import DesignName, FileName, above_zero, named, shell_text, whole
from indelible.commands import flags, line, sets
from indelible.errors import CheckError, InputError
from indelible.experiment import CRASH_MACHINE, Campaign, Experiment, Script
from indelible.results.crash import Crash, failed_points
from indelible.results.exploration import SURE, Exploration
from indelible.results.origin import origin
from indelible.results.recording import Recorded
from indelible.settings import Settings, of_cell, pairs
from indelible.verbs.crash import DESIGN
from indelible.verbs.record import BYTES_MAX, EndError, command_of, record, what_of, words_of

#: The default number of orders that are tried (ours), and the most.
SEEDS = 20
SEEDS_MAX = 100_000

#: The default limit of seconds for one recording (ours).
SECONDS = 60.0

#: The smallest trace of which there can be a campaign.
ONE_STORE = Script("--replay", "one store", "store 0 1")

#: The setting of the flush or fence that is left out, which only the trace itself can have.
OF_TRACE = "workload.leave_out"

#: Commands that mean the same in front of `&&` as in a shell of their own.
SIMPLE = re.compile(r"[\w ./~$*='\"+:@%,-]+")

#: The fields that a row takes from its recording.
RECORDED = ("threads", "stores", "flushes", "fences", "transactions", "exit_code", "regions")

#: The fields of a row of which nothing is known, as the program did not end.
NOTHING: Mapping[str, Any] = {
    **dict.fromkeys(RECORDED),
    "start": None,
    "order": None,
    "idle": False,
    "refused": None,
    "checked": False,
    "announced_few": False,
    "announced": None,
    "points": 0,
    "images": None,
    "accepts_all": None,
    "failed_points": 0,
    "violations": (),
    "wrong": None,
    "trace": None,
    "crash": None,
    "notes": (),
}


def explore(
    command: Sequence[str],
    *,
    check: str | None = None,
    seeds: int = SEEDS,
    seed: int = 1,
    before: str | None = None,
    design: DesignName = DESIGN,
    machine: FileName = CRASH_MACHINE,
    points: int | str | None = None,
    set: Settings = None,
    out: FileName = ".",
    pool: FileName | None = None,
    loads: bool = True,
    unseen: bool = False,
    most: int = BYTES_MAX,
    seconds: float = SECONDS,
) -> Exploration:
    """Record a program with `seeds` consecutive seeds, from `seed` on, and crash-test each trace.

    With each seed the program's threads go on in another order. The shell command `before` is run
    before each recording. The trace of a seed with which an error is found is left in the folder
    `out`, which is made. A recording that takes more than `seconds`, or ends by a signal, is an
    error, too; `before` may take as long. `check`, `design`, `machine`, `points` and `set` mean
    what they do in `crash`, and the others what they do in `record`. Machine `tiny` is enlarged for
    a trace that is too large for it, or has too many threads, unless `set` gives the size.

    Raises:
        InputError: if the program cannot be recorded, or the campaign cannot be run.
    """
    words, options = command_of(command), what_of(pool, loads, unseen, most)
    before = None if before is None else shell_text("before", before)
    seconds = above_zero("seconds", seconds)
    first = whole("seed", seed)
    count = whole("seeds", seeds, 1, SEEDS_MAX)
    whole("seed", first + count - 1)
    to = named("out", out)
    of, on = named("design", design), named("machine", machine)
    asked = Experiment(of, "replay", on, settings=of_cell(pairs(set), of, "replay"))
    campaign = Campaign(asked, points, check=check)
    _require_campaign(campaign)
    folder = files.make_folder("--out", to)
    plan = Plan(words, before, options, seconds, campaign, folder, Turns(first))
    jobs = [Order(plan, number) for number in range(first, first + count)]
    return _answer(plan, jobs)


def _require_campaign(campaign: Campaign) -> None:
    """Refuse an impossible campaign before anything is recorded, by trying a short one.

    The checker is not run, since files that it needs may come with the recording.
    """
    if campaign.check is not None and not campaign.check.strip():
        raise InputError("`check` must name a program; it is an empty string")
    asked = campaign.experiment
    settings = tuple(pair for pair in asked.settings if pair[0] != OF_TRACE)
    asked = replace(asked, settings=settings, script=ONE_STORE)
    Campaign(asked, points=1).start(extension.core.Control())


def _answer(plan: Plan, jobs: Sequence[Order]) -> Exploration:
    def found(rows: Iterable[dict[str, Any] | None], interrupted: bool) -> Exploration:
        # Errors that were found before an interruption are kept.
        ended = [
            row
            for row in rows
            if row is not None and (not row.pop("cancelled", False) or row.get("wrong") is not None)
        ]
        starts = [row["start"] for row in ended if row["start"] is not None]
        # One recording alone does not tell what the next one begins with.
        alike = len(set(starts)) <= 1 and (plan.before is not None or len(starts) > 1)
        orders = len({row["order"] for row in ended} - {None})
        for row in ended:
            row["record"] = Order(plan, row["seed"]).command(alike or row["trace"] is None)
        asked = plan.campaign.experiment
        answer = Exploration(
            {
                "program": list(plan.program),
                "design": asked.design,
                "machine": asked.machine,
                "check": plan.campaign.check,
                # Recordings that begin with different memory differ without another order, too.
                "orders": None if len(set(starts)) > 1 and orders > 1 else orders,
                "rows": ended,
                "cancelled": interrupted,
            }
        )
        if answer.accepts_all:
            for row in ended:
                row["checked"] = False
        answer["notes"] = _notes(plan, answer, alike)
        # With sampled points, an order's error may show at a point that was not tried.
        every = plan.campaign.points in (None, "all")
        answer["would_show"] = _would_show(answer) if every else None
        answer.update(origin(plan.command(jobs), asked.settings))
        return answer

    try:
        return found(workers.execute(jobs, what="orders"), interrupted=False)
    except workers.Interrupted as interrupt:
        raise workers.Interrupted(found(interrupt.partial, interrupted=True)) from None


def _notes(plan: Plan, answer: Exploration, alike: bool) -> list[str]:
    """Return what does not hold of recordings that begin with different memory, or that may.

    Also in how many of them the program did nothing, as if its pool had all that it would do.
    """
    differ, idle, many = answer["orders"] is None, len(answer.idle), len(answer["rows"])
    of = f"with {idle} of {many} seeds" if idle < many else "with every seed"
    said = [f"{of} the program did nothing"] if idle else []
    if plan.before is not None:
        told = f"`{plan.before}` does not have all recordings begin with the same memory, so orders"
        return [*said, *([f"{told} cannot be told apart"] if differ else [])]
    if differ:
        said.append(
            "each recording began with what the one before left, so orders cannot be told apart,"
            " and errors may not come from threads"
        )
    if answer.failed and not alike:
        said.append("`record` begins with what the last one left, so it may record something else")
    return ["; ".join([*said, _remedy(plan, answer)])] if said else []


def _remedy(plan: Plan, answer: Exploration) -> str:
    """Return what has recordings begin alike; files are named as the command line names them."""
    regions = [region for row in answer["rows"] for region in row["regions"] or ()]
    mapped = {region["file"] for region in regions}
    words = dict.fromkeys([*plan.program[1:], *filter(None, [plan.options["pool"]])])
    pools = [word for word in words if os.path.isfile(word) and os.path.realpath(word) in mapped]
    remove = f"rm -f {shlex.join(pools) or 'POOL'}"
    how = "each begin anew" if answer.idle else "all begin alike"
    return f"--before {shlex.quote(remove)} has {how}"


def _would_show(answer: Exploration) -> float | None:
    """Return the least share of orders with an error that would have shown in these orders.

    The share is of orders as seeds draw them, and of errors that show where the power is cut.
    None if an error was found, if something is unchecked, if every seed gave the same order, or if
    orders cannot be told apart.
    """
    threads = max((row["threads"] or 0 for row in answer["rows"]), default=0)
    if not answer.passed or threads < 2 or (answer["orders"] or 0) < 2:
        return None
    return float(1 - (1 - SURE) ** (1 / len(answer["rows"])))


class Turns:
    """Turns of threads in the order of the seeds, whichever thread comes first.

    A recording finds the files as the one before left them, which so is always that of the seed
    before.
    """

    def __init__(self, first: int) -> None:
        self.first = self._next = first
        self._changed = threading.Condition()

    @contextlib.contextmanager
    def turn(self, number: int) -> Iterator[None]:
        """Wait until the turns of the lower numbers are over."""
        with self._changed:
            self._changed.wait_for(lambda: self._next == number)
        try:
            yield
        finally:
            with self._changed:
                self._next += 1
                self._changed.notify_all()


@dataclass(frozen=True)
class Plan:
    """The recording and the campaign that are done with each seed."""

    program: tuple[str, ...]
    before: str | None
    options: Mapping[str, Any]
    seconds: float
    campaign: Campaign
    folder: Path
    #: The turns of recordings, which come one after the other because they use the same files.
    turns: Turns

    def command(self, jobs: Sequence[Order]) -> str:
        """Return the command line that tries these orders."""
        campaign, first = self.campaign, jobs[0].seed
        asked = campaign.experiment
        return line(
            "explore",
            flags(campaign, "check"),
            flags(self, "before"),
            flags(asked, "design", "machine"),
            ["--seeds", str(len(jobs)), "--seed", str(first)],
            flags(campaign, "points"),
            sets(asked.settings),
            ["--out", os.fspath(self.folder)],
            ["--seconds", repr(self.seconds)] if self.seconds != SECONDS else [],
            words_of(self.program, self.options),
        )

    def trace(self, seed: int | str) -> str:
        """Return the path where the trace of a seed is left."""
        return os.fspath(self.folder / f"{os.path.basename(self.program[0])}.{seed}.trace")

    def record(self, seed: int, out: Path, stopped: Callable[[], bool]) -> Recorded:
        """Record the program with a seed; an error has the last of what the program printed."""
        with tempfile.TemporaryFile("w+", errors="replace") as said:
            try:
                return record(
                    self.program,
                    out,
                    seed=seed,
                    stdout=said,
                    stderr=said,
                    until=self._until(stopped),
                    **self.options,
                )
            except EndError as error:
                raise EndError(f"{error}{_last_line(said)}") from None

    def prepare(self, stopped: Callable[[], bool]) -> None:
        """Run the command `before`, in a session of its own as the program is."""
        if self.before is None:
            return
        # No pipes: what the command leaves running may keep those open.
        with tempfile.TemporaryFile("w+", errors="replace") as said:
            program = subprocess.Popen(
                self.before,
                shell=True,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=said,
                start_new_session=True,
            )
            try:
                if (code := processes.finish(program, self._until(stopped))) == 0:
                    return
                how = f"ended with exit code {code}"
            except processes.StopError as reason:
                how = str(reason)
            raise InputError(
                f"`{self.before}`, which is run before each recording, {how}{_last_line(said)}"
            )

    def _until(self, stopped: Callable[[], bool]) -> Callable[[], str | None]:
        """Return what says, from now on, why a program is to be stopped."""
        deadline = time.monotonic() + self.seconds

        def until() -> str | None:
            if stopped():
                return "was interrupted"
            late = time.monotonic() > deadline
            return f"did not end within {self.seconds:g} s" if late else None

        return until


@dataclass(frozen=True)
class Order:
    """A seed: the program recorded in one order, and the power cut in it."""

    plan: Plan
    seed: int

    def command(self, repeats: bool = True) -> str:
        """Return the command line that records it, behind that of `before`.

        Unless it repeats the trace that was kept, it leaves that one alone.
        """
        out = self.plan.trace(self.seed if repeats else f"{self.seed}.again")
        words = words_of(self.plan.program, self.plan.options)
        record = line("record", flags(self, "seed"), ["--out", out], words)
        if (before := self.plan.before) is None:
            return record
        alone = before if SIMPLE.fullmatch(before) else f"sh -c {shlex.quote(before)}"
        return f"{alone} && {record}"

    def start(self, control: extension.core.Control) -> dict[str, Any]:
        """Record and crash-test it; `control` stops it from another thread.

        A seed that is refused, but for the first, does not take from the answer what the others
        found.
        """
        try:
            return self._tried(control)
        except InputError as error:
            if self.seed == self.plan.turns.first:
                raise
            return {"seed": self.seed, **NOTHING, "refused": str(error)}

    def _tried(self, control: extension.core.Control) -> dict[str, Any]:
        row = {"seed": self.seed, **NOTHING}
        with (
            self.plan.turns.turn(self.seed),
            tempfile.TemporaryDirectory(prefix="indelible-") as folder,
        ):
            trace = Path(folder) / "trace"
            if control.cancelled:
                return {"cancelled": True}
            try:
                self.plan.prepare(lambda: control.cancelled)
                recorded = self.plan.record(self.seed, trace, lambda: control.cancelled)
            except InputError as error:
                # An interrupt may end the program, or what is run before it, this way, too.
                if control.cancelled:
                    return {"cancelled": True}
                if not isinstance(error, EndError):
                    raise
                return row | {"wrong": str(error)}
            text = trace.read_text(encoding="utf-8")
        row |= {name: recorded[name] for name in RECORDED}
        before, _, order = text.partition("\nmeasured\n")
        # Which regions there are, and whether threads meet, may depend on the order.
        start = "\n".join(line for line in before.splitlines() if line.startswith("bytes "))
        row |= {"start": _digest(start), "order": _digest(order)}
        if not order.strip():
            return row | {"idle": True}
        return row | self._crash(recorded, text, control)

    def _crash(
        self, recorded: Recorded, text: str, control: extension.core.Control
    ) -> dict[str, Any]:
        campaign = self.plan.campaign
        asked = campaign.experiment
        room = dict(recorded.room()) if asked.machine == CRASH_MACHINE else {}
        asked = replace(
            asked,
            seed=self.seed,
            settings=tuple((room | dict(asked.settings)).items()),
            script=Script("--replay", self.plan.trace(self.seed), text),
        )
        campaign = replace(campaign, experiment=asked)
        try:
            data = campaign.start(control)
        except CheckError as error:
            # The program's own recovery does not accept the complete run in this order.
            return {
                "checked": True,
                "accepts_all": False,
                "wrong": str(error),
                "trace": self._keep(text),
                "crash": campaign.command(),
                "notes": recorded["notes"],
            }
        # Of a checker that accepts everything in one order another one may tell that it looks.
        checked = data["checked"]
        answer = Crash.of(data, campaign)
        shown = data.get("checker", {})
        return {
            "checked": checked,
            "announced_few": answer.data.get("announced_few", False),
            "announced": answer.data.get("announced"),
            "points": answer.data["points"],
            "images": shown.get("images"),
            "accepts_all": shown.get("accepts_all"),
            "failed_points": failed_points(answer.data),
            "violations": answer.data["violations"],
            "wrong": answer.data["violations"][0]["text"] if answer.failed else None,
            "trace": self._keep(text) if answer.failed else None,
            "crash": answer.campaign.command(),
            "notes": [*recorded["notes"], *(answer.data.get("notes") or [])],
            "cancelled": answer.interrupted,
        }

    def _keep(self, text: str) -> str:
        """Write the trace into the user's folder, and return its path."""
        path = self.plan.trace(self.seed)
        with files.naming(path):
            files.write(path, text)
        return path


def _last_line(said: IO[str]) -> str:
    """Return the last line that a program has printed into a file, behind a colon."""
    said.seek(0)
    last = said.read().rstrip().rpartition("\n")[2]
    return f": {last}" if last else ""


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]
