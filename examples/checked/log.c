/* A log of records in persistent memory: a record is written, then the number of records.
 *
 *     cc -o log log.c && ./log > log.trace
 *     indelible crash --design undo@x86 --replay log.trace --check './log'
 *
 * With a file's name it checks the memory in that file. Built with -DFORGETS_A_FLUSH it has a bug that
 * no test without a power failure finds. */

#include <stdlib.h>
#include <string.h>

#include "trace.h"

enum { RECORDS = 12, WORDS = 11 };

struct record {
    uint64_t key;
    uint64_t words[WORDS];
};

static struct {
    uint64_t count;
    uint64_t unused[7];
    struct record records[RECORDS];
} pool __attribute__((aligned(64)));

/* What the record of a key holds in one of its words. */
static uint64_t word_of(uint64_t key, int word)
{
    return 1000 * key + word;
}

static void append(uint64_t key)
{
    struct record *record = &pool.records[pool.count];
    PM_STORE(&record->key, key);
    for (int word = 0; word < WORDS; word++)
        PM_STORE(&record->words[word], word_of(key, word));
#ifdef FORGETS_A_FLUSH
    /* A record has 96 bytes and lies in two lines, and this is the first. */
    PM_FLUSH(record, 1);
#else
    PM_FLUSH(record, sizeof *record);
#endif
    PM_FENCE();
    PM_STORE(&pool.count, pool.count + 1);
    PM_FLUSH(&pool.count, sizeof pool.count);
    PM_FENCE();
    PM_MARK("%lu", (unsigned long)pool.count);
}

/* What recovery would do: says what is wrong with the memory in a file. */
static int check(const char *name)
{
    FILE *file = fopen(name, "rb");
    if (file == NULL || fread(&pool, sizeof pool, 1, file) != 1) {
        printf("%s is no pool\n", name);
        return 2;
    }
    const char *mark = getenv("INDELIBLE_MARK");
    uint64_t promised = mark == NULL ? 0 : strtoul(mark, NULL, 10);
    if (pool.count > RECORDS || pool.count < promised) {
        printf("%lu records, and %lu were promised\n", (unsigned long)pool.count,
               (unsigned long)promised);
        return 1;
    }
    for (uint64_t at = 0; at < pool.count; at++)
        for (int word = 0; word < WORDS; word++)
            if (pool.records[at].words[word] != word_of(pool.records[at].key, word)) {
                printf("record %lu of %lu is damaged\n", (unsigned long)at + 1,
                       (unsigned long)pool.count);
                return 1;
            }
    return 0;
}

int main(int argc, char **argv)
{
    if (argc > 1)
        return check(argv[1]);
    pm_begin(&pool, sizeof pool);
    for (uint64_t key = 1; key <= RECORDS; key++)
        append(key);
    return 0;
}
