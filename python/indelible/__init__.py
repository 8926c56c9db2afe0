"""Indelible: a simulator of designs for atomic durability in persistent memory.

    import indelible

    print(indelible.run("silo", "btree", cores=8))
    print(indelible.compare(["undo@x86", "silo"], ["hash", "btree"], cores=8))
    indelible.crash("silo", "scribble", mutants=True).passed

The calls are the commands of `indelible --help`, with the same words, and return the same rows.
"""

from __future__ import annotations

import importlib

# As in `typing`, whose import alone takes long enough for a Ctrl-C.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from indelible import native
    from indelible.errors import CheckError, HostError, InputError, InternalError
    from indelible.pool import Interrupted
    from indelible.results.causes import Causes
    from indelible.results.comparison import Comparison
    from indelible.results.crash import Crash
    from indelible.results.exploration import Exploration
    from indelible.results.litmus import Litmus
    from indelible.results.probe import Probed
    from indelible.results.recording import Recorded
    from indelible.results.run import Run
    from indelible.results.sweep import Sweep
    from indelible.results.timeline import Timeline
    from indelible.verbs.battery import battery
    from indelible.verbs.bench import bench
    from indelible.verbs.catalog import list as list
    from indelible.verbs.cc import cc
    from indelible.verbs.characterize import characterize
    from indelible.verbs.compare import compare
    from indelible.verbs.crash import crash
    from indelible.verbs.doctor import doctor
    from indelible.verbs.explain import explain
    from indelible.verbs.explore import explore
    from indelible.verbs.litmus import litmus
    from indelible.verbs.new import New, new
    from indelible.verbs.new_in_rust import NewInRust
    from indelible.verbs.probe import probe
    from indelible.verbs.record import record
    from indelible.verbs.reproduce import reproduce
    from indelible.verbs.run import run
    from indelible.verbs.sweep import sweep
    from indelible.verbs.trace import trace
    from indelible.verbs.why import why

    __version__: str

__all__ = [
    "Causes",
    "CheckError",
    "Comparison",
    "Crash",
    "Exploration",
    "HostError",
    "InputError",
    "InternalError",
    "Interrupted",
    "Litmus",
    "New",
    "NewInRust",
    "Probed",
    "Recorded",
    "Run",
    "Sweep",
    "Timeline",
    "battery",
    "bench",
    "cc",
    "characterize",
    "compare",
    "crash",
    "doctor",
    "explain",
    "explore",
    "litmus",
    "native",
    "new",
    "probe",
    "record",
    "reproduce",
    "run",
    "sweep",
    "trace",
    "why",
]

#: What `from indelible import *` leaves out, so that `list` is Python's own there.
_UNSTARRED = ("list",)

#: The modules of the names that are no calls, and of `list`; any other call is in `verbs`, in the
#: module of its name.
_HOMES = {
    "errors": ("CheckError", "HostError", "InputError", "InternalError"),
    "pool": ("Interrupted",),
    "results.causes": ("Causes",),
    "results.comparison": ("Comparison",),
    "results.crash": ("Crash",),
    "results.exploration": ("Exploration",),
    "results.litmus": ("Litmus",),
    "results.probe": ("Probed",),
    "results.recording": ("Recorded",),
    "results.run": ("Run",),
    "results.sweep": ("Sweep",),
    "results.timeline": ("Timeline",),
    "verbs.catalog": ("list",),
    "verbs.new": ("New",),
    "verbs.new_in_rust": ("NewInRust",),
}


if not TYPE_CHECKING:
    # Hidden from a type checker, which would take it that the module has every name.

    def __getattr__(name: str) -> object:
        """Import a name at its first use: the command has to catch a Ctrl-C during its imports."""
        if name == "__version__":
            return importlib.import_module("indelible.extension").version()
        if name not in (*__all__, *_UNSTARRED):
            raise AttributeError(f"module `indelible` has no `{name}`")
        if name == "native":
            return importlib.import_module("indelible.native")
        home = next((home for home, names in _HOMES.items() if name in names), f"verbs.{name}")
        found = globals()[name] = getattr(importlib.import_module(f"indelible.{home}"), name)
        return found


def __dir__() -> object:
    return sorted({*globals(), *__all__, *_UNSTARRED})
