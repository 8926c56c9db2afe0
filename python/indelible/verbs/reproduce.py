"""The verb `reproduce`: the claims of a paper, published and measured."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import product
from typing import Any

from indelible import pool
from indelible.arguments import FileName, named, whole
from indelible.cluster import Dask
from indelible.errors import InputError
from indelible.jobs import run_all
from indelible.papers import paper_named
from indelible.results.reproduction import Reproduction, Reproductions
from indelible.results.sweep import Point
from indelible.settings import Settings, pairs
from indelible.verbs import SEED, of_point, unless_usual, varied_alone


def reproduce(
    paper: str,
    machine: FileName | None = None,
    *,
    vary: Mapping[str, Any] | None = None,
    txs: int | None = None,
    seed: int = 1,
    set: Settings = None,
    keep: FileName | None = None,
    dask: Dask = None,
) -> Reproduction | Reproductions:
    """Run the evaluation of a paper; return the published and the measured values of its claims.

    It runs on the paper's machine or on `machine`, with the settings `set`, which a claim's own
    settings override. With `vary`, as in `sweep`, the answer is `Reproductions`: all claims at each
    value. Answers are kept in the folder `keep`, and runs whose answers it has are not made again.
    With `dask`, a scheduler's address or a `distributed.Client`, its workers make the runs.
    """
    asked = paper_named(paper)
    said = {"machine": machine, "txs": txs, "seed": unless_usual(seed, SEED)}
    values = {} if vary is None else varied_alone(vary, said, 1)
    for name, told in {"cores": "number of cores", "warmup": "warm-up"}.items():
        if name in values:
            raise InputError(f"each claim sets its own {told}; vary something else")
    txs = None if txs is None else whole("txs", txs)
    seed = whole("seed", seed)
    if machine is not None:
        machine = named("machine", machine)

    def reproduction(point: Point) -> Reproduction:
        of_run, own = of_point(tuple(zip(values, point, strict=True)))
        at = {"machine": machine, "txs": txs, "seed": seed} | of_run
        return Reproduction(asked, **at, runs={}, settings=pairs(set) + own)

    of = {point: reproduction(point) for point in product(*values.values())}
    plans = {point: at_point.plan() for point, at_point in of.items()}
    # A claim that itself sets the field that varies has the same runs at each point.
    unique = dict.fromkeys(run for plan in plans.values() for run in plan.values())
    # The longest runs first, as far as that is known.
    done, interrupted, taken = run_all([*unique], lambda asked: -(asked.cores or 0), keep, dask)
    for point, plan in plans.items():
        runs = {cell: done[run] for cell, run in plan.items() if run in done}
        of[point] = replace(of[point], runs=runs, interrupted=interrupted, taken=taken)
    answer = Reproductions(values, of) if values else of[()]
    if interrupted:
        raise pool.Interrupted(answer)
    return answer
