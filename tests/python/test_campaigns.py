"""What is said of a crash campaign, whatever it found and however it ended."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

import fake_machine
import indelible
from indelible.results.crash import Verdict
from indelible.text import crash as crash_text

pytestmark = pytest.mark.usefixtures("fake")

#: A violation as the simulator has it, and the run of a program that ends before any power cut.
FOUND: dict[str, Any] = {
    **{"life": 1, "after": [], "event": 7, "order": 0, "cycle": 90, "nested": None},
    **{"nested_order": 0, "text": "durability: lost", "history": [], "timeline": None},
}
UNENDED = FOUND | {"event": 0, "text": "the run: store to address 0x0"}


def said(**changes: object) -> str:
    """Return what is said of a campaign whose answer has these fields, in one line."""
    answer = indelible.crash("silo", "btree", points=400)
    answer = replace(answer, data={**answer.data, **changes})
    return " ".join(crash_text.crash(answer, 200).split())


@pytest.mark.parametrize(
    ("changes", "verdict"),
    [
        ({}, "ok: every one recovered"),
        ({"cancelled": True}, "ok so far: every one that was tried recovered"),
        ({"points": 0}, "none: nothing was tried"),
        ({"violations": [FOUND]}, "FAIL 1/400 at event 7"),
        ({"violations": [FOUND, FOUND | {"order": 1}]}, "FAIL 1/400 at event 7"),
        ({"violations": [FOUND], "stopped": True}, "FAIL 1/400: stopped after 1 violation at"),
        ({"violations": [FOUND | {"life": 2}]}, "FAIL in life 2 of a machine: 1 of its power cuts"),
        (
            {"violations": [UNENDED], "points": 0},
            "FAIL: the run was not completed in the run: the run: store",
        ),
        ({"checked": False}, crash_text.NOTHING_CHECKED),
        ({"checked": False, "announced_few": True}, crash_text.FEW_ANNOUNCED),
        (
            {"checked": False, "announced_few": True, "announced": 0},
            crash_text.NOTHING_ANNOUNCED,
        ),
        ({"checked": False, "checker": {"images": 1}}, crash_text.NOTHING_STORED),
        ({"checker": {"images": 0}, "cancelled": True}, "none: nothing was tried"),
        ({"checker": {"images": 0}}, "ok: every one recovered"),
    ],
)
def test_the_verdict_is_of_what_was_found_and_tried(changes: dict[str, Any], verdict: str) -> None:
    assert f" violations {verdict}" in said(**changes)


@pytest.mark.parametrize(
    ("marks", "told"),
    [
        ([], "kept in images/a, images/b"),
        ([""], "kept in images/a, images/b"),
        (["3"], "kept in images/a, images/b (with INDELIBLE_MARK=3)"),
        (
            ["", "of two", "3"],
            "kept in images/a, images/b (with INDELIBLE_MARK_1='of two' INDELIBLE_MARK_2=3)",
        ),
    ],
)
def test_a_kept_image_is_told_of_with_what_the_checker_heard(marks: list[str], told: str) -> None:
    kept = FOUND | {"files": ["images/a", "images/b"], "marks": marks}
    assert f" {told} " in said(violations=[kept])


def test_power_cuts_are_of_all_crash_points_unless_the_run_was_stopped() -> None:
    assert "power cuts 400 of 12,000 and 3,400 more during recovery" in said()
    # Behind a violation of its own life a run passes no further crash points.
    stopped = {"violations": [FOUND], "stopped": True, "crash_points": None}
    assert "power cuts 400 and 3,400 more during recovery" in said(**stopped)
    later = {"violations": [FOUND | {"life": 2}], "stopped": True}
    assert "power cuts 400 of 12,000 and" in said(**later)
    assert "power cuts 12,000 (5.20 s, 2.31 kpoints/s)" in said(points=12_000, nested_points=0)


def test_refusals_for_one_reason_are_counted() -> None:
    refused = {"images": 2_137, "refused": 1_895, "nothing_new": False, "sampled": 0}
    of_loop = {"violations": [FOUND | {"alike": 1_894}], "checker": refused}
    told = said(**of_loop)
    assert "violations FAIL: 1,895 of 2,137 images refused at event" in told
    assert "and 1,894 more images refused for the same reason" in told
    ended = of_loop | {"checker": refused | {"nothing_new": True}, "stopped": True}
    assert "refused: stopped, since the last 1,000 showed nothing new at" in said(**ended)


def test_what_never_happened_is_told_on_one_line() -> None:
    """As many counters as there is room for, of a campaign that is right and ran to its end."""
    answer = indelible.crash("silo", "btree", points=400)

    def told(width: int, **changes: object) -> list[str]:
        changed = replace(answer, data={**answer.data, **changes})
        lines = crash_text.crash(changed, width).splitlines()
        return [line for line in lines if line.startswith("never")]

    first, all_of_them = "never       overflow_batches", ", ".join(fake_machine.NEVER)
    assert told(40) == [f"{first} and 4 more (--trials reaches more)"]
    assert told(80) == [f"{first}, evictions_held and 3 more (--trials reaches more)"]
    assert told(200) == [f"never       {all_of_them} (--trials reaches more)"]
    assert told(80, never=["spills"]) == ["never       spills (--trials reaches more)"]
    trials = {"runs": 1, "points": 9, "refused": 0, "wrong": None, "checked": True}
    assert told(80, never=["spills"], trials=trials) == ["never       spills"]
    unsaid: list[dict[str, object]] = [
        *({"never": None}, {"never": []}, {"cancelled": True}, {"checked": False}, {"left": []}),
        {"checker": {"command": "./check", "images": 3, "accepts_all": False}},
        {"violations": [FOUND]},
    ]
    assert [told(80, **changes) for changes in unsaid] == [[] for _ in unsaid]


def test_what_one_power_cut_leaves_is_told_of_each_core() -> None:
    def left(there: int, acknowledged: int, underway: dict[str, Any] | None) -> str:
        core = {"core": 0, "there": there, "acknowledged": acknowledged, "announced": 5}
        told = said(left=[core | {"open": underway}])
        return " ".join(told.partition(" left core 0: ")[2].partition(" violations")[0].split())

    begun = {"stores": 3, "committing": True}
    assert left(7, 7, None) == "all 7 acknowledged transactions"
    assert left(0, 0, {"stores": 1, "committing": False}) == (
        "no acknowledged transaction; nothing of the next one, whose commit had not begun (1 store)"
    )
    assert left(1_201, 1_200, begun) == (
        "all 1,200 acknowledged transactions; also the next one, whose commit was under way"
        " (3 stores)"
    )
    assert left(6, 8, begun) == (
        "6 of 8 acknowledged transactions (5 were announced as durable); nothing of the next one,"
        " whose commit was under way (3 stores)"
    )


def test_a_trace_without_transactions_leaves_none() -> None:
    core = {"core": 0, "there": 0, "acknowledged": 0, "announced": 0, "open": None}
    assert "left core 0: no acknowledged transaction" in said(left=[core])
    assert "acknowledged transaction" not in said(left=[core], checker={"images": 1})


def test_how_often_a_checker_ran_is_told_in_place_of_what_recovery_costs() -> None:
    assert "recovery reads" in said()
    for images, told in (
        (1, "checker run on 1 image "),
        (2, "checker run on 2 different images"),
    ):
        shown = said(checker={"images": images})
        assert (told in shown, "recovery reads" in shown) == (True, False)


def test_where_a_checker_saw_only_some_images_that_is_told() -> None:
    for sampled, told in (
        (1, "; 1 power cut may leave others, too"),
        (1_200, "; 1,200 power cuts"),
    ):
        assert told in said(checker={"images": 9, "sampled": sampled})
    assert "others, too" not in said(checker={"images": 9, "sampled": 0})


def test_an_energy_that_may_end_is_told_beside_what_is_declared() -> None:
    most = "saved 994 bytes at most, of 2,784 that the design declares to survive"
    assert (most in said(), "energy" in said()) == (True, False)
    little = said(energy_bytes=1_000, energy_ended=3)
    assert (
        f"{most}; the energy covers only 1,000 bytes, and ran out at 3 of the power cuts" in little
    )
    # Of what a design need not save nothing is said.
    assert "saved" not in said(declared_bytes=0)


def test_how_many_were_announced_is_told_of_a_weaker_promise_alone() -> None:
    told = "announced 1,000 of 1,000 transactions that stored and were acknowledged"
    assert told not in said()
    assert told in said(durability="asynchronous")


def test_where_no_smaller_run_fails_that_is_told() -> None:
    nothing = "smallest no smaller run with a violation was found"
    assert nothing in said(violations=[FOUND], smallest=None)
    assert "smallest" not in said(violations=[FOUND])


def test_what_a_timeline_lacks_of_an_image_is_told() -> None:
    lacks = "it does not show the writes that came early in that image"
    seen = FOUND | {"timeline": "indelible trace --event 7 --list"}
    for first, told in ((seen, (True, False)), (seen | {"order": 1}, (True, True))):
        shown = said(violations=[first, FOUND])
        assert ("timeline indelible trace" in shown, lacks in shown) == told
    assert "timeline" not in said(violations=[FOUND | {"order": 1}])
    later = said(violations=[FOUND | {"life": 2}])
    assert "timeline none: it would list the first life of a machine, and this is a later" in later


def test_addresses_of_a_trace_are_explained_where_a_checker_of_stores_names_them() -> None:
    explained = f"lines {crash_text.LINES_OF_TRACE}"
    for told in ("has the store of line 4", "has only a part of", "does not have the store of"):
        found = FOUND | {"text": f"order: line 3 is old; memory {told}"}
        assert explained in said(violations=[found])
    assert explained not in said(violations=[FOUND])


def rule(name: str, **more: object) -> dict[str, Any]:
    """Return a mutant as the simulator has it."""
    return {"rule": name, "doc": f"About {name}.", "caught": False, **more}


def test_what_a_rule_raised_is_told_unless_it_was_caught() -> None:
    in_run = {"workload": "btree", "cores": 2, "txs": 20, "seed": 1, "life": 1, "event": 4}
    caught = rule("one", raises="KeyError: 'one'", caught=True, replay="again", **in_run)
    shown = said(mutants=[caught, rule("two", raises="KeyError: 'two'")])
    assert "1 of 2 caught" in shown
    assert ("! two: KeyError: 'two'" in shown, "KeyError: 'one'" in shown) == (True, False)
    # It says itself why it was not caught, as a design does that fails with the rule, too.
    wrong = {"intact": "it fails, too", "replay": "again", **in_run}
    for known in ({"raises": "KeyError"}, wrong, {"unasked": 40}):
        assert crash_text.MISSED not in said(mutants=[rule("two", **known)])
        assert crash_text.MISSED in said(mutants=[rule("two", **known), rule("three")])


def test_where_the_design_is_wrong_with_a_rule_the_run_is_told() -> None:
    in_run = {"workload": "scribble", "cores": 3, "txs": 20, "seed": 7, "life": 1, "event": 4}
    wrong = {"intact": "durability: a word is old", "replay": "indelible crash --seed 7", **in_run}
    shown = said(mutants=[rule("one", **wrong), rule("two", **wrong)])
    assert "one WRONG WITH IT scribble 3 20 7 1 4 " in shown
    assert "! one: with the rule, too: durability: a word is old" in shown
    assert shown.count("wrong in indelible crash --seed 7") == 1
    assert "see one" not in shown


def test_a_rule_that_no_hook_asked_for_is_told() -> None:
    told = "! one: no hook asked for the rule in the 40 runs without it"
    assert told in said(mutants=[rule("one", unasked=40)])
    assert "in the 1 run without it" in said(mutants=[rule("one", unasked=1)])


def test_runs_that_could_not_be_made_for_a_rule_are_told() -> None:
    row = rule("one", unmade=2, refusal="controller.write_buffer_size is set twice; keep one")
    shown = said(mutants=[row])
    assert "! one: 2 runs could not be made: controller.write_buffer_size is set" in shown
    assert crash_text.MISSED in shown


#: What came of trials of which each went well.
TRIED = {"runs": 3, "points": 60, "checked": 9, "refused": 0, "refusal": None, "wrong": None}


@pytest.mark.parametrize(
    ("trials", "told"),
    [
        ({}, ": ok"),
        ({"checked": 0}, ": nothing was checked"),
        ({"refused": 2, "refusal": "too small"}, " (2 refused): ok"),
        (
            {"runs": 0, "refused": 2, "refusal": "too small"},
            " (2 refused: too small): FAIL, nothing was tried",
        ),
    ],
)
def test_what_came_of_trials_is_told(trials: dict[str, Any], told: str) -> None:
    tried = TRIED | trials
    runs = f"trials {tried['runs']} runs of scribble on small machines, 60 power cuts"
    assert f"{runs}{told} repeat " in said(trials=tried)


def test_trials_are_not_made_of_what_failed_without_them() -> None:
    checker = {"images": 3, "accepts_all": False}
    for more, failed in (({}, "design"), ({"checker": checker}, "program")):
        shown = said(violations=[FOUND], trials=None, **more)
        assert f"trials none: the {failed} already failed without them" in shown


def test_what_was_wrong_in_a_trial_is_told_with_its_life() -> None:
    for life, of in ((1, ""), (2, " of life 2")):
        wrong = {"life": life, "event": 1_412, "text": "durability: lost", "replay": "again"}
        shown = said(trials=TRIED | {"wrong": wrong})
        assert "trials FAIL, the last of 3 runs of scribble on small machines, 60 power" in shown
        assert f"at event 1,412{of}: durability: lost see it again" in shown


def test_a_design_is_not_said_to_be_untested_where_it_was_tested() -> None:
    answer = indelible.compare(["silo"], ["hash", "btree"])
    assert "was not tested" not in str(answer)
    untested = Verdict("untested", command="again", reason="nothing was stored")
    verdicts = {**answer.verdicts, ("silo", "btree", None): untested}
    shown = str(replace(answer, verdicts=verdicts))
    assert "? silo was not tested on btree: nothing was stored" in shown


def test_of_rules_that_were_not_tried_none_is_counted() -> None:
    untried = [rule(name, caught=None) for name in ("one", "two")]
    shown = said(mutants=untried, cancelled=True)
    assert "none of 2 completed: interrupted" in shown
    assert crash_text.MISSED not in shown
