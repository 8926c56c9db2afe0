"""Tests that the JSON of every answer of runs says what was asked, and how to have it again."""

from __future__ import annotations

import json
import shlex
from itertools import pairwise

import pytest

from indelible import cli, extension
from indelible.bundles import OF_THE_HOST, without

SMALL = ("--workloads", "hash", "--txs", "20")
SET = ("--set", "controller.write_buffer_size=8")

#: The commands, and whether what they answer depends on more than their words.
COMMANDS = {
    "run": ("run", "--design", "silo", "--workload", "hash", "--txs", "20", *SET),
    "crash": (*("crash", "--design", "silo", "--workload", "hash"), "--points", "9", *SET),
    "smallest": (
        *("crash", "--design", "silo", "--workload", "scribble", "--without", "undo_newest_first"),
        *("--txs", "60", "--smallest", *SET),
    ),
    "trace": (*("trace", "--design", "silo", "--workload", "hash", "--for", "100ns"), *SET),
    "litmus": ("litmus", "--order", "hops", *SET),
    "characterize": ("characterize", *SMALL, *SET),
    "battery": ("battery", "--designs", "silo", "--cores", "4", *SET),
    "probe": ("probe", "--only", "persist", *SET),
    "compare": ("compare", "--designs", "undo@x86,silo", *SMALL, "--no-crash", *SET),
    "writes": ("compare", "--designs", "native,silo", *SMALL, "--no-crash", "--writes", *SET),
    "latencies": ("compare", "--designs", "silo", *SMALL, "--cores", "1,2", "--latencies", *SET),
    "sweep": ("sweep", "--designs", "silo", *SMALL, "--vary", "cores=1,2", "--exact", *SET),
    "seeds": ("sweep", "--designs", "silo", *SMALL, "--vary", "silo.entries=4,20", *SET),
    "why": ("why", "--designs", "silo", *SMALL, "--fields", "pm.tWRITE", "--by", "3", *SET),
    "reproduce": (
        *("reproduce", "ssp", "--txs", "20", "--vary", "pm.tWRITE=50ns,100ns", *SET),
        # Workloads as large as the paper's take a minute to fill.
        *("--set", "workload.items=200"),
    ),
}


@pytest.mark.parametrize("words", COMMANDS.values(), ids=COMMANDS)
def test_the_command_of_an_answer_repeats_it(
    words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    found = _answer(words, capsys)
    asked = [word for option, word in pairwise(words) if option == "--set"]
    assert found["settings"] == dict(word.split("=") for word in asked)
    assert found["version"] == extension.version()
    name, *again = shlex.split(found["command"])
    assert (name, again[0]) == ("indelible", words[0])
    assert without(_answer(again, capsys), OF_THE_HOST) == without(found, OF_THE_HOST)


def _answer(words: tuple[str, ...] | list[str], capsys: pytest.CaptureFixture[str]) -> dict:
    assert cli.main([*words, "--json"]) in (0, 1)
    return json.loads(capsys.readouterr().out)
