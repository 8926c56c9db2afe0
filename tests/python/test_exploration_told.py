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


@pytest.mark.parametrize(
    ("accepts_all", "is_blind"),
    [((True, True), True), ((None, True), True), ((True, False), False), ((None, None), False)],
)
def test_a_checker_looks_if_it_refuses_anything_with_any_seed(
    monkeypatch: pytest.MonkeyPatch, accepts_all: tuple[bool | None, ...], is_blind: bool
) -> None:
    told = [{"accepts_all": accepts, "order": str(accepts)} for accepts in accepts_all]
    answer = answered(monkeypatch, [row_of(seed, **row) for seed, row in enumerate(told, 1)])
    why = "violations the program was not checked: the checker refuses no image, not even garbage"
    shown = " ".join(str(answer).split())
    assert (why in shown, not answer.passed, "ok so far" not in shown) == (is_blind,) * 3
    assert {row["checked"] for row in answer["rows"]} == {not is_blind}
    assert (answer["would_show"] is None) == (is_blind or accepts_all[0] == accepts_all[1])
    # With the first seed the program did not end.
    rows = [row_of(1, wrong="no end", violations=[]), row_of(2, accepts_all=True)]
    shown = " ".join(str(answered(monkeypatch, rows)).split())
    assert "violations FAIL 1/2 seeds: 1" in shown
    assert "note the checker refuses no image, not even garbage; let it look at the" in shown


def test_what_was_refused_is_told_with_its_seeds(monkeypatch: pytest.MonkeyPatch) -> None:
    refused = {"checked": False, "refused": "the disk is full"}
    rows = [row_of(1, order="a"), row_of(2, **refused), row_of(3, order="b"), row_of(4, **refused)]
    answer = answered(monkeypatch, rows)
    shown = str(answer)
    assert "ok with 2 of 4 seeds; nothing was checked with the others" in shown
    assert "refused     with seeds 2, 4: the disk is full" in shown
    assert not answer.passed
