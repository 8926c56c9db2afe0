/* Records what a program does to its persistent memory, as operations of docs/replay.md. The
 * program's accesses come here through hooks.c (what the compiler and the linker put in) and
 * thunks.S (what the assembler did). `indelible record` makes a trace of what is written here.
 *
 * An access is told before it is made. So the value of a store is read when the next thing happens:
 * at the next store, flush, fence, call, or end of a function. A load is none of these, since of
 * `*to = *from` the hook of the store may come first: so a load may be told before the store that
 * precedes it.
 *
 * Nothing here may use vector registers, or call what does, on the way of a thunk: the program's
 * are live. These files are compiled with general registers only (verbs/cc.py), and copy bytes by
 * themselves. */

#define _GNU_SOURCE

#include "inner.h"

/* Bytes of one operation, and of one flush, that docs/replay.md allows. */
enum { OPERATION_MAX = 4096, FLUSH_MAX = 1 << 24 };

int is_recording;
int tells_loads;
uint64_t bytes_max;
struct counts counts;
struct text head = {.file = -1}, body = {.file = -1};
const struct from NOWHERE;

/* The thread of the trace whose operations come next, and whether anything was told. */
static int told_lane;
static int has_begun;

static struct thread *begins_recorded(enum pass pass)
{
    if (!is_recording) {
        stop_behind_the_end();
        return NULL;
    }
    struct thread *thread = this_thread();
    if (thread == NULL || thread->entered > 0)
        return NULL;
    if (thread->is_busy) {
        counts.nested++;
        return NULL;
    }
    if (is_scheduling)
        take_turn(thread, pass);
    thread->is_busy = 1;
    return thread;
}

/* The thread that is here, if it may tell something: it is its turn then, and `ends` comes behind
 * it. What was done already is told before another one has its turn. */
static inline struct thread *begins(enum pass pass)
{
    return is_recording || is_scheduling ? begins_recorded(pass) : NULL;
}

static void ends(struct thread *thread)
{
    thread->is_busy = 0;
}

/* Begins where a store that the compiler has announced may be made later: if the turn is over before
 * that, it is told as it is there, and looked at again. */
static struct thread *begins_within_store(void)
{
    struct thread *thread = is_recording ? this_thread() : NULL;
    struct pending announced = {NOTHING};
    if (thread != NULL && !thread->is_busy)
        announced = thread->pending.kind == STORE ? thread->pending : thread->late;
    thread = begins(MAY_PASS);
    if (thread != NULL && thread->pending.kind == NOTHING)
        thread->late = announced;
    return thread;
}

/* Operations. */

static void put_line(const char *verb, uint64_t number)
{
    put(&body, verb);
    put_number(&body, number, 10);
    put_character(&body, '\n');
}

/* Whether the trace has room for an operation of a thread, which follows work. */
static int begin_operation(struct thread *thread)
{
    if (body.written + body.used > bytes_max) {
        counts.full++;
        return 0;
    }
    int lane = lane_of(thread);
    if (lane != told_lane)
        put_line("thread ", lane);
    told_lane = lane;
    has_begun = 1;
    if (thread->work > 0)
        put_line("work ", thread->work);
    counts.work += thread->work;
    thread->work = 0;
    return 1;
}

/* An operation on so many bytes of memory. */
static void tell_access(struct thread *thread, const char *verb, uintptr_t place, size_t bytes,
                        struct from from)
{
    if (!begin_operation(thread))
        return;
    put(&body, verb);
    put_hex(&body, place);
    put_character(&body, ' ');
    put_number(&body, bytes, 10);
    put_from(&body, from);
}

/* What a part of memory holds now. */
static void tell_store(struct thread *thread, const struct mapping *mapping, uintptr_t at,
                       size_t bytes, struct from from)
{
    unsigned char *told = told_of(mapping, at);
    const unsigned char *now = (const unsigned char *)at;
    size_t first = offset_of(mapping, at);
    if (thread->in_transaction)
        note_old(thread, mapping->memory, first, bytes, from);
    use(mapping->memory, first, bytes);
    for (size_t byte = 0; byte < bytes; byte++)
        told[byte] = now[byte];
    for (size_t line = first / LINE; line <= (first + bytes - 1) / LINE; line++)
        mapping->memory->dirty[line] = 1;
    for (size_t done = 0; done < bytes;) {
        size_t part = bytes - done < OPERATION_MAX ? bytes - done : OPERATION_MAX;
        if (!begin_operation(thread))
            return;
        put(&body, "bytes ");
        put_hex(&body, place_of(mapping, at + done));
        put_character(&body, ' ');
        put_bytes(&body, told + done, part);
        put_from(&body, from);
        done += part;
    }
    counts.stores++;
}

/* Lines are written back, as far as anything is known of them. A thread that syncs them has to wait
 * for what another one has not waited for yet. */
static void tell_flush(struct thread *thread, const struct memory *memory, size_t offset,
                       size_t bytes, struct from from)
{
    for (size_t line = offset / LINE; line <= (offset + bytes - 1) / LINE; line++)
        memory->dirty[line] = memory->dirty[line] && is_scheduling;
    for (size_t end = offset + bytes, next; offset < end; offset = next) {
        next = offset / LINE * LINE + FLUSH_MAX;
        next = next < end ? next : end;
        tell_access(thread, "flush ", memory->place + offset, next - offset, from);
    }
    counts.flushes++;
    thread->is_unfenced = 1;
}

/* A store past the caches. The trace has those of whole words; what is less is durable at the same
 * fence if it is stored and written back. */
static void tell_stream(struct thread *thread, const struct mapping *mapping, uintptr_t at,
                        size_t bytes, struct from from)
{
    if (at % 8 != 0 || bytes % 8 != 0) {
        tell_store(thread, mapping, at, bytes, from);
        return tell_flush(thread, mapping->memory, offset_of(mapping, at), bytes, from);
    }
    counts.streams++;
    thread->is_unfenced = 1;
    use(mapping->memory, offset_of(mapping, at), bytes);
    for (uintptr_t word = at; word < at + bytes; word += 8) {
        uint64_t value = *(const uint64_t *)word;
        for (int byte = 0; byte < 8; byte++)
            told_of(mapping, word)[byte] = value >> 8 * byte;
        mapping->memory->dirty[offset_of(mapping, word) / LINE] |= is_scheduling;
        if (!begin_operation(thread))
            return;
        put(&body, "ntstore ");
        put_hex(&body, place_of(mapping, word));
        put_character(&body, ' ');
        put_hex(&body, value);
        put_from(&body, from);
    }
}

static void tell_fence(struct thread *thread, const char *which, struct from from)
{
    thread->is_unfenced = 0;
    if (!begin_operation(thread))
        return;
    put(&body, which);
    put_from(&body, from);
    counts.fences++;
}

uint64_t tell_differences(struct thread *thread, const struct mapping *mapping, uintptr_t at,
                          uintptr_t end, int is_flushed, struct from from)
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
        tell_store(thread, mapping, at, same - at, from);
        if (is_flushed)
            tell_flush(thread, mapping->memory, offset_of(mapping, at), same - at, from);
        differing += same - at;
        at = same;
    }
    return differing;
}

void tell_zeros(const struct memory *memory, size_t from, size_t to)
{
    struct thread *thread = this_thread();
    for (size_t line = from / LINE * LINE; line < to; line = next_line(memory, line)) {
        if (!memory->used[line / PART])
            continue;
        unsigned char *told = memory->told + line, any = 0;
        if (thread != NULL && thread->in_transaction)
            note_old(thread, memory, line, LINE, NOWHERE);
        for (size_t byte = line < from ? from - line : 0; byte < LINE && line + byte < to; byte++) {
            any |= told[byte];
            told[byte] = 0;
        }
        if (any == 0 || thread == NULL || !begin_operation(thread))
            continue;
        memory->dirty[line / LINE] = 1;
        put(&body, "bytes ");
        put_hex(&body, memory->place + line);
        put_character(&body, ' ');
        put_bytes(&body, told, LINE);
        put_character(&body, '\n');
    }
}

/* What happens. */

/* A store, or what of it has changed; it may go over the seam of two mappings, and begin or end
 * beside all of them. */
static void tell_pending(struct thread *thread, struct pending store)
{
    uintptr_t at = store.at, end = store.at + store.bytes, until;
    for (const struct mapping *mapping; (mapping = mapping_within(at, end)) != NULL; at = until) {
        at = at > mapping->start ? at : mapping->start;
        until = end < end_of(mapping) ? end : end_of(mapping);
        if (store.kind == MASKED || store.kind == MASKED_STREAM) {
            int is_flushed = store.kind == MASKED_STREAM && !thread->in_transaction;
            tell_differences(thread, mapping, at, until, is_flushed, store.from);
        } else if (store.kind == STREAM && !thread->in_transaction)
            tell_stream(thread, mapping, at, until - at, store.from);
        else
            tell_store(thread, mapping, at, until - at, store.from);
    }
}

void drain(struct thread *thread)
{
    struct pending store = thread->pending, late = thread->late;
    thread->pending.kind = thread->late.kind = NOTHING;
    if (store.kind != NOTHING)
        tell_pending(thread, store);
    if (late.kind != NOTHING) {
        late.kind = MASKED;
        tell_pending(thread, late);
    }
}

static void settle(enum pass pass)
{
    struct thread *thread = begins(pass);
    if (thread == NULL)
        return;
    drain(thread);
    ends(thread);
}

void recorder_drain(void)
{
    settle(MAY_PASS);
}

void recorder_meets(void)
{
    settle(LIKELY);
}

/* A locked operation waits for what was written back before it, and then stores. */
static void locked(struct thread *thread, struct from from)
{
    if (thread->is_unfenced)
        tell_fence(thread, "fence", from);
}

static void will(enum kind kind, uintptr_t at, size_t bytes, struct from from)
{
    /* The compiler does not know that these are told, and may make a store behind them. */
    int is_within = kind == STREAM || kind == MASKED || kind == MASKED_STREAM;
    struct thread *thread =
        is_within ? begins_within_store() : begins(kind == LOCKED ? LIKELY : MAY_PASS);
    if (thread == NULL)
        return;
    struct pending announced = thread->pending.kind == STORE ? thread->pending : thread->late;
    drain(thread);
    if (is_within)
        thread->late = announced;
    if (kind == LOCKED)
        locked(thread, from);
    const struct mapping *mapping = mapping_within(at, at + bytes);
    if (mapping == NULL) {
        thread->work++;
    } else {
        /* What is stored over could not be noticed any more. */
        uintptr_t first = at > mapping->start ? at : mapping->start, end = end_of(mapping);
        compare(mapping, first, at + bytes < end ? at + bytes : end, from);
        thread->pending = (struct pending){kind, at, bytes, keep(from)};
    }
    ends(thread);
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

void recorder_will_mask_stream(uintptr_t at, size_t bytes, struct from from)
{
    will(MASKED_STREAM, at, bytes, from);
}

void recorder_will_lock(uintptr_t at, size_t bytes, struct from from)
{
    will(LOCKED, at, bytes, from);
}

void recorder_stored(const volatile void *at, size_t bytes, struct from from)
{
    struct thread *thread = bytes == 0 ? NULL : begins(STAYS);
    if (thread == NULL)
        return;
    drain(thread);
    if (mapping_within((uintptr_t)at, (uintptr_t)at + bytes) == NULL)
        thread->work++;
    thread->pending = (struct pending){STORE, (uintptr_t)at, bytes, from};
    drain(thread);
    ends(thread);
}

void recorder_changed(const volatile void *at, size_t bytes, struct from from)
{
    struct thread *thread = begins(STAYS);
    if (thread == NULL)
        return;
    drain(thread);
    thread->pending = (struct pending){MASKED, (uintptr_t)at, bytes, from};
    drain(thread);
    ends(thread);
}

void recorder_loads(const volatile void *at, size_t bytes, struct from from)
{
    struct thread *thread = begins_within_store();
    if (thread == NULL)
        return;
    uintptr_t first = (uintptr_t)at, end = first + bytes;
    const struct mapping *mapping = mapping_within(first, end);
    if (mapping == NULL || !tells_loads) {
        thread->work++;
    } else if (has_begun) {
        first = first > mapping->start ? first : mapping->start;
        end = end < end_of(mapping) ? end : end_of(mapping);
        for (size_t part; first < end; first += part) {
            part = end - first < OPERATION_MAX ? end - first : OPERATION_MAX;
            tell_access(thread, "load ", place_of(mapping, first), part, from);
        }
        counts.loads++;
    }
    ends(thread);
}

/* Writes lines back, after a look at them; whether any of them is persistent. */
static int flush(struct thread *thread, uintptr_t at, size_t bytes, struct from from)
{
    drain(thread);
    int is_any = 0;
    uintptr_t end = at + bytes;
    for (const struct mapping *mapping; (mapping = mapping_within(at, end)) != NULL;) {
        at = at > mapping->start ? at : mapping->start;
        uintptr_t until = end < end_of(mapping) ? end : end_of(mapping);
        uintptr_t lines = (until + LINE - 1) / LINE * LINE;
        compare(mapping, at / LINE * LINE, lines < end_of(mapping) ? lines : end_of(mapping), from);
        tell_flush(thread, mapping->memory, offset_of(mapping, at), until - at, from);
        at = until;
        is_any = 1;
    }
    return is_any;
}

void recorder_flushes(uintptr_t at, size_t bytes, struct from from)
{
    struct thread *thread = begins(LIKELY);
    if (thread == NULL)
        return;
    flush(thread, at, bytes, from);
    ends(thread);
}

void recorder_flushes_in_order(uintptr_t at, size_t bytes, struct from from)
{
    struct thread *thread = begins(LIKELY);
    if (thread == NULL)
        return;
    /* It comes before the stores behind it, and has no others come before them. */
    int others = thread->is_unfenced;
    if (flush(thread, at, bytes, from) && !others)
        tell_fence(thread, "order", from);
    ends(thread);
}

void recorder_fences(uintptr_t at, size_t bytes, struct from from)
{
    (void)at;
    (void)bytes;
    struct thread *thread = begins(LIKELY);
    if (thread == NULL)
        return;
    drain(thread);
    /* Before a thread has done anything its fences are of other things. */
    if (thread->lane >= 0) {
        compare_at_fence(from);
        tell_fence(thread, "fence", from);
    }
    ends(thread);
}

/* Writes back each line of a part of memory that was stored to. */
static void flush_stored(struct thread *thread, const struct memory *memory, size_t offset,
                         size_t end, struct from from)
{
    for (size_t line = offset / LINE * LINE; line < end; line = next_line(memory, line))
        if (memory->used[line / PART] && memory->dirty[line / LINE]) {
            tell_flush(thread, memory, line, LINE, from);
            memory->dirty[line / LINE] = 0;
        }
}

void recorder_syncs(uintptr_t at, size_t bytes, struct from from)
{
    struct thread *thread = begins(STAYS);
    if (thread == NULL)
        return;
    drain(thread);
    int is_any = 0;
    for (const struct mapping *mapping = mappings; mapping < mappings + mapping_count; mapping++) {
        uintptr_t first = at > mapping->start ? at : mapping->start;
        uintptr_t end = at + bytes < end_of(mapping) ? at + bytes : end_of(mapping);
        if (first >= end)
            continue;
        compare_mapping(mapping, first, end, from);
        size_t offset = offset_of(mapping, first);
        flush_stored(thread, mapping->memory, offset, offset + (end - first), from);
        is_any = 1;
    }
    if (is_any)
        tell_fence(thread, "fence", from);
    ends(thread);
}

void recorder_syncs_all(const struct memory *memory, struct from from)
{
    struct thread *thread = begins(STAYS);
    if (thread == NULL)
        return;
    drain(thread);
    for (int index = 0; index < mapping_count; index++)
        if (mappings[index].memory == memory)
            compare_mapping(&mappings[index], 0, UINTPTR_MAX, from);
    flush_stored(thread, memory, 0, memory->bytes, from);
    tell_fence(thread, "fence", from);
    ends(thread);
}

void recorder_locked(struct from from)
{
    struct thread *thread = begins(LIKELY);
    if (thread == NULL)
        return;
    drain(thread);
    locked(thread, from);
    ends(thread);
}

void recorder_works(uint64_t instructions)
{
    struct thread *thread = begins(MAY_PASS);
    if (thread == NULL)
        return;
    thread->work += instructions;
    ends(thread);
}

void recorder_marks(const char *text, struct from from)
{
    struct thread *thread = begins(MAY_PASS);
    if (thread == NULL)
        return;
    drain(thread);
    if (begin_operation(thread)) {
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
        put_from(&body, from);
        counts.marks++;
    }
    ends(thread);
}

void recorder_transaction(enum step step, struct from from)
{
    struct thread *thread = begins(MAY_PASS);
    if (thread == NULL)
        return;
    drain(thread);
    note_transaction(thread, step, from);
    if (begin_operation(thread)) {
        put(&body, step == BEGINS ? "begin" : step == COMMITS ? "commit" : "abort");
        put_from(&body, from);
        counts.transactions += step == BEGINS;
    }
    ends(thread);
}

void forget(struct from from)
{
    struct thread *thread = begins(MAY_PASS);
    if (thread == NULL)
        return;
    drain(thread);
    compare_all(NOWHERE);
    empty(&head);
    empty(&body);
    counts = (struct counts){
        .nested = counts.nested,
        .forks = counts.forks,
        .crowded = counts.crowded,
        .failed = counts.failed,
    };
    note_open(MEASURED_WITHIN, from);
    forget_lanes();
    told_lane = 0;
    has_begun = 0;
    for (int index = 0; index < memory_count; index++) {
        struct memory *memory = &memories[index];
        for (size_t line = 0; line < memory->bytes; line = next_line(memory, line))
            if (memory->used[line / PART])
                memory->dirty[line / LINE] = 0;
        tell_head(memory, 0, memory->bytes);
    }
    ends(thread);
}

void recorder_compares(uintptr_t start, uintptr_t end, struct from from)
{
    struct thread *thread = begins(MAY_PASS);
    if (thread == NULL)
        return;
    drain(thread);
    for (int index = 0; index < mapping_count; index++)
        compare_mapping(&mappings[index], start, end, from);
    ends(thread);
}
