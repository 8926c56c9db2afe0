"""What the words of a command mean, and the sentence where they mean something else."""

from __future__ import annotations

import argparse
from collections.abc import Callable

import pytest

from indelible.cli import parser

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


@pytest.mark.parametrize(
    ("words", "several"),
    [
        (["run", "--design", "silo,lad", "--workload", "hash"], "designs silo,lad"),
        (["run", "--design", "silo", "--workload", "hash,btree"], "workloads hash,btree"),
        (["crash", "--design", "all", "--workload", "hash"], "designs all"),
        (["trace", "--design", "silo", "--workload", "hash,btree"], "workloads hash,btree"),
        (["explore", "--design", "silo,lad", "--", "./kv"], "designs silo,lad"),
    ],
)
def test_several_where_one_is_taken_name_compare(
    command: Command, words: list[str], several: str
) -> None:
    code, _, complaints = command(*words)
    assert code == 2
    assert f"; `indelible compare --{several}` runs several; " in complaints


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["run"], "--txs N transactions per core (2,000) --set SECTION.FIELD=VALUE override"),
        (["run"], "the workload; implied by --sql, --ycsb or --replay"),
        (["compare"], "with this many seeds, from --seed on; shows means and how certain they are"),
        (["compare"], "`-` prints them instead of the table"),
        (["trace"], "end at the power cut that `crash` without --check calls event N, and begin"),
        (
            ["litmus"],
            "the name of some hardware; the value then applies to it alone, such as hops.entries=1",
        ),
        (["run"], "such as controller.wpq=128; may be repeated"),
        (["run"], "the value then applies to it alone, such as silo.entries=64"),
        (["bundle"], "The commands are run, compare, why,"),
    ],
)
def test_help_says_what_an_option_does(command: Command, words: list[str], said: str) -> None:
    shown = command(*words, "--help")[1]
    assert said in " ".join(shown.split())


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["crash", "--without", "a", "--without", "b"], "--without is given twice; keep one"),
        (["crash", "--mutants", "--design", "silo", "--mutants", "b"], "--mutants is given twice"),
        (["run", "--seed", "1", "--seed=2"], "--seed is given twice"),
        (["run", "--seed", "1", "--seed", "1"], "--seed is given twice"),
        (["explain", "silo", "--machine", "tiny", "--machine", "silo"], "--machine is given twice"),
        (["explore", "--check", "a", "--check", "b", "--", "./kv"], "--check is given twice"),
        (
            ["compare", "--designs", "silo", "--designs", "lad"],
            "--designs is given twice; give all its values after one",
        ),
    ],
)
def test_an_option_with_a_value_is_given_once(
    command: Command, words: list[str], said: str
) -> None:
    code, shown, complaints = command(*words)
    assert (code, shown) == (2, "")
    assert said in complaints


def test_a_word_of_the_program_may_be_one_of_ours(command: Command) -> None:
    words = ["explore", "--seed", "1", "--seeds", "2", "--", "./kv", "--seed", "2", "--seed", "3"]
    assert parser.parse(words).program == words[5:]


@pytest.mark.parametrize("name", parser.COMMANDS)
def test_each_option_with_a_value_is_for_once_or_may_be_repeated(name: str) -> None:
    options = parser.Parser()
    parser.module_of(name).add_options(options)
    for action in options._actions:
        if action.option_strings and action.nargs != 0:
            kinds = (parser._Once, argparse._AppendAction)
            assert isinstance(action, kinds), f"the last {action.option_strings} would win"
