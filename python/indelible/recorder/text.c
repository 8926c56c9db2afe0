/* Text on its way to a file, without the C library. */

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "inner.h"

long system_call(long number, const long arguments[6])
{
    register long fourth __asm__("r10") = arguments[3];
    register long fifth __asm__("r8") = arguments[4];
    register long sixth __asm__("r9") = arguments[5];
    long result;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(arguments[0]), "S"(arguments[1]), "d"(arguments[2]),
                       "r"(fourth), "r"(fifth), "r"(sixth)
                     : "rcx", "r11", "memory");
    return result;
}

/* Whether it is the file still: programs close what they have not opened. */
static int is_own(const struct text *text)
{
    struct stat status;
    const long asked[6] = {text->file, (long)&status};
    return system_call(SYS_fstat, asked) == 0 && status.st_dev == text->device &&
           status.st_ino == text->inode;
}

void open_text(struct text *text, int file)
{
    struct stat status;
    int far = fcntl(file, F_DUPFD_CLOEXEC, FAR);
    if (far >= 0)
        close(file);
    text->file = far >= 0 ? far : file;
    if (fstat(text->file, &status) == 0) {
        text->device = status.st_dev;
        text->inode = status.st_ino;
    }
}

void empty(struct text *text)
{
    /* Of the C library's functions some are the recorder's own. */
    const long whole[6] = {text->file, 0}, begin[6] = {text->file, 0, SEEK_SET};
    text->used = 0;
    text->written = 0;
    if (!is_own(text) || system_call(SYS_ftruncate, whole) != 0 ||
        system_call(SYS_lseek, begin) != 0)
        counts.failed++;
}

void write_out(struct text *to)
{
    if (!is_own(to)) {
        counts.failed++;
        to->used = 0;
    }
    for (size_t done = 0; done < to->used;) {
        const long part[6] = {to->file, (long)(to->buffer + done), to->used - done};
        long wrote = system_call(SYS_write, part);
        if (wrote <= 0) {
            counts.failed++;
            break;
        }
        done += wrote;
    }
    to->written += to->used;
    to->used = 0;
}

void put_character(struct text *to, char character)
{
    if (to->used == sizeof to->buffer)
        write_out(to);
    to->buffer[to->used++] = character;
}

void put(struct text *to, const char *words)
{
    while (*words != 0)
        put_character(to, *words++);
}

void put_number(struct text *to, uint64_t number, unsigned radix)
{
    char digits[24];
    int count = 0;
    do
        digits[count++] = "0123456789abcdef"[number % radix];
    while ((number /= radix) != 0);
    while (count > 0)
        put_character(to, digits[--count]);
}

void put_hex(struct text *to, uint64_t number)
{
    put(to, "0x");
    put_number(to, number, 16);
}

void put_bytes(struct text *to, const unsigned char *bytes, size_t count)
{
    for (size_t byte = 0; byte < count; byte++) {
        put_character(to, "0123456789abcdef"[bytes[byte] >> 4]);
        put_character(to, "0123456789abcdef"[bytes[byte] & 15]);
    }
}
