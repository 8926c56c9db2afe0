"""What documents refer to is there: files, and headings of documents."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCUMENTS = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]


def name(path: Path) -> str:
    """Return a document's path as a person would say it."""
    return str(path.relative_to(ROOT))


def anchors(path: Path) -> list[str]:
    """Return what a link to each heading ends with, as GitHub names them."""
    headings = re.findall(r"^#+ (.*)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    return [re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings]


def missing(path: Path) -> list[str]:
    """Return the links of a document that lead nowhere."""
    found = []
    for link in re.findall(r"\]\(([^)\s]+)\)", path.read_text(encoding="utf-8")):
        target, _, anchor = link.partition("#")
        other = path.parent / target if target else path
        if re.match(r"https?:|mailto:", link):
            continue
        if not other.exists() or (anchor and anchor not in anchors(other)):
            found.append(link)
    return found


@pytest.mark.parametrize("path", DOCUMENTS, ids=name)
def test_every_link_leads_somewhere(path: Path) -> None:
    assert missing(path) == []


def test_a_link_to_a_heading_or_a_file_that_is_not_there_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# One `run`: what it is\n[a](#one-run-what-it-is) [b](page.md#one) [c](other.md) [d](#)\n"
        "[e](https://example.org/#x) [f](page.md#one-run-what-it-is)\n"
    )
    assert missing(page) == ["page.md#one", "other.md"]
