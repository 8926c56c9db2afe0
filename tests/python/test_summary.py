"""A row for each design and all that it trades: numbers, who is dominated, the command, figures."""

from __future__ import annotations

from types import ModuleType

import indelible
from indelible.batteries import Saved


def test_a_comparison_knows_what_its_designs_must_save(fake: ModuleType) -> None:
    settings = {"silo.entries": 4, "hash.items": 50, "workload.value": 8, "controller.wpq": 8}
    answer = indelible.compare(
        *(["undo@x86", "silo", "undo@eadr"], ["hash", "btree"]),
        **{"cores": [1, 4], "set": settings, "crash": False},
    )
    # One is none of the stand-in's, which has a battery for all of its own that need one.
    silo, none = Saved(5.3125 * 1024, 61.08032), Saved(0, 0)
    each = {"undo@x86": none, "silo": silo}
    assert answer.saved == {(d, cores): saved for cores in (1, 4) for d, saved in each.items()}
    shared = ("controller.wpq", "8")
    asked = [(row["designs"], row["cores"], row["settings"]) for row in fake.batteries]
    assert asked == [
        (design, cores, settings)
        for cores in (1, 4)
        for design, settings in (
            (["undo@x86"], [shared]),
            (["silo"], [("design.entries", "4"), shared]),
            (["undo@eadr"], [shared]),
        )
    ]


def test_cores_that_were_not_asked_for_are_those_of_the_runs(fake: ModuleType) -> None:
    answer = indelible.compare(["silo"], ["hash"], crash=False)
    assert [row["cores"] for row in fake.batteries] == [8]
    assert [*answer.saved] == [("silo", None)]
