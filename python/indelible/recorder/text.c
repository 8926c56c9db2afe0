/* Text on its way to a file, without the C library. */

#include <sys/syscall.h>

#include "inner.h"

static long system_call(long number, long first, long second, long third)
{
    long result;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(first), "S"(second), "d"(third)
                     : "rcx", "r11", "memory");
    return result;
}

void write_out(struct text *to)
{
    for (size_t done = 0; done < to->used;) {
        long wrote = system_call(SYS_write, to->file, (long)(to->buffer + done), to->used - done);
        if (wrote <= 0) {
            counts.dropped++;
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
