/* Records what a program does to its persistent memory, as operations of docs/replay.md. The
 * program's accesses come here through hooks.c (what the compiler and the linker put in) and
 * thunks.S (what the assembler did). `indelible record` makes a trace of what is written here.
 *
 * An access is told before it is made. So the value of a store is read when the next thing happens:
 * at the next store, flush, fence, call, or end of a function. A load is none of these: of
 * `*to = *from` the store may be told first.
 *
 * Nothing here may use vector registers, or call what does, on the way of a thunk: the program's
 * are live. These files are compiled with general registers only (compiler.py), and copy bytes by
 * themselves. */

#define _GNU_SOURCE
#include <errno.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "inner.h"

enum {
    /* Bytes of one operation that docs/replay.md allows. */
    OPERATION_MAX = 4096,
    /* Persistent memory that is compared as a whole at each fence. */
    COMPARED_MAX = 1 << 20,
    /* Bytes that are compared at a time. */
    PART = 1 << 16,
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
int tells_loads;
uint64_t bytes_max;
struct counts counts;
struct text head = {.file = -1}, body = {.file = -1};
const struct from NOWHERE;

static __thread struct pending pending;
static __thread char self;
/* Calls of functions of which the whole is told, and nothing that they do. */
static __thread int entered;
/* Whether the thread is here: a signal's handler may come in between. */
static __thread int is_busy;
/* The thread that is recorded: the first that stores or writes back. */
static char *recorded;

static uint64_t work;
/* Whether what was written back, or stored past the caches, waits for a fence. */
static int is_unfenced;
static int in_transaction;

/* Whether something may be told; `ends` comes behind it. */
static int begins(void)
{
    if (!is_recording || entered > 0)
        return 0;
    if (is_busy) {
        counts.nested++;
        return 0;
    }
    is_busy = 1;
    return 1;
}

static void ends(void)
{
    is_busy = 0;
}

/* Whether this thread is the one that is recorded. What others do is counted. */
static int is_recorded(void)
{
    char *none = NULL;
    if (recorded == &self ||
        __atomic_compare_exchange_n(&recorded, &none, &self, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
        return 1;
    __atomic_fetch_add(&counts.strangers, 1, __ATOMIC_RELAXED);
    return 0;
}

/* Operations. */

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
        counts.full++;
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

/* An operation on so many bytes of memory. */
static void tell_access(const char *verb, uintptr_t place, size_t bytes, struct from from)
{
    if (!begin_operation())
        return;
    put(&body, verb);
    put_hex(&body, place);
    put_character(&body, ' ');
    put_number(&body, bytes, 10);
    put_from(from);
}

/* What a part of memory holds now. */
static void tell_store(const struct mapping *mapping, uintptr_t at, size_t bytes, struct from from)
{
    unsigned char *told = told_of(mapping, at);
    const unsigned char *now = (const unsigned char *)at;
    for (size_t byte = 0; byte < bytes; byte++)
        told[byte] = now[byte];
    size_t first = mapping->offset + (at - mapping->start);
    for (size_t line = first / LINE; line <= (first + bytes - 1) / LINE; line++)
        mapping->memory->dirty[line] = 1;
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

/* Lines are written back, as far as anything is known of them. */
static void tell_flush(const struct mapping *mapping, uintptr_t at, size_t bytes, struct from from)
{
    size_t first = mapping->offset + (at - mapping->start);
    for (size_t line = first / LINE; line <= (first + bytes - 1) / LINE; line++)
        mapping->memory->dirty[line] = 0;
    tell_access("flush ", place_of(mapping, at), bytes, from);
    counts.flushes++;
    is_unfenced = 1;
}

/* A store past the caches. The trace has those of whole words; what is less is durable at the same
 * fence if it is stored and written back. */
static void tell_stream(const struct mapping *mapping, uintptr_t at, size_t bytes, struct from from)
{
    if (at % 8 != 0 || bytes % 8 != 0) {
        tell_store(mapping, at, bytes, from);
        return tell_flush(mapping, at, bytes, from);
    }
    counts.streams++;
    is_unfenced = 1;
    for (uintptr_t word = at; word < at + bytes; word += 8) {
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
}

static void tell_fence(const char *which, struct from from)
{
    is_unfenced = 0;
    if (!begin_operation())
        return;
    put(&body, which);
    put_from(from);
    counts.fences++;
}

/* Each part that is not as it was told. Returns how many bytes were not. */
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

void tell_zeros(const struct memory *memory, size_t from, size_t to)
{
    for (size_t line = from / LINE * LINE; line < to; line += LINE) {
        unsigned char *told = memory->told + line, any = 0;
        for (size_t byte = line < from ? from - line : 0; byte < LINE; byte++) {
            any |= told[byte];
            told[byte] = 0;
        }
        if (any == 0 || !begin_operation())
            continue;
        put(&body, "bytes ");
        put_hex(&body, memory->place + line);
        put_character(&body, ' ');
        put_bytes(&body, told, LINE);
        put_character(&body, '\n');
    }
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
        if (head.written > bytes_max) {
            counts.full++;
            return;
        }
        put(&head, "bytes ");
        put_hex(&head, memory->place + line);
        put_character(&head, ' ');
        put_bytes(&head, memory->told + line, LINE);
        put_character(&head, '\n');
    }
}

/* What was not seen. */

static int is_same(const unsigned char *first, const unsigned char *second, size_t bytes)
{
    uint64_t differing = 0;
    size_t byte = 0;
    for (; byte + 8 <= bytes; byte += 8)
        differing |= *(const uint64_t *)(first + byte) ^ *(const uint64_t *)(second + byte);
    for (; byte < bytes; byte++)
        differing |= first[byte] ^ second[byte];
    return differing == 0;
}

/* Looks for bytes that changed without a store that was seen, where memory can be read. */
static void compare(const struct mapping *mapping, uintptr_t at, uintptr_t end, struct from from)
{
    if (is_same((const unsigned char *)at, told_of(mapping, at), end - at))
        return;
    if (counts.unseen == 0) {
        counts.unseen_at = place_of(mapping, at);
        while (*(const unsigned char *)at == *told_of(mapping, at))
            at++, counts.unseen_at++;
        counts.unseen_from = from.at;
    }
    counts.unseen += tell_differences(mapping, at, end, from);
}

/* Copies what the process has in memory; returns how many bytes can be read, or a negative number. */
static long copy(uintptr_t at, unsigned char *to, size_t bytes)
{
    struct iovec here = {to, bytes}, there = {(void *)at, bytes};
    const long none[6] = {0};
    const long asked[6] = {system_call(SYS_getpid, none), (long)&here, 1, (long)&there, 1, 0};
    return system_call(SYS_process_vm_readv, asked);
}

void compare_mapping(const struct mapping *mapping, uintptr_t at, uintptr_t end, struct from from)
{
    static unsigned char now[PART];
    at = at < mapping->start ? mapping->start : at;
    end = end > end_of(mapping) ? end_of(mapping) : end;
    while (at < end) {
        size_t bytes = end - at < PART ? end - at : PART;
        long copied = copy(at, now, bytes);
        /* Where the system does not let a process read so, all can be read, or the program ends. */
        int may_not = copied == -EPERM || copied == -ENOSYS;
        if (!may_not && copied < (long)bytes && bytes > PAGE - at % PAGE) {
            /* A part of it is no memory any more, or cannot be read: it is looked at by the page. */
            bytes = PAGE - at % PAGE;
            copied = copy(at, now, bytes);
        }
        int is_read = copied == (long)bytes && !is_same(now, told_of(mapping, at), bytes);
        if (may_not || is_read)
            compare(mapping, at, at + bytes, from);
        at += bytes;
    }
}

void compare_all(struct from from)
{
    for (int index = 0; index < mapping_count; index++)
        compare_mapping(&mappings[index], mappings[index].start, mappings[index].end, from);
}

/* What happens. */

static void drain(void)
{
    struct pending store = pending;
    pending.kind = NOTHING;
    if (store.kind == NOTHING)
        return;
    /* It may go over the seam of two mappings. */
    uintptr_t at = store.at, end = store.at + store.bytes;
    for (const struct mapping *mapping; at < end && (mapping = mapping_of(at)) != NULL;) {
        uintptr_t until = end < end_of(mapping) ? end : end_of(mapping);
        if (store.kind == MASKED)
            tell_differences(mapping, at, until, store.from);
        else if (store.kind == STREAM && !in_transaction)
            tell_stream(mapping, at, until - at, store.from);
        else
            tell_store(mapping, at, until - at, store.from);
        at = until;
    }
}

void recorder_drain(void)
{
    if (begins()) {
        drain();
        ends();
    }
}

static void works(uint64_t instructions)
{
    if (recorded == NULL || recorded == &self)
        work += instructions;
}

/* A locked operation waits for what was written back before it, and then stores. */
static void locked(struct from from)
{
    if (recorded == &self && is_unfenced)
        tell_fence("fence", from);
}

static void will(enum kind kind, uintptr_t at, size_t bytes, struct from from)
{
    if (!begins())
        return;
    drain();
    if (kind == LOCKED)
        locked(from);
    if (bytes == 0 || mapping_of(at) == NULL)
        works(1);
    else if (is_recorded())
        pending = (struct pending){kind, at, bytes, from};
    ends();
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
    if (!begins())
        return;
    struct mapping *mapping = mapping_of((uintptr_t)at);
    if (mapping == NULL || !tells_loads || bytes == 0) {
        works(1);
    } else if (recorded == &self) {
        size_t room = end_of(mapping) - (uintptr_t)at;
        bytes = bytes < room ? bytes : room;
        for (size_t done = 0; done < bytes; done += OPERATION_MAX) {
            size_t part = bytes - done < OPERATION_MAX ? bytes - done : OPERATION_MAX;
            tell_access("load ", place_of(mapping, (uintptr_t)at + done), part, from);
        }
        counts.loads++;
    }
    ends();
}

/* Writes lines back, after a look at them; whether they are persistent. */
static int flush(uintptr_t at, size_t bytes, struct from from)
{
    drain();
    const struct mapping *mapping = mapping_of(at);
    if (mapping == NULL || bytes == 0 || !is_recorded())
        return 0;
    uintptr_t end = at + bytes;
    for (; at < end && (mapping = mapping_of(at)) != NULL; at = end_of(mapping)) {
        uintptr_t until = end < end_of(mapping) ? end : end_of(mapping);
        uintptr_t lines = (until + LINE - 1) / LINE * LINE;
        compare(mapping, at / LINE * LINE, lines < end_of(mapping) ? lines : end_of(mapping), from);
        tell_flush(mapping, at, until - at, from);
    }
    return 1;
}

void recorder_flushes(uintptr_t at, size_t bytes, struct from from)
{
    if (begins()) {
        flush(at, bytes, from);
        ends();
    }
}

void recorder_flushes_in_order(uintptr_t at, size_t bytes, struct from from)
{
    if (!begins())
        return;
    /* It comes before the stores behind it, and has no others come before them. */
    int others = is_unfenced;
    if (flush(at, bytes, from) && !others)
        tell_fence("order", from);
    ends();
}

void recorder_fences(uintptr_t at, size_t bytes, struct from from)
{
    (void)at;
    (void)bytes;
    if (!begins())
        return;
    drain();
    /* Before anything was stored fences are of other things, and so are those of other threads. */
    if (recorded == &self) {
        uintptr_t all = 0;
        for (int index = 0; index < mapping_count; index++)
            all += mappings[index].end - mappings[index].start;
        if (all <= COMPARED_MAX)
            compare_all(from);
        tell_fence("fence", from);
    }
    ends();
}

void recorder_syncs(uintptr_t at, size_t bytes, struct from from)
{
    if (!begins())
        return;
    drain();
    const struct mapping *mapping = mapping_of(at);
    if (mapping != NULL && is_recorded()) {
        uintptr_t end = at + bytes;
        for (; at < end && (mapping = mapping_of(at)) != NULL; at = end_of(mapping)) {
            uintptr_t until = end < end_of(mapping) ? end : end_of(mapping);
            compare_mapping(mapping, at, until, from);
            const unsigned char *dirty = mapping->memory->dirty;
            for (uintptr_t line = at / LINE * LINE; line < until; line += LINE)
                if (dirty[(mapping->offset + (line - mapping->start)) / LINE])
                    tell_flush(mapping, line, LINE, from);
        }
        tell_fence("fence", from);
    }
    ends();
}

void recorder_locked(struct from from)
{
    if (begins()) {
        drain();
        locked(from);
        ends();
    }
}

void recorder_works(uint64_t instructions)
{
    if (begins()) {
        works(instructions);
        ends();
    }
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

void recorder_marks(const char *text, struct from from)
{
    if (!begins())
        return;
    drain();
    if (is_recorded() && begin_operation()) {
        put(&body, "mark ");
        int any = 0;
        for (const char *at = text; *at != 0; at++) {
            char letter = (unsigned char)*at < ' ' || *at == '#' ? ' ' : *at;
            any |= letter != ' ';
            put_character(&body, letter);
        }
        /* The format wants something there. */
        if (!any)
            put_character(&body, '-');
        put_from(from);
        counts.marks++;
    }
    ends();
}

void recorder_transaction(const char *which, int is_begin, struct from from)
{
    if (!begins())
        return;
    drain();
    if (is_recorded() && begin_operation()) {
        put(&body, which);
        put_from(from);
        in_transaction = is_begin;
        counts.transactions += is_begin;
    }
    ends();
}

void forget(void)
{
    if (!begins())
        return;
    drain();
    compare_all(NOWHERE);
    empty(&head);
    empty(&body);
    counts = (struct counts){.strangers = counts.strangers,
                             .nested = counts.nested,
                             .crowded = counts.crowded,
                             .failed = counts.failed};
    work = 0;
    is_unfenced = 0;
    for (int index = 0; index < memory_count; index++) {
        struct memory *memory = &memories[index];
        for (size_t line = 0; line < memory->bytes / LINE; line++)
            memory->dirty[line] = 0;
        tell_head(memory, 0, memory->bytes);
    }
    ends();
}

void recorder_compares(uintptr_t start, uintptr_t end, struct from from)
{
    if (!begins())
        return;
    drain();
    for (int index = 0; index < mapping_count; index++)
        compare_mapping(&mappings[index], start, end, from);
    ends();
}
