"""Silo, software undo and no persistence, on Silo's machine with 8 cores."""

from __future__ import annotations

from fidelity.comparisons import compared
from fidelity.tables import (
    Entry,
    Facts,
    Grid,
    Table,
    Told,
    each,
    of_row,
    of_run,
    per_ended_transaction,
    said,
    shown,
)
from indelible.evaluation import (
    TXS,
    Cell,
    Over,
    Quantity,
    Row,
    bytes_accepted,
    lines,
    throughput,
)
from indelible.papers import SILO_WORKLOADS
from indelible.text import percentages

DESIGNS = ("native", "undo@x86", "silo")
WORKLOADS = ("array", "queue", "hash", "btree", "rbtree", "ycsb", "sqlite")
BASE = "undo@x86"

#: The least share of core time that is listed, in percent.
STALL_MIN = 2


def over(design: str, under: str, settings: str = "", cores: int = 8) -> Over:
    """Return a design over another in the default comparison."""
    return Over(design, under, WORKLOADS, cores, said(settings), machine="silo", txs=TXS)


def cell(design: str, workload: str, cores: int = 8, settings: str = "") -> Cell:
    """Return a run of the default comparison."""
    return Cell(design, workload, cores, said(settings), machine="silo", txs=TXS)


# Where the time goes.


def _stalls(row: Row) -> str:
    """Return where the time goes, the largest share first."""
    shares = percentages(row["stalls"])
    ranked = sorted(shares, key=lambda name: -shares[name])
    named = [name for name in ranked if shares[name] >= STALL_MIN and name != "other"]
    return ", ".join(f"{name.replace('_', ' ')} {shares[name]:.0f}" for name in named)


def _stalls_of(workload: str) -> list[Entry]:
    return [workload, *(of_row(cell(design, workload), _stalls) for design in DESIGNS)]


# Cores behind a fence.

FENCED = ("native", "undo@x86", "redo@x86", "base", "fwb", "morlog", "lad", "silo")


def _gain(design: str, cores: int) -> Told:
    """Return a design's gain if a store behind a fence does not hold up later operations."""
    stops = Over(
        design,
        design,
        SILO_WORKLOADS,
        cores,
        own=said("core.fenced_stores=dispatch"),
        machine="silo",
        txs=1_000,
    )
    return shown("{:.2f}", stops.fewer_times(throughput))


# Sensitivity.

SETTINGS = {
    "`pm.banks_per_rank=16` `core.model=window` (default)": "",
    "`pm.banks_per_rank=64` `core.model=window`": "pm.banks_per_rank=64",
    "`pm.banks_per_rank=16` `core.fenced_stores=dispatch`": "core.fenced_stores=dispatch",
    "`pm.banks_per_rank=16` `core.stores_in_flight=one`": "core.stores_in_flight=one",
    "`pm.banks_per_rank=16` `core.clwb_retains=no`": "core.clwb_retains=no",
    "`controller.noc_latency=40ns` (5 ns by default)": "controller.noc_latency=40ns",
    "`controller.noc_latency=100ns`": "controller.noc_latency=100ns",
    "`pm.banks_per_rank=16` `core.model=inorder`": "core.model=inorder",
    "`pm.banks_per_rank=64` `core.model=inorder`": "core.model=inorder pm.banks_per_rank=64",
}


def _cycles(settings: str = "") -> Quantity:
    """Return how long a transaction of `hash` takes on Silo with one core."""
    return of_run(
        cell("silo", "hash", 1, settings), per_ended_transaction(lambda row: float(row["cycles"]))
    )


PARTS = (
    Table(
        "silo.default",
        "throughput of the default comparison",
        compared(DESIGNS, WORKLOADS, "silo", (8,), txs=TXS, normalize=BASE),
    ),
    Table(
        "silo.writes",
        "bytes of the default comparison",
        compared(DESIGNS, WORKLOADS, "silo", (8,), txs=TXS, normalize=BASE, metric="pm-writes"),
    ),
    Table(
        "silo.stalls",
        "where the time of the default comparison goes",
        Grid(
            ("workload", *(f"`{design}`" for design in DESIGNS)),
            [_stalls_of(workload) for workload in WORKLOADS],
        ),
    ),
    Table(
        "silo.fenced_stores",
        "cores that dispatch behind a fence over cores that stop at a store",
        Grid(
            ("", *(f"`{design}`" for design in FENCED)),
            [
                ("1 core", *(_gain(design, 1) for design in FENCED)),
                ("8 cores", *(_gain(design, 8) for design in FENCED)),
            ],
        ),
    ),
    Table(
        "silo.media_lines",
        "lines of cells for each transaction",
        Grid(
            ("", *WORKLOADS),
            [
                (
                    f"`{design}`",
                    *(
                        shown("{:.2f}", of_run(cell(design, name), per_ended_transaction(lines)))
                        for name in WORKLOADS
                    ),
                )
                for design in ("undo@x86", "silo")
            ],
        ),
    ),
    Table(
        "silo.sensitivity",
        "what banks, cores and ways move in the default comparison",
        Grid(
            ("`--set`", "`native`", "`silo`"),
            [
                (
                    label,
                    *(
                        shown("{:.2f}", over(design, BASE, settings).times())
                        for design in ("native", "silo")
                    ),
                )
                for label, settings in SETTINGS.items()
            ],
        ),
    ),
    Facts(
        "silo.prose",
        "of the sections on the default comparison and its sensitivity",
        [
            ("silo over undo@x86", shown("{:.2f}", over("silo", BASE).times())),
            ("its bytes", shown("{:.2f}", over("silo", BASE).times(bytes_accepted))),
            (
                "native over silo, in the rows of silo.sensitivity",
                each("{:.2f}", [over("native", "silo", s).times() for s in SETTINGS.values()]),
            ),
            (
                "cycles of a transaction, hash on silo, 1 core, and with dispatch",
                shown("{:.0f}, {:.0f}", _cycles(), _cycles("core.fenced_stores=dispatch")),
            ),
        ],
    ),
)
