"""The verb `characterize`: the write sets of workloads' transactions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from indelible import experiment, extension, pool
from indelible.arguments import FileName, named
from indelible.experiment import Experiment
from indelible.results import Characterization
from indelible.results.origin import flag, line, names, origin, reads, sets
from indelible.settings import Settings, of_cell, pairs
from indelible.verbs import names_of

#: The design, the machine and the transactions of a core with which write sets are counted: they do
#: not depend on the design, and little on the machine.
WITH = "native"
ON = "ssp"
TXS = 20_000


def characterize(
    workloads: Iterable[str] | None = None,
    machine: FileName = ON,
    *,
    cores: int = 1,
    txs: int = TXS,
    seed: int = 1,
    set: Settings = None,
    sql: FileName | None = None,
    ycsb: FileName | None = None,
    replay: FileName | None = None,
) -> Characterization:
    """Return the write sets of workloads' transactions, beside the published numbers.

    Without `workloads` they are those that read the given files, or else every profile with
    published numbers.
    """
    profiles = extension.catalog("profiles")
    scripts = experiment.read_scripts(sql, ycsb, replay)
    asked = [*scripts] or [row["name"] for row in profiles if row["published"] is not None]
    if workloads is not None:
        asked = [*names_of("workloads", workloads, extension.catalog("workloads"))]
    experiment.require_use(scripts, tuple(asked))
    template = Experiment(WITH, "", named("machine", machine), cores, txs, seed, epochs=True)
    given = pairs(set)
    jobs = [
        replace(
            template,
            workload=name,
            settings=of_cell(given, WITH, name, asked),
            script=scripts.get(name),
        )
        for name in asked
    ]
    command = line(
        "characterize",
        names("--workloads", asked),
        *(flag(f"--{name}", getattr(template, name)) for name in ("machine", "cores", "txs")),
        sets(given),
        reads(scripts.values()),
        flag("--seed", template.seed),
    )
    published = {row["name"]: row["published"] for row in profiles}

    def answer(runs: Sequence[Mapping[str, Any] | None], interrupted: bool) -> Characterization:
        ended = [run for run in runs if run is not None and not run["cancelled"]]
        rows = [characterized(run, published) for run in ended]
        of = {name: getattr(template, name) for name in ("machine", "cores", "txs", "seed")}
        told = [f"{run['workload']}: {note}" for run in ended for note in run["notes"]]
        answered = {"rows": rows, "notes": told, "cancelled": interrupted}
        return Characterization({**of, **answered, **origin(command, given)})

    try:
        return answer(pool.execute(jobs), interrupted=False)
    except pool.Interrupted as interrupt:
        raise pool.Interrupted(answer(interrupt.partial, interrupted=True)) from None


def characterized(run: Mapping[str, Any], published: Mapping[str, Any]) -> dict[str, Any]:
    """Return the write set of a run's transactions, beside the published numbers."""
    return {
        "workload": run["workload"],
        **run["write_set"],
        "pm_share": run["epochs"]["pm_store_share"],
        "published": published.get(run["workload"]),
    }
