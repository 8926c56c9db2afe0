"""What the recorder does not see of a program: that it is noticed, and told."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

import indelible
from conftest import HERE
from indelible import InputError
from recorded import PRELUDE, Build, memories, needs_recorder

SOURCES = HERE / "recorder"

pytestmark = needs_recorder


def test_what_was_not_built_so_is_noticed(build: Build) -> None:
    Path("other.c").write_text(
        "#include <stdint.h>\nvoid other(uint64_t *at) { at[9] = 0x010203; }\n"
    )
    subprocess.run(["cc", "-c", "other.c"], check=True)
    text = 'void other(uint64_t *at); int main(void){ uint64_t *at = map("pool", 4096); other(at);'
    build(text + " at[0] = 1; __builtin_ia32_clflush(at + 9); return 0; }", "other.o")
    with pytest.raises(InputError, match=r"3 bytes .* first at 0x10048 before program\.c:\d+"):
        indelible.record(["./program"], "a.trace")
    assert not Path("a.trace").exists()
    Path("pool").unlink()
    answer = indelible.record(["./program"], "a.trace", unseen=True)
    assert (answer["unseen"], memories(Path("a.trace"))) == (3, [Path("pool").read_bytes()])
    said = " ".join(str(answer).split())
    assert "3 bytes changed without a store that was seen" in said
    assert "did 2 stores, 1 flush, 1 fence unseen" in said


#: A library that makes what is stored durable, and a program that relies on it.
FLUSHES = 'void persist(void *at) { __asm__("clflushopt (%0); sfence" :: "r"(at) : "memory"); }'
PERSISTS = (
    "void persist(void *at); int main(void)"
    ' { uint64_t *at = map("pool", 4096); at[0] = 1; persist(at); return 0; }'
)


AR = ["cc -c other.c", "ar rcs libother.a none.o other.o"]
SHARED = ["cc -shared -fPIC -o libother.so other.c"]


@pytest.mark.parametrize(
    ("make", "words", "name"),
    [
        (["cc -c other.c"], "other.o ./other.o -Wl,--allow-multiple-definition", "other.o"),
        (AR, "libother.a", "libother.a"),
        ([AR[0], AR[1].replace("rcs", "rcsT")], "libother.a", "libother.a"),
        (AR, "-L. -lother", "libother.a"),
        (SHARED, "./libother.so", "libother.so"),
        (SHARED, "-L. -Wl,-rpath,. -lother", "libother.so"),
        (SHARED, "-L. -Wl,-rpath,. -l:libother.so", "libother.so"),
    ],
)
def test_flushes_and_fences_that_will_not_be_seen_are_told(
    build: Build, capfd: pytest.CaptureFixture[str], make: list[str], words: str, name: str
) -> None:
    Path("other.c").write_text(FLUSHES)
    Path("none.c").write_text("int none(void) { return 0; }")
    # What is there from an earlier time is no input.
    for command in ["cc -c none.c", "cc -shared -fPIC -o program other.c", *make]:
        subprocess.run(command.split(), check=True)
    Path("program.c").write_text(PRELUDE + PERSISTS)
    assert indelible.cc(["-o", "program", "program.c", "none.o", *words.split()]) == 0
    assert capfd.readouterr().err == (
        f"indelible cc: warning: {name}: not built with `indelible cc`, so flushes and fences there"
        " are not recorded (make -B builds everything again)\n"
    )
    answer = indelible.record(["./program"])
    assert (answer["stores"], answer["flushes"], answer["fences"]) == (1, 0, 0)
    (note,) = answer["notes"]
    assert "no flush and no fence was seen; those in objects that `indelible cc` has not" in note
    assert f"note        {note[:40]}" in str(answer)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (["-c", "other.c"], "other.o"),
        (["-c", "-g", "-flto", "other.c"], "other.o"),
        (["-shared", "-fPIC", "-o", "libother.so", "other.c"], "./libother.so"),
    ],
)
def test_of_flushes_and_fences_that_are_seen_nothing_is_said(
    build: Build, capfd: pytest.CaptureFixture[str], make: list[str], words: str
) -> None:
    Path("other.c").write_text(FLUSHES)
    assert indelible.cc(make) == 0
    Path("program.c").write_text(PRELUDE + PERSISTS)
    assert indelible.cc(["-o", "program", "program.c", words]) == 0
    assert capfd.readouterr().err == ""
    answer = indelible.record(["./program"])
    assert (answer["stores"], answer["flushes"], answer["fences"]) == (1, 1, 1)
    assert answer["notes"] == []


def test_libpmem_is_not_warned_of(build: Build, capfd: pytest.CaptureFixture[str]) -> None:
    Path("other.c").write_text(FLUSHES.replace("persist", "pmem_drain"))
    subprocess.run(["cc", "-shared", "-fPIC", "-o", "libpmem.so", "other.c"], check=True)
    build("int main(void) { return 0; }", "./libpmem.so")
    assert capfd.readouterr().err == ""


def test_a_warning_of_many_files_is_a_line(build: Build, capfd: pytest.CaptureFixture[str]) -> None:
    names = [f"other{number}" for number in range(7)]
    for name in names:
        Path(f"{name}.c").write_text(FLUSHES.replace("persist", name))
    subprocess.run(["cc", "-c", *(f"{name}.c" for name in names)], check=True)
    build("int main(void) { return 0; }", *(f"{name}.o" for name in names))
    assert "other3.o, other4.o and 2 more: not built with" in capfd.readouterr().err
    assert indelible.cc(["-r", "-o", "both.o", "other0.o", "other1.o"]) == 0
    assert "warning: other0.o, other1.o: not built" in capfd.readouterr().err
    Path("broken.o").write_bytes(Path("other0.o").read_bytes()[:200])
    assert indelible.cc(["-o", "program", "program.c", "broken.o"]) == 1
    assert "Traceback" not in capfd.readouterr().err


@pytest.mark.parametrize("bytes_", [4096, 4 << 20])
def test_what_was_not_seen_is_noticed_before_it_is_stored_over(build: Build, bytes_: int) -> None:
    Path("other.c").write_text("void other(unsigned long *at) { at[9] = 2; }\n")
    subprocess.run(["cc", "-c", "other.c"], check=True)
    build(
        "void other(uint64_t *at); int main(void) {"
        f' uint64_t *at = map("pool", {bytes_}); at[9] = 1; at[0] = 1; other(at); at[9] = 3; }}',
        "other.o",
    )
    with pytest.raises(InputError, match=r"1 byte .* first at 0x10048 before program\.c:\d+"):
        indelible.record(["./program"], "a.trace")
    indelible.record(["./program"], "a.trace", unseen=True)
    told = [line.split()[2] for line in Path("a.trace").read_text().splitlines() if "0048" in line]
    assert told == ["01" + "00" * 7, "02", "03" + "00" * 7]


@pytest.mark.parametrize(("fences", "bytes_", "most"), [(9, 4 << 20, 0), (2000, 1 << 20, 31)])
def test_what_was_not_seen_is_noticed_at_a_fence(
    build: Build, fences: int, bytes_: int, most: int
) -> None:
    """At the first ones, and then at so many that it costs no more than they do."""
    Path("other.c").write_text("void other(unsigned long *at) { at[9] = 2; }\n")
    subprocess.run(["cc", "-c", "other.c"], check=True)
    build(
        f"""void other(uint64_t *at); int main(void) {{
            uint64_t *at = map("pool", {bytes_});
            for (uint64_t n = 0; n <= {fences} + 100; n++) {{
                at[0] = n;
                if (n == {fences}) other(at);
                __builtin_ia32_sfence();
            }}
        }}""",
        "other.o",
    )
    indelible.record(["./program"], "a.trace", unseen=True)
    told = [line.split()[:2] for line in Path("a.trace").read_text().splitlines()]
    before = told[: told.index(["bytes", "0x10048"])]
    assert 0 <= before.count(["fence", "#"]) - fences <= most


def test_a_structure_that_is_returned_into_memory_is_noticed(build: Build) -> None:
    build(SOURCES / "constructs.c", "-O1", "-DUNSEEN")
    told = "13 bytes of persistent memory changed .* does not report can do this too$"
    with pytest.raises(InputError, match=told):
        indelible.record(["./program", "pool"], "a.trace")
