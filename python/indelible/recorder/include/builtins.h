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
void *indelible_mempcpy(void *, const void *, __SIZE_TYPE__) __asm__("mempcpy");
void indelible_bzero(void *, __SIZE_TYPE__) __asm__("bzero");
void indelible_bcopy(const void *, void *, __SIZE_TYPE__) __asm__("bcopy");
char *indelible_strcpy(char *, const char *) __asm__("strcpy");
char *indelible_stpcpy(char *, const char *) __asm__("stpcpy");
char *indelible_strcat(char *, const char *) __asm__("strcat");
char *indelible_strncpy(char *, const char *, __SIZE_TYPE__) __asm__("strncpy");
char *indelible_stpncpy(char *, const char *, __SIZE_TYPE__) __asm__("stpncpy");
char *indelible_strncat(char *, const char *, __SIZE_TYPE__) __asm__("strncat");
__attribute__((format(printf, 2, 3))) int indelible_sprintf(char *, const char *, ...) __asm__("sprintf");
__attribute__((format(printf, 3, 4))) int indelible_snprintf(char *, __SIZE_TYPE__, const char *, ...)
    __asm__("snprintf");

#ifdef __cplusplus
}
#endif

#define __builtin_memcpy indelible_memcpy
#define __builtin_memmove indelible_memmove
#define __builtin_memset indelible_memset
#define __builtin_mempcpy indelible_mempcpy
#define __builtin_bzero indelible_bzero
#define __builtin_bcopy indelible_bcopy
#define __builtin_strcpy indelible_strcpy
#define __builtin_stpcpy indelible_stpcpy
#define __builtin_strcat indelible_strcat
#define __builtin_strncpy indelible_strncpy
#define __builtin_stpncpy indelible_stpncpy
#define __builtin_strncat indelible_strncat
#define __builtin_sprintf indelible_sprintf
#define __builtin_snprintf indelible_snprintf

#endif
