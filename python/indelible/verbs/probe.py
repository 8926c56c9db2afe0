"""The verb `probe`: the runs that probes of machines' memories need."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from indelible import pool, probes
from indelible.arguments import listed, truth, whole
from indelible.errors import InputError
from indelible.evaluation import Cell
from indelible.experiment import Experiment
from indelible.jobs import run_all
from indelible.probes import GROUPS, Memory
from indelible.results.probe import DRAWN, Probed, curve_cells
from indelible.settings import OF_CELLS, Pairs, Settings, pairs
from indelible.verbs import machines_of

MACHINE = "optane"


def probe(
    machines: Sequence[str] | str = MACHINE,
    only: Sequence[str] | str | None = None,
    *,
    set: Settings = None,
    seed: int = 1,
    curves: bool = False,
) -> Probed:
    """Measure the memories of machines as real ones were measured, beside the published numbers.

    The groups are latency, persist, bandwidth and amplification; `only` names some of them. With
    `curves` the runs for the figure are made, too, such as latency over footprint.
    """
    groups = GROUPS if only is None else listed("only", only)
    groups = tuple(group for group in GROUPS if group in {*map(probes.group_named, groups)})
    seed = whole("seed", seed)
    curves = truth("curves", curves)
    if curves and not any(group in DRAWN for group in groups):
        raise InputError(
            f"there is no figure of {', '.join(groups)}; add one of {', '.join(DRAWN)}"
        )
    settings = _of_machine(pairs(set))
    memories = tuple(Memory.of(machine, settings) for machine in machines_of("machines", machines))
    if not (groups and memories):
        raise InputError("there is nothing to measure: name at least one machine and one group")
    plan = {
        (memory.machine, cell): _experiment(memory, cell, seed)
        for memory in memories
        for cell in _cells(memory, groups, curves)
    }
    done, interrupted, _ = run_all([*plan.values()], _longest_first)
    runs = {key: done[asked] for key, asked in plan.items() if asked in done}
    answer = Probed(memories, groups, seed, settings, curves, runs, len(plan), interrupted)
    if interrupted:
        raise pool.Interrupted(answer)
    return answer


def _of_machine(settings: Pairs) -> Pairs:
    """Return the settings, or refuse one that is not of a machine."""
    for key, _ in settings:
        if key.partition(".")[0] + "." in OF_CELLS:
            raise InputError(
                f"{key} is not a field of a machine: probes have their own design and workload;"
                " drop it, or use `indelible run --workload probe`"
            )
    return settings


def _cells(memory: Memory, groups: Sequence[str], curves: bool) -> dict[Cell, None]:
    """Return each run once."""
    quantities = (probe.quantity(memory) for probe in probes.asked_of(groups))
    found = dict.fromkeys(cell for asked in quantities if asked for cell in asked.cells)
    if curves:
        found |= dict.fromkeys(cell for *_, cell in curve_cells(memory, groups))
    return found


def _experiment(memory: Memory, cell: Cell, seed: int) -> Experiment:
    asked = cell.experiment(memory.machine, None, seed)
    return replace(asked, settings=memory.settings + asked.settings)


def _longest_first(asked: Experiment) -> int:
    return -(asked.cores or 1) * int(dict(asked.settings)["workload.accesses"])
