"""How fast the simulator is, as text for a terminal. Returns strings and prints nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from indelible.text import BLANK, columns


def bench(answer: Mapping[str, Any], width: int) -> str:
    """Return how fast the simulator was."""
    headers = [
        "design",
        "workload",
        "cores",
        "footprint",
        "ops/s",
        "slowdown",
        "vs native",
        "peak",
    ]
    table = [
        [
            row["design"],
            row["workload"],
            str(row["cores"]),
            row["footprint"],
            f"{row['mem_ops_per_s'] / 1e6:.1f} M",
            f"{row['slowdown_vs_plain']:.1f}x" if row["slowdown_vs_plain"] else BLANK,
            f"{row['time_vs_native']:.2f}x" if row["time_vs_native"] else BLANK,
            f"{row['peak_rss_mb']:,.0f} MB",
        ]
        for row in answer["rows"]
    ]
    told = ["interrupted: what had been measured by then"] if answer["cancelled"] else []
    return "\n".join([*told, columns(headers, table, width, right=(2, 3, 4, 5, 6, 7))])
