"""CONTRIBUTING.md names every hook of a design and every call of the machine underneath."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MODEL = ROOT / "crates" / "model" / "src"


def block(path: Path, head: str) -> str:
    """Return what stands between the line that begins with `head` and the end of its block."""
    text = path.read_text(encoding="utf-8")
    return text[text.index(f"\n{head}") :].split("\n}\n")[0]


@pytest.mark.parametrize(
    ("file", "head", "pattern", "said"),
    [
        ("design.rs", "pub trait Design", r"^    (?:fn|const) (\w+)", "`{}`"),
        ("below.rs", "impl<E: Copy> Below<E>", r"^    pub fn (\w+)", "`below.{}("),
    ],
)
def test_what_a_design_is_made_of_is_named(file: str, head: str, pattern: str, said: str) -> None:
    """A name that is missing from the guide, a designer finds in the source alone."""
    guide = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    names = re.findall(pattern, block(MODEL / file, head), re.MULTILINE)
    assert len(names) > 20
    assert [name for name in names if said.format(name) not in guide] == []
