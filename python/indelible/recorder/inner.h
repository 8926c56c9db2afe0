/* What the parts of the recorder's library know of each other. */

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
    /* Memory is read, compared and, where nothing was ever in it, passed over by so many bytes. */
    PART = 1 << 16,
    /* Numbers of files from here on are far from those that programs count on (ours). */
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

/* A system call, which returns a negative number where it fails. */
long system_call(long number, const long arguments[6]);

/* Makes a file empty. */
void empty(struct text *text);

/* Opens a file, which nobody else closes or takes for another. */
void open_text(struct text *text, int file);

/* memory.c */

/* Persistent memory: a file, of which all is, or what the program has named. */
struct memory {
    /* Where a trace has it. */
    uintptr_t place;
    /* What it has held at the most, and what a file that has been cut off has left of that. */
    size_t bytes, left;
    /* What the trace says that it holds. */
    unsigned char *told;
    /* For each line, whether it was stored to since it was written back. */
    unsigned char *dirty;
    /* For each part, whether anything of it was told: the others are zeros, and nobody has touched
     * what would hold them. */
    unsigned char *used;
    int is_file;
    dev_t device;
    ino_t file;
    char name[4096];
};

/* Something is told of a part of it. */
static inline void use(const struct memory *memory, size_t offset, size_t bytes)
{
    for (size_t part = offset / PART; part <= (offset + bytes - 1) / PART; part++)
        memory->used[part] = 1;
}

/* The line behind one, or behind its part if that is not used. */
static inline size_t next_line(const struct memory *memory, size_t line)
{
    return memory->used[line / PART] ? line + LINE : (line / PART + 1) * PART;
}

/* Where the program has a part of it. It may be longer than the file is by now. */
struct mapping {
    uintptr_t start, end;
    struct memory *memory;
    size_t offset;
};

enum {
    MEMORIES_MAX = 64,
    MAPPINGS_MAX = 256,
    /* Files that are larger are taken to have holes (ours). */
    SPARSE_MIN = 64 << 20,
};

extern struct memory memories[MEMORIES_MAX];
extern int memory_count;
extern struct mapping mappings[MAPPINGS_MAX];
extern int mapping_count;

/* The one file that is persistent memory, if the user names one. */
extern const char *pool;

/* The part of persistent memory that holds an address. */
struct mapping *mapping_of(uintptr_t at);

/* The memory that is a file, if one is. */
struct memory *memory_of_file(int file);

/* Tells what a part of memory holds when recording begins, which is what is told of it. */
void tell_head(const struct memory *memory, size_t from, size_t to);

/* Looks whether files have grown in a way that was not seen. */
void look_at_files(void);

/* Where the part of a mapping ends that is memory. */
static inline uintptr_t end_of(const struct mapping *mapping)
{
    size_t mapped = mapping->end - mapping->start;
    size_t left =
        mapping->memory->left > mapping->offset ? mapping->memory->left - mapping->offset : 0;
    return mapping->start + (mapped < left ? mapped : left);
}

/* Where in its memory an address is. */
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

enum kind { NOTHING, STORE, STREAM, MASKED, LOCKED };

/* A store that is about to be made. */
struct pending {
    enum kind kind;
    uintptr_t at;
    size_t bytes;
    struct from from;
};

/* What a thread does: it runs, or is away; waits for its turn; waits until it is called; has ended;
 * and its place may be another's. */
enum state { RUNS, READY, WAITS, ENDED, JOINED };

enum {
    THREADS_MAX = 1024,
    /* Threads of a trace (docs/replay.md). */
    LANES_MAX = 64,
};

struct thread {
    enum state state;
    /* Its number in the trace; -1 before it has done anything that is told. */
    int lane;
    /* What the system and the C library call it. */
    int id;
    uintptr_t handle;
    int is_detached;
    /* How often its destructors were called. */
    int endings;
    /* Whether it is its turn: others wake it with that. */
    int called;
    /* Whether it is in the recorder: a signal's handler may come in between. */
    int is_busy;
    /* Calls of functions of which the whole is told, and nothing that they do; and of those in which
     * it waits in the system and keeps its turn. */
    int entered, keeps;
    /* How often it was here. */
    uint64_t steps;
    /* What it waits for, since when of all who do, and until what time at most. */
    const void *waits_for;
    uint64_t waits_since;
    int clock;
    const struct timespec *until;
    int is_late;
    /* What is about to be told, and what was, and may not have been there yet. */
    struct pending pending, late;
    uint64_t work;
    /* Whether what was written back, or stored past the caches, waits for a fence. */
    int is_unfenced;
    int in_transaction;
    /* Where its transaction began, and what was stored in it (transactions.c). */
    struct from began;
    struct stored *stored;
    size_t stored_count, stored_room;
};

extern struct thread threads[THREADS_MAX];

/* Threads that there were at a time. */
extern int thread_count;

/* Whether there is more than one. */
extern int is_scheduling;

/* Chance follows from a number. */
void seed_with(uint64_t number);

/* The thread that is here; none if there are too many. Of some nobody saw the beginning. */
extern __thread struct thread *mine;
struct thread *unknown_thread(void);

static inline struct thread *this_thread(void)
{
    return mine != NULL ? mine : unknown_thread();
}

/* A thread that is about to begin, and whoever is that. */
struct thread *new_thread(void);
void become(struct thread *thread);

/* A thread that is here has ended. */
void end_thread(struct thread *thread);

/* The trace ends here. What other threads do until the process ends is not in it, so they do nothing
 * that would be. */
void end_recording(void);
void stop_behind_the_end(void);

/* Returns when it is a thread's turn, which it may pass on before: not behind a store that is to be
 * told, and where threads meet, or what persists is decided, rather than elsewhere. */
enum pass { STAYS, MAY_PASS, LIKELY };
void take_turn(struct thread *thread, enum pass pass);

/* A thread, whose turn it is, lets others have theirs; whether any wanted it. */
int give_way(struct thread *thread);

/* A thread, whose turn it is, waits until it is called, or for a time; whether it was called. */
int wait_for(struct thread *thread, const void *what, int clock, const struct timespec *until);

/* Calls the thread that has waited longest for something; whether there is one. */
int call(const void *what);

/* A thread that waits wants its turn from now on; whether it waited. */
int awake(struct thread *thread);

/* A thread's number in the trace, and all of them anew. */
int lane_of(struct thread *thread);
void forget_lanes(void);

/* recorder.c */

extern int is_recording;

/* What is there when recording begins, and what is done then. */
extern struct text head, body;

/* The most bytes of each, and whether loads are told. */
extern uint64_t bytes_max;
extern int tells_loads;

struct counts {
    uint64_t stores, streams, loads, flushes, fences, marks, transactions, work;
    /* Bytes that changed without a store that was seen, the first of them, and what came after it.
     * */
    uint64_t unseen, unseen_at, unseen_from;
    /* Threads, and what came while something was told (from a signal's handler). */
    uint64_t threads, nested;
    /* Children of the program. */
    uint64_t forks;
    /* Why something is not there: the trace is full, there are too many files, or the system failed. */
    uint64_t full, crowded, failed;
    /* What of the program's transactions the trace cannot have, and where: for recording.py. */
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

/* Tells each part of memory that is not as it was told; how many bytes were not. */
uint64_t tell_differences(struct thread *thread, const struct mapping *mapping, uintptr_t at,
                          uintptr_t end, struct from from);

/* unseen.c */

/* Looks for bytes that changed without a store that was seen, where memory can be read. */
void compare(const struct mapping *mapping, uintptr_t at, uintptr_t end, struct from from);

/* Looks for them in a part of a mapping, or in all of them. What cannot be read any more is passed
 * over. */
void compare_mapping(const struct mapping *mapping, uintptr_t at, uintptr_t end, struct from from);
void compare_all(struct from from);

/* Looks at all of them, where that costs no more than the fences do. */
void compare_at_fence(struct from from);

/* transactions.c */

/* A part of a memory is about to be told anew, in a thread's transaction. */
void note_old(struct thread *thread, const struct memory *memory, size_t offset, size_t bytes,
              struct from from);

/* A thread's transaction begins or ends. */
void note_transaction(struct thread *thread, enum step step, struct from from);

/* Nothing is within a transaction here: the program ends, or what was done is not told. */
void note_open(enum wrong wrong, struct from from);

/* A thread ends. */
void end_transactions(struct thread *thread);

/* recorder.c */

void recorder_compares(uintptr_t start, uintptr_t end, struct from from);

/* What was stored to a file has been written back, whether it is mapped there still or not. */
void recorder_syncs_all(const struct memory *memory, struct from from);

/* Tells that a part of memory is zeros now, where anything else was told of it. */
void tell_zeros(const struct memory *memory, size_t from, size_t to);

/* What a thread was about to store is there. */
void drain(struct thread *thread);

/* Forgets all that was told. */
void forget(struct from from);

#pragma GCC visibility pop

#endif
