/* Chooses the thread that goes on. While several threads run code that is recorded, one of them goes
 * on at a time. It gives way to another after some accesses, or where it has to wait. A seed decides
 * to which and when, and how long turns are. So the trace has the order in which threads met: the
 * same order each time with one seed, and another order with another.
 *
 * A thread may wait in the system for something that the recorder does not know of (input, time). It
 * then loses its turn, and waits for another one when it next does something that is recorded. */

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>

#include "inner.h"

enum {
    /* How long turns are is drawn once for a recording (ours, all three). Short turns find errors
     * that need threads to meet twice, long ones errors that need a whole operation of another thread
     * in between. A turn has up to 2^n accesses, with n one of TURN_POWERS values from here on. */
    TURN_POWER_MIN = 3,
    TURN_POWERS = 14,
    /* Where threads meet, and at flushes and fences, one turn in 2^n ends, with n from 1 to this. */
    MEETING_POWERS = 7,
    /* Nanoseconds after which a waiting thread looks whether the one that has the turn waits, too. */
    LOOK_AFTER = 1000000,
    /* The most times that the system is asked whether a thread is gone (ours: some milliseconds). */
    GONE_AFTER = 20000,
};

struct thread threads[THREADS_MAX];
int thread_count = 1;
int is_scheduling;

__thread struct thread *mine;
/* The thread that has the turn; NULL if all are away or wait. */
static struct thread *holder;
/* Accesses that are left of the turn. */
static int left;
/* The system's id of the thread that ended last, while it may still be there. */
static int leaving;
/* Stands for any thread that still runs after its end was noted. */
static struct thread gone = {.entered = 1, .is_busy = 1, .lane = -1};
/* The thread that has ended the recording. */
static struct thread *last;
/* The number in the trace of the next thread. */
static int next_lane;

/* The state of the random numbers (xorshift64). */
static uint64_t seed;
/* The most accesses of a turn, and in how many turns one ends where threads meet. */
static uint64_t turn_max, one_in;

static uint64_t random_below(uint64_t end)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return seed % end;
}

void seed_with(uint64_t number)
{
    /* Any but 0. */
    seed = (number + 1) * 0x9e3779b97f4a7c15;
    seed |= seed == 0;
    turn_max = 1 << (TURN_POWER_MIN + random_below(TURN_POWERS));
    one_in = 2 << random_below(MEETING_POWERS);
}

/* Draws how many accesses the next turn has. */
static int turn(void)
{
    return 1 + random_below(turn_max);
}

static long futex(int *word, int operation, int value, const struct timespec *time)
{
    const long asked[6] = {(long)word, operation | FUTEX_PRIVATE_FLAG, value, (long)time};
    return system_call(SYS_futex, asked);
}

static void set_state(struct thread *thread, enum state state)
{
    __atomic_store_n(&thread->state, state, __ATOMIC_SEQ_CST);
}

int awake(struct thread *thread)
{
    enum state waits = WAITS;
    return __atomic_compare_exchange_n(&thread->state, &waits, READY, 0, __ATOMIC_SEQ_CST,
                                       __ATOMIC_SEQ_CST);
}

static enum state state_of(const struct thread *thread)
{
    return __atomic_load_n(&thread->state, __ATOMIC_SEQ_CST);
}

static int has_turn(const struct thread *thread)
{
    return __atomic_load_n(&holder, __ATOMIC_SEQ_CST) == thread;
}

/* Takes the turn from another thread, or takes a free one; returns whether that was still so. */
static int take_from(struct thread *other, struct thread *thread)
{
    return __atomic_compare_exchange_n(&holder, &other, thread, 0, __ATOMIC_SEQ_CST,
                                       __ATOMIC_SEQ_CST);
}

static int is_there(int id)
{
    const long none[6] = {0};
    const long asked[6] = {system_call(SYS_getpid, none), id, 0};
    return system_call(SYS_tgkill, asked) == 0;
}

/* Frees the places of threads that have ended, or were joined, without a call that was seen. */
static void sweep(void)
{
    for (int index = 1; index < THREADS_MAX; index++)
        if (!has_turn(&threads[index]) && threads[index].id != 0 && !is_there(threads[index].id))
            set_state(&threads[index], JOINED);
}

static struct thread *add(void)
{
    if (thread_count == THREADS_MAX)
        sweep();
    for (int index = 0; index < THREADS_MAX; index++) {
        int count = __atomic_load_n(&thread_count, __ATOMIC_SEQ_CST);
        struct thread *thread = &threads[index];
        enum state ended = JOINED;
        int is_free = index < count ? __atomic_compare_exchange_n(&thread->state, &ended, RUNS, 0,
                                                                  __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)
                                    : index == count && __atomic_compare_exchange_n(
                                                            &thread_count, &count, count + 1, 0,
                                                            __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
        if (!is_free)
            continue;
        *thread = (struct thread){.lane = -1};
        return thread;
    }
    counts.crowded++;
    return NULL;
}

/* Begins taking turns, when there is a second thread. The first thread has the first turn. */
static struct thread *second(void)
{
    if (!is_scheduling) {
        holder = &threads[0];
        left = turn();
        is_scheduling = 1;
    }
    return add();
}

struct thread *new_thread(void)
{
    struct thread *thread = second();
    if (thread != NULL)
        set_state(thread, READY);
    return thread;
}

void become(struct thread *thread)
{
    const long none[6] = {0};
    mine = thread;
    thread->lane = -1;
    thread->id = system_call(SYS_gettid, none);
}

struct thread *unknown_thread(void)
{
    struct thread *thread = second();
    if (thread != NULL)
        become(thread);
    return thread;
}

int lane_of(struct thread *thread)
{
    if (thread->lane >= 0)
        return thread->lane;
    counts.threads = next_lane + 1;
    counts.crowded += next_lane >= LANES_MAX;
    return thread->lane = next_lane++;
}

void forget_lanes(void)
{
    next_lane = 0;
    for (int index = 0; index < thread_count; index++) {
        threads[index].lane = -1;
        threads[index].work = 0;
        threads[index].is_unfenced = 0;
    }
}

static int is_ready(const struct thread *thread, const struct thread *but)
{
    return thread != but && state_of(thread) == READY;
}

/* Draws another thread that waits for its turn; NULL if none does. */
static struct thread *another(const struct thread *thread)
{
    int count = 0;
    for (int index = 0; index < thread_count; index++)
        count += is_ready(&threads[index], thread);
    if (count == 0)
        return NULL;
    int place = random_below(count);
    for (int index = 0; index < thread_count; index++)
        if (is_ready(&threads[index], thread) && place-- == 0)
            return &threads[index];
    return NULL;
}

/* Passes the turn to a thread, or to none. */
static void pass_to(struct thread *next)
{
    left = turn();
    __atomic_store_n(&holder, next, __ATOMIC_SEQ_CST);
    if (next != NULL) {
        __atomic_store_n(&next->called, 1, __ATOMIC_SEQ_CST);
        futex(&next->called, FUTEX_WAKE, 1, NULL);
    }
}

/* Whether a thread waits in the system for something that was not told, or has ended unseen. */
static int is_away(const struct thread *thread)
{
    if (thread->id == 0)
        return 0;
    char name[64] = "/proc/self/task/", digits[24], told[16] = {0};
    int length = sizeof "/proc/self/task/" - 1, count = 0;
    for (long id = thread->id; id > 0; id /= 10)
        digits[count++] = '0' + id % 10;
    while (count > 0)
        name[length++] = digits[--count];
    for (const char *at = "/syscall"; *at != 0;)
        name[length++] = *at++;
    const long asked[6] = {AT_FDCWD, (long)name, O_RDONLY | O_CLOEXEC};
    long file = system_call(SYS_openat, asked);
    if (file < 0)
        return file == -ENOENT;
    const long part[6] = {file, (long)told, sizeof told - 1}, own[6] = {file};
    system_call(SYS_read, part);
    system_call(SYS_close, own);
    /* It says `running` of one that does not wait, -1 of one that waits in a fault, and zeros behind
     * that of a first thread that has ended before the others. */
    int has_ended = told[0] == '-' && told[3] == '0' && told[5] == '0' && told[6] == ' ';
    return has_ended || (told[0] >= '0' && told[0] <= '9');
}

/* Takes the turn of a thread that is away. Its last store was made before it went away. */
static void take_turn_of_who_is_away(struct thread *thread, uint64_t *seen)
{
    struct thread *other = __atomic_load_n(&holder, __ATOMIC_SEQ_CST);
    if (other == NULL) {
        take_from(NULL, thread);
        return;
    }
    uint64_t steps = __atomic_load_n(&other->steps, __ATOMIC_SEQ_CST);
    int has_moved = steps != *seen;
    *seen = steps;
    if (other == thread || has_moved || other->is_busy || other->keeps > 0 || !is_away(other) ||
        !take_from(other, thread))
        return;
    if (__atomic_load_n(&other->steps, __ATOMIC_SEQ_CST) != steps) {
        /* The thread has come back in the meantime, and keeps its turn. */
        take_from(thread, other);
        return;
    }
    left = turn();
    drain(other);
}

void end_recording(void)
{
    last = this_thread();
    is_recording = 0;
}

void stop_behind_the_end(void)
{
    const long none[6] = {0};
    while (is_scheduling && last != NULL && mine != last)
        system_call(SYS_pause, none);
}

/* Waits until the thread that ended last has given its stack back, which the next may get. */
static void wait_until_gone(void)
{
    const long none[6] = {0};
    for (int times = 0; times < GONE_AFTER && leaving != 0 && is_there(leaving); times++)
        system_call(SYS_sched_yield, none);
    leaving = 0;
}

/* Whether a thread has waited until the time that it set. */
static int is_due(struct thread *thread)
{
    struct timespec now;
    const long asked[6] = {thread->clock, (long)&now};
    if (thread->until == NULL || system_call(SYS_clock_gettime, asked) != 0)
        return 0;
    return now.tv_sec > thread->until->tv_sec ||
           (now.tv_sec == thread->until->tv_sec && now.tv_nsec >= thread->until->tv_nsec);
}

static void wait_for_turn(struct thread *thread)
{
    const struct timespec time = {0, LOOK_AFTER};
    uint64_t seen = UINT64_MAX;
    if (state_of(thread) == RUNS)
        set_state(thread, READY);
    for (;;) {
        __atomic_store_n(&thread->called, 0, __ATOMIC_SEQ_CST);
        if (has_turn(thread))
            break;
        if (!is_recording)
            return stop_behind_the_end();
        long failed = futex(&thread->called, FUTEX_WAIT, 0, &time);
        if (failed != -ETIMEDOUT || has_turn(thread))
            continue;
        if (state_of(thread) == WAITS && is_due(thread))
            thread->is_late = awake(thread);
        if (state_of(thread) == READY)
            take_turn_of_who_is_away(thread, &seen);
    }
    set_state(thread, RUNS);
    wait_until_gone();
}

void take_turn(struct thread *thread, enum pass pass)
{
    __atomic_fetch_add(&thread->steps, 1, __ATOMIC_SEQ_CST);
    if (!has_turn(thread)) {
        /* A signal's handler may be what it waits for. */
        awake(thread);
        wait_for_turn(thread);
    } else if (pass == LIKELY && random_below(one_in) == 0)
        give_way(thread);
    else if (pass != STAYS && --left <= 0)
        give_way(thread);
}

void recorder_enter(void)
{
    recorder_drain();
    struct thread *thread = is_recording ? this_thread() : NULL;
    if (thread != NULL)
        thread->entered++;
}

void recorder_leave(void)
{
    struct thread *thread = is_recording ? this_thread() : NULL;
    if (thread != NULL)
        thread->entered--;
}

void recorder_keep(void)
{
    recorder_drain();
    struct thread *thread = is_recording ? this_thread() : NULL;
    if (thread != NULL)
        thread->keeps++;
}

void recorder_release(void)
{
    struct thread *thread = is_recording ? this_thread() : NULL;
    if (thread != NULL)
        thread->keeps--;
}

int give_way(struct thread *thread)
{
    drain(thread);
    struct thread *next = another(thread);
    left = turn();
    if (next == NULL)
        return 0;
    set_state(thread, READY);
    pass_to(next);
    wait_for_turn(thread);
    return 1;
}

int wait_for(struct thread *thread, const void *what, int clock, const struct timespec *until)
{
    static uint64_t waits;
    drain(thread);
    thread->waits_for = what;
    thread->waits_since = ++waits;
    thread->clock = clock;
    thread->until = until;
    thread->is_late = 0;
    set_state(thread, WAITS);
    pass_to(another(thread));
    wait_for_turn(thread);
    return !thread->is_late;
}

int call(const void *what)
{
    struct thread *first = NULL;
    for (int index = 0; index < thread_count; index++) {
        struct thread *thread = &threads[index];
        if (state_of(thread) == WAITS && thread->waits_for == what &&
            (first == NULL || thread->waits_since < first->waits_since))
            first = thread;
    }
    return first != NULL && (awake(first) || call(what));
}

void end_thread(struct thread *thread)
{
    take_turn(thread, STAYS);
    drain(thread);
    end_transactions(thread);
    /* What the thread still does is not told. */
    mine = &gone;
    leaving = thread->id;
    set_state(thread, thread->is_detached ? JOINED : ENDED);
    pass_to(another(thread));
}
