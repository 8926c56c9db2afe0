"""What designs are called in tables and figures: one in a file by its name and not by its path."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from indelible import experiment
from indelible.scripts import called, is_script


def labels(designs: Sequence[str]) -> Mapping[str, str]:
    """Return how designs are told apart: `mine` of `./mine.py`, unless another has the name.

    That of a design that there is belongs to this one, whether it is compared or not.
    """
    names = {design: called(design) if is_script(design) else design for design in designs}
    if [*names] == [*names.values()]:
        return names
    count = Counter(names.values())
    taken = {row["name"] for row in experiment.catalog("designs")}
    return {
        design: design if count[name] > 1 or name in taken else name
        for design, name in names.items()
    }
