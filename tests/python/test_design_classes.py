"""Designs that are classes of a program or a notebook: which one runs, and what its answers are."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import indelible
from conftest import needs_core, refused
from indelible.design import Design

if TYPE_CHECKING:
    from indelible.design import Below, Store, Tx

pytestmark = needs_core


def late(wait: int) -> type[Design]:
    """Return a class `Late` whose commits take so many cycles longer."""

    class Late(Design):
        durability = "none"

        def commit(self, tx: Tx, below: Below) -> int:
            return tx.at + wait

    return Late


def slow(wait: int) -> type[Design]:
    """Return ordering hardware `Slow` whose stores take so many cycles longer."""

    class Slow(Design):
        model = "fenced"

        def store(self, store: Store, below: Below) -> int:
            return store.at + wait

    return Slow


def run_of(mine: type[Design] | str) -> indelible.Run:
    return indelible.run(mine, "queue", "tiny", cores=1, txs=20)


def test_each_thread_runs_its_own_class_of_a_name() -> None:
    waits = [0, 100, 1000, 5000]
    alone = [run_of(late(wait)).cycles for wait in waits]
    assert len({*alone}) == len(waits)
    begin = threading.Barrier(len(waits))

    def one(wait: int) -> list[int]:
        mine = late(wait)
        begin.wait()
        return [run_of(mine).cycles for _ in range(4)]

    with ThreadPoolExecutor(len(waits)) as pool:
        assert [*pool.map(one, waits)] == [[cycles] * 4 for cycles in alone]


def test_a_log_on_a_class_keeps_the_class() -> None:
    fast = slow(0).under("undo")
    alone = run_of(fast).cycles
    other = slow(5000).under("undo")
    assert run_of(other).cycles > alone
    assert run_of(fast).cycles == alone
    assert "2 classes called Slow" in refused(
        lambda: indelible.compare([fast, other], ["queue"], "tiny")
    )


def test_the_base_is_no_other_class_of_the_same_name() -> None:
    one, other = late(0), late(5000)
    for ask in (
        lambda: indelible.compare([one, "silo"], ["queue"], "tiny", normalize=other),
        lambda: indelible.sweep(
            [one, "silo"], ["queue"], {"controller.wpq": [8]}, "tiny", normalize=other
        ),
    ):
        assert refused(ask).startswith("`normalize` has 2 classes called Late")


def test_what_a_class_takes_from_around_it_is_in_the_identity() -> None:
    ids = {run_of(late(wait)).id for wait in (0, 5000)}
    assert len(ids) == 2
    assert run_of(late(0)).id in ids


def test_what_a_class_is_derived_from_is_in_the_identity() -> None:
    def derived(base: type[Design]) -> type[Design]:
        class Derived(base):
            family = "late"

        return Derived

    first, other, again = (run_of(derived(late(wait))).id for wait in (0, 5000, 0))
    assert first != other
    assert first == again

    def mixed(wait: int) -> type[Design]:
        class Waits:
            def _late(self, at: int) -> int:
                return at + wait

        class Mixed(Design, Waits):
            durability = "none"

            def commit(self, tx: Tx, below: Below) -> int:
                return self._late(tx.at)

        return Mixed

    assert run_of(mixed(0)).id != run_of(mixed(5000)).id


def test_a_hook_that_is_replaced_is_in_the_identity() -> None:
    one = late(0)
    before = run_of(one).id
    one.commit = lambda self, tx, below: tx.at + 5000
    assert run_of(one).id != before


def test_a_benchmark_in_processes_of_its_own_takes_no_class() -> None:
    assert "which do not know Late" in refused(lambda: indelible.bench(designs=[late(0)]))
