/* What a program can tell `indelible record`. Every call is optional: files that are mapped shared
 * are persistent memory by themselves. In a program that `indelible cc` has not built, the calls do
 * nothing. */

#ifndef INDELIBLE_H
#define INDELIBLE_H

#include <stddef.h>

#ifdef INDELIBLE

#ifdef __cplusplus
extern "C" {
#endif

/* Declares memory as persistent: any memory of the program, in whole lines of 64 bytes. Whatever
 * else lies in these lines is persistent, too. */
void indelible_region(const void *start, size_t bytes);

/* Begins the recording here: everything that was stored before is in memory, and durable. */
void indelible_measured(void);

/* Tells the world how far the program has come, with a text as of printf, without `#`. */
void indelible_mark(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Begin and end a transaction, which the design makes atomic and durable. Transactions do not nest.
 * indelible_abort() restores nothing: the program itself restores the old values before the call, as
 * one with its own rollback does. `record` refuses a transaction that is aborted without that, since
 * under a design it would leave nothing in persistent memory. */
void indelible_begin(void);
void indelible_commit(void);
void indelible_abort(void);

#ifdef __cplusplus
}
#endif

#else

static inline void indelible_region(const void *start, size_t bytes)
{
    (void)start;
    (void)bytes;
}
static inline void indelible_measured(void) {}
__attribute__((format(printf, 1, 2))) static inline void indelible_mark(const char *format, ...)
{
    (void)format;
}
static inline void indelible_begin(void) {}
static inline void indelible_commit(void) {}
static inline void indelible_abort(void) {}

#endif

#endif
