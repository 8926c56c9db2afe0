"""The command as a user has it, on the real simulator."""

from __future__ import annotations

import io
import json
import math
import os
import re
import shlex
import statistics
import subprocess
import sys
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pytest

from conftest import LOOKS, needs_core, start, without_progress
from indelible import InputError, cli
from indelible.evaluation import TXS
from indelible.verbs import names_of
from indelible.verbs.compare import compare
from indelible.verbs.crash import crash
from indelible.verbs.run import run

pytestmark = needs_core

README = Path(__file__).parents[2] / "README.md"

#: What issues 2 to 5 promise of designs and workloads, and the presets that there are.
DESIGNS = {"native", "undo@ideal", "undo@x86", "redo@x86", "undo@eadr", "silo"}
DESIGNS |= {"base", "fwb", "lad", "undo-log", "redo-log", "hops", "undo@hops", "undo@bbb"}
DESIGNS |= {"ssp", "shadow-paging"}
DESIGNS |= {
    f"{log}@{order}"
    for log in ("undo", "redo", "count")
    for order in ("x86", "dpo", "hops", "bbb", "eadr", "ideal")
}
WORKLOADS = {"array", "queue", "hash", "btree", "rbtree", "ycsb", "scribble", "sqlite", "tpcc"}
WORKLOADS |= {"bplustree", "sps", "sdg", "echo", "ctree", "hashmap", "logcache", "probe"}
WORKLOADS |= {"replay"}
WORKLOADS |= {"vacation", "memcached"}
MACHINES = {path.stem for path in (Path(__file__).parents[2] / "machines").glob("*.toml")}

SMALL = ["--cores", "2", "--txs", "200"]


def indelible(*words: str) -> tuple[int, str, str]:
    process = start(*words)
    shown, complaints = process.communicate(timeout=300)
    return process.returncode, shown, without_progress(complaints)


def here(*words: str) -> tuple[int, str, str]:
    """Run the command in this process: to start it takes longer than most answers do."""
    shown, complaints = io.StringIO(), io.StringIO()
    with redirect_stdout(shown), redirect_stderr(complaints):
        code = cli.main(words)
    return code, shown.getvalue(), without_progress(complaints.getvalue())


def answer(*words: str, run: Callable[..., tuple[int, str, str]] = here) -> dict[str, Any]:
    code, shown, complaints = run(*words, "--json")
    assert (code, complaints) == (0, "")
    return json.loads(shown)


def test_what_there_is() -> None:
    names = {
        kind: {row["name"] for row in answer("list", kind)["rows"]}
        for kind in ("designs", "workloads", "machines")
    }
    assert names["designs"] >= DESIGNS
    assert names["workloads"] >= WORKLOADS
    assert names["machines"] == MACHINES
    for row in answer("list", "designs")["rows"]:
        assert row["durability"] in ("synchronous", "asynchronous", "none")


def bytes_per_core(*words: str) -> list[float]:
    """What SSP takes at a core. Only a machine with a second-level TLB has that to extend."""
    parts = answer("explain", "ssp", *words)["hardware"]
    return [part["bytes_per_core"] for part in parts if part["where"] == "core"]


def test_batteries_come_from_what_designs_declare() -> None:
    cells = {row["design"]: row for row in answer("battery")["rows"]}
    silo = cells["silo"]
    assert silo["flush_kb"] == silo["published"]["flush_kb"] == 5.3125
    assert round(silo["energy_uj"], 2) == 61.08
    assert round(cells["undo@eadr"]["energy_uj"]) == 54_377
    assert cells["undo@bbb"]["published"]["source"] == "HPCA'23 BBB"
    hardware = answer("explain", "silo")["hardware"]
    kept = sum(part["bytes"] for part in hardware if part["domain"] == "battery")
    assert kept == 5.3125 * 1024
    assert bytes_per_core("--machine", "silo") == [832, 13_312, 800]
    assert bytes_per_core("--machine", "ssp", "--cores", "2") == [832, 800]
    code, shown, _ = indelible("explain", "ssp")
    # The paper's 14.59, and what the controller has.
    assert "In all 15.42 KiB a core: 14.59 at the core, 0.8" in shown
    code, shown, _ = indelible("battery", "--designs", "undo@x86,silo", "--cores", "1")
    assert (code, "no battery: undo@x86" in shown, "HPCA'23" in shown) == (0, True, False)


def test_a_campaign_says_when_the_energy_is_not_enough() -> None:
    words = ("crash", "--design", "silo", "--workload", "scribble", "--lives", "1", "--txs", "60")
    code, shown, _ = indelible(*words, "--set", "controller.battery_perc=10%")
    assert code == 1
    assert "the energy covers only" in " ".join(shown.split())
    code, shown, _ = indelible(*words)
    assert (code, "the energy" in shown) == (0, False)


def test_write_sets_stand_beside_ssp_s() -> None:
    rows = {row["workload"]: row for row in answer("characterize", "--txs", "500")["rows"]}
    profiles = answer("list", "profiles")["rows"]
    assert [*rows] == [row["name"] for row in profiles if row["published"] is not None]
    assert rows["sps"]["lines_avg"] == pytest.approx(2.0, abs=0.01)
    assert rows["sps"]["published"] == {"lines": 2, "pages": 2, "pages_max": 2}
    for row in rows.values():
        assert 0 < row["pages_avg"] <= row["lines_avg"] <= row["words_avg"] <= row["stores_avg"]
        assert row["pages_max"] <= row["lines_max"]
        assert 0 < row["pm_share"] <= 1
    # A profile is the workload with its settings, which the user's go over.
    named = answer("run", "--design", "silo", "--workload", "hash-zipf", "--txs", "50")
    profile = next(row for row in profiles if row["name"] == "hash-zipf")
    words = [f"workload.{setting}" for setting in profile["settings"].split()]
    sets = [word for setting in words for word in ("--set", setting)]
    plain = answer("run", "--design", "silo", "--workload", "hash", "--txs", "50", *sets)
    for row in (named, plain):
        del row["host"], row["settings"], row["command"]
    assert (named.pop("workload"), plain.pop("workload")) == ("hash-zipf", "hash")
    assert named == plain


def test_everything_is_explained() -> None:
    for row in answer("list")["rows"]:
        about = json.loads(here("explain", row["name"], "--json")[1])
        assert about["name"] == row["name"]
        code, shown, _ = here("explain", row["name"])
        assert (code, row["name"] in shown) == (0, True)
    two = answer("explain", "optane", "--diff", "cxl")
    assert (two["left"], two["right"]) == ("optane", "cxl")
    assert {"left", "right", "left_source", "right_source"} <= two["rows"][0].keys()
    code, shown, _ = indelible("explain", "optane", "--diff", "cxl")
    assert (code, "machines optane and cxl: " in shown) == (0, True)


def test_all_workloads_are_those_that_a_mean_can_be_taken_of() -> None:
    rows = answer("list", "workloads")["rows"]
    told = here("compare", "--help")[1].partition("every workload but ")[2].partition(" which")[0]
    left_out = {row["name"] for row in rows if not row["in_all"]}
    assert left_out == set(re.findall(r"\w+", told)) - {"and"}
    every = names_of("workloads", ["all"], rows)
    assert set(every) == {row["name"] for row in rows} - left_out
    assert names_of("workloads", ["probe", "hash"], rows) == ("probe", "hash")


def test_ordering_hardware_is_explained() -> None:
    x86 = answer("explain", "x86")
    assert (x86["kind"], x86["model"]) == ("order", "fenced")
    assert {"undo@x86", "s-wal"} <= {*x86["pairings"]}
    assert {"name", "doc", "needless"} == x86["rules"][0].keys()
    # A name that a design has is the design's.
    kinds = [answer("explain", name)["kind"] for name in ("hops", "order:hops", "machine:hops")]
    assert kinds == ["design", "order", "machine"]
    params = answer("explain", "order:hops", "--set", "design.entries=7")["params"]
    assert {param["name"]: param["value"] for param in params}["entries"] == 7
    for name in {row["order"] for row in answer("litmus")["rows"]}:
        code, shown, _ = indelible("explain", f"order:{name}")
        assert (code, f"{name} (order)" in shown, f"undo@{name}" in shown) == (0, True, True)


def test_what_is_explained_has_settings_under_its_own_name() -> None:
    for name, field in (("silo", "entries"), ("btree", "order"), ("btree-rand", "order")):
        params = answer("explain", name, "--set", f"{name}.{field}=40")["params"]
        assert {param["name"]: param["value"] for param in params}[field] == 40
    items = answer("explain", "btree", "--set", "btree.items=4")["params"][0]
    assert (items["name"], items["value"], items["default"]) == ("items", 4, 0)
    assert "items` of workload btree" in indelible("explain", "btree", "--set", "btree.items=x")[2]


def test_the_usual_number_of_transactions_is_that_of_the_simulator() -> None:
    row = answer("run", "--design", "native", "--workload", "array", "--cores", "1")
    assert row["txs"] == TXS


def test_counting_begins_when_the_caches_have_the_data() -> None:
    words = ["run", "--design", "native", "--workload", "array", "--cores", "1", "--txs", "200"]
    words += ["--set", "workload.items=2000"]
    cold, warm = (answer(*words, "--warmup", number) for number in ("0", "20000"))
    assert warm["cycles"] < cold["cycles"] / 2
    assert warm["txs"] == cold["txs"] == 200
    assert answer(*shlex.split(warm["command"])[1:])["id"] == warm["id"] != cold["id"]


def test_values_that_are_no_defaults_are_shown() -> None:
    assert "  here " not in indelible("explain", "silo")[1]
    own = indelible("explain", "silo", "--set", "silo.entries=33")[1].splitlines()
    assert next(line.split()[1:3] for line in own if "design.entries" in line) == ["33", "20"]
    profile = indelible("explain", "btree-rand")[1].splitlines()
    assert next(line.split()[1] for line in profile if "workload.order" in line) == "100"
    words = ["--designs", "silo", "--set", "silo.entries=40"]
    assert answer("battery", *words)["rows"][0]["flush_kb"] == 2 * 5.3125


@pytest.mark.parametrize("workload", sorted(WORKLOADS))
def test_a_run_adds_up_and_repeats_itself(workload: str) -> None:
    words = ["run", "--design", "silo", "--workload", workload, *SMALL]
    first, second = answer(*words), answer(*words, run=indelible)
    assert sum(first["stalls"].values()) == first["cycles"] * first["cores"]
    writes = first["pm_writes"]
    assert sum(writes["by_class"].values()) == writes["wpq_bytes"]
    assert sum(writes["bits_by_class"].values()) == writes["media_bits"]
    assert sum(first["energy_by_uj"].values()) == pytest.approx(first["energy_uj"])
    for row in (first, second):
        assert row.pop("host")["mem_ops"] > 0
    assert json.dumps(first) == json.dumps(second)
    assert answer(*words, "--seed", "2")["seed"] == 2


def test_a_run_is_shown() -> None:
    code, shown, complaints = indelible("run", "--design", "undo@x86", "--workload", "hash", *SMALL)
    assert (code, complaints) == (0, "")
    assert "window core, domain adr" in shown
    labels = ("throughput", "commit", "core time", "caches", "ordering", "PM writes", "WPQ")
    for label in (*labels, "PM banks", "write set", "repeat"):
        assert f"\n{label}" in shown


def test_a_busy_memory_is_seen_to_be_busy() -> None:
    words = ["--workloads", "hash", "--txs", "300", "--no-crash"]
    words += ["--designs", "undo@x86", "--cores", "1,8", "--metric", "pm-busy"]
    one, eight = sorted(answer("compare", *words)["rows"], key=lambda row: row["cores"])
    for path in (("pm_banks", "busy_share"), ("controllers", "wpq_entries_mean")):
        few, many = (row[path[0]][path[1]] for row in (one, eight))
        assert 0 < few < many, path
    assert one["caches"]["from_other_cores"] == 0 < one["caches"]["fences"]


def test_a_comparison_from_words_to_figure(tmp_path: Path) -> None:
    figure = tmp_path / "figure.png"
    words = ["--designs", "native,undo@x86,silo", "--workloads", "hash,btree", *SMALL]
    code, shown, complaints = indelible("compare", *words, "--plot", str(figure))
    assert (code, complaints) == (0, "")
    assert "gmean" in shown
    assert "none†" in shown
    assert "ok 400" in shown
    assert figure.stat().st_size > 10_000


def test_several_seeds_are_compared_seed_by_seed() -> None:
    words = ["compare", "--designs", "undo@x86,silo", "--workloads", "hash", *SMALL, "--no-crash"]
    words += ["--seed", "4", "--seeds", "3"]
    speeds = {"undo@x86": {}, "silo": {}}
    found = answer(*words)
    for row in found["rows"]:
        speeds[row["design"]][row["seed"]] = row["throughput_tx_per_s"]
    assert len({*speeds["silo"].values()}) == 3
    # A row is the run that its seed gives alone.
    alone = ["run", "--design", "silo", "--workload", "hash", *SMALL, "--seed", "5"]
    assert answer(*alone)["throughput_tx_per_s"] == speeds["silo"][5]
    ratios = [speeds["silo"][seed] / speeds["undo@x86"][seed] for seed in (4, 5, 6)]
    mean = math.prod(ratios) ** (1 / 3)
    assert found["cells"][1]["normalized"] == pytest.approx(mean, rel=1e-12)
    code, shown, complaints = indelible(*words)
    assert (code, complaints) == (0, "")
    line = next(line for line in shown.splitlines() if line.startswith("hash"))
    assert line.split()[2].strip("~") == f"{mean:.2f}"
    # Of three values, t is 4.303.
    width = 4.303 * statistics.stdev(ratios) / math.sqrt(3)
    line = next(line for line in shown.splitlines() if line.startswith("± 95 %  "))
    assert float(line.split()[4]) == pytest.approx(width, abs=0.006)


def test_silo_survives_every_power_cut() -> None:
    words = ["crash", "--design", "silo", "--workload", "scribble", "--txs", "100"]
    found = answer(*words, "--points", "all")
    assert found["points"] > 100
    assert found["violations"] == []


@pytest.mark.parametrize("workload", sorted(WORKLOADS))
def test_every_workload_fits_the_machine_of_the_verdicts(workload: str) -> None:
    words = ["--workload", workload, "--points", "50", "--no-nested"]
    for design in ("silo", "undo@x86"):
        found = answer("crash", "--design", design, *words)
        assert (found["points"], found["violations"]) == (50, [])


def test_litmus_tests_hold(tmp_path: Path) -> None:
    found = answer("litmus")
    assert {row["order"] for row in found["rows"]} >= {"bbb", "dpo", "eadr", "hops", "ideal", "x86"}
    mine = tmp_path / "mine.litmus"
    mine.write_text("thread\nstore A 1\norder\nstore B 1\nimage A=0 B=1\n", encoding="utf-8")
    rows = answer("litmus", "--order", "x86", "--order", "ideal", str(mine))["rows"]
    assert [(row["allowed"], row["seen"]) for row in rows] == [(False, False), (True, True)]
    mine.write_text("thread\nstor A 1\n", encoding="utf-8")
    code, _, complaints = indelible("litmus", str(mine))
    assert (code, "mine.litmus, line 2: unknown word `stor`" in complaints) == (2, True)


def test_no_logging_is_no_durability() -> None:
    words = ["crash", "--design", "native", "--workload", "scribble", "--txs", "100"]
    code, shown, _ = indelible(*words)
    assert code == 1
    assert "stopped after 5" in shown
    assert "who stored there:\n      core " in shown
    code, shown, _ = indelible(*words, "--json")
    assert code == 1
    violations = json.loads(shown)["violations"]
    again = shlex.split(violations[0]["replay"])
    code, shown, _ = indelible(*again[1:], "--json")
    assert (code, json.loads(shown)["violations"]) == (1, violations)


def test_a_mutant_is_caught_again() -> None:
    found = answer("crash", "--design", "silo", "--workload", "scribble", "--mutants")
    assert found["mutants"]
    for mutant in found["mutants"]:
        assert mutant["caught"], mutant
        again = shlex.split(mutant["replay"])
        code, shown, complaints = here(*again[1:], "--json")
        assert code == 1, complaints
        assert json.loads(shown)["violations"][0]["text"] == mutant["text"]


RUN = ["run", "--design", "silo", "--workload", "hash"]

#: Words, and what the sentence on stderr has in it.
BAD = {
    "design": (["run", "--design", "sillo", "--workload", "hash"], ["design", "sillo", "`silo`"]),
    "workload": (["run", "--design", "silo", "--workload", "hsah"], ["workload", "`hash`"]),
    "machine": ([*RUN, "--machine", "silos"], ["machine", "`silo`"]),
    "field": ([*RUN, "--set", "controller.wqp=4"], ["wqp"]),
    "section": ([*RUN, "--set", "controler.wpq=4"], ["controler"]),
    "no_cores": ([*RUN, "--cores", "0"], ["cores", "0", "1"]),
    "metric": (["compare", "--metric", "speed"], ["metric", "speed", "throughput"]),
    "kind": (["list", "desings"], ["desings", "designs"]),
    "parameter": ([*RUN, "--set", "design.entires=4"], ["entires", "`entries`", "silo"]),
    "of_workload": ([*RUN, "--set", "workload.itmes=4"], ["itmes", "`items`", "hash"]),
    "range": ([*RUN, "--set", "design.entries=0"], ["entries", "`0`", "1 to 4096"]),
    "choice": ([*RUN, "--set", "controller.domain=none"], ["domain", "`none`", "eadr"]),
    "txs": ([*RUN, "--txs", "0"], ["txs", "0", "1"]),
    "cores": ([*RUN, "--cores", "9999"], ["cores", "9999", "1 to 8"]),
    "wpq": ([*RUN, "--set", "controller.wpq=0"], ["write_buffer_size", "`0`", "1 to 4096"]),
    "ways": ([*RUN, "--set", "l1d.size=4KiB", "--set", "l1d.assoc=3"], ["l1d", "3"]),
    "unit": ([*RUN, "--set", "l1d.size=many"], ["l1d.size", "many"]),
    "name": (["explain", "sillo"], ["sillo", "silo"]),
    "memory": (
        [*RUN, "--machine", "tiny", "--set", "workload.items=1000000"],
        ["needs 17.1 MiB", "is free", "--set pm.device_size"],
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_a_sentence(name: str) -> None:
    words, pieces = BAD[name]
    code, shown, complaints = indelible(*words)
    assert (code, shown) == (2, ""), complaints
    for piece in pieces:
        assert piece in complaints
    assert complaints.count("\n") == 1


def test_a_bad_script_is_told_with_its_line(tmp_path: Path) -> None:
    script = tmp_path / "bad.sql"
    script.write_text("create table t(x);\ninsert into t values (1);\nselct 1;\n")
    code, _, complaints = indelible("run", "--design", "silo", "--sql", str(script), *SMALL)
    assert (code, "syntax error" in complaints, "line 3" in complaints) == (2, True, True)
    script.write_text("create table t(x);\n\ninsert into u values (1);\n")
    code, _, complaints = indelible("run", "--design", "silo", "--sql", str(script), *SMALL)
    assert (code, "no such table: u" in complaints, "line 3" in complaints) == (2, True, True)
    properties = tmp_path / "bad.properties"
    properties.write_text("recordcount=100\noperationcount=ten\n")
    words = ["run", "--design", "silo", "--ycsb", str(properties), *SMALL]
    code, _, complaints = indelible(*words)
    assert (code, "line 2" in complaints, "`ten`" in complaints) == (2, True, True)
    trace = tmp_path / "bad.trace"
    trace.write_text("begin\nstore 0 one\n")
    code, _, complaints = indelible("run", "--design", "silo", "--replay", str(trace), *SMALL)
    assert (code, "line 2" in complaints, "`one`" in complaints) == (2, True, True)


def test_a_property_file_says_how_long_a_run_is(tmp_path: Path) -> None:
    properties = tmp_path / "short.properties"
    properties.write_text("recordcount=100\noperationcount=301\nfieldlength=16\n")
    file = {"ycsb": str(properties)}
    assert run("native", "ycsb", cores=2, **file).txs == 302, "of all cores, rounded up"
    assert run("native", "ycsb", cores=2, txs=7, **file).txs == 14, "what is asked for counts"
    properties.write_text("recordcount=100\nfieldlength=16\n")
    assert run("native", "ycsb", cores=2, **file).txs == 4_000, "the file does not say"


def test_the_power_is_cut_at_one_event_alone() -> None:
    every = crash("undo@x86", "hash", txs=20, lives=1)
    one = crash("undo@x86", "hash", txs=20, event=150)
    assert (one.data["points"], one.data["lives"]) == (1, 1)
    assert one.data["crash_points"] == every.data["crash_points"] > 150
    assert "left" not in every.data
    acknowledged = [core["acknowledged"] for core in one.data["left"]]
    later = crash("undo@x86", "hash", txs=20, event=300).data["left"]
    assert all(one["acknowledged"] > n for one, n in zip(later, acknowledged, strict=True))
    assert one.campaign.command().endswith("--txs 20 --seed 1 --event 150")
    # A violation is at the same event.
    wrong = crash("undo@x86", "hash", txs=20, without="flush_log").violations[0]
    again = crash("undo@x86", "hash", txs=20, without="flush_log", event=wrong["event"]).violations[
        0
    ]
    assert (again["event"], again["cycle"]) == (wrong["event"], wrong["cycle"])
    for others in ({"points": 9}, {"lives": 2}, {"mutants": True}, {"trials": 3}):
        with pytest.raises(InputError, match="--event cuts the power once"):
            crash("undo@x86", "hash", txs=20, event=150, **others)
    with pytest.raises(InputError, match="no event 999999; its crash points are 1 to"):
        crash("undo@x86", "hash", txs=20, event=999_999)


def test_five_lines_print_what_the_readme_says(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    text = README.read_text(encoding="utf-8")
    behind = text.partition("## Silo in five lines")[2].partition("Only the line `host`")[0]
    lines, said = behind.split("They print:")
    code = "\n".join(line[4:] for line in lines.splitlines() if line.startswith("    "))
    exec(compile(code, str(README), "exec"), {})
    shown = capsys.readouterr().out

    def kept(text: str) -> str:
        # How long the campaign took also decides where its line is wrapped.
        words = " ".join(re.sub(r"(?m)^ *host .*", "", text).split())
        return re.sub(r"\([\d.]+ [mu]?s, [\d.]+ [kM]?points/s\)", "", words)

    # `...` stands for what is left out.
    parts = map(re.escape, kept(said).split(" ... "))
    assert re.fullmatch(".*".join(parts), kept(shown))


def test_a_latency_that_no_transaction_has_is_none() -> None:
    code, shown, _ = indelible("run", "--design", "loc-wal", *RUN[3:], "--cores", "1", "--txs", "5")
    assert (code, "p50 -  p99 -  max -  mean - cycles, until durable" in shown) == (0, True)
    assert "no transaction was durable when the run ended" in " ".join(shown.split())
    compared = compare(
        ["loc-wal", "silo"], ["hash"], cores=1, txs=3, metric="commit-latency", crash=False
    )
    (late, _) = compared.json()["rows"]
    assert late["commit_latency_cycles"] == dict.fromkeys(
        ("mean", "p50", "p90", "p99", "p999", "max")
    )
    assert late["normalized"] is None


def test_what_gives_room_goes_with_a_campaign(tmp_path: Path) -> None:
    path = tmp_path / "big.sql"
    path.write_text("CREATE TABLE t(a);\nINSERT INTO t VALUES (zeroblob(9000000));\n")
    for settings, kind in (({}, "untested"), ({"pm.device_size": "64MiB"}, "ok")):
        compared = compare(["silo"], ["sqlite"], cores=1, txs=3, sql=str(path), set=settings)
        assert compared.verdict("silo", 1).kind == kind


def test_a_trace_is_replayed_and_its_crash_test_is_named_with_it(tmp_path: Path) -> None:
    trace = tmp_path / "my trace"
    trace.write_text("begin\nstore 0 1\nstore 64 ?\ncommit\n")
    words = ["run", "--design", "silo", "--replay", str(trace), "--cores", "2", "--txs", "30"]
    code, shown, _ = indelible(*words)
    named = " ".join(shown.replace("\\\n", " ").split())
    assert (code, f"crash --design silo --workload replay --replay '{trace}'" in named) == (0, True)
    assert "--check" not in named, "the oracle knows what its transactions store"
    found = crash("silo", replay=str(trace), txs=30)
    assert not found.data["violations"]
    assert found.data["lives"] == 1


@pytest.mark.parametrize("store", ["store 0 1", "begin\nstore 64 1\ncommit\nstore 0 1"])
def test_where_no_transaction_stores_the_crash_test_of_a_trace_has_a_checker(
    tmp_path: Path, store: str
) -> None:
    trace = tmp_path / "a.trace"
    trace.write_text(f"region 0 64\nmeasured\n{store}\nflush 0\nfence\n")
    words = ["run", "--design", "undo@x86", "--replay", str(trace), "--cores", "1", "--txs", "20"]
    code, shown, _ = indelible(*words)
    named = shown.partition("crash test")[2].partition("repeat")[0].replace("\\\n", " ").split()
    assert (code, named[-2:]) == (0, ["--check", "COMMAND"])
    again = [*named[1:-2], "--check", LOOKS]
    code, shown, _ = indelible(*again)
    assert (code, "ok: every one recovered" in shown) == (0, True)


def test_a_trace_of_which_nothing_is_promised_is_not_called_crash_safe(tmp_path: Path) -> None:
    trace = tmp_path / "list.trace"
    trace.write_text("region 0 64\nstore 0 1\nflush 0\nfence\n")
    words = ["--design", "silo", "--replay", str(trace), "--cores", "1", "--txs", "20"]
    code, shown, _ = indelible("crash", *words)
    assert (code, "nothing was checked" in shown, "ok" in shown) == (2, True, False)
    assert "with --check COMMAND the program's own recovery" in " ".join(shown.split())
    compared = compare(["silo"], ["replay"], cores=1, txs=20, replay=str(trace))
    verdict = compared.verdict("silo", 1)
    assert (verdict.kind, "nothing to check" in (verdict.reason or "")) == ("untested", True)


def recorded(folder: Path, name: str, *flags: str) -> tuple[str, str]:
    """Build the example that is checked, and return its program and what it recorded."""
    source = Path(__file__).parents[2] / "examples/checked/log.c"
    program, trace = folder / name, folder / f"{name}.trace"
    words = ["cc", "-Wall", "-Wextra", "-Werror", *flags, "-o", str(program), str(source)]
    subprocess.run(words, check=True)
    trace.write_bytes(subprocess.run([program], check=True, capture_output=True).stdout)
    return str(program), str(trace)


def test_a_program_checks_what_power_failures_leave_of_its_trace(tmp_path: Path) -> None:
    program, trace = recorded(tmp_path, "log")
    words = ["crash", "--design", "undo@x86", "--replay", trace, "--check", program]
    code, shown, _ = indelible(*words)
    assert (code, "ok: every one recovered" in shown) == (0, True)
    assert re.search(r"checker     run on [\d,]+ different images", shown)
    needed = crash("undo@x86", replay=trace, check=program, leave_out="all").data["left_out"]
    lines = {each["operation"]: each["source"].partition(":")[0] for each in needed}
    assert lines == {"flush": "log.c", "fence": "log.c"}
    assert [(each["times"], each["noticed"]) for each in needed] == [(12, True)] * 4
    program, trace = recorded(tmp_path, "bad", "-DFORGETS_A_FLUSH")
    found = {
        design: crash(design, replay=trace, check=program)
        for design in ("undo@x86", "undo@hops", "undo@eadr")
    }
    assert [answer.failed for answer in found.values()] == [True, False, False]
    campaign = found["undo@x86"]
    assert "record 1 of 1 is damaged" in campaign.data["violations"][0]["text"]
    again = shlex.split(campaign.campaign.command())[1:]
    code, shown, _ = indelible(*again, "--images", str(tmp_path / "images"))
    assert code == 1
    first = campaign.data["violations"][0]
    (told,) = re.findall(r"^timeline +indelible ((?:.*\\\n)*.*)$", shown, re.MULTILINE)
    assert shlex.split(told.replace("\\\n", " ")) == shlex.split(first["timeline"])[1:]
    assert "it shows the run, and not which of the stores" in " ".join(shown.split())
    code, listed, _ = indelible(*shlex.split(first["timeline"])[1:])
    assert code == 0
    # The store behind which the power failed is the last one.
    stores = re.findall(r"^ *(\d+) .* store 0x", listed, re.MULTILINE)
    assert 0 <= first["cycle"] - int(stores[-1]) <= 1
    kept = sorted((tmp_path / "images").iterdir())
    assert kept
    assert f"kept in {kept[0]}" in re.sub(r"\s+", " ", shown)
    assert all(subprocess.run([program, image], check=False).returncode == 1 for image in kept)


def test_a_checker_hears_nothing_that_this_trace_does_not_say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("INDELIBLE_MARK_7", "of another one")
    (tmp_path / "a.trace").write_text("region 0 64\nmeasured\nstore 0 1\nmark done\n")
    check = ["--check", f'heard() {{ test -z "$INDELIBLE_MARK_7" && {LOOKS} "$1"; }}; heard']
    code, shown, _ = indelible(
        "crash", "--design", "undo@x86", "--replay", str(tmp_path / "a.trace"), *check
    )
    assert (code, "FAIL" in shown) == (0, False)


@pytest.mark.alone
def test_the_start_is_quick() -> None:
    # In the processor's time: a host that is busy is no slow start.
    def once() -> float:
        begin = os.times()
        assert indelible("--help")[0] == 0
        return sum(os.times()[2:4]) - sum(begin[2:4])

    assert min(once() for _ in range(5)) < 0.5


def test_a_panic_is_a_message() -> None:
    ask = "from indelible import _core; _core.fail('the queue holds 65')"
    process = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True)
    assert "InternalError: the queue holds 65 (crates/python/src/lib.rs:" in process.stderr
    assert "thread" not in process.stderr
