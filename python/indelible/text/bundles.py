"""The result of repeating a bundle's command, as text for a terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from indelible.text import command, paragraph, seconds, terminal_width


def verified(answer: Mapping[str, Any], width: int | None = None) -> str:
    """Return whether the answer is the same, and if not, what differs."""
    width = width or terminal_width()
    lines = [
        command("command", answer["command"], width),
        paragraph("simulator", _builds(answer), width),
        paragraph(
            "took",
            f"{seconds(answer['seconds'])} now, {seconds(answer['seconds_then'])} when bundled",
            width,
        ),
        paragraph("answer", _answer(answer), width),
    ]
    for row in answer["differences"]:
        lines.append(
            f"  {row['place']}: {_said(row['now'])} now, {_said(row['then'])} when bundled"
        )
    if (more := answer["differing"] - len(answer["differences"])) > 0:
        lines.append(f"  and {more:,} more")
    return "\n".join(lines)


def _builds(answer: Mapping[str, Any]) -> str:
    if answer["same_build"]:
        return f"{answer['simulator']}, the same build"
    now, then = answer["simulator"], answer["simulator_then"]
    return f"{now} now, {then} when bundled: another build"


def _answer(answer: Mapping[str, Any]) -> str:
    codes = (answer["exit_code_then"], answer["exit_code"])
    if codes[0] != codes[1]:
        return f"DIFFERENT: exit code {codes[1]} now, {codes[0]} when bundled"
    if answer["differing"]:
        return f"DIFFERENT: {answer['differing']:,} of {answer['values']:,} values"
    return f"the same: {answer['values']:,} values"


def _said(value: object) -> str:
    text = str(value)
    return text if len(text) <= 40 else f"{text[:37]}..."
