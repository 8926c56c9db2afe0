"""Documents do what they say: their commands are typed, and print what stands below them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from conftest import needs_core
from recorded import needs_recorder

ROOT = Path(__file__).parents[2]

#: What is left out, a part of a line or any number of lines.
LEFT_OUT = "..."


def commands(document: Path) -> Iterator[tuple[str, list[str]]]:
    """Return each command of a document with the lines that stand below it."""
    said: tuple[str, list[str]] | None = None
    for line in document.read_text(encoding="utf-8").splitlines():
        if line.startswith("    $ "):
            if said:
                yield said
            said = line[6:], []
        elif said and line.startswith("    "):
            said[1].append(line[4:])
        elif said and line:
            yield said
            said = None


def missing(expected: list[str], printed: str) -> str | None:
    """Return the first line that was not printed next, or behind what is left out there."""
    lines = [line.rstrip() for line in printed.splitlines() if line.strip()]
    place, may_skip = 0, False
    for wanted in expected:
        if wanted == LEFT_OUT:
            may_skip = True
            continue
        pattern = ".*".join(map(re.escape, wanted.rstrip().split(LEFT_OUT)))
        until = len(lines) if may_skip else place + 1
        found = (
            at for at in range(place, until) if re.fullmatch(pattern, "".join(lines[at : at + 1]))
        )
        if (at := next(found, None)) is None:
            return wanted
        place, may_skip = at + 1, False
    rest = lines[place:]
    return rest[0] if expected and rest and not may_skip else None


def test_what_is_not_printed_in_its_place_is_missing() -> None:
    printed = "one\ntwo 2 s\nthree\n"
    assert missing(["one", "..."], printed) is None
    assert missing(["one", "two ... s", "three"], printed) is None
    assert missing(["...", "three", "one"], printed) == "one"
    assert missing(["...", "two"], printed) == "two"
    assert missing(["one", "three"], printed) == "three", "two is not left out"
    assert missing(["one"], printed) == "two 2 s", "nor is what follows"
    assert missing(["...", "three"], printed) is None


#: How many commands a document has at least: one that is not found is not typed.
TYPED = {"tutorial": 15, "commands": 4, "design": 10, "crash": 3, "litmus": 1}


@needs_core
@pytest.mark.long
@pytest.mark.parametrize(
    "name",
    [pytest.param("tutorial", marks=needs_recorder), "commands", "design", "crash", "litmus"],
)
def test_a_document_prints_what_it_says(name: str, tmp_path: Path) -> None:
    for folder in ("crates", "examples"):
        (tmp_path / folder).symlink_to(ROOT / folder)
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = os.environ | {"COLUMNS": "80", "PATH": path}
    typed = [*commands(ROOT / "docs" / f"{name}.md")]
    assert len(typed) >= TYPED[name]
    for command, expected in typed:
        done = subprocess.run(
            command, shell=True, cwd=tmp_path, env=environment, capture_output=True, text=True
        )
        assert missing(expected, done.stdout) is None, f"$ {command}\n{done.stdout}{done.stderr}"
        fails = any("FAIL" in line or "WRONG" in line for line in expected)
        assert done.returncode == int(fails), f"$ {command}\n{done.stdout}{done.stderr}"
