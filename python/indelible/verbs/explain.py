"""The verb `explain`: all that is known of one name."""

from __future__ import annotations

import re
from typing import Any

from indelible import extension
from indelible.arguments import DesignName, FileName, named
from indelible.errors import InputError
from indelible.experiment import MACHINE
from indelible.names import unknown
from indelible.results import Explanation
from indelible.scripts import is_script
from indelible.settings import Pairs, Settings, of_cell, pairs, require_effect
from indelible.verbs import machine_on

#: A field, such as `controller.wpq`, `silo.entries` or `hops.wait_for_dependences`.
FIELD = re.compile(r"([\w@-]+)\.(\w+)")


def explain(
    name: DesignName,
    set: Settings = None,
    diff: FileName | None = None,
    *,
    machine: FileName | None = None,
    cores: int | None = None,
) -> Explanation:
    """Return all that is known of a design, a workload, ordering hardware or a machine.

    A name `controller` is that part of a machine, `controller.wpq` one of its fields,
    `silo.entries` one of a design or workload, or a rule of a design. With `diff` a machine is put
    beside another. A design's hardware is what it adds to `machine` (by default `silo`) with so
    many `cores` (by default all of the machine's).
    """
    name = named("name", name)
    diff = None if diff is None else named("diff", diff)
    on = None
    if (machine, cores) != (None, None):
        on = machine_on(MACHINE if machine is None else machine, cores)
    is_file = is_script(name) or name.endswith(".toml")
    if diff is None and FIELD.fullmatch(name) and not is_file:
        return Explanation(_of_field(name, pairs(set), on))
    if diff is None and (fields := _of_section(name, pairs(set), on)):
        return Explanation(fields)
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


def _of_section(name: str, settings: Pairs, on: tuple[str, int | None] | None) -> dict[str, Any]:
    """Return what is known of the fields of a part of a machine; nothing if there is no such part.

    No design or workload has the name of a part.
    """
    machine = MACHINE if on is None else on[0]
    of_any = extension.describe(f"machine:{MACHINE}", ())["rows"]
    if name not in {row["section"] for row in of_any}:
        return {}
    rows = extension.describe(f"machine:{machine}", settings)["rows"]
    own = [row for row in rows if row["section"] == name]
    return {"kind": "fields", "name": name, "machine": machine, "rows": own}


def _of_field(name: str, settings: Pairs, on: tuple[str, int | None] | None) -> dict[str, Any]:
    """Return what is known of a field of a machine, or of a field or rule of something else."""
    section, _, field = name.partition(".")
    machine = MACHINE if on is None else on[0]
    rows = extension.describe(f"machine:{machine}", settings)["rows"]
    own = [row for row in rows if row["section"] == section]
    found = [row for row in own if field in (row["key"], *row["aliases"])]
    if found:
        key = f"{section}.{found[0]['key']}"
        return {"kind": "field", "name": key, "machine": machine, "rows": found}
    if own:
        raise unknown("parameter", field, (row["key"] for row in own))
    if section in ("design", "workload"):
        raise InputError(
            f"`{name}` is a field of every {section} that has it; name one, such as"
            f" {'silo' if section == 'design' else 'btree'}.{field}"
        )
    about = extension.describe(section, of_cell(settings, section, section))
    known = {part: about.get(part, []) for part in ("params", "rules")}
    for part, rows in known.items():
        if found := [row for row in rows if row["name"] == field]:
            return {"kind": about["kind"], "name": section, "field": field, part: found}
    every = [row["name"] for rows in known.values() for row in rows]
    raise unknown(f"parameter or rule of {section}", field, every)
