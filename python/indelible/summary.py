"""A row for each design of a comparison: its gains and its costs, over all workloads."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from indelible.means import interval_fields
from indelible.metrics import METRICS
from indelible.results.comparison import Comparison

#: The numbers that are relative to one design, and the metric of each.
RATIOS = {
    "throughput": "throughput",
    "commit_latency_p99": "commit-latency-p99",
    "pm_writes": "pm-writes",
    "media_bits": "media-bits",
    "pm_energy": "pm-energy",
}

#: The key of throughput, and of the number that is shown beside it if there are several seeds.
SPEED = "throughput"
HALF_WIDTH = f"{SPEED}_half_width_95"

#: The numbers by which one design may dominate another.
TRADED = ("throughput", "commit_latency_p99", "pm_writes", "state_bytes")

#: The relative difference below which numbers are level, as rounding alone may make them differ.
LEVEL = 1e-9

#: The kinds of durability, the strongest promise first.
PROMISES = ("synchronous", "asynchronous", "none")

#: The row of a design, by key.
Row = Mapping[str, Any]


def rows(answer: Comparison) -> Iterator[dict[str, Any]]:
    """Return a row for each number of cores and design."""
    for cores in answer.cores:
        yield from rows_of(answer, cores)


def rows_of(answer: Comparison, cores: int | None) -> list[dict[str, Any]]:
    """Return the rows of one number of cores; ratios are geometric means over the workloads."""
    compared = {key: answer.by_metric(metric) for key, metric in RATIOS.items()}
    found = [_row(answer, compared, design, cores) for design in answer.designs]
    rivals = [row for row in found if answer.is_rival(row["design"])]
    keys = traded(answer)
    for row in found:
        others = rivals if answer.is_rival(row["design"]) else []
        row["dominated_by"] = [other["design"] for other in others if _dominates(other, row, keys)]
    return found


def traded(answer: Comparison) -> list[str]:
    """Return the numbers by which one design may dominate another here.

    A percentile of so few commits that it is the slowest one is none of them.
    """
    return [key for key in TRADED if not is_of_few(answer, key)]


def is_of_few(answer: Comparison, key: str) -> bool:
    """Return whether a number is a percentile of too few commits."""
    return key in RATIOS and answer.by_metric(RATIOS[key]).too_few() is not None


def _row(
    answer: Comparison, compared: Mapping[str, Comparison], design: str, cores: int | None
) -> dict[str, Any]:
    means = {key: by_metric.gmean(design, cores) for key, by_metric in compared.items()}
    speed, half_width = means.pop(SPEED), compared[SPEED].gmean_half_width(design, cores)
    saved = answer.saved.get((design, cores))
    return {
        "design": design,
        "cores": answer.cores_used(cores),
        SPEED: speed,
        **interval_fields(speed, half_width, f"{SPEED}_"),
        **means,
        "state_bytes": saved and saved.state_bytes,
        "flush_energy_uj": saved and saved.flush_energy_uj,
        "durability": answer.durability.get(design, PROMISES[0]),
        "crash": _crash(answer, design, cores),
    }


def _crash(answer: Comparison, design: str, cores: int | None) -> dict[str, Any]:
    """Return the verdict of all campaigns, with the command of one if it is not `ok`."""
    verdict = answer.verdict(design, cores)
    return replace(verdict, command=None).json() if verdict.kind == "ok" else verdict.json()


def _dominates(one: Row, other: Row, keys: Sequence[str]) -> bool:
    """Return whether a design promises no less, is better in one number, and worse in none."""
    promises = [PROMISES.index(row["durability"]) for row in (one, other)]
    found = [lead(key, one[key], other[key]) for key in keys]
    known = [each for each in found if each is not None]
    if promises[0] > promises[1] or len(known) < len(found):
        return False
    return min(known) >= 0 < max(known)


def lead(key: str, one: float | None, other: float | None) -> int | None:
    """Return 1 if one value is better than another, -1 if it is worse, 0 if they are level."""
    if one is None or other is None:
        return None
    if math.isclose(one, other, rel_tol=LEVEL):
        return 0
    return 1 if (one > other) == _more_is_better(key) else -1


def _more_is_better(key: str) -> bool:
    return key in RATIOS and METRICS[RATIOS[key]].higher_is_better is True
