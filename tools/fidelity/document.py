"""The parts of pages between markers, and their replacement."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from indelible.errors import InputError

#: The markers at the begin and the end of a measured part.
BEGIN = re.compile(r"<!-- measured: (?P<name>\S+) -->")
END = "<!-- end -->"


def parts(document: str) -> dict[str, str]:
    """Return the measured parts by name, as they are."""
    return {
        name: document[begin:end].strip("\n") for name, (begin, end) in _spans(document).items()
    }


def with_parts(document: str, texts: Mapping[str, str]) -> str:
    """Return the document with these texts in place of the parts with their names."""
    spans = _spans(document)
    for name in texts:
        if name not in spans:
            raise InputError(f"the document has no <!-- measured: {name} -->")
    # From the end on, so that earlier parts do not move.
    for name, (begin, end) in sorted(spans.items(), key=lambda span: -span[1][0]):
        if name in texts:
            document = f"{document[:begin]}\n\n{texts[name]}\n\n{document[end:]}"
    return document


def spread(pages: Mapping[Path, str], texts: Mapping[str, str]) -> dict[Path, str]:
    """Return the pages with these texts in place of the parts with their names."""
    places: dict[str, Path] = {}
    for path, page in pages.items():
        for name in parts(page):
            if name in places:
                both = f"{places[name].name} and {path.name}"
                raise InputError(f"{both} both have <!-- measured: {name} -->")
            places[name] = path
    for name in texts:
        if name not in places:
            raise InputError(f"no page has <!-- measured: {name} -->")
    return {
        path: with_parts(page, {name: texts[name] for name in texts if places[name] == path})
        for path, page in pages.items()
    }


def _spans(document: str) -> dict[str, tuple[int, int]]:
    """Return the places of the parts, from behind the first marker to before the second."""
    found: dict[str, tuple[int, int]] = {}
    begins = [*BEGIN.finditer(document)]
    limits = [*(begin.start() for begin in begins[1:]), len(document)]
    # A page without a marker has a limit and nothing before it.
    for begin, limit in zip(begins, limits, strict=False):
        name, end = begin["name"], document.find(END, begin.end(), limit)
        if end < 0:
            raise InputError(f"<!-- measured: {name} --> has no {END}")
        if name in found:
            raise InputError(f"the document has <!-- measured: {name} --> twice")
        found[name] = (begin.end(), end)
    return found
