"""What a terminal shows, letter by letter. `UPDATE=1 make test-python` writes it anew."""

from __future__ import annotations

import json
import math
import os
import shlex
import textwrap
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest

import indelible
from indelible import text
from indelible.changes import Change, Refused
from indelible.cli import parser
from indelible.text import causes as causes_text
from indelible.text import explain as explain_text
from indelible.text import run as run_text

GOLDEN = Path(__file__).parent / "golden"
EVERY_DESIGN = "native,undo@ideal,undo@x86,redo@x86,hops,silo,leaky"

SHOWN = {
    "list": ["list"],
    "explain_design": ["explain", "silo"],
    "explain_machine": ["explain", "tiny"],
    "explain_order": ["explain", "order:hops"],
    "battery": ["battery"],
    "characterize": ["characterize"],
    "characterize_own": ["characterize", "--workloads", "btree-rand,ycsb", "--txs", "500"],
    "explain_two": ["explain", "tiny", "--diff", "silo"],
    "run": ["run", "--design", "silo", "--workload", "btree", "--txs", "4000"],
    "run_native": ["run", "--design", "native", "--workload", "hash", "--txs", "4000"],
    "run_latencies": ["run", "--design", "silo", "--workload", "hash", "--latencies"],
    "run_epochs": ["run", "--design", "undo@x86", "--workload", "hash", "--epochs"],
    "crash": ["crash", "--design", "silo", "--workload", "btree", "--mutants"],
    "crash_fails": ["crash", "--design", "leaky", "--workload", "btree"],
    "crash_smallest": ["crash", "--design", "leaky", "--workload", "btree", "--smallest"],
    "crash_later": ["crash", "--design", "leaky", "--workload", "hash", "--lives", "3"],
    "compare_stalls": [
        *["compare", "--designs", "native,leaky,silo", "--workloads", "hash,btree"],
        *["--normalize", "silo", "--stalls"],
    ],
    "compare_stacked_writes": [
        *["compare", "--designs", "native,leaky,silo", "--workloads", "hash,btree"],
        *["--normalize", "silo", "--writes", "--no-crash"],
    ],
    "compare_latencies": [
        *["compare", "--designs", "native,leaky,silo", "--workloads", "hash,btree"],
        *["--cores", "1,8", "--latencies", "--seeds", "2"],
    ],
    "compare_summary": [
        *("compare", "--designs", EVERY_DESIGN, "--workloads", "hash,btree"),
        *("--cores", "1,8", "--normalize", "undo@x86", "--summary"),
    ],
    "compare_summary_seeds": [
        *("compare", "--designs", "native,undo@x86,redo@x86,silo", "--workloads", "hash,sqlite"),
        *("--summary", "--seeds", "3", "--no-crash"),
    ],
    "compare_usage": [
        *["compare", "--designs", "native,leaky,silo", "--workloads", "hash,btree"],
        *["--cores", "1,8", "--usage"],
    ],
    "litmus": ["litmus"],
    "trace_list": ["trace", "--design", "silo", "--workload", "hash", "--list"],
    "litmus_fails": ["litmus", "--order", "hops", "--order", "leaky", "--order", "torn"],
    "litmus_program": [
        *("litmus", "--order", "hops", "--order", "torn", "--program", "38"),
        *("--without", "be_kind", "--set", "torn.entries=1"),
    ],
    "litmus_rules": [
        *("litmus", "--order", "hops", "--order", "ideal", "--order", "torn"),
        *("--order", "narrow", "--random", "600", "--mutants"),
    ],
    "compare": ["compare", "--cores", "8"],
    "compare_many": ["compare", "--designs", EVERY_DESIGN, "--cores", "1,8"],
    "compare_writes": ["compare", "--metric", "pm-writes", "--normalize", "silo"],
    "sweep": [
        *("sweep", "--designs", "silo,leaky,hops", "--workloads", "hash,btree"),
        *("--vary", "silo.entries=4,12,20"),
    ],
    "sweep_one": [
        *("sweep", "--designs", "silo", "--workloads", "all", "--normalize", "native"),
        *("--vary", "silo.entries=4:20:8", "--vary", "cores=1,8"),
    ],
    "sweep_three": [
        *("sweep", "--designs", "silo,leaky", "--workloads", "hash", "--normalize", "native"),
        *("--vary", "silo.entries=4,20", "--vary", "cores=1,8", "--vary", "txs=100,200"),
    ],
    "sweep_plane": [
        *("sweep", "--designs", "silo,leaky,hops,native", "--workloads", "hash,btree"),
        *("--vary", "silo.entries=4,12,20", "--vary", "leaky.entries=4,6,8,10,12,14,16"),
    ],
    "sweep_plane_zero": [
        *("sweep", "--designs", "silo,undo@x86", "--workloads", "hash", "--normalize", "native"),
        *("--vary", "silo.entries=4,12", "--vary", "cores=1,8", "--metric", "commit-latency"),
    ],
    "sweep_plane_seeds": [
        *("sweep", "--designs", "silo,leaky", "--workloads", "sqlite", "--seeds", "5"),
        *("--vary", "silo.entries=4,12,20", "--vary", "cores=1,8"),
    ],
    "sweep_zero": [
        *("sweep", "--designs", "silo,leaky", "--workloads", "hash", "--vary", "silo.entries=4,12"),
        *("--normalize", "native", "--metric", "commit-latency"),
    ],
    "sweep_first_zero": [
        *("sweep", "--designs", "native,silo", "--workloads", "hash", "--vary", "cores=1,2"),
        *("--metric", "commit-latency"),
    ],
    "sweep_seeds": [
        *("sweep", "--designs", "silo,leaky,hops", "--workloads", "hash,btree", "--seeds", "5"),
        *("--vary", "silo.entries=4,12,20", "--no-crash"),
    ],
    "sweep_seeds_unsure": [
        *("sweep", "--designs", "silo,native", "--workloads", "sqlite", "--seeds", "5"),
        *("--vary", "silo.entries=4,12"),
    ],
    "sweep_seeds_one": [
        *("sweep", "--designs", "silo", "--workloads", "hash,sqlite", "--normalize", "undo@x86"),
        *("--vary", "cores=1,8", "--vary", "silo.entries=4,20", "--seeds", "3"),
    ],
    "why": ["why", "--designs", "undo@x86,silo", "--workloads", "hash"],
    "why_failed": [
        *("why", "--designs", "silo,leaky", "--workloads", "hash,btree", "--top", "2"),
        *("--fields", "controller,silo,leaky"),
    ],
    "why_turned": [
        *("why", "--designs", "hops,redo@x86", "--workloads", "hash,btree", "--by", "4"),
        *("--metric", "pm-writes", "--fields", "controller,redo@x86", "--top", "1"),
    ],
    "why_one": [
        *("why", "--designs", "hops", "--workloads", "sqlite", "--seeds", "3", "--txs", "400"),
        *("--set", "controller.domain=eadr"),
    ],
    "native": ["native", "logging"],
    "native_against": ["native", "logging", "--entries", "1,8", "--against", "tiny"],
    "compare_seeds": ["compare", "--seeds", "5", "--seed", "3"],
    "compare_seeds_cores": [
        *("compare", "--designs", EVERY_DESIGN, "--workloads", "hash,btree,sqlite"),
        *("--cores", "1,8", "--normalize", "silo", "--seeds", "2"),
    ],
    "compare_seeds_zero": ["compare", "--metric", "commit-latency", "--no-crash", "--seeds", "3"],
    "compare_zero": ["compare", "--metric", "commit-latency", "--no-crash"],
}


@pytest.mark.parametrize("columns", [80, 100])
@pytest.mark.parametrize("name", SHOWN)
def test_shown(command: Callable[..., tuple[int, str, str]], name: str, columns: int) -> None:
    _, shown, complaints = command(*SHOWN[name], columns=columns)
    assert complaints == ""
    assert max(map(len, shown.splitlines())) <= columns
    golden = GOLDEN / f"{name}_{columns}.txt"
    if os.environ.get("UPDATE"):
        golden.parent.mkdir(exist_ok=True)
        golden.write_text(shown, encoding="utf-8")
    assert shown == golden.read_text(encoding="utf-8")


def test_a_table_too_wide_is_cut_into_parts(command: Callable[..., tuple[int, str, str]]) -> None:
    _, shown, _ = command("compare", "--designs", EVERY_DESIGN, columns=50)
    assert max(map(len, shown.splitlines()[:-8])) <= 50
    assert shown.count("crash test") > 1
    for design in EVERY_DESIGN.split(","):
        assert design in shown


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["--stalls"],
        ["--writes"],
        ["--latencies"],
        ["--summary"],
        ["--metric", "commit-latency-p99"],
    ],
)
def test_titles_and_tables_fit_a_narrow_terminal(
    command: Callable[..., tuple[int, str, str]], words: list[str]
) -> None:
    asked = ["compare", "--designs", "native,undo@ideal,silo", "--workloads", "hash,btree"]
    _, shown, _ = command(*asked, "--cores", "1,8", "--normalize", "undo@ideal", *words, columns=40)
    assert max(map(len, shown.splitlines())) <= 40
    heads = [line.split() for line in shown.splitlines() if line.startswith("workload")]
    if words == ["--stalls"]:
        # Three parts for each number of cores.
        assert len(heads) == 6
        assert [word for head in heads[:3] for word in head[2:]] == [
            *("total", "compute", "loads", "fence", "transaction")
        ]


def test_percentages_sum_to_a_hundred() -> None:
    for parts in ({"a": 1, "b": 1, "c": 1}, {"a": 2, "b": 0, "c": 10**12}, {"a": 7}):
        assert math.isclose(sum(text.percentages(parts).values()), 100.0)
    assert text.percentages({"a": 0, "b": 0}) == {"a": 0.0, "b": 0.0}


def test_quantities() -> None:
    assert text.quantity(12_345_678, "tx/s") == "12.3 Mtx/s"
    assert text.quantity(0.5, "lines/tx") == "0.50 lines/tx"
    assert text.seconds(0.0017) == "1.70 ms"
    assert text.seconds(0.0) == "0.00 ns"


def test_a_small_ratio_keeps_digits_that_say_something() -> None:
    shown = {
        0.0: "0.00",
        0.00003: "<0.0001",
        0.000123: "0.00012",
        0.0042: "0.0042",
        0.0999: "0.10",
        0.0347: "0.035",
        0.1: "0.10",
        0.996: "1.00",
        123.4: "123",
    }
    assert {value: text.ratio(value) for value in shown} == shown
    assert text.quantity(0.0123, "B/tx") == "0.012 B/tx"
    assert text.half_width_cell(0.0012, 0.034) == "0.001"
    assert text.half_width_cell(0.0001, 0.034) == "<0.001"
    assert text.half_width_cell(0.012, 0.9) == "0.01"
    assert text.half_width_cell(0.001, 0.9) == "<0.01"
    # As many digits as beside it.
    for width, shown in ((0.3, "<1"), (0.5, "<1"), (0.6, "1"), (120.4, "120")):
        assert text.half_width_cell(width, 150) == shown


def test_what_rounds_to_the_next_unit_is_said_in_it() -> None:
    assert [text.quantity(of, "tx/s") for of in (999.4, 999.6)] == ["999 tx/s", "1.00 ktx/s"]
    assert [text.quantity(of, "B") for of in (-999.6, 999_600)] == ["-1.00 kB", "1.00 MB"]
    assert [text.seconds(of) for of in (0.9996, 999.4e-6)] == ["1.00 s", "999 us"]
    assert [text.digits(of) for of in (9.994, 9.999, 99.94, 99.96)] == [
        "9.99",
        "10.0",
        "99.9",
        "100",
    ]
    assert [text.ratio(of) for of in (99.99, 99.999)] == ["99.99", "100"]
    sizes = {1023: "1023 B", (1 << 20) - 1: "1 MiB", 1023 << 10: "1023 KiB", 1 << 30: "1 GiB"}
    assert {of: text.size(of) for of in sizes} == sizes


def test_the_crash_test_of_a_run_is_of_what_was_run(
    command: Callable[..., tuple[int, str, str]],
) -> None:
    _, shown, _ = command(
        *("run", "--design", "silo", "--workload", "btree", "--set", "silo.entries=4"),
        *("--set", "core.width=2", "--set", "workload.items=50", "--set", "workload.operations=2"),
        *("--set", "pm.device_size=64MiB"),
        columns=200,
    )
    (line,) = [line for line in shown.splitlines() if line.startswith("crash test")]
    campaign = ["design.entries=4", "workload.operations=2", "pm.device_size=64MiB"]
    assert line.endswith(" ".join(f"--set {setting}" for setting in campaign))


def test_the_crash_test_of_a_run_can_be_pasted(fake: ModuleType) -> None:
    run = indelible.run("silo", "btree")
    named = replace(run, data={**run.data, "design": "my log.py"})
    assert "\ncrash test  indelible crash --design 'my log.py' --workload btree\n" in str(named)


@pytest.mark.parametrize("words", [["--set", "controller.domain=media"], []])
def test_the_crash_test_of_a_run_has_its_durability_domain(
    command: Callable[..., tuple[int, str, str]], words: list[str]
) -> None:
    asked = ["run", "--design", "silo", "--workload", "btree", *words]
    shown = command(*asked, columns=200)[1]
    (line,) = [line for line in shown.splitlines() if line.startswith("crash test")]
    assert line.endswith(" ".join(["--workload btree", *words]))


def test_a_table_that_is_too_wide_is_not_made_wider() -> None:
    """Columns of one word each give up nothing, take nothing, and come closer."""
    cells = ["compute" for _ in range(9)]
    lines = text.columns(cells, [cells], 60).splitlines()
    assert max(map(len, lines)) == 9 * len("compute") + 8 * len(" ")


def test_columns_are_wrapped_between_words_where_that_makes_them_fit() -> None:
    heads = ["name", "family", "durability", "granularity", "summary"]
    row = ["shadow-paging", "hardware ordering", "asynchronous", "line", "what it is, and more"]
    lines = text.columns(heads, [row], 80).splitlines()
    assert max(map(len, lines)) == 80
    assert "shadow-paging  hardware   " in lines[2]


def test_columns_that_hardly_fit_are_closer() -> None:
    heads = ["workload", "undo@ideal", "total", "compute", "loads", "stores", "fence", "commit"]
    lines = text.columns(heads, [heads], 65).splitlines()
    assert max(map(len, lines)) <= 65
    assert lines[0] == " ".join(heads)


def test_names_are_broken_last_and_behind_an_underscore() -> None:
    heads = ["rule switched off", "campaign", "workload", "cores", "txs", "seed", "life", "event"]
    rows = [["eviction_marks_what_it_carries", "caught", "scribble", *["2"] * 4, "21410"]]
    for width, parts in (
        (80, ["eviction_marks_what_it_carries"]),
        (70, ["eviction_marks_what_it_", "carries"]),
        (64, ["eviction_marks_what_", "it_carries"]),
        (60, ["eviction_marks_", "what_it_carries"]),
    ):
        lines = text.columns(heads, rows, width).splitlines()
        assert max(map(len, lines)) <= width
        rule = next(index for index, line in enumerate(lines) if line.startswith("---"))
        assert [line.split()[0] for line in lines[rule + 1 :]] == parts
        assert " ".join(line.split(" ca")[0].strip() for line in lines[:rule]) == heads[0]


@pytest.mark.parametrize("name", ["", *parser.COMMANDS])
def test_help_fits_a_terminal(command: Callable[..., tuple[int, str, str]], name: str) -> None:
    code, shown, _ = command(*[name] * bool(name), "--help")
    assert code == 0
    assert [line for line in shown.splitlines() if len(line) > 80] == []


def test_batteries_of_designs_that_need_none_are_a_sentence(
    command: Callable[..., tuple[int, str, str]],
) -> None:
    words = ["battery", "--designs", "native,undo@x86"]
    code, shown, _ = command(*words)
    told = "machine silo · 8 cores: no battery is needed for native, undo@x86\n"
    assert (code, shown) == (0, told)
    assert json.loads(command(*words, "--json")[1])["rows"] == []


def test_an_energy_has_the_unit_that_fits(fake: ModuleType) -> None:
    run = indelible.run("silo", "hash", txs=100)
    said = {
        0.0004: "0.40 nJ, 0.0040 nJ/tx",
        0.0168: "16.8 nJ, 0.17 nJ/tx",
        652.9: "653 uJ, 6.53 uJ/tx",
        1_500_000.0: "1.50 J, 15.0 mJ/tx",
    }
    for microjoules, told in said.items():
        run.data["energy_uj"] = microjoules
        assert f"\nenergy      {told}; read 75.9 | set" in run_text.run(run, 80)
    run.data["energy_uj"] = 0.0
    assert "energy" not in run_text.run(run, 80)


def test_what_fits_a_column_is_not_wrapped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a list of many thousands of rows wrapping takes nearly all of the time."""
    wrapped: list[str] = []
    real = textwrap.wrap

    def told(cell: str, *words: object, **more: object) -> list[str]:
        wrapped.append(cell)
        return real(cell, *words, **more)

    monkeypatch.setattr(textwrap, "wrap", told)
    rows = [["1", "a name", "what  is said\tof it"], ["2", "", "more than there is room for " * 3]]
    shown = text.columns(["no", "name", "what"], rows, 40)
    assert shown.splitlines()[:3] == [
        "no  name    what",
        "----------------------------------------",
        "1   a name  what is said of it",
    ]
    assert wrapped == [" ".join(rows[1][2].split())]


def test_one_of_a_thing_is_said_of_one(command: Callable[..., tuple[int, str, str]]) -> None:
    assert text.plural(1, "core") == "1 core"
    assert text.plural(2_000, "transaction") == "2,000 transactions"
    once = ("--workloads", "hash", "--txs", "1", "--cores", "1")
    assert "1 transaction a core\n" in command("characterize", *once)[1]


def test_a_command_is_not_broken_within_quotes() -> None:
    words = ["indelible", "crash", "--replay", "kv.trace", "--check", "./kv --verify --it's so"]
    words += ["--before", 'a "quoted --word" here', "--", "./kv", "pool --x"]
    for width in range(20, 120):
        shown = text.command("repeat", shlex.join(words), width)
        assert shlex.split(shown.replace("\\\n", " "))[1:] == words
        # Each line but the last goes on, and none of them is within quotes.
        for line in shown.splitlines()[:-1]:
            shlex.split(line.removesuffix("\\"))


def test_of_changes_that_were_not_run_one_more_than_are_named_is_counted(fake: ModuleType) -> None:
    answer = indelible.why(["silo"], ["hash"], fields=["silo"])
    refused = Refused(Change("machine", "pm.banks", "16", "8"), "too few")
    for more, is_said in ((0, False), (1, True)):
        many = replace(answer, refused=(refused,) * (causes_text.NAMED + more))
        assert ("- not run either: 1 more; --json says why" in str(many)) == is_said


@pytest.mark.parametrize(
    ("doc", "reason", "told"),
    [
        ("it is so", "none asks", "it is so. Needless: none asks."),
        ("It is so.", "None asks.", "It is so. Needless: None asks."),
        ("why so?", "", "why so? Needless."),
        ("", "none asks", "Needless: none asks."),
        ("it is so", None, "it is so"),
    ],
)
def test_the_sentences_about_a_rule_are_apart(doc: str, reason: str | None, told: str) -> None:
    needless = [] if reason is None else [{"design": "mine", "reason": reason}]
    rules = [{"name": "late", "doc": doc, "needless": needless}]
    shown = explain_text.explanation({"kind": "design", "name": "mine", "rules": rules}, 80)
    assert shown.splitlines()[-1] == f"late  {told}"
