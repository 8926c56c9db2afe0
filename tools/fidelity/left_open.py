"""Silo and its rivals with a buffer on the DIMM of Silo alone, and on programs that store less."""

from __future__ import annotations

from collections.abc import Sequence

from fidelity.rivals import LONG, NO_BUFFER, RIVALS, SMALL, over
from fidelity.tables import Entry, Facts, Grid, Table, of_run, per_ended_transaction, said, shown
from fidelity.write_sets import LEAN as LEAN_ALONE
from fidelity.write_sets import logs_left
from indelible.evaluation import (
    TXS,
    Cell,
    Over,
    Quantity,
    average,
    lines,
    removed,
)
from indelible.papers import SILO_WORKLOADS
from indelible.settings import of_cell

# The buffer on the DIMM.

BUFFER_OF_SILO = "silo.pm.xpbuffer_entries=64"
SHORT_QUEUE = "controller.write_buffer_size=32"
#: A buffer of as many bytes, in lines as wide as the writes without a buffer.
NARROW_OF_SILO = "silo.pm.xpbuffer_entries=256 silo.pm.xpline=64B"

#: The comparison of bits before programming is the buffer's, too.
NOTHING = f"{NO_BUFFER} pm.data_encoder=none"
ALL_OF_SILO = f"{BUFFER_OF_SILO} silo.pm.data_encoder=dcw"


def _buffer(label: str, settings: str, own: str, cores: int, txs: int = TXS) -> Sequence[Entry]:
    """Return all designs over base, and Silo over each, with a common setting and Silo's own."""

    def against(design: str, under: str) -> Over:
        alone = own if design == "silo" else ""
        return over(design, under, settings, cores=cores, txs=txs, own=alone)

    rivals = [against("silo", rival) for rival in RIVALS[:-1]]
    return [
        label,
        *(shown("{:.2f}", against(name, "base").times()) for name in RIVALS),
        *(shown("{:.2f}", one.times()) for one in rivals),
        shown("{:.0f}, {:.0f}, {:.0f} %", *(one.change(lines) for one in rivals)),
    ]


BUFFER = Grid(
    (
        "the buffer is that of",
        *(f"`{name}`" for name in RIVALS),
        *(f"Silo over `{name}`" for name in RIVALS[:-1]),
        "Silo's lines of cells, against the three",
    ),
    [
        _buffer(f"{whose}, {said}", settings, own, cores, txs)
        for cores, txs, said in (
            (1, TXS, "1 core"),
            (8, TXS, "8 cores"),
            (8, LONG, "8 cores, 10,000 transactions"),
        )
        for whose, settings, own in (
            ("all", "", ""),
            ("none", NO_BUFFER, ""),
            ("Silo alone", NO_BUFFER, BUFFER_OF_SILO),
            ("Silo alone, in lines of 64 bytes", NO_BUFFER, NARROW_OF_SILO),
            ("Silo alone, DCW as well", NOTHING, ALL_OF_SILO),
            ("Silo alone, a queue of 32", f"{NO_BUFFER} {SHORT_QUEUE}", BUFFER_OF_SILO),
        )
    ]
    + [
        _buffer(f"Silo alone, 20,000 items{queue}, 8 cores{length}", under, BUFFER_OF_SILO, 8, txs)
        for txs, length in ((TXS, ""), (LONG, ", 10,000 transactions"))
        for queue, under in (
            ("", f"{NO_BUFFER} {SMALL}"),
            (", a queue of 32", f"{NO_BUFFER} {SMALL} {SHORT_QUEUE}"),
        )
    ],
)

# The stores of programs.

PADDED = " ".join(f"{name}.contents=padded" for name in ("btree", "hash", "queue", "rbtree"))
LEAN = f"{PADDED} tpcc.rows=lean tpcc.index=array tpcc.rollback=0"


def _stores(label: str, settings: str, txs: int) -> Sequence[Entry]:
    """Return the logs that Silo keeps, all designs over base, and Silo over each, with 8 cores."""
    named = {name: of_cell(said(settings), "silo", name, SILO_WORKLOADS) for name in SILO_WORKLOADS}
    runs = [Cell("silo", name, 8, own, machine="silo", txs=txs) for name, own in named.items()]
    return [
        label,
        shown("{:.0f} %", average(runs, removed).percent()),
        *(shown("{:.2f}", over(name, "base", settings, txs=txs).times()) for name in RIVALS),
        *(shown("{:.2f}", over("silo", rival, settings, txs=txs).times()) for rival in RIVALS[:-1]),
    ]


STORES = Grid(
    (
        "",
        "logs removed",
        *(f"`{name}`" for name in RIVALS),
        *(f"Silo over `{name}`" for name in RIVALS[:-1]),
    ),
    [
        _stores(f"{what}{length}", settings, txs)
        for txs, length in ((TXS, ""), (LONG, ", 10,000 transactions"))
        for what, settings in (
            ("as it is", ""),
            ("padded values", PADDED),
            ("padded values, lean `tpcc`", LEAN),
            ("the same, counts of stock apart", f"{LEAN} tpcc.stock_counts=apart"),
        )
    ],
)


def _left(workload: str, settings: str) -> Quantity:
    """Return how many logs Silo keeps of a transaction."""
    run = Cell("silo", workload, 8, said(settings), machine="silo", txs=TXS)
    return of_run(run, per_ended_transaction(logs_left))


PARTS = (
    Table("rivals.buffer", "what it moves whose the buffer on the DIMM is", BUFFER),
    Table("rivals.stores", "what moves the distances of what programs store", STORES),
    Facts(
        "rivals.left",
        "of what is left of Silo's logs where programs store less",
        [
            ("padded hash", shown("{:.1f}", _left("hash", "workload.contents=padded"))),
            ("lean tpcc", shown("{:.0f}", _left("tpcc", LEAN_ALONE))),
            (
                "lean tpcc, orders of five lines",
                shown("{:.0f}", _left("tpcc", f"{LEAN_ALONE} workload.lines=5")),
            ),
        ],
    ),
)
