/* What `indelible cc` puts in front of every file: functions that are wrapped are called also where
 * the program asks for the compiler's own, which would be put into the code unseen. The functions are
 * named here by what they are called in the assembly, so that the program's names are its own. */

#if !defined(__ASSEMBLER__) && !defined(__clang__)

#pragma GCC system_header

#ifdef __cplusplus
extern "C" {
#endif

void *indelible_memcpy(void *, const void *, __SIZE_TYPE__) __asm__("memcpy");
void *indelible_memmove(void *, const void *, __SIZE_TYPE__) __asm__("memmove");
void *indelible_memset(void *, int, __SIZE_TYPE__) __asm__("memset");

#ifdef __cplusplus
}
#endif

#define __builtin_memcpy indelible_memcpy
#define __builtin_memmove indelible_memmove
#define __builtin_memset indelible_memset

#endif
