"""What of an experiment may be otherwise, one field at a time: half, twice, another word."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_DOWN, Decimal
from typing import Any

from indelible.evaluation import TXS
from indelible.experiment import Experiment, InputError, describe
from indelible.names import closest_first
from indelible.scripts import called
from indelible.settings import ITEMS, as_word, number

#: Whose a field is.
RUN, MACHINE, DESIGN, WORKLOAD = "run", "machine", "design", "workload"

#: The fields of a run itself, as of a sweep; seeds are repetitions.
CORES = "cores"
RUN_FIELDS = (CORES, "txs")

#: What no run depends on: how much room there is, and what a power failure leaves.
IDLE_FIELDS = (
    "core.cores_max",
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
    metric: str,
) -> list[Field]:
    """Return what runs of some designs on some workloads depend on.

    `asked` has their machine, cores, transactions and settings, and `machine` the rows of it.
    """
    found = [] if "replay" in workloads else _of_run(asked, machine)
    for row in machine:
        name = f"{row['section']}.{row['key']}"
        is_energy = row["unit"].startswith(ENERGY) and metric != ENERGY_METRIC
        if not (name in IDLE_FIELDS or row["section"] == BATTERY or is_energy):
            # How many items there are is the machine's word, and of the workload.
            of = WORKLOAD if name == ITEMS else MACHINE
            found.append(Field(of, name, as_word(row["value"]), tuple(row["choices"])))
    for kind, names in ((DESIGN, designs), (WORKLOAD, workloads)):
        for name in names:
            found += _of_thing(kind, name, dict(asked.settings))
    return found


def _of_run(asked: Experiment, machine: Iterable[Mapping[str, Any]]) -> list[Field]:
    at = {CORES: asked.cores or cores_max(machine), "txs": asked.txs or TXS}
    return [Field(RUN, name, str(at[name])) for name in RUN_FIELDS]


def cores_max(machine: Iterable[Mapping[str, Any]]) -> int:
    """Return how many cores a machine has at most."""
    return next(int(row["value"]) for row in machine if row["key"] == "cores_max")


def _of_thing(kind: str, name: str, settings: Mapping[str, str]) -> Iterator[Field]:
    """Return the parameters of a design or a workload, as they are set."""
    for param in describe(f"{kind}:{name}")["params"]:
        # Those of workloads are known already.
        if f"{kind}.{param['name']}" != ITEMS:
            keys = (f"{called(name)}.{param['name']}", f"{kind}.{param['name']}")
            value = next((settings[key] for key in keys if key in settings), param["value"])
            yield Field(kind, keys[0], as_word(value), tuple(param["choices"]))


def among(found: Sequence[Field], names: Sequence[str]) -> list[Field]:
    """Return the fields of some names, of which one may be that of a section."""
    there = dict.fromkeys(name for field in found for name in _names(field))
    for name in names:
        if name not in there:
            close = ", ".join(closest_first(name, there)[:5])
            raise InputError(f"there is no field `{name}` here; the closest are {close}")
    return [field for field in found if not {*names}.isdisjoint(_names(field))]


def _names(field: Field) -> tuple[str, str]:
    return field.name.partition(".")[0], field.name


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
                refused.append(Refused(change, reason))
    return possible, refused


def _candidates(field: Field, by: int) -> Iterator[list[str]]:
    """Return what a field may be otherwise, each in the spellings that are to be tried."""
    if field.choices:
        yield from ([choice] for choice in field.choices if choice != field.value)
    elif (found := number(field.value)) is not None and found[0]:
        value, unit = found
        digits = (DIGITS, Decimal(1)) if unit else (Decimal(1),)
        for other in (value / by, value * by):
            rounded = dict.fromkeys(other.quantize(to, ROUND_DOWN) for to in digits)
            spelled = [f"{one.normalize():f}{unit}" for one in rounded if one not in (0, value)]
            # Of one there is no half.
            yield from [spelled] if spelled else []
