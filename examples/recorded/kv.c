/* A table of keys and values in a file of persistent memory, with chains of nodes that never change: a
 * put writes a new node, then the pointer to it. It is plain C. Only the marks have to do with being
 * recorded: they say what the program has promised.
 *
 *     indelible cc -o kv kv.c
 *     indelible record -- ./kv pool
 *     indelible crash --design undo@x86 --replay kv.trace --check './kv --verify'
 *
 * Built with -DLINKS_FIRST it has a bug that no test without a power failure finds. */

#include <fcntl.h>
#include <immintrin.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <indelible.h>

enum { BUCKETS = 8, NODES = 40, PUTS = 30, KEYS = 12 };

struct node {
    uint64_t key;
    /* The number of the next node in the chain, from 1 on; 0 ends the chain. */
    uint64_t next;
    char value[80];
};

struct pool {
    uint64_t buckets[BUCKETS];
    uint64_t used;
    struct node nodes[NODES];
};

/* Writes the bytes back, and waits until that is done. */
__attribute__((target("clflushopt"))) static void persist(const void *at, size_t bytes)
{
    uintptr_t end = (uintptr_t)at + bytes;
    for (uintptr_t line = (uintptr_t)at & ~63ul; line < end; line += 64)
        _mm_clflushopt((void *)line);
    _mm_sfence();
}

static void value_of(uint64_t key, uint64_t version, char value[80])
{
    memset(value, 0, 80);
    snprintf(value, 80, "%lu is the version of the value of key %lu", version, key);
}

static void put(struct pool *pool, uint64_t key, const char value[80])
{
    uint64_t *bucket = &pool->buckets[key % BUCKETS];
    struct node *node = &pool->nodes[pool->used];
    /* The node is taken first: a power failure may lose a node, but no node is used twice. */
    pool->used++;
    persist(&pool->used, sizeof pool->used);
    node->key = key;
    node->next = *bucket;
    memcpy(node->value, value, sizeof node->value);
#ifdef LINKS_FIRST
    *bucket = node - pool->nodes + 1;
    persist(bucket, sizeof *bucket);
    persist(node, sizeof *node);
#else
    persist(node, sizeof *node);
    *bucket = node - pool->nodes + 1;
    persist(bucket, sizeof *bucket);
#endif
}

static const struct node *get(const struct pool *pool, uint64_t key)
{
    for (uint64_t place = pool->buckets[key % BUCKETS]; place != 0;) {
        const struct node *node = &pool->nodes[place - 1];
        if (node->key == key)
            return node;
        place = node->next;
    }
    return NULL;
}

static void fill(struct pool *pool)
{
    char value[80];
    for (uint64_t count = 0; count < PUTS; count++) {
        value_of(count % KEYS, count / KEYS, value);
        put(pool, count % KEYS, value);
        indelible_mark("%lu", count + 1);
    }
}

/* Whether each node is in use, and behind those that were put after it. */
static int is_sound(const struct pool *pool)
{
    for (int bucket = 0; bucket < BUCKETS; bucket++) {
        uint64_t before = pool->used + 1;
        for (uint64_t place = pool->buckets[bucket]; place != 0;) {
            if (place >= before || place > NODES)
                return 0;
            before = place;
            place = pool->nodes[place - 1].next;
        }
    }
    return 1;
}

/* What recovery would do: whether every put that was promised is there, and whole. */
static int verify(const struct pool *pool, uint64_t promised)
{
    char value[80], next[80];
    if (!is_sound(pool)) {
        puts("a chain leads to a node that is not in use");
        return 1;
    }
    for (uint64_t key = 0; key < KEYS; key++) {
        const struct node *node = get(pool, key);
        uint64_t versions = (promised + KEYS - 1 - key) / KEYS;
        if (node == NULL && versions > 0) {
            printf("key %lu is gone, of which version %lu was promised\n", key, versions - 1);
            return 1;
        }
        if (node == NULL)
            continue;
        /* The put that was under way may be there, too. */
        value_of(key, versions, next);
        value_of(key, versions - 1, value);
        int is_old = versions > 0 && memcmp(node->value, value, sizeof value) == 0;
        if (!is_old && memcmp(node->value, next, sizeof next) != 0) {
            printf("key %lu has a value that nobody put: \"%.20s\"\n", key, node->value);
            return 1;
        }
    }
    return 0;
}

int main(int argc, char **argv)
{
    int verifies = argc == 3 && strcmp(argv[1], "--verify") == 0;
    if (argc != 2 && !verifies) {
        fprintf(stderr, "kv [--verify] POOL\n");
        return 2;
    }
    int file = open(argv[argc - 1], verifies ? O_RDWR : O_RDWR | O_CREAT | O_TRUNC, 0600);
    if (file < 0 || (!verifies && ftruncate(file, sizeof(struct pool)) != 0)) {
        perror(argv[argc - 1]);
        return 2;
    }
    struct pool *pool =
        mmap(NULL, sizeof *pool, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (pool == MAP_FAILED) {
        perror("mmap");
        return 2;
    }
    if (!verifies) {
        fill(pool);
        return 0;
    }
    /* Outside of a campaign all puts were promised; before the first mark none was. */
    const char *mark = getenv("INDELIBLE_MARK");
    return verify(pool, mark == NULL ? PUTS : strtoul(mark, NULL, 10));
}
