"""The answer of `trace`: the events of a part of a run with their times."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from indelible import files
from indelible.experiment import Recording
from indelible.results import OfJson


@dataclass(frozen=True, repr=False)
class Timeline(OfJson):
    """A part of a run: `timeline.events` are rows, `timeline.trace` is for ui.perfetto.dev.

    Times are cycles since measuring began; `frequency` is the number of cycles in a second. Of a
    run that failed, `error` says why, and the events are those up to then.
    """

    data: Mapping[str, Any]
    recording: Recording
    #: The bytes of a file that Perfetto opens.
    trace: bytes

    @property
    def settings(self) -> dict[str, str]:
        """The settings over the defaults of machine, design and workload."""
        return dict(self.recording.experiment.settings)

    @property
    def command(self) -> str:
        """The command line that repeats it."""
        return self.recording.command()

    @property
    def start(self) -> int:
        """The first cycle of the part: `from` in the JSON, which is a keyword of Python."""
        return self.data["from"]

    def save(self, path: str | Path) -> None:
        """Write the trace for Perfetto."""
        with files.naming(path):
            files.write(path, self.trace)

    def __repr__(self) -> str:
        return f"<Timeline {self.recording.command()}>"

    def __str__(self) -> str:
        from indelible.text import timeline as timeline_text

        return timeline_text.shown(self)
