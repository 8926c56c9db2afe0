"""The verb `trace`: the events of a part of a run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from indelible import pool
from indelible.arguments import DesignName, FileName, readable, whole
from indelible.errors import InputError
from indelible.experiment import CRASH_MACHINE, MACHINE, TIMELINE_LENGTH, TIMELINE_START, Recording
from indelible.results.timeline import Timeline
from indelible.settings import Settings
from indelible.verbs import experiment_of


def trace(
    design: DesignName,
    workload: str | None = None,
    machine: FileName | None = None,
    *,
    cores: int | None = None,
    txs: int | None = None,
    seed: int = 1,
    start: str = TIMELINE_START,
    length: str = TIMELINE_LENGTH,
    event: int | None = None,
    address: str | int | None = None,
    without: str | None = None,
    set: Settings = None,
    sql: FileName | None = None,
    ycsb: FileName | None = None,
    replay: FileName | None = None,
    exact: bool = False,
) -> Timeline:
    """Run a workload on a design and record its events from `start` on, for the time `length`.

    With `event` the recorded part ends at that power cut of a campaign on the same experiment, and
    the defaults of machine, cores and transactions are those of `crash`. With `address` only the
    events that touch its line are recorded.
    """
    if event is not None and str(start) != TIMELINE_START:
        raise InputError("`start` and `event` both say where the window begins; drop one")
    default = MACHINE if event is None else CRASH_MACHINE
    on = default if machine is None else machine
    asked = Recording(
        experiment_of(design, workload, on, cores, txs, seed, set, sql, ycsb, replay, exact),
        readable("start", str(start)),
        readable("length", str(length)),
        event,
        _address(address),
        without,
    )
    return pool.execute_one(asked, lambda data: _timeline(data, asked))


def _address(asked: object) -> str | None:
    """Return an address as text, from text or a whole number of any library."""
    if asked is None:
        return None
    if isinstance(asked, str):
        return readable("address", asked)
    return hex(whole("address", asked))


def _timeline(data: Mapping[str, Any], asked: Recording) -> Timeline:
    """Return an answer of the simulator; whether it was interrupted is said where others say it."""
    own = {key: value for key, value in data.items() if key != "trace"}
    run = {**data["run"]}
    own |= {"run": run, "cancelled": run.pop("cancelled")}
    return Timeline(own, asked, data["trace"])
