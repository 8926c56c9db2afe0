"""Write sets larger than Silo's buffer, and those of `tpcc`."""

from __future__ import annotations

from collections.abc import Sequence

from fidelity.tables import (
    Entry,
    Facts,
    Grid,
    Table,
    labelled,
    of_all,
    of_run,
    per_ended_transaction,
    ratio,
    said,
    shown,
)
from indelible.evaluation import (
    TXS,
    Cell,
    Over,
    Quantity,
    Row,
    Value,
    bits,
    bytes_accepted,
    counted,
    lines,
    mean,
    per_word,
    words_per_second,
)
from indelible.papers import OPERATIONS

WORKLOADS = ("array", "btree", "hash", "queue", "rbtree", "ycsb")

#: The bytes of a field of `ycsb` with which a transaction changes as much as others at first.
FIELD = 160


def _cell(workload: str, times: int, cores: int) -> Cell:
    if workload in OPERATIONS:
        settings = f"workload.operations={OPERATIONS[workload] * times}"
    else:
        settings = f"workload.fieldlength={FIELD * times} workload.items=20000"
    return Cell("silo", workload, cores, said(settings), times, "silo", TXS)


def logs_left(row: Row) -> float:
    """Return the words that transactions change: the logs left of their stores."""
    return counted("logs_generated")(row) - counted("logs_merged")(row)


def _times(workload: str, times: int, value: Value, cores: int = 8) -> Quantity:
    """Return the change of a value for each word with a larger write set."""
    large, small = (of_run(_cell(workload, n, cores), value) for n in (times, 1))
    return ratio(large, small)


def _means(times: int, value: Value, cores: int = 8) -> Quantity:
    return of_all([_times(name, times, value, cores) for name in WORKLOADS], mean)


def change(times: int) -> Quantity:
    """Return how throughput changes with the write set, in percent."""
    means = _means(times, words_per_second)
    return Quantity(means.cells, lambda rows: 100 * (means.measure(rows) - 1))


def more_lines(times: int) -> Quantity:
    """Return the factor by which larger write sets program more lines of cells."""
    return _means(times, per_word(lines))


def _row(workload: str) -> list[Entry]:
    return [
        workload,
        shown("{:.0f}", of_run(_cell(workload, 1, 8), per_ended_transaction(logs_left))),
        *(shown("{:.2f}", _times(workload, n, words_per_second)) for n in (2, 4, 8, 16)),
        *(
            shown("{:.2f}", _times(workload, 16, per_word(value)))
            for value in (lines, bits, bytes_accepted)
        ),
    ]


def _mean_row() -> Sequence[Entry]:
    return [
        "mean",
        "",
        *(shown("{:.2f}", _means(n, words_per_second)) for n in (2, 4, 8, 16)),
        *(shown("{:.2f}", _means(16, per_word(v))) for v in (lines, bits, bytes_accepted)),
    ]


LARGER = Grid(
    (
        "workload",
        "words at 1x",
        "throughput 2x",
        "4x",
        "8x",
        "16x",
        "at 16x: lines of cells",
        "bits",
        "bytes accepted",
    ),
    [
        *(_row(workload) for workload in WORKLOADS),
        _mean_row(),
        ("published", "", "", "", "", "0.926", "1.9 at the most", "", ""),
    ],
)

# tpcc.


#: The settings with which `tpcc` stores what public suites store.
LEAN = "workload.index=array workload.rows=lean workload.rollback=0"
HASH = "workload.index=hash"


def _tpcc(settings: str) -> Cell:
    return Cell("silo", "tpcc", 8, said(settings), machine="silo", txs=TXS)


def _written(label: str, settings: str) -> list[Entry]:
    def size(name: str) -> Quantity:
        return of_run(_tpcc(settings), lambda row: row["write_set"][name])

    words, average, most, stores = map(size, ("words_avg", "lines_avg", "lines_max", "stores_avg"))
    return [
        label,
        shown("{:.0f}", words),
        shown("{:.1f} (max {})", average, most),
        shown("{:.0f}", stores),
    ]


TPCC = Grid(
    ("", "words", "lines", "stores"),
    [
        _written("`index=hash`", HASH),
        _written("`index=btree`", "workload.index=btree"),
        _written("`index=bplustree`", "workload.index=bplustree"),
        _written("`rows=lean index=array rollback=0`", LEAN),
        _written("the same, `stock_counts=apart`", f"{LEAN} workload.stock_counts=apart"),
        ("reckoned from the rows of the standard", "", "25 to 40", ""),
        ("HOOP", "", "", "10 to 35"),
        (
            "Silo, after ignorance and merging, each of its workloads",
            "at most 20",
            "",
            "",
        ),
    ],
)


def _tpcc_over(index: str, cores: int) -> Quantity:
    settings = said(f"workload.index={index}")
    return Over("silo", "undo@x86", ("tpcc",), cores, settings, machine="silo", txs=TXS).times()


def _loads(row: Row) -> float:
    """Return the share of loads among loads and stores."""
    return 1 - row["write_set"]["stores_avg"] * row["txs"] / row["host"]["mem_ops"]


def _one_line() -> Sequence[Quantity]:
    run = Cell(
        "silo",
        "tpcc",
        8,
        said("workload.lines=1 design.entries=64"),
        machine="silo",
        txs=TXS,
    )
    words = of_run(run, lambda row: row["write_set"]["words_avg"])
    return [words, of_run(run, per_ended_transaction(logs_left))]


PARTS = (
    Table("silo.write_sets", "write sets larger than Silo's buffer", LARGER),
    Table("silo.tpcc", "write sets of tpcc", TPCC),
    Facts(
        "write_sets.prose",
        "of the sections on write sets and tpcc",
        [
            (
                "throughput a word at 16x, 1 core",
                labelled(
                    "{:.2f}",
                    [*OPERATIONS],
                    [_times(name, 16, words_per_second, 1) for name in OPERATIONS],
                ),
            ),
            (
                "their mean",
                shown(
                    "{:.2f}",
                    of_all([_times(n, 16, words_per_second, 1) for n in OPERATIONS], mean),
                ),
            ),
            (
                "tpcc on silo: batches of a transaction, share of time with the log full",
                shown(
                    "{:.1f}, {:.0f} %",
                    of_run(_tpcc(HASH), per_ended_transaction(counted("overflow_batches"))),
                    of_run(
                        _tpcc(HASH),
                        lambda row: (
                            row["stalls"]["log_structure_full"] / sum(row["stalls"].values())
                        ),
                    ).percent(),
                ),
            ),
            (
                "silo over undo@x86 on tpcc: 8 cores, hash and btree; 1 core, hash",
                shown(
                    "{:.2f}, {:.2f}; {:.2f}",
                    _tpcc_over("hash", 8),
                    _tpcc_over("btree", 8),
                    _tpcc_over("hash", 1),
                ),
            ),
            (
                "an order of one line: words, logs that are left",
                shown("{:.1f}, {:.1f}", *_one_line()),
            ),
            (
                "loads of loads and stores, index=hash",
                shown("{:.0f} %", of_run(_tpcc(HASH), _loads).percent()),
            ),
        ],
    ),
)
