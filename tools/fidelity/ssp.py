"""SSP's evaluation, the settings on which it depends, and conventional shadow paging."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fidelity.tables import (
    Entry,
    Facts,
    Grid,
    Table,
    Told,
    each,
    joined,
    labelled,
    less,
    of_all,
    of_row,
    of_run,
    per_ended_transaction,
    ratio,
    said,
    shown,
)
from indelible.evaluation import (
    TXS,
    Cell,
    Mean,
    Over,
    Quantity,
    Row,
    bytes_accepted,
    bytes_of,
    counted,
    mean,
    share_of,
    throughput,
)
from indelible.papers import CLIENTS, LARGE, LOGGED, MICRO, RANDOM, ZIPF

BASES = ("undo-log", "redo-log")

#: The names in tables of the micro-benchmarks with random keys, and of Memcached.
SHORT = {
    "btree-rand": "btree",
    "rbtree-rand": "rbtree",
    "hash-rand": "hash",
    "memcached-mtm": "memcached",
}


def over(
    under: str,
    workloads: Sequence[str] = MICRO,
    cores: int = 1,
    settings: str = "",
    own: str = "",
    mean: Mean = mean,
) -> Over:
    """Return `ssp` over another design, without the settings of other workloads and designs."""
    others = {*MICRO, *BASES} - {*workloads, under}
    both = tuple(pair for pair in said(settings) if pair[0].partition(".")[0] not in others)
    return Over("ssp", under, workloads, cores, both, said(own), mean, machine="ssp", txs=TXS)


def cell(design: str, workload: str, cores: int = 1, settings: str = "") -> Cell:
    """Return a run of SSP's machine."""
    return Cell(design, workload, cores, said(settings), machine="ssp", txs=TXS)


def _saved(settings: str = "", own: str = "", workloads: Sequence[str] = MICRO) -> list[Quantity]:
    """Return the bytes saved of those of both baselines, in percent."""
    return [less(over(base, workloads, 1, settings, own).change(bytes_accepted)) for base in BASES]


def _times(
    cores: int = 1, settings: str = "", own: str = "", workloads: Sequence[str] = MICRO
) -> list[Quantity]:
    """Return the throughput over both baselines."""
    return [over(base, workloads, cores, settings, own).times() for base in BASES]


# The main table.


def _throughput(cores: int) -> Entry:
    means = _times(cores)
    ranges = [over(base, cores=cores, mean=end).times() for base in BASES for end in (min, max)]
    return shown("{:.2f}x, {:.2f}x ({:.2f} to {:.2f}, {:.2f} to {:.2f})", *means, *ranges)


def _logging(*classes: str) -> Entry:
    others = [name for name in MICRO if not name.startswith("btree")]
    ratios = [
        over(base, workloads).fewer_times(bytes_of(*classes))
        for workloads in (MICRO, others)
        for base in BASES
    ]
    return shown("{:.1f}x, {:.1f}x; without B-trees {:.1f}x, {:.1f}x", *ratios)


def _large(workload: str, cores: int) -> Entry:
    quantities = [
        quantity
        for base in BASES
        for quantity in (
            over(base, (workload,), cores).change(),
            less(over(base, (workload,), cores).change(bytes_accepted)),
        )
    ]
    return shown("{:+.0f} %, {:.0f} %; {:+.0f} %, {:.0f} %", *quantities)


def _slower(workload: str, factors: Sequence[int], *, reads: bool = False) -> list[Quantity]:
    """Return `ssp` over `redo-log` with cells that are so many times as slow."""
    words = "pm.tWRITE={0}ns pm.tREAD={0}ns" if reads else "pm.tWRITE={0}ns"
    return [over("redo-log", (workload,), 1, words.format(50 * n)).times() for n in factors]


FACTORS = (1, 2, 3, 4, 5, 7, 9)

#: Workloads in the order of the table: by the cost of a slow SSP cache.
SLOWED = {
    "memcached-mtm": "Memcached",
    "btree-rand": "BTree-Rand",
    "sps": "SPS",
    "hash-rand": "Hash-Rand",
    "rbtree-rand": "RBTree-Rand",
    "vacation": "Vacation",
}


def _slow_cache(workload: str) -> Quantity:
    """Return the throughput with an SSP cache of 180 cycles over that with 20."""
    slow, fast = (
        of_run(cell("ssp", workload, settings=f"design.ssp_cache_latency={latency}"), throughput)
        for latency in (180, 20)
    )
    return ratio(slow, fast)


MAIN = Grid(
    ("", "published, over undo-log, redo-log", "measured"),
    [
        ("throughput, 1 thread, mean of seven", "1.9x, 1.3x", _throughput(1)),
        ("throughput, 4 threads", "2.4x, 1.4x", _throughput(4)),
        (
            "logging writes reduced by (mean of ratios, bytes of logs and marks)",
            "7.6x, 4.7x",
            _logging(*LOGGED),
        ),
        ("the same without the marks of commits", "-", _logging("log")),
        (
            "the same of Memcached and Vacation, with marks",
            "86 %, 82 % (less)",
            each(
                "{:.0f} %",
                [less(over(b, (*LARGE,), CLIENTS).change(bytes_of(*LOGGED))) for b in BASES],
            ),
        ),
        ("PM writes saved, all seven", "45 %, 28 %", each("{:.0f} %", _saved())),
        (
            "Memcached: throughput, writes saved",
            "+75 %, 49 %; +35 %, 46 %",
            _large("memcached-mtm", CLIENTS),
        ),
        ("the same, 1 client", "-", _large("memcached-mtm", 1)),
        (
            "the same, a command is one transaction: 4 clients",
            "-",
            _large("memcached", CLIENTS),
        ),
        (
            "Vacation: throughput, writes saved",
            "+27 %, 38 %; +13 %, 17 %",
            _large("vacation", CLIENTS),
        ),
        ("the same, 1 client", "-", _large("vacation", 1)),
        (
            "consolidation's share of writes, Memcached, Vacation",
            "15 %, 31 %",
            each(
                "{:.0f} %",
                [
                    of_run(cell("ssp", n, CLIENTS), share_of("consolidation")).percent()
                    for n in LARGE
                ],
            ),
        ),
        (
            "over redo-log, RBTree, NVRAM writes at x1",
            "0.93x (REDO-LOG is 8 % faster)",
            each("{:.2f}x", _slower("rbtree-rand", (1,))),
        ),
        (
            "over redo-log, RBTree, writes at x1 to x9",
            "widens",
            shown(
                ", ".join(["{:.2f}x"] * len(FACTORS)) + " at x1, 2, 3, 4, 5, 7, 9",
                *_slower("rbtree-rand", FACTORS),
            ),
        ),
        (
            "over redo-log, BTree, writes at x1 to x9",
            "1.1x to 1.8x",
            each("{:.2f}x", _slower("btree-rand", FACTORS)),
        ),
        (
            "the same with reads, too, at x4 and x9: BTree; RBTree",
            "-",
            shown(
                "{:.2f}x, {:.2f}x; {:.2f}x, {:.2f}x",
                *_slower("btree-rand", (4, 9), reads=True),
                *_slower("rbtree-rand", (4, 9), reads=True),
            ),
        ),
        (
            "SSP cache at 180 cycles over 20",
            "mild, worst on SPS and Hash-Rand",
            labelled("{:.2f}", [*SLOWED.values()], [_slow_cache(name) for name in SLOWED]),
        ),
        (
            "hardware of a core",
            "832 B, 13 KB, 800 B, 14.6 KB",
            "the same, from the declared structures",
        ),
    ],
)

# Choices that the paper leaves open.


def _choice(label: str, settings: str = "", own: str = "") -> list[Entry]:
    return [
        label,
        each("{:.2f}x", _times(1, settings, own)),
        each("{:.2f}x", _times(4, settings, own)),
        shown("{:.0f}, {:.0f} %", *_saved(settings, own)),
        each("{:.2f}x", _times(1, settings, own, ("vacation",))),
    ]


#: The keyed workloads without metadata: nothing in persistent memory but the structures.
PLAIN = " ".join(f"{name}.alloc_meta=volatile {name}.count=none" for name in MICRO if name != "sps")

#: B-trees whose transactions store to as many lines as section 5.1 of the paper says.
SMALL_LEAVES = " ".join(f"{name}.order=16" for name in ("btree-rand", "btree-zipf"))

QUEUE = "controller.write_high_thresh_perc=85% controller.write_low_thresh_perc=50%"

CHOICES = Grid(
    ("", "1 thread", "4 threads", "writes saved", "Vacation, 1 thread"),
    [
        ("published", "1.9x, 1.3x", "2.4x, 1.4x", "45, 28 %", "1.27x, 1.13x"),
        _choice("as it is"),
        _choice("loads pass commits (`core.tx_barriers=no`)", "core.tx_barriers=no"),
        _choice(
            "rows of 2 KiB in a bank (`pm.addr_mapping=RoRaBaCoCh`)",
            "pm.addr_mapping=RoRaBaCoCh",
        ),
        _choice(
            "reads before writes, as gem5 has it (`controller.write_high_thresh_perc=85%`,"
            " `..low..=50%`)",
            QUEUE,
        ),
        _choice(
            "`redo-log` in one round (`redo-log.commit=counts`)",
            "redo-log.commit=counts",
        ),
        _choice(
            "a line on its way home is waited for (`redo-log.conflict=durable`)",
            "redo-log.conflict=durable",
        ),
        _choice(
            "a line for each switch record (`design.switch_records=alone`)",
            own="design.switch_records=alone",
        ),
        _choice(
            "2 pages copied at once (`design.consolidations=2`); 8 by default",
            own="design.consolidations=2",
        ),
        _choice(
            "look-ups of absent pages in the last level (`design.ssp_cache_latency=27`)",
            own="design.ssp_cache_latency=27",
        ),
        _choice("a TLB of 16 sets of 4 ways (`tlb.assoc=4`); 64 ways", "tlb.assoc=4"),
        _choice("512 places in the write queue (32)", "controller.write_buffer_size=512"),
        _choice("in-order cores", "core.model=inorder"),
        _choice(
            "an allocator whose metadata are volatile, no number of items"
            " (`workload.alloc_meta=volatile`, `workload.count=none`)",
            PLAIN,
        ),
        _choice(
            "B-trees with nodes of 8 to 16 items, which store to 5.7 lines"
            " (`btree-rand.order=16`, `btree-zipf.order=16`)",
            SMALL_LEAVES,
        ),
    ],
)

# The footprint.


def _copied(workload: str, settings: str) -> Told:
    """Return the bytes of consolidation over those of data; 0 if there are none."""

    def tell(row: Row) -> str:
        copied = bytes_of("consolidation")(row) / bytes_of("data")(row)
        return f"{copied:.2f}" if copied >= 0.005 else "0"

    return of_row(cell("ssp", workload, settings=settings), tell)


def _footprint(label: str, settings: str) -> list[Entry]:
    copied = [_copied(n, settings) for n in ("btree-rand", "btree-zipf", "hash-rand", "sps")]
    return [
        label,
        *(each("{:.0f} %", _saved(settings, "", part)) for part in (MICRO, RANDOM, ZIPF)),
        each("{:.2f}x", _times(1, settings)),
        joined("{}, {}; {}; {}", copied),
    ]


FOOTPRINT = Grid(
    (
        "`workload.items`",
        "writes saved, all",
        "random",
        "zipf",
        "throughput",
        "consolidation over data: btree-rand, -zipf; hash-rand; sps",
    ),
    [
        (
            "published",
            "45 %, 28 %",
            "43 %, 23 %",
            "56 %, 42 %",
            "1.9x, 1.3x",
            "below 1, about 0; below 1; above 1",
        ),
        *(
            _footprint(f"{count:,}", f"workload.items={count}")
            for count in (2_000, 4_000, 8_000, 16_000, 100_000)
        ),
        _footprint("600,000 (machine `ssp`)", ""),
    ],
)

# Conventional shadow paging.

ALL = (*MICRO, *LARGE)


def _shadow(workload: str, cores: int, own: str = "") -> Quantity:
    """Return the throughput of `ssp` over that of shadow paging."""
    other = Over("shadow-paging", "ssp", (workload,), cores, own=said(own), machine="ssp", txs=TXS)
    return other.fewer_times(throughput)


def _more_bytes(workload: str) -> Quantity:
    return over("shadow-paging", (workload,)).fewer_times(bytes_accepted)


def _lines_written(row: Row) -> float:
    """Return the lines written for each line that transactions stored to."""
    return row["pm_writes"]["wpq_writes"] / (row["txs"] * row["write_set"]["lines_avg"])


def _of_shadow(form: str, of: Callable[[str], Quantity]) -> list[Entry]:
    return [shown(form, of(workload)) for workload in ALL]


SHADOW = Grid(
    ("`shadow-paging`", *(SHORT.get(name, name) for name in ALL)),
    [
        (
            "pages copied for a transaction",
            *_of_shadow(
                "{:.1f}",
                lambda name: of_run(
                    cell("shadow-paging", name), per_ended_transaction(counted("pages_shadowed"))
                ),
            ),
        ),
        (
            "lines written for each line stored to",
            *_of_shadow("{:.0f}", lambda name: of_run(cell("shadow-paging", name), _lines_written)),
        ),
        ("its writes over `ssp`'s, 1 thread", *_of_shadow("{:.1f}x", _more_bytes)),
        (
            "`ssp`'s throughput over its, 1 thread",
            *_of_shadow("{:.1f}x", lambda name: _shadow(name, 1)),
        ),
        ("the same, 4 threads", *_of_shadow("{:.1f}x", lambda name: _shadow(name, 4))),
        (
            "the same, copied at the commit, 1 thread",
            *_of_shadow("{:.1f}x", lambda name: _shadow(name, 1, "design.copy=lazy")),
        ),
    ],
)

# Numbers that the prose quotes.

CLASSES = ("data", "log", "consolidation", "checkpoint")


def _shares(workload: str) -> Entry:
    """Return the shares of classes of writes; the journal's are those of the log."""
    run = cell("ssp", workload)
    return each("{:.0f} %", [of_run(run, share_of(name)).percent() for name in CLASSES])


def _post_hoc(workload: str) -> Quantity:
    """Return the throughput at 180 cycles over that at 20, with the cycles added afterwards."""

    def cycles(latency: int) -> Quantity:
        settings = f"design.ssp_cache_latency={latency} design.mode=post_hoc"
        return of_run(
            cell("ssp", workload, settings=settings),
            lambda row: row["cycles"] + row["design_counters"]["post_hoc_cycles"],
        )

    return of_all([cycles(20), cycles(180)], lambda both: both[0] / both[1])


def _range(quantities: Sequence[Quantity]) -> Entry:
    return shown("{:.1f} to {:.1f}", of_all(quantities, min), of_all(quantities, max))


def _misses(workload: str) -> Quantity:
    return of_run(cell("ssp", workload), per_ended_transaction(counted("tlb_misses")))


CONFLICT, COUNTS = "redo-log.conflict=durable", "redo-log.commit=counts"

ROWS_IN_A_BANK = "pm.addr_mapping=RoRaBaCoCh"

PROSE: Sequence[tuple[str, Entry]] = [
    (
        "Memcached with 4 clients over redo-log: as is; conflict=durable; commit=counts; both",
        each(
            "{:+.0f} %",
            [
                over("redo-log", ("memcached-mtm",), CLIENTS, settings).change()
                for settings in ("", CONFLICT, COUNTS, f"{CONFLICT} {COUNTS}")
            ],
        ),
    ),
    (
        "Memcached with 4 clients and no lock: over undo-log, redo-log",
        each(
            "{:+.0f} %",
            [
                over(base, ("memcached-mtm",), CLIENTS, "workload.shared=private").change()
                for base in BASES
            ],
        ),
    ),
    *(
        (
            f"writes of {SHORT.get(name, name)}: data, journal, consolidation, checkpoints",
            _shares(name),
        )
        for name in (*RANDOM, "sps", *LARGE)
    ),
    *(
        (
            f"throughput over {base}, {threads}",
            labelled("{:.2f}", ALL, [over(base, (name,), cores).times() for name in ALL]),
        )
        for base in BASES
        for cores, threads in ((1, "1 thread"), (4, "4 threads"))
    ),
    (
        "SSP cache at 180 cycles over 20, added afterwards",
        labelled("{:.2f}", [*SLOWED.values()], [_post_hoc(name) for name in SLOWED]),
    ),
    (
        "if only ssp walks: 1 thread; Vacation",
        shown(
            "{:.2f}x, {:.2f}x; {:.2f}x, {:.2f}x",
            *_times(1, "tlb.walks=designs"),
            *_times(1, "tlb.walks=designs", workloads=("vacation",)),
        ),
    ),
    (
        "TLB misses of a transaction: Vacation, RBTree-Rand",
        shown("{:.0f}, {:.0f}", _misses("vacation"), _misses("rbtree-rand")),
    ),
    (
        "writes of shadow paging over ssp's",
        _range([_more_bytes(name) for name in ALL]),
    ),
    (
        "ssp over shadow paging with rows of 2 KiB in a bank, 1 thread",
        _range([over("shadow-paging", (name,), 1, ROWS_IN_A_BANK).times() for name in ALL]),
    ),
]

PARTS = (
    Table("ssp.main", "SSP over its baselines", MAIN),
    Table("ssp.choices", "what SSP's paper leaves open", CHOICES),
    Table("ssp.footprint", "what the size of the data decides", FOOTPRINT),
    Table("ssp.shadow", "conventional shadow paging beside SSP", SHADOW),
    Facts("ssp.prose", "of SSP's evaluation", PROSE),
)
