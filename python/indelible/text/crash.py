"""The results of a crash campaign, as text for a terminal. Returns strings, prints nothing."""

from __future__ import annotations

import re
import shlex
import textwrap
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import Any

from indelible.results.crash import Crash, accepts_all, failed_points
from indelible.text import (
    LABEL,
    columns,
    command,
    footnote,
    paragraph,
    plural,
    quantity,
    run_title,
    seconds,
    terminal_width,
    word,
)

#: The reasons why a campaign proves nothing about its design.
NOTHING_CHECKED = (
    "nothing was checked: no transaction stored to persistent memory, and the design promises "
    "nothing about stores outside of transactions"
)

#: The explanation of the lines of a violation that a checker found.
LINES_OF_TRACE = "of the trace; those of the program are in brackets"

#: How that is said in the text of such a violation.
STORES = re.compile("; memory (has|does not have) ")

#: The advice on such a violation if a program's own stores were recorded.
ASK_THE_PROGRAM = "; with --check COMMAND the program's own recovery judges what is left"

#: The advice where a checker accepted every image that it was shown, and why a campaign without
#: violations then proves nothing.
ACCEPTS_ALL = (
    "the checker refuses no image, not even garbage; let it look at the file whose path is "
    "appended to the command, and refuse what the program cannot have left there"
)
UNLOOKED = f"the program was not checked: {ACCEPTS_ALL}"

#: Why a campaign proves nothing about a design that acknowledges commits before they are durable.
NOTHING_ANNOUNCED = (
    "nothing was checked: no transaction was announced as durable, so memory may lack them all"
)

#: Why a campaign proves nothing about a design that announces hardly any commit as durable.
FEW_ANNOUNCED = (
    "too little was checked: fewer than half of a core's acknowledged transactions were announced "
    "as durable, and memory may lack the others"
)

#: Why a checker was shown no image that could be wrong.
NOTHING_STORED = (
    "nothing was checked: after `measured` the trace stores nothing to persistent memory"
)


def crash(answer: Crash, width: int | None = None) -> str:
    """Return one campaign: how many power failures, what they broke, and how to see it again."""
    width = width or terminal_width()
    row = answer.data
    violations = row["violations"]
    title = run_title(row, answer.campaign.experiment.machine)
    lines = [f"{title} · domain {row['domain']}"]
    if answer.was_seeking:
        lines.append("interrupted: the smallest run with a violation was still being looked for")
    elif row.get("cancelled"):
        lines.append("interrupted: only these points were tried")
    # Of a run that was stopped it is not known how many crash points it has.
    part = row["crash_points"] is not None and row["points"] < row["crash_points"]
    among = f" of {row['crash_points']:,}" if part else ""
    nested = row["nested_points"]
    again = f" and {nested:,} more during recovery" if nested else ""
    speed = f"{seconds(row['seconds'])}, {quantity(row['points_per_s'], 'points/s')}"
    lines.append(paragraph("power cuts", f"{row['points']:,}{among}{again} ({speed})", width))
    if row["boots"]:
        lines.append(paragraph("later lives", _later_lives(row), width))
    if row["declared_bytes"]:
        lines.append(paragraph("saved", _saved(row), width))
    # The cost of a program's own recovery is not known.
    if row["recovery"] is not None and "checker" not in row:
        lines.append(paragraph("recovery", _recovery(row["recovery"]), width))
    if "checker" in row:
        images = row["checker"]["images"]
        ran = "run on 1 image" if images == 1 else f"run on {images:,} different images"
        if sampled := row["checker"].get("sampled", 0):
            ran += f"; {plural(sampled, 'power cut')} may leave others, too"
        lines.append(paragraph("checker", ran, width))
    if row["durability"] == "asynchronous" and "acknowledged" in row:
        lines.append(paragraph("announced", _announced(row), width))
    for left in _told_of(row):
        lines.append(paragraph("" if left["core"] else "left", _left(left), width))
    lines.append(paragraph("violations", _verdict_of(row), width))
    lines += list_violations(violations, width, OTHER if "checker" in row else EARLY)
    lines += _never(row, width)
    if "smallest" in row:
        lines += _smallest(row["smallest"], width)
    if "trials" in row:
        lines += _trials(row, width)
    if "mutants" in row:
        lines += ["", _mutants(row, width), ""]
    if "left_out" in row:
        lines += ["", _left_out(row, width), ""]
    if any(STORES.search(violation["text"]) for violation in violations):
        lines.append(paragraph("lines", LINES_OF_TRACE, width))
    # Of transactions that are broken the verdict is another.
    blind = [ACCEPTS_ALL] if violations and accepts_all(row) else []
    for note in [*(row.get("notes") or []), *blind]:
        lines.append(paragraph("note", str(note), width))
    lines += _timeline(violations, "timeline", width, LACKS[1 if "checker" in row else 0])
    if answer.taken is not None:
        # A path stays whole.
        how = "taken from" if answer.taken.count else "in"
        lines.append(f"{'kept'.ljust(LABEL)}{how} {answer.taken.folder}")
    lines.append(command("repeat", answer.command, width))
    return "\n".join(lines)


#: What a timeline does not show of an image that timing did not leave: of one in which writes came
#: early, and of one that a checker was shown.
LACKS = (
    "it does not show the writes that came early in that image",
    "it shows the run, and not which of the stores before the cut that image has",
)


#: Why there is no timeline of a violation.
LATER = "none: it would list the first life of a machine, and this is a later one"


def _timeline(
    violations: Sequence[Mapping[str, Any]], label: str, width: int, lacks: str = LACKS[0]
) -> list[str]:
    """Return the command that lists the events before the first violation, and what it lacks."""
    if not violations:
        return []
    if violations[0]["timeline"] is None:
        return [paragraph(label, LATER, width)] if violations[0]["life"] > 1 else []
    lines = [command(label, violations[0]["timeline"], width)]
    if violations[0]["order"]:
        lines.append(paragraph("", lacks, width))
    return lines


def _smallest(row: Mapping[str, Any] | None, width: int) -> list[str]:
    """Return the smallest run with a violation, and the command that repeats it."""
    if row is None:
        return [paragraph("smallest", "no smaller run with a violation was found", width)]
    cores, txs, tried = row["cores"], row["txs"], row["tried"]
    said = (
        f"{plural(cores, 'core')}, {plural(txs, 'transaction')}{'' if cores == 1 else ' each'},"
        f" seed {row['seed']} ({plural(tried, 'run')} tried)"
    )
    lines = [paragraph("smallest", said, width)]
    lines += list_violations(row["violations"], width, EARLY)
    lines += _timeline(row["violations"], "  timeline", width)
    return [*lines, command("  repeat", row["command"], width)]


def _saved(row: Mapping[str, Any]) -> str:
    most, declared, energy = row["saved_bytes_max"], row["declared_bytes"], row["energy_bytes"]
    saved = f"{most:,} bytes at most, of {declared:,} that the design declares to survive"
    if energy == declared:
        return saved
    cuts = row["energy_ended"]
    return (
        f"{saved}; the energy covers only {energy:,} bytes, and ran out at {cuts:,} of the power"
        " cuts"
    )


def _announced(row: Mapping[str, Any]) -> str:
    """Return how many transactions an asynchronous design has announced as durable."""
    announced, acknowledged = row["announced"], row["acknowledged"]
    return f"{announced:,} of {acknowledged:,} transactions that stored and were acknowledged"


def _recovery(of: Mapping[str, float]) -> str:
    """Return how many lines recovery reads and writes."""
    read, written = of["lines_read_mean"], of["lines_written_mean"]
    return (
        f"reads {read:,.1f} lines on average (at most {of['lines_read_max']:,}), writes"
        f" {written:,.1f} (at most {of['lines_written_max']:,})"
    )


def _later_lives(row: Mapping[str, Any]) -> str:
    """Return how many machines booted from recovered images, and what was done with them."""
    boots, cuts, nested = row["boots"], row["later_points"], row["later_nested_points"]
    again = f" and {nested:,} more during recovery or booting" if nested else ""
    booted = f"{plural(boots, 'machine')} booted from what recovery left"
    return f"{booted} and ran on: {plural(cuts, 'power cut')}{again}"


def _told_of(row: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """Return what is left of each core; a trace for a checker may have no transactions at all."""
    every = row.get("left", ())
    seen = any(left["acknowledged"] or left["open"] is not None for left in every)
    return every if seen or "checker" not in row else ()


def _left(left: Mapping[str, Any]) -> str:
    """Return what the only power failure left of a core's transactions that stored something."""
    there, acknowledged, underway = left["there"], left["acknowledged"], left["open"]
    whole = there > acknowledged
    of = f"all {acknowledged:,}" if there >= acknowledged else f"{there:,} of {acknowledged:,}"
    told = f"{of} acknowledged transactions" if acknowledged else "no acknowledged transaction"
    if there < acknowledged:
        told += f" ({left['announced']:,} were announced as durable)"
    if underway is not None:
        state = "commit was under way" if underway["committing"] else "commit had not begun"
        made = f"whose {state} ({plural(underway['stores'], 'store')})"
        told += f"; {'also' if whole else 'nothing of'} the next one, {made}"
    return f"core {left['core']}: {told}"


def _verdict_of(row: Mapping[str, Any]) -> str:
    found = len(row["violations"])
    # If the campaign ended before the checker ran, points that passed were not checked.
    unseen = row.get("cancelled") and "checker" in row and not row["checker"]["images"]
    if not found and (unseen or (not row["points"] and (row["checked"] or row.get("cancelled")))):
        return "none: nothing was tried"
    if not found:
        if row["checked"]:
            interrupted = "ok so far: every one that was tried recovered"
            return interrupted if row.get("cancelled") else "ok: every one recovered"
        return nothing_checked(row)
    life = row["violations"][0]["life"]
    if life > 1:
        return f"FAIL in life {life} of a machine: {failed_points(row):,} of its power cuts"
    if not row["points"]:
        return "FAIL: the run was not completed"
    stopped = f": stopped after {plural(found, 'violation')}" if row.get("stopped") else ""
    if any(violation.get("alike") for violation in row["violations"]):
        # What is shown of a checker's refusals is one image for each reason.
        checker = row["checker"]
        if checker["nothing_new"]:
            stopped = ": stopped, since the last 1,000 showed nothing new"
        return f"FAIL: {checker['refused']:,} of {checker['images']:,} images refused{stopped}"
    return f"FAIL {failed_points(row):,}/{row['points']:,}{stopped}"


def nothing_checked(row: Mapping[str, Any]) -> str:
    """Return why a campaign without violations proves nothing about its design."""
    if row.get("announced_few"):
        return FEW_ANNOUNCED if row["announced"] else NOTHING_ANNOUNCED
    if accepts_all(row):
        return UNLOOKED
    if "checker" in row:
        return NOTHING_STORED
    return NOTHING_CHECKED + (ASK_THE_PROGRAM if row["workload"] == "replay" else "")


def _never(row: Mapping[str, Any], width: int) -> list[str]:
    """Return which of the design's counters stayed 0 in a campaign that is right, on one line."""
    names = row.get("never") or []
    is_right = row["checked"] and not row["violations"] and not row.get("cancelled")
    # A checker asks about a program, whatever the design may do.
    if not names or not is_right or "left" in row or "checker" in row:
        return []
    advice = "" if "trials" in row else " (--trials reaches more)"
    # As many as there is room for, and at least one.
    for shown in range(len(names), 0, -1):
        rest = len(names) - shown
        told = ", ".join(names[:shown]) + (f" and {rest} more" if rest else "") + advice
        if LABEL + len(told) <= width:
            break
    return [f"{'never'.ljust(LABEL)}{told}"]


#: The images beside the one that timing left: some writes came early, or it is another one that
#: the hardware may leave.
EARLY, OTHER = "some writes early", "another image"

#: The words for an image after an interrupted recovery, or boot.
OVERTAKEN = "those since the last fence out of order"

#: The number of the image in which the power failed in the middle of the next write.
TORN = 3, "some words of the next one there"


def list_violations(violations: Sequence[Mapping[str, Any]], width: int, early: str) -> list[str]:
    """Return the first violation with its history, and the others as far as they differ."""
    # Several images of a crash point share one place, which is shown once.
    places: dict[str, Counter[str]] = {}
    files: dict[str, list[str]] = {}
    alike: Counter[str] = Counter()
    for violation in violations:
        alike[violation["text"]] += violation.get("alike") or 0
        places.setdefault(violation["text"], Counter())[_place(violation, early)] += 1
        files.setdefault(violation["text"], []).extend(_kept(violation))
    lines = []
    for index, (what, told_at) in enumerate(places.items()):
        where = list(told_at)
        also = []
        if told_at[where[0]] > 1:
            also.append(_more_images(told_at[where[0]]).removeprefix(" "))
        if where[1:]:
            others = (f"{place}{_more_images(told_at[place])}" for place in where[1:])
            also.append(f"the same {', '.join(others)}")
        if alike[what]:
            also.append(f"and {plural(alike[what], 'more image')} refused for the same reason")
        if files[what]:
            also.append(f"kept in {', '.join(files[what])}")
        told = f"{where[0]}: {what}"
        lines.append(textwrap.fill(told, width, initial_indent="  ", subsequent_indent="    "))
        if index == 0:
            lines += _history(violations[0], width) + _early(violations[0], width)
        indents: dict[str, Any] = {"initial_indent": "    ", "subsequent_indent": "    "}
        lines += [
            textwrap.fill(one, width, break_long_words=False, break_on_hyphens=False, **indents)
            for one in also
        ]
    return lines


def _kept(violation: Mapping[str, Any]) -> list[str]:
    """Return the files of an image, and with what in its environment the checker was asked."""
    kept, marks = [*violation.get("files", ())], violation.get("marks", ())
    several = len(marks) > 1
    said = [
        f"INDELIBLE_MARK{f'_{thread}' if several else ''}={shlex.quote(mark)}"
        for thread, mark in enumerate(marks)
        if mark
    ]
    if kept and said:
        kept[-1] += f" (with {' '.join(said)})"
    return kept


def _more_images(count: int) -> str:
    """Return how many more images of one place there are beside the one shown."""
    if count == 1:
        return ""
    return f" and {count - 1} more image{'' if count == 2 else 's'} of it"


def _place(violation: Mapping[str, Any], other: str) -> str:
    """Return where the power failed: the event, and the write in recovery or booting, if any."""
    nested = violation.get("nested")
    order, torn = violation.get("nested_order"), TORN[1]
    which = f", {torn if order == TORN[0] else OVERTAKEN}" if order else ""
    if violation["event"]:
        write = f", write {nested} of the recovery{which}" if nested is not None else ""
        early = f", {other}" if violation["order"] else ""
        place = f"at event {violation['event']:,} (cycle {violation['cycle']:,}{early}{write})"
        of_life = "of"
    else:
        place = "in the run" if nested is None else f"at write {nested} of booting{which}"
        of_life = "in"
    if not violation["after"]:
        return place
    before = "; then ".join(_cut(cut) for cut in violation["after"])
    return f"{place} {of_life} life {violation['life']}, after {before}"


def _cut(cut: Mapping[str, Any]) -> str:
    """Return an earlier power failure of a machine."""
    order = ", some writes early" if cut["order"] else ""
    nested = f", recovery cut at its write {cut['nested']}" if cut["nested"] is not None else ""
    return f"event {cut['event']:,}{order}{nested}"


#: The most transactions of a history that are shown.
HISTORY_SHOWN = 8


def _history(violation: Mapping[str, Any], width: int) -> list[str]:
    """Return the history of a violation: the last transactions that were involved."""
    history = violation.get("history") or []
    lines = [
        textwrap.fill(step, width, initial_indent="      ", subsequent_indent="        ")
        for step in history[-HISTORY_SHOWN:]
    ]
    if len(history) > HISTORY_SHOWN:
        lines.insert(0, f"      ... {len(history) - HISTORY_SHOWN} before; --json shows all")
    return ["    who stored there:", *lines] if lines else []


#: The most early writes that are shown, and the bytes of a write of a whole line.
EARLY_SHOWN, LINE = 8, 64


def _early(violation: Mapping[str, Any], width: int) -> list[str]:
    """Return the writes that came early, if there are any."""
    early = violation.get("early") or []
    if not early:
        return []
    shape: dict[str, Any] = {"initial_indent": "    came early: ", "subsequent_indent": " " * 6}
    return [textwrap.fill(early_writes(early), width, break_on_hyphens=False, **shape)]


def early_writes(early: Sequence[Mapping[str, Any]]) -> str:
    """Return writes that came early, each with its line and its kind."""
    told = [
        f"{write['class'].replace('_', ' ')} {write['line']}"
        + ("" if write["bytes"] == LINE else f" ({write['bytes']} bytes)")
        for write in early[:EARLY_SHOWN]
    ]
    if len(early) > EARLY_SHOWN:
        told.append(f"and {len(early) - EARLY_SHOWN} more; --json shows all")
    return ", ".join(told)


def _trials(row: Mapping[str, Any], width: int) -> list[str]:
    """Return the results of the unchanged design on the machines of the trials of mutants."""
    trials = row["trials"]
    if trials is None:
        failed = "program" if "checker" in row else "design"
        return [paragraph("trials", f"none: the {failed} already failed without them", width)]
    if row.get("cancelled") and not trials["runs"]:
        return [paragraph("trials", "none: interrupted before them", width)]
    runs, cuts = plural(trials["runs"], "run"), plural(trials["points"], "power cut")
    tried = f"{runs} of scribble on small machines, {cuts}"
    if trials["refused"]:
        why = "" if trials["runs"] else f": {trials['refusal']}"
        tried += f" ({trials['refused']} refused{why})"
    wrong = trials["wrong"]
    if wrong is None:
        verdict = "ok so far" if row.get("cancelled") else "ok"
        verdict = verdict if trials.get("checked", 1) else "nothing was checked"
        verdict = verdict if trials["runs"] else "FAIL, nothing was tried"
        return [paragraph("trials", f"{tried}: {verdict}", width)]
    told = f"FAIL, the last of {tried}"
    life = f" of life {wrong['life']}" if wrong["life"] > 1 else ""
    place = f"at event {wrong['event']:,}{life}: {wrong['text']}"
    return [
        paragraph("trials", told, width),
        textwrap.fill(place, width, initial_indent="  ", subsequent_indent="    "),
        command("see it", wrong["replay"], width),
    ]


#: The words for a mutant's result; after an interruption some results are unknown.
CAUGHT = {True: "caught", False: "NOT CAUGHT", None: "not tried"}

#: The words for a mutant in whose run the design is wrong with the rule, too.
WRONG = "WRONG WITH IT"

#: The advice on mutants that were not caught.
MISSED = (
    "NOT CAUGHT: nothing broke without the rule in any run that was tried. Either the design does "
    "not need the rule (remove it, or give the reason in `needless`), or no run reaches what needs "
    "it"
)


#: The keys of a mutant that say why it was not caught.
EXPLAINED = {"intact", "raises", "unasked"}


def _mutants(row: Mapping[str, Any], width: int) -> str:
    """Return which mutants were caught, and the command that shows the first of them."""
    mutants = row["mutants"]
    if not mutants:
        return "mutants     none: the design has no named rules"
    table = [
        [
            mutant["rule"],
            WRONG if "intact" in mutant else CAUGHT[mutant["caught"]],
            word(mutant.get("workload")),
            *(word(mutant.get(name)) for name in ("cores", "txs", "seed", "life", "event")),
        ]
        for mutant in mutants
    ]
    headers = ["rule switched off", "campaign", "workload", "cores", "txs", "seed", "life", "event"]
    lines = [columns(headers, table, width, right=(3, 4, 5, 6, 7)), _caught(mutants)]
    caught = [mutant for mutant in mutants if mutant["caught"]]
    for mutant in mutants:
        if "intact" in mutant:
            lines.append(
                footnote("!", f"{mutant['rule']}: with the rule, too: {mutant['intact']}", width)
            )
        if "unasked" in mutant:
            lines.append(footnote("!", _unasked(mutant), width))
        if "unmade" in mutant:
            runs = plural(mutant["unmade"], "run")
            unmade = f"{mutant['rule']}: {runs} could not be made: {mutant['refusal']}"
            lines.append(footnote("!", unmade, width))
        if "raises" in mutant and not mutant["caught"]:
            lines.append(footnote("!", f"{mutant['rule']}: {mutant['raises']}", width))
        if "refused" in mutant:
            refused = f"{mutant['rule']}: with the rule that run is refused: {mutant['refused']}"
            lines.append(footnote("*", refused, width))
    if any(m["caught"] is False and not EXPLAINED & m.keys() for m in mutants):
        lines.append(footnote("!", MISSED, width))
    for rule in row.get("needless_rules") or []:
        lines.append(footnote("*", f"{rule['rule']} is not looked for: {rule['why']}", width))
    wrong = dict.fromkeys(mutant["replay"] for mutant in mutants if "intact" in mutant)
    lines += [command("wrong in", replay, width) for replay in wrong]
    if caught:
        lines.append(command("see one", caught[0]["replay"], width))
    return "\n".join(lines)


def _unasked(mutant: Mapping[str, Any]) -> str:
    """Return that no hook asked for a rule, so that nothing can depend on it."""
    runs = plural(mutant["unasked"], "run")
    return f"{mutant['rule']}: no hook asked for the rule in the {runs} without it"


def _caught(mutants: Sequence[Mapping[str, Any]]) -> str:
    """Return how many mutants were caught, of those that were tried to the end."""
    caught = sum(mutant["caught"] is True for mutant in mutants)
    untried = sum(mutant["caught"] is None for mutant in mutants)
    if not untried:
        return f"{caught} of {len(mutants)} caught"
    tried = len(mutants) - untried
    if not tried:
        return f"none of {untried} completed: interrupted"
    return f"{caught} of {tried} completed caught ({untried} not completed: interrupted)"


#: The words for a checker's result on a trace without a flush or a fence.
NOTICED = {True: "notices", False: "NOTICES NOTHING", None: "not tried"}

#: The most flushes and fences that are listed, and the lines of source that are left of each at
#: least (ours: its own, and that of a call).
LEFT_OUT_SHOWN, FRAMES_LEFT = 20, 2


def _differing(sources: Sequence[str | None]) -> list[str | None]:
    """Return places of a program without the calls at their end that all of them have."""
    chains = [_frames(source) for source in sources if source is not None]
    least = min(map(len, chains), default=0)
    ends = (len({chain[-depth] for chain in chains}) == 1 for depth in range(1, least + 1))
    shared = min(sum(takewhile(bool, ends)), least - FRAMES_LEFT)
    if shared <= 0:
        return list(sources)
    return [source and " < ".join(source.split(" < ")[:-shared]) for source in sources]


def _frames(source: str) -> list[str]:
    """Return the lines of a place, each with the file that it may only have before another."""
    found, file = [], ""
    for frame in source.split(" < "):
        file = frame.rpartition(":")[0] or file
        found.append(f"{file}:{frame.rpartition(':')[2]}")
    return found


def _left_out(row: Mapping[str, Any], width: int) -> str:
    """Return the flushes and fences that were left out, the unnoticed ones first."""
    left_out = row["left_out"]
    if not left_out:
        wrong = "the program already failed" if row["violations"] else "the trace has neither"
        return paragraph("left out", f"no flush and no fence: {wrong}", width)
    if all(each["noticed"] is None for each in left_out):
        return paragraph("left out", "no flush and no fence: interrupted before them", width)
    ordered = sorted(left_out, key=lambda each: each["noticed"] is not False)
    shown = ordered[:LEFT_OUT_SHOWN]
    table = [
        [
            each["operation"],
            word(each["place"]),
            word(source),
            word(each["times"]),
            NOTICED[each["noticed"]],
            word(each.get("event")),
        ]
        for each, source in zip(shown, _differing([each["source"] for each in shown]), strict=True)
    ]
    headers = ["left out", left_out[0]["unit"], "comes from", "times", "the checker", "event"]
    lines = [columns(headers, table, width, right=(1, 3, 5))]
    if ordered[LEFT_OUT_SHOWN:]:
        lines.append(f"... and {len(ordered) - LEFT_OUT_SHOWN} more; --json shows all")
    noticed = [each for each in left_out if each["noticed"]]
    missed = [each for each in left_out if each["noticed"] is False]
    untried = len(left_out) - len(noticed) - len(missed)
    interrupted = f" ({untried} not tried: interrupted)" if untried else ""
    lines.append(f"{len(noticed)} of {len(left_out)} noticed{interrupted}")
    if missed:
        reasons = f"{row['design']} does not need it, the checker does not check it, or the power"
        needless = f"why one was not noticed: {reasons} cuts that were tried do not show it"
        lines.append(footnote("*", needless, width))
    if noticed:
        lines.append(command("see one", noticed[0]["replay"], width))
    return "\n".join(lines)
