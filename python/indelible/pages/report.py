"""An answer as one HTML page: what came out, what was simulated, and how to have it again.

The page loads nothing, and has the object of `--json` in it, which `read` returns. jinja2 and what
draws figures are imported inside the functions, as they are for figures alone.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html.parser import HTMLParser
from os import PathLike
from pathlib import Path
from typing import Any

from indelible import files, plots
from indelible.errors import InputError
from indelible.pages import causes as causes_page
from indelible.pages import comparison as comparison_page
from indelible.pages import sweep as sweep_page
from indelible.results.causes import Causes
from indelible.results.comparison import Comparison
from indelible.results.sweep import Sweep

SUFFIX = ".html"

#: The extra that has all libraries that a report needs.
EXTRA = "report"

#: The answers that have a page.
Reported = Comparison | Sweep | Causes


@dataclass(frozen=True)
class Kind:
    """A kind of page."""

    #: The name of its template, and of the element that has the object of `--json`.
    name: str
    #: The command that it is of.
    verb: str
    #: What its template is given beside that.
    parts: Callable[[Any], dict[str, Any]]
    #: The libraries that its figures need beside matplotlib.
    libraries: Sequence[str] = ()


KINDS = {
    Comparison: Kind("comparison", "compare", comparison_page.parts, ("textalloc",)),
    Sweep: Kind("sweep", "sweep", sweep_page.parts),
    Causes: Kind("why", "why", causes_page.parts),
}


def check(path: str | PathLike[str], verb: str, flag: str = "") -> None:
    """Refuse a path to which no report of a command can be saved, and one without its libraries."""
    if Path(path).suffix.lower() != SUFFIX:
        place = f"{flag} {path}".lstrip()
        raise InputError(f"{place}: the name of a report must end in {SUFFIX}")
    try:
        plots.library()
        (of_figures,) = (kind.libraries for kind in KINDS.values() if kind.verb == verb)
        for library in ("jinja2", *of_figures):
            importlib.import_module(library)
    except ImportError as error:
        raise plots.missing(error, flag or "a report", EXTRA) from None


def save(answer: Reported, path: str | PathLike[str]) -> None:
    """Write the report of an answer."""
    check(path, KINDS[type(answer)].verb)
    page = html(answer)
    with files.naming(path):
        files.write(path, page)


def html(answer: Reported) -> str:
    """Return the report of an answer: the same text for the same rows."""
    if not answer.runs:
        raise InputError("there is no report: no run was completed")
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("indelible.pages", "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.policies["json.dumps_kwargs"] = {"allow_nan": False}
    kind = KINDS[type(answer)]
    page = environment.get_template(f"{kind.name}{SUFFIX}")
    return page.render(kind=kind, json=answer.json(), **kind.parts(answer))


def read(path: str | PathLike[str]) -> dict[str, Any]:
    """Return the object of `--json` that a report has: `read("report.html")["rows"]`."""
    found = _Rows()
    with files.naming(path):
        found.feed(Path(path).read_bytes().decode("utf-8", errors="replace"))
    if not found.text:
        raise InputError(f"{path}: is not a page that `--report` wrote")
    return json.loads(found.text)


class _Rows(HTMLParser):
    """The parser that takes the text of the element with the rows."""

    def __init__(self) -> None:
        super().__init__()
        self.text = ""
        self._inside = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Begin in that element."""
        names = {("id", kind.name) for kind in KINDS.values()}
        self._inside = tag == "script" and not names.isdisjoint(attrs)

    def handle_endtag(self, tag: str) -> None:
        """End with it."""
        self._inside = False

    def handle_data(self, data: str) -> None:
        """Take what is in it."""
        self.text += data if self._inside else ""
