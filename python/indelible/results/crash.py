"""The answer of `crash`, and what the campaigns of a comparison say of a design."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from indelible.commands import as_json
from indelible.experiment import Campaign
from indelible.kept import Taken
from indelible.results import OfJson
from indelible.smallest import Done, smallest


@dataclass(frozen=True, repr=False)
class Crash(OfJson):
    """One crash campaign: `crash.points`, `crash.violations`, ... are the keys of its JSON."""

    data: Mapping[str, Any]
    campaign: Campaign
    taken: Taken | None = None
    #: Whether the smallest run is looked for if there is a violation.
    seeks_smallest: bool = False
    #: Whether it was interrupted when the campaign had ended, and the smallest run was looked for.
    was_seeking: bool = False

    @staticmethod
    def of(data: dict[str, Any], campaign: Campaign, seeks_smallest: bool = False) -> Crash:
        """Return an answer of the simulator, with the command that repeats each finding."""
        # The defaults are filled in, since another version may have others.
        said = replace(campaign.experiment, cores=data["cores"], txs=data["txs"])
        lives = data["lives"] if data["lives"] > 1 else campaign.lives
        campaign = replace(campaign, experiment=said, lives=lives)
        # Whatever a checker accepts that takes garbage for memory, nothing was looked at.
        data["checked"] = data["checked"] and not accepts_all(data)
        replay = replace(campaign, mutants=False, leave_out=None, trials=None).command()
        data["violations"] = [
            row | {"replay": replay, "timeline": seen and seen.command() + " --list"}
            for row in data["violations"]
            for seen in (campaign.recording(row),)
        ]
        if "mutants" in data:
            data["mutants"] = [
                row | {"replay": campaign.trial(row).command()} if "event" in row else row
                for row in (row | {"doc": row["doc"].strip()} for row in data["mutants"])
            ]
        if wrong := (data.get("trials") or {}).get("wrong"):
            wrong["replay"] = campaign.trial(wrong).command()
        if "left_out" in data:
            data["left_out"] = [
                row | {"replay": campaign.without_persist(row).command()}
                for row in data["left_out"]
            ]
        return Crash(data, campaign, seeks_smallest=seeks_smallest)

    @property
    def settings(self) -> dict[str, str]:
        """The settings over the defaults of machine, design and workload."""
        return dict(self.campaign.experiment.settings)

    @property
    def command(self) -> str:
        """The command line that repeats it."""
        return self.campaign.command() + (" --smallest" if self.seeks_smallest else "")

    def with_smallest(self, done: Done) -> Crash:
        """Return the answer with the smallest run found, by campaigns of `done`, that fails, too.

        `smallest` in the JSON is null if no smaller run fails.
        """
        found = smallest(self.campaign, self.data["violations"][0], done)
        if found is not None:
            own, one = Crash.of(found["answer"], found["campaign"]), found["campaign"].experiment
            found = {
                **{name: getattr(one, name) for name in ("cores", "txs", "seed")},
                "tried": found["tried"],
                "violations": own.data["violations"],
                "command": own.campaign.command(),
            }
        return replace(self, data={**self.data, "smallest": found})

    def with_search_cut_short(self) -> Crash:
        """Return the answer of a campaign that ended, without the smallest run that was sought."""
        return replace(self, data={**self.data, "cancelled": True}, was_seeking=True)

    @property
    def passed(self) -> bool:
        """Whether there was something to check, nothing was violated, and each mutant caught."""
        return self.checked and not self.failed

    @property
    def checked(self) -> bool:
        """Whether there was something to check, in the campaign and in its trials, if any."""
        trials = self.data.get("trials") or {}
        return self.data["checked"] and bool(trials.get("checked", 1) or not trials["runs"])

    @property
    def failed(self) -> bool:
        """Whether there was a violation, also in a trial, or a mutant was not caught."""
        mutants = self.data.get("mutants", [])
        trials = self.data.get("trials") or {"wrong": None, "runs": 1}
        untried = not trials["runs"] and not self.data.get("cancelled")
        wrong = self.data["violations"] or trials["wrong"] or untried
        return bool(wrong) or not all(mutant["caught"] for mutant in mutants)

    def json(self) -> dict[str, Any]:
        """Return the object that `--json` prints: the results, and what was asked."""
        return {key: as_json(value) for key, value in super().json().items()}

    def __repr__(self) -> str:
        return f"<Crash {self.campaign.command()}>"

    def __str__(self) -> str:
        from indelible.text import crash as crash_text

        return crash_text.crash(self)


def accepts_all(campaign: Mapping[str, Any]) -> bool:
    """Return whether a program checked the images, and refused none, not even garbage."""
    return bool(campaign.get("checker", {}).get("accepts_all"))


def failed_points(campaign: Mapping[str, Any]) -> int:
    """Return how many power cuts of a campaign had violations; one cut may have several."""
    return len({(row["event"], str(row["after"])) for row in campaign["violations"]})


@dataclass(frozen=True)
class Verdict:
    """The result of a design's crash campaigns.

    `kind` is `ok`, `fail`, `none` (not crash consistent by design) or `untested` (with the reason).
    """

    kind: str
    points: int = 0
    violations: int = 0
    command: str | None = None
    reason: str | None = None
    #: Whether an asynchronous design announced too few of its transactions as durable.
    announced_few: bool = False

    @property
    def safe(self) -> bool:
        """Whether a speed may be shown without a warning."""
        return self.kind in ("ok", "untested")

    @staticmethod
    def all_of(verdicts: Iterable[Verdict]) -> Verdict:
        """Return one verdict for several campaigns: the worst of theirs."""
        verdicts = list(verdicts)
        points = sum(verdict.points for verdict in verdicts)
        violations = sum(verdict.violations for verdict in verdicts)
        for kind in ("fail", "none", "untested", "ok"):
            for verdict in verdicts:
                if verdict.kind == kind:
                    return replace(verdict, points=points, violations=violations)
        return Verdict("untested", reason="no campaign was run")

    def json(self) -> dict[str, Any]:
        """Return the object that stands in the rows of `compare --json`."""
        return {
            "verdict": self.kind,
            "points": self.points,
            "violations": self.violations,
            "command": as_json(self.command),
            "reason": self.reason,
        }
