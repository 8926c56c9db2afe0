/* What the parts of the recorder share. */

#ifndef INDELIBLE_RECORDER_H
#define INDELIBLE_RECORDER_H

/* The most bytes between a frame and one that it was called from (ours: Linux' usual stack). */
#define STACK_MAX 0x800000

#ifndef __ASSEMBLER__

#include <stddef.h>
#include <stdint.h>

/* Where in the program something comes from: an instruction, and the call of its function; 0 if it
 * is not known. */
struct from {
    uintptr_t at, call;
};

/* Nothing of this is the program's business. */
#pragma GCC visibility push(hidden)

/* A store is about to be made: its value is read when the next thing happens. */
void recorder_will_store(uintptr_t at, size_t bytes, struct from from);

/* The same of a store past the caches, and of one of which some bytes may not be stored. */
void recorder_will_stream(uintptr_t at, size_t bytes, struct from from);
void recorder_will_mask(uintptr_t at, size_t bytes, struct from from);

/* Half of a vector register is about to be stored, of which compilers tell sometimes. */
void recorder_will_half(uintptr_t at, size_t bytes, struct from from);

/* A locked store is about to be made, which is a fence, too. */
void recorder_will_lock(uintptr_t at, size_t bytes, struct from from);

/* What was about to be stored is there. */
void recorder_drain(void);

/* The same, before an atomic access by which threads may meet. */
void recorder_meets(void);

/* A store was made. */
void recorder_stored(const volatile void *at, size_t bytes, struct from from);

/* Some of these bytes may have been stored. */
void recorder_changed(const volatile void *at, size_t bytes, struct from from);

/* A load is about to be made. */
void recorder_loads(const volatile void *at, size_t bytes, struct from from);

/* Lines are about to be written back: all that hold some of these bytes. One that is `ordered`
 * comes before the stores behind it without a fence. */
void recorder_flushes(uintptr_t at, size_t bytes, struct from from);
void recorder_flushes_in_order(uintptr_t at, size_t bytes, struct from from);

/* What was stored to these bytes has been written back, by who waits for that. */
void recorder_syncs(uintptr_t at, size_t bytes, struct from from);

/* A file may have another size now. Returns the second argument. */
int recorder_resized(int file, int failed);

/* A fence, which a locked operation is where something was written back before it. */
void recorder_fences(uintptr_t at, size_t bytes, struct from from);
void recorder_locked(struct from from);

/* A transaction begins, or ends. */
enum step { BEGINS, COMMITS, ABORTS };
void recorder_transaction(enum step step, struct from from);

/* The program tells the world something. */
void recorder_marks(const char *text, struct from from);

/* Instructions that touch no persistent memory. */
void recorder_works(uint64_t instructions);

/* What is done between these is told by who calls them. */
void recorder_enter(void);
void recorder_leave(void);

/* Between these no other thread goes on, however long it takes. */
void recorder_keep(void);
void recorder_release(void);

#pragma GCC visibility pop

/* The call of the function that has a frame. What is no frame on this stack is not looked at. */
static inline uintptr_t call_of(uintptr_t frame)
{
    uintptr_t above = frame - (uintptr_t)__builtin_frame_address(0);
    return above < STACK_MAX ? ((const uintptr_t *)frame)[1] - 1 : 0;
}

/* The caller of the function that asks, within its call. */
#define CALLER                                                                                     \
    ((struct from){(uintptr_t)__builtin_return_address(0) - 1,                                     \
                   call_of(*(const uintptr_t *)__builtin_frame_address(0))})

#endif

#endif
