"""The jobs that verbs give the pool: runs, and the sampled crash campaigns beside them."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from indelible import cluster, extension, kept, pool, told
from indelible.cluster import Dask
from indelible.errors import InputError
from indelible.experiment import CRASH_MACHINE, Campaign, Experiment
from indelible.kept import Taken
from indelible.results.comparison import ComparedCell, SeededCell
from indelible.results.crash import Verdict, failed_points
from indelible.results.run import Run
from indelible.settings import OF_CELLS, Pairs, canonical
from indelible.told import OneOf
from indelible.work import UNTESTED, Tried

Cell = TypeVar("Cell", bound=tuple[Any, ...])

#: Power failures of the sampled campaign that stands beside every speed.
SAMPLED_POINTS = 200

#: The most cores of such a campaign: two are enough for transactions to meet.
SAMPLED_CORES = 2

#: The fields about survival on that machine, with the values that hold unless the machine that was
#: asked for has others.
SURVIVAL = {
    "controller.domain": "adr",
    "controller.flush_bytes": "1GiB",
    "controller.battery_perc": "100%",
}

#: Fields that only give room: without them, data that fit the machine that was asked for may not
#: fit the campaign's.
ROOM = ("pm.device_size", "dram.device_size")


def run_all(
    experiments: Sequence[Experiment],
    first: Callable[[Experiment], Any],
    keep: str | os.PathLike[str] | None = None,
    dask: Dask = None,
) -> tuple[dict[Experiment, Run], bool, Taken | None]:
    """Run experiments in the order of the key `first`, on the cluster `dask` if one is named.

    Returns the runs, whether they were interrupted, and how many answers came from the folder
    `keep`. An impossible experiment is refused before any is run.
    """
    for asked in experiments:
        asked.check()
    answers, interrupted, taken = _answers(sorted(experiments, key=first), keep, dask, {})
    runs, _ = _runs(answers)
    return runs, interrupted, taken


def run_each(
    at: Mapping[Experiment, Sequence[str]],
    campaigns: Mapping[Tried, Iterable[Cell]],
    keep: str | os.PathLike[str] | None = None,
    dask: Dask = None,
) -> tuple[dict[Experiment, Run], dict[Experiment, str], dict[Cell, Verdict], bool, Taken | None]:
    """Run experiments in their order, of which each has words that tell it from the others.

    Returns the runs, why others are impossible, the verdicts of the campaigns, whether they were
    interrupted, and how many answers came from the folder `keep`. What is known to be impossible is
    refused before any is run.
    """
    experiments = [*at]
    named = told.names(experiments, lambda asked: at[asked])
    told.require_possible(experiments, named)
    each = [Tried(asked, is_strict=True) for asked in experiments]
    jobs = _ordered(each, campaigns)
    answers, interrupted, taken = _answers(jobs, keep, dask, named, _what(campaigns))
    runs, refused = _runs(answers)
    refused = told.refused(experiments, refused, named)
    return runs, refused, _verdicts(answers, campaigns, named), interrupted, taken


def run_possible(
    experiments: Sequence[Experiment],
    needed: Collection[Experiment],
    campaigns: Mapping[Tried, Iterable[Cell]],
    keep: str | os.PathLike[str] | None = None,
    dask: Dask = None,
) -> tuple[dict[Experiment, Run], dict[Experiment, str], dict[Cell, Verdict], bool, Taken | None]:
    """Run experiments in their order; return the runs, and why other experiments are impossible.

    Also returns the verdicts of the campaigns, whether they were interrupted, and how many answers
    came from the folder `keep`. It is an error if one of the `needed` experiments is impossible.
    """
    tried = [asked if asked in needed else Tried(asked) for asked in experiments]
    named = told.names([*needed], lambda _: ())
    jobs = _ordered(tried, campaigns)
    answers, interrupted, taken = _answers(jobs, keep, dask, named, _what(campaigns))
    return *_runs(answers), _verdicts(answers, campaigns, named), interrupted, taken


def run_tested(
    plan: Mapping[ComparedCell, Experiment],
    seeds: Iterable[int],
    campaigns: Mapping[Tried, Iterable[ComparedCell]],
    keep: str | os.PathLike[str] | None = None,
    dask: Dask = None,
) -> tuple[
    dict[SeededCell, Run], dict[SeededCell, str], dict[ComparedCell, Verdict], bool, Taken | None
]:
    """Run a plan with each seed, and the campaigns, on the cluster `dask` if one is named.

    Returns the runs, why others are impossible, the verdicts, whether they were interrupted, and
    how many answers came from the folder `keep`. What is known to be impossible is refused before
    any is run.
    """
    seeded = {(*cell, s): replace(asked, seed=s) for cell, asked in plan.items() for s in seeds}
    named = told.names([*seeded.values()], _cores)
    # Which runs are possible does not depend on the seed.
    told.require_possible([*plan.values()], named)
    each = [Tried(asked, is_strict=True) for asked in seeded.values()]
    jobs = sorted([*each, *campaigns], key=urgency)
    answers, interrupted, taken = _answers(jobs, keep, dask, named, _what(campaigns))
    done, impossible = _runs(answers)
    impossible = told.refused([*seeded.values()], impossible, named)
    runs = {cell: done[asked] for cell, asked in seeded.items() if asked in done}
    refused = {cell: impossible[asked] for cell, asked in seeded.items() if asked in impossible}
    return runs, refused, _verdicts(answers, campaigns, named), interrupted, taken


def bounds(plan: Mapping[Cell, Experiment], durability: Mapping[str, str]) -> dict[Cell, Verdict]:
    """Return the verdicts of the cells of designs that promise nothing, which are not tested."""
    none = Verdict("none")
    return {cell: none for cell, one in plan.items() if durability.get(one.design) == "none"}


def portable(asked: Experiment) -> Pairs:
    """Return the settings of a run that also hold on the machine of its campaign.

    The amount of data does not go along, as it belongs to the machine. The sizes of memories that
    the user set go along, and so do the fields about what survives a power failure.
    """
    settings = _canonical(asked)
    own = tuple(
        (key, value)
        for key, value in settings
        if key in ROOM or (key.startswith(OF_CELLS) and not key.endswith(".items"))
    )
    return own + _survival(asked.machine, settings)


def _canonical(asked: Experiment) -> Pairs:
    """Return the settings by our own names of fields, where the user gave another tool's."""
    try:
        return canonical(asked.settings, extension.describe(f"machine:{asked.machine}")["rows"])
    except InputError:
        # The runs report the error.
        return asked.settings


def _survival(machine: str, settings: Pairs) -> Pairs:
    """Return the fields about survival of a machine with these settings, as settings."""
    own = tuple(pair for pair in settings if pair[0] in SURVIVAL)
    try:
        rows = extension.describe(f"machine:{machine}", own)["rows"]
    except InputError:
        return own
    said = {f"{row['section']}.{row['key']}": str(row["value"]) for row in rows}
    found = {key: said.get(key, usual) for key, usual in SURVIVAL.items()}
    return tuple((key, value) for key, value in found.items() if value != SURVIVAL[key])


def sampled(
    plan: Mapping[Cell, Experiment], durability: Mapping[str, str]
) -> dict[Tried, list[Cell]]:
    """Return the campaigns that the cells need, each with the cells for which its verdict holds.

    They run on a small machine with the durability domain of the machine that was asked for.
    """
    campaigns: dict[Tried, list[Cell]] = {}
    carried: dict[tuple[str, Pairs], Pairs] = {}
    for cell, asked in plan.items():
        if durability.get(asked.design) == "none":
            continue
        said = asked.machine, asked.settings
        if said not in carried:
            carried[said] = portable(asked)
        small = replace(
            asked,
            machine=CRASH_MACHINE,
            # A trace takes as many cores as it has threads.
            cores=None if asked.workload == "replay" else _few(asked.cores),
            txs=None,
            warmup=None,
            settings=carried[said],
            latencies=False,
        )
        job = Tried(Campaign(small, points=SAMPLED_POINTS, nested=False, lives=1))
        campaigns.setdefault(job, []).append(cell)
    return campaigns


def _few(cores: int | None) -> int:
    return min(cores or SAMPLED_CORES, SAMPLED_CORES)


def urgency(job: Experiment | Tried) -> tuple[int, bool, int]:
    """Return the key that sorts the longest runs first, then the campaigns.

    All jobs of a seed come before those of the next, so that an interruption leaves whole seeds.
    """
    return (*_stage(job), -(job.experiment.cores or 0))


def _stage(job: Experiment | Tried) -> tuple[int, bool]:
    """Return the key that sorts the runs of each seed, and behind them its campaigns."""
    return job.experiment.seed, job.asks == Campaign.asks


def _ordered(
    runs: Iterable[Experiment | Tried], campaigns: Iterable[Tried]
) -> list[Experiment | Tried]:
    return sorted([*runs, *campaigns], key=_stage)


def _what(campaigns: Collection[Tried]) -> str:
    return "runs and campaigns" if campaigns else "runs"


def _cores(asked: Experiment) -> list[str]:
    return [] if asked.cores is None else [f"{asked.cores} core{'s'[: asked.cores > 1]}"]


def _answers(
    jobs: Sequence[Any],
    keep: str | os.PathLike[str] | None,
    dask: Dask,
    named: Mapping[Experiment, str],
    what: str = "runs",
) -> tuple[dict[Any, dict[str, Any]], bool, Taken | None]:
    """Return the whole answers of jobs, which begin in their order, by job.

    Also returns whether Ctrl-C came before the last one, and how many of `what` came from the
    folder `keep`. Errors have the names of the runs.
    """
    keeping = kept.keeping(jobs, keep)
    interrupted = False
    try:
        with cluster.place_of(dask) as place:
            answers = pool.execute([OneOf(job, named) for job in keeping], place=place)
    except pool.Interrupted as interrupt:
        answers, interrupted = interrupt.partial, True
    whole = {
        job: data
        for job, data in zip(jobs, answers, strict=True)
        if data is not None and not data.get("cancelled")
    }
    return whole, interrupted, kept.taken(keeping, what)


def _runs(
    answers: Mapping[Any, Mapping[str, Any]],
) -> tuple[dict[Experiment, Run], dict[Experiment, str]]:
    """Return the runs among the answers of jobs, and why other runs are impossible."""
    of = {job.experiment: data for job, data in answers.items() if job.asks == Experiment.asks}
    runs = {asked: Run.of(data, asked) for asked, data in of.items() if UNTESTED not in data}
    return runs, {asked: data[UNTESTED] for asked, data in of.items() if asked not in runs}


def _verdicts(
    answers: Mapping[Any, Mapping[str, Any]],
    campaigns: Mapping[Tried, Iterable[Cell]],
    named: Mapping[Experiment, str],
) -> dict[Cell, Verdict]:
    """Return the verdict of each cell whose campaign was not interrupted."""
    verdicts: dict[Cell, Verdict] = {}
    for job, cells in campaigns.items():
        if job in answers:
            verdict = _verdict(job, answers[job])
            if verdict.reason is not None:
                own = told.by_its_own_name(verdict.reason, job.experiment, named)
                verdict = replace(verdict, reason=told.of_design(own, job.experiment))
            verdicts |= dict.fromkeys(cells, verdict)
    return verdicts


def _verdict(job: Tried, data: Mapping[str, Any]) -> Verdict:
    if UNTESTED in data:
        return Verdict("untested", command=job.command(), reason=data[UNTESTED])
    violations = failed_points(data)
    if not violations and not data["checked"]:
        announced = "fewer than half of a core's transactions were announced as durable"
        stored = "no transaction stored to persistent memory: there is nothing to check"
        few = bool(data.get("announced_few"))
        reason = announced if few else stored
        return Verdict("untested", 0, 0, job.command(), reason, few)
    kind = "fail" if violations else "ok"
    return Verdict(kind, data["points"], violations, job.command())
