"""Cached and uncacheable logs on the processor of this computer, maybe beside the simulated ones.

from indelible import native

print(native.logging(quick=True))
native.logging(variants=["cached", "movnti4"], entries=[1, 8]).rows
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from indelible import sweep
from indelible.experiment import Experiment, InputError, Logging, describe

#: The published speed of the cached log over the uncacheable one (Li, Ogleari and Zhao, section
#: 4.2): entries before a fence that fill a part of a write-combining buffer, and a whole one.
PUBLISHED = {1: 11.13, 8: 5.06}

#: The paper's two logs, and the cached one that is durable.
CACHED, UNCACHEABLE, DURABLE = "cached", "movnti4", "cached+clwb"

#: What the simulated loop runs on: the kind of memory, the ordering hardware (the design of which
#: a loop without stores in transactions uses nothing else), and the durability domain.
SIMULATED = {
    "dram": ("dram", "undo@x86", "adr"),
    "adr": ("pm", "undo@x86", "adr"),
    "gpf": ("pm", "undo@x86", "gpf"),
    "media": ("pm", "undo@x86", "media"),
    "eadr": ("pm", "undo@eadr", "eadr"),
}

#: Entries of each core that are simulated after a tenth of them has warmed the machine up (ours:
#: a thousand lines of log, so that what is written back comes and goes evenly).
SIMULATED_ENTRIES = 8192

#: What makes a row of the table: all words of it but the number of entries.
ROW = ("variant", "value", "fence", "array_bytes", "log", "logging", "array_writes", "threads")


@dataclass(frozen=True, repr=False)
class Answer:
    """What was measured: `answer.rows` are the rows of its JSON."""

    data: Mapping[str, Any]
    asked: Logging
    simulated: tuple[Mapping[str, Any], ...] = ()
    machine: str | None = None

    @property
    def rows(self) -> Sequence[Mapping[str, Any]]:
        """The rows, one for each loop."""
        return self.data["rows"]

    def cycles(self, variant: str, entries: int, value: str = "xorshift") -> float | None:
        """Return the median of the first row of these, fenced by `sfence`, if there is one."""
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
        return answer

    def __repr__(self) -> str:
        return f"<Answer {self.asked.command()}>"

    def __str__(self) -> str:
        from indelible import native_text

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
) -> Answer:
    """Measure the paper's loop on this computer; `against` simulates it on a machine, too."""
    words = {
        "variants": variants,
        "entries": entries,
        "fences": fences,
        "values": values,
        "arrays": arrays,
        "logs": logs,
        "logging": logging,
        "array_writes": array_writes,
        "threads": threads,
        "quick": quick,
        "whole": whole,
        "seed": seed,
    }
    if against is not None:
        _require_simulated(against, values, fences)
    asked = Logging(tuple(words.items()))
    try:
        (data,) = sweep.execute([asked], what="measurements")
    except sweep.Interrupted as interrupt:
        (data,) = interrupt.partial
        raise sweep.Interrupted(data and Answer(data, asked)) from None
    answer = Answer(data, asked)
    if against is None:
        return answer
    try:
        return Answer(data, asked, _simulate(answer, against), against)
    except sweep.Interrupted:
        raise sweep.Interrupted(answer) from None


def _require_simulated(
    machine: str, values: Sequence[str] | None, fences: Sequence[str] | None
) -> None:
    """Refuse what cannot be simulated, before anything is measured."""
    about = describe(machine if "/" in machine or "." in machine else f"machine:{machine}")
    if about["kind"] != "machine":
        raise InputError(f"--against {machine}: that is a {about['kind']} and no machine")
    if values is not None and "xorshift" not in values:
        raise InputError("--against simulates values of xorshift alone: add it to --values")
    if fences is not None and not {"sfence", "none"} & {*fences}:
        raise InputError(
            "--against simulates the fences sfence and none alone: add one to --fences"
        )


def loops(answer: Answer) -> list[dict[str, Any]]:
    """Return the loops that the simulator knows, those of missing instructions included."""
    known: dict[tuple[Any, ...], dict[str, Any]] = {}

    def add(row: Mapping[str, Any]) -> None:
        words = {name: row[name] for name in (*ROW, "entries_per_fence")}
        known.setdefault(tuple(words.values()), words)

    # There is one fence there, or none, and a value is so many instructions.
    fences = {"sfence", "none"} if dict(answer.asked.asked)["fences"] else {"sfence"}
    rows = [r for r in answer.rows if r["value"] == "xorshift" and r["fence"] in fences]
    for row in rows:
        add(row)
    for skipped in answer.data["skipped"]:
        for row in rows:
            if row["fence"] == "sfence" and row["array_writes"] == skipped["array_writes"]:
                add({**row, "variant": skipped["variant"]})
    return [*known.values()]


def _simulate(answer: Answer, machine: str) -> tuple[dict[str, Any], ...]:
    cells = [(loop, place) for loop in loops(answer) for place in SIMULATED]
    jobs = [_experiment(loop, place, machine, answer.asked) for loop, place in cells]
    answers = sweep.execute(jobs)
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
        "workload.items": loop["array_bytes"] // 4 * loop["threads"],
    }
    return Experiment(
        design,
        "logcache",
        machine,
        cores=loop["threads"],
        txs=SIMULATED_ENTRIES // loop["entries_per_fence"],
        seed=dict(asked.asked)["seed"],
        settings=tuple((key, str(value)) for key, value in settings.items()),
    )


def _row(loop: Mapping[str, Any], place: str, data: Mapping[str, Any]) -> dict[str, Any]:
    memory, design, domain = SIMULATED[place]
    # Cores run beside each other, so a core's entries are what its time is divided by.
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
