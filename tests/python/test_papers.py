"""Papers' claims on canned rows, and on the simulator: every run that they name can be had."""

from __future__ import annotations

import csv
import json
import math
import pickle
import re
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import indelible
from conftest import needs_core
from indelible import papers
from indelible.evaluation import Cell
from indelible.papers import Paper
from indelible.plots import reproduction as reproduction_plot
from indelible.results.reproduction import Reproduction, Reproductions
from indelible.results.run import Run
from indelible.text.reproduction import measured, reproduction, reproductions

Command = Callable[..., tuple[int, str, str]]

#: Each design is so many times as fast as the first.
SPEED = {"base": 1.0, "fwb": 1.5, "morlog": 2.0, "lad": 3.0, "silo": 4.0}


def canned(cell: Cell) -> dict[str, Any]:
    """Return a row that depends on the design, the settings and the number of cores alone."""
    speed = SPEED.get(cell.design, 1.0 + len(cell.design) / 10) / (1 + len(cell.settings))
    return {
        "cores": cell.cores,
        "txs": cell.cores * 160 // cell.larger,
        # Half as many words a second, and twice the bytes a word, if transactions are large.
        "throughput_tx_per_s": 1e6 * speed / (cell.larger if cell.larger == 1 else 2 * cell.larger),
        "pm_writes": {
            "wpq_bytes": 1000 / speed * (1 if cell.larger == 1 else 2),
            "media_bits": 100 / speed,
            "media_lines": 10,
            "by_class": {"log": 300 / speed, "commit": 100 / speed, "consolidation": 250 / speed},
        },
        "write_set": {"words_avg": 20.0 * cell.larger},
        "design_counters": {"logs_generated": 75, "logs_ignored": 25, "logs_merged": 20},
    }


def answer(paper: Paper, leave_out: int = 0) -> Reproduction:
    cells = paper.cells()[leave_out:]
    runs = {cell: Run(canned(cell), None) for cell in cells}  # type: ignore[arg-type]
    return Reproduction(paper, None, 1, runs)


def test_how_long_runs_are_is_told_of_those_with_transactions_of_one_size() -> None:
    # Of transactions that are larger there are so many times fewer.
    assert (
        len({run.data["txs"] // cell.cores for cell, run in answer(papers.SILO).runs.items()}) > 1
    )
    assert " · 160 transactions a core · seed 1\n" in reproduction(answer(papers.SILO), 100)


def test_what_came_of_a_paper_goes_to_another_process() -> None:
    for paper in papers.PAPERS.values():
        whole = answer(paper)
        assert pickle.loads(pickle.dumps(whole)) == whole


def test_claims_of_silo_are_measured_as_they_are_published() -> None:
    rows = answer(papers.SILO).rows
    measured = [row["measured"] for row in rows]
    orders, numbers = measured[:4], measured[4:]
    for means in orders:
        assert [mean["design"] for mean in means] == ["base", "fwb", "morlog", "lad", "silo"]
        assert math.isclose(means[-1]["value"], 4.0)
    of = {row["what"]: row["measured"] for row in rows}
    assert math.isclose(of["Silo over MorLog, throughput, 1 core"], 2.0)
    assert math.isclose(of["PM writes against MorLog, bytes"], -50.0)
    assert math.isclose(of["logs removed on chip"], 45.0)
    assert math.isclose(of["logs that Array ignores"], 25.0)
    assert math.isclose(of["throughput, log buffer of 128 cycles for 8, 8 cores"], -50.0)
    large = "throughput a word, write set 16x the buffer (published: with tpcc, ycsb)"
    assert math.isclose(of[large], -50.0)
    assert math.isclose(of["PM writes a word, write set 16x the buffer (published: at most)"], 2.0)
    assert all(math.isfinite(number) for number in numbers)


@pytest.mark.parametrize("paper", papers.PAPERS.values(), ids=papers.PAPERS)
def test_the_same_is_said_behind_what_it_is_the_same_as(paper: Paper) -> None:
    """The figure has orders, factors and percentages apart."""
    panels = {"": "order", "x": "factor", "%": "percent", "share": "percent"}
    for before, claim in pairwise(paper.claims):
        if "the same" in claim.what:
            assert panels[claim.unit] == panels[before.unit], claim.what


@pytest.mark.parametrize("paper", papers.PAPERS.values(), ids=papers.PAPERS)
def test_a_row_says_what_it_is_the_same_as_without_those_before_it(paper: Paper) -> None:
    rows = {(row["what"], row["same_as"]) for row in answer(paper).rows}
    assert len(rows) == len(paper.claims), "two rows are told apart by their order alone"
    for what, name in rows:
        assert ((name, None) in rows) == what.startswith("the same"), what


def test_published_numbers_are_numbers_beside_their_text() -> None:
    of = {row["what"]: row for row in answer(papers.HOPS).rows}
    row = of["HOPS over clwb and sfence"]
    assert (row["published"], row["published_range"]) == ("1.2x to 1.24x", (1.2, 1.24))
    ssp = {row["what"]: row["published"] for row in answer(papers.SSP).rows}
    assert ssp["RBTree over REDO-LOG, writes of 50ns"] == "0.93x", "8 % faster is 1 / 1.08"
    order = of["throughput, undo@x86 = 1.00"]
    assert (order["published_range"], order["unit"]) == (None, "")


def test_rows_and_figure_of_claims(
    tmp_path: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(indelible, "reproduce", lambda *_args, **_options: answer(papers.SILO))
    rows, drawing = tmp_path / "silo.csv", tmp_path / "silo.svg"
    code, shown, _ = command("reproduce", "silo", "--csv", str(rows), "--plot", str(drawing))
    assert code == 0
    assert f"figure: {drawing}" in shown
    table = list(csv.DictReader(rows.read_text().splitlines()))
    # Four orders of five designs, and a row for each other claim.
    assert len(table) == 20 + len(papers.SILO.claims) - 4
    assert [row["design"] for row in table[:5]] == ["base", "fwb", "morlog", "lad", "silo"]
    (found,) = [row for row in table if row["what"] == "Silo over MorLog, throughput, 1 core"]
    assert (float(found["published_low"]), float(found["measured"])) == (1.4, 2.0)
    for claim in papers.SILO.claims:
        assert claim.what.split()[0] in drawing.read_text()
    words = "--plot", str(tmp_path / "silo.gif")
    assert command("reproduce", "silo", *words)[0] == 2


def test_a_claim_is_drawn_where_its_numbers_are() -> None:
    of = answer(papers.SILO, leave_out=1)
    drawing = reproduction_plot.figure(replace(of, machine="tiny"))
    assert drawing.get_suptitle() == f"{papers.SILO.title}, machine tiny"
    orders, factors, changes = drawing.axes
    whole = [row for row in of.rows if row["measured"] is not None]
    assert len(whole) < len(of.rows)
    for axes, units, origin in ((factors, ("x",), 1), (changes, ("%", "share"), 0)):
        rows = [row for row in whole if row["unit"] in units]
        names = [label.get_text() for label in axes.get_yticklabels()]
        assert names == [row["what"] for row in rows]
        # The first is at the top.
        assert axes.get_ylim()[0] > axes.get_ylim()[1]
        *drawn, line = axes.lines
        assert [*line.get_xdata()] == [origin, origin]
        for place, row in enumerate(rows):
            low, high = row["published_range"]
            middle = (low + high) / 2
            parts = drawn[4 * place : 4 * place + 4]
            across = [[middle, row["measured"]], [row["measured"]], [low, high], [middle]]
            assert [[*part.get_xdata()] for part in parts] == across
            assert {at for part in parts for at in part.get_ydata()} == {place}
    assert [note.get_text() for note in orders.texts[:5]] == [*SPEED]
    assert [line.get_xdata()[0] for line in orders.lines[:5]] == [
        mean["value"] for row in whole[:1] for mean in row["measured"]
    ]
    # A range is a line, with its marker in the middle.
    drawing = reproduction_plot.figure(answer(papers.HOPS))
    ends = [[*line.get_xdata()] for axes in drawing.axes for line in axes.lines]
    at = ends.index([1.20, 1.24])
    assert ends[at + 1] == [pytest.approx(1.22)]
    points = Reproductions({"pm.tWRITE": ("1ns", "2ns")}, {("1ns",): of, ("2ns",): of})
    varied = reproduction_plot.figure(points)
    assert varied.get_suptitle().endswith("machine silo, at values of pm.tWRITE")
    labels = [label.get_text() for label in varied.legends[0].get_texts()]
    assert labels == ["published", "here, 1ns", "here, 2ns"]


@pytest.mark.parametrize("paper", papers.PAPERS.values(), ids=papers.PAPERS)
def test_every_claim_has_a_number_or_an_order(paper: Paper) -> None:
    for row in answer(paper).rows:
        measured = row["measured"]
        values = [measured] if isinstance(measured, float) else [m["value"] for m in measured]
        assert all(math.isfinite(value) for value in values), row
    shown = reproduction(answer(paper), 80)
    assert max(map(len, shown.splitlines())) <= 80
    for row in answer(paper).rows:
        assert row["published"].split()[0] in shown


@pytest.mark.parametrize("paper", papers.PAPERS.values(), ids=papers.PAPERS)
def test_a_claim_is_measured_on_what_it_names(paper: Paper) -> None:
    for claim in paper.claims:
        cores = {str(cell.cores) for cell in claim.cells}
        if said := re.search(r"(\d+) (core|thread)s?\b", claim.what):
            assert cores == {said[1]}, claim.what
        assert len(cores) == 1
        name = claim.what.partition(" ")[0].lower()
        of = {"btree", "rbtree", "memcached", "vacation"} & {name}
        workloads = {cell.workload.partition("-")[0] for cell in claim.cells}
        assert not of or of == workloads, claim.what
        if said := re.search(r"writes of (\w+)", claim.what):
            assert {dict(cell.settings)["pm.tWRITE"] for cell in claim.cells} == {said[1]}


def test_what_was_published_has_its_sign_and_its_ends() -> None:
    published = [row["published"] for row in answer(papers.SSP).rows]
    assert {"+75 %", "-45 %", "1.9x", "15 %"} <= {*published}
    rows = csv.DictReader(answer(papers.HOPS).csv().splitlines())
    (row,) = [row for row in rows if row["what"] == "HOPS over clwb and sfence"]
    assert (row["published_low"], row["published_high"]) == ("1.2", "1.24")


def test_what_is_measured_has_its_sign_and_as_many_digits() -> None:
    for unit, found, shown in (
        ("%", 4.26, "+4.3 %"),
        ("%", -4.26, "-4.3 %"),
        ("share", 64.26, "64.3 %"),
        ("x", 1.234, "1.23x"),
        ("x", 0.3312, "0.331x"),
        ("x", 0.00432, "0.0043x"),
    ):
        assert measured({"measured": found, "unit": unit}) == shown


def test_how_long_runs_are_is_not_told_if_they_differ() -> None:
    one = answer(papers.HOPS)
    runs = {cell: replace(run, data=run.data | {"txs": 400}) for cell, run in one.runs.items()}
    for other, is_told in ((one, True), (replace(one, runs=runs), False)):
        points = {("1",): one, ("2",): other}
        shown = reproductions(Reproductions({"field": ("1", "2")}, points), 100)
        assert (" a core" in shown.split("\n\n")[0]) == is_told


def test_what_moves_a_paper_is_beside_its_option_or_below() -> None:
    what = "Silo over LAD, 8 cores: more dirty lines leave the caches"
    for width, between in ((80, "\n    "), (140, r" +")):
        shown = reproduction(answer(papers.SILO), width)
        assert re.search(rf"\n  --txs 10000{between}{what}", shown)
        assert max(map(len, shown.splitlines())) <= width


def test_seeds_that_vary_are_not_said_of_all_points() -> None:
    one = answer(papers.SILO)
    for seed, is_said in ((1, True), (2, False)):
        points = {("1",): one, ("2",): replace(one, seed=seed)}
        shown = reproductions(Reproductions({"field": ("1", "2")}, points), 100)
        assert (" · seed 1 · " in shown) == is_said


@needs_core
def test_a_run_that_points_share_is_counted_once() -> None:
    one = answer(papers.SILO)
    plan = one.plan()
    runs = {cell: Run(canned(cell), plan[cell]) for cell in [*plan][:3]}
    part = replace(one, runs=runs, interrupted=True)
    shown = reproductions(Reproductions({"field": ("1", "2")}, {("1",): part, ("2",): part}), 100)
    assert shown.startswith(f"interrupted: 3 of {len({*plan.values()})} runs had ended\n")


def test_what_was_not_run_is_not_measured() -> None:
    rows = answer(papers.LOC, leave_out=1).rows
    missing = [row["what"] for row in rows if row["measured"] is None]
    assert missing == [rows[0]["what"]]
    shown = reproduction(answer(papers.LOC, leave_out=1), 100)
    assert re.search(r"\nthroughput, native = 1\.00 +s-wal < h-wal", shown)


def test_an_unknown_paper_is_a_sentence(command: Command) -> None:
    for words, sentence in (
        (["reproduce"], "needs a paper; there are: silo, loc, hops, ssp"),
        (["reproduce", "slio"], "unknown paper `slio`; there are: silo"),
    ):
        code, shown, complaints = command(*words)
        assert (code, shown, complaints.count("\n")) == (2, "", 1)
        assert sentence in complaints


def numbers(found: Reproduction | Reproductions, point: int | None = None) -> dict[str, float]:
    """Return what was measured of each claim that is a number, at a point if there are several."""
    rows = (row for row in found.rows if point is None or [*row["point"].values()] == [point])
    return {row["what"]: row["measured"] for row in rows if row["unit"]}


#: What makes runs short: few items are set up.
SHORT = {"workload.items": 200}


@needs_core
def test_claims_are_asked_with_other_settings_and_keep_their_own() -> None:
    def hops(machine: str | None = None, **own: object) -> Reproduction:
        return indelible.reproduce("hops", machine, txs=20, set=SHORT | own)

    as_it_is, dropping = numbers(hops()), numbers(hops(**{"core.clwb_retains": "no"}))
    base, own = "HOPS over clwb and sfence", "HOPS, clwb drops lines"
    assert as_it_is[base] != as_it_is[own] == dropping[own] == dropping[base]
    sticky = numbers(hops(**{"hops.depends": "sticky"}))
    assert sticky[base] == as_it_is["HOPS, dependences on durable lines, too"]
    assert sticky["ideal over clwb and sfence"] == as_it_is["ideal over clwb and sfence"]
    # A field has other names, and the claim knows its own.
    with_names = indelible.reproduce("silo", txs=2, set=SHORT | {"controller.noc": "100ns"})
    with_keys = indelible.reproduce("silo", txs=2, set=SHORT | {"controller.noc_latency": "100ns"})
    assert with_names.rows == with_keys.rows
    elsewhere = hops("optane", **{"core.cores_max": 4})
    assert "\nmachine optane · 20 transactions a core · seed 1 · workload.items=200" in str(
        elsewhere
    )
    assert elsewhere.json()["settings"] == {"workload.items": "200", "core.cores_max": "4"}


@needs_core
def test_claims_at_several_values_have_a_column_each(tmp_path: Path) -> None:
    found = indelible.reproduce("loc", txs=20, set=SHORT, vary={"loc-wal.sd": [1, 4, 32]})
    strict, loose = numbers(found, 1), numbers(found, 32)
    assert strict["LOC-WAL over no persistence"] == strict["LOC-WAL, SD = 1"]
    assert loose["LOC-WAL over no persistence"] == loose["LOC-WAL, SD = 32"]
    assert strict["LOC-WAL, SD = 1"] == loose["LOC-WAL, SD = 1"], "the claim says it itself"
    data = found.json()
    assert data["vary"] == {"loc-wal.sd": [1, 4, 32]}
    assert (data["machine"], data["seed"]) == ("loc", 1)
    assert data["settings"] == {"workload.items": "200"}
    # What no point moves is run once.
    assert len(data["runs"]) < 3 * len(papers.LOC.cells())
    for width in (50, 80, 120):
        shown = reproductions(found, width).splitlines()
        assert max(map(len, shown)) <= width
        heads = [line.split()[2:] for line in shown if line.startswith("claim")]
        assert [value for head in heads for value in head] == ["1", "4", "32"]
        orders = sum(not claim.unit for claim in papers.LOC.claims)
        assert sum(line.lstrip().startswith(("1 ", "4 ", "32 ")) for line in shown) == 3 * orders
    drawing = tmp_path / "loc.svg"
    found.save(drawing)
    for label in ("published", "here, 1", "here, 32"):
        assert label in drawing.read_text()
    runs = indelible.reproduce("loc", set=SHORT, vary={"txs": [20, 30]})
    table = list(csv.DictReader(runs.csv().splitlines()))
    assert {row["point.txs"] for row in table} == {"20", "30"}


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--vary", "txs=20,30", "--txs", "20"], "txs is set twice; keep one"),
        (["--vary", "cores=1,2"], "each claim sets its own number of cores"),
        (["--vary", "warmup=1,2"], "each claim sets its own warm-up"),
        (["--vary", "pm.tREAD=1ns", "--vary", "pm.tREAD=2ns"], "a field varies twice"),
        (["--vary", "txs=none"], "`txs` must be a whole number from 1 up, not `none`"),
    ],
)
def test_what_does_not_vary_is_a_sentence(
    command: Command, words: list[str], sentence: str
) -> None:
    code, _, complaints = command("reproduce", "loc", *words)
    assert (code, complaints.count("\n")) == (2, 1)
    assert sentence in complaints


def test_many_columns_are_in_several_tables() -> None:
    values = tuple(f"{value}ns" for value in range(100, 1100, 100))
    of = {(value,): answer(papers.SILO) for value in values}
    shown = reproductions(Reproductions({"pm.tWRITE": values}, of), 80).splitlines()
    assert max(map(len, shown)) <= 80
    heads = [line.split()[2:] for line in shown if line.startswith("claim")]
    assert len(heads) > 1
    assert [head for part in heads for head in part] == [*values]


@needs_core
@pytest.mark.parametrize("paper", papers.PAPERS.values(), ids=papers.PAPERS)
def test_what_is_said_to_move_a_paper_does(paper: Paper) -> None:
    as_it_is = indelible.reproduce(paper.name, txs=20, set=SHORT)
    for option, _ in paper.moved_by:
        words = option.split()
        own = dict(word.split("=") for word in words[1::2]) if words[0] == "--set" else {}
        # As many items as the paper has take seconds to set up in each of its runs.
        own |= {field: 2_000 for field in own if field == "workload.items"}
        moved = indelible.reproduce(paper.name, txs=20 if own else 40, set=SHORT | own)
        assert moved.rows != as_it_is.rows, option


@needs_core
@pytest.mark.parametrize("name", papers.PAPERS)
def test_every_run_can_be_had(name: str) -> None:
    found = indelible.reproduce(name, txs=10, set=SHORT)
    assert len(found.runs) == len(papers.PAPERS[name].cells())
    assert all(row["measured"] is not None for row in found.rows)
    assert json.loads(json.dumps(found.json()))["machine"] == papers.PAPERS[name].machine


@needs_core
def test_a_share_is_in_percent_in_json() -> None:
    found = indelible.reproduce("silo", txs=5, set=SHORT)
    units = {claim.unit for claim in found.paper.claims}
    assert "share" in units
    assert {row["unit"] for row in found.json()["rows"]} == {
        "%" if u == "share" else u for u in units
    }
