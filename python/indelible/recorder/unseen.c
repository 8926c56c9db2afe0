/* What changed without a store that was seen. */

#define _GNU_SOURCE
#include <errno.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "inner.h"

enum {
    /* Persistent memory that is compared as a whole at fences, and how many bytes of it are at the
     * first ones and at each of the others, on average. That many take as long as a fence and its
     * like do otherwise (ours). */
    COMPARED_MAX = 64 << 20,
    COMPARED_FIRST = 512 << 20,
    COMPARED_EACH = 32 << 10,
};

static int is_same(const unsigned char *first, const unsigned char *second, size_t bytes)
{
    uint64_t differing = 0;
    size_t byte = 0;
    for (; byte + 8 <= bytes; byte += 8)
        differing |= *(const uint64_t *)(first + byte) ^ *(const uint64_t *)(second + byte);
    for (; byte < bytes; byte++)
        differing |= first[byte] ^ second[byte];
    return differing == 0;
}

void compare(const struct mapping *mapping, uintptr_t at, uintptr_t end, struct from from)
{
    struct thread *thread = this_thread();
    if (thread == NULL || is_same((const unsigned char *)at, told_of(mapping, at), end - at))
        return;
    if (counts.unseen == 0) {
        counts.unseen_at = place_of(mapping, at);
        while (*(const unsigned char *)at == *told_of(mapping, at))
            at++, counts.unseen_at++;
        counts.unseen_from = keep(from);
    }
    counts.unseen += tell_differences(thread, mapping, at, end, 0, from);
}

/* Copies what the process has in memory; returns how many bytes can be read, or a negative number. */
static long copy(uintptr_t at, unsigned char *to, size_t bytes)
{
    struct iovec here = {to, bytes}, there = {(void *)at, bytes};
    const long none[6] = {0};
    const long asked[6] = {system_call(SYS_getpid, none), (long)&here, 1, (long)&there, 1, 0};
    return system_call(SYS_process_vm_readv, asked);
}

/* Whether nothing was ever told of a part of a large file, and the system holds no page of it:
 * nobody has stored there, if none was taken away since. A look at it would get it pages. */
static int is_untouched(const struct mapping *mapping, uintptr_t at, size_t bytes)
{
    const struct memory *memory = mapping->memory;
    size_t offset = mapping->offset + (at - mapping->start);
    if (!memory->is_file || memory->bytes < SPARSE_MIN || memory->used[offset / PART])
        return 0;
    unsigned char pages[PART / PAGE] = {0}, any = 0;
    uintptr_t first = at / PAGE * PAGE;
    const long asked[6] = {(long)first, at + bytes - first, (long)pages};
    if (system_call(SYS_mincore, asked) != 0)
        return 0;
    for (size_t page = 0; page < PART / PAGE; page++)
        any |= pages[page] & 1;
    return any == 0;
}

void compare_mapping(const struct mapping *mapping, uintptr_t at, uintptr_t end, struct from from)
{
    static unsigned char now[PART];
    at = at < mapping->start ? mapping->start : at;
    end = end > end_of(mapping) ? end_of(mapping) : end;
    while (at < end) {
        size_t bytes = PART - (mapping->offset + (at - mapping->start)) % PART;
        bytes = end - at < bytes ? end - at : bytes;
        if (is_untouched(mapping, at, bytes)) {
            at += bytes;
            continue;
        }
        long copied = copy(at, now, bytes);
        /* Where the system does not let a process read so, all can be read, or the program ends. */
        int may_not = copied == -EPERM || copied == -ENOSYS;
        if (!may_not && copied < (long)bytes && bytes > PAGE - at % PAGE) {
            /* A part of it is no memory any more, or cannot be read: it is looked at by the page. */
            bytes = PAGE - at % PAGE;
            copied = copy(at, now, bytes);
        }
        int is_read = copied == (long)bytes && !is_same(now, told_of(mapping, at), bytes);
        if (may_not || is_read)
            compare(mapping, at, at + bytes, from);
        at += bytes;
    }
}

void compare_all(struct from from)
{
    for (int index = 0; index < mapping_count; index++)
        compare_mapping(&mappings[index], mappings[index].start, mappings[index].end, from);
}

/* What it costs follows from what was done, and not from a clock, so that each recording of the
 * same notices the same. */
void compare_at_fence(struct from from)
{
    static size_t left = COMPARED_FIRST;
    size_t all = 0;
    for (int index = 0; index < mapping_count; index++)
        all += mappings[index].end - mappings[index].start;
    left = left < COMPARED_FIRST - COMPARED_EACH ? left + COMPARED_EACH : COMPARED_FIRST;
    if (all > COMPARED_MAX || all > left)
        return;
    left -= all;
    compare_all(from);
}

/* One that was announced is about to be told already, with what is stored now. */
void recorder_will_half(uintptr_t at, size_t bytes, struct from from)
{
    struct thread *thread = is_recording ? this_thread() : NULL;
    struct pending announced = {NOTHING};
    if (thread != NULL)
        announced = thread->pending;
    if (announced.kind != STORE || at < announced.at || at + bytes > announced.at + announced.bytes)
        recorder_will_mask(at, bytes, from);
}
