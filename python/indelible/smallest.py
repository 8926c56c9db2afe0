"""The smallest run in which a crash campaign finds something: a few transactions can be read.

What breaks a design needs few transactions, but which they are is a matter of chance: it shows in a
short run with one seed and not with another. So short runs are tried with several seeds, the
shortest first. Where none of them shows anything, the run that did is cut short: runs with fewer
transactions begin alike.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from indelible.experiment import Campaign, Experiment

#: Transactions of all cores in the runs that are tried, and with how many seeds beside the one
#: that was asked for (ours: 300 runs of two cores take a second or two).
TOTALS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)
SEEDS = 8

#: Has campaigns done, and returns what they answer.
Done = Callable[[Sequence[Campaign]], Sequence[dict[str, Any]]]


def smallest(campaign: Campaign, violation: dict[str, Any], done: Done) -> dict[str, Any] | None:
    """Return the smallest campaign that was found to break, and its answer; none if none was.

    `campaign` says its cores and transactions, and `violation` is the first of what it found.
    """
    tried = 0

    def counted(batch: Sequence[Campaign]) -> Sequence[dict[str, Any]]:
        nonlocal tried
        tried += len(batch)
        return done(batch)

    found = _found(_like(campaign, violation), counted)
    return found and {**found, "tried": tried}


def _found(like: Campaign, done: Done) -> dict[str, Any] | None:
    right = 0
    for batch in _short(like):
        for one, answer in zip(batch, done(batch), strict=True):
            if answer["violations"]:
                # Between this number of transactions and the one before are others.
                shorter = _cut_short(one, done, right // _counts(one.experiment)[0])
                return shorter or {"campaign": one, "answer": answer}
        right = math.prod(_counts(batch[0].experiment))
    return _cut_short(like, done)


def _like(campaign: Campaign, violation: dict[str, Any]) -> Campaign:
    """Return a campaign without what the violation does not need."""
    return replace(
        campaign,
        points=None,
        mutants=False,
        trials=None,
        nested=campaign.nested and (violation["nested"] is not None or violation["life"] > 1),
        lives=1 if violation["life"] == 1 else campaign.lives,
    )


def _short(like: Campaign) -> Iterator[list[Campaign]]:
    """Return short runs, the shortest first: those of as many transactions together."""
    asked = like.experiment
    cores, txs = _counts(asked)
    is_trace = asked.workload == "replay"
    # Of a trace the threads are given, and chance has no part in it.
    counts = [cores] if is_trace else range(1, cores + 1)
    others = [seed for seed in range(1, SEEDS + 2) if seed != asked.seed]
    seeds = [asked.seed, *([] if is_trace else others[:SEEDS])]
    for total in TOTALS:
        if total >= cores * txs:
            return
        batch = [
            replace(like, experiment=replace(asked, cores=count, txs=total // count, seed=seed))
            for count in counts
            if total % count == 0
            for seed in seeds
        ]
        if batch:
            yield batch


def _counts(asked: Experiment) -> tuple[int, int]:
    """Return the cores of a run that broke, which says how many, and the transactions of each."""
    assert asked.cores is not None, "what broke says on how many cores"
    assert asked.txs is not None, "and how long it was"
    return asked.cores, asked.txs


def _cut_short(like: Campaign, done: Done, right: int = 0) -> dict[str, Any] | None:
    """Return the shortest run that begins as the one that broke, and breaks; none if that is it.

    Of `right` transactions of each core it is known that they do not break.
    """
    found = None
    _, wrong = _counts(like.experiment)
    while wrong - right > 1:
        txs = (right + wrong) // 2
        one = replace(like, experiment=replace(like.experiment, txs=txs))
        (answer,) = done([one])
        if answer["violations"]:
            wrong, found = txs, {"campaign": one, "answer": answer}
        else:
            right = txs
    return found
