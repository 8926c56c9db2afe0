/* The places in the program that operations come from: an instruction, the call of its function, the
 * call of the function that called it, and so on. Each place has a number and is written out once. */

#include "inner.h"

enum {
    /* The calls of a place, its instruction included (ours: some lie in headers of the system, or
     * are repeated, and `record` shows six others). */
    CALLS_MAX = 8,
    /* The room for places, and how many there may be at most, so that each is found soon. Behind
     * the first half, new places are those of instructions alone. */
    SLOTS = 1 << 16,
    WHOLE_MAX = SLOTS / 2,
    PLACES_MAX = SLOTS / 4 * 3,
    /* The frame of a place that has a number: no frame has an odd address. */
    KEPT = 1,
};

__thread uintptr_t stack_end;

/* The calls of each place, in the slot before its number; 0 behind the last one. */
static uintptr_t places[SLOTS][CALLS_MAX];
static size_t place_count;

/* Finds the calls of a place. Only the stack is read, between the present frame and the end of the
 * thread's stack. Where that end is not known, or the thread is on another stack, only the first
 * frame is read. */
static void walk(struct from from, uintptr_t calls[CALLS_MAX])
{
    uintptr_t below = (uintptr_t)__builtin_frame_address(0), end = below + STACK_MAX;
    uintptr_t known = stack_end - below < STACK_MAX ? stack_end : 0;
    calls[0] = from.at;
    for (int call = 1; call < CALLS_MAX; call++) {
        if (from.frame <= below || from.frame >= end || from.frame % sizeof from.frame != 0)
            return;
        const uintptr_t *frame = (const uintptr_t *)from.frame;
        calls[call] = frame[1] - 1;
        below = from.frame;
        from.frame = frame[0];
        end = known;
    }
}

/* Returns the number of a place, or 0 if it is new and there are so many already. */
static uintptr_t number_of(const uintptr_t calls[CALLS_MAX], size_t most)
{
    uint64_t slot = 0;
    for (int call = 0; call < CALLS_MAX; call++) {
        slot = (slot ^ calls[call]) * 0x9e3779b97f4a7c15;
        slot ^= slot >> 32;
    }
    for (;; slot++) {
        uintptr_t *place = places[slot %= SLOTS];
        if (place[0] == 0 && place_count >= most)
            return 0;
        int is_new = place[0] == 0, differs = 0;
        place_count += is_new;
        for (int call = 0; call < CALLS_MAX; call++) {
            place[call] = is_new ? calls[call] : place[call];
            differs |= place[call] != calls[call];
        }
        if (!differs)
            return slot + 1;
    }
}

struct from keep(struct from from)
{
    if (from.frame == KEPT || from.at == 0)
        return from;
    uintptr_t calls[CALLS_MAX] = {0}, alone[CALLS_MAX] = {from.at};
    walk(from, calls);
    uintptr_t number = number_of(calls, WHOLE_MAX);
    if (number == 0)
        number = number_of(alone, PLACES_MAX);
    return (struct from){number, KEPT};
}

void put_from(struct text *to, struct from from)
{
    put(to, " #@");
    put_number(to, keep(from).at, 16);
    put_character(to, '\n');
}

void put_places(struct text *to)
{
    for (size_t slot = 0; slot < SLOTS; slot++) {
        if (places[slot][0] == 0)
            continue;
        put_number(to, slot + 1, 16);
        for (int call = 0; call < CALLS_MAX && places[slot][call] != 0; call++) {
            put_character(to, ' ');
            put_number(to, places[slot][call], 16);
        }
        put_character(to, '\n');
    }
}
