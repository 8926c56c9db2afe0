"""What was simulated in a comparison: the machine, the designs, the workloads, and the words."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from indelible import experiment
from indelible.results import Comparison
from indelible.settings import ITEMS, Pairs, of_cell
from indelible.text import word

#: The name of the file in the command that repeats a report.
REPORT = "report.html"

#: What is told of a design and of a workload beside its summary, as far as it is known.
FACTS = ("guarantee", "paper", "source", "family", "durability", "granularity", "file")

#: Settings of these sections are no field of a machine, but for how many items there are.
OF_CELLS = ("design.", "workload.")


@dataclass(frozen=True)
class Field:
    """A field that `--set` knows, and what it was."""

    name: str
    value: str
    #: What it would have been, if it was set to something else.
    unset: str | None
    about: str
    #: Of a machine's field.
    unit: str = ""
    source: str = ""


@dataclass(frozen=True)
class Part:
    """The machine, a design or a workload of a comparison."""

    name: str
    summary: str
    facts: Mapping[str, str]
    fields: Sequence[Field]

    @property
    def changed(self) -> list[Field]:
        """The fields that were set to something else."""
        return [field for field in self.fields if field.unset is not None]


def machine(answer: Comparison) -> Part:
    """Return the machine, whose fields come with their sources."""
    settings = of_cell(answer.settings, "", "", (*answer.designs, *answer.workloads))
    own = tuple(
        (key, value) for key, value in settings if key == ITEMS or not key.startswith(OF_CELLS)
    )
    about, usual = (_described(f"machine:{answer.machine}", given) for given in (own, ()))
    unset = {_key(row): row["value"] for row in usual["rows"]}
    fields = [
        Field(
            _key(row),
            word(row["value"]),
            _other(row["value"], unset.get(_key(row), row["value"])),
            _said(row),
            row["unit"],
            row["source"],
        )
        for row in about["rows"]
    ]
    return Part(answer.machine, about["summary"], {}, fields)


def designs(answer: Comparison) -> list[Part]:
    """Return the designs in the order of the rows."""
    return [_part(answer, "design", name, design=name) for name in answer.designs]


def workloads(answer: Comparison) -> list[Part]:
    """Return the workloads in the order of the rows, also with the file that one reads."""
    return [_part(answer, "workload", name, workload=name) for name in answer.workloads]


def _part(
    answer: Comparison, kind: str, name: str, *, design: str = "", workload: str = ""
) -> Part:
    every = (*answer.designs, *answer.workloads)
    settings = of_cell(answer.settings, design, workload, every)
    own = tuple(pair for pair in settings if pair[0].startswith(f"{kind}."))
    about, usual = (_described(f"{kind}:{name}", given) for given in (own, ()))
    unset = {param["name"]: param["value"] for param in usual["params"]}
    fields = [
        Field(
            f"{kind}.{param['name']}",
            word(param["value"]),
            _other(param["value"], unset[param["name"]]),
            _said(param),
        )
        for param in about["params"]
    ]
    facts = {fact: word(about[fact]) for fact in FACTS if about.get(fact)}
    scripts = (run.experiment.script for run in answer.runs.values() if run.workload == workload)
    facts |= {script.flag: script.path for script in scripts if script is not None}
    return Part(name, about.get("summary") or "", facts, fields)


def _described(name: str, settings: Pairs) -> Mapping[str, Any]:
    return experiment.describe(name, settings)


def _key(row: Mapping[str, Any]) -> str:
    return f"{row['section']}.{row['key']}"


def _other(value: object, unset: object) -> str | None:
    return None if value == unset else word(unset)


def _said(row: Mapping[str, Any]) -> str:
    """Return what a field is, and what it may be."""
    accepted = f" [{row['range']}]" if row.get("range") else ""
    return f"{row.get('doc', '')}{accepted}"


def command(answer: Comparison) -> str:
    """Return the command line that repeats a comparison that has a run, and its report."""
    asked = next(iter(answer.runs.values())).experiment
    words = ["indelible", "compare", *_names("--designs", answer.designs)]
    words += [*_names("--workloads", answer.workloads), "--machine", answer.machine]
    if None not in answer.cores:
        words += _names("--cores", answer.cores)
    words += ["--normalize", answer.normalize, "--seed", str(answer.seeds[0])]
    words += [] if answer.metric == "throughput" else ["--metric", answer.metric]
    words += [] if asked.txs is None else ["--txs", str(asked.txs)]
    words += ["--seeds", str(len(answer.seeds))] if len(answer.seeds) > 1 else []
    words += [part for pair in answer.settings for part in ("--set", "=".join(pair))]
    read = dict.fromkeys(run.experiment.script for run in answer.runs.values())
    words += [part for script in read if script for part in (script.flag, script.path)]
    return shlex.join([*words, *_flags(answer), "--report", REPORT])


def _names(flag: str, values: Sequence[object]) -> list[str]:
    return [flag, ",".join(map(str, values))]


def _flags(answer: Comparison) -> Iterator[str]:
    """Return the words that stand alone; `--latencies` does so beside no other metric."""
    asked = next(iter(answer.runs.values())).experiment
    if asked.exact:
        yield "--exact"
    if asked.latencies and answer.metric == "throughput" and not answer.native:
        yield "--latencies"
    if answer.native:
        yield "--native"
    if all(verdict.kind == "none" for verdict in answer.verdicts.values()):
        yield "--no-crash"
