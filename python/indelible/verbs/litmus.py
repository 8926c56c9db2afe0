"""The verb `litmus`: litmus tests on ordering hardware."""

from __future__ import annotations

from collections.abc import Sequence

from indelible import experiment, extension, pool
from indelible.arguments import FileName, listed, named, truth, whole
from indelible.errors import InputError
from indelible.results.litmus import Litmus
from indelible.settings import Settings, of_cell, pairs


def litmus(
    *files: FileName | Sequence[FileName],
    orders: Sequence[str | type] | str | type = (),
    random: int = 0,
    mutants: bool = False,
    seed: int = 1,
    program: int | None = None,
    without: str | None = None,
    set: Settings = None,
    timelines: bool = False,
) -> Litmus:
    """Run litmus tests on ordering hardware: those of `files`, or the built-in ones.

    Files are named one by one, or in a list. `random` programs are run, too, and with `mutants`
    everything again with each rule of the hardware switched off, until a test shows it. `program`
    runs one random program alone, `without` switches a rule off, and `set` holds in every run. With
    `timelines` each image that is seen is told with how it came about.
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
    tests = experiment.LitmusTests(
        scripts,
        own,
        seed,
        random,
        mutants,
        program,
        without,
        given,
        truth("timelines", timelines),
    )
    return pool.execute_one(tests, lambda data: Litmus(data, tests), "tests")
