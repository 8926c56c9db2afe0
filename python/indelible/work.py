"""What a job is: an experiment, a campaign, or anything else that can be done and repeated."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from indelible.errors import HostError, InputError
from indelible.experiment import Experiment
from indelible.mistakes import is_mistake
from indelible.progress import Watched
from indelible.scripts import is_script, parts

#: The key of the sentence in an answer that says why there is no result.
UNTESTED = "untested"

#: The key of an answer that another computer, or this one later, may answer otherwise.
PASSING = "passing"


class Control(Watched, Protocol):
    """The object that watches and stops a job from another thread."""

    def cancel(self) -> None:
        """Ask the job to stop and to return the results that it has."""


class Job(Protocol):
    """An experiment, a campaign, or anything else that starts, stops and can be repeated."""

    def start(self, control: Any) -> dict[str, Any]:  # noqa: ANN401
        """Do the work; `control` stops it from another thread."""

    def command(self) -> str:
        """Return the command line that repeats the work."""


class Simulated(Job, Protocol):
    """A job that is about an experiment."""

    @property
    def experiment(self) -> Experiment:
        """The experiment that it is about."""


class Asked(Simulated, Protocol):
    """A job whose answer follows from its request."""

    def spec(self) -> dict[str, Any]:
        """Return the request, as `lab` reads it."""

    @property
    def asks(self) -> str:
        """The kind of question: jobs of one kind with the same request have the same answer."""


@dataclass(frozen=True)
class Tried:
    """A job that may be impossible, which is no error here: its answer then says why."""

    job: Asked
    #: Whether it is an error that this computer has no room for the job, or that its design in
    #: Python is wrong.
    is_strict: bool = False

    @property
    def experiment(self) -> Experiment:
        """The experiment that it is about."""
        return self.job.experiment

    @property
    def asks(self) -> str:
        """The kind of question."""
        return self.job.asks

    def spec(self) -> dict[str, Any]:
        """Return the request."""
        return self.job.spec()

    def start(self, control: Control) -> dict[str, Any]:
        """Do the job, or return the sentence that says why it is impossible."""
        try:
            return self.job.start(control)
        except InputError as error:
            if self.is_strict and self._is_wrong(error):
                raise
            # This computer, or another one, may have room for it the next time.
            return {UNTESTED: str(error), PASSING: isinstance(error, HostError)}

    def _is_wrong(self, error: InputError) -> bool:
        design = self.experiment.design
        names = (design, parts(design)[1])
        is_own = is_script(design) and is_mistake(str(error), names)
        return is_own or isinstance(error, HostError)

    def command(self) -> str:
        """Return the command line that repeats the work."""
        return self.job.command()
