"""Indelible: a simulator of designs for atomic durability in persistent memory.

    import indelible

    print(indelible.run("silo", "btree", cores=8))
    print(indelible.compare(["undo@x86", "silo"], ["hash", "btree"], cores=8))
    indelible.crash("silo", "scribble", mutants=True).passed

The calls are the commands of `indelible --help`, with the same words, and return the same rows.
"""

from __future__ import annotations

from indelible._core import InputError, InternalError
from indelible.pool import Interrupted
from indelible.probing import Probed, probe
from indelible.results import Comparison, Crash, Litmus, Run
from indelible.sweeps import Sweep
from indelible.timeline import Timeline, trace
from indelible.verbs import (
    battery,
    characterize,
    compare,
    crash,
    explain,
    list,
    litmus,
    reproduce,
    run,
    sweep,
)

__all__ = [
    "Comparison",
    "Crash",
    "InputError",
    "InternalError",
    "Interrupted",
    "Litmus",
    "Probed",
    "Run",
    "Sweep",
    "Timeline",
    "battery",
    "characterize",
    "compare",
    "crash",
    "explain",
    "list",
    "litmus",
    "probe",
    "reproduce",
    "run",
    "sweep",
    "trace",
]


def __getattr__(name: str) -> str:
    if name == "__version__":
        from indelible._core import version

        return version()
    raise AttributeError(f"module `indelible` has no `{name}`")
