"""The verb `why`: every field that runs depend on is changed, one at a time, and all run again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from indelible import changes, experiment, extension, pool
from indelible.arguments import DesignName, FileName, listed, named, truth, whole
from indelible.changes import CORES, RUN_SIZES, Change, Field, Refused
from indelible.cluster import Dask
from indelible.errors import InputError
from indelible.experiment import MACHINE, Experiment, Script
from indelible.jobs import bounds, run_possible, sampled
from indelible.metrics import metric_named
from indelible.results.causes import AS_IT_IS, Causes
from indelible.results.sweep import Sweep
from indelible.scripts import called
from indelible.settings import ITEMS, Pairs, Settings, canonical, of_cell, pairs
from indelible.verbs import names_of, seeds_of

#: The default factor by which numbers are divided and multiplied, and the largest.
BY = 2
BY_MAX = 1_000

#: What the weaker durability domains keep of what designs need.
DOMAIN = "controller.domain"
KEEPS = {"media": ("nothing",), "adr": ("nothing", "adr")}

#: The name of the field that varies in the sweep of all runs.
CHANGE = "change"


def why(
    designs: Iterable[DesignName],
    workloads: Iterable[str],
    machine: FileName = MACHINE,
    *,
    cores: int | None = None,
    metric: str = "throughput",
    by: int = BY,
    fields: Sequence[str] | None = None,
    txs: int | None = None,
    warmup: int | None = None,
    seed: int = 1,
    seeds: int = 1,
    set: Settings = None,
    sql: FileName | None = None,
    ycsb: FileName | None = None,
    replay: FileName | None = None,
    exact: bool = False,
    crash: bool = True,
    keep: FileName | None = None,
    dask: Dask = None,
) -> Causes:
    """Return what runs of one design consist of and depend on, or why a second design differs.

    Every number of the machine, the designs and the workloads is divided and multiplied by the
    factor `by`, and every word replaced by each other choice, one change at a time; with `fields`
    only the fields of these names and sections. Ratios are geometric means over the workloads, and
    over the `seeds` if there are several. Counting begins after `warmup` transactions of each core
    (a tenth of `txs`, also of a number that is changed). With `crash` the power of each design is
    cut 200 times on each workload, as by `compare`, and again with each change that a campaign
    could notice. Answers are kept in the folder `keep`, and runs whose answers it has are not made
    again. With `dask`, a scheduler's address or a `distributed.Client`, its workers do all of it.
    """
    crash = truth("crash", crash)
    known = {kind: extension.catalog(kind) for kind in ("designs", "workloads")}
    designs = names_of("designs", designs, known["designs"])
    if len(designs) > 2:
        raise InputError(f"`why` takes one design or two, not {len(designs)}; drop some")
    if len({*map(called, designs)}) < len(designs):
        raise InputError(
            f"both designs are called {called(designs[0])}; choose another name for one file"
        )
    workloads = names_of("workloads", workloads, known["workloads"])
    metric_named(metric)
    by = whole("by", by, 2, BY_MAX)
    fields = None if fields is None else tuple(listed("fields", fields))
    scripts = experiment.read_scripts(sql, ycsb, replay)
    experiment.require_use(scripts, workloads)
    machine = named("machine", machine)
    settings = canonical(pairs(set), extension.describe(f"machine:{machine}")["rows"])
    template = Experiment(
        "", "", machine, cores, txs, warmup=warmup, settings=settings, exact=exact
    )
    of_machine = of_cell(settings, "", "", (*designs, *workloads))
    rows = extension.describe(f"machine:{machine}", of_machine)["rows"]
    cards = {row["name"]: row for row in extension.designs(designs)}
    durable = (name for name in designs if name in cards and _promises(cards[name]))
    needs = {name: cards[name]["needs"] for name in durable}
    question = Question(designs, workloads, template, rows, scripts, seeds_of(seed, seeds), needs)
    question.check()
    if fields is not None and not fields:
        raise InputError("`fields` is an empty list; name fields or sections, or leave it out")
    asked_for = question.fields(metric, fields)
    possible, refused = changes.each(asked_for, by, question.refusal)
    if not possible:
        reason = refused[0].reason if refused else "each of them is 0"
        raise InputError(f"none of these fields can be changed: {reason}")

    points: dict[tuple[str, ...], Change | None] = {AS_IT_IS: None}
    points |= {(str(change),): change for change in possible}
    # Runs of the first seed come first, and within a seed the unchanged runs.
    plan = {
        (point, *cell, each_seed): question.asked(change, *cell, each_seed)
        for each_seed in question.seeds
        for point, change in points.items()
        for cell in question.cells
    }
    # A design that a change does not affect runs once.
    unique = [*dict.fromkeys(plan.values())]
    needed = {asked for cell, asked in plan.items() if cell[0] == AS_IT_IS}
    durability = {name: card["durability"] for name, card in cards.items()}
    judged = {cell[:3]: one for cell, one in plan.items() if cell[3] == question.seeds[0]}
    campaigns = sampled(judged, durability) if crash else {}
    done, impossible, verdicts, interrupted, taken = run_possible(
        unique, needed, campaigns, keep, dask
    )
    failed = {cell[0]: impossible[asked] for cell, asked in plan.items() if asked in impossible}
    refused += [
        Refused(change, failed[point])
        for point, change in points.items()
        if change is not None and point in failed
    ]
    left = {point: change for point, change in points.items() if point not in failed}
    runs = {cell: done[asked] for cell, asked in plan.items() if asked in done and cell[0] in left}
    verdicts |= bounds(judged, durability)
    sweep = Sweep(
        designs=designs,
        workloads=workloads,
        vary={CHANGE: tuple(name for (name,) in left)},
        points=tuple(left),
        machine=machine,
        seeds=question.seeds,
        metric=metric,
        normalize=None,
        runs=runs,
        durability=durability,
        interrupted=interrupted,
        taken=taken,
        settings=settings,
        txs=template.txs,
        warmup=template.warmup,
        exact=template.exact,
        scripts=scripts,
        verdicts={cell: verdict for cell, verdict in verdicts.items() if cell[0] in left},
        is_tested=crash,
    )
    changed = {point: change for point, change in left.items() if change is not None}
    answer = Causes(sweep, changed, tuple(refused), by, template.cores, fields)
    if interrupted:
        raise pool.Interrupted(answer)
    return answer


def _promises(card: Mapping[str, Any]) -> bool:
    return card["durability"] != "none"


@dataclass(frozen=True)
class Question:
    """The question that a call of `why` asks."""

    designs: tuple[str, ...]
    workloads: tuple[str, ...]
    #: The experiment without a design and a workload, its settings by the fields' own names.
    template: Experiment
    #: Every field of its machine.
    rows: Sequence[Mapping[str, Any]]
    scripts: Mapping[str, Script]
    seeds: tuple[int, ...]
    #: What must survive for the designs that promise something, by name.
    needs: Mapping[str, str]

    @property
    def cells(self) -> list[tuple[str, str]]:
        """The designs, each on each workload."""
        return [*product(self.designs, self.workloads)]

    def fields(self, metric: str, names: Sequence[str] | None) -> list[Field]:
        """Return the fields on which the runs depend, or those of some names alone."""
        of = (self.template, self.rows, self.designs, self.workloads, self.scripts)
        found = changes.fields(*of, metric)
        return found if names is None else changes.among(found, names, self.rows)

    def asked(self, change: Change | None, design: str, workload: str, seed: int) -> Experiment:
        """Return the experiment of a cell with a change, or without one."""
        at = self.template
        cores, txs = at.cores, at.txs
        changed: Pairs = ()
        if change is not None and change.field in RUN_SIZES and workload not in changes.TIMED:
            count = int(change.after)
            cores, txs = (count, txs) if change.field == CORES else (cores, count)
            # More cores than the machine has are no error here: its limit is raised.
            if change.field == CORES and count > changes.cores_max(self.rows):
                changed = (("core.cores_max", change.after),)
        elif change is not None and not self._is_unheard(change, design, workload):
            changed = self._of(((change.field, change.after),), design, workload)
        keys = {key for key, _ in changed}
        own = tuple(p for p in self._of(at.settings, design, workload) if p[0] not in keys)
        return Experiment(
            design,
            workload,
            at.machine,
            cores=cores,
            txs=txs,
            seed=seed,
            settings=own + changed,
            script=self.scripts.get(workload),
            exact=at.exact,
            warmup=at.warmup,
        )

    def _is_unheard(self, change: Change, design: str, workload: str) -> bool:
        """Return whether a design's or a workload's own setting hides a changed field."""
        named = {key for key, _ in self.template.settings}
        is_of_others = change.field == ITEMS and changes.has_own_items(named, workload)
        has_own = {f"{name}.{change.field}" for name in (called(design), workload)} & named
        return change.field in RUN_SIZES or is_of_others or bool(has_own)

    def check(self, change: Change | None = None) -> None:
        """Refuse runs that are impossible with a change, or without one."""
        for cell in self.cells:
            self.asked(change, *cell, self.seeds[0]).check()

    def refusal(self, change: Change) -> str | None:
        """Return why a change cannot be made, or None if it can.

        A design that needs more to survive than a domain keeps runs in the domain that it brings,
        and cannot be compared with one that does not.
        """
        kept = KEEPS.get(change.after) if change.field == DOMAIN else None
        if kept and (more := [name for name in self.needs if self.needs[name] not in kept]):
            return f"{called(more[0])} needs {self.needs[more[0]]}, and brings it along"
        try:
            self.check(change)
        except InputError as error:
            return str(error)
        return None

    def _of(self, settings: Pairs, design: str, workload: str) -> Pairs:
        return of_cell(settings, design, workload, (*self.designs, *self.workloads))
