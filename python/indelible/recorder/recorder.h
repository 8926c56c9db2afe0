/* What the parts of the recorder share. */

#ifndef INDELIBLE_RECORDER_H
#define INDELIBLE_RECORDER_H

#include <stddef.h>
#include <stdint.h>

/* The most bytes between a frame and its caller's (ours: the usual size of a stack on Linux). */
#define STACK_MAX 0x800000

/* The place in the program that an operation comes from: an instruction, and the frame of its
 * function, from which its callers are found while it runs; 0 if it is not known. */
struct from {
    uintptr_t at, frame;
};

/* The program sees none of these names. */
#pragma GCC visibility push(hidden)

/* Tells that a store is about to be made. Its value is read when the next operation is told. */
void recorder_will_store(uintptr_t at, size_t bytes, struct from from);

/* The same for a store past the caches, for one that may leave out some of these bytes, and for one
 * that is both. */
void recorder_will_stream(uintptr_t at, size_t bytes, struct from from);
void recorder_will_mask(uintptr_t at, size_t bytes, struct from from);
void recorder_will_mask_stream(uintptr_t at, size_t bytes, struct from from);

/* The same for half of a vector register, a store that compilers announce themselves sometimes. */
void recorder_will_half(uintptr_t at, size_t bytes, struct from from);

/* The same for a locked store, which is a fence, too. */
void recorder_will_lock(uintptr_t at, size_t bytes, struct from from);

/* Tells the store that was about to be made, which is in memory by now. */
void recorder_drain(void);

/* The same before an atomic access, through which threads may meet. */
void recorder_meets(void);

/* Tells that a store was made. */
void recorder_stored(const volatile void *at, size_t bytes, struct from from);

/* Tells that some of these bytes may have been stored to. */
void recorder_changed(const volatile void *at, size_t bytes, struct from from);

/* Tells that a load is about to be made. */
void recorder_loads(const volatile void *at, size_t bytes, struct from from);

/* Tells that all lines that hold some of these bytes are about to be written back. In order, that
 * happens before later stores without a fence, as clflush does it. */
void recorder_flushes(uintptr_t at, size_t bytes, struct from from);
void recorder_flushes_in_order(uintptr_t at, size_t bytes, struct from from);

/* Tells that the stores to these bytes have been written back, and that the caller has waited for
 * that (msync). */
void recorder_syncs(uintptr_t at, size_t bytes, struct from from);

/* Tells that a file may have another size now. Returns the second argument. */
int recorder_resized(int file, int failed);

/* Tells a fence. A locked operation is one if something was written back before it. */
void recorder_fences(uintptr_t at, size_t bytes, struct from from);
void recorder_locked(struct from from);

/* Tells that a transaction begins or ends. */
enum step { BEGINS, COMMITS, ABORTS };
void recorder_transaction(enum step step, struct from from);

/* Tells a mark of the program. */
void recorder_marks(const char *text, struct from from);

/* Tells instructions that touch no persistent memory. */
void recorder_works(uint64_t instructions);

/* Between these two calls nothing is told but what the caller itself tells. */
void recorder_enter(void);
void recorder_leave(void);

/* Between these two calls no other thread goes on, however long that takes. */
void recorder_keep(void);
void recorder_release(void);

#pragma GCC visibility pop

/* The place from which the present function was called. */
#define CALLER                                                                                     \
    ((struct from){(uintptr_t)__builtin_return_address(0) - 1,                                     \
                   *(const uintptr_t *)__builtin_frame_address(0)})

#endif
