"""What is said of the flushes and fences of a trace that are left out for a checker to notice, and
of a campaign with one that was interrupted.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

import indelible

CRASH = ["crash", "--design", "undo@x86", "--workload", "hash", "--check", "./mine"]
ASKED = [*CRASH, "--leave-out", "all"]


def row(place: int, noticed: bool | None, source: str | None = None) -> dict[str, Any]:
    """Return a row of the simulator's answer."""
    seen = {"event": 7, "text": "the checker ended with exit code 1"} if noticed else {}
    place_of = {"operation": "flush", "unit": "line", "place": place, "source": source}
    return place_of | {"times": 2} | {"noticed": noticed} | seen


@pytest.fixture
def answers(fake: ModuleType, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Return what has the simulator give an answer with these rows."""
    whole = fake.crash

    def give(*rows: dict[str, Any]) -> None:
        def crash(spec: str, control: object) -> str:
            assert json.loads(spec)["leave_out"] in ("all", 2)
            return json.dumps(json.loads(whole(spec, control)) | {"left_out": rows})

        monkeypatch.setattr(fake, "crash", crash)

    return give


def test_what_is_not_noticed_comes_first(
    command: Callable[..., tuple[int, str, str]], answers: Callable[..., None]
) -> None:
    answers(row(5, True, "log.c:43"), row(6, False), row(9, None))
    code, shown, _ = command(*ASKED)
    table = [line.split() for line in shown.splitlines() if line.startswith("flush")]
    assert code == 0
    assert table == [
        ["flush", "6", "-", "2", "NOTICES", "NOTHING", "-"],
        ["flush", "5", "log.c:43", "2", "notices", "7"],
        ["flush", "9", "-", "2", "not", "tried", "-"],
    ]
    assert "1 of 3 noticed (1 not tried: interrupted)" in shown
    assert "* why one was not noticed: undo@x86 does not need it, the checker" in shown
    assert "line  comes from" in shown
    assert "--set workload.leave_out=5" in shown
    found = json.loads(command(*ASKED, "--json")[1])["left_out"]
    assert [each["noticed"] for each in found] == [True, False, None]
    for each in found:
        again = each["replay"].split()
        assert f"workload.leave_out={each['place']}" in again
        assert ("--check" in again, "--leave-out" in again) == (True, False)


def test_where_nothing_can_be_left_out_the_reason_is_told(
    command: Callable[..., tuple[int, str, str]], answers: Callable[..., None]
) -> None:
    answers()
    assert "left out    no flush and no fence: the trace has neither" in command(*ASKED)[1]
    answers(row(5, None), row(6, None))
    assert "left out    no flush and no fence: interrupted before" in command(*ASKED)[1]
    answers(*(row(place, True) for place in range(30)))
    assert "... and 10 more; --json shows all" in command(*ASKED)[1]


def test_in_python_it_is_a_number_or_all(answers: Callable[..., None]) -> None:
    answers(row(5, True))
    campaign = indelible.crash("undo@x86", "hash", check="./mine", leave_out=2)
    assert campaign.campaign.command().endswith("--leave-out 2")
    assert campaign.left_out[0]["place"] == 5
    for none in ("few", 0):
        with pytest.raises(
            indelible.InputError, match="`leave_out` must be a whole number from 1 up"
        ):
            indelible.crash("undo@x86", "hash", check="./mine", leave_out=none)


@pytest.mark.parametrize(
    ("images", "said"),
    [(0, "none: nothing was tried"), (3, "ok so far: every one that was tried recovered")],
)
def test_what_an_interruption_left_untried_is_not_called_right(
    fake: ModuleType, monkeypatch: pytest.MonkeyPatch, images: int, said: str
) -> None:
    whole = fake.crash
    early = {"cancelled": True, "points": 7, "checker": {"command": "./mine", "images": images}}
    monkeypatch.setattr(fake, "crash", lambda *asked: json.dumps(json.loads(whole(*asked)) | early))
    shown = str(indelible.crash("undo@x86", "hash", check="./mine"))
    assert f"violations  {said}" in shown
    assert "ok: every one recovered" not in shown


def test_calls_that_all_of_them_have_are_not_listed(
    command: Callable[..., tuple[int, str, str]], answers: Callable[..., None]
) -> None:
    def places(*sources: str | None) -> list[str]:
        answers(*(row(place, True, source) for place, source in enumerate(sources, 1)))
        shown = command(*ASKED)[1].splitlines()
        return [" ".join(line.split()[2:-3]) for line in shown if line.startswith("flush")]

    # Lines without a file are of the one before them.
    assert places("pm.h:1 < :2 < a.c:3 < :9", "pm.h:1 < a.c:4 < :9", None) == [
        "pm.h:1 < :2 < a.c:3",
        "pm.h:1 < a.c:4",
        "-",
    ]
    unlike = ["a.h:1 < :2 < :9", "b.h:1 < :2 < :9"]
    assert places(*unlike) == unlike
    # Its own line and that of a call stay.
    assert places("a.c:1 < :2 < :9") == ["a.c:1 < :2"]
    short = ["a.c:1 < :9", "a.c:2 < :8 < :9"]
    assert places(*short) == short
