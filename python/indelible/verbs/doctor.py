"""The verb `doctor`: whether this installation works, and which optional parts are missing.

Its checks are few and quick, and each can fail. They do not show that the simulator is right, which
is the task of the repository's tests.
"""

from __future__ import annotations

import importlib.metadata
import os
import platform
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from indelible import pool
from indelible.commands import line
from indelible.errors import InputError
from indelible.experiment import Campaign, Experiment
from indelible.results.crash import failed_points
from indelible.results.health import Health
from indelible.results.origin import origin
from indelible.verbs import cc
from indelible.work import Job

#: A little memory, since a host may let a process have few addresses.
LITTLE = (("pm.device_size", "256MiB"), ("dram.device_size", "64MiB"))

#: The run that is made twice.
TRIED = Experiment(
    "silo", "hash", "silo", cores=4, txs=500, settings=(("workload.shared", "shared"), *LITTLE)
)

#: The campaign, and a rule of the design without which it has to find a violation.
CUT = Experiment("silo", "scribble", "tiny", cores=2, txs=60)
RULE = "undo_newest_first"

#: The run whose speed is measured: one core on lines that the last level holds.
FAST = Experiment(
    *("native", "array", "silo"),
    cores=1,
    txs=100_000,
    settings=(("workload.items", "65536"), ("workload.element", "64"), *LITTLE),
)

#: The key of a run's numbers about the host.
HOST = "host"

#: The libraries of the extras, what each is for, and the extra that has it.
EXTRAS = (
    ("matplotlib", "figures (--plot)", "plot"),
    ("textalloc", "names in the figure of `compare --summary`", "plot"),
    ("jinja2", "reports (--report)", "report"),
    ("distributed", "runs on a cluster (--dask)", "dask"),
)

#: The advice where no fault of the user's can be the cause.
PLEASE = "please report this, with what `indelible doctor --json` prints"

#: What to do next.
NEXT = (
    "indelible compare --designs native,undo@x86,silo --workloads hash,btree",
    "indelible crash --design undo@x86 --workload queue --without order_log_before_store",
)


@dataclass(frozen=True)
class Check:
    """One check, and its result."""

    what: str
    #: Whether the check passed; None where an optional part is missing.
    ok: bool | None
    said: str
    #: The advice to the user.
    fix: str | None = None


def doctor() -> Health:
    """Check in a few seconds whether this installation works, and how fast it is."""
    jobs: list[Job] = [TRIED, TRIED, Campaign(CUT, lives=1)]
    jobs.append(Campaign(CUT, lives=1, nested=False, without=RULE))
    try:
        one, again, whole, broken = pool.execute(jobs, what="checks")
        # Alone, since other jobs would slow it down.
        (fast,) = pool.execute([FAST], what="checks")
    except pool.Interrupted:
        raise pool.Interrupted(None) from None
    checks = [
        _repeated(one, again),
        _recovered(whole),
        _noticed(broken),
        *_extras(),
        _programs(),
    ]
    return Health(
        {
            **origin(line("doctor")),
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


def _recovered(campaign: Mapping[str, Any]) -> Check:
    cuts = campaign["points"] + campaign["nested_points"]
    broken = failed_points(campaign)
    ok = cuts > 0 and not broken
    said = f"{CUT.design} recovered from {cuts - broken:,} of {cuts:,} power failures"
    return Check("recovery", ok, said, None if ok else PLEASE)


def _noticed(campaign: Mapping[str, Any]) -> Check:
    ok = bool(campaign["violations"])
    said = f"a run with rule {RULE} switched off {'was' if ok else 'was not'} caught"
    return Check("oracle", ok, said, None if ok else PLEASE)


def _extras() -> Iterator[Check]:
    from indelible import plots

    for library, what, extra in EXTRAS:
        fix = f"python -m pip install 'indelible[{extra}]'"
        try:
            plots.library() if library == "matplotlib" else importlib.import_module(library)
            version = importlib.metadata.version(library)
        # A file of its settings that is malformed is of another kind.
        except Exception as error:
            missing = isinstance(error, ModuleNotFoundError) and error.name == library
            why = "not installed" if missing else f"does not work ({' '.join(str(error).split())})"
            yield Check(library, None if missing else False, f"{why}: no {what}", fix)
        else:
            yield Check(library, True, f"{version}: {what}")


def _programs() -> Check:
    """Return whether programs can be recorded here, which takes a compiler and this system."""
    what = "programs of yours (cc, record, explore)"
    try:
        cc.require_host()
    except InputError as error:
        return Check("cc", None, f"no {what}: {error}")
    path = shutil.which("cc")
    if path is None:
        return Check("cc", None, f"not installed: no {what}", "install gcc or clang")
    if (wrong := _compiles_not(path)) is not None:
        return Check("cc", False, f"{path} {wrong}: no {what}", "fix the compiler")
    try:
        cc.require_cache()
    except InputError as error:
        return Check("cc", False, f"{error}: no {what}")
    return Check("cc", True, f"{path}: {what}")


def _compiles_not(compiler: str) -> str | None:
    """Return what happens instead, if a compiler does not compile an empty program."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "empty.c"
        source.write_text("int main(void) { return 0; }\n")
        words = [compiler, "-o", str(source.with_suffix("")), str(source)]
        try:
            made = subprocess.run(words, capture_output=True, text=True, errors="replace")
        except OSError as error:
            return f"cannot be run ({(error.strerror or str(error)).lower()})"
    if made.returncode == 0:
        return None
    said = (made.stderr.strip().splitlines() or ["it printed nothing"])[-1]
    return f"compiles nothing ({said})"


def _memory() -> int | None:
    """Return the bytes of this computer's memory, or None if the system does not say."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None
