"""What designs in Python are given of a machine: messages of their own, and its shape."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import ClassVar

import pytest

import indelible
from conftest import Write, needs_core, refused
from indelible.design import (
    LINE,
    WAIT,
    WORD,
    Below,
    Design,
    Gasp,
    Image,
    Setup,
    Shape,
    Store,
    Structure,
    Tx,
)

pytestmark = needs_core

JITTER = {"controller.arrival_jitter": "500cycles"}


# Messages.


class Posted(Design):
    """New values go by message to a table that a battery keeps; their commit comes behind them.

    Nothing but timing has the commit come last. The caches are so large that no line is evicted.
    """

    messages: ClassVar[bool] = True

    def __init__(self, setup: Setup) -> None:
        self.values: list[list[tuple[int, int, int]]] = [[] for _ in setup.shape.logs]
        self.committed: list[int] = [0 for _ in setup.shape.logs]

    def post(self, at: int, event: object, below: Below) -> None:
        if self.messages:
            below.message(at, event)
        else:
            below.at(at + self.shape.path, event)

    def store(self, store: Store, below: Below) -> None:
        if store.tx is not None:
            event = (store.core, store.tx, store.address, store.new)
            self.post(store.leaves, event, below)

    def commit(self, tx: Tx, below: Below) -> object:
        self.post(tx.stored + 1, (tx.core, tx.id), below)
        return WAIT

    def event(self, at: int, event: object, below: Below) -> None:
        assert isinstance(event, tuple)
        core, tx, *value = event
        if value:
            self.values[core].append((tx, value[0], value[1]))
        else:
            self.committed[core] = len(self.values[core])
            below.wake(core, at + self.shape.path)

    def power_loss(self, gasp: Gasp) -> None:
        for base, values, count in zip(self.shape.logs, self.values, self.committed, strict=True):
            words = [word for _, *pair in values[:count] for word in pair]
            gasp.save_words(base, [count, *words])

    @classmethod
    def recover(cls, image: Image, setup: Setup) -> None:
        for base in setup.shape.logs:
            for place in range(image.word(base)):
                address, value = image.words(base + WORD + 2 * WORD * place, 2)
                image.set_word(address, value)

    @classmethod
    def hardware(cls, setup: Setup) -> Iterable[Structure]:
        return [Structure("values", 128, 4096, kept_by="battery")]


class Timed(Posted):
    """The same with messages whose orders are only those of timing, jitter or not."""

    messages = False


def test_messages_overtake_each_other_with_jitter_and_events_at_a_cycle_do_not() -> None:
    asked = {"workload": "array", "machine": "silo", "cores": 1, "txs": 20, "lives": 1}
    for posts in (Posted, Timed):
        crash = indelible.crash(posts, **asked)
        assert crash.passed, str(crash)
        assert crash.data["points"] > 40
    assert indelible.crash(Posted, **asked, set=JITTER).failed
    assert indelible.crash(Timed, **asked, set=JITTER).passed


def sent(on_commit: Callable[[Design, Tx, Below], None], told: list[tuple]) -> type[Design]:
    """Return a design that calls this at each commit and notes what it is told."""

    class Sends(Design):
        def commit(self, tx: Tx, below: Below) -> None:
            on_commit(self, tx, below)

        def event(self, at: int, event: object, below: Below) -> None:
            told.append((at, event))

    return Sends


def run(design: type[Design], **set: object) -> None:
    indelible.run(design, "array", "silo", cores=1, txs=60, warmup=0, set=set)


def test_a_message_comes_when_a_write_would_and_jitter_makes_its_way_longer() -> None:
    def both(design: Design, tx: Tx, below: Below) -> None:
        at = max(tx.at, tx.stored)
        below.log(at, design.shape.logs[0] + LINE, [tx.id], tell=("write", at))
        below.message(at, ("message", at))
        below.message(at, ("message", at))

    told: list[tuple] = []
    run(sent(both, told))
    ways = {(what, came - at) for came, (what, at) in told}
    assert len(ways) == 2
    assert len({way for _, way in ways}) == 1
    plain = ways.pop()[1]
    told.clear()
    run(sent(both, told), **JITTER)
    longer = [came - at - plain for came, (what, at) in told if what == "message"]
    assert len(longer) == 120
    assert min(longer) >= 0
    assert max(longer) <= 500
    assert 200 < sum(longer) / len(longer) < 300
    assert len(set(longer)) > 80, "each message is drawn for itself"


def test_a_message_with_a_line_stays_in_order_with_its_writes() -> None:
    def several(design: Design, tx: Tx, below: Below) -> None:
        line, at = design.shape.logs[0], max(tx.at, tx.stored)
        for step in range(4):
            below.message(at + 2 * step, (tx.id, 2 * step), line=line)
            below.send(at + 2 * step + 1, line, bytes(LINE), tell=(tx.id, 2 * step + 1))

    for jitter in ({}, JITTER):
        told: list[tuple] = []
        run(sent(several, told), **jitter)
        assert len(told) == 60 * 8
        assert [event for _, event in told] == sorted(event for _, event in told)


@pytest.mark.parametrize(
    ("call", "told"),
    [
        ("below.message(tx.at, 1, line=8)", "0x8 is not the address of a line"),
        ("below.message(tx.at, 1, line=1 << 60)", "are outside of persistent memory"),
        ("below.message(0, 1)", "cycle 0 is past"),
        ("below.message(1 << 62, 1)", "is not a cycle"),
    ],
)
def test_a_message_that_cannot_be_is_refused(write: Write, call: str, told: str) -> None:
    path = write(f"def commit(self, tx, below): {call}\ndef event(self, at, event, below): pass")
    assert told in refused(lambda: indelible.run(path, "array", txs=40))


# What docs/design.md says that a design cannot be.


def test_a_direct_write_overtakes_an_earlier_one_of_its_line() -> None:
    def both(design: Design, tx: Tx, below: Below) -> None:
        line, at = design.shape.logs[0], max(tx.at, tx.stored)
        below.send(at, line, bytes(LINE), tell="sent")
        below.send(at + 1, line, bytes(LINE), tell="direct", direct=True)

    told: list[tuple] = []
    run(sent(both, told))
    assert [event for _, event in told] == ["direct", "sent"] * 60


@pytest.mark.parametrize("hook", ["fill", "transfer"])
def test_a_line_does_not_wait_on_its_way_to_a_core(write: Write, hook: str) -> None:
    path = write(f"def {hook}(self, line, below): return WAIT")
    told = refused(lambda: indelible.run(path, "scribble", "tiny", cores=2, txs=40))
    assert f"`{hook}` answered Answer.WAIT, which is not a cycle" in told


# The shape of the machine.


def shape_of(machine: str, **set: object) -> Shape:
    """Return what a design is told of a machine, wherever it is told."""
    shapes: list[Shape] = []

    class Told(Design):
        def __init__(self, setup: Setup) -> None:
            shapes.append(setup.shape)

        @classmethod
        def hardware(cls, setup: Setup) -> Iterable[Structure]:
            shapes.append(setup.shape)
            return [Structure("bit of a line", 1, setup.shape.l1d_lines * setup.shape.cores)]

    indelible.run(Told, "array", machine, cores=2, txs=1, set=set)
    assert len(shapes) > 1
    assert all(shape == shapes[0] for shape in shapes)
    return shapes[0]


def test_a_time_in_nanoseconds_has_the_cycles_that_the_machine_takes_for_it() -> None:
    for clock in ("2GHz", "3.3GHz", "100MHz"):
        for way in (0, 0.2, 1, 13.7, 26, 1000):
            set = {"core.clk_domain": clock, "controller.noc_latency": f"{way}ns"}
            shape = shape_of("tiny", **set, **{"controller.link_latency": "0ns"})
            assert shape.cycles(way) == shape.path, (clock, way)
    assert shape.frequency == 100_000_000
    with pytest.raises(ValueError, match="a time must not be negative, as -1 ns"):
        shape.cycles(-1)


def test_a_design_knows_how_many_lines_caches_hold() -> None:
    sizes = {"l1d.size": "4KiB", "l2.size": "16KiB", "llc.size": "64KiB"}
    shape = shape_of("silo", **sizes)
    assert (shape.l1d_lines, shape.l2_lines, shape.llc_lines) == (64, 256, 1024)


def test_a_design_knows_where_addresses_belong_before_it_has_a_machine_below() -> None:
    for count in (1, 2, 4):
        asked = {"controller.count": count, "controller.intlv_size": "256B"}
        shape = shape_of("silo", **asked)
        assert (shape.controllers, shape.interleave) == (count, 256)
        assert shape.hop == (0 if count == 1 else shape.path)
        found: list[tuple[int, int]] = []

        def look(design: Design, tx: Tx, below: Below, found: list = found) -> None:
            last = design.shape.capacity - 1
            for address in (*range(0, 4096, 40), *design.shape.logs, last):
                pair = below.controller_of(address), design.shape.controller_of(address)
                found.append(pair)

        run(sent(look, []), **asked)
        assert all(below == shape for below, shape in found)
        assert {below for below, _ in found} == {*range(count)}
        for address in (-1, shape.capacity):
            with pytest.raises(ValueError, match="outside of persistent memory"):
                shape.controller_of(address)
