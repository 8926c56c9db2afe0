/* What transactions of the program store over, and what is wrong with those that it tells of. */

#define _GNU_SOURCE
#include <sys/mman.h>
#include <sys/syscall.h>

#include "inner.h"

/* A word that was stored to in a transaction. */
struct stored {
    const struct memory *memory;
    size_t word;
    /* What it held before that store, and what it is told to hold when the transaction aborts. */
    uint64_t old, now;
    struct from from;
};

/* Stores for which there is room at first (ours). */
enum { ROOM = 1 << 10 };

/* The first thing that is wrong is told. */
static void note(enum wrong wrong, struct from from, struct from since)
{
    if (counts.wrong != RIGHT)
        return;
    counts.wrong = wrong;
    counts.wrong_from = keep(from);
    counts.wrong_since = keep(since);
}

static uint64_t *told_word(const struct stored *stored)
{
    return (uint64_t *)stored->memory->told + stored->word;
}

static int has_room(struct thread *thread)
{
    if (thread->stored_count < thread->stored_room)
        return 1;
    size_t had = thread->stored_room, wanted = had == 0 ? ROOM : 2 * had;
    long now = had * sizeof *thread->stored, bytes = wanted * sizeof *thread->stored;
    const long new[6] = {0, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0};
    const long more[6] = {(long)thread->stored, now, bytes, MREMAP_MAYMOVE};
    long at = had == 0 ? system_call(SYS_mmap, new) : system_call(SYS_mremap, more);
    if (at < 0 && at > -PAGE) {
        counts.failed++;
        return 0;
    }
    thread->stored = (struct stored *)at;
    thread->stored_room = wanted;
    return 1;
}

void note_old(struct thread *thread, const struct memory *memory, size_t offset, size_t bytes,
              struct from from)
{
    for (size_t word = offset / 8; word <= (offset + bytes - 1) / 8; word++) {
        if (!has_room(thread))
            return;
        struct stored *stored = &thread->stored[thread->stored_count++];
        *stored = (struct stored){memory, word, .from = keep(from)};
        stored->old = *told_word(stored);
    }
}

/* What was not seen of these words is told before the transaction ends. */
static void look_at(const struct thread *thread, size_t count, struct from from)
{
    for (size_t index = 0; index < count; index++) {
        size_t offset = thread->stored[index].word * 8;
        for (int place = 0; place < mapping_count; place++) {
            const struct mapping *mapping = &mappings[place];
            if (mapping->memory != thread->stored[index].memory || offset < mapping->offset)
                continue;
            uintptr_t at = mapping->start + (offset - mapping->offset);
            compare_mapping(mapping, at, at + 8, from);
        }
    }
}

/* A trace's transaction that is aborted leaves nothing. So it has to be with the program's. */
static void aborts(struct thread *thread, struct from from)
{
    look_at(thread, thread->stored_count, from);
    size_t count = thread->stored_count;
    for (size_t index = 0; index < count; index++)
        thread->stored[index].now = *told_word(&thread->stored[index]);
    for (size_t index = count; index-- > 0;)
        *told_word(&thread->stored[index]) = thread->stored[index].old;
    for (size_t index = count; index-- > 0;) {
        const struct stored *stored = &thread->stored[index];
        if (counts.wrong == RIGHT && stored->now != *told_word(stored)) {
            counts.wrong_at = stored->memory->place + stored->word * 8;
            note(NOT_PUT_BACK, from, stored->from);
        }
    }
    for (size_t index = 0; index < count; index++)
        *told_word(&thread->stored[index]) = thread->stored[index].now;
}

void note_transaction(struct thread *thread, enum step step, struct from from)
{
    if (step == BEGINS && thread->in_transaction)
        note(NESTED, from, thread->began);
    else if (step != BEGINS && !thread->in_transaction)
        note(step == COMMITS ? COMMITS_NONE : ABORTS_NONE, from, NOWHERE);
    else if (step == ABORTS)
        aborts(thread, from);
    thread->in_transaction = step == BEGINS;
    thread->began = keep(from);
    thread->stored_count = 0;
}

void note_open(enum wrong wrong, struct from from)
{
    for (int index = 0; index < thread_count; index++)
        if (threads[index].in_transaction)
            note(wrong, from, threads[index].began);
}

void end_transactions(struct thread *thread)
{
    if (thread->in_transaction)
        note(UNENDED, NOWHERE, thread->began);
    thread->in_transaction = 0;
    const long gone[6] = {(long)thread->stored, thread->stored_room * sizeof *thread->stored};
    if (thread->stored_room > 0)
        system_call(SYS_munmap, gone);
    thread->stored = NULL;
    thread->stored_count = thread->stored_room = 0;
}
