"""The commands that documents and helps show are understood as they stand there."""

from __future__ import annotations

import inspect
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

import indelible
from indelible.cli import parser

ROOT = Path(__file__).parents[2]
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]

#: What stands for something else: `indelible COMMAND --help`, `--set pm.log_size=...`.
PLACEHOLDER = re.compile(r"\.\.\.|(?<![\w-])[A-Z]{2,}(?![\w-])")

#: How many commands documents show at least: of what is not found nothing is asked.
LEAST = {
    "README.md": 15,
    "commands.md": 40,
    "CONTRIBUTING.md": 8,
    "tutorial.md": 15,
    "design.md": 12,
    "replay.md": 5,
}


def commands_of(text: str) -> Iterator[list[str]]:
    """Return the words of each command in indented lines, which may go on behind a backslash.

    In the rows of a table a command stands between backticks.
    """
    joined = re.sub(r"\\\n\s*", "", text)
    for line in joined.splitlines():
        # Behind a prompt, as the tutorial has it, or a label, as answers do.
        label = r"(?:\$ |(?:repeat|timeline|crash test|see one) +)?"
        pattern = rf"^(?: {{4}}|  ){label}((?:\S*/)?indelible .*)"
        found = re.findall(r"`(indelible [^`]*)`" if line.startswith("|") else pattern, line)
        for part in (part for command in found for part in command.split("&&")):
            # What a shell does with the output is no part of the command.
            words = shlex.split(part.partition(" > ")[0], comments=True)
            if Path(words[0]).name == "indelible" and not PLACEHOLDER.search(" ".join(words)):
                yield words[1:]


def understood(words: list[str]) -> bool:
    """Return whether the command takes these words; that names exist is asked elsewhere."""
    try:
        parser.parse(words)
    except SystemExit as end:
        # After --help and --version.
        return end.code == 0
    return True


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_command_of_a_document_is_understood(document: Path) -> None:
    found = [*commands_of(document.read_text(encoding="utf-8"))]
    assert len(found) >= LEAST.get(document.name, 0)
    assert [words for words in found if not understood(words)] == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_what_a_document_imports_is_there(document: Path) -> None:
    imports = r"from (indelible[\w.]*) import (\w+(?:, \w+)*)"
    for home, names in re.findall(imports, document.read_text(encoding="utf-8")):
        for name in names.split(", "):
            # A name may be that of a submodule, which nothing need have imported before.
            module = __import__(home, fromlist=[name])
            assert hasattr(module, name), f"from {home} import {name}"


@pytest.mark.parametrize("word", ["dask", "keep"])
def test_documents_name_what_runs_on_a_cluster_or_keeps_its_runs(word: str) -> None:
    calls = {name: getattr(indelible, name) for name in parser.COMMANDS if hasattr(indelible, name)}
    taking = {
        name
        for name, call in calls.items()
        if callable(call) and word in inspect.signature(call).parameters
    }
    said = {
        "dask": r"cluster do the runs\. (.*?) take `--dask`",
        "keep": r"\*\*`--keep FOLDER`\*\* stores (.*?) unless it has",
    }
    text = "".join(document.read_text(encoding="utf-8") for document in DOCUMENTS)
    (sentence,) = re.findall(said[word], text, re.DOTALL)
    assert {*re.findall(r"`(\w+)`", sentence)} == taking


def test_the_readme_shows_the_main_commands() -> None:
    shown = {words[0] for words in commands_of(DOCUMENTS[0].read_text(encoding="utf-8"))}
    assert {"run", "compare", "sweep", "crash", "reproduce", "litmus", "trace", "new"} <= shown


def test_every_example_of_a_help_is_understood(capsys: pytest.CaptureFixture[str]) -> None:
    count = 0
    for name in ("", *parser.COMMANDS):
        assert understood([*([name] if name else []), "--help"])
        for words in commands_of(capsys.readouterr().out):
            assert understood(words), words
            count += 1
    assert count > 50
