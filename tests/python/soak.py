"""Crash campaigns for as long as one likes: every crash-safe design, every workload, many seeds.

python tests/python/soak.py --points all 1 2 3
"""

from __future__ import annotations

import argparse
import sys

import indelible


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--points", default="all")
    parser.add_argument("seeds", nargs="+", type=int)
    args = parser.parse_args()
    points = args.points if args.points == "all" else int(args.points)
    designs = [row["name"] for row in indelible.list("designs") if row["durability"] != "none"]
    workloads = [row["name"] for row in indelible.list("workloads")]
    failed = 0
    for seed in args.seeds:
        for design in designs:
            for workload in workloads:
                found = indelible.crash(design, workload, cores=2, seed=seed, points=points)
                failed += not found.passed
                print(
                    found if not found.passed else f"ok {found.points:>9,}  {found!r}", flush=True
                )
    return min(failed, 1)


if __name__ == "__main__":
    sys.exit(main())
