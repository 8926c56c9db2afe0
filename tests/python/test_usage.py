"""How busy the machine was: the numbers, the command, and its figure."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

import indelible
from conftest import needs_core
from indelible import usage
from indelible.errors import InputError
from indelible.metrics import transactions
from indelible.plots import usage as usage_plot

Command = Callable[..., tuple[int, str, str]]
ASKED = ("compare", "--designs", "native,silo", "--workloads", "hash,btree", "--no-crash")
CELL = ("silo", "hash", None)


def test_numbers_are_those_of_the_row(fake: ModuleType) -> None:
    answer = indelible.compare(["silo"], ["hash"], txs=1_000, crash=False)
    assert usage.numbers(answer, CELL) == pytest.approx(
        {
            "flushes_per_tx": 3,
            "fences_per_tx": 2,
            "llc_misses_per_tx": 1,
            "pm_reads_per_tx": 2,
            "pm_read_cycles_mean": 301.5,
            "wpq_entries_mean": 60.5,
            "wpq_full_percent": 43.21,
            "pm_busy_percent": 45.67,
            "bus_busy_percent": 1.23,
        }
    )


def test_those_of_several_seeds_are_means(fake: ModuleType) -> None:
    answer = indelible.compare(["silo"], ["hash"], seeds=2, crash=False)
    second = answer.runs["silo", "hash", None, 2].data
    second["pm_banks"]["busy_share"] = 0.5
    second["controllers"]["pm_read_cycles"]["mean"] = None
    found = usage.numbers(answer, CELL)
    assert found["pm_busy_percent"] == pytest.approx((45.67 + 50) / 2)
    assert "the mean over the seeds" in " ".join(answer.usage().split())
    assert found["pm_read_cycles_mean"] is None


def test_of_one_seed_whose_runs_have_all_ended_nothing_is_a_mean(fake: ModuleType) -> None:
    answer = indelible.compare(["silo"], ["hash", "btree"], seeds=2, crash=False)
    del answer.runs["silo", "btree", None, 2]
    assert answer.seeds_shown == (1,)
    assert "the mean over the seeds" not in " ".join(answer.usage().split())


def test_what_has_no_value_is_a_dash(fake: ModuleType) -> None:
    answer = indelible.compare(["native", "silo"], ["hash"], crash=False)
    answer.runs["native", "hash", None, 1].data["controllers"]["pm_read_cycles"]["mean"] = None
    (row,) = (line for line in answer.usage().splitlines() if line.startswith("hash"))
    assert row.split()[6] == "-"
    del answer.runs["silo", "hash", None, 1]
    (axes,) = usage_plot.figure(answer).axes
    (mark,) = axes.texts
    assert (mark.get_text(), mark.xy) == ("-", (pytest.approx(0.2), 0))
    assert set(usage.numbers(answer, CELL).values()) == {None}
    del answer.runs["native", "hash", None, 1]
    with pytest.raises(InputError, match="no figure"):
        usage_plot.figure(answer)


def test_bars_are_banks_and_dots_are_queues(fake: ModuleType) -> None:
    answer = indelible.compare(["native", "silo"], ["hash", "btree"], crash=False)
    answer.runs["silo", "btree", None, 1].data["pm_banks"]["busy_share"] = 0.75
    (axes,) = usage_plot.figure(answer).axes
    heights = [bar.get_height() for bars in axes.containers for bar in bars]
    assert heights == pytest.approx([45.67, 45.67, 45.67, 75])
    dots = axes.collections[0].get_offsets()
    assert [y for _, y in dots] == pytest.approx([0, 0, 43.21, 43.21])
    middles = [bar.get_x() + bar.get_width() / 2 for bars in axes.containers for bar in bars]
    assert [x for x, _ in dots] == pytest.approx(middles)


def test_who_reads_nothing_is_drawn_and_so_is_what_is_booked_beyond_the_end(
    fake: ModuleType,
) -> None:
    answer = indelible.compare(["silo"], ["hash", "btree"], crash=False)
    for run in answer.runs.values():
        run.data["controllers"]["pm_read_cycles"]["mean"] = None
    answer.runs["silo", "btree", None, 1].data["pm_banks"]["busy_share"] = 1.25
    (axes,) = usage_plot.figure(answer).axes
    assert axes.get_ylim() == (0, 125)


def test_rows_are_in_json_and_in_a_table(command: Command, tmp_path: Path) -> None:
    file = tmp_path / "usage.csv"
    code, shown, _ = command(*ASKED, "--usage", "--json", "--table", str(file))
    rows = json.loads(shown)["usage"]
    assert code == 0
    assert [(row["workload"], row["design"]) for row in rows] == [
        *(("hash", "native"), ("hash", "silo"), ("btree", "native"), ("btree", "silo"))
    ]
    assert rows[1]["wpq_entries_mean"] == 60.5
    lines = [*csv.DictReader(io.StringIO(file.read_text()))]
    assert [float(line["wpq_full_percent"]) for line in lines] == pytest.approx([0, 43.21] * 2)


@pytest.mark.parametrize("words", [["--metric", "pm-busy"], ["--stalls"], ["--native"]])
def test_what_is_another_view_is_refused(
    command: Command, fake: ModuleType, words: list[str]
) -> None:
    code, shown, complaint = command(*ASKED, "--usage", *words)
    assert (code, shown, fake.asked, complaint.count("\n")) == (2, "", [], 1)
    assert "alone" in complaint


@needs_core
def test_a_log_in_software_flushes_and_one_in_hardware_does_not() -> None:
    answer = indelible.compare(["undo@x86", "silo"], ["hash"], cores=2, txs=300, crash=False)
    software, hardware = (
        usage.numbers(answer, (design, "hash", 2)) for design in ("undo@x86", "silo")
    )
    assert software["flushes_per_tx"] > software["fences_per_tx"] > 0
    assert hardware["flushes_per_tx"] == hardware["fences_per_tx"] == 0
    assert software["llc_misses_per_tx"] == pytest.approx(hardware["llc_misses_per_tx"], rel=0.1)


@needs_core
def test_what_is_divided_by_is_the_transactions_that_were_committed() -> None:
    run = indelible.run("silo", "scribble", cores=1, txs=100, set={"workload.aborts": 10})
    assert 0 < run.aborted < run.txs
    assert transactions(run.data) == run.txs - run.aborted
    assert run.throughput_tx_per_s * run.simulated_s == pytest.approx(transactions(run.data))
