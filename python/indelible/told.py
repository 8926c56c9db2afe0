"""What a call that makes several runs says of one of them: its name, and its own settings."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from indelible.errors import InputError
from indelible.experiment import Experiment
from indelible.scripts import called
from indelible.work import Control, Simulated

#: A parameter of the design or the workload, as an error of one run advises to set it.
OWN = re.compile(r"\b(design|workload)\.(?=\w+=)")


def names(
    experiments: Sequence[Experiment], more: Callable[[Experiment], Sequence[str]]
) -> dict[Experiment, str]:
    """Return the names of several runs, each with what more there is to tell; none of one."""
    if len(experiments) == 1:
        return {}
    seeds = {asked.seed for asked in experiments}

    def name(asked: Experiment) -> str:
        words = [f"{called(asked.design)} on {asked.workload}", *more(asked)]
        # In a sweep the seed may be one of the fields that vary.
        is_told = len(seeds) == 1 or f"seed={asked.seed}" in words
        return ", ".join([*words, *([] if is_told else [f"seed {asked.seed}"])])

    return {asked: name(asked) for asked in experiments}


def by_its_own_name(reason: str, asked: Experiment, others: Mapping[Experiment, Any]) -> str:
    """Return a reason with the settings that it advises, for this design or workload alone."""
    own = {
        kind: name
        for kind, name in (("design", called(asked.design)), ("workload", asked.workload))
        if len({getattr(other, kind) for other in others}) > 1
    }
    return OWN.sub(lambda found: f"{own.get(found[1], found[1])}.", reason)


def require_possible(experiments: Sequence[Experiment], named: Mapping[Experiment, str]) -> None:
    """Refuse impossible experiments; an error that is not the same of all names the first."""
    errors = map(_error, experiments)
    first, error = next(((at, e) for at, e in enumerate(errors) if e is not None), (0, None))
    if error is None:
        return
    asked, text = experiments[first], str(error)
    is_said = first == 0 and all(str(other) == text for other in errors)
    if is_said or re.search(rf"\b{re.escape(called(asked.design))}\b", text):
        raise error
    raise _of_run(error, asked, named) from None


def refused(
    experiments: Sequence[Experiment],
    reasons: Mapping[Experiment, str],
    named: Mapping[Experiment, str],
) -> dict[Experiment, str]:
    """Return why some of several runs are impossible, or refuse the first if none was possible."""
    found = {
        asked: by_its_own_name(reasons[asked], asked, named)
        for asked in experiments
        if asked in reasons
    }
    if found and len(found) == len(experiments):
        asked, reason = next(iter(found.items()))
        own = f"{named[asked]}: {of_design(reason, asked)}" if asked in named else reason
        raise InputError(own)
    return {asked: of_design(reason, asked) for asked, reason in found.items()}


def of_design(reason: str, asked: Experiment) -> str:
    """Return a reason without the design's file, where the name that tables have is told, too."""
    return reason.removeprefix(f"{asked.design}: ")


def _error(asked: Experiment) -> InputError | None:
    try:
        asked.check()
    except InputError as error:
        return error
    return None


def _of_run(error: InputError, asked: Experiment, named: Mapping[Experiment, str]) -> InputError:
    if asked not in named:
        return error
    return type(error)(f"{named[asked]}: {by_its_own_name(str(error), asked, named)}")


@dataclass(frozen=True)
class OneOf:
    """A run among several, whose errors name it."""

    job: Simulated
    named: Mapping[Experiment, str]

    @property
    def experiment(self) -> Experiment:
        """The experiment that it is about."""
        return self.job.experiment

    def start(self, control: Control) -> dict[str, Any]:
        """Do the job; an error of it says which one it was."""
        try:
            return self.job.start(control)
        except InputError as error:
            raise _of_run(error, self.experiment, self.named) from None

    def command(self) -> str:
        """Return the command line that repeats the work."""
        return self.job.command()
