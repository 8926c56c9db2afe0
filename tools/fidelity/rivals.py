"""Silo and the designs that it was measured against, and the path to the controller."""

from __future__ import annotations

from collections.abc import Sequence

from fidelity import silo
from fidelity.comparisons import compared
from fidelity.tables import (
    Entry,
    Facts,
    Grid,
    Table,
    each,
    labelled,
    of_run,
    per_ended_transaction,
    said,
    shown,
)
from fidelity.write_sets import change, logs_left, more_lines
from indelible.evaluation import (
    TXS,
    Cell,
    Over,
    Quantity,
    Row,
    Value,
    average,
    bits,
    bytes_accepted,
    counted,
    ignored,
    lines,
    mean,
    removed,
)
from indelible.papers import SILO_DESIGNS, SILO_WORKLOADS, WHISPER

#: Transactions of a core in the tables of 70 runs.
LONG = 10_000

RIVALS = SILO_DESIGNS[1:]

#: The setting for no time in the controllers before the queues.
NO_FRONTEND = "controller.static_frontend_latency=0ns"


def over(
    design: str,
    under: str = "base",
    settings: str = "",
    *,
    cores: int = 8,
    txs: int = LONG,
    workloads: Sequence[str] = SILO_WORKLOADS,
    own: str = "",
) -> Over:
    """Return a design over another on Silo's workloads."""
    return Over(design, under, workloads, cores, said(settings), said(own), machine="silo", txs=txs)


def cell(design: str, workload: str, txs: int = LONG) -> Cell:
    """Return a run with 8 cores."""
    return Cell(design, workload, 8, machine="silo", txs=txs)


# The published and our values.


def _saved(rival: str, cores: int) -> Sequence[Quantity]:
    against = over("silo", rival, cores=cores)
    return [against.change(meter) for meter in (bytes_accepted, bits, lines)]


def _slow_buffer(latency: int, workloads: Sequence[str] = SILO_WORKLOADS, cores: int = 8) -> Over:
    """Return Silo with a slower log buffer over Silo as it is."""
    return Over(
        "silo",
        "silo",
        workloads,
        cores,
        own=said(f"design.buffer_latency={latency}"),
        mean=mean,
        machine="silo",
        txs=LONG,
    )


def _lad(cores: int) -> Sequence[Quantity]:
    meters = (bytes_accepted, bits, lines)
    return [over("silo", "lad", cores=cores).times(value) for value in meters]


def _logs() -> Sequence[Quantity]:
    runs = [cell("silo", name) for name in SILO_WORKLOADS]
    array = of_run(cell("silo", "array"), ignored)
    return [average(runs, removed).percent(), array.percent()]


def _distance(rival: str) -> Sequence[Entry]:
    return [shown("{:.2f}x", over("silo", rival, cores=cores).times()) for cores in (1, 8)]


PUBLISHED = Grid(
    ("", "published", "here, 1 core", "here, 8 cores"),
    [
        (
            "Silo over MorLog, throughput",
            "1.4x at 1 core, over the best log; 4.3x at 8",
            *_distance("morlog"),
        ),
        ("Silo over LAD", "1.1x at 1 core, 1.5x at 8", *_distance("lad")),
        ("Silo over FWB", "1.4x at 1 core, if it is the best; 6.4x at 8", *_distance("fwb")),
        (
            "Silo's PM writes against MorLog",
            "-76.5 %",
            shown("{:.0f} % of bytes, {:.0f} % of bits, {:.0f} % of lines", *_saved("morlog", 1)),
            shown("{:.0f} %, {:.0f} %, {:.0f} %", *_saved("morlog", 8)),
        ),
        (
            "against FWB",
            "-82 %",
            shown("{:.0f} % of bytes, {:.0f} % of bits, {:.0f} % of lines", *_saved("fwb", 1)),
            shown("{:.0f} %, {:.0f} %, {:.0f} %", *_saved("fwb", 8)),
        ),
        (
            "against LAD",
            "about equal",
            shown("{:.2f}x in bytes, {:.2f}x in bits, {:.2f}x in lines", *_lad(1)),
            shown("{:.2f}x, {:.2f}x, {:.2f}x", *_lad(8)),
        ),
        (
            "logs removed on chip",
            "64.3 % on average; Array ignores 90.4 %",
            "",
            shown("{:.1f} % on average; `array` {:.1f} %", *_logs()),
        ),
        (
            "buffer latency 128 against 8 cycles",
            "throughput -3.3 %, writes unchanged",
            *(
                shown("{:.0f} %, writes {:+.0f} %", slow.change(), slow.change(bytes_accepted))
                for slow in (_slow_buffer(128, cores=1), _slow_buffer(128))
            ),
        ),
        (
            "write set 16x the buffer",
            "throughput -7.4 % on average, PM writes at most 1.9x",
            "",
            shown("{:.0f} %, {:.2f}x in lines of cells", change(16), more_lines(16)),
        ),
    ],
)

# The settings on which the distances depend.

#: So few items that the last level holds them.
SMALL = " ".join(f"{name}.items=20000" for name in SILO_WORKLOADS if name != "tpcc")
SMALL += " tpcc.stock=500"


def _distances(
    label: str, settings: str = "", *, txs: int = LONG, buffers: Sequence[int] = (64, 200)
) -> list[Entry]:
    """Return a row: designs over base, and Silo with larger buffers."""
    return [
        label,
        *(shown("{:.2f}", over(name, "base", settings, txs=txs).times()) for name in RIVALS),
        *(
            shown("{:.2f}", over("silo", "base", f"{settings} silo.entries={n}", txs=txs).times())
            for n in buffers
        ),
        *([] if buffers else ["", ""]),
    ]


DISTANCES = Grid(
    ("", *(f"`{name}`" for name in RIVALS), "with 64 entries", "with 200"),
    [
        _distances("as it is"),
        _distances("2,000 transactions a core", txs=TXS),
        _distances(
            "20,000 items (`tpcc`: 500 of stock), which the last level holds",
            SMALL,
        ),
        _distances("in-order cores", "core.model=inorder", buffers=()),
        _distances("one store in flight", "core.stores_in_flight=one", buffers=()),
        _distances("64 banks", "pm.banks_per_rank=64", buffers=()),
    ],
)

# The path to the controller.

WAYS = ("5ns", "10ns", "20ns", "40ns", "60ns", "100ns")


def _way(way: str) -> list[Entry]:
    settings = "" if way == "5ns" else f"controller.noc_latency={way}"

    def means(cores: int, txs: int) -> list[Entry]:
        return [
            shown("{:.2f}", over(name, "base", settings, cores=cores, txs=txs).times())
            for name in RIVALS
        ]

    long = ["", "", "", ""] if way == "10ns" else means(8, LONG)
    return [way.replace("ns", " ns"), *means(1, TXS), *means(8, TXS), *long]


def _ways_header() -> list[str]:
    first, *others = (f"`{name}`" for name in RIVALS)
    parts = [[f"{part}: {first}", *others] for part in ("1 core", "8 cores", "10,000")]
    return ["one way", *(name for part in parts for name in part)]


# The write-pending queue.

#: Entries of each controller's write-pending queue; the machine has 64.
QUEUES = (16, 32, 64, 128)

#: All but the workload whose transactions write some thirty lines.
SMALL_SETS = tuple(name for name in SILO_WORKLOADS if name != "tpcc")


def _queue(entries: int) -> Sequence[Entry]:
    """Return the row of Silo and its rivals with a queue of so many entries."""
    size = f"controller.write_buffer_size={entries}"
    against = [
        over("silo", "lad", size, txs=txs, workloads=workloads)
        for txs, workloads in ((TXS, SILO_WORKLOADS), (TXS, SMALL_SETS), (LONG, SILO_WORKLOADS))
    ]
    return [
        str(entries),
        *(shown("{:.2f}", over(name, "base", size, txs=TXS).times()) for name in RIVALS),
        *(shown("{:.2f}", one.times()) for one in against),
    ]


QUEUE = Grid(
    (
        "entries",
        *(f"`{name}`" for name in RIVALS),
        "Silo over LAD",
        "without `tpcc`",
        "with 10,000",
    ),
    [_queue(entries) for entries in QUEUES],
)

# Numbers that the prose quotes.

SCAN = "morlog.commit_scan=8"
NO_BUFFER = "pm.xpbuffer_entries=0"


def _left(workload: str) -> Quantity:
    """Return how many logs of a transaction are left after ignoring and merging."""
    return of_run(cell("silo", workload, TXS), per_ended_transaction(logs_left))


def _reads_and_lines(design: str, workload: str) -> Sequence[Quantity]:
    """Return the reads before programming and the lines programmed of a transaction."""
    run = cell(design, workload)
    reads = per_ended_transaction(lambda row: float(row["pm_writes"]["media_fill_reads"]))
    return [of_run(run, reads), of_run(run, per_ended_transaction(lines))]


def _banks(row: Row) -> float:
    """Return the share of time in which banks load, read or program cells."""
    return float(row["pm_banks"]["busy_share"])


def _bus(row: Row) -> float:
    return float(row["pm_banks"]["bus_share"])


def _full(row: Row) -> float:
    """Return the share of time in which the write-pending queue is full."""
    return float(row["controllers"]["wpq_full_share"])


def _read_cycles(row: Row) -> float:
    return float(row["controllers"]["pm_read_cycles"]["mean"])


def _usage(cores: int) -> Sequence[Sequence[Entry]]:
    """Return how busy controllers and memory are, means over the workloads."""
    said = f"{cores} core{'' if cores == 1 else 's'}"

    def row(what: str, template: str, value: Value, factor: int = 1) -> Sequence[Entry]:
        runs = [
            [Cell(name, workload, cores, machine="silo", txs=LONG) for workload in SILO_WORKLOADS]
            for name in SILO_DESIGNS
        ]
        means = [average(cells, lambda row: factor * value(row)) for cells in runs]
        return [f"{said}: {what}", *(shown(template, one) for one in means)]

    return [
        row("banks busy", "{:.0f} %", _banks, 100),
        row("bus busy", "{:.0f} %", _bus, 100),
        row("queue full", "{:.0f} %", _full, 100),
        row("a read takes", "{:.0f} cycles", _read_cycles),
    ]


def _merged(row: Row) -> float:
    return counted("logs_merged")(row) / counted("logs_generated")(row)


def _larger_buffer(workload: str, entries: int) -> Quantity:
    return over("silo", "silo", workloads=(workload,), own=f"design.entries={entries}").change()


def _overflow(workload: str) -> Quantity:
    return over("silo", "silo", workloads=(workload,), own="design.overflow=blocking").change()


def _one_line(design: str) -> Quantity:
    buffer = "design.entries=64" if design == "silo" else ""
    return over(design, "base", "tpcc.lines=1", txs=TXS, own=buffer).times()


RIVALS_PROSE = Facts(
    "rivals.prose",
    "of Silo and the designs that it was measured against",
    [
        *(
            (
                f"LAD with prepare_interval {cycles} over 1, 2,000, with 1 core and 8",
                each(
                    "{:.2f}",
                    [over("lad", "lad", cores=n, txs=TXS, own=slower).times() for n in (1, 8)],
                ),
            )
            for cycles in (4, 16, 74)
            for slower in (f"design.prepare_interval={cycles}",)
        ),
        (
            "controllers without a front end, 2,000: Silo over LAD with 1 core and 8",
            each(
                "{:.2f}",
                [over("silo", "lad", NO_FRONTEND, cores=n, txs=TXS).times() for n in (1, 8)],
            ),
        ),
        (
            "MorLog that drops silent entries over MorLog, 8 cores; array alone; over FWB",
            shown(
                "{:.2f}; {:.2f}; {:.2f}",
                over("morlog", "morlog", own="design.slde=on").times(),
                over("morlog", "morlog", own="design.slde=on", workloads=("array",)).times(),
                over("morlog", "fwb", own="design.slde=on").times(),
            ),
        ),
        (
            "base that writes lines back at the commit over base, 2,000, with 1 core and 8",
            each(
                "{:.2f}",
                [
                    over(
                        "base", "base", cores=n, txs=TXS, own="design.flush_mode=at_commit"
                    ).times()
                    for n in (1, 8)
                ],
            ),
        ),
        (
            "MorLog with a commit scan of 8 cycles over MorLog, 1 core and 8, 2,000",
            each(
                "{:+.1f} %",
                [
                    over("morlog", "morlog", cores=n, txs=TXS, own="design.commit_scan=8").change()
                    for n in (1, 8)
                ],
            ),
        ),
        (
            "over base with 1 core, 2,000: fwb; morlog with the scan",
            shown(
                "{:.2f}; {:.2f}",
                over("fwb", cores=1, txs=TXS).times(),
                over("morlog", "base", SCAN, cores=1, txs=TXS).times(),
            ),
        ),
        (
            "Silo over MorLog with 1 core, 2,000, with the scan, without",
            shown(
                "{:.2f}, {:.2f}",
                over("silo", "morlog", SCAN, cores=1, txs=TXS).times(),
                over("silo", "morlog", cores=1, txs=TXS).times(),
            ),
        ),
        (
            "logs left of a transaction on silo: btree, tpcc",
            shown("{:.1f}, {:.1f}", _left("btree"), _left("tpcc")),
        ),
        (
            "Silo with 64 entries on btree, 200 on tpcc, gains",
            shown("{:+.1f} %, {:+.1f} %", _larger_buffer("btree", 64), _larger_buffer("tpcc", 200)),
        ),
        (
            "overflow that blocks: btree, rbtree, tpcc",
            each("{:+.2f} %", [_overflow(name) for name in ("btree", "rbtree", "tpcc")]),
        ),
        (
            "orders of one line, 64 entries, 2,000: " + ", ".join(RIVALS),
            each("{:.2f}", [_one_line(name) for name in RIVALS]),
        ),
        (
            "reads before programming, lines programmed, on silo: rbtree; ycsb; tpcc",
            shown(
                "{:.1f}, {:.1f}; {:.1f}, {:.1f}; {:.1f}, {:.1f}",
                *(n for name in ("rbtree", "ycsb", "tpcc") for n in _reads_and_lines("silo", name)),
            ),
        ),
        (
            "lines programmed on lad: rbtree, ycsb, tpcc",
            each(
                "{:.1f}", [_reads_and_lines("lad", name)[1] for name in ("rbtree", "ycsb", "tpcc")]
            ),
        ),
        (
            "ycsb over base: silo, lad with 2,000; silo with 10,000",
            each(
                "{:.2f}",
                [
                    over(name, txs=txs, workloads=("ycsb",)).times()
                    for name, txs in (("silo", TXS), ("lad", TXS), ("silo", LONG))
                ],
            ),
        ),
        (
            "without an on-DIMM buffer, 2,000: " + ", ".join(RIVALS),
            each("{:.2f}", [over(name, "base", NO_BUFFER, txs=TXS).times() for name in RIVALS]),
        ),
        (
            "Silo over fwb and morlog without it; with it",
            shown(
                "{:.2f}, {:.2f}; {:.2f}, {:.2f}",
                *(
                    over("silo", name, settings, txs=TXS).times()
                    for settings in (NO_BUFFER, "")
                    for name in ("fwb", "morlog")
                ),
            ),
        ),
        (
            "share of Silo's logs that are merged",
            labelled(
                "{:.1f} %",
                SILO_WORKLOADS,
                [of_run(cell("silo", name), _merged).percent() for name in SILO_WORKLOADS],
            ),
        ),
        *(
            (
                f"buffer latency of {latency} cycles, {cores} cores",
                labelled(
                    "{:+.1f} %",
                    SILO_WORKLOADS,
                    [_slow_buffer(latency, (name,), cores).change() for name in SILO_WORKLOADS],
                ),
            )
            for cores in (1, 8)
            for latency in (32, 128)
        ),
    ],
)


def _hops(design: str, way: str, own: str = "") -> Quantity:
    settings = said(f"controller.noc_latency={way}")
    return Over(
        design, "undo@x86", WHISPER, 4, settings, said(own), machine="hops", txs=TXS
    ).times()


WAYS_PROSE = Facts(
    "ways.prose",
    "of the way to the controller",
    [
        (
            "100 ns, 10,000: Silo over lad, morlog, fwb",
            each(
                "{:.2f}",
                [
                    over("silo", name, "controller.noc_latency=100ns").times()
                    for name in ("lad", "morlog", "fwb")
                ],
            ),
        ),
        (
            "silo over undo@x86 at 10, 40, 100 ns",
            each(
                "{:.2f}",
                [
                    silo.over("silo", "undo@x86", f"controller.noc_latency={way}").times()
                    for way in ("10ns", "40ns", "100ns")
                ],
            ),
        ),
        *(
            (
                f"machine hops, {what} over undo@x86 at 10, 40, 100 ns",
                each("{:.2f}", [_hops(design, way, own) for way in ("10ns", "40ns", "100ns")]),
            )
            for what, design, own in (
                ("undo@ideal", "undo@ideal", ""),
                ("hops", "hops", ""),
                ("hops, depends=sticky", "hops", "design.depends=sticky"),
            )
        ),
    ],
)

PARTS = (
    Table(
        "rivals.main",
        "Silo's workloads on Silo and its rivals, 10,000 transactions a core",
        compared(SILO_DESIGNS, SILO_WORKLOADS, "silo", (1, 8), txs=LONG, normalize="base"),
    ),
    Table("rivals.published", "what Silo's paper says of its rivals", PUBLISHED),
    Table("rivals.distances", "what moves the distances between Silo and its rivals", DISTANCES),
    Table(
        "rivals.busy",
        "how busy controllers and memory are",
        Grid(("", *(f"`{name}`" for name in SILO_DESIGNS)), [*_usage(1), *_usage(8)]),
    ),
    RIVALS_PROSE,
    Table("rivals.queue", "what the size of the write-pending queue moves", QUEUE),
    Table(
        "silo.ways",
        "Silo and its rivals on longer ways to the controller",
        Grid(_ways_header(), [_way(way) for way in WAYS]),
    ),
    WAYS_PROSE,
)
