"""Programs that are built with `indelible cc` and recorded: their traces, and what is refused."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import indelible
from conftest import HERE, needs_core
from indelible import InputError, cli
from indelible.cli import record
from indelible.recorder import shim
from indelible.verbs import cc
from recorded import PRELUDE, Build, memories, needs_recorder, operations

EXAMPLES = HERE.parents[1] / "examples"
SOURCES = HERE / "recorder"

pytestmark = needs_recorder

FLAGS = ("-O0", "-O2", "-Os", "-O3 -march=native", "-O2 -flto", "-O2 -pipe -D_FORTIFY_SOURCE=2")


@pytest.mark.parametrize("flags", [*FLAGS, "-O2 -fno-pie -no-pie -fomit-frame-pointer"])
def test_every_way_of_storing_is_seen(build: Build, flags: str) -> None:
    build(SOURCES / "constructs.c", *flags.split())
    answer = indelible.record(["./program", "pool"], "a.trace")
    assert (answer["unseen"], answer["exit_code"], answer["marks"]) == (0, 0, 1)
    assert memories(Path("a.trace")) == [Path("pool").read_bytes()]
    assert b"2.25\0" in Path("pool").read_bytes()
    assert "mark done 1   of many, 0.5" in Path("a.trace").read_text()
    assert answer["streams"] == 4
    # No locked operation is a fence, where nothing was flushed before it; and the first `clflush`
    # orders nothing, behind a store past the caches. One such store is of half a word.
    assert (answer["flushes"], answer["fences"]) == (4, 5)


def test_clang_is_a_compiler_too(build: Build) -> None:
    if shutil.which("clang") is None:
        pytest.skip("there is no clang here")
    build(SOURCES / "constructs.c", "-O2", "-march=native", with_="clang")
    assert indelible.record(["./program", "pool"], "a.trace")["unseen"] == 0
    assert memories(Path("a.trace")) == [Path("pool").read_bytes()]


def test_operations_come_in_their_order_and_say_where_they_come_from(build: Build) -> None:
    program = build(SOURCES / "order.c", "-O1")
    indelible.record(["./program"], "a.trace")
    lines = (SOURCES / "order.c").read_text().splitlines()

    def line(text: str) -> str:
        (place,) = [place for place, line in enumerate(lines, 1) if text in line]
        return f"order.c:{place}"

    def call(text: str) -> str:
        return line(text).removeprefix("order.c")

    flush, fence = line("_clflushopt(at)"), line("_sfence()")
    persist = call("persist(&pool);")
    told = Path("a.trace").read_text().splitlines()
    assert told == [
        f"# indelible record -- ./{program.name}",
        "region 0x10000 128",
        "bytes 0x10000 " + "00" * 56 + "0100000000000000",
        "measured",
        f"bytes 0x10000 0200000000000000 # {line('words[0] = 2')}",
        f"bytes 0x10028 0300000000000000 # {line('words[5] = 3')}",
        "work 2",
        f"flush 0x10000 1 # {flush} < {persist}",
        f"fence # {fence} < {persist}",
        f"load 0x10000 8 # {line('copy[1] = pool')}",
        f"bytes 0x10048 0200000000000000 # {line('copy[1] = pool')}",
        f"load 0x10000 16 # {line('memcpy')}",
        f"bytes 0x10050 02000000000000000000000000000000 # {line('memcpy')}",
        f"flush 0x10048 1 # {line('_clflush(&')}",
        f"order # {line('_clflush(&')}",
        f"bytes 0x10008 0500000000000000 # {line('fetch_add')}",
        f"begin # {line('_begin')}",
        f"bytes 0x10010 0600000000000000 # {line('words[2], 6')}",
        f"commit # {line('_commit')}",
        f"ntstore 0x10018 0x7 # {line('words[3], 7')}",
        f"mark told  {8:0300} # {line('_mark')}",
    ]


def test_loads_are_told_from_the_first_other_operation_on(build: Build) -> None:
    told = operations(
        "volatile uint64_t *v = at; (void)v[8]; v[0] = 1; (void)v[9]; v[1] = 1; (void)v[10];"
        " __builtin_ia32_sfence();",
        build,
    )
    # And before the store that precedes them.
    stored = [f"bytes {at} 0100000000000000" for at in ("0x10000", "0x10008")]
    assert told == [stored[0], "load 0x10050 8", stored[1], "fence"]


def test_a_locked_operation_is_a_fence_behind_a_flush(build: Build) -> None:
    build(
        """int main(void) {
            static int lock;
            uint64_t *at = map("pool", 4096);
            at[0] = 1;
            __sync_lock_test_and_set(&lock, 1);
            __asm__ volatile(".byte 0x66; clflush %0" : "+m"(*at));
            __sync_lock_test_and_set(&lock, 1);
            return 0;
        }"""
    )
    indelible.record(["./program"], "a.trace")
    verbs = [line.split()[0] for line in Path("a.trace").read_text().splitlines()]
    assert [verb for verb in verbs[3:] if verb != "work"] == ["bytes", "flush", "fence"]


CLFLUSHOPT = '__asm__ volatile(".byte 0x66; clflush %0" : "+m"(*(char *)(at)));'


def test_stores_are_durable_when_the_processor_says_so(build: Build) -> None:
    """Each pair is what a program does, and the operations that this is of the trace."""
    for body, told in (
        # A locked operation waits for what was written back, and then stores.
        (
            f"at[0] = 1; {CLFLUSHOPT} __atomic_exchange_n(at + 8, 2, __ATOMIC_SEQ_CST);",
            ["bytes 0x10000", "flush 0x10000 1", "fence", "bytes 0x10040"],
        ),
        (
            'at[0] = 1; __builtin_ia32_clflush(at); __asm__("" ::: "memory"); at[0] = 2;',
            ["bytes 0x10000", "flush 0x10000 1", "order", "bytes 0x10000"],
        ),
        # `clflush` orders no other line that was written back.
        (
            f"at[0] = 1; {CLFLUSHOPT} at[8] = 1; __builtin_ia32_clflush(at + 8);",
            ["bytes 0x10000", "flush 0x10000 1", "bytes 0x10040", "flush 0x10040 1"],
        ),
        # Half a word past the caches takes the other half nowhere.
        (
            "at[1] = 7; __builtin_ia32_movnti((int *)at, 5); __builtin_ia32_sfence();",
            ["bytes 0x10008", "bytes 0x10000", "flush 0x10000 4", "fence"],
        ),
        # What fails, and what says that it will be done some time, does nothing.
        (
            "at[0] = 1; at[600] = 1; msync((char *)at + 8, 8, MS_SYNC);"
            "msync(at, 4096, MS_ASYNC); msync(at + 512, 4096, MS_SYNC);",
            ["bytes 0x10000", "bytes 0x112c0", "flush 0x112c0 64", "fence"],
        ),
        (
            'at[0] = 1; int file = open("pool", O_RDWR); fsync(file); fdatasync(file);'
            "at[1] = 2; munmap(at, 8192); fsync(file);",
            [
                *("bytes 0x10000", "flush 0x10000 64", "fence", "fence"),
                # Also of what is not mapped any more.
                *("bytes 0x10008", "flush 0x10000 64", "fence"),
            ],
        ),
    ):
        shortened = [
            " ".join(line.split()[: 2 if line.startswith("bytes") else 3])
            for line in operations(body, build)
        ]
        assert shortened == told, body


def test_a_store_that_is_made_behind_one_past_the_caches_is_seen(build: Build) -> None:
    """The compiler moves it there, and has told of it before."""
    body = (
        "*((uint16_t *)at + 5) ^= 0x3b3c; __builtin_ia32_movnti((int *)at + 200, 85);"
        " __builtin_ia32_movnti((int *)at + 300, 86);"
    )
    told = operations(body, build, "-O2")
    assert memories(Path("a.trace")) == [Path("pool").read_bytes()]
    assert [line for line in told if line.startswith("bytes 0x1000a")][-1].endswith(" 3c3b")


def test_registers_are_kept_also_the_first_time(build: Build) -> None:
    build(
        """int main(void) {
            uint64_t first, second;
            __asm__ volatile("movq $1, %%r10; movq $2, %%r11; sfence;"
                             "movq %%r10, %0; movq %%r11, %1"
                             : "=&r"(first), "=&r"(second) : : "r10", "r11");
            return first != 1 || second != 2;
        }"""
    )
    assert subprocess.call(["./program"]) == 0


@pytest.mark.parametrize("compiler", ["g++", "clang++"])
def test_programs_in_cpp(build: Build, compiler: str) -> None:
    if shutil.which(compiler) is None:
        pytest.skip(f"there is no {compiler} here")
    text = """
    #include <algorithm>
    #include <array>
    #include <atomic>
    #include <new>
    #include <indelible.h>
    struct base { long first = 1; virtual ~base() {} virtual long sum() { return first; } };
    struct other : base { std::array<unsigned char, 200> row; other() { row.fill(7); }
                          long sum() override { return first + row[199]; } };
    alignas(64) static unsigned char pool[4096];
    int main() {
        indelible_region(pool, sizeof pool);
        auto *made = new (pool) other;
        std::fill_n(pool + 512, 333, 5);
        std::copy_n(pool + 512, 100, pool + 1024);
        new (pool + 2048) std::atomic<long>(3);
        try { if (made->sum() == 8) throw 1; } catch (int) { pool[3000] = 9; }
        made->first = 0x123;
    }
    """
    Path("a.cc").write_text(text)
    for flags in ("-O0", "-O2", "-O3 -march=native"):
        assert indelible.cc([*flags.split(), "-o", "program", "a.cc"], compiler) == 0
        answer = indelible.record(["./program"], "a.trace")
        (memory,) = memories(Path("a.trace"))
        assert answer["unseen"] == 0
        assert (memory[512 : 512 + 334], memory[1024:1125]) == (
            b"\5" * 333 + b"\0",
            b"\5" * 100 + b"\0",
        )
        assert (memory[2048], memory[3000], memory[8:10]) == (3, 9, b"\x23\x01")


@pytest.mark.parametrize(
    ("body", "refusal"),
    [
        ("return 0;", r"^no persistent memory: .* of indelible\.h$"),
        ("return 3;", r"^no persistent memory: .* of indelible\.h; it ended with exit code 3$"),
        ('map("pool", 4096)[0] = 1; raise(SIGKILL);', "ended by signal 9$"),
        # Also behind the end of main, where the C library writes what is left.
        (
            "cookie_io_functions_t ends = {.write = (void *)abort};"
            'map("pool", 4096)[0] = 1; fputc(1, fopencookie(NULL, "w", ends)); return 0;',
            "ended by signal 6$",
        ),
        ('map("pool", 4096)[0] = 1; execlp("true", "true", NULL);', "such as by exec$"),
        (
            'uint64_t *at = map("pool", 4096);'
            "for (int file = 3; file < 1024; file++) close(file); at[0] = 1;",
            "or the program closed all files that were open$",
        ),
        (
            'static uint64_t *at; at = map("pool", 4096); pthread_t other;'
            "for (int n = 0; n < 65; n++)"
            "    pthread_create(&other, NULL, (void *(*)(void *))store, at),"
            "    pthread_join(other, NULL);",
            "more than 64 threads use it",
        ),
        (
            'for (int part = 0; part < 300; part++) map("pool", 4096); indelible_measured();',
            "256 mappings",
        ),
        ('for (uint64_t *at = map("pool", 1 << 20), n = 0; n < 99999; n++) at[n] = 1;', "--most"),
    ],
)
def test_what_cannot_be_recorded_is_refused(build: Build, body: str, refusal: str) -> None:
    build(f"void *store(uint64_t *at) {{ at[1] = 2; return 0; }} int main(void) {{ {body} }}")
    with pytest.raises(InputError, match=refusal):
        indelible.record(["./program"], "a.trace", most=1 << 20)
    assert not Path("a.trace").exists()


def test_a_program_that_another_version_has_built_is_to_be_built_again(build: Build) -> None:
    build('int main(void) { map("pool", 4096)[0] = 1; return 0; }')
    older = "stores 1\nregion 65536 4096 pool\n"
    asked = ["sh", "-c", f"./program; printf '{older}' > $INDELIBLE_RECORD/status"]
    with pytest.raises(InputError, match="another version of `indelible cc`; build it again"):
        indelible.record(asked, "a.trace")


def test_what_is_recorded_has_the_most_that_was_said(build: Build) -> None:
    build(
        'int main(void) { for (uint64_t *at = map("pool", 4096), n = 0; n < 50; n++) at[n] = n; }'
    )
    assert indelible.record(["./program"], "a.trace", most=4096)["stores"] == 50
    with pytest.raises(InputError, match="does not fit in 1,024 bytes"):
        indelible.record(["./program"], "a.trace", most=1024)


def test_assembly_that_is_not_understood_is_refused(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    source = tmp_path / "a.c"
    source.write_text("int main(void) { return 0; }")
    assert indelible.cc(["-masm=intel", "-c", "-o", str(tmp_path / "a.o"), str(source)]) != 0
    assert "Intel's syntax is not understood" in capfd.readouterr().err


def test_the_linkers_arguments_may_be_in_a_file(build: Build) -> None:
    """The recorder is in the place of the thread sanitizer's library then, too."""
    build('int main(void) { map("pool", 4096)[0] = 1; return 0; }', "-c", name="an 'odd\\one.o")
    Path("words").write_text('-o program "an \'odd\\\\one.o"\n')
    assert indelible.cc(["@words"]) == 0
    assert b"libtsan" not in Path("program").read_bytes()
    assert indelible.record(["./program"])["stores"] == 1


def test_programs_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"true` was not built with `indelible cc`"):
        indelible.record(["true"], tmp_path / "a.trace")
    with pytest.raises(InputError, match="no such file"):
        indelible.record([str(tmp_path / "nothing")], tmp_path / "a.trace")
    with pytest.raises(InputError, match=r"^\.: is a directory$"):
        indelible.record(["."], tmp_path / "a.trace")
    with pytest.raises(InputError, match="no `nothing` on this computer"):
        indelible.cc(["a.c"], "nothing")


@pytest.mark.parametrize("flag", ["-fsanitize=undefined,address", "-static", "-static-pie"])
def test_what_the_recorder_does_not_go_with_is_refused(flag: str) -> None:
    with pytest.raises(InputError, match=f"does not work with {flag}; leave it out"):
        indelible.cc(["-O2", flag, "-o", "a", "a.c"])


def test_a_program_that_wants_no_sanitizer_is_recorded(build: Build) -> None:
    build('int main(void) { map("pool", 4096)[0] = 1; return 0; }', "-fno-sanitize=all")
    assert indelible.record(["./program"], "a.trace")["unseen"] == 0


def test_a_full_disk_is_told_with_the_trace(build: Build) -> None:
    build('int main(void) { map("pool", 4096)[0] = 1; return 0; }')
    with pytest.raises(InputError, match=r"^/dev/full: no space left on device$"):
        indelible.record(["./program"], "/dev/full")


@pytest.mark.parametrize("leave", ["return", "exit", "_exit", "quick_exit"])
def test_children_are_not_recorded_and_every_exit_is_one(build: Build, leave: str) -> None:
    build(
        """int main(void) {
            uint64_t *at = map("pool", 4096);
            if (fork() == 0) { at[7] = 0; exit(0); }
            wait(NULL); at[7] = 0;
            if (vfork() == 0) _exit(0);
            at[0] = 1; EXIT(0);
        }""",
        f"-DEXIT={leave}",
    )
    answer = indelible.record(["./program"], "a.trace")
    assert (answer["stores"], answer["unseen"]) == (2, 0)


def test_that_a_child_may_have_stored_is_said(build: Build) -> None:
    build(
        """int main(void) {
            uint64_t *at = map("pool", 4096);
            at[0] = 1;
            if (fork() == 0) { at[7] = 2; _exit(0); }
            wait(NULL);
        }"""
    )
    with pytest.raises(
        InputError,
        match=r"at 0x10038 .* the program forked, and what a child stores is not recorded$",
    ):
        indelible.record(["./program"], "a.trace")


def test_of_two_programs_none_is_recorded(build: Build) -> None:
    build('int main(void) { map("pool", 4096)[0] = 1; return 0; }')
    with pytest.raises(InputError, match="several programs"):
        indelible.record(["sh", "-c", "./program; ./program"], "a.trace")
    assert indelible.record(["sh", "-c", "./program; true \n"], "a.trace")["stores"] == 1
    assert Path("a.trace").read_text().startswith("# indelible record -- sh")


def test_two_runs_write_the_same_trace(build: Build) -> None:
    build(
        """int main(void) {
            uint64_t *at = map("pool", 4096); at[0] = (uint64_t)at; at[1] = (uint64_t)malloc(9);
            msync(at, 4096, MS_SYNC); at[0] = at[1] = 0; return 0;
        }"""
    )
    indelible.record(["./program"], "a.trace")
    indelible.record(["./program"], "b.trace")
    assert Path("a.trace").read_text() == Path("b.trace").read_text()
    # Of a page that is written back there are the lines that were stored to.
    assert Path("a.trace").read_text().count("flush 0x10000 64") == 1
    assert Path("a.trace").read_text().count("flush") == 1


@needs_core
def test_a_program_of_ones_own_is_crash_tested(build: Build) -> None:
    example = EXAMPLES / "recorded" / "kv.c"
    for flags, holds in (((), True), (("-DLINKS_FIRST",), False)):
        build(example, "-O2", *flags, name="kv")
        indelible.record(["./kv", "pool"], "kv.trace")
        assert subprocess.call(["./kv", "--verify", "pool"]) == 0
        answer = crash("--points", "100")
        assert (answer["violations"] == []) == holds
    text = answer["violations"][0]["text"]
    assert "kv.c:" in text
    assert re.search(r"kv\.c:\d+ < :\d+", text)


def crash(*words: str) -> dict[str, object]:
    """Return the answer of the command, of a process of its own."""
    asked = ["crash", "--design", "undo@x86", "--replay", "kv.trace", "--check", "./kv --verify"]
    made = subprocess.run(
        [sys.executable, "-m", "indelible", *asked, "--json", *words],
        env={"PYTHONPATH": str(HERE.parents[1] / "python"), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )
    return json.loads(made.stdout)


def test_the_commands(build: Build, capfd: pytest.CaptureFixture[str]) -> None:
    """What `cc` and `record` say, and what they pass on."""
    Path("a.c").write_text(
        PRELUDE + 'int main(void) { map("pool", 4096)[0] = 1; puts("mine"); return 3; }'
    )
    assert cli.main(["cc", "-O1", "-o", "a", "a.c"]) == 0
    for with_ in (["--with", "cc"], ["--with=cc"]):
        assert cli.main(["cc", *with_, "-c", "nothing.c"]) == 1
        assert "nothing.c" in capfd.readouterr().err
    assert cli.main(["record", "--json", "--", "./a"]) == 0
    out, err = capfd.readouterr()
    assert (json.loads(out)["stores"], err) == (1, "mine\n")
    assert cli.main(["record", "--out", "b.trace", "./a"]) == 0
    out, _ = capfd.readouterr()
    assert out.startswith("mine\n")
    assert "exit code   3" in out
    assert memories(Path("a.trace")) == memories(Path("b.trace"))
    Path("a.trace").unlink()
    assert indelible.record(["./a"])["trace"] == "a.trace"
    assert memories(Path("a.trace")) == memories(Path("b.trace"))
    for words, refusal in (
        (["record"], "needs a program"),
        (["record", "--most", "3", "./a"], "no size such as 64MiB"),
        (["record", "--out", "none/b", "./a"], "--out none/b"),
        (["record", "--out", "", "./a"], "--out must name a file; it is an empty string"),
        (["cc", "--with"], "must name a compiler"),
        (["cc", "--with", "", "a.c"], "must name a compiler"),
        (["cc", "--with=", "a.c"], "must name a compiler"),
        (["cc", "--with=nobody", "a.c"], "there is no `nobody` on this computer"),
    ):
        assert cli.main(words) == 2
        assert refusal in capfd.readouterr().err
    assert [*map(record._bytes, ("7B", "3KiB", "2MiB", "1GiB"))] == [7, 3072, 2 << 20, 1 << 30]
    assert cli.main(["cc"]) == 0
    assert "make -B CC='indelible cc'" in capfd.readouterr().out


def test_a_cache_that_cannot_be_written_is_a_sentence(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", "file")
    said = "the recorder cannot be stored in file/indelible: not a directory; set XDG_CACHE_HOME"
    with pytest.raises(InputError, match=said):
        indelible.cc(["-c", "nothing.c"])


def test_data_is_left_as_it_is(build: Build) -> None:
    """Also what looks like the prefix of an instruction: 102 is that of `clflushopt`."""
    data = ["a:", "\t.byte 102", "\t.byte 102", "b:", "\t.byte\t102", "c: .byte 102", "d:"]
    assert shim.instrument("\n".join(data)).split() == " ".join(data).split()
    build(
        """struct row { unsigned char first, second, third; short fourth; };
        struct row row = {102, 102, 102, 0x0102};
        unsigned char before = 102, behind = 5;
        int main(void) {
            return row.first + row.second + row.third != 306 || row.fourth != 0x0102 ||
                   before != 102 || behind != 5;
        }""",
        "-O1",
    )
    assert subprocess.call(["./program"]) == 0


@pytest.mark.parametrize("unit", ["recorder.c", "origins.c", "hooks.c"])
def test_what_thunks_reach_calls_no_library(tmp_path: Path, unit: str) -> None:
    """The program's vector registers are live there, and a library may use them."""
    if shutil.which("gcc") is None:
        pytest.skip("there is no gcc here")
    made = str(tmp_path / "unit.o")
    how = [*cc.HOW, *cc.GCC_HOW, "-mgeneral-regs-only"]
    subprocess.run(["gcc", *how, "-c", "-o", made, str(cc.SOURCES / unit)], check=True)
    asked = subprocess.run(["nm", "-u", made], capture_output=True, text=True, check=True)
    names = {line.split()[-1] for line in asked.stdout.splitlines()} - {"_GLOBAL_OFFSET_TABLE_"}
    own = set(re.findall(r"\w+", (cc.SOURCES / "inner.h").read_text()))
    # That hooks call libraries shows that calls are found.
    assert (names <= own) == (unit != "hooks.c"), names - own


def test_assembly_is_found_wherever_it_is(build: Build, tmp_path: Path) -> None:
    Path("odd.asm").write_text('\t.text\n\t.globl odd\nodd:\tsfence\n\tret\n# "\u00e4"\n')
    for words in (["-x", "assembler", "odd.asm"], ["-x", "assembler", "-pipe", "odd.asm"]):
        assert indelible.cc(["-c", "-o", "odd.o", *words]) == 0
        told = subprocess.run(["nm", "-u", "odd.o"], capture_output=True, text=True, check=True)
        assert "indelible_fence" in told.stdout


def test_statements_of_assembly() -> None:
    """What is put in front of instructions, one for each form."""
    plain = {
        "clwb (%rax)": "indelible_flush (%rax)",
        "clflushopt 8(%rdi,%rcx,4)": "indelible_flush 8(%rdi,%rcx,4)",
        "clflush x(%rip)": "indelible_flush_in_order x(%rip)",
        "sfence": "indelible_fence",
        "lfence": None,
        "movntiq %rax, (%rdx)": "indelible_stream8 (%rdx)",
        "vmovntdq %zmm0, 64(%rdx)": "indelible_stream64 64(%rdx)",
        "movntsd %xmm0, (%rdx)": "indelible_stream8 (%rdx)",
        "movntss %xmm0, (%rdx)": "indelible_stream4 (%rdx)",
        "movntq %mm0, (%rdx)": "indelible_stream8 (%rdx)",
        "movdir64b (%rsi), %rdi": "indelible_stream64 (%rdi)",
        "vmovdqu8 %zmm0, (%rdi){%k1}": "indelible_mask64 (%rdi)",
        "vmovdqu8 (%rdi), %zmm0{%k1}": None,
        "maskmovdqu %xmm1, %xmm0": "indelible_mask_stream16 (%rdi)",
        "movq %rax, (%rdi)": None,
        "lock orq $0, (%rsp)": "indelible_lock8 (%rsp)",
    }
    assembly = {
        "movq %rax, (%rdi)": "indelible_store8 (%rdi)",
        "movb $1, (%rdi)": "indelible_store1 (%rdi)",
        "movq (%rdi), %rax": None,
        "vmovups %ymm3, (%rdi)": "indelible_store32 (%rdi)",
        "movsd %xmm0, (%rdi)": "indelible_store8 (%rdi)",
        "lock cmpxchgl %ecx, (%rdi)": "indelible_lock4 (%rdi)",
        "lock cmpxchg16b (%rdi)": "indelible_lock16 (%rdi)",
        "lock btsq %rax, (%rdi)": "indelible_lock8 (%rdi)",
        "xchgw %ax, (%rdi)": "indelible_lock2 (%rdi)",
        "rep stosq": "indelible_string8 (%rdi)",
        "cmpq %rax, (%rdi)": None,
    }
    for statements, in_assembly in ((plain, False), (assembly, True)):
        for statement, call in statements.items():
            assert shim.call_for(statement, in_assembly, False) == call, statement
    assert shim.call_for("vmovups %zmm0, (%rdi)", False, True) == "indelible_store64 (%rdi)"
    assert shim.call_for("vmovhps %xmm0, (%rdi)", False, False) == "indelible_half8 (%rdi)"
    assert shim.inserted("indelible_flush 8(%rsp)")[3] == "\tleaq 144+8(%rsp), %rdi"
    # A prefix stays in front of its instruction, behind the call.
    made = shim.instrument("#APP\n\tlock; incl (%rax)\n\t.byte 0x66; xsaveopt (%rax)\n#NO_APP\n")
    words = [line.strip() for line in made.splitlines()]
    assert words.index("lock") + 1 == words.index("incl (%rax)")
    assert words.index(".byte 0x66") + 1 == words.index("xsaveopt (%rax)")
    assert "call *indelible_lock4@GOTPCREL(%rip)" in words
    assert "call *indelible_flush@GOTPCREL(%rip)" in words
    # What is in comments is no instruction, and there are none in texts.
    made = shim.instrument(
        "#APP\n\t// sfence; sfence\n\tsfence /* it; waits\n sfence */; clwb (%rax)\n"
        '\tsfence; .string "/*" # /*\n\t.string "*/"\n#NO_APP\n'
    )
    assert made.count("call *indelible_fence@") == 2
    assert made.count("call *indelible_flush@") == 1
    assert made.count('.string "/*"') == made.count('.string "*/"') == 1
