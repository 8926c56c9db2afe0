"""Jobs on threads, and how they end."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
import threading
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from conftest import needs_core
from indelible import cli, pool, progress

#: Longer than any of it takes; a caller that waits for ever fails its test, and hangs no other.
LIMIT_SECONDS = 30

#: A process in which a job ends with what is raised. `conftest` has the simulator, or what stands
#: in for it.
ENDED = """
import conftest
from indelible import InputError, pool

class Job:
    def start(self, control):
        raise {raised}

    def command(self):
        return "indelible run"

try:
    pool.execute([Job(), Job()])
except BaseException as error:
    print(type(error).__name__)
"""


@pytest.mark.parametrize(
    ("raised", "caught"),
    [
        ("InputError('refused')", "InputError"),
        ("SystemExit(3)", "SystemExit"),
        ("GeneratorExit", "GeneratorExit"),
        ("KeyboardInterrupt", "Interrupted"),
    ],
)
def test_whatever_ends_a_job_ends_the_call(raised: str, caught: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", ENDED.format(raised=raised)],
        capture_output=True,
        text=True,
        timeout=LIMIT_SECONDS,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{caught}\n", "")


def test_of_two_designs_in_python_one_runs_at_a_time() -> None:
    """Of four jobs the first two and the last are of such designs."""
    waiting = pool.Waiting([True, True, False, True])
    assert waiting.take() == 0
    assert waiting.take() == 2, "the second one waits"
    found: list[int | None] = []
    waits = threading.Thread(target=lambda: found.append(waiting.take()))
    waits.start()
    waits.join(0.1)
    assert found == []
    waiting.done(2)
    waits.join(0.1)
    assert found == [], "what has ended was none of them"
    waiting.done(0)
    waits.join(10)
    assert found == [1]
    waits = threading.Thread(target=lambda: found.append(waiting.take()))
    waits.start()
    waiting.stop()
    waits.join(10)
    assert found == [1, None]


def test_which_job_is_next_takes_no_look_at_those_that_wait() -> None:
    """Five hundred designs in Python wait for one, in front of as many others."""
    looks = 0

    class Kinds(list[bool]):
        def __getitem__(self, index: Any) -> Any:  # noqa: ANN401
            nonlocal looks
            looks += 1
            return super().__getitem__(index)

    waiting = pool.Waiting(Kinds([True] * 500 + [False] * 500))
    assert [waiting.take() for _ in range(501)] == [0, *range(500, 1000)]
    assert looks < 3 * 1000
    for number in range(500):
        waiting.done(number)
        assert waiting.take() == (number + 1 if number < 499 else None)


@pytest.mark.parametrize("most", [0, 1])
def test_as_many_jobs_run_at_a_time_as_the_computer_lets(
    monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    """A limit of processes is one of threads, too, and one thread does all jobs."""
    begun: list[threading.Thread] = []
    start = threading.Thread.start

    def limited(thread: threading.Thread) -> None:
        if len(begun) == most:
            raise RuntimeError("can't start new thread")
        begun.append(thread)
        start(thread)

    job = SimpleNamespace(start=lambda control: {"done": True}, command=lambda: "")
    monkeypatch.setattr(pool, "jobs_at_once", lambda: 2)
    monkeypatch.setattr(threading.Thread, "start", limited)
    if most == 0:
        with pytest.raises(pool.HostError, match="cannot start a thread: can't start"):
            pool.execute([job] * 3)
    else:
        assert pool.execute([job] * 3) == [{"done": True}] * 3


def test_jobs_begin_in_their_order() -> None:
    waiting = pool.Waiting([True, False, False, True, False])
    assert [waiting.take() for _ in range(2)] == [0, 1]
    waiting.done(0)
    assert [waiting.take() for _ in range(4)] == [2, 3, 4, None]


def test_a_notebook_shows_how_far_jobs_are_and_nothing_when_they_have_ended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shown: list[str] = []

    def show(data: dict[str, str], **kind: bool) -> SimpleNamespace:
        assert kind.pop("raw")
        shown.append(data["text/plain"])
        return SimpleNamespace(update=show)

    shell = SimpleNamespace(kernel=None)
    ipython, display = ModuleType("IPython"), ModuleType("IPython.display")
    vars(ipython).update(get_ipython=lambda: shell)
    vars(display).update(display=show)
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    monkeypatch.setattr(sys, "stderr", None)
    monkeypatch.setattr(progress, "PATIENCE_SECONDS", 0.0)
    job = SimpleNamespace(done=0, total=4)
    with progress.Meter([job, job], "runs") as meter:
        meter.update()
        job.done = 2
        meter.update()
        assert shown == ["0/2 runs  0%  0 s"], "it was told a moment ago"
        meter.finish(0)
        monkeypatch.setattr(progress, "NOTEBOOK_SECONDS", 0.0)
        meter.update("3 workers")
    assert shown[1:] == ["1/2 runs, 3 workers  75%  0 s", ""]
    # IPython in a terminal has no kernel, and what does not take long shows nothing.
    shown.clear()
    for own, patience in ((SimpleNamespace(), 0.0), (shell, 60.0)):
        monkeypatch.setattr(progress, "PATIENCE_SECONDS", patience)
        monkeypatch.setattr(ipython, "get_ipython", lambda own=own: own)
        with progress.Meter([job], "runs") as meter:
            meter.update()
    assert shown == []


def test_how_far_jobs_are_is_shown_also_where_each_is_short(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """They end one after the other, and nobody waits for one for long."""
    told: list[str] = []
    job = SimpleNamespace(start=lambda _: {}, command=lambda: "")
    monkeypatch.setattr(progress, "PATIENCE_SECONDS", 0.0)
    monkeypatch.setattr(progress, "NOTEBOOK_SECONDS", 0.0)
    monkeypatch.setattr(progress, "notebook", lambda: SimpleNamespace(display=display))
    monkeypatch.setattr(sys, "stderr", None)

    def display(shown: dict[str, str], **_: bool) -> SimpleNamespace:
        told.append(shown["text/plain"])
        return SimpleNamespace(update=display)

    assert pool.execute([job] * 40) == [{}] * 40
    assert told[0].startswith("1/40 runs")


def test_without_a_terminal_stderr_gets_a_line_now_and_then(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = SimpleNamespace(now=1000.0)
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: clock.now))
    running = SimpleNamespace(done=1, total=4)
    with progress.named("why"), progress.Meter([running] * 4, "runs") as meter:
        meter.finish(0)
        for clock.now in (1029.9, 1030.0, 1030.1, 1059.9):
            meter.update()
        clock.now = 1060.5
        meter.finish(1)
        meter.update("3 workers")
    out, err = capsys.readouterr()
    assert err == "why: 1 of 4 runs, 44%, 0:00:30\nwhy: 2 of 4 runs, 3 workers, 62%, 0:01:00\n"
    assert out == ""
    # Of a call in Python there is no command, and a stderr that is closed or full is no error.
    meter = progress.Meter([running], "campaigns")
    clock.now += 3661
    meter.update()
    assert capsys.readouterr().err == "indelible: 0 of 1 campaigns, 25%, 1:01:01\n"

    def refuse(text: str) -> None:
        written.append(text)
        raise OSError(errno.ENOSPC, "no space left on device")

    written: list[str] = []
    for stream in (None, SimpleNamespace(write=refuse, isatty=lambda: False)):
        monkeypatch.setattr(sys, "stderr", stream)
        clock.now += 60
        meter.update()
    assert written


@needs_core
def test_a_command_names_itself_in_these_lines(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(progress, "LINE_SECONDS", 0.0)
    words = ["run", "--design", "native", "--workload", "hash", "--txs", "5", "--json"]
    assert cli.main(words) == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["design"] == "native"
    assert err.endswith("run: 1 of 1 runs, 100%, 0:00:00\n")
