"""The numbers of a run by which designs are compared."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from indelible.arguments import one_of


@dataclass(frozen=True)
class Metric:
    """A number of a run by which designs are compared."""

    title: str
    unit: str
    #: None where neither more nor less is better.
    higher_is_better: bool | None
    #: Returns the number of a run, in the unit, or None where the run does not have it.
    value: Callable[[Mapping[str, Any]], float | None]
    #: The least transactions for which it is meaningful: a percentile of fewer is the slowest one.
    least: int = 1

    @property
    def better(self) -> str | None:
        """Which direction is better, in words."""
        if self.higher_is_better is None:
            return None
        return f"{'higher' if self.higher_is_better else 'lower'} is better"


def transactions(row: Mapping[str, Any]) -> int:
    """Return how many transactions were committed in the measured region."""
    return row["txs"] - row["aborted"]


def per_transaction(
    amount: Callable[[Mapping[str, Any]], float],
) -> Callable[[Mapping[str, Any]], float]:
    """Return the function that divides a run's amount by its committed transactions."""

    def value(row: Mapping[str, Any]) -> float:
        count = transactions(row)
        return amount(row) / count if count else 0.0

    return value


def _writes(meter: str, unit: str, title: str) -> Metric:
    return Metric(title, unit, False, per_transaction(lambda row: row["pm_writes"][meter]))


def _latency(number: str, title: str, least: int = 1) -> Metric:
    def value(row: Mapping[str, Any]) -> float | None:
        return row["commit_latency_cycles"][number]

    return Metric(title, "cycles", False, value, least)


METRICS = {
    "throughput": Metric("Throughput", "tx/s", True, lambda row: row["throughput_tx_per_s"]),
    "pm-writes": _writes("wpq_bytes", "B/tx", "PM writes"),
    "media-lines": _writes("media_lines", "lines/tx", "Lines of media programmed"),
    "media-bits": _writes("media_bits", "bits/tx", "Bits of media programmed"),
    "pm-energy": Metric(
        "Energy of PM cells", "nJ/tx", False, per_transaction(lambda row: 1e3 * row["energy_uj"])
    ),
    "commit-latency": _latency("mean", "Mean commit latency"),
    "commit-latency-p50": _latency("p50", "Median of commit latency"),
    "commit-latency-p99": _latency("p99", "99th percentile of commit latency", 100),
    "commit-latency-p999": _latency("p999", "99.9th percentile of commit latency", 1000),
    "llc-misses": Metric(
        "Misses of the last level",
        "misses/tx",
        False,
        per_transaction(lambda row: row["caches"]["llc_misses"]),
    ),
    "pm-reads": Metric("PM reads", "lines/tx", False, per_transaction(lambda row: row["pm_reads"])),
    "pm-read-latency": Metric(
        "Mean latency of PM reads",
        "cycles",
        False,
        lambda row: row["controllers"]["pm_read_cycles"]["mean"],
    ),
    "wpq-entries": Metric(
        "Entries of the write-pending queues taken",
        "entries",
        None,
        lambda row: row["controllers"]["wpq_entries_mean"],
    ),
    "pm-busy": Metric(
        "Time in which banks of PM are busy",
        "%",
        None,
        lambda row: 100 * row["pm_banks"]["busy_share"],
    ),
}


def metric_named(name: str) -> Metric:
    """Return a metric, or refuse and list the known ones."""
    return one_of("metric", name, METRICS)
