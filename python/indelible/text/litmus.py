"""The results of litmus tests, as text for a terminal. Returns strings and prints nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from indelible import text
from indelible.experiment import LitmusTests
from indelible.labels import labels
from indelible.results.litmus import Litmus, is_missed, is_wrong
from indelible.text import crash as crash_text
from indelible.text import timeline as timeline_text

Row = Mapping[str, Any]
Names = Mapping[str, str]

#: The result if in no run every load had its value, so that nothing is known of the image.
UNASKED = "no run"

#: The result if no run of the test was made.
REFUSED = "refused"

CELLS = {
    REFUSED: "no run of the test fits the hardware or the machine",
    UNASKED: "no run counted: in none did every load return the value that the test demands",
    "seen": "the model of the hardware allows the image, and it was seen",
    "allowed": "the model allows it, and it was not seen",
    "no": "the model forbids it in all runs that were tried, and it was not seen",
    "WRONG": "the hardware left what its model forbids",
}


def litmus(answer: Litmus, width: int | None = None) -> str:
    """Return the table of tests and ordering hardware, and what is wrong."""
    width = width or text.terminal_width()
    rows = answer.data["rows"]
    lines = _tests(answer, rows, width) if rows else []
    for row in answer.data.get("random", ()):
        lines += _random(answer, row, width)
    if "mutants" in answer.data:
        lines += ["", *_mutants(answer, width), ""]
    if answer.data.get("cancelled"):
        lines.append("interrupted: only these tests were run")
    lines.append(text.command("repeat", answer.command, width))
    return "\n".join(lines)


def _tests(answer: Litmus, rows: Sequence[Row], width: int) -> list[str]:
    orders = list(dict.fromkeys(row["order"] for row in rows))
    label = labels(orders, "orders")
    names = _names(rows)
    table, above = [], None
    for image in _by_image(rows):
        name = names[_test_of(image[0])]
        cells = [*map(_cell, image), *[text.BLANK] * (len(orders) - len(image))]
        # The name of a test that asks about several images stands beside the first.
        table.append(["" if name == above else name, image[0]["image"], *cells])
        above = name
    lines = [text.columns(["test", "image", *label.values()], table, width), ""]
    shown = set(map(_cell, rows))
    lines += [text.paragraph(cell, body, width) for cell, body in CELLS.items() if cell in shown]
    lines += _wrong(answer, names, label, width)
    if answer.tests.timelines:
        lines += _seen(rows, names, label, width)
    refusals = {(row["order"], row["refusal"]) for row in rows if row["refusal"] is not None}
    for on, why in sorted(refusals):
        # An error of hardware in Python already begins with its name.
        told = why if why.startswith(on) else f"{label[on]}: {why}"
        lines.append(text.paragraph("refused", told, width))
    each = _each_test(rows)
    runs, images = (sum(row[name] for row in each) for name in ("runs", "images"))
    lines += ["", text.paragraph("checked", f"{images:,} images of {runs:,} runs", width)]
    return [*lines, *_sampled(each, names, label, width)]


def _wrong(answer: Litmus, names: Names, label: Mapping[str, str], width: int) -> list[str]:
    """Return what is wrong in each test on each hardware, the first of each with its timeline."""
    lines: list[str] = []
    shown_of: set[str] = set()
    told: set[tuple[str, str]] = set()
    for row in filter(is_wrong, answer.data["rows"]):
        on, name = row["order"], names[_test_of(row)]
        why = row["violation"] or f"the image {row['image']} was seen"
        what = f"{name} on {label[on]}: {why}"
        if (on, what) in told:
            # Another image of the same test: what is wrong is the same.
            continue
        told.add((on, what))
        lines += ["", text.paragraph("WRONG", what, width)]
        if row["timeline"] is None:
            continue
        if on in shown_of:
            lines.append(text.paragraph("timeline", "--json has it", width))
            continue
        shown_of.add(on)
        lines += _timeline_on(row["timeline"], width)
    return lines


def _seen(rows: Sequence[Row], names: Names, label: Mapping[str, str], width: int) -> list[str]:
    """Return how each image came about that was seen and has a timeline."""
    lines: list[str] = []
    for row in rows:
        if not is_wrong(row) and row["timeline"] is not None:
            name = names[_test_of(row)]
            what = f"{row['image']} in {name} on {label[row['order']]}"
            lines += ["", text.paragraph("seen", what, width)]
            lines += _timeline_on(row["timeline"], width)
    return lines


def _timeline_on(timeline: Mapping[str, Any], width: int) -> list[str]:
    settings = timeline["machine"]
    lines = [text.paragraph("on tiny", " ".join(settings), width)] if settings else []
    return lines + _timeline(timeline, width)


def _sampled(rows: Sequence[Row], names: Names, label: Mapping[str, str], width: int) -> list[str]:
    """Return the tests that had too many images to check every one, if there are any."""
    found = [
        f"{names[_test_of(row)]} on {label[row['order']]}"
        f" ({text.plural(row['sampled'], 'power failure')})"
        for row in rows
        if row["sampled"]
    ]
    if not found:
        return []
    told = (
        "there were too many images to check every one that the rules of the hardware allow, so an"
        f" image that was not seen may still be possible: {', '.join(found)}"
    )
    return [text.paragraph("sampled", told, width)]


def _random(answer: Litmus, row: Row, width: int) -> list[str]:
    """Return the results of random programs, with one that left a forbidden image."""
    alone = answer.tests.program is not None
    every = dict.fromkeys(one["order"] for one in answer.data["random"])
    on = labels([*every], "orders")[row["order"]]
    if row["violation"] is None:
        what = f"program {row['number']:,}" if alone else f"{row['programs']:,}"
        count = f"{what} on {on}: "
        count += f"ok, {row['images']:,} images" if row["images"] else f"refused: {row['refusal']}"
        if row["refused"] and row["images"]:
            count += f" ({row['refused']:,} refused: {row['refusal']})"
        lines = [text.paragraph("random", count, width)]
    else:
        wrong = f"program {row['number']:,} on {on}: {row['violation']}"
        lines = ["", text.paragraph("WRONG", wrong, width)]
    program = row["program"]
    if program is None:
        return lines
    for word, pairs in (("with", program["settings"]), ("on tiny", program["machine"])):
        lines += [text.paragraph(word, " ".join(pairs), width)] if pairs else []
    for core, steps in enumerate(program["cores"]):
        lines.append(text.paragraph(f"core {core}", ", ".join(steps), width))
    if row["violation"] is not None and not alone:
        see = replace(answer.tests, files=(), random=0, mutants=False, program=row["number"])
        lines.append(text.command("see it", _of(see, row["order"]).command(), width))
    if row["timeline"] is not None and alone:
        lines += [*_timeline(row["timeline"], width), ""]
    return lines


#: The most events of a timeline that are shown.
EVENTS_SHOWN = 100

#: Why an image has writes that its timeline does not show as accepted.
EARLY = "which could have been in memory by then, and in this run was not"


def _timeline(timeline: Mapping[str, Any], width: int) -> list[str]:
    """Return what happened up to the power failure that left a forbidden image."""
    events = timeline["events"]
    end = "the end of the run"
    if timeline["event"] is not None:
        end = f"the power failure at event {timeline['event']:,} of the run"
    part, count = "", len(events) + timeline["left_out"]
    if count > EVENTS_SHOWN:
        part = f"the last {EVENTS_SHOWN} of {count:,} events (--json has more) "
    table = timeline_text.table(events[-EVENTS_SHOWN:], width)
    lines = [text.paragraph("timeline", f"{part}up to {end}", width), "", table]
    if timeline["early"]:
        early = f"{crash_text.early_writes(timeline['early'])}, {EARLY}"
        lines += ["", text.paragraph("came early", early, width)]
    return lines


def _of(tests: LitmusTests, order: str) -> LitmusTests:
    """Return the request for tests on a single order."""
    own = next((own for name, own in tests.orders if name == order), ())
    return replace(tests, orders=((order, own),), settings=own)


def _mutants(answer: Litmus, width: int) -> list[str]:
    """Return the tests that noticed a rule switched off, and the command that shows the first."""
    mutants = answer.data["mutants"]
    if not mutants:
        return ["mutants     none: the hardware has no named rules"]

    def by(row: Row) -> str:
        return row["test"] or (f"random program {row['random']}" if row["caught"] else "")

    def found(row: Row) -> str:
        return "NOT CAUGHT" if is_missed(row) else "caught" if row["caught"] else "needless"

    label = labels([*dict.fromkeys(row["order"] for row in mutants)], "orders")
    table = [[label[row["order"]], row["rule"], found(row), by(row)] for row in mutants]
    asked = [row for row in mutants if row["needless"] is None]
    caught = [row for row in asked if row["caught"]]
    heads = ["order", "rule switched off", "", "by"]
    lines = [text.columns(heads, table, width), f"{len(caught)} of {len(asked)} caught"]
    for row in mutants:
        what = f"{row['rule']} of {label[row['order']]}"
        if row["needless"] is not None:
            lines.append(text.footnote("*", f"{what} is not looked for: {row['needless']}", width))
        elif row["raises"] is not None and is_missed(row):
            lines.append(text.footnote("!", f"{what}: {row['raises']}", width))
    if caught:
        first = caught[0]
        files = [file for file in answer.tests.files if Path(file.path).stem == first["test"]]
        see = replace(
            _of(answer.tests, first["order"]),
            files=tuple(files),
            random=0,
            mutants=False,
            program=first["random"],
            without=first["rule"],
        )
        lines.append(text.command("see one", see.command(), width))
    return lines


def _by_image(rows: Sequence[Row]) -> list[list[Row]]:
    """Return the rows of each image that is asked about: for all orders, they follow each other."""
    images: list[list[Row]] = []
    for row in rows:
        if row["order"] == rows[0]["order"]:
            images.append([])
        images[-1].append(row)
    return images


def _each_test(rows: Sequence[Row]) -> list[Row]:
    """Return one row for each test and order: images of a test share what is told of its runs."""
    return list({(_test_of(row), row["order"]): row for row in reversed(rows)}.values())[::-1]


def _test_of(row: Row) -> str:
    """Return what tells a test from the others: its file, or the name of a built-in one."""
    return row["file"] or row["test"]


def _names(rows: Sequence[Row]) -> Names:
    """Return a name for each test: its file's path, if files in two places have one name."""
    names = {_test_of(row): row["test"] for row in rows}
    counts = Counter(names.values())
    return {of: name if counts[name] == 1 else of for of, name in names.items()}


def _cell(row: Row) -> str:
    if is_wrong(row):
        return "WRONG"
    if not row["runs"]:
        return REFUSED
    if not row["counted"]:
        return UNASKED
    return ("seen" if row["seen"] else "allowed") if row["allowed"] else "no"
