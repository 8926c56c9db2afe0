/* The compiler's calls for atomic accesses of 16 bytes. The processor has one operation for them, and
 * all others are made of it. */

#include <stdint.h>

#include "recorder.h"

typedef unsigned __int128 wide;

/* Stores a value where what is expected is; else tells what is. */
static int exchange_if(volatile wide *at, wide *expected, wide value)
{
    uint64_t low = *expected, high = *expected >> 64;
    int done;
    __asm__ volatile("lock cmpxchg16b %1"
                     : "=@ccz"(done), "+m"(*at), "+a"(low), "+d"(high)
                     : "b"((uint64_t)value), "c"((uint64_t)(value >> 64))
                     : "memory");
    *expected = (wide)high << 64 | low;
    return done;
}

/* What is there, which is all that is stored there. */
static wide load(volatile wide *at)
{
    wide value = 0;
    exchange_if(at, &value, 0);
    return value;
}

static wide exchange(volatile wide *at, wide value)
{
    wide old = load(at);
    while (!exchange_if(at, &old, value))
        ;
    return old;
}

wide __tsan_atomic128_load(volatile wide *at, int order)
{
    (void)order;
    recorder_meets();
    recorder_loads(at, sizeof *at, CALLER);
    return load(at);
}

void __tsan_atomic128_store(volatile wide *at, wide value, int order)
{
    if (order == __ATOMIC_SEQ_CST)
        recorder_locked(CALLER);
    else
        recorder_meets();
    exchange(at, value);
    recorder_stored(at, sizeof *at, CALLER);
}

wide __tsan_atomic128_exchange(volatile wide *at, wide value, int order)
{
    (void)order;
    recorder_locked(CALLER);
    wide old = exchange(at, value);
    recorder_stored(at, sizeof *at, CALLER);
    return old;
}

#define FETCH(name, result)                                                                        \
    wide __tsan_atomic128_fetch_##name(volatile wide *at, wide value, int order)                   \
    {                                                                                              \
        (void)order;                                                                               \
        recorder_locked(CALLER);                                                                   \
        wide old = load(at);                                                                       \
        while (!exchange_if(at, &old, result))                                                     \
            ;                                                                                      \
        recorder_stored(at, sizeof *at, CALLER);                                                   \
        return old;                                                                                \
    }

FETCH(add, old + value)
FETCH(sub, old - value)
FETCH(and, old & value)
FETCH(or, old | value)
FETCH(xor, old ^ value)
FETCH(nand, ~(old & value))

#define EXCHANGE_IF(name)                                                                          \
    int __tsan_atomic128_compare_exchange_##name(volatile wide *at, wide *expected, wide value,    \
                                                 int order, int failed)                            \
    {                                                                                              \
        (void)order, (void)failed;                                                                 \
        recorder_locked(CALLER);                                                                   \
        int done = exchange_if(at, expected, value);                                               \
        if (done)                                                                                  \
            recorder_stored(at, sizeof *at, CALLER);                                               \
        return done;                                                                               \
    }

EXCHANGE_IF(strong)
EXCHANGE_IF(weak)

wide __tsan_atomic128_compare_exchange_val(volatile wide *at, wide expected, wide value, int order,
                                           int failed)
{
    (void)order, (void)failed;
    recorder_locked(CALLER);
    if (exchange_if(at, &expected, value))
        recorder_stored(at, sizeof *at, CALLER);
    return expected;
}
