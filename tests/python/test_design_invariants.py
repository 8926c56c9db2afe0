"""What a design in Python says must always be true of it, as campaigns ask."""

from __future__ import annotations

from pathlib import Path

import pytest

import indelible
from conftest import Write, needs_core, refused

pytestmark = needs_core

#: A hook with which the third transaction that ends breaks what is said.
COUNTS = (
    "ended = 0\n"
    "def commit(self, tx, below):\n"
    "    self.ended += 1\n"
    "    return super().commit(tx, below)\n"
    "def invariants(self):\n"
)


def of_template(path: str) -> str:
    """Have a design do what the template does, where it does not do something else."""
    text = Path(path).read_text(encoding="utf-8").replace("D(Design)", "D(Template)")
    head = "from indelible.templates.design import Template\n"
    Path(path).write_text(head + text, encoding="utf-8")
    return path


def campaign(path: str, **given: object) -> indelible.Crash:
    return indelible.crash(path, "scribble", cores=1, txs=20, **given)  # type: ignore[arg-type]


def test_what_is_not_true_is_a_violation_of_the_first_point_at_which_it_is_not(
    write: Write,
) -> None:
    body = COUNTS + "    return 'three\\n  of them' if self.ended == 3 else None"
    found = campaign(of_template(write(body)))
    first, *others = found.violations
    assert first["text"] == "invariant: three of them"
    assert (first["order"], first["nested"], first["address"]) == (0, None, None)
    assert all(other["text"] == first["text"] for other in others)
    assert "at event " in str(found)
    # The points stand in a row, and what is said is true just before.
    events = [violation["event"] for violation in found.violations]
    assert events == list(range(first["event"], first["event"] + len(events)))
    path = of_template(write(body))
    (alone,) = campaign(path, event=first["event"]).violations
    assert (alone["text"], alone["cycle"]) == (first["text"], first["cycle"])
    assert campaign(path, event=first["event"] - 1).violations == []
    assert f"--event {first['event']}" in first["timeline"]


def test_an_assertion_that_fails_is_one_too(write: Write) -> None:
    found = campaign(of_template(write(COUNTS + "    assert self.ended < 3, 'three'")))
    text = found.violations[0]["text"]
    assert text.startswith("invariant: ")
    assert text.endswith("d.py:10: in invariants: AssertionError: three")


def test_who_cuts_no_power_or_switches_a_rule_off_does_not_ask(write: Write) -> None:
    path = of_template(write("def invariants(self): return 'no'"))
    indelible.run(path, "scribble", "tiny", cores=1, txs=20)
    assert campaign(path).violations[0]["text"] == "invariant: no"
    mutant = campaign(path, without="fence_before_log_is_dropped", nested=False)
    assert mutant.violations == []
    # Its search needs the intact design to be right.
    assert campaign(path, mutants="words_are_forgotten").failed


def test_under_a_log_the_hardware_is_asked(write: Write) -> None:
    body = (
        "model = 'fenced'\n"
        "fences = 0\n"
        "def fence(self, fence, below):\n"
        "    self.fences += 1\n"
        "    if fence.kind == 'flush':\n"
        "        return below.flush(fence.core, fence.drained, fence.line)\n"
        "    return below.fence(fence.core, fence.drained)\n"
        "def invariants(self): return 'many fences' if self.fences > 1 else None"
    )
    path = write(body)
    assert campaign(f"undo@{path}").violations[0]["text"] == "invariant: many fences"
    litmus = indelible.litmus(orders=[path])
    assert not litmus.passed
    assert "invariant: many fences" in str(litmus)


@pytest.mark.parametrize(
    ("answer", "shown"),
    [("return True", "True"), ("return 3", "3"), ("return ['x']", "['x']"), ("return ' '", "' '")],
)
def test_another_answer_is_refused(write: Write, answer: str, shown: str) -> None:
    path = of_template(write(f"def invariants(self): {answer}"))
    (violation,) = campaign(path).violations
    told = f"`invariants` answered {shown}: it must answer nothing, or a sentence that says what"
    assert told in violation["text"]
    assert "\n" not in violation["text"]


def test_a_hook_with_a_mistake_is_told_as_any_other(write: Write) -> None:
    path = of_template(write("def invariants(self): 1 / 0"))
    assert "in invariants: ZeroDivisionError" in campaign(path).violations[0]["text"]
    yields = write("def invariants(self): yield")
    assert "`invariants` must answer with `return`" in refused(lambda: indelible.explain(yields))
    misspelt = write("def invariant(self): pass")
    assert "did you mean `invariants`?" in refused(lambda: indelible.explain(misspelt))


def test_a_hook_that_changes_the_design_is_told_so(write: Write) -> None:
    body = (
        "asked = 0\n"
        "def invariants(self):\n"
        "    self.asked += 1\n"
        "    return 'even' if self.asked % 2 == 0 else None"
    )
    text = campaign(of_template(write(body))).violations[0]["text"]
    assert "determinism: `invariants` changes the design" in text
