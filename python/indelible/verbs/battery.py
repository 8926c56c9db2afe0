"""The verb `battery`: what designs must save at a power failure."""

from __future__ import annotations

from collections.abc import Iterable

from indelible import extension
from indelible.arguments import DesignName, FileName
from indelible.batteries import joined
from indelible.commands import flag, line, sets
from indelible.experiment import MACHINE
from indelible.results import Battery
from indelible.results.origin import origin
from indelible.settings import Settings, of_cell, pairs
from indelible.verbs import machine_on, names_of


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
    given = pairs(set)
    own = {name: of_cell(given, name, "", every) for name in every}
    if len({*own.values()}) == 1:
        answers = [extension.batteries([*asked], machine, cores, own[every[0]])]
    else:
        # The extension takes one list of settings for all designs.
        answers = [extension.batteries([name], machine, cores, own[name]) for name in every]
    at = [*flag("--machine", machine), *flag("--cores", cores)]
    command = line("battery", flag("--designs", asked), at, sets(given))
    return Battery({**joined(answers), "machine": machine, **origin(command, given)})
