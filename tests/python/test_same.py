"""Tests of the script that compares two builds."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

import same
from conftest import needs_core

if TYPE_CHECKING:
    from pathlib import Path


def _build(where: Path, answer: str) -> Path:
    """Return a build whose programs answer every request with the same text."""
    where.mkdir()
    for program in ("one", "cut"):
        (where / program).write_text(f"#!/bin/sh\necho '{answer}'\n")
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
    row = {"cycles": 7, "host": {"seconds": 1}}
    before = _build(tmp_path / "before", json.dumps(row))
    row = {"cycles": 7 + moved, "host": {"seconds": 2}}
    after = _build(tmp_path / "after", json.dumps(row))
    assert same.compare(before, after, seed=1, minutes=0) == moved
    said = capsys.readouterr().out
    assert f"{same.BATCH if moved else 0} of {same.BATCH} answers differ" in said
    assert ("cycles: 7 was, 8 is" in said) == moved


@needs_core
def test_two_builds_that_refuse_everything_show_nothing(tmp_path: Path) -> None:
    both = _build(tmp_path / "both", "no such design")
    assert same.compare(both, both, seed=1, minutes=0) == 1


@needs_core
def test_requests_follow_from_their_seed() -> None:
    designs = ["silo", "ssp"]
    requests = [same.request(seed, designs) for seed in range(100)]
    assert requests == [same.request(seed, designs) for seed in range(100)]
    assert {program for program, _ in requests} == {"one", "cut"}
