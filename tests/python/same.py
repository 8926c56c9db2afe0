"""Whether a change moves a number: random runs and campaigns of two builds, row by row.

For a change that is to be faster or shorter and nothing else. It builds a commit and the working
tree, and asks both for campaigns as `soak.py` draws them, and for runs on all machines.

    python tests/python/same.py main
    python tests/python/same.py --minutes 20 --seed 1000 HEAD~3
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import indelible
from indelible import pool
from soak import WORKLOADS, campaign

ROOT = Path(__file__).resolve().parents[2]

#: Where the commit lies and both are built; what did not change is not built again.
KEPT = ROOT / "target" / "same"

#: What differs between two runs of one build, or where one has a new parameter.
OF_NO_RESULT = ("host", "seconds", "points_per_s", "version", "id")

#: Machines, and further workloads, of runs without a power failure.
MACHINES = ("tiny", "tiny", "silo", "loc", "hops", "ssp", "optane", "cxl")
ALSO = ("ycsb", "tpcc", "sqlite", "sdg", "echo", "bplustree")

#: Requests that are handed out at a time.
BATCH = 64

#: A request: the program that answers it, and what it is asked.
Request = tuple[str, dict[str, Any]]


def request(seed: int, designs: list[str]) -> Request:
    """Return the request of a seed."""
    draw = random.Random(seed)
    encoder = {"pm.data_encoder": draw.choice(("none", "dcw", "fnw"))}
    if draw.random() < 0.5:
        asked = campaign(draw)
        asked["settings"] |= encoder
        return "cut", asked | {"machine": "tiny", "seed": seed}
    return "one", {
        "design": draw.choice(designs),
        "workload": draw.choice(WORKLOADS + ALSO),
        "machine": draw.choice(MACHINES),
        "cores": draw.choice((1, 2, 3, 4)),
        "txs": draw.choice((10, 30, 60)),
        "seed": seed,
        "settings": encoder,
    }


def answer(builds: Path, which: Request) -> object:
    """Return what a build answers: a row, or the text with which it refuses."""
    program, asked = which
    done = subprocess.run(
        [builds / program, json.dumps(asked)], capture_output=True, text=True, check=False
    )
    try:
        return json.loads(done.stdout)
    except json.JSONDecodeError:
        return done.stdout + done.stderr


def differences(before: object, after: object, path: str = "") -> Iterator[str]:
    """Say where two answers differ, but for what differs between two runs of one build."""
    if isinstance(before, dict) and isinstance(after, dict):
        for key in sorted(before.keys() | after.keys()):
            if key not in OF_NO_RESULT:
                yield from differences(before.get(key), after.get(key), f"{path}.{key}")
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for index, (one, other) in enumerate(zip(before, after, strict=True)):
            yield from differences(one, other, f"{path}[{index}]")
    elif before != after:
        yield f"{path.removeprefix('.') or 'answer'}: {before!r} was, {after!r} is"


def build(tree: Path, name: str) -> Path:
    """Build the two programs of a tree; return where they are."""
    target = KEPT / f"build-{name}"
    command = ["cargo", "build", "--release", "--locked", "-p", "indelible-lab"]
    command += ["--example", "one", "--example", "cut"]
    subprocess.run(command, cwd=tree, check=True, env=os.environ | {"CARGO_TARGET_DIR": target})
    return target / "release" / "examples"


def resolve(name: str) -> str | None:
    """Return the commit that a name stands for here, if there is one."""
    command = ["git", "rev-parse", "--verify", "--quiet", f"{name}^{{commit}}"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip() or None


def checkout(commit: str) -> Path:
    """Put a commit where the last one was, and return the place."""
    tree = KEPT / "before"
    if tree.exists():
        command = ["git", "-C", tree, "checkout", "--quiet", "--detach", commit]
    else:
        subprocess.run(["git", "worktree", "prune"], cwd=ROOT, check=True)
        command = ["git", "worktree", "add", "--quiet", "--detach", tree, commit]
    subprocess.run(command, cwd=ROOT, check=True)
    return tree


def compare(before: Path, after: Path, seed: int, minutes: float) -> int:
    """Ask both builds for so many minutes; return 1 if an answer differs, or most are refusals."""
    designs = [row["name"] for row in indelible.list("designs")]
    asked = refused = differ = 0
    end = time.monotonic() + 60 * minutes

    def ask(seed: int) -> tuple[Request, object, list[str]]:
        which = request(seed, designs)
        one, other = answer(before, which), answer(after, which)
        return which, one, list(differences(one, other))

    with ThreadPoolExecutor(pool.workers_available()) as workers:
        for start in itertools.count(seed, BATCH):
            for (program, what), found, unlike in workers.map(ask, range(start, start + BATCH)):
                asked += 1
                refused += isinstance(found, str)
                differ += bool(unlike)
                if unlike:
                    shown = "\n    ".join(unlike[:5])
                    print(f"{program} '{json.dumps(what)}'\n    {shown}", flush=True)
            if time.monotonic() > end:
                break
    print(f"{differ} of {asked:,} answers differ; {refused:,} requests were refused by the commit")
    # Two builds that refuse everything in the same words show nothing.
    return int(differ > 0 or 2 * refused > asked)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=5)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("commit")
    args = parser.parse_args()
    if (commit := resolve(args.commit)) is None:
        parser.error(f"no commit `{args.commit}`: `git log` and `git branch` name those there are")
    try:
        before, after = build(checkout(commit), "before"), build(ROOT, "after")
    except subprocess.CalledProcessError as error:
        return int(error.returncode)
    return compare(before, after, args.seed, args.minutes)


if __name__ == "__main__":
    sys.exit(main())
