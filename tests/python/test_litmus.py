"""Litmus tests on the real simulator: what is set, what does not fit, and what is printed of it."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

import indelible
from conftest import needs_core, refused
from indelible.cli import main
from indelible.experiment import LitmusTests
from indelible.results.litmus import Litmus

pytestmark = needs_core

#: Ordering hardware that has no room for some of what it is asked.
PICKY = """
from indelible import InputError
from indelible.templates.order import Template

class Picky(Template):
    def __init__(self, setup):
        super().__init__(setup)
        if setup.shape.{what} > {most}:
            raise InputError("{most} is all")
"""


Picky = Callable[[str, int], str]


@pytest.fixture
def picky(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Picky:
    """Return what writes such hardware, and returns its path."""
    monkeypatch.chdir(tmp_path)

    def written(what: str, most: int) -> str:
        Path("picky.py").write_text(PICKY.format(what=what, most=most), encoding="utf-8")
        return "./picky.py"

    return written


# What is set.


def test_a_field_may_be_called_as_other_tools_do(capsys: pytest.CaptureFixture[str]) -> None:
    (one,) = indelible.litmus(orders="hops", program=2, set={"controller.wpq": 8}).data["random"]
    (same,) = indelible.litmus(
        orders="hops", program=2, set={"controller.write_buffer_size": 8}
    ).data["random"]
    assert one == same
    assert indelible.litmus(orders="hops", set={"controller.wpq": 8}).passed
    assert main(["litmus", "--order", "hops", "--set", "hops.nosuch=1"]) == 2
    assert "unknown parameter `nosuch` of ordering hardware hops" in capsys.readouterr().err


def test_what_goes_with_some_machines_alone_is_asked_on_those() -> None:
    found = indelible.litmus(orders="x86", random=32, set={"l2.size": "512B"})
    assert found.passed, str(found)
    (row,) = found.data["random"]
    assert 0 < row["refused"] < 32
    assert "llc.size" in row["refusal"]


def test_the_domain_that_is_told_is_the_one_that_is_run() -> None:
    def program(order: str, number: int, domain: str = "") -> tuple[str | None, int]:
        settings = {"controller.domain": domain} if domain else None
        (row,) = indelible.litmus(orders=order, program=number, set=settings).data["random"]
        pairs = dict(pair.split("=") for pair in row["program"]["machine"])
        return pairs.get("controller.domain"), row["images"]

    # The seventh is on the machine whose cells alone survive, where that is enough.
    assert [program(order, 7)[0] for order in ("x86", "eadr")] == ["media", "eadr"]
    assert program("eadr", 1)[0] == "eadr"
    own = {program("bbb", number)[0] for number in range(1, 60)}
    assert own == {None, "adr", "eadr", "gpf"}
    x86 = {domain: program("x86", 2, domain) for domain in ("media", "adr", "eadr")}
    assert all(told == domain for domain, (told, _) in x86.items())
    assert len({images for _, images in x86.values()}) > 1
    text = refused(lambda: indelible.litmus(orders="bbb", set={"controller.domain": "media"}))
    assert text.startswith("bbb needs the durability domain adr; leave controller.domain out")


def test_a_machine_with_too_little_energy_or_too_few_cores_is_refused() -> None:
    for words in ({}, {"controller.domain": "eadr"}, {"controller.domain": "gpf"}):
        asked = {**words, "controller.flush_bytes": "63B"}
        text = refused(lambda asked=asked: indelible.litmus(orders="eadr", set=asked))
        said = " and ".join(asked)
        assert text.startswith("eadr needs the durability domain eadr with energy for caches")
        assert f"; leave {said} out, or" in text
    # Energy for a line is enough to be asked, whatever comes of it: the hardware brings the domain.
    some = [
        {"controller.flush_bytes": "64B", **words} for words in ({}, {"controller.domain": "eadr"})
    ]
    plain, named = (indelible.litmus(orders="eadr", set=words) for words in some)
    seen = [
        [(row["test"], row["images"], row["seen"]) for row in of.data["rows"]]
        for of in (plain, named)
    ]
    assert seen[0] == seen[1]
    assert not plain.passed
    rows = indelible.litmus(orders="x86", set={"core.cores_max": 1}).data["rows"]
    for row in rows:
        assert (row["runs"] == 0) == (row["refusal"] is not None), row
    text = "each of 3 threads needs a core, and core.cores_max is 1"
    assert [row["refusal"] for row in rows if row["test"] == "third_core"] == [text]


@pytest.mark.parametrize("order", ["x86", "hops", "dpo"])
def test_where_only_cells_survive_any_words_of_a_write_may(order: str, tmp_path: Path) -> None:
    stores = "".join(f"store {name} 1\n" for name in "ABC")
    for there in range(8):
        image = " ".join(f"{name}={there >> place & 1}" for place, name in enumerate("ABC"))
        path = tmp_path / f"{there}.litmus"
        path.write_text(f"line A B C\nthread\n{stores}order\nimage {image}\n", encoding="utf-8")
    tests = [tmp_path / f"{there}.litmus" for there in range(8)]
    rows = indelible.litmus(tests, orders=order, set={"controller.domain": "media"}).data["rows"]
    assert {(row["seen"], row["sampled"]) for row in rows} == {(True, 0)}
    # A controller keeps stores to one line in their order, and cells that survive it have all.
    rows = indelible.litmus(tests, orders=order).data["rows"]
    assert [row["test"] for row in rows if row["seen"]] == ["0", "1", "3", "7"]


def test_a_test_of_which_no_run_counts_does_not_pass(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # The thread loads what it stores only afterwards.
    unasked = tmp_path / "unasked.litmus"
    unasked.write_text("thread\nload A 1\nstore A 1\nimage A=1\n", encoding="utf-8")
    asked = tmp_path / "asked.litmus"
    asked.write_text("thread\nload A 0\nstore A 1\nimage A=1\n", encoding="utf-8")
    assert indelible.litmus(asked, orders="x86").passed
    answer = indelible.litmus(asked, unasked, orders=["x86", "hops"])
    assert (answer.uncounted, answer.passed) == (["unasked"], False)
    assert {row["runs"] > 0 for row in answer.data["rows"]} == {True}
    assert main(["litmus", "--order", "x86", str(unasked)]) == 1
    assert "no run" in capsys.readouterr().out


def test_threads_stay_where_the_hardware_does_not_let_them_move() -> None:
    text = refused(lambda: indelible.litmus(orders="hops", set={"core.migrate": 1}))
    assert text.startswith("hops keeps the state of a transaction at its core")
    assert text.endswith("use one of eadr, ideal, x86")
    assert indelible.litmus(orders="x86", random=20, set={"core.migrate": 20}).passed


def test_a_section_is_hardware_that_is_asked(tmp_path: Path) -> None:
    text = refused(lambda: indelible.litmus(orders="hops", set={"bbb.entries": 1}))
    assert text.startswith("unknown section `bbb`")
    own = tmp_path / "x86.py"
    own.write_text(
        "from indelible.design import Param\nfrom indelible.templates.order import Template\n"
        "class Own(Template):\n    params = {'size': Param(4, 1, 8)}\n",
        encoding="utf-8",
    )
    assert indelible.litmus(orders=str(own), set={"x86.size": 2}).passed


# What does not fit.


def test_what_does_not_fit_says_nothing_of_the_rest(
    picky: Picky, capsys: pytest.CaptureFixture[str]
) -> None:
    path = picky("cores", 2)
    found = indelible.litmus(orders=["x86", path], random=20, mutants=True)
    assert found.passed, str(found)
    rows = [row for row in found.data["rows"] if row["refusal"]]
    assert {(row["order"], row["test"], row["runs"]) for row in rows} == {(path, "third_core", 0)}
    x86, own = found.data["random"]
    assert (x86["refused"], own["refusal"]) == (0, f"{path}: 2 is all")
    assert 0 < own["refused"] < own["programs"] == 20
    path = picky("cores", 0)
    assert refused(lambda: indelible.litmus(orders=path)) == f"{path}: 0 is all"
    # Of others all is told, and that nothing is known of this one is not well.
    assert main(["litmus", "--order", "x86", "--order", path, "--program", "16"]) == 1
    shown = " ".join(capsys.readouterr().out.split())
    assert "random program 16 on x86: ok, " in shown
    assert f"random program 16 on picky: refused: {path}: 0 is all" in shown
    found = indelible.litmus(orders=["x86", path])
    assert (found.passed, found.unfit) == (False, [path])


def test_a_test_that_fits_one_machine_has_its_answer(picky: Picky) -> None:
    path = picky("controllers", 1)
    found = indelible.litmus(orders=["x86", path], mutants=True)
    assert found.passed, str(found)
    x86, own = ([row for row in found.data["rows"] if row["order"] == o] for o in ("x86", path))
    assert [row["seen"] for row in own] == [row["seen"] for row in x86]
    assert all(0 < mine["runs"] < row["runs"] for mine, row in zip(own, x86, strict=True))
    assert f"refused     {path}: 1 is all" in str(found)
    assert {row["test"] for row in found.data["mutants"]} == {"order_between"}


# What is printed is typed.


def test_the_lines_that_show_what_was_found_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    half = tmp_path / "half.py"
    half.write_text(
        "from indelible.design import Param\nfrom indelible.templates.order import Template\n"
        "class Half(Template):\n    params = {'size': Param(4, 1, 8)}\n"
        "    def fence(self, fence, below):\n        return None\n",
        encoding="utf-8",
    )
    words = ["--order", "x86", "--order", str(half), "--random", "5", "--mutants"]
    assert main(["litmus", *words, "--set", "half.size=2", "--set", "controller.wpq=8"]) == 1
    shown = capsys.readouterr().out.replace("\\\n", "")
    for mark in ("see it", "see one"):
        (line,) = (line for line in shown.splitlines() if line.startswith(mark))
        typed = shlex.split(line.removeprefix(mark))
        assert typed[:2] == ["indelible", "litmus"]
        assert main(typed[1:]) == 1, line
        assert "WRONG" in capsys.readouterr().out


def test_of_a_long_timeline_the_end_is_shown() -> None:
    event = {"where": "hops", "lane": "events", "from": 3, "until": 3}
    events = [event | {"what": f"Timer({number})"} for number in range(150)]
    timeline = {"machine": [], "event": None, "early": [], "left_out": 1_850, "events": events}
    row = {"order": "hops", "number": 1, "programs": 1, "violation": "liveness: core 0"}
    row |= {"program": {"settings": [], "machine": [], "cores": []}, "timeline": timeline}
    shown = str(Litmus({"rows": [], "random": [row]}, LitmusTests(program=1)))
    told = "the last 100 of 2,000 events (--json has more) up to the end of the run"
    assert f"timeline {told}" in " ".join(shown.split())
    assert ("Timer(49)" in shown, "Timer(50)" in shown) == (False, True)


def test_what_hardware_in_python_did_before_is_shown(tmp_path: Path) -> None:
    own = tmp_path / "own.py"
    own.write_text(
        "from indelible.templates.order import Template\n"
        "class Own(Template):\n"
        "    def fence(self, fence, below):\n"
        "        if fence.kind == 'durable': raise KeyError('oops')\n"
        "        below.at(fence.drained + 3, ('asked', fence.kind, fence.core))\n"
        "        return fence.drained + 9\n"
        "    def event(self, at, event, below): pass\n",
        encoding="utf-8",
    )
    found = indelible.litmus(orders=str(own))
    by_name = {row["test"]: row for row in found.data["rows"]}
    assert all((row["timeline"] is None) == (row["violation"] is None) for row in by_name.values())

    def told(test: str, lane: str) -> list[str]:
        events = by_name[test]["timeline"]["events"]
        return [event["what"] for event in events if event["lane"] == lane]

    # It orders nothing.
    assert told("line_again", "events")[0] == "('asked', 'flush', 0)"
    assert told("line_again", "power") == ["power failure"]
    # What it raises ends the run, and no power failure is to blame.
    assert by_name["durable_returned"]["violation"].startswith("raises: ")
    assert told("durable_returned", "program") == ["store A", "clwb A", "fence, durability"]
    assert by_name["durable_returned"]["timeline"]["event"] is None
    # One is shown.
    shown = str(found)
    assert shown.count("up to the power failure at event ") == 1
    assert shown.count("timeline    --json has it") == shown.count("WRONG  ") - 2


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({}, "ok, 40 images"),
        ({"refused": 2, "refusal": "too small"}, "ok, 40 images (2 refused: too small)"),
        ({"refused": 9, "refusal": "too small", "images": 0}, "refused: too small"),
    ],
)
def test_why_random_programs_were_refused_is_told_once(
    changes: dict[str, object], told: str
) -> None:
    row = {"order": "hops", "number": 1, "programs": 9, "violation": None, "images": 40}
    row |= {"refused": 0, "refusal": None, "program": None, "timeline": None} | changes
    answer = Litmus({"rows": [], "random": [row]}, LitmusTests(random=9))
    shown = " ".join(str(answer).split())
    assert shown.startswith(f"random 9 on hops: {told} repeat ")
    assert answer.passed == bool(row["images"])


@pytest.mark.parametrize("caught", [False, True])
def test_what_hardware_raised_without_a_rule_is_told_unless_it_was_caught(caught: bool) -> None:
    rule = {"order": "hops", "rule": "line_in_order", "caught": caught, "needless": None}
    rule |= {"raises": "KeyError: 7", "test": "publish" if caught else None, "random": None}
    answer = Litmus(
        {"rows": [], "mutants": [rule]}, LitmusTests(mutants=True, orders=(("hops", ()),))
    )
    assert ("! line_in_order of hops: KeyError: 7" in str(answer)) != caught
    assert f"{int(caught)} of 1 caught" in str(answer)
    assert answer.passed == caught
