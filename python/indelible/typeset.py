"""Tables as text for a paper or a page: LaTeX and Markdown."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

from indelible.errors import InputError

CSV, LATEX, MARKDOWN = SUFFIXES = (".csv", ".tex", ".md")

#: The folder of streams, as a shell names them; a path there without an ending gets CSV.
DEVICES = "/dev/"

#: The letters that LaTeX would not print as they are, also in its old encoding of fonts (OT1).
IN_LATEX = str.maketrans(
    {
        "\\": r"\textbackslash{}",
        "~": r"$\sim$",
        "^": r"\textasciicircum{}",
        **{letter: f"\\{letter}" for letter in "&%$#_{}"},
        **{letter: f"${letter}$" for letter in "<>|"},
        '"': "''",
        # After the end of a row, `[` and `*` are arguments of `\\`.
        "[": "{[}",
        "*": "{*}",
        "†": r"\dag{}",
        "‡": r"\ddag{}",
        "±": r"$\pm$",
        "·": r"$\cdot$",
    }
)

#: The letters with a meaning in Markdown, or on GitHub (strike-through, formulas).
IN_MARKDOWN = str.maketrans({letter: f"\\{letter}" for letter in "\\`*_{}[]<>|~$#&!"})

#: An empty cell, and the same in LaTeX.
NOTHING, DASH = "-", "--"

#: The hint that names the package of the rules.
NEEDS = r"The preamble needs \usepackage{booktabs}."


@dataclass(frozen=True)
class Sheet:
    """A table to be typeset: its title, and rows of cells; the first row has the heads."""

    title: Sequence[str]
    rows: Sequence[Sequence[str]]
    #: The number of leading columns that have words and are aligned to the left.
    words: int
    #: The rows with a rule before them, beside the rule below the heads.
    ruled: Iterable[int] = ()


def check(path: str | PathLike[str], flag: str = "") -> None:
    """Refuse a path to which no table can be saved."""
    if suffix_of(path) not in SUFFIXES:
        place = f"{flag} {path}".lstrip()
        raise InputError(f"{place}: the name of a table must end in one of {', '.join(SUFFIXES)}")


def suffix_of(path: str | PathLike[str]) -> str:
    """Return the ending that decides the format."""
    suffix = Path(path).suffix.lower()
    return CSV if not suffix and str(path).startswith(DEVICES) else suffix


def latex(sheets: Iterable[Sheet], notes: Sequence[str], made: Sequence[str]) -> str:
    """Return a `tabular` for each sheet; titles and notes are in comments."""
    parts = [_comments([*made, NEEDS])]
    for sheet in sheets:
        rows = [[_in_latex(cell) for cell in row] for row in sheet.rows]
        head, *body = _aligned(rows, sheet.words)
        ruled = {*sheet.ruled}
        lines = [rf"\begin{{tabular}}{{{_columns(sheet)}}}", r"  \toprule"]
        lines += [f"  {' & '.join(head)} \\\\", r"  \midrule"]
        for index, row in enumerate(body, start=1):
            lines += [r"  \midrule"] if index in ruled else []
            lines.append(f"  {' & '.join(row)} \\\\")
        lines += [r"  \bottomrule", r"\end{tabular}"]
        parts.append("\n".join([_comments(sheet.title), *lines]))
    return "\n\n".join([*parts, *([_comments(notes)] if notes else [])]) + "\n"


def markdown(sheets: Iterable[Sheet], notes: Sequence[str], made: Sequence[str]) -> str:
    """Return a table of GitHub's Markdown for each sheet, and the notes below them."""
    said = "\n".join(made).replace("-->", "--&gt;")
    parts = [f"<!--\n{said}\n-->"]
    for sheet in sheets:
        rows = [[_in_markdown(cell) for cell in row] for row in sheet.rows]
        rows.insert(1, [])
        widths = [max(3, *map(len, column)) for column in zip(*rows[:1], *rows[2:], strict=True)]
        dashes = ("-" * width for width in widths)
        rows[1] = [d if i < sheet.words else f"{d[1:]}:" for i, d in enumerate(dashes)]
        lines = [f"| {' | '.join(row)} |" for row in _aligned(rows, sheet.words)]
        title = "\\\n".join(map(_in_markdown, sheet.title))
        parts.append("\n".join([title, "", *lines]))
    listed = "\n".join(f"- {_in_markdown(note)}" for note in notes)
    return "\n\n".join([*parts, *([listed] if notes else [])]) + "\n"


#: The functions that typeset tables, by the ending of the file.
WRITERS: Mapping[str, Callable[[Iterable[Sheet], Sequence[str], Sequence[str]], str]] = {
    LATEX: latex,
    MARKDOWN: markdown,
}


def _columns(sheet: Sheet) -> str:
    return "l" * sheet.words + "r" * (len(sheet.rows[0]) - sheet.words)


def _comments(lines: Iterable[str]) -> str:
    """Return comments of LaTeX; a line with line breaks in it becomes several comments."""
    return "\n".join(f"% {part}" for line in lines for part in line.splitlines())


def _in_latex(cell: str) -> str:
    return DASH if cell == NOTHING else " ".join(cell.split()).translate(IN_LATEX)


def _in_markdown(cell: str) -> str:
    return " ".join(cell.split()).translate(IN_MARKDOWN)


def _aligned(rows: Sequence[Sequence[str]], words: int) -> list[list[str]]:
    """Return rows padded so that their columns are also aligned in the source text."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        [
            cell.ljust(width) if index < words else cell.rjust(width)
            for index, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        for row in rows
    ]
