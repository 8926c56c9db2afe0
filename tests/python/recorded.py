"""What tests of the recorder share: small programs, and what is in their traces."""

from __future__ import annotations

import platform
from collections.abc import Callable
from pathlib import Path

import pytest

import indelible

Build = Callable[..., Path]

needs_recorder = pytest.mark.skipif(
    platform.system() != "Linux" or platform.machine() != "x86_64",
    reason="programs can be recorded only on Linux on x86-64",
)

#: What the small programs below begin with: a pool that is a file.
PRELUDE = """
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <indelible.h>
static uint64_t *map(const char *name, size_t bytes)
{
    int file = open(name, O_RDWR | O_CREAT, 0600);
    if (ftruncate(file, bytes) != 0)
        abort();
    return mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
}
"""

#: Two threads that each do something with a pool `at`, one from the beginning and one named.
PAIR = """
    static uint64_t *at;
    static uint64_t said;
    static void flush(void *to) {{ __asm__ volatile("clflushopt %0" : "+m"(*(char *)to)); }}
    static void fence(void) {{ __asm__ volatile("sfence" ::: "memory"); }}
    static void *other(void *none) {{ {other} return none; }}
    int main(void)
    {{
        pthread_t thread;
        at = map("pool", 4096);
        pthread_create(&thread, NULL, other, NULL);
        {main}
        pthread_join(thread, NULL);
        return 0;
    }}
"""


def memories(trace: Path) -> list[bytes]:
    """Return what a trace leaves in each of its regions."""
    starts: dict[int, bytearray] = {}
    for line in trace.read_text().splitlines():
        words = line.partition("#")[0].split()
        if words[:1] == ["region"]:
            starts[int(words[1], 16)] = bytearray(int(words[2]))
        elif words[:1] in (["bytes"], ["ntstore"]):
            at = int(words[1], 16)
            start = max(start for start in starts if start <= at)
            stored = (
                bytes.fromhex(words[2])
                if words[0] == "bytes"
                else int(words[2], 16).to_bytes(8, "little")
            )
            starts[start][at - start : at - start + len(stored)] = stored
    return [bytes(memory) for memory in starts.values()]


def operations(body: str, build: Build, *flags: str) -> list[str]:
    """Return what a program does with a pool `at`, without its work and where it comes from."""
    build(f'int main(void) {{ uint64_t *at = map("pool", 8192); {body} return 0; }}', *flags)
    indelible.record(["./program"], "a.trace")
    told = [line.partition(" #")[0] for line in Path("a.trace").read_text().splitlines()]
    return [line for line in told[told.index("measured") + 1 :] if not line.startswith("work")]
