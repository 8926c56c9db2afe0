"""Crash campaigns for as long as one likes.

Every crash-safe design on every workload with some seeds, or random campaigns for some minutes: any
design, workload and machine, with caches of one way, short queues, fast and slow cells, and up to
three lives of a machine.

    python tests/python/soak.py --points all 1 2 3
    python tests/python/soak.py --minutes 30 1
    python tests/python/soak.py --minutes 5 --designs ssp,shadow-paging 1
"""

from __future__ import annotations

import argparse
import functools
import itertools
import random
import sys
import time
from collections.abc import Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import indelible
from indelible import pool
from indelible.results.crash import Crash

#: What a random machine draws from; nothing: as `tiny` has it.
CACHES = (
    {},
    {"llc": "256B", "l2": "128B", "l1d": "128B"},
    {"llc": "1KiB", "l2": "512B", "l1d": "256B"},
)
WAYS = (None, 1, 2)
DOMAINS = (None, "media", "media", "adr", "gpf", "eadr")
QUEUES = (1, 2, 3, 4, 8, 64)
CELLS = ("1ns", "50ns", "150ns", "1us")
WORKLOADS = (
    *("scribble", "scribble", "scribble", "scribble"),
    *("hash", "btree", "rbtree", "queue", "sps", "array"),
    *("ctree", "hashmap", "memcached", "vacation"),
)

#: What the parameters of hardware logs, and of LAD, are drawn from: least, small, and large ones.
RING = {"log_lines": ("0", "5", "8", "16", "24", "40", "100")}
SCAN = {"period": ("0", "1", "1000", "100000"), "scan_width": ("0", "1", "2")}
MORLOG = RING | SCAN
MORLOG |= {"ur_entries": ("1", "2", "16"), "r_entries": ("1", "2", "32"), "age": ("0", "1", "1000")}
MORLOG |= {"variant": ("a", "b"), "slde": ("off", "on"), "commit_scan": ("0", "1", "500")}
HARDWARE_LOGS: dict[str, dict[str, tuple[str, ...]]] = {
    "silo": {
        "entries": ("1", "2", "4", "20"),
        "overflow_batch": ("0", "1", "3", "40"),
        "overflow": ("parallel", "blocking"),
        "buffer_latency": ("1", "8", "500"),
        "update_interval": ("1", "8", "900"),
        "channel": ("1", "2", "56"),
        "controller_hop": ("0", "1", "10", "300"),
        "deliveries": ("1", "2", "16"),
        "told": ("1", "2", "64"),
        "first_transaction": ("0", "65530"),
    },
    "lad": {
        "serial_bits": ("2", "3", "16"),
        "prepare_interval": ("1", "7", "500"),
        "undo_entries": ("2", "7", "8", "64", "4096"),
    },
    "base": RING | {"flush_mode": ("per_store", "at_commit"), "log_buffer": ("1", "2", "4")},
    "fwb": RING | SCAN | {"log_buffer": ("1", "2", "15")},
    "morlog": MORLOG,
    "morlog-dp": MORLOG | {"redo_delay": ("0", "1", "1000", "100000")},
    "undo-log": {"entries": ("1", "2", "64")},
    "redo-log": {
        "entries": ("1", "2", "64"),
        "record": ("line", "words"),
        "conflict": ("sent", "durable"),
        "commit": ("waits", "counts"),
    },
}

#: How groups lie in SSP's journal, and what shows that they are complete.
JOURNALS = (
    *(("pad", "commit_record"), ("rewrite", "commit_record"), ("group", "commit_record")),
    *(("pad", "count"), ("group", "count")),
)

#: Crash points of a random campaign, at the most.
POINTS = 300

#: Campaigns that are handed out at a time.
BATCH = 64


def machine(draw: random.Random) -> dict[str, str]:
    """Return the settings of a random machine."""
    found = {f"{cache}.size": size for cache, size in draw.choice(CACHES).items()}
    if (ways := draw.choice(WAYS)) is not None:
        found |= {f"{cache}.assoc": str(ways) for cache in ("llc", "l2", "l1d")}
    if (domain := draw.choice(DOMAINS)) is not None:
        found["controller.domain"] = domain
    if draw.random() < 0.4:
        found |= {"controller.count": "2", "controller.intlv_size": "64B"}
    if draw.random() < 0.3:
        found["core.model"] = "inorder"
    if draw.random() < 0.2:
        found["core.fenced_stores"] = "dispatch"
    if draw.random() < 0.2:
        found["core.clwb_retains"] = "no"
    if draw.random() < 0.2:
        found["core.stores_in_flight"] = "one"
    if draw.random() < 0.3:
        found["pm.addr_mapping"] = "RoCoRaBaCh"
    if draw.random() < 0.3:
        found["controller.arrival_jitter"] = draw.choice(("20cycles", "500cycles", "20000cycles"))
    return found | {
        "controller.write_buffer_size": str(draw.choice(QUEUES)),
        "pm.xpbuffer_entries": str(draw.choice((0, 1, 2, 64))),
        "pm.tREAD": draw.choice(CELLS),
        "pm.tWRITE": draw.choice(CELLS),
        "pm.banks_per_rank": str(draw.choice((1, 2, 16))),
    }


def scribbles(draw: random.Random, granularity: str) -> dict[str, str]:
    """Return random parameters of `scribble`; locks on words only where they are allowed."""
    found = {"workload.words": draw.choice(("16", "48", "128"))}
    if draw.random() < 0.4:
        found["workload.aborts"] = draw.choice(("10", "40"))
    if draw.random() < 0.3:
        found["workload.straddle"] = "yes"
    if granularity == "word" and draw.random() < 0.5:
        found["workload.lock_grain"] = "word"
    if draw.random() < 0.25:
        # One transaction in which others have many.
        found["workload.words"] = draw.choice(("512", "1024"))
        found["workload.long"] = draw.choice(("20000", "100000", "400000"))
        found["pm.log_size"] = draw.choice(("4KiB", "8KiB", "16KiB", "64KiB"))
    return found


def logs(draw: random.Random, design: str) -> dict[str, str]:
    """Return random parameters of LOC's logs: TxIDs of few bits, and rare truncation."""
    found = {
        "design.id_bits": draw.choice(("5", "6", "7", "16")),
        "design.truncate_perc": draw.choice(("20", "50", "100")),
    }
    if design == "loc-wal":
        found["design.sd"] = draw.choice(("2", "4", "8"))
        found["design.drain"] = draw.choice(("half", "oldest"))
    return found


def pages(draw: random.Random, design: str) -> dict[str, str]:
    """Return random parameters of a design that remaps pages: few slots, frames and TLB entries."""
    found = {
        "workload.apart": draw.choice(("512", "1024", "4096")),
        "tlb.entries": draw.choice(("1", "2", "4")),
        "tlb.assoc": "1",
        "tlb.l2_entries": "0",
        "design.write_set": draw.choice(("2", "3", "64")),
        "design.journal_lines": draw.choice(("20", "24", "64")),
        "design.checkpoint_percent": draw.choice(("1", "50", "100")),
        "design.checkpoint_writes": draw.choice(("1", "4", "64")),
    }
    if design != "ssp":
        return found | {"design.shadow_frames": draw.choice(("1", "3", "40"))}
    journal, complete = draw.choice(JOURNALS)
    return found | {
        "design.slots": draw.choice(("3", "6", "12", "40")),
        "design.journal": journal,
        "design.complete": complete,
        "design.switch_records": draw.choice(("together", "together", "alone")),
        "design.consolidations": draw.choice(("1", "8")),
        "design.direction": draw.choice(("min_copy", "page_table", "extra_page")),
        "design.allocate": draw.choice(("tlb_fill", "first_store")),
    }


def campaign(draw: random.Random, only: Collection[str] = ()) -> dict[str, Any]:
    """Return a random campaign on `tiny`: the words of `indelible.crash`, and `settings`."""
    durable = [row for row in indelible.list("designs") if row["durability"] != "none"]
    design = draw.choice([row for row in durable if not only or row["name"] in only])
    workload, settings = draw.choice(WORKLOADS), machine(draw)
    if workload == "scribble":
        settings |= scribbles(draw, design["granularity"])
        if design["name"] in ("ssp", "shadow-paging") and draw.random() < 0.8:
            settings |= pages(draw, design["name"])
        if design["name"] in ("h-wal", "ec-wal", "loc-wal") and draw.random() < 0.7:
            settings |= logs(draw, design["name"])
    for name, values in HARDWARE_LOGS.get(design["name"], {}).items():
        if draw.random() < 0.5:
            settings[f"design.{name}"] = draw.choice(values)
    return {
        "design": design["name"],
        "workload": workload,
        "cores": draw.choice((1, 2, 3, 4)),
        "txs": draw.choice((10, 30, 60, 120)),
        "points": POINTS,
        "nested": draw.random() < 0.2,
        "lives": draw.choice((1, 2, 3)),
        "settings": settings,
    }


def at_random(seed: int, only: Collection[str]) -> Crash | None:
    """Run the campaign of a seed; nothing, if its machine and its design do not go together."""
    asked = campaign(random.Random(seed), only)
    try:
        return indelible.crash(seed=seed, set=asked.pop("settings"), **asked)
    except indelible.InputError:
        return None


def random_campaigns(first: int, minutes: float, only: Collection[str]) -> Iterator[Crash]:
    """Run campaigns of one seed after another on all processors for so many minutes."""
    end = time.monotonic() + 60 * minutes
    of_seed = functools.partial(at_random, only=only)
    with ThreadPoolExecutor(pool.workers_available()) as workers:
        for start in itertools.count(first, BATCH):
            yield from filter(None, workers.map(of_seed, range(start, start + BATCH)))
            if time.monotonic() > end:
                return


def all_campaigns(seeds: list[int], points: int | str) -> Iterator[Crash]:
    """Run every crash-safe design on every workload."""
    designs = [row["name"] for row in indelible.list("designs") if row["durability"] != "none"]
    workloads = [row["name"] for row in indelible.list("workloads")]
    for seed, design, workload in itertools.product(seeds, designs, workloads):
        yield indelible.crash(design, workload, cores=2, seed=seed, points=points)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--points", default="all")
    parser.add_argument("--minutes", type=float)
    parser.add_argument("--designs", type=lambda names: names.split(","), default=())
    parser.add_argument("seeds", nargs="+", type=int)
    args = parser.parse_args()
    points = args.points if args.points == "all" else int(args.points)
    campaigns = all_campaigns(args.seeds, points)
    if args.minutes is not None:
        campaigns = random_campaigns(args.seeds[0], args.minutes, args.designs)
    done = failed = unsure = 0
    for found in campaigns:
        done += 1
        if found.data["violations"]:
            failed += 1
            print(found, flush=True)
        elif not found.passed:
            # An asynchronous design may promise little of a short run on slow cells.
            unsure += 1
        elif args.minutes is None:
            print(f"ok {found.points:>9,}  {found!r}", flush=True)
    print(f"{failed} of {done:,} campaigns failed; in {unsure:,} too little was announced to check")
    return min(failed, 1)


if __name__ == "__main__":
    sys.exit(main())
