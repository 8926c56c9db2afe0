"""Sweeps over machines: which machine a run is on, what is said of them, who leads on each."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest

import indelible
from conftest import needs_core
from indelible import bundles, jobs
from indelible.cli import parser
from indelible.experiment import Experiment
from indelible.pages import report
from indelible.plots import sweep as sweep_plot
from indelible.results.run import Run
from indelible.results.sweep import Sweep
from indelible.text import sweep as sweep_text

Command = Callable[..., tuple[int, str, str]]

SWEEP = ["sweep", "--designs", "silo,leaky", "--workloads", "hash"]
MACHINES = ["--vary", "machine=silo,ssp"]

#: The machine of Silo with its memory behind a slow link, as a file.
FAR = 'extends = "silo"\n[controller]\nlink_latency = "70ns"\n'


def speeds(answer: Sweep, of: dict[tuple[str, str], float]) -> Sweep:
    """Return a sweep in which designs have these speeds on some machines, and 1 elsewhere."""
    runs = {cell: Run(dict(run.data), run.experiment) for cell, run in answer.runs.items()}
    for ((machine, *_), design, _, _), run in runs.items():
        run.data["throughput_tx_per_s"] = 1e6 * of.get((machine, design), 1.0)
    return replace(answer, runs=runs)


def test_each_run_is_on_the_machine_of_its_point(command: Command, fake: ModuleType) -> None:
    found = command(*SWEEP, *MACHINES, "--vary", "cores=1,2", "--no-crash", "--json")
    answer = json.loads(found[1])
    asked = {(s["design"], s["machine"], s["cores"]) for kind, s in fake.asked if kind == "run"}
    assert asked == {(d, m, n) for d in ("silo", "leaky") for m in ("silo", "ssp") for n in (1, 2)}
    assert answer["machine"] is None
    assert answer["vary"]["machine"] == ["silo", "ssp"]
    assert {(row["point"]["machine"], row["machine"]) for row in answer["rows"]} == {
        ("silo", "silo"),
        ("ssp", "ssp"),
    }


def test_its_command_has_the_same_answer(command: Command) -> None:
    answer = json.loads(command(*SWEEP, *MACHINES, "--json")[1])
    assert "--machine" not in answer["command"]
    assert "--vary machine=silo,ssp" in answer["command"]
    again = command(*shlex.split(answer["command"])[1:], "--json")
    assert json.loads(again[1]) == answer


def test_all_are_those_that_are_listed(fake: ModuleType) -> None:
    listed = tuple(row["name"] for row in indelible.list("machines"))
    assert indelible.sweep("silo", "hash", {"machine": "all"}).vary == {"machine": listed}
    one_first = indelible.sweep("silo", "hash", {"machine": ["ssp", "all"]})
    assert one_first.machines == ("ssp", *(name for name in listed if name != "ssp"))


BAD = {
    "twice": ([*MACHINES, "--machine", "silo"], "machine is set twice; keep one"),
    "none": (["--vary", "machine=,"], "`machine` has no values; write machine=silo,optane"),
    "unknown": (["--vary", "machine=silo,sssp"], "unknown machine `sssp`; "),
    "several": (["--vary", "machines=silo,ssp"], "`machines` is no field; did you mean `machine`?"),
    "core": (["--vary", "core=1,2"], "`core` is no field; did you mean `cores`?"),
    "set": (
        ["--vary", "cores=1,2", "--set", "machine=ssp"],
        "`machine` is no setting but an option of its own: --machine ssp",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_a_sentence(command: Command, fake: ModuleType, name: str) -> None:
    words, sentence = BAD[name]
    code, shown, complaints = command(*SWEEP, *words)
    assert (code, shown, complaints.count("\n")) == (2, "", 1)
    assert complaints.startswith(f"indelible: error: {sentence}")
    assert not fake.asked


@needs_core
def test_an_unknown_machine_is_refused_with_the_nearest_name_first() -> None:
    vary = {"machine": ["silo", "optan"]}
    with pytest.raises(indelible.InputError, match=r"^unknown machine `optan`; did you mean `opt"):
        indelible.sweep("silo", "hash", vary)
    with pytest.raises(indelible.InputError, match=r"^machine file \./none\.toml: No such file"):
        indelible.sweep("silo", "hash", {"machine": "silo,./none.toml"})
    # A path may have colons, so that these are no range.
    with pytest.raises(indelible.InputError, match=r"^unknown machine `8:128:8`"):
        indelible.sweep("silo", "hash", {"machine": "8:128:8"})


@needs_core
def test_a_machine_that_cannot_be_is_named_with_the_run() -> None:
    with pytest.raises(indelible.InputError) as error:
        indelible.sweep("silo", "hash", {"machine": ["silo", "ssp"]}, cores=8)
    assert str(error.value).startswith("silo on hash, machine=ssp: cores is 8; machine ssp takes")


@needs_core
def test_what_differs_between_machines_is_said_with_them() -> None:
    asked = {"txs": 5, "crash": False}
    vary = {"machine": ["silo", "optane", "ssp"]}
    answer = indelible.sweep("undo@x86", "hash", vary, **asked)
    assert sweep_text.where(answer, answer.core_model()) == (
        "window core · domain adr (silo, optane), domain media (ssp) · "
        "8 cores (silo), 16 cores (optane), 4 cores (ssp) · seed 1"
    )
    # What is the same on all is said once, and what a design changes on one machine is not said.
    both = indelible.sweep(["undo@x86", "undo@eadr"], "hash", vary, cores=2, **asked)
    assert sweep_text.where(both, both.core_model()) == "window core · 2 cores · seed 1"
    alone = indelible.sweep("undo@x86", "hash", {"cores": [1, 2]}, machine="ssp", **asked)
    assert sweep_text.where(alone, alone.core_model()) == (
        "machine ssp · window core · domain media · seed 1"
    )


@needs_core
def test_a_note_has_the_amounts_of_data_where_machines_have_others() -> None:
    note = "machines differ in data, too: 400,000 items (silo), 600,000 items (ssp);"
    vary = {"machine": ["silo", "ssp"]}
    for more, told in (
        ({}, True),
        ({"set": {"workload.items": 100}}, False),
        ({"set": {"hash.items": 100}}, False),
        ({"vary": vary | {"workload.items": [100]}}, False),
        ({"vary": {"cores": [1]}}, False),
        ({"vary": {"machine": ["silo"]}}, False),
    ):
        asked = {"vary": vary, "txs": 5, "crash": False} | more
        shown = " ".join(str(indelible.sweep("silo", "hash", **asked)).split())
        assert (note in shown, "differ in data" in shown) == (told, told), more


def test_who_leads_on_each_machine_is_a_column(fake: ModuleType) -> None:
    vary = {"machine": ["silo", "ssp", "tiny"]}
    asked = indelible.sweep(["silo", "leaky"], "hash", vary, crash=False)
    answer = speeds(asked, {("silo", "leaky"): 1.5, ("ssp", "silo"): 2.0})
    assert [(row["point"]["machine"], row["design"], row["lead"]) for row in answer.ahead()] == [
        ("silo", "leaky", 1.5),
        ("ssp", "silo", 2.0),
        ("tiny", None, 1.0),
    ]
    ((heads, *rows),) = sweep_text.grids(answer).values()
    assert heads == ["machine", "silo", "leaky", "ahead"]
    assert rows == [
        ["silo", "1.00", "1.00", "leaky 1.50"],
        ["ssp", "2.00", "0.67", "silo 2.00"],
        ["tiny", "1.00", "0.67", "level"],
    ]
    assert "> ahead: the design whose throughput is highest" in str(answer)
    # Machines have no order, so that nobody passes another between two of them.
    assert answer.crossings() == []
    assert "Where one design passes" not in report.html(answer)
    assert " passes " not in str(answer)
    # Of one design there is nobody to be ahead of.
    ((heads, *_),) = sweep_text.grids(indelible.sweep("silo", "hash", vary)).values()
    assert heads == ["machine", "hash"]


def test_machines_are_not_joined_by_lines(fake: ModuleType) -> None:
    for vary, style in (({"machine": ["silo", "ssp"]}, "None"), ({"silo.entries": [4, 12]}, "-")):
        (axes,) = sweep_plot.figure(indelible.sweep("silo", "hash", vary)).axes
        assert {line.get_linestyle() for line in axes.lines if line.get_marker() != "None"} == {
            style
        }
        assert axes.get_title(loc="left").startswith("machine silo") == (style == "-")


@needs_core
def test_a_report_has_every_machine() -> None:
    more = {"txs": 5, "crash": False, "set": {"silo.controller.wpq": 8}}
    vary = {"machine": ["silo", "optane"]}
    answer = indelible.sweep(["native", "silo"], "hash", vary, **more)
    page = report.html(answer)
    assert "<h2>What was simulated: machines silo, optane</h2>" in page
    assert page.count('aria-label="Parameters of optane"') == 1
    assert "<dt>machine</dt> <dd>silo, optane · window core · domain adr</dd>" in page
    # On each machine that field of one design's machine was something else.
    assert "<mark>8</mark> set; it was 64, 4" in page
    one = report.html(indelible.sweep("silo", "hash", {"cores": [1]}, machine="tiny", txs=5))
    assert "<h2>What was simulated: machine tiny</h2>" in one


@needs_core
def test_a_machine_whose_caches_survive_has_a_campaign_of_its_own() -> None:
    plan = {
        (machine,): Experiment("undo@x86", "hash", machine) for machine in ("silo", "optane", "cxl")
    }
    durability = {"undo@x86": "synchronous"}
    (of_adr, adr), (of_gpf, gpf) = jobs.sampled(plan, durability).items()
    assert (adr, gpf) == ([("silo",), ("optane",)], [("cxl",)])
    assert of_adr.experiment.settings == ()
    assert ("controller.domain", "gpf") in of_gpf.experiment.settings


@needs_core
def test_machine_files_vary_and_are_kept_by_their_values(tmp_path: Path) -> None:
    file = tmp_path / "far.toml"
    file.write_text(FAR, encoding="utf-8")
    asked = {"txs": 20, "crash": False, "keep": tmp_path / "rows"}
    vary = {"machine": ["silo", file]}
    first = indelible.sweep("silo", "hash", vary, **asked)
    assert first.vary == {"machine": ("silo", str(file))}
    assert first.ratio(((file,), "silo", "hash")) < 1
    file.write_text(FAR.replace("70ns", "700ns"), encoding="utf-8")
    second = indelible.sweep("silo", "hash", vary, **asked)
    assert (second.taken.count, second.taken.of) == (1, 2)
    assert second.gmean((file,), "silo") < first.gmean((file,), "silo")


@needs_core
def test_machine_files_go_along_in_a_bundle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("far.toml").write_text('extends = "base.toml"\n', encoding="utf-8")
    Path("base.toml").write_text('extends = "silo"\n', encoding="utf-8")
    for words in (["--vary", "machine=silo, ./far.toml"], ["--vary=machine=silo,./far.toml"]):
        found = bundles.split(["sweep", *words, "--set", "pm.tCL=1ns"], Path("it"))
        assert "machine=silo,./inputs/1/far.toml" in " ".join(found.words)
        assert sorted(found.inputs) == ["inputs/1/base.toml", "inputs/1/far.toml"]


@needs_core
def test_claims_of_a_paper_on_several_machines_have_a_column_each() -> None:
    more = {"txs": 5, "set": {"workload.items": 200}}
    found = indelible.reproduce("loc", **more, vary={"machine": ["loc", "hops"]})
    data = found.json()
    assert data["machine"] is None
    assert "--machine" not in data["command"]
    assert {run["machine"] for run in data["runs"]} == {"loc", "hops"}
    shown = str(found).splitlines()
    assert shown[1].startswith("5 transactions a core")
    assert [line.split()[2:] for line in shown if line.startswith("claim")] == [["loc", "hops"]]


def test_machines_of_claims_are_said_once(command: Command) -> None:
    words = ["reproduce", "loc", "--vary", "machine=silo,ssp", "--machine", "silo"]
    assert command(*words)[2] == "indelible: error: machine is set twice; keep one\n"


@pytest.mark.parametrize("several", ["silo,ssp", "all"])
def test_where_one_machine_is_asked_for_several_are_a_sweep(
    command: Command, fake: ModuleType, several: str
) -> None:
    words = {
        "run": ["--design", "silo", "--workload", "hash"],
        "compare": [],
        "sweep": [*SWEEP[1:], "--vary", "cores=1,2"],
        "reproduce": ["loc"],
    }
    for verb, own in words.items():
        code, _, complaints = command(verb, *own, "--machine", several)
        sweep = "reproduce" if verb == "reproduce" else "sweep"
        said = f"`{several}` is not one machine; `indelible {sweep} --vary machine={several}` runs"
        assert (code, said in complaints, complaints.count("\n")) == (2, True, 1)
    assert not fake.asked
    with pytest.raises(indelible.InputError, match=r"takes several: vary={'machine': \['silo'"):
        indelible.compare(machine=["silo", "ssp"])


@needs_core
def test_a_machine_file_may_have_a_comma_in_its_name(tmp_path: Path) -> None:
    file = tmp_path / "far,away.toml"
    file.write_text(FAR, encoding="utf-8")
    assert parser.parse(["run", "--machine", str(file)]).machine == str(file)


def test_a_field_of_a_section_is_not_taken_for_one_of_the_run(fake: ModuleType) -> None:
    indelible.sweep("silo", "hash", {"x.seed": [1, 2]})
    assert {spec["settings"]["x.seed"] for kind, spec in fake.asked if kind == "run"} == {"1", "2"}
