"""What the crash campaign beside a speed is of, and that no speed of a broken design wins."""

from __future__ import annotations

from pathlib import Path

import pytest

import indelible
from conftest import needs_core
from indelible import jobs
from indelible.experiment import Experiment
from indelible.settings import Pairs, of_cell

pytestmark = needs_core


def carried(design: str, *settings: tuple[str, str]) -> Pairs:
    """Return what the campaign of one of two designs is set to, where that was set of a run."""
    names = ("undo@x86", "redo@x86")
    own = of_cell(settings, design, "hash", (*names, "hash"))
    asked = Experiment(design, "hash", settings=own)
    (job,) = jobs.sampled({(design, "hash", None): asked}, {})
    return job.experiment.settings


def test_a_verdict_is_of_what_survives_on_the_machine_of_its_design() -> None:
    asked = ("redo@x86.controller.domain", "media")
    assert carried("redo@x86", asked) == (("controller.domain", "media"),)
    assert carried("undo@x86", asked) == ()


def test_a_verdict_is_of_what_survives_by_whichever_name_that_was_set() -> None:
    asked = (("controller.battery", "1%"), ("pm.capacity", "8GiB"))
    fields = (("pm.device_size", "8GiB"), ("controller.battery_perc", "1%"))
    assert carried("redo@x86", *asked) == fields


@pytest.fixture
def hasty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the design that `new` writes, and that of docs/design.md that does not wait."""
    monkeypatch.chdir(tmp_path)
    right = indelible.new("design", "mine").file
    lines = Path(right).read_text(encoding="utf-8").splitlines(keepends=True)
    wait, ask = "WAIT if self.rules.store_waits", "if self.rules.store_waits"
    for at, line in enumerate(lines):
        before, is_wait, _ = line.partition(wait)
        if is_wait:
            lines[at] = f"{before}None\n"
        elif ask in line:
            lines[at] = f"{line.partition(ask)[0]}if False:\n"
    Path("hasty.py").write_text("".join(lines), encoding="utf-8")
    return [right, "./hasty.py"]


def test_the_broken_design_of_the_guide_is_nowhere_ahead(hasty: list[str]) -> None:
    vary = {"controller.noc_latency": ["5ns", "40ns"], "pm.tWRITE": ["100ns", "200ns"]}
    asked = {"cores": 1, "txs": 100}
    untested = indelible.sweep(["undo@x86", *hasty], "hash", vary, crash=False, **asked)
    assert "./hasty.py" in {row["design"] for row in untested.ahead()}, "it is fast"
    swept = indelible.sweep(["undo@x86", *hasty], "hash", vary, **asked)
    assert not swept.passed
    assert swept.rivals() == ("undo@x86", hasty[0])
    assert {row["design"] for row in swept.ahead()} <= {"undo@x86", hasty[0]}
    assert "hasty! FAIL " in str(swept)
    compared = indelible.compare(hasty, "hash", **asked)
    kinds = {row["design"]: row["crash"] for row in compared.rows}
    assert all(row["crash"] == kinds[row["design"]] for row in swept.rows if row["design"] in kinds)


def test_the_broken_design_of_the_guide_is_not_ahead_of_the_right_one(hasty: list[str]) -> None:
    answer = indelible.why(hasty, "hash", fields=["controller.count"], cores=1, txs=100)
    assert answer.ratio() > 1
    assert not answer.passed
    assert "hasty! is not crash-safe, so it is never ahead. As it" in str(answer)
