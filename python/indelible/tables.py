"""The tables as rows of numbers: means over seeds and workloads, and their confidence intervals."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from indelible.means import geometric_mean, interval_fields
from indelible.metrics import METRICS
from indelible.results.comparison import NATIVE

if TYPE_CHECKING:
    from indelible.results.comparison import Comparison
    from indelible.results.seeds import OfSeeds
    from indelible.results.sweep import Sweep

#: The name in place of a workload's in the row of the mean over all.
GMEAN = "gmean"


def compared(answer: Comparison) -> Iterator[dict[str, Any]]:
    """Return a row for each design and workload, and after those of a design their mean."""
    for cores in answer.cores:
        used = answer.cores_used(cores)
        of = _of(answer, answer.normalize)
        for design in answer.designs:
            own = {"design": design, "cores": used}
            for workload in answer.workloads:
                cell = (design, workload, cores)
                crash = answer.crash(cell)["verdict"]
                yield _row(own, workload, of, crash, **answer.means(cell))
            mean, width = answer.gmean(design, cores), answer.gmean_half_width(design, cores)
            crash = answer.verdict(design, cores).kind
            yield _row(own, GMEAN, of, crash, None, mean, **interval_fields(mean, width))
        yield from _measured(answer, cores)


def _measured(answer: Comparison, cores: int | None) -> Iterator[dict[str, Any]]:
    """Return the rows measured on this computer's processor, if there are any."""
    own, of = {"design": NATIVE, "cores": cores}, _of(answer, answer.normalize)
    ratios = [answer.native_ratio(workload, cores) for workload in answer.workloads]
    for workload, ratio in zip(answer.workloads, ratios, strict=True):
        if (row := answer.native.get((workload, cores))) is not None:
            yield _row(own, workload, of, None, row["throughput_tx_per_s"], ratio)
    if answer.native:
        yield _row(own, GMEAN, of, None, None, geometric_mean(ratios))


def swept(answer: Sweep) -> Iterator[dict[str, Any]]:
    """Return a row for each point, design and workload, and after those of a design their mean."""
    first = " ".join(f"{key}={value}" for key, value in answer.named(answer.points[0]).items())
    of = _of(answer, answer.normalize or first)
    for point in answer.points:
        for design in answer.designs:
            own = {"point": answer.valued(point), "design": design}
            for workload in answer.workloads:
                cell = (point, design, workload)
                crash = answer.crash(cell)["verdict"]
                yield _row(own, workload, of, crash, **answer.means(cell))
            mean, width = answer.gmean(point, design), answer.gmean_half_width(point, design)
            crash = answer.verdict(point, design).kind
            yield _row(own, GMEAN, of, crash, None, mean, **interval_fields(mean, width))


def _of(answer: OfSeeds, base: str) -> dict[str, str]:
    """Return what the numbers of a row are: the metric, the unit of values, and what is 1.00."""
    unit = METRICS[answer.metric].unit
    return {"metric": answer.metric, "unit": unit, "relative_to": base}


def _row(
    own: dict[str, Any],
    workload: str,
    of: dict[str, str],
    crash: str | None,
    value: float | None,
    normalized: float | None,
    **interval: float | None,
) -> dict[str, Any]:
    numbers = {"value": value, "normalized": normalized}
    sure = interval or interval_fields(None, None)
    return {**own, "workload": workload, **numbers, **sure, **of, "crash": crash}
