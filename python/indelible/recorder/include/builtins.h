/* What `indelible cc` puts in front of every file: functions that are wrapped are called also where
 * the program asks for the compiler's own, which would be put into the code unseen. */

#pragma GCC system_header

#ifndef __ASSEMBLER__

#ifdef __cplusplus
#define INDELIBLE_NOTHROW noexcept(true)
extern "C" {
#else
#define INDELIBLE_NOTHROW __attribute__((__nothrow__))
#endif

void *memcpy(void *, const void *, __SIZE_TYPE__) INDELIBLE_NOTHROW;
void *memmove(void *, const void *, __SIZE_TYPE__) INDELIBLE_NOTHROW;
void *memset(void *, int, __SIZE_TYPE__) INDELIBLE_NOTHROW;

#ifdef __cplusplus
}
#endif

#undef INDELIBLE_NOTHROW
#define __builtin_memcpy memcpy
#define __builtin_memmove memmove
#define __builtin_memset memset

#endif
