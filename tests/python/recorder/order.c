/* A few operations one after the other: the test knows what the trace has of them. */

#include <stdint.h>
#include <string.h>

#include <indelible.h>

static struct {
    uint64_t words[8];
    uint64_t copy[8];
} pool __attribute__((aligned(64)));

static uint64_t elsewhere;

__attribute__((noinline, target("clflushopt"))) static void persist(const void *at)
{
    __builtin_ia32_clflushopt(at);
    __builtin_ia32_sfence();
}

int main(void)
{
    indelible_region(&pool, sizeof pool);
    pool.words[7] = 1;
    indelible_measured();
    pool.words[0] = 2;
    pool.words[5] = 3;
    elsewhere = 4;
    persist(&pool);
    pool.copy[1] = pool.words[0];
    memcpy(&pool.copy[2], pool.words, 16);
    __builtin_ia32_clflush(&pool.copy[1]);
    __atomic_fetch_add(&pool.words[1], 5, __ATOMIC_SEQ_CST);
    indelible_begin();
    __builtin_ia32_movnti64((long long *)&pool.words[2], 6);
    indelible_commit();
    __builtin_ia32_movnti64((long long *)&pool.words[3], 7);
    indelible_mark("told #%0300d", 8);
    return elsewhere != 4;
}
