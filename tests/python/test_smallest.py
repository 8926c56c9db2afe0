"""The smallest run in which a crash campaign finds something."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

import indelible
from conftest import needs_core
from indelible import pool
from indelible.experiment import Campaign, Experiment
from indelible.smallest import smallest

ASKED = Campaign(Experiment("silo", "hash", "tiny", cores=2, txs=500, seed=5), mutants=True)
VIOLATION = {"life": 1, "nested": None}


def looked_for(
    breaks: Callable[[Experiment], bool], campaign: Campaign = ASKED, **violation: object
) -> tuple[dict[str, Any] | None, list[Campaign]]:
    """Return what is found where these runs break, and what was tried for it."""
    tried: list[Campaign] = []

    def done(batch: Sequence[Campaign]) -> list[dict[str, Any]]:
        tried.extend(batch)
        runs = [one.experiment for one in batch]
        return [{"txs": run.txs, "violations": ["one"] * breaks(run)} for run in runs]

    return smallest(campaign, {**VIOLATION, **violation}, done), tried


def size(campaign: Campaign) -> tuple[int, int, int]:
    one = campaign.experiment
    return one.cores * one.txs, one.cores, one.seed


def test_the_shortest_run_on_the_fewest_cores_is_found() -> None:
    for least, first in ((6, 6), (5, 6), (7, 8), (50, 64), (1, 1)):
        found, tried = looked_for(
            lambda one, least=least: one.cores * one.txs >= least and one.seed in (3, 8)
        )
        assert found is not None
        # Not every number is tried with every seed, and between two of them it is cut short.
        assert size(found["campaign"]) == (least, 1, 3)
        assert found["tried"] == len(tried)
        assert max(one.cores * one.txs for one in (c.experiment for c in tried)) == first
    # The seed that was asked for comes first.
    assert [one.experiment.seed for one in tried[:9]] == [5, 1, 2, 3, 4, 6, 7, 8, 9]
    assert not any(one.mutants for one in tried)


def test_what_is_done_as_a_whole_has_no_smallest_run() -> None:
    asked = replace(ASKED, experiment=replace(ASKED.experiment, workload="replay"))
    for txs in (2, 500):
        short = replace(asked, experiment=replace(asked.experiment, txs=txs))

        def done(batch: Sequence[Campaign], txs: int = txs) -> list[dict[str, Any]]:
            return [{"txs": txs, "violations": ["one"]} for _ in batch]

        assert smallest(short, VIOLATION, done) is None


def test_only_what_was_tried_is_taken_to_be_right() -> None:
    """Before 24 transactions of three cores come 16, which three cores cannot share."""
    asked = replace(ASKED, experiment=replace(ASKED.experiment, cores=3))
    for least in (5, 6, 7, 8):
        found, _ = looked_for(
            lambda one, least=least: one.cores == 3 and one.txs >= least and one.seed == 3, asked
        )
        assert found is not None
        assert size(found["campaign"]) == (3 * least, 3, 3)


def test_a_run_that_breaks_late_is_cut_short() -> None:
    found, tried = looked_for(lambda one: one.cores == 2 and one.seed == 5 and one.txs >= 137)
    assert found is not None
    assert size(found["campaign"]) == (2 * 137, 2, 5)
    assert found["tried"] == len(tried)
    assert looked_for(lambda one: False)[0] is None


def test_a_run_that_is_as_short_as_any_has_no_smaller_one() -> None:
    one = replace(ASKED, experiment=replace(ASKED.experiment, cores=1, txs=1))
    assert looked_for(lambda one: True, one) == (None, [])


def test_what_the_violation_does_not_need_is_left_out() -> None:
    asked = replace(ASKED, nested=True, lives=3, points=200, trials=8)
    cases = {(1, None): (False, 1), (1, 4): (True, 1), (2, None): (True, 1)}
    for (life, nested), expected in cases.items():
        _, tried = looked_for(lambda one: True, asked, life=life, nested=nested)
        assert {(one.nested, one.lives) for one in tried} == {expected}
        assert {(one.points, one.trials) for one in tried} == {(None, None)}


def test_a_first_life_is_looked_for_before_a_later_one() -> None:
    asked = replace(ASKED, lives=3)
    short = [size(one) for one in looked_for(lambda one: False, asked)[1] if one.lives == 1]
    tried: list[Campaign] = []

    def done(batch: Sequence[Campaign]) -> list[dict[str, Any]]:
        tried.extend(batch)
        return [
            {"txs": one.experiment.txs, "violations": ["one"] * (one.lives == 3)} for one in batch
        ]

    found = smallest(asked, VIOLATION | {"life": 2}, done)
    assert found is not None
    assert (found["campaign"].lives, size(found["campaign"])[0]) == (3, 1)
    first = [one for one in tried if one.lives == 1]
    # Those that a violation of a first life has tried, and not the whole run cut short.
    assert tried[: len(first)] == first
    assert [size(one) for one in first] == [one for one in short if one[0] <= 64]


def test_who_wants_no_power_cuts_in_recovery_has_none() -> None:
    asked = replace(ASKED, nested=False, lives=3)
    _, tried = looked_for(lambda one: True, asked, life=2, nested=None)
    assert not any(one.nested for one in tried)


def test_of_a_trace_the_threads_are_given() -> None:
    trace = replace(ASKED, experiment=replace(ASKED.experiment, workload="replay"))
    _, tried = looked_for(lambda one: False, trace)
    assert {(one.experiment.cores, one.experiment.seed) for one in tried} == {(2, 5)}


@needs_core
@pytest.mark.parametrize(
    ("design", "workload", "rule"),
    [
        ("silo", "scribble", "undo_newest_first"),
        ("undo@x86", "queue", "order_log_before_store"),
        ("native", "hash", None),
    ],
)
def test_what_is_found_is_wrong_again_and_smaller(
    design: str, workload: str, rule: str | None
) -> None:
    asked = {"without": rule, "smallest": True}
    answer = indelible.crash(design, workload, **asked)
    found = answer.smallest
    assert found["cores"] * found["txs"] < answer.cores * answer.txs
    again = indelible.crash(
        design,
        workload,
        cores=found["cores"],
        txs=found["txs"],
        seed=found["seed"],
        without=rule,
        nested=False,
        lives=1,
    )
    assert again.violations == found["violations"]
    assert again.campaign.command() == found["command"]
    assert indelible.crash(design, workload, **asked).smallest == found


@needs_core
def test_of_what_is_right_there_is_no_smallest() -> None:
    answer = indelible.crash("silo", "scribble", txs=5, smallest=True)
    assert answer.passed
    assert "smallest" not in answer.json()


def test_with_a_checker_there_is_none(fake: object) -> None:
    with pytest.raises(indelible.InputError, match="`smallest` does not work with `check`"):
        indelible.crash("silo", "replay", replay=__file__, check="./verify", smallest=True)


def test_of_one_event_there_is_none(fake: object) -> None:
    with pytest.raises(indelible.InputError, match="`smallest` does not work with `event`"):
        indelible.crash("silo", "hash", event=7, smallest=True)


@needs_core
def test_its_timeline_lacks_what_came_early_as_that_of_the_violation_does() -> None:
    answer = indelible.crash("undo@x86", "hash", txs=20, without="flush_log", smallest=True)
    smallest, own = (" ".join(part.split()) for part in str(answer).split("\ntimeline "))
    for part, found in ((smallest, answer.smallest), (own, answer.json())):
        assert found["violations"][0]["order"], "a write came early"
        assert "it does not show the writes that came early in that image" in part


@needs_core
def test_an_interrupted_search_leaves_the_campaign(monkeypatch: pytest.MonkeyPatch) -> None:
    execute = pool.execute

    def searched(jobs: Sequence[Any], *more: object, **words: object) -> list[dict[str, Any]]:
        if words.get("what") == "smaller runs":
            raise pool.Interrupted([])
        return execute(jobs, *more, **words)

    monkeypatch.setattr(pool, "execute", searched)
    with pytest.raises(indelible.Interrupted) as caught:
        indelible.crash("silo", "scribble", without="undo_newest_first", smallest=True)
    part = caught.value.partial
    assert part.violations
    assert part.json()["cancelled"]
    assert part.command.endswith(" --smallest")
    assert "interrupted: the smallest run with a violation was still being" in str(part)
    assert "only these points" not in str(part)
