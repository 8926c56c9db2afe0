"""The warm-up of comparisons, sweeps and `why`: which runs have it, and where it is said."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import indelible
from conftest import needs_core
from indelible import extension
from indelible.pages import report
from indelible.plots import causes as causes_plot
from indelible.plots import sweep as sweep_plot
from indelible.views import VIEWS, based
from pages import Page, facts

Command = Callable[..., tuple[int, str, str]]

ON = ["--designs", "undo@x86,silo", "--workloads", "hash"]
VERBS = {
    "compare": ["compare", *ON],
    "sweep": ["sweep", *ON, "--vary", "silo.entries=4,12"],
    "why": ["why", *ON, "--fields", "silo"],
}
SAID = "warm-up 25,000"

#: A trace whose threads are in order, which is done once.
IN_ORDER = """\
region 0x10000 4096
interleaved
measured
thread 0
store 0x10000 1
flush 0x10000
fence
"""


def answers(**more: Any) -> dict[str, Any]:  # noqa: ANN401
    pair, on = ["undo@x86", "silo"], ["hash"]
    return {
        "compare": indelible.compare(pair, on, **more),
        "sweep": indelible.sweep(pair, on, {"silo.entries": [4, 12]}, **more),
        "why": indelible.why(pair, on, fields=["silo"], **more),
    }


def specs(fake: ModuleType, kind: str) -> list[Mapping[str, Any]]:
    return [spec for of, spec in fake.asked if of == kind]


@pytest.mark.parametrize("verb", VERBS)
def test_runs_have_it_and_campaigns_none(command: Command, fake: ModuleType, verb: str) -> None:
    code, shown, _ = command(*VERBS[verb], "--warmup", "25000")
    assert (code, SAID in shown) == (0, True)
    runs, campaigns = specs(fake, "run"), specs(fake, "crash")
    assert {spec["warmup"] for spec in runs} == {25_000}
    assert campaigns
    assert not any("warmup" in spec for spec in campaigns)


@pytest.mark.parametrize("verb", VERBS)
def test_without_it_nothing_is_said(command: Command, fake: ModuleType, verb: str) -> None:
    _, shown, _ = command(*VERBS[verb])
    assert "warm-up" not in shown
    assert not any("warmup" in spec for _, spec in fake.asked)


@pytest.mark.parametrize("verb", VERBS)
def test_none_is_said_too(command: Command, fake: ModuleType, verb: str) -> None:
    _, shown, _ = command(*VERBS[verb], "--warmup", "0")
    assert "· warm-up 0" in shown
    assert {spec["warmup"] for spec in specs(fake, "run")} == {0}


@pytest.mark.parametrize("verb", VERBS)
def test_the_command_repeats_it(command: Command, verb: str) -> None:
    first = json.loads(command(*VERBS[verb], "--warmup", "300", "--json")[1])
    words = shlex.split(first["command"])[1:]
    assert words[words.index("--warmup") + 1] == "300"
    assert json.loads(command(*words, "--json")[1])["command"] == first["command"]


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("count", ["-1", "x", "1.5"])
def test_what_is_no_number_is_a_sentence(
    command: Command, fake: ModuleType, verb: str, count: str
) -> None:
    code, _, told = command(*VERBS[verb], "--warmup", count)
    assert code == 2
    assert f"--warmup: `{count}` is not a whole number from 0 up" in told
    assert not fake.asked


@pytest.mark.parametrize("call", ["compare", "sweep", "why"])
def test_calls_refuse_what_is_no_number(fake: ModuleType, call: str) -> None:
    more: dict[str, Any] = {"vary": {"seed": [1, 2]}} if call == "sweep" else {}
    for bad in (-1, "x", True):
        with pytest.raises(ValueError, match="`warmup` must be a whole number"):
            getattr(indelible, call)(["silo"], ["hash"], warmup=bad, **more)
    assert not fake.asked


def test_pages_say_it(fake: ModuleType) -> None:
    for verb, answer in answers(warmup=25_000).items():
        head = facts(Page(report.html(answer)).root.one("header"))
        assert head["transactions"].endswith(f" of each core, {SAID}"), verb
    for answer in answers().values():
        assert "warm-up" not in report.html(answer)


def test_figures_say_it(fake: ModuleType) -> None:
    def titles(drawing: Any) -> str:  # noqa: ANN401
        every = [drawing.get_suptitle()]
        every += [axes.get_title(at) for axes in drawing.axes for at in ("left", "center")]
        return " ".join(" ".join(every).split())

    for warmup, is_said in ((25_000, True), (None, False)):
        found = answers(warmup=warmup)
        whole = indelible.compare(["undo@x86", "silo"], ["hash"], warmup=warmup, latencies=True)
        for name, view in VIEWS.items():
            assert (SAID in titles(view.figure(based(whole, name)))) is is_said, name
        assert (SAID in titles(sweep_plot.figure(found["sweep"]))) is is_said
        assert (SAID in titles(causes_plot.figure(found["why"]))) is is_said


def test_tables_for_papers_say_it_where_they_say_the_machine(
    fake: ModuleType, tmp_path: Path
) -> None:
    for verb in ("compare", "sweep"):
        file = tmp_path / f"{verb}.md"
        answers(warmup=25_000)[verb].save_table(file)
        assert SAID in file.read_text(encoding="utf-8"), verb


def test_it_varies_in_a_sweep(command: Command, fake: ModuleType) -> None:
    words = ["sweep", "--designs", "silo", "--workloads", "hash", "--vary", "warmup=0,300,1200"]
    code, shown, _ = command(*words)
    assert code == 0
    assert "relative to warmup=0" in shown
    assert "warm-up" not in shown, "what varies is in the rows"
    assert [spec["warmup"] for spec in specs(fake, "run")] == [0, 300, 1_200]
    assert len(specs(fake, "crash")) == 1, "a campaign has none, so one is that of all"
    first = json.loads(command(*words, "--json")[1])
    assert first["vary"] == {"warmup": [0, 300, 1_200]}
    again = shlex.split(first["command"])[1:]
    assert "--warmup" not in again
    assert json.loads(command(*again, "--json")[1])["vary"] == first["vary"]


def test_a_change_of_the_length_leaves_one_that_was_given(fake: ModuleType) -> None:
    indelible.why(["silo"], ["hash"], txs=100, warmup=70, fields=["txs"], crash=False)
    asked = {(spec["txs"], spec["warmup"]) for spec in specs(fake, "run")}
    assert asked == {(100, 70), (50, 70), (200, 70)}


def test_what_is_changed_as_it_is_has_it(fake: ModuleType) -> None:
    answer = answers(warmup=25_000)["why"]
    assert answer.as_it_is.warmup == 25_000
    assert "--warmup 25000" in answer.as_it_is.command
    assert replace(answer.sweep, warmup=None).command != answer.sweep.command


@needs_core
def test_runs_with_another_one_are_not_taken(tmp_path: Path, monkeypatch: Any) -> None:  # noqa: ANN401
    made: list[int | None] = []
    run = extension.core.run

    def told(spec: str, *more: object) -> object:
        made.append(json.loads(spec).get("warmup"))
        return run(spec, *more)

    monkeypatch.setattr(extension.core, "run", told)
    asked: dict[str, Any] = {"machine": "tiny", "txs": 20, "crash": False, "keep": tmp_path}
    for warmup in (5, 6, None, 5):
        indelible.compare(["silo"], ["queue"], warmup=warmup, **asked)
    assert made == [5, 6, None]
    # A sweep over it has the same runs.
    indelible.sweep(["silo"], ["queue"], {"warmup": [5, 7]}, **asked)
    assert made == [5, 6, None, 7]


@needs_core
def test_its_runs_are_those_of_run() -> None:
    at: dict[str, Any] = {"machine": "tiny", "cores": 2, "txs": 20}
    alone = indelible.run("silo", "queue", warmup=30, **at)
    answer = indelible.compare(["silo"], ["queue"], warmup=30, crash=False, **at)
    (row,) = answer.rows
    assert row["id"] == alone.json()["id"]
    assert row["config"]["warmup_per_core"] == 30


@needs_core
def test_a_trace_that_is_done_once_has_none(tmp_path: Path) -> None:
    trace = tmp_path / "one.trace"
    trace.write_text(IN_ORDER, encoding="utf-8")
    asked: dict[str, Any] = {"machine": "tiny", "replay": trace}
    told = "replay runs once; leave out `warmup`"
    with pytest.raises(ValueError, match=told):
        indelible.run("silo", warmup=3, **asked)
    with pytest.raises(ValueError, match=told):
        indelible.compare(["silo"], ["replay"], warmup=3, **asked)
    with pytest.raises(ValueError, match=told):
        indelible.sweep(["silo"], ["replay"], {"seed": [1, 2]}, warmup=3, **asked)
    with pytest.raises(ValueError, match=told):
        indelible.why(["silo"], ["replay"], warmup=3, fields=["silo"], **asked)
    indelible.compare(["silo"], ["replay"], warmup=0, **asked)
