"""The answer of `record`."""

from __future__ import annotations

from indelible.results import Object
from indelible.settings import Pairs

#: The bytes of data for which the crash tests' machine has room beside its logs (half of the memory
#: of `tiny`), and its cores.
ROOM = 4 << 20
CORES = 4


def room(held: int, threads: int) -> Pairs:
    """Return the settings with which the crash tests' machine has room for a trace.

    `held` is how many bytes its regions have.
    """
    size = 2 * ROOM
    while size < 2 * held:
        size *= 2
    memory = [("pm.device_size", f"{size >> 20}MiB")] if held > ROOM else []
    return (*memory, *([("core.cores_max", str(threads))] if threads > CORES else []))


class Recorded(Object):
    """The object of `record --json`, which prints as its table."""

    def __str__(self) -> str:
        from indelible.text import recording as recording_text

        return recording_text.recorded(self)

    def room(self) -> Pairs:
        """Return the settings with which the crash tests' machine has room for the trace."""
        return room(sum(region["bytes"] for region in self["regions"]), self["threads"])
