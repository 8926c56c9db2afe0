/* Writes what a program does to its persistent memory as a trace, which `indelible` replays
 * (docs/replay.md). Persistent memory is one region; addresses in the trace are those in it, so that
 * two runs write the same trace. */

#ifndef INDELIBLE_TRACE_H
#define INDELIBLE_TRACE_H

#include <stdint.h>
#include <stdio.h>

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

/* Bytes of it were stored. */
static inline void pm_stored(const void *at, size_t bytes)
{
    printf("bytes 0x%lx ", pm_place(at));
    for (size_t byte = 0; byte < bytes; byte++)
        printf("%02x", ((const unsigned char *)at)[byte]);
    putchar('\n');
}

/* Stores to it. */
#define PM_STORE(place, value) (*(place) = (value), pm_stored((place), sizeof *(place)))

/* Its lines are written back, as with clwb. */
static inline void pm_flush(const void *at, size_t bytes)
{
    printf("flush 0x%lx %zu\n", pm_place(at), bytes);
}

/* What was written back is durable, as behind an sfence. */
static inline void pm_fence(void)
{
    puts("fence");
}

/* The program tells the world how far it has come. */
#define PM_MARK(...) (printf("mark " __VA_ARGS__), putchar('\n'))

#endif
