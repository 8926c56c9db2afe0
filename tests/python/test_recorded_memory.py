"""Where the recorder finds persistent memory: mappings that come, grow, move and go."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

import indelible
from indelible import InputError
from indelible.results.recording import Recorded
from recorded import Build, memories, needs_recorder, operations

pytestmark = needs_recorder


def test_a_file_is_one_memory_however_it_is_mapped(build: Build) -> None:
    build(
        """int main(void) {
            uint64_t *first = map("pool", 8192), *again;
            first[1] = 1;
            int file = open("pool", O_RDWR);
            again = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 4096);
            again[2] = 2;
            munmap(first, 4096);
            first = map("pool", 16384);
            first[1500] = first[1] + 2;
            first = mremap(first, 16384, 32768, MREMAP_MAYMOVE);
            first[1501] = 3;
            if (ftruncate(file, 30004) != 0)
                return 1;
            first[3750] = 4;
            map("an\\nother", 4096)[0] = 9;
            return 7;
        }"""
    )
    answer = indelible.record(["./program"], "a.trace")
    assert [region["bytes"] for region in answer["regions"]] == [30016, 4096]
    pool = Path("pool").read_bytes() + bytes(12)
    assert memories(Path("a.trace")) == [pool, Path("an\nother").read_bytes()]
    assert pool[30000] == 4
    assert answer["exit_code"] == 7
    # What a file has when it is mapped is there when recording begins. One can be asked for alone.
    answer = indelible.record(["./program"], "a.trace", pool="an\nother", loads=False)
    assert [region["file"] for region in answer["regions"]] == [str(Path("an\nother").resolve())]
    assert Path("a.trace").read_text().splitlines()[2].startswith("bytes 0x10000 0900")
    assert answer["loads"] == 0


def test_what_is_not_unmapped_stays_and_what_moves_does_before_its_file_is_there(
    build: Build,
) -> None:
    told = operations(
        """at[0] = 1; if (munmap((char *)at + 1, 8192) == 0) return 1; at[1] = 2;
        int file = open("empty", O_RDWR | O_CREAT, 0600);
        at = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        at = mremap(at, 4096, 1 << 20, MREMAP_MAYMOVE);
        if (ftruncate(file, 8192) != 0) return 1;
        at[600] = 3;""",
        build,
    )
    assert told == [
        "bytes 0x10000 0100000000000000",
        "bytes 0x10008 0200000000000000",
        "bytes 0x100000012c0 0300000000000000",
    ]


def test_memory_that_is_gone_is_left_alone(build: Build) -> None:
    told = operations(
        """uint64_t *given = malloc(1 << 20), *other = map("other", 4096);
        indelible_region(given, 1 << 20); given[50] = 1; free(given);
        for (int word = 0; word < 1024; word++) at[word] = word + 1;
        other[0] = 1; munmap(other, 4096);
        at[512] = 5; mprotect(at + 512, 4096, PROT_NONE); at[0] = 2;
        if (truncate("pool", 100) != 0) return 1;
        at[1] = 3; __builtin_ia32_sfence(); at[2] = 4;""",
        build,
    )
    assert told[-1] == "bytes 0x10010 0400000000000000"
    assert "bytes 0x11000 0500000000000000" in told


def test_what_can_be_written_later_is_persistent_from_then_on(build: Build) -> None:
    build(
        """int main(void) {
            map("other", 4096)[0] = 1;
            int file = open("pool", O_RDWR | O_CREAT, 0600);
            if (ftruncate(file, 16384) != 0 || pwrite(file, "there", 5, 4096) != 5) return 2;
            struct flock lock = {.l_type = F_WRLCK};
            fcntl(file, F_SETLK, &lock);
            char *at = mmap(NULL, 16384, PROT_READ, MAP_SHARED, file, 0);
            mprotect(at + 4096, 4096, PROT_READ | PROT_WRITE);
            at[4100] = 'E';
            mprotect(at, 16384, PROT_READ | PROT_WRITE);
            at[0] = 'a'; at[4101] = 's'; at[16383] = 'z';
            mprotect(at, 16384, PROT_READ);
            mprotect(at, 16384, PROT_READ | PROT_WRITE);
            at[1] = 'b';
            /* What the recorder has opened has left the program its lock. */
            int ended;
            if (fork() == 0)
                _exit(fcntl(file, F_GETLK, &lock) != 0 || lock.l_type != F_WRLCK);
            wait(&ended);
            return ended != 0;
        }"""
    )
    answer = indelible.record(["./program"], "a.trace")
    assert (answer["stores"], answer["unseen"], answer["exit_code"]) == (6, 0, 0)
    assert memories(Path("a.trace")) == [Path(name).read_bytes() for name in ("other", "pool")]


def test_files_that_grow_and_shrink(build: Build) -> None:
    told = operations(
        """at[512] = 1;
        if (truncate("pool", 4096) != 0 || truncate("pool", 8192) != 0) return 1;
        at[513] = at[512] + 2;
        FILE *more = fopen("pool", "a"); fputc(0, more); fclose(more);
        uint64_t *again = map("pool", 12288);
        again[1025] = 3;""",
        build,
        "-O1",
    )
    assert [line for line in told if line.startswith("bytes")] == [
        "bytes 0x11000 0100000000000000",
        "bytes 0x11000 " + "00" * 64,
        "bytes 0x11008 0200000000000000",
        "bytes 0x12008 0300000000000000",
    ]


@pytest.mark.parametrize("flag", ["-O1", "-D_FILE_OFFSET_BITS=64"])
@pytest.mark.parametrize("cut", ['truncate("pool", {})', 'ftruncate(open("pool", O_RDWR), {})'])
def test_a_store_comes_before_the_cut_behind_it(build: Build, flag: str, cut: str) -> None:
    told = operations(
        f"""at[25] = 7; if ({cut.format(128)} != 0) return 1;
        if ({cut.format(8192)} != 0) return 2;
        at[600] = 8; if ({cut.format(4096)} != 0) return 3;""",
        build,
        flag,
    )
    assert told == [
        "bytes 0x100c8 0700000000000000",
        "bytes 0x100c0 " + "00" * 64,
        "bytes 0x112c0 0800000000000000",
        "bytes 0x112c0 " + "00" * 64,
    ]


def test_what_is_no_pool_is_left_alone_however_often_it_is_made_writable(build: Build) -> None:
    build(
        """static int open_files(void)
        {
            int count = 0;
            for (int file = 0; file < 400; file++) count += fcntl(file, F_GETFD) >= 0;
            return count;
        }
        int main(void) {
            map("pool", 4096)[0] = 1;
            char *at = (char *)map("other", 4096);
            int before = open_files();
            for (int time = 0; time < 9; time++) {
                mprotect(at, 4096, PROT_READ);
                mprotect(at, 4096, PROT_READ | PROT_WRITE);
            }
            return open_files() - before;
        }"""
    )
    assert indelible.record(["./program"], "a.trace", pool="pool")["exit_code"] == 0


def test_parts_of_files_that_are_made_zeros(build: Build) -> None:
    told = operations(
        """
        #define KEEPS_SIZE 1
        #define PUNCHES 2
        at[1] = 1; at[511] = 2; at[512] = 3; at[520] = 4; at[1023] = 5;
        int file = open("pool", O_RDWR);
        if (fallocate(file, PUNCHES | KEEPS_SIZE, 4088, 16) != 0) return 0;
        at[520] = 6; fsync(file);
        """,
        build,
    )
    assert memories(Path("a.trace")) == [Path("pool").read_bytes()]
    # What is zeros is durable with what was stored.
    lines = [line.split()[1] for line in told if line.startswith("flush")]
    assert lines == ["0x10000", "0x10fc0", "0x11000", "0x11040", "0x11fc0"]
    zeros = next(place for place, line in enumerate(told) if line == f"bytes 0x10fc0 {'00' * 64}")
    assert told[zeros - 1] == "bytes 0x11ff8 0500000000000000"


def test_a_file_that_has_grown_unseen_is_noticed(build: Build) -> None:
    build(
        """int main(void) {
            int file = open("pool", O_RDWR | O_CREAT, 0600);
            if (ftruncate(file, 4096) != 0) return 1;
            uint64_t *at = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
            FILE *more = fopen("pool", "a");
            for (int byte = 0; byte < 4096; byte++) fputc(0, more);
            fclose(more);
            at[700] = 1;
            return 0;
        }"""
    )
    with pytest.raises(InputError, match="1 byte of persistent memory changed"):
        indelible.record(["./program"], "a.trace")


def test_files_that_follow_each_other_are_several(build: Build) -> None:
    """Systems give a new file the number of one that was removed."""
    build(
        """int main(void) {
            for (int part = 0; part < 4; part++) {
                uint64_t *at = map("log", 4096); at[part] = part + 1; munmap(at, 4096);
                close(3); unlink("log");
            }
            return 0;
        }"""
    )
    assert indelible.record(["./program"], "a.trace")["unseen"] == 0
    found = memories(Path("a.trace"))
    assert [memory.strip(b"\0") for memory in found] == [b"\1", b"\2", b"\3", b"\4"]


def test_what_goes_over_the_seam_of_mappings(build: Build) -> None:
    told = operations(
        """int file = open("pool", O_RDWR);
        mmap(at + 512, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 4096);
        memset(at + 510, 9, 32); msync(at, 8192, MS_SYNC);
        indelible_region(at, 64); indelible_region(at + 512, 64);""",
        build,
    )
    assert told == [
        "bytes 0x10ff0 " + "09" * 16,
        "bytes 0x11000 " + "09" * 16,
        "flush 0x10fc0 64",
        "flush 0x11000 64",
        "fence",
    ]


def test_what_begins_beside_a_region_and_runs_into_it(build: Build) -> None:
    told = operations(
        """char *given = aligned_alloc(64, 192); memset(given, 0, 192);
        indelible_region(given + 64, 64);
        *(uint64_t *)(given + 60) = 0x0807060504030201; memset(given + 32, 9, 128);""",
        build,
        "-O1",
    )
    assert told == ["bytes 0x10000000000 05060708", "bytes 0x10000000000 " + "09" * 64]


def test_masked_stores_past_the_caches_need_no_flush(build: Build) -> None:
    told = operations(
        """typedef char bytes __attribute__((vector_size(16)));
        bytes mask = {-1, -1, 0, 0, 0, 0, 0, 0, 0, -1}, value = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
        __builtin_ia32_maskmovdqu(value, mask, (char *)at); __builtin_ia32_sfence();""",
        build,
    )
    assert told == [
        *("bytes 0x10000 0102", "flush 0x10000 2"),
        *("bytes 0x10009 0a", "flush 0x10009 1"),
        "fence",
    ]


def test_a_sync_is_of_all_that_is_persistent_in_its_range(build: Build) -> None:
    told = operations(
        """mmap((char *)at + 4096, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
        int file = open("pool", O_RDWR);
        char *from = mmap(NULL, 16384, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        from = mmap(from + 4096, 8192, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0);
        from[4096] = 5; at[0] = 6; msync(from - 4096, 16384, MS_SYNC);""",
        build,
    )
    assert told == [
        "bytes 0x11000 05",
        "bytes 0x10000 0600000000000000",
        "flush 0x10000 64",
        "flush 0x11000 64",
        "fence",
    ]


def test_programs_that_close_what_is_not_theirs(build: Build) -> None:
    build(
        """int main(void) {
            uint64_t *at = map("pool", 4096); at[0] = 1;
            for (int file = 3; file < 1000; file++) close(file);
            for (int file = 3; file < 600; file++) open("mine", O_RDWR | O_CREAT, 0600);
            at[1] = 2; return 0;
        }"""
    )
    with pytest.raises(InputError, match="is incomplete"):
        indelible.record(["./program"], "a.trace")
    assert Path("mine").read_bytes() == b""


LIBPMEM = """
#include <stdint.h>
#include <string.h>
void pmem_persist(const void *at, size_t bytes) { (void)at, (void)bytes; }
void pmem_flush(const void *at, size_t bytes) { (void)at, (void)bytes; }
void pmem_drain(void) {}
int pmem_msync(const void *at, size_t bytes) { return at == 0 ? -1 : (int)(bytes == 9); }
int pmem_deep_drain(const void *at, size_t bytes) { return pmem_msync(at, bytes); }
void *pmem_memcpy_persist(void *to, const void *from, size_t bytes)
{
    return memcpy(to, from, bytes);
}
void *pmem_memset(void *to, int value, size_t bytes, unsigned flags)
{
    (void)flags;
    return memset(to, value, bytes);
}
"""


def test_calls_of_libpmem_are_told(build: Build) -> None:
    """As it is where it is installed: a library that `indelible cc` has not built."""
    Path("libpmem.c").write_text(LIBPMEM)
    made = ["cc", "-shared", "-fPIC", "-O1", "-o", "libpmem.so", "libpmem.c"]
    subprocess.run(made, check=True)
    heads = [line.partition("{")[0] for line in LIBPMEM.splitlines() if "pmem_" in line]
    build(
        "".join(f"{head};" for head in heads)
        + """int main(void) {
            uint64_t *at = map("pool", 32 << 20), from = 7;
            at[0] = 1; pmem_persist(at, 8);
            pmem_memcpy_persist(at + 8, &from, 8);
            pmem_memset(at + 16, 5, 8, 1); pmem_drain();
            at[24] = 2; pmem_flush(at + 24, 8); pmem_msync(at, 8);
            at[32] = 3; pmem_msync(at + 32, 9); pmem_deep_drain(at + 32, 8);
            pmem_flush(at + 1, 20 << 20);
            munmap((char *)at + 8192, 4096); pmem_flush(at + 512, 16384);
            return 0;
        }""",
        "-L.",
        "-lpmem",
        "-Wl,-rpath,.",
    )
    indelible.record(["./program"], "a.trace")
    told = [line.split()[0:3] for line in Path("a.trace").read_text().splitlines()[3:]]
    # One of more than a trace may have in one is several, of whole lines.
    assert told[-4:] == [
        *(["flush", "0x10008", "16777208"], ["flush", "0x1010000", "4194312"]),
        *(["flush", "0x11000", "4096"], ["flush", "0x13000", "8192"]),
    ]
    told = [words[:2] for words in told[:-4]]
    told = [words if words[0] == "bytes" else words[:1] for words in told if words[0] != "work"]
    assert told == [
        *(["bytes", "0x10000"], ["flush"], ["fence"]),
        *(["bytes", "0x10040"], ["flush"], ["fence"]),
        *(["bytes", "0x10080"], ["flush"], ["fence"]),
        *(["bytes", "0x100c0"], ["flush"], ["flush"], ["fence"]),
        # One that fails does nothing, and one that drains flushes nothing.
        *(["bytes", "0x10100"], ["fence"]),
    ]


#: What a program does with a file that has holes; `other` is not built with `indelible cc`.
SPARSE = """
    void other(uint64_t *at);
    int main(int count, char **words)
    {
        size_t bytes = 16ul << 30, far = (9ul << 30) / 8;
        int file = open("pool", O_RDWR | O_CREAT, 0600);
        if (ftruncate(file, bytes) != 0 || lseek(file, 100, SEEK_SET) != 100)
            return 1;
        uint64_t *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        if (lseek(file, 0, SEEK_CUR) != 100)
            return 2;
        at[1] = at[1] + 1;
        at[far] = 2;
        msync(at, bytes, MS_SYNC);
        indelible_measured();
        at[far] = 3;
        if (count > 1)
            other(at + far + far / 2);
        munmap(at, bytes);
        char line[256];
        FILE *status = fopen("/proc/self/status", "r");
        while (fgets(line, sizeof line, status) != NULL)
            if (strncmp(line, "VmHWM:", 6) == 0)
                return strtol(line + 6, NULL, 10) < 100000 ? 0 : 3;
        return 4;
    }
"""


def test_holes_of_large_files_take_neither_time_nor_memory(build: Build) -> None:
    Path("other.c").write_text("void other(unsigned long *at) { *at = 7; }\n")
    subprocess.run(["cc", "-c", "other.c"], check=True)
    build(SPARSE, "other.o")
    for before in (1, 2):
        answer = indelible.record(["./program"], "a.trace")
        assert (answer["exit_code"], answer["unseen"], answer["stores"]) == (0, 0, 1)
        told = [line.partition(" #")[0] for line in Path("a.trace").read_text().splitlines()]
        assert told[1:] == [
            f"region 0x10000 {16 << 30}",
            "bytes 0x10000 " + "00" * 8 + f"0{before}" + "00" * 55,
            "bytes 0x240010000 " + "02" + "00" * 63,
            "measured",
            "bytes 0x240010000 0300000000000000",
        ]
    with pytest.raises(InputError, match=r"1 byte .* the first at 0x360010000"):
        indelible.record(["./program", "other"], "a.trace")


def test_a_recording_says_how_long_its_trace_is_and_of_which_seed(build: Build) -> None:
    build(
        'int main(void) { int file = open("none", O_RDWR | O_CREAT, 0600);'
        " mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);"
        ' map("pool", 4096)[0] = 1; return 0; }'
    )
    answer = indelible.record(["./program"], "a.trace", seed=7)
    assert answer["seed"] == 7
    assert answer["bytes"] == Path("a.trace").stat().st_size > 0
    # A file of no bytes is no memory.
    assert [region["bytes"] for region in answer["regions"]] == [4096]


def test_what_was_not_seen_at_the_end_is_told_so(build: Build) -> None:
    Path("other.c").write_text("void other(unsigned long *at) { at[9] = 2; }\n")
    subprocess.run(["cc", "-c", "other.c"], check=True)
    build(
        'void other(uint64_t *at); int main(void) { uint64_t *at = map("pool", 4096);'
        " at[0] = 1; other(at); return 0; }",
        "other.o",
    )
    with pytest.raises(InputError, match="first at 0x10048 before the end; build what stores"):
        indelible.record(["./program"], "a.trace")


def test_the_crash_tests_machine_is_given_the_room_that_it_lacks() -> None:
    def room(*held: int, threads: int = 1) -> dict[str, str]:
        regions = [{"bytes": one} for one in held]
        return dict(Recorded({"regions": regions, "threads": threads}).room())

    memory = "pm.device_size"
    assert room(2 << 20, 2 << 20, threads=4) == {}
    assert room(2 << 20, (2 << 20) + 1) == {memory: "16MiB"}
    # Half of it is for logs.
    assert [room(size << 20)[memory] for size in (8, 9, 20)] == ["16MiB", "32MiB", "64MiB"]
    assert room(64, threads=5) == {"core.cores_max": "5"}
