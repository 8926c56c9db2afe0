/* Threads that wait for each other in every way that the C library has, and store to a pool. */

#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { BYTES = 8192, WORKERS = 6, ROUNDS = 20, DETACHED = 10, ROOM = 4 };

static uint64_t *at;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t has_room = PTHREAD_COND_INITIALIZER, has_some = PTHREAD_COND_INITIALIZER;
static int queue[ROOM], count;
static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_spinlock_t spin;
static pthread_barrier_t barrier;
static sem_t one;
static atomic_int detached;
static int ends[2];

static void put(int value)
{
    pthread_mutex_lock(&mutex);
    while (count == ROOM)
        pthread_cond_wait(&has_room, &mutex);
    queue[count++] = value;
    pthread_cond_signal(&has_some);
    pthread_mutex_unlock(&mutex);
}

static int get(void)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 60;
    pthread_mutex_lock(&mutex);
    while (count == 0)
        if (pthread_cond_timedwait(&has_some, &mutex, &until) != 0)
            abort();
    int value = queue[--count];
    pthread_cond_broadcast(&has_room);
    pthread_mutex_unlock(&mutex);
    return value;
}

static void *work(void *number)
{
    uintptr_t own = (uintptr_t)number;
    for (int round = 0; round < ROUNDS; round++) {
        if (own % 2 == 0)
            put(round);
        else
            at[8 * own + round % 8] = get();
        pthread_rwlock_wrlock(&lock);
        at[500]++;
        pthread_rwlock_unlock(&lock);
        pthread_rwlock_rdlock(&lock);
        at[510 + own] += at[500];
        pthread_rwlock_unlock(&lock);
        pthread_spin_lock(&spin);
        at[501]++;
        pthread_spin_unlock(&spin);
        sem_wait(&one);
        at[502]++;
        sem_post(&one);
        __atomic_fetch_add(&at[503], 1, __ATOMIC_RELAXED);
        while (!__sync_bool_compare_and_swap(&at[504], 0, own + 1))
            sched_yield();
        at[505]++;
        __atomic_store_n(&at[504], 0, __ATOMIC_RELEASE);
        if (pthread_barrier_wait(&barrier) == PTHREAD_BARRIER_SERIAL_THREAD)
            at[506]++;
    }
    if (own == 3)
        pthread_exit(NULL);
    return NULL;
}

/* Waits where nobody knows of it, for input and for time, and for longer than it wants to. */
static void *wait_elsewhere(void *none)
{
    char byte;
    struct timespec time = {0, 5000000}, late = {0, 0};
    pthread_cond_t never = PTHREAD_COND_INITIALIZER;
    pthread_mutex_t own = PTHREAD_MUTEX_INITIALIZER;
    if (read(ends[0], &byte, 1) == 1)
        at[600] = byte;
    nanosleep(&time, NULL);
    pthread_mutex_lock(&own);
    at[601] = pthread_cond_timedwait(&never, &own, &late);
    pthread_mutex_unlock(&own);
    return none;
}

static void *end_alone(void *none)
{
    __atomic_fetch_add(&at[610], 1, __ATOMIC_RELAXED);
    detached++;
    return none;
}

static void require(int is_so)
{
    if (!is_so)
        abort();
}

int main(void)
{
    pthread_t elsewhere, workers[WORKERS], other;
    int file = open("pool", O_RDWR | O_CREAT | O_TRUNC, 0600);
    require(ftruncate(file, BYTES) == 0 && pipe(ends) == 0);
    at = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    pthread_spin_init(&spin, 0);
    pthread_barrier_init(&barrier, NULL, WORKERS);
    sem_init(&one, 0, 1);
    pthread_create(&elsewhere, NULL, wait_elsewhere, NULL);
    for (uintptr_t own = 0; own < WORKERS; own++)
        pthread_create(&workers[own], NULL, work, (void *)own);
    for (int own = 0; own < WORKERS; own++)
        pthread_join(workers[own], NULL);
    require(write(ends[1], "x", 1) == 1);
    pthread_join(elsewhere, NULL);
    for (int number = 0; number < DETACHED; number++) {
        pthread_create(&other, NULL, end_alone, NULL);
        pthread_detach(other);
    }
    while (detached < DETACHED)
        usleep(100);
    for (int place = 500; place <= 505; place++)
        require(at[place] == (place == 504 ? 0 : WORKERS * ROUNDS));
    require(at[506] == ROUNDS && at[600] == 'x' && at[601] != 0 && at[610] == DETACHED);
    return 0;
}
