"""How long commits take: percentiles, distributions, the command, and its figure."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest

import indelible
from conftest import needs_core
from indelible import latencies
from indelible.metrics import METRICS
from indelible.plots import comparison as comparison_plot
from indelible.plots import latencies as latencies_plot
from indelible.text import run as run_text

Command = Callable[..., tuple[int, str, str]]
ASKED = ("compare", "--designs", "native,silo", "--workloads", "hash,btree", "--no-crash")


@needs_core
def test_a_distribution_says_what_the_percentiles_do() -> None:
    designs = ["undo@x86", "loc-wal", "silo"]
    answer = indelible.compare(designs, ["hash"], cores=2, txs=2_000, crash=False, latencies=True)
    for design in designs:
        cell = (design, "hash", 2)
        latency = answer.runs[(*cell, 1)].data["commit_latency_cycles"]
        steps = latencies.distribution(answer, cell)
        assert steps is not None
        cycles, shares = zip(*steps, strict=True)
        assert list(cycles) == sorted({*cycles})
        assert list(shares) == sorted(shares)
        assert steps[-1] == (latency["max"], 1.0)
        for name, share in (("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p999", 0.999)):
            assert next(took for took, reached in steps if reached >= share) == latency[name]
    plain = indelible.compare(designs, ["hash"], cores=2, txs=2_000, crash=False)
    for key, run in plain.runs.items():
        own = answer.runs[key].data["commit_latency_cycles"]
        assert run.data["commit_latency_cycles"] == {
            name: value for name, value in own.items() if name != "distribution"
        }


def test_the_share_of_several_seeds_is_their_mean(fake: object) -> None:
    answer = indelible.compare(["silo"], ["hash"], seeds=2, crash=False, latencies=True)
    latency = answer.runs[("silo", "hash", None, 2)].data["commit_latency_cycles"]
    latency |= {"distribution": [[100, 0.5], [120, 0.999], [5000, 1.0]], "max": 5000, "p50": 100}
    found = latencies.numbers(answer, ("silo", "hash", None))
    assert found is not None
    # Half of the commits of both took so long: 0.25 and 0.5 at 110, 0.5 and 0.999 at 120.
    assert (found["p50"], found["max"]) == (120, 5000)
    steps = dict(latencies.distribution(answer, ("silo", "hash", None)) or [])
    assert steps[90] == pytest.approx(0.05)
    assert steps[100] == pytest.approx((0.1 + 0.5) / 2)
    assert steps[110] == pytest.approx((0.25 + 0.5) / 2)
    assert steps[120] == pytest.approx((0.5 + 0.999) / 2)
    assert steps[5000] == pytest.approx(1.0)


def test_seeds_without_distributions_are_means_and_say_so(fake: object) -> None:
    answer = indelible.compare(["silo"], ["hash"], seeds=2, crash=False)
    latency = answer.runs[("silo", "hash", None, 2)].data["commit_latency_cycles"]
    latency |= {"p50": 140, "max": 9000}
    found = latencies.numbers(answer, ("silo", "hash", None))
    assert found is not None
    assert (found["p50"], found["max"]) == (130, 9000)
    assert "means of each seed's percentiles" in " ".join(answer.latencies().split())


def test_a_percentile_takes_a_commit_that_is_slower(command: Command) -> None:
    for txs, told in ((9, 1), (99, 2), (999, 3), (1000, 4)):
        words = ["--designs", "silo", "--workloads", "hash", "--txs", str(txs), "--latencies"]
        _, shown, _ = command("compare", *words, "--no-crash")
        (row,) = (line.split() for line in shown.splitlines() if line.startswith("hash"))
        # Behind the names, the transaction and the mean, and before the slowest.
        assert [cell != "-" for cell in row[4:-1]] == [True] * told + [False] * (4 - told)


@needs_core
def test_a_run_shows_the_percentiles_that_a_comparison_does() -> None:
    cases = ((1, "-"), (9, "p75"), (10, "p90"), (99, "p90"), (100, "p99"), (9_999, "p99.9"))
    for txs, last in (*cases, (10_000, "p99.99")):
        answer = indelible.run("native", "array", cores=1, txs=txs, latencies=True)
        shown = run_text.run(answer, 200).splitlines()
        (told,) = (line.split() for line in shown if line.startswith("latencies"))
        assert told[-1 if txs == 1 else -2] == last


def test_only_what_needs_distributions_asks_for_them(
    command: Command, fake: ModuleType, tmp_path: Path
) -> None:
    page = ["--report", str(tmp_path / "it.html")]
    for words, asks in (([], False), (["--json"], True), (["--seeds", "2"], True), (page, True)):
        fake.asked.clear()
        command(*ASKED, "--latencies", *words)
        assert {spec.get("latencies", False) for _, spec in fake.asked if spec} == {asks}


def test_a_line_of_the_figure_is_a_distribution(fake: object) -> None:
    answer = indelible.compare(
        ["native", "leaky", "silo"], ["hash", "btree"], cores=[1, 8], latencies=True
    )
    drawing = latencies_plot.figure(answer)
    assert len(drawing.axes) == 4
    line = drawing.axes[0].get_lines()[1]
    steps = [(90, 0.0), *(latencies.distribution(answer, ("silo", "hash", 1)) or [])]
    assert list(line.get_xdata()) == [cycles for cycles, _ in steps]
    assert list(line.get_ydata()) == [latencies_plot.nines(share) for _, share in steps]
    assert latencies_plot.nines(0.99) == pytest.approx(2)
    (legend,) = drawing.legends
    # A commit of `native` makes nothing durable, and takes no time.
    assert [text.get_text() for text in legend.get_texts()] == ["leaky! (not crash-safe)", "silo"]


def test_a_design_has_the_colour_of_other_figures(fake: object) -> None:
    from matplotlib.colors import to_rgb

    answer = indelible.compare(["native", "silo", "undo@x86"], ["hash"], latencies=True)
    (axes,) = latencies_plot.figure(answer).axes
    (bars,) = comparison_plot.figure(answer).axes
    lines = {line.get_label(): to_rgb(line.get_color()) for line in axes.get_lines()}
    fills = {bar.get_label(): bar.patches[0].get_facecolor()[:3] for bar in bars.containers}
    assert [*lines] == ["silo", "undo@x86"]
    assert lines == {label: fills[label] for label in lines}


def test_panels_are_in_rows_and_say_of_what_their_axes_are(fake: object) -> None:
    workloads = ["hash", "btree", "sqlite"]
    answer = indelible.compare(["silo"], workloads, txs=1000, crash=False, latencies=True)
    more = replace(answer, workloads=(*answer.workloads, "a", "b"))
    for one, across, below in ((answer, 3, [True] * 3), (more, 4, [False, *[True] * 4])):
        panels = [axes for axes in latencies_plot.figure(one).axes if axes.get_visible()]
        columns = [axes.get_subplotspec().colspan.start for axes in panels]
        assert columns == [index % across for index in range(len(one.workloads))]
        assert [bool(axes.get_xlabel()) for axes in panels] == below
        assert [bool(axes.get_ylabel()) for axes in panels] == [not place for place in columns]
        # As many nines as the commits of a run can show.
        shares = [label.get_text() for label in panels[0].get_yticklabels()]
        assert shares == ["0 %", "90 %", "99 %", "99.9 %"]


def test_who_is_durable_later_is_told_above_the_panels(fake: object) -> None:
    for designs, is_told in ((["silo"], False), (["hops", "silo"], True)):
        answer = indelible.compare(designs, ["hash"], crash=False, latencies=True)
        said = latencies_plot.figure(answer).get_suptitle()
        assert ("until the transaction is durable" in said) == is_told


def test_the_legend_does_not_stand_in_the_title(fake: object) -> None:
    answer = indelible.compare(["leaky", "silo"], ["hash"], crash=False, latencies=True)
    drawing = latencies_plot.figure(answer)
    (legend,), (title,) = drawing.legends, drawing.texts
    over, under = (part.get_window_extent() for part in (title, legend))
    assert over.y0 > under.y1 or under.y0 > over.y1


def test_there_is_no_figure_without_distributions(fake: object) -> None:
    answer = indelible.compare(["silo"], ["hash"], crash=False)
    with pytest.raises(indelible.InputError, match="compare with latencies=True"):
        latencies_plot.figure(answer)
    answer = indelible.compare(["silo"], ["hash"], crash=False, latencies=True)
    for run in answer.runs.values():
        run.data["commit_latency_cycles"]["distribution"] = []
    with pytest.raises(indelible.InputError, match="no transaction was durable"):
        latencies_plot.figure(answer)


def test_the_command_shows_and_draws_them(command: Command, tmp_path: Path) -> None:
    path = tmp_path / "latencies.svg"
    table, rows = tmp_path / "latencies.csv", tmp_path / "rows.csv"
    words = [*ASKED, "--latencies", "--plot", str(path), "--table", str(table), "--csv", str(rows)]
    code, shown, _ = command(*words)
    assert (code, "p99.9" in shown, f"figure: {path}" in shown) == (0, True, True)
    assert "share of commits" in path.read_text(encoding="utf-8")
    assert table.read_text(encoding="utf-8").startswith("design,cores,workload,cycles.tx,")
    # A distribution would be a table of its own.
    heads = rows.read_text(encoding="utf-8").splitlines()[0]
    assert re.findall(r"commit_latency_cycles\.(\w+)", heads)[-1] == "max"
    assert "distribution" not in heads
    answer = json.loads(command(*ASKED, "--latencies", "--json")[1])
    assert [row["design"] for row in answer["latencies"]] == ["native", "silo"] * 2
    assert answer["latencies"][1]["cycles"]["p999"] == 2400
    assert answer["rows"][0]["commit_latency_cycles"]["distribution"][-1] == [4031, 1.0]
    assert answer["rows"][0]["command"].endswith("--latencies")


def test_what_is_not_asked_for_is_not_there(command: Command) -> None:
    answer = json.loads(command(*ASKED, "--json")[1])
    assert "latencies" not in answer
    assert "distribution" not in answer["rows"][0]["commit_latency_cycles"]


@pytest.mark.parametrize("name", ["p99", "p999"])
def test_a_metric_takes_as_many_commits_as_the_percentile_of_a_table(name: str) -> None:
    least, share = METRICS[f"commit-latency-{name}"].least, latencies.SHARES[name]
    assert latencies.is_told(share, least)
    assert not latencies.is_told(share, least - 1)


def test_a_percentile_of_few_commits_is_said_to_be_their_slowest(fake: ModuleType) -> None:
    few, enough = {"cores": 1, "txs": 999}, {"cores": 1, "txs": 1000}
    said = (
        "! the 99.9th percentile of commit latency of 999 transactions, fewer than 1,000, is the"
        " slowest: raise --txs"
    )
    metric = {"metric": "commit-latency-p999"}
    vary = {"silo.entries": [10, 20]}
    for asked, is_told in ((few | metric, True), (enough | metric, False), (few, False)):
        for answer in (
            indelible.compare(["undo@x86", "silo"], "hash", **asked),
            indelible.sweep("silo", "hash", vary, **asked),
            indelible.why("silo", "hash", fields=["controller"], **asked),
        ):
            assert (said in " ".join(str(answer).split())) == is_told
