"""The probes of a simulated machine's memories, and the published numbers of real memories.

This module has the data, and computes each number from the rows of runs; it runs nothing. Every
probe consists of runs of the workload `probe` on `undo@x86`. They use only the ordering hardware of
that design, since the workload's stores are outside of transactions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from indelible import extension
from indelible.evaluation import Cell, Quantity, Row, Rows
from indelible.names import unknown
from indelible.settings import Pairs, number

DESIGN = "undo@x86"
WORKLOAD = "probe"

LINE = 64
KIB, MIB = 1 << 10, 1 << 20
BYTES = {"B": 1, "KiB": KIB, "MiB": MIB, "GiB": 1 << 30, "TiB": 1 << 40}

#: Transactions of a core. A tenth as many, that is one more, come first as warm-up.
TXS = 10
#: So few transactions that there is no warm-up: all bytes written are then counted, from the first
#: to the last, and none stay in a buffer.
TXS_WITHOUT_WARM_UP = 8

#: Dependent loads of uncached memory in each transaction, with one core (ours: the ten transactions
#: give a mean that another seed moves by less than one in a hundred) and with several cores.
COLD_LOADS, LOADED_LOADS = 1_000, 256
#: The bytes over which a core spreads such loads (ours: so many rows that one is rarely open).
COLD_SPAN = 8 * MIB
#: The bytes over which single persists are spread, so few that the first level holds them.
PERSIST_SPAN = 16 * KIB
#: Single persists of a transaction, so many that the warm-up writes each line.
PERSISTS = 2_560
#: Lines of all cores together with which a bandwidth is measured (ours: with four times as many
#: no bandwidth of `optane` differs by more than one in fifty).
LOADED_LINES, STORED_LINES = 65_536, 20_480
#: Each core has at least one part in so many of these lines.
PART_OF_CORE = 16
#: The bytes over which independent loads and stores are spread, so many that loads rarely meet a
#: line twice, and stores rarely a line that a buffer still has. (Each page that is stored to costs
#: the host memory.)
LOADED_SPAN, STORED_SPAN = 1 << 30, 32 * MIB
#: Lines that are stored to where bytes are counted.
COUNTED_LINES = 16_384
#: The best number of cores is the smallest that reaches this share of the largest bandwidth.
NEARLY_ALL = 0.95


@dataclass(frozen=True)
class Memory:
    """The values of a machine on which the runs of probes depend."""

    machine: str
    #: The settings over the machine's own values.
    settings: Pairs
    cores: int
    controllers: int
    domain: str
    #: The sizes of the first, the second and the last level, and of both memories, in bytes.
    levels: tuple[int, int, int]
    pm: int
    dram: int
    #: The bytes that are written to the cells at once.
    cells: int

    @staticmethod
    def of(machine: str, settings: Pairs) -> Memory:
        """Read the values of a machine, or refuse an unknown name."""
        rows = extension.describe(f"machine:{machine}", settings)["rows"]
        said = {f"{row['section']}.{row['key']}": str(row["value"]) for row in rows}
        buffered = int(said["pm.xpbuffer_entries"]) > 0 and said["controller.domain"] != "media"
        return Memory(
            machine,
            settings,
            cores=int(said["core.cores_max"]),
            controllers=int(said["controller.count"]),
            domain=said["controller.domain"],
            levels=(_bytes(said["l1d.size"]), _bytes(said["l2.size"]), _bytes(said["llc.size"])),
            pm=_bytes(said["pm.device_size"]),
            dram=_bytes(said["dram.device_size"]),
            cells=_bytes(said["pm.xpline"]) if buffered else LINE,
        )

    def span_of(self, level: int) -> int | None:
        """Return a span that this level holds and those above do not; None if there is none."""
        above = self.levels[level - 1] if level else 0
        size = self.levels[level]
        return next((span for span in (size // 2, size) if span > above), None)

    def counts(self) -> list[int]:
        """Return the powers of two up to the number of cores, and that number."""
        doubled = [1 << power for power in range(self.cores.bit_length())]
        return [*dict.fromkeys([*doubled, self.cores])]


def _bytes(size: str) -> int:
    known = number(size)
    assert known is not None, f"a machine says {size}"
    count, unit = known
    return int(count * BYTES[unit])


@dataclass(frozen=True)
class Probe:
    """A number about a memory: the runs that it needs, and how it is computed from their rows."""

    name: str
    group: str
    unit: str
    what: str
    #: Returns the runs and the number, or None if the machine has no such part.
    quantity: Callable[[Memory], Quantity | None]
    #: Returns the number of cores that gives the number, where several are tried.
    cores: Callable[[Memory, Rows], int] | None = None


# Runs.


def _cell(cores: int, accesses: int, span: int, txs: int = TXS, **settings: object) -> Cell:
    own = {"items": span // LINE, "accesses": accesses, **settings}
    pairs = tuple((f"workload.{name}", str(value)) for name, value in own.items())
    return Cell(DESIGN, WORKLOAD, cores, pairs, txs=txs)


def _chase(cores: int, accesses: int, span: int, pattern: str, memory: str = "pm") -> Cell:
    """Return a run in which each load depends on the one before."""
    return _cell(
        cores, accesses, span, access="load", dependent="yes", pattern=pattern, memory=memory
    )


def footprint(span: int, levels: tuple[int, int, int]) -> Cell:
    """Return a run of random dependent loads, of lines loaded before if the caches have room."""
    # Loads in more bytes than the last level holds miss anyway: a run need not reach all of them.
    loads = max(span // LINE, COLD_LOADS) if span <= levels[-1] else COLD_LOADS
    return _chase(1, loads, span, "random")


def _cold(memory: Memory, pattern: str, kind: str = "pm", cores: int = 1) -> Cell:
    """Return a run of dependent loads of memory that no cache has."""
    room = (memory.pm if kind == "pm" else memory.dram) // 4
    loads = COLD_LOADS if cores == 1 else LOADED_LOADS
    span = COLD_SPAN if pattern == "random" else (TXS + 1) * loads * LINE
    return _chase(cores, loads, min(cores * span, room), pattern, kind)


def stream(memory: Memory, cores: int, access: str, pattern: str, block: int = LINE) -> Cell:
    """Return a run of independent accesses to blocks that no cache has."""
    loads = access == "load"
    lines = LOADED_LINES if loads else STORED_LINES
    lines = max(lines // cores, lines // PART_OF_CORE)
    accesses = max(lines * LINE // block // TXS, 1)
    visited = cores * accesses * (TXS + 1) * block
    if pattern == "random":
        visited = LOADED_SPAN if loads else STORED_SPAN
    span = min(visited, memory.pm // 4)
    return _cell(cores, accesses, span, access=access, pattern=pattern, block=block)


def counted(memory: Memory, pattern: str, block: int) -> Cell:
    """Return a run of stores past the caches in which every written byte is counted."""
    accesses = COUNTED_LINES * LINE // block // TXS_WITHOUT_WARM_UP
    span = min(STORED_SPAN if pattern == "random" else COUNTED_LINES * LINE, memory.pm // 4)
    own = {"access": "ntstore", "pattern": pattern, "block": block}
    return _cell(1, accesses, span, TXS_WITHOUT_WARM_UP, **own)


# Numbers from rows.


def _said(cell: Cell, name: str) -> str:
    return dict(cell.settings)[f"workload.{name}"]


def _accesses(cell: Cell, row: Row) -> int:
    """Return the number of measured accesses of all cores."""
    return int(row["txs"]) * int(_said(cell, "accesses"))


def latency(cell: Cell, rows: Rows) -> float:
    """Return the nanoseconds of one access in a run with dependent accesses."""
    row = rows(cell)
    return 1e9 * row["simulated_s"] * row["cores"] / _accesses(cell, row)


def bandwidth(cell: Cell, rows: Rows) -> float:
    """Return the gigabytes accessed in a second."""
    row = rows(cell)
    return _accesses(cell, row) * int(_said(cell, "block")) / row["simulated_s"] / 1e9


def amplification(memory: Memory, cell: Cell, rows: Rows) -> float:
    """Return how many bytes of cells are programmed for each byte stored."""
    row = rows(cell)
    stored = _accesses(cell, row) * int(_said(cell, "block"))
    return row["pm_writes"]["media_lines"] * memory.cells / stored


# Probes.


def _one(cell: Cell) -> Quantity:
    return Quantity((cell,), lambda rows: latency(cell, rows))


def _level(level: int) -> Callable[[Memory], Quantity | None]:
    def quantity(memory: Memory) -> Quantity | None:
        span = memory.span_of(level)
        return None if span is None else _one(footprint(span, memory.levels))

    return quantity


def _memory(pattern: str, kind: str) -> Callable[[Memory], Quantity]:
    return lambda memory: _one(_cold(memory, pattern, kind))


def _loaded(memory: Memory) -> Quantity | None:
    return None if memory.cores == 1 else _one(_cold(memory, "random", cores=memory.cores))


def _persist(access: str) -> Callable[[Memory], Quantity]:
    def quantity(memory: Memory) -> Quantity:
        span = min(PERSIST_SPAN, memory.levels[0] // 2)
        return _one(_cell(1, PERSISTS, span, access=access, fence="sfence"))

    return quantity


def _stream(name: str, what: str, access: str, pattern: str, block: int = LINE) -> Probe:
    def cells(memory: Memory) -> dict[int, Cell]:
        return {n: stream(memory, n, access, pattern, block) for n in memory.counts()}

    def quantity(memory: Memory) -> Quantity:
        own = tuple(cells(memory).values())
        return Quantity(own, lambda rows: max(bandwidth(cell, rows) for cell in own))

    def cores(memory: Memory, rows: Rows) -> int:
        moved = {count: bandwidth(cell, rows) for count, cell in cells(memory).items()}
        most = max(moved.values())
        return min(count for count, found in moved.items() if found >= NEARLY_ALL * most)

    return Probe(name, "bandwidth", "GB/s", what, quantity, cores)


def _amplified(name: str, what: str, pattern: str, block: int) -> Probe:
    def quantity(memory: Memory) -> Quantity:
        cell = counted(memory, pattern, block)
        return Quantity((cell,), lambda rows: amplification(memory, cell, rows))

    return Probe(name, "amplification", "x", what, quantity)


#: The sizes in bytes of the blocks whose write amplification is measured.
BLOCKS = (64, 128, 256, 512)

PROBES = {
    probe.name: probe
    for probe in (
        Probe("l1", "latency", "ns", "first level", _level(0)),
        Probe("l2", "latency", "ns", "second level", _level(1)),
        Probe("llc", "latency", "ns", "last level", _level(2)),
        Probe("pm-sequential", "latency", "ns", "PM in order", _memory("sequential", "pm")),
        Probe("pm-random", "latency", "ns", "PM at random", _memory("random", "pm")),
        Probe("pm-random-loaded", "latency", "ns", "PM at random, all cores", _loaded),
        Probe("dram-sequential", "latency", "ns", "DRAM in order", _memory("sequential", "dram")),
        Probe("dram-random", "latency", "ns", "DRAM at random", _memory("random", "dram")),
        Probe("clwb", "persist", "ns", "store + clwb + sfence", _persist("store+clwb")),
        Probe("ntstore", "persist", "ns", "ntstore + sfence", _persist("ntstore")),
        _stream("read-sequential", "loads in order", "load", "sequential"),
        _stream("read-random", "loads at random", "load", "random"),
        _stream("read-random-256", "loads at random, 256 B", "load", "random", 256),
        _stream("ntstore-sequential", "ntstores in order", "ntstore", "sequential"),
        _stream("ntstore-random", "ntstores at random", "ntstore", "random"),
        _stream("ntstore-random-256", "ntstores at random, 256 B", "ntstore", "random", 256),
        _stream("clwb-sequential", "store + clwb in order", "store+clwb", "sequential"),
        *(
            _amplified(f"random-{block}", f"ntstores at random, {block} B", "random", block)
            for block in BLOCKS
        ),
        _amplified("sequential", "ntstores in order", "sequential", LINE),
    )
}

GROUPS = tuple(dict.fromkeys(probe.group for probe in PROBES.values()))

#: A description of each group for the table.
ABOUT = {
    "latency": "each load's address is the value of the one before",
    "persist": "one store at a time, to lines that the first level holds",
    "bandwidth": "accesses of 64 B that do not wait for each other, the best number of cores;"
    " (n): so many reach 95 % of it",
    "amplification": "bytes programmed into cells for each byte stored",
}


# Published numbers.


@dataclass(frozen=True)
class Published:
    """A published measurement, and its source."""

    value: float
    source: str
    #: Whether it is the bandwidth of one DIMM; a machine has one at each controller.
    is_per_dimm: bool = False
    #: Whether it is cited from memory and was not looked up again.
    is_from_memory: bool = False
    #: Whether it is of VANS, a model that was fitted to the hardware, and of the DIMM's side alone.
    is_of_model: bool = False

    def of(self, memory: Memory) -> float:
        """Return the number for a whole machine."""
        return self.value * (memory.controllers if self.is_per_dimm else 1)


_IZRAELEVITZ = "Izraelevitz+ 2019"
_YANG = "Yang+ FAST'20"
_VANS = (
    "VANS, which was fitted to Optane: the DIMM's side alone, one DIMM, its shipped configuration"
)
_XPLINE = f"{_IZRAELEVITZ}, {_YANG}: lines of 256 B"

#: By machine and by probe.
PUBLISHED: Mapping[str, Mapping[str, Published]] = {
    "optane": {
        "pm-sequential": Published(169, _IZRAELEVITZ, is_from_memory=True),
        "pm-random": Published(305, _IZRAELEVITZ),
        "dram-sequential": Published(81, _IZRAELEVITZ, is_from_memory=True),
        "dram-random": Published(101, _IZRAELEVITZ, is_from_memory=True),
        "clwb": Published(62, _YANG, is_from_memory=True),
        "ntstore": Published(90, _YANG, is_from_memory=True),
        "read-sequential": Published(6.6, _IZRAELEVITZ, is_per_dimm=True),
        "read-random": Published(0.63, _VANS, is_per_dimm=True, is_of_model=True),
        "ntstore-sequential": Published(2.3, _IZRAELEVITZ, is_per_dimm=True),
        "ntstore-random": Published(0.36, _VANS, is_per_dimm=True, is_of_model=True),
        "random-64": Published(4, _XPLINE),
        "random-128": Published(2, _XPLINE),
        "random-256": Published(1, _XPLINE),
        "random-512": Published(1, _XPLINE),
        "sequential": Published(1, _XPLINE),
    }
}


def group_named(name: str) -> str:
    """Return the name of a group of probes, or refuse and list the known groups."""
    if name not in GROUPS:
        raise unknown("group of probes", name, GROUPS)
    return name


def asked_of(groups: Sequence[str]) -> Iterator[Probe]:
    """Return the probes of some groups."""
    return (probe for probe in PROBES.values() if probe.group in groups)
