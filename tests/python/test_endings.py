"""How the command ends when it is not done: Ctrl-C, signals, and an output that takes no more."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from conftest import needs_core, needs_full, start, x86_linux

pytestmark = needs_core

RUN = ["run", "--design", "silo", "--workload", "hash", "--cores", "2", "--txs", "1000000000"]


def interrupted(*words: str, after: float) -> None:
    """Press Ctrl-C so many seconds after a command began, which then ends within a second."""
    process = start(*words)
    time.sleep(after)
    assert process.poll() is None
    pressed = time.monotonic()
    process.send_signal(signal.SIGINT)
    try:
        shown, complaints = process.communicate(timeout=30)
    finally:
        process.kill()
    # The promise is one second; the rest is for a computer that is busy with other tests.
    assert time.monotonic() - pressed < 3
    assert process.returncode == 130
    assert "Traceback" not in complaints
    if "--json" in words and shown:
        assert json.loads(shown)["cancelled"] is True


@pytest.mark.alone
@pytest.mark.parametrize("json_flag", [[], ["--json"]])
def test_an_interrupted_run_ends_within_a_second(json_flag: list[str]) -> None:
    interrupted(*RUN, *json_flag, after=1.5)


@pytest.mark.alone
@x86_linux
def test_an_interrupted_measurement_ends_within_a_second() -> None:
    interrupted("native", "logging", "--whole", "--json", after=2.0)


@pytest.mark.parametrize("ends", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_whoever_ends_the_command_ends_its_checker(tmp_path: Path, ends: signal.Signals) -> None:
    """A checker is no part of what Ctrl-C is for, and would go on when nobody hears it any more."""
    (tmp_path / "a.trace").write_text("region 0 64\nmeasured\nstore 0 1\n")
    pid = tmp_path / "pid"
    checker = f"goes_on() {{ echo $$ > {pid}.new; mv {pid}.new {pid}; sleep 60; }}; goes_on"
    trace = ["--replay", str(tmp_path / "a.trace")]
    # What the tests ignore, as under nohup, the command would.
    usual = signal.signal(ends, signal.SIG_DFL)
    try:
        process = start("crash", "--design", "undo@x86", *trace, "--check", checker)
    finally:
        signal.signal(ends, usual)
    try:
        within(30, pid.exists)
        process.send_signal(ends)
        process.communicate(timeout=30)
    finally:
        process.kill()
    assert process.returncode == 130
    within(30, lambda: not Path(f"/proc/{pid.read_text().strip()}").exists())


@pytest.mark.parametrize("after", [0.0, 0.002, 0.02])
def test_whoever_is_told_twice_to_end_still_says_what_it_has(after: float) -> None:
    """`timeout` tells the process, and then its group."""
    process = start(*RUN, "--json")
    time.sleep(1.5)
    process.send_signal(signal.SIGTERM)
    time.sleep(after)
    process.send_signal(signal.SIGTERM)
    try:
        shown, _ = process.communicate(timeout=30)
    finally:
        process.kill()
    assert process.returncode == 130
    assert json.loads(shown)["cancelled"] is True


def within(seconds: float, happens: Callable[[], bool]) -> None:
    """Wait until something has happened, for so long at most."""
    deadline = time.monotonic() + seconds
    while not happens():
        assert time.monotonic() < deadline
        time.sleep(0.05)


@needs_full
def test_a_full_disk_is_no_bug_of_ours() -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "indelible", "list"], stdout=full, stderr=subprocess.PIPE
        )
    assert done.returncode == 2
    assert done.stderr.decode() == "indelible: error: the output: no space left on device\n"
