/* The C library's functions for threads, replaced so that no thread waits in the system for
 * something that a thread without its turn would have to do. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "inner.h"

enum {
    BARRIERS_MAX = 64,
    /* Microseconds between two attempts to get what a thread that is away holds (ours). */
    ASK_AFTER = 100,
};

/* The C library's own function of this name, which is looked up once. */
#define NEXT(name)                                                                                 \
    __extension__({                                                                                \
        static __typeof__(&(name)) next;                                                           \
        if (next == NULL)                                                                          \
            next = (__typeof__(&(name)))dlsym(RTLD_NEXT, #name);                                   \
        next;                                                                                      \
    })

/* Waits for the present thread's turn and returns the thread; NULL while there is no other. */
static struct thread *scheduled(void)
{
    struct thread *thread = is_recording && is_scheduling ? this_thread() : NULL;
    if (thread == NULL || thread->is_busy)
        return NULL;
    take_turn(thread, LIKELY);
    return thread;
}

/* Lets other threads go on; if none can, lets time pass. */
static void let_others(struct thread *thread)
{
    if (!give_way(thread))
        usleep(ASK_AFTER);
    take_turn(thread, STAYS);
}

/* Tells what the C library has stored to a lock that lies in persistent memory. */
static void changed(const volatile void *at, size_t bytes, struct from from)
{
    if (is_recording && mapping_of((uintptr_t)at) != NULL)
        recorder_changed(at, bytes, from);
}

#define CHANGES(name, type)                                                                        \
    int name(type *of)                                                                             \
    {                                                                                              \
        int failed = NEXT(name)(of);                                                               \
        changed(of, sizeof *of, CALLER);                                                           \
        return failed;                                                                             \
    }

#define MAKES(name, type, with)                                                                    \
    int name(type *of, with how)                                                                   \
    {                                                                                              \
        int failed = NEXT(name)(of, how);                                                          \
        changed(of, sizeof *of, CALLER);                                                           \
        return failed;                                                                             \
    }

MAKES(pthread_mutex_init, pthread_mutex_t, const pthread_mutexattr_t *)
CHANGES(pthread_mutex_unlock, pthread_mutex_t)
CHANGES(pthread_mutex_destroy, pthread_mutex_t)
MAKES(pthread_rwlock_init, pthread_rwlock_t, const pthread_rwlockattr_t *)
CHANGES(pthread_rwlock_unlock, pthread_rwlock_t)
MAKES(pthread_spin_init, pthread_spinlock_t, int)
CHANGES(pthread_spin_unlock, pthread_spinlock_t)
MAKES(pthread_cond_init, pthread_cond_t, const pthread_condattr_t *)
CHANGES(pthread_cond_destroy, pthread_cond_t)
CHANGES(sem_post, sem_t)

typedef void (*once_only)(void);
MAKES(pthread_once, pthread_once_t, once_only)

/* Functions for which a thread waits in the system. */
typedef const struct timespec *time_limit;
MAKES(pthread_mutex_timedlock, pthread_mutex_t, time_limit)
MAKES(pthread_rwlock_timedrdlock, pthread_rwlock_t, time_limit)
MAKES(pthread_rwlock_timedwrlock, pthread_rwlock_t, time_limit)
MAKES(sem_timedwait, sem_t, time_limit)

#define TIMED(name, type)                                                                          \
    int name(type *of, clockid_t clock, time_limit until)                                          \
    {                                                                                              \
        int failed = NEXT(name)(of, clock, until);                                                 \
        changed(of, sizeof *of, CALLER);                                                           \
        return failed;                                                                             \
    }

TIMED(pthread_mutex_clocklock, pthread_mutex_t)
TIMED(pthread_rwlock_clockrdlock, pthread_rwlock_t)
TIMED(pthread_rwlock_clockwrlock, pthread_rwlock_t)

int sem_init(sem_t *of, int shared, unsigned value)
{
    int failed = NEXT(sem_init)(of, shared, value);
    changed(of, sizeof *of, CALLER);
    return failed;
}

/* How threads begin and end. */

struct begin {
    struct thread *thread;
    void *(*function)(void *);
    void *argument;
};

static pthread_key_t ending;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* Called among the thread's own destructors, and those after it may still do something. So the
 * thread's end is noted when the C library calls destructors for the last time. */
static void ended(void *of)
{
    struct thread *thread = of;
    if (++thread->endings < PTHREAD_DESTRUCTOR_ITERATIONS)
        pthread_setspecific(ending, thread);
    else if (is_recording)
        end_thread(thread);
}

static void make_key(void)
{
    pthread_key_create(&ending, ended);
}

static void *begun(void *given)
{
    struct begin begin = *(struct begin *)given;
    stack_end = (uintptr_t)__builtin_frame_address(0);
    become(begin.thread);
    /* Which memory the C library gives a thread depends on when the thread first asks for some. */
    take_turn(begin.thread, STAYS);
    pthread_setspecific(ending, begin.thread);
    free(given);
    return begin.function(begin.argument);
}

static struct thread *named(pthread_t handle)
{
    for (int index = 1; index < thread_count; index++)
        if (threads[index].handle == (uintptr_t)handle && threads[index].state != JOINED)
            return &threads[index];
    return NULL;
}

int pthread_create(pthread_t *to, const pthread_attr_t *how, void *(*function)(void *),
                   void *argument)
{
    recorder_drain();
    pthread_once(&once, make_key);
    struct begin *begin = is_recording ? malloc(sizeof *begin) : NULL;
    struct thread *thread = begin == NULL ? NULL : new_thread();
    if (thread == NULL) {
        free(begin);
        return NEXT(pthread_create)(to, how, function, argument);
    }
    if (this_thread() == &threads[0])
        pthread_setspecific(ending, &threads[0]);
    int detached = PTHREAD_CREATE_JOINABLE;
    if (how != NULL)
        pthread_attr_getdetachstate(how, &detached);
    thread->is_detached = detached == PTHREAD_CREATE_DETACHED;
    *begin = (struct begin){thread, function, argument};
    int failed = NEXT(pthread_create)(to, how, begun, begin);
    for (struct thread *gone; !failed && (gone = named(*to)) != NULL;)
        gone->state = JOINED;
    thread->handle = failed ? 0 : (uintptr_t)*to;
    if (failed) {
        thread->state = JOINED;
        free(begin);
    }
    return failed;
}

int pthread_join(pthread_t other, void **result)
{
    struct thread *thread = scheduled(), *of = named(other);
    while (thread != NULL && of != NULL && of != thread && of->state != ENDED && give_way(thread))
        pthread_testcancel();
    int failed = NEXT(pthread_join)(other, result);
    if (of != NULL && !failed)
        of->state = JOINED;
    return failed;
}

int pthread_detach(pthread_t other)
{
    scheduled();
    struct thread *of = named(other);
    if (of != NULL && of->state == ENDED)
        of->state = JOINED;
    else if (of != NULL)
        of->is_detached = 1;
    return NEXT(pthread_detach)(other);
}

/* A thread that waits for a condition is made ready, so that it notices. */
int pthread_cancel(pthread_t other)
{
    scheduled();
    struct thread *of = named(other);
    int failed = NEXT(pthread_cancel)(other);
    if (of != NULL)
        awake(of);
    return failed;
}

int sched_yield(void)
{
    struct thread *thread = scheduled();
    if (thread == NULL || !give_way(thread))
        return NEXT(sched_yield)();
    return 0;
}

/* Locks that one thread has at a time. A thread that does not get one lets others go on, and tries
 * again. If no other can go on, it waits in the system for a thread that is away. */

#define TAKEN(name, type, attempt, is_taken, is_own, look)                                         \
    int name(type *of)                                                                             \
    {                                                                                              \
        struct thread *thread = scheduled();                                                       \
        int failed = thread == NULL ? NEXT(name)(of) : NEXT(attempt)(of);                          \
        while (thread != NULL && (is_taken) && !(is_own) && give_way(thread)) {                    \
            look;                                                                                  \
            failed = NEXT(attempt)(of);                                                            \
        }                                                                                          \
        if (thread != NULL && (is_taken))                                                          \
            failed = NEXT(name)(of);                                                               \
        changed(of, sizeof *of, CALLER);                                                           \
        return failed;                                                                             \
    }                                                                                              \
                                                                                                   \
    int attempt(type *of)                                                                          \
    {                                                                                              \
        struct thread *thread = scheduled();                                                       \
        int failed = NEXT(attempt)(of);                                                            \
        int error = errno;                                                                         \
        /* The program may try in a loop. */                                                       \
        if (thread != NULL && (is_taken))                                                          \
            give_way(thread);                                                                      \
        changed(of, sizeof *of, CALLER);                                                           \
        errno = error;                                                                             \
        return failed;                                                                             \
    }

/* What a thread has already the C library may know of. */
#define IS_OWN(type) (of->__data.type == thread->id)
#define IS_NONE ((void)0)

TAKEN(pthread_mutex_lock, pthread_mutex_t, pthread_mutex_trylock, failed == EBUSY, IS_OWN(__owner),
      IS_NONE)
TAKEN(pthread_rwlock_rdlock, pthread_rwlock_t, pthread_rwlock_tryrdlock, failed == EBUSY,
      IS_OWN(__cur_writer), IS_NONE)
TAKEN(pthread_rwlock_wrlock, pthread_rwlock_t, pthread_rwlock_trywrlock, failed == EBUSY,
      IS_OWN(__cur_writer), IS_NONE)
TAKEN(sem_wait, sem_t, sem_trywait, failed == -1 && errno == EAGAIN, 0, pthread_testcancel())

int pthread_spin_trylock(pthread_spinlock_t *of)
{
    struct thread *thread = scheduled();
    int failed = NEXT(pthread_spin_trylock)(of);
    if (thread != NULL && failed == EBUSY)
        give_way(thread);
    changed(of, sizeof *of, CALLER);
    return failed;
}

int pthread_tryjoin_np(pthread_t other, void **result)
{
    struct thread *thread = scheduled();
    int failed = NEXT(pthread_tryjoin_np)(other, result);
    if (thread != NULL && failed == EBUSY)
        give_way(thread);
    return failed;
}

/* Threads that wait for these do not wait in the system. */
int pthread_spin_lock(pthread_spinlock_t *of)
{
    struct thread *thread = scheduled();
    while (thread != NULL && NEXT(pthread_spin_trylock)(of) == EBUSY)
        let_others(thread);
    int failed = thread == NULL ? NEXT(pthread_spin_lock)(of) : 0;
    changed(of, sizeof *of, CALLER);
    return failed;
}

/* Conditions. The C library's own have nobody that waits for them, but for those of several
 * processes. What kind one is the C library says in its lowest bits. */

static struct thread *scheduled_on(const pthread_cond_t *of)
{
    struct thread *thread = scheduled();
    return (of->__data.__wrefs & 1) != 0 ? NULL : thread;
}

static int clock_of(const pthread_cond_t *of)
{
    return (of->__data.__wrefs & 2) != 0 ? CLOCK_MONOTONIC : CLOCK_REALTIME;
}

/* A thread that is cancelled passes on the call that it got. */
static void pass_call(void *of)
{
    call(of);
}

static int wait_on(pthread_cond_t *of, pthread_mutex_t *mutex, int clock,
                   const struct timespec *until, struct thread *thread)
{
    if (until != NULL && (until->tv_nsec < 0 || until->tv_nsec >= 1000000000))
        return EINVAL;
    pthread_testcancel();
    int failed = pthread_mutex_unlock(mutex);
    if (failed)
        return failed;
    int was_called = wait_for(thread, of, clock, until);
    failed = pthread_mutex_lock(mutex);
    pthread_cleanup_push(pass_call, of);
    pthread_testcancel();
    pthread_cleanup_pop(0);
    return failed ? failed : was_called ? 0 : ETIMEDOUT;
}

int pthread_cond_wait(pthread_cond_t *of, pthread_mutex_t *mutex)
{
    struct thread *thread = scheduled_on(of);
    if (thread == NULL)
        return NEXT(pthread_cond_wait)(of, mutex);
    return wait_on(of, mutex, 0, NULL, thread);
}

int pthread_cond_timedwait(pthread_cond_t *of, pthread_mutex_t *mutex, const struct timespec *until)
{
    struct thread *thread = scheduled_on(of);
    if (thread == NULL)
        return NEXT(pthread_cond_timedwait)(of, mutex, until);
    return wait_on(of, mutex, clock_of(of), until, thread);
}

int pthread_cond_clockwait(pthread_cond_t *of, pthread_mutex_t *mutex, clockid_t clock,
                           const struct timespec *until)
{
    struct thread *thread = scheduled_on(of);
    if (thread == NULL)
        return NEXT(pthread_cond_clockwait)(of, mutex, clock, until);
    return wait_on(of, mutex, clock, until, thread);
}

int pthread_cond_signal(pthread_cond_t *of)
{
    if (scheduled() != NULL && call(of))
        return 0;
    return NEXT(pthread_cond_signal)(of);
}

int pthread_cond_broadcast(pthread_cond_t *of)
{
    if (scheduled() != NULL)
        while (call(of))
            ;
    return NEXT(pthread_cond_broadcast)(of);
}

/* Barriers. The C library does not tell how many threads one takes, so that is noted here. */

static struct barrier {
    pthread_barrier_t *at;
    unsigned count, here;
    uint64_t times;
} barriers[BARRIERS_MAX];

static struct barrier *barrier_at(pthread_barrier_t *at)
{
    for (int index = 0; index < BARRIERS_MAX; index++)
        if (barriers[index].at == at)
            return &barriers[index];
    return NULL;
}

int pthread_barrier_init(pthread_barrier_t *at, const pthread_barrierattr_t *how, unsigned count)
{
    scheduled();
    struct barrier *barrier = barrier_at(at);
    barrier = barrier == NULL ? barrier_at(NULL) : barrier;
    if (barrier != NULL)
        *barrier = (struct barrier){.at = at, .count = count, .times = barrier->times};
    int failed = NEXT(pthread_barrier_init)(at, how, count);
    changed(at, sizeof *at, CALLER);
    return failed;
}

int pthread_barrier_destroy(pthread_barrier_t *at)
{
    scheduled();
    struct barrier *barrier = barrier_at(at);
    if (barrier != NULL)
        barrier->at = NULL;
    return NEXT(pthread_barrier_destroy)(at);
}

int pthread_barrier_wait(pthread_barrier_t *at)
{
    struct thread *thread = scheduled();
    struct barrier *barrier = thread == NULL ? NULL : barrier_at(at);
    if (barrier == NULL) {
        int result = NEXT(pthread_barrier_wait)(at);
        changed(at, sizeof *at, CALLER);
        return result;
    }
    if (++barrier->here == barrier->count) {
        barrier->here = 0;
        barrier->times++;
        return PTHREAD_BARRIER_SERIAL_THREAD;
    }
    for (uint64_t times = barrier->times; barrier->times == times;)
        let_others(thread);
    return 0;
}
