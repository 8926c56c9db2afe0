"""The command with canned answers: exit codes, pure JSON, and sentences for bad input."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

import indelible
from indelible.cli import main
from indelible.means import geometric_mean
from indelible.metrics import METRICS

Command = Callable[..., tuple[int, str, str]]

RUN = ["run", "--design", "silo", "--workload", "btree"]
CRASH = ["crash", "--design", "silo", "--workload", "btree"]
SWEPT = ["--designs", "silo", "--workloads", "btree", "--vary", "silo.entries=4,8"]


@pytest.mark.parametrize(
    "words",
    [
        ["list"],
        ["list", "designs"],
        ["explain", "silo"],
        ["battery", "--designs", "silo", "--cores", "4"],
        ["characterize", "--workloads", "hash,btree"],
        RUN,
        CRASH,
        [*CRASH, "--mutants"],
        ["compare", "--designs", "native,leaky", "--workloads", "all", "--cores", "1,8"],
        ["sweep", "--designs", "silo", "--workloads", "all", "--vary", "design.entries=1,2"],
        ["trace", *RUN[1:]],
        ["native", "logging"],
        ["native", "logging", "--against", "tiny"],
    ],
)
def test_json_is_one_object_and_nothing_else(command: Command, words: list[str]) -> None:
    _, shown, complaints = command(*words, "--json", "--seed", "7")
    assert isinstance(json.loads(shown), dict)
    assert complaints == ""


def test_list_is_rows(command: Command) -> None:
    rows = json.loads(command("list", "designs", "--json")[1])["rows"]
    assert {"name", "family", "paper", "durability", "granularity"} <= rows[0].keys()
    kinds = {row["kind"] for row in json.loads(command("list", "--json")[1])["rows"]}
    assert kinds == {"design", "order", "workload", "profile", "machine"}


def test_what_is_normalized_to_is_compared_too(command: Command) -> None:
    words = ["compare", "--designs", "silo,undo@x86", "--workloads", "hash"]
    answer = json.loads(command(*words, "--normalize", "native", "--no-crash", "--json")[1])
    named = [(row["design"], row["normalized"]) for row in answer["rows"]]
    assert [design for design, _ in named] == ["native", "silo", "undo@x86"]
    assert named[0][1] == 1.0


def test_compare_rows_are_runs_with_a_verdict(command: Command) -> None:
    words = ["compare", "--designs", "native,undo@x86,leaky", "--workloads", "hash,btree"]
    code, shown, _ = command(*words, "--cores", "1,8", "--json")
    answer = json.loads(shown)
    assert code == 1, "leaky fails its campaign"
    assert [(r["cores"], r["workload"], r["design"]) for r in answer["rows"]][:4] == [
        (1, "hash", "native"),
        (1, "hash", "undo@x86"),
        (1, "hash", "leaky"),
        (1, "btree", "native"),
    ]
    by_cell = {(r["design"], r["workload"]): r["crash"] for r in answer["rows"]}
    assert by_cell["native", "hash"]["verdict"] == "none"
    assert by_cell["undo@x86", "hash"]["verdict"] == "ok"
    assert by_cell["leaky", "btree"]["violations"] == 5
    assert "indelible crash --design leaky" in by_cell["leaky", "btree"]["command"]
    means = {(row["design"], row["cores"]): row["value"] for row in answer["gmean"]}
    assert means["undo@x86", 8] == pytest.approx(0.4)
    assert (answer["metric"], answer["normalize"]) == ("throughput", "native")


def test_what_was_published_stands_beside_what_is_written(
    command: Command, fake: ModuleType
) -> None:
    words = ["characterize", "--set", "workload.value=64", "--seed", "3", "--json"]
    answer = json.loads(command(*words)[1])
    names = "workload lines_avg lines_max pages_avg pages_max words_avg words_max"
    assert [*answer["rows"][0]] == [*names.split(), "stores_avg", "pm_share", "published"]
    assert [row["workload"] for row in answer["rows"]] == ["btree-rand", "hash"]
    assert answer["rows"][0]["published"] == {"lines": 10, "pages": 6, "pages_max": 21}
    runs = [spec for kind, spec in fake.asked if kind == "run"]
    assert {(spec["design"], spec["machine"], spec["epochs"]) for spec in runs} == {
        ("native", "ssp", True)
    }
    assert [spec["settings"] for spec in runs] == [{"workload.value": "64"}] * 2
    assert [(spec["cores"], spec["txs"], spec["seed"]) for spec in runs] == [(1, 20_000, 3)] * 2
    rows = indelible.characterize(["ycsb"], "silo", txs=10)["rows"]
    assert (rows[0]["workload"], rows[0]["published"]) == ("ycsb", None)


def test_what_a_script_writes_is_characterized(
    command: Command, fake: ModuleType, tmp_path: Path
) -> None:
    script = tmp_path / "mine.sql"
    script.write_text("CREATE TABLE t(a);\n-- measured\nINSERT INTO t VALUES(1);\n")
    for words, asked in (((), ["sqlite"]), (("--workloads", "hash,sqlite"), ["hash", "sqlite"])):
        fake.asked.clear()
        command("characterize", "--sql", str(script), *words)
        runs = [spec for kind, spec in fake.asked if kind == "run"]
        assert [spec["workload"] for spec in runs] == asked
        assert [spec.get("script") is not None for spec in runs] == [w == "sqlite" for w in asked]
    code, _, error = command("characterize", "--sql", str(script), "--workloads", "hash")
    assert code == 2
    assert "--sql is for the workload `sqlite`, not for `hash`" in error


def test_a_campaign_is_run_once_for_all_core_counts(command: Command, fake: ModuleType) -> None:
    command("compare", "--designs", "silo", "--workloads", "hash", "--cores", "2,4,8")
    crashes = [spec for kind, spec in fake.asked if kind == "crash"]
    assert [(spec["machine"], spec["cores"], spec["points"]) for spec in crashes] == [
        ("tiny", 2, 200)
    ]


def test_settings_of_the_machine_stay_with_it(command: Command, fake: ModuleType) -> None:
    words = ["--set", "controller.wpq=8", "--set", "design.entries=4"]
    command("compare", "--designs", "silo", "--workloads", "hash", *words)
    settings = {kind: spec["settings"] for kind, spec in fake.asked}
    assert settings["run"] == {"controller.wpq": "8", "design.entries": "4"}
    assert settings["crash"] == {"design.entries": "4"}


def test_files_go_to_the_workload_that_reads_them(
    command: Command, fake: ModuleType, tmp_path: Path
) -> None:
    (tmp_path / "mine.sql").write_text("select 1;")
    sql = str(tmp_path / "mine.sql")
    assert command("run", "--design", "silo", "--sql", sql)[0] == 0
    assert fake.asked[-1][1]["workload"] == "sqlite"
    command("compare", "--designs", "silo", "--workloads", "hash,sqlite", "--sql", sql)
    scripts = {spec["workload"]: spec.get("script") for _, spec in fake.asked}
    assert scripts == {"sqlite": [sql, "select 1;"], "hash": None}


def test_files_of_two_workloads_for_one_run_are_refused(command: Command, tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("# what counts\n")
    files = [word for flag in ("--sql", "--ycsb") for word in (flag, str(tmp_path / "mine"))]
    code, _, error = command("run", "--design", "silo", *files)
    assert code == 2
    assert error.strip() == (
        "indelible: error: --sql and --ycsb are for different workloads; keep one"
    )


@pytest.mark.parametrize("flag", ["--sql", "--ycsb"])
def test_a_byte_order_mark_is_none_of_the_text(
    command: Command, fake: ModuleType, tmp_path: Path, flag: str
) -> None:
    mine = tmp_path / "mine"
    mine.write_text("# what counts\n", encoding="utf-8-sig")
    assert command("run", "--design", "silo", flag, str(mine))[0] == 0
    assert fake.asked[-1][1]["script"] == [str(mine), "# what counts\n"]


def test_figures_and_rows_are_written(command: Command, tmp_path: Path) -> None:
    starts = {".png": b"\x89PNG", ".svg": b"<?xml", ".pdf": b"%PDF"}
    for suffix, start in starts.items():
        figure, rows = tmp_path / f"figure{suffix}", tmp_path / "rows.csv"
        words = ["--plot", str(figure), "--csv", str(rows), "--cores", "1,8"]
        code, _, _ = command("compare", "--designs", "native,silo,leaky", *words)
        assert code == 1
        assert figure.read_bytes().startswith(start)
        with rows.open() as lines:
            table = list(csv.DictReader(lines))
        assert len(table) == 2 * 4 * 3
        assert table[0]["pm_writes.media_lines"].isdigit()
        assert table[0]["crash.verdict"] == "none"
    assert b"/CIDFontType2" in (tmp_path / "figure.pdf").read_bytes(), "Type 42, not Type 3"
    svg = (tmp_path / "figure.svg").read_text()
    assert "leaky! (not crash-safe)" in svg
    assert "gmean" in svg


def test_the_same_rows_give_the_same_figure(command: Command, tmp_path: Path) -> None:
    words = ["compare", "--designs", "native,silo", "--plot"]
    for suffix in (".png", ".svg", ".pdf"):
        paths = [tmp_path / f"{name}{suffix}" for name in ("one", "two")]
        for path in paths:
            command(*words, str(path))
        assert paths[0].read_bytes() == paths[1].read_bytes()


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_any_encoding_will_do(
    fake: ModuleType, monkeypatch: pytest.MonkeyPatch, encoding: str
) -> None:
    streams = [io.TextIOWrapper(io.BytesIO(), encoding=encoding) for _ in range(2)]
    monkeypatch.setattr(sys, "stdout", streams[0])
    monkeypatch.setattr(sys, "stderr", streams[1])
    words = ["compare", "--designs", "native,undo@x86", "--workloads", "logcache-cached"]
    assert main([*words, "--cores", "1", "--native", "--machine", "mä→.toml"]) == 2
    assert main([*words, "--cores", "1", "--native", "--machine", "silo"]) == 0
    for stream in streams:
        stream.flush()
    shown, complaints = (stream.buffer.getvalue().decode(encoding) for stream in streams)
    dot, dagger, double, letters = {
        "ascii": (".", "+", "#", "m??.toml"),
        "latin-1": (".", "+", "#", "mä?.toml"),
        "utf-8": ("·", "†", "‡", "mä→.toml"),
    }[encoding]
    assert f"machine silo {dot} window core" in shown
    assert f"native{dagger}  undo@x86" in shown
    assert f"this CPU{double}" in shown
    assert f"unknown machine `{letters}`" in complaints


def test_findings_come_with_the_command_that_repeats_them(command: Command) -> None:
    words = ["--txs", "300", "--seed", "7", "--set", "design.entries=4", "--points", "all"]
    asked = ["crash", "--design", "leaky", "--workload", "btree", *words, "--mutants"]
    code, shown, _ = command(*asked, "--json")
    answer = json.loads(shown)
    assert code == 1
    assert {row["replay"] for row in answer["violations"]} == {
        "indelible crash --design leaky --workload btree --machine tiny --cores 2 --txs 300"
        " --seed 7 --set design.entries=4 --points all --lives 2"
    }
    assert [row["replay"] for row in answer["mutants"]] == [
        "indelible crash --design leaky --workload btree --machine tiny --cores 2 --txs 20"
        " --seed 1 --without log_first --no-nested --lives 2",
        "indelible crash --design leaky --workload scribble --machine tiny --cores 4 --txs 40"
        " --seed 12 --set design.entries=4 --set llc.size=256B --without flush_bit --lives 2",
    ]


def test_one_rule_is_switched_off(command: Command, fake: ModuleType) -> None:
    command(*CRASH, "--without", "log_first")
    assert fake.asked[-1][1]["without"] == "log_first"
    command(*CRASH)
    assert "without" not in fake.asked[-1][1]


def test_exit_codes_of_crash(command: Command) -> None:
    assert command(*CRASH, "--mutants")[0] == 0
    assert command("crash", "--design", "leaky", "--workload", "btree")[0] == 1
    uncaught = ["crash", "--design", "redo@x86", "--workload", "btree", "--mutants"]
    code, shown, _ = command(*uncaught)
    assert (code, "WRONG WITH IT" in shown) == (1, True)


def test_litmus_tests_are_files_or_those_that_there_are(
    command: Command, fake: ModuleType, tmp_path: Path
) -> None:
    assert command("litmus")[0] == 0
    unasked = {"random": 0, "mutants": False, "program": None, "without": None}
    unasked |= {"timelines": False}
    assert fake.asked[-1][1] == {"orders": [], "tests": [], "seed": 1, **unasked}
    mine = tmp_path / "mine.litmus"
    mine.write_text("thread\n", encoding="utf-8")
    code, shown, _ = command("litmus", "--order", "hops", str(mine), "--seed", "7", "--json")
    assert fake.asked[-1][1] == {
        "orders": [{"name": "hops", "settings": []}],
        "tests": [[str(mine), "thread\n"]],
        "seed": 7,
        **unasked,
    }
    assert (code, [row["test"] for row in json.loads(shown)["rows"]]) == (0, ["mine.litmus"])


def test_files_of_one_name_have_a_row_each(command: Command, tmp_path: Path) -> None:
    files = [tmp_path / name / "t.litmus" for name in ("a", "b")]
    for file in files:
        file.parent.mkdir()
        file.write_text("thread\n", encoding="utf-8")
    alone = tmp_path / "alone.litmus"
    alone.write_text("thread\n", encoding="utf-8")
    words = ["--order", "hops", "--order", "torn", "--order", "hops"]
    code, shown, _ = command("litmus", *words, *map(str, [*files, alone]), columns=200)
    assert code == 1
    table = [line.split() for line in shown.splitlines() if line.endswith("WRONG")]
    assert [row[0] for row in table] == [*map(str, files), "alone.litmus"]
    assert [row[-2:] for row in table] == [["no", "WRONG"]] * 3
    for name in (*files, "alone.litmus"):
        assert f"{name} on torn: " in shown


def test_images_of_one_test_share_its_name_and_its_runs(command: Command) -> None:
    shown = command("litmus", "--order", "ideal", "--order", "torn", columns=200)[1]
    more = command("litmus", "--order", "ideal", "--order", "torn", "--timelines", columns=200)[1]
    heads = [line.split()[0] for line in more.splitlines() if line.endswith("WRONG")]
    assert heads == ["two_stores", "A=1", "older_value_returns"]
    checked = [line for line in shown.splitlines() if line.startswith("checked")]
    assert [line for line in more.splitlines() if line.startswith("checked")] == checked
    # What is wrong is told once, however many images the test asks about.
    wrong = [text.count("WRONG       two_stores on torn") for text in (shown, more)]
    assert wrong == [1, 1]
    seen = [line for line in more.splitlines() if line.startswith("seen        A=")]
    both = ("A=0 B=1", "A=1 B=0")
    assert seen == [f"seen        {image} in two_stores on ideal" for image in both]


def test_settings_of_litmus_tests_are_for_all_hardware_or_for_one(
    command: Command, fake: ModuleType
) -> None:
    words = ["--set", "hops.entries=1", "--set", "controller.count=2"]
    shown = command("litmus", *words, "--without", "fence_waits")[1]
    count = ["controller.count", "2"]
    own = {"bbb": [count], "hops": [["design.entries", "1"], count], "ideal": [count]}
    asked = fake.asked[-1][1]
    assert {order["name"]: order["settings"] for order in asked["orders"]} == own
    assert asked["without"] == "fence_waits"
    repeated = " ".join(shown.replace("\\\n", "").split())
    assert repeated.endswith(f"--without fence_waits {' '.join(words)} --seed 1")
    command("litmus", *words, "--order", "ideal", "--order", "hops", "--program", "7")
    asked = fake.asked[-1][1]
    assert [order["name"] for order in asked["orders"]] == ["ideal", "hops"]
    assert (asked["orders"][0]["settings"], asked["program"]) == ([count], 7)


def test_exit_codes_of_litmus(command: Command) -> None:
    assert command("litmus", "--order", "ideal")[0] == 0
    assert command("litmus", "--order", "hops", "--random", "9", "--mutants")[0] == 0
    for order in ("leaky", "torn"):
        code, shown, _ = command("litmus", "--order", order)
        assert (code, "WRONG" in shown) == (1, True)


#: Words, and what the sentence on stderr says.
BAD = {
    "order": (["litmus", "--order", "hop"], "unknown ordering hardware `hop`; did you mean"),
    "litmus": (["litmus", "no.litmus"], "error: no.litmus: no such file or directory"),
    "program": (
        ["litmus", "--program", "7", "--mutants"],
        "`program` runs one random program alone",
    ),
    "one rule": (
        ["litmus", "--without", "a", "--mutants"],
        "`mutants` switches off every rule, and",
    ),
    "command": (["rnu"], "unknown command `rnu`; did you mean `run`?"),
    "option": ([*RUN, "--desgin", "x"], "unknown option `--desgin` of `indelible run`; did you"),
    "before": (["--json", "list"], "`--json` comes after the command: `indelible list --json`"),
    "value_before": (
        ["--seed", "3", "run"],
        "options come after the command: `indelible run --seed ...`",
    ),
    "no_command": (["--seed", "3"], "come after the command: `indelible COMMAND --seed ...`"),
    "abbreviation": ([*RUN, "--mach", "tiny"], "unknown option `--mach`"),
    "word": ([*RUN, "silo"], "unexpected `silo`; `indelible run --help` has the options"),
    "space": (
        ["compare", "--designs", "undo@x86,", "silo", "--workloads", "hash"],
        "unexpected `silo`: a list has no spaces, undo@x86,silo",
    ),
    "no_design": (["run", "--workload", "hash"], "needs --design; `indelible list designs`"),
    "no_workload": (["run", "--design", "silo"], "needs --workload; `indelible list workloads`"),
    "no_value": (["run", "--design"], "--design: expected one argument"),
    "no_name": (["explain"], "needs a name"),
    "kind": (["list", "desings"], "unknown kind `desings`; there are: designs"),
    "design": (["run", "--design", "sillo", "--workload", "hash"], "unknown design `sillo`"),
    "battery": (["battery", "--designs", "sillo"], "unknown design `sillo`"),
    "characterize": (["characterize", "--workloads", "hsah"], "unknown workload `hsah`"),
    "designs": (["compare", "--designs", ","], "`,` is not a list of names"),
    "name": (["explain", "sillo"], "unknown name `sillo`"),
    "no_workload_s": (
        ["explain", "logcache", "--set", "controller.wpq=zzz"],
        "controller.wpq changes nothing here: `logcache` is a workload",
    ),
    "no_machine_s": (
        ["explain", "tiny", "--diff", "silo", "--set", "design.nosuch=3"],
        "design.nosuch changes nothing here: `tiny` is a machine",
    ),
    "no_design_s": (
        ["explain", "silo", "--set", "workload.order=3"],
        "workload.order changes nothing here: `silo` is a design",
    ),
    "no_order_s": (
        ["explain", "order:hops", "--set", "workload.order=3"],
        "workload.order changes nothing here: `hops` is ordering hardware",
    ),
    "metric": (["compare", "--metric", "latency"], "unknown metric `latency`; there are: commit-"),
    "base": (["compare", "--normalize", "sillo"], "unknown design `sillo`; there are: silo, "),
    "cores": ([*RUN, "--cores", "-1"], "--cores: `-1` is not a whole number from 1 up;"),
    "cores_none": ([*RUN, "--cores", "0"], "--cores: `0` is not a whole number from 1 up;"),
    "txs": ([*CRASH, "--txs", "-5"], "--txs: `-5` is not a whole number from 1 up;"),
    "cores_list_none": (["compare", "--cores", "1,0"], "--cores: `0` is not a whole number from 1"),
    "cores_empty": (["compare", "--cores", ""], "--cores: an empty string is not a list of"),
    "cores_long": ([*RUN, "--cores", "9" * 5000], "a number of 5000 digits is too large"),
    "cores_list": (["compare", "--cores", "1,x"], "--cores: `x` is not a whole number from 1"),
    "seed": ([*RUN, "--seed", "1.5"], "--seed: `1.5` is not a whole number from 0"),
    "seed_huge": ([*RUN, "--seed", "9" * 30], "--seed: a number of 30 digits is too large"),
    "set": ([*RUN, "--set", "wpq"], "`wpq` is not of the form section.field=value"),
    "points": ([*CRASH, "--points", "some"], "`some` is not a whole number from 1"),
    "sql": (["run", "--design", "silo", "--sql", "/no/such"], "--sql /no/such: no such file"),
    "ycsb": (["run", "--design", "silo", "--ycsb", "/"], "--ycsb /: is a directory"),
    "sql_use": ([*RUN, "--sql", __file__], "--sql is for the workload `sqlite`, not for `btree`"),
    "plot_suffix": (
        ["compare", "--plot", "x.gif"],
        "--plot x.gif: the name of a figure must end in one of .png, .svg",
    ),
    "plot_path": (
        ["compare", "--plot", "/no/such/x.png"],
        "--plot /no/such/x.png: there is no directory `/no/such`; make it first",
    ),
    "benchmark": (["native"], "`indelible native` needs a benchmark; type `indelible native"),
    "benchmark_name": (
        ["native", "loging"],
        "has no `loging`; type `indelible native logging`",
    ),
    "against": (["native", "logging", "--against", "silly"], "unknown machine `silly`"),
    "entries": (["native", "logging", "--entries", "x"], "`x` is not a whole number from 1"),
    "native_plot": (
        ["native", "logging", "--plot", "x.gif"],
        "the name of a figure must end in one of .png, .svg",
    ),
    "plot_folder": (["compare", "--plot", "x.png/"], "--plot x.png/: is a directory"),
    "csv_path": (["sweep", *SWEPT, "--csv", "no/x.csv"], "x.csv: there is no directory `no`; make"),
    "csv_file": (["compare", "--csv", "/dev/null/x.csv"], "/dev/null/x.csv: not a directory"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_a_sentence(command: Command, fake: ModuleType, name: str) -> None:
    words, sentence = BAD[name]
    code, shown, complaints = command(*words)
    assert (code, shown) == (2, "")
    assert sentence in complaints
    assert complaints.count("\n") == 1
    assert "Traceback" not in complaints


def test_a_place_is_told_once(fake: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    crash = fake.crash

    def in_two_orders(text: str, control: object) -> str:
        answer = json.loads(crash(text, control))
        found = [row | {"order": order} for row in answer["violations"] for order in (1, 2)]
        return json.dumps(answer | {"violations": found})

    monkeypatch.setattr(fake, "crash", in_two_orders)
    campaign = indelible.crash("leaky", "btree")
    assert len(campaign.violations) == 10
    places = re.findall(r"event [\d,]+ \(", str(campaign))
    assert len(places) == len(set(places)) == 5


def test_the_campaign_beside_a_speed_has_the_domain_of_its_machine(
    command: Command, fake: ModuleType
) -> None:
    words = ["--set", "controller.domain=media"]
    command("compare", "--designs", "silo", "--workloads", "hash", *words)
    (crash,) = [spec for kind, spec in fake.asked if kind == "crash"]
    assert (crash["machine"], crash["settings"]) == ("tiny", {"controller.domain": "media"})


def test_a_name_is_refused_before_anything_is_run(command: Command, fake: ModuleType) -> None:
    words = ["--designs", "native,silo", "--workloads", "hash,btree,ycsb,sqlite,hsah"]
    for asked in (["compare"], ["sweep", "--vary", "cores=1,2"]):
        code, _, complaints = command(*asked, *words)
        assert (code, "unknown workload `hsah`" in complaints) == (2, True)
    assert [kind for kind, _ in fake.asked if kind in ("run", "crash")] == []


def test_a_bug_is_reported_and_not_shown(
    command: Command, fake: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fake, "run", lambda *_: fake.fail("the queue holds 65 (wpq.rs:7)"))
    code, shown, complaints = command(*RUN)
    assert (code, shown) == (3, "")
    told = f"internal error: the queue holds 65 (wpq.rs:7)\nrepeat with: indelible {' '.join(RUN)}"
    assert (told in complaints, "\nplease report this, unless" in complaints) == (True, True)
    assert "Traceback" not in complaints
    monkeypatch.setenv("INDELIBLE_DEBUG", "1")
    with pytest.raises(indelible.InternalError):
        command(*RUN)


def test_an_interrupted_comparison_shows_what_it_has(
    fake: ModuleType, interrupt: Callable[[int], None]
) -> None:
    interrupt(3)
    settings = {"fake.sleep": "0.05"}
    with pytest.raises(indelible.Interrupted) as caught:
        indelible.compare(["undo@x86", "silo"], ["hash", "btree", "ycsb"], set=settings)
    partial = caught.value.partial
    assert partial.interrupted
    assert len(partial.runs) == 3
    assert "interrupted: 3 of 6 runs had ended" in str(partial)
    assert partial.gmean("silo", None) is None


@pytest.mark.parametrize("ended", [0, 1])
@pytest.mark.parametrize("words", [["compare", "--no-crash"], ["sweep", *SWEPT]])
def test_an_interruption_leaves_files_as_they_were(
    command: Command,
    interrupt: Callable[[int], None],
    tmp_path: Path,
    words: list[str],
    ended: int,
) -> None:
    interrupt(ended)
    kept, table, new = (tmp_path / name for name in ("keep.csv", "new.md", "new.svg"))
    kept.write_text("of an earlier run\n")
    files = ["--csv", str(kept), "--table", str(table), "--plot", str(new)]
    code, shown, complaints = command(*words, *files, "--set", "fake.sleep=0.05")
    assert code == 130
    assert f"interrupted: {ended} of " in shown
    unwritten = f"{kept} and {table} and {new}"
    assert complaints == f"indelible: interrupted, so nothing was written to {unwritten}\n"
    assert kept.read_text() == "of an earlier run\n"
    assert [*tmp_path.iterdir()] == [kept]


def test_python_has_the_same_words(fake: ModuleType) -> None:
    run = indelible.run("silo", "hash", cores=4, set={"controller.wpq": 8})
    assert run.throughput_tx_per_s == run.json()["throughput_tx_per_s"]
    assert "machine silo · 4 cores" in str(run)
    with pytest.raises(AttributeError, match="there is no `speed`; there are: design, workload"):
        _ = run.speed
    assert not indelible.crash("leaky", "btree").passed
    comparison = indelible.compare(["undo@x86", "silo"], ["hash", "btree"], cores=8)
    assert comparison.ratio(("silo", "hash", 8)) == pytest.approx(0.95 / 0.4)
    assert indelible.list("machines")[0]["name"] == "silo"
    assert indelible.explain("silo")["kind"] == "design"
    with pytest.raises(ValueError, match="unknown metric"):
        indelible.compare(["silo"], ["hash"], metric="speed")


def test_metrics_are_numbers_of_the_row() -> None:
    row = {
        "throughput_tx_per_s": 2e6,
        "txs": 2_003,
        "aborted": 3,
        "energy_uj": 6.0,
        "pm_writes": {"wpq_bytes": 4_000, "media_lines": 1_000, "media_bits": 7_000},
        "commit_latency_cycles": {"mean": 12.5, "p50": 11, "p99": 40, "p999": 77, "max": 90},
        "caches": {"llc_misses": 9_000},
        "pm_reads": 11_000,
        "controllers": {"pm_read_cycles": {"mean": 301.5}, "wpq_entries_mean": 60.5},
        "pm_banks": {"busy_share": 0.25},
    }
    assert {name: metric.value(row) for name, metric in METRICS.items()} == pytest.approx(
        {
            "throughput": 2e6,
            "pm-writes": 2.0,
            "media-lines": 0.5,
            "media-bits": 3.5,
            "pm-energy": 3.0,
            "commit-latency": 12.5,
            "commit-latency-p50": 11,
            "commit-latency-p99": 40,
            "commit-latency-p999": 77,
            "llc-misses": 4.5,
            "pm-reads": 5.5,
            "pm-read-latency": 301.5,
            "wpq-entries": 60.5,
            "pm-busy": 25.0,
        }
    )
    assert [name for name, metric in METRICS.items() if metric.higher_is_better] == ["throughput"]
    nothing = {**row, "aborted": 2_003}
    assert METRICS["pm-writes"].value(nothing) == 0.0


def test_geometric_mean() -> None:
    assert geometric_mean([1.0, 4.0]) == pytest.approx(2.0)
    assert geometric_mean([0.5, 2.0, 1.0]) == pytest.approx(1.0)
    assert geometric_mean([1.0, None]) is None
    assert geometric_mean([1.0, 0.0]) == 0
    assert geometric_mean([None, 0.0]) is None
    assert geometric_mean([-1.0, 1.0]) is None
    assert geometric_mean([]) is None


HELPED = ("list", "run", "battery", "characterize", "compare", "crash", "litmus", "trace", "native")


def test_help_has_examples(command: Command) -> None:
    for words in (["--help"], *([name, "--help"] for name in HELPED)):
        code, shown, _ = command(*words)
        assert code == 0
        assert "examples:\n  indelible " in shown
    assert command("--version")[1] == "indelible 0.0.0\n"
    assert os.environ["COLUMNS"] == "80"


def test_the_mean_of_ratios_of_which_one_is_0_is_0(command: Command) -> None:
    asked = ["--designs", "silo,native", "--workloads", "hash,btree"]
    asked += ["--metric", "commit-latency"]
    compared = command("compare", *asked, "--no-crash")[1]
    assert re.search(r"^gmean +1\.00 +0\.00 *$", compared, re.MULTILINE)
    found = json.loads(command("compare", *asked, "--no-crash", "--json")[1])["gmean"]
    assert [mean["value"] for mean in found] == [1, 0]
    swept = command("sweep", *asked, "--vary", "cores=1,8", "--normalize", "silo")[1]
    assert re.search(r"^ +8 +0\.00 +0\.00 +0\.00$", swept, re.MULTILINE)
