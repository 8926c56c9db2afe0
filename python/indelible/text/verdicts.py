"""What crash campaigns say of designs, as text. Returns strings and prints nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from indelible.results.crash import Verdict
from indelible.results.seeds import OfSeeds
from indelible.text import DAGGER, Note, command, footnote, marked, paragraph

#: The label of the line of verdicts.
CRASH_TEST = "crash test"

#: The mark of a design that failed, and that of one that was not tested though it was to be.
FAILED, UNTRIED = "!", "?"


def judged(answer: OfSeeds, design: str) -> str:
    """Return the marked name of a design, with `!` for a failed crash test."""
    failed = answer.verdict_on_all(design).kind == "fail"
    return marked(answer, design) + (FAILED if failed else "")


def verdict_text(verdict: Verdict) -> str:
    """Return a verdict in a few letters."""
    match verdict.kind:
        case "ok":
            return f"ok {verdict.points}"
        case "fail":
            return f"FAIL {verdict.violations}/{verdict.points}"
        case "none":
            return f"none{DAGGER}"
        case _:
            return "untested"


def verdicts(answer: OfSeeds, of: Callable[[str], Verdict]) -> str:
    """Return the verdicts `of` the designs, one after the other."""
    return ", ".join(
        f"{judged(answer, design)} {verdict_text(of(design))}" for design in answer.designs
    )


def verdicts_line(answer: OfSeeds, of: Callable[[str], Verdict], width: int) -> str:
    """Return the verdicts of the designs, for below a table."""
    return paragraph(CRASH_TEST, verdicts(answer, of), width)


def failures(answer: OfSeeds) -> Iterator[tuple[str, str]]:
    """Return which designs failed, each with the command that shows it."""
    for design in answer.designs:
        verdict = answer.verdict_on_all(design)
        if verdict.kind == "fail":
            name = answer.labels[design]
            at = _at(answer, design, verdict.kind)
            yield f"{name} is not crash-safe{at}", verdict.command or ""


def _at(answer: OfSeeds, design: str, kind: str) -> str:
    """Return with which values of what varies a verdict is this; no text if with all of them."""
    rows = [(answer.own(cell), verdict.kind) for cell, verdict in answer.verdicts.items()]
    own = [(row["point"], of) for row, of in rows if row["design"] == design and "point" in row]
    points, wrong = [point for point, _ in own], [point for point, of in own if of == kind]
    said = []
    for key in points[0] if points else ():
        every, few = ({point[key]: None for point in some} for some in (points, wrong))
        said += [f"{key}={','.join(map(str, few))}"] if len(few) < len(every) else []
    return f" with {' and '.join(said)}" if said else ""


def untested_notes(answer: OfSeeds) -> Iterator[Note]:
    """Return the notes on designs that could not be tested, and why."""
    for design in answer.designs:
        verdict = answer.verdict_on_all(design)
        if verdict.kind == "untested" and verdict.reason and verdict.command:
            cells = (
                answer.own(cell) for cell, v in answer.verdicts.items() if v.kind == "untested"
            )
            on = dict.fromkeys(cell["workload"] for cell in cells if cell["design"] == design)
            at = _at(answer, design, verdict.kind)
            what = f"{answer.labels[design]} was not tested on {', '.join(on)}{at}"
            yield UNTRIED, f"{what}: {verdict.reason}"


def told(answer: OfSeeds, width: int) -> list[str]:
    """Return the notes on the designs without a good verdict, with commands that can be copied."""
    notes = []
    for failure, shown_by in failures(answer):
        notes += [footnote(FAILED, f"{failure}; to see it:", width), command("", shown_by, width)]
    return notes + [footnote(*note, width) for note in untested_notes(answer)]
