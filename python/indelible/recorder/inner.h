/* What the parts of the recorder's library know of each other. */

#ifndef INDELIBLE_INNER_H
#define INDELIBLE_INNER_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "recorder.h"

#pragma GCC visibility push(hidden)

enum { LINE = 64 };

/* text.c */

struct text {
    int file;
    uint64_t written;
    size_t used;
    char buffer[1 << 16];
};

void put_character(struct text *to, char character);
void put(struct text *to, const char *words);
void put_number(struct text *to, uint64_t number, unsigned radix);
void put_hex(struct text *to, uint64_t number);
void put_bytes(struct text *to, const unsigned char *bytes, size_t count);
void write_out(struct text *to);

/* memory.c */

/* Persistent memory: a file, of which all is, or what the program has named. */
struct memory {
    /* Where a trace has it. */
    uintptr_t place;
    size_t bytes;
    /* What the trace says that it holds. */
    unsigned char *told;
    int is_file;
    dev_t device;
    ino_t file;
    char name[256];
};

/* Where the program has a part of it. It may be longer than the file is by now. */
struct mapping {
    uintptr_t start, end;
    struct memory *memory;
    size_t offset;
};

enum { MEMORIES_MAX = 64, MAPPINGS_MAX = 256 };

extern struct memory memories[MEMORIES_MAX];
extern int memory_count;
extern struct mapping mappings[MAPPINGS_MAX];
extern int mapping_count;

/* The one file that is persistent memory, if the user names one. */
extern const char *pool;

/* The part of persistent memory that holds an address. */
struct mapping *mapping_of(uintptr_t at);

/* Where the part of a mapping ends that is memory. */
static inline uintptr_t end_of(const struct mapping *mapping)
{
    size_t mapped = mapping->end - mapping->start;
    size_t held = mapping->memory->bytes > mapping->offset
                      ? mapping->memory->bytes - mapping->offset
                      : 0;
    return mapping->start + (mapped < held ? mapped : held);
}

static inline uintptr_t place_of(const struct mapping *mapping, uintptr_t at)
{
    return mapping->memory->place + mapping->offset + (at - mapping->start);
}

static inline unsigned char *told_of(const struct mapping *mapping, uintptr_t at)
{
    return mapping->memory->told + mapping->offset + (at - mapping->start);
}

/* recorder.c */

extern int is_recording;

/* What is there when recording begins. */
extern struct text head;

struct counts {
    uint64_t stores, streams, loads, flushes, fences, marks, transactions, work;
    /* Bytes that changed without a store that was seen, the first of them, and what came after it.
     * */
    uint64_t unseen, unseen_at, unseen_from;
    /* Stores of other threads, and what the trace has no room for. */
    uint64_t strangers, dropped;
};

extern struct counts counts;

extern const struct from NOWHERE;

/* Looks in a part of a mapping for bytes that changed without a store that was seen, and tells
 * them. */
void compare(const struct mapping *mapping, uintptr_t at, uintptr_t end, struct from from);

/* Tells what a part of memory holds when recording begins, which is what is told of it. */
void tell_head(const struct memory *memory, size_t from, size_t to);

#pragma GCC visibility pop

#endif
