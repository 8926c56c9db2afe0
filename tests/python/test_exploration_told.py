"""What is told of the seeds of an exploration, without a program that runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from conftest import needs_core
from indelible import pool
from indelible.experiment import Campaign, Experiment
from indelible.results.exploration import Exploration
from indelible.verbs import explore

pytestmark = needs_core


def told(*accepts_all: bool | None) -> str:
    """Return what is shown of seeds of whose checkers so much is known."""
    ok = {"threads": 2, "checked": True, "order": "a", "points": 9, "images": 3}
    rows = [
        {"seed": seed, "record": "record", **explore.NOTHING, **ok, "accepts_all": accepts}
        for seed, accepts in enumerate(accepts_all, 1)
    ]
    asked = {"program": ["./program"], "design": "undo@x86", "machine": "tiny", "check": "./check"}
    answer = {**asked, "orders": 1, "rows": rows, "cancelled": False, "would_show": None}
    answer["notes"] = []
    return " ".join(str(Exploration(answer)).split())


def answered(monkeypatch: pytest.MonkeyPatch, rows: list[dict[str, object] | None]) -> Exploration:
    """Return what is made of rows after an interruption."""

    def execute(jobs: object, what: str) -> None:
        raise pool.Interrupted(rows)

    monkeypatch.setattr(explore.workers, "execute", execute)
    campaign = Campaign(Experiment("undo@x86", "replay", "tiny"))
    turns = explore.Turns(1)
    options = {"pool": None, "loads": True, "unseen": False, "most": explore.BYTES_MAX}
    plan = explore.Plan(("./program",), None, options, 1.0, campaign, Path(), turns)
    with pytest.raises(pool.Interrupted) as interrupt:
        explore._answer(plan, [explore.Order(plan, 1)])
    return interrupt.value.partial


def row_of(seed: int, **words: object) -> dict[str, object]:
    return {"seed": seed, **explore.NOTHING, "checked": True, "threads": 2, **words}


def test_what_was_found_before_an_interruption_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [row_of(1, order="a"), row_of(2, order="b", wrong="lost", cancelled=True)]
    rows += [row_of(3, order="c", cancelled=True), {"cancelled": True}, None]
    answer = answered(monkeypatch, rows)
    assert [(row["seed"], row["wrong"]) for row in answer["rows"]] == [(1, None), (2, "lost")]
    assert (answer.interrupted, answer["orders"], "cancelled" in answer["rows"][1]) == (
        *(True, 2),
        False,
    )


def test_of_one_order_nothing_is_said_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    same = answered(monkeypatch, [row_of(seed, order="a") for seed in range(1, 21)])
    assert (same["orders"], same["would_show"]) == (1, None)
    assert "would have shown" not in str(same)
    assert "orders      1 different ones of 20, of 2 threads\n" in str(same)
    one = answered(monkeypatch, [row_of(seed, order="a", threads=1) for seed in (1, 2)])
    assert "orders      1: one thread uses persistent memory; seeds choose" in str(one)
    differ = answered(monkeypatch, [row_of(seed, order=str(seed)) for seed in range(1, 21)])
    assert differ["would_show"] == pytest.approx(0.139, abs=0.001)
    # One thread may do something else each time, by the clock or by others that it waits for.
    alone = answered(monkeypatch, [row_of(seed, order=str(seed), threads=1) for seed in (1, 2)])
    assert "orders      2 different ones of 2, of 1 thread\n" in str(alone)


@pytest.mark.parametrize(
    ("check", "announced_few", "why"),
    [
        (None, False, "no transaction stored to persistent memory, and"),
        ("./check", False, "after `measured` the trace stores nothing"),
        (None, True, "fewer than half of a core's"),
    ],
)
def test_why_nothing_was_checked_is_told_as_crash_tells_it(
    monkeypatch: pytest.MonkeyPatch, check: str | None, announced_few: bool, why: str
) -> None:
    few = {"checked": False, "announced_few": announced_few, "announced": 1}
    answer = answered(monkeypatch, [row_of(1, order="a"), row_of(2, order="b", **few)])
    answer["check"] = check
    shown = " ".join(str(answer).split())
    assert why in shown, shown
    assert not answer.passed


def test_whether_a_checker_looks_is_asked_only_if_it_refused_nothing_with_any_seed() -> None:
    question = "the checker even accepts garbage: does it look at the file"
    assert question in told(True, True)
    assert question in told(None, True), "with the first seed the program did not end"
    assert question not in told(True, False)
    assert question not in told(None)


def test_what_was_refused_is_told_with_its_seeds(monkeypatch: pytest.MonkeyPatch) -> None:
    refused = {"checked": False, "refused": "the disk is full"}
    rows = [row_of(1, order="a"), row_of(2, **refused), row_of(3, order="b"), row_of(4, **refused)]
    answer = answered(monkeypatch, rows)
    shown = str(answer)
    assert "ok with 2 of 4 seeds; nothing was checked with the others" in shown
    assert "refused     with seeds 2, 4: the disk is full" in shown
    assert not answer.passed
