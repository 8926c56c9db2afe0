"""The changes of an experiment, one field at a time: half or twice a number, another word."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_DOWN, Decimal
from typing import Any

from indelible.errors import InputError
from indelible.evaluation import TXS
from indelible.experiment import Experiment
from indelible.extension import describe
from indelible.names import closest_first
from indelible.scripts import called, is_script
from indelible.settings import ITEMS, as_word, canonical, number

#: The owners of fields.
RUN, MACHINE, DESIGN, WORKLOAD = "run", "machine", "design", "workload"

#: The fields that say how large a run is, named as in a sweep; seeds are repetitions and no field.
CORES = "cores"
RUN_SIZES = (CORES, "txs")

#: The workloads that themselves fix the cores and the number of transactions.
TIMED = ("replay",)

#: Fields on which no run depends (how much room there is, what a power failure leaves), and one
#: that is no hardware (how far cores are simulated ahead of each other).
IDLE_FIELDS = (
    "core.cores_max",
    "core.quantum",
    "pm.device_size",
    "dram.device_size",
    "controller.flush_bytes",
    "controller.battery_perc",
)

#: The section about batteries; and how the units of the cells' energies begin, on which only the
#: metric of energy depends.
BATTERY = "energy"
ENERGY = "energy per"
ENERGY_METRIC = "pm-energy"

#: The unit of shares, and the largest share.
SHARE, ALL = "%", Decimal(100)

#: The most digits behind the point of what is divided: a thousandth of a unit.
DIGITS = Decimal("0.001")


@dataclass(frozen=True)
class Field:
    """A field with its present value."""

    #: The owner: the run, the machine, a design or a workload.
    of: str
    #: The name as in `--set`; a design's or a workload's own name is the section of its fields.
    name: str
    value: str
    #: The possible values, if these are words.
    choices: tuple[str, ...] = ()


@dataclass(frozen=True)
class Change:
    """One field with another value."""

    of: str
    field: str
    before: str
    after: str

    @property
    def is_larger(self) -> bool | None:
        """Whether the change makes a number larger; None for words."""
        before, after = number(self.before), number(self.after)
        return None if before is None or after is None else after[0] > before[0]

    def json(self) -> dict[str, Any]:
        """Return its fields in a row of the answer."""
        return {"of": self.of, "field": self.field, "before": self.before, "after": self.after}

    def __str__(self) -> str:
        return f"{self.field}={self.after}"


@dataclass(frozen=True)
class Refused:
    """A change that cannot be made, and the reason."""

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
    """Return the fields on which runs of some designs on some workloads depend.

    `asked` has their machine, cores, transactions and settings, and `machine` the machine's rows.
    Workloads that read `scripts` have the fields that their script gives them.
    """
    settings = dict(asked.settings)
    found = [] if {*workloads} <= {*TIMED} else _of_run(asked, machine)
    for row in machine:
        name = f"{row['section']}.{row['key']}"
        is_energy = row["unit"].startswith(ENERGY) and metric != ENERGY_METRIC
        is_unused = name == ITEMS and all(has_own_items(settings, own) for own in workloads)
        if not (name in IDLE_FIELDS or row["section"] == BATTERY or is_energy or is_unused):
            # The number of items is a row of the machine, but a field of the workload.
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
    return [Field(RUN, name, str(at[name])) for name in RUN_SIZES]


def cores_max(machine: Iterable[Mapping[str, Any]]) -> int:
    """Return how many cores a machine has at most."""
    return next(int(row["value"]) for row in machine if row["key"] == "cores_max")


def _of_thing(kind: str, name: str, settings: Mapping[str, str]) -> Iterator[Field]:
    """Return the parameters of a design or a workload with the values to which they are set."""
    for param in describe(f"{kind}:{name}")["params"]:
        own, shared = (f"{of}.{param['name']}" for of in (called(name), kind))
        # The machine's number of items holds unless this workload's own is set.
        if shared != ITEMS or has_own_items(settings, name):
            value = settings.get(own, settings.get(shared, param["value"]))
            yield Field(kind, own, as_word(value), tuple(param["choices"]))


def among(
    found: Sequence[Field], names: Sequence[str], machine: Iterable[Mapping[str, Any]]
) -> list[Field]:
    """Return the fields with the given names, as in `--set`; a name may be that of a section."""
    own = [name for name, _ in canonical(tuple((name, "") for name in names), machine)]
    asked = {called(name) if is_script(name) else name for name in own}
    there = dict.fromkeys(name for field in found for name in _names(field))
    for name in sorted(asked - there.keys()):
        close = ", ".join(closest_first(name, there)[:5])
        raise InputError(f"there is no field `{name}` here; the closest are {close}")
    return [field for field in found if not asked.isdisjoint(_names(field))]


def _names(field: Field) -> tuple[str, ...]:
    """Return the names of a field: its own, its section, and those with its kind of owner."""
    section, _, key = field.name.rpartition(".")
    names = (field.name, section or field.name, field.of)
    return (*names, f"{field.of}.{key}") if field.of in (DESIGN, WORKLOAD) else names


def each(
    found: Iterable[Field], by: int, refusal: Callable[[Change], str | None]
) -> tuple[list[Change], list[Refused]]:
    """Return each number divided and multiplied, and each word replaced by each other one.

    `refusal` says why a change cannot be made. A number that is refused because it is not whole is
    tried rounded; a change that is still refused is returned with the reason.
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
    """Return the other values of a field, each in the spellings to be tried in turn."""
    if field.choices:
        yield from ([choice] for choice in field.choices if choice != field.value)
    elif (found := number(field.value)) is not None and found[0]:
        value, unit = found
        digits = (DIGITS, Decimal(1)) if unit else (Decimal(1),)
        more = min(value * by, ALL) if unit == SHARE else value * by
        for other in (value / by, more):
            rounded = dict.fromkeys(other.quantize(to, ROUND_DOWN) for to in digits)
            spelled = [f"{one.normalize():f}{unit}" for one in rounded if one not in (0, value)]
            # Half of a whole 1 is rounded to 0 and so left out.
            yield from [spelled] if spelled else []
