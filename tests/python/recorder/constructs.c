/* Every way of storing that the recorder sees, one after the other, to a file that is mapped. The test
 * compares what the trace says with what the file holds. */

#define _GNU_SOURCE
#include <fcntl.h>
#include <immintrin.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <wchar.h>

#include "indelible.h"

struct pair {
    uint32_t first;
    uint16_t second;
    uint8_t third;
} __attribute__((packed));

struct flags {
    unsigned low : 3, middle : 7, high : 20;
};

struct large {
    uint64_t words[13];
};

#ifdef UNSEEN
/* The compiler tells of no store where a function returns a structure right into memory. */
__attribute__((noinline)) static struct large many(uint64_t first)
{
    struct large large;
    for (int word = 0; word < 13; word++)
        large.words[word] = first + word;
    return large;
}
#endif

static unsigned char *pool;
static size_t used;

/* The next so many bytes, in lines of their own. */
static void *next(size_t bytes)
{
    void *at = pool + used;
    used += (bytes + 127) / 64 * 64;
    return at;
}

static void plain(void)
{
    *(uint8_t *)next(1) = 0x11;
    *(uint16_t *)next(2) = 0x2222;
    *(uint32_t *)next(4) = 0x33333333;
    *(uint64_t *)next(8) = 0x4444444444444444;
    *(__int128 *)next(16) = ((__int128)5 << 64) | 6;
    *(float *)next(4) = 1.5f;
    *(double *)next(8) = 2.5;
    *(volatile uint32_t *)next(4) = 0x77777777;
    *(uint64_t *)((char *)next(16) + 3) = 0x8888888888888888;
    struct pair *pair = next(sizeof *pair);
    *pair = (struct pair){1, 2, 3};
    pair->first += 10;
    struct flags *flags = next(sizeof *flags);
    flags->low = 5;
    flags->high = 0x12345;
    struct large *large = next(sizeof *large), *copy = next(sizeof *copy);
    large->words[12] = 100;
    *copy = *large;
#ifdef UNSEEN
    *large = many(100);
#endif
    uint32_t *row = next(100 * sizeof *row);
    for (int place = 0; place < 100; place++)
        row[place] = place * place;
}

static void functions(int argument)
{
    char *text = next(300);
    memset(text, 'a', 100);
    memset(text + 100, 'b', 64);
    memcpy(text + 164, text, 100);
    memmove(text + 1, text, 50);
    strcpy(next(40), "copied");
    strncpy(next(40), "padded", 20);
    char *joined = next(40);
    strcpy(joined, "one");
    strcat(joined, "two");
    *stpcpy(next(40), "end") = '!';
    char *filled = next(64);
    mempcpy(filled, "0123456789", 10);
    wmemset(next(80), L'w', 5);
    *wmempcpy(wmemmove(wmemcpy(next(80), L"wide", 3), L"id", 1), L"e", 1) = L'!';
    wcscpy(next(80), L"wide");
    strncat(strncat(strcpy(next(40), "1"), "2345", 2), "6", 2);
    *stpncpy(memset(next(40), 's', 40), "stpncpy", 10) = '!';
    if (memccpy(next(40), "key:value", ':', 9) == NULL || memccpy(next(40), "key", ':', 3) != NULL)
        abort();
    __builtin_mempcpy(next(40), "mempcpy", 7);
    __builtin_strcat(__builtin_strcpy(next(40), "one"), "two");
    *__builtin_stpcpy(next(40), "end") = '!';
    __builtin_strncpy(next(40), "padded", 20);
    __builtin_strncat(__builtin_stpncpy(next(40), "stpncpy", 10), "more", 2);
    __builtin_snprintf(next(20), 10, "%s", "two");
    __builtin_sprintf(next(20), "%s", "three");
    __builtin_bzero(memset(next(40), 'z', 40), 9);
    bcopy("bcopy", next(40), 6);
    int zeros = open("/dev/zero", O_RDONLY);
    if (read(zeros, text + 20, 10) != 10 || pread(zeros, text + 40, 5, 0) != 5)
        abort();
    close(zeros);
    snprintf(next(20), 10, "%d and more than that", argument);
    snprintf(next(20), 20, "%.2f", argument + 0.25);
    sprintf(next(20), "%x", argument);
    FILE *stream = fopen("/dev/zero", "r");
    if (fread(memset(next(20), 'f', 20), 3, 4, stream) != 4)
        abort();
    fclose(stream);
    /* Of the second one there is a part. */
    stream = fmemopen("partly", 5, "r");
    if (fread(next(20), 3, 4, stream) != 1)
        abort();
    fclose(stream);
}

static void atomics(void)
{
    _Atomic uint64_t *word = next(8);
    atomic_store(word, 7);
    atomic_fetch_add(word, 5);
    atomic_exchange(word, atomic_load(word) + 1);
    uint64_t expected = 13;
    atomic_compare_exchange_strong(word, &expected, 99);
    atomic_compare_exchange_strong(word, &expected, 1);
    _Atomic uint8_t *byte = next(1);
    atomic_store_explicit(byte, 3, memory_order_release);
    atomic_fetch_or(byte, 8);
    __sync_fetch_and_sub((uint32_t *)next(4), 1);
    typedef unsigned __int128 wide;
    wide *pair = next(sizeof *pair), one = (wide)1 << 64 | 1, seen = 0;
    __atomic_store_n(pair, one, __ATOMIC_RELEASE);
    if (__atomic_fetch_add(pair, one, __ATOMIC_SEQ_CST) != one ||
        __atomic_exchange_n(pair, ~one, __ATOMIC_SEQ_CST) != 2 * one ||
        __atomic_fetch_nand(pair, 6, __ATOMIC_SEQ_CST) != ~one ||
        __atomic_compare_exchange_n(pair, &seen, 7, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST) ||
        !__sync_bool_compare_and_swap(pair, seen, seen - one) ||
        __atomic_load_n(pair, __ATOMIC_ACQUIRE) != ~(~one & 6) - one)
        abort();
    __sync_synchronize();
}

static void past_the_caches(void)
{
    _mm_stream_si32(next(4), 0x01020304);
    _mm_stream_si64(next(8), 0x0102030405060708);
    _mm_stream_si128(next(16), _mm_set1_epi8(9));
    _mm_storel_pi(next(8), _mm_set1_ps(3));
    _mm_storeh_pi(next(8), _mm_set1_ps(4));
    _mm_sfence();
}

static void assembly(void)
{
    uint64_t *word = next(8), value = 0x1234567812345678;
    __asm__ volatile("movq %1, %0" : "=m"(*word) : "r"(value));
    __asm__ volatile("movl %1, %0" : "=m"(*(uint32_t *)next(4)) : "r"((uint32_t)value));
    __asm__ volatile("lock; incq %0" : "+m"(*word));
    __asm__ volatile("lock addl $3, %0" : "+m"(*(uint32_t *)next(4)));
    void *to = next(40), *from = pool;
    uint64_t count = 40;
    __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(count) : : "memory");
    to = next(32), count = 4;
    __asm__ volatile("rep stosq" : "+D"(to), "+c"(count) : "a"(value) : "memory");
    __asm__ volatile("movnti %1, %0" : "=m"(*(uint64_t *)next(8)) : "r"(value));
    __asm__ volatile("movdqu %%xmm0, %0" : "=m"(*(__int128 *)next(16)));
}

static void flushes(void)
{
    uint64_t *word = next(8);
    *word = 1;
    _mm_clflush(word);
    *word = 2;
    /* What assemblers that do not know it have for clflushopt. Every processor takes it for one of both. */
    __asm__ volatile(".byte 0x66; clflush %0" : "+m"(*word));
    _mm_mfence();
}

/* What the program has in registers and flags around a flush stays there. */
static int keeps_registers(void)
{
    uint64_t *word = next(8), kept[12] = {0};
    __m128i vector = _mm_set1_epi8(0x5a);
    unsigned char carry = 0;
    __asm__ volatile("movq $1, %%rax; movq $2, %%rcx; movq $3, %%rdx; movq $4, %%rsi; movq $5, %%rdi;"
                     "movq $6, %%r8; movq $7, %%r9; movq $8, %%r10; movq $9, %%r11; stc;"
                     "clflush (%[word]); sfence; movnti %%rcx, (%[word]);"
                     "movq %%rax, 0(%[kept]); movq %%rcx, 8(%[kept]); movq %%rdx, 16(%[kept]);"
                     "movq %%rsi, 24(%[kept]); movq %%rdi, 32(%[kept]); movq %%r8, 40(%[kept]);"
                     "movq %%r9, 48(%[kept]); movq %%r10, 56(%[kept]); movq %%r11, 64(%[kept]);"
                     "setc %[carry]"
                     : [carry] "+m"(carry), "+x"(vector)
                     : [word] "b"(word), [kept] "r"(kept)
                     : "rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "memory", "cc");
    for (uint64_t place = 0; place < 9; place++)
        if (kept[place] != place + 1)
            return 0;
    return carry == 1 && _mm_extract_epi16(vector, 5) == 0x5a5a;
}

int main(int argc, char **argv)
{
    int file = open(argv[argc - 1], O_RDWR | O_CREAT | O_TRUNC, 0600);
    if (file < 0 || ftruncate(file, 16384) != 0)
        return 2;
    pool = mmap(NULL, 16384, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    plain();
    functions(argc);
    atomics();
    past_the_caches();
    assembly();
    flushes();
    if (!keeps_registers())
        return 3;
    indelible_mark("done %d # of %s, %.1f", 1, "many", argc / 4.0);
    return munmap(pool, 16384);
}
