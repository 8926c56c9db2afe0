"""Memories beside what was measured of real ones, and beside the arithmetic of docs/model.md."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import indelible
from conftest import needs_core
from indelible import extension, pool, probes
from indelible.cli import main
from indelible.plots import COLOURS
from indelible.plots import probe as probe_plot
from indelible.results.probe import Probed
from indelible.settings import number
from indelible.text import probe as probe_text

pytestmark = needs_core

#: The presets.
PRESETS = Path(__file__).parents[2] / "machines"
MACHINES = tuple(sorted(path.stem for path in PRESETS.glob("*.toml")))

#: Nanoseconds by unit.
TIMES = {"ps": 0.001, "ns": 1, "us": 1000}


@pytest.fixture(scope="module")
def optane() -> Probed:
    return indelible.probe("optane")


@pytest.fixture(scope="module")
def latencies() -> dict[str, Probed]:
    # Page walks are no part of a level's latency.
    own = {"tlb.walks": "designs"}
    return {name: indelible.probe(name, "latency", set=own) for name in MACHINES}


def measured(answer: Probed) -> dict[str, Any]:
    return {row["probe"]: row["measured"] for row in answer.rows}


def times_of(machine: str) -> dict[str, float]:
    """Return the times of a machine in nanoseconds, by section and key."""
    found = {}
    for row in extension.describe(f"machine:{machine}")["rows"]:
        value = number(str(row["value"]))
        if value is not None and value[1] in TIMES:
            found[f"{row['section']}.{row['key']}"] = float(value[0]) * TIMES[value[1]]
    return found


#: How far from the published number each probe of `optane` may be; what is not here is not close.
BANDS = {
    "pm-sequential": 0.05,
    "pm-random": 0.05,
    "clwb": 0.05,
    "read-sequential": 0.20,
    "ntstore-sequential": 0.05,
    "random-64": 0.05,
    "random-128": 0.05,
    "random-256": 0.05,
    "random-512": 0.05,
    "sequential": 0.05,
    # The way to DRAM is as long as that to persistent memory, which is what it was fitted to.
    "dram-sequential": 0.15,
    "dram-random": 0.20,
    # VANS is a model of the same hardware, and nothing here was fitted to it.
    "ntstore-random": 0.25,
}


@pytest.mark.parametrize("probe", BANDS)
def test_optane_is_as_measured(optane: Probed, probe: str) -> None:
    row = next(row for row in optane.rows if row["probe"] == probe)
    assert row["measured"] == pytest.approx(row["published"], rel=BANDS[probe])
    assert row["off"] == pytest.approx(row["measured"] / row["published"] - 1)


def test_what_does_not_come_out_of_optane_is_said(optane: Probed) -> None:
    found = measured(optane)
    # Less than half as long as published: a store past the caches skips the way down through them,
    # and emptying its buffer takes no time of its own. docs/model.md has the waits.
    assert 30 < found["ntstore"] < 45
    # No address indirection, whose misses are what VANS waits for.
    assert 3 * 1.26 < found["read-random"] < 4 * 1.26
    unlisted = {row["probe"] for row in optane.rows if row["published"]} - BANDS.keys()
    assert unlisted == {"ntstore", "read-random"}
    assert {row["probe"] for row in optane.rows if probe_text.is_off(row)} == unlisted
    shown = str(optane)
    assert "! more than 25 % off" in shown
    assert "  ntstore + sfence: 36.8 ns here, 90.0 ns published (Yang+ FAST'20)" in shown
    assert shown.count(" !\n") == 2


def test_writes_saturate_with_fewer_cores_than_reads(optane: Probed) -> None:
    cores = {row["probe"]: row["cores"] for row in optane.rows if row["cores"]}
    assert cores["ntstore-sequential"] <= 4 <= cores["read-sequential"]
    assert all(row["cores"] is None for row in optane.rows if row["group"] != "bandwidth")


def test_a_loaded_memory_is_slower(optane: Probed) -> None:
    found = measured(optane)
    assert found["pm-random-loaded"] > 1.2 * found["pm-random"]


@pytest.mark.parametrize("machine", MACHINES)
def test_a_level_takes_what_it_and_those_above_it_take(
    latencies: dict[str, Probed], machine: str
) -> None:
    found, times = measured(latencies[machine]), times_of(machine)
    cycle = 1 / float(_clock(machine))
    above = 0.0
    for probe, level in (("l1", "l1d"), ("l2", "l2"), ("llc", "llc")):
        above += times[f"{level}.data_latency"]
        if probe == "l2" and _is_no_larger(machine, "l2", "l1d"):
            # It includes the first, so nothing is found there alone.
            assert found[probe] is None
        else:
            assert found[probe] == pytest.approx(above, abs=2 * cycle)


@pytest.mark.parametrize("machine", MACHINES)
def test_a_read_of_the_cells_takes_what_the_model_says(
    latencies: dict[str, Probed], machine: str
) -> None:
    times = times_of(machine)
    way = 2 * (times["controller.noc_latency"] + times["controller.link_latency"])
    caches = sum(times[f"{level}.data_latency"] for level in ("l1d", "l2", "llc"))
    queues = sum(times[f"controller.static_{end}_latency"] for end in ("frontend", "backend"))
    device = times["pm.tREAD"] + times["pm.tBURST"]
    expected = caches + way + queues + device
    # Once in a while a row is open.
    found = measured(latencies[machine])["pm-random"]
    assert found == pytest.approx(expected, rel=0.01, abs=2 / float(_clock(machine)))


def _is_no_larger(machine: str, level: str, above: str) -> bool:
    """Return whether a level is as large as one that it includes."""
    rows = extension.describe(f"machine:{machine}")["rows"]
    sizes = {row["section"]: row["value"] for row in rows if row["key"] == "size"}
    return sizes[level] == sizes[above]


def _clock(machine: str) -> float:
    """Return the frequency of a machine's cores in GHz."""
    rows = extension.describe(f"machine:{machine}")["rows"]
    clock = next(row["value"] for row in rows if row["key"] == "clk_domain")
    return float(clock.removesuffix("GHz"))


def test_only_optane_was_measured() -> None:
    answer = indelible.probe(["optane", "tiny"], ["persist"])
    known = {row["machine"] for row in answer.rows if row["published"] is not None}
    assert known == {"optane"}
    for name, published in probes.PUBLISHED["optane"].items():
        assert name in probes.PROBES
        assert published.source
        assert published.is_of_model == published.source.startswith("VANS")


def test_a_published_bandwidth_is_of_each_dimm() -> None:
    six = probes.Memory.of("optane", (("controller.count", "6"),))
    published = probes.PUBLISHED["optane"]
    assert published["read-sequential"].of(six) == pytest.approx(39.6)
    assert published["pm-random"].of(six) == 305


def test_how_far_off_a_number_is_is_rounded_to_the_nearest_percent(optane: Probed) -> None:
    published = [row for row in optane.rows if row["published"] is not None]
    offs = [round(100 * (row["measured"] / row["published"] - 1)) for row in published]
    for row, off in zip(published, offs, strict=True):
        (line,) = [
            line
            for line in probe_text.probed(optane, 200).splitlines()
            if f" {row['what']}  " in line and f" {row['published']:g} " in line
        ]
        assert (f" {off:+} %" if off else " 0 %") in line
    assert any(off != int(100 * row["off"]) for row, off in zip(published, offs, strict=True))


def test_cells_are_written_in_lines_of_the_buffer_on_the_dimm_if_there_is_one() -> None:
    unbuffered = ("pm.xpbuffer_entries", "0"), ("controller.domain", "media")
    found = [probes.Memory.of("optane", pairs).cells for pairs in ((), *((p,) for p in unbuffered))]
    assert found == [256, 64, 64]


def test_rows_are_json_and_csv(optane: Probed) -> None:
    answer = json.loads(json.dumps(optane.json(), allow_nan=False))
    own = {"machines", "seed", "rows", "curves", "cancelled"}
    assert answer.keys() == own | {"settings", "command", "version"}
    assert [row["probe"] for row in answer["rows"]] == [*probes.PROBES]
    assert answer["rows"][0].keys() == {
        *("machine", "group", "probe", "what", "unit", "measured", "cores"),
        *("published", "off", "source", "from_memory", "of_model"),
    }
    assert answer["curves"] == []
    rows = [*csv.DictReader(io.StringIO(optane.csv()))]
    assert [row["probe"] for row in rows] == [*probes.PROBES]
    assert float(rows[0]["measured"]) == answer["rows"][0]["measured"]


@pytest.mark.parametrize("width", [80, 100])
def test_tables_fit(optane: Probed, latencies: dict[str, Probed], width: int) -> None:
    several = indelible.probe([*MACHINES], "amplification", set={"pm.tCL": "40ns"})
    for answer in (optane, latencies["loc"], several):
        lines = probe_text.probed(answer, width).splitlines()
        assert max(map(len, lines)) <= width
    text = probe_text.probed(several, width)
    assert all(f" {name}" in text for name in MACHINES)
    assert "--set pm.tCL=40ns" in text


def test_the_command_says_how_to_repeat_it(optane: Probed) -> None:
    assert str(optane).endswith("repeat      indelible probe --machines optane --seed 1")
    answer = indelible.probe("tiny", ["amplification", "persist"], seed=3)
    assert answer.command == (
        "indelible probe --machines tiny --only persist,amplification --seed 3"
    )


def test_a_seed_determines_every_number() -> None:
    one, other = (indelible.probe("tiny", seed=5).rows for _ in range(2))
    assert one == other


def test_a_machine_of_one_s_own_is_asked_as_a_preset_is(tmp_path: Path) -> None:
    far = tmp_path / "far.toml"
    far.write_text(
        'name = "far"\nsummary = "far"\nextends = "tiny"\n[controller]\n'
        'link_latency = { value = "70ns", source = "ours: a slow link" }\n'
    )
    answer = indelible.probe(["tiny", str(far)], "latency")
    near, distant = ({row["probe"]: row for row in rows} for rows in _by_machine(answer))
    added = distant["pm-random"]["measured"] - near["pm-random"]["measured"]
    assert added == pytest.approx(140, abs=1)
    assert distant["llc"]["measured"] == near["llc"]["measured"]
    assert all(row["published"] is None for row in distant.values())


def _by_machine(answer: Probed) -> list[list[dict[str, Any]]]:
    names = [memory.machine for memory in answer.memories]
    return [[row for row in answer.rows if row["machine"] == name] for name in names]


BAD = {
    "machine": (["--machines", "optan"], "unknown machine `optan`; did you mean `optane`?"),
    "group": (["--only", "latencies"], "unknown group of probes `latencies`; there are: la"),
    "design": (["--set", "design.log_lines=4"], "design.log_lines is not a field of a machine"),
    "workload": (["--set", "workload.items=4"], "workload.items is not a field of a machine"),
    "field": (["--set", "pm.tRAED=4ns"], "unknown parameter `tRAED` of pm; did you mean `tREAD`"),
    "set": (["--set", "pm.tREAD"], "`pm.tREAD` is not of the form section.field=value"),
    "plot": (["--only", "persist", "--plot", "x.png"], "there is no figure of persist; add one"),
    "suffix": (
        ["--plot", "x.gif"],
        "--plot x.gif: the name of a figure must end in one of .png, .svg",
    ),
    "csv": (["--csv", "/no/such/x.csv"], "there is no directory `/no/such`; make it first"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_a_sentence(capsys: pytest.CaptureFixture[str], name: str) -> None:
    words, sentence = BAD[name]
    assert main(["probe", *words]) == 2
    shown, complaints = capsys.readouterr()
    assert (shown, complaints.count("\n")) == ("", 1)
    assert sentence in complaints


def test_calls_with_the_wrong_types_are_sentences() -> None:
    for asked in ({"machines": 5}, {"only": 5}, {"seed": "x"}, {"machines": []}, {"only": []}):
        with pytest.raises(indelible.InputError):
            indelible.probe(**asked)


def test_files_are_written(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    figure, rows = tmp_path / "memory.svg", tmp_path / "memory.csv"
    asked = ["--machines", "tiny,hops", "--only", "latency,amplification"]
    assert main(["probe", *asked, "--plot", str(figure), "--csv", str(rows), "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert rows.read_text().startswith("machine,group,probe,")
    drawn = figure.read_text()
    assert "<svg" in drawn
    assert "latency of a load (ns)" in drawn
    assert "bandwidth" not in drawn
    curve = {
        point["x"]: point["value"]
        for point in answer["curves"]
        if (point["machine"], point["curve"]) == ("hops", "latency")
    }
    # Through the first level and the last to memory.
    assert curve[4 << 10] == pytest.approx(1, abs=0.1)
    assert curve[1 << 20] == pytest.approx(11, abs=0.1)
    assert curve[64 << 20] == pytest.approx(215.5, rel=0.01)


def test_a_line_of_the_figure_has_the_points_of_its_curve() -> None:
    answer = indelible.probe(["tiny", "hops"], ["latency", "bandwidth"], curves=True)
    latency, bandwidth = probe_plot.figure(answer).axes
    curves: dict[tuple[str, str, str], dict[int, float]] = {}
    for point in answer.curves():
        line = (point["curve"], point["machine"], point["series"])
        curves.setdefault(line, {})[point["x"]] = point["value"]
    for axes, curve in ((latency, "latency"), (bandwidth, "bandwidth")):
        drawn = [dict(zip(one.get_xdata(), one.get_ydata(), strict=True)) for one in axes.lines]
        assert drawn == [points for line, points in curves.items() if line[0] == curve]
        machines = [line[1] for line in curves if line[0] == curve]
        colours = [COLOURS[machine == "hops"] for machine in machines]
        assert [one.get_color() for one in axes.lines] == colours
    assert latency.get_ylabel() == "latency of a load (ns)"
    assert bandwidth.get_ylabel() == "bandwidth (GB/s)"
    shown = [label.get_text() for label in latency.get_xticklabels()]
    assert shown[0] == "4 KiB"
    assert 1 < len(shown) <= probe_plot.TICKS
    assert shown[-1].endswith(" MiB")


def test_an_interruption_leaves_what_had_ended(
    monkeypatch: pytest.MonkeyPatch, interrupt: Callable[[int], None]
) -> None:
    interrupt(2)
    # Of the runs that Ctrl-C stops none is whole.
    monkeypatch.setattr(pool, "GRACE_SECONDS", 0.0)
    with pytest.raises(indelible.Interrupted) as caught:
        indelible.probe("tiny", "amplification")
    partial = caught.value.partial
    assert partial.interrupted
    assert partial.json()["cancelled"]
    assert "runs had ended" in str(partial)
    numbers = [row["measured"] for row in partial.rows]
    assert None in numbers
    assert any(number is not None for number in numbers)
