/* Threads draw tickets from a pool in persistent memory. No ticket is drawn twice, even if the power
 * fails. A thread skips its flush and fence if another thread has already made the number of its
 * ticket durable.
 *
 *     indelible cc -pthread -o tickets tickets.c
 *     indelible explore --check './tickets --verify' -- ./tickets pool
 *
 * Built with -DTELLS_EARLY a thread says that a number is durable between its flush and its fence. No
 * thread is wrong by itself then: another thread that relies on the number may be, in some of the
 * orders in which the threads can run. */

#include <fcntl.h>
#include <immintrin.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <indelible.h>

enum { THREADS = 3, DRAWS = 6, TICKETS = THREADS * DRAWS };

struct pool {
    /* The next ticket, in a line of its own. */
    _Alignas(64) atomic_ulong next;
    /* The thread that drew each ticket, numbered from 1; 0 if none has. */
    _Alignas(64) uint64_t owners[TICKETS];
};

static struct pool *pool;
/* Tickets below this one can never be drawn again: this number is durable. */
static atomic_ulong durable;

__attribute__((target("clflushopt"))) static void flush(void *line)
{
    _mm_clflushopt(line);
}

static uint64_t draw(void)
{
    uint64_t ticket = atomic_fetch_add(&pool->next, 1);
    if (atomic_load_explicit(&durable, memory_order_acquire) > ticket)
        return ticket;
    flush(&pool->next);
#ifdef TELLS_EARLY
    atomic_store_explicit(&durable, ticket + 1, memory_order_release);
    _mm_sfence();
#else
    _mm_sfence();
    atomic_store_explicit(&durable, ticket + 1, memory_order_release);
#endif
    return ticket;
}

static void *draw_some(void *name)
{
    for (int count = 0; count < DRAWS; count++) {
        uint64_t ticket = draw();
        pool->owners[ticket] = (uintptr_t)name;
        flush(&pool->owners[ticket]);
        _mm_sfence();
        indelible_mark("ticket %lu is drawn", ticket);
    }
    return NULL;
}

static int verify(void)
{
    if (pool->next > TICKETS) {
        printf("there are %d tickets, and number %lu would be next\n", TICKETS, pool->next);
        return 1;
    }
    for (uint64_t ticket = 0; ticket < TICKETS; ticket++)
        if (pool->owners[ticket] != 0 && ticket >= pool->next) {
            printf("ticket %lu is drawn, and will be again\n", ticket);
            return 1;
        }
    for (int thread = 0; thread <= THREADS; thread++) {
        char name[32];
        uint64_t ticket;
        snprintf(name, sizeof name, "INDELIBLE_MARK_%d", thread);
        const char *mark = getenv(name);
        if (mark == NULL || sscanf(mark, "ticket %lu", &ticket) != 1)
            continue;
        if (pool->owners[ticket] == 0) {
            printf("ticket %lu was drawn, and is not\n", ticket);
            return 1;
        }
    }
    return 0;
}

int main(int argc, char **argv)
{
    int verifies = argc == 3 && strcmp(argv[1], "--verify") == 0;
    if (argc != 2 && !verifies) {
        fprintf(stderr, "tickets [--verify] POOL\n");
        return 2;
    }
    int file = open(argv[argc - 1], verifies ? O_RDWR : O_RDWR | O_CREAT | O_TRUNC, 0600);
    if (file < 0 || (!verifies && ftruncate(file, sizeof *pool) != 0)) {
        perror(argv[argc - 1]);
        return 2;
    }
    pool = mmap(NULL, sizeof *pool, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (pool == MAP_FAILED) {
        perror("mmap");
        return 2;
    }
    if (verifies)
        return verify();
    pthread_t threads[THREADS];
    for (uintptr_t thread = 0; thread < THREADS; thread++)
        if (pthread_create(&threads[thread], NULL, draw_some, (void *)(thread + 1)) != 0)
            abort();
    for (int thread = 0; thread < THREADS; thread++)
        pthread_join(threads[thread], NULL);
    return 0;
}
