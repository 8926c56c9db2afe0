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
    from indelible.compiler import cc
    from indelible.errors import CheckError, HostError, InputError, InternalError
    from indelible.exploration import Exploration, explore
    from indelible.health import doctor
    from indelible.inquiry import why
    from indelible.pool import Interrupted
    from indelible.probing import Probed, probe
    from indelible.recording import Recorded, record
    from indelible.results.causes import Causes
    from indelible.results.comparison import Comparison
    from indelible.results.crash import Crash
    from indelible.results.litmus import Litmus
    from indelible.results.run import Run
    from indelible.results.sweep import Sweep
    from indelible.starting import New, new
    from indelible.starting_in_rust import NewInRust
    from indelible.timeline import Timeline, trace
    from indelible.verbs import (
        battery,
        bench,
        compare,
        crash,
        explain,
        litmus,
        reproduce,
        run,
        sweep,
    )
    from indelible.verbs import (
        list as list,
    )
    from indelible.write_sets import characterize

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

#: The modules of the names that are not in `verbs`.
_HOMES = {
    "errors": ("CheckError", "HostError", "InputError", "InternalError"),
    "compiler": ("cc",),
    "exploration": ("Exploration", "explore"),
    "health": ("doctor",),
    "inquiry": ("why",),
    "pool": ("Interrupted",),
    "probing": ("Probed", "probe"),
    "recording": ("Recorded", "record"),
    "results.causes": ("Causes",),
    "results.comparison": ("Comparison",),
    "results.crash": ("Crash",),
    "results.litmus": ("Litmus",),
    "results.run": ("Run",),
    "results.sweep": ("Sweep",),
    "starting": ("New", "NewInRust", "new"),
    "timeline": ("Timeline", "trace"),
    "write_sets": ("characterize",),
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
        home = next((home for home, names in _HOMES.items() if name in names), "verbs")
        found = globals()[name] = getattr(importlib.import_module(f"indelible.{home}"), name)
        return found


def __dir__() -> object:
    return sorted({*globals(), *__all__, *_UNSTARRED})
