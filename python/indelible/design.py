"""What a design of your own is made of: a class with the hooks that it changes.

A hook has the name and the meaning of that in `crates/model/src/design.rs`, and what is left alone
does what it does there: all defaults together are a machine without durability. Addresses are in
bytes, times are cycles, and a line is the address of its first byte. docs/design.md begins with a
whole design.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, ClassVar

# What hooks are given, imported by name, since no other name is a type in an annotation. An image,
# or the last breath, raises `PowerLoss` when the power fails (again): let it pass. Raise an
# `InputError` with a sentence for whoever asked for what does not fit the machine.
from indelible._core import (
    Arrived,
    Below,
    Evict,
    Fence,
    Fill,
    Gasp,
    Image,
    InputError,
    Load,
    PowerLoss,
    Store,
    Transfer,
    Tx,
)

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = [
    "KEPT_BY",
    "LINE",
    "TAKEN",
    "WAIT",
    "WORD",
    "Answer",
    "Arrived",
    "Below",
    "Design",
    "Evict",
    "Fence",
    "Fill",
    "Gasp",
    "Home",
    "Image",
    "InputError",
    "Load",
    "Param",
    "PowerLoss",
    "Setup",
    "Shape",
    "Store",
    "Structure",
    "Transfer",
    "Tx",
    "Values",
]

#: Bytes of a line, and of a word: what a controller accepts, and what a cell keeps, at once.
LINE = 64
WORD = 8


#: What keeps a structure through a power failure.
KEPT_BY = ("nothing", "adr", "battery", "eadr", "cells")


class Answer(Enum):
    """What a hook answers that is no cycle."""

    #: The core waits until `below.wake`.
    WAIT = "wait"
    #: The line that leaves the caches is the design's now.
    TAKEN = "taken"


WAIT = Answer.WAIT
TAKEN = Answer.TAKEN


@dataclass(frozen=True)
class Home:
    """The line that leaves the caches goes home at a cycle, and the design is told when it is."""

    at: int
    tell: Any = None


@dataclass(frozen=True)
class Param:
    """A parameter: `--set design.NAME=value`.

    Whole numbers from `least` to `most`, or with `choices` one of some words. With values of
    `tight` what it sizes fills soon: trials (`crash --trials`, `--mutants`) take them in turn, and
    one that stands twice twice as often.
    """

    default: int | str
    least: int = 0
    most: int = 2**32
    doc: str = ""
    choices: Sequence[str] = ()
    tight: Sequence[int] = ()


@dataclass(frozen=True)
class Structure:
    """A piece of hardware that the design adds, and what keeps it through a power failure.

    `kept_by` is `nothing`, `adr`, `battery`, `eadr` or `cells`. What `power_loss` saves must be
    kept by `battery` or `adr`. A place that begins with `first-level cache` is dearer to save from.
    """

    name: str
    bits: int
    count: int = 1
    place: str = "memory controller"
    kept_by: str = "nothing"

    def __post_init__(self) -> None:
        """Refuse what has no size, or is kept by nothing that there is."""
        for name in ("bits", "count"):
            size = getattr(self, name)
            if not isinstance(size, int) or not 0 <= size < 2**63:
                raise ValueError(f"`{name}` of `{self.name}` is a whole number, and not {size!r}")
        if self.kept_by not in KEPT_BY:
            known = ", ".join(KEPT_BY)
            raise ValueError(f"`{self.name}` is kept by one of {known}, and not {self.kept_by!r}")


@dataclass(frozen=True)
class Shape:
    """The machine, as far as a design may know it: times in cycles, sizes and places in bytes."""

    cores: int
    #: Persistent memory has so many bytes. Data lie before `log_base`.
    capacity: int
    log_base: int
    #: Where the log of each core begins, and how many bytes it has.
    logs: tuple[int, ...]
    log_bytes: int
    controllers: int
    #: From a core to a controller past the caches, and through every level of them.
    path: int
    walk: int
    #: Whether a power failure leaves what is in the caches.
    caches_survive: bool


class Values(SimpleNamespace):
    """Values by name, of which one that there is not is told beside those that there are."""

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401
        raise AttributeError(f"there is no `{name}`; there are: {', '.join(vars(self)) or 'none'}")


@dataclass(frozen=True)
class Setup:
    """What is fixed before power is first applied, and is the same after every reboot."""

    #: A value for each of `Design.params`, and whether each of `Design.rules` holds.
    params: Values
    rules: Values
    shape: Shape


class Design:
    """A design: its card, and its hooks in the order in which a store meets them.

    What changes what survives a power failure changes it in `event` (ordering hardware that has
    declared what survives, or is `visible`, also in `store`); it is durable first, forgotten after.
    A hook that answers nothing lets the core go on at once.
    """

    #: What `explain` says of it, beside the first line of its docstring.
    paper: ClassVar[str] = "ours"
    family: ClassVar[str] = "a script"
    #: When an acknowledged transaction is durable: `synchronous`, `asynchronous` or `none`.
    durability: ClassVar[str] = "synchronous"
    #: What two transactions must not share, `word` or `line`.
    granularity: ClassVar[str] = "line"
    #: What must survive for its promise to hold: `nothing`, `adr` or `eadr`.
    needs: ClassVar[str] = "adr"
    #: Of ordering hardware, on which a software log stands (`undo@./mine.py`), what order of stores
    #: it promises: `fenced`, `epoch` or `visible` (docs/litmus.md). It has no durability and no
    #: granularity of its own.
    model: ClassVar[str | None] = None
    #: Of ordering hardware, whether its `store` brings to memory what it hears of: write-combining
    #: buffers then send nothing of what is stored past the caches.
    brings_stores: ClassVar[bool] = False
    #: Of ordering hardware, whether an order or a durability, and a write-back, is an instruction.
    has_fences: ClassVar[bool] = True
    has_flushes: ClassVar[bool] = True
    #: Whether a thread may move to another core at any store: nothing of it is kept beside a core.
    migrates: ClassVar[bool] = False
    params: ClassVar[Mapping[str, Param]] = {}
    #: What must hold for it to be right, each with the reason: `--mutants` switches each off.
    rules: ClassVar[Mapping[str, str]] = {}
    #: Rules without which nothing goes wrong, each with the reason. Ordering hardware also names
    #: those of logs that need nothing of the kind on it: `flush_log`, or of one log alone,
    #: `undo:flush_log`.
    needless: ClassVar[Mapping[str, str]] = {}

    shape: Shape

    def __new__(cls, setup: Setup) -> Self:
        """Give an object the values of its parameters and rules, in the place of their card."""
        design = super().__new__(cls)
        vars(design).update(params=setup.params, rules=setup.rules, shape=setup.shape)
        return design

    @classmethod
    def under(cls, log: str) -> str:
        """Return the name of a software log on this ordering hardware: `undo`, `redo` or `count`.

        So a class is a design: `indelible.run(Mine.under("undo"), "hash")`.
        """
        from indelible import scripts

        return scripts.under(log, cls)

    def __init__(self, setup: Setup) -> None:
        """Begin on a machine that has just been switched on."""

    def begin(self, tx: Tx, below: Below) -> int | Answer | None:
        """Hear that a transaction of a core begins."""

    def load(self, load: Load, below: Below) -> int | Answer | None:
        """Hear that a load of persistent memory has its value."""

    def store(self, store: Store, below: Below) -> int | Answer | None:
        """Hear that a store to persistent memory has taken effect in the caches."""

    def fence(self, fence: Fence, below: Below) -> int | Answer | None:
        """Of ordering hardware: hear that a program asks for order, durability or a write-back.

        By `fence.kind`: `flush`, `order` (a log's ordering points) or `durable`.
        """

    def commit(self, tx: Tx, below: Below) -> int | Answer | None:
        """Hear that a transaction ends: when its core goes on, it is acknowledged.

        That is at `tx.at` if nothing is said; at `tx.stored` its stores have left the core, and its
        loads are done.
        """

    def fill(self, fill: Fill, below: Below) -> int | None:
        """Say when a core has a line that comes from the last level or from memory."""

    def transfer(self, transfer: Transfer, below: Below) -> int | None:
        """Say when a core has a line that comes from another core."""

    def evict(self, evict: Evict, below: Below) -> Home | Answer | None:
        """Say what becomes of a dirty line that leaves the caches; it goes home if nothing is said.

        `TAKEN`: the design sends it later, of the kind `home_write_back`, or drops it.
        """

    def event(self, at: int, event: object, below: Below) -> None:
        """Do what is due: what `below` was given to tell, or to say at a time.

        Those of one cycle come in the order in which they were given.
        """

    def leaves_behind(self, line: int) -> bool:
        """Say, where caches survive, whether a dirty line is not to be saved.

        Because a transaction that has not committed stored to it, and recovery cannot undo that.
        """
        return False

    def hears_at_once(self, event: object) -> bool:
        """Say whether who is told of a write stands beside the controller that accepts it.

        If not, and something of the design survives, campaigns also try images in which the write
        is there and nobody was told.
        """
        return True

    def could_be_durable(
        self, below: Below, arrived: Arrived
    ) -> Iterable[tuple[int, bytes] | tuple[int, bytes, int]]:
        """Of ordering hardware: say what could be durable by now if timing had been otherwise.

        Asked when the power is cut. Writes on their way to a controller are tried anyway, but for
        those of which the design hears, if something of it survives. For each write that its rules
        allow then it asks `arrived()`, goes on as if it had arrived or not, and returns those that
        had, in their order: line, bytes, and a mask if not all of them. Left alone, any dirty line
        may have left the caches.
        """
        dirty = [line for line in below.dirty_lines() if arrived()]
        return [(line, below.line(line)) for line in dirty]

    def power_loss(self, gasp: Gasp) -> None:
        """Save what a battery still writes, in order, and change nothing: the run goes on."""

    @classmethod
    def recover(cls, image: Image, setup: Setup) -> None:
        """Repair what a power failure left. Nothing of a design's own is there but the image.

        What it writes to several lines becomes durable in any order until it asks for
        `image.fence()`, if stores are not durable when they are visible; all of it is at its end.
        """

    @classmethod
    def boot(cls, image: Image, setup: Setup) -> Self:
        """Begin on a machine that is switched on again, over what recovery left.

        What it writes becomes durable as what recovery writes does.
        """
        return cls(setup)

    @classmethod
    def hardware(cls, setup: Setup) -> Iterable[Structure]:
        """Return what it adds to the hardware."""
        return ()

    def counters(self) -> Mapping[str, int]:
        """Return what it has counted so far, by name; `..._max` is the most at any time."""
        return {}
