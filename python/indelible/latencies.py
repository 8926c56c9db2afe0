"""How long commits of a comparison take, as percentiles and distributions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from indelible.means import mean_of_seeds
from indelible.metrics import transactions
from indelible.results.comparison import ComparedCell, Comparison

#: The percentiles by their names in a row, as shares of commits that took no longer.
SHARES = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p999": 0.999}

#: The numbers, and the heads of their columns. `tx` is the whole transaction, its commit included.
NUMBERS = {
    "tx": "transaction",
    "mean": "mean",
    "p50": "p50",
    "p90": "p90",
    "p99": "p99",
    "p999": "p99.9",
    "max": "max",
}

#: A step of a distribution: cycles, and the share of commits that took no longer.
Step = tuple[float, float]


def numbers(answer: Comparison, cell: ComparedCell) -> dict[str, float | None] | None:
    """Return a cell's core time of a transaction and percentiles of its commits, in cycles.

    None without runs. A percentile is None where no transaction was durable when a run ended. Over
    several seeds the percentiles are those of all commits if their distributions are known, and
    otherwise the means of the seeds' percentiles; `max` is that of the slowest commit of all.
    """
    runs = whole_runs(answer, cell)
    if runs is None:
        return None
    each = [run["commit_latency_cycles"] for run in runs]
    of_all = {"tx": _core_time, "mean": lambda run: run["commit_latency_cycles"]["mean"]}
    found = {name: mean_of_seeds(map(of, runs)) for name, of in of_all.items()}
    steps = distribution(answer, cell) if len(runs) > 1 else None
    for name, share in SHARES.items():
        found[name] = (
            next(cycles for cycles, reached in steps if reached >= share - 1e-12)
            if steps
            else mean_of_seeds(latency[name] for latency in each)
        )
    slowest = [latency["max"] for latency in each]
    return found | {"max": None if None in slowest else max(slowest)}


def runs_of(answer: Comparison, cell: ComparedCell) -> list[Mapping[str, Any] | None]:
    """Return the rows of a cell's runs, one for each seed; None where there was no run."""
    cell = answer.place(cell)
    runs = [answer.runs.get((*cell, seed)) for seed in answer.seeds_shown]
    return [None if run is None else run.data for run in runs]


def whole_runs(answer: Comparison, cell: ComparedCell) -> list[Mapping[str, Any]] | None:
    """Return the rows of a cell's runs, one for each seed, or None if one is missing."""
    runs = runs_of(answer, cell)
    there = [run for run in runs if run is not None]
    return there if len(there) == len(runs) else None


def _core_time(run: Mapping[str, Any]) -> float | None:
    """Return the cycles of a core for each transaction that was committed."""
    count = transactions(run)
    return sum(run["stalls"].values()) / count if count else None


def commits(answer: Comparison, cell: ComparedCell) -> int:
    """Return how many commits the runs of a cell have together."""
    return sum(transactions(run) for run in runs_of(answer, cell) if run)


def distribution(answer: Comparison, cell: ComparedCell) -> list[Step] | None:
    """Return the cumulative distribution of commit latencies, in steps.

    Over several seeds a share is the mean of theirs. None where a run has no distribution.
    """
    runs = runs_of(answer, cell)
    each = [run["commit_latency_cycles"].get("distribution") for run in runs if run]
    if len(each) < len(runs) or not all(each):
        return None
    ends = sorted({cycles for steps in each for cycles, _ in steps})
    shares = [_at(steps, ends) for steps in each]
    return [(end, sum(at) / len(at)) for end, *at in zip(ends, *shares, strict=True)]


def _at(steps: Sequence[Sequence[float]], ends: Sequence[float]) -> list[float]:
    """Return the shares of a distribution at these ascending numbers of cycles."""
    shares, index, share = [], 0, 0.0
    for end in ends:
        while index < len(steps) and steps[index][0] <= end:
            share = steps[index][1]
            index += 1
        shares.append(share)
    return shares


def rows(answer: Comparison) -> Iterator[dict[str, Any]]:
    """Return a row for each design and workload."""
    for cores in answer.cores:
        for workload in answer.workloads:
            for design in answer.designs:
                own = {"design": design, "cores": answer.cores_used(cores), "workload": workload}
                found = numbers(answer, (design, workload, cores)) or dict.fromkeys(NUMBERS)
                yield {**own, "cycles": found}


def has_later(answer: Comparison) -> bool:
    """Return whether a design acknowledges before a transaction is durable."""
    return any(answer.durability.get(design) == "asynchronous" for design in answer.designs)


def is_told(share: float, count: float) -> bool:
    """Return whether at least one of so many commits lies above a percentile."""
    return count * (1 - share) >= 1 - 1e-9
