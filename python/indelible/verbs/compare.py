"""The verb `compare`: designs on workloads, as in a paper's evaluation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from indelible import experiment, extension, pool
from indelible.arguments import DesignName, FileName, named, truth
from indelible.batteries import saved
from indelible.cluster import Dask
from indelible.errors import InputError
from indelible.experiment import MACHINE, Experiment
from indelible.jobs import bounds, run_tested, sampled
from indelible.metrics import metric_named
from indelible.native import Beside, beside
from indelible.results.comparison import ComparedCell, Comparison
from indelible.settings import Settings, of_cell, pairs
from indelible.verbs import base_of, counts_of, names_of, seeds_of

#: The designs and the workloads that `compare` takes by default.
DESIGNS = ("native", "undo@x86", "silo")
WORKLOADS = ("hash", "btree", "ycsb", "sqlite")

#: The only metric that can also be measured on this computer's processor.
NATIVE_METRIC = "throughput"


def compare(
    designs: Iterable[DesignName] = DESIGNS,
    workloads: Iterable[str] | None = None,
    machine: FileName = MACHINE,
    *,
    cores: int | Iterable[int] | None = None,
    metric: str = "throughput",
    normalize: DesignName | None = None,
    txs: int | None = None,
    warmup: int | None = None,
    seed: int = 1,
    seeds: int = 1,
    set: Settings = None,
    sql: FileName | None = None,
    ycsb: FileName | None = None,
    replay: FileName | None = None,
    exact: bool = False,
    crash: bool = True,
    native: bool = False,
    latencies: bool = False,
    keep: FileName | None = None,
    dask: Dask = None,
) -> Comparison:
    """Run every design on every workload, and with `crash` cut the power of each 200 times.

    Without `workloads` they are those that read the given files, or else `WORKLOADS`. Counting
    begins after `warmup` transactions of each core (a tenth of `txs`). With several `seeds`, from
    `seed` on, the answer has the means and their confidence intervals. `native` also measures the
    workloads that are the loop of `logcache` on this computer's processor. With `latencies` each
    run has the whole distribution of commit latencies. Answers are kept in the folder `keep`, and
    runs whose answers it has are not made again. With `dask`, a scheduler's address or a
    `distributed.Client`, its workers do everything but `native`.
    """
    crash, native = truth("crash", crash), truth("native", native)
    rows = {kind: extension.catalog(kind) for kind in ("designs", "workloads")}
    chosen = names_of("designs", designs, rows["designs"])
    base = base_of(chosen, normalize, rows["designs"])
    chosen = chosen if base in chosen else (base, *chosen)
    rows["designs"] = extension.designs(chosen)
    metric_named(metric)
    scripts = experiment.read_scripts(sql, ycsb, replay)
    asked = [*scripts] or WORKLOADS if workloads is None else workloads
    workloads = names_of("workloads", asked, rows["workloads"])
    experiment.require_use(scripts, workloads)
    counts = counts_of(cores)
    template = Experiment(
        "",
        "",
        named("machine", machine),
        txs=txs,
        warmup=warmup,
        seed=seed,
        settings=pairs(set),
        exact=exact,
        latencies=latencies,
    )
    each_seed = seeds_of(seed, seeds)
    plan = _plan(chosen, workloads, counts, template, scripts)
    loops = _native(chosen, workloads, template, counts, metric) if native else {}
    durability = {row["name"]: row["durability"] for row in rows["designs"]}
    campaigns = sampled(plan, durability) if crash else {}

    runs, refused, verdicts, interrupted, taken = run_tested(plan, each_seed, campaigns, keep, dask)
    comparison = Comparison(
        designs=chosen,
        workloads=workloads,
        cores=counts,
        machine=template.machine,
        seeds=each_seed,
        metric=metric,
        normalize=base,
        is_base_given=normalize is not None,
        runs=runs,
        verdicts=bounds(plan, durability) | verdicts,
        durability=durability,
        interrupted=interrupted,
        taken=taken,
        refused=refused,
        settings=template.settings,
        txs=template.txs,
        warmup=template.warmup,
        exact=template.exact,
        scripts=scripts,
        has_native=bool(loops),
        is_tested=crash,
        has_distributions=template.latencies,
    )
    batteries = {
        (design, count): saved(
            (plan[design, workload, count] for workload in workloads), comparison.cores_used(count)
        )
        for count in counts
        for design in chosen
    }
    known = {place: battery for place, battery in batteries.items() if battery is not None}
    comparison = replace(comparison, saved=known)
    if interrupted:
        raise pool.Interrupted(comparison)
    # After the runs, since jobs at the same time would disturb a measurement.
    measured: dict[tuple[str, int | None], Mapping[str, Any]] = {}
    for count, loop in loops.items():
        try:
            measured |= {(row["workload"], count): row for row in loop.rows()}
        except pool.Interrupted:
            part = replace(comparison, native=measured, interrupted=True)
            raise pool.Interrupted(part) from None
    return replace(comparison, native=measured)


def _plan(
    designs: tuple[str, ...],
    workloads: tuple[str, ...],
    counts: tuple[int | None, ...],
    template: Experiment,
    scripts: Mapping[str, experiment.Script],
) -> dict[ComparedCell, Experiment]:
    return {
        (design, workload, cores): replace(
            template,
            design=design,
            workload=workload,
            cores=cores,
            script=scripts.get(workload),
            settings=of_cell(template.settings, design, workload, (*designs, *workloads)),
        )
        for cores in counts
        for workload in workloads
        for design in designs
    }


def _native(
    designs: tuple[str, ...],
    workloads: tuple[str, ...],
    template: Experiment,
    counts: tuple[int | None, ...],
    metric: str,
) -> dict[int | None, Beside]:
    if metric != NATIVE_METRIC:
        raise InputError(f"`native` measures only {NATIVE_METRIC}, not the metric {metric}")
    if None in counts:
        raise InputError("`native` needs `cores`, the number of threads to measure, 1 or more")
    # The loop on this computer's processor has no design, so settings of designs do not apply.
    compared = (*designs, *workloads)
    settings = {name: of_cell(template.settings, "", name, compared) for name in workloads}
    asked = (settings, template.machine)
    return {count: beside(*asked, count, template.seed) for count in counts if count is not None}
