"""Answers that are kept in a folder, so that nothing is run twice.

An answer is a function of the request and of the simulator. So its file is named by a digest of
both: of every word of the request, the text of its script, each value of its machine, and the bytes
of the compiled simulator. Another simulator finds none of these files. Only `host`, and the time
that a campaign took, are those of the run that was kept. Answers of designs in Python are not kept,
because such a design may import anything.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from indelible import extension
from indelible.arguments import named
from indelible.errors import InputError
from indelible.experiment import Experiment
from indelible.files import made_beside, make_folder, naming
from indelible.scripts import is_script
from indelible.work import PASSING, UNTESTED, Asked, Control, Simulated, Tried

#: The key of a digest of the rest of a file, which may have been damaged since.
DIGEST = "kept"


@dataclass(frozen=True)
class Taken:
    """How many of a call's answers came from the folder in which they are kept."""

    count: int
    of: int
    what: str
    folder: Path

    def __str__(self) -> str:
        return f"{self.count} of {self.of} {self.what} taken from {self.folder}"


@dataclass
class KeptJob:
    """A job whose answer is read from a file, or written there."""

    job: Asked
    file: Path
    was_taken: bool = False

    @property
    def experiment(self) -> Experiment:
        """The experiment that it is about."""
        return self.job.experiment

    def start(self, control: Control) -> dict[str, Any]:
        """Return the kept answer, or do the job and keep its answer, if that is whole.

        A kept answer may say that a job is impossible, which is an error unless it is `Tried`.
        """
        kept = _read(self.file)
        if kept is not None:
            self.was_taken = True
            if UNTESTED in kept and not isinstance(self.job, Tried):
                raise InputError(kept[UNTESTED])
            return kept
        answer = self.job.start(control)
        if not answer.get("cancelled") and not answer.get(PASSING):
            _write(self.file, answer)
        return answer

    def command(self) -> str:
        """Return the command line that repeats the work."""
        return self.job.command()


def keeping(jobs: Sequence[Asked], folder: str | os.PathLike[str] | None) -> Sequence[Simulated]:
    """Return the jobs such that their answers are kept in `folder`, which is made; None: as is."""
    if folder is None:
        return jobs
    path = make_folder("--keep", named("keep", folder))
    simulator = extension.digest()
    machines: dict[str, str] = {}

    def kept(job: Asked) -> Simulated:
        if is_script(job.experiment.design):
            return job
        name = job.experiment.machine
        if name not in machines:
            about = extension.describe(f"machine:{name}")
            # The name counts, too, because answers show the name that a file gives itself.
            own = [about["name"], about["rows"]]
            machines[name] = _fingerprint(json.dumps(own).encode())
        request = [job.asks, job.spec(), machines[name], simulator]
        told = json.dumps(request, sort_keys=True)
        return KeptJob(job, path / f"{_fingerprint(told.encode())}.json")

    return [kept(job) for job in jobs]


def taken(jobs: Sequence[Simulated], what: str) -> Taken | None:
    """Return how many of these finished jobs read a kept answer; None if nothing is kept."""
    kept = [job for job in jobs if isinstance(job, KeptJob)]
    if not kept:
        return None
    return Taken(sum(job.was_taken for job in kept), len(kept), what, kept[0].file.parent)


def _fingerprint(text: bytes) -> str:
    return hashlib.sha256(text).hexdigest()[:32]


def _read(file: Path) -> dict[str, Any] | None:
    with naming(file):
        try:
            text = file.read_bytes()
        except FileNotFoundError:
            return None
    try:
        answer = json.loads(text)
    except (ValueError, RecursionError):
        answer = None
    if not isinstance(answer, dict) or answer.pop(DIGEST, None) != _digest_of(answer):
        raise InputError(f"{file}: is not a valid kept answer; delete it")
    return answer


def _digest_of(answer: Mapping[str, Any]) -> str:
    return _fingerprint(json.dumps(answer).encode())


def _write(file: Path, answer: Mapping[str, Any]) -> None:
    """Write a file whole or not at all, even while another process writes the same one.

    Everyone who may read the folder may read the file.
    """
    with naming(file), made_beside(file) as part, part.open("x", encoding="utf-8") as out:
        json.dump({**answer, DIGEST: _digest_of(answer)}, out)
