"""The events of a part of a run, as text for a terminal. Returns strings and prints nothing."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from typing import Any

from indelible import text
from indelible.results.timeline import Timeline

#: The place of events that concern the whole machine, and no line.
POWER = "power"


def summary(answer: Timeline, path: str | None, width: int | None = None) -> str:
    """Return a summary of the recorded part, and the path of the trace."""
    width = width or text.terminal_width()
    lines = [_title(answer), *_window(answer, width)]
    if path is not None:
        where = f"{path} ({text.quantity(len(answer.trace), 'B')})"
        told = f"{where}: open it with https://ui.perfetto.dev, where it stays in the browser"
        lines.append(text.paragraph("trace", told, width))
        lines.append(text.paragraph("list", "--list prints the events instead", width))
    lines.append(text.command("repeat", answer.command, width))
    return "\n".join(lines)


def shown(answer: Timeline, width: int | None = None) -> str:
    """Return the events, and why the run failed, if it did."""
    lines = [listed(answer, width)]
    if answer.error is not None:
        lines += ["", text.paragraph("error", answer.error, width or text.terminal_width())]
    return "\n".join(lines)


def listed(answer: Timeline, width: int | None = None, *, whole: bool = False) -> str:
    """Return the events, one after the other; if `whole`, each in a single line of any length."""
    width = width or text.terminal_width()
    rows = table(answer.data["events"], sys.maxsize if whole else width)
    return "\n".join([_title(answer), *_window(answer, width), "", rows])


def table(events: Iterable[Mapping[str, Any]], width: int) -> str:
    """Return events as the rows of a table."""
    rows = [
        [
            f"{event['from']:,}",
            f"{event['until'] - event['from']:,}" if event["until"] > event["from"] else "",
            event["where"],
            event["lane"],
            " ".join([event["what"], *(f"{k}={v}" for k, v in event.get("args", {}).items())]),
        ]
        for event in events
    ]
    return text.columns(["cycle", "for", "where", "lane", "what"], rows, width, right=(0, 1))


def _title(answer: Timeline) -> str:
    return text.run_title(answer.data["run"], answer.recording.experiment.machine)


def _window(answer: Timeline, width: int) -> list[str]:
    """Return the lines that describe the recorded part, and how to read it."""
    data = answer.data
    until = data["until"] if data["cut"] is None else data["cut"]
    start, end = (_time(cycle, data["frequency"]) for cycle in (data["from"], until))
    cut = "" if data["cut"] is None else f", where the power fails (event {data['event']:,})"
    address = answer.recording.address
    of_line = "" if address is None else f" of the line of {address}"
    cycles = f"cycles {data['from']:,} to {until:,}, {start} to {end}"
    told = f"{cycles}{cut}: {len(data['events']):,} events{of_line}"
    lines = [text.paragraph("window", told, width)]
    if answer.interrupted:
        lines.insert(0, "interrupted: the rest of the run is missing")
    if answer.error is not None:
        lines.insert(0, "failed: the run did not come to its end")
    if address is not None and all(event["where"] == POWER for event in data["events"]):
        lines += [text.paragraph("touched", _touched(data["touched"]), width)]
    lines += [text.paragraph("note", note, width) for note in data["run"]["notes"]]
    if data["translates"]:
        told = "addresses of cores are virtual, those of controllers physical"
        lines.append(text.paragraph("note", told, width))
    return lines


def _touched(ranges: Mapping[str, Any]) -> str:
    """Return the ranges of addresses of the lines that were touched in the window."""
    told = [
        f"between {each[0]} and {each[1]} of {kind} memory"
        for kind, each in ranges.items()
        if each is not None
    ]
    return ", and ".join(told) if told else "no line at all, in this window"


def _time(cycle: int, frequency: int) -> str:
    return text.seconds(cycle / frequency) if cycle else "0 ns"
