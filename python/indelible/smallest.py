"""The smallest run in which a crash campaign finds a violation: a few transactions can be read.

An error of a design mostly needs few transactions, but chance decides which, so a short run shows
it with one seed and not with another. So short runs are tried with several seeds, the shortest
first. If none of them shows a violation, the run that did is shortened: runs with fewer
transactions begin in the same way. A violation in a later life of a machine is harder to read than
one in its first, which has a timeline, so short runs of one life are tried before all others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from indelible.experiment import Campaign, Experiment

#: The transactions of all cores in the runs that are tried, and the number of seeds beside the one
#: that was asked for (ours: 300 runs of two cores take a second or two).
TOTALS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)
SEEDS = 8

#: Runs campaigns, and returns their answers.
Done = Callable[[Sequence[Campaign]], Sequence[dict[str, Any]]]


def smallest(campaign: Campaign, violation: dict[str, Any], done: Done) -> dict[str, Any] | None:
    """Return the smallest campaign found to have a violation, and its answer; None if none was.

    `campaign` has its cores and transactions filled in, and `violation` is the first that it found.
    """
    tried = 0

    def counted(batch: Sequence[Campaign]) -> Sequence[dict[str, Any]]:
        nonlocal tried
        tried += len(batch)
        return done(batch)

    like = _like(campaign, violation)
    found = None if like.lives == 1 else _first(replace(like, lives=1), counted)[0]
    found = found or _found(like, counted)
    return found and {**found, "tried": tried}


def _found(like: Campaign, done: Done) -> dict[str, Any] | None:
    found, is_short = _first(like, done)
    return found if found or not is_short else _cut_short(like, done)


def _first(like: Campaign, done: Done) -> tuple[dict[str, Any] | None, bool]:
    """Return the shortest of the short runs with a violation, if any, and whether runs are short.

    They are not if they take what they need whatever was asked for, as an interleaved trace does.
    """
    # For each number of cores, the transactions of each that were tried and found right. Not every
    # total can be shared out among any number of cores.
    right: dict[int, int] = {}
    for batch in _short(like):
        for one, answer in zip(batch, done(batch), strict=True):
            if not _is_of(one, answer):
                return None, False
            if answer["violations"]:
                # A number of transactions between the one before and this one may be enough.
                shorter = _cut_short(one, done, right.get(_counts(one.experiment)[0], 0))
                return shorter or {"campaign": one, "answer": answer}, True
        right |= dict(_counts(one.experiment) for one in batch)
    return None, True


def _like(campaign: Campaign, violation: dict[str, Any]) -> Campaign:
    """Return a campaign without the options that the violation does not need."""
    return replace(
        campaign,
        points=None,
        mutants=False,
        trials=None,
        nested=campaign.nested and (violation["nested"] is not None or violation["life"] > 1),
        lives=1 if violation["life"] == 1 else campaign.lives,
    )


def _short(like: Campaign) -> Iterator[list[Campaign]]:
    """Return batches of short runs, the shortest first; a batch has one number of transactions."""
    asked = like.experiment
    cores, txs = _counts(asked)
    is_trace = asked.workload == "replay"
    # A trace fixes the number of threads, and its run does not depend on the seed.
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
    """Return the cores of a run with a violation, and the transactions of each."""
    assert asked.cores is not None, "what broke says on how many cores"
    assert asked.txs is not None, "and how long it was"
    return asked.cores, asked.txs


def _is_of(one: Campaign, answer: dict[str, Any]) -> bool:
    """Whether the run was as short as asked for: a trace that is interleaved is done as a whole."""
    return bool(answer["txs"] == one.experiment.txs)


def _cut_short(like: Campaign, done: Done, right: int = 0) -> dict[str, Any] | None:
    """Return the shortest prefix of a run that has a violation; None if none shorter has.

    `right` transactions of each core are known to have none.
    """
    found = None
    _, wrong = _counts(like.experiment)
    while wrong - right > 1:
        txs = (right + wrong) // 2
        one = replace(like, experiment=replace(like.experiment, txs=txs))
        (answer,) = done([one])
        if not _is_of(one, answer):
            return None
        if answer["violations"]:
            wrong, found = txs, {"campaign": one, "answer": answer}
        else:
            right = txs
    return found
