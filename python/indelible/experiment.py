"""What the simulator is asked to do: run an experiment, cut its power, record it, test orders.

Each class has the request as JSON and the command line that repeats it.
"""

from __future__ import annotations

import json
import os
import stat
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

from indelible import extension
from indelible.arguments import FileName, is_truth, named, readable, shell_text, truth, whole
from indelible.commands import flag, flags, line, reads, sets
from indelible.errors import InputError
from indelible.extension import Control, ask

#: The machine of a run, and that of a crash campaign: one whose caches hold a handful of lines.
MACHINE = "silo"
CRASH_MACHINE = "tiny"

#: The fields of an experiment that are options of every command that runs any, and no settings.
OPTIONS = ("machine", "txs", "seed")

#: The part of a run that `trace` records by default (ours: some ten thousand events on machine
#: `silo`, which Perfetto shows at once).
TIMELINE_START = "0ns"
TIMELINE_LENGTH = "20us"

#: The length of a timeline up to a violation (ours: a screen or two on machine `tiny`), and in
#: cycles where it ends with one.
TIMELINE_OF_VIOLATION = "200ns"
CYCLES_OF_VIOLATION = 200

#: The most random programs of a call of `litmus` (ours).
RANDOM_MAX = 1_000_000

#: The workloads that read a file, and the flag that names it.
SCRIPT_FLAGS = {"sqlite": "--sql", "ycsb": "--ycsb", "replay": "--replay"}


@dataclass(frozen=True)
class Script:
    """A file that a workload reads: SQL for `sqlite`, properties for `ycsb`, or a trace."""

    flag: str
    path: str
    text: str

    @staticmethod
    def read(flag: str, path: str) -> Script:
        """Read the file, or say in one sentence why that cannot be done.

        A byte order mark, with which some editors begin a file, is dropped.
        """
        if not path:
            raise InputError(f"{flag or 'a test'} must name a file; it is an empty string")
        place = f"{flag} {path}".lstrip()
        try:
            # Devices such as /dev/zero have no end; a pipe, as of `<(...)` in a shell, does.
            kind = os.stat(path).st_mode
            if stat.S_ISCHR(kind) or stat.S_ISBLK(kind):
                raise InputError(f"{place}: is a device; name a file or a pipe")
            return Script(flag, path, Path(path).read_text(encoding="utf-8-sig"))
        except UnicodeDecodeError as error:
            raise InputError(f"{place}: not text in UTF-8 ({error.reason})") from None
        except OSError as error:
            raise InputError(f"{place}: {(error.strerror or str(error)).lower()}") from None


def read_scripts(
    sql: FileName | None, ycsb: FileName | None, replay: FileName | None
) -> dict[str, Script]:
    """Read the named files; return them by the workload that reads each."""
    paths = {"sqlite": ("sql", sql), "ycsb": ("ycsb", ycsb), "replay": ("replay", replay)}
    return {
        workload: Script.read(SCRIPT_FLAGS[workload], named(word, path))
        for workload, (word, path) in paths.items()
        if path is not None
    }


def require_use(scripts: Mapping[str, Script], workloads: tuple[str, ...]) -> None:
    """Refuse a file that none of the workloads reads."""
    for workload, script in scripts.items():
        if workload not in workloads:
            asked = ", ".join(f"`{name}`" for name in workloads)
            raise InputError(f"{script.flag} is for the workload `{workload}`, not for {asked}")


@dataclass(frozen=True)
class Experiment:
    """A design, a workload, a machine and a seed: what one run depends on, and nothing else."""

    design: str
    workload: str
    machine: str = MACHINE
    cores: int | None = None
    txs: int | None = None
    seed: int = 1
    settings: tuple[tuple[str, str], ...] = ()
    script: Script | None = None
    exact: bool = False
    epochs: bool = False
    latencies: bool = False
    #: Transactions of each core before measuring begins; None means a tenth of `txs`.
    warmup: int | None = None
    asks: ClassVar[str] = "run"

    @property
    def experiment(self) -> Experiment:
        """Itself: as a job it is about no other one."""
        return self

    def __post_init__(self) -> None:
        """Convert names, paths and numbers of any library, and refuse anything else."""
        for name in ("design", "workload", "machine"):
            object.__setattr__(self, name, named(name, getattr(self, name)))
        for name in ("cores", "txs", "seed", "warmup"):
            value = getattr(self, name)
            if value is not None or name == "seed":
                object.__setattr__(self, name, whole(name, value))
        for name in ("exact", "epochs", "latencies"):
            object.__setattr__(self, name, truth(name, getattr(self, name)))
        for key, value in self.settings:
            if key in OPTIONS:
                said = f"`{key}` is no setting but an option of its own: --{key} {value}"
                raise InputError(said)
        # Rust takes settings as a map, in which a key is once.
        for key, times in Counter(key for key, _ in self.settings).items():
            if times > 1:
                raise InputError(f"{key} is set twice; keep one")

    def spec(self) -> dict[str, Any]:
        """Return the experiment as `lab` reads it; fields left out get their defaults there."""
        spec: dict[str, Any] = {
            "design": self.design,
            "workload": self.workload,
            "machine": self.machine,
            "seed": self.seed,
            "settings": dict(self.settings),
            "exact": self.exact,
        }
        for name in ("epochs", "latencies"):
            if getattr(self, name):
                spec[name] = True
        for name in ("cores", "txs", "warmup"):
            if (value := getattr(self, name)) is not None:
                spec[name] = value
        if self.script is not None:
            spec["script"] = [self.script.path, self.script.text]
        return spec

    def words(self) -> list[str]:
        """Return the words of a command line that say which experiment it is about."""
        names = ("design", "workload", "machine", "cores", "txs", "warmup", "seed")
        more = [*sets(self.settings), *reads([self.script] if self.script else [])]
        return [*flags(self, *names), *more, *flags(self, "exact", "epochs", "latencies")]

    def command(self) -> str:
        """Return the command line that repeats this experiment."""
        return line("run", self.words())

    def start(self, control: Control) -> dict[str, Any]:
        """Run it; `control` stops it from another thread."""
        return json.loads(ask("run", json.dumps(self.spec()), control))

    def check(self) -> None:
        """Refuse an experiment that cannot be run, without running it."""
        extension.core.check(json.dumps(self.spec()))

    def start_plain(self) -> dict[str, Any]:
        """Run its workload on plain memory, without the simulator."""
        return json.loads(extension.core.plain(json.dumps(self.spec())))


@dataclass(frozen=True)
class Campaign:
    """A crash campaign: the power is cut at points of an experiment, and each image is checked."""

    experiment: Experiment
    points: int | str | None = None
    #: Whether each rule is also switched off, one at a time, or the name of the only one that is.
    mutants: bool | str = False
    nested: bool = True
    without: str | None = None
    lives: int | None = None
    check: str | None = None
    images: str | None = None
    leave_out: int | str | None = None
    trials: int | str | None = None
    #: The only event of the first life at which the power is cut.
    event: int | None = None
    asks: ClassVar[str] = "campaign"

    def __post_init__(self) -> None:
        """Refuse what is no name or no number, and take numbers of any library."""
        for name in ("points", "lives", "leave_out", "trials", "event"):
            value = getattr(self, name)
            if value is not None and (name in ("lives", "event") or str(value) != "all"):
                object.__setattr__(self, name, whole(name, value))
        if isinstance(self.mutants, str):
            readable("mutants", self.mutants)
        elif is_truth(self.mutants):
            object.__setattr__(self, "mutants", bool(self.mutants))
        else:
            said = f"`mutants` must be True, False or the name of a rule, not {self.mutants!r}"
            raise InputError(said)
        object.__setattr__(self, "nested", truth("nested", self.nested))
        for name in ("without", "check", "images"):
            value, read = getattr(self, name), shell_text if name == "check" else named
            if value is not None:
                object.__setattr__(self, name, read(name, value))

    def command(self) -> str:
        """Return the command line that repeats this campaign."""
        return line(
            "crash",
            self.experiment.words(),
            flags(self, "points", "event", "without", "mutants", "trials"),
            flag("--no-nested", not self.nested),
            flags(self, "lives", "check", "images", "leave_out"),
        )

    def trial(self, row: Mapping[str, Any]) -> Campaign:
        """Return the campaign of one trial, of a mutant or of the unchanged design.

        A trial in which the design is wrong with the mutant's rule, too (`intact`), is shown with
        it.
        """
        asked = self.experiment
        caught_in = replace(
            asked,
            workload=row["workload"],
            cores=row["cores"],
            txs=row["txs"],
            seed=row["seed"],
            settings=tuple(row["settings"].items()),
            script=asked.script if row["workload"] == asked.workload else None,
        )
        check = self.check if row["workload"] == asked.workload else None
        rule = self.without if "intact" in row else row.get("rule", self.without)
        return Campaign(
            caught_in, nested=row["nested"], without=rule, lives=row["lives"], check=check
        )

    def without_persist(self, row: Mapping[str, Any]) -> Campaign:
        """Return the campaign in which a flush or a fence of a trace is left out."""
        settings = dict(self.experiment.settings) | {"workload.leave_out": str(row["place"])}
        return replace(
            self,
            experiment=replace(self.experiment, settings=tuple(settings.items())),
            mutants=False,
            nested=False,
            images=None,
            leave_out=None,
            trials=None,
        )

    def recording(self, violation: Mapping[str, Any]) -> Recording | None:
        """Return the timeline up to a violation in the first life; None for other violations.

        A run whose images a program checks numbers its events otherwise, since each of its stores
        and marks is one, so its timeline ends with the cycle.
        """
        if violation["life"] > 1 or not violation["event"]:
            return None
        if self.check is not None:
            until = violation["cycle"] + 1
            start = max(0, until - CYCLES_OF_VIOLATION)
            return Recording(
                self.experiment,
                f"{start}cycles" if start else TIMELINE_START,
                f"{until - start}cycles",
                without=self.without,
            )
        return Recording(
            self.experiment,
            length=TIMELINE_OF_VIOLATION,
            event=violation["event"],
            without=self.without,
        )

    def spec(self) -> dict[str, Any]:
        """Return the campaign as `lab` reads it; fields left out get their defaults there."""
        spec = self.experiment.spec() | {"mutants": self.mutants, "nested": self.nested}
        told = ("points", "event", "without", "lives", "check", "images", "leave_out", "trials")
        for name in told:
            value = getattr(self, name)
            if value is not None:
                spec[name] = value
        return spec

    def start(self, control: Control) -> dict[str, Any]:
        """Run it; `control` stops it from another thread."""
        return json.loads(ask("crash", json.dumps(self.spec()), control))


@dataclass(frozen=True)
class Recording:
    """A part of an experiment's timeline: a span of time, or the time up to a campaign's event."""

    experiment: Experiment
    start_at: str = TIMELINE_START
    length: str = TIMELINE_LENGTH
    event: int | None = None
    address: str | None = None
    without: str | None = None

    def __post_init__(self) -> None:
        """Refuse what is no name or no number, and take numbers of any library."""
        if self.event is not None:
            object.__setattr__(self, "event", whole("event", self.event))
        if self.without is not None:
            object.__setattr__(self, "without", named("without", self.without))

    def command(self) -> str:
        """Return the command line that repeats this recording."""
        return line(
            "trace",
            self.experiment.words(),
            flags(self, "without", "event"),
            ["--from", self.start_at] if self.start_at != TIMELINE_START else [],
            ["--for", self.length] if self.length != TIMELINE_LENGTH else [],
            flags(self, "address"),
        )

    def start(self, control: extension.core.Control) -> dict[str, Any]:
        """Run it; `control` stops it from another thread. The answer's `trace` is in bytes."""
        without = {} if self.without is None else {"without": self.without}
        request = {
            "run": self.experiment.spec() | without,
            "from": self.start_at,
            "length": self.length,
            "event": self.event,
            "address": self.address,
        }
        text, trace = extension.core.trace(json.dumps(request), control)
        return json.loads(text) | {"trace": trace}


@dataclass(frozen=True)
class Logging:
    """The benchmark of cached and uncacheable logs on the processor of this computer."""

    asked: tuple[tuple[str, Any], ...] = ()

    def command(self) -> str:
        """Return the command line that repeats this measurement."""
        each = (flag(f"--{name.replace('_', '-')}", value) for name, value in self.asked)
        return line("native", "logging", *each)

    def start(self, control: extension.core.Control) -> dict[str, Any]:
        """Measure; `control` stops it from another thread."""
        request = {name: value for name, value in self.asked if value is not None}
        return json.loads(extension.core.native_logging(json.dumps(request), control))


@dataclass(frozen=True)
class LitmusTests:
    """Litmus tests, from files or the built-in ones, on ordering models.

    Also `random` generated programs, and with `mutants` each rule of the orders switched off.
    """

    files: tuple[Script, ...] = ()
    #: The names of orders, each with the settings of every run on it.
    orders: tuple[tuple[str, tuple[tuple[str, str], ...]], ...] = ()
    seed: int = 1
    random: int = 0
    mutants: bool = False
    #: The number of the one random program to run alone.
    program: int | None = None
    #: The rule that is switched off.
    without: str | None = None
    #: The settings as the caller gave them.
    settings: tuple[tuple[str, str], ...] = ()
    #: Whether each image that is seen has a timeline.
    timelines: bool = False

    def command(self) -> str:
        """Return the command line that repeats these tests."""
        return line(
            "litmus",
            [word for order, _ in self.orders for word in ("--order", order)],
            flag("--random", self.random or None),
            flags(self, "mutants", "program", "without", "timelines"),
            sets(self.settings),
            flags(self, "seed"),
            [file.path for file in self.files],
        )

    def start(self, control: extension.core.Control) -> dict[str, Any]:
        """Run them; `control` stops them from another thread."""
        tests = [[file.path, file.text] for file in self.files]
        orders = [{"name": name, "settings": list(own)} for name, own in self.orders]
        request = {"orders": orders, "tests": tests, "seed": self.seed}
        request |= {"random": self.random, "mutants": self.mutants}
        request |= {"program": self.program, "without": self.without}
        request |= {"timelines": self.timelines}
        return json.loads(extension.core.litmus(json.dumps(request), control))
