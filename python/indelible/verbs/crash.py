"""The verb `crash`: a campaign that cuts the power at events of a run."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from indelible import cluster, kept, pool
from indelible.arguments import DesignName, FileName, named, truth
from indelible.cluster import Dask
from indelible.errors import InputError
from indelible.experiment import CRASH_MACHINE, SCRIPT_FLAGS, Campaign, Experiment
from indelible.files import require_parent
from indelible.results.crash import Crash
from indelible.results.recording import room
from indelible.settings import Pairs, Settings
from indelible.verbs import experiment_of

#: The default design of traces, on which a program with flushes and fences of its own runs.
DESIGN = "undo@x86"

#: The lines of a trace that say how much memory it has, and which threads.
SIZE = re.compile(r"^[ \t]*(region[ \t]+\S+|thread)[ \t]+(0x[0-9a-fA-F]+|[0-9]+)", re.MULTILINE)

#: The most bytes and threads of a trace that a machine can be given; a larger one is refused for
#: what is wrong with it.
HELD_MAX, THREADS_MAX = 1 << 41, 64


def crash(
    design: DesignName | None = None,
    workload: str | None = None,
    machine: FileName = CRASH_MACHINE,
    *,
    cores: int | None = None,
    txs: int | None = None,
    seed: int = 1,
    points: int | str | None = None,
    event: int | None = None,
    mutants: bool | str = False,
    nested: bool = True,
    without: str | None = None,
    lives: int | None = None,
    check: str | None = None,
    images: str | None = None,
    leave_out: int | str | None = None,
    trials: int | str | None = None,
    smallest: bool = False,
    set: Settings = None,
    sql: FileName | None = None,
    ycsb: FileName | None = None,
    replay: FileName | None = None,
    exact: bool = False,
    keep: FileName | None = None,
    dask: Dask = None,
) -> Crash:
    """Cut the power at every durable event (or at `points` of them), recover, and check the image.

    Of a trace (`replay`) the default of `design` is `undo@x86`, and machine `tiny` is enlarged for
    one that is too large for it, or has too many threads, unless `set` gives the size.
    With `event` it is cut at that one alone, and the answer has what is left there of each core's
    transactions. `lives` is how often a machine is switched on: some recovered images boot, run on,
    and have their power cut again. `check` is a command that checks the memory that a power failure
    leaves of a trace, in a file for each region; it accepts an image with exit code 0, and images
    that it refuses are kept in the folder `images`. `leave_out` is how many flushes and fences of
    the trace (a number or `all`) are left out, one at a time, for `check` to notice. `mutants` also
    switches off each rule of the design, one at a time, or the one rule of this name. `trials` also
    makes so many of the runs in which mutants are sought with the unchanged design. After a
    violation, `smallest` looks for the smallest run that has one. The folder `keep` keeps the
    answer, which is not computed again; with `dask`, a scheduler's address or a
    `distributed.Client`, a worker there runs the campaign. Neither goes together with `check`.
    """
    for word, given in (("keep", keep), ("dask", dask)):
        if given is not None and (check, images) != (None, None):
            raise InputError(
                f"`{word}` does not work with `check` or `images`, which belong to a program of"
                " yours; drop one"
            )
    if truth("smallest", smallest) and check is not None:
        raise InputError(
            "`smallest` does not work with `check`: a trace can only run as it was recorded;"
            " drop one"
        )
    if smallest and event is not None:
        raise InputError(
            "`smallest` does not work with `event`: smaller runs have other events; drop one"
        )
    if design is None:
        if replay is None:
            raise InputError("no design was named; `indelible list designs` lists them")
        design = DESIGN
    asked = experiment_of(
        design, workload, machine, cores, txs, seed, set, sql, ycsb, replay, exact
    )
    enlarged = _room(asked)
    asked = replace(asked, settings=(*asked.settings, *enlarged))
    campaign = Campaign(
        asked, points, mutants, nested, without, lives, check, images, leave_out, trials, event
    )
    if images is not None:
        require_parent("--images", named("images", images))
    (job,) = kept.keeping([campaign], keep)

    def answered(data: dict[str, Any]) -> Crash:
        if enlarged:
            said = " and ".join(f"{key}={value}" for key, value in enlarged)
            note = f"machine {asked.machine} has {said}, which the trace needs"
            data["notes"] = [*(data.get("notes") or []), note]
        return Crash.of(data, campaign, bool(smallest))

    with cluster.place_of(dask) as place:
        answer = pool.execute_one(job, answered, "campaigns", place)
        answer = replace(answer, taken=kept.taken([job], "campaigns"))
        if not smallest or not answer.violations:
            return answer

        def done(batch: Sequence[Campaign]) -> Sequence[dict[str, Any]]:
            return pool.execute(kept.keeping(batch, keep), what="smaller runs", place=place)

        try:
            return answer.with_smallest(done)
        except pool.Interrupted:
            raise pool.Interrupted(answer.with_search_cut_short()) from None


def _room(asked: Experiment) -> Pairs:
    """Return the settings that the crash tests' machine needs for a trace, and was not given."""
    script = asked.script
    if script is None or script.flag != SCRIPT_FLAGS["replay"] or asked.machine != CRASH_MACHINE:
        return ()
    held, threads = 0, 1
    for what, number in SIZE.findall(script.text):
        value = int(number, 16 if number.startswith("0x") else 10)
        if what == "thread":
            threads = max(threads, value + 1)
        else:
            held += value
    needed = room(held, threads) if held <= HELD_MAX and threads <= THREADS_MAX else ()
    given = {key for key, _ in asked.settings}
    return tuple(pair for pair in needed if pair[0] not in given)
