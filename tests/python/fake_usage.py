"""How busy a machine was, as the canned answers of `fake_core.py` have it."""

from __future__ import annotations

from typing import Any


def of(spec: dict[str, Any], txs: int) -> dict[str, Any]:
    """Return how busy the machine was."""
    is_plain = spec["design"] == "native"
    walks = txs if spec["design"] == "ssp" else 0
    quiet = {"count": 0, "mean": None, "max": None}
    return {
        "caches": {
            "loads": txs * 40,
            "stores": txs * 10,
            "flushes": 0 if is_plain else txs * 3,
            "fences": 0 if is_plain else txs * 2,
            "page_walks": walks,
            "l1d_misses": txs * 5,
            "l2_misses": txs * 2,
            "llc_misses": txs,
            "llc_misses_pm": txs,
            "from_other_cores": 0 if is_plain else txs // 4,
            "pm_evictions": 7,
            "dram_evictions": 0,
            "llc_dirty_share_at_start": 0.0234,
            "llc_dirty_share_at_end": 0.254,
        },
        "controllers": {
            "wpq_size": 64,
            "wpq_entries_mean": 3.25 if is_plain else 60.5,
            "wpq_entries_max": 12 if is_plain else 64,
            "wpq_full_share": 0.0 if is_plain else 0.4321,
            "write_wait_cycles": quiet if is_plain else {"count": 1234, "mean": 56.7, "max": 890},
            "pm_read_cycles": {"count": txs * 2, "mean": 301.5, "max": 2345},
            "dram_read_cycles": quiet if is_plain else {"count": 99, "mean": 60.5, "max": 234},
        },
        "pm_banks": {
            "busy_share": 0.4567,
            "busiest_share": 0.6543,
            "bus_share": 0.0123,
            "reads": txs * 2,
            "row_hits": txs,
        },
        "dram_banks": {
            "busy_share": 0.01,
            "busiest_share": 0.02,
            "bus_share": 0.001,
            "reads": 99,
            "row_hits": 33,
        },
    }
