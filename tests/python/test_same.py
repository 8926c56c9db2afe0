"""Tests of the script that compares two builds."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

import same
from conftest import needs_core

if TYPE_CHECKING:
    from pathlib import Path


def _build(where: Path, **row: object) -> Path:
    """Return a build whose programs answer every request with one row."""
    where.mkdir()
    for program in ("one", "cut"):
        (where / program).write_text(f"#!/bin/sh\necho '{json.dumps(row)}'\n")
        (where / program).chmod(0o755)
    return where


def test_only_what_the_host_decides_may_differ() -> None:
    before = {"cycles": 7, "stalls": {"fence": [1, 2]}, "host": {"seconds": 1}, "seconds": 3}
    assert not list(same.differences(before, before | {"host": {}, "seconds": 4}))
    after = {"cycles": 8, "stalls": {"fence": [1, 3]}, "txs": 1}
    assert list(same.differences(before, after)) == [
        "cycles: 7 was, 8 is",
        "stalls.fence[1]: 2 was, 3 is",
        "txs: None was, 1 is",
    ]
    assert list(same.differences("no such design", before))


@needs_core
@pytest.mark.parametrize("moved", [False, True])
def test_a_build_that_moves_a_number_is_found(
    moved: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = _build(tmp_path / "before", cycles=7, host={"seconds": 1})
    after = _build(tmp_path / "after", cycles=7 + moved, host={"seconds": 2})
    assert same.compare(before, after, seed=1, minutes=0) == moved
    said = capsys.readouterr().out
    assert f"{same.BATCH if moved else 0} of {same.BATCH} answers differ" in said
    assert ("cycles: 7 was, 8 is" in said) == moved


def test_requests_follow_from_their_seed() -> None:
    designs = ["silo", "ssp"]
    requests = [same.request(seed, designs) for seed in range(100)]
    assert requests == [same.request(seed, designs) for seed in range(100)]
    assert {program for program, _ in requests} == {"one", "cut"}
