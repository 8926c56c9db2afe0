"""`why`: what is changed, what moves, and what is said of it."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

import indelible
from conftest import needs_core
from indelible import changes, pool
from indelible.changes import Field
from indelible.plots import causes as causes_plot
from indelible.text import causes as causes_text

Command = Callable[..., tuple[int, str, str]]

PAIR = ["undo@x86", "silo"]
WHY = ["why", "--designs", "undo@x86,silo", "--workloads", "hash"]

#: A small run of the real simulator.
SMALL = {"machine": "tiny", "cores": 2, "txs": 30, "set": {"workload.items": 64}}


def each(value: str, by: int = 2, *refused: str, choices: tuple[str, ...] = ()) -> tuple:
    """Return what a field becomes, and what it was refused to become, if `refused` cannot be."""
    field = Field("machine", "a.b", value, choices)
    found, without = changes.each(
        [field], by, lambda change: "no" if change.after in refused else None
    )
    assert {(c.field, c.before) for c in [*found, *(r.change for r in without)]} <= {("a.b", value)}
    return [change.after for change in found], [one.change.after for one in without]


def test_numbers_are_divided_and_multiplied() -> None:
    assert each("64") == (["32", "128"], [])
    assert each("64", 4) == (["16", "256"], [])
    assert each("150ns") == (["75ns", "300ns"], [])
    assert each("3.332ns") == (["1.666ns", "6.664ns"], [])
    assert each("100ns", 3) == (["33.333ns", "300ns"], [])
    assert each("8MiB", 16) == (["0.5MiB", "128MiB"], [])


def test_words_become_each_other_word() -> None:
    assert each("adr", choices=("media", "adr", "eadr")) == (["media", "eadr"], [])
    assert each("no", choices=("no", "yes")) == (["yes"], [])


def test_counts_stay_whole_and_nothing_stays_nothing() -> None:
    assert each("5", 2) == (["2", "10"], [])
    assert each("1") == (["2"], []), "of one there is no half"
    assert each("0") == each("0ns") == ([], [])
    assert each("private") == ([], []), "a word without others"


def test_what_must_be_whole_is_rounded_and_what_cannot_be_is_told() -> None:
    assert each("85ns", 2, "42.5ns") == (["42ns", "170ns"], [])
    assert each("85ns", 2, "42.5ns", "170ns") == (["42ns"], ["170ns"])
    assert each("85ns", 2, "42.5ns", "42ns") == (["170ns"], ["42ns"])
    assert each("media", 2, "adr", choices=("media", "adr")) == ([], ["adr"])


def test_of_a_share_there_is_no_more_than_all() -> None:
    assert each("85%", 2, "42.5%") == (["42%", "100%"], [])
    assert each("100%") == (["50%"], [])


def test_what_is_larger_is_a_number() -> None:
    larger = {
        (before, after): changes.Change("machine", "a.b", before, after).is_larger
        for before, after in (("64", "128"), ("50ns", "25ns"), ("adr", "eadr"))
    }
    assert [*larger.values()] == [True, False, None]


def test_a_change_is_of_one_field_of_one_thing(fake: ModuleType) -> None:
    answer = indelible.why(PAIR, ["hash", "btree"], cores=4, txs=100, crash=False)
    asked = [
        (spec["design"], spec["workload"], spec["cores"], spec["txs"], spec["settings"])
        for _, spec in fake.asked
    ]
    as_it_is = {(d, w, 4, 100) for d in PAIR for w in ("hash", "btree")}
    assert {run[:4] for run in asked if not run[4] and run[2:4] == (4, 100)} == as_it_is
    assert {run[2:4] for run in asked} == {(4, 100), (2, 100), (8, 100), (4, 50), (4, 200)}
    assert all(len(run[4]) <= 1 for run in asked), "one at a time"
    own = [run[4]["design.entries"] for run in asked if "design.entries" in run[4]]
    # Those of one design say nothing to the other, which does not run again.
    assert sorted(own) == ["10"] * 4 + ["40"] * 4
    assert len(asked) == len({json.dumps(run) for run in asked}), "nothing runs twice"
    # Cores, transactions, queue and items for all, and the entries of each.
    assert len(asked) == 4 * (1 + 2 * 4) + 2 * 4
    assert [one.of for one in answer.changes.values()].count("design") == 4


def test_a_machine_with_more_cores_is_one_of_more_cores(fake: ModuleType) -> None:
    answer = indelible.why(["silo"], ["hash"], fields=["cores"], crash=False)
    asked = {spec.get("cores"): spec["settings"] for _, spec in fake.asked}
    # It has eight, and so many run if none are said.
    assert asked == {None: {}, 4: {}, 16: {"core.cores_max": "16"}}
    assert answer.refused == ()


def test_ratios_are_of_the_same_change(fake: ModuleType) -> None:
    answer = indelible.why(PAIR, ["hash"])
    rows = {(row["field"], row["after"]): row for row in answer.rows}
    # Canned: of the first alone throughput goes with the root of the queue.
    larger = rows["controller.wpq", "128"]
    assert math.isclose(larger["effects"]["undo@x86"], math.sqrt(2))
    assert math.isclose(larger["effects"]["silo"], 1)
    assert math.isclose(larger["ratio"], 0.95 / 0.4 / math.sqrt(2))
    assert math.isclose(larger["shift"], 1 / math.sqrt(2))
    assert math.isclose(answer.ratio(), 0.95 / 0.4)
    both = rows["cores", "4"]
    assert both["effects"] == {"undo@x86": 0.5, "silo": 0.5}
    assert math.isclose(both["shift"], 1)
    # What moves the ratio most is first.
    shifts = [abs(math.log(row["shift"])) for row in answer.rows]
    assert shifts == sorted(shifts, reverse=True)


def test_of_one_design_it_is_what_moves_that(fake: ModuleType) -> None:
    answer = indelible.why("undo@x86", "hash", fields=["controller", "cores"])
    assert answer.ratio() is None
    rows = {(row["field"], row["after"]): row for row in answer.rows}
    assert math.isclose(rows["cores", "16"]["shift"], 2)
    assert math.isclose(rows["controller.wpq", "32"]["shift"], math.sqrt(0.5))
    assert {row["field"] for row in answer.rows} == {"cores", "controller.wpq"}
    assert "ratio" not in str(answer)
    # More cores are no better machine.
    assert [point[0] for point in answer.improved_by("undo@x86")] == ["controller.wpq=128"]


def test_less_is_better_where_it_is(fake: ModuleType) -> None:
    answer = indelible.why(PAIR, ["hash"], metric="pm-writes", fields=["silo", "undo@x86"])
    assert answer.ratio() < 1
    # Canned: with more entries a design writes less.
    assert answer.improved_by("silo")[0] == ("silo.entries=40",)
    assert all(answer.effect(point, "silo") < 1 for point in answer.improved_by("silo"))


def test_what_is_set_is_what_is_changed(fake: ModuleType) -> None:
    fields = ["controller.wpq", "silo"]
    # Another tool's name of a field is no second field.
    for key in ("controller.wpq", "controller.entries"):
        fake.asked.clear()
        own = {key: "16", "silo.entries": "6", "controller.domain": "eadr"}
        answer = indelible.why(PAIR, ["hash"], set=own, fields=fields, crash=False)
        assert {str(change) for change in answer.changes.values()} == {
            *("controller.wpq=8", "controller.wpq=32", "silo.entries=3", "silo.entries=12")
        }
        seen = {
            (spec["settings"]["controller.wpq"], spec["settings"].get("design.entries"))
            for _, spec in fake.asked
        }
        ours = {("16", "6"), ("8", "6"), ("32", "6"), ("16", "3"), ("16", "12")}
        assert seen == ours | {("16", None), ("8", None), ("32", None)}
        assert all(spec["settings"]["controller.domain"] == "eadr" for _, spec in fake.asked)


def joined(command: Command, *words: str) -> str:
    """Return what a command shows, however it is wrapped."""
    code, shown, complaints = command(*words, columns=100)
    assert (code, complaints) == (0, "")
    return " ".join(shown.split())


def test_whether_a_change_turns_them_round(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    turned = ["--set", "controller.wpq=256", "--by", "4", "--fields", "undo@x86,controller,silo"]
    # 0.95 over 0.8; over 1.6 with a queue four times as long; with entries 0.4 more, and 0.4 less.
    assert (
        "As it is silo over undo@x86 is 1.19, and above 1 with 5 of 7 changes, but not with"
        " controller.wpq=1024 (0.59), undo@x86.entries=80 (0.59). All: 0.59 (controller.wpq=1024)"
        " to 2.38 (controller.wpq=64)."
    ) in joined(command, *WHY, *turned)
    one = joined(command, *WHY, "--fields", "cores")
    assert "is 2.38, and above 1 with every one of 2 changes: 2.38 (cores=4)." in one
    with monkeypatch.context() as few:
        few.setattr(causes_text, "NAMED", 1)
        told = joined(command, *WHY, *turned)
    assert "but not with controller.wpq=1024 (0.59), and 1 more. All" in told
    assert "silo: gains most from silo.entries=80 (1.42) *" in told
    with monkeypatch.context() as few:
        few.setattr(causes_text, "FEW", 0.5)
        told = joined(command, *WHY, *turned)
    assert "with every one of 7 changes but 2: controller.wpq=1024 (0.59), undo@x86" in told
    # The farthest first: 0.95 over 1.3125 and over 1.299.
    near = ["--set", "controller.wpq=225", "--by", "3", "--fields", "controller,undo@x86"]
    assert "not with undo@x86.entries=60 (0.72), controller.wpq=675 (0.73). All" in joined(
        command, *WHY, *near
    )


def test_what_is_told_as_1_is_level(command: Command, fake: ModuleType) -> None:
    same = [
        "why",
        "--designs",
        "undo@x86,redo@x86",
        "--workloads",
        "hash",
        "--fields",
        "controller",
    ]
    # 0.45 over 0.4 + 10/200.
    told = joined(command, *same, "--set", "undo@x86.entries=10")
    assert "is 1.00, and level with 1 with every one of 2 changes: 1.00 (controller.wpq=32)" in told
    # Of its entries any other number tells the two apart.
    logs = ["why", "--designs", "undo@x86,redo@x86", "--workloads", "hash"]
    told = joined(command, *logs, "--fields", "undo@x86", "--set", "undo@x86.entries=10")
    assert "is 1.00, level with 1, and with none of 2 changes so: 0.90 (undo@x86.ent" in told
    # What seeds do not agree on is level, too: their luck moves these by some percent.
    wide = {"seeds": 3, "fields": ["controller"]}
    sure, unsure = (
        indelible.why(["undo@x86", "redo@x86"], [name], **wide, set={"undo@x86.entries": 9})
        for name in ("hash", "sqlite")
    )
    assert (sure.side(), unsure.side()) == (1, 0)
    assert abs(math.log(unsure.ratio())) > 0.005


def test_a_change_that_leaves_nothing_is_the_first(fake: ModuleType) -> None:
    answer = indelible.why(PAIR, ["hash", "btree"], fields=["controller", "silo"])
    for (point, design, workload, _), run in answer.sweep.runs.items():
        if (point, design, workload) == (("silo.entries=40",), "silo", "btree"):
            run.data["throughput_tx_per_s"] = 0.0
        if (point, design) == (("controller.wpq=32",), "undo@x86"):
            run.data["throughput_tx_per_s"] = 0.0
    rows = answer.rows
    assert len(rows) == len(answer.changes)
    first = {(row["after"], row["ratio"], row["shift"]) for row in rows[:2]}
    # Of the first design there is then nothing to be relative to.
    assert first == {("40", 0.0, 0.0), ("32", None, None)}
    assert answer.effect(("silo.entries=40",), "silo") == 0.0
    assert "silo.entries    20        40" in str(answer)


def test_what_seeds_do_not_agree_on_is_not_told(fake: ModuleType) -> None:
    asked = {"fields": ["silo", "cores"], "set": {"design.entries": 12}}
    one, three = (indelible.why(["silo"], ["sqlite"], **asked, seeds=n) for n in (1, 3))
    # Canned: a seed moves designs on sqlite by some percent, each as its entries are.
    wide = ("silo.entries=24",)
    assert three.effect(wide, "silo") > 1.05
    assert three.effect_half_width(wide, "silo") > 0.1
    assert (one.is_seen(wide), three.is_seen(wide)) == (True, False)
    rows = {row["after"]: row for row in three.rows}
    assert rows["24"]["shift_half_width_95"] == three.effect_half_width(wide, "silo")
    shift, low, high = (rows["24"][f"shift{end}"] for end in ("", "_low_95", "_high_95"))
    assert math.sqrt(low * high) == pytest.approx(shift)
    assert "shift_half_width_95" not in one.rows[0]
    told = "± 95 %: the widest confidence interval over 3 seeds is that of silo with cores="
    assert told in " ".join(str(three).split())
    uncertain = "changes with an effect below 2 %, or whose 95 % interval includes 1: "
    assert uncertain in " ".join(str(three).split())
    assert "on which the seeds" not in " ".join(str(one).split())
    assert indelible.why(PAIR, ["sqlite"], seeds=3).ratio_half_width() > 0


def test_names_of_fields_are_those_of_settings(fake: ModuleType) -> None:
    def found(*names: str) -> set[str]:
        return {c.field for c in indelible.why(PAIR, ["hash"], fields=names).changes.values()}

    assert found("controller.entries") == {"controller.wpq"}, "as another tool has it"
    assert found("design.entries") == found("design") == {"silo.entries", "undo@x86.entries"}
    assert found("silo", "txs") == {"silo.entries", "txs"}
    assert found("machine") == {"controller.wpq"}
    assert found("workload") == {"workload.items"}
    assert found("workload.items") == {"workload.items"}


def test_items_are_those_of_the_workload_that_has_its_own(fake: ModuleType) -> None:
    asked = {"set": {"hash.items": 30}, "fields": ["workload"], "crash": False}
    answer = indelible.why(["silo"], ["hash", "btree"], **asked)
    # The fake hash has no parameters; what the machine says is the other's.
    items = {(spec["workload"], spec["settings"].get("workload.items")) for _, spec in fake.asked}
    assert items == {("hash", "30"), ("btree", None), ("btree", "200000"), ("btree", "800000")}
    assert {change.of for change in answer.changes.values()} == {"workload"}
    with pytest.raises(indelible.InputError, match=r"no field `workload\.items` here"):
        indelible.why(["silo"], ["hash"], **asked | {"fields": ["workload.items"]})


def test_a_design_with_its_own_field_of_the_machine_keeps_it(fake: ModuleType) -> None:
    # Under the name that another tool has for it.
    asked = {"set": {"silo.controller.entries": 8}, "fields": ["controller.wpq"]}
    indelible.why(PAIR, ["hash"], **asked, crash=False)
    queues = {(spec["design"], spec["settings"].get("controller.wpq")) for _, spec in fake.asked}
    assert queues == {("silo", "8"), *(("undo@x86", wpq) for wpq in (None, "32", "128"))}


def test_what_is_set_twice_is_refused(command: Command, fake: ModuleType) -> None:
    twice = ["--set", "silo.entries=5", "--set", "design.entries=50"]
    assert command(*WHY, *twice)[2] == "indelible: error: design.entries is set twice; keep one\n"
    assert fake.asked == []


def test_no_design_is_gained_by_what_is_no_hardware(command: Command, fake: ModuleType) -> None:
    for fields in ("cores", "workload", "txs"):
        assert ">" not in joined(command, *WHY, "--fields", fields)
    # Of how many changes that is said, those of the other design left out.
    shown = joined(command, *WHY, "--fields", "controller,silo", "--set", "silo.entries=1")
    assert "> silo: none of 3 changes to the hardware improves it" in shown
    shown = joined(command, *WHY, "--fields", "silo", "--set", "silo.entries=1")
    assert "> silo: the one change to the hardware does not improve it" in shown
    assert "> undo@x86" not in shown
    # Of what is neither better high nor low nothing is gained.
    for metric in ("wpq-entries", "pm-busy"):
        assert ">" not in joined(command, *WHY, "--metric", metric)


def test_what_one_of_two_designs_does_not_do_is_told_of_both(fake: ModuleType) -> None:
    answer = indelible.why(["silo", "undo@x86"], ["hash"], fields=["cores"])
    for (_, design, *_), run in answer.sweep.runs.items():
        run.data["caches"] |= {"flushes": 0 if design == "silo" else run.data["txs"], "fences": 0}
    rows = {row[0]: row[1:] for row in causes_text.busy_grid(answer)}
    assert rows["flushes, a transaction"] == ["0.00", "1.00"]
    assert "fences" not in rows


def test_numbers_of_the_machine_are_means_over_workloads(fake: ModuleType) -> None:
    answer = indelible.why(["silo"], ["hash", "btree"], fields=["cores"])
    for (_, _, workload, _), run in answer.sweep.runs.items():
        run.data["pm_writes"]["wpq_bytes"] = {"hash": 100, "btree": 300}[workload] * run.data["txs"]
        run.data["stalls"] = {"hash": {"fence": 1.0}, "btree": {"compute": 3.0}}[workload] | {
            name: 0.0
            for name in answer.stacked.parts
            if name != {"hash": "fence", "btree": "compute"}[workload]
        }
    (row,) = answer.busy()
    assert math.isclose(row["pm_writes"], 200)
    (stack,) = answer.stacks()
    assert (stack["parts"]["fence"], stack["parts"]["compute"]) == (50.0, 50.0)


def test_writes_are_explained_by_what_is_written(fake: ModuleType) -> None:
    for metric, part in (("pm-writes", "log"), ("media-bits", "log"), ("pm-reads", "fence")):
        answer = indelible.why(PAIR, ["hash"], metric=metric, fields=["cores"])
        assert part in answer.json()["stacks"][0]["parts"]


def test_runs_are_asked_for_as_they_are(
    fake: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(pool, "workers_available", lambda: 1)
    file = tmp_path / "own.properties"
    file.write_text("recordcount=7\n")
    asked = {"exact": True, "ycsb": file, "seeds": 2, "fields": ["cores", "ycsb"]}
    with pytest.raises(indelible.InputError, match="there is no field `ycsb` here"):
        indelible.why(["silo"], ["ycsb"], **asked)
    indelible.why(["silo"], ["ycsb"], **asked | {"fields": ["cores"]}, crash=False)
    specs = [spec for _, spec in fake.asked]
    assert [spec["seed"] for spec in specs] == [1] * 3 + [2] * 3, "the first seed first"
    assert all(spec["exact"] and spec["script"][1] == "recordcount=7\n" for spec in specs)


def test_how_long_a_run_is_is_told_if_it_matters(fake: ModuleType) -> None:
    answer = indelible.why(PAIR, ["hash"], fields=["txs"])
    note = "! txs=4000 changes the result"
    assert note not in str(answer)
    for (point, design, _, _), run in answer.sweep.runs.items():
        if (point, design) == (("txs=4000",), "silo"):
            run.data["throughput_tx_per_s"] *= 0.9
    assert note in str(answer)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--designs", "a/mine.py,b/mine.py"], "both designs are called mine; choose another name"),
        (["--designs", "silo,hops,leaky"], "`why` takes one design or two, not 3"),
        (["--fields", "pm.tWRIT,controller"], "there is no field `pm.tWRIT` here; the closest are"),
        (["--by", "1"], "argument --by: `1` is not a whole number from 2 to 1000"),
        (["--metric", "speed"], "unknown metric `speed`"),
        (["--designs", "sillo"], "unknown design `sillo`"),
        (["--machine", "none"], "unknown machine `none`"),
        (["--plot", "why.txt"], "--plot why.txt: the name of a figure must end in one of .png"),
        (["--replay", "/no/trace"], "--replay /no/trace: no such file or directory"),
    ],
)
def test_what_cannot_be_asked_is_a_sentence(
    command: Command, fake: ModuleType, words: list[str], sentence: str
) -> None:
    whole = ["why", *words, *WHY[3:]] if "--designs" in words else [*WHY, *words]
    code, shown, complaint = command(*whole)
    assert (code, shown, complaint.count("\n")) == (2, "", 1)
    assert sentence in complaint
    assert fake.asked == []


def test_what_python_asks_in_wrong_types_is_a_sentence(fake: ModuleType) -> None:
    for own, sentence in (
        ({"by": 1.5}, "`by` must be a whole number"),
        ({"fields": 3}, "`fields` must be a list of names"),
        ({"seeds": 0}, "`seeds` must be a whole number"),
        ({"machine": 3}, "`machine` must be a name"),
    ):
        with pytest.raises(indelible.InputError) as error:
            indelible.why(PAIR, ["hash"], **own)
        assert sentence in str(error.value)


def test_an_interrupted_one_shows_what_it_has(
    fake: ModuleType, interrupt: Callable[[int], None]
) -> None:
    interrupt(5)
    with pytest.raises(indelible.Interrupted) as caught:
        indelible.why(PAIR, ["hash"], set={"fake.sleep": "0.05"}, fields=["cores", "txs"])
    partial = caught.value.partial
    assert partial.json()["cancelled"]
    # Both as they are, and with one change; of the second there is only one.
    assert [str(partial.changes[point]) for point in partial.ranked()] == ["cores=4"]
    assert "interrupted: 5 of 10 cells had ended" in str(partial)


def test_files_have_every_change(command: Command, tmp_path: Path) -> None:
    path, drawn = tmp_path / "why.csv", tmp_path / "why.svg"
    told = command(*WHY, "--top", "1", "--csv", str(path), "--plot", str(drawn), "--json")[1]
    answer = json.loads(told)
    rows = [*csv.DictReader(path.read_text().splitlines())]
    assert len(rows) == len(answer["rows"]) == 12
    assert rows[0]["field"] == answer["rows"][0]["field"]
    assert math.isclose(float(rows[0]["effects.silo"]), answer["rows"][0]["effects"]["silo"])
    assert {row["design"] for row in answer["stacks"]} == {*PAIR}
    assert [run["design"] for run in answer["runs"]] == PAIR
    assert "controller.wpq (64)" in drawn.read_text()


def test_a_figure_has_a_bar_for_each_change_that_moves_something(fake: ModuleType) -> None:
    answer = indelible.why(PAIR, ["hash"], fields=["controller", "silo", "workload"])
    bars, dots = causes_plot.figure(answer).axes
    # Of the queue and of the entries, from what the ratio is to what it becomes.
    ends = sorted(bar.get_x() + bar.get_width() for bar in bars.patches)
    seen = [point for point in answer.ranked() if answer.is_seen(point)]
    assert all(
        math.isclose(a, b) for a, b in zip(ends, sorted(map(answer.ratio, seen)), strict=True)
    )
    # Each change moves one of the two by itself; both have a mark.
    assert [len(line.get_xdata()) for line in dots.lines[:4]] == [2, 2, 2, 2]
    assert {line.get_label() for line in dots.lines} >= {*PAIR}
    still = indelible.why(PAIR, ["hash"], fields=["workload"])
    with pytest.raises(indelible.InputError, match="no change has an effect"):
        causes_plot.figure(still)


def test_nothing_is_relative_to_nothing(command: Command) -> None:
    words = ["why", "--designs", "native,silo", "--workloads", "hash", "--fields", "cores"]
    code, shown, complaint = command(*words, "--metric", "commit-latency")
    assert (code, complaint) == (0, "")
    assert "- native† is 0 on hash: nothing can be relative to it" in shown
    assert "- silo is 0" not in shown


@needs_core
def test_it_says_what_a_sweep_says() -> None:
    asked = {**SMALL, "set": {**SMALL["set"], "pm.tWRITE": "200ns"}}
    answer = indelible.why(PAIR, ["queue", "hash"], **asked, fields=["pm.tWRITE", "silo.entries"])
    swept = indelible.sweep(
        PAIR, ["queue", "hash"], {"pm.tWRITE": "200ns,100ns,400ns"}, **SMALL, normalize=PAIR[0]
    )
    assert math.isclose(answer.ratio(), swept.gmean("200ns", "silo"))
    own = indelible.sweep(PAIR, ["queue", "hash"], {"pm.tWRITE": "200ns,100ns,400ns"}, **SMALL)
    for after in ("100ns", "400ns"):
        (row,) = (row for row in answer.rows if row["after"] == after)
        assert math.isclose(row["ratio"], swept.gmean(after, "silo"))
        for design in PAIR:
            assert math.isclose(row["effects"][design], own.gmean(after, design))
    # What the machine does not say is of the design as the simulator has it.
    entries = {c.before for c in answer.changes.values() if c.field == "silo.entries"}
    assert entries == {str(indelible.explain("silo")["params"][0]["value"])}


@needs_core
def test_the_same_answer_on_one_thread_and_on_many(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    asked = {**SMALL, "fields": ["pm", "scribble"], "seeds": 2}
    answers = []
    for jobs in ("1", "2"):
        monkeypatch.setenv("INDELIBLE_JOBS", jobs)
        answer = indelible.why(PAIR, ["scribble"], **asked).json()
        for run in answer["runs"]:
            del run["host"]
        answers.append(json.dumps(answer))
    assert answers[0] == answers[1]
    # What is kept is taken.
    first = indelible.why(PAIR, ["scribble"], **asked, keep=tmp_path / "rows")
    again = indelible.why(PAIR, ["scribble"], **asked, keep=tmp_path / "rows")
    assert (first.taken.count, again.taken.count) == (0, again.taken.of)
    assert again.json() == first.json()


@needs_core
def test_what_cannot_be_run_is_told_and_nothing_else_stops() -> None:
    # Half of this log has no room for a transaction, which shows when it is run.
    own = {**SMALL["set"], "pm.log_size": "4KiB"}
    answer = indelible.why(
        ["undo@x86"], ["tpcc"], machine="tiny", cores=1, txs=20, set=own, fields=["pm", "core"]
    )
    reasons = {str(one.change): one.reason for one in answer.refused}
    assert "does not fit the log of 2048 bytes" in reasons["pm.log_size=2KiB"]
    assert "pm.log_size=8KiB" in {str(change) for change in answer.changes.values()}
    assert all(None not in row["effects"].values() for row in answer.rows)
    assert "- not run: pm.log_size=2KiB: " in str(answer)
    own |= {"pm.log_size": "2KiB"}
    with pytest.raises(indelible.InputError, match="does not fit the log of 2048 bytes"):
        indelible.why(["undo@x86"], ["tpcc"], machine="tiny", cores=1, txs=20, set=own)


@needs_core
def test_every_field_of_every_kind_can_be_asked() -> None:
    """Those of a design in Python, of one thing alone, and all that there are."""
    mine = str(Path(__file__).parents[2] / "examples" / "designs" / "battery.py")
    answer = indelible.why(["silo", mine], ["queue"], **SMALL, fields=["battery", "queue", "cores"])
    assert {change.field.partition(".")[0] for change in answer.changes.values()} == {
        *("battery", "queue", "cores")
    }
    assert answer.ratio() > 0
    # All that there is, on a machine with as little as possible.
    every = indelible.why(["silo"], ["array"], machine="tiny", cores=1, txs=10)
    fields = {change.field for change in every.changes.values()}
    assert {"cores", "txs", "pm.tWRITE", "controller.domain", "silo.entries"} <= fields
    idle = {"core.cores_max", "pm.device_size", "dram.device_size", "energy.drain_l1"}
    idle |= {"controller.flush_bytes", "controller.battery_perc", "core.quantum"}
    assert not (idle | {"pm.set_energy"}) & fields
    energy = indelible.why(
        ["silo"], ["array"], machine="tiny", cores=1, txs=10, metric="pm-energy", fields=["pm"]
    )
    rows = {(row["field"], row["after"]): row for row in energy.rows}
    assert rows["pm.read_energy", "4.94pJ/bit"]["shift"] > 1.5


@needs_core
def test_a_trace_says_itself_how_long_it_is_and_a_script_what(tmp_path: Path) -> None:
    answer = indelible.why(["silo"], ["replay", "queue"], **SMALL | {"cores": 1}, fields=["cores"])
    (row,) = answer.rows
    assert (row["before"], row["after"]) == ("1", "2")
    ran = {(run.workload, run.cores) for run in answer.sweep.runs.values()}
    assert ran == {("replay", 1), ("queue", 1), ("queue", 2)}
    alone = indelible.why(["silo"], ["replay"], machine="tiny", fields=["pm", "replay"])
    assert {"run"} & {change.of for change in alone.changes.values()} == set()
    with pytest.raises(indelible.InputError, match="there is no field `cores` here"):
        indelible.why(["silo"], ["replay"], machine="tiny", fields=["cores"])
    # What a file says is not changed, since it is the file's word.
    file = tmp_path / "own.properties"
    file.write_text("recordcount=64\nfieldcount=4\n")
    small = {"machine": "tiny", "cores": 1, "txs": 10}
    ycsb = indelible.why(["silo"], ["ycsb"], **small, ycsb=file)
    fields = {change.field for change in ycsb.changes.values()}
    assert "pm.tWRITE" in fields
    assert not any(field.startswith("ycsb.") for field in fields)
    every = indelible.why(["silo"], ["ycsb"], **SMALL, fields=["ycsb.fieldcount"])
    assert len(every.changes) == 2


@needs_core
def test_what_is_not_said_is_told_as_the_simulator_has_it() -> None:
    answer = indelible.why(["silo"], ["array"], machine="tiny", fields=["cores", "txs"])
    before = {change.field: int(change.before) for change in answer.changes.values()}
    (run,) = answer.as_it_is.runs.values()
    assert before == {"cores": run.cores, "txs": run.txs // run.cores}


@needs_core
def test_of_many_that_cannot_be_run_some_are_named() -> None:
    answer = indelible.why(["silo"], ["array"], **SMALL, by=1000, fields=["l1d", "l2", "llc"])
    assert len(answer.refused) > causes_text.NAMED
    text = " ".join(str(answer).split())
    assert (
        f"- not run either: {len(answer.refused) - causes_text.NAMED} more; --json says why" in text
    )
    assert text.count("- not run: ") == causes_text.NAMED


def test_the_table_is_as_long_as_is_asked(command: Command) -> None:
    shown = command(*WHY, "--top", "2", columns=100)[1]
    table = shown.partition("field   ")[2].partition("\n\n")[0].splitlines()
    assert len(table) == 2 + 1 + 2, "a head, a rule, what nothing changes, and two"
    assert "* changes that move less than those above: 6 (--top)" in shown
    assert causes_text.TOP == 12


@needs_core
def test_a_domain_that_keeps_less_than_a_design_needs_is_not_compared() -> None:
    answer = indelible.why(
        PAIR, ["hash"], "silo", cores=1, txs=20, fields=["controller.domain", "controller.count"]
    )
    rows = {row["after"]: row["notes"] for row in answer.json()["rows"]}
    assert "eadr" in rows
    assert "media" not in rows
    assert not any(rows.values())
    shown = " ".join(str(answer).split())
    assert "not run: controller.domain=media: silo needs adr, and brings it along" in shown
    note = "silo needs the durability domain adr, which it gives to machine silo"
    asked = {"fields": ["controller.count"], "set": {"controller.domain": "media"}}
    always = indelible.why(PAIR, ["hash"], "silo", cores=1, txs=20, **asked)
    assert f"* {note}" in " ".join(str(always).split())
