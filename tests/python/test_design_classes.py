"""Designs that are classes of a program or a notebook: which one runs, and what its answers are."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, ClassVar

import pytest

import indelible
from conftest import needs_core, refused
from indelible import described
from indelible.design import Design, Param, Structure

if TYPE_CHECKING:
    from indelible.design import Below, Setup, Store, Tx

pytestmark = needs_core

#: What a class of a test takes from its module.
LATE = 0


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


def test_a_value_of_its_own_may_be_called_nearly_as_an_attribute() -> None:
    class Helped(Design):
        durability = "none"
        paper = "ours"
        paper2 = "theirs"
        param = 3
        mode = "eager"
        model_ = ("fenced", "epoch")
        PARAMS: ClassVar = {"a": 3}

        class Rules: ...

        @property
        def rule(self) -> str:
            return "one"

        def migrate(self) -> bool:
            return False

    assert run_of(Helped).txs == 20


def test_a_misspelt_attribute_is_none_of_the_class_that_it_is_derived_from() -> None:
    class Weaker(late(1)):  # type: ignore[misc]
        durabilty = "synchronous"

    assert "Weaker: there is no attribute `durabilty`" in refused(lambda: run_of(Weaker))

    class Derived(Weaker):
        """What it inherits is as wrong."""

        durability = "synchronous"

    assert "did you mean `durability`?" in refused(lambda: run_of(Derived))


def test_a_misspelt_hook_is_none_of_the_class_that_it_is_derived_from() -> None:
    class Later(late(1)):  # type: ignore[misc]
        def comit(self, tx: Tx, below: Below) -> int:
            return tx.at

        def stored(self) -> bool:
            return False

    assert "Later: there is no hook `comit`; did you mean `commit`?" in refused(
        lambda: run_of(Later)
    )

    class Helped(late(1)):  # type: ignore[misc]
        def commit(self, tx: Tx, below: Below) -> int:
            return tx.at + self.commits()

        def commits(self) -> int:
            return 100

    class Derived(Helped):
        """What it inherits may be called so; it need not have the hook beside it."""

        def commits(self) -> int:
            return 1000

    assert run_of(late(1)).cycles < run_of(Helped).cycles < run_of(Derived).cycles


def test_a_mistake_in_a_structure_is_one_of_the_hook_that_made_it() -> None:
    class Odd(Design):
        durability = "none"

        @classmethod
        def hardware(cls, setup: Setup) -> list[Structure]:
            return [Structure("a", 1, kept_by="luck")]

    said = refused(lambda: indelible.battery([Odd]))
    assert f"{__file__}:" in said
    assert ": in hardware: ValueError: `kept_by` of `a` must be one of nothing" in said


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


def by_default(wait: int) -> type[Design]:
    class Late(Design):
        durability = "none"

        def commit(self, tx: Tx, below: Below, wait: int = wait) -> int:
            return tx.at + wait

    return Late


def by_keyword(wait: int) -> type[Design]:
    class Late(Design):
        durability = "none"

        def commit(self, tx: Tx, below: Below, *, wait: int = wait) -> int:
            return tx.at + wait

    return Late


def of_the_class(wait: int) -> type[Design]:
    class Late(Design):
        durability = "none"

        @classmethod
        def late(cls, at: int) -> int:
            return at + wait

        def commit(self, tx: Tx, below: Below) -> int:
            return self.late(tx.at)

    return Late


@pytest.mark.parametrize("make", [by_default, by_keyword, of_the_class])
def test_whatever_a_method_takes_its_values_from_is_in_the_identity(
    make: Callable[[int], type[Design]],
) -> None:
    ids = [run_of(make(wait)).id for wait in (0, 5000, 0)]
    assert ids[0] == ids[2] != ids[1]


def test_what_a_class_takes_from_its_module_is_in_the_identity(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Late(Design):
        durability = "none"

        def commit(self, tx: Tx, below: Below) -> int:
            return tx.at + LATE

    first = run_of(Late).id
    monkeypatch.setattr(sys.modules[__name__], "LATE", 5000)
    assert run_of(Late).id != first


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


class Choosing(Design):
    durability = "none"
    params = {  # noqa: RUF012
        "way": Param("y", choices=["x", "y", "z"], doc="Which."),
        "many": Param(3, 1, 9, tight=[1, 1, 2]),
    }

    def counters(self) -> dict[str, int]:
        return {"way_max": "xyz".index(self.params.way), "many_max": self.params.many}


def test_parameters_have_the_value_that_was_said_or_their_own() -> None:
    for said, found in (
        ({}, (1, 3)),
        ({"design.way": "x"}, (0, 3)),
        ({"design.way": "z", "design.many": 9}, (2, 9)),
    ):
        counters = indelible.run(Choosing, "queue", "tiny", txs=5, set=said).design_counters
        assert (counters["way_max"], counters["many_max"]) == found
    told = refused(lambda: indelible.run(Choosing, "queue", set={"design.way": "w"}))
    assert told == "unknown value `w` of `way` of design Choosing; there are: x, y, z"


def test_what_is_said_of_a_class_without_a_text_is_its_name() -> None:
    about = indelible.explain(Choosing)
    assert (about["summary"], about["file"]) == ("Choosing", __file__)
    way, many = about["params"]
    assert (way["value"], way["choices"], way["doc"]) == ("y", ["x", "y", "z"], "Which.")
    assert (many["range"], many["doc"]) == ("1 to 9", "")


def test_tight_values_are_taken_as_often_as_they_are_listed() -> None:
    (field,) = [one for one in described.description(Choosing, "it")["fields"] if one["tight"]]
    assert (field["name"], field["tight"]) == ("many", [1, 1, 2])


def test_a_benchmark_in_processes_of_its_own_takes_no_class() -> None:
    assert "which do not know Late" in refused(lambda: indelible.bench(designs=[late(0)]))


def test_a_class_is_not_named_as_a_section_of_settings() -> None:
    core = type("core", (Design,), {})
    said = "class core: settings already have a section `core`; choose another name"
    assert refused(lambda: run_of(core)) == said
