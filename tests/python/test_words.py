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
