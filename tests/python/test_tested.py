"""The crash verdicts of sweeps and of `why`, with canned answers: who is tested, and who wins."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest

import indelible
from indelible.results.crash import Verdict

Command = Callable[..., tuple[int, str, str]]

SWEEP = ["sweep", "--designs", "silo,leaky", "--workloads", "hash,btree"]
ENTRIES = ["--vary", "silo.entries=4,12,20"]
PAIR = ["undo@x86", "silo"]
WHY = ["why", "--designs", "undo@x86,silo", "--workloads", "hash"]


def campaigns(fake: ModuleType) -> list[tuple[str, int, int, str | None]]:
    """Return the design, cores, seed and entries of each campaign that was asked for."""
    specs = [spec for kind, spec in fake.asked if kind == "crash"]
    assert {(spec["machine"], spec["points"], spec["lives"]) for spec in specs} <= {
        ("tiny", 200, 1)
    }
    entries = [spec["settings"].get("design.entries") for spec in specs]
    own = [(spec["design"], spec["cores"], spec["seed"]) for spec in specs]
    return sorted(((*one, more) for one, more in zip(own, entries, strict=True)), key=str)


def test_power_is_cut_once_for_each_value_of_a_designs_own_field(fake: ModuleType) -> None:
    designs, vary = ["silo", "native", "hops"], {"silo.entries": [4, 12]}
    answer = indelible.sweep(designs, ["hash"], vary, set={"controller.wpq": 8})
    own = [("silo", 2, 1, "12"), ("silo", 2, 1, "4")]
    assert campaigns(fake) == [("hops", 2, 1, None), *own], "and never of a bound"
    assert answer.passed
    assert "crash test  silo ok 400, native† none†, hops† ok 200" in str(answer)
    kinds = {(row["point"]["silo.entries"], row["design"]): row["crash"] for row in answer.rows}
    assert {place: crash["verdict"] for place, crash in kinds.items()} == {
        (entries, design): {"native": "none"}.get(design, "ok")
        for entries in (4, 12)
        for design in designs
    }
    assert "--set design.entries=12" in kinds[12, "silo"]["command"]


def test_machines_and_seeds_that_vary_need_no_campaign_of_their_own(fake: ModuleType) -> None:
    vary = {"controller.wpq": [8, 64], "seed": [3, 1], "txs": [5, 9], "cores": [1, 4, 8]}
    answer = indelible.sweep("silo", "hash", vary)
    assert campaigns(fake) == [("silo", 1, 3, None), ("silo", 2, 3, None)]
    assert {row["crash"]["verdict"] for row in answer.rows} == {"ok"}
    # What survives is another question on another machine.
    fake.asked.clear()
    indelible.sweep("silo", "hash", {"controller.domain": ["adr", "eadr"]})
    assert len(campaigns(fake)) == 2


def test_a_design_that_fails_its_crash_test_passes_nobody(
    command: Command, fake: ModuleType, tmp_path: Path
) -> None:
    table, figure = tmp_path / "means.csv", tmp_path / "lines.svg"
    files = ["--table", str(table), "--plot", str(figure)]
    code, shown, complaints = command(*SWEEP, *ENTRIES, *files)
    assert (code, complaints) == (1, "")
    assert "silo.entries  silo  leaky!" in shown
    assert "crash test  silo ok 1200, leaky! FAIL 5/400" in shown
    assert "passes" not in shown
    assert "! leaky is not crash-safe; to see it:\n" in shown
    answer = json.loads(command(*SWEEP, *ENTRIES, "--json")[1])
    assert answer["crossings"] == []
    rows = {(row["design"], row["workload"]): row["crash"] for row in answer["rows"]}
    assert rows["leaky", "btree"]["verdict"] == "fail"
    assert (rows["leaky", "btree"]["points"], rows["leaky", "btree"]["violations"]) == (200, 5)
    assert rows["leaky", "hash"]["verdict"] == "ok"
    with table.open(encoding="utf-8") as file:
        kinds = {(row["design"], row["workload"], row["crash"]) for row in csv.DictReader(file)}
    assert kinds == {
        *(("silo", workload, "ok") for workload in ("hash", "btree", "gmean")),
        *(("leaky", *pair) for pair in (("hash", "ok"), ("btree", "fail"), ("gmean", "fail"))),
    }
    assert "leaky! (not crash-safe)" in figure.read_text(encoding="utf-8")


def test_without_campaigns_nothing_is_tested(command: Command, fake: ModuleType) -> None:
    code, shown, _ = command(*SWEEP, *ENTRIES, "--no-crash")
    assert (code, campaigns(fake)) == (0, [])
    assert "crash test  silo untested, leaky untested" in shown
    answer = indelible.sweep(["silo", "leaky"], ["btree"], {"silo.entries": [4, 12]}, crash=False)
    assert (answer.passed, "leaky!" in str(answer)) == (True, False)
    assert "--no-crash" in answer.command
    assert {row["crash"]["reason"] for row in answer.rows} == {"no campaign was run"}
    with pytest.raises(indelible.InputError, match="`crash` must be True or False"):
        indelible.sweep(["silo"], ["btree"], {"silo.entries": [4, 12]}, crash=1)


def test_with_which_values_a_design_failed_is_told(fake: ModuleType) -> None:
    vary = {"silo.entries": [4, 12, 20], "cores": [1, 8]}
    answer = indelible.sweep(["silo", "hops"], ["hash"], vary)
    fails = {
        cell: Verdict("fail", 200, 3, "indelible crash ...") if cell[0][0] in ("4", "12") else one
        for cell, one in answer.verdicts.items()
        if cell[1] == "silo"
    }
    answer = replace(answer, verdicts={**answer.verdicts, **fails})
    assert "! silo is not crash-safe with silo.entries=4,12; to see it:\n" in str(answer)
    assert answer.rivals() == ("hops",)
    unknown = Verdict("untested", 0, 0, "indelible crash ...", "the log is too small")
    answer = replace(answer, verdicts=answer.verdicts | dict.fromkeys(fails, unknown))
    assert "? silo was not tested on hash: the log is too small" in str(answer)


def test_power_is_cut_with_each_change_that_a_campaign_could_notice(
    command: Command, fake: ModuleType
) -> None:
    answer = indelible.why(PAIR, ["hash"])
    cut = [(spec["design"], spec["settings"]) for kind, spec in fake.asked if kind == "crash"]
    # As they are, and with other entries; not with each queue of the machine, nor other lengths.
    entries = [{}, {"design.entries": "10"}, {"design.entries": "40"}]
    assert sorted(cut, key=str) == sorted(((d, own) for d in PAIR for own in entries), key=str)
    assert answer.passed
    said = answer.json()
    assert {run["crash"]["verdict"] for run in said["runs"]} == {"ok"}
    assert {crash["verdict"] for row in said["rows"] for crash in row["crash"].values()} == {"ok"}
    fake.asked.clear()
    code, shown, _ = command(
        "why", "--designs", "undo@x86,silo", "--workloads", "hash", "--no-crash"
    )
    assert (code, {kind for kind, _ in fake.asked}) == (0, {"run"})
    assert "crash test  undo@x86 untested, silo untested" in shown
    assert "--no-crash" in indelible.why(PAIR, ["hash"], crash=False).command


def test_a_design_that_fails_its_crash_test_is_not_ahead(command: Command, tmp_path: Path) -> None:
    words = ["why", "--designs", "silo,leaky", "--workloads", "btree", "--fields", "leaky"]
    figure = tmp_path / "why.svg"
    code, shown, complaints = command(*words, "--plot", str(figure))
    assert (code, complaints) == (1, "")
    assert "leaky! is not crash-safe, so it is never ahead. As it is leaky! over silo is" in shown
    assert "crash test  silo ok 200, leaky! FAIL 5/200" in shown
    assert "! leaky is not crash-safe; to see it:\n" in shown
    assert "leaky! (not crash-safe)" in figure.read_text(encoding="utf-8")
    both = indelible.why(["leaky"], ["btree"], fields=["leaky"])
    assert not both.passed
    assert "Throughput: leaky! on btree" in str(both)


def test_what_breaks_a_design_improves_nothing(fake: ModuleType) -> None:
    answer = indelible.why(PAIR, ["hash"], fields=["silo", "controller"])
    assert answer.improved_by("silo")[0] == ("silo.entries=40",)
    breaks = {
        (("silo.entries=40",), "silo", "hash"): Verdict("fail", 200, 3, "indelible crash ...")
    }
    sweep = replace(answer.sweep, verdicts=answer.sweep.verdicts | breaks)
    answer = replace(answer, sweep=sweep)
    assert not answer.passed
    assert answer.broken(("silo.entries=40",)) == ["silo"]
    assert ("silo.entries=40",) not in answer.improved_by("silo")
    shown = str(answer)
    assert "with every one of 3 changes" in " ".join(shown.split())
    assert "silo.entries    20        40!" in shown
    assert "! silo is not crash-safe with silo.entries=40; to see it:\n" in shown
    assert "crash test  undo@x86 ok 200, silo ok 200\n" in shown
