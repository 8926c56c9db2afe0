"""The tables as rows of numbers: means over seeds and workloads, and their confidence intervals."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from indelible.means import geometric_mean, interval_fields
from indelible.results.comparison import NATIVE

if TYPE_CHECKING:
    from indelible.results.comparison import Comparison
    from indelible.results.sweep import Sweep

#: The name in place of a workload's in the row of the mean over all.
GMEAN = "gmean"


def compared(answer: Comparison) -> Iterator[dict[str, Any]]:
    """Return a row for each design and workload, and after those of a design their mean."""
    for cores in answer.cores:
        used = answer.cores_used(cores)
        for design in answer.designs:
            own = {"design": design, "cores": used}
            for workload in answer.workloads:
                yield _row(own, workload, **answer.means((design, workload, cores)))
            mean, width = answer.gmean(design, cores), answer.gmean_half_width(design, cores)
            yield _row(own, GMEAN, None, mean, **interval_fields(mean, width))
        yield from _measured(answer, cores)


def _measured(answer: Comparison, cores: int | None) -> Iterator[dict[str, Any]]:
    """Return the rows measured on this computer's processor, if there are any."""
    own = {"design": NATIVE, "cores": cores}
    ratios = [answer.native_ratio(workload, cores) for workload in answer.workloads]
    for workload, ratio in zip(answer.workloads, ratios, strict=True):
        if (row := answer.native.get((workload, cores))) is not None:
            yield _row(own, workload, row["throughput_tx_per_s"], ratio)
    if answer.native:
        yield _row(own, GMEAN, None, geometric_mean(ratios))


def swept(answer: Sweep) -> Iterator[dict[str, Any]]:
    """Return a row for each point, design and workload, and after those of a design their mean."""
    for point in answer.points:
        for design in answer.designs:
            own = {"point": answer.valued(point), "design": design}
            for workload in answer.workloads:
                yield _row(own, workload, **answer.means((point, design, workload)))
            mean, width = answer.gmean(point, design), answer.gmean_half_width(point, design)
            yield _row(own, GMEAN, None, mean, **interval_fields(mean, width))


def _row(
    own: dict[str, Any],
    workload: str,
    value: float | None,
    normalized: float | None,
    **interval: float | None,
) -> dict[str, Any]:
    numbers = {"value": value, "normalized": normalized}
    return {**own, "workload": workload, **numbers, **(interval or interval_fields(None, None))}
