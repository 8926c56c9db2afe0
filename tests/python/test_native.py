"""`indelible native logging`, but for one test with canned answers."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

import indelible
from conftest import needs_core, x86_linux
from indelible import cli, native, pool
from indelible.plots import native as native_plot

Command = Callable[..., tuple[int, str, str]]

LOGGING = ["native", "logging"]


def test_what_is_asked_for_reaches_the_benchmark(command: Command, fake: ModuleType) -> None:
    words = ["--variants", "cached,movnti4", "--entries", "1,4", "--values", "rand", "--quick"]
    assert command(*LOGGING, *words, "--array-writes", "flushed", "--seed", "9")[0] == 0
    ((_, request),) = fake.asked
    assert request == {
        "variants": ["cached", "movnti4"],
        "entries": [1, 4],
        "values": ["rand"],
        "array_writes": ["flushed"],
        "quick": True,
        "whole": False,
        "seed": 9,
    }


def test_what_was_not_asked_for_is_left_to_the_benchmark(
    command: Command, fake: ModuleType
) -> None:
    command(*LOGGING)
    assert fake.asked == [("native", {"quick": False, "whole": False, "seed": 1})]


def test_the_command_that_repeats_it_is_shown(command: Command) -> None:
    words = ["--variants", "cached,movnti4", "--quick", "--against", "tiny"]
    _, shown, _ = command(*LOGGING, *words, columns=200)
    assert "indelible native logging --variants cached,movnti4 --quick --seed 1 --against" in shown


def test_rows_have_what_the_issue_names(command: Command) -> None:
    answer = json.loads(command(*LOGGING, "--json")[1])
    names = {"variant", "entries_per_fence", "cycles_per_entry", "min", "cv", "guarantee"}
    assert names <= answer["rows"][0].keys()
    assert answer["published"] == {"1": 11.13, "8": 5.06}
    assert "simulated" not in answer


def test_no_counter_is_unsupported_and_never_a_zero(command: Command) -> None:
    _, shown, _ = command(*LOGGING, columns=200)
    (line,) = [line for line in shown.splitlines() if line.startswith("LLC misses")]
    assert "unsupported (the system has no counters of this processor); modelled, not" in line
    assert "cached 100 % in an LLC of 8 MiB and 0 % in this one, movnti4 0 %" in line
    # Without the paper's logs it is told of others.
    _, shown, _ = command(*LOGGING, "--variants", "cached+clwb,nt64", columns=200)
    assert "measured: cached+clwb 100 % in an LLC of 8 MiB and 0 % in this one, nt64 0 %" in shown


def test_each_loop_is_simulated_in_each_kind_of_memory(command: Command, fake: ModuleType) -> None:
    answer = json.loads(command(*LOGGING, "--against", "tiny", "--json")[1])
    loops = {(row["variant"], row["entries_per_fence"]) for row in answer["simulated"]}
    assert ("movdir64b", 8) in loops, "the simulator has what this processor has not"
    assert {row["place"] for row in answer["simulated"]} == set(native.SIMULATED)
    assert {row["value"] for row in answer["simulated"]} == {"xorshift"}
    specs = [spec for kind, spec in fake.asked if kind == "run"]
    spec = next(spec for spec in specs if spec["settings"]["workload.log_in"] == "dram")
    assert spec["machine"] == "tiny"
    assert spec["settings"]["workload.items"] == str(2 << 20)
    assert {spec["design"] for spec in specs} == {"undo@x86", "undo@eadr"}
    row = answer["simulated"][0]
    # 4.1 million groups of eight cores a second, 0.4 of it with undo@x86, and a core at a time.
    assert row["ns_per_entry"] == pytest.approx(1e9 / (4.1e6 * 0.4 / 8))


def test_what_is_missing_here_is_simulated_with_each_fence(fake: ModuleType) -> None:
    for asked in (["sfence", "none"], ["none"]):
        answer = native.logging(fences=asked)
        # The canned rows have every fence, whichever was asked for.
        answer.data["rows"] = [row for row in answer.rows if row["fence"] in asked]
        fences: dict[str, set[str]] = {}
        for loop in native.loops(answer):
            fences.setdefault(loop["variant"], set()).add(loop["fence"])
        here = {row["variant"] for row in answer.rows}
        assert fences == {variant: {*asked} for variant in (*here, "movdir64b")}


def test_what_cannot_be_simulated_is_refused_before_anything_is_measured(
    command: Command, fake: ModuleType
) -> None:
    for words, sentence in (
        (["--against", "silly"], "unknown machine `silly`"),
        (["--against", "tiny", "--values", "rand"], "simulates only values of xorshift"),
        (["--against", "tiny", "--fences", "lock"], "simulates only the fences sfence and none"),
    ):
        code, shown, complaints = command(*LOGGING, *words)
        assert (code, shown, complaints.count("\n")) == (2, "", 1)
        assert sentence in complaints
    assert fake.asked == []


def test_the_ratios_are_those_of_medians(fake: ModuleType) -> None:
    answer = native.logging()
    assert answer.ratio("movnti4", "cached", 1) == pytest.approx(809 / 9)
    assert answer.ratio("movnti4", "cached", 8, "rand") == pytest.approx(189 / 89)
    assert answer.ratio("movnti4", "cached", 2) is None


def test_what_durability_costs_is_one_time_over_the_other(fake: ModuleType) -> None:
    answer = native.logging()
    for row in answer.rows:
        row["cycles_per_entry"] *= 2 if row["variant"] == "cached+clwb" else 1
    lines = {line.split()[0]: line.split()[1:] for line in str(answer).splitlines() if line}
    assert lines["xorshift"] == [f"{809 / 9:.2f}x", f"{109 / 9:.2f}x", "2.00x", "2.00x"]


def test_figures_are_drawn(command: Command, tmp_path: Path) -> None:
    for suffix, start in {".png": b"\x89PNG", ".svg": b"<?xml", ".pdf": b"%PDF"}.items():
        paths = [tmp_path / f"{name}{suffix}" for name in ("one", "two")]
        for path in paths:
            assert command(*LOGGING, "--plot", str(path))[0] == 0
        assert paths[0].read_bytes().startswith(start)
        assert paths[0].read_bytes() == paths[1].read_bytes()
    svg = (tmp_path / "one.svg").read_text()
    assert "modelled, 8 MiB LLC" in svg
    assert "cached (not durable)" in svg


def test_figures_have_the_numbers_of_the_rows(fake: ModuleType) -> None:
    drawing = native_plot.figure(native.logging())
    assert "A Processor (family 6, model 143), TSC 2.00 GHz;" in drawing.get_suptitle()
    misses, times, speedups, sweep = drawing.axes
    assert [label.get_text() for label in misses.get_xticklabels()] == ["cached log", "movnti4 log"]
    # As modelled of an LLC of 8 MiB, and with one entry before a fence.
    assert [bar.get_height() for bar in misses.patches] == [100, 0]
    assert [*times.lines[0].get_ydata()] == [9, 809]
    heights = {bars.get_label(): [bar.get_height() for bar in bars] for bars in speedups.containers}
    assert heights == {
        "published": [11.13, 5.06],
        "here, xorshift": pytest.approx([809 / 9, 109 / 9]),
        "here, rand": pytest.approx([889 / 89, 189 / 89]),
    }
    lines = {
        line.get_label(): dict(zip(line.get_xdata(), line.get_ydata(), strict=True))
        for line in sweep.lines
    }
    durable = {1: 809, 8: 109}
    assert lines == {
        "cached (not durable)": {1: 9, 8: 9},
        "cached+clwb": durable,
        "movnti4": durable,
    }


def test_an_interrupted_measurement_shows_what_it_has(
    command: Command, fake: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(pool, "_await", interrupt)
    with pytest.raises(indelible.Interrupted) as caught:
        native.logging(whole=True)
    assert caught.value.partial.data["cancelled"]
    assert "interrupted: this is what had been measured by then" in str(caught.value.partial)
    figure = tmp_path / "figure.svg"
    code, _, complaints = command(*LOGGING, "--whole", "--plot", str(figure))
    assert (code, figure.exists()) == (130, False)
    assert f"nothing was written to {figure}" in complaints


def test_an_interrupted_simulation_leaves_what_was_measured(
    command: Command, fake: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def interrupt(*_: object) -> None:
        raise pool.Interrupted([])

    monkeypatch.setattr(native, "_simulate", interrupt)
    figure = tmp_path / "figure.svg"
    words = [*LOGGING, "--against", "tiny", "--plot", str(figure)]
    code, shown, _ = command(*words, "--json")
    answer = json.loads(shown)
    assert (code, answer["cancelled"], figure.exists()) == (130, True, False)
    assert answer["command"].endswith(" --against tiny")
    assert answer["rows"]
    assert "interrupted: this is what had been measured by then" in command(*words)[1]


COMPARED = ["compare", "--designs", "undo@x86,silo", "--no-crash"]
LOOPS = ["--workloads", "hash,logcache-cached,logcache-movdir64b"]


def test_a_comparison_has_a_column_of_this_processor(command: Command, fake: ModuleType) -> None:
    words = [*COMPARED, *LOOPS, "--cores", "1", "--native"]
    code, shown, _ = command(*words, "--set", "workload.entries_per_fence=8", columns=100)
    assert code == 0
    (request,) = [request for kind, request in fake.asked if kind == "native"]
    assert (request["variants"], request["entries"]) == (["cached", "movdir64b"], [8])
    assert (request["arrays"], request["threads"]) == (["1562KiB"], [1])
    lines = {line.split()[0]: line.split() for line in shown.splitlines() if line}
    assert "this CPU‡" in shown
    # 4.5 ns an entry, 8 entries a transaction; 4.1 Mtx/s x 0.4 / 8 cores of the fake machine.
    assert lines["logcache-cached"][3] == f"{1e9 / (4.5 * 8) / (4.1e6 * 0.4 / 8):.0f}"
    assert lines["hash"][3] == lines["gmean"][3] == "-"
    assert "measured on A Processor (family 6, model 143), in DRAM" in shown


def test_an_interruption_keeps_the_threads_that_were_measured(
    command: Command, fake: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    measured = native.Beside.rows

    def rows(loop: native.Beside) -> list[dict[str, object]]:
        if dict(loop.asked.asked)["threads"] == [2]:
            raise pool.Interrupted(None)
        return measured(loop)

    monkeypatch.setattr(native.Beside, "rows", rows)
    words = [*COMPARED, *LOOPS, "--cores", "1,2", "--native", "--json"]
    code, shown, _ = command(*words)
    answer = json.loads(shown)
    assert (code, answer["cancelled"]) == (130, True)
    assert {row["cores"] for row in answer["native"]} == {1}
    assert "--native" in answer["command"]


def test_threads_do_as_many_groups_of_entries_side_by_side(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool, "workers_available", lambda: 4)
    words = [*COMPARED, "--workloads", "logcache", "--cores", "1,4", "--native", "--json"]
    rows = json.loads(command(*words, "--set", "workload.entries_per_fence=8")[1])["native"]
    assert [row["threads"] for row in rows] == [1, 4]
    # 4.5 ns an entry.
    speeds = [row["throughput_tx_per_s"] for row in rows]
    assert speeds == pytest.approx([threads * 1e9 / (4.5 * 8) for threads in (1, 4)])


def test_settings_of_one_workload_or_design_are_no_others(
    command: Command, fake: ModuleType
) -> None:
    words = [*COMPARED, "--workloads", "hash,logcache", "--cores", "1", "--native"]
    of_all = ["--set", "silo.pm.tWRITE=200ns", "--set", "hash.operations=2"]
    of_loop = ["--set", "logcache.entries_per_fence=8", "--set", "logcache.items=50000"]
    assert command(*words, *of_all, *of_loop)[0] == 0
    (request,) = [request for kind, request in fake.asked if kind == "native"]
    assert (request["entries"], request["arrays"]) == ([8], ["195KiB"])


def test_what_was_measured_is_among_the_rows_of_a_file(command: Command, tmp_path: Path) -> None:
    rows = tmp_path / "rows.csv"
    words = [*COMPARED, *LOOPS, "--cores", "1", "--seed", "7", "--native", "--csv", str(rows)]
    answer = json.loads(command(*words, "--json")[1])
    *runs, cached, movdir64b = csv.DictReader(rows.read_text(encoding="utf-8").splitlines())
    assert [run["design"] for run in runs] == ["undo@x86", "silo"] * 3
    assert (cached["design"], cached["workload"]) == ("this CPU", "logcache-cached")
    assert (cached["cores"], cached["machine"]) == ("1", "A Processor (family 6, model 143)")
    assert {row["seed"] for row in (*runs, cached, movdir64b)} == {"7"}
    assert float(cached["normalized"]) == answer["native"][0]["normalized"]
    assert (movdir64b["throughput_tx_per_s"], movdir64b["normalized"]) == ("", "")
    assert movdir64b["notes"] == '["this processor has no movdir64b"]'


def test_the_table_has_the_mean_of_what_was_measured(command: Command, tmp_path: Path) -> None:
    table = tmp_path / "means.csv"
    words = [*COMPARED, "--workloads", "logcache-cached,logcache", "--cores", "1", "--native"]
    words += ["--table", str(table)]
    assert command(*words)[0] == 0
    rows = [*csv.DictReader(table.read_text(encoding="utf-8").splitlines())]
    *loops, mean = [row for row in rows if row["design"] == "this CPU"]
    ratios = [float(row["normalized"]) for row in loops]
    assert (mean["workload"], mean["value"]) == ("gmean", "")
    assert float(mean["normalized"]) == pytest.approx(math.sqrt(math.prod(ratios)))


def test_an_instruction_that_is_missing_is_named(command: Command) -> None:
    answer = json.loads(command(*COMPARED, *LOOPS, "--cores", "1", "--native", "--json")[1])
    cached, movdir64b = answer["native"]
    assert cached["workload"] == "logcache-cached"
    assert cached["normalized"] > 0
    assert movdir64b["reason"] == "this processor has no movdir64b"
    assert movdir64b["throughput_tx_per_s"] is None


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--cores", "1", "--workloads", "hash"], "which is not among the workloads"),
        (LOOPS, "`native` needs `cores`"),
        ([*LOOPS, "--cores", "1000"], "needs a processor for each of 1000 threads"),
        ([*LOOPS, "--cores", "1", "--metric", "pm-writes"], "not the metric pm-writes"),
        ([*LOOPS, "--cores", "1", "--set", "workload.items=24"], "each thread's has 96 bytes"),
        ([*LOOPS, "--cores", "1", "--set", "workload.work=9"], "drop the setting workload.work"),
        (
            [*LOOPS, "--cores", "1", "--set", "workload.entries_per_fence=3"],
            "unknown value of workload.entries_per_fence `3`; there are: 1, 8",
        ),
        (
            [*LOOPS, "--cores", "1", "--set", "logcache-movdir64b.entries_per_fence=8"],
            "`workload.entries_per_fence` of logcache-cached and logcache-movdir64b is 1 and 8",
        ),
    ],
)
def test_what_the_processor_cannot_be_asked_is_refused_before_anything_runs(
    command: Command, fake: ModuleType, words: list[str], complaint: str
) -> None:
    code, _, said = command(*COMPARED, "--native", *words)
    assert code == 2
    assert complaint in said
    assert not fake.asked


@needs_core
@x86_linux
def test_the_variants_are_those_of_logcache_and_have_a_profile_each() -> None:
    with pytest.raises(indelible.InputError) as error:
        native.logging(variants=["none of these"])
    variants = str(error.value).partition("there are: ")[2].split(", ")
    params = indelible.explain("logcache")["params"]
    (choices,) = [param["choices"] for param in params if param["name"] == "variant"]
    assert choices == variants
    profiles = [row["name"] for row in indelible.list("profiles")]
    assert [name for name in profiles if name.startswith("logcache-")] == [
        f"logcache-{variant}" for variant in variants
    ]


@needs_core
@x86_linux
def test_the_processor_is_measured_and_simulated(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # Stores round the caches take as long before these are full.
    monkeypatch.setattr(native, "WARMUP_BYTES", 1 << 18)
    monkeypatch.setattr(native, "SIMULATED_ENTRIES", 1 << 13)
    words = ["--variants", "cached,cached+clwb,movnti4", "--entries", "1,8", "--values", "xorshift"]
    assert cli.main([*LOGGING, *words, "--quick", "--against", "silo", "--json"]) == 0
    answered = json.loads(capsys.readouterr().out)
    cost = {(r["variant"], r["entries_per_fence"]): r for r in answered["rows"]}
    cycles = {loop: row["cycles_per_entry"] for loop, row in cost.items()}
    # What must come out of any processor of today, far from where noise could turn it round.
    assert cycles["movnti4", 1] > 3 * cycles["cached", 1]
    assert cycles["movnti4", 1] > 2 * cycles["movnti4", 8]
    assert cost["cached", 1]["guarantee"] == "nothing"
    assert cost["movnti4", 1]["guarantee"] == "durable (ADR)"
    simulated = {
        (row["variant"], row["entries_per_fence"], row["place"]): row["cycles_per_entry"]
        for row in answered["simulated"]
    }
    assert len(simulated) == 3 * 2 * 5
    assert simulated["movnti4", 1, "adr"] > simulated["movnti4", 8, "adr"]
    assert simulated["movnti4", 1, "media"] > simulated["movnti4", 1, "adr"]
