"""The verbs of the command line as Python calls, which return the same rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

from indelible import benchmark, cluster, experiment, extension, kept, pool
from indelible.arguments import LEAST, WHOLE_MAX, DesignName, FileName, listed, named, truth, whole
from indelible.asked import base_of, counts_of, experiment_of, machine_on, names_of, seeds_of
from indelible.batteries import joined, saved
from indelible.cluster import Dask
from indelible.errors import InputError
from indelible.experiment import CRASH_MACHINE, MACHINE, Campaign, Experiment
from indelible.files import require_parent
from indelible.jobs import run_all, run_tested, sampled
from indelible.metrics import metric_named
from indelible.native import Beside, beside
from indelible.papers import paper_named
from indelible.reproduction import Reproduction, Reproductions
from indelible.results import Battery, Benchmark, Explanation
from indelible.results.comparison import Cell, Comparison
from indelible.results.crash import Crash, Verdict
from indelible.results.litmus import Litmus
from indelible.results.run import Run
from indelible.results.sweep import Point, Sweep
from indelible.scripts import is_script
from indelible.settings import Settings, of_cell, pairs, require_effect, varied

#: The designs and the workloads that `compare` takes by default.
DESIGNS = ("native", "undo@x86", "silo")
WORKLOADS = ("hash", "btree", "ycsb", "sqlite")

#: The only metric that can also be measured on this computer's processor.
NATIVE_METRIC = "throughput"

#: The default seed.
SEED = 1

#: The fields other than settings that may vary in a sweep.
RUN_FIELDS = ("cores", "txs", "seed")

KINDS = ("designs", "orders", "workloads", "profiles", "machines")


def list(kind: str | None = None) -> Sequence[dict[str, Any]]:
    """Return the designs, orders, workloads, profiles or machines, or all with their kind."""
    if kind is None:
        return [{"kind": kind[:-1], **row} for kind in KINDS for row in extension.catalog(kind)]
    return extension.catalog(named("kind", kind))


def explain(
    name: DesignName,
    set: Settings = None,
    diff: FileName | None = None,
    *,
    machine: FileName | None = None,
    cores: int | None = None,
) -> Explanation:
    """Return all that is known of a design, a workload, ordering hardware or a machine.

    With `diff` a machine is put beside another. A design's hardware is what it adds to `machine`
    (by default `silo`) with so many `cores` (by default all of the machine's).
    """
    name = named("name", name)
    diff = None if diff is None else named("diff", diff)
    on = None if machine is None and cores is None else machine_on(machine or MACHINE, cores)
    designs, *workloads = (
        {row["name"] for row in extension.catalog(kind)}
        for kind in ("designs", "workloads", "profiles")
    )
    prefixes = ("design:", "workload:", "order:")
    bare = next((name.removeprefix(p) for p in prefixes if name.startswith(p)), name)
    design = bare if bare in designs or is_script(bare) else ""
    workload = bare if any(bare in names for names in workloads) else ""
    own = of_cell(pairs(set), design, workload)
    about = extension.describe(name, own, diff, on)
    require_effect(own, bare, about["kind"])
    # Machines are named as the caller did, since two files may give themselves the same name.
    if on is not None:
        about["machine"] = on[0]
    if diff is not None:
        sides = {"left": name, "right": diff}
        about |= {side: asked.removeprefix("machine:") for side, asked in sides.items()}
    return Explanation(about)


def battery(
    designs: Iterable[DesignName] | None = None,
    machine: FileName = MACHINE,
    *,
    cores: int | None = None,
    set: Settings = None,
) -> Battery:
    """Return the energy that designs need at a power failure, and the size of a battery for it.

    Without `designs` it is every design that needs a battery. Published numbers are beside ours.
    """
    rows = extension.catalog("designs")
    machine, cores = machine_on(machine, cores)
    asked = () if designs is None else names_of("designs", designs, rows)
    every = asked or tuple(row["name"] for row in rows)
    own = {name: of_cell(pairs(set), name, "", every) for name in every}
    if len({*own.values()}) == 1:
        answers = [extension.batteries([*asked], machine, cores, own[every[0]])]
    else:
        # The extension takes one list of settings for all designs.
        answers = [extension.batteries([name], machine, cores, own[name]) for name in every]
    return Battery({**joined(answers), "machine": machine})


def run(
    design: DesignName,
    workload: str | None = None,
    machine: FileName = MACHINE,
    *,
    cores: int | None = None,
    txs: int | None = None,
    seed: int = 1,
    set: Settings = None,
    sql: FileName | None = None,
    ycsb: FileName | None = None,
    replay: FileName | None = None,
    exact: bool = False,
    epochs: bool = False,
    latencies: bool = False,
    warmup: int | None = None,
) -> Run:
    """Run a workload on a design; return throughput, latency, writes, and where the time went.

    With `epochs` the answer counts ordering points and the epochs between them, and with
    `latencies` it has the whole distribution of commit latencies. Counting begins after `warmup`
    transactions of each core (a tenth of `txs`).
    """
    asked = experiment_of(
        design, workload, machine, cores, txs, seed, set, sql, ycsb, replay, exact
    )
    asked = replace(asked, epochs=epochs, latencies=latencies, warmup=warmup)
    return pool.execute_one(asked, lambda data: Run(data, asked))


def crash(
    design: DesignName,
    workload: str | None = None,
    machine: FileName = CRASH_MACHINE,
    *,
    cores: int | None = None,
    txs: int | None = None,
    seed: int = 1,
    points: int | str | None = None,
    mutants: bool | str = False,
    nested: bool = True,
    without: str | None = None,
    lives: int | None = None,
    check: str | None = None,
    images: str | None = None,
    leave_out: int | str | None = None,
    trials: int | str | None = None,
    smallest: bool = False,
    set: Settings = None,
    sql: FileName | None = None,
    ycsb: FileName | None = None,
    replay: FileName | None = None,
    exact: bool = False,
    keep: FileName | None = None,
    dask: Dask = None,
) -> Crash:
    """Cut the power at every durable event (or at `points` of them), recover, and check the image.

    `lives` is how often a machine is switched on: some recovered images boot, run on, and have
    their power cut again. `check` is a command that checks the memory that a power failure leaves
    of a trace, in a file for each region; it accepts an image with exit code 0, and images that it
    refuses are kept in the folder `images`. `leave_out` is how many flushes and fences of the
    trace (a number or `all`) are left out, one at a time, for `check` to notice. `mutants` also
    switches off each rule of the design, one at a time, or the one rule of this name. `trials` also
    makes so many of the runs in which mutants are sought with the unchanged design. After a
    violation, `smallest` looks for the smallest run that has one. The folder `keep` keeps the
    answer, which is not computed again; with `dask`, a scheduler's address or a
    `distributed.Client`, a worker there runs the campaign. Neither goes together with `check`.
    """
    for word, given in (("keep", keep), ("dask", dask)):
        if given is not None and (check, images) != (None, None):
            raise InputError(
                f"`{word}` does not work with `check` or `images`, which belong to a program of"
                " yours; drop one"
            )
    if truth("smallest", smallest) and check is not None:
        raise InputError(
            "`smallest` does not work with `check`: a trace can only run as it was recorded;"
            " drop one"
        )
    asked = experiment_of(
        design, workload, machine, cores, txs, seed, set, sql, ycsb, replay, exact
    )
    campaign = Campaign(
        asked, points, mutants, nested, without, lives, check, images, leave_out, trials
    )
    if images is not None:
        require_parent("--images", named("images", images))
    (job,) = kept.keeping([campaign], keep)
    with cluster.place_of(dask) as place:
        answer = pool.execute_one(job, lambda data: Crash.of(data, campaign), "campaigns", place)
        answer = replace(answer, taken=kept.taken([job], "campaigns"))
        if not smallest or not answer.violations:
            return answer

        def done(batch: Sequence[Campaign]) -> Sequence[dict[str, Any]]:
            return pool.execute(kept.keeping(batch, keep), what="smaller runs", place=place)

        try:
            return answer.with_smallest(done)
        except pool.Interrupted:
            raise pool.Interrupted(answer) from None


def compare(
    designs: Iterable[DesignName] = DESIGNS,
    workloads: Iterable[str] = WORKLOADS,
    machine: FileName = MACHINE,
    *,
    cores: int | Iterable[int] | None = None,
    metric: str = "throughput",
    normalize: DesignName | None = None,
    txs: int | None = None,
    seed: int = 1,
    seeds: int = 1,
    set: Settings = None,
    sql: FileName | None = None,
    ycsb: FileName | None = None,
    replay: FileName | None = None,
    exact: bool = False,
    crash: bool = True,
    native: bool = False,
    latencies: bool = False,
    keep: FileName | None = None,
    dask: Dask = None,
) -> Comparison:
    """Run every design on every workload, and with `crash` cut the power of each 200 times.

    With several `seeds`, from `seed` on, the answer has the means and their confidence intervals.
    `native` also measures the workloads that are the loop of `logcache` on this computer's
    processor. With `latencies` each run has the whole distribution of commit latencies. Answers are
    kept in the folder `keep`, and runs whose answers it has are not made again. With `dask`, a
    scheduler's address or a `distributed.Client`, its workers do everything but `native`.
    """
    crash, native = truth("crash", crash), truth("native", native)
    rows = {kind: extension.catalog(kind) for kind in ("designs", "workloads")}
    chosen = names_of("designs", designs, rows["designs"])
    workloads = names_of("workloads", workloads, rows["workloads"])
    base = base_of(chosen, normalize, rows["designs"])
    chosen = chosen if base in chosen else (base, *chosen)
    rows["designs"] = extension.designs(chosen)
    metric_named(metric)
    scripts = experiment.read_scripts(sql, ycsb, replay)
    experiment.require_use(scripts, workloads)
    counts = counts_of(cores)
    template = Experiment(
        "",
        "",
        named("machine", machine),
        txs=txs,
        seed=seed,
        settings=pairs(set),
        exact=exact,
        latencies=latencies,
    )
    each_seed = seeds_of(seed, seeds)
    plan = _plan(chosen, workloads, counts, template, scripts)
    loops = _native(chosen, workloads, template, counts, metric) if native else {}
    durability = {row["name"]: row["durability"] for row in rows["designs"]}
    campaigns = sampled(plan, durability) if crash else {}

    runs, verdicts, interrupted, taken = run_tested(plan, each_seed, campaigns, keep, dask)
    unsafe = {cell: Verdict("none") for cell in plan if durability.get(cell[0]) == "none"}
    comparison = Comparison(
        designs=chosen,
        workloads=workloads,
        cores=counts,
        machine=template.machine,
        seeds=each_seed,
        metric=metric,
        normalize=base,
        is_base_given=normalize is not None,
        runs=runs,
        verdicts=unsafe | verdicts,
        durability=durability,
        interrupted=interrupted,
        taken=taken,
        settings=template.settings,
    )
    batteries = {
        (design, count): saved(
            (plan[design, workload, count] for workload in workloads), comparison.cores_used(count)
        )
        for count in counts
        for design in chosen
    }
    known = {place: battery for place, battery in batteries.items() if battery is not None}
    comparison = replace(comparison, saved=known)
    if interrupted:
        raise pool.Interrupted(comparison)
    # After the runs, since jobs at the same time would disturb a measurement.
    try:
        measured = {
            (row["workload"], count): row for count, loop in loops.items() for row in loop.rows()
        }
    except pool.Interrupted:
        raise pool.Interrupted(replace(comparison, interrupted=True)) from None
    return replace(comparison, native=measured)


def sweep(
    designs: Iterable[DesignName],
    workloads: Iterable[str],
    vary: Mapping[str, Any],
    machine: FileName = MACHINE,
    *,
    cores: int | None = None,
    metric: str = "throughput",
    normalize: DesignName | None = None,
    txs: int | None = None,
    seed: int = 1,
    seeds: int = 1,
    set: Settings = None,
    sql: FileName | None = None,
    ycsb: FileName | None = None,
    replay: FileName | None = None,
    exact: bool = False,
    keep: FileName | None = None,
    dask: Dask = None,
) -> Sweep:
    """Run every design on every workload at all combinations of the values of some fields.

    `vary` has the values of each field, as in `{"design.entries": [10, 20, 40]}` or `"8:128:24"`;
    `cores`, `txs` and `seed` are fields, too. With several `seeds`, from `seed` on, the answer has
    their means. No power is cut. Answers are kept in the folder `keep`, and runs whose answers it
    has are not made again. With `dask`, a scheduler's address or a `distributed.Client`, its
    workers make the runs.
    """
    rows = {kind: extension.catalog(kind) for kind in ("designs", "workloads")}
    chosen = names_of("designs", designs, rows["designs"])
    workloads = names_of("workloads", workloads, rows["workloads"])
    if normalize is not None:
        normalize = base_of(chosen, normalize, rows["designs"])
        chosen = chosen if normalize in chosen else (normalize, *chosen)
    rows["designs"] = extension.designs(chosen)
    metric_named(metric)
    scripts = experiment.read_scripts(sql, ycsb, replay)
    experiment.require_use(scripts, workloads)
    values = _varied_alone(vary, cores, txs, seed, seeds)
    each_seed = seeds_of(seed, seeds)
    points = tuple(product(*values.values()))
    on, settings = named("machine", machine), pairs(set)

    def asked(point: Point, design: str, workload: str, seed: int) -> Experiment:
        fields = tuple(zip(values, point, strict=True))
        own = tuple(pair for pair in fields if pair[0] not in RUN_FIELDS)
        at = {key: _whole(key, value) for key, value in fields if key in RUN_FIELDS}
        return Experiment(
            design,
            workload,
            on,
            cores=at.get("cores", cores),
            txs=at.get("txs", txs),
            seed=at.get("seed", seed),
            settings=of_cell((*settings, *own), design, workload, (*chosen, *workloads)),
            script=scripts.get(workload),
            exact=exact,
        )

    plan = {cell: asked(*cell) for cell in product(points, chosen, workloads, each_seed)}
    # A run that several points share, because a field does not affect its design, is made once.
    unique = [*dict.fromkeys(plan.values())]
    # Seed by seed and point by point, so that an interruption leaves whole points of a seed.
    done, interrupted, taken = run_all(unique, lambda asked: asked.seed, keep, dask)
    answer = Sweep(
        designs=chosen,
        workloads=workloads,
        vary=values,
        points=points,
        machine=unique[0].machine,
        seeds=each_seed,
        metric=metric,
        normalize=normalize,
        runs={cell: done[asked] for cell, asked in plan.items() if asked in done},
        durability={row["name"]: row["durability"] for row in rows["designs"]},
        interrupted=interrupted,
        taken=taken,
        settings=settings,
    )
    if interrupted:
        raise pool.Interrupted(answer)
    return answer


def reproduce(
    paper: str,
    machine: FileName | None = None,
    *,
    vary: Mapping[str, Any] | None = None,
    txs: int | None = None,
    seed: int = 1,
    set: Settings = None,
    keep: FileName | None = None,
    dask: Dask = None,
) -> Reproduction | Reproductions:
    """Run the evaluation of a paper; return the published and the measured values of its claims.

    It runs on the paper's machine or on `machine`, with the settings `set`, which a claim's own
    settings override. With `vary`, as in `sweep`, the answer is `Reproductions`: all claims at each
    value. Answers are kept in the folder `keep`, and runs whose answers it has are not made again.
    With `dask`, a scheduler's address or a `distributed.Client`, its workers make the runs.
    """
    asked = paper_named(paper)
    values = {} if vary is None else _varied_alone(vary, None, txs, seed, 1)
    if "cores" in values:
        raise InputError("each claim sets its own number of cores; vary something else")
    txs = None if txs is None else whole("txs", txs)
    seed = whole("seed", seed)
    if machine is not None:
        machine = named("machine", machine)

    def reproduction(point: Point) -> Reproduction:
        fields = tuple(zip(values, point, strict=True))
        own = pairs(set) + tuple(pair for pair in fields if pair[0] not in RUN_FIELDS)
        at = {key: _whole(key, value) for key, value in fields if key in RUN_FIELDS}
        length, first = at.get("txs", txs), at.get("seed", seed)
        return Reproduction(asked, length, first, {}, machine=machine, settings=own)

    of = {point: reproduction(point) for point in product(*values.values())}
    plans = {point: at_point.plan() for point, at_point in of.items()}
    # A claim that itself sets the field that varies has the same runs at each point.
    unique = dict.fromkeys(run for plan in plans.values() for run in plan.values())
    # The longest runs first, as far as that is known.
    done, interrupted, taken = run_all([*unique], lambda asked: -(asked.cores or 0), keep, dask)
    for point, plan in plans.items():
        runs = {cell: done[run] for cell, run in plan.items() if run in done}
        of[point] = replace(of[point], runs=runs, interrupted=interrupted, taken=taken)
    answer = Reproductions(values, of) if values else of[()]
    if interrupted:
        raise pool.Interrupted(answer)
    return answer


def litmus(
    *files: FileName | Sequence[FileName],
    orders: Sequence[str | type] | str | type = (),
    random: int = 0,
    mutants: bool = False,
    seed: int = 1,
    program: int | None = None,
    without: str | None = None,
    set: Settings = None,
) -> Litmus:
    """Run litmus tests on ordering hardware: those of `files`, or the built-in ones.

    Files are named one by one, or in a list. `random` programs are run, too, and with `mutants`
    everything again with each rule of the hardware switched off, until a test shows it. `program`
    runs one random program alone, `without` switches a rule off, and `set` holds in every run.
    """
    given, orders = pairs(set), tuple(dict.fromkeys(listed("orders", orders)))
    known = [row["name"] for row in extension.catalog("orders")]
    # Without `orders` it is all of them; if there are settings, they are listed by name.
    chosen = orders or (tuple(known) if given else ())
    own = tuple((name, of_cell(given, name, "", chosen)) for name in chosen)
    paths = (path for each in files for path in listed("files", each))
    scripts = tuple(experiment.Script.read("", path) for path in paths)
    random = whole("random", random, 0, experiment.RANDOM_MAX)
    mutants = truth("mutants", mutants)
    seed = whole("seed", seed)
    if program is not None:
        program = whole("program", program, 1, experiment.RANDOM_MAX)
        if random or mutants or scripts:
            raise InputError(
                "`program` runs one random program alone; drop `random`, `mutants` and the tests"
            )
    if without is not None:
        without = named("without", without)
        if mutants:
            raise InputError("`mutants` switches off every rule, and `without` one; keep one")
    tests = experiment.LitmusTests(scripts, own, seed, random, mutants, program, without, given)
    return pool.execute_one(tests, lambda data: Litmus(data, tests), "tests")


def bench(
    quick: bool = False,
    *,
    designs: Iterable[DesignName] | None = None,
    seed: int = 1,
) -> Benchmark:
    """Measure how fast the simulator itself is, a row for each cell; `quick` takes less time.

    With `designs` only these are measured, and `native`, with which they are compared.
    """
    quick, seed = truth("quick", quick), whole("seed", seed)
    if designs is not None:
        designs = names_of("designs", designs, extension.catalog("designs"))
    rows = []
    try:
        for row in benchmark.measure(quick, seed, designs):
            rows.append(row)
    except KeyboardInterrupt:
        raise pool.Interrupted(Benchmark({"rows": rows, "cancelled": True})) from None
    return Benchmark({"rows": rows, "cancelled": False})


def _plan(
    designs: tuple[str, ...],
    workloads: tuple[str, ...],
    counts: tuple[int | None, ...],
    template: Experiment,
    scripts: Mapping[str, experiment.Script],
) -> dict[Cell, Experiment]:
    return {
        (design, workload, cores): replace(
            template,
            design=design,
            workload=workload,
            cores=cores,
            script=scripts.get(workload),
            settings=of_cell(template.settings, design, workload, (*designs, *workloads)),
        )
        for cores in counts
        for workload in workloads
        for design in designs
    }


def _native(
    designs: tuple[str, ...],
    workloads: tuple[str, ...],
    template: Experiment,
    counts: tuple[int | None, ...],
    metric: str,
) -> dict[int | None, Beside]:
    if metric != NATIVE_METRIC:
        raise InputError(f"`native` measures only {NATIVE_METRIC}, not the metric {metric}")
    if None in counts:
        raise InputError("`native` needs `cores`, the number of threads to measure, 1 or more")
    # The loop on this computer's processor has no design, so settings of designs do not apply.
    compared = (*designs, *workloads)
    settings = {name: of_cell(template.settings, "", name, compared) for name in workloads}
    asked = (settings, template.machine)
    return {count: beside(*asked, count, template.seed) for count in counts if count is not None}


def _varied_alone(
    vary: Mapping[str, Any], cores: int | None, txs: int | None, seed: int, seeds: int
) -> dict[str, tuple[str, ...]]:
    """Return the values of the fields that vary, or refuse a field that is also set otherwise."""
    values = varied(vary)
    for key, own, unsaid in (("cores", cores, None), ("txs", txs, None), ("seed", seed, SEED)):
        if own != unsaid and key in values:
            raise InputError(f"{key} is set twice; keep one")
    if seeds != 1 and "seed" in values:
        raise InputError("`seed` varies, and `seeds` takes means over seeds; keep one")
    return values


def _whole(key: str, value: str) -> int:
    least = LEAST.get(key, 0)
    is_whole = value.isascii() and value.isdecimal()
    # Python refuses to read some thousand digits, and no valid value has so many.
    if is_whole and len(value) > len(str(WHOLE_MAX)):
        raise InputError(f"`{key}` is too large: {value}")
    if not is_whole or int(value) < least:
        raise InputError(f"`{key}` must be a whole number from {least} up, not `{value}`")
    return int(value)
