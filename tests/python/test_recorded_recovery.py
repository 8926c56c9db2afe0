"""Power failures during the recovery of a program, by the script of docs/replay.md."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest

import indelible
from conftest import HERE, needs_core
from recorded import Build, needs_recorder

pytestmark = [needs_core, needs_recorder]

DOCUMENT = HERE.parents[1] / "docs" / "replay.md"

#: Moves 1 from one word to another with an undo log. Recovery keeps what it restores only if it is
#: built with -DKEEPS.
MOVES = """
static void flush(void *at) { __asm__ volatile("clflushopt %0" : "+m"(*(char *)at)); }
static void fence(void) { __asm__ volatile("sfence" ::: "memory"); }
static void recover(uint64_t *at)
{
    if (at[0] == 0)
        return;
    at[16] = at[1];
    at[24] = at[2];
#ifdef KEEPS
    flush(at + 16), flush(at + 24), fence();
#endif
    at[0] = 0;
    flush(at), fence();
}
int main(int count, char **words)
{
    uint64_t *at = map(words[count - 1], 4096);
    if (count == 3) {
        recover(at);
        return words[1][2] == 'v' && at[16] + at[24] != 100;
    }
    at[16] = 100;
    indelible_measured();
    at[1] = at[16], at[2] = at[24];
    flush(at), fence();
    at[0] = 1;
    flush(at), fence();
    at[16] -= 1;
    flush(at + 16);
    at[24] += 1;
    flush(at + 24), fence();
    at[0] = 0;
    flush(at), fence();
    return 0;
}
"""


@pytest.mark.parametrize("keeps", [True, False])
def test_a_recovery_is_crash_tested_as_the_document_says(
    build: Build, monkeypatch: pytest.MonkeyPatch, keeps: bool
) -> None:
    (script,) = re.findall(
        r"\n((?:    .*\n)*    # nested\.sh (?:.*\n)*?    esac\n)", DOCUMENT.read_text()
    )
    Path("nested.sh").write_text(re.sub("(?m)^    ", "", script))
    Path("indelible").write_text(f'#!/bin/sh\nexec {sys.executable} -m indelible "$@"\n')
    for name in ("nested.sh", "indelible"):
        Path(name).chmod(0o755)
    monkeypatch.setenv("PATH", os.pathsep.join([os.getcwd(), os.environ["PATH"]]))
    build(MOVES, "-O1", *(["-DKEEPS"] if keeps else []), name="mine")
    indelible.record(["./mine", "pool"], "mine.trace")
    assert indelible.crash(replay="mine.trace", check="./mine --verify").passed
    nested = indelible.crash(replay="mine.trace", check="./nested.sh", points=4)
    assert nested.passed == keeps
    texts = [violation["text"] for violation in nested.violations]
    assert all("exit code 1: at event" in text for text in texts)
