"""Cached and uncacheable logs on the processor of this computer, maybe beside the simulated ones.

from indelible import native

print(native.logging(quick=True))
native.logging(variants=["cached", "movnti4"], entries=[1, 8]).rows
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from typing import Any

from indelible import arguments, pool
from indelible.arguments import listed, named, truth
from indelible.errors import InputError
from indelible.experiment import Experiment, Logging
from indelible.extension import catalog, describe
from indelible.names import unknown
from indelible.results import Shown
from indelible.results.origin import origin
from indelible.settings import of_machine

#: The published speed of the cached log over the uncacheable one (Li, Ogleari and Zhao, section
#: 4.2) by the entries before a fence, which fill a part of a write-combining buffer or all of it.
PUBLISHED = {1: 11.13, 8: 5.06}

#: The paper's two logs, and the cached one that is durable.
CACHED, UNCACHEABLE, DURABLE = "cached", "movnti4", "cached+clwb"

#: Where the values of entries may come from, in the order of tables and figures.
SOURCES = ("precomputed", "xorshift", "rand")

#: The memory, the design and the durability domain on which the loop is simulated. Without stores
#: in transactions the loop uses only the ordering hardware of the design.
SIMULATED = {
    "dram": ("dram", "undo@x86", "adr"),
    "adr": ("pm", "undo@x86", "adr"),
    "gpf": ("pm", "undo@x86", "gpf"),
    "media": ("pm", "undo@x86", "media"),
    "eadr": ("pm", "undo@eadr", "eadr"),
}

#: Entries of each core that are simulated once the loop is steady (ours: 8 thousand lines of log).
SIMULATED_ENTRIES = 65_536
#: Bytes that the entries before these go over at the most (ours: they fill caches of 24 MiB). An
#: entry is 4 bytes of the array and, unless the log is small and circular, 8 of the log.
WARMUP_BYTES = 24 << 20
ENTRY = {"linear": 12, "circular": 4}

#: The workload that simulates the loop.
LOOP = "logcache"

#: Bytes of the array of a thread that is measured, and those of an element (crates/native).
ARRAY_MIN, ARRAY_MAX, ELEMENT = 64 << 10, 16 << 30, 4

#: Instructions that make a value of `xorshift`.
XORSHIFT = "6"

#: The fields that identify a row of the table: all but the number of entries.
ROW = ("variant", "value", "fence", "array_bytes", "log", "logging", "array_writes", "threads")


@dataclass(frozen=True, repr=False)
class Measurements(Shown):
    """The measurements: `answer.rows` are the rows of their JSON."""

    data: Mapping[str, Any]
    asked: Logging
    simulated: tuple[Mapping[str, Any], ...] = ()
    machine: str | None = None

    @property
    def rows(self) -> Sequence[Mapping[str, Any]]:
        """The rows, one for each loop."""
        return self.data["rows"]

    @property
    def interrupted(self) -> bool:
        """Whether it was interrupted, so that rows are missing: `cancelled` in the JSON."""
        return bool(self.data["cancelled"])

    def cycles(self, variant: str, entries: int, value: str = "xorshift") -> float | None:
        """Return the median of the first such row fenced by `sfence`, or None without one."""
        wanted = (variant, entries, value, "sfence")
        for row in self.rows:
            key = (row["variant"], row["entries_per_fence"], row["value"], row["fence"])
            if key == wanted:
                return row["cycles_per_entry"]
        return None

    def ratio(self, slow: str, fast: str, entries: int, value: str = "xorshift") -> float | None:
        """Return how many times as long one variant takes as another."""
        above, below = self.cycles(slow, entries, value), self.cycles(fast, entries, value)
        return above / below if above and below else None

    def json(self) -> dict[str, Any]:
        """Return the object that `--json` prints."""
        answer = {**self.data, "published": {str(k): v for k, v in PUBLISHED.items()}}
        if self.machine is not None:
            answer |= {"against": self.machine, "simulated": [*self.simulated]}
        return answer | origin(self.command)

    @property
    def command(self) -> str:
        """The command line that repeats it."""
        against = "" if self.machine is None else f" --against {shlex.quote(self.machine)}"
        return self.asked.command() + against

    def save(self, path: str | PathLike[str]) -> None:
        """Draw the figure of `--plot` into a .png, .svg or .pdf."""
        from indelible import plots
        from indelible.plots import native as native_plot

        plots.save(native_plot.figure, self, path)

    def __repr__(self) -> str:
        return f"<Measurements {self.asked.command()}>"

    def __str__(self) -> str:
        from indelible.text import native as native_text

        return native_text.answer(self)


def logging(
    *,
    variants: Sequence[str] | None = None,
    entries: Sequence[int] | None = None,
    fences: Sequence[str] | None = None,
    values: Sequence[str] | None = None,
    arrays: Sequence[str] | None = None,
    logs: Sequence[str] | None = None,
    logging: Sequence[str] | None = None,
    array_writes: Sequence[str] | None = None,
    threads: Sequence[int] | None = None,
    quick: bool = False,
    whole: bool = False,
    seed: int = 1,
    against: str | None = None,
) -> Measurements:
    """Measure the paper's loop on this computer, and simulate it on machine `against`, if given."""
    words: dict[str, Any] = {
        "variants": _names("variants", variants),
        "entries": _counts("entries", entries),
        "fences": _names("fences", fences),
        "values": _names("values", values),
        "arrays": _names("arrays", arrays),
        "logs": _names("logs", logs),
        "logging": _names("logging", logging),
        "array_writes": _names("array_writes", array_writes),
        "threads": _counts("threads", threads),
        "quick": truth("quick", quick),
        "whole": truth("whole", whole),
        "seed": arguments.whole("seed", seed),
    }
    machine = None if against is None else named("against", against)
    if machine is not None:
        _require_simulated(machine, words["values"], words["fences"])
    asked = Logging(tuple(words.items()))
    answer = pool.execute_one(
        asked, lambda data: Measurements(data, asked, machine=machine), "measurements"
    )
    if machine is None:
        return answer
    try:
        return replace(answer, simulated=_simulate(answer, machine))
    except pool.Interrupted:
        part = replace(answer, data={**answer.data, "cancelled": True})
        raise pool.Interrupted(part) from None


def _names(what: str, asked: Sequence[str] | None) -> list[str] | None:
    return None if asked is None else [*listed(what, asked)]


def _counts(what: str, asked: Sequence[int] | None) -> list[int] | None:
    if asked is None:
        return None
    several = asked if isinstance(asked, Iterable) and not isinstance(asked, str) else (asked,)
    return [arguments.whole(what, count, 1) for count in several]


def _require_simulated(
    machine: str, values: Sequence[str] | None, fences: Sequence[str] | None
) -> None:
    """Refuse loops that cannot be simulated, before anything is measured."""
    describe(f"machine:{machine}")
    if values is not None and "xorshift" not in values:
        raise InputError("`against` simulates only values of xorshift; add it to `values`")
    if fences is not None and not {"sfence", "none"} & {*fences}:
        raise InputError("`against` simulates only the fences sfence and none; add one to `fences`")


def loops(answer: Measurements) -> list[dict[str, Any]]:
    """Return the loops that can be simulated, including those that this processor cannot run."""
    known: dict[tuple[Any, ...], dict[str, Any]] = {}

    def add(row: Mapping[str, Any]) -> None:
        words = {name: row[name] for name in (*ROW, "entries_per_fence")}
        known.setdefault(tuple(words.values()), words)

    # The simulator has one kind of fence, or none, and only counts a value's instructions.
    fences = {"sfence", "none"} if dict(answer.asked.asked)["fences"] else {"sfence"}
    rows = [r for r in answer.rows if r["value"] == "xorshift" and r["fence"] in fences]
    for row in rows:
        add(row)
    for skipped in answer.data["skipped"]:
        for row in rows:
            if row["array_writes"] == skipped["array_writes"]:
                add({**row, "variant": skipped["variant"]})
    return [*known.values()]


def _simulate(answer: Measurements, machine: str) -> tuple[dict[str, Any], ...]:
    cells = [(loop, place) for loop in loops(answer) for place in SIMULATED]
    jobs = [_experiment(loop, place, machine, answer.asked) for loop, place in cells]
    answers = pool.execute(jobs)
    return tuple(
        _row(loop, place, data) for (loop, place), data in zip(cells, answers, strict=True) if data
    )


def _experiment(loop: Mapping[str, Any], place: str, machine: str, asked: Logging) -> Experiment:
    memory, design, domain = SIMULATED[place]
    settings = {
        "controller.domain": domain,
        "workload.variant": loop["variant"],
        "workload.entries_per_fence": loop["entries_per_fence"],
        "workload.fence": loop["fence"],
        "workload.logging": loop["logging"],
        "workload.log": loop["log"],
        "workload.log_in": memory,
        "workload.array_in": memory,
        "workload.array_writes": loop["array_writes"],
        "workload.items": loop["array_bytes"] // ELEMENT * loop["threads"],
    }
    each = loop["entries_per_fence"]
    return Experiment(
        design,
        LOOP,
        machine,
        cores=loop["threads"],
        txs=SIMULATED_ENTRIES // each,
        seed=dict(asked.asked)["seed"],
        settings=tuple((key, str(value)) for key, value in settings.items()),
        warmup=before_it_is_steady(loop["array_bytes"] // ELEMENT, loop["log"]) // each,
    )


def before_it_is_steady(elements: int, log: str) -> int:
    """Return the entries of a core after which its caches are as full as they get.

    That is a pass over its array, or as many as fill the last level: the loop that is measured on a
    processor goes round for seconds.
    """
    return min(elements, WARMUP_BYTES // ENTRY[log])


def _row(loop: Mapping[str, Any], place: str, data: Mapping[str, Any]) -> dict[str, Any]:
    memory, design, domain = SIMULATED[place]
    # Cores run in parallel, so the time is divided by the entries of one core.
    entries = data["txs"] / data["cores"] * loop["entries_per_fence"]
    return {
        **loop,
        "place": place,
        "memory": memory,
        "ordering": design.partition("@")[2],
        "domain": domain,
        "machine": data["machine"],
        "cycles_per_entry": data["cycles"] / entries,
        "ns_per_entry": data["simulated_s"] * 1e9 / entries,
    }


@dataclass(frozen=True)
class Beside:
    """The loops of a comparison, to be measured on this computer, too."""

    asked: Logging
    #: The variant that each workload of the comparison is.
    variants: Mapping[str, str]

    def rows(self) -> list[dict[str, Any]]:
        """Measure, and return a row for each workload, or the reason why it was not measured."""
        (data,) = pool.execute([self.asked], what="measurements")
        measured = {row["variant"]: row for row in data["rows"]}
        skipped = {row["variant"]: row["reason"] for row in data["skipped"]}
        rows = []
        for workload, variant in self.variants.items():
            row = {"workload": workload, "processor": data["computer"]["processor"]}
            if variant in measured:
                # A transaction of the simulated loop is a group of entries.
                loop = measured[variant]
                row["throughput_tx_per_s"] = 1e9 * loop["threads"] / self._group_ns(loop)
                row |= loop
            else:
                row |= {"throughput_tx_per_s": None, "reason": skipped.get(variant, "interrupted")}
            rows.append(row)
        return rows

    @staticmethod
    def _group_ns(row: Mapping[str, Any]) -> float:
        return row["ns_per_entry"] * row["entries_per_fence"]


def beside(
    workloads: Mapping[str, Sequence[tuple[str, str]]], machine: str, cores: int, seed: int
) -> Beside:
    """Return the measurements that go with a comparison of workloads, each with its settings."""
    found = {name: _loop(name, machine, settings) for name, settings in workloads.items()}
    loops = {name: loop for name, loop in found.items() if loop is not None}
    if not loops:
        raise InputError(
            f"`native` measures the loop of {LOOP}, which is not among the workloads; "
            f"add {LOOP}, or {LOOP}-cached, {LOOP}-movnti4, ... (`indelible list profiles`)"
        )
    of_first, first = next(iter(loops.items()))
    for name, loop in loops.items():
        unlike = [key for key in first if key != "variant" and loop[key] != first[key]]
        if unlike:
            raise InputError(
                "`native` measures loops that differ only in `variant`, and"
                f" `workload.{unlike[0]}` of {of_first} and {name} is {first[unlike[0]]} and"
                f" {loop[unlike[0]]}; compare them one at a time"
            )
    if cores > (available := pool.workers_available()):
        raise InputError(
            f"`native` needs a processor for each of {cores} threads, and this process may use "
            f"{available}; lower `cores`"
        )
    if first["work"] != XORSHIFT:
        raise InputError("`native` draws values only by xorshift; drop the setting workload.work")
    array = ELEMENT * int(first["items"]) // cores
    if not ARRAY_MIN <= array <= ARRAY_MAX:
        raise InputError(
            f"`native` measures arrays from 64 KiB to 16 GiB, and each thread's has {array:,}"
            " bytes; change workload.items (4 bytes each) or `cores`"
        )
    words = {
        "variants": list(dict.fromkeys(loop["variant"] for loop in loops.values())),
        "entries": [int(first["entries_per_fence"])],
        "fences": [first["fence"]],
        "values": ["xorshift"],
        "arrays": [f"{array // 1024}KiB"],
        "logs": [first["log"]],
        "logging": [first["logging"]],
        "array_writes": [first["array_writes"]],
        "threads": [cores],
        "quick": True,
        "whole": False,
        "seed": seed,
    }
    variants = {name: loop["variant"] for name, loop in loops.items()}
    return Beside(Logging(tuple(words.items())), variants)


def _loop(
    workload: str, machine: str, settings: Sequence[tuple[str, str]]
) -> dict[str, str] | None:
    """Return the loop's parameters (defaults, profile's, user's); None for other workloads.

    Among them is `items`, which is the machine's unless set.
    """
    profile = next((row for row in catalog("profiles") if row["name"] == workload), None)
    if LOOP not in (workload, profile and profile["workload"]):
        return None
    params = describe(LOOP)["params"]
    loop = {param["name"]: str(param["default"]) for param in params}
    if profile is not None:
        loop |= dict(word.split("=", 1) for word in profile["settings"].split())
    for param in params:
        asked = dict(settings).get(f"workload.{param['name']}", loop[param["name"]])
        if param["choices"] and asked not in param["choices"]:
            raise unknown(f"value of workload.{param['name']}", asked, param["choices"])
        loop[param["name"]] = asked
    return loop | {"items": _items(machine, settings)}


def _items(machine: str, settings: Sequence[tuple[str, str]]) -> str:
    """Return the number of elements of the array on a machine."""
    rows = describe(f"machine:{machine}", of_machine(tuple(settings)))
    found = (r for r in rows["rows"] if (r["section"], r["key"]) == ("workload", "items"))
    return str(next(found)["value"])
