"""The speed of the simulator itself, in a process for each cell: peak memory is the cell's."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar

from indelible import extension
from indelible.errors import InputError, InternalError
from indelible.experiment import Experiment
from indelible.names import unknown
from indelible.progress import Meter
from indelible.scripts import Named

#: What `--quick` divides the number of transactions by.
QUICK = 20


@dataclass(frozen=True)
class SpeedCell:
    """One measurement: what is run, and how much memory it touches."""

    design: str
    workload: str
    cores: int
    footprint: str
    txs: int
    settings: tuple[tuple[str, str], ...]
    #: How much of a cell is done is not known before it has ended, as a total of 0 says.
    done: ClassVar[int] = 0
    total: ClassVar[int] = 0

    @property
    def place(self) -> tuple[str, int, str]:
        """The workload, cores and footprint, which the cells that it is compared with share."""
        return self.workload, self.cores, self.footprint


KIB = 1 << 10
MIB = 1 << 20


def _array(
    design: str, cores: int, footprint: str, element: int, txs: int, total: int
) -> SpeedCell:
    """Swap random elements of arrays that fill `total` bytes, a part of it for each core."""
    settings = {"workload.items": str(total // element), "workload.element": str(element)}
    return SpeedCell(design, "array", cores, footprint, txs, tuple(settings.items()))


def _keyed(
    design: str, workload: str, cores: int, footprint: str, txs: int, items: int
) -> SpeedCell:
    """Search, insert and delete: an item's node, its value and its place take some 150 bytes."""
    return SpeedCell(design, workload, cores, footprint, txs, (("workload.items", str(items)),))


def _cells() -> tuple[SpeedCell, ...]:
    """Return the cells that the promises on speed and memory are about, on native and silo."""
    cells: list[SpeedCell] = []
    for design in ("native", "silo"):
        # One core, and all eight, within the last-level cache of 8 MiB. A swap of lines is 32
        # operations on two lines, one of words 4 operations that each meet another line.
        cells += [
            _array(design, 1, "4 MB, lines", 64, 1_000_000, 4 * MIB),
            _array(design, 1, "1 MB, words", 8, 4_000_000, MIB),
            _keyed(design, "hash", 1, "2 MB", 2_000_000, 16 * KIB),
            _keyed(design, "btree", 1, "2 MB", 500_000, 16 * KIB),
            _array(design, 8, "8 x 0.5 MB, lines", 64, 200_000, 4 * MIB),
            _keyed(design, "hash", 8, "8 x 0.5 MB", 300_000, 32 * KIB),
            _keyed(design, "btree", 8, "8 x 0.5 MB", 100_000, 32 * KIB),
            # The arrays are so large that every element drawn misses the caches.
            _array(design, 8, "8 x 64 MB, lines", 64, 50_000, 512 * MIB),
            _array(design, 8, "8 x 64 MB, words", 8, 200_000, 512 * MIB),
        ]
    # 100 million operations on 8 parts of 8 MB that lie far apart in 2 GiB of memory.
    wide = _array("silo", 8, "64 MB of 1 GB", 64, 400_000, 64 * MIB)
    cells.append(replace(wide, settings=(*wide.settings, ("pm.device_size", "2GiB"))))
    return tuple(cells)


CELLS = _cells()

COLUMNS = (
    "design",
    "workload",
    "cores",
    "footprint",
    "mem_ops_per_s",
    "slowdown_vs_plain",
    "cpu_us_per_tx",
    "time_vs_native",
    "peak_rss_mb",
)


def cells(designs: Iterable[str] | None = None) -> tuple[SpeedCell, ...]:
    """Return every cell: those of the promises, and each other design on two workloads.

    With `designs`, only theirs, after the cells of `native` that they are compared with.
    """
    measured = {cell.design for cell in CELLS}
    existing = [row["name"] for row in extension.designs(designs or ())]
    others = tuple(
        replace(cell, design=design, txs=cell.txs // 5)
        for design in existing
        if design not in measured
        for cell in CELLS
        if cell.design == "native" and cell.cores == 1 and cell.workload in ("hash", "btree")
    )
    if designs is None:
        return CELLS + others
    designs = set(designs)
    for name in sorted(designs.difference(existing)):
        raise unknown("design", name, existing)
    chosen = [cell for cell in CELLS + others if cell.design in designs]
    places = {cell.place for cell in chosen}
    bases = [cell for cell in CELLS if cell.design == "native" and cell.place in places]
    return tuple(dict.fromkeys(bases + chosen))


def measure(
    quick: bool = False, seed: int = 1, designs: Iterable[str] | None = None
) -> Iterator[dict[str, Any]]:
    """Measure one cell after the other, so that at least our own cells do not disturb each other.

    `slowdown_vs_plain` and `time_vs_native` compare CPU times, which other processes of the host
    disturb less. The latter is per transaction, and between designs in the same cell: operations a
    second would not show it, since a software log adds operations to every transaction.
    """
    if typed := next((name for name in designs or () if isinstance(name, Named)), None):
        raise InputError(
            f"`bench` measures in processes of its own, which do not know {typed}: name the file"
            " of a design"
        )
    native: dict[tuple[str, int, str], float] = {}
    asked = cells(designs)
    with Meter(asked, "cells") as meter:
        for index, cell in enumerate(asked):
            row = _measured(cell, cell.txs // QUICK if quick else cell.txs, seed)
            if cell.design == "native":
                native[cell.place] = row["cpu_us_per_tx"]
            base = native.get(cell.place)
            row["time_vs_native"] = row["cpu_us_per_tx"] / base if base else None
            meter.finish(index)
            meter.update()
            yield row


def _measured(cell: SpeedCell, txs: int, seed: int) -> dict[str, Any]:
    asked = {**asdict(cell), "txs": txs, "seed": seed}
    child = subprocess.run(
        [sys.executable, "-m", "indelible.benchmark"],
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
    host = experiment.start(extension.core.Control())["host"]
    plain = experiment.start_plain()
    speed = host["mem_ops_per_s"]
    measured = {
        "mem_ops_per_s": speed,
        "slowdown_vs_plain": host["cpu_seconds"] / plain["cpu_seconds"],
        "cpu_us_per_tx": host["cpu_seconds"] * 1e6 / (asked["txs"] * asked["cores"]),
        "peak_rss_mb": host["peak_rss_mb"],
    }
    return {name: measured.get(name, asked.get(name)) for name in COLUMNS}


if __name__ == "__main__":
    try:
        print(json.dumps(_child(json.load(sys.stdin))))
    except InputError as error:
        print(error, file=sys.stderr)
        sys.exit(2)
