"""LOC's evaluation, and the settings on which it depends."""

from __future__ import annotations

from collections.abc import Sequence

from fidelity.tables import Entry, Facts, Grid, Table, each, labelled, of_all, of_run, said, shown
from indelible.evaluation import TXS, Cell, Over, Quantity, counted, gmean, throughput
from indelible.papers import LOC_WORKLOADS

LOGS = ("h-wal", "ec-wal", "loc-wal")
DESIGNS = ("s-wal", *LOGS, "kiln", "loc-kiln")


def _items(count: int) -> str:
    """Return the settings for so many items; `sqlite` has none."""
    return " ".join(f"{name}.items={count}" for name in LOC_WORKLOADS if name != "sqlite")


def over(
    design: str,
    under: str = "native",
    cores: int = 4,
    settings: str = "",
    own: str = "",
    *,
    txs: int = TXS,
) -> Over:
    """Return a design over another on LOC's workloads."""
    return Over(
        design, under, LOC_WORKLOADS, cores, said(settings), said(own), machine="loc", txs=txs
    )


# The main table: four cores, larger data, one core, and twice as many, with a last level for them.

EIGHT = "core.cores_max=8"
COLUMNS = (
    (4, ""),
    (4, _items(200_000)),
    (4, _items(400_000)),
    (1, ""),
    (8, EIGHT),
    (8, f"{EIGHT} llc.size=2MiB"),
)


def _main(design: str, published: str, template: str = "{:.3f}") -> list[Entry]:
    label = "`loc-wal`, SD 16" if design == "loc-wal" else f"`{design}`"
    templates = (template, "{:.2f}", "{:.2f}", template, "{:.2f}", "{:.2f}")
    return [
        label,
        published,
        *(
            shown(form, over(design, "native", cores, settings).times())
            for form, (cores, settings) in zip(templates, COLUMNS, strict=True)
        ),
    ]


def _ec_wal() -> list[Entry]:
    forms = ("{:+.0f} %", "{:+.0f} %", "{:+.0f} %", "{:+.1f} %", "{:+.0f} %", "{:+.0f} %")
    return [
        "EC-WAL over H-WAL",
        "+6.4 %",
        *(
            shown(form, over("ec-wal", "h-wal", cores, settings).change())
            for form, (cores, settings) in zip(forms, COLUMNS, strict=True)
        ),
    ]


MAIN = Grid(
    (
        "",
        "published",
        "4 cores",
        "4 cores, 200,000 items",
        "400,000 items",
        "1 core",
        "8 cores",
        "8 cores, 2 MiB LLC",
    ),
    [
        (
            "`s-wal`",
            "below H-WAL",
            shown("{:.2f}", over("s-wal").times()),
            *("", "", ""),
            *(shown("{:.2f}", over("s-wal", "native", *at).times()) for at in COLUMNS[4:]),
        ),
        _main("h-wal", "0.331"),
        _main("ec-wal", "0.352"),
        _ec_wal(),
        _main("loc-wal", "0.651"),
        _main("kiln", "above LOC-WAL, unseen"),
        _main("loc-kiln", "Kiln or more, unseen"),
    ],
)

# Speculation degree.

PUBLISHED_SD = {1: "0.353", 16: "(0.651)", 32: "0.689"}


def _degree(degree: int) -> list[Entry]:
    own = f"design.sd={degree}"

    def of_cores(cores: int) -> list[Entry]:
        runs = [
            Cell("loc-wal", name, cores, said(own), machine="loc", txs=TXS)
            for name in LOC_WORKLOADS
        ]
        latencies = [of_run(run, lambda row: row["commit_latency_cycles"]["mean"]) for run in runs]
        return [
            shown("{:.3f}", over("loc-wal", "native", cores, own=own).times()),
            shown("{:,.0f}", of_all(latencies, gmean)),
        ]

    return [str(degree), PUBLISHED_SD.get(degree, ""), *of_cores(4), *of_cores(1)]


# The gain of EC-WAL over H-WAL.


def _gain(cores: int, *settings: str) -> Entry:
    return each("{:.1f} %", [over("ec-wal", "h-wal", cores, words).change() for words in settings])


def _gains(label: str, *settings: str, two: bool = False) -> list[Entry]:
    """Return a row of one, two (if asked for) and four cores."""
    settings = settings or ("",)
    return [
        label,
        *(_gain(cores, *settings) if cores != 2 or two else "" for cores in (1, 2, 4)),
    ]


BANKS = Grid(
    ("", "1 core", "2 cores", "4 cores"),
    [
        _gains("as it is (8 banks, `media`, in order, 50,000 items)", two=True),
        _gains("`design.groups=aligned` (both logs)", "design.groups=aligned", two=True),
        _gains("`pm.banks_per_rank=7`", "pm.banks_per_rank=7", two=True),
        _gains("`pm.banks_per_rank=9`", "pm.banks_per_rank=9", two=True),
        _gains("1 bank, 2 banks", "pm.banks_per_rank=1", "pm.banks_per_rank=2"),
        _gains("16 banks, 32 banks", "pm.banks_per_rank=16", "pm.banks_per_rank=32"),
        _gains("`controller.domain=adr`", "controller.domain=adr", two=True),
        _gains("`core.model=window`", "core.model=window", two=True),
        _gains("`workload.items=10000`", _items(10_000)),
        _gains("`workload.items=200000`", _items(200_000)),
        _gains("`design.log_writes=1` (both logs; 16 is the default)", "design.log_writes=1"),
        _gains("`design.log_writes=4`", "design.log_writes=4"),
        _gains("`design.log_writes=64`", "design.log_writes=64"),
    ],
)

# Metadata in blocks of their own, or in the bursts of their data.


def _metadata(design: str) -> list[list[Entry]]:
    def of(where: str, cores: int) -> Entry:
        own = f"design.metadata={where}"
        return shown("{:.3f}", over(design, "native", cores, own=own).times())

    return [
        [f"`{design}`, `design.metadata={where}`", *(of(where, cores) for cores in (1, 2, 4))]
        for where in ("block", "burst")
    ]


METADATA = Grid(
    ("", "1 core", "2 cores", "4 cores"),
    [
        *_metadata("ec-wal"),
        [
            "EC-WAL with `burst` over H-WAL",
            *(
                shown(
                    "{:+.0f} %",
                    over("ec-wal", "h-wal", cores, own="design.metadata=burst").change(),
                )
                for cores in (1, 2, 4)
            ),
        ],
        *_metadata("loc-wal"),
    ],
)

# Truncated logs.

SIZES = ("4 MiB", "1 MiB", "256 KiB", "64 KiB")


def _sizes(design: str) -> list[Entry]:
    def of(cores: int, size: str) -> Entry:
        own = "" if size == SIZES[0] else f"pm.log_size={size.replace(' ', '')}"
        return shown("{:.3f}", over(design, "native", cores, own=own).times())

    return [f"`{design}`", *(of(cores, size) for cores in (4, 1) for size in SIZES)]


# Numbers that the prose quotes.


def _kiln(own: str) -> Entry:
    return shown("{:.3f}", over("kiln", own=own).times())


def _sps(design: str, cores: int, txs: int = TXS) -> Cell:
    return Cell(design, "sps", cores, machine="loc", txs=txs)


def _waits(design: str, cores: int) -> Quantity:
    """Return the share of time in which a core waits for commits."""
    return of_run(
        _sps(design, cores),
        lambda row: row["stalls"]["commit_wait"] / sum(row["stalls"].values()),
    ).percent()


def _latency(design: str) -> Quantity:
    return of_run(_sps(design, 1), lambda row: row["commit_latency_cycles"]["mean"])


def _millions(design: str, cores: int, txs: int = TXS) -> Quantity:
    return of_run(_sps(design, cores, txs), lambda row: throughput(row) / 1e6)


def _long() -> Sequence[Quantity]:
    return [over(design, txs=10_000).times() for design in DESIGNS]


def _both(cores: int, *, txs: int = TXS) -> Entry:
    settings = f"core.cores_max={max(cores, 8)}"
    return labelled(
        "{:.2f}",
        ("loc-wal", "kiln"),
        [over(name, "native", cores, settings, txs=txs).times() for name in ("loc-wal", "kiln")],
    )


PROSE: Sequence[tuple[str, Entry]] = [
    ("over native, 6 cores", _both(6)),
    ("the same, 12 cores", _both(12)),
    ("the same, 8 cores, 10,000", _both(8, txs=10_000)),
    ("kiln over native, design.write_out=store", _kiln("design.write_out=store")),
    ("the same, design.write_out=never", _kiln("design.write_out=never")),
    ("the same, slower cells", _kiln("design.llc_read=10 design.llc_write=30")),
    ("loc-kiln over native at SD 1", shown("{:.3f}", over("loc-kiln", own="design.sd=1").times())),
    (
        "kiln on sps, 4 cores: lines that waited, of all; commit wait",
        shown(
            "{:,.0f}, {:,.0f}; {:.0f} %",
            of_run(_sps("kiln", 4), counted("versions_waited_for_home")),
            of_run(_sps("kiln", 4), counted("lines_cleaned")),
            _waits("kiln", 4),
        ),
    ),
    (
        "h-wal on sps, 1 core: cycles of a transaction, commit wait",
        shown(
            "{:.0f}, {:.0f} %",
            of_run(_sps("h-wal", 1), lambda row: row["cycles"] / row["txs"]),
            _waits("h-wal", 1),
        ),
    ),
    (
        "commit latency on sps, 1 core: h-wal, ec-wal",
        shown("{:.0f}, {:.0f}", _latency("h-wal"), _latency("ec-wal")),
    ),
    ("Mtx/s of h-wal on sps, 4 cores", shown("{:.2f}", _millions("h-wal", 4))),
    ("10,000 transactions, over native", labelled("{:.2f}", DESIGNS, _long())),
    (
        "Mtx/s of native on sps, 4 cores: 2,000 and 10,000",
        shown("{:.0f}, {:.0f}", _millions("native", 4), _millions("native", 4, 10_000)),
    ),
]

PARTS = (
    Table("loc.main", "LOC's designs over no persistence", MAIN),
    Table(
        "loc.sd",
        "speculation degrees of LOC-WAL",
        Grid(
            ("SD", "published", "4 cores", "latency", "1 core", "latency"),
            [_degree(degree) for degree in (1, 2, 4, 8, 16, 32)],
        ),
    ),
    Table("loc.banks", "what EC-WAL gains over H-WAL, by banks and cores", BANKS),
    Table("loc.metadata", "where metadata of log blocks are", METADATA),
    Table(
        "loc.logs",
        "logs that are smaller",
        Grid(
            ("", *SIZES, f"1 core: {SIZES[0]}", *SIZES[1:]),
            [_sizes(design) for design in LOGS],
        ),
    ),
    Facts("loc.prose", "of LOC's evaluation", PROSE),
)
