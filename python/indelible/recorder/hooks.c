/* What programs built with `indelible cc` call: the compiler's calls before accesses (of gcc's and
 * clang's thread sanitizer, whose library is not there), and functions that the linker has wrapped. */

#define _GNU_SOURCE
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <wchar.h>

#include "indelible.h"
#include "recorder.h"

void __tsan_init(void) {}

void __tsan_func_entry(void *from)
{
    (void)from;
    recorder_drain();
    recorder_works(1);
}

void __tsan_func_exit(void)
{
    recorder_drain();
}

void __tsan_ignore_thread_begin(void) {}
void __tsan_ignore_thread_end(void) {}

/* Plain accesses. */

#define ACCESS(name, bytes)                                                                        \
    void __tsan_##name##read##bytes(void *at) { recorder_loads(at, bytes, CALLER); }               \
    void __tsan_##name##write##bytes(void *at)                                                     \
    {                                                                                              \
        recorder_will_store((uintptr_t)at, bytes, CALLER);                                         \
    }

#define ACCESSES(name)                                                                             \
    ACCESS(name, 1) ACCESS(name, 2) ACCESS(name, 4) ACCESS(name, 8) ACCESS(name, 16)

ACCESSES()
ACCESSES(unaligned_)
ACCESSES(volatile_)
ACCESSES(unaligned_volatile_)

void __tsan_read_range(void *at, size_t bytes)
{
    recorder_loads(at, bytes, CALLER);
}

void __tsan_write_range(void *at, size_t bytes)
{
    recorder_will_store((uintptr_t)at, bytes, CALLER);
}

void __tsan_vptr_update(void **at, void *value)
{
    (void)value;
    recorder_will_store((uintptr_t)at, sizeof *at, CALLER);
}

void __tsan_vptr_read(void **at)
{
    recorder_loads(at, sizeof *at, CALLER);
}

/* Atomic accesses, which are calls instead of instructions. All are as strong as they can be. */

#define FETCH(bits, type, name, operation)                                                         \
    type __tsan_atomic##bits##_fetch_##name(volatile type *at, type value, int order)              \
    {                                                                                              \
        (void)order;                                                                               \
        recorder_locked(CALLER);                                                                   \
        type old = __atomic_fetch_##operation(at, value, __ATOMIC_SEQ_CST);                        \
        recorder_stored(at, sizeof *at, CALLER);                                                   \
        return old;                                                                                \
    }

#define EXCHANGE_IF(bits, type, name)                                                              \
    int __tsan_atomic##bits##_compare_exchange_##name(volatile type *at, type *expected,           \
                                                      type value, int order, int failed)           \
    {                                                                                              \
        (void)order, (void)failed;                                                                 \
        recorder_locked(CALLER);                                                                   \
        int done = __atomic_compare_exchange_n(at, expected, value, 0, __ATOMIC_SEQ_CST,           \
                                               __ATOMIC_SEQ_CST);                                  \
        if (done)                                                                                  \
            recorder_stored(at, sizeof *at, CALLER);                                               \
        return done;                                                                               \
    }

#define ATOMIC(bits, type)                                                                         \
    type __tsan_atomic##bits##_load(const volatile type *at, int order)                            \
    {                                                                                              \
        (void)order;                                                                               \
        recorder_meets();                                                                          \
        recorder_loads(at, sizeof *at, CALLER);                                                    \
        return __atomic_load_n(at, __ATOMIC_SEQ_CST);                                              \
    }                                                                                              \
    void __tsan_atomic##bits##_store(volatile type *at, type value, int order)                     \
    {                                                                                              \
        if (order == __ATOMIC_SEQ_CST)                                                             \
            recorder_locked(CALLER);                                                               \
        else                                                                                       \
            recorder_meets();                                                                      \
        __atomic_store_n(at, value, __ATOMIC_SEQ_CST);                                             \
        recorder_stored(at, sizeof *at, CALLER);                                                   \
    }                                                                                              \
    type __tsan_atomic##bits##_exchange(volatile type *at, type value, int order)                  \
    {                                                                                              \
        (void)order;                                                                               \
        recorder_locked(CALLER);                                                                   \
        type old = __atomic_exchange_n(at, value, __ATOMIC_SEQ_CST);                               \
        recorder_stored(at, sizeof *at, CALLER);                                                   \
        return old;                                                                                \
    }                                                                                              \
    FETCH(bits, type, add, add)                                                                    \
    FETCH(bits, type, sub, sub)                                                                    \
    FETCH(bits, type, and, and)                                                                    \
    FETCH(bits, type, or, or)                                                                      \
    FETCH(bits, type, xor, xor)                                                                    \
    FETCH(bits, type, nand, nand)                                                                  \
    EXCHANGE_IF(bits, type, strong)                                                                \
    EXCHANGE_IF(bits, type, weak)                                                                  \
    type __tsan_atomic##bits##_compare_exchange_val(volatile type *at, type expected, type value,  \
                                                    int order, int failed)                         \
    {                                                                                              \
        __tsan_atomic##bits##_compare_exchange_strong(at, &expected, value, order, failed);        \
        return expected;                                                                           \
    }

ATOMIC(8, uint8_t)
ATOMIC(16, uint16_t)
ATOMIC(32, uint32_t)
ATOMIC(64, uint64_t)

void __tsan_atomic_thread_fence(int order)
{
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    if (order == __ATOMIC_SEQ_CST)
        recorder_fences(0, 0, CALLER);
}

void __tsan_atomic_signal_fence(int order)
{
    (void)order;
}

/* What a program tells in words. */
void indelible_mark(const char *format, ...)
{
    char *text;
    va_list arguments;
    va_start(arguments, format);
    if (vasprintf(&text, format, arguments) < 0)
        text = NULL;
    va_end(arguments);
    recorder_marks(text == NULL ? format : text, CALLER);
    free(text);
}

/* Functions of the C library that store to what they are given. */

static void *moved(void *to, const void *from, size_t bytes, struct from caller)
{
    recorder_drain();
    recorder_loads(from, bytes, caller);
    memmove(to, from, bytes);
    recorder_stored(to, bytes, caller);
    return to;
}

static void *filled(void *to, int value, size_t bytes, struct from caller)
{
    recorder_drain();
    memset(to, value, bytes);
    recorder_stored(to, bytes, caller);
    return to;
}

void *__wrap_memcpy(void *to, const void *from, size_t bytes)
{
    return moved(to, from, bytes, CALLER);
}

void *__wrap_memmove(void *to, const void *from, size_t bytes)
{
    return moved(to, from, bytes, CALLER);
}

void *__wrap_mempcpy(void *to, const void *from, size_t bytes)
{
    return (char *)moved(to, from, bytes, CALLER) + bytes;
}

void *__wrap_memset(void *to, int value, size_t bytes)
{
    return filled(to, value, bytes, CALLER);
}

void __wrap_bzero(void *to, size_t bytes)
{
    filled(to, 0, bytes, CALLER);
}

void __wrap_bcopy(const void *from, void *to, size_t bytes)
{
    moved(to, from, bytes, CALLER);
}

char *__wrap_strcpy(char *to, const char *from)
{
    return moved(to, from, strlen(from) + 1, CALLER);
}

char *__wrap_stpcpy(char *to, const char *from)
{
    size_t length = strlen(from);
    return (char *)moved(to, from, length + 1, CALLER) + length;
}

char *__wrap_strcat(char *to, const char *from)
{
    moved(to + strlen(to), from, strlen(from) + 1, CALLER);
    return to;
}

char *__wrap_strncpy(char *to, const char *from, size_t bytes)
{
    size_t length = strnlen(from, bytes);
    moved(to, from, length, CALLER);
    filled(to + length, 0, bytes - length, CALLER);
    return to;
}

char *__wrap_stpncpy(char *to, const char *from, size_t bytes)
{
    return __wrap_strncpy(to, from, bytes) + strnlen(from, bytes);
}

char *__wrap_strncat(char *to, const char *from, size_t bytes)
{
    size_t length = strnlen(from, bytes);
    char *end = to + strlen(to);
    moved(end, from, length, CALLER);
    filled(end + length, 0, 1, CALLER);
    return to;
}

void *__wrap_memccpy(void *to, const void *from, int last, size_t bytes)
{
    const char *found = memchr(from, last, bytes);
    size_t length = found == NULL ? bytes : (size_t)(found + 1 - (const char *)from);
    moved(to, from, length, CALLER);
    return found == NULL ? NULL : (char *)to + length;
}

wchar_t *__wrap_wmemcpy(wchar_t *to, const wchar_t *from, size_t count)
{
    return moved(to, from, count * sizeof *to, CALLER);
}

wchar_t *__wrap_wmemmove(wchar_t *to, const wchar_t *from, size_t count)
{
    return moved(to, from, count * sizeof *to, CALLER);
}

wchar_t *__wrap_wmempcpy(wchar_t *to, const wchar_t *from, size_t count)
{
    return (wchar_t *)moved(to, from, count * sizeof *to, CALLER) + count;
}

wchar_t *__wrap_wmemset(wchar_t *to, wchar_t value, size_t count)
{
    recorder_drain();
    wmemset(to, value, count);
    recorder_stored(to, count * sizeof *to, CALLER);
    return to;
}

wchar_t *__wrap_wcscpy(wchar_t *to, const wchar_t *from)
{
    return moved(to, from, (wcslen(from) + 1) * sizeof *to, CALLER);
}

/* The names that clang calls memcpy, memmove and memset by, and the functions that check sizes. Sizes
 * that are too large are not looked for here. */
#define ALIAS(name, of) __typeof__(of) name __attribute__((alias(#of)))
ALIAS(__tsan_memcpy, __wrap_memcpy);
ALIAS(__tsan_memmove, __wrap_memmove);
ALIAS(__tsan_memset, __wrap_memset);

void *__wrap___memcpy_chk(void *to, const void *from, size_t bytes, size_t room)
{
    (void)room;
    return moved(to, from, bytes, CALLER);
}

void *__wrap___memmove_chk(void *to, const void *from, size_t bytes, size_t room)
{
    (void)room;
    return moved(to, from, bytes, CALLER);
}

void *__wrap___memset_chk(void *to, int value, size_t bytes, size_t room)
{
    (void)room;
    return filled(to, value, bytes, CALLER);
}

char *__wrap___strcpy_chk(char *to, const char *from, size_t room)
{
    (void)room;
    return moved(to, from, strlen(from) + 1, CALLER);
}

/* Text of so many characters, or as much as there is room for, has been written, with a zero. */
static int written(char *to, size_t room, int length, struct from caller)
{
    if (length >= 0 && room > 0)
        recorder_stored(to, (size_t)length < room ? (size_t)length + 1 : room, caller);
    return length;
}

int __wrap_vsnprintf(char *to, size_t room, const char *format, va_list arguments)
{
    recorder_drain();
    return written(to, room, vsnprintf(to, room, format, arguments), CALLER);
}

int __wrap_vsprintf(char *to, const char *format, va_list arguments)
{
    recorder_drain();
    return written(to, SIZE_MAX, vsprintf(to, format, arguments), CALLER);
}

int __wrap_snprintf(char *to, size_t room, const char *format, ...)
{
    recorder_drain();
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(to, room, format, arguments);
    va_end(arguments);
    return written(to, room, length, CALLER);
}

int __wrap_sprintf(char *to, const char *format, ...)
{
    recorder_drain();
    va_list arguments;
    va_start(arguments, format);
    int length = vsprintf(to, format, arguments);
    va_end(arguments);
    return written(to, SIZE_MAX, length, CALLER);
}

size_t __wrap_fread(void *to, size_t bytes, size_t count, FILE *file)
{
    recorder_drain();
    size_t read = fread(to, bytes, count, file);
    recorder_stored(to, bytes * read, CALLER);
    /* A file may end within the next one. */
    if (read < count)
        recorder_changed((char *)to + bytes * read, bytes, CALLER);
    return read;
}

ssize_t __wrap_read(int file, void *to, size_t bytes)
{
    recorder_drain();
    ssize_t count = read(file, to, bytes);
    if (count > 0)
        recorder_stored(to, count, CALLER);
    return count;
}

/* What was about to be stored to memory that is given back is looked at before. */
void __wrap_free(void *at)
{
    recorder_drain();
    free(at);
}

/* C++'s `delete` and `delete[]`, which only C++ programs have. */
#define DELETE(name)                                                                               \
    void name(void *at) __attribute__((weak));                                                     \
    void __wrap_##name(void *at)                                                                   \
    {                                                                                              \
        recorder_drain();                                                                          \
        name(at);                                                                                  \
    }                                                                                              \
    void name##m(void *at, size_t bytes) __attribute__((weak));                                    \
    void __wrap_##name##m(void *at, size_t bytes)                                                  \
    {                                                                                              \
        recorder_drain();                                                                          \
        name##m(at, bytes);                                                                        \
    }

DELETE(_ZdlPv)
DELETE(_ZdaPv)

void __wrap_pthread_exit(void *result)
{
    recorder_drain();
    pthread_exit(result);
}

void *__wrap_realloc(void *at, size_t bytes)
{
    recorder_drain();
    return realloc(at, bytes);
}

/* A file that is mapped may be longer now. */
ssize_t __wrap_write(int file, const void *from, size_t bytes)
{
    recorder_drain();
    ssize_t count = write(file, from, bytes);
    return recorder_resized(file, count < 0) ? -1 : count;
}

ssize_t __wrap_pwrite(int file, const void *from, size_t bytes, off_t offset)
{
    recorder_drain();
    ssize_t count = pwrite(file, from, bytes, offset);
    return recorder_resized(file, count < 0) ? -1 : count;
}

ssize_t __wrap_pread(int file, void *to, size_t bytes, off_t offset)
{
    recorder_drain();
    ssize_t count = pread(file, to, bytes, offset);
    if (count > 0)
        recorder_stored(to, count, CALLER);
    return count;
}

/* The names of both for offsets of 64 bits. */
ALIAS(__wrap_pread64, __wrap_pread);
ALIAS(__wrap_pwrite64, __wrap_pwrite);
