"""Timelines: the command, its text, and the trace as Perfetto's own definitions read it."""

from __future__ import annotations

import json
import re
import shlex
from collections import Counter, defaultdict
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest

import indelible
from conftest import Write, needs_core
from indelible.cli import main, parser
from indelible.text.timeline import listed, summary

pytestmark = needs_core

ASKED = {"cores": 2, "txs": 60, "length": "3us", "set": {"controller.count": "2"}}


@pytest.fixture(scope="module")
def recorded() -> indelible.Timeline:
    return indelible.trace("undo@x86", "hash", "tiny", **ASKED)


@pytest.fixture(scope="module")
def packets(recorded: indelible.Timeline) -> list:
    from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace

    return list(Trace.FromString(recorded.trace).packet)


def test_every_event_is_in_the_trace_by_name(recorded: indelible.Timeline, packets: list) -> None:
    begun = [packet.track_event for packet in packets if packet.track_event.type in (1, 3)]
    assert Counter(event.name for event in begun) == Counter(e["what"] for e in recorded.events)
    assert len(begun) > 100


def test_slices_of_a_track_follow_each_other(packets: list) -> None:
    tracks = {packet.track_descriptor.uuid: packet.track_descriptor.name for packet in packets}
    last: dict[int, int] = defaultdict(int)
    is_open: dict[int, bool] = defaultdict(bool)
    for packet in packets:
        event = packet.track_event
        if event.type not in (1, 2):
            continue
        assert tracks[event.track_uuid]
        assert packet.timestamp >= last[event.track_uuid]
        assert is_open[event.track_uuid] == (event.type == 2)
        last[event.track_uuid] = packet.timestamp
        is_open[event.track_uuid] = event.type == 1
    assert not any(is_open.values())


def test_tracks_are_grouped_and_in_order(packets: list) -> None:
    tracks = [packet.track_descriptor for packet in packets if packet.track_descriptor.uuid]
    groups = {track.uuid: track.name for track in tracks if not track.parent_uuid}
    assert [*groups.values()] == ["core 0", "core 1", "controller 0", "controller 1"]
    lanes = defaultdict(list)
    for track in tracks:
        if track.parent_uuid:
            lanes[groups[track.parent_uuid]].append((track.sibling_order_rank, track.name))
    assert min(lanes["core 0"]) == (0, "program")
    assert {"commits", "waits", "fetches"} <= {name for _, name in lanes["core 1"]}
    assert {"arriving", "write-pending queue", "bank 0"} <= {n for _, n in lanes["controller 1"]}


def test_a_write_flows_from_its_arrival_into_the_queue(packets: list) -> None:
    tracks = {packet.track_descriptor.uuid: packet.track_descriptor.name for packet in packets}
    flows = defaultdict(list)
    for packet in packets:
        event = packet.track_event
        for flow in event.flow_ids:
            flows[flow].append((packet.timestamp, tracks[event.track_uuid].split(" (")[0]))
    both = [sorted(ends) for ends in flows.values() if len(ends) == 2]
    assert len(both) > 20
    assert all([lane for _, lane in ends] == ["arriving", "write-pending queue"] for ends in both)
    assert all(from_ <= to for (from_, _), (to, _) in both)


def test_the_queue_is_counted(packets: list) -> None:
    counted = [p for p in packets if p.track_event.type == 4]
    values = [p.track_event.counter_value for p in counted]
    assert min(values) >= 0
    assert 0 < max(values) <= 8
    assert max(p.timestamp for p in counted) <= 3_000


def test_one_address_does_not_change_the_count(recorded: indelible.Timeline) -> None:
    from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace

    def counted(trace: bytes) -> list:
        events = (p.track_event for p in Trace.FromString(trace).packet)
        return [event.counter_value for event in events if event.type == 4]

    queued = next(e for e in recorded.events if e["lane"] == "write-pending queue")
    alone = indelible.trace("undo@x86", "hash", "tiny", **ASKED, address=queued["what"].split()[-1])
    assert len(alone.events) < len(recorded.events) / 4
    assert counted(alone.trace) == counted(recorded.trace)


def test_what_is_interrupted_is_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from indelible import pool
    from indelible.results.timeline import Timeline

    monkeypatch.chdir(tmp_path)
    whole = indelible.trace("silo", "hash", cores=1, txs=20, length="1us")
    part = {**whole.data, "cancelled": True}

    def interrupted(*_: object, **__: object) -> None:
        raise pool.Interrupted(Timeline(part, whole.recording, whole.trace))

    monkeypatch.setattr(indelible, "trace", interrupted)
    assert main(["trace", "--design", "silo", "--workload", "hash"]) == 130
    shown = capsys.readouterr()
    assert "interrupted: the rest of the run is missing" in shown.out
    assert "nothing was written to silo-hash.pftrace" in shown.err
    assert not [*tmp_path.iterdir()]


def test_times_are_nanoseconds() -> None:
    """Machine `silo` has two cycles in a nanosecond."""
    from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace

    recorded = indelible.trace("native", "array", cores=1, txs=20, length="100ns")
    packets = Trace.FromString(recorded.trace).packet
    named = {(p.track_event.name, p.timestamp) for p in packets if p.track_event.type == 1}
    spans = [e for e in recorded.events if e["until"] > e["from"]]
    assert spans
    assert all((event["what"], event["from"] // 2) in named for event in spans)


def test_a_list_has_the_events_and_a_summary_the_file(recorded: indelible.Timeline) -> None:
    lines = listed(recorded, 100).splitlines()
    assert lines[0] == "undo@x86 · hash · machine tiny · 2 cores · seed 1"
    assert lines[1].startswith("window      cycles 0 to 3,000, 0 ns to 3.00 us: ")
    assert "write-pending queue" in lines[5]
    assert len(lines) >= len(recorded.events)
    assert max(map(len, lines)) <= 100
    told = summary(recorded, "a.pftrace", 80)
    assert "trace       a.pftrace (" in told
    assert "indelible trace --design undo@x86 --workload hash --machine tiny" in told
    assert "--for 3us" in told


def test_the_command_writes_a_trace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    words = "trace --design silo --workload hash --cores 1 --txs 20 --for 1us"
    assert main(words.split()) == 0
    assert "silo-hash.pftrace" in capsys.readouterr().out
    written = (tmp_path / "silo-hash.pftrace").read_bytes()
    assert written == indelible.trace("silo", "hash", cores=1, txs=20, length="1us").trace
    assert main([*words.split(), "--list"]) == 0
    shown = capsys.readouterr().out
    assert "transaction" in shown
    # Not on a terminal: each event is a line, for grep.
    stores = [line for line in shown.splitlines() if " store 0x" in line]
    assert stores
    assert all("new=" in line and "old=" in line for line in stores)
    assert main([*words.split(), "--json", "--out", "b.pftrace"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["file"] == "b.pftrace"
    assert answer["events"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["b.pftrace", "silo-hash.pftrace"]


def test_the_trace_of_a_design_in_a_file_lies_where_one_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    for kind, name in (("design", "mine"), ("order", "fences")):
        assert main(["new", kind, name]) == 0
    monkeypatch.chdir(tmp_path)
    capsys.readouterr()
    for design, stem in (
        ("elsewhere/mine.py", "mine"),
        ("undo@elsewhere/fences.py", "undo@fences"),
    ):
        words = f"trace --design {design} --workload hash --cores 1 --txs 20 --for 1us"
        assert main(words.split()) == 0
        assert f"{stem}-hash.pftrace" in capsys.readouterr().out
        assert (tmp_path / f"{stem}-hash.pftrace").stat().st_size > 0


def test_of_nothing_no_file_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    words = "trace --design native --workload hash --cores 1 --txs 5 --address 0x3ff000000"
    assert main(words.split()) == 0
    shown = capsys.readouterr()
    assert "0 events of the line of 0x3ff000000" in shown.out.replace("\n            ", " ")
    assert "nothing happened in the window" in shown.err
    text = " ".join(shown.out.split())
    low, high = re.search(r"touched between (\w+) and (\w+) of persistent memory", text).groups()
    assert int(low, 16) <= 0x3F1080 < int(high, 16) < 0x3FF000000
    assert main([*words.split()[:-1], low, "--list"]) == 0
    shown = capsys.readouterr().out
    assert ("touched" in shown, f"of the line of {low}" in shown) == (False, True)
    assert not [*tmp_path.iterdir()]


def test_a_violation_names_its_timeline(capsys: pytest.CaptureFixture[str]) -> None:
    words = "crash --design undo@x86 --workload hash --txs 20 --without flush_log --no-nested"
    assert main(words.split()) == 1
    out = capsys.readouterr().out
    assert "it does not show the writes that came early in that image" in out
    told = out[out.index("timeline    indelible ") : out.index("            it does not show")]
    again = told.replace("timeline    indelible ", "").replace("\\\n", " ").split()
    assert main(again) == 0
    last = capsys.readouterr().out.strip().splitlines()[-1]
    assert last.endswith("power failure")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("--from soon", "from: "),
        ("--for 0ns", "for is 0 cycles; it must be a time such as 20us"),
        ("--address here", "`here` is not an address; write one such as 0x3f1080"),
        ("--event 99999999 --txs 5", "the run has no event 99999999; its crash points are 1 to"),
        ("--event 3 --from 2us", "--from and --event both say where the window begins; drop one"),
        ("--txs 5 --from 10s", "the run ends "),
        ("--out no/where.pftrace", "--out no/where.pftrace: there is no directory `no`"),
        ("--without nothing", "unknown rule `nothing`"),
    ],
)
def test_bad_input(words: str, told: str, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["trace", "--design", "undo@x86", "--workload", "hash", *words.split()]
    assert main(asked) == 2
    complaint = capsys.readouterr().err
    assert told in complaint
    assert complaint.count("\n") == 1


@needs_core
def test_the_command_that_repeats_it_has_times_as_they_were_written() -> None:
    """A number and its unit may stand apart, and are one word of the command all the same."""
    asked = {"txs": 5, "start": "0.1 us", "length": "1 us"}
    answer = indelible.trace("native", "queue", "tiny", **asked)
    args = parser.parse(shlex.split(answer.recording.command())[1:])
    assert (args.start, args.length) == ("0.1 us", "1 us")


def test_a_window_says_where_it_ends_and_how_it_is_read(fake: ModuleType) -> None:
    answer = indelible.trace("silo", "hash", address="0x1000")

    def said(**changes: object) -> str:
        changed = replace(answer, data={**answer.data, **changes})
        return " ".join(summary(changed, None, 200).split())

    window = "window cycles 0 to 40,000, 0 ns to 20.0 us: 2 events of the line of 0x1000"
    virtual = "note addresses of cores are virtual, those of controllers physical"
    assert (window in said(), virtual in said(), "touched" in said()) == (True, False, False)
    assert virtual in said(translates=True)
    cut = said(cut=1_000, event=7)
    assert "cycles 0 to 1,000, 0 ns to 500 ns, where the power fails (event 7): 2 events" in cut
    # Of a line that nothing touches the touched ones are told, as far as there are any.
    assert "touched between 0x40 and 0x7f of persistent memory" in said(events=[])
    nothing = dict.fromkeys(("persistent", "volatile"))
    assert "touched no line at all, in this window" in said(events=[], touched=nothing)
    both = {kind: ["0x40", "0x7f"] for kind in nothing}
    assert "of persistent memory, and between 0x40 and" in said(events=[], touched=both)


@pytest.mark.parametrize(
    ("hook", "told"),
    [
        ("return WAIT if self.is_late else None", "deadlock: core 0's `store` answered WAIT"),
        ("assert not self.is_late, 'late'", "in store: AssertionError: late"),
    ],
)
@pytest.mark.parametrize("late", [4, 60])
def test_what_led_to_a_failure_is_shown(
    write: Write,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    hook: str,
    told: str,
    late: int,
) -> None:
    """A failure in the warm-up has no window, so its last part is shown."""
    body = (
        "durability = 'none'\nstores = 0\n"
        f"@property\ndef is_late(self):\n    self.stores += 1\n    return self.stores > {late}\n"
        f"def store(self, store, below):\n    {hook}\n"
    )
    path, out = write(body), tmp_path / "late.pftrace"
    words = f"trace --design {path} --workload sps --cores 1 --txs 40 --out {out}".split()
    assert main([*words, "--list"]) == 2
    shown = capsys.readouterr()
    assert told in shown.err
    assert shown.err.count("\n") == 1
    assert "failed: the run did not come to its end" in shown.out
    assert ("it failed in the warm-up" in shown.out) == (late == 4)
    assert " store 0x" in shown.out
    assert out.stat().st_size > 0
    assert main([*words, "--json"]) == 2
    answer = json.loads(capsys.readouterr().out)
    assert told in answer["error"]
    stores = [event for event in answer["events"] if event["what"].startswith("store 0x")]
    assert 0 < len(stores) <= late + 1
    again = indelible.trace(path, "sps", cores=1, txs=40)
    assert told in " ".join(str(again).split())
    if late == 60:
        # Of a part that the run did not come to there is nothing to show.
        with pytest.raises(indelible.InputError, match=re.escape(told)):
            indelible.trace(path, "sps", cores=1, txs=40, start="1s")
