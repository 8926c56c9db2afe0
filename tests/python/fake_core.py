"""A stand-in for the compiled extension: canned answers, the same for the same question."""

from __future__ import annotations

import json
import time
from typing import Any

import fake_litmus
import fake_machine
import fake_native
import fake_usage

try:
    from indelible._core import CheckError, HostError, InputError, InternalError, PowerLoss
except ImportError:

    class InputError(ValueError):
        pass

    class HostError(InputError):
        pass

    class CheckError(InputError):
        pass

    class PowerLoss(Exception):  # noqa: N818
        pass

    class InternalError(RuntimeError):
        pass


#: What hooks of designs in Python are given.
Tx = Load = Store = Fence = Fill = Transfer = Evict = Below = Arrived = Image = Gasp = object

DESIGNS = {
    "native": ("none", 1.0),
    "undo@ideal": ("none", 0.9),
    "undo@x86": ("synchronous", 0.4),
    "redo@x86": ("synchronous", 0.45),
    "hops": ("asynchronous", 0.7),
    "silo": ("synchronous", 0.95),
    "leaky": ("synchronous", 0.99),
}
WORKLOADS = {"hash": 12.3e6, "btree": 8.1e6, "ycsb": 3.25e6, "sqlite": 61.7e3}
#: How far apart the designs are that a seed does well and those that it does not.
LUCK = {"hash": 0.001, "btree": 0.002, "sqlite": 0.03}
#: Of `native logging` only: it is no workload of the lists.
LOGCACHE = 4.1e6
PROFILES = {
    "btree-rand": ("btree", "order=100 value=8", (10, 6, 21)),
    "hash": ("hash", "", (3, 3, 4)),
    "logcache-cached": ("logcache", "variant=cached", None),
    "logcache-movdir64b": ("logcache", "variant=movdir64b", None),
}
MACHINES = ("silo", "tiny", "ssp")
EPOCHS = {
    "epochs_per_tx": 11.25,
    "singleton_share": 0.75,
    "self_dependent_share": 0.8,
    "cross_dependent_share": 0.0,
    "pm_store_share": 0.9725,
}

#: What the tests look at: every spec that was run, in the order of the starts.
asked: list[tuple[str, dict[str, Any]]] = []

#: And what batteries were asked for, which runs nothing.
batteries: list[dict[str, Any]] = []


class Control:
    def __init__(self, threads: int | None = None) -> None:
        self.threads = threads
        self.cancelled = False
        self.done = 0
        self.total = 0

    def cancel(self) -> None:
        self.cancelled = True


def version() -> str:
    return "0.0.0"


def list(kind: str) -> str:
    rows: Any
    if kind == "designs":
        rows = [
            {
                "name": name,
                "family": "family",
                "paper": "A Paper, HPCA 2023",
                "durability": durability,
                "granularity": "word",
                "needs": "nothing",
                "summary": f"What {name} is, in a sentence that does not end before it has to.",
            }
            for name, (durability, _) in DESIGNS.items()
        ]
    elif kind == "orders":
        rows = fake_litmus.ORDERS
    elif kind == "workloads":
        rows = [
            {"name": name, "summary": f"About {name}.", "source": "ours", "shared": False}
            for name in WORKLOADS
        ]
    elif kind == "profiles":
        names = ("lines", "pages", "pages_max")
        rows = [
            {
                "name": name,
                "workload": workload,
                "settings": settings,
                "source": "A Paper",
                "published": published and dict(zip(names, published, strict=True)),
            }
            for name, (workload, settings, published) in PROFILES.items()
        ]
    else:
        rows = [
            {
                "name": name,
                "summary": f"About {name}.",
                "core": "window",
                "cores_max": 8,
                "domain": "adr",
                "wpq": 64,
            }
            for name in MACHINES
        ]
    return json.dumps({"rows": rows})


def explain(
    name: str,
    settings: object,
    against: str | None = None,
    on: tuple[str, int | None] | None = None,
) -> str:
    kind, _, name = name.rpartition(":")
    if kind in ("", "design") and name in DESIGNS:
        return json.dumps(
            {
                "kind": "design",
                "name": name,
                "summary": "Logs in a battery-backed buffer.",
                "paper": "A Paper, HPCA 2023",
                "file": "crates/designs/src/silo.rs",
                "params": [
                    {
                        "name": "entries",
                        "default": 20,
                        "value": 20,
                        "range": "1 to 4096",
                        "doc": " Logs that a buffer holds.",
                        "choices": [],
                    }
                ],
                "rules": [{"name": "log_first", "doc": " The log before the data."}],
                "hardware": [
                    {
                        "name": "log buffer",
                        "bits": 12480,
                        "count": 8,
                        "bytes_per_core": 1560.0,
                        "domain": "battery",
                        "where": "core",
                    }
                ],
                "machine": on[0] if on else "silo",
                "cores": 8,
            }
        )
    if (kind, name) == ("order", "hops"):
        rules = [
            {"name": "fence_waits", "doc": "A fence waits.", "needless": []},
            {
                "name": "line_in_order",
                "doc": "No entry overtakes another one of its line.",
                "needless": [
                    {"design": design, "reason": "the log lets any store be first"}
                    for design in ("hops", "undo@hops")
                ],
            },
            {
                "name": "keep_versions",
                "doc": "A line has an entry for each epoch.",
                "needless": [{"design": "hops", "reason": "there is one version"}],
            },
        ]
        size = {
            "name": "entries",
            "default": 32,
            "value": 32,
            "range": "1 to 1024",
            "doc": "Sizes.",
        }
        return json.dumps(
            {
                "name": "hops",
                "kind": "order",
                "paper": "A Paper, ASPLOS 2017",
                "summary": "Persist buffers.",
                "file": "crates/designs/src/hops.rs",
                "model": "epoch",
                "promise": "what comes before a fence is durable before what comes after it",
                "pairings": ["hops", "undo@hops"],
                "params": [size],
                "rules": rules,
                "hardware": [],
                "machine": "silo",
                "cores": 8,
            }
        )
    if kind == "" and name == "logcache":
        params = [
            ("variant", "cached+clwb", ["cached", "cached+clwb", "movnti4", "movdir64b"]),
            ("entries_per_fence", "1", ["1", "8"]),
            ("fence", "sfence", ["sfence", "none"]),
            ("logging", "redo", ["redo", "undo"]),
            ("log", "linear", ["linear", "circular"]),
            ("array_writes", "cached", ["cached", "flushed"]),
            ("work", 6, []),
        ]
        named = [
            {"name": n, "value": d, "default": d, "choices": c, "doc": ""} for n, d, c in params
        ]
        return json.dumps({"kind": "workload", "name": name, "summary": "A log.", "params": named})
    if kind in ("", "workload") and name in WORKLOADS:
        return json.dumps({"kind": "workload", "name": name, "params": []})
    if kind in ("", "machine") and name in MACHINES:
        return json.dumps(fake_machine.explained(name, settings, against))
    raise InputError(f"unknown {kind or 'name'} `{name}`; there are: silo, native")


def battery(designs: list[str], machine: str, cores: int | None, settings: list) -> str:
    batteries.append({"designs": designs, "cores": cores, "settings": settings})
    for name in designs:
        if name not in DESIGNS:
            raise InputError(f"unknown design `{name}`; there are: {', '.join(DESIGNS)}")
    names = ("flush_kb", "energy_uj", "supercap_mm3", "supercap_mm2", "li_mm3", "li_mm2")

    def row(design: str, source: str, *cells: float) -> dict[str, Any]:
        return {"design": design, "source": source, **dict(zip(names, cells, strict=True))}

    rows = [
        row("silo", "computed", 5.3125, 61.08032, 0.169668, 0.30647, 0.00169668, 0.01422),
        row("silo", "HPCA'23 Silo", 5.3125, 62, 0.17, 0.31, 0.0017, 0.014),
        row("hops", "computed", 10496.0, 54376.87, 151.0469, 28.3632, 1.510469, 1.31649),
    ]
    rows = [row for row in rows if not designs or row["design"] in designs]
    kept = {row["design"] for row in rows}
    without = [name for name in designs or DESIGNS if name not in kept]
    most = cores or int(dict(settings).get("core.cores_max", 8))
    title = {"machine": machine, "cores": most, "dirty_percent": 45}
    saved = [
        {"design": name, "bytes": round(1024 * kept["flush_kb"]), "energy_uj": kept["energy_uj"]}
        for name in designs or DESIGNS
        for kept in [next((row for row in rows if row["design"] == name), dict.fromkeys(names, 0))]
    ]
    return json.dumps({**title, "rows": rows, "without": without, "saved": saved})


def _check(spec: dict[str, Any]) -> None:
    workloads = {**WORKLOADS, **PROFILES, "logcache": LOGCACHE}
    designs = {**DESIGNS, "undo@eadr": ("synchronous", 0.8)}
    for kind, known in (("design", designs), ("workload", workloads), ("machine", MACHINES)):
        if spec[kind] not in known:
            raise InputError(f"unknown {kind} `{spec[kind]}`; there are: {', '.join(known)}")


#: Cycles, and the share of commits that took no longer.
DISTRIBUTION = [[90, 0.1], [110, 0.25], [120, 0.5], [180, 0.75], [300, 0.9], [812, 0.99]]
DISTRIBUTION += [[2400, 0.999], [4031, 1.0]]


def check(text: str) -> None:
    _check(json.loads(text))


def run(text: str, control: Control) -> str:
    spec = json.loads(text)
    asked.append(("run", spec))
    _check(spec)
    durability, factor = DESIGNS.get(spec["design"], ("synchronous", 0.8))
    cores = spec.get("cores", 8)
    cancelled = False
    if spec["settings"].get("fake.sleep"):
        deadline = time.monotonic() + float(spec["settings"]["fake.sleep"])
        while time.monotonic() < deadline and not control.cancelled:
            time.sleep(0.01)
        cancelled = control.cancelled
    workload = PROFILES.get(spec["workload"], (spec["workload"],))[0]
    entries = int(spec["settings"].get("design.entries", 0))
    factor += entries / 200
    speed = WORKLOADS.get(workload, LOGCACHE) * factor * cores / 8
    speed *= fake_machine.speed(spec["design"], spec["settings"])
    speed *= _luck(spec["seed"] - 1, len(spec["design"]) + entries, workload)
    txs = spec.get("txs", 10_000)
    return json.dumps(
        {
            "design": spec["design"],
            "workload": spec["workload"],
            "machine": spec["machine"],
            "cores": cores,
            "txs": txs,
            "aborted": 0,
            "seed": spec["seed"],
            "version": "0.0.0",
            "id": "b94596c34f4a9def",
            "core_model": "window",
            "domain": "adr",
            "cycles": 2_000_000,
            "simulated_s": txs / speed,
            "throughput_tx_per_s": speed,
            "commit_latency_cycles": {
                "mean": 0.0 if spec["design"] == "native" else 133.5,
                "p50": 120,
                "p90": 300,
                "p99": 812,
                "p999": 2400,
                "max": 4031,
            }
            | ({"distribution": DISTRIBUTION} if spec.get("latencies") else {}),
            "durability": durability,
            "pm_writes": {
                "wpq_bytes": int(txs * 312 * (2 - factor)),
                "media_lines": int(txs * (2 - factor)),
                "media_bits": txs * 611,
                "by_class": _by_class(spec, txs),
                "bits_by_class": {"data": txs * 400, "log": txs * 211, "metadata": 0},
            },
            "pm_reads": txs * 2,
            **fake_usage.of(spec, txs),
            "stalls": {"compute": 9_000_001, "load_miss": 5_000_000, "fence": 2_000_000, "lock": 0},
            "write_set": {
                "lines_avg": 3.1,
                "lines_max": 12,
                "pages_avg": 2.0,
                "pages_max": 4,
                **{"words_avg": 9.7, "words_max": 40, "stores_avg": 11.25},
            },
            "energy_uj": 41.5,
            "energy_by_uj": {"read": 31.5, "set": 6.0, "reset": 4.0},
            "design_counters": {"logs_generated": txs * 7, "logs_ignored": 0},
            "host": {
                "seconds": 1.9,
                "cpu_seconds": 1.9,
                "mem_ops": 118_000_000,
                "mem_ops_per_s": 62_000_000.0,
                "peak_rss_mb": 87.5,
            },
            "cancelled": cancelled,
            "notes": [],
        }
        | ({"epochs": EPOCHS} if spec.get("epochs") else {})
    )


def _by_class(spec: dict[str, Any], txs: int) -> dict[str, int]:
    if spec["settings"].get("fake.silent") == spec["design"]:
        return {"data": 0, "log": 0}
    return {"data": txs * 171, "log": txs * 118, "metadata": txs * 23, "consolidation": 0}


def _luck(behind: int, design: int, workload: str) -> float:
    """Return what a seed behind the first does: the same to every design, and its own to each."""
    return (1 + 0.1 * behind) * (1 + LUCK.get(workload, 0.0) * (behind * design % 5))


def crash(text: str, control: Control) -> str:
    spec = json.loads(text)
    asked.append(("crash", spec))
    _check(spec)
    points = spec.get("points", "all")
    violations = []
    if spec["design"] == "leaky" and spec["workload"] == "btree":
        violations = [
            {
                "life": 1,
                "after": [],
                "event": event,
                "order": 1 if event == 2012 else 0,
                "cycle": 219 * event,
                "nested": nested,
                "nested_order": 2 if event == 2013 else 0,
                "text": f"durability: the image holds 0x7 at {at} and should hold 0x9",
                "history": [
                    f"core 0 transaction {index} (committed, 1 store): [{at}] = {index:#x}"
                    for index in range(12)
                ],
            }
            for event, nested, at in (
                (412, None, "0x1c40"),
                (413, 3, "0x1c40"),
                (2011, None, "0x1c48"),
                (2012, None, "0x1c40"),
                (2013, 4, "0x1c48"),
            )
        ]
    lives = spec.get("lives", 2)
    if spec["design"] == "leaky" and spec["workload"] == "hash" and lives > 2:
        violations = [
            {
                "life": 3,
                "after": [
                    {"event": 1499, "order": 0, "nested": 4},
                    {"event": 30, "order": 2, "nested": None},
                ],
                "event": 3,
                "order": 0,
                "cycle": 112,
                "nested": None,
                "nested_order": 0,
                "text": "durability: the image holds 0x7 at 0x1c40 and should hold 0x9",
                "history": [],
            }
        ]
    boots = 0 if violations and lives == 2 else 8 * (lives - 1)
    answer: dict[str, Any] = {
        "design": spec["design"],
        "workload": spec["workload"],
        "machine": spec["machine"],
        "cores": spec.get("cores", 2),
        "txs": spec.get("txs", 500),
        "seed": spec["seed"],
        "durability": DESIGNS[spec["design"]][0],
        "domain": "adr",
        "crash_points": 12_000,
        "points": 12_000 if points == "all" else points,
        "checked": spec["workload"] != "replay",
        "acknowledged": 1_000,
        "announced": 1_000,
        "announced_few": False,
        "nested_points": 3_400 if spec["nested"] else 0,
        "saved_bytes_max": 994 if spec["design"] == "silo" else 0,
        "declared_bytes": 2_784 if spec["design"] == "silo" else 0,
        "energy_bytes": 2_784 if spec["design"] == "silo" else 0,
        "energy_ended": 0,
        "recovery": fake_machine.RECOVERY,
        "lives": lives,
        "boots": boots,
        "later_points": 1_500 * boots,
        "later_nested_points": 400 * boots if spec["nested"] else 0,
        "violations": violations,
        "stopped": len(violations) >= 5,
        "seconds": 5.2,
        "points_per_s": 2307.7,
        "never": None if len(violations) >= 5 else [],
        "notes": [],
        "cancelled": False,
    }
    if spec["design"] == "silo":
        answer["never"] = [*fake_machine.NEVER]
    if spec["mutants"]:
        own = {"workload": spec["workload"], "cores": 2, "txs": 20, "settings": {}, "seed": 1}
        own |= {"nested": False}
        hard = {
            "workload": "scribble",
            "cores": 4,
            "txs": 40,
            "settings": {"design.entries": "4", "llc.size": "256B"},
            "seed": 12,
            "nested": True,
        }
        answer["mutants"] = [
            _mutant("log_first", own | {"refused": "a transaction does not fit the log"}),
            _mutant("flush_bit", hard, is_intact=spec["design"] != "redo@x86"),
        ]
        answer["needless_rules"] = [
            {"rule": "truncate_late", "why": "a log that is never cut off is only longer"}
        ]
    return json.dumps(answer)


def _mutant(rule: str, caught_in: dict[str, Any], is_intact: bool = True) -> dict[str, Any]:
    row = {"rule": rule, "doc": f" About {rule}.", "caught": is_intact}
    row |= {} if is_intact else {"intact": "the intact design fails, too"}
    caught_at = {"lives": 2, "life": 1, "event": 412, "text": "atomicity: torn", "history": []}
    return row | caught_in | caught_at


def trace(text: str, control: Control) -> tuple[str, bytes]:
    request = json.loads(text)
    asked.append(("trace", request))
    row = json.loads(run(json.dumps(request["run"]), control))
    answer = {
        "run": row,
        "error": None,
        "frequency": 2_000_000_000,
        "started": 100,
        "from": 0,
        "until": 40_000,
        "event": request["event"],
        "cut": None,
        "translates": False,
        "touched": {"persistent": ["0x40", "0x7f"], "volatile": None},
        "events": [
            {"where": "core 0", "lane": "waits", "what": "load miss", "from": 4, "until": 40},
            {
                "where": "core 0",
                "lane": "program",
                "what": "store 0x40",
                "from": 50,
                "until": 50,
                "args": {"new": "0x1", "old": "0x0"},
            },
        ],
    }
    return json.dumps(answer), b"a trace"


def litmus(text: str, control: Control) -> str:
    request = json.loads(text)
    asked.append(("litmus", request))
    if any(order["name"] == "hop" for order in request["orders"]):
        raise InputError("unknown ordering hardware `hop`; did you mean `hops`?")
    return json.dumps(fake_litmus.answer(request))


def plain(text: str) -> str:
    _check(json.loads(text))
    time = {"seconds": 1.18, "cpu_seconds": 1.18}
    return json.dumps({"mem_ops": 118_000_000, "mem_ops_per_s": 1e8, **time})


def native_logging(text: str, control: Control) -> str:
    """Answer as a processor without movdir64b and without counters would."""
    request = json.loads(text)
    asked.append(("native", request))
    cells = [
        (variant, entries, fence, value)
        for variant in request.get("variants", ["cached", "cached+clwb", "movnti4"])
        if variant != "movdir64b"
        for entries in request.get("entries", [1, 8])
        for fence, value in (("sfence", "xorshift"), ("sfence", "rand"), ("none", "xorshift"))
    ]
    control.total = control.done = len(cells)
    deadline = time.monotonic() + (5.0 if request["whole"] else 0.0)
    while time.monotonic() < deadline and not control.cancelled:
        time.sleep(0.01)
    return json.dumps(
        {
            "computer": {
                "processor": "A Processor (family 6, model 143)",
                "vendor": "GenuineIntel",
                "hypervisor": "KVM",
                "processors": 2,
                "llc_bytes": 32 << 20,
                "tsc_hz": 2.0e9,
                "instructions": {"clwb": True, "movdir64b": False},
                "huge_pages": 1.0,
            },
            "rows": [fake_native.row(request, *cell) for cell in cells],
            "skipped": [
                {
                    "variant": "movdir64b",
                    "array_writes": "cached",
                    "reason": "this processor has no movdir64b",
                }
            ],
            "notes": ["counters: the system has no counters of this processor"],
            "cancelled": control.cancelled,
        }
    )


def note_asked(is_asked: bool) -> None:
    asked.append(("note_asked", is_asked))


def fail(message: str) -> None:
    raise InternalError(message)
