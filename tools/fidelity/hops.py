"""HOPS, published and measured, and the ordering points of WHISPER's kernels."""

from __future__ import annotations

from collections.abc import Sequence

from fidelity.tables import (
    Entry,
    Facts,
    Grid,
    Table,
    Told,
    labelled,
    of_row,
    of_run,
    said,
    shown,
)
from indelible.evaluation import (
    TXS,
    Cell,
    Over,
    Quantity,
    Row,
    Rows,
    Value,
    bytes_accepted,
    bytes_of,
    throughput,
)
from indelible.papers import WHISPER

BASE = "undo@x86"

#: The columns: a design, and its own settings.
COLUMNS = (("hops", ""), ("hops", "design.depends=sticky"), ("undo@ideal", ""))
NAMES = ("hops", "hops depends=sticky", "undo@ideal")

#: Transactions of a core in the sweeps of the prose.
SHORT = 500

#: Transactions of a core where the caches are to fill up.
LONG = 10_000


def over(
    design: str,
    under: str = BASE,
    settings: str = "",
    own: str = "",
    *,
    workloads: Sequence[str] = WHISPER,
    cores: int = 4,
    txs: int = TXS,
) -> Over:
    """Return a design over another on WHISPER's kernels."""
    return Over(design, under, workloads, cores, said(settings), said(own), machine="hops", txs=txs)


def _means(workloads: Sequence[str]) -> list[Entry]:
    return [
        shown("{:.2f}", over(design, own=own, workloads=workloads).times())
        for design, own in COLUMNS
    ]


MAIN = Grid(
    ("", "`hops`", "`hops`, `depends=sticky`", "`undo@ideal`"),
    [
        ("published, average (HOPS, and its short version)", "1.24, 1.20", "", "1.40"),
        (
            "the same over x86 whose queues survive (from memory: that is 1.155 of x86 without)",
            "1.08",
            "",
            "1.22",
        ),
        ("geometric mean of the seven", *_means(WHISPER)),
        ("of `echo`, `ycsb`, `ctree`, `hashmap`", *_means(WHISPER[:4])),
        *((f"`{name}`", *_means((name,))) for name in WHISPER),
    ],
)

# Numbers that the prose quotes.


def _moved(
    what: str,
    settings: str = "",
    own: str = "",
    *,
    workloads: Sequence[str] = WHISPER,
    cores: int = 4,
    txs: int = TXS,
) -> tuple[str, Entry]:
    """Return the three means with other settings; `own` is of `hops` alone."""
    means = [
        over(
            design,
            BASE,
            settings,
            f"{mine} {own}" if design == "hops" else mine,
            workloads=workloads,
            cores=cores,
            txs=txs,
        ).times()
        for design, mine in COLUMNS
    ]
    return what, labelled("{:.2f}", NAMES, means)


def _latency(own: str) -> Quantity:
    run = Cell("hops", "hashmap", 4, said(own), machine="hops", txs=TXS)
    return of_run(run, lambda row: row["commit_latency_cycles"]["mean"])


def _points(row: Row) -> float:
    return row["epochs"]["ordering_points"] / row["instructions"]


def _pm_stores(row: Row) -> float:
    return row["epochs"]["pm_store_share"]


def counted(workload: str, settings: str = "", cores: int = 4, design: str = BASE) -> Cell:
    """Return a run of a software log with its ordering points."""
    return Cell(design, workload, cores, said(settings), machine="hops", txs=TXS, epochs=True)


def _ranks(values: Sequence[float]) -> list[int]:
    order = sorted(range(len(values)), key=lambda index: values[index])
    return [order.index(index) for index in range(len(values))]


def _correlation(one: Sequence[float], other: Sequence[float]) -> float:
    """Return the rank correlation of values that are all different (Spearman)."""
    pairs = zip(_ranks(one), _ranks(other), strict=True)
    distance = sum((left - right) ** 2 for left, right in pairs)
    count = len(one)
    return 1 - 6 * distance / (count * (count * count - 1))


def _correlations(value: Value) -> Entry:
    """Return the rank correlation of the speedups with a measure of the undo log's runs."""
    causes = [of_run(counted(name), value) for name in WHISPER]

    def with_speedup(design: str, own: str) -> Quantity:
        speedups = [over(design, own=own, workloads=(name,)).times() for name in WHISPER]
        cells = tuple(cell for quantity in causes + speedups for cell in quantity.cells)

        def measure(rows: Rows) -> float:
            return _correlation(*([q.measure(rows) for q in qs] for qs in (causes, speedups)))

        return Quantity(cells, measure)

    return labelled("{:.2f}", NAMES, [with_speedup(*column) for column in COLUMNS])


def _bbb(design: str, under: str, value: Value = throughput) -> Entry:
    """Return a design of the comparison with BBB over another, for each kernel."""
    quantities = [
        over(design, under, workloads=(name,), txs=SHORT).times(value) for name in WHISPER
    ]
    return labelled("{:.2f}", WHISPER, quantities)


def _speed(design: str) -> Quantity:
    return over(design, "undo@eadr", txs=SHORT).times()


PROSE: Sequence[tuple[str, Entry]] = [
    _moved("controller.domain=media", "controller.domain=media"),
    _moved("the same, undo@x86 alone", "undo@x86.controller.domain=media"),
    _moved("core.stores_in_flight=many", "core.stores_in_flight=many"),
    _moved("core.fenced_stores=dispatch", "core.fenced_stores=dispatch"),
    _moved("core.clwb_retains=no", "core.clwb_retains=no"),
    _moved("many, dispatch", "core.stores_in_flight=many core.fenced_stores=dispatch"),
    _moved("many, no", "core.stores_in_flight=many core.clwb_retains=no"),
    _moved("core.model=inorder", "core.model=inorder"),
    _moved("cells of 500 ns", "pm.tWRITE=500ns"),
    _moved("cells of 160 ns, reads too", "pm.tWRITE=160ns pm.tREAD=160ns"),
    _moved("one core", cores=1),
    _moved("500 transactions", txs=SHORT),
    _moved("design.drain=lazy, 500 transactions", own="design.drain=lazy", txs=SHORT),
    *(
        _moved(
            f"{name}, {what}500 transactions",
            own=own,
            workloads=(name,),
            txs=SHORT,
        )
        for name in ("echo", "ycsb")
        for what, own in (("design.drain=lazy, ", "design.drain=lazy"), ("", ""))
    ),
    *(_moved(f"a way of {way}", f"controller.noc_latency={way}") for way in ("40ns", "100ns")),
    *(
        _moved(f"design.record={count}, 500 transactions", f"design.record={count}", txs=SHORT)
        for count in (20, 1_000)
    ),
    (
        "commit of hashmap on hops, cycles: sticky, buffered",
        shown("{:.0f}, {:.0f}", _latency("design.depends=sticky"), _latency("")),
    ),
    ("rank correlation with ordering points an instruction", _correlations(_points)),
    ("with the share of stores to persistent memory", _correlations(_pm_stores)),
    (
        "that share",
        labelled(
            "{:.1f} %",
            WHISPER,
            [of_run(counted(name), _pm_stores).percent() for name in WHISPER],
        ),
    ),
    (
        "over undo@eadr, 500 transactions: undo@bbb, undo@x86",
        shown("{:.2f}, {:.2f}", _speed("undo@bbb"), _speed("undo@x86")),
    ),
    ("undo@bbb over undo@eadr", _bbb("undo@bbb", "undo@eadr")),
    ("bytes of undo@bbb over undo@x86", _bbb("undo@bbb", BASE, bytes_accepted)),
]

# The writes of battery-backed persist buffers.

#: The classes of programs' own writes (not of logs), from a buffer or from a cache's evictions.
OF_PROGRAMS = bytes_of("data", "home_write_back")

#: Caches as the machine has them, and so small that stored lines have to leave.
CACHES = ("", "llc.size=512KiB")


def _written(label: str, workloads: Sequence[str]) -> list[Entry]:
    """Return the writes of BBB over those of eADR, with and without logs, for each cache."""
    return [label] + [
        shown("{:.2f}", times)
        for settings in CACHES
        for value in (bytes_accepted, OF_PROGRAMS)
        for times in [
            over("undo@bbb", "undo@eadr", settings, workloads=workloads, txs=LONG).times(value)
        ]
    ]


WRITTEN = Grid(
    (
        "bytes of `undo@bbb` over `undo@eadr`",
        "last level of 2 MiB",
        "without the log",
        "of 512 KiB",
        "without the log",
    ),
    [
        ("published", "", "", "", "about 1"),
        _written("geometric mean of the seven", WHISPER),
        *(_written(f"`{name}`", (name,)) for name in WHISPER),
    ],
)

# Ordering points.

#: A log like Mnemosyne's, on which WHISPER's Memcached and Vacation run.
REDO = "redo@x86"


def _share(value: float) -> str:
    """Return a share in percent, with one more digit near 0 and near 100."""
    percent = 100 * value
    return f"{percent:.{int(0.05 <= percent < 0.95 or 99.05 <= percent < 99.95)}f} %"


def _epochs(
    label: str, workload: str, settings: str = "", cores: int = 4, design: str = BASE
) -> list[Entry]:
    run = counted(workload, settings, cores, design)

    def of(name: str) -> Told:
        return of_row(run, lambda row: _share(row["epochs"][name]))

    def count(row: Row) -> str:
        number = row["epochs"]["epochs_per_tx"]
        return f"{number:.0f}" if number >= 100 else f"{number:.1f}"

    shares = ("singleton_share", "self_dependent_share", "cross_dependent_share")
    return [label, of_row(run, count), *map(of, shares), "-"]


LARGE = "workload.value=128"

EPOCHS = Grid(
    (
        "",
        "epochs a transaction",
        "of one line",
        "depend on their core's",
        "on another's",
        "stores to PM",
    ),
    [
        ("published", "5 to 50", "75 %", "80 %", "few", "4 %"),
        _epochs("`ctree`", "ctree"),
        _epochs("`ctree`, `workload.value=128`", "ctree", LARGE),
        _epochs("`hashmap`", "hashmap"),
        _epochs("`hashmap`, `workload.value=128`", "hashmap", LARGE),
        _epochs("`echo`", "echo"),
        _epochs("`echo`, `--cores 1`", "echo", cores=1),
        _epochs(
            "`echo`, `workload.merge=1 workload.value=64`",
            "echo",
            "workload.merge=1 workload.value=64",
        ),
        *(
            _epochs(label + more, workload, design=design)
            for workload, label in (
                ("memcached-mtm", "`memcached-mtm`"),
                ("vacation", "`vacation`"),
            )
            for design, more in ((BASE, ""), (REDO, f", over `{REDO}`"))
        ),
    ],
)

PARTS = (
    Table("hops.main", "HOPS over software that fences", MAIN),
    Facts("hops.prose", "of HOPS, published and measured", PROSE),
    Table("hops.bbb", "what battery-backed persist buffers write", WRITTEN),
    Table("whisper.epochs", "ordering points of WHISPER's kernels", EPOCHS),
)
