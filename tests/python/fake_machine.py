"""What the stand-in for the compiled extension says of machines."""

from __future__ import annotations

from typing import Any

ROW = {
    "section": "controller",
    "key": "wpq",
    "value": "64",
    "source": "Silo, Table II",
    "doc": " Entries of the write-pending queue.",
    "range": "1 to 4096",
    "unit": "count",
    "choices": [],
    "aliases": ["entries"],
}

#: The counters of `silo` that stay 0 in a campaign.
NEVER = (
    *("overflow_batches", "evictions_held", "deliveries_refused", "lines_told_without_place"),
    "channel_full",
)

#: What recovery took in a campaign.
RECOVERY = {
    "lines_read_mean": 17.25,
    "lines_read_max": 41,
    "lines_written_mean": 3.5,
    "lines_written_max": 1_024,
}


def explained(name: str, settings: Any, against: str | None) -> dict[str, Any]:  # noqa: ANN401
    """Return the rows of a machine, with what is set, or those in which two differ."""
    if against is not None:
        two = {"left": "64", "left_source": "Silo, Table II", "right": "4"}
        row = {"section": "controller", "key": "wpq", "doc": ROW["doc"].strip(), **two}
        rows = [row | {"right_source": "ours", "unit": "count"}]
        both = {"left": name, "right": against, "identical": False, "parameters": 63}
        return {"kind": "machine-diff", **both, "rows": rows}
    given = dict(settings)
    wpq = ROW | {"value": given.get("controller.wpq", "64")}
    items = ROW | {"section": "workload", "key": "items", "doc": " Items.", "aliases": []}
    items |= {"value": given.get("workload.items", 400_000)}
    domain = ROW | {"key": "domain", "value": given.get("controller.domain", "adr")}
    domain |= {"unit": "choice", "choices": ["adr", "eadr"], "aliases": []}
    cores = ROW | {"section": "core", "key": "cores_max", "value": 8, "doc": " The most cores."}
    rows = [wpq, items, cores | {"aliases": ["cores"]}, *([domain] if given else [])]
    return {"kind": "machine", "name": name, "summary": "A machine.", "rows": rows}


def speed(design: str, settings: dict[str, str]) -> float:
    """Return how much faster a design is on a machine with these settings."""
    entries = int(settings.get("controller.wpq", 64))
    return (entries / 64) ** 0.5 if design.endswith("@x86") else 1.0
