"""The answer of `run`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from indelible.experiment import Experiment
from indelible.ignored import with_note
from indelible.results import OfJson


@dataclass(frozen=True, repr=False)
class Run(OfJson):
    """One run: `run.throughput_tx_per_s`, `run.stalls`, ... are the keys of its JSON."""

    data: Mapping[str, Any]
    experiment: Experiment

    @staticmethod
    def of(data: Mapping[str, Any], asked: Experiment) -> Run:
        """Return an answer of the simulator, with the note on fences that its design ignores."""
        return Run(with_note(data, asked), asked)

    @property
    def settings(self) -> dict[str, str]:
        """The settings over the defaults of machine, design and workload."""
        return dict(self.experiment.settings)

    @property
    def command(self) -> str:
        """The command line that repeats it."""
        return self.experiment.command()

    def __repr__(self) -> str:
        return f"<Run {self.experiment.command()}>"

    def __str__(self) -> str:
        from indelible.text import run as run_text

        return run_text.run(self)
