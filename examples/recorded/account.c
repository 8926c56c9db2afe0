/* Two balances in persistent memory whose sum is always 100: see docs/tutorial.md.
 *
 *     indelible cc -o account examples/recorded/account.c
 *     indelible record -- ./account pool
 *     indelible crash --design undo@x86 --replay account.trace --check './account --verify'
 *
 * Every store is flushed and fenced at once, so a power failure between the two of a transfer breaks
 * the sum. Built with -DTRANSACTIONS a transfer is a transaction, which any design makes atomic. */

#include <fcntl.h>
#include <immintrin.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <indelible.h>

enum { TRANSFERS = 8, TOTAL = 100 };

/* Writes a word back, and waits until that is done. */
__attribute__((target("clflushopt"))) static void persist(const uint64_t *word)
{
    _mm_clflushopt((void *)word);
    _mm_sfence();
}

static void move(uint64_t *from, uint64_t *to, uint64_t amount)
{
#ifdef TRANSACTIONS
    indelible_begin();
    *from -= amount;
    *to += amount;
    indelible_commit();
#else
    *from -= amount;
    persist(from);
    *to += amount;
    persist(to);
#endif
}

static int verify(const uint64_t *balances)
{
    uint64_t sum = balances[0] + balances[1];
    if (sum == TOTAL)
        return 0;
    printf("the balances are %lu and %lu", balances[0], balances[1]);
    return 1;
}

int main(int argc, char **argv)
{
    if (argc < 2)
        return 2;
    int file = open(argv[argc - 1], O_CREAT | O_RDWR, 0600);
    if (file < 0 || ftruncate(file, 4096) != 0)
        return 2;
    uint64_t *balances = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (balances == MAP_FAILED)
        return 2;
    if (strcmp(argv[1], "--verify") == 0)
        return verify(balances);
    balances[0] = TOTAL;
    balances[1] = 0;
    persist(&balances[0]);
    indelible_measured();
    for (int number = 0; number < TRANSFERS; number++)
        move(&balances[0], &balances[1], 10);
    return 0;
}
