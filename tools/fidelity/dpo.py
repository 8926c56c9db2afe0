"""DPO, published and measured."""

from __future__ import annotations

from fidelity.tables import Entry, Grid, Table, said, shown
from indelible.evaluation import TXS, Over

#: Workloads that write much to persistent memory, as the paper's microbenchmarks do.
WORKLOADS = ("array", "btree", "hash", "queue", "rbtree", "sps")

#: Durability domains, and cores.
COLUMNS = (("media", 1), ("media", 4), ("adr", 1), ("adr", 4))


def _times(design: str, under: str) -> list[Entry]:
    """Return how much faster a design is than another."""
    return [
        shown(
            "{:.2f}",
            Over(
                design,
                under,
                WORKLOADS,
                cores,
                said(f"controller.domain={domain}"),
                machine="hops",
                txs=TXS,
            ).times(),
        )
        for domain, cores in COLUMNS
    ]


MAIN = Grid(
    (
        "",
        "published",
        *(f"`{domain}`, {cores} core{'s' * (cores > 1)}" for domain, cores in COLUMNS),
    ),
    [
        ("synchronous ordering, slower than `native`", "7.21", *_times("native", "undo@x86")),
        ("the same, than `undo@ideal`", "7.21", *_times("undo@ideal", "undo@x86")),
        ("DPO, slower than `native`", "1.93", *_times("native", "undo@dpo")),
        ("the same, than `undo@ideal`", "1.93", *_times("undo@ideal", "undo@dpo")),
        ("DPO over synchronous ordering", "3.73", *_times("undo@dpo", "undo@x86")),
        ("HOPS over it", "", *_times("hops", "undo@x86")),
    ],
)

PARTS = (Table("dpo.main", "DPO over software that fences", MAIN),)
