"""What the pages of `--report` have in common: what was asked for, tables, figures, runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

from indelible import plot, simulated, text
from indelible.experiment import InputError
from indelible.inlined import inlined
from indelible.results import OfSeeds, Run
from indelible.simulated import Simulated

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

Answer = TypeVar("Answer")

#: More names than these are counted in a title.
NAMED = 6

#: What is said of each run, its name last: with it anyone sees whether theirs is the same.
RUN_HEADS = ("design", "workload", "cores", "seed", "version", "id")


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


def drawn(figure: Figure, draw: Callable[[Answer], Drawing], answer: Answer, of: OfSeeds) -> Figure:
    """Return a figure with its drawing, or with the reason why there is none."""
    told = f"{figure.title}: {', '.join(of.designs)} on {', '.join(of.workloads)}"
    try:
        svg = plot.svg(draw, answer)
    except InputError as error:
        return replace(figure, absent=str(error))
    said = f"{told}. The table below has its numbers."
    return replace(figure, svg=inlined(svg, figure.name, said))


def counted(names: Sequence[str], what: str) -> str:
    """Return names for a title, or how many there are if they are many."""
    return ", ".join(names) if len(names) <= NAMED else f"{len(names)} {what}"


def asked(answer: OfSeeds, cores: Iterable[int], more: Mapping[str, str]) -> dict[str, str]:
    """Return what was asked for, in the words of a page's head, with what there is more of it."""
    rows = [run.data for run in answer.runs.values()]
    each = sorted({row["txs"] / row["cores"] for row in rows})
    return {
        "designs": ", ".join(answer.designs),
        "workloads": ", ".join(answer.workloads),
        "machine": " · ".join(filter(None, [answer.machine, answer.core_model()])),
        **more,
        "cores": ", ".join(map(str, cores)),
        "transactions": " to ".join(f"{n:,.0f}" for n in dict.fromkeys((each[0], each[-1])))
        + " of each core",
        "seeds": ", ".join(map(str, answer.seeds_shown)),
        "simulator": "Indelible " + ", ".join(dict.fromkeys(row["version"] for row in rows)),
    }


def parts(of: Simulated) -> dict[str, Any]:
    """Return what was simulated, as a page has it."""
    return {
        "machine": simulated.machine(of),
        "designs": simulated.designs(of),
        "workloads": simulated.workloads(of),
    }


def listed(runs: Iterable[Run]) -> list[list[Any]]:
    """Return what is said of each run."""
    return [[run.data[head] for head in RUN_HEADS] for run in runs]
