"""`doctor`: what it checks passes here, and each check fails where it should."""

from __future__ import annotations

import importlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

import indelible
from conftest import needs_core
from indelible import extension, pool
from indelible.cli import main
from indelible.results.health import Health
from indelible.text import health as health_text
from indelible.verbs import cc
from recorded import needs_recorder

#: How a check is spoilt: a verb of the simulator, which of its requests, and what is answered.
Spoilt = tuple[str, Callable[[Mapping[str, Any]], bool], Mapping[str, Any]]


def checks(answer: Health) -> dict[str, bool | None]:
    return {row["what"]: row["ok"] for row in answer["checks"]}


@needs_core
def test_all_is_well_here(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    found = {row["what"]: row["ok"] for row in answer["checks"]}
    assert [found[what] for what in ("determinism", "recovery", "oracle")] == [True] * 3
    assert found["matplotlib"] is True
    assert answer["mem_ops_per_s"] > 0
    assert main(["doctor"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith(f"indelible {indelible.__version__} · Python ")
    assert "recovery    ok    silo recovered from " in shown
    assert "FAIL" not in shown


@needs_core
@pytest.mark.parametrize(
    ("what", "spoilt"),
    [
        ("determinism", ("run", lambda _: True, {"cycles": None})),
        ("determinism", ("run", lambda _: True, {"energy_uj": None})),
        (
            "recovery",
            ("crash", lambda spec: "without" not in spec, {"points": 0, "nested_points": 0}),
        ),
        (
            "recovery",
            (
                "crash",
                lambda spec: "without" not in spec,
                {"violations": [{"event": 3, "after": []}]},
            ),
        ),
        ("oracle", ("crash", lambda spec: "without" in spec, {"violations": []})),
    ],
)
def test_each_check_fails_where_it_should(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    what: str,
    spoilt: Spoilt,
) -> None:
    verb, is_meant, otherwise = spoilt
    real, count = getattr(extension.core, verb), iter(range(9))

    def answer(request: str, control: object) -> str:
        told = json.loads(real(request, control))
        if is_meant(json.loads(request)):
            # What is None is another thing each time.
            told |= {key: next(count) if v is None else v for key, v in otherwise.items()}
        return json.dumps(told)

    monkeypatch.setattr(extension.core, verb, answer)
    found = indelible.doctor()
    assert [name for name, ok in checks(found).items() if ok is False] == [what]
    assert not found.passed
    assert main(["doctor"]) == 1
    assert "FAIL  " in capsys.readouterr().out


@needs_core
def test_what_is_missing_is_no_failure_and_told_with_what_helps(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    imported = importlib.import_module

    def without(name: str) -> object:
        if name == "textalloc":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return imported(name)

    monkeypatch.setattr(importlib, "import_module", without)
    monkeypatch.setattr(shutil, "which", lambda _: None)
    answer = indelible.doctor()
    assert answer.passed
    assert {name for name, ok in checks(answer).items() if ok is None} == {"textalloc", "cc"}
    shown = " ".join(str(answer).split())
    assert "textalloc - not installed: no names in the figure of" in shown
    assert "python -m pip install 'indelible[plot]'" in shown
    assert "cc - not installed: no programs of yours (cc, record, explore): install gcc" in shown

    def refused() -> None:
        raise indelible.InputError("programs can be recorded only on Linux")

    monkeypatch.setattr(cc, "require_host", refused)
    assert "explore): programs can be recorded only on Linux" in " ".join(
        str(indelible.doctor()).split()
    )


@needs_core
def test_what_is_there_and_does_not_work_is_a_failure(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "distributed.py").write_text("raise ImportError('half of it is missing')\n")
    (tmp_path / "textalloc.py").write_text("raise ValueError('its settings are malformed')\n")
    compiler_of_nothing = tmp_path / "cc"
    compiler_of_nothing.write_text("#!/bin/sh\necho no memory >&2\nexit 1\n")
    compiler_of_nothing.chmod(0o755)
    monkeypatch.syspath_prepend(str(tmp_path))
    for library in ("distributed", "textalloc"):
        monkeypatch.delitem(sys.modules, library, raising=False)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    answer = indelible.doctor()
    failed = [name for name, ok in checks(answer).items() if ok is False]
    assert failed == ["textalloc", "distributed", "cc"]
    shown = " ".join(health_text.health(answer, 1_000).split())
    assert "distributed FAIL does not work (half of it is missing): no runs on a cluster" in shown
    assert "textalloc FAIL does not work (its settings are malformed): no names in" in shown
    assert f"cc FAIL {compiler_of_nothing} compiles nothing (no memory): no programs" in shown


@needs_core
def test_a_compiler_that_cannot_be_run_is_a_failure(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As one of another kind of computer."""
    (tmp_path / "cc").write_bytes(b"\x7fELF of another")
    (tmp_path / "cc").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert main(["doctor", "--json"]) == 1
    (row,) = [row for row in json.loads(capsys.readouterr().out)["checks"] if row["what"] == "cc"]
    assert row["ok"] is False
    assert row["said"].startswith(f"{tmp_path}/cc cannot be run (exec format error): no programs")
    assert row["fix"] == "fix the compiler"


@needs_recorder
def test_a_compiler_that_cannot_be_run_is_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    other = tmp_path / "other"
    other.write_bytes(b"\x7fELF of another")
    other.chmod(0o755)
    with pytest.raises(indelible.InputError, match=f"^{other}: exec format error$"):
        indelible.cc(["a.c"], str(other))


@needs_core
def test_that_the_recorder_can_be_kept_nowhere_is_a_failure(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    answer = indelible.doctor()
    assert [name for name, ok in checks(answer).items() if ok is False] == ["cc"]
    shown = " ".join(health_text.health(answer, 1_000).split())
    assert "cc FAIL the recorder cannot be stored in" in shown
    # As of a user whom the system does not know.
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)
    with pytest.raises(indelible.InputError, match="there is no home directory; set XDG_CACHE_H"):
        cc.require_cache()


@needs_recorder
def test_a_recorder_that_is_not_built_is_told_with_the_error_and_not_with_what_follows(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    broken = tmp_path / "broken"
    told = "recorder.c: in memory:\nrecorder.c:1: error: no such type\nrecorder.c:1: note: here"
    broken.write_text(f"#!/bin/sh\necho '{told}' >&2\nexit 1\n")
    broken.chmod(0o755)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    refusal = r"could not build the recorder: recorder\.c:1: error: no such type$"
    with pytest.raises(indelible.InputError, match=refusal):
        indelible.cc(["a.c"], str(broken))
    assert [path.name for path in (tmp_path / "indelible").iterdir()] == []


@needs_recorder
def test_what_a_flag_takes_away_is_named() -> None:
    for flag, needed in (
        ("-fsanitize=leak", "the compiler's thread sanitizer"),
        ("-static", "a shared library"),
    ):
        told = f"`indelible cc` needs {needed}, which does not work with {flag}; leave it out"
        with pytest.raises(indelible.InputError, match=f"^{re.escape(told)}$"):
            indelible.cc(["-O2", flag, "a.c"])


@needs_recorder
def test_the_exit_code_is_the_compiler_s(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    other = tmp_path / "other"
    monkeypatch.setattr(cc, "_tools", lambda real: tmp_path)
    for ends, code in (("exit 4", 4), ("test $# = 1 || kill -KILL $$", 128 + 9)):
        other.write_text(f"#!/bin/sh\n{ends}\n")
        other.chmod(0o755)
        assert indelible.cc(["a.c"], str(other)) == code


def test_a_recorder_is_of_one_text_and_one_compiler(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    sources = tmp_path / "recorder"
    shutil.copytree(cc.SOURCES, sources)
    monkeypatch.setattr(cc, "SOURCES", sources)
    monkeypatch.setattr(cc, "_made", lambda folder, how: folder)
    monkeypatch.setattr(cc, "_is_clang", lambda compiler: False)
    first = cc._tools("/usr/bin/cc")
    assert cc._tools("/usr/bin/cc") == first
    folders = {first, cc._tools("/usr/bin/c99")}
    for name in ("text.c", "inner.h", "include/indelible.h", "thunks.S", "shim.py"):
        with (sources / name).open("a", encoding="utf-8") as file:
            file.write("\n")
        folders.add(cc._tools("/usr/bin/cc"))
    monkeypatch.setattr(sys, "executable", "/usr/bin/another")
    folders.add(cc._tools("/usr/bin/cc"))
    assert len(folders) == 8


#: A process in which a notebook of another environment would have figures drawn.
OF_A_NOTEBOOK = """
import os
from indelible import plots
plots.check("a.png")
with plots.our_style():
    from matplotlib.figure import Figure
    axes = Figure().subplots()
    axes.plot([1, 2], label="a")
    axes.legend()
    axes.figure.savefig("a.png")
print(os.environ["MPLBACKEND"])
"""


def test_figures_are_drawn_whatever_a_notebook_says(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    backend = "module://nobody_has_this.backend_inline"
    done = subprocess.run(
        [sys.executable, "-c", OF_A_NOTEBOOK],
        env={**os.environ, "MPLBACKEND": backend},
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout.strip()) == (0, backend), done.stderr
    assert (tmp_path / "a.png").stat().st_size


@needs_core
def test_violations_are_counted_as_what_was_not_recovered_from(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    real = extension.core.crash

    def broken(request: str, control: object) -> str:
        told = json.loads(real(request, control)) | {"points": 90, "nested_points": 10}
        told["violations"] = [{"event": event, "after": []} for event in (3, 3, 4)]
        return json.dumps(told)

    monkeypatch.setattr(extension.core, "crash", broken)
    assert "silo recovered from 98 of 100 power failures" in str(indelible.doctor())


def test_an_interruption_is_no_bug(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*_: object, **__: object) -> object:
        raise pool.Interrupted([None, None])

    monkeypatch.setattr(pool, "execute", interrupted)
    assert main(["doctor"]) == 130
    assert capsys.readouterr() == ("", "indelible: interrupted\n")
