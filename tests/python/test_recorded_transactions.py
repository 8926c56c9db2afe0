"""Transactions that a recorded program tells of, and those that a trace cannot have."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

import indelible
from indelible import InputError
from recorded import Build, memories, needs_recorder, operations

pytestmark = needs_recorder


def refused(body: str, build: Build) -> str:
    """Return why a program is not recorded, with its lines as letters from the first one on."""
    build(f'int main(void) {{ volatile uint64_t *at = map("pool", 8192);\n{body}\nreturn 0; }}')
    with pytest.raises(InputError) as error:
        indelible.record(["./program"], "a.trace")
    assert not Path("a.trace").exists()
    Path("pool").unlink()
    lines = Path("program.c").read_text().splitlines()
    first = lines.index(body.splitlines()[0]) + 1
    return re.sub(
        r"program\.c:(\d+)", lambda at: chr(ord("A") + int(at[1]) - first), str(error.value)
    )


def test_an_aborted_transaction_is_put_back_before_it_ends(build: Build) -> None:
    told = operations(
        """at[0] = 1; at[9] = 9;
        indelible_begin(); at[0] = 2; *(volatile char *)(at + 1) = 7; at[0] = 3;
        at[0] = 1; *(volatile char *)(at + 1) = 0; indelible_abort();
        indelible_begin(); at[9] = 8; indelible_commit();""".replace(
            "at[", "((volatile uint64_t *)at)["
        ),
        build,
    )
    assert [line for line in told if not line.startswith("bytes")] == [
        "begin",
        "abort",
        "begin",
        "commit",
    ]
    assert memories(Path("a.trace")) == [Path("pool").read_bytes()]


def test_what_an_aborted_transaction_leaves_is_refused(build: Build) -> None:
    told = refused(
        "indelible_begin(); at[1] = 1;\nat[2] = 2;\nat[1] = 0;\nindelible_abort();", build
    )
    assert told.startswith("indelible_abort() at D: 0x10010 no longer holds what it held")
    assert "since the store of B." in told
    # What it held when it began, and not what another transaction has left.
    body = "indelible_begin(); at[1] = 1;\nindelible_commit(); indelible_begin();\nat[1] = 0;\n"
    assert "0x10008" in refused(body + "indelible_abort();", build)
    # Of more stores than there is room for at first.
    body = "indelible_begin(); for (int n = 0; n < 5000; n++) at[n % 1000] = n;\n"
    put_back = "for (int n = 0; n < 999; n++) at[n] = 0;\nindelible_abort();"
    assert "at D: 0x11f38 no longer holds" in refused(body + "\n" + put_back, build)


def test_what_puts_back_need_not_be_seen(build: Build) -> None:
    Path("other.c").write_text("void other(unsigned long *at) { at[1] = 0; }\n")

    subprocess.run(["cc", "-c", "other.c"], check=True)
    build(
        'void other(uint64_t *at); int main(void) { uint64_t *at = map("pool", 4096);'
        " indelible_begin(); at[1] = 1; __builtin_ia32_clflush(at + 8); other(at);"
        " indelible_abort(); }",
        "other.o",
    )
    indelible.record(["./program"], "a.trace", unseen=True)
    verbs = [line.split()[0] for line in Path("a.trace").read_text().splitlines()]
    assert [verb for verb in verbs[3:] if verb != "work"] == [
        *("begin", "bytes", "flush", "order", "bytes", "abort")
    ]


@pytest.mark.parametrize(
    ("body", "refusal"),
    [
        (
            "indelible_begin();\nat[0] = 1; indelible_begin();\nindelible_commit();",
            "indelible_begin() at B is within the transaction that begins at A:",
        ),
        ("at[0] = 1;\nindelible_commit();", "indelible_commit() at B ends a transaction, and none"),
        ("at[0] = 1;\nindelible_abort();", "indelible_abort() at B ends a transaction, and none"),
        ("at[0] = 1;\nindelible_begin();", "the transaction that begins at B does not end:"),
        ("indelible_begin();\nexit(0);", "the transaction that begins at A does not end:"),
        (
            "indelible_begin();\nat[0] = 1; indelible_measured();\nindelible_commit();",
            "indelible_measured() at B is within the transaction that begins at A",
        ),
    ],
)
def test_transactions_that_a_trace_cannot_have(build: Build, body: str, refusal: str) -> None:
    assert refused(body, build).startswith(refusal)


@pytest.mark.parametrize("end", ["return 0;", "pthread_exit(0);"])
def test_a_transaction_ends_on_its_thread(build: Build, end: str) -> None:
    build(
        "void *other(void *at) { *(uint64_t *)at = 1; indelible_begin();"
        f" {end} }} int main(void) {{ pthread_t thread;"
        ' pthread_create(&thread, NULL, other, map("pool", 4096)); pthread_join(thread, NULL);'
        " indelible_begin(); indelible_commit(); }"
    )
    with pytest.raises(InputError, match=r"begins at program\.c:\d+ does not end"):
        indelible.record(["./program"], "a.trace")


def test_nothing_is_suggested_where_nothing_was_stored(build: Build) -> None:
    build('int main(void) { map("pool", 4096); indelible_begin(); indelible_commit(); }')
    told = str(indelible.record(["./program"], "a.trace"))
    assert "none: the program stored nothing to persistent memory" in told
    assert "indelible crash" not in told
