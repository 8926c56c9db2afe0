/* Writes what a program does to its persistent memory as a trace, which `indelible` replays
 * (docs/replay.md). Persistent memory is one region; addresses in the trace are those in it, so that
 * two runs write the same trace. Behind each operation is where in the program it comes from. */

#ifndef INDELIBLE_TRACE_H
#define INDELIBLE_TRACE_H

#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* Where the trace has the region. */
#define PM_START 0x10000

static const unsigned char *pm_base;

static inline unsigned long pm_place(const void *at)
{
    return PM_START + ((const unsigned char *)at - pm_base);
}

/* The persistent memory, in whole lines of 64 bytes. What it holds now, zeros apart, is there before
 * the program begins. */
static inline void pm_begin(const void *base, size_t bytes)
{
    pm_base = base;
    printf("region 0x%x %zu\n", PM_START, bytes);
    for (size_t at = 0; at < bytes; at++)
        if (pm_base[at] != 0)
            printf("bytes 0x%lx %02x\n", pm_place(pm_base + at), pm_base[at]);
    puts("measured");
}

/* Behind an operation: where it comes from. */
static inline void pm_from(const char *file, int line)
{
    const char *folder = strrchr(file, '/');
    printf(" # %s:%d\n", folder == NULL ? file : folder + 1, line);
}

/* Bytes of it were stored. */
static inline void pm_stored(const void *at, size_t bytes, const char *file, int line)
{
    printf("bytes 0x%lx ", pm_place(at));
    for (size_t byte = 0; byte < bytes; byte++)
        printf("%02x", ((const unsigned char *)at)[byte]);
    pm_from(file, line);
}

/* Stores to it. */
#define PM_STORE(place, value) \
    (*(place) = (value), pm_stored((place), sizeof *(place), __FILE__, __LINE__))

/* Its lines are written back, as with clwb. */
#define PM_FLUSH(at, bytes) \
    (printf("flush 0x%lx %zu", pm_place(at), (size_t)(bytes)), pm_from(__FILE__, __LINE__))

/* What was written back is durable, as behind an sfence. */
#define PM_FENCE() (printf("fence"), pm_from(__FILE__, __LINE__))

/* The program tells the world how far it has come. */
#define PM_MARK(...) (printf("mark " __VA_ARGS__), putchar('\n'))

#endif
