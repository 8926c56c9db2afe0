"""Programs with several threads: they are recorded in an order that a seed chooses."""

from __future__ import annotations

import faulthandler
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

import indelible
from conftest import HERE, needs_core
from recorded import PAIR, Build, memories, needs_recorder, operations

SOURCES = HERE / "recorder"

pytestmark = [needs_recorder, pytest.mark.alone]


@pytest.fixture(autouse=True)
def ends_in_time() -> Iterator[None]:
    """End the tests where a program waits for ever."""
    faulthandler.dump_traceback_later(120, exit=True)
    yield
    faulthandler.cancel_dump_traceback_later()


#: The one tells the other in volatile memory that it has stored.
TELL = "__atomic_store_n(&said, 1, __ATOMIC_RELEASE);"
HEAR = "while (!__atomic_load_n(&said, __ATOMIC_ACQUIRE));"


def traced(seed: int = 1) -> list[str]:
    """Return the operations of the program that was built, without its work and its loads."""
    indelible.record(["./program"], "a.trace", seed=seed, loads=False)
    lines = [line.partition(" #")[0] for line in Path("a.trace").read_text().splitlines()[1:]]
    return [line for line in lines if not line.startswith(("work", "region"))]


@pytest.mark.parametrize("flags", ["-O0", "-O2", "-O3 -march=native"])
def test_every_way_of_waiting_is_known(build: Build, flags: str) -> None:
    build(SOURCES / "threads.c", *flags.split(), "-pthread")
    for seed in range(1, 5):
        answer = indelible.record(["./program"], "a.trace", seed=seed)
        assert (answer["threads"], answer["exit_code"], answer["unseen"]) == (18, 0, 0)
        assert memories(Path("a.trace")) == [Path("pool").read_bytes()]


def test_clangs_programs_wait_so_too(build: Build) -> None:
    if shutil.which("clang") is None:
        pytest.skip("there is no clang here")
    build(SOURCES / "threads.c", "-O2", "-pthread", with_="clang")
    assert indelible.record(["./program"], "a.trace")["exit_code"] == 0
    assert memories(Path("a.trace")) == [Path("pool").read_bytes()]


@pytest.mark.parametrize("others", [0, 2])
def test_locks_lie_in_persistent_memory(build: Build, others: int) -> None:
    """As in the nodes of many an index: what the C library stores to them is seen."""
    build(
        """
        #include <semaphore.h>
        struct pool {
            pthread_mutex_t mutex; pthread_rwlock_t both; pthread_spinlock_t spin; sem_t left;
            pthread_cond_t change; pthread_barrier_t meeting; pthread_once_t once; uint64_t value;
        };
        static int begun;
        static void begin(void) { begun++; }
        static void *work(void *of)
        {
            struct pool *pool = of;
            pthread_barrier_wait(&pool->meeting);
            pthread_once(&pool->once, begin);
            struct timespec late = {.tv_sec = 1L << 33};
            sem_timedwait(&pool->left, &late); pool->value++; sem_post(&pool->left);
            pthread_mutex_timedlock(&pool->mutex, &late); pool->value++;
            pthread_mutex_unlock(&pool->mutex);
            pthread_rwlock_clockrdlock(&pool->both, CLOCK_MONOTONIC, &late);
            pthread_rwlock_unlock(&pool->both);
            for (int time = 0; time < 5; time++) {
                pthread_mutex_lock(&pool->mutex); pool->value++;
                pthread_cond_signal(&pool->change); pthread_mutex_unlock(&pool->mutex);
                pthread_rwlock_wrlock(&pool->both); pool->value++;
                pthread_rwlock_unlock(&pool->both);
                if (pthread_rwlock_tryrdlock(&pool->both) == 0)
                    pthread_rwlock_unlock(&pool->both);
                pthread_spin_lock(&pool->spin); pool->value++; pthread_spin_unlock(&pool->spin);
                sem_wait(&pool->left); pool->value++; sem_post(&pool->left);
                __builtin_ia32_clflush(&pool->value);
            }
            return NULL;
        }
        int main(int count, char **words)
        {
            int others = atoi(words[1]);
            struct pool *pool = (struct pool *)map("pool", 4096);
            pthread_mutex_init(&pool->mutex, NULL);
            pthread_rwlock_init(&pool->both, NULL);
            pthread_spin_init(&pool->spin, 0);
            sem_init(&pool->left, 0, 1);
            pthread_cond_init(&pool->change, NULL);
            pthread_barrier_init(&pool->meeting, NULL, others + 1);
            pthread_t threads[2];
            for (int other = 0; other < others; other++)
                pthread_create(threads + other, NULL, work, pool);
            work(pool);
            for (int other = 0; other < others; other++)
                pthread_join(threads[other], NULL);
            pthread_mutex_lock(&pool->mutex);
            return begun != 1 || pool->value != (others + 1) * 22;
        }
        """,
        "-pthread",
    )
    answer = indelible.record(["./program", str(others)], "a.trace")
    assert (answer["exit_code"], answer["unseen"]) == (0, 0)
    assert memories(Path("a.trace")) == [Path("pool").read_bytes()]


def test_threads_that_nobody_saw_begin_or_wait_have_turns(build: Build) -> None:
    """The C library calls no function that could be seen for threads of C11."""
    build(
        "#include <threads.h>\n"
        "static mtx_t mutex; static cnd_t begin; static int has_begun; static uint64_t *at;"
        "static int work(void *none) { (void)none; mtx_lock(&mutex);"
        " while (!has_begun) cnd_wait(&begin, &mutex);"
        " mtx_unlock(&mutex);"
        " for (int n = 0; n < 50; n++) { mtx_lock(&mutex); at[0]++; mtx_unlock(&mutex); }"
        " return 3; }"
        "int main(void) { thrd_t threads[4]; int each, sum = 0;"
        ' at = map("pool", 4096); mtx_init(&mutex, mtx_plain); cnd_init(&begin);'
        " for (int n = 0; n < 4; n++) thrd_create(&threads[n], work, NULL);"
        " mtx_lock(&mutex); has_begun = 1; cnd_broadcast(&begin); mtx_unlock(&mutex);"
        " for (int n = 0; n < 4; n++) thrd_join(threads[n], &each), sum += each;"
        " return at[0] != 200 || sum != 12; }",
        "-pthread",
    )
    answer = indelible.record(["./program"], "a.trace")
    assert (answer["exit_code"], answer["threads"]) == (0, 5)
    assert memories(Path("a.trace")) == [Path("pool").read_bytes()]


def test_who_waits_for_a_condition_can_be_cancelled(build: Build) -> None:
    build(
        "static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;"
        "static pthread_cond_t never = PTHREAD_COND_INITIALIZER;"
        "static uint64_t *at;"
        "static void unlock(void *none) { (void)none; at[1] = 1; pthread_mutex_unlock(&mutex); }"
        "static void *work(void *none) { pthread_mutex_lock(&mutex);"
        " pthread_cleanup_push(unlock, NULL); at[0] = 1;"
        " for (;;) pthread_cond_wait(&never, &mutex);"
        " pthread_cleanup_pop(1); return none; }"
        "int main(void) { pthread_t thread; void *left;"
        ' at = map("pool", 4096); pthread_create(&thread, NULL, work, NULL);'
        " while (__atomic_load_n(&at[0], __ATOMIC_RELAXED) == 0);"
        " pthread_mutex_lock(&mutex); pthread_mutex_unlock(&mutex);"
        " pthread_cancel(thread); pthread_join(thread, &left);"
        " return left != PTHREAD_CANCELED || at[1] != 1; }",
        "-pthread",
    )
    assert indelible.record(["./program"], "a.trace")["exit_code"] == 0


#: Programs of which each would wait for ever, or end otherwise, if threads were not what they are
#: without a recorder: two threads, what is before them, whether all is well beside them and at the
#: end.
KEPT = {
    "a barrier is made anew while others leave it": (
        "static pthread_barrier_t barrier, other;"
        "static void *work(void *none) { for (int n = 0; n < 20; n++) {"
        " if (pthread_barrier_wait(&barrier) == PTHREAD_BARRIER_SERIAL_THREAD) {"
        " at[0]++; pthread_barrier_destroy(&barrier); pthread_barrier_init(&barrier, NULL, 2); }"
        " pthread_barrier_wait(&other); } return none; }",
        "pthread_barrier_init(&barrier, NULL, 2); pthread_barrier_init(&other, NULL, 2);",
        "1",
        "at[0] == 20",
    ),
    "a destructor of a thread stores and takes a lock": (
        "static pthread_key_t key; static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;"
        "static void last(void *own) { pthread_mutex_lock(&mutex); at[0]++;"
        " pthread_mutex_unlock(&mutex); free(own); }"
        "static void *work(void *none) { if (none == NULL) pthread_key_create(&key, last);"
        " pthread_setspecific(key, malloc(8)); return none; }",
        "work(NULL);",
        "1",
        "at[0] == 2",
    ),
    "a handler of a signal is what others wait for": (
        "static volatile sig_atomic_t said; static pthread_cond_t never = PTHREAD_COND_INITIALIZER;"
        "static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; static pthread_t first;"
        "static void handle(int number) { said = number; }"
        "static void *work(void *none) { usleep(5000); pthread_kill(first, SIGUSR1);"
        " while (!said); pthread_mutex_lock(&mutex); at[0] = 1; pthread_cond_signal(&never);"
        " pthread_mutex_unlock(&mutex); return none; }",
        "first = pthread_self(); signal(SIGUSR1, handle);",
        "pthread_mutex_lock(&mutex) == 0 && waited(&never, &mutex)",
        "1",
    ),
    "a lock is asked for in a loop": (
        "static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;"
        "static void *work(void *none) { for (int n = 0; n < 50; n++) {"
        " while (pthread_mutex_trylock(&mutex) != 0);"
        " at[0]++; pthread_mutex_unlock(&mutex); } return none; }",
        "",
        "1",
        "at[0] == 100",
    ),
    "a lock that a thread has already is refused": (
        "static int tried; static pthread_mutex_t mutex = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;"
        "static void *work(void *none)"
        "{ while (!__atomic_load_n(&tried, __ATOMIC_ACQUIRE)); return none; }",
        "",
        "pthread_mutex_lock(&mutex) == 0 && (at[0] = pthread_mutex_lock(&mutex)) == EDEADLK"
        " && __atomic_exchange_n(&tried, 1, __ATOMIC_RELEASE) == 0",
        "1",
    ),
}


@pytest.mark.parametrize("name", KEPT)
def test_threads_are_what_they_are_without_a_recorder(build: Build, name: str) -> None:
    work, begins, beside, ends = KEPT[name]
    build(
        "#include <errno.h>\nstatic volatile uint64_t *at;"
        f"{work}"
        "__attribute__((unused)) static int waited(pthread_cond_t *of, pthread_mutex_t *mutex)"
        "{ while (at[0] == 0) pthread_cond_wait(of, mutex);"
        " return pthread_mutex_unlock(mutex) == 0; }"
        'int main(void) { pthread_t threads[2]; at = map("pool", 4096);'
        f" {begins} for (int n = 0; n < 2; n++)"
        " pthread_create(&threads[n], NULL, work, &threads[n]);"
        f" int is_well = {beside};"
        " for (int n = 0; n < 2; n++) pthread_join(threads[n], NULL);"
        f" return !(is_well && {ends}); }}",
        "-D_GNU_SOURCE",
        "-pthread",
    )
    for seed in range(1, 4):
        Path("pool").unlink(missing_ok=True)
        assert indelible.record(["./program"], "a.trace", seed=seed)["exit_code"] == 0
        assert memories(Path("a.trace")) == [Path("pool").read_bytes()]


def test_main_may_end_before_its_threads(build: Build) -> None:
    build(
        "static uint64_t *at;"
        "static void *work(void *none) { for (int n = 0; n < 40; n++) at[0]++; return none; }"
        'int main(void) { pthread_t thread; at = map("pool", 4096);'
        " pthread_create(&thread, NULL, work, NULL); at[8] = 1; pthread_exit(NULL); }",
        "-pthread",
    )
    for seed in range(1, 6):
        assert indelible.record(["./program"], "a.trace", seed=seed)["exit_code"] == 0
        assert memories(Path("a.trace")) == [Path("pool").read_bytes()]


def test_pointers_are_the_same_with_the_same_seed(build: Build) -> None:
    """Memory and stacks that the C library gives a thread are those of one that has ended."""
    build(
        "static uint64_t *at; static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;"
        "static void *work(void *none) { uint64_t local; for (int n = 0; n < 3; n++) {"
        " pthread_mutex_lock(&mutex); at[1 + at[0]++] = (uintptr_t)malloc(50);"
        " at[1 + at[0]++] = (uintptr_t)&local; pthread_mutex_unlock(&mutex); } return none; }"
        'int main(void) { pthread_t thread; at = map("pool", 8192);'
        " for (int n = 0; n < 30; n++) {"
        " pthread_create(&thread, NULL, work, NULL); pthread_detach(thread);"
        " for (int wait = 0; wait < 60; wait++) at[500]++; }"
        " while (__atomic_load_n(&at[0], __ATOMIC_RELAXED) < 180); return 0; }",
        "-pthread",
    )
    traces = set()
    for _ in range(6):
        Path("pool").unlink(missing_ok=True)
        indelible.record(["./program"], "a.trace")
        traces.add(Path("a.trace").read_bytes())
    assert len(traces) == 1


def test_threads_of_cpp_are_recorded_in_the_same_order_each_time(build: Build) -> None:
    if shutil.which("g++") is None:
        pytest.skip("there is no g++ here")
    build(SOURCES / "threads.cpp", "-std=c++20", "-O2", "-pthread", with_="g++")

    def trace(seed: int) -> bytes:
        assert indelible.record(["./program"], "a.trace", seed=seed)["exit_code"] == 0
        assert memories(Path("a.trace")) == [Path("pool").read_bytes()]
        return Path("a.trace").read_bytes()

    first = trace(1)
    assert trace(1) == first
    assert len({first, trace(2), trace(3)}) == 3


def test_what_a_thread_does_is_its_own(build: Build) -> None:
    """A fence is of the thread that makes it, and so is what a locked operation waits for."""
    build(
        PAIR.format(
            other=f"at[0] = 1; flush(at); {TELL} while (said == 1); fence();",
            main=f"{HEAR} fence(); __sync_fetch_and_add(&at[8], 1); fence(); said = 2;",
        )
    )
    assert traced() == [
        "interleaved",
        "measured",
        "bytes 0x10000 0100000000000000",
        "flush 0x10000 1",
        "thread 1",
        "bytes 0x10040 0100000000000000",
        "fence",
        "thread 0",
        "fence",
    ]


def test_what_a_thread_syncs_is_durable_whoever_wrote_it_back(build: Build) -> None:
    """Another one has waited for neither its flush nor its store past the caches."""
    past = "__builtin_ia32_movnti64((long long *)at + 8, 1);"
    build(
        PAIR.format(
            other=f"at[0] = 1; flush(at); {past} {TELL}",
            main=f"{HEAR} msync(at, 4096, MS_SYNC); msync(at, 4096, MS_SYNC);",
        )
    )
    assert traced()[2:] == [
        "bytes 0x10000 0100000000000000",
        "flush 0x10000 1",
        "ntstore 0x10040 0x1",
        "thread 1",
        "flush 0x10000 64",
        "flush 0x10040 64",
        "fence",
        "fence",
    ]


def test_copies_of_structures_are_not_told_before_they_are_made(build: Build) -> None:
    """The compiler tells of the store, and then of the load: the turn is not over in between."""
    build(
        "struct five { uint64_t words[5]; };"
        "static void copy(struct five *to) { static struct five from;"
        " for (int n = 0; n < 40; n++) { from.words[2] = n; to[n % 8] = from; } }"
        + PAIR.format(other="copy((void *)at);", main="copy((void *)(at + 64));")
    )
    for seed in range(1, 9):
        traced(seed)
        assert memories(Path("a.trace")) == [Path("pool").read_bytes()]


def test_one_thread_that_uses_the_memory_is_as_if_there_was_no_other(build: Build) -> None:
    body = 'pthread_t other; pthread_create(&other, NULL, (void *(*)(void *))puts, (void *)"a");'
    stored = operations(f"{body} at[0] = 1; pthread_join(other, NULL); at[1] = 2;", build)
    assert stored == ["bytes 0x10000 0100000000000000", "bytes 0x10008 0200000000000000"]


def test_updates_that_get_lost_are_lost_with_one_seed_and_not_with_another(build: Build) -> None:
    """Threads meet anywhere between two accesses, so a race shows without any luck."""
    adds = "for (int n = 0; n < 20; n++) at[0] = at[0] + 1;"
    build(PAIR.format(other=adds, main=adds), "-O0")

    def left(seed: int) -> int:
        traced(seed)
        return int.from_bytes(Path("pool").read_bytes()[:8], "little")

    counts = []
    for seed in range(1, 21):
        Path("pool").unlink(missing_ok=True)
        counts.append(left(seed))
    assert len(set(counts)) > 3, counts
    assert max(counts) == 40, counts


def test_turns_are_short_with_some_seeds_and_long_with_others(build: Build) -> None:
    """What a whole operation of another thread builds on needs one, what meets twice the other."""
    some = "for (int n = 0; n < 2000; n++) at[{}] = n;"
    build(PAIR.format(other=some.format(1), main=some.format(8)))
    turns = [traced(seed).count("thread 1") for seed in range(1, 21)]
    assert min(turns) <= 2, turns
    assert max(turns) > 200, turns


def test_a_thread_that_waits_for_input_lets_others_go_on(build: Build) -> None:
    build(
        "static int ends[2]; static uint64_t *at;"
        "static void *other(void *none)"
        "{ char byte; if (read(ends[0], &byte, 1) == 1) at[8] = byte; return none; }"
        'int main(void) { pthread_t thread; at = map("pool", 4096);'
        " if (pipe(ends) != 0) abort();"
        " pthread_create(&thread, NULL, other, NULL);"
        " for (int n = 0; n < 500; n++) at[0] = n;"
        " usleep(20000); at[1] = 1;"
        ' if (write(ends[1], "x", 1) != 1) abort();'
        " pthread_join(thread, NULL); return 0; }"
    )
    told = traced()
    assert told[-1] == "bytes 0x10040 7800000000000000"
    assert told.count("bytes 0x10008 0100000000000000") == 1


def test_what_threads_do_behind_the_end_is_not_done(build: Build) -> None:
    """A trace leaves what the file holds, whatever other threads were about to do."""
    build(
        "static uint64_t *at;"
        "static void *work(void *none) { (void)none; for (;;) at[0]++; }"
        'int main(void) { pthread_t thread; at = map("pool", 4096);'
        " for (int n = 0; n < 40; n++) pthread_create(&thread, NULL, work, NULL);"
        " while (__atomic_load_n(&at[0], __ATOMIC_RELAXED) < 50); exit(0); }",
        "-pthread",
    )
    for seed in range(1, 9):
        Path("pool").unlink(missing_ok=True)
        traced(seed)
        assert memories(Path("a.trace")) == [Path("pool").read_bytes()]


def test_what_a_thread_has_stored_before_it_waits_is_its_own(build: Build) -> None:
    """What it was about to store is there when its turn is taken away and another flushes it."""
    build(
        PAIR.format(
            # Nothing is told between the store and the wait: the kernel is asked at once.
            other="static const struct timespec time = {0, 50000000};"
            " at[0] = 1; syscall(SYS_nanosleep, &time, NULL);",
            main="usleep(20000); flush(at); fence(); at[8] = 1;",
        ),
        "-include",
        "sys/syscall.h",
        "-include",
        "time.h",
        "-O1",
    )
    told = traced()
    assert told.index("bytes 0x10000 0100000000000000") < told.index("flush 0x10000 1")


@needs_core
def test_what_another_thread_has_not_made_durable_is_found(build: Build) -> None:
    """A thread builds on what it has seen of another one, which is only durable later."""
    verify = Path("verify.sh")
    verify.write_text(
        'word() { od -An -v -tu8 -j "$2" -N 8 "$1" | tr -d " "; }\n'
        '[ "$(word "$1" 64) $(word "$1" 0)" != "1 0" ] || { echo "it is not there"; exit 1; }\n'
    )
    for durable, right in (("", False), ("flush(at); fence();", True)):
        Path("pool").unlink(missing_ok=True)
        build(
            PAIR.format(
                other=f"at[0] = 1; {durable} {TELL} flush(at); fence();",
                main=f"{HEAR} at[8] = 1; flush(at + 8); fence();",
            )
        )
        found = 0
        for seed in range(1, 6):
            Path("pool").unlink(missing_ok=True)
            assert indelible.record(["./program"], "a.trace", seed=seed)["threads"] == 2
            answer = indelible.crash(
                "undo@x86", "replay", replay="a.trace", check=f"sh '{verify.absolute()}'"
            )
            assert answer.cores == 2
            found += len(answer.violations) > 0
        assert (found == 0) == right, (durable, found)


@needs_core
def test_transactions_of_threads_are_checked_by_the_oracle(build: Build) -> None:
    transfer = (
        "for (int n = 0; n < 5; n++) { pthread_mutex_lock(&mutex); indelible_begin();"
        " at[0] -= 1; at[8 * (n + {own})] += 1; indelible_commit(); pthread_mutex_unlock(&mutex); }"
    )
    build(
        "static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;"
        + PAIR.format(other=transfer.replace("{own}", "1"), main=transfer.replace("{own}", "2"))
    )
    answer = indelible.record(["./program"], "a.trace", seed=3)
    assert (answer["transactions"], answer["threads"]) == (10, 2)
    for design in ("silo", "undo@x86", "lad", "loc-wal"):
        found = indelible.crash(design, "replay", replay="a.trace")
        # So few do not fill a window: the trace ends before one is durable.
        assert (found.violations, found.checked) == ([], design != "loc-wal")
    run = indelible.run("silo", "replay", replay="a.trace")
    assert run.cores == 2
