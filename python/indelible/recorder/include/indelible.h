/* What a program can tell `indelible record`. Every call is optional: files that are mapped shared
 * are persistent memory by themselves. In a program that `indelible cc` has not built they do
 * nothing. */

#ifndef INDELIBLE_H
#define INDELIBLE_H

#include <stddef.h>

#ifdef INDELIBLE

#ifdef __cplusplus
extern "C" {
#endif

/* Memory that is to be persistent: any memory of the program, in whole lines of 64 bytes. What else
 * lies in them is persistent, too. */
void indelible_region(const void *start, size_t bytes);

/* What was done up to here is there when recording begins, and durable. */
void indelible_measured(void);

/* The program tells the world how far it has come: a text as of printf, without `#`. */
void indelible_mark(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* A transaction, for designs that make one atomic and durable. They do not nest. One that is
 * aborted leaves nothing in persistent memory, there: indelible_abort() puts nothing back in the
 * program, which does so itself before it, as one with a rollback of its own does. `record` refuses
 * one that does not. */
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
