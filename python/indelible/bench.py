"""How fast the simulator itself is. A process for each cell, so that peak memory is the cell's."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from indelible import experiment as asking
from indelible.experiment import Experiment, InputError, InternalError

#: What `--quick` divides the number of transactions by.
QUICK = 20


@dataclass(frozen=True)
class Cell:
    """One measurement: what is run, and how much memory it says it touches."""

    design: str
    workload: str
    cores: int
    footprint: str
    txs: int
    settings: tuple[tuple[str, str], ...]


def _cell(
    design: str, workload: str, cores: int, footprint: str, txs: int, **settings: int
) -> Cell:
    pairs = tuple((f"workload.{name}", str(value)) for name, value in settings.items())
    return Cell(design, workload, cores, footprint, txs, pairs)


MIB = 1 << 20

#: An element of `array` is a line; `items` are those of all cores together. A node of `hash` and
#: its bucket head take some two lines for each of its items. The last cell's bucket heads cover
#: 1 GiB, of which the 16 Ki keys that it draws from touch a page each.
CELLS = (
    _cell("native", "array", 1, "1 MB", 1_000_000, items=MIB // 64),
    _cell("silo", "array", 1, "1 MB", 1_000_000, items=MIB // 64),
    _cell("native", "array", 8, "8 x 0.5 MB", 1_000_000, items=4 * MIB // 64),
    _cell("silo", "array", 8, "8 x 0.5 MB", 1_000_000, items=4 * MIB // 64),
    _cell("native", "array", 8, "8 x 64 MB", 500_000, items=512 * MIB // 64),
    _cell("silo", "array", 8, "8 x 64 MB", 500_000, items=512 * MIB // 64),
    _cell("native", "hash", 1, "1 MB", 1_000_000, items=MIB // 128),
    _cell("silo", "hash", 1, "1 MB", 1_000_000, items=MIB // 128),
    _cell("native", "btree", 1, "1 MB", 500_000, items=MIB // 128),
    _cell("silo", "btree", 1, "1 MB", 500_000, items=MIB // 128),
    _cell("silo", "hash", 1, "64 MB of 1 GB", 5_000_000, items=8192, buckets=1 << 27),
)

COLUMNS = (
    "design",
    "workload",
    "cores",
    "footprint",
    "mem_ops_per_s",
    "slowdown_vs_plain",
    "peak_rss_mb",
)


def bench(quick: bool = False, seed: int = 1) -> Iterator[dict[str, Any]]:
    """Measure one cell after the other, alone on the computer as far as that depends on us."""
    for cell in CELLS:
        txs = cell.txs // QUICK if quick else cell.txs
        yield _measured(cell, txs, seed)


def _measured(cell: Cell, txs: int, seed: int) -> dict[str, Any]:
    asked = {**asdict(cell), "txs": txs, "seed": seed}
    child = subprocess.run(
        [sys.executable, "-m", "indelible.bench"],
        input=json.dumps(asked),
        capture_output=True,
        text=True,
        check=False,
    )
    if child.returncode == 0:
        return json.loads(child.stdout)
    reason = child.stderr.strip() or f"exit code {child.returncode}"
    raise (InputError if child.returncode == 2 else InternalError)(f"bench: {reason}")


def _child(asked: dict[str, Any]) -> dict[str, Any]:
    """Measure one cell in this process: with the simulator first, then on plain memory."""
    experiment = Experiment(
        asked["design"],
        asked["workload"],
        cores=asked["cores"],
        txs=asked["txs"],
        seed=asked["seed"],
        settings=tuple((key, value) for key, value in asked["settings"]),
    )
    host = experiment.start(asking.core.Control())["host"]
    plain = experiment.start_plain()
    speed = host["mem_ops_per_s"]
    measured = {
        "mem_ops_per_s": speed,
        "slowdown_vs_plain": plain["mem_ops_per_s"] / speed if speed else None,
        "peak_rss_mb": host["peak_rss_mb"],
    }
    return {name: measured.get(name, asked.get(name)) for name in COLUMNS}


if __name__ == "__main__":
    try:
        print(json.dumps(_child(json.load(sys.stdin))))
    except InputError as error:
        print(error, file=sys.stderr)
        sys.exit(2)
