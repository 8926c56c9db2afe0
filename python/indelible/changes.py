"""What of an experiment may be otherwise, one field at a time: half, twice, another word."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_DOWN, Decimal
from typing import Any

from indelible.evaluation import TXS
from indelible.experiment import Experiment, InputError, describe
from indelible.names import closest_first
from indelible.scripts import called, is_script
from indelible.settings import ITEMS, as_word, canonical, number

#: Whose a field is.
RUN, MACHINE, DESIGN, WORKLOAD = "run", "machine", "design", "workload"

#: The fields of a run itself, as of a sweep; seeds are repetitions.
CORES = "cores"
RUN_FIELDS = (CORES, "txs")

#: The workloads that say these themselves.
TIMED = ("replay",)

#: What no run depends on: how much room there is, and what a power failure leaves. And what is no
#: hardware: how far cores are simulated ahead of each other.
IDLE_FIELDS = (
    "core.cores_max",
    "core.quantum",
    "pm.device_size",
    "dram.device_size",
    "controller.flush_bytes",
    "controller.battery_perc",
)

#: The section of what a battery is made of, and how the kinds of value begin that are energies of
#: cells, which the metric of energy alone depends on.
BATTERY = "energy"
ENERGY = "energy per"
ENERGY_METRIC = "pm-energy"

#: The unit of shares, of which there is no more than all.
SHARE, ALL = "%", Decimal(100)

#: The most digits behind the point of what is divided: a thousandth of a unit.
DIGITS = Decimal("0.001")


@dataclass(frozen=True)
class Field:
    """A field as it is."""

    #: Whose it is.
    of: str
    #: As of `--set`: that of a design or a workload has its name as the section.
    name: str
    value: str
    #: What it may be, if that is a word.
    choices: tuple[str, ...] = ()


@dataclass(frozen=True)
class Change:
    """One field that is otherwise than it is."""

    of: str
    field: str
    before: str
    after: str

    @property
    def is_larger(self) -> bool | None:
        """Whether it is a number that is larger then; of words none is."""
        before, after = number(self.before), number(self.after)
        return None if before is None or after is None else after[0] > before[0]

    def json(self) -> dict[str, Any]:
        """Return what of it stands in a row."""
        return {"of": self.of, "field": self.field, "before": self.before, "after": self.after}

    def __str__(self) -> str:
        return f"{self.field}={self.after}"


@dataclass(frozen=True)
class Refused:
    """A change that cannot be, and why."""

    change: Change
    reason: str


def fields(
    asked: Experiment,
    machine: Sequence[Mapping[str, Any]],
    designs: Iterable[str],
    workloads: Sequence[str],
    scripts: Collection[str],
    metric: str,
) -> list[Field]:
    """Return what runs of some designs on some workloads depend on.

    `asked` has their machine, cores, transactions and settings, and `machine` the rows of it. Of
    workloads that read `scripts` these say what they are.
    """
    settings = dict(asked.settings)
    found = [] if {*workloads} <= {*TIMED} else _of_run(asked, machine)
    for row in machine:
        name = f"{row['section']}.{row['key']}"
        is_energy = row["unit"].startswith(ENERGY) and metric != ENERGY_METRIC
        is_unused = name == ITEMS and all(has_own_items(settings, own) for own in workloads)
        if not (name in IDLE_FIELDS or row["section"] == BATTERY or is_energy or is_unused):
            # How many items there are is the machine's word, and of the workload.
            of = WORKLOAD if name == ITEMS else MACHINE
            found.append(Field(of, name, as_word(row["value"]), tuple(row["choices"])))
    for name in designs:
        found += _of_thing(DESIGN, name, settings)
    for name in workloads:
        if name not in scripts:
            found += _of_thing(WORKLOAD, name, settings)
    return found


def has_own_items(settings: Collection[str], workload: str) -> bool:
    """Return whether a workload's number of items is set by its own name."""
    return f"{workload}.items" in settings


def _of_run(asked: Experiment, machine: Iterable[Mapping[str, Any]]) -> list[Field]:
    at = {CORES: asked.cores or cores_max(machine), "txs": asked.txs or TXS}
    return [Field(RUN, name, str(at[name])) for name in RUN_FIELDS]


def cores_max(machine: Iterable[Mapping[str, Any]]) -> int:
    """Return how many cores a machine has at most."""
    return next(int(row["value"]) for row in machine if row["key"] == "cores_max")


def _of_thing(kind: str, name: str, settings: Mapping[str, str]) -> Iterator[Field]:
    """Return the parameters of a design or a workload, as they are set."""
    for param in describe(f"{kind}:{name}")["params"]:
        own, shared = (f"{of}.{param['name']}" for of in (called(name), kind))
        # The machine says how many items there are, unless that is set of this workload.
        if shared != ITEMS or has_own_items(settings, name):
            value = settings.get(own, settings.get(shared, param["value"]))
            yield Field(kind, own, as_word(value), tuple(param["choices"]))


def among(
    found: Sequence[Field], names: Sequence[str], machine: Iterable[Mapping[str, Any]]
) -> list[Field]:
    """Return the fields of some names as of `--set`, of which one may be that of a section."""
    own = [name for name, _ in canonical(tuple((name, "") for name in names), machine)]
    asked = {called(name) if is_script(name) else name for name in own}
    there = dict.fromkeys(name for field in found for name in _names(field))
    for name in sorted(asked - there.keys()):
        close = ", ".join(closest_first(name, there)[:5])
        raise InputError(f"there is no field `{name}` here; the closest are {close}")
    return [field for field in found if not asked.isdisjoint(_names(field))]


def _names(field: Field) -> tuple[str, ...]:
    """Return what a field goes by: its name, its section, and those of what it is one of."""
    section, _, key = field.name.rpartition(".")
    names = (field.name, section or field.name)
    return (*names, field.of, f"{field.of}.{key}") if field.of in (DESIGN, WORKLOAD) else names


def each(
    found: Iterable[Field], by: int, refusal: Callable[[Change], str | None]
) -> tuple[list[Change], list[Refused]]:
    """Return each number divided and multiplied, and each word replaced by each other one.

    `refusal` says why a change cannot be; a number that is then not whole is rounded, and last it
    is left out, and told with the reason.
    """
    possible: list[Change] = []
    refused: list[Refused] = []
    for field in found:
        for candidates in _candidates(field, by):
            for value in candidates:
                change = Change(field.of, field.name, field.value, value)
                reason = refusal(change)
                if reason is None:
                    possible.append(change)
                    break
            else:
                refused.append(Refused(change, str(reason)))
    return possible, refused


def _candidates(field: Field, by: int) -> Iterator[list[str]]:
    """Return what a field may be otherwise, each in the spellings that are to be tried."""
    if field.choices:
        yield from ([choice] for choice in field.choices if choice != field.value)
    elif (found := number(field.value)) is not None and found[0]:
        value, unit = found
        digits = (DIGITS, Decimal(1)) if unit else (Decimal(1),)
        more = min(value * by, ALL) if unit == SHARE else value * by
        for other in (value / by, more):
            rounded = dict.fromkeys(other.quantize(to, ROUND_DOWN) for to in digits)
            spelled = [f"{one.normalize():f}{unit}" for one in rounded if one not in (0, value)]
            # Of one there is no half.
            yield from [spelled] if spelled else []
