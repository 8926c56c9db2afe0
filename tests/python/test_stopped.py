"""Programs that are recorded, and what is run before them: stopped with all they have started."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import indelible
from conftest import LOOKS, heed_interrupts, needs_core, until
from indelible import processes
from recorded import Build, needs_recorder

pytestmark = [needs_core, needs_recorder]

ENDS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

#: Starts a process of its group, and one of a session of its own, and waits for ever.
GOES_ON = "(echo $$; sleep 97) & setsid sleep 98 & echo > begun; wait; true"


def alive() -> list[str]:
    """Return what `GOES_ON` has started in this folder and what has not ended."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            words = (path / "cmdline").read_bytes().split(b"\0")[:2]
            if words in ([b"sleep", b"97"], [b"sleep", b"98"]) and (path / "cwd").samefile("."):
                found.append(path.name)
        except OSError:
            # It is gone by now, or another's.
            continue
    return found


def ended(words: list[str], ends: signal.Signals) -> subprocess.Popen[bytes]:
    """Send a signal to the command alone, once what it runs has begun, and return it at its end."""
    Path("temporary").mkdir(exist_ok=True)
    Path("begun").unlink(missing_ok=True)
    # What the tests ignore, as under nohup, the command would.
    usual = signal.signal(ends, signal.SIG_DFL)
    try:
        command = subprocess.Popen(
            [sys.executable, "-m", "indelible", *words],
            env=os.environ | {"TMPDIR": os.path.abspath("temporary")},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            preexec_fn=heed_interrupts,
        )
    finally:
        signal.signal(ends, usual)
    try:
        until(lambda: Path("begun").exists() and len(alive()) == 2)
        command.send_signal(ends)
        command.wait(timeout=30)
    finally:
        command.kill()
    return command


@pytest.mark.parametrize("ends", ENDS)
@pytest.mark.parametrize(
    "words",
    [["record", "--", "sh", "-c", GOES_ON], ["explore", "--before", GOES_ON, "--", "true"]],
    ids=["record", "before"],
)
def test_whoever_ends_the_command_ends_what_it_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], ends: signal.Signals
) -> None:
    monkeypatch.chdir(tmp_path)
    assert ended(words, ends).returncode == 130
    until(lambda: alive() == [])
    assert os.listdir("temporary") == []


def test_what_is_run_before_has_as_long_as_the_program(build: Build) -> None:
    build('int main(void) { map("pool", 4096)[0] = 1; return 0; }')
    told = r"^`echo said >&2; .*`, which is run before each recording, did not end within 0\.5 s"
    with pytest.raises(indelible.InputError, match=f"{told}: said$"):
        indelible.explore(["./program"], before=f"echo said >&2; {GOES_ON}", seconds=0.5)
    until(lambda: alive() == [])
    # What it leaves running is none of what is waited for, even if it holds what is printed.
    before = "sleep 98 & echo > begun"
    assert indelible.explore(["./program"], before=before, seeds=1, check=LOOKS).passed
    (left,) = alive()
    os.kill(int(left), signal.SIGKILL)


def test_what_a_program_has_started_is_stopped_wherever_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for own_session in (True, False):
        program = subprocess.Popen(["sh", "-c", GOES_ON], start_new_session=own_session)
        until(lambda: len(alive()) == 2)
        with pytest.raises(processes.StopError, match=r"^enough$"):
            processes.finish(program, lambda: "enough")
        until(lambda: alive() == [])
        assert program.returncode == -signal.SIGKILL
    # What has lost its parents is found by its session.
    orphan = "(sleep 97 & sleep 98 & sleep 0); exec sleep 60"
    program = subprocess.Popen(["sh", "-c", orphan], start_new_session=True)
    until(lambda: len(alive()) == 2)
    with pytest.raises(processes.StopError):
        processes.finish(program, lambda: "enough")
    until(lambda: alive() == [])


def test_a_recorded_program_is_in_the_foreground(build: Build) -> None:
    """Only there it may read the terminal, and Ctrl-C reaches it."""
    build(
        'int main(void) { map("pool", 4096)[0] = 1;'
        ' FILE *to = fopen("said", "w"); fprintf(to, "%d %d", getpgrp(), getsid(0));'
        " return getchar() != EOF; }"
    )
    indelible.record(["./program"], "a.trace")
    assert Path("said").read_text() == f"{os.getpgrp()} {os.getsid(0)}"
