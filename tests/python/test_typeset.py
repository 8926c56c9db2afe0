"""Tables as files for papers and pages: `--table` with the ending .tex or .md."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

import indelible
from indelible import typeset
from indelible.errors import InputError
from indelible.typeset import Sheet

Command = Callable[..., tuple[int, str, str]]

COMPARE = ["compare", "--designs", "native,silo", "--workloads", "hash,btree", "--cores", "1,8"]
SWEEP = [*("sweep", "--designs", "native,silo", "--workloads", "hash"), *("--vary", "cores=1,2")]

ODD = Sheet(["of a_b"], [["x_y", "a&b"], ["50 %\n†", "-"], ["{~}", "1.00"], ["[#$^]", "|"]], 1, [2])


def test_what_latex_does_not_print_is_escaped() -> None:
    written = typeset.latex([ODD], ["† a note\nof two lines"], ["indelible compare --a_b"])
    head, table, notes = written.split("\n\n")
    # Nothing is escaped in a comment, from which the command is copied.
    assert head.splitlines()[0] == "% indelible compare --a_b"
    assert notes == "% † a note\n% of two lines\n"
    assert table.splitlines() == [
        "% of a_b",
        r"\begin{tabular}{lr}",
        r"  \toprule",
        r"  x\_y                       & a\&b \\",
        r"  \midrule",
        r"  50 \% \dag{}               &   -- \\",
        r"  \midrule",
        r"  \{$\sim$\}                 & 1.00 \\",
        r"  {[}\#\$\textasciicircum{}] &  $|$ \\",
        r"  \bottomrule",
        r"\end{tabular}",
    ]


def test_what_means_something_in_markdown_is_escaped() -> None:
    written = typeset.markdown([ODD], ["† a_note"], ["indelible run '-->'"])
    assert written.split("\n\n") == [
        "<!--\nindelible run '--&gt;'\n-->",
        r"of a\_b",
        "\n".join(
            [
                r"| x\_y      | a\&b |",
                r"| --------- | ---: |",
                r"| 50 % †    |    - |",
                r"| \{\~\}    | 1.00 |",
                r"| \[\#\$^\] |   \| |",
            ]
        ),
        "- † a\\_note\n",
    ]


@pytest.mark.parametrize(
    "words", [COMPARE, [*COMPARE, "--stalls"], [*COMPARE, "--latencies"], SWEEP]
)
def test_a_table_of_latex_has_the_cells_of_the_terminal(
    command: Command, tmp_path: Path, words: list[str]
) -> None:
    file = tmp_path / "it.tex"
    code, shown, complaints = command(*words, "--table", str(file))
    assert (code, complaints) == (0, "")
    written = file.read_text(encoding="utf-8")
    cells = [
        cell.strip().replace(r"\dag{}", "†").replace("--", "-").replace(r"\textasciicircum{}", "^")
        for line in written.splitlines()
        if line.endswith(r"\\")
        for cell in line.removesuffix(r"\\").split("&")
    ]
    assert len(cells) > 5
    for cell in cells:
        assert cell in shown
    assert written.count(r"\begin{tabular}") == written.count(r"\end{tabular}") > 0
    first, version, *_ = written.splitlines()
    assert (first.startswith(f"% indelible {words[0]} "), "Indelible" in version) == (True, True)
    # Outside of comments there is nothing but ASCII, for whatever encoding a paper has.
    assert all(line.isascii() for line in written.splitlines() if not line.startswith("%"))


def test_the_command_in_a_table_makes_the_same_table(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for words in (COMPARE, [*COMPARE, "--latencies", "--seed", "3", "--no-crash"], SWEEP):
        assert command(*words, "--table", "it.tex")[0] == 0
        first = Path("it.tex").read_text(encoding="utf-8")
        Path("it.tex").unlink()
        _, _, *again = first.splitlines()[0].split()
        assert command(*again)[0] == 0
        assert Path("it.tex").read_text(encoding="utf-8") == first


def test_every_row_of_a_table_in_markdown_is_as_wide(command: Command, tmp_path: Path) -> None:
    file = tmp_path / "it.MD"
    assert command(*COMPARE, "--table", str(file))[0] == 0
    rows = [line for line in file.read_text(encoding="utf-8").splitlines() if line[:1] == "|"]
    assert {(len(row), row.count("|")) for row in rows} == {(len(rows[0]), 5)}
    first = [row.split("|")[1].strip() for row in rows if not row.startswith("| -")]
    assert first == [*("workload", "hash", "btree", "gmean", "crash test")] * 2
    assert re.fullmatch(r"\| -+ \| -+: \| -+: \| -+: \|", rows[1])


def test_another_ending_is_refused_before_a_run(
    command: Command, fake: ModuleType, tmp_path: Path
) -> None:
    for name in ("it.xlsx", "it"):
        file = tmp_path / name
        said = (
            f"indelible: error: --table {file}:"
            " the name of a table must end in one of .csv, .tex, .md\n"
        )
        assert command(*COMPARE, "--table", str(file)) == (2, "", said)
    assert fake.asked == []


def test_answers_write_their_tables(fake: ModuleType, tmp_path: Path) -> None:
    compared = indelible.compare(["native", "silo"], ["hash"], crash=False)
    swept = indelible.sweep(["silo"], ["hash"], {"cores": [1, 2]})
    compared.save_table(tmp_path / "stalls.tex", "stalls")
    swept.save_table(tmp_path / "swept.md")
    compared.save_table(tmp_path / "means.csv")
    assert "Core time" in (tmp_path / "stalls.tex").read_text(encoding="utf-8")
    assert "--vary cores=1,2" in (tmp_path / "swept.md").read_text(encoding="utf-8")
    assert (tmp_path / "means.csv").read_text(encoding="utf-8").startswith("design,cores,workload")
    with pytest.raises(
        InputError, match=r"it.txt: the name of a table must end in one of \.csv, \.tex, \.md"
    ):
        swept.save_table(tmp_path / "it.txt")
