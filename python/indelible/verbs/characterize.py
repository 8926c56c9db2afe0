"""The verb `characterize`: the write sets of workloads' transactions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from indelible import experiment, extension, pool
from indelible.arguments import FileName, named
from indelible.commands import flag, flags, line, reads, sets
from indelible.experiment import Experiment
from indelible.jobs import run_each
from indelible.results import Characterization
from indelible.results.origin import origin
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
    cores: int | None = 1,
    txs: int | None = TXS,
    seed: int = 1,
    set: Settings = None,
    sql: FileName | None = None,
    ycsb: FileName | None = None,
    replay: FileName | None = None,
) -> Characterization:
    """Return the write sets of workloads' transactions, beside the published numbers.

    Without `workloads` they are those that read the given files, or else every profile with
    published numbers. A workload that cannot be run is left out, and `refused` says why; it is an
    error if none can.
    """
    profiles = extension.catalog("profiles")
    scripts = experiment.read_scripts(sql, ycsb, replay)
    asked = [*scripts] or [row["name"] for row in profiles if row["published"] is not None]
    if workloads is not None:
        asked = [*names_of("workloads", workloads, extension.catalog("workloads"))]
    experiment.require_use(scripts, tuple(asked))
    template = Experiment(WITH, "", named("machine", machine), cores, txs, seed, epochs=True)
    given = pairs(set)
    each = [
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
        flag("--workloads", asked),
        flags(template, "machine", "cores", "txs"),
        sets(given),
        reads(scripts.values()),
        flags(template, "seed"),
    )
    published = {row["name"]: row["published"] for row in profiles}
    done, refused, _, interrupted, _ = run_each(dict.fromkeys(each, ()), {})
    left_out = [{"workload": job.workload, "reason": refused[job]} for job in refused]
    runs = [done[job].data for job in each if job in done]
    answer = Characterization(
        {
            "machine": template.machine,
            # Those that a machine and workloads choose, if none were asked for.
            **{name: _common(runs, name, getattr(template, name)) for name in ("cores", "txs")},
            "seed": template.seed,
            "rows": [characterized(run, published) for run in runs],
            "notes": [f"{run['workload']}: {note}" for run in runs for note in run["notes"]],
            "cancelled": interrupted,
            **({"refused": left_out} if left_out else {}),
            **origin(command, given),
        }
    )
    if interrupted:
        raise pool.Interrupted(answer)
    return answer


def _common(runs: Sequence[Mapping[str, Any]], name: str, asked: int | None) -> int | None:
    """Return the number that was asked for, or that all runs have; None if they differ."""
    found = {run[name] for run in runs} if asked is None else {asked}
    return found.pop() if len(found) == 1 else None


def characterized(run: Mapping[str, Any], published: Mapping[str, Any]) -> dict[str, Any]:
    """Return the write set of a run's transactions, beside the published numbers."""
    return {
        "workload": run["workload"],
        **run["write_set"],
        "pm_share": run["epochs"]["pm_store_share"],
        "published": published.get(run["workload"]),
    }
