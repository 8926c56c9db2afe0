"""Settings as words: pairs of a field and its value, the owners of fields, and lists of values."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any

from indelible.arguments import is_truth, readable
from indelible.errors import InputError
from indelible.scripts import called

Pairs = tuple[tuple[str, str], ...]
Settings = Mapping[str, Any] | Sequence[Sequence[Any]] | None

#: A number and its unit, as in `50ns` and `2.47pJ/bit`.
NUMBER = re.compile(r"(?P<number>[0-9]+(\.[0-9]+)?)(?P<unit>([A-Za-z%][A-Za-z0-9%/]*)?)")

#: The number of items of a workload, which is also a field of machines.
ITEMS = "workload.items"

#: The sections of a design and of a workload, which are no sections of a machine. So their settings
#: go with them to any machine, but for the number of items.
OF_CELLS = ("design.", "workload.")

#: The field of a sweep whose values are machines: names, and paths of files.
MACHINE_FIELD = "machine"

#: The most values of a range; more are taken for a misprint.
VALUES_MAX = 1000


def pairs(settings: Settings) -> Pairs:
    """Return settings as pairs of words."""
    given: object = () if settings is None else settings
    if isinstance(given, Mapping):
        given = given.items()
    found = tuple(given) if isinstance(given, Iterable) else (given,)
    if not all(
        isinstance(p, (tuple, list)) and len(p) == 2 and isinstance(p[0], str) for p in found
    ):
        raise InputError(
            "settings must be a mapping such as {'design.entries': 4}, or such pairs,"
            f" not {settings!r}"
        )
    return tuple((readable("set", key), readable("set", as_word(value))) for key, value in found)


def as_word(value: object) -> str:
    """Return a value as it is written in settings: yes and no for True and False."""
    return ("no", "yes")[bool(value)] if is_truth(value) else str(value)


def require_effect(settings: Pairs, name: str, kind: str) -> None:
    """Refuse settings that do not affect the thing that is explained.

    A design's hardware depends on its machine. `workload.items` is always accepted, because it is a
    field of every machine, for every workload.
    """
    fields = [key for key, _ in of_machine(settings) if key != ITEMS]
    of_workload = [key for key, _ in settings if key.startswith("workload.") and key != ITEMS]
    of_design = [key for key, _ in settings if key.startswith("design.")]
    others = {
        "design": of_workload,
        "order": of_workload,
        "workload": of_design + fields,
    }
    called = "ordering hardware" if kind == "order" else f"a {kind.partition('-')[0]}"
    for key in others.get(kind, of_design + of_workload):
        raise InputError(f"{key} changes nothing here: `{name}` is {called}")


def canonical(settings: Pairs, machine: Iterable[Mapping[str, Any]]) -> Pairs:
    """Return the settings with our own names of a machine's fields in place of other tools'."""
    fields = [(row["section"], row["key"], row["aliases"]) for row in machine]
    keys = {f"{at}.{alias}": f"{at}.{key}" for at, key, aliases in fields for alias in aliases}

    def own_name(key: str) -> str:
        whose, dot, field = key.partition(".")
        # The field may be that of the machine of one design.
        return keys[key] if key in keys else whose + dot + keys.get(field, field)

    return tuple((own_name(key), value) for key, value in settings)


def of_machine(settings: Pairs) -> Pairs:
    """Return the settings that are fields of a machine, its number of items among them."""
    return tuple(pair for pair in settings if pair[0] == ITEMS or not pair[0].startswith(OF_CELLS))


def of_cell(settings: Pairs, design: str, workload: str, compared: Collection[str] = ()) -> Pairs:
    """Return the settings of one design on one workload.

    A section that is the name of a design or a workload holds for that alone: `silo.entries` is
    `design.entries` of `silo`, and has no effect on the others that are `compared`;
    `silo.pm.tWRITE` is `pm.tWRITE` of the machine on which `silo` runs, and of no other's. A design
    in the file `mine.py` is `mine` there.
    """
    named = ((called(design), "design"), (workload, "workload"))
    own = {name: section for name, section in named if name}
    others = {called(name) for name in compared}
    for section in {key.partition(".")[0] for key, _ in settings}:
        every = dict.fromkeys((*compared, design, workload))
        both = [name for name in every if name and called(name) == section]
        if len(both) > 1:
            raise InputError(
                f"settings of `{section}` could be those of {' or of '.join(both)}; choose another"
                " name for the file"
            )

    of_its_own, of_all = [], []
    for key, value in settings:
        section, dot, field = key.partition(".")
        if section in own and "." in field:
            of_its_own.append((field, value))
        elif section in own:
            of_all.append((own[section] + dot + field, value))
        elif section not in others:
            of_all.append((key, value))
    said = {key for key, _ in of_its_own}
    return (*(pair for pair in of_all if pair[0] not in said), *of_its_own)


def varied(vary: object) -> dict[str, tuple[str, ...]]:
    """Return the values of each field that varies in a sweep."""
    if not isinstance(vary, Mapping) or not all(isinstance(key, str) for key in vary):
        raise InputError(
            f"`vary` must be a mapping such as {{'design.entries': [10, 20]}}, not {vary!r}"
        )
    if not vary:
        raise InputError("nothing varies; name a field and its values: design.entries=10,20,40")
    return {readable("vary", key): values(key, asked) for key, asked in vary.items()}


def values(key: str, asked: object) -> tuple[str, ...]:
    """Return the values that a field takes: `1,2,4`, `50ns:450ns:50ns`, or any sequence."""
    if isinstance(asked, str):
        words = [word.strip() for word in asked.split(",") if word.strip()]
        found = [value for word in words for value in _range(key, word)]
    elif isinstance(asked, (set, frozenset)):
        # The first value is 1.00, and a set's first element differs from process to process.
        raise InputError(f"`{key}` must take its values from a list, not a set, which has no order")
    elif isinstance(asked, Iterable):
        found = [as_word(value) for value in asked]
    else:
        found = [as_word(asked)]
    if not found:
        numbers = f"{key}=1,2,4 or {key}=8:128:8"
        written = f"{key}=silo,optane" if key == MACHINE_FIELD else numbers
        raise InputError(f"`{key}` has no values; write {written}")
    if len(found) > VALUES_MAX:
        raise InputError(f"`{key}` has {len(found):,} values; it may have {VALUES_MAX:,} at most")
    return tuple(dict.fromkeys(readable("vary", value) for value in found))


def number(value: str) -> tuple[Decimal, str] | None:
    """Return the number of a value, and its unit; None if it is a word."""
    match = NUMBER.fullmatch(value)
    return None if match is None else (Decimal(match["number"]), match["unit"])


def as_value(word: str) -> int | float | str:
    """Return a value as JSON has it: a number without a unit as a number, anything else as text."""
    found = number(word)
    if found is None or found[1]:
        return word
    return float(found[0]) if "." in word else int(found[0])


def _range(key: str, word: str) -> Sequence[str]:
    if ":" not in word or key == MACHINE_FIELD:
        return [word]
    words = word.split(":")
    parts = [part for part in map(number, words) if part is not None]
    if not len(words) == len(parts) == 3 or len({unit for _, unit in parts}) != 1:
        raise InputError(
            f"`{key}={word}` is not a range; write first:last:step in one unit: 50ns:450ns:50ns"
        )
    (first, unit), (last, _), (step, _) = parts
    if not step or last < first:
        raise InputError(
            f"`{key}={word}`: the last value must not be below the first, and the step must be"
            " above 0"
        )
    count = int((last - first) / step) + 1
    if count > VALUES_MAX:
        # A `Decimal`, since Python refuses to print whole numbers of some thousand digits.
        many = f"{Decimal(count):,}"
        raise InputError(f"`{key}={word}` has {many} values; it may have {VALUES_MAX:,} at most")
    return [f"{(first + index * step).normalize():f}{unit}" for index in range(count)]
