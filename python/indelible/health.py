"""The verb `doctor`: whether what is installed here answers as it should, and what is missing.

Its checks are few and quick, and each can fail: the tests of the repository are what shows that the
simulator is right.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import platform
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from indelible import compiler, experiment, pool
from indelible.experiment import Campaign, Experiment, InputError
from indelible.jobs import RunJob
from indelible.results import failed_points
from indelible.shown import Object

#: The run that is made twice, and once in exact order.
TRIED = Experiment(
    "silo", "hash", "silo", cores=4, txs=500, settings=(("workload.shared", "shared"),)
)

#: By how much the exact order of accesses may move throughput (docs/model.md: a hundredth is what a
#: test holds it to).
EXACT_WITHIN = 0.01

#: The campaign, and a rule of the design without which it has to find something.
CUT = Experiment("silo", "scribble", "tiny", cores=2, txs=60)
RULE = "undo_newest_first"

#: What speed is told of: one core on lines that the last level holds.
FAST = Experiment(
    *("native", "array", "silo"),
    cores=1,
    txs=100_000,
    settings=(("workload.items", "65536"), ("workload.element", "64")),
)

#: What of a run is of the host.
HOST = "host"

#: The libraries of the extras, what each is for, and the extra that has it.
EXTRAS = (
    ("matplotlib", "figures (--plot)", "plot"),
    ("textalloc", "names in the figure of `compare --summary`", "plot"),
    ("distributed", "runs on a cluster (--dask)", "dask"),
)

#: What helps where nothing of the user's can be wrong.
PLEASE = "please report this, with what `indelible doctor --json` prints"

#: What to do next.
NEXT = (
    "indelible compare --designs native,undo@x86,silo --workloads hash,btree",
    "indelible crash --design undo@x86 --workload queue --without order_log_before_store",
)


@dataclass(frozen=True)
class Check:
    """One question, and what came of it."""

    what: str
    #: Whether all is well; nothing where something optional is missing.
    ok: bool | None
    said: str
    #: What helps.
    fix: str | None = None


class Health(Object):
    """The object of `doctor --json`, which prints as its table."""

    @property
    def passed(self) -> bool:
        """Whether no check failed; what is optional may be missing."""
        return all(row["ok"] is not False for row in self["checks"])

    def __str__(self) -> str:
        from indelible import health_text, text

        return health_text.health(self, text.terminal_width())


def doctor() -> Health:
    """Look whether what is installed here works, and how fast it is, in a few seconds."""
    runs = [RunJob(asked) for asked in (TRIED, TRIED, replace(TRIED, exact=True), FAST)]
    campaigns = [Campaign(CUT, lives=1), Campaign(CUT, lives=1, nested=False, without=RULE)]
    one, again, exact, fast, whole, broken = pool.execute([*runs, *campaigns], what="checks")
    checks = [
        _repeated(one, again),
        _exact(one, exact),
        _recovered(whole),
        _noticed(broken),
        *_extras(),
        _programs(),
    ]
    return Health(
        {
            "version": experiment.version(),
            "python": platform.python_version(),
            "system": f"{platform.system()} {platform.machine()}",
            "processors": pool.workers_available(),
            "memory_bytes": _memory(),
            "checks": [asdict(check) for check in checks],
            "mem_ops_per_s": fast[HOST]["mem_ops_per_s"],
            "next": [*NEXT],
        }
    )


def _repeated(one: Mapping[str, Any], again: Mapping[str, Any]) -> Check:
    same = all(again.get(key) == value for key, value in one.items() if key != HOST)
    said = "a run gives the same answer twice" if same else "a run gives two answers"
    return Check("determinism", same, said, None if same else PLEASE)


def _exact(one: Mapping[str, Any], exact: Mapping[str, Any]) -> Check:
    apart = abs(exact["throughput_tx_per_s"] / one["throughput_tx_per_s"] - 1)
    ok = apart <= EXACT_WITHIN
    said = f"in exact order of accesses throughput is {100 * apart:.2g} % apart"
    return Check("quantum", ok, said, None if ok else PLEASE)


def _recovered(campaign: Mapping[str, Any]) -> Check:
    cuts = campaign["points"] + campaign["nested_points"]
    broken = failed_points(campaign)
    ok = cuts > 0 and not broken
    said = f"{CUT.design} recovered from {cuts - broken:,} of {cuts:,} power failures"
    return Check("recovery", ok, said, None if ok else PLEASE)


def _noticed(campaign: Mapping[str, Any]) -> Check:
    ok = bool(campaign["violations"])
    said = f"that its rule {RULE} is off {'was' if ok else 'was not'} noticed"
    return Check("oracle", ok, said, None if ok else PLEASE)


def _extras() -> Iterator[Check]:
    for library, what, extra in EXTRAS:
        if importlib.util.find_spec(library) is None:
            fix = f"python -m pip install 'indelible[{extra}]'"
            yield Check(library, None, f"not there: no {what}", fix)
        else:
            yield Check(library, True, f"{importlib.metadata.version(library)}: {what}")


def _programs() -> Check:
    """Return whether programs can be recorded here, which takes a compiler and this system."""
    what = "programs of yours (cc, record, explore)"
    try:
        compiler.require_host()
    except InputError as error:
        return Check("cc", None, f"no {what}: {error}")
    path = shutil.which("cc")
    if path is None:
        return Check("cc", None, f"not there: no {what}", "install gcc or clang")
    return Check("cc", True, f"{path}: {what}")


def _memory() -> int | None:
    """Return the bytes of memory of this computer, as far as it says."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None
