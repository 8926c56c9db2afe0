"""The common parts of the pages of `--report`: the request, tables, figures, runs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

from indelible import plots, text
from indelible.errors import InputError
from indelible.pages import simulated
from indelible.pages.inline import inlined
from indelible.pages.simulated import Simulated
from indelible.results.run import Run
from indelible.results.seeds import OfSeeds
from indelible.text import verdicts as verdicts_text
from indelible.text.verdicts import CRASH_TEST, FAILED

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

Answer = TypeVar("Answer")

#: The style of a table's first columns, where they are no designs with a verdict.
LABEL = "label"

#: How wide an SVG says it is, in how many points of an inch, and the part of the width of a paper
#: below which it is narrow.
WIDTH, POINTS, NARROW = re.compile(r'width="([0-9.]+)pt"'), 72, 0.75

#: More names than these are counted in a title.
NAMED = 6

#: The columns of the table of runs; the id is last, by which a reader can compare with own runs.
RUN_HEADS = ("design", "workload", "cores", "seed", "version", "id")


@dataclass(frozen=True)
class Judged:
    """A design's name, and the warnings that a reader needs before any number of it."""

    name: str
    #: Of the verdict.
    kind: str
    said: str
    #: Why its numbers are not those of a rival that is crash-safe, if they are not.
    warning: str | None


@dataclass(frozen=True)
class Table:
    """A table: what its first columns have, which say whose a row is, and the rows as cells.

    A row may be that of a design whose power was cut.
    """

    where: str
    labels: Sequence[str]
    heads: Sequence[str]
    rows: Sequence[tuple[Judged | None, Sequence[str]]]


@dataclass(frozen=True)
class Figure:
    """Tables, and their drawing or why there is none."""

    name: str
    title: str
    svg: str | None
    absent: str | None
    tables: Sequence[Table]
    notes: Sequence[text.Note]
    #: Whether it is drawn for one column of a paper, and not to be as wide as the page.
    is_narrow: bool = False


def drawn(figure: Figure, draw: Callable[[Answer], Drawing], answer: Answer, of: OfSeeds) -> Figure:
    """Return a figure with its drawing, or with the reason why it has none."""
    told = f"{figure.title}: {', '.join(of.labels.values())} on {', '.join(of.workloads)}"
    try:
        svg = plots.svg(draw, answer)
    except InputError as error:
        return replace(figure, absent=str(error))
    said = f"{told}. The table below has its numbers."
    width = float(WIDTH.findall(svg)[0])
    is_narrow = width < NARROW * plots.WIDTH_INCHES * POINTS
    return replace(figure, svg=inlined(svg, figure.name, said), is_narrow=is_narrow)


def table(
    where: str, labels: Sequence[str], heads: Sequence[str], rows: Iterable[Sequence[str]]
) -> Table:
    """Return a table whose rows have no verdicts."""
    return Table(where, labels, heads, [(None, row) for row in rows])


def named(answer: OfSeeds) -> str:
    """Return the designs and the workloads of an answer, for a title."""
    return f"{_counted([*answer.labels.values()], 'designs')} on {counted_workloads(answer)}"


def counted_workloads(answer: OfSeeds) -> str:
    """Return the workloads of an answer, for a title."""
    return _counted(answer.workloads, "workloads")


def _counted(names: Sequence[str], what: str) -> str:
    """Return names for a title, or their number if they are many."""
    return ", ".join(names) if len(names) <= NAMED else f"{len(names)} {what}"


def quantity_cell(value: float | None, unit: str) -> str:
    """Return a number in its unit, or a dash for nothing."""
    return text.BLANK if value is None else text.quantity(value, unit)


def asked(
    answer: OfSeeds, cores: Iterable[int], seeds: Iterable[object], more: Mapping[str, str]
) -> dict[str, str]:
    """Return the request in words, for the head of a page, with `more` of them."""
    rows = [run.data for run in answer.runs.values()]
    each = sorted({row["txs"] / row["cores"] for row in rows})
    return {
        "designs": ", ".join(answer.designs),
        "workloads": ", ".join(answer.workloads),
        "machine": " · ".join(filter(None, [", ".join(answer.machines), answer.core_model()])),
        **more,
        "cores": ", ".join(map(str, cores)),
        "transactions": " to ".join(f"{n:,.0f}" for n in dict.fromkeys((each[0], each[-1])))
        + " of each core"
        + "".join(f", {said}" for said in text.warmup_said(answer.warmup)),
        "seeds": ", ".join(map(str, seeds)),
        "simulator": "Indelible " + ", ".join(dict.fromkeys(row["version"] for row in rows)),
    }


def crash_test(answer: OfSeeds) -> dict[str, str]:
    """Return the verdicts of the designs, for the head of a page."""
    return {CRASH_TEST: verdicts_text.verdicts(answer, answer.verdict_on_all)}


def verdict_notes(answer: OfSeeds) -> list[text.Note]:
    """Return the notes on the designs without a good verdict."""
    failures = shown_by(verdicts_text.failures(answer))
    return [*failures, *verdicts_text.untested_notes(answer)]


def shown_by(failures: Iterable[tuple[str, str]]) -> list[text.Note]:
    """Return notes on failures, with the commands that show them."""
    return [(FAILED, f"{failure}; to see it: {command}") for failure, command in failures]


def parts(of: Simulated) -> dict[str, Any]:
    """Return the machines, the designs and the workloads, as a page shows them."""
    return {
        "machines": simulated.machines(of),
        "designs": simulated.designs(of),
        "workloads": simulated.workloads(of),
    }


def listed(runs: Iterable[Run]) -> list[list[Any]]:
    """Return the rows of the table of runs."""
    return [[run.data[head] for head in RUN_HEADS] for run in runs]
