/* Persistent memory, and where the program has it. */

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "indelible.h"
#include "inner.h"

/* Where a trace has the first memory, and how far the next ones are: a file may grow. */
#define FIRST_PLACE 0x10000ul
#define PLACES (1ul << 40)

struct memory memories[MEMORIES_MAX];
int memory_count;
struct mapping mappings[MAPPINGS_MAX];
int mapping_count;
const char *pool;

/* All mappings lie between these. */
static uintptr_t lowest = UINTPTR_MAX, highest;

struct mapping *mapping_of(uintptr_t at)
{
    if (at < lowest || at >= highest)
        return NULL;
    for (int index = 0; index < mapping_count; index++)
        if (at >= mappings[index].start && at < end_of(&mappings[index]))
            return &mappings[index];
    return NULL;
}

static struct memory *new_memory(const char *name)
{
    if (memory_count == MEMORIES_MAX) {
        counts.dropped++;
        return NULL;
    }
    struct memory *memory = &memories[memory_count];
    memory->place = memory_count == 0 ? FIRST_PLACE : memory_count * PLACES;
    memory_count++;
    snprintf(memory->name, sizeof memory->name, "%s", name);
    return memory;
}

/* Has a memory hold so many bytes, of which nothing is told yet. */
static int enlarge(struct memory *memory, size_t bytes)
{
    void *told = memory->told == NULL
                     ? (void *)syscall(SYS_mmap, NULL, bytes, PROT_READ | PROT_WRITE,
                                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)
                     : (void *)syscall(SYS_mremap, memory->told, memory->bytes, bytes,
                                       MREMAP_MAYMOVE);
    if (told == MAP_FAILED) {
        counts.dropped++;
        return 0;
    }
    memory->told = told;
    memory->bytes = bytes;
    return 1;
}

static void map(uintptr_t start, size_t bytes, struct memory *memory, size_t offset)
{
    if (mapping_count == MAPPINGS_MAX) {
        counts.dropped++;
        return;
    }
    mappings[mapping_count++] = (struct mapping){start, start + bytes, memory, offset};
    lowest = start < lowest ? start : lowest;
    highest = start + bytes > highest ? start + bytes : highest;
}

/* The memory that is a file, whole, with what it holds now. */
static struct memory *memory_of(int file, const struct stat *status, const char *name)
{
    struct memory *memory = NULL;
    for (int index = 0; index < memory_count; index++)
        if (memories[index].is_file && memories[index].device == status->st_dev &&
            memories[index].file == status->st_ino)
            memory = &memories[index];
    if (memory == NULL && (memory = new_memory(name)) != NULL) {
        memory->is_file = 1;
        memory->device = status->st_dev;
        memory->file = status->st_ino;
    }
    /* What is behind the end in its last line is zeros, and there. */
    size_t bytes = ((size_t)status->st_size + LINE - 1) / LINE * LINE;
    if (memory == NULL || bytes <= memory->bytes)
        return memory;
    size_t before = memory->bytes;
    if (!enlarge(memory, bytes))
        return NULL;
    ssize_t part = 1;
    for (size_t done = before; done < bytes && part > 0; done += part)
        part = pread(file, memory->told + done, bytes - done, done);
    counts.dropped += part < 0;
    tell_head(memory, before, bytes);
    return memory;
}

void indelible_region(const void *start, size_t bytes)
{
    recorder_drain();
    uintptr_t first = (uintptr_t)start / LINE * LINE;
    uintptr_t end = ((uintptr_t)start + bytes + LINE - 1) / LINE * LINE;
    if (!is_recording || bytes == 0 || mapping_of(first) != NULL)
        return;
    struct memory *memory = new_memory("");
    if (memory == NULL || !enlarge(memory, end - first))
        return;
    memcpy(memory->told, (const void *)first, end - first);
    tell_head(memory, 0, end - first);
    map(first, end - first, memory, 0);
}

void *mmap(void *at, size_t bytes, int protection, int flags, int file, off_t offset)
{
    void *start = (void *)syscall(SYS_mmap, at, bytes, protection, flags, file, offset);
    int type = flags & MAP_TYPE;
    int is_shared = type == MAP_SHARED || type == MAP_SHARED_VALIDATE;
    struct stat status;
    if (!is_recording || start == MAP_FAILED || file < 0 || !is_shared ||
        (protection & PROT_WRITE) == 0 || fstat(file, &status) != 0 || !S_ISREG(status.st_mode))
        return start;
    char link[64], name[256];
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = readlink(link, name, sizeof name - 1);
    name[length < 0 ? 0 : length] = 0;
    if (pool != NULL && strcmp(pool, name) != 0)
        return start;
    recorder_drain();
    struct memory *memory = memory_of(file, &status, name);
    if (memory == NULL)
        return start;
    map((uintptr_t)start, bytes, memory, offset);
    const struct mapping *mapping = mapping_of((uintptr_t)start);
    if (mapping != NULL)
        compare(mapping, (uintptr_t)start, (uintptr_t)start + bytes, NOWHERE);
    return start;
}

void *mmap64(void *at, size_t bytes, int protection, int flags, int file, off64_t offset)
{
    return mmap(at, bytes, protection, flags, file, offset);
}

/* What is left of a mapping when a part of it is gone. */
static void unmap(struct mapping *mapping, uintptr_t start, uintptr_t end)
{
    struct mapping before = *mapping;
    *mapping = mappings[--mapping_count];
    if (before.start < start)
        map(before.start, start - before.start, before.memory, before.offset);
    if (before.end > end)
        map(end, before.end - end, before.memory, before.offset + (end - before.start));
}

int munmap(void *at, size_t bytes)
{
    recorder_drain();
    uintptr_t start = (uintptr_t)at, end = start + bytes;
    for (int index = mapping_count - 1; is_recording && index >= 0; index--) {
        struct mapping *mapping = &mappings[index];
        if (mapping->start >= end || mapping->end <= start)
            continue;
        compare(mapping, start, end, CALLER);
        unmap(mapping, start, end);
    }
    return syscall(SYS_munmap, at, bytes);
}

void *mremap(void *at, size_t bytes, size_t wanted, int flags, ...)
{
    recorder_drain();
    va_list arguments;
    va_start(arguments, flags);
    void *to = (flags & MREMAP_FIXED) != 0 ? va_arg(arguments, void *) : NULL;
    va_end(arguments);
    void *start = (void *)syscall(SYS_mremap, at, bytes, wanted, flags, to);
    struct mapping *mapping = mapping_of((uintptr_t)at);
    if (!is_recording || start == MAP_FAILED || mapping == NULL)
        return start;
    struct memory *memory = mapping->memory;
    size_t offset = mapping->offset + ((uintptr_t)at - mapping->start);
    unmap(mapping, (uintptr_t)at, (uintptr_t)at + bytes);
    map((uintptr_t)start, wanted, memory, offset);
    return start;
}

/* A file that is mapped may be longer now, and so may what its mappings have of it. */
static int grown(int file, int failed)
{
    struct stat status;
    for (int index = 0; is_recording && !failed && index < memory_count; index++)
        if (fstat(file, &status) == 0 && memories[index].is_file &&
            memories[index].device == status.st_dev && memories[index].file == status.st_ino)
            memory_of(file, &status, "");
    return failed;
}

int ftruncate(int file, off_t bytes)
{
    return grown(file, syscall(SYS_ftruncate, file, bytes));
}

int ftruncate64(int file, off64_t bytes)
{
    return ftruncate(file, bytes);
}

int fallocate(int file, int mode, off_t offset, off_t bytes)
{
    return grown(file, syscall(SYS_fallocate, file, mode, offset, bytes));
}

int fallocate64(int file, int mode, off64_t offset, off64_t bytes)
{
    return fallocate(file, mode, offset, bytes);
}

int posix_fallocate(int file, off_t offset, off_t bytes)
{
    return fallocate(file, 0, offset, bytes) == 0 ? 0 : errno;
}

int posix_fallocate64(int file, off64_t offset, off64_t bytes)
{
    return posix_fallocate(file, offset, bytes);
}

int msync(void *at, size_t bytes, int flags)
{
    recorder_flushes((uintptr_t)at, bytes, CALLER);
    if (mapping_of((uintptr_t)at) != NULL && (flags & MS_ASYNC) == 0)
        recorder_fences(0, 0, CALLER);
    return syscall(SYS_msync, at, bytes, flags);
}
