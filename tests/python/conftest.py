"""The tests run with the compiled extension where there is one, and without it where not."""

from __future__ import annotations

import importlib
import os
import platform
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), *(str(HERE.parents[1] / name) for name in ("python", "tools"))]

try:
    importlib.import_module("indelible._core")
    BUILT = True
except ImportError:
    if os.environ.get("INDELIBLE_REQUIRE_CORE"):
        raise
    BUILT = False

import fake_core  # noqa: E402

if not BUILT:
    sys.modules["indelible._core"] = fake_core

from recorded import PRELUDE, Build  # noqa: E402

#: For the tests of the whole command, which need the real simulator.
needs_core = pytest.mark.skipif(not BUILT, reason="the extension is not built: run `make build`")

#: For those that write to a disk that is full, which Linux has as a file.
needs_full = pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")

#: For those that ask the processor, as `native` does.
x86_linux = pytest.mark.skipif(
    (platform.machine(), sys.platform) != ("x86_64", "linux"), reason="no x86-64 on Linux"
)

#: A checker that refuses garbage: the first word of memory is a number of two bytes.
LOOKS = "cmp -s -i 2 -n 6 /dev/zero"


def write_class(path: Path, base: str, body: str, head: str) -> None:
    """Write a file with a class `D` that is derived from `base`, which its head imports."""
    lines = "\n".join(f"    {line}" for line in body.strip().splitlines())
    path.write_text(f"{head}\nclass D({base}):\n{lines}\n", encoding="utf-8")


#: What writes a design with a body, and returns its path.
Write = Callable[[str], str]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Return what writes a design with a body, and returns its path."""

    def written(body: str) -> str:
        path = tmp_path / "d.py"
        head = "from indelible.design import *\nfrom indelible.design import Design"
        write_class(path, "Design", body, head)
        return str(path)

    return written


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the tests that take long: in the end one processor would wait for another."""
    items.sort(key=lambda item: item.get_closest_marker("long") is None)


@pytest.fixture(autouse=True)
def nobody_leaves(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no test end the process: those behind it would not run, and all would seem well."""
    leave, own = os._exit, os.getpid()

    def refused(code: int) -> None:
        if os.getpid() != own:
            leave(code)
        raise AssertionError(f"a test ends the process with exit code {code}")

    monkeypatch.setattr(os, "_exit", refused)


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Put canned answers in the place of the simulator."""
    from indelible import extension

    monkeypatch.setattr(extension, "core", fake_core)
    fake_core.asked.clear()
    fake_core.batteries.clear()
    return fake_core


@pytest.fixture
def command(
    fake: ModuleType, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., tuple[int, str, str]]:
    """Run the command in this process; return its exit code, stdout and stderr."""
    from indelible.cli import main

    def call(*words: str, columns: int = 80) -> tuple[int, str, str]:
        monkeypatch.setenv("COLUMNS", str(columns))
        code = main(words)
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


@pytest.fixture
def interrupt(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Return what has Ctrl-C come as soon as so many jobs, one after the other, have ended."""
    from indelible import pool

    def after(ended: int) -> None:
        calls = iter(range(100))
        await_one = pool._await

        def interrupted(*arguments: object) -> tuple:
            if next(calls) == ended:
                raise KeyboardInterrupt
            return await_one(*arguments)

        monkeypatch.setattr(pool, "_await", interrupted)
        monkeypatch.setattr(pool, "workers_available", lambda: 1)

    return after


@pytest.fixture
def build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Build:
    """Return what builds a program, from a file or a text, in a folder that is where one works."""
    import indelible

    monkeypatch.chdir(tmp_path)

    def built(source: Path | str, *flags: str, name: str = "program", with_: str = "cc") -> Path:
        if isinstance(source, str):
            text, source = source, tmp_path / f"{name}.c"
            source.write_text(PRELUDE + text)
        assert indelible.cc([*flags, "-o", name, str(source)], with_) == 0
        return tmp_path / name

    return built


def heed_interrupts() -> None:
    """Undo what a shell does to a job in the background: such a job ignores Ctrl-C."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def start(*words: str) -> subprocess.Popen[str]:
    """Start the command, which heeds Ctrl-C."""
    return subprocess.Popen(
        [sys.executable, "-m", "indelible", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=heed_interrupts,
    )


def without_progress(complaints: str) -> str:
    """Return what the command wrote to stderr, without how far it was: a busy computer is slow."""
    return re.sub(r"^\w+: \d+ of \d+ \w.*%, [\d:]+\n", "", complaints, flags=re.MULTILINE)


def until(holds: Callable[[], bool]) -> None:
    """Wait until something is so that will be, unless the test is to fail."""
    deadline = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def refused(ask: Callable[[], object]) -> str:
    """Return what is said of a call that cannot be answered."""
    import indelible

    with pytest.raises(indelible.InputError) as error:
        ask()
    return str(error.value)
