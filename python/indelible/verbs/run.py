"""The verb `run`: one workload on one design."""

from __future__ import annotations

from dataclasses import replace

from indelible import pool
from indelible.arguments import DesignName, FileName
from indelible.experiment import MACHINE
from indelible.results.run import Run
from indelible.settings import Settings
from indelible.verbs import experiment_of


def run(
    design: DesignName,
    workload: str | None = None,
    machine: FileName = MACHINE,
    *,
    cores: int | None = None,
    txs: int | None = None,
    seed: int = 1,
    set: Settings = None,
    sql: FileName | None = None,
    ycsb: FileName | None = None,
    replay: FileName | None = None,
    exact: bool = False,
    epochs: bool = False,
    latencies: bool = False,
    warmup: int | None = None,
) -> Run:
    """Run a workload on a design; return throughput, latency, writes, and where the time went.

    With `epochs` the answer counts ordering points and the epochs between them, and with
    `latencies` it has the whole distribution of commit latencies. Counting begins after `warmup`
    transactions of each core (a tenth of `txs`).
    """
    asked = experiment_of(
        design, workload, machine, cores, txs, seed, set, sql, ycsb, replay, exact
    )
    asked = replace(asked, epochs=epochs, latencies=latencies, warmup=warmup)
    return pool.execute_one(asked, lambda data: Run.of(data, asked))
