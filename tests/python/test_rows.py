"""What a comparison carries: settings to its campaigns and rows, and runs beside each other."""

from __future__ import annotations

import csv
import io
import json
import shlex
import threading
from collections.abc import Callable
from types import ModuleType

import pytest

from indelible import pool

Command = Callable[..., tuple[int, str, str]]


def test_the_campaigns_of_a_comparison_have_the_data_of_their_machine(
    command: Command, fake: ModuleType
) -> None:
    words = ["--designs", "silo", "--workloads", "btree", "--set", "workload.operations=2"]
    assert command("compare", *words, "--set", "workload.items=300000")[0] == 0
    (campaign,) = [spec["settings"] for kind, spec in fake.asked if kind == "crash"]
    assert (campaign["workload.operations"], "workload.items" in campaign) == ("2", False)


def test_rows_say_what_was_set_and_how_they_are_had_again(command: Command) -> None:
    words = ["--designs", "silo", "--workloads", "btree", "--set", "controller.wpq=4", "--no-crash"]
    _, shown, _ = command("compare", *words, "--csv", "-")
    (row,) = csv.DictReader(io.StringIO(shown))
    assert row["settings.controller.wpq"] == "4"
    assert row["command"].startswith("indelible run --design silo --workload btree")
    again = shlex.split(row["command"])[1:]
    ran = json.loads(command(*again, "--json")[1])
    assert (ran["settings"], ran["command"]) == ({"controller.wpq": "4"}, row["command"])
    swept = ["--designs", "silo", "--workloads", "btree", "--vary", "controller.wpq=4,8"]
    rows = json.loads(command("sweep", *swept, "--json")[1])["rows"]
    assert [row["settings"]["controller.wpq"] for row in rows] == ["4", "8"]


def test_a_variable_limits_how_many_runs_there_are_at_once(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool, "workers_available", lambda: 3)
    for said, meant in (("", 3), ("2", 2), ("1", 1), ("8", 3)):
        monkeypatch.setenv("INDELIBLE_JOBS", said)
        assert pool.jobs_at_once() == meant
    started = []
    thread = threading.Thread
    monkeypatch.setattr(
        threading, "Thread", lambda **words: started.append(words) or thread(**words)
    )
    monkeypatch.setenv("INDELIBLE_JOBS", "1")
    assert command("compare", "--no-crash", "--set", "fake.sleep=0.01")[0] == 0
    assert len(started) == 1
    # A campaign that looks for mutants does so with as many threads of its own.
    for said, meant in (("2", 2), ("1", 1)):
        monkeypatch.setenv("INDELIBLE_JOBS", said)
        assert [control.threads for control in pool.Here().controls([None])] == [meant]
    for said in ("many", "9" * 5000):
        monkeypatch.setenv("INDELIBLE_JOBS", said)
        code, _, complaints = command("compare")
        assert (code, "INDELIBLE_JOBS must be a whole number" in complaints) == (2, True)
