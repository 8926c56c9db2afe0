"""A row of the benchmark of logs, as the canned answers of `fake_core.py` have it."""

from __future__ import annotations

from typing import Any


def row(
    request: dict[str, Any], variant: str, entries: int, fence: str, value: str
) -> dict[str, Any]:
    """Return a row of the benchmark of logs, on a processor without counters."""
    durable = variant != "cached" and fence != "none"
    cycles = 9.0 + (80.0 if value == "rand" else 0.0) + (800.0 / entries if durable else 0.0)
    unsupported = dict.fromkeys(
        ("llc_loads_per_entry", "llc_misses_per_entry", "llc_miss_rate"), "unsupported"
    )
    return {
        "variant": variant,
        "entries_per_fence": entries,
        "fence": fence,
        "value": value,
        "log": "linear",
        "logging": "redo",
        "array_writes": "cached",
        "array_bytes": 8 << 20,
        "threads": request.get("threads", [1])[0],
        "guarantee": "durable (ADR)" if durable else "nothing",
        "cycles_per_entry": cycles,
        "min": cycles - 1,
        "cv": 0.031,
        "ns_per_entry": cycles / 2,
        "runs": 20,
        "entries_per_run": 4096,
        "reread_cycles_per_line": 5.0,
        "steal_percent": 0.4,
        "interrupted_percent": 12.0,
        "modelled_llc_miss_rate": 0.0,
        "modelled_llc_miss_rate_8mib": 1.0 if variant.startswith("cached") else 0.0,
        **unsupported,
        "fill_buffer_full_cycles_per_entry": "unsupported",
    }
