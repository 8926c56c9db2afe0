"""Jobs on threads, and how they end."""

from __future__ import annotations

import os
import subprocess
import sys
import threading

import pytest

from indelible import pool

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
    waiting = pool.Waiting(range(4), [True, True, False, True])
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
