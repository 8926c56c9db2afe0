"""How long commits of a comparison take, as percentiles and as text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from indelible.comparison_text import (
    judged,
    run_notes,
    stubbed_tables,
    titled,
    verdicts_line,
    where,
)
from indelible.means import mean_of_seeds
from indelible.results import Cell, Comparison
from indelible.text import (
    BLANK,
    durability_notes,
    footnote,
    interrupted,
    kept_notes,
    terminal_width,
)

#: What is told of a distribution, in the words of a row, and how the head of a column says it.
NUMBERS = {
    "mean": "mean",
    "p50": "p50",
    "p90": "p90",
    "p99": "p99",
    "p999": "p99.9",
    "max": "max",
}

#: A step of a distribution: cycles, and the share of commits that took no longer.
Step = tuple[float, float]

NOTE = "from the start of a commit to its acknowledgement"
LATER = "of designs that acknowledge before that, until the transaction is durable"


def numbers(answer: Comparison, cell: Cell) -> dict[str, float | None] | None:
    """Return a cell's percentiles in cycles, over several seeds their means; none without runs.

    A percentile is none where no transaction was durable when a run ended.
    """
    cell = answer.place(cell)
    runs = [answer.runs.get((*cell, seed)) for seed in answer.seeds_shown]
    found = [run.data["commit_latency_cycles"] for run in runs if run is not None]
    if len(found) < len(runs):
        return None
    return {name: mean_of_seeds(latency[name] for latency in found) for name in NUMBERS}


def distribution(answer: Comparison, cell: Cell) -> list[Step] | None:
    """Return the share of commits that took no longer than so many cycles, step by step.

    Over several seeds it is the mean of their shares. None where no run has a distribution.
    """
    cell = answer.place(cell)
    runs = [answer.runs.get((*cell, seed)) for seed in answer.seeds_shown]
    each = [run.data["commit_latency_cycles"].get("distribution") for run in runs if run]
    if len(each) < len(runs) or not all(each):
        return None
    ends = sorted({cycles for steps in each for cycles, _ in steps})
    shares = [_at(steps, ends) for steps in each]
    return [(end, sum(at) / len(at)) for end, *at in zip(ends, *shares, strict=True)]


def _at(steps: Sequence[Sequence[float]], ends: Sequence[float]) -> list[float]:
    """Return the shares of a distribution at these numbers of cycles, which rise."""
    shares, index, share = [], 0, 0.0
    for end in ends:
        while index < len(steps) and steps[index][0] <= end:
            share = steps[index][1]
            index += 1
        shares.append(share)
    return shares


def rows(answer: Comparison) -> Iterator[dict[str, Any]]:
    """Return a row for each design and workload."""
    for cores in answer.cores:
        for workload in answer.workloads:
            for design in answer.designs:
                own = {"design": design, "cores": answer.cores_used(cores), "workload": workload}
                found = numbers(answer, (design, workload, cores)) or dict.fromkeys(NUMBERS)
                yield {**own, "cycles": found}


def table(answer: Comparison, width: int | None = None) -> str:
    """Return a table for each number of cores: a row for each workload and design."""
    width = width or terminal_width()
    blocks = [_block(answer, cores, width) for cores in answer.cores]
    if answer.interrupted:
        blocks.insert(0, interrupted(answer, "runs"))
    later = any(answer.durability.get(design) == "asynchronous" for design in answer.designs)
    notes = [footnote("*", f"{NOTE}; {LATER}" if later else NOTE, width)]
    notes += durability_notes(answer.designs, answer.durability, width)
    notes += run_notes(answer, width)
    return "\n\n".join([*blocks, "\n".join(notes), *kept_notes(answer.taken, width)])


def _block(answer: Comparison, cores: int | None, width: int) -> str:
    title = titled("Commit latency in cycles, lower is better", where(answer, cores), width)
    lines = []
    for workload in answer.workloads:
        for design in answer.designs:
            found = numbers(answer, (design, workload, cores)) or dict.fromkeys(NUMBERS)
            values = [BLANK if cycles is None else f"{cycles:,.0f}" for cycles in found.values()]
            name = workload if design == answer.designs[0] else ""
            lines.append([name, judged(answer, design), *values])
    tables = stubbed_tables([["workload", "design", *NUMBERS.values()], *lines], width)
    return "\n".join(["\n\n".join([title, *tables]), verdicts_line(answer, cores, width)])
