"""What designs must save at a power failure, and the energy that this takes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from indelible import extension
from indelible.errors import InputError
from indelible.experiment import Experiment
from indelible.settings import Pairs


@dataclass(frozen=True)
class Saved:
    """What a design must save at a power failure on one machine; for most designs nothing.

    The energy counts whether a battery or ADR supplies it: neither makes a design better.
    """

    state_bytes: int = 0
    flush_energy_uj: float = 0.0


def saved(asked: Iterable[Experiment], cores: int | None) -> Saved | None:
    """Return the most that a design must save with so many cores, or None if one run is unknown.

    The maximum is over its runs on several workloads, whose machines may differ by settings.
    """
    settings = {_of_hardware(one): one for one in asked}
    found = [_saved(one, cores, pairs) for pairs, one in settings.items()]
    told = [one for one in found if one is not None]
    if len(told) < len(found):
        return None
    return Saved(max(one.state_bytes for one in told), max(one.flush_energy_uj for one in told))


def _of_hardware(asked: Experiment) -> Pairs:
    return tuple(pair for pair in asked.settings if not pair[0].startswith("workload."))


def _saved(asked: Experiment, cores: int | None, settings: Pairs) -> Saved | None:
    try:
        answer = extension.batteries([asked.design], asked.machine, cores, settings)
    except InputError:
        return None
    for row in answer["saved"]:
        return Saved(row["bytes"], row["energy_uj"])
    return None


#: What the rows of an answer depend on, and a setting of one design alone may change.
OF_A_MACHINE = ("cores", "dirty_percent")


def joined(answers: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return answers for different designs as one; what they differ in is only in its rows."""
    own: dict[str, Any] = {
        "rows": [
            {**row, **{key: answer[key] for key in OF_A_MACHINE}}
            for answer in answers
            for row in beside_published(answer["rows"])
        ]
    }
    for key in ("without", "saved"):
        own[key] = [row for answer in answers for row in answer[key]]
    for key in OF_A_MACHINE:
        values = {answer[key] for answer in answers}
        own[key] = values.pop() if len(values) == 1 else None
    return {**answers[0], **own}


def beside_published(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return a row for each design: its computed battery, and the published one beside it."""
    found: dict[str, dict[str, Any]] = {}
    for row in rows:
        own = {key: value for key, value in row.items() if key != "source"}
        if row["source"] == "computed":
            found[row["design"]] = {**own, "published": None}
        else:
            del own["design"]
            found[row["design"]]["published"] = {"source": row["source"], **own}
    return [*found.values()]
