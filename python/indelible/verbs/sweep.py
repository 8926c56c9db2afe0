"""The verb `sweep`: the same runs at several values of some fields."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import product
from typing import Any

from indelible import experiment, extension, pool
from indelible.arguments import DesignName, FileName, named, truth, whole
from indelible.cluster import Dask
from indelible.experiment import MACHINE, Experiment
from indelible.jobs import bounds, run_each, sampled
from indelible.metrics import metric_named
from indelible.results.sweep import Point, Sweep
from indelible.settings import ITEMS, MACHINE_FIELD, Settings, of_cell, pairs
from indelible.verbs import (
    SEED,
    base_of,
    names_of,
    of_point,
    seeds_of,
    unless_usual,
    varied_alone,
)


def sweep(
    designs: Iterable[DesignName],
    workloads: Iterable[str],
    vary: Mapping[str, Any],
    machine: FileName = MACHINE,
    *,
    cores: int | None = None,
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
    keep: FileName | None = None,
    dask: Dask = None,
) -> Sweep:
    """Run every design on every workload at all combinations of the values of some fields.

    `vary` has the values of each field, as in `{"design.entries": [10, 20, 40]}` or `"8:128:24"`;
    `machine` (names, files, or `all`), `cores`, `txs`, `warmup` and `seed` are fields, too.
    Counting begins after `warmup` transactions of each core (a tenth of `txs`). With several
    `seeds`, from `seed` on, the answer has their means. With `crash` the power of each design is
    cut 200 times on each workload, as by `compare`, and again for each value of a field of the
    design's or the workload's own. Answers are kept in the folder `keep`, and runs whose answers it
    has are not made again. With `dask`, a scheduler's address or a `distributed.Client`, its
    workers do all of it.
    """
    crash = truth("crash", crash)
    rows = {kind: extension.catalog(kind) for kind in ("designs", "workloads")}
    chosen = names_of("designs", designs, rows["designs"])
    workloads = names_of("workloads", workloads, rows["workloads"])
    if normalize is not None:
        normalize = base_of(chosen, normalize, rows["designs"])
        chosen = chosen if normalize in chosen else (normalize, *chosen)
    rows["designs"] = extension.designs(chosen)
    metric_named(metric)
    scripts = experiment.read_scripts(sql, ycsb, replay)
    experiment.require_use(scripts, workloads)
    said: dict[str, object] = {"cores": cores, "txs": txs, "warmup": warmup}
    said |= {"machine": unless_usual(machine, MACHINE), "seed": unless_usual(seed, SEED)}
    values = varied_alone(vary, said, seeds)
    each_seed = seeds_of(seed, seeds)
    points = tuple(product(*values.values()))
    counts = {
        name: None if count is None else whole(name, count)
        for name, count in (("cores", cores), ("txs", txs), ("warmup", warmup))
    }
    on, settings = named("machine", machine), pairs(set)

    def asked(point: Point, design: str, workload: str, seed: int) -> Experiment:
        of_run, own = of_point(tuple(zip(values, point, strict=True)))
        at = {"machine": on, "seed": seed, **counts} | of_run
        return Experiment(
            design,
            workload,
            **at,
            settings=of_cell((*settings, *own), design, workload, (*chosen, *workloads)),
            script=scripts.get(workload),
            exact=exact,
        )

    plan = {cell: asked(*cell) for cell in product(points, chosen, workloads, each_seed)}
    # A run that several points share, because a field does not affect its design, is made once.
    at: dict[Experiment, list[str]] = {}
    # Seed by seed and point by point, so that an interruption leaves whole points of a seed.
    for cell, one in sorted(plan.items(), key=lambda pair: pair[1].seed):
        at.setdefault(one, [f"{key}={value}" for key, value in zip(values, cell[0], strict=True)])
    items = {name: _items(name) for name in values.get(MACHINE_FIELD, ())}
    durability = {row["name"]: row["durability"] for row in rows["designs"]}
    # What survives does not depend on the seed, so that a seed that varies needs no campaign.
    first = plan[points[0], chosen[0], workloads[0], each_seed[0]].seed
    judged = {
        cell[:3]: replace(one, seed=first) for cell, one in plan.items() if cell[3] == each_seed[0]
    }
    campaigns = sampled(judged, durability) if crash else {}
    done, impossible, verdicts, interrupted, taken = run_each(at, campaigns, keep, dask)
    answer = Sweep(
        designs=chosen,
        workloads=workloads,
        vary=values,
        points=points,
        machine=None if MACHINE_FIELD in values else on,
        seeds=each_seed,
        metric=metric,
        normalize=normalize,
        runs={cell: done[asked] for cell, asked in plan.items() if asked in done},
        durability=durability,
        interrupted=interrupted,
        taken=taken,
        refused={cell: impossible[one] for cell, one in plan.items() if one in impossible},
        settings=settings,
        **counts,
        exact=truth("exact", exact),
        scripts=scripts,
        items=items,
        verdicts=bounds(judged, durability) | verdicts,
        is_tested=crash,
    )
    if interrupted:
        raise pool.Interrupted(answer)
    return answer


def _items(machine: str) -> int:
    """Return how many items workloads have on a machine."""
    rows = extension.describe(f"machine:{machine}")["rows"]
    return next(int(row["value"]) for row in rows if f"{row['section']}.{row['key']}" == ITEMS)
