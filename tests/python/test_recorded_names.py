"""Programs with odd letters in names and sources, and compilers with such messages."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

import indelible
from conftest import needs_core, refused
from indelible import cli
from indelible.recorder import shim
from indelible.results.health import Health
from recorded import PRELUDE, Build, needs_recorder

pytestmark = needs_recorder

#: What a file is called on a system that has Latin-1.
CAFE = os.fsdecode(b"caf\xe9")

#: A program of one store.
STORES = 'int main(void) { map("pool", 4096)[0] = 1; return 0; }'


def compiler(path: Path, body: str) -> Path:
    """Write a compiler that does what a shell's words say."""
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return path


def test_a_line_of_source_is_told_whatever_its_file_is_called(build: Build) -> None:
    Path(f"{CAFE}.c").write_text(PRELUDE + STORES)
    build(Path(f"{CAFE}.c"))
    indelible.record(["./program"], "a.trace")
    told = Path("a.trace").read_text("utf-8").splitlines()
    assert [line for line in told if line.endswith(f" # caf?.c:{PRELUDE.count(chr(10)) + 1}")]


@needs_core
def test_what_is_run_before_may_say_anything(build: Build) -> None:
    build(STORES)
    before = "printf 'no caf\\351\\n' >&2; exit 4"
    said = refused(lambda: indelible.explore(["./program"], before=before))
    assert said.endswith("ended with exit code 4: no caf\N{REPLACEMENT CHARACTER}")


def test_a_compiler_may_say_anything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    says = compiler(
        tmp_path / "says", "printf 'caf\\351: error\\n'; printf 'caf\\351\\n' >&2; exit 4"
    )
    said = refused(lambda: indelible.cc(["a.c"], str(says)))
    assert said.endswith("could not build the recorder: caf\N{REPLACEMENT CHARACTER}")


@needs_core
def test_a_compiler_that_says_anything_is_a_check_that_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiler(tmp_path / "cc", "printf 'no caf\\351\\n' >&2; exit 4")
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert "compiles nothing (no caf\N{REPLACEMENT CHARACTER}): no" in of_the_compiler()


def of_the_compiler() -> str:
    """Return what `doctor` says of the compiler, which does not work."""
    answer: Health = indelible.doctor()
    (row,) = [row for row in answer["checks"] if row["what"] == "cc"]
    assert row["ok"] is False
    return row["said"]


@pytest.mark.parametrize("end", ["\u2028", "\u0085", "\x0c", "\x0b", "\r", "\x1e"])
def test_only_a_line_feed_ends_a_line_of_assembly(build: Build, end: str) -> None:
    """With `-fverbose-asm` lines of the source are comments in it."""
    comment = f"/* one{end} two; three */"
    build(STORES.replace("return", f"{comment} return"), "-fverbose-asm")
    assert indelible.record(["./program"], "a.trace")["stores"] == 1
    text = f'\tnop # a {end} clwb (%rax)\n\t.string "a{end}b"\n\tclwb (%rax){end}\n'
    made = shim.instrument(text)
    assert made.count("indelible_flush") == 1
    assert f'# a {end} clwb (%rax)\n\t.string "a{end}b"\n' in made


@pytest.mark.parametrize("name", [CAFE, "one\u2028two"])
def test_a_folder_may_have_any_name(
    build: Build, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], name: str
) -> None:
    """That of the recorder, and that of the program and its memory."""
    monkeypatch.setenv("XDG_CACHE_HOME", os.path.abspath(f"of the {name}"))
    os.mkdir(name)
    monkeypatch.chdir(name)
    Path("program.c").write_text(PRELUDE + STORES)
    build(Path("program.c"), name=os.path.abspath("program"))
    assert cli.main(["record", "--json", "--out", "a.trace", "--", "./program"]) == 0
    (region,) = json.loads(capfd.readouterr().out)["regions"]
    assert region["file"] == os.path.realpath("pool")
    assert f" # program.c:{PRELUDE.count(chr(10)) + 1}\n" in Path("a.trace").read_text("utf-8")
    answer = indelible.record([os.path.abspath("program")], "a.trace", pool="pool")
    assert answer["regions"] == [region]
    shown = str(answer).encode().decode().replace("\n", "").replace(" ", "")
    assert f"{name.replace(CAFE, 'caf?')}/pool)" in shown
