"""The base of a design of your own: a class that overrides the hooks that it changes.

Each hook has the name and the meaning of its counterpart in `crates/model/src/design.rs`, and the
same default: all defaults together are a machine without durability. Addresses are in bytes, times
in cycles, and a line is named by the address of its first byte. docs/design.md begins with a whole
design.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, ClassVar

# The types of the hooks' arguments, imported by name, so that annotations can use them. An `Image`
# or a `Gasp` raises `PowerLoss` when the power fails (again): do not catch it. Raise an
# `InputError` with a sentence for the user if the settings do not fit the machine.
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

#: Bytes of a line, which a controller accepts as a whole, and of a word, which the cells write as a
#: whole.
LINE = 64
WORD = 8


#: The ways in which a structure is kept through a power failure.
KEPT_BY = ("nothing", "adr", "battery", "eadr", "cells")


class Answer(Enum):
    """An answer of a hook that is no cycle."""

    #: The core waits until the design calls `below.wake`, or of a load `below.wake_load`.
    WAIT = "wait"
    #: The design has taken the line that leaves the caches.
    TAKEN = "taken"


WAIT = Answer.WAIT
TAKEN = Answer.TAKEN


@dataclass(frozen=True)
class Home:
    """The line that leaves the caches is sent to its home at cycle `at`.

    If `tell` is given, the design hears that event once the write is durable. The line is under way
    from now on: a campaign may have it arrive before `at`. A line that must not overtake something
    is `TAKEN`, and sent from `event`.
    """

    at: int
    tell: Any = None


@dataclass(frozen=True)
class Param:
    """A parameter: `--set design.NAME=value`.

    Whole numbers from `least` to `most`, or with `choices` one of some words. The values of `tight`
    make the structure that it sizes fill soon: trials (`crash --trials`, `--mutants`) take them in
    turn, and take a value that is listed twice twice as often.
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

    `kept_by` is `nothing`, `adr`, `battery`, `eadr` or `cells`. A structure that `power_loss` saves
    must be kept by `battery` or `adr`. Saving takes more energy from a place in a core or at its
    first level: `core`, `store queue`, `first level`, or a name that begins with `first-level`.
    """

    name: str
    bits: int
    count: int = 1
    place: str = "memory controller"
    kept_by: str = "nothing"

    def __post_init__(self) -> None:
        """Refuse a structure without a valid size, or with an unknown `kept_by`."""
        for name in ("bits", "count"):
            size = getattr(self, name)
            if not isinstance(size, int) or not 0 <= size < 2**63:
                raise ValueError(
                    f"`{name}` of `{self.name}` must be a whole number from 0 up, not {size!r}"
                )
        # Sums over structures, in kilobytes or in energy, are exact up to here.
        if self.bits * self.count >= 2**53:
            raise ValueError(
                f"`{self.name}` has {self.bits * self.count} bits; it must have fewer than 2^53"
            )
        if self.kept_by not in KEPT_BY:
            known = ", ".join(KEPT_BY)
            raise ValueError(
                f"`kept_by` of `{self.name}` must be one of {known}, not {self.kept_by!r}"
            )


@dataclass(frozen=True)
class Shape:
    """The machine as far as a design may know it: times in cycles, sizes and places in bytes."""

    cores: int
    #: The bytes of persistent memory. Data lie before `log_base`.
    capacity: int
    log_base: int
    #: Where the log of each core begins, and how many bytes it has.
    logs: tuple[int, ...]
    log_bytes: int
    #: Memory is spread over the controllers every `interleave` bytes.
    controllers: int
    interleave: int
    #: The time from a core to a controller past the caches, and that through all their levels.
    path: int
    walk: int
    #: The time from one controller to another; 0 if there is one.
    hop: int
    #: Cycles of a core in a second.
    frequency: int
    #: The lines that one core's first and second level hold, and the last level, which all share.
    l1d_lines: int
    l2_lines: int
    llc_lines: int
    #: Whether the contents of the caches survive a power failure.
    caches_survive: bool

    def cycles(self, nanoseconds: float) -> int:
        """Return a time as whole cycles, as the machine takes its own times.

        To the nearest cycle, and 0 only if the time is 0.
        """
        if nanoseconds < 0:
            raise ValueError(f"a time must not be negative, as {nanoseconds} ns")
        picoseconds = round(nanoseconds * 1000)
        cycles = (picoseconds * self.frequency + 10**12 // 2) // 10**12
        return max(cycles, 1) if nanoseconds else 0

    def controller_of(self, address: int) -> int:
        """Return which controller an address belongs to, from 0 on."""
        if not 0 <= address < self.capacity:
            raise ValueError(
                f"{address:#x} is outside of persistent memory, which ends at {self.capacity:#x}"
            )
        return address // self.interleave % self.controllers


class Values(SimpleNamespace):
    """Values by name; the error for an unknown name lists the known ones."""

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401
        raise AttributeError(f"there is no `{name}`; there are: {', '.join(vars(self)) or 'none'}")


@dataclass(frozen=True)
class Setup:
    """Everything that is fixed before power is first applied and the same after every reboot."""

    #: The value of each of `Design.params`, and whether each of `Design.rules` is obeyed.
    params: Values
    rules: Values
    shape: Shape


class Design:
    """A design: its card, and its hooks in the order in which a store meets them.

    A design changes what survives a power failure in `event` and nowhere else (ordering hardware
    that has declared what survives, or is `visible`, also in `store`). It makes data durable first
    and forgets its own copy after. If a hook returns None, the core goes on at once.
    """

    #: Shown by `explain`, beside the first line of the class's docstring.
    paper: ClassVar[str] = "ours"
    family: ClassVar[str] = "a script"
    #: When an acknowledged transaction is durable: `synchronous`, `asynchronous` or `none`.
    durability: ClassVar[str] = "synchronous"
    #: The unit that concurrent transactions must not share, `word` or `line`.
    granularity: ClassVar[str] = "line"
    #: The domain that must survive for its promise to hold: `nothing`, `adr` or `eadr`.
    needs: ClassVar[str] = "adr"
    #: For ordering hardware, on which a software log runs (`undo@./mine.py`): the order of stores
    #: that it promises, `fenced`, `epoch` or `visible` (docs/litmus.md). Such hardware has no
    #: durability and no granularity of its own.
    model: ClassVar[str | None] = None
    #: For ordering hardware: whether the design itself brings to memory the stores that its `store`
    #: is told of. The write-combining buffers then send nothing for stores past the caches.
    brings_stores: ClassVar[bool] = False
    #: For ordering hardware: whether a fence, and a flush, is an instruction.
    has_fences: ClassVar[bool] = True
    has_flushes: ClassVar[bool] = True
    #: Whether a thread may move to another core at any store, which takes that the design keeps no
    #: state of a thread beside a core.
    migrates: ClassVar[bool] = False
    params: ClassVar[Mapping[str, Param]] = {}
    #: The rules on which its correctness depends, each with the reason; `--mutants` switches each
    #: off.
    rules: ClassVar[Mapping[str, str]] = {}
    #: Rules that can be switched off without harm, each with the reason. Ordering hardware also
    #: names the rules of logs that are not needed on it: `flush_log`, or `undo:flush_log` for one
    #: log alone.
    needless: ClassVar[Mapping[str, str]] = {}

    shape: Shape

    def __new__(cls, setup: Setup) -> Self:
        """Set `params`, `rules` and `shape` to this setup's values, over those of the class."""
        design = super().__new__(cls)
        vars(design).update(params=setup.params, rules=setup.rules, shape=setup.shape)
        return design

    @classmethod
    def under(cls, log: str) -> str:
        """Return the design of a software log (`undo`, `redo` or `count`) on this hardware.

        For example: `indelible.run(Mine.under("undo"), "hash")`.
        """
        from indelible import scripts

        return scripts.under(log, cls)

    def __init__(self, setup: Setup) -> None:
        """Make the design for a machine that is switched on for the first time."""

    def begin(self, tx: Tx, below: Below) -> int | Answer | None:
        """Handle the begin of a core's transaction."""

    def load(self, load: Load, below: Below) -> int | Answer | None:
        """Return when the core may use the value of a load of persistent memory."""

    def store(self, store: Store, below: Below) -> int | Answer | None:
        """Return when a store that has taken effect in the caches may leave the store queue."""

    def fence(self, fence: Fence, below: Below) -> int | Answer | None:
        """For ordering hardware: return when an order, a durability or a write-back is done.

        `fence.kind` says what is asked for: `flush`, `order` (a log's ordering points) or
        `durable`.
        """

    def commit(self, tx: Tx, below: Below) -> int | Answer | None:
        """Return when a transaction that ends is acknowledged and its core may go on.

        None means at `tx.at`. At `tx.stored` its stores have left the core, and its loads are done.
        """

    def fill(self, fill: Fill, below: Below) -> int | None:
        """Return when a core has a line that comes from the last level or from memory."""

    def transfer(self, transfer: Transfer, below: Below) -> int | None:
        """Return when a core has a line that comes from another core."""

    def evict(self, evict: Evict, below: Below) -> Home | Answer | None:
        """Return what becomes of a dirty line that leaves the caches; None sends it to its home.

        With `TAKEN` the design sends the line later, as a write of kind `home_write_back`, or drops
        it.
        """

    def event(self, at: int, event: object, below: Below) -> None:
        """Handle an event that the design gave to `below`, for a write or for a time.

        Events of one cycle come in the order in which they were given.
        """

    def leaves_behind(self, line: int) -> bool:
        """Return, where caches survive, whether a dirty line must nevertheless not be saved.

        That is so if a transaction that has not committed stored to the line, and recovery cannot
        undo that.
        """
        return False

    def hears_at_once(self, event: object) -> bool:
        """Return whether the part told by this event is beside the controller that accepts.

        If it is not, and some of the design's state survives, campaigns also try images in which
        the write has arrived and the design has not heard of it.
        """
        return True

    def could_be_durable(
        self, below: Below, arrived: Arrived
    ) -> Iterable[tuple[int, bytes] | tuple[int, bytes, int]]:
        """For ordering hardware: return the writes that other timing could have made durable.

        Campaigns call it when the power is cut. They themselves try writes that are on their way to
        a controller, except those that the design is told of, if some of its state survives. For
        each write that the design's rules allow next, the hook calls `arrived()`, goes on as if the
        write had arrived or had not, and returns those that had, in their order: line, bytes, and a
        mask if not all bytes are written. By default any dirty line may have left the caches.
        """
        dirty = [line for line in below.dirty_lines() if arrived()]
        return [(line, below.line(line)) for line in dirty]

    def invariants(self) -> str | None:
        """Return None, or a sentence that says what is not true although every rule is on.

        Campaigns ask wherever they cut the power, before they look at what is left, and report the
        sentence as a violation; an `assert` that fails here is one, too. A mutant is not asked.
        Change no state: the run goes on.
        """
        return None

    def power_loss(self, gasp: Gasp) -> None:
        """Write what the battery still saves, in order. Change no state: the run goes on."""

    @classmethod
    def recover(cls, image: Image, setup: Setup) -> None:
        """Repair the image after a power failure, from the image and the setup alone.

        Unless stores are durable when they are visible, writes to different lines become durable in
        any order up to the next `image.fence()`; all of them are durable when recovery is done.
        """

    @classmethod
    def boot(cls, image: Image, setup: Setup) -> Self:
        """Make the design for a machine that is switched on again after recovery.

        Its writes become durable like those of recovery.
        """
        return cls(setup)

    @classmethod
    def hardware(cls, setup: Setup) -> Iterable[Structure]:
        """Return the structures that the design adds to the hardware."""
        return ()

    def counters(self) -> Mapping[str, int]:
        """Return its counters so far, by name; `..._max` is the largest value at any time."""
        return {}
