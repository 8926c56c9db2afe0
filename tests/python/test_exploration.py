"""Programs with several threads, crash-tested in many orders."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

import indelible
from conftest import HERE, LOOKS, heed_interrupts, needs_core, until
from indelible import extension, pool
from indelible.bundles import OF_THE_HOST, without
from indelible.cli import main
from indelible.verbs import explore
from recorded import PAIR, Build, needs_recorder

pytestmark = [needs_core, needs_recorder, pytest.mark.alone]

EXAMPLE = HERE.parents[1] / "examples" / "recorded" / "tickets.c"

#: Two threads of which each takes a lock that the other one has. They begin with an empty file.
EMBRACE = (
    "static pthread_mutex_t locks[2] = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER};"
    "static void both(int first, uint64_t *at) { for (int n = 0; n < 5; n++) {"
    " pthread_mutex_lock(&locks[first]); at[8 * first]++; pthread_mutex_lock(&locks[1 - first]);"
    " at[8]++; pthread_mutex_unlock(&locks[1 - first]); pthread_mutex_unlock(&locks[first]); } }"
    + PAIR.format(other="both(1, at);", main="both(0, at);")
)

#: A reader of what another thread has not written back yet, whose operation takes a while.
LONG = PAIR.format(
    other="for (int n = 1; n <= 10; n++) { __atomic_store_n(at, n, __ATOMIC_RELEASE);"
    " flush(at); fence(); }",
    main="static volatile uint64_t work; for (int n = 1; n <= 10; n++) {"
    " uint64_t seen = __atomic_load_n(at, __ATOMIC_ACQUIRE);"
    " for (int m = 0; m < 300; m++) work += m;"
    " if (seen > at[8]) { at[8] = seen; flush(at + 8); fence(); } }",
)

#: Accepts what holds in every image: that word 8 is no more than word 0.
FOLLOWS = (
    'sh -c \'set -- $(od -An -v -tu8 -w8 -N 72 "$1"); test $9 -le $1 ||'
    ' { echo "$9 is there, and $1 before it"; exit 1; }\' sh'
)

#: Two threads that each add 1 to a number four times, and may write what both have read.
LOSES = (
    "static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;"
    "static void add(uint64_t *at) { for (int n = 0; n < 4; n++) {"
    " pthread_mutex_lock(&lock); uint64_t seen = at[0]; pthread_mutex_unlock(&lock);"
    " pthread_mutex_lock(&lock); at[0] = seen + 1; pthread_mutex_unlock(&lock); } }"
    + PAIR.format(other="add(at);", main="add(at);").replace(
        "return 0;", "flush(at); fence(); at[8] = 1; flush(at + 8); fence(); return 0;"
    )
)

#: Accepts what holds when it is done: that word 0 is 8 then.
ADDS_UP = (
    'sh -c \'set -- $(od -An -v -tu8 -w8 -N 72 "$1"); test $9 = 0 || test $1 = 8 ||'
    ' { echo "lost update: $1"; exit 1; }\' sh'
)


def test_the_example_is_wrong_with_some_seeds_and_repeats(build: Build) -> None:
    build(EXAMPLE, "-O2", "-pthread", "-DTELLS_EARLY", name="tickets")
    found = indelible.explore(["./tickets", "pool"], check="./tickets --verify", seeds=20)
    assert not found.passed
    assert not found.interrupted
    assert [row["seed"] for row in found["rows"]] == [*range(1, 21)]
    assert found["orders"] > 10
    assert 0 < len(found.failed) < 10
    for row in found.failed:
        assert "is drawn, and will be again; memory has the store of line" in row["wrong"]
        assert row["failed_points"] > 0
        assert row["threads"] == 3
    left = sorted(path.name for path in Path().glob("*.trace"))
    assert left == sorted(row["trace"].removeprefix("./") for row in found.failed)
    # What it says repeats it: the same trace, and the same verdict.
    first = found.failed[0]
    trace = Path(first["trace"]).read_bytes()
    Path(first["trace"]).unlink()
    assert main(shlex.split(first["record"])[1:]) == 0
    assert Path(first["trace"]).read_bytes() == trace
    assert main(shlex.split(first["crash"])[1:]) == 1
    again = indelible.explore(["./tickets", "pool"], check="./tickets --verify", seeds=20)
    assert again == found
    text = str(found)
    assert f"FAIL {len(found.failed)}/20 seeds: {first['seed']}, " in text
    assert found["would_show"] is None
    assert f"seed {first['seed']}, in {first['trace']}" in text


def test_the_example_as_it_is_is_right(build: Build) -> None:
    build(EXAMPLE, "-O2", "-pthread", name="tickets")
    found = indelible.explore(["./tickets", "pool"], check="./tickets --verify", seed=5, seeds=15)
    assert found.passed
    assert found.failed == []
    assert [row["seed"] for row in found["rows"]] == [*range(5, 20)]
    assert not [*Path().glob("*.trace")]
    shown = " ".join(str(found).split())
    sure = "ok with every seed; an error in 19 % of such orders would have shown, 95 % sure"
    assert f"violations {sure}" in shown
    # 1 - 0.05 ** (1 / 15): fifteen orders without it leave a twentieth to chance.
    assert found["would_show"] == pytest.approx(0.181, abs=0.001)
    few = indelible.explore(
        ["./tickets", "pool"], check="./tickets --verify", seed=5, seeds=2, points=1
    )
    assert (few.passed, few["would_show"]) == (True, None), "other points may show it"


def test_what_a_whole_operation_builds_on_is_found(build: Build) -> None:
    """Between a store and its flush another thread has the time for three hundred accesses."""
    build(LONG, "-O1")
    found = indelible.explore(["./program"], check=FOLLOWS, before="rm -f pool", seeds=30)
    assert found.failed, "no seed lets a thread wait for long enough"
    assert "is there, and" in found.failed[0]["wrong"]


def test_a_race_that_shows_without_a_power_failure_is_a_finding(
    build: Build, capsys: pytest.CaptureFixture[str]
) -> None:
    build(LOSES, "-pthread", name="loses")
    asked = {"check": ADDS_UP, "before": "rm -f pool", "seeds": 10}
    found = indelible.explore(["./loses", "pool"], **asked)
    lost = found.failed
    assert 0 < len(lost) < 10
    assert all("lost update: " in row["wrong"] for row in lost)
    assert all(row["wrong"].endswith("when no power fails") for row in lost)
    assert all(Path(row["trace"]).exists() for row in lost)
    assert not any(row["accepts_all"] for row in lost)
    assert f"  seed {lost[0]['seed']}, in {lost[0]['trace']}: --check" in str(found)
    rest = [row for row in found["rows"] if row["wrong"] is None]
    assert all(row["points"] > 0 for row in rest)
    words = ["--check", ADDS_UP, "--before", "rm -f pool", "--seeds", "10", "--", "./loses", "pool"]
    assert main(["explore", *words]) == 1
    assert f"FAIL {len(lost)}/10 seeds" in capsys.readouterr().out


def test_threads_that_wait_for_each_other_are_a_finding(build: Build) -> None:
    build(EMBRACE)
    asked = {"before": "rm -f pool", "check": LOOKS, "seeds": 10, "seconds": 0.5}
    found = indelible.explore(["./program"], **asked)
    texts = {row["wrong"] for row in found.failed}
    assert texts == {"`./program` did not end within 0.5 s"}
    assert 0 < len(found.failed) < 10
    assert all(row["checked"] for row in found["rows"] if row["wrong"] is None)


def test_what_is_stopped_is_so_with_all_that_it_has_started(build: Build) -> None:
    build(EMBRACE, name="embraced")
    asked = {"before": "rm -f pool", "check": "true", "seed": 2, "seeds": 1, "seconds": 0.5}
    found = indelible.explore(["sh", "-c", "./embraced; true"], **asked)
    assert found.failed[0]["wrong"].endswith("did not end within 0.5 s")
    until(lambda: pids("embraced") == [])


def test_a_program_that_a_signal_ends_is_a_finding(build: Build) -> None:
    build(
        PAIR.format(
            other="for (int n = 0; n < 20; n++) { at[0]++; at[1]++; }",
            main="for (int n = 0; n < 20; n++) if (at[0] > at[1])"
            ' { fprintf(stderr, "seen\\nhalf of it\\n"); abort(); }',
        ),
        "-O0",
    )
    found = indelible.explore(["./program"], before="rm -f pool", check="true", seeds=40)
    wrong = {row["wrong"] for row in found.failed}
    assert len(wrong) == 1
    assert next(iter(wrong)).endswith("ended by signal 6: half of it")
    assert len(found.failed) < 40
    assert found.failed[0]["trace"] is None


@pytest.mark.parametrize("locks", [True, False])
def test_transactions_are_checked_without_a_checker(build: Build, locks: bool) -> None:
    lock, unlock = ("pthread_mutex_lock(&mutex);", "pthread_mutex_unlock(&mutex);")
    move = (
        f"for (int n = 0; n < 5; n++) {{ {lock if locks else ''} indelible_begin(); at[0] -= 1;"
        f" at[8] += 1; indelible_commit(); {unlock if locks else ''} }}"
    )
    build(
        "static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;"
        + PAIR.format(other=move, main=move)
    )
    asked = {"design": "silo", "before": "rm -f pool", "seeds": 5}
    found = indelible.explore(["./program"], **asked)
    if not locks:
        refused = [row["refused"] for row in found["rows"] if row["refused"] is not None]
        assert refused
        assert all("lock" in reason for reason in refused)
        return
    assert found.passed
    assert [row["transactions"] for row in found["rows"]] == [10] * 5


#: Appends a number to a pool, and says that it is there before it is.
APPENDS = (
    'static void persist(void *at) { __asm__("clflushopt (%0); sfence" :: "r"(at) : "memory"); }'
    'int main(void) { uint64_t *at = map("pool", 4096), n = at[0]; at[0] = n + 1; persist(at);'
    " at[8 + n] = n + 1; persist(at + 8 + n); return n == 3 ? raise(SIGKILL) : 0; }"
)

#: Accepts as many numbers as are said to be there.
APPENDED = (
    'sh -c \'set -- $(od -An -v -tu8 -w8 -N 128 "$1"); n=$1; shift 8; test $n = 0 ||'
    " { shift $((n - 1)); test $1 = $n; }' sh"
)


@pytest.mark.parametrize(
    ("before", "shown"),
    [
        ("rm -f pool", "rm -f pool && indelible record --seed 1 "),
        ("rm pool; true # gone", "sh -c 'rm pool; true # gone' && indelible record --seed 1 "),
    ],
)
def test_what_was_run_before_is_in_front_of_what_records_it_again(
    build: Build, before: str, shown: str
) -> None:
    build(APPENDS)
    found = indelible.explore(["./program"], check=APPENDED, before=before, seeds=3)
    assert [row["seed"] for row in found.failed] == [1, 2, 3]
    row = found.failed[0]
    assert row["record"].startswith(shown)
    trace = Path(row["trace"]).read_bytes()
    Path(row["trace"]).unlink()
    Path("indelible").write_text(f'#!/bin/sh\nexec {sys.executable} -m indelible "$@"\n')
    Path("indelible").chmod(0o755)
    path = os.pathsep.join([os.getcwd(), os.environ["PATH"]])
    subprocess.run(row["record"], shell=True, check=True, env=os.environ | {"PATH": path})
    assert Path(row["trace"]).read_bytes() == trace


def test_recordings_that_begin_with_what_was_left_say_so(build: Build) -> None:
    build(APPENDS.replace("raise(SIGKILL)", "0"))
    found = indelible.explore(["./program", "pool", "program.c"], check=APPENDED, seeds=2)
    assert [row["seed"] for row in found.failed] == [1, 2]
    assert (found["orders"], found["would_show"]) == (None, None)
    (note,) = found["notes"]
    assert note == (
        "each recording began with what the one before left, so orders cannot be told apart, and"
        " errors may not come from threads; `record` begins with what the last one left, so it may"
        " record something else; --before 'rm -f pool' has all begin alike"
    )
    assert f"note        {note[:60]}" in str(found)
    assert "orders      1: one thread uses persistent memory, and the recordings" in str(found)
    # What is printed does not write over what shows the error.
    row = found.failed[0]
    trace = Path(row["trace"]).read_bytes()
    assert main(shlex.split(row["record"])[1:]) == 0
    assert Path(row["trace"]).read_bytes() == trace
    assert Path("program.1.again.trace").read_bytes() != trace
    # One recording alone does not tell.
    Path("pool").unlink()
    alone = indelible.explore(["./program"], check=APPENDED, seeds=1)
    assert alone["orders"] == 1
    assert alone["notes"] == [
        "`record` begins with what the last one left, so it may record something else;"
        " --before 'rm -f POOL' has all begin alike"
    ]
    assert "--out program.1.again.trace" in alone["rows"][0]["record"]


#: A program that goes on where its pool says, and says that a number is there before it is.
RESUMES = (
    'static void persist(void *at) { __asm__("clflushopt (%0); sfence" :: "r"(at) : "memory"); }'
    'int main(void) { uint64_t *at = map("pool", 4096); if (at[0]) return 0; at[0] = 1;'
    " persist(at); at[8] = WRITTEN; persist(at + 8); return 0; }"
)


@pytest.mark.parametrize(("written", "found_with"), [("2", [1]), ("1", [])])
def test_a_seed_with_which_the_program_does_nothing_leaves_the_others(
    build: Build, capsys: pytest.CaptureFixture[str], written: str, found_with: list[int]
) -> None:
    build(RESUMES, f"-DWRITTEN={written}")
    check = FOLLOWS.replace("-le", "-le 1 -a $9 -le")
    found = indelible.explore(["./program", "pool"], check=check, seeds=3)
    assert [row["seed"] for row in found.failed] == found_with
    assert [row["idle"] for row in found["rows"]] == [False, True, True]
    assert [row["checked"] for row in found["rows"]] == [True, False, False]
    assert (found.passed, found["would_show"]) == (False, None)
    (note,) = found["notes"]
    assert note.startswith("with 2 of 3 seeds the program did nothing; each recording began ")
    assert note.endswith("; --before 'rm -f pool' has each begin anew")
    shown = " ".join(str(found).split())
    some = "ok with 1 of 3 seeds; nothing was checked with the others"
    assert f"violations {'FAIL 1/3 seeds: 1' if found_with else some}" in shown
    # Now the pool has it all from the beginning on.
    words = ["explore", "--seeds", "2", "--check", check, "--", "./program", "pool"]
    assert main(words) == 2
    told = " ".join(capsys.readouterr().out.split())
    assert "violations nothing was checked: the program did nothing note" in told
    assert "note with every seed the program did nothing; --before 'rm -f pool' has" in told
    again = indelible.explore(["./program"], check=check, seeds=1, before="true")
    assert again["notes"] == ["with every seed the program did nothing"]
    Path("pool").unlink()
    assert main(words) == (1 if found_with else 2)
    asked = {"check": check, "before": "rm -f pool", "seeds": 2}
    anew = indelible.explore(["./program", "pool"], **asked)
    assert (anew.idle, anew["notes"]) == ([], [])
    assert (anew.passed, len(anew.failed)) == (not found_with, 2 if found_with else 0)


def test_how_sure_it_is_is_said_only_of_recordings_that_begin_alike(build: Build) -> None:
    adds = "for (int n = 0; n < 5; n++) {{ at[{}]++; flush(at); fence(); }}"
    build(PAIR.format(other=adds.format(0), main=adds.format(8)), "-O0")
    asked = {"check": LOOKS, "seeds": 4}
    found = indelible.explore(["./program"], **asked)
    assert found.passed
    assert (found["orders"], found["would_show"]) == (None, None)
    assert "unknown: 2 threads use persistent memory, and the recordings began" in str(found)
    assert "--before 'rm -f POOL' has all begin alike" in " ".join(str(found).split())
    kept = indelible.explore(["./program"], **asked, before="true")
    assert (kept["orders"], kept["would_show"]) == (None, None)
    assert kept["notes"] == [
        "`true` does not have all recordings begin with the same memory, so orders cannot be told"
        " apart"
    ]
    anew = indelible.explore(["./program"], **asked, before="rm -f pool")
    assert anew["orders"] > 1
    assert anew["would_show"] is not None
    assert anew["notes"] == []
    # What accepts everything would not have shown an error.
    blind = indelible.explore(["./program"], seeds=4, check="true", before="rm -f pool")
    assert (blind.passed, blind["would_show"]) == (False, None)


def test_one_thread_has_one_order(
    build: Build, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    build('int main(void) { map("pool", 4096)[0] = 1; puts("said"); return 3; }')
    assert main(["explore", "--seeds", "2", "--json", "--", "./program"]) == 2
    out, err = capsys.readouterr()
    answer = json.loads(out)
    assert (answer["orders"], answer["cancelled"], err) == (1, False, "")
    assert [row["checked"] for row in answer["rows"]] == [False, False]
    words = ["explore", "--seeds", "2", "--out", "of", "--check"]
    assert main([*words, LOOKS, "--", "./program"]) == 0
    assert Path("of").is_dir()
    out, _ = capsys.readouterr()
    assert "orders      1: one thread uses persistent memory; seeds choose only which images" in out
    assert "exit code   3 with seeds 1, 2" in out
    assert "note        no flush and no fence was seen; " in out
    assert main([*words, "true", "--", "./program"]) == 2
    assert "the program was not checked: the checker refuses no image" in capsys.readouterr().out


def test_a_large_pool_and_many_threads_have_room(build: Build) -> None:
    build(
        "static uint64_t *at;"
        "static void *work(void *own) { at[8 * (uintptr_t)own] = 1; return NULL; }"
        'int main(void) { pthread_t threads[6]; at = map("pool", 6 << 20);'
        " for (uintptr_t n = 0; n < 6; n++) pthread_create(&threads[n], NULL, work, (void *)n);"
        " for (int n = 0; n < 6; n++) pthread_join(threads[n], NULL); return 0; }",
        "-pthread",
    )
    asked = {"check": "true", "seeds": 1, "points": 5}
    row = indelible.explore(["./program"], **asked)["rows"][0]
    assert (row["threads"], row["wrong"], row["points"]) == (6, None, 5)
    assert "--set pm.device_size=16MiB --set core.cores_max=6" in row["crash"]
    with pytest.raises(indelible.InputError, match="cores"):
        indelible.explore(["./program"], **asked, set={"core.cores_max": 5})
    # A machine that was named is as it is.
    row = indelible.explore(["./program"], **asked, machine="silo")["rows"][0]
    assert (row["wrong"], "--set" in row["crash"]) == (None, False)


@pytest.mark.parametrize(
    ("words", "error"),
    [
        ([], "`indelible explore` needs a program: indelible explore -- ./program ..."),
        (["--before", "echo no >&2; exit 4", "--", "./program"], "ended with exit code 4: no"),
        (["--out", "no/where", "--", "./program"], "there is no directory `no`; make it first"),
        (["--out", "program.c", "--", "./program"], "--out program.c: is not a folder; name one"),
        (["--out", "", "--", "./program"], "--out must name a folder; it is an empty string"),
        (["--check", "nobody", "--", "./program"], "the checker ended with exit code 127"),
        (["--", "true"], "`true` was not built with `indelible cc`"),
        (["--", "./nothing"], "./nothing: no such file or directory"),
        (["--seed", str(2**63 - 1), "--", "./program"], "`seed` is too large"),
        (["--seeds", "0", "--", "./program"], "`0` is not a whole number from 1 to 100000"),
    ],
)
def test_what_cannot_be_explored_is_said(
    build: Build, capsys: pytest.CaptureFixture[str], words: list[str], error: str
) -> None:
    build('int main(void) { map("pool", 4096)[0] = 1; return 0; }')
    assert main(["explore", *words]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert error in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["--design", "sil"], "unknown design `sil`; did you mean `silo`?"),
        (["--machine", "tyni"], "unknown machine `tyni`; did you mean `tiny`?"),
        (["--set", "pm.size=1MiB"], "unknown parameter `size` of pm"),
        (["--set", "design.entires=4"], "unknown parameter `entires` of design undo@x86"),
        (["--set", "workload.adresses=loaded"], "unknown parameter `adresses` of workload replay"),
        (["--check", " "], "`check` must name a program; it is an empty string"),
    ],
)
def test_what_no_campaign_can_be_had_of_is_said_before_anything_is_recorded(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    words: list[str],
    error: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["explore", "--before", "touch begun", *words, "--", "./program"]) == 2
    assert error in capsys.readouterr().err
    assert not Path("begun").exists()


def test_what_only_the_trace_can_say_is_left_to_it(build: Build) -> None:
    build('int main(void) { map("pool", 4096)[0] = 1; return 0; }')
    with pytest.raises(
        indelible.InputError, match=r"^program\.1\.trace, line 1: only a flush or a fence"
    ):
        indelible.explore(["./program"], seeds=1, set={"workload.leave_out": 1})


def pids(name: str) -> list[str]:
    """Return the processes of a name that are alive."""
    found = []
    for path in Path("/proc").glob("[0-9]*/status"):
        # It may be gone by now.
        with contextlib.suppress(OSError):
            told = dict(line.split(":\t", 1) for line in path.read_text().splitlines()[:3])
            found += [path.parent.name] if told["Name"] == name and told["State"][0] != "Z" else []
    return found


def test_ctrl_c_leaves_whole_seeds_and_no_program(build: Build) -> None:
    build(EMBRACE, name="embraces")
    before = "rm -f pool; echo >> begun"
    words = ["explore", "--before", before, "--check", "true", "--json", "--", "./embraces"]
    program = subprocess.Popen(
        [sys.executable, "-m", "indelible", *words],
        # So that the first seed is over when the second one begins, with which it hangs.
        env=os.environ | {pool.JOBS_VARIABLE: "1"},
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=heed_interrupts,
    )
    try:
        until(lambda: Path("begun").exists() and Path("begun").read_text() == "\n\n")
        until(lambda: pids("embraces") != [])
        asked = time.monotonic()
        # As a terminal does it: to all that were started.
        os.killpg(program.pid, signal.SIGINT)
        out, _ = program.communicate(timeout=30)
    finally:
        # What is left of it if that has failed would be found by the next test.
        program.kill()
    # The promise is one second; the rest is for a computer that is busy with other tests.
    assert time.monotonic() - asked < 3
    assert program.returncode == 130
    answer = json.loads(out)
    assert answer["cancelled"]
    assert [(row["seed"], row["wrong"]) for row in answer["rows"]] == [(1, None)]
    until(lambda: pids("embraces") == [])


def test_recordings_go_in_the_order_of_seeds_whichever_comes_first() -> None:
    turns, order = explore.Turns(5), []

    def take(number: int) -> None:
        with turns.turn(number):
            order.append(number)

    threads = [threading.Thread(target=take, args=(number,)) for number in (7, 6, 5)]
    for thread in threads:
        thread.start()
        # For this long a later one has nobody before it that has come.
        time.sleep(0.05)
    for thread in threads:
        thread.join(timeout=10)
    assert order == [5, 6, 7]


def test_a_seed_finds_what_the_one_before_it_has_left(build: Build) -> None:
    build(
        PAIR.format(
            other="",
            main="at[8]++; flush(at + 8); fence(); at[0] = at[8]; flush(at); fence();",
        )
    )
    found = indelible.explore(["./program"], check=FOLLOWS, seeds=12)
    assert len(found.failed) == 12
    for row in found["rows"]:
        assert f"{row['seed']} is there, and {row['seed'] - 1} before it" in row["wrong"]


def test_a_seed_that_is_refused_takes_nothing_from_the_others(
    build: Build, capsys: pytest.CaptureFixture[str]
) -> None:
    build('int main(void) { uint64_t *at = map("pool", 4096); *at += 1; return 0; }')
    before = "echo >> before; test $(wc -l < before) -lt 3 || (echo no room >&2; exit 4)"
    words = ["explore", "--json", "--check", "false", "--seeds", "4", "--before", before]
    assert main([*words, "--", "./program"]) == 1
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert [row["wrong"] is not None for row in rows] == [True, True, False, False]
    assert [row["refused"] for row in rows[:2]] == [None, None]
    for row in rows[2:]:
        assert row["refused"].endswith("ended with exit code 4: no room")
    assert main([*words[:1], *words[2:], "--", "./program"]) == 2
    assert "exit code 4: no room" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words",
    [
        ("record", "--seed", "2", "--no-loads", "--pool", "pool"),
        (
            *("explore", "--seeds", "2", "--seed", "3", "--seconds", "2.5", "--points", "9"),
            *("--before", "rm -f pool", "--check", LOOKS, "--set", "controller.wpq=32"),
        ),
    ],
    ids=("record", "explore"),
)
def test_the_command_of_an_answer_repeats_it(
    words: tuple[str, ...], build: Build, capfd: pytest.CaptureFixture[str]
) -> None:
    build(PAIR.format(other="at[8] = 1; flush(at + 8); fence();", main="at[0] = 1; flush(at);"))

    def answer(words: Sequence[str]) -> dict[str, object]:
        Path("pool").unlink(missing_ok=True)
        assert main([*words[:1], "--json", *words[1:]]) == 0
        return without(json.loads(capfd.readouterr().out), OF_THE_HOST)

    found = answer([*words, "--", "./program", "an argument"])
    name, *again = shlex.split(found["command"])
    assert name == "indelible"
    assert again != [*words, "--", "./program", "an argument"], "defaults are written out"
    assert answer(again) == found
    assert found["program"] == ["./program", "an argument"]
    assert found["version"] == extension.version()
