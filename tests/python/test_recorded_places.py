"""Where in the program the operations of a trace come from: the calls that led there."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

import indelible
from conftest import needs_core
from recorded import Build, needs_recorder

pytestmark = needs_recorder

#: A library of helpers as nearly all programs have it, in a file of its own.
HELPERS = """
#include <indelible.h>
#include <stdint.h>
#define CLWB(of) __asm__ volatile("clflushopt %0" : "+m"(*(char *)(of)))
#define SFENCE() __asm__ volatile("sfence" ::: "memory")
static inline void flush_line(void *at) { CLWB(at); }
static inline void flush(void *at) { flush_line(at); }
static inline void persist(void *at) { flush(at); SFENCE(); }
"""

#: Appends to a log; the last `persist` is needless.
LOG = """
#include "helpers.h"
static void append(uint64_t *at, uint64_t i)
{
    at[8 * i] = i;
    persist(at + 8 * i); // first
    at[0] = i;
    persist(at); // tail
    persist(at + 8 * i); // needless
}
int main(void)
{
    uint64_t *at = map("pool", 4096);
    for (uint64_t i = 1; i < 6; i++)
        append(at, i); // call
    return 0;
}
"""


def places(trace: str = "a.trace") -> list[tuple[str, str]]:
    """Return each measured operation of a trace with the place that it comes from."""
    told = Path(trace).read_text().partition("\nmeasured\n")[2].splitlines()
    found = (line.partition(" # ") for line in told)
    return [(words.split()[0], place) for words, _, place in found if words[:4] != "work"]


def line(text: str, file: str = "program.c") -> str:
    """Return the number of the only line of a source file with this text."""
    (found,) = [n for n, each in enumerate(Path(file).read_text().splitlines(), 1) if text in each]
    return str(found)


@pytest.mark.parametrize("flags", ["-O0", "-O2", "-O2 -fno-inline"])
def test_a_place_has_the_calls_outside_of_helpers(build: Build, flags: str) -> None:
    Path("helpers.h").write_text(HELPERS)
    build(LOG, "-I.", *flags.split())
    indelible.record(["./program"], "a.trace")
    flushed = {place for operation, place in places() if operation == "flush"}
    chain = ["void flush_line", "void flush(", "void persist"]
    if "-fno-inline" in flags:
        # A function that only writes back has no frame of its own, and so hides who called it.
        chain.remove("void flush(")
    helpers = " < :".join(line(text, "helpers.h") for text in chain)
    assert flushed == {
        f"helpers.h:{helpers} < program.c:{line(text)} < :{line('// call')}"
        for text in ("// first", "// tail", "// needless")
    }


@needs_core
def test_a_needless_persist_among_needed_ones_is_found(build: Build) -> None:
    Path("helpers.h").write_text(HELPERS)
    build(LOG, "-I.", "-O0")
    indelible.record(["./program"], "a.trace")
    # The tail may not be ahead of its record.
    check = """python3 -c '
import struct, sys
words = struct.unpack("<512Q", open(sys.argv[1], "rb").read())
sys.exit(any(words[8 * i] != i for i in range(1, words[0] + 1)))'"""
    answer = indelible.crash("undo@x86", replay="a.trace", check=check, leave_out="all")
    noticed = {
        (row["operation"], row["source"].split(" < ")[-2].rpartition(":")[2]): row["noticed"]
        for row in answer.data["left_out"]
    }
    assert len(noticed) == 6
    assert noticed["flush", line("// first")]
    assert not noticed["flush", line("// needless")]


def test_a_line_is_given_once_however_often_it_is_called_from(build: Build) -> None:
    build(
        """
        static uint64_t *at;
        static void deep(int left)
        {
            if (left == 0)
                *at += 1; // store
            else
                deep(left - 1); // again
        }
        int main(void)
        {
            at = map("pool", 4096);
            deep(3); // few
            deep(40); // many
            return 0;
        }
        """,
        "-O0",
    )
    indelible.record(["./program"], "a.trace", loads=False)
    often = f"program.c:{line('// store')} < :{line('// again')}"
    assert places() == [("bytes", f"{often} < :{line('// few')}"), ("bytes", often)]


def test_only_frames_of_the_program_are_followed(build: Build) -> None:
    """Libraries keep other things where frames would be, and coroutines have their own stacks."""
    build(
        """
        #include <pthread.h>
        #include <ucontext.h>
        static uint64_t *at;
        static ucontext_t back, there;
        static void store(void) { *at += 1; } // store
        static int compare(const void *a, const void *b)
        {
            store(); // compares
            return *(int *)a - *(int *)b;
        }
        static void coroutine(void)
        {
            store(); // coroutine
        }
        static void *thread(void *none)
        {
            store(); // thread
            return none;
        }
        static void handler(int signal)
        {
            (void)signal;
            store(); // signal
        }
        int main(void)
        {
            int pair[2] = {2, 1};
            pthread_t other;
            at = map("pool", 4096);
            qsort(pair, 2, sizeof *pair, compare);
            getcontext(&there);
            there.uc_stack.ss_sp = mmap(NULL, 1 << 16, PROT_READ | PROT_WRITE,
                                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            there.uc_stack.ss_size = 1 << 16;
            there.uc_link = &back;
            makecontext(&there, coroutine, 0);
            swapcontext(&back, &there);
            pthread_create(&other, NULL, thread, NULL);
            pthread_join(other, NULL);
            stack_t own = {.ss_sp = malloc(1 << 16), .ss_size = 1 << 16};
            sigaltstack(&own, NULL);
            struct sigaction on = {.sa_handler = handler, .sa_flags = SA_ONSTACK};
            sigaction(SIGUSR1, &on, NULL);
            raise(SIGUSR1);
            return 0;
        }
        """,
        "-O0",
        "-pthread",
    )
    indelible.record(["./program"], "a.trace", loads=False)
    stores = [place for operation, place in places() if operation == "bytes"]
    callers = ("// compares", "// coroutine", "// thread", "// signal")
    assert stores == [f"program.c:{line('// store')} < :{line(text)}" for text in callers]


def test_what_was_not_seen_is_told_with_the_call_that_it_came_before(build: Build) -> None:
    Path("helpers.h").write_text(HELPERS)
    Path("other.c").write_text("void other(long *at) { at[3] = 1; }\n")
    subprocess.run(["cc", "-c", "other.c"], check=True)
    build(
        """
        #include "helpers.h"
        void other(uint64_t *at);
        int main(void)
        {
            uint64_t *at = map("pool", 4096);
            persist(at);
            other(at);
            persist(at); // before
            return 0;
        }
        """,
        *("-O0", "-I.", "other.o"),
    )
    with pytest.raises(indelible.InputError) as refused:
        indelible.record(["./program"], "a.trace")
    assert f" < program.c:{line('// before')}; build what stores there" in str(refused.value)


@pytest.mark.parametrize("flag", ["-g0", "-s"])
def test_a_program_without_debug_information_is_told_so_once(build: Build, flag: str) -> None:
    stores = 'int main(void) { uint64_t *at = map("pool", 4096); at[0] = 1; at[9] = 2; return 0; }'
    build(stores, flag)
    answer = indelible.record(["./program"], "a.trace")
    assert places() == [("bytes", ""), ("bytes", "")]
    assert [note.partition(" (")[0] for note in answer["notes"][1:]] == [
        "program has no debug information"
    ]
    assert str(answer).count("no debug information") == 1
    explored = indelible.explore(["./program"], check="true", seeds=2)
    assert str(explored).count("no debug information") == 1
    build(stores)
    notes = indelible.record(["./program"], "a.trace")["notes"]
    assert [note for note in notes if "debug information" in note] == []
