/* Records what a program does to its persistent memory, as operations of docs/replay.md. The
 * program's accesses come here through hooks.c (what the compiler and the linker put in) and
 * thunks.S (what the assembler did). `indelible record` makes a trace of what is written here.
 *
 * An access is told before it is made. So the value of a store is read when the next thing happens:
 * at the next store, flush, fence or end of a function. A load is none of these: of `*to = *from`
 * the store may be told first.
 *
 * Nothing here may use vector registers, or call what does, on the way of a thunk: the program's
 * are live. These files are compiled with general registers only (compiler.py), and copy bytes by
 * themselves. */

#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "indelible.h"
#include "inner.h"

enum {
    /* Bytes of one operation that docs/replay.md allows. */
    OPERATION_MAX = 4096,
    /* Persistent memory that is compared as a whole at each fence. */
    COMPARED_MAX = 1 << 20,
};

enum kind { NOTHING, STORE, STREAM, MASKED, LOCKED };

/* A store that is about to be made. */
struct pending {
    enum kind kind;
    uintptr_t at;
    size_t bytes;
    struct from from;
};

int is_recording;
static __thread struct pending pending;
static __thread char self;
/* Calls of functions of which the whole is told, and nothing that they do. */
static __thread int entered;
/* The thread that is recorded. */
static char *recorded;

static char folder[512];
static int tells_loads;
static uint64_t bytes_max;

const struct from NOWHERE;
struct counts counts;
struct text head = {.file = -1};

/* What is done when recording has begun. */
static struct text body = {.file = -1};

static uint64_t work;
static int in_transaction, has_flushed;

/* Behind an operation: the instruction that it comes from. */
static void put_from(struct from from)
{
    put(&body, " #@");
    put_number(&body, from.at, 16);
    put_character(&body, ',');
    put_number(&body, from.call, 16);
    put_character(&body, '\n');
}

/* Whether the trace has room for an operation, which follows work. */
static int begin_operation(void)
{
    if (body.written > bytes_max) {
        counts.dropped++;
        return 0;
    }
    if (work > 0) {
        put(&body, "work ");
        put_number(&body, work, 10);
        put_character(&body, '\n');
        counts.work += work;
        work = 0;
    }
    return 1;
}

/* Whether this thread is the one that is recorded. The first that does something is. */
static int is_recorded(void)
{
    char *none = NULL;
    if (recorded == &self)
        return 1;
    return recorded == NULL &&
           __atomic_compare_exchange_n(&recorded, &none, &self, 0, __ATOMIC_SEQ_CST,
                                       __ATOMIC_SEQ_CST);
}

/* Tells what a part of memory holds now. */
static void tell_store(const struct mapping *mapping, uintptr_t at, size_t bytes, struct from from)
{
    unsigned char *told = told_of(mapping, at);
    const unsigned char *now = (const unsigned char *)at;
    for (size_t byte = 0; byte < bytes; byte++)
        told[byte] = now[byte];
    for (size_t done = 0; done < bytes;) {
        size_t part = bytes - done < OPERATION_MAX ? bytes - done : OPERATION_MAX;
        if (!begin_operation())
            return;
        put(&body, "bytes ");
        put_hex(&body, place_of(mapping, at + done));
        put_character(&body, ' ');
        put_bytes(&body, told + done, part);
        put_from(from);
        done += part;
    }
    counts.stores++;
}

/* Tells the words that a store past the caches was to. */
static void tell_stream(const struct mapping *mapping, uintptr_t at, size_t bytes, struct from from)
{
    uintptr_t first = at & ~7ul;
    for (uintptr_t word = first; word < at + bytes; word += 8) {
        uint64_t value = *(const uint64_t *)word;
        for (int byte = 0; byte < 8; byte++)
            told_of(mapping, word)[byte] = value >> 8 * byte;
        if (!begin_operation())
            return;
        put(&body, "ntstore ");
        put_hex(&body, place_of(mapping, word));
        put_character(&body, ' ');
        put_hex(&body, value);
        put_from(from);
    }
    counts.streams++;
}

/* Tells each part that is not as it was told. Returns how many bytes were not. */
static uint64_t tell_differences(const struct mapping *mapping, uintptr_t at, uintptr_t end,
                                 struct from from)
{
    uint64_t differing = 0;
    while (at < end) {
        if (at % 8 == 0 && end - at >= 8 &&
            *(const uint64_t *)at == *(const uint64_t *)told_of(mapping, at)) {
            at += 8;
            continue;
        }
        uintptr_t same = at;
        while (same < end && *(const unsigned char *)same != *told_of(mapping, same))
            same++;
        if (same == at) {
            at++;
            continue;
        }
        tell_store(mapping, at, same - at, from);
        differing += same - at;
        at = same;
    }
    return differing;
}

/* Looks for bytes that changed without a store that was seen. */
void compare(const struct mapping *mapping, uintptr_t at, uintptr_t end, struct from from)
{
    at = at < mapping->start ? mapping->start : at;
    end = end > end_of(mapping) ? end_of(mapping) : end;
    uintptr_t first = at;
    while (first < end && *(const unsigned char *)first == *told_of(mapping, first))
        first++;
    if (first >= end)
        return;
    if (counts.unseen == 0) {
        counts.unseen_at = place_of(mapping, first);
        counts.unseen_from = from.at;
    }
    counts.unseen += tell_differences(mapping, first, end, from);
}

static void compare_all(struct from from)
{
    for (int index = 0; index < mapping_count; index++)
        compare(&mappings[index], mappings[index].start, mappings[index].end, from);
}

void tell_head(const struct memory *memory, size_t from, size_t to)
{
    for (size_t line = from; line < to; line += LINE) {
        const uint64_t *words = (const uint64_t *)(memory->told + line);
        uint64_t any = 0;
        for (int word = 0; word < LINE / 8; word++)
            any |= words[word];
        if (any == 0)
            continue;
        put(&head, "bytes ");
        put_hex(&head, memory->place + line);
        put_character(&head, ' ');
        put_bytes(&head, memory->told + line, LINE);
        put_character(&head, '\n');
    }
}

/* What happens. */

void recorder_drain(void)
{
    struct pending store = pending;
    pending.kind = NOTHING;
    struct mapping *mapping = store.kind == NOTHING ? NULL : mapping_of(store.at);
    if (mapping == NULL)
        return;
    size_t room = end_of(mapping) - store.at;
    size_t bytes = store.bytes < room ? store.bytes : room;
    if (store.kind == MASKED)
        tell_differences(mapping, store.at, store.at + bytes, store.from);
    else if (store.kind == STREAM && !in_transaction)
        tell_stream(mapping, store.at, bytes, store.from);
    else
        tell_store(mapping, store.at, bytes, store.from);
    if (store.kind == LOCKED)
        recorder_locked(store.from);
}

static void will(enum kind kind, uintptr_t at, size_t bytes, struct from from)
{
    recorder_drain();
    if (!is_recording || entered > 0)
        return;
    if (mapping_of(at) == NULL) {
        recorder_works(1);
        if (kind == LOCKED)
            recorder_locked(from);
        return;
    }
    if (is_recorded())
        pending = (struct pending){kind, at, bytes, from};
    else
        __atomic_fetch_add(&counts.strangers, 1, __ATOMIC_RELAXED);
}

void recorder_will_store(uintptr_t at, size_t bytes, struct from from)
{
    will(STORE, at, bytes, from);
}

void recorder_will_stream(uintptr_t at, size_t bytes, struct from from)
{
    will(STREAM, at, bytes, from);
}

void recorder_will_mask(uintptr_t at, size_t bytes, struct from from)
{
    will(MASKED, at, bytes, from);
}

void recorder_will_lock(uintptr_t at, size_t bytes, struct from from)
{
    will(LOCKED, at, bytes, from);
}

void recorder_stored(const volatile void *at, size_t bytes, struct from from)
{
    if (bytes == 0)
        return;
    will(STORE, (uintptr_t)at, bytes, from);
    recorder_drain();
}

void recorder_loads(const volatile void *at, size_t bytes, struct from from)
{
    struct mapping *mapping = is_recording ? mapping_of((uintptr_t)at) : NULL;
    if (entered > 0)
        return;
    if (mapping == NULL || !tells_loads)
        return recorder_works(1);
    if (bytes == 0 || !is_recorded())
        return;
    size_t room = end_of(mapping) - (uintptr_t)at;
    bytes = bytes < room ? bytes : room;
    for (size_t done = 0; done < bytes;) {
        size_t part = bytes - done < OPERATION_MAX ? bytes - done : OPERATION_MAX;
        if (!begin_operation())
            return;
        put(&body, "load ");
        put_hex(&body, place_of(mapping, (uintptr_t)at + done));
        put_character(&body, ' ');
        put_number(&body, part, 10);
        put_from(from);
        done += part;
    }
    counts.loads++;
}

void recorder_flushes(uintptr_t at, size_t bytes, struct from from)
{
    recorder_drain();
    struct mapping *mapping = is_recording ? mapping_of(at) : NULL;
    if (mapping == NULL || bytes == 0 || entered > 0 || !is_recorded())
        return;
    size_t room = end_of(mapping) - at;
    bytes = bytes < room ? bytes : room;
    compare(mapping, at / LINE * LINE, (at + bytes + LINE - 1) / LINE * LINE, from);
    if (!begin_operation())
        return;
    put(&body, "flush ");
    put_hex(&body, place_of(mapping, at));
    put_character(&body, ' ');
    put_number(&body, bytes, 10);
    put_from(from);
    counts.flushes++;
    has_flushed = 1;
}

static void tell_fence(const char *which, struct from from)
{
    if (!begin_operation())
        return;
    put(&body, which);
    put_from(from);
    counts.fences++;
    has_flushed = 0;
}

void recorder_flushes_in_order(uintptr_t at, size_t bytes, struct from from)
{
    recorder_flushes(at, bytes, from);
    if (is_recording && mapping_of(at) != NULL && is_recorded())
        tell_fence("order", from);
}

void recorder_fences(uintptr_t at, size_t bytes, struct from from)
{
    (void)at;
    (void)bytes;
    recorder_drain();
    /* Before there is persistent memory fences are of other things. */
    if (!is_recording || memory_count == 0 || entered > 0 || !is_recorded())
        return;
    uintptr_t all = 0;
    for (int index = 0; index < mapping_count; index++)
        all += mappings[index].end - mappings[index].start;
    if (all <= COMPARED_MAX)
        compare_all(from);
    tell_fence("fence", from);
}

void recorder_locked(struct from from)
{
    if (is_recording && recorded == &self && has_flushed && entered == 0)
        tell_fence("fence", from);
}

void recorder_works(uint64_t instructions)
{
    if (entered == 0 && (recorded == NULL || recorded == &self))
        work += instructions;
}

void recorder_enter(void)
{
    recorder_drain();
    entered++;
}

void recorder_leave(void)
{
    entered--;
}

/* What the program tells. */

static void empty(struct text *text)
{
    text->used = 0;
    text->written = 0;
    if (ftruncate(text->file, 0) != 0 || lseek(text->file, 0, SEEK_SET) != 0)
        counts.dropped++;
}

void indelible_measured(void)
{
    recorder_drain();
    if (!is_recording)
        return;
    compare_all(NOWHERE);
    empty(&head);
    empty(&body);
    uint64_t strangers = counts.strangers;
    memset(&counts, 0, sizeof counts);
    counts.strangers = strangers;
    work = 0;
    for (int index = 0; index < memory_count; index++)
        tell_head(&memories[index], 0, memories[index].bytes);
}

void recorder_marks(const char *text, struct from from)
{
    recorder_drain();
    if (!is_recording || !is_recorded() || !begin_operation())
        return;
    put(&body, "mark ");
    for (const char *at = text; *at != 0; at++)
        put_character(&body, *at < ' ' || *at == '#' ? ' ' : *at);
    put_from(from);
    counts.marks++;
}

static void transaction(const char *which, int begins, struct from from)
{
    recorder_drain();
    if (!is_recording || !is_recorded() || !begin_operation())
        return;
    put(&body, which);
    put_from(from);
    in_transaction = begins;
    counts.transactions += begins;
}

void indelible_begin(void)
{
    transaction("begin", 1, CALLER);
}

void indelible_commit(void)
{
    transaction("commit", 0, CALLER);
}

void indelible_abort(void)
{
    transaction("abort", 0, CALLER);
}

/* The beginning and the end. */

static int create(const char *name)
{
    char path[600];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
}

/* Where the program's parts lie, for who looks for lines of its source. */
static void copy_maps(void)
{
    int from = open("/proc/self/maps", O_RDONLY | O_CLOEXEC), to = create("maps");
    char part[4096];
    ssize_t bytes;
    while ((bytes = read(from, part, sizeof part)) > 0)
        if (write(to, part, bytes) != bytes)
            counts.dropped++;
    close(from);
    close(to);
}

static void finish(void)
{
    if (!is_recording)
        return;
    recorder_drain();
    compare_all(NOWHERE);
    is_recording = 0;
    write_out(&head);
    write_out(&body);
    copy_maps();
    int status = create("status");
    dprintf(status,
            "stores %lu\nstreams %lu\nloads %lu\nflushes %lu\nfences %lu\nmarks %lu\n"
            "transactions %lu\nwork %lu\nunseen %lu\nunseen_at %lu\nunseen_from %lu\n"
            "strangers %lu\ndropped %lu\n",
            counts.stores, counts.streams, counts.loads, counts.flushes, counts.fences,
            counts.marks, counts.transactions, counts.work, counts.unseen, counts.unseen_at,
            counts.unseen_from, counts.strangers, counts.dropped);
    for (int index = 0; index < memory_count; index++)
        dprintf(status, "region %lu %zu %s\n", memories[index].place, memories[index].bytes,
                memories[index].name);
    close(status);
}

/* A child of the program is not recorded. */
static void leave(void)
{
    is_recording = 0;
}

__attribute__((constructor)) static void start(void)
{
    const char *where = getenv("INDELIBLE_RECORD");
    if (where == NULL)
        return;
    snprintf(folder, sizeof folder, "%s", where);
    unsetenv("INDELIBLE_RECORD");
    pool = getenv("INDELIBLE_RECORD_POOL");
    tells_loads = getenv("INDELIBLE_RECORD_LOADS") != NULL;
    const char *most = getenv("INDELIBLE_RECORD_BYTES");
    bytes_max = most == NULL ? UINT64_MAX : strtoul(most, NULL, 10);
    head.file = create("head");
    body.file = create("body");
    pthread_atfork(NULL, NULL, leave);
    is_recording = head.file >= 0 && body.file >= 0;
}

__attribute__((destructor)) static void end(void)
{
    finish();
}

/* A program that leaves so has no destructors. */
__attribute__((noreturn)) void _exit(int code)
{
    finish();
    for (;;)
        syscall(SYS_exit_group, code);
}

__attribute__((noreturn)) void _Exit(int code)
{
    _exit(code);
}
