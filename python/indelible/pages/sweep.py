"""The page of a sweep: its tables, the crossings of designs, its figure, and what varied."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from indelible import pages, tables, text
from indelible.metrics import METRICS
from indelible.pages import LABEL, Figure, Table, simulated
from indelible.pages.simulated import Simulated
from indelible.plots import sweep as sweep_plot
from indelible.results.sweep import Sweep
from indelible.settings import MACHINE_FIELD
from indelible.text import sweep as sweep_text
from indelible.text.verdicts import judged

#: The name of the figure.
NAME = "values"


def parts(answer: Sweep) -> dict[str, Any]:
    """Return the variables of the page's template."""
    of = _simulated(answer)
    title, *said = sweep_text.title_lines(answer)
    said += [_where(answer)] if len(answer.vary) == 2 else []
    values = {key: ", ".join(each) for key, each in answer.vary.items()}
    # A point may have cores and a seed of its own.
    used = {
        key: dict.fromkeys(run.data[key] for run in answer.runs.values())
        for key in ("cores", "seed")
    }
    seeds = used["seed"] if "seed" in answer.vary else answer.seeds_shown
    varies = " · ".join(f"{key}: {each}" for key, each in values.items())
    said_below = [*sweep_text.notes(answer), *pages.verdict_notes(answer)]
    main = Figure(NAME, title, None, None, [*_shown(answer)], said_below)
    more = {"varies": varies, **pages.crash_test(answer)}
    behind = replace(main, tables=[_whole(answer)], notes=[])
    heads, runs = _runs(answer)
    return {
        "title": f"{pages.named(answer)} over {', '.join(answer.vary)}",
        "asked": pages.asked(answer, used["cores"], seeds, more),
        "interrupted": text.interrupted(answer, "cells") if answer.interrupted else None,
        "main": main,
        "headline": None,
        "of": " · ".join(said),
        "metric": answer.metric,
        "passings": _passings(answer),
        "figure": pages.drawn(behind, sweep_plot.figure, answer, answer),
        **pages.parts(of),
        "command": answer.command_with(*simulated.REPORTED),
        "run_heads": heads,
        "runs": runs,
    }


def _simulated(answer: Sweep) -> Simulated:
    """Return what was simulated, and the values of what varies."""
    return Simulated.of(answer, tuple((key, ", ".join(v)) for key, v in answer.vary.items()))


def _where(answer: Sweep) -> str:
    return sweep_text.where(answer, answer.core_model())


def _shown(answer: Sweep) -> Iterator[Table]:
    """Return the tables of a terminal."""
    labels = (LABEL,) * sweep_text.stubs(answer)
    for name, (heads, *rows) in sweep_text.grids(answer).items():
        said = " · ".join(filter(None, [name, sweep_text.axes(answer)]))
        yield pages.table(said or _where(answer), labels, heads, rows)


def _whole(answer: Sweep) -> Table:
    """Return every value, in its own unit and relative to what is 1.00, and the means."""
    unit = METRICS[answer.metric].unit
    has_intervals = len(answer.seeds_shown) > 1
    heads = [*answer.vary, "design", "workload", answer.metric, "relative"]
    rows = []
    for row in tables.swept(answer):
        value, ratio, width = (row[key] for key in ("value", "normalized", "half_width_95"))
        cells = [*map(str, row["point"].values()), judged(answer, row["design"]), row["workload"]]
        cells += [pages.quantity_cell(value, unit), text.ratio_cell(ratio, width)]
        rows.append([*cells, *([text.half_width_cell(width, ratio)] if has_intervals else [])])
    heads += [text.INTERVAL] if has_intervals else []
    return pages.table(_where(answer), (LABEL,) * (len(answer.vary) + 2), heads, rows)


def _passings(answer: Sweep) -> list[str] | None:
    """Return the crossings of designs, or None where there can be none or runs are missing."""
    found = sweep_text.passings(answer)
    has_order = len(answer.vary) == 1 and MACHINE_FIELD not in answer.vary
    could = has_order and len(answer.designs) > 1 and not answer.interrupted
    return found if found or could else None


def _runs(answer: Sweep) -> tuple[list[str], list[list[Any]]]:
    """Return the rows of the table of runs, with the point of each."""
    design, workload, *others = pages.RUN_HEADS
    own = [key for key in answer.vary if key not in others]
    rows = []
    for (point, *_), run in answer.runs.items():
        # A run has the transactions of all cores, and a point those of each core.
        said = {**run.data, **answer.named(point)}
        rows.append([said[head] for head in (design, workload, *own, *others)])
    return [design, workload, *own, *others], rows
