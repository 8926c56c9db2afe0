"""The tables of `indelible compare --no-crash`, from runs that other tables share."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

from fidelity.tables import SEED, Block
from indelible import extension
from indelible.evaluation import Cell, Rows
from indelible.results.comparison import Comparison
from indelible.results.crash import Verdict
from indelible.results.run import Run
from indelible.text import comparison as comparison_text

#: Columns of the document's text.
WIDTH = 80


def compared(
    designs: Sequence[str],
    workloads: Sequence[str],
    machine: str,
    cores: Sequence[int],
    *,
    txs: int,
    metric: str = "throughput",
    normalize: str,
) -> Block:
    """Return the text of a comparison."""
    keys = [*product(designs, workloads, cores)]
    cells = {key: Cell(*key, machine=machine, txs=txs) for key in keys}

    def tell(rows: Rows) -> str:
        durability = {row["name"]: row["durability"] for row in extension.catalog("designs")}
        answer = Comparison(
            designs=tuple(designs),
            workloads=tuple(workloads),
            cores=tuple(cores),
            machine=machine,
            seeds=(SEED,),
            metric=metric,
            normalize=normalize,
            runs={
                (*key, SEED): Run(rows(cell), cell.experiment(machine, txs, SEED))
                for key, cell in cells.items()
            },
            verdicts={key: Verdict("none") for key in keys if durability.get(key[0]) == "none"},
            durability=durability,
        )
        return comparison_text.comparison(answer, WIDTH)

    return Block(tuple(cells.values()), tell)
