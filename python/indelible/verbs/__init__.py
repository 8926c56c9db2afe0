"""The verbs of the command line as Python calls: a module for each, under the command's name.

Here is what several of them share: what their arguments ask for.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, TypeVar

from indelible import extension
from indelible.arguments import (
    LEAST,
    WHOLE_MAX,
    DesignName,
    FileName,
    listed,
    named,
    require_distinct,
    whole,
)
from indelible.errors import InputError
from indelible.experiment import Experiment, read_scripts, require_use
from indelible.names import unknown
from indelible.scripts import is_script
from indelible.settings import MACHINE_FIELD, Pairs, Settings, of_cell, pairs, varied

Value = TypeVar("Value")

#: The default seed.
SEED = 1

#: The fields other than settings that may vary in a sweep.
RUN_FIELDS = (MACHINE_FIELD, "cores", "txs", "warmup", "seed")

#: How close a word is to the name of a field for which it is taken, from 0 to 1.
CLOSE = 0.8

#: With more seeds a confidence interval hardly becomes narrower: four times as many halve it.
SEEDS_MAX = 100


def machine_on(machine: FileName, cores: int | None) -> tuple[str, int | None]:
    """Return a machine and how many cores it is to have."""
    return named("machine", machine), None if cores is None else whole("cores", cores)


def counts_of(cores: int | Iterable[int] | None) -> tuple[int | None, ...]:
    """Return the core counts of a comparison without repetition; None means the machine's."""
    several = isinstance(cores, Iterable) and not isinstance(cores, str)
    asked: tuple[Any, ...] = tuple(cores) if several else (cores,)  # type: ignore[arg-type]
    if not asked:
        raise InputError("there is nothing to run: `cores` is an empty list")
    found = (None if count is None else whole("cores", count) for count in asked)
    return tuple(dict.fromkeys(found))


def seeds_of(first: object, count: object) -> tuple[int, ...]:
    """Return `count` consecutive seeds from the first one on."""
    first = whole("seed", first)
    return tuple(range(first, first + whole("seeds", count, 1, SEEDS_MAX)))


def names_of(what: str, asked: object, rows: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """Return the names without repetition, `all` standing for every one that it includes."""
    asked = listed(what, asked)
    for name in asked:
        # The command takes names with commas between them; only a file's name may have a comma.
        if "," in name and not os.path.isfile(name):
            raise InputError(f"`{what}` must be a list: {name.split(',')}, not {name!r}")
    if not asked:
        raise InputError(f"there is nothing to run: `{what}` is an empty list")
    every = [row["name"] for row in rows if row.get("in_all", True)]
    return tuple(dict.fromkeys(n for name in asked for n in (every if name == "all" else [name])))


def machines_of(what: str, asked: object) -> tuple[str, ...]:
    """Return the names of machines without repetition, `all` standing for every preset."""
    every = [row["name"] for row in extension.catalog("machines")]
    asked = listed(what, asked)
    return tuple(dict.fromkeys(n for name in asked for n in (every if name == "all" else [name])))


def base_of(
    designs: tuple[str, ...],
    normalize: DesignName | None,
    rows: Sequence[Mapping[str, Any]],
) -> str:
    """Return the design that is 1.00; it need not be among the compared ones yet."""
    base = designs[0] if normalize is None else named("normalize", normalize)
    require_distinct("normalize", (*designs, base))
    known = [*designs, *(row["name"] for row in rows)]
    if base not in known and not is_script(base):
        raise unknown("design", base, dict.fromkeys(known))
    return base


def experiment_of(
    design: DesignName,
    workload: str | None,
    machine: FileName,
    cores: int | None,
    txs: int | None,
    seed: int,
    set: Settings,
    sql: FileName | None,
    ycsb: FileName | None,
    replay: FileName | None,
    exact: bool,
) -> Experiment:
    """Return the experiment; without a workload it is the one that reads the given file."""
    scripts = read_scripts(sql, ycsb, replay)
    if workload is None:
        if not scripts:
            raise InputError("no workload was named; `indelible list workloads` lists them")
        if len(scripts) > 1:
            flags = " and ".join(script.flag for script in scripts.values())
            raise InputError(f"{flags} are for different workloads; keep one")
        (workload,) = scripts
    of, on, at = named("design", design), named("workload", workload), named("machine", machine)
    require_use(scripts, (on,))
    script, settings = scripts.get(on), of_cell(pairs(set), of, on)
    return Experiment(of, on, at, cores, txs, seed, settings, script, exact)


def varied_alone(
    vary: Mapping[str, Any], said: Mapping[str, object], seeds: int
) -> dict[str, tuple[str, ...]]:
    """Return the values of the fields that vary, or refuse a field that is also set otherwise.

    `said` has what the caller said of the fields of the run, None where that is nothing.
    """
    values = varied(vary)
    for key in values:
        close = [] if "." in key else get_close_matches(key, RUN_FIELDS, 1, CLOSE)
        if close and key not in close:
            raise InputError(f"`{key}` is no field; did you mean `{close[0]}`?")
    for key, own in said.items():
        if own is not None and key in values:
            raise InputError(f"{key} is set twice; keep one")
    if seeds != 1 and "seed" in values:
        raise InputError("`seed` varies, and `seeds` takes means over seeds; keep one")
    if MACHINE_FIELD in values:
        values[MACHINE_FIELD] = machines_of("vary", values[MACHINE_FIELD])
        for name in values[MACHINE_FIELD]:
            # An unknown one is refused here, and not in the name of the first run on it.
            extension.describe(f"machine:{name}")
    return values


def unless_usual(value: Value, usual: Value) -> Value | None:
    """Return the value of an argument, or None for its default, which nobody need have said."""
    return None if value == usual else value


def of_point(fields: Pairs) -> tuple[dict[str, Any], Pairs]:
    """Return the fields of a point that are the run's own, and those that are settings."""
    own = {key: _run_field(key, value) for key, value in fields if key in RUN_FIELDS}
    return own, tuple(pair for pair in fields if pair[0] not in RUN_FIELDS)


def _run_field(key: str, value: str) -> int | str:
    """Return the value of one of `RUN_FIELDS` that varies, which came as a word."""
    if key == MACHINE_FIELD:
        return value
    least = LEAST.get(key, 0)
    is_whole = value.isascii() and value.isdecimal()
    # Python refuses to read some thousand digits, and no valid value has so many.
    if is_whole and len(value) > len(str(WHOLE_MAX)):
        raise InputError(f"`{key}` is too large: {value}")
    if not is_whole or int(value) < least:
        raise InputError(f"`{key}` must be a whole number from {least} up, not `{value}`")
    return int(value)
