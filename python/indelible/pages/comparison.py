"""The page of a comparison: every view, with the verdicts on its designs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import takewhile
from typing import Any

from indelible import pages, text
from indelible.metrics import METRICS
from indelible.pages import Figure, Judged, Table, simulated
from indelible.pages.simulated import Simulated
from indelible.results.comparison import Comparison
from indelible.results.crash import Verdict
from indelible.text.comparison import where
from indelible.text.verdicts import judged, verdict_text
from indelible.views import RATIOS, VIEWS, based

#: The contents of the figures, in their order.
FIGURES = {
    RATIOS: "{metric} relative to {base}",
    "writes": "PM writes of a transaction, all of {base} = 100",
    "stalls": "Core time of a transaction, all of {base} = 100",
    "usage": "How busy the machine was",
    "latencies": "How long commits take",
    "summary": "Throughput and PM writes relative to {base}, with the Pareto front",
}

#: The words beside a design's name by its verdict, and what they mean.
LEGEND = {
    "ok": ("ok N", "the power failed N times, and what was recovered was right each time"),
    "fail": ("FAIL M/N", "M of N power failures broke something: its speed cannot be compared"),
    "none": ("none", "not crash consistent by design: a bound, not a rival"),
    "untested": ("untested", "no power was cut, or there was nothing to check"),
}

#: What of a design is not that of a rival that is crash-safe.
UNSAFE, BOUND, WEAKER = "not crash-safe", "no durability", "weaker durability"
WEAKER_NOTE = "a commit returns before it is durable"

#: The columns that say whose a row is; they come first.
LABELS = ("design", "workload")


def parts(answer: Comparison) -> dict[str, Any]:
    """Return the variables of the page's template."""
    of = Simulated.of(answer)
    counts = (count for count in map(answer.cores_used, answer.cores) if count is not None)
    return {
        "title": pages.named(answer),
        "asked": pages.asked(answer, counts, answer.seeds_shown, {}),
        "interrupted": text.interrupted(answer, "runs") if answer.interrupted else None,
        "main": _main(answer),
        "legend": _legend(answer),
        "summary": _view(answer, "summary", "All that a design trades, relative to {base}"),
        "figures": [_drawn(answer, name, title) for name, title in FIGURES.items()],
        "verdicts": _verdicts(answer),
        **pages.parts(of),
        "campaigns": _campaigns(answer),
        "command": answer.command_with(answer.own_view, *simulated.REPORTED),
        "run_heads": pages.RUN_HEADS,
        "runs": pages.listed(answer.runs.values()),
    }


def _main(answer: Comparison) -> Figure:
    main = _view(answer, RATIOS, "{metric} relative to {base}{better}")
    return replace(main, notes=[*text.refused_notes(answer), *main.notes])


def _view(answer: Comparison, name: str, title: str) -> Figure:
    """Return a view without its drawing."""
    answer = _based(answer, name)
    view, metric = VIEWS[name], METRICS[answer.metric]
    better = f", {metric.better}" if metric.better else ""
    said = title.format(metric=metric.title, base=answer.labels[answer.normalize], better=better)
    return Figure(name, said, None, None, [*_tables(answer, name)], view.notes(answer))


def _drawn(answer: Comparison, name: str, title: str) -> Figure:
    """Return a view with its drawing, or with the reason why there is none."""
    own = _based(answer, name)
    return pages.drawn(_view(answer, name, title), VIEWS[name].figure, own, answer)


def _based(answer: Comparison, name: str) -> Comparison:
    """Return the comparison as a view of it is shown here.

    A page has all views, so the base that the caller gave is that of the ratios alone.
    """
    return based(replace(answer, is_base_given=False), name)


def _tables(answer: Comparison, name: str) -> Iterator[Table]:
    names = {judged(answer, design): design for design in answer.designs}
    for cores in answer.cores:
        heads, *rows = VIEWS[name].grid(answer, cores)
        labels = [*takewhile(LABELS.__contains__, heads)]
        place = labels.index("design")
        whose = [names.get(row[place]) for row in rows]
        of = [
            None if design is None else _judged(answer, design, answer.verdict(design, cores))
            for design in whose
        ]
        yield Table(where(answer, cores), labels, heads, [*zip(of, rows, strict=True)])


def _judged(answer: Comparison, design: str, verdict: Verdict) -> Judged:
    is_weaker = answer.durability.get(design) == "asynchronous"
    warning = {"fail": UNSAFE, "none": BOUND}.get(verdict.kind, WEAKER if is_weaker else None)
    return Judged(
        answer.labels[design], verdict.kind, verdict_text(verdict).rstrip(text.DAGGER), warning
    )


def _overall(answer: Comparison) -> list[Judged]:
    """Return what is to be known of each design with all numbers of cores."""
    of = {
        design: Verdict.all_of(v for cell, v in answer.verdicts.items() if cell[0] == design)
        for design in answer.designs
    }
    return [_judged(answer, design, verdict) for design, verdict in of.items()]


def _legend(answer: Comparison) -> list[text.Note]:
    """Return the notes: the meaning of the words beside designs' names, and the runs' own notes."""
    every = _overall(answer)
    found = [LEGEND[kind] for kind in LEGEND if any(one.kind == kind for one in every)]
    found += [(WEAKER, WEAKER_NOTE)] if any(one.warning == WEAKER for one in every) else []
    told = (note for run in answer.runs.values() for note in run.data.get("notes") or [])
    return [*found, *(("*", note) for note in dict.fromkeys(told))]


def _verdicts(answer: Comparison) -> list[tuple[str, Judged]]:
    """Return the names of designs as figures have them, with their verdicts."""
    every = zip(answer.designs, _overall(answer), strict=True)
    return [(judged(answer, design), one) for design, one in every]


def _campaigns(answer: Comparison) -> list[tuple[str, str, Verdict]]:
    """Return the rows of the crash campaigns, each once."""
    found: dict[tuple[str, str, Verdict], None] = {}
    for (design, workload, _), verdict in answer.verdicts.items():
        if verdict.kind != "none":
            found[design, workload, verdict] = None
    return [*found]
