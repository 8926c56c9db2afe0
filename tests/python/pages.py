"""Pages of `--report` as tests read them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path

#: Elements of HTML that have no end.
VOID = ("meta", "link", "img", "br", "input")

#: Attributes by which a page loads something, or names something.
LINKS = ("src", "href", "xlink:href", "srcset", "data", "action", "poster")

#: And how what is there itself begins.
DATA = "data:image/png;base64,"


@dataclass
class Element:
    """An element of a page, with what is in it."""

    tag: str
    attributes: dict[str, str | None]
    content: list[Element | str] = field(default_factory=list)

    @property
    def children(self) -> list[Element]:
        """The elements that are in it themselves."""
        return [one for one in self.content if isinstance(one, Element)]

    def all(self, tag: str | None = None, **attributes: str) -> Iterator[Element]:
        """Return the elements of a tag that are in it, in the order of the page."""
        for child in self.children:
            has = all(child.attributes.get(key) == value for key, value in attributes.items())
            if has and tag in (None, child.tag):
                yield child
            yield from child.all(tag, **attributes)

    def one(self, tag: str, **attributes: str) -> Element:
        (found,) = self.all(tag, **attributes)
        return found

    @property
    def text(self) -> str:
        """All text that is in it, with single blanks."""
        return " ".join(self._text().split())

    def _text(self) -> str:
        return "".join(one if isinstance(one, str) else one._text() for one in self.content)


class Page(HTMLParser):
    """What reads a page, and refuses one whose elements do not end as they begin."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.root = Element("", {})
        self._open = [self.root]
        self.feed(text)
        self.close()
        assert self._open == [self.root]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_startendtag(tag, attrs)
        if tag not in VOID:
            self._open.append(self._open[-1].children[-1])

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert len(dict(attrs)) == len(attrs), tag
        self._open[-1].content.append(Element(tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop().tag == tag

    def handle_data(self, data: str) -> None:
        self._open[-1].content.append(data)


def cells(table: Element) -> list[list[str]]:
    rows = [*table.all("tr")]
    return [[cell.text for cell in row.children] for row in rows]


def facts(element: Element) -> dict[str, str]:
    """Return what a list of facts says, by name."""
    return {row.one("dt").text: row.one("dd").text for row in element.all("div") if row.children}


def heads(row: Element) -> list[Element]:
    return [*row.all("th", scope="row")]


def is_alone(text: str, rows: str) -> None:
    """Assert that a page loads nothing, has no id twice, and no script but its rows."""
    page = Page(text).root
    every = [*page.all()]
    places = {value for one in every for key, value in one.attributes.items() if key in LINKS}
    links = {place for place in places if not place.startswith(DATA)}
    ids = [one.attributes["id"] for one in every if "id" in one.attributes]
    named = {link for link in links if link.startswith("#")} | {
        match
        for one in every
        for value in one.attributes.values()
        for match in re.findall(r"url\((#[^)]*)\)", value or "")
    }
    assert links
    assert named <= {f"#{one}" for one in ids}
    assert links <= named
    assert len({*ids}) == len(ids)
    assert "http" not in text
    assert "@import" not in text
    assert [one.attributes for one in page.all("script")] == [
        {"type": "application/json", "id": rows}
    ]
    assert not [key for one in every for key in one.attributes if key.startswith("on")]


def have_heads(tables: list[Element]) -> None:
    """Assert that the heads of tables say of what their cells are."""
    for table in tables:
        first, *rows = table.all("tr")
        assert {head.attributes["scope"] for head in first.children} == {"col"}
        assert all(heads(row) for row in rows)
        assert {len(row.children) for row in rows} == {len(first.children)}


def command_of(page: Element, verb: str) -> list[str]:
    """Return the words behind the verb of the command that repeats a page."""
    words = shlex.split(next(page.one("section", id="again").all("code")).text)
    assert words[:2] == ["indelible", verb]
    return words[2:]


def without_host(path: Path) -> str:
    """Return a page without what is of the computer that made it."""
    return re.sub(r'"host": \{[^}]*\}', "", path.read_text(encoding="utf-8"))
