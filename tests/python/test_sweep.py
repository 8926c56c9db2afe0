"""Sweeps with canned answers: points, what is 1.00, who passes whom, and settings of one design."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest

import indelible
from conftest import needs_core
from indelible import extension, pool, settings
from indelible.plots import sweep as sweep_plot
from indelible.text import sweep as sweep_text

Command = Callable[..., tuple[int, str, str]]

SWEEP = ["sweep", "--designs", "silo,leaky", "--workloads", "hash,btree"]
ENTRIES = ["--vary", "silo.entries=4,12,20"]

#: A field under two names.
TWICE = ["--set", "design.entries=4", "--set", "silo.entries=4"]


def test_values_are_lists_and_ranges() -> None:
    assert settings.values("f", "1,2, 4,2") == ("1", "2", "4")
    assert settings.values("f", "8:32:8") == ("8", "16", "24", "32")
    assert settings.values("f", "8:30:8") == ("8", "16", "24")
    assert settings.values("f", "50ns:120ns:50ns,1us") == ("50ns", "100ns", "1us")
    assert settings.values("f", "2pJ/bit:4pJ/bit:1pJ/bit") == ("2pJ/bit", "3pJ/bit", "4pJ/bit")
    assert settings.values("f", "0.5:1:0.25") == ("0.5", "0.75", "1")
    assert settings.values("f", range(1, 4)) == ("1", "2", "3")
    assert settings.values("f", 7) == ("7",)
    assert settings.values("f", [False, True]) == ("no", "yes")
    assert settings.values("f", True) == ("yes",)
    assert settings.values("f", (2**n for n in range(3))) == ("1", "2", "4")


def test_a_point_that_says_nothing_to_a_design_is_run_once(
    command: Command, fake: ModuleType
) -> None:
    assert command(*SWEEP, *ENTRIES)[0] == 1
    runs = [
        (spec["design"], spec["settings"].get("design.entries"))
        for kind, spec in fake.asked
        if kind == "run"
    ]
    assert sorted(runs, key=str) == [
        *[("leaky", None)] * 2,
        *[("silo", entries) for entries in ("12", "20", "4") for _ in range(2)],
    ]


def test_a_file_names_the_workload_that_reads_it(
    command: Command, fake: ModuleType, tmp_path: Path
) -> None:
    (tmp_path / "a.sql").write_text("SELECT 1;")
    asked = ["sweep", "--designs", "silo", *ENTRIES, "--no-crash"]
    for words in (asked, ["compare", "--designs", "silo", "--no-crash"]):
        fake.asked.clear()
        assert command(*words, "--sql", str(tmp_path / "a.sql"))[0] == 0
        assert {spec["workload"] for kind, spec in fake.asked if kind == "run"} == {"sqlite"}
    code, _, said = command(*asked)
    assert (code, "needs --workloads" in said) == (2, True)


def test_who_passes_whom_and_where(command: Command) -> None:
    answer = json.loads(command(*SWEEP, *ENTRIES, "--no-crash", "--json")[1])
    # Canned: silo is 0.95 and a two-hundredth for each entry, leaky is 0.99.
    crossing = {"ahead": "silo", "behind": "leaky", "after": 4, "by": 12}
    assert answer["crossings"] == [crossing]
    assert answer["vary"] == {"silo.entries": [4, 12, 20]}
    # Where less is better, who writes less is ahead; who is level with all passes nobody.
    of = {
        m: command(*SWEEP, *ENTRIES, "--no-crash", "--metric", m, "--json")
        for m in ("pm-writes", "commit-latency")
    }
    assert json.loads(of["pm-writes"][1])["crossings"] == [crossing]
    assert json.loads(of["commit-latency"][1])["crossings"] == []
    shown = command(*SWEEP, *ENTRIES, "--no-crash", "--metric", "pm-writes")[1]
    assert "> silo passes leaky in pm-writes between silo.entries=4 and 12" in shown


@pytest.mark.parametrize(
    ("leads", "found"),
    [
        # Who is a thousandth ahead is level, as it is told.
        ((1.2, 1.001, 0.999, 1.1), []),
        ((1.2, 0.999, 0.9, 0.8), [("10", "30")]),
    ],
)
def test_who_is_level_passes_nobody(
    fake: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    leads: tuple[float, ...],
    found: list[tuple[str, str]],
) -> None:
    values = ["10", "20", "30", "40"]
    answer = indelible.sweep(["silo", "leaky"], ["hash"], {"silo.entries": values})
    said = dict(zip(values, leads, strict=True))
    monkeypatch.setattr(type(answer), "_lead", lambda self, point, *_: said[point[0]])
    assert [(each["after"], each["by"]) for each in answer.crossings()] == found


def test_what_is_one(command: Command) -> None:
    first = json.loads(command(*SWEEP, *ENTRIES, "--json")[1])
    rows = {(r["point"]["silo.entries"], r["design"], r["workload"]): r for r in first["rows"]}
    assert len(rows) == 12
    assert rows[4, "silo", "hash"]["normalized"] == 1.0
    assert math.isclose(rows[20, "silo", "hash"]["normalized"], 1.05 / 0.97)
    assert rows[20, "leaky", "btree"]["normalized"] == 1.0
    to = json.loads(command(*SWEEP, *ENTRIES, "--normalize", "native", "--json")[1])
    means = {(mean["point"]["silo.entries"], mean["design"]): mean["value"] for mean in to["gmean"]}
    assert math.isclose(means[20, "silo"], 1.05)
    assert means[4, "native"] == 1.0


def test_cores_and_seeds_vary_too(fake: ModuleType) -> None:
    answer = indelible.sweep("silo", "hash", {"cores": [1, 2], "seed": "1:2:1"}, txs=10)
    asked = sorted(
        (spec["cores"], spec["seed"], spec["txs"]) for kind, spec in fake.asked if kind == "run"
    )
    assert asked == [(1, 1, 10), (1, 2, 10), (2, 1, 10), (2, 2, 10)]
    assert answer.value((("2", "1"), "silo", "hash")) == 2 * answer.value(
        (("1", "1"), "silo", "hash")
    )


def test_rows_and_a_figure_are_written(command: Command, tmp_path: Path) -> None:
    rows, figure = tmp_path / "rows.csv", tmp_path / "figure.svg"
    files = ["--csv", str(rows), "--plot", str(figure)]
    code, shown, _ = command(*SWEEP, *ENTRIES, "--no-crash", *files)
    assert (code, f"figure: {figure}" in shown) == (0, True)
    with rows.open(encoding="utf-8") as file:
        table = [*csv.DictReader(file)]
    assert [row["point.silo.entries"] for row in table[::4]] == ["4", "12", "20"]
    drawn = figure.read_text(encoding="utf-8")
    assert "silo.entries" in drawn
    assert "leaky" in drawn


def test_a_section_may_be_the_name_of_a_design_or_a_workload(
    command: Command, fake: ModuleType
) -> None:
    words = ["compare", "--designs", "silo,undo@x86", "--workloads", "hash,btree", "--no-crash"]
    command(*words, "--set", "silo.entries=4", "--set", "btree.order=16", "--set", "pm.size=1")
    said = {
        (spec["design"], spec["workload"]): spec["settings"]
        for kind, spec in fake.asked
        if kind == "run"
    }
    assert said == {
        ("silo", "hash"): {"design.entries": "4", "pm.size": "1"},
        ("silo", "btree"): {"design.entries": "4", "workload.order": "16", "pm.size": "1"},
        ("undo@x86", "hash"): {"pm.size": "1"},
        ("undo@x86", "btree"): {"workload.order": "16", "pm.size": "1"},
    }
    indelible.run("silo", "hash", set={"silo.entries": 9})
    assert fake.asked[-1][1]["settings"] == {"design.entries": "9"}


def test_the_number_of_items_is_a_field_of_every_machine() -> None:
    for kind in ("design", "order", "machine-preset"):
        settings.require_effect((("workload.items", "9"),), "it", kind)
        with pytest.raises(indelible.InputError, match=r"^workload\.order changes nothing here"):
            settings.require_effect((("workload.order", "9"),), "it", kind)


@pytest.mark.parametrize(
    "words",
    [
        ["run", "--design", "silo", "--workload", "hash", *TWICE],
        ["run", "--design", "silo", "--workload", "hash", *TWICE[:2], *TWICE[:2]],
        ["crash", "--design", "silo", "--workload", "hash", *TWICE],
        ["compare", "--designs", "lad,silo", "--workloads", "hash", *TWICE],
        [*SWEEP, *TWICE, "--vary", "pm.size=1,2"],
        [*SWEEP, *ENTRIES, *TWICE[:2]],
        [*SWEEP, *ENTRIES, "--vary", "design.entries=1,2"],
        [*SWEEP, "--vary", "design.entries=1,2", *TWICE[2:]],
    ],
)
def test_a_field_is_said_once(command: Command, fake: ModuleType, words: list[str]) -> None:
    code, shown, complaints = command(*words)
    assert (code, shown, fake.asked) == (2, "", [])
    assert complaints == "indelible: error: design.entries is set twice; keep one\n"


def test_each_design_may_have_its_own_machine(command: Command, fake: ModuleType) -> None:
    words = ["compare", "--designs", "leaky,silo", "--workloads", "hash", "--cores", "4"]
    words += ["--no-crash", "--set", "silo.controller.wpq=8", "--set", "controller.wpq=64"]
    assert command(*words)[0] == 0
    said = {spec["design"]: spec["settings"] for kind, spec in fake.asked if kind == "run"}
    assert said == {"leaky": {"controller.wpq": "64"}, "silo": {"controller.wpq": "8"}}
    del fake.asked[:]
    words = ["run", "--design", "silo", "--workload", "hash", "--set", "hash.controller.wpq=8"]
    assert command(*words)[0] == 0
    assert fake.asked[-1][1]["settings"] == {"controller.wpq": "8"}
    twice = [*words, "--set", "silo.controller.wpq=4"]
    assert command(*twice)[2] == "indelible: error: controller.wpq is set twice; keep one\n"


def test_the_machine_of_one_design_varies_alone(command: Command, fake: ModuleType) -> None:
    command(*SWEEP, "--vary", "silo.controller.wpq=8,16", "--set", "pm.size=1")
    said = {
        (spec["design"], spec["settings"].get("controller.wpq"), spec["settings"]["pm.size"])
        for kind, spec in fake.asked
        if kind == "run"
    }
    assert said == {("silo", "8", "1"), ("silo", "16", "1"), ("leaky", None, "1")}


def test_each_design_has_its_own_value_of_a_field(command: Command, fake: ModuleType) -> None:
    command(*SWEEP, *ENTRIES, "--vary", "leaky.entries=1,2")
    said = {
        (spec["design"], spec["settings"]["design.entries"])
        for kind, spec in fake.asked
        if kind == "run"
    }
    assert said == {("silo", n) for n in ("4", "12", "20")} | {("leaky", n) for n in ("1", "2")}


BAD = {
    "nothing": ([], "nothing varies; name a field and its values"),
    "form": (["--vary", "design.entries"], "`design.entries` is not of the form"),
    "twice": ([*ENTRIES, "--vary", "silo.entries=1"], "a field varies twice"),
    "range": (["--vary", "a.b=1:9"], "`a.b=1:9` is not a range; write first:last:step"),
    "units": (["--vary", "a.b=1ns:9us:1ns"], "is not a range"),
    "backwards": (
        ["--vary", "a.b=9:1:1"],
        "`a.b=9:1:1`: the last value must not be below the first",
    ),
    "stands": (["--vary", "a.b=1:9:0"], "and the step must be above 0"),
    "many": (["--vary", "a.b=1:9000:1"], "has 9,000 values; it may have 1,000 at most"),
    "very_many": (["--vary", f"a.b=1:{'9' * 5000}:1"], " values; it may have 1,000 at most"),
    "very_large": (["--vary", f"seed={'9' * 5000}"], "`seed` is too large: 999"),
    "other_digits": (["--vary", "cores=\u0663"], "must be a whole number from 1 up"),
    "cores": (["--vary", "cores=0"], "`cores` must be a whole number from 1 up"),
    "cores_word": (["--vary", "cores=two"], "`cores` must be a whole number from 1 up, not `two`"),
    "txs": (["--vary", "txs=0"], "`txs` must be a whole number from 1 up, not `0`"),
    "seed": (["--vary", "seed=-1,2"], "`seed` must be a whole number from 0 up, not `-1`"),
    "warmup": (["--vary", "warmup=-1"], "`warmup` must be a whole number from 0 up, not `-1`"),
    "warmup_twice": (["--vary", "warmup=1,2", "--warmup", "2"], "warmup is set twice; keep one"),
    "warmups": (["--vary", "warmups=1,2"], "`warmups` is no field; did you mean `warmup`?"),
    "seed_twice": (["--vary", "seed=1,2", "--seed", "1"], "seed is set twice; keep one"),
    "cores_twice": (["--vary", "cores=1,2", "--cores", "2"], "cores is set twice; keep one"),
    "plot": (
        [*ENTRIES, "--vary", "cores=1,2", "--vary", "txs=1,2", "--plot", "x.png"],
        "--plot draws a sweep of one field or two; drop it, or a --vary",
    ),
    "base": ([*ENTRIES, "--normalize", "hopps"], "unknown design `hopps`; there are: "),
    "metric": ([*ENTRIES, "--metric", "latency"], "unknown metric `latency`"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_a_sentence(command: Command, name: str) -> None:
    words, sentence = BAD[name]
    code, shown, complaints = command(*SWEEP, *words)
    assert (code, shown) == (2, "")
    assert sentence in complaints
    assert complaints.count("\n") == 1


def test_it_needs_designs(command: Command) -> None:
    code, _, complaints = command("sweep", "--workloads", "hash", *ENTRIES)
    assert code == 2
    assert "needs --designs; `indelible list designs` lists them" in complaints


def test_a_seed_that_varies_is_not_said_again(fake: ModuleType) -> None:
    with pytest.raises(indelible.InputError, match="seed is set twice; keep one"):
        indelible.sweep(["silo"], ["hash"], {"seed": [1, 2]}, seed=7)
    indelible.sweep(["silo"], ["hash"], {"seed": [0, 2]})
    assert {spec["seed"] for kind, spec in fake.asked if kind == "run"} == {0, 2}


def test_points_are_run_one_behind_the_other(
    fake: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(pool.JOBS_VARIABLE, "1")
    indelible.sweep(["native", "silo"], ["hash", "btree"], {"cores": [2, 1]}, seeds=2)
    order = [(spec["seed"], spec["cores"]) for kind, spec in fake.asked if kind == "run"]
    assert order == [(seed, cores) for seed in (1, 2) for cores in (2, 1) for _ in range(4)]


@needs_core
def test_a_value_out_of_range_is_refused_before_anything_is_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refused(*_: object) -> str:
        raise AssertionError("it is run")

    monkeypatch.setattr(extension.core, "run", refused)
    with pytest.raises(indelible.InputError, match="`99999`; it takes 1 to 4096"):
        indelible.sweep(["native", "silo"], ["hash"], {"silo.entries": [4, 99999]})
    with pytest.raises(indelible.InputError, match="`wpqq`"):
        indelible.compare(["native", "silo"], ["hash"], set={"controller.wpqq": 8})


class Looked(tuple[object, ...]):
    """Points that count how often somebody goes through them."""

    times = 0

    def __iter__(self) -> Iterator[object]:
        Looked.times += 1
        return super().__iter__()


def test_a_sweep_of_many_points_is_shown_in_time_that_follows_their_number(
    fake: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each number is of a point, and to look through all points for it is quadratic."""

    def looks(count: int) -> int:
        vary = {"silo.entries": range(1, count + 1)}
        answer = indelible.sweep(["silo", "leaky"], ["hash", "btree"], vary)
        monkeypatch.setattr(Looked, "times", 0)
        answer = replace(answer, points=Looked(answer.points))
        assert len(answer.json()["rows"]) == 4 * count
        assert str(answer).count("\n") > count
        assert len(answer.table()) == 6 * count
        return Looked.times

    assert looks(40) == looks(10)


def test_cores_that_vary_are_not_said_twice(fake: ModuleType) -> None:
    varied = indelible.sweep(["silo"], ["hash"], {"cores": [8]})
    assert " 8 cores" not in sweep_text.where(varied)
    assert " 8 cores" in sweep_text.where(
        indelible.sweep(["silo"], ["hash"], {"silo.entries": [4]}, cores=8)
    )


def test_lines_say_of_what_they_are(fake: ModuleType) -> None:
    vary = {"silo.entries": [4, 12]}
    (axes,) = sweep_plot.figure(indelible.sweep(["silo", "leaky"], ["hash", "sqlite"], vary)).axes
    own = "Throughput, higher is better relative to each design's own at silo.entries=4"
    assert axes.get_ylabel().replace("\n", " ") == own
    # However long it is, it has the height of the figure.
    assert axes.yaxis.label.get_window_extent().y0 > 0
    title = axes.get_title(loc="left").replace("\n", " ")
    assert title == "machine silo · 8 cores · seed 1; geometric means over hash, sqlite"
    answer = indelible.sweep(["silo", "leaky"], "hash", vary, normalize="leaky")
    (axes,) = sweep_plot.figure(answer).axes
    # A single design's lines are workloads.
    label = axes.get_ylabel().replace("\n", " ")
    assert label == "Throughput of silo, higher is better relative to leaky"
    assert axes.get_title(loc="left") == "machine silo · 8 cores · seed 1"
