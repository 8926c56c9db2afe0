"""`doctor`: what it checks passes here, and each check fails where it should."""

from __future__ import annotations

import importlib.util
import json
import shutil
from collections.abc import Callable, Mapping
from typing import Any

import pytest

import indelible
from conftest import needs_core
from indelible import compiler, experiment, health
from indelible.cli import main

#: How a check is spoilt: a verb of the simulator, which of its requests, and what is answered.
Spoilt = tuple[str, Callable[[Mapping[str, Any]], bool], Mapping[str, Any]]


def checks(answer: health.Health) -> dict[str, bool | None]:
    return {row["what"]: row["ok"] for row in answer["checks"]}


@needs_core
def test_all_is_well_here(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    found = {row["what"]: row["ok"] for row in answer["checks"]}
    assert [found[what] for what in ("determinism", "quantum", "recovery", "oracle")] == [True] * 4
    assert found["matplotlib"] is True
    assert answer["mem_ops_per_s"] > 0
    assert main(["doctor"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith(f"indelible {indelible.__version__} · Python ")
    assert "recovery    ok    silo recovered from " in shown
    assert "FAIL" not in shown


@needs_core
@pytest.mark.parametrize(
    ("what", "spoilt"),
    [
        ("determinism", ("run", lambda _: True, {"cycles": None})),
        ("quantum", ("run", lambda spec: spec["exact"], {"throughput_tx_per_s": 1.0})),
        (
            "recovery",
            ("crash", lambda spec: "without" not in spec, {"points": 0, "nested_points": 0}),
        ),
        (
            "recovery",
            (
                "crash",
                lambda spec: "without" not in spec,
                {"violations": [{"event": 3, "after": []}]},
            ),
        ),
        ("oracle", ("crash", lambda spec: "without" in spec, {"violations": []})),
    ],
)
def test_each_check_fails_where_it_should(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    what: str,
    spoilt: Spoilt,
) -> None:
    verb, is_meant, otherwise = spoilt
    real, count = getattr(experiment.core, verb), iter(range(9))

    def answer(request: str, control: object) -> str:
        told = json.loads(real(request, control))
        if is_meant(json.loads(request)):
            # What is None is another thing each time.
            told |= {key: next(count) if v is None else v for key, v in otherwise.items()}
        return json.dumps(told)

    monkeypatch.setattr(experiment.core, verb, answer)
    found = indelible.doctor()
    assert [name for name, ok in checks(found).items() if ok is False] == [what]
    assert not found.passed
    assert main(["doctor"]) == 1
    assert "FAIL  " in capsys.readouterr().out


@needs_core
def test_what_is_missing_is_no_failure_and_told_with_what_helps(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found_by = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "textalloc" else found_by(name)
    )
    monkeypatch.setattr(shutil, "which", lambda _: None)
    answer = indelible.doctor()
    assert answer.passed
    assert {name for name, ok in checks(answer).items() if ok is None} == {"textalloc", "cc"}
    shown = " ".join(str(answer).split())
    assert "textalloc - not there: no names in the figure of" in shown
    assert "python -m pip install 'indelible[plot]'" in shown
    assert "cc - not there: no programs of yours (cc, record, explore): install gcc" in shown

    def refused() -> None:
        raise indelible.InputError("programs are recorded on Linux")

    monkeypatch.setattr(compiler, "require_host", refused)
    assert "explore): programs are recorded on Linux" in " ".join(str(indelible.doctor()).split())
