"""A comparison as one HTML page: what came out, what was simulated, and how to have it again.

The page loads nothing, and has the object of `--json` in it, which `read` returns. jinja2 and what
draws figures are imported inside the functions, as they are for figures alone.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from html.parser import HTMLParser
from os import PathLike
from pathlib import Path
from typing import Any

from indelible import files, plot, simulated, text
from indelible.comparison_text import judged, verdict_text, where
from indelible.experiment import InputError
from indelible.inlined import inlined
from indelible.metrics import METRICS
from indelible.results import Comparison, Verdict
from indelible.views import RATIOS, VIEWS

SUFFIX = ".html"

#: What a report needs, and the extra that has it.
LIBRARIES = ("jinja2", "matplotlib", "textalloc")
EXTRA = "report"

#: The page, beside the style that it has in it.
TEMPLATE = "report.html"

#: The element that has the object of `--json`.
ROWS = "comparison"

#: What the figures show, in their order.
FIGURES = {
    RATIOS: "{metric} relative to {base}",
    "writes": "PM writes of a transaction, all of {base} = 100",
    "stalls": "Core time of a transaction, all of {base} = 100",
    "usage": "How busy the machine was",
    "latencies": "How long commits take",
    "summary": "Throughput and PM writes relative to {base}, with the Pareto front",
}

#: What is relative to the writes of a design. One without durability writes next to nothing.
OF_WRITES = ("writes", "summary")

#: More names than these are counted in a title.
NAMED = 6

#: What stands beside the name of a design, by its verdict, and what that means.
LEGEND = {
    "ok": ("ok N", "the power failed N times, and what was recovered was right each time"),
    "fail": ("FAIL M/N", "of N power failures M broke something: its speed is not that of a rival"),
    "none": ("none", "not crash consistent by design: a bound and not a rival"),
    "untested": ("untested", "no power was cut, or there was nothing to check"),
}

#: What of a design is not that of a rival that is crash-safe.
UNSAFE, BOUND, WEAKER = "not crash-safe", "no durability", "weaker durability"
WEAKER_NOTE = "a commit returns before it is durable"


@dataclass(frozen=True)
class Judged:
    """A design's name, and what a reader has to know before any number of it."""

    name: str
    #: Of the verdict.
    kind: str
    said: str
    #: Why its numbers are not those of a rival that is crash-safe, if they are not.
    warning: str | None


@dataclass(frozen=True)
class Table:
    """The table of one number of cores: whose a row is, if it is a design's, and its cells."""

    where: str
    heads: Sequence[str]
    rows: Sequence[tuple[Judged | None, Sequence[str]]]


@dataclass(frozen=True)
class Figure:
    """A view: its drawing or why there is none, and the tables behind it."""

    name: str
    title: str
    svg: str | None
    absent: str | None
    tables: Sequence[Table]
    notes: Sequence[text.Note]


def check(path: str | PathLike[str], flag: str = "") -> None:
    """Refuse a path that no report can be saved to, and do so where a library is missing."""
    if Path(path).suffix.lower() != SUFFIX:
        place = f"{flag} {path}".lstrip()
        raise InputError(f"{place}: a report is an HTML page; end its name in {SUFFIX}")
    for library in LIBRARIES:
        try:
            importlib.import_module(library)
        except ImportError as error:
            raise plot.missing(error, flag or "a report", EXTRA) from None


def save(answer: Comparison, path: str | PathLike[str]) -> None:
    """Write the report of a comparison."""
    check(path)
    page = html(answer)
    with files.naming(path):
        Path(path).write_text(page, encoding="utf-8")


def html(answer: Comparison) -> str:
    """Return the report of a comparison: the same text for the same rows."""
    if not answer.runs:
        raise InputError("there is no report: no run came to its end")
    import jinja2

    pages = jinja2.Environment(
        loader=jinja2.PackageLoader("indelible", "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    pages.policies["json.dumps_kwargs"] = {"allow_nan": False}
    page = pages.get_template(TEMPLATE)
    return page.render(
        title=f"{_counted(answer.designs, 'designs')} on {_counted(answer.workloads, 'workloads')}",
        asked=_asked(answer),
        interrupted=text.interrupted(answer, "runs") if answer.interrupted else None,
        main=_view(answer, RATIOS, "{metric} relative to {base}{better}"),
        legend=_legend(answer),
        summary=_view(answer, "summary", "All that a design trades, relative to {base}"),
        figures=[_drawn(answer, name, title) for name, title in FIGURES.items()],
        verdicts=_verdicts(answer),
        machine=simulated.machine(answer),
        designs=simulated.designs(answer),
        workloads=simulated.workloads(answer),
        campaigns=_campaigns(answer),
        command=simulated.command(answer),
        runs=[run.data for run in answer.runs.values()],
        rows=ROWS,
        comparison=answer.json(),
    )


def read(path: str | PathLike[str]) -> dict[str, Any]:
    """Return the object of `--json` that a report has: `read("report.html")["rows"]`."""
    found = _Rows()
    with files.naming(path):
        found.feed(Path(path).read_bytes().decode("utf-8", errors="replace"))
    if not found.text:
        raise InputError(f"{path}: is no report of a comparison")
    return json.loads(found.text)


class _Rows(HTMLParser):
    """What takes the text of the element that has the rows."""

    def __init__(self) -> None:
        super().__init__()
        self.text = ""
        self._inside = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Begin in that element."""
        self._inside = tag == "script" and ("id", ROWS) in attrs

    def handle_endtag(self, tag: str) -> None:
        """End with it."""
        self._inside = False

    def handle_data(self, data: str) -> None:
        """Take what is in it."""
        self.text += data if self._inside else ""


def _counted(names: Sequence[str], what: str) -> str:
    return ", ".join(names) if len(names) <= NAMED else f"{len(names)} {what}"


def _asked(answer: Comparison) -> dict[str, str]:
    """Return what was compared, in the words of the page's head."""
    rows = [run.data for run in answer.runs.values()]
    each = sorted({row["txs"] / row["cores"] for row in rows})
    counts = (count for count in map(answer.cores_used, answer.cores) if count is not None)
    return {
        "designs": ", ".join(answer.designs),
        "workloads": ", ".join(answer.workloads),
        "machine": " · ".join(filter(None, [answer.machine, answer.core_model()])),
        "cores": ", ".join(map(str, counts)),
        "transactions": " to ".join(f"{n:,.0f}" for n in dict.fromkeys((each[0], each[-1])))
        + " of each core",
        "seeds": ", ".join(map(str, answer.seeds_shown)),
        "simulator": "Indelible " + ", ".join(dict.fromkeys(row["version"] for row in rows)),
    }


def _view(answer: Comparison, name: str, title: str) -> Figure:
    """Return a view without its drawing."""
    answer = _based(answer, name)
    view, metric = VIEWS[name], METRICS[answer.metric]
    better = f", {metric.better}" if metric.better else ""
    said = title.format(metric=metric.title, base=answer.normalize, better=better)
    return Figure(name, said, None, None, [*_tables(answer, name)], view.notes(answer))


def _drawn(answer: Comparison, name: str, title: str) -> Figure:
    """Return a view with its drawing, or with the reason why there is none."""
    found = _view(answer, name, title)
    told = f"{found.title}: {', '.join(answer.designs)} on {', '.join(answer.workloads)}"
    try:
        svg = plot.svg(VIEWS[name].figure, _based(answer, name))
    except InputError as error:
        return replace(found, absent=str(error))
    return replace(found, svg=inlined(svg, name, f"{told}. The table below has its numbers."))


def _based(answer: Comparison, name: str) -> Comparison:
    """Return a comparison in which what a view is relative to is something."""
    durable = [design for design in answer.designs if answer.durability.get(design) != "none"]
    if name not in OF_WRITES or answer.normalize in durable or not durable:
        return answer
    return replace(answer, normalize=durable[0])


def _tables(answer: Comparison, name: str) -> Iterator[Table]:
    names = {judged(answer, design): design for design in answer.designs}
    for cores in answer.cores:
        heads, *rows = VIEWS[name].grid(answer, cores)
        place = heads.index("design")
        whose = [names.get(row[place]) for row in rows]
        of = [design and _judged(answer, design, answer.verdict(design, cores)) for design in whose]
        yield Table(where(answer, cores), heads, [*zip(of, rows, strict=True)])


def _judged(answer: Comparison, design: str, verdict: Verdict) -> Judged:
    is_weaker = answer.durability.get(design) == "asynchronous"
    warning = {"fail": UNSAFE, "none": BOUND}.get(verdict.kind, WEAKER if is_weaker else None)
    return Judged(design, verdict.kind, verdict_text(verdict).rstrip(text.DAGGER), warning)


def _overall(answer: Comparison) -> list[Judged]:
    """Return what is to be known of each design with all numbers of cores."""
    of = {
        design: Verdict.all_of(v for cell, v in answer.verdicts.items() if cell[0] == design)
        for design in answer.designs
    }
    return [_judged(answer, design, verdict) for design, verdict in of.items()]


def _legend(answer: Comparison) -> list[text.Note]:
    """Return what the words beside the names of designs mean, and what runs say of themselves."""
    every = _overall(answer)
    found = [LEGEND[kind] for kind in LEGEND if any(one.kind == kind for one in every)]
    found += [(WEAKER, WEAKER_NOTE)] if any(one.warning == WEAKER for one in every) else []
    told = (note for run in answer.runs.values() for note in run.data.get("notes") or [])
    return [*found, *(("*", note) for note in dict.fromkeys(told))]


def _verdicts(answer: Comparison) -> list[tuple[str, Judged]]:
    """Return the names of designs as figures have them, with their verdicts."""
    return [(judged(answer, one.name), one) for one in _overall(answer)]


def _campaigns(answer: Comparison) -> list[tuple[str, str, Verdict]]:
    """Return the crash campaigns, each once."""
    found: dict[tuple[str, str, Verdict], None] = {}
    for (design, workload, _), verdict in answer.verdicts.items():
        if verdict.kind != "none":
            found[design, workload, verdict] = None
    return [*found]
