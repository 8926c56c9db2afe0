"""The verb `bench`: how fast the simulator is on this computer."""

from __future__ import annotations

from collections.abc import Iterable

from indelible import benchmark, extension, pool
from indelible.arguments import DesignName, truth, whole
from indelible.commands import flag, line
from indelible.results import Benchmark
from indelible.results.origin import origin
from indelible.verbs import names_of


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
    said = [*flag("--designs", designs), *flag("--quick", quick), *flag("--seed", seed)]
    asked = origin(line("bench", said))
    rows = []
    try:
        for row in benchmark.measure(quick, seed, designs):
            rows.append(row)
    except KeyboardInterrupt:
        raise pool.Interrupted(Benchmark({"rows": rows, "cancelled": True, **asked})) from None
    return Benchmark({"rows": rows, "cancelled": False, **asked})
