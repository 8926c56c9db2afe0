"""What is said of the rules that a campaign switches off, also of one that was interrupted."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest

import indelible
from conftest import needs_core
from indelible.experiment import Campaign, Experiment, Script
from indelible.results.crash import failed_points
from indelible.text import crash as crash_text

if TYPE_CHECKING:
    from indelible.design import Image, Setup

CRASH = ["crash", "--design", "silo", "--workload", "btree", "--mutants"]

#: A mutant as the simulator has it: what it was caught in, or nothing.
CAUGHT_IN = {
    **{"caught": True, "workload": "btree", "cores": 2, "txs": 20, "seed": 1, "settings": {}},
    **{
        "lives": 2,
        "nested": False,
        "life": 1,
        "event": 4,
        "text": "atomicity: torn",
        "history": [],
    },
}


@pytest.fixture
def cut_short(fake: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """Interrupt the search: two rules are decided, one was being tried, one was not begun."""
    whole = fake.crash
    # Each thread of the simulator takes the next rule: one may be open before one that is caught.
    found = {"one": {}, "two": {"caught": None}, "three": CAUGHT_IN, "four": {"caught": None}}
    rows = [
        {"rule": rule, "doc": f" About {rule}.", "caught": False, **row}
        for rule, row in found.items()
    ]

    def crash(spec: str, control: object) -> str:
        return json.dumps(json.loads(whole(spec, control)) | {"mutants": rows, "cancelled": True})

    monkeypatch.setattr(fake, "crash", crash)


@pytest.mark.usefixtures("cut_short")
def test_a_rule_that_was_not_tried_is_not_called_uncaught(
    command: Callable[..., tuple[int, str, str]],
) -> None:
    _, shown, _ = command(*CRASH)
    table = [line.split() for line in shown.splitlines()]
    said = {row[0]: row[1:3] for row in table if row and row[0] in ("one", "two", "three", "four")}
    assert said == {
        **{"one": ["NOT", "CAUGHT"], "two": ["not", "tried"]},
        **{"three": ["caught", "btree"], "four": ["not", "tried"]},
    }
    assert "1 of 2 completed caught (2 not completed: interrupted)" in shown
    rows = json.loads(command(*CRASH, "--json")[1])["mutants"]
    assert [row["caught"] for row in rows] == [False, None, True, None]


@pytest.mark.usefixtures("fake")
def test_what_was_not_checked_may_still_have_failed() -> None:
    campaign = indelible.crash("leaky", "btree")
    for checked in (True, False):
        campaign.data["checked"] = checked
        assert (campaign.failed, campaign.passed, "FAIL" in str(campaign)) == (True, False, True)
    fine = indelible.crash("silo", "btree")
    fine.data["checked"] = False
    assert (fine.failed, fine.passed, "nothing was checked" in str(fine)) == (False, False, True)


@pytest.mark.usefixtures("cut_short")
def test_with_rules_untried_nothing_is_passed() -> None:
    assert not indelible.crash("silo", "btree", mutants=True).passed


def test_what_a_rule_is_about_has_no_blank_before_it(fake: ModuleType) -> None:
    rows = indelible.crash("silo", "btree", mutants=True).mutants
    assert [row["doc"] for row in rows] == ["About log_first.", "About flush_bit."]
    rules = indelible.explain("silo")["rules"]
    assert [row["doc"] for row in rows + rules if row["doc"] != row["doc"].strip()] == []
    assert rules


@pytest.mark.usefixtures("cut_short")
def test_of_a_rule_that_was_not_caught_is_said_what_that_may_mean(
    command: Callable[..., tuple[int, str, str]],
) -> None:
    advice = "! NOT CAUGHT: nothing broke without the rule in any run that was tried."
    _, shown, _ = command(*CRASH)
    assert " ".join(shown.split()).count(advice) == 1
    assert "`needless`" in shown


def test_where_every_rule_is_caught_nothing_is_advised(
    command: Callable[..., tuple[int, str, str]],
    fake: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    whole = fake.crash
    rows = [{"rule": "two", "doc": " About two."} | CAUGHT_IN]
    found = {"mutants": rows}
    monkeypatch.setattr(
        fake, "crash", lambda spec, control: json.dumps(json.loads(whole(spec, control)) | found)
    )
    assert "NOT CAUGHT" not in command(*CRASH)[1]


@pytest.mark.parametrize(
    ("number", "which"),
    [
        (0, ""),
        (1, ", those since the last fence out of order"),
        (3, ", some words of the next one there"),
    ],
)
def test_what_an_interrupted_recovery_left_is_told(number: int, which: str) -> None:
    found = {
        "life": 1,
        "after": [],
        "event": 7,
        "order": 0,
        "cycle": 90,
        "nested": 2,
        "nested_order": number,
        "text": "durability: lost",
        "history": [],
    }
    line, *_ = crash_text.list_violations([found], 200, crash_text.EARLY)
    assert line == f"  at event 7 (cycle 90, write 2 of the recovery{which}): durability: lost"


def test_writes_that_came_early_are_told_below_the_violation() -> None:
    early = [{"line": "0x40", "class": "home_write_back", "bytes": 64}]
    early += [{"line": f"{64 * at:#x}", "class": "log", "bytes": 8} for at in range(2, 12)]
    found = {"life": 1, "after": [], "event": 7, "order": 1, "cycle": 90, "text": "order: lost"}
    _, line = crash_text.list_violations([found | {"early": early[:2]}], 200, crash_text.EARLY)
    assert line == "    came early: home write back 0x40, log 0x80 (8 bytes)"
    *_, line = crash_text.list_violations([found | {"early": early}], 400, crash_text.EARLY)
    assert line.endswith("log 0x200 (8 bytes), and 3 more; --json shows all")


def test_images_of_one_event_are_counted() -> None:
    found = {"life": 1, "after": [], "event": 7, "order": 1, "cycle": 90, "text": "the same bad"}
    others = [found | {"order": order} for order in (2, 3)] + [found | {"event": 8}] * 2
    lines = crash_text.list_violations([found, *others], 200, crash_text.OTHER)
    assert lines == [
        "  at event 7 (cycle 90, another image): the same bad",
        "    and 2 more images of it",
        "    the same at event 8 (cycle 90, another image) and 1 more image of it",
    ]


def test_power_cuts_are_counted_by_their_lives() -> None:
    # Several images of one cut are one; a cut at an event of that number behind others is another.
    cuts = [[], [], [{"event": 3, "order": 0}], [{"event": 4, "order": 0}]]
    found = [{"event": 7, "order": order, "after": after} for order, after in enumerate(cuts)]
    assert failed_points({"violations": found}) == 3


@pytest.mark.parametrize("workload", ["replay", "scribble"])
@pytest.mark.parametrize("own", [{}, {"rule": "log_first"}])
def test_a_trial_is_repeated_as_it_was_made(workload: str, own: dict[str, str]) -> None:
    script = Script("--replay", "a.trace", "store 0 1")
    asked = Experiment("silo", "replay", "tiny", script=script)
    campaign = Campaign(
        asked, points=9, mutants=True, without="flush_bit", check="./mine", trials=4
    )
    row = CAUGHT_IN | {"workload": workload, "settings": {"llc.size": "256B"}} | own
    words = campaign.trial(row).command().split(" --")
    # The trace and the program are of the workload alone; the rule is off in every trial.
    assert ("replay a.trace" in words, "check ./mine" in words) == (workload == "replay",) * 2
    assert f"without {own.get('rule', 'flush_bit')}" in words
    assert not {"mutants", "points 9", "trials 4"} & {*words}
    assert {"cores 2", "txs 20", "seed 1", "set llc.size=256B", "lives 2", "no-nested"} <= {*words}


def test_a_timeline_is_of_a_first_life() -> None:
    campaign = Campaign(Experiment("silo", "btree", "tiny"), without="log_first")
    found = {"life": 1, "event": 7}
    seen = campaign.recording(found)
    assert seen is not None
    assert (seen.event, seen.without, seen.experiment) == (7, "log_first", campaign.experiment)
    assert campaign.recording(found | {"life": 2}) is None
    assert campaign.recording(found | {"event": 0}) is None
    # Where a program checks, events have other numbers, and only the cycles are the same.
    checked = replace(campaign, check="./mine")
    for cycle, window in ((69, ("0ns", "70cycles")), (286, ("87cycles", "200cycles"))):
        seen = checked.recording(found | {"cycle": cycle})
        assert seen is not None
        assert (seen.event, seen.start_at, seen.length) == (None, *window)
        assert seen.without == "log_first"
    assert checked.recording(found | {"life": 2, "cycle": 69}) is None


def test_one_rule_is_looked_for(
    command: Callable[..., tuple[int, str, str]], fake: ModuleType
) -> None:
    one = "log_first"
    for words, asked in ((CRASH[:-1], False), (CRASH, True), ([*CRASH, one], one)):
        command(*words)
        assert fake.asked[-1][1]["mutants"] == asked
    one = Campaign(Experiment("silo", "btree"), mutants=one)
    assert one.command().endswith("--mutants log_first")


def of_two_rules(mutants: str, asks: Callable[[Any], bool]) -> dict[str, Any]:
    """Return the row of a rule of a design whose recovery `asks` for the one and not the other."""
    from indelible.templates.design import Template

    class Both(Template):
        rules = Template.rules | {"read": "Recovery is called.", "never_read": "Nobody asks."}

        @classmethod
        def recover(cls, image: Image, setup: Setup) -> None:
            if asks(setup.rules):
                super().recover(image, setup)

    asked = {"cores": 2, "txs": 20, "lives": 1, "nested": False}
    crash = indelible.crash(Both, "scribble", **asked, mutants=mutants)
    (row,) = crash.mutants
    told = f"! {mutants}: no hook asked for the rule in the 40 runs without it"
    assert (told in " ".join(str(crash).split())) == ("unasked" in row)
    return row


@needs_core
def test_a_rule_that_no_hook_asks_for_is_found_early() -> None:
    row = of_two_rules("never_read", lambda rules: rules.read)
    assert (row["caught"], row["unasked"]) == (False, 40)


@needs_core
@pytest.mark.parametrize(
    "asks", [lambda rules: rules.read, lambda rules: vars(rules)["read"]], ids=["name", "all"]
)
def test_a_rule_that_a_hook_asks_for_in_any_way_is_caught(asks: Callable[[Any], bool]) -> None:
    row = of_two_rules("read", asks)
    assert (row["caught"], row.get("unasked")) == (True, None)
