"""What the words of a command mean, and the sentence where they mean something else."""

from __future__ import annotations

from collections.abc import Callable

import pytest

Command = Callable[..., tuple[int, str, str]]


@pytest.mark.parametrize(
    ("words", "as_with"),
    [
        ([], []),
        (["help"], []),
        (["run"], ["run"]),
        (["cc", "-O2"], ["cc"]),
        (["record", "--", "./kv", "pool"], ["record"]),
    ],
)
def test_help_is_a_word_too(command: Command, words: list[str], as_with: list[str]) -> None:
    code, shown, complaints = command("help", *words)
    assert (code, complaints) == (0, "")
    assert shown == command(*as_with, "--help")[1]
    assert shown.startswith(" ".join(["usage: indelible", *as_with]))


def test_help_of_no_command_is_a_sentence(command: Command) -> None:
    code, _, complaints = command("help", "rnu")
    assert code == 2
    assert complaints.startswith("indelible: error: unknown command `rnu`; did you mean `run`?")
