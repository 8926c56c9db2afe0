"""Evaluations of papers as claims: what was published, the runs that ask the same here, the answer.

A claim is not a test. It holds a published number beside ours, and docs/fidelity.md has the causes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from indelible.experiment import InputError, named
from indelible.results import METRICS, closest_first, geometric_mean
from indelible.settings import Pairs

Row = Mapping[str, Any]

#: What is measured of a run.
Value = Callable[[Row], float]

#: Of several ratios the one that a paper gives.
Mean = Callable[[Sequence[float]], float]


#: Transactions of a core, if nothing else is asked for.
TXS = 2_000

#: What a paper gives: a number, a range of numbers, or an order of designs.
Published = float | tuple[float, float] | str


@dataclass(frozen=True)
class Cell:
    """A run of a paper's machine."""

    design: str
    workload: str
    cores: int
    settings: Pairs = ()
    #: Its transactions are so many times as large as others, and there are as many times fewer.
    larger: int = 1

    def transactions(self, asked: int | None) -> int | None:
        """Return how many transactions a core has; none: as many as there are by default."""
        return asked if self.larger == 1 else max((asked or TXS) // self.larger, 1)


#: The rows of cells that have been run.
Rows = Callable[[Cell], Row]


@dataclass(frozen=True)
class Claim:
    """What a paper says, and how to ask it of runs.

    What was published, and what `measure` returns, is a number of `unit` (`x`, a change in `%`, a
    `share` in percent), or who is before whom: of that `measure` returns the designs with their
    numbers, the lowest first.
    """

    what: str
    published: Published
    cells: tuple[Cell, ...]
    measure: Callable[[Rows], float | Sequence[tuple[str, float]]]
    unit: str = "x"


@dataclass(frozen=True)
class Paper:
    """A paper, its machine, and what it claims."""

    name: str
    title: str
    machine: str
    claims: tuple[Claim, ...]

    def cells(self) -> list[Cell]:
        """Return the runs that the claims need, each once."""
        return [*dict.fromkeys(cell for claim in self.claims for cell in claim.cells)]


# What is measured of a run.


def _throughput(row: Row) -> float:
    return METRICS["throughput"].value(row)


def _bytes_accepted(row: Row) -> float:
    return float(row["pm_writes"]["wpq_bytes"])


def _bits(row: Row) -> float:
    return float(row["pm_writes"]["media_bits"])


def _lines(row: Row) -> float:
    return float(row["pm_writes"]["media_lines"])


def _log_bytes(row: Row) -> float:
    return float(row["pm_writes"]["by_class"]["log"])


def _words(row: Row) -> float:
    """Return how many words all transactions changed."""
    return float(row["txs"] * row["write_set"]["words_avg"])


def _words_per_second(row: Row) -> float:
    return _throughput(row) * float(row["write_set"]["words_avg"])


def _bytes_per_word(row: Row) -> float:
    return _bytes_accepted(row) / _words(row)


def _share(name: str) -> Value:
    return lambda row: row["pm_writes"]["by_class"][name] / _bytes_accepted(row)


def _removed(row: Row) -> float:
    """Return the share of a design's logs that were ignored or merged, of those of all stores."""
    counts = row["design_counters"]
    ignored, merged = counts["logs_ignored"], counts["logs_merged"]
    return (ignored + merged) / (ignored + counts["logs_generated"])


def _ignored(row: Row) -> float:
    counts = row["design_counters"]
    return counts["logs_ignored"] / (counts["logs_ignored"] + counts["logs_generated"])


# Kinds of claims.


def _gmean(values: Sequence[float]) -> float:
    return geometric_mean(values) or math.nan


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


@dataclass(frozen=True)
class _Over:
    """One design over another on workloads."""

    over: str
    under: str
    workloads: Sequence[str]
    cores: int
    #: Settings of both, and of the first alone.
    settings: Pairs = ()
    own: Pairs = ()
    mean: Mean = _gmean

    def pairs(self) -> list[tuple[Cell, Cell]]:
        return [
            (
                Cell(self.over, workload, self.cores, self.settings + self.own),
                Cell(self.under, workload, self.cores, self.settings),
            )
            for workload in self.workloads
        ]

    def cells(self) -> tuple[Cell, ...]:
        return tuple(cell for pair in self.pairs() for cell in pair)

    def ratio(self, value: Value, rows: Rows) -> float:
        return self.mean([value(rows(a)) / value(rows(b)) for a, b in self.pairs()])

    def times(self, what: str, published: Published, value: Value = _throughput) -> Claim:
        """Claim a factor."""
        return Claim(what, published, self.cells(), lambda rows: self.ratio(value, rows))

    def fewer_times(self, what: str, published: Published, value: Value) -> Claim:
        """Claim the factor by which there is less."""

        def measure(rows: Rows) -> float:
            return self.mean([value(rows(b)) / value(rows(a)) for a, b in self.pairs()])

        return Claim(what, published, self.cells(), measure)

    def change(self, what: str, published: Published, value: Value = _throughput) -> Claim:
        """Claim a change in percent."""

        def measure(rows: Rows) -> float:
            return 100 * (self.ratio(value, rows) - 1)

        return Claim(what, published, self.cells(), measure, "%")


def _order(
    published: str,
    base: str,
    designs: Sequence[str],
    workloads: Sequence[str],
    cores: int,
    *,
    settings: Pairs = (),
    what: str | None = None,
) -> Claim:
    """Claim who is faster than whom; one design is 1.00."""
    overs = [_Over(design, base, workloads, cores, settings) for design in designs]

    def measure(rows: Rows) -> list[tuple[str, float]]:
        means = [(over.over, over.ratio(_throughput, rows)) for over in overs]
        return sorted(means, key=lambda mean: mean[1])

    cells = tuple(cell for over in overs for cell in over.cells())
    return Claim(what or f"throughput, {base} = 1.00", published, cells, measure, "")


def _average(
    what: str, published: float, value: Value, design: str, workloads: Sequence[str], cores: int
) -> Claim:
    """Claim the mean of a share over workloads, in percent."""
    cells = tuple(Cell(design, workload, cores) for workload in workloads)
    return Claim(
        what,
        published,
        cells,
        lambda rows: 100 * _mean([value(rows(cell)) for cell in cells]),
        "share",
    )


# The papers.

_SILO = ("array", "btree", "hash", "queue", "rbtree", "tpcc", "ycsb")


def _silo_over(design: str, cores: int) -> _Over:
    return _Over("silo", design, _SILO, cores)


#: Operations of a transaction that changes about 20 words, which is what Silo's buffer holds. How
#: the paper enlarges transactions is not known; here they have more operations.
_OPERATIONS = {"array": 10, "btree": 1, "hash": 3, "queue": 3, "rbtree": 2}


def _large_write_sets(what: str, published: float, value: Value, *, unit: str) -> Claim:
    """Claim what 16 times the write set changes for each word that is written."""
    times = 16

    def cell(workload: str, larger: int) -> Cell:
        operations = str(_OPERATIONS[workload] * larger)
        return Cell("silo", workload, 8, (("workload.operations", operations),), larger)

    pairs = [(cell(workload, times), cell(workload, 1)) for workload in _OPERATIONS]

    def measure(rows: Rows) -> float:
        ratio = _mean([value(rows(large)) / value(rows(small)) for large, small in pairs])
        return 100 * (ratio - 1) if unit == "%" else ratio

    return Claim(what, published, tuple(cell for pair in pairs for cell in pair), measure, unit)


_SILO_ORDER = "base < fwb < morlog < lad < silo"
_SILO_DESIGNS = ("base", "fwb", "morlog", "lad", "silo")

SILO = Paper(
    "silo",
    "Silo (Zhang and Hua, HPCA 2023)",
    "silo",
    (
        _order(_SILO_ORDER, "base", _SILO_DESIGNS, _SILO, 8),
        # The way that decides it is not published (docs/fidelity.md).
        _order(
            _SILO_ORDER,
            "base",
            _SILO_DESIGNS,
            _SILO,
            8,
            settings=(("controller.noc_latency", "60ns"),),
            what="the same, 60 ns to the controller",
        ),
        _silo_over("morlog", 1).times("Silo over MorLog, throughput, 1 core", 1.4),
        _silo_over("morlog", 8).times("the same, 8 cores", 4.3),
        _silo_over("lad", 1).times("Silo over LAD, throughput, 1 core", 1.1),
        _silo_over("lad", 8).times("the same, 8 cores", 1.5),
        _silo_over("fwb", 8).times("Silo over FWB, throughput, 8 cores", 6.4),
        _silo_over("morlog", 8).change("PM writes against MorLog, bytes", -76.5, _bytes_accepted),
        _silo_over("morlog", 8).change("the same, bits programmed", -76.5, _bits),
        _silo_over("fwb", 8).change("PM writes against FWB, bytes", -82, _bytes_accepted),
        _silo_over("fwb", 8).change("the same, bits programmed", -82, _bits),
        _silo_over("lad", 8).times("lines programmed, over LAD", 1.0, _lines),
        _average("logs removed on chip", 64.3, _removed, "silo", _SILO, 8),
        _average("logs that Array ignores", 90.4, _ignored, "silo", ("array",), 8),
        _Over("silo", "silo", _SILO, 8, own=(("design.buffer_latency", "128"),), mean=_mean).change(
            "throughput, log buffer of 128 cycles for 8", -3.3
        ),
        # Published are averages over all seven workloads, measured is one over five of them.
        _large_write_sets(
            "throughput a word, write set 16x the buffer (published: with tpcc, ycsb)",
            -7.4,
            _words_per_second,
            unit="%",
        ),
        _large_write_sets(
            "PM writes a word, the same (published: at most)", 1.9, _bytes_per_word, unit="x"
        ),
    ),
)

_LOC = ("bplustree", "hash", "rbtree", "sps", "sdg", "sqlite")
_LOC_CORES = 4


def _over_native(design: str, *own: tuple[str, str]) -> _Over:
    return _Over(design, "native", _LOC, _LOC_CORES, own=own)


LOC = Paper(
    "loc",
    "LOC (Lu, Shu, Sun and Mutlu, ICCD 2014)",
    "loc",
    (
        _order(
            "s-wal < h-wal < loc-wal < kiln <= loc-kiln",
            "native",
            ("s-wal", "h-wal", "loc-wal", "kiln", "loc-kiln"),
            _LOC,
            _LOC_CORES,
            # Read from bars: of S-WAL, Kiln and LOC-Kiln no number is known (docs/fidelity.md).
            what="throughput (bars), native = 1.00",
        ),
        _over_native("h-wal").times("H-WAL over no persistence", 0.331),
        _over_native("loc-wal").times("LOC-WAL over no persistence", 0.651),
        _Over("ec-wal", "h-wal", _LOC, _LOC_CORES).change("EC-WAL over H-WAL", 6.4),
        _over_native("loc-wal", ("design.sd", "1")).times("LOC-WAL, SD = 1", 0.353),
        _over_native("loc-wal", ("design.sd", "32")).times("LOC-WAL, SD = 32", 0.689),
    ),
)

_WHISPER = ("echo", "ycsb", "ctree", "hashmap", "vacation", "memcached", "tpcc")

#: What the paper's cores do is not known, and decides (docs/fidelity.md).
_STOPS_AT_STORES = (("core.fenced_stores", "dispatch"),)

HOPS = Paper(
    "hops",
    "HOPS (Nalli et al., ASPLOS 2017)",
    "hops",
    (
        _Over("hops", "undo@x86", _WHISPER, 4).times("HOPS over clwb and sfence", (1.20, 1.24)),
        _Over("undo@ideal", "undo@x86", _WHISPER, 4).times("ideal over clwb and sfence", 1.40),
        _Over("hops", "undo@x86", _WHISPER, 4, own=(("design.poll", "0"),)).times(
            "HOPS, timestamps seen at once", (1.20, 1.24)
        ),
        _Over("hops", "undo@x86", _WHISPER, 4, _STOPS_AT_STORES).times(
            "HOPS, cores stop at a store behind a fence", (1.20, 1.24)
        ),
        _Over("undo@ideal", "undo@x86", _WHISPER, 4, _STOPS_AT_STORES).times(
            "ideal, such cores", 1.40
        ),
        _order(
            "undo@x86 < hops < undo@ideal",
            "undo@x86",
            ("undo@x86", "hops", "undo@ideal"),
            _WHISPER,
            4,
        ),
    ),
)

_RANDOM = ("btree-rand", "rbtree-rand", "hash-rand", "sps")
_ZIPF = ("btree-zipf", "rbtree-zipf", "hash-zipf")
_MICRO = _RANDOM + _ZIPF


def _ssp_over(design: str, workloads: Sequence[str], cores: int = 1, settings: Pairs = ()) -> _Over:
    return _Over("ssp", design, workloads, cores, settings, mean=_mean)


def _ssp_claims(design: str, shown: str, published: Mapping[str, float]) -> list[Claim]:
    """Return what SSP's paper says against one of its two baselines."""
    saved = "bytes written, against " + shown
    return [
        _ssp_over(design, _MICRO).times(f"over {shown}, throughput, 1 thread", published["one"]),
        _ssp_over(design, _MICRO, 4).times("the same, 4 threads", published["four"]),
        _ssp_over(design, _MICRO).fewer_times(
            f"log bytes fewer than {shown}'s", published["log"], _log_bytes
        ),
        _ssp_over(design, _MICRO).change(saved, published["all"], _bytes_accepted),
        _ssp_over(design, _RANDOM).change("the same, random", published["random"], _bytes_accepted),
        _ssp_over(design, _ZIPF).change("the same, zipf", published["zipf"], _bytes_accepted),
        *(
            claim
            for name in ("memcached", "vacation")
            for claim in (
                _ssp_over(design, (name,)).change(
                    f"{name} over {shown}: throughput", published[name]
                ),
                _ssp_over(design, (name,)).change(
                    f"{name} over {shown}: bytes written",
                    published[f"{name} writes"],
                    _bytes_accepted,
                ),
            )
        ),
    ]


SSP = Paper(
    "ssp",
    "SSP (Ni, Zhao, Litz, Bittman and Miller, MICRO 2019)",
    "ssp",
    (
        *_ssp_claims(
            "undo-log",
            "UNDO-LOG",
            {
                **{"one": 1.9, "four": 2.4, "log": 7.6},
                **{"all": -45, "random": -43, "zipf": -56},
                **{"memcached": 75, "memcached writes": -49},
                **{"vacation": 27, "vacation writes": -38},
            },
        ),
        *_ssp_claims(
            "redo-log",
            "REDO-LOG",
            {
                **{"one": 1.3, "four": 1.4, "log": 4.7},
                **{"all": -28, "random": -23, "zipf": -42},
                **{"memcached": 35, "memcached writes": -46},
                **{"vacation": 13, "vacation writes": -17},
            },
        ),
        _average("Memcached: consolidation", 15, _share("consolidation"), "ssp", ("memcached",), 1),
        _average("Vacation: consolidation", 31, _share("consolidation"), "ssp", ("vacation",), 1),
        *(
            _ssp_over("redo-log", ("btree-rand",), settings=(("pm.tWRITE", time),)).times(
                f"BTree over REDO-LOG, writes of {time}", published
            )
            for time, published in (("50ns", 1.1), ("450ns", 1.8))
        ),
        _ssp_over("redo-log", ("rbtree-rand",), settings=(("pm.tWRITE", "50ns"),)).times(
            # REDO-LOG is faster by 8 %: 1 / 1.08.
            "RBTree over REDO-LOG, writes of 50ns",
            0.93,
        ),
    ),
)

PAPERS = {paper.name: paper for paper in (SILO, LOC, HOPS, SSP)}


def paper_named(name: str) -> Paper:
    """Return a paper, or name the ones that there are."""
    name = named("paper", name)
    if name not in PAPERS:
        known = ", ".join(closest_first(name, PAPERS))
        raise InputError(f"unknown paper `{name}`; there are: {known}")
    return PAPERS[name]
