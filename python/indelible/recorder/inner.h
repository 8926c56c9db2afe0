/* The declarations that the parts of the recorder's library share. */

#ifndef INDELIBLE_INNER_H
#define INDELIBLE_INNER_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include "recorder.h"

#pragma GCC visibility push(hidden)

enum {
    LINE = 64,
    PAGE = 4096,
    /* Memory is read and compared in parts of so many bytes, and parts that were never used are
     * passed over. */
    PART = 1 << 16,
    /* File descriptors from here on are far from those that programs count on (ours). */
    FAR = 500,
};

/* text.c */

struct text {
    int file;
    dev_t device;
    ino_t inode;
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

/* Makes a system call; returns a negative number if it fails. */
long system_call(long number, const long arguments[6]);

/* Makes a file empty. */
void empty(struct text *text);

/* Opens a file under a descriptor that the program neither closes nor takes for another. */
void open_text(struct text *text, int file);

/* origins.c */

/* Where the stack of the present thread ends, above all frames of the program; 0 if that is not
 * known. */
extern __thread uintptr_t stack_end;

/* Notes a place for when the functions that led there have returned. */
struct from keep(struct from from);

/* Behind an operation: the number of the place that it comes from. */
void put_from(struct text *to, struct from from);

/* Puts each place in a line: its number, its instruction and the calls that led there. */
void put_places(struct text *to);

/* memory.c */

/* A persistent memory: a whole file, or a region that the program has named. */
struct memory {
    /* Its address in the trace. */
    uintptr_t place;
    /* The most bytes that it has had, and those that are left since its file was cut off. */
    size_t bytes, left;
    /* Its bytes, as the trace has them. */
    unsigned char *told;
    /* For each line, whether it was stored to since it was last written back. */
    unsigned char *dirty;
    /* For each part, whether anything of it was told. The other parts are zeros, and their bytes in
     * `told` and `dirty` have never been touched. */
    unsigned char *used;
    int is_file;
    dev_t device;
    ino_t file;
    char name[4096];
};

/* Marks the parts that hold these bytes as used. */
static inline void use(const struct memory *memory, size_t offset, size_t bytes)
{
    for (size_t part = offset / PART; part <= (offset + bytes - 1) / PART; part++)
        memory->used[part] = 1;
}

/* Returns the line after this one; if its part is not used, the first line after the part. */
static inline size_t next_line(const struct memory *memory, size_t line)
{
    return memory->used[line / PART] ? line + LINE : (line / PART + 1) * PART;
}

/* A range of the program's addresses that shows a part of a memory. It may reach beyond the end of
 * the file. */
struct mapping {
    uintptr_t start, end;
    struct memory *memory;
    size_t offset;
};

enum {
    MEMORIES_MAX = 64,
    MAPPINGS_MAX = 256,
    /* Larger files are read as files that may have holes (ours). */
    SPARSE_MIN = 64 << 20,
};

extern struct memory memories[MEMORIES_MAX];
extern int memory_count;
extern struct mapping mappings[MAPPINGS_MAX];
extern int mapping_count;

/* The only file that is persistent memory, if the user names one. */
extern const char *pool;

/* Returns the mapping of persistent memory that holds an address, if one does. */
struct mapping *mapping_of(uintptr_t at);

/* Returns the first mapping that has anything of a range of addresses, if one has. */
struct mapping *mapping_within(uintptr_t at, uintptr_t end);

/* Returns the memory that is this file, if one is. */
struct memory *memory_of_file(int file);

/* Writes to the head of the trace what a part of memory holds when recording begins. */
void tell_head(const struct memory *memory, size_t from, size_t to);

/* Looks for files that have grown without a call that was seen. */
void look_at_files(void);

/* Returns where a mapping, or the file below it, ends. */
static inline uintptr_t end_of(const struct mapping *mapping)
{
    size_t mapped = mapping->end - mapping->start;
    size_t left =
        mapping->memory->left > mapping->offset ? mapping->memory->left - mapping->offset : 0;
    return mapping->start + (mapped < left ? mapped : left);
}

/* Returns the offset of an address in its memory. */
static inline size_t offset_of(const struct mapping *mapping, uintptr_t at)
{
    return mapping->offset + (at - mapping->start);
}

static inline uintptr_t place_of(const struct mapping *mapping, uintptr_t at)
{
    return mapping->memory->place + offset_of(mapping, at);
}

static inline unsigned char *told_of(const struct mapping *mapping, uintptr_t at)
{
    return mapping->memory->told + offset_of(mapping, at);
}

/* threads.c */

enum kind { NOTHING, STORE, STREAM, MASKED, MASKED_STREAM, LOCKED };

/* A store that is about to be made. */
struct pending {
    enum kind kind;
    uintptr_t at;
    size_t bytes;
    struct from from;
};

/* What a thread does. It runs, or is away in the system; is ready, and waits for its turn; waits until
 * it is called; has ended; or was joined, and another thread may take its place in the table. */
enum state { RUNS, READY, WAITS, ENDED, JOINED };

enum {
    THREADS_MAX = 1024,
    /* The most threads of a trace (docs/replay.md). */
    LANES_MAX = 64,
};

struct thread {
    enum state state;
    /* Its number in the trace; -1 until it does something that is told. */
    int lane;
    /* Its names in the system and in the C library. */
    int id;
    uintptr_t handle;
    int is_detached;
    /* How often its destructors were called. */
    int endings;
    /* The futex at which it waits for its turn; another thread sets it to 1. */
    int called;
    /* Whether it is inside the recorder, where a signal's handler may interrupt it. */
    int is_busy;
    /* How many functions it is in that are told as a whole, without what they do; and in how many it
     * keeps its turn while it waits in the system. */
    int entered, keeps;
    /* How often it entered the recorder. */
    uint64_t steps;
    /* What it waits for, its rank among all waiting threads, and until when on which clock. */
    const void *waits_for;
    uint64_t waits_since;
    int clock;
    const struct timespec *until;
    int is_late;
    /* The store that is about to be told, and one that was told and may not have been made yet. */
    struct pending pending, late;
    uint64_t work;
    /* Whether lines written back, or stores past the caches, wait for a fence. */
    int is_unfenced;
    int in_transaction;
    /* Where its transaction began, and the stores of that (transactions.c). */
    struct from began;
    struct stored *stored;
    size_t stored_count, stored_room;
};

extern struct thread threads[THREADS_MAX];

/* The most threads that there were at one time. */
extern int thread_count;

/* Whether there is more than one thread, so that they take turns. */
extern int is_scheduling;

/* Seeds every random choice. */
void seed_with(uint64_t number);

/* The present thread. NULL before a thread whose beginning was not seen first comes here;
 * unknown_thread() then finds it a place, if there is one. */
extern __thread struct thread *mine;
struct thread *unknown_thread(void);

static inline struct thread *this_thread(void)
{
    return mine != NULL ? mine : unknown_thread();
}

/* Makes a place for a thread that is about to begin; that thread then becomes it. */
struct thread *new_thread(void);
void become(struct thread *thread);

/* Notes that the present thread has ended. */
void end_thread(struct thread *thread);

/* Ends the trace. What other threads would do until the process ends is not in it, so each stops at
 * the first operation that would be told. */
void end_recording(void);
void stop_behind_the_end(void);

/* Returns when it is a thread's turn. The thread may first pass its turn on: never while a store is
 * still to be told, and more often where threads meet or where it is decided what persists. */
enum pass { STAYS, MAY_PASS, LIKELY };
void take_turn(struct thread *thread, enum pass pass);

/* Lets others have their turn instead of a thread whose turn it is; returns whether any wanted it. */
int give_way(struct thread *thread);

/* Has a thread whose turn it is wait until it is called, or until a time; returns whether it was
 * called. */
int wait_for(struct thread *thread, const void *what, int clock, const struct timespec *until);

/* Calls the thread that has waited longest for something; returns whether there was one. */
int call(const void *what);

/* Makes a waiting thread ready for a turn; returns whether it waited. */
int awake(struct thread *thread);

/* Returns a thread's number in the trace; forgets all numbers, which are then given anew. */
int lane_of(struct thread *thread);
void forget_lanes(void);

/* recorder.c */

extern int is_recording;

/* The memory's contents when recording begins, and the operations from then on. */
extern struct text head, body;

/* The most bytes of each, and whether loads are told. */
extern uint64_t bytes_max;
extern int tells_loads;

struct counts {
    uint64_t stores, streams, loads, flushes, fences, marks, transactions, work;
    /* Bytes that changed without a store that was seen, the first of them, and the operation after
     * it. */
    uint64_t unseen, unseen_at;
    struct from unseen_from;
    /* Threads, and operations that came while another was being told (from a signal's handler). */
    uint64_t threads, nested;
    /* Children of the program. */
    uint64_t forks;
    /* Why something is missing: the trace is full, there are too many files, or the system failed. */
    uint64_t full, crowded, failed;
    /* What is wrong with the program's transactions, and where: for verbs/record.py. */
    enum wrong {
        RIGHT,
        NOT_PUT_BACK,
        NESTED,
        COMMITS_NONE,
        ABORTS_NONE,
        UNENDED,
        MEASURED_WITHIN
    } wrong;
    uint64_t wrong_at;
    struct from wrong_from, wrong_since;
};

extern struct counts counts;

extern const struct from NOWHERE;

/* Tells each run of bytes that are not as they were told, and, if they are flushed, writes them
 * back; returns how many bytes were not. */
uint64_t tell_differences(struct thread *thread, const struct mapping *mapping, uintptr_t at,
                          uintptr_t end, int is_flushed, struct from from);

/* unseen.c */

/* Looks for bytes that changed without a store that was seen, in memory that can be read. */
void compare(const struct mapping *mapping, uintptr_t at, uintptr_t end, struct from from);

/* Looks for such bytes in a part of a mapping, or in all mappings, and passes over memory that
 * cannot be read any more. */
void compare_mapping(const struct mapping *mapping, uintptr_t at, uintptr_t end, struct from from);
void compare_all(struct from from);

/* Looks for such bytes in all mappings, as often as the fences so far allow. */
void compare_at_fence(struct from from);

/* transactions.c */

/* Notes the old bytes of a part of a memory before a store in a thread's transaction is told. */
void note_old(struct thread *thread, const struct memory *memory, size_t offset, size_t bytes,
              struct from from);

/* Notes that a thread's transaction begins or ends. */
void note_transaction(struct thread *thread, enum step step, struct from from);

/* Notes an error if any transaction is open here, where the program ends or the recording begins. */
void note_open(enum wrong wrong, struct from from);

/* Notes that a thread ends, which must not be within a transaction. */
void end_transactions(struct thread *thread);

/* recorder.c */

void recorder_compares(uintptr_t start, uintptr_t end, struct from from);

/* Tells that the stores to a file have been written back, whether it is still mapped or not. */
void recorder_syncs_all(const struct memory *memory, struct from from);

/* Tells that a part of memory is zeros now, wherever anything else was told of it. */
void tell_zeros(const struct memory *memory, size_t from, size_t to);

/* Tells the store that a thread was about to make, which is in memory by now. */
void drain(struct thread *thread);

/* Forgets all that was told. */
void forget(struct from from);

#pragma GCC visibility pop

#endif
