"""Designs in Python are held to what they say of when transactions are durable."""

from __future__ import annotations

import pytest

import indelible
from conftest import Write, needs_core
from indelible import design
from indelible.results.crash import failed_points

pytestmark = needs_core


@pytest.mark.parametrize(
    ("when", "passes", "failed"),
    [
        ("event", True, False),
        ("commit", False, True),
        ("waiting", False, True),
        ("store", False, True),
        ("never", False, False),
    ],
)
def test_an_asynchronous_design_is_held_to_what_it_says(
    when: str, passes: bool, failed: bool
) -> None:
    """It says that a transaction is durable when its mark is, or before, and answers before.

    Or it says so at the commit, and waits before it answers; or even at a store.
    """
    from indelible.templates.design import Template

    class Later(Template):
        durability = "asynchronous"

        def commit(self, tx: design.Tx, below: design.Below) -> object:
            self.cores[tx.core].ended = tx.id
            if when in ("commit", "waiting"):
                below.durable(tx.core, tx.id, tx.at)
            return super().commit(tx, below)

        def store(self, store: design.Store, below: design.Below) -> object:
            if when == "store" and store.tx is not None:
                below.durable(store.core, store.tx, store.at)
            return super().store(store, below)

        def move_mark(self, number: int, at: int, below: design.Below) -> None:
            self.rules.mark_before_answer = when != "commit"
            super().move_mark(number, at, below)

        def event(self, at: int, event: tuple, below: design.Below) -> None:
            what, number = event
            if what == "marked" and when == "event":
                below.durable(number, self.cores[number].ended, at)
            super().event(at, event, below)

    crash = indelible.crash(Later, "hash", txs=30, trials=3)
    assert (crash.passed, crash.failed) == (passes, failed)
    assert ("violations  nothing was checked: no transaction was announced" in str(crash)) == (
        when == "never"
    )
    told = [row["text"].split(":")[0] for row in crash.violations]
    assert ("announcement" in told) == (when == "store")
    verdict = indelible.compare([Later], ["hash"], txs=30).verdict("Later", None)
    assert verdict.kind == {"event": "ok", "never": "untested"}.get(when, "fail")


def test_what_was_announced_too_early_is_shown_in_a_timeline() -> None:
    """Counting crash points does not end at the first of such violations."""
    from indelible.templates.design import Template

    class Early(Template):
        durability = "asynchronous"

        def store(self, store: design.Store, below: design.Below) -> object:
            if store.tx is not None and store.tx % 3 == 0:
                below.durable(store.core, store.tx, store.at)
            return super().store(store, below)

    asked = ("hash", "tiny")
    crash = indelible.crash(Early, *asked, txs=30)
    told = [row for row in crash.violations if row["text"].startswith("announcement")]
    assert len(told) > 1
    for row in told:
        timeline = indelible.trace(Early, *asked, event=row["event"], txs=30)
        assert timeline.data["cut"] == row["cycle"]
        assert not timeline.interrupted
    with pytest.raises(indelible.InputError, match="no event 100000"):
        indelible.trace(Early, *asked, event=100_000, txs=30)
    sampled = indelible.crash(Early, *asked, txs=30, points=40)
    assert sampled.data["crash_points"] == crash.data["crash_points"]
    # An event at which the design is convicted is one that was tried, whether power is cut or not.
    for campaign in (crash, sampled, indelible.crash(Early, *asked, txs=30, points=2)):
        events = {row["event"] for row in campaign.violations}
        assert len(events) == failed_points(campaign.data)
        assert len(events) <= campaign.data["points"]


def test_who_takes_what_is_evicted_and_announces_nothing_is_not_called_crash_safe(
    write: Write, capsys: pytest.CaptureFixture[str]
) -> None:
    from indelible.cli import main

    path = write("durability = 'asynchronous'\ndef evict(self, evict, below): return TAKEN")
    code = main(["crash", "--design", path, "--workload", "hash", "--txs", "20", "--trials", "2"])
    shown = " ".join(capsys.readouterr().out.split())
    summary = indelible.compare(["loc-wal", path], ["hash"], txs=20, cores=1).summarized()
    (row,) = [row for row in summary if row["design"] == path]
    dominated = [by for row in summary for by in row["dominated_by"]]
    assert (row["crash"]["verdict"], path in dominated) == ("untested", False)
    assert (code, "nothing was checked: no transaction was announced as" in shown) == (2, True)
    assert " ok" not in shown


def test_who_announces_its_first_transaction_alone_is_not_called_crash_safe(write: Write) -> None:
    """What it has promised it keeps, and all that comes later is lost."""
    path = write(
        "durability = 'asynchronous'\n"
        "def __init__(self, setup): self.lines, self.kept = {}, {}\n"
        "def store(self, store, below):\n"
        "    if store.core == 0 and not self.kept: self.lines[store.line] = True\n"
        "def commit(self, tx, below):\n"
        "    if tx.core == 0 and not self.kept:\n"
        "        self.kept = {line: below.line(line) for line in self.lines}\n"
        "        if self.kept: below.durable(0, tx.id, tx.stored)\n"
        "def evict(self, evict, below): return TAKEN\n"
        "def power_loss(self, gasp):\n"
        "    for line, data in self.kept.items(): gasp.save(line, data)\n"
        "def hardware(setup): return [Structure('first', 512, 64, kept_by='battery')]"
    )
    crash = indelible.crash(path, "hash", txs=20, lives=1)
    assert (crash.passed, crash.failed, crash.data["announced"]) == (False, False, 1), str(crash)
    shown = " ".join(str(crash).split())
    assert f"announced 1 of {crash.data['acknowledged']} transactions" in shown
    assert "violations too little was checked" in shown
    comparison = indelible.compare(["loc-wal", path], ["hash"], txs=60, cores=1)
    kinds = [comparison.verdict(design).kind for design in ("loc-wal", path)]
    assert kinds == ["ok", "untested"]
    assert not comparison.is_rival(path)


@pytest.mark.parametrize(("hides", "fails"), [(0, False), (1, True)])
def test_the_power_is_cut_between_stores_of_which_something_survives(
    write: Write, hides: int, fails: bool
) -> None:
    """From one store to the next a committed word is missing from what a battery keeps."""
    path = write(
        "granularity = 'word'\n"
        "params = {'hides': Param(1, 0, 1)}\n"
        "def __init__(self, setup): self.old, self.new, self.done, self.hidden = {}, {}, {}, {}\n"
        "def show(self): self.done, self.hidden = self.done | self.hidden, {}\n"
        "def store(self, store, below):\n"
        "    self.show()\n"
        "    is_first = not self.old\n"
        "    self.old.setdefault(store.address, store.old)\n"
        "    self.new[store.address] = store.new\n"
        "    if self.params.hides and is_first and self.done and store.address not in self.done:\n"
        "        self.hidden = dict([self.done.popitem()])\n"
        "def commit(self, tx, below):\n"
        "    self.show()\n"
        "    below.at(max(tx.at, tx.stored), tx.core)\n"
        "    return WAIT\n"
        "def event(self, at, core, below):\n"
        "    self.done, self.old, self.new = self.done | self.new, {}, {}\n"
        "    below.wake(core, at + self.shape.path)\n"
        "def power_loss(self, gasp):\n"
        "    words = self.done | self.old\n"
        "    flat = [number for pair in words.items() for number in pair]\n"
        "    gasp.save_words(self.shape.logs[0], [len(words), *flat])\n"
        "@classmethod\n"
        "def recover(cls, image, setup):\n"
        "    log = setup.shape.logs[0]\n"
        "    for index in range(image.word(log)):\n"
        "        image.set_word(*image.words(log + 8 + 16 * index, 2))\n"
        "    image.fence()\n"
        "    image.set_word(log, 0)\n"
        "def hardware(setup): return [Structure('all', 128, 4096, kept_by='battery')]"
    )
    crash = indelible.crash(path, "hash", cores=1, txs=30, set={"design.hides": hides}, lives=1)
    assert (crash.failed, crash.passed) == (fails, not fails), str(crash)


@pytest.mark.parametrize("model", ["window", "inorder"])
def test_a_load_that_is_woken_leaves_the_commit_before_it_waiting(write: Write, model: str) -> None:
    path = write(
        "durability = 'none'\n"
        "def load(self, load, below):\n"
        "    below.at(load.at + 2, ('load', load.core))\n"
        "    return WAIT\n"
        "def commit(self, tx, below):\n"
        "    below.at(tx.at + 500, ('commit', tx.core))\n"
        "    return WAIT\n"
        "def event(self, at, event, below):\n"
        "    what, core = event\n"
        "    (below.wake_load if what == 'load' else below.wake)(core, at)\n"
    )
    found = indelible.run(path, "hash", "tiny", cores=1, txs=30, set={"core.model": model})
    assert found.commit_latency_cycles["p50"] >= 500
