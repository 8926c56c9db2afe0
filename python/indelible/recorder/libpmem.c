/* libpmem's functions, as they are where it is installed: they were not built with `indelible cc`,
 * so what they write back and copy is told here. Each calls the one that it stands before. */

#define _GNU_SOURCE
#include <dlfcn.h>

#include "recorder.h"

/* Of the functions with flags: what is copied is not waited for, or not written back
 * (PMEM_F_MEM_NODRAIN and PMEM_F_MEM_NOFLUSH of libpmem.h). */
enum { NO_DRAIN = 1 << 0, NO_FLUSH = 1 << 5 };

/* The next function of this name, which a program that calls it has. */
#define NEXT(name) ((__typeof__(&(name)))dlsym(RTLD_NEXT, #name))

static void copied(const void *at, size_t bytes, unsigned flags, struct from from)
{
    recorder_stored(at, bytes, from);
    if ((flags & NO_FLUSH) == 0)
        recorder_flushes((uintptr_t)at, bytes, from);
    if ((flags & (NO_DRAIN | NO_FLUSH)) == 0)
        recorder_fences(0, 0, from);
}

#define FLUSH(name)                                                                                \
    void name(const void *at, size_t bytes)                                                        \
    {                                                                                              \
        recorder_flushes((uintptr_t)at, bytes, CALLER);                                            \
        recorder_enter();                                                                          \
        NEXT(name)(at, bytes);                                                                     \
        recorder_leave();                                                                          \
    }

FLUSH(pmem_flush)
FLUSH(pmem_deep_flush)

void pmem_persist(const void *at, size_t bytes)
{
    recorder_flushes((uintptr_t)at, bytes, CALLER);
    recorder_fences(0, 0, CALLER);
    recorder_enter();
    NEXT(pmem_persist)(at, bytes);
    recorder_leave();
}

/* Those that may fail have done nothing then. */
#define SYNC(name, flushes)                                                                        \
    int name(const void *at, size_t bytes)                                                         \
    {                                                                                              \
        recorder_enter();                                                                          \
        int failed = NEXT(name)(at, bytes);                                                        \
        recorder_leave();                                                                          \
        if (!failed && flushes)                                                                    \
            recorder_flushes((uintptr_t)at, bytes, CALLER);                                        \
        if (!failed)                                                                               \
            recorder_fences(0, 0, CALLER);                                                         \
        return failed;                                                                             \
    }

SYNC(pmem_msync, 1)
SYNC(pmem_deep_persist, 1)
SYNC(pmem_deep_drain, 0)

void pmem_drain(void)
{
    recorder_fences(0, 0, CALLER);
    recorder_enter();
    NEXT(pmem_drain)();
    recorder_leave();
}

#define COPY(name, type, flags)                                                                    \
    void *name(void *to, type from, size_t bytes)                                                  \
    {                                                                                              \
        recorder_enter();                                                                          \
        NEXT(name)(to, from, bytes);                                                               \
        recorder_leave();                                                                          \
        copied(to, bytes, flags, CALLER);                                                          \
        return to;                                                                                 \
    }

#define COPIES(name, type)                                                                         \
    COPY(name##_persist, type, 0)                                                                  \
    COPY(name##_nodrain, type, NO_DRAIN)                                                           \
    void *name(void *to, type from, size_t bytes, unsigned flags)                                  \
    {                                                                                              \
        recorder_enter();                                                                          \
        NEXT(name)(to, from, bytes, flags);                                                        \
        recorder_leave();                                                                          \
        copied(to, bytes, flags, CALLER);                                                          \
        return to;                                                                                 \
    }

COPIES(pmem_memcpy, const void *)
COPIES(pmem_memmove, const void *)
COPIES(pmem_memset, int)
