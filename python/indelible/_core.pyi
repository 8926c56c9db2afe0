"""The simulator, compiled: the functions of the Rust crate `lab`, JSON text in and out."""

import builtins

from indelible.design import Answer

class InputError(ValueError):
    """What was asked for is impossible; the message says what is wrong and what is accepted."""

class HostError(InputError):
    """This computer has no room for what was asked for, which another one may have."""

class CheckError(InputError):
    """A program of the user's does not accept what a trace leaves when no power fails."""

class InternalError(RuntimeError):
    """A bug in the simulator; the message says where."""

class PowerLoss(Exception):  # noqa: N818
    """The power failed (again) before a write took effect; let it pass."""

class Tx:
    """A transaction of a core, when it begins or ends; its stores have left it at `stored`."""

    core: int
    id: int
    at: int
    stored: int

class Load:
    """A load of an aligned word, when the core has the value."""

    core: int
    tx: int | None
    address: int
    line: int
    at: int

class Store:
    """A store to an aligned word: what it was and is now. It leaves the core at `leaves`."""

    core: int
    tx: int | None
    address: int
    line: int
    old: int
    new: int
    at: int
    leaves: int
    past_caches: bool

class Fence:
    """What a program asks of ordering hardware: `flush`, `order` or `durable` (`kind`)."""

    core: int
    kind: str
    line: int | None
    keep: bool
    waits: bool
    why: str | None
    at: int
    drained: int

class Fill:
    """A line that comes to a core, from memory or from the last level."""

    core: int
    line: int
    memory: bool
    write: bool
    at: int
    asked: int
    earlier: int

class Transfer:
    """A line that goes from one core to another."""

    line: int
    from_core: int
    to_core: int
    write: bool
    at: int
    earlier: int

class Evict:
    """A dirty line that leaves the caches, with its newest bytes."""

    line: int
    at: int
    data: bytes

class Below:
    """What a design stands on, for as long as one of its hooks lasts."""

    def at(self, at: int, event: object) -> None:
        """Have `event` called at a cycle: work that nobody waits for."""

    def message(self, at: int, event: object, *, line: int | None = None) -> None:
        """Send a message to a controller: `event` is called when a controller looks at it.

        That is when it would look at a write that is sent at `at`, and later with
        `controller.arrival_jitter`, so that messages overtake each other. A message that brings a
        `line` stays in order with the writes of that line.
        """

    def wake(self, core: int, at: int) -> None:
        """Let a core go on at a cycle that a hook answered `WAIT`: one wake for each answer."""

    def wake_load(self, core: int, at: int) -> None:
        """Let a core have the value of a load that was answered `WAIT`."""

    def durable(self, core: int, tx: int, at: int) -> None:
        """Say of an asynchronous design that a transaction, and all before it, are durable.

        No earlier than its program has asked for the commit; every power failure from `at` on holds
        the design to it.
        """

    def line(self, address: int) -> bytes:
        """Return the newest bytes of the line at an address."""

    def word(self, address: int) -> int:
        """Return the newest value of the word at an address."""

    def controller_of(self, address: int) -> int:
        """Return which controller an address belongs to."""

    def read(self, at: int, address: int) -> int:
        """Read a line whose request is at its controller at `at`; return when the answer leaves."""

    def log(
        self,
        at: int,
        address: int,
        words: builtins.list[int],
        *,
        tell: object = None,
        kind: str = "log",
    ) -> int:
        """Send words to the log, past the caches: whole lines; return how many there are."""

    def send(
        self,
        at: int,
        address: int,
        data: bytes | bytearray,
        *,
        tell: object = None,
        kind: str = "data",
        mask: int = ...,
        direct: bool = False,
        waited: int | None = None,
    ) -> None:
        """Send a line, or the bytes of it that `mask` selects.

        With `direct` it is at its controller at `at`, where it may overtake an earlier write of the
        line.
        What has `waited` at its controller until a cycle does not take the path again.
        """

    def write_back(
        self,
        at: int,
        address: int,
        *,
        tell: object = None,
        kind: str = "data",
        keep: bool = True,
    ) -> bool:
        """Have a line written back; false if it is neither dirty nor on its way."""

    def flush(
        self, core: int, at: int, address: int, *, keep: bool = True, kind: str = "data"
    ) -> None:
        """Have a line written back for a core, whose next `fence` waits for that."""

    def fence(self, core: int, at: int) -> int | Answer:
        """Return a cycle, or `WAIT`: what a core has flushed is durable when it goes on."""

    def dirty_lines(self) -> builtins.list[int]:
        """Return the lines of persistent memory that are dirty in the caches."""

    def has_room(self, address: int) -> bool:
        """Return whether the controller of an address has room for a write now."""

    def when_room(self, address: int, event: object) -> None:
        """Have `event` called when the controller of an address may have room."""

    def give(
        self,
        at: int,
        address: int,
        data: bytes | bytearray,
        *,
        kind: str = "data",
        mask: int = ...,
    ) -> None:
        """Give a write to its controller in this moment; only from `event`, if it has room."""

    def give_up(self, text: str) -> None:
        """End the run with a sentence for the user."""

class Image:
    """The durable bytes after a power failure, for as long as the hook lasts."""

    @property
    def capacity(self) -> int:
        """How many bytes the memory holds."""

    def word(self, address: int) -> int:
        """Return the word at an address."""

    def words(self, address: int, count: int) -> builtins.list[int]:
        """Return the words from an address on."""

    def line(self, address: int) -> bytes:
        """Return the bytes of the line at an address."""

    def set_word(self, address: int, value: int) -> None:
        """Change a word, which is written whole or not at all."""

    def merge_word(self, address: int, value: int, mask: int = ...) -> None:
        """Change the bits of a word that `mask` selects, unless they are so: whole or not at all.

        That they are is not read, and so is nothing that recovery depends on.
        """

    def set_line(self, address: int, data: bytes | bytearray, mask: int = ...) -> None:
        """Change a line, or the bytes that `mask` selects: whole or not at all."""

    def fence(self) -> None:
        """Order writes: all that were made before are durable before any that is made after."""

class Arrived:
    """What says whether something could have become durable, for as long as the hook lasts."""

    def __call__(self) -> bool:
        """Return whether to go on as if it had."""

class Gasp:
    """The last breath of a machine, for as long as the hook lasts."""

    @property
    def at(self) -> int:
        """When the power failed."""

    def save(self, address: int, data: bytes | bytearray) -> None:
        """Save bytes at an address of persistent memory."""

    def save_words(self, address: int, words: builtins.list[int]) -> None:
        """Save words, one after the other, from an address of persistent memory on."""

class Control:
    """Watches and stops a simulation from another thread."""

    def __init__(self, threads: int | None = None) -> None:
        """Of a simulation that may use so many threads, or one for each processor."""

    def cancel(self) -> None:
        """Ask the simulation to stop and to return what it has."""

    @property
    def cancelled(self) -> bool:
        """Whether `cancel` was called."""

    @property
    def done(self) -> int:
        """How much of the work is done, in the unit of `total`."""

    @property
    def total(self) -> int:
        """How much work there is; 0 while that is not known."""

    @property
    def part(self) -> str:
        """Which part of the work is being done, in words."""

def trace(request: str, control: Control) -> tuple[str, bytes]:
    """Run one experiment and record a part of its timeline: the answer, a trace for Perfetto."""

def version() -> str:
    """Return the version of the simulator."""

def list(kind: str) -> str:
    """Return the designs, orders, workloads, profiles or machines, as `{"rows": [...]}`."""

def explain(
    name: str,
    settings: builtins.list[tuple[str, str]],
    against: str | None = None,
    on: tuple[str, int | None] | None = None,
) -> str:
    """Return everything known of a design, a workload, a machine or ordering hardware."""

def battery(
    designs: builtins.list[str],
    machine: str,
    cores: int | None,
    settings: builtins.list[tuple[str, str]],
) -> str:
    """Return the batteries that designs need; of every design, if none is named."""

def check(spec: str) -> None:
    """Refuse an experiment that cannot be, and run nothing."""

def run(spec: str, control: Control) -> str:
    """Run one experiment."""

def crash(spec: str, control: Control) -> str:
    """Cut the power during one experiment, at many points."""

def litmus(request: str, control: Control) -> str:
    """Run litmus tests on ordering hardware."""

def plain(spec: str) -> str:
    """Run the workload of one experiment on plain memory, without the simulator."""

def native_logging(request: str, control: Control) -> str:
    """Measure the loops of a log on this computer's processor."""

def note_asked(is_asked: bool) -> None:
    """Note that a design was set up without one of its rules, or that a hook asked for it."""

def fail(message: str) -> None:
    """Panic with a message, so that the tests see what a user would see."""
