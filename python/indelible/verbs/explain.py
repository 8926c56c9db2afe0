"""The verb `explain`: all that is known of one name."""

from __future__ import annotations

from indelible import extension
from indelible.arguments import DesignName, FileName, named
from indelible.experiment import MACHINE
from indelible.results import Explanation
from indelible.scripts import is_script
from indelible.settings import Settings, of_cell, pairs, require_effect
from indelible.verbs import machine_on


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
    on = None
    if (machine, cores) != (None, None):
        on = machine_on(MACHINE if machine is None else machine, cores)
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
