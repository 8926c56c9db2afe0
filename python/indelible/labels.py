"""The labels of designs and orders in tables and figures: for a file its name without the path."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from indelible import extension
from indelible.scripts import called, is_script


def labels(designs: Sequence[str], kind: str = "designs") -> Mapping[str, str]:
    """Return the label of each design: `mine` for `./mine.py`, unless another design has that name.

    The name of a built-in design is reserved for it, whether it is compared or not. With `kind`
    they are orders.
    """
    names = {design: called(design) if is_script(design) else design for design in designs}
    if [*names] == [*names.values()]:
        return names
    count = Counter(names.values())
    taken = {row["name"] for row in extension.catalog(kind)}
    return {
        design: design if count[name] > 1 or name in taken else name
        for design, name in names.items()
    }
