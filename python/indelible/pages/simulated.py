"""The part of a page about what was simulated: machine, designs, workloads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from indelible import extension
from indelible.experiment import Script
from indelible.results.seeds import OfSeeds
from indelible.scripts import called
from indelible.settings import ITEMS, Pairs, canonical, of_cell, of_machine
from indelible.text import word

#: The file that the command that repeats a report writes.
REPORTED = ("--report", "report.html")

#: The fields of a design and of a workload that are shown beside its summary, where known.
FACTS = ("guarantee", "paper", "source", "family", "durability", "granularity", "file")


@dataclass(frozen=True)
class Simulated:
    """The request of an answer."""

    machines: Sequence[str]
    designs: Sequence[str]
    workloads: Sequence[str]
    settings: Pairs
    #: The scripts that workloads read, by the names of the workloads.
    scripts: Mapping[str, Script]
    #: Settings that vary, each with its values in words.
    varied: Pairs = ()

    @staticmethod
    def of(answer: OfSeeds, varied: Pairs = ()) -> Simulated:
        """Return what an answer is of."""
        return Simulated(
            machines=answer.machines,
            designs=answer.designs,
            workloads=answer.workloads,
            settings=answer.settings,
            scripts=answer.scripts,
            varied=varied,
        )

    @property
    def names(self) -> tuple[str, ...]:
        """The sections of settings that are not of the machine."""
        return (*self.designs, *self.workloads)


@dataclass(frozen=True)
class Field:
    """A field that `--set` knows, and its value."""

    name: str
    value: str
    #: What it would have been, if it was set to something else.
    unset: str | None
    about: str
    #: What else it was, if it varies.
    varies: str = ""
    #: Of a machine's field.
    unit: str = ""
    source: str = ""


@dataclass(frozen=True)
class Part:
    """A machine, a design or a workload."""

    name: str
    summary: str
    facts: Mapping[str, str]
    fields: Sequence[Field]

    @property
    def changed(self) -> list[Field]:
        """The fields that were set to something else."""
        return [field for field in self.fields if field.unset is not None]

    @property
    def varied(self) -> list[Field]:
        """The fields that vary."""
        return [field for field in self.fields if field.varies]


def machines(of: Simulated) -> list[Part]:
    """Return the machines, whose fields come with their sources."""
    return [_machine(of, name) for name in of.machines]


def _machine(of: Simulated, name: str) -> Part:
    summary = extension.describe(f"machine:{name}", of_machine(_of_all(of)))["summary"]
    return Part(name, summary, {}, _fields_of_machine(of, name, _of_all(of), (), of.varied))


def designs(of: Simulated) -> list[Part]:
    """Return the designs in the order of the rows."""
    return [_part(of, "design", name, design=name) for name in of.designs]


def workloads(of: Simulated) -> list[Part]:
    """Return the workloads in the order of the rows, also with the file that one reads."""
    return [_part(of, "workload", name, workload=name) for name in of.workloads]


def _part(of: Simulated, kind: str, name: str, *, design: str = "", workload: str = "") -> Part:
    settings = of_cell(of.settings, design, workload, of.names)
    own = tuple(pair for pair in settings if pair[0].startswith(f"{kind}."))
    about, usual = (extension.describe(f"{kind}:{name}", given) for given in (own, ()))
    unset = {param["name"]: param["value"] for param in usual["params"]}
    varied = dict(of_cell(of.varied, design, workload, of.names))
    fields = [
        Field(
            f"{kind}.{param['name']}",
            word(param["value"]),
            _other(param["value"], unset[param["name"]]),
            _said(param),
            varied.get(f"{kind}.{param['name']}", ""),
        )
        for param in about["params"]
    ]
    fields += _fields_of_its_machine(of, settings, design, workload)
    facts = {fact: word(about[fact]) for fact in FACTS if about.get(fact)}
    if (script := of.scripts.get(workload)) is not None:
        facts[script.flag] = script.path
    return Part(name, about.get("summary") or "", facts, fields)


def _fields_of_its_machine(
    of: Simulated, settings: Pairs, design: str, workload: str
) -> list[Field]:
    """Return what the machine of one design or workload has otherwise than that of all."""
    name = called(design) or workload
    varied = tuple(pair for pair in of.varied if pair[0].partition(".")[0] == name)
    varied = of_cell(varied, design, workload)
    each = [_fields_of_machine(of, at, settings, _of_all(of), varied) for at in of.machines]
    # Every machine has the same fields, in the same order.
    fields = [_on_all(on_each) for on_each in zip(*each, strict=True)]
    own = [field for field in fields if field.name != ITEMS]
    return [field for field in own if field.unset is not None or field.varies]


def _on_all(fields: Sequence[Field]) -> Field:
    """Return a field of one machine or several, with each of its values."""
    values = dict.fromkeys(field.value for field in fields)
    unset = dict.fromkeys(field.unset for field in fields if field.unset is not None)
    return replace(fields[0], value=", ".join(values), unset=", ".join(unset) or None)


def _fields_of_machine(
    of: Simulated, machine: str, settings: Pairs, unset: Pairs, varied: Pairs
) -> list[Field]:
    """Return a machine's fields with settings, and what they would be with others."""
    rows, usual = (
        extension.describe(f"machine:{machine}", of_machine(given))["rows"]
        for given in (settings, unset)
    )
    values = {_key(row): row["value"] for row in usual}
    varies = dict(canonical(of_cell(varied, "", "", of.names), usual))
    return [
        Field(
            _key(row),
            word(row["value"]),
            _other(row["value"], values.get(_key(row), row["value"])),
            _said(row),
            varies.get(_key(row), ""),
            row["unit"],
            row["source"],
        )
        for row in rows
    ]


def _of_all(of: Simulated) -> Pairs:
    """Return the settings that are not those of one design or workload."""
    return of_cell(of.settings, "", "", of.names)


def _key(row: Mapping[str, Any]) -> str:
    return f"{row['section']}.{row['key']}"


def _other(value: object, unset: object) -> str | None:
    return None if value == unset else word(unset)


def _said(row: Mapping[str, Any]) -> str:
    """Return the description of a field, and its possible values."""
    accepted = f" [{row['range']}]" if row.get("range") else ""
    return f"{row.get('doc', '')}{accepted}"
