"""What `crash` chooses by itself for a trace: the design, and the size of its machine."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

import indelible
from conftest import LOOKS, needs_core
from indelible import cli

pytestmark = needs_core


def trace(threads: int = 1, size: int = 4096) -> str:
    """Write a trace in which each thread stores a word, and return the name of its file."""
    lines = [f"region 0x10000 {size}", "interleaved", "measured"]
    for thread in range(threads):
        lines += [f"thread {thread}", f"store {0x10000 + 64 * thread:#x} 1"]
    Path("a.trace").write_text("\n".join([*lines, "flush 0x10000", "fence", ""]))
    return "a.trace"


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_only_of_a_trace_a_design_is_the_default(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["crash", "--replay", trace(), "--check", LOOKS]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("undo@x86 ")
    assert "indelible crash --design undo@x86 --workload replay" in shown
    for words in (["--workload", "hash"], ["--workload", "replay"], []):
        assert cli.main(["crash", *words]) == 2
        assert "`indelible crash` needs --design" in capsys.readouterr().err
    assert indelible.crash(replay="a.trace", check="true").data["design"] == "undo@x86"
    with pytest.raises(indelible.InputError, match="no design was named; `indelible list designs`"):
        indelible.crash(workload="hash")


def test_a_trace_has_the_cores_and_the_memory_that_it_needs() -> None:
    def answer(name: str, **asked: object) -> indelible.Crash:
        return indelible.crash(replay=name, check=LOOKS, points=2, **asked)

    assert answer(trace(threads=4)).settings == {}
    assert answer(trace(size=4 << 20)).settings == {}
    many = answer(trace(threads=6, size=6 << 20))
    assert many.settings == {"pm.device_size": "16MiB", "core.cores_max": "6"}
    enlarged = "machine tiny has pm.device_size=16MiB and core.cores_max=6, which the trace needs"
    assert enlarged in many.data["notes"]
    assert "--set pm.device_size=16MiB --set core.cores_max=6" in many.command
    # What was given stays, as does a machine that was named.
    with pytest.raises(indelible.InputError, match="6 threads"):
        answer("a.trace", set={"core.cores_max": 5})
    assert answer("a.trace", machine="silo").settings == {}
    # The command that repeats it says so itself.
    assert cli.main(shlex.split(many.command)[1:]) == 0


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("measured\nthread 70\nstore 0 1\n", "number must be from 0 to 63, not 70"),
        ("region 0 0xffffffffffffff\nmeasured\nstore 0 1\n", "a.trace, line 1: "),
    ],
)
def test_what_no_machine_has_room_for_is_refused_for_that(text: str, wrong: str) -> None:
    Path("a.trace").write_text(text)
    with pytest.raises(indelible.InputError, match=wrong):
        indelible.crash(replay="a.trace")


def test_a_checker_that_accepts_everything_has_checked_nothing(
    capsys: pytest.CaptureFixture[str],
) -> None:
    blind = indelible.crash(replay=trace(), check="true", leave_out="all")
    assert (blind.checked, blind.failed, blind.passed) == (False, False, False)
    assert blind.json()["checked"] is False
    why = "the checker refuses no image, not even garbage; let it look at the file whose path is"
    assert f"violations the program was not checked: {why}" in " ".join(str(blind).split())
    words = ["crash", "--replay", "a.trace", "--check", "true"]
    assert cli.main(words) == 2
    # A mutant that a transaction catches does not show that the checker looks.
    assert cli.main([*words, "--mutants", "flush_log"]) == 2
    assert "1 of 1 caught" in capsys.readouterr().out
    assert indelible.crash(replay="a.trace", check=LOOKS).passed
