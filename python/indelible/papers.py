"""Evaluations of papers as claims: the published numbers, the runs that measure the same here.

A claim is not a test. It puts a published number beside ours; docs/fidelity.md has the causes of
differences.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from indelible.arguments import one_of
from indelible.evaluation import (
    Cell,
    Over,
    Quantity,
    Rows,
    Value,
    average,
    bits,
    bytes_accepted,
    bytes_of,
    ignored,
    lines,
    mean,
    per_word,
    removed,
    share_of,
    words_per_second,
)
from indelible.settings import Pairs

#: A published result: a number, a range of numbers, or an order of designs.
Published = float | tuple[float, float] | str

#: The beginning of a claim that repeats an earlier claim under other conditions.
SAME = "the same, "


@dataclass(frozen=True)
class Claim:
    """A published statement, and how it is measured with runs.

    `published`, and the result of `measure`, is a number in `unit` (`x`, a change in `%`, a `share`
    in percent), or an order of designs: `measure` then returns the designs with their numbers, the
    lowest first.
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
    #: The options of `reproduce` that change its results the most, and what each one changes.
    moved_by: tuple[tuple[str, str], ...]

    def cells(self) -> list[Cell]:
        """Return the runs that the claims need, each once."""
        return [*dict.fromkeys(cell for claim in self.claims for cell in claim.cells)]

    def same_as(self, claim: Claim) -> str | None:
        """Return the claim that this one repeats under other conditions, or None."""
        if not claim.what.startswith(SAME):
            return None
        before = self.claims[: self.claims.index(claim)]
        return next(of.what for of in reversed(before) if not of.what.startswith(SAME))

    def __reduce__(self) -> tuple[Callable[[str], Paper], tuple[str]]:
        """Pickle by name, since claims hold local functions, which cannot be pickled."""
        return paper_named, (self.name,)


# Kinds of claims.


def _claim(what: str, published: Published, quantity: Quantity, unit: str = "x") -> Claim:
    return Claim(what, published, quantity.cells, quantity.measure, unit)


def _order(
    published: str,
    base: str,
    designs: Sequence[str],
    workloads: Sequence[str],
    cores: int,
    *,
    settings: Pairs = (),
    own: Mapping[str, Pairs] = MappingProxyType({}),
    what: str | None = None,
) -> Claim:
    """Claim an order of designs by speed; one is 1.00. Designs may have settings of their own."""
    times = {
        name: Over(name, base, workloads, cores, settings, own.get(name, ())).times()
        for name in designs
    }

    def measure(rows: Rows) -> list[tuple[str, float]]:
        means = [(name, quantity.measure(rows)) for name, quantity in times.items()]
        return sorted(means, key=lambda mean: mean[1])

    cells = tuple(cell for quantity in times.values() for cell in quantity.cells)
    return Claim(what or f"throughput, {base} = 1.00", published, cells, measure, "")


def _average(
    what: str, published: float, value: Value, design: str, workloads: Sequence[str], cores: int
) -> Claim:
    """Claim the mean of a share over workloads, in percent."""
    cells = [Cell(design, workload, cores) for workload in workloads]
    return _claim(what, published, average(cells, value).percent(), "share")


# The papers.

SILO_WORKLOADS = ("array", "btree", "hash", "queue", "rbtree", "tpcc", "ycsb")


def _silo_over(design: str, cores: int) -> Over:
    return Over("silo", design, SILO_WORKLOADS, cores)


#: Operations of a transaction that changes about 20 words, which is what Silo's buffer holds. How
#: the paper enlarges transactions is not known; here they have more operations.
OPERATIONS = {"array": 10, "btree": 1, "hash": 3, "queue": 3, "rbtree": 2}


def _large_write_sets(what: str, published: float, value: Value, *, unit: str) -> Claim:
    """Claim how a write set 16 times as large changes a value for each word written."""
    times = 16

    def cell(workload: str, larger: int) -> Cell:
        operations = str(OPERATIONS[workload] * larger)
        return Cell("silo", workload, 8, (("workload.operations", operations),), larger)

    pairs = [(cell(workload, times), cell(workload, 1)) for workload in OPERATIONS]

    def measure(rows: Rows) -> float:
        ratio = mean([value(rows(large)) / value(rows(small)) for large, small in pairs])
        return 100 * (ratio - 1) if unit == "%" else ratio

    return Claim(what, published, tuple(cell for pair in pairs for cell in pair), measure, unit)


_SILO_ORDER = "base < fwb < morlog < lad < silo"
SILO_DESIGNS = ("base", "fwb", "morlog", "lad", "silo")

SILO = Paper(
    "silo",
    "Silo (Zhang and Hua, HPCA 2023)",
    "silo",
    (
        _order(_SILO_ORDER, "base", SILO_DESIGNS, SILO_WORKLOADS, 8),
        _order(_SILO_ORDER, "base", SILO_DESIGNS, SILO_WORKLOADS, 1, what="the same, 1 core"),
        # The path to the controller, which decides the order, is not published (docs/fidelity.md).
        _order(
            _SILO_ORDER,
            "base",
            SILO_DESIGNS,
            SILO_WORKLOADS,
            8,
            settings=(("controller.noc_latency", "60ns"),),
            what="the same, 60 ns to the controller",
        ),
        # It is not published either which design has the buffer on the DIMM.
        _order(
            _SILO_ORDER,
            "base",
            SILO_DESIGNS,
            SILO_WORKLOADS,
            8,
            settings=(("pm.xpbuffer_entries", "0"),),
            own={"silo": (("silo.pm.xpbuffer_entries", "64"),)},
            what="the same, the buffer on the DIMM is Silo's alone",
        ),
        _claim("Silo over MorLog, throughput, 1 core", 1.4, _silo_over("morlog", 1).times()),
        _claim("the same, 8 cores", 4.3, _silo_over("morlog", 8).times()),
        # The number for one core is over the best of the logs, whichever that is.
        _claim("Silo over FWB, throughput, 1 core", 1.4, _silo_over("fwb", 1).times()),
        _claim("the same, 8 cores", 6.4, _silo_over("fwb", 8).times()),
        _claim("Silo over LAD, throughput, 1 core", 1.1, _silo_over("lad", 1).times()),
        _claim("the same, 8 cores", 1.5, _silo_over("lad", 8).times()),
        # The paper does not say what it counts, so each design is compared by all three meters.
        *(
            _claim(what, published, _silo_over(design, 8).change(value), "%")
            for design, shown, published in (
                ("morlog", "MorLog", -76.5),
                ("fwb", "FWB", -82),
                ("lad", "LAD", 0),
            )
            for what, value in (
                (f"PM writes against {shown}, bytes", bytes_accepted),
                ("the same, bits programmed", bits),
                ("the same, lines programmed", lines),
            )
        ),
        _average("logs removed on chip", 64.3, removed, "silo", SILO_WORKLOADS, 8),
        _average("logs that Array ignores", 90.4, ignored, "silo", ("array",), 8),
        # The paper does not say with how many cores.
        *(
            _claim(
                what,
                -3.3,
                Over(
                    "silo",
                    "silo",
                    SILO_WORKLOADS,
                    cores,
                    own=(("design.buffer_latency", "128"),),
                    mean=mean,
                ).change(),
                "%",
            )
            for cores, what in (
                (8, "throughput, log buffer of 128 cycles for 8, 8 cores"),
                (1, "the same, 1 core"),
            )
        ),
        # The published averages are over all seven workloads, the measured ones over five of them.
        _large_write_sets(
            "throughput a word, write set 16x the buffer (published: with tpcc, ycsb)",
            -7.4,
            words_per_second,
            unit="%",
        ),
        _large_write_sets(
            "PM writes a word, write set 16x the buffer (published: at most)",
            1.9,
            per_word(bytes_accepted),
            unit="x",
        ),
    ),
    moved_by=(
        ("--set controller.noc_latency=100ns", "the order of the five, and how far they are apart"),
        ("--set controller.write_buffer_size=32", "Silo over LAD, 8 cores: tpcc spills on LAD"),
        (
            "--set pm.xpbuffer_entries=0 --set silo.pm.xpbuffer_entries=64",
            "the order of the five, and writes in lines: the buffer on the DIMM is Silo's alone",
        ),
        ("--set silo.entries=200", "Silo over LAD: no transaction overflows"),
        ("--set morlog.commit_scan=8", "Silo over MorLog, 1 core"),
        ("--txs 10000", "Silo over LAD, 8 cores: more dirty lines leave the caches"),
    ),
)

LOC_WORKLOADS = ("bplustree", "hash", "rbtree", "sps", "sdg", "sqlite")
LOC_CORES = 4

#: The slides do not give the number of cores, on which the results depend (docs/fidelity.md).
LOC_MORE_CORES = 8
_MORE_CORES = (("core.cores_max", str(LOC_MORE_CORES)),)
_LOC_ORDER = "s-wal < h-wal < loc-wal < kiln <= loc-kiln"
_LOC_DESIGNS = ("s-wal", "h-wal", "loc-wal", "kiln", "loc-kiln")


def _over_native(design: str, *own: tuple[str, str]) -> Over:
    return Over(design, "native", LOC_WORKLOADS, LOC_CORES, own=own)


def _with_more_cores(design: str, under: str = "native") -> Over:
    return Over(design, under, LOC_WORKLOADS, LOC_MORE_CORES, _MORE_CORES)


LOC = Paper(
    "loc",
    "LOC (Lu, Shu, Sun and Mutlu, ICCD 2014)",
    "loc",
    (
        _order(
            _LOC_ORDER,
            "native",
            _LOC_DESIGNS,
            LOC_WORKLOADS,
            LOC_CORES,
            # No numbers are known for S-WAL, Kiln and LOC-Kiln, and no figure was seen
            # (docs/fidelity/loc.md).
            what="throughput, native = 1.00",
        ),
        _order(
            _LOC_ORDER,
            "native",
            _LOC_DESIGNS,
            LOC_WORKLOADS,
            LOC_MORE_CORES,
            settings=_MORE_CORES,
            what="the same, 8 cores",
        ),
        _claim("H-WAL over no persistence", 0.331, _over_native("h-wal").times()),
        _claim("the same, 8 cores", 0.331, _with_more_cores("h-wal").times()),
        _claim("LOC-WAL over no persistence", 0.651, _over_native("loc-wal").times()),
        _claim("the same, 8 cores", 0.651, _with_more_cores("loc-wal").times()),
        _claim(
            "EC-WAL over H-WAL",
            6.4,
            Over("ec-wal", "h-wal", LOC_WORKLOADS, LOC_CORES).change(),
            "%",
        ),
        _claim("the same, 8 cores", 6.4, _with_more_cores("ec-wal", "h-wal").change(), "%"),
        _claim("LOC-WAL, SD = 1", 0.353, _over_native("loc-wal", ("design.sd", "1")).times()),
        _claim("LOC-WAL, SD = 32", 0.689, _over_native("loc-wal", ("design.sd", "32")).times()),
    ),
    moved_by=(
        ("--txs 10000", "all but EC-WAL over H-WAL: logs are truncated, sps is cached"),
        ("--set workload.items=200000", "how much of the data the caches hold"),
        ("--set ec-wal.metadata=burst", "EC-WAL over H-WAL"),
        ("--set kiln.write_out=never", "Kiln against LOC-WAL"),
    ),
)

WHISPER = ("echo", "ycsb", "ctree", "hashmap", "vacation", "memcached-mtm", "tpcc")

#: The settings that decide (docs/fidelity.md): whether stores and flushes overlap, which in gem5
#: they do not, and what happens to a line after clwb, which is not known of the paper.
STORES_OVERLAP = (("core.stores_in_flight", "many"),)
CLWB_DROPS = (("core.clwb_retains", "no"),)

HOPS = Paper(
    "hops",
    "HOPS (Nalli et al., ASPLOS 2017)",
    "hops",
    (
        _claim(
            "HOPS over clwb and sfence", (1.20, 1.24), Over("hops", "undo@x86", WHISPER, 4).times()
        ),
        _claim(
            "ideal over clwb and sfence", 1.40, Over("undo@ideal", "undo@x86", WHISPER, 4).times()
        ),
        _claim(
            "HOPS, dependences on durable lines, too",
            (1.20, 1.24),
            Over("hops", "undo@x86", WHISPER, 4, own=(("design.depends", "sticky"),)).times(),
        ),
        _claim(
            "HOPS, stores and flushes overlap",
            (1.20, 1.24),
            Over("hops", "undo@x86", WHISPER, 4, STORES_OVERLAP).times(),
        ),
        _claim(
            "ideal, stores and flushes overlap",
            1.40,
            Over("undo@ideal", "undo@x86", WHISPER, 4, STORES_OVERLAP).times(),
        ),
        _claim(
            "HOPS, clwb drops lines",
            (1.20, 1.24),
            Over("hops", "undo@x86", WHISPER, 4, CLWB_DROPS).times(),
        ),
        _claim(
            "ideal, clwb drops lines",
            1.40,
            Over("undo@ideal", "undo@x86", WHISPER, 4, CLWB_DROPS).times(),
        ),
        _order(
            "undo@x86 < hops < undo@ideal",
            "undo@x86",
            ("undo@x86", "hops", "undo@ideal"),
            WHISPER,
            4,
        ),
    ),
    moved_by=(
        ("--set core.stores_in_flight=many", "whether stores and flushes overlap"),
        ("--set core.fenced_stores=dispatch", "what cores do behind a fence"),
        ("--set core.clwb_retains=no", "what clwb leaves in the caches"),
        ("--set controller.domain=media", "write queues that do not survive"),
        ("--set controller.noc_latency=40ns", "the way that a fence waits for"),
    ),
)

#: The workloads that the paper calls random (section 5.1: by their suffix), and zipf. SPS is
#: neither: only then are the published means those of seven workloads (docs/fidelity/ssp.md).
RANDOM = ("btree-rand", "rbtree-rand", "hash-rand")
ZIPF = ("btree-zipf", "rbtree-zipf", "hash-zipf")
MICRO = (*RANDOM, "sps", *ZIPF)


def _ssp_over(design: str, workloads: Sequence[str], cores: int = 1, settings: Pairs = ()) -> Over:
    return Over("ssp", design, workloads, cores, settings, mean=mean)


#: The classes of a log's writes: entries, and marks of commits. SSP's journal groups hold both.
LOGGED = ("log", "commit")

#: Clients of the two real programs of SSP's evaluation (its Table 3).
CLIENTS = 4

#: Those programs: as workloads, and as claims call them.
LARGE = {"memcached-mtm": "memcached", "vacation": "vacation"}


def _ssp_claims(design: str, shown: str, published: Mapping[str, float]) -> list[Claim]:
    """Return the claims of SSP's paper against one of its two baselines."""
    saved = "bytes written, against " + shown
    return [
        _claim(
            f"over {shown}, throughput, 1 thread",
            published["one"],
            _ssp_over(design, MICRO).times(),
        ),
        _claim("the same, 4 threads", published["four"], _ssp_over(design, MICRO, 4).times()),
        _claim(
            f"log bytes and marks fewer than {shown}'s",
            published["log"],
            _ssp_over(design, MICRO).fewer_times(bytes_of(*LOGGED)),
        ),
        _claim(saved, published["all"], _ssp_over(design, MICRO).change(bytes_accepted), "%"),
        _claim(
            "the same, random",
            published["random"],
            _ssp_over(design, RANDOM).change(bytes_accepted),
            "%",
        ),
        _claim(
            "the same, zipf", published["zipf"], _ssp_over(design, ZIPF).change(bytes_accepted), "%"
        ),
        *(
            claim
            for workload, name in LARGE.items()
            for claim in (
                _claim(
                    f"{name} over {shown}: throughput",
                    published[name],
                    _ssp_over(design, (workload,), CLIENTS).change(),
                    "%",
                ),
                _claim(
                    f"{name} over {shown}: bytes written",
                    published[f"{name} writes"],
                    _ssp_over(design, (workload,), CLIENTS).change(bytes_accepted),
                    "%",
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
        *(
            _average(
                f"{name.capitalize()}: consolidation",
                published,
                share_of("consolidation"),
                "ssp",
                (workload,),
                CLIENTS,
            )
            for (workload, name), published in zip(LARGE.items(), (15, 31), strict=True)
        ),
        *(
            _claim(
                f"BTree over REDO-LOG, writes of {time}",
                published,
                _ssp_over("redo-log", ("btree-rand",), settings=(("pm.tWRITE", time),)).times(),
            )
            for time, published in (("50ns", 1.1), ("450ns", 1.8))
        ),
        # REDO-LOG is faster by 8 %: 1 / 1.08.
        _claim(
            "RBTree over REDO-LOG, writes of 50ns",
            0.93,
            _ssp_over("redo-log", ("rbtree-rand",), settings=(("pm.tWRITE", "50ns"),)).times(),
        ),
    ),
    moved_by=(
        ("--set pm.addr_mapping=RoRaBaCoCh", "over REDO-LOG, whose lines share a bank then"),
        ("--set core.tx_barriers=no", "throughput: lookups pass commits"),
        ("--set ssp.ssp_cache_latency=27", "Vacation, trees: lookups of absent pages"),
        ("--set workload.items=8000", "all, bytes written the most: pages of a smaller footprint"),
    ),
)

PAPERS = {paper.name: paper for paper in (SILO, LOC, HOPS, SSP)}


def paper_named(name: str) -> Paper:
    """Return a paper, or refuse and list the known ones."""
    return one_of("paper", name, PAPERS)
