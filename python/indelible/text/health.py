"""The checks of `doctor`, as text for a terminal. Returns strings and prints nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from indelible import text

if TYPE_CHECKING:
    from indelible.results.health import Health

#: The words for a check's result.
VERDICTS = {True: "ok", False: "FAIL", None: text.BLANK}


def health(answer: Health, width: int) -> str:
    """Return the installed version, the checks, and the commands to try next."""
    has = [answer["system"], f"{answer['processors']} processors"]
    has += [] if answer["memory_bytes"] is None else [text.size(answer["memory_bytes"])]
    lines = [f"indelible {answer['version']} · Python {answer['python']} · {' · '.join(has)}", ""]
    for row in answer["checks"]:
        said = row["said"] if row["fix"] is None else f"{row['said']}: {row['fix']}"
        lines.append(text.paragraph(row["what"], f"{VERDICTS[row['ok']]:<6}{said}", width))
    speed = f"{answer['mem_ops_per_s'] / 1e6:.1f} million memory operations of one core a second"
    lines.append(text.paragraph("speed", f"{'':<6}{speed}", width))
    lines += ["", text.command("next", answer["next"][0], width)]
    lines += [text.command("", command, width) for command in answer["next"][1:]]
    return "\n".join(lines)
