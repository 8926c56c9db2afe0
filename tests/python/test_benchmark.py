"""`bench`: what is measured beside what, and what an interruption leaves."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from types import ModuleType

import pytest

import indelible
from conftest import needs_core
from indelible import benchmark
from indelible.text import benchmark as benchmark_text

Command = Callable[..., tuple[int, str, str]]


def test_a_cell_of_the_benchmark_is_a_row(fake: ModuleType) -> None:
    asked = {**asdict(benchmark.CELLS[0]), "workload": "hash", "seed": 1}
    row = benchmark._child(json.loads(json.dumps(asked)))
    assert tuple(row) == benchmark.COLUMNS
    assert row["slowdown_vs_plain"] == pytest.approx(1.9 / 1.18)
    row["time_vs_native"] = 1.5
    assert "62.0 M      1.6x      1.50x  88 MB" in benchmark_text.bench(
        {"rows": [row], "cancelled": False}, 80
    )


def test_each_design_is_measured_beside_native(
    fake: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    micros = {"native": 2.0, "silo": 3.0}

    def measured(cell: benchmark.SpeedCell, txs: int, seed: int) -> dict[str, object]:
        return {**asdict(cell), "cpu_us_per_tx": micros.get(cell.design, 5.0)}

    monkeypatch.setattr(benchmark, "_measured", measured)
    rows = [row for row in benchmark.measure(quick=True) if row["workload"] == "btree"]
    ratios = {row["design"]: row["time_vs_native"] for row in rows}
    assert ratios["native"] == 1.0
    assert ratios["silo"] == 1.5
    others = {name: ratio for name, ratio in ratios.items() if name not in micros}
    assert others
    assert set(others.values()) == {2.5}


def test_designs_are_measured_alone_but_for_native(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    def measured(cell: benchmark.SpeedCell, txs: int, seed: int) -> dict[str, object]:
        return {**dict.fromkeys(benchmark.COLUMNS, 1), "design": cell.design}

    monkeypatch.setattr(benchmark, "_measured", measured)
    others = [row["name"] for row in indelible.list("designs") if row["name"] != "silo"]
    code, shown, _ = command("bench", "--designs", others[-1], "--json")
    rows = [row["design"] for row in json.loads(shown)["rows"]]
    assert (code, rows) == (0, ["native"] * 2 + [others[-1]] * 2)
    assert [cell.design for cell in benchmark.cells(["native"])] == ["native"] * 9
    code, _, complaint = command("bench", "--designs", "slio")
    assert (code, "unknown design `slio`; there are: silo, " in complaint) == (2, True)


def test_a_benchmark_that_fails_prints_no_answer(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    def measured(cell: benchmark.SpeedCell, txs: int, seed: int) -> dict[str, object]:
        if cell != benchmark.CELLS[0]:
            raise indelible.InputError("bench: the design is wrong")
        return {**dict.fromkeys(benchmark.COLUMNS, 1), "design": "native"}

    monkeypatch.setattr(benchmark, "_measured", measured)
    for words in ([], ["--json"]):
        told = "indelible: error: bench: the design is wrong\n"
        assert command("bench", "--quick", *words) == (2, "", told)


def test_an_interrupted_benchmark_is_what_it_has(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    def measured(cell: benchmark.SpeedCell, txs: int, seed: int) -> dict[str, object]:
        if cell != benchmark.CELLS[0]:
            raise KeyboardInterrupt
        return {**dict.fromkeys(benchmark.COLUMNS, 1), "design": "native"}

    monkeypatch.setattr(benchmark, "_measured", measured)
    code, shown, complaints = command("bench", "--quick", "--json")
    answer = json.loads(shown)
    assert (code, complaints, answer["cancelled"]) == (130, "", True)
    assert (len(answer["rows"]), answer["cancelled"]) == (1, True)


def test_the_command_is_the_call(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    def measured(cell: benchmark.SpeedCell, txs: int, seed: int) -> dict[str, object]:
        return {**dict.fromkeys(benchmark.COLUMNS, seed), "design": cell.design}

    monkeypatch.setattr(benchmark, "_measured", measured)
    answer = indelible.bench(quick=True, designs=["all"], seed=7)
    words = ("bench", "--quick", "--designs", "all", "--seed", "7")
    assert command(*words) == (0, f"{answer}\n", "")
    assert json.loads(command(*words, "--json")[1]) == answer.json()
    assert {row["design"] for row in answer["rows"]} == {
        row["name"] for row in indelible.list("designs")
    }


@needs_core
def test_a_cell_is_measured_in_the_simulator() -> None:
    cell = next(cell for cell in benchmark.CELLS if cell.workload == "hash")
    row = benchmark._measured(cell, 1000, seed=1)
    assert tuple(row) == benchmark.COLUMNS
    assert row["mem_ops_per_s"] > 0
    assert row["slowdown_vs_plain"] > 1
    assert 5 < row["peak_rss_mb"] < 400
