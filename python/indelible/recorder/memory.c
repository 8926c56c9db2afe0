/* Persistent memories, and where the program has mapped them. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "indelible.h"
#include "inner.h"

/* The address of the first memory in a trace, and the distance to the next, since files may grow. */
#define FIRST_PLACE 0x10000ul
#define PLACES (1ul << 40)

struct memory memories[MEMORIES_MAX];
int memory_count;
struct mapping mappings[MAPPINGS_MAX];
int mapping_count;
const char *pool;

/* All mappings lie between these. */
static uintptr_t lowest = UINTPTR_MAX, highest;

struct mapping *mapping_of(uintptr_t at)
{
    if (at < lowest || at >= highest)
        return NULL;
    for (int index = 0; index < mapping_count; index++)
        if (at >= mappings[index].start && at < end_of(&mappings[index]))
            return &mappings[index];
    return NULL;
}

struct mapping *mapping_within(uintptr_t at, uintptr_t end)
{
    struct mapping *first = NULL;
    if (at >= end || at >= highest || end <= lowest)
        return NULL;
    for (struct mapping *each = mappings; each < mappings + mapping_count; each++)
        if (each->start < end && at < end_of(each) && (first == NULL || each->start < first->start))
            first = each;
    return first;
}

static struct memory *new_memory(const char *name)
{
    if (memory_count == MEMORIES_MAX) {
        counts.crowded++;
        return NULL;
    }
    struct memory *memory = &memories[memory_count];
    memory->place = memory_count == 0 ? FIRST_PLACE : memory_count * PLACES;
    memory_count++;
    snprintf(memory->name, sizeof memory->name, "%s", name);
    return memory;
}

static void *enlarged(void *before, size_t had, size_t bytes)
{
    if (before != NULL)
        return (void *)syscall(SYS_mremap, before, had, bytes, MREMAP_MAYMOVE);
    return (void *)syscall(SYS_mmap, NULL, bytes, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
}

static size_t parts_of(size_t bytes)
{
    return (bytes + PART - 1) / PART;
}

/* Makes a memory this large; nothing is told of the new bytes yet. Returns whether there was room. */
static int enlarge(struct memory *memory, size_t bytes)
{
    void *told = enlarged(memory->told, memory->bytes, bytes);
    if (told == MAP_FAILED) {
        counts.failed++;
        return 0;
    }
    memory->told = told;
    void *dirty = enlarged(memory->dirty, memory->bytes / LINE, bytes / LINE);
    if (dirty == MAP_FAILED) {
        counts.failed++;
        return 0;
    }
    memory->dirty = dirty;
    void *used = enlarged(memory->used, parts_of(memory->bytes), parts_of(bytes));
    if (used == MAP_FAILED) {
        counts.failed++;
        return 0;
    }
    memory->used = used;
    memory->bytes = bytes;
    return 1;
}

static void map(uintptr_t start, size_t bytes, struct memory *memory, size_t offset)
{
    if (mapping_count == MAPPINGS_MAX) {
        counts.crowded++;
        return;
    }
    mappings[mapping_count++] = (struct mapping){start, start + bytes, memory, offset};
    lowest = start < lowest ? start : lowest;
    highest = start + bytes > highest ? start + bytes : highest;
}

static struct memory *known(const struct stat *status)
{
    for (int index = 0; index < memory_count; index++)
        if (memories[index].is_file && memories[index].device == status->st_dev &&
            memories[index].file == status->st_ino)
            return &memories[index];
    return NULL;
}

struct memory *memory_of_file(int file)
{
    struct stat status;
    return is_recording && memory_count > 0 && fstat(file, &status) == 0 ? known(&status) : NULL;
}

/* Gives a memory the size of its file, in whole lines: bytes of the last line behind the end are
 * zeros. Bytes that a file has gained since it was first mapped come from stores, or are zeros. */
static int resize(struct memory *memory, const struct stat *status)
{
    size_t bytes = ((size_t)status->st_size + LINE - 1) / LINE * LINE;
    if ((size_t)status->st_size < memory->bytes)
        tell_zeros(memory, status->st_size, memory->bytes);
    memory->left = bytes;
    return bytes <= memory->bytes || enlarge(memory, bytes);
}

/* Holds a file open, so that no other file gets its inode number, even if it is removed. Opened with
 * O_PATH, it can be closed without the loss of the program's locks of the file. */
static void hold(int file)
{
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    int held = open(link, O_PATH | O_CLOEXEC);
    if (held >= 0 && fcntl(held, F_DUPFD_CLOEXEC, FAR) >= 0)
        close(held);
}

/* Reads what a file holds between two offsets. Parts that are zeros take no memory. */
static void read_between(struct memory *memory, int file, size_t from, size_t to)
{
    static unsigned char part[PART];
    ssize_t bytes = 1;
    for (size_t done = from; done < to && bytes > 0; done += bytes) {
        size_t room = sizeof part - done % sizeof part, left = to - done;
        bytes = pread(file, part, left < room ? left : room, done);
        if (bytes > 0 && (part[0] != 0 || memcmp(part, part + 1, bytes - 1) != 0)) {
            memcpy(memory->told + done, part, bytes);
            use(memory, done, bytes);
        }
    }
    counts.failed += bytes < 0;
}

/* Reads what a file holds, without the holes of a large one. To find these lseek moves the file's
 * position, which is the program's and is put back. */
static void read_whole(struct memory *memory, int file)
{
    off_t own = memory->bytes < SPARSE_MIN ? -1 : lseek(file, 0, SEEK_CUR);
    if (own < 0) {
        read_between(memory, file, 0, memory->bytes);
        return;
    }
    for (off_t at = 0, end; at < (off_t)memory->bytes; at = end) {
        off_t data = lseek(file, at, SEEK_DATA);
        if (data < 0 && errno == ENXIO)
            break;
        end = data < 0 ? -1 : lseek(file, data, SEEK_HOLE);
        if (end < 0)
            end = memory->bytes;
        read_between(memory, file, data < 0 ? at : data, end);
    }
    lseek(file, own, SEEK_SET);
}

void tell_head(const struct memory *memory, size_t from, size_t to)
{
    for (size_t line = from; line < to; line = next_line(memory, line)) {
        if (!memory->used[line / PART])
            continue;
        const uint64_t *words = (const uint64_t *)(memory->told + line);
        uint64_t any = 0;
        for (int word = 0; word < LINE / 8; word++)
            any |= words[word];
        if (any == 0)
            continue;
        if (head.written > bytes_max) {
            counts.full++;
            return;
        }
        put(&head, "bytes ");
        put_hex(&head, memory->place + line);
        put_character(&head, ' ');
        put_bytes(&head, memory->told + line, LINE);
        put_character(&head, '\n');
    }
}

/* Returns the memory of a file that is mapped; the first time it is made, with the file's contents. */
static struct memory *memory_of(int file, const struct stat *status, const char *name)
{
    struct memory *memory = known(status);
    if (memory != NULL)
        return resize(memory, status) ? memory : NULL;
    memory = new_memory(name);
    if (memory == NULL || !resize(memory, status))
        return NULL;
    memory->is_file = 1;
    memory->device = status->st_dev;
    memory->file = status->st_ino;
    hold(file);
    read_whole(memory, file);
    tell_head(memory, 0, memory->bytes);
    return memory;
}

void look_at_files(void)
{
    struct stat status;
    for (int index = 0; index < memory_count; index++)
        if (memories[index].is_file && stat(memories[index].name, &status) == 0 &&
            known(&status) == &memories[index] && (size_t)status.st_size > memories[index].left)
            resize(&memories[index], &status);
}

int recorder_resized(int file, int failed)
{
    struct stat status;
    recorder_keep();
    struct memory *memory = failed ? NULL : memory_of_file(file);
    if (memory != NULL && fstat(file, &status) == 0)
        resize(memory, &status);
    recorder_release();
    return failed;
}

void indelible_region(const void *start, size_t bytes)
{
    recorder_drain();
    uintptr_t first = (uintptr_t)start / LINE * LINE;
    uintptr_t end = ((uintptr_t)start + bytes + LINE - 1) / LINE * LINE;
    /* Memory that is persistent already stays what it is. */
    while (first < end && mapping_of(first) != NULL)
        first = end_of(mapping_of(first));
    for (int index = 0; index < mapping_count; index++)
        if (mappings[index].start >= first && mappings[index].start < end)
            end = mappings[index].start;
    if (!is_recording || bytes == 0 || first >= end)
        return;
    struct memory *memory = new_memory("");
    if (memory == NULL || !enlarge(memory, end - first))
        return;
    memory->left = end - first;
    memcpy(memory->told, (const void *)first, end - first);
    use(memory, 0, end - first);
    tell_head(memory, 0, end - first);
    map(first, end - first, memory, 0);
}

/* Removes a part of a mapping, and keeps what is left of it. */
static void unmap(struct mapping *mapping, uintptr_t start, uintptr_t end)
{
    struct mapping before = *mapping;
    *mapping = mappings[--mapping_count];
    if (before.start < start)
        map(before.start, start - before.start, before.memory, before.offset);
    if (before.end > end)
        map(end, before.end - end, before.memory, before.offset + (end - before.start));
}

/* Removes mappings, or parts of them. The caller has compared their contents before. */
static void unmap_all(uintptr_t start, uintptr_t end)
{
    for (int index = mapping_count - 1; is_recording && index >= 0; index--)
        if (mappings[index].start < end && mappings[index].end > start)
            unmap(&mappings[index], start, end);
}

/* Rounds up to whole pages, as mappings are. */
static size_t paged(size_t bytes)
{
    return (bytes + PAGE - 1) / PAGE * PAGE;
}

/* Whether a file of this name is persistent memory where it is mapped shared and writable. */
static int is_persistent(const char *name, const struct stat *status)
{
    return (pool == NULL || strcmp(pool, name) == 0) && S_ISREG(status->st_mode);
}

/* Notes that a part of a file is mapped shared and writable, which makes it persistent. */
static void map_file(uintptr_t start, size_t bytes, int file, off_t offset, const char *name)
{
    struct stat status;
    if (fstat(file, &status) != 0 || !is_persistent(name, &status))
        return;
    recorder_keep();
    struct memory *memory = memory_of(file, &status, name);
    recorder_release();
    if (memory == NULL)
        return;
    map(start, bytes, memory, offset);
    /* The system loads no pages around one that is used, so that mincore tells which were used. */
    if (memory->bytes >= SPARSE_MIN)
        syscall(SYS_madvise, start, bytes, MADV_RANDOM);
    recorder_compares(start, start + bytes, NOWHERE);
}

void *mmap(void *at, size_t bytes, int protection, int flags, int file, off_t offset)
{
    if ((flags & MAP_FIXED) != 0)
        recorder_compares((uintptr_t)at, (uintptr_t)at + paged(bytes), CALLER);
    void *start = (void *)syscall(SYS_mmap, at, bytes, protection, flags, file, offset);
    if (start != MAP_FAILED && (flags & MAP_FIXED) != 0)
        unmap_all((uintptr_t)start, (uintptr_t)start + paged(bytes));
    int type = flags & MAP_TYPE;
    int is_shared = type == MAP_SHARED || type == MAP_SHARED_VALIDATE;
    if (is_recording && start != MAP_FAILED && file >= 0 && is_shared &&
        (protection & PROT_WRITE) != 0) {
        char link[64], name[sizeof memories->name];
        snprintf(link, sizeof link, "/proc/self/fd/%d", file);
        ssize_t length = readlink(link, name, sizeof name - 1);
        name[length < 0 ? 0 : length] = 0;
        map_file((uintptr_t)start, paged(bytes), file, offset, name);
    }
    return start;
}

void *mmap64(void *at, size_t bytes, int protection, int flags, int file, off64_t offset)
{
    return mmap(at, bytes, protection, flags, file, offset);
}

int munmap(void *at, size_t bytes)
{
    uintptr_t start = (uintptr_t)at, end = start + paged(bytes);
    recorder_compares(start, end, CALLER);
    recorder_keep();
    int failed = syscall(SYS_munmap, at, bytes);
    if (!failed)
        unmap_all(start, end);
    recorder_release();
    return failed;
}

/* Returns the first address from this one on that is in no mapping of persistent memory. */
static uintptr_t behind_mappings(uintptr_t at)
{
    for (int index = 0; index < mapping_count; index++)
        if (at >= mappings[index].start && at < mappings[index].end)
            return behind_mappings(mappings[index].end);
    return at;
}

/* Notes the part of a mapping, a line of /proc/self/maps, that lies between two addresses and has
 * become writable. */
static void map_line(const char *line, uintptr_t from, uintptr_t to)
{
    static char name[sizeof memories->name];
    struct stat status;
    uintptr_t start, end;
    size_t offset;
    char may[5];
    if (sscanf(line, "%lx-%lx %4s %lx %*s %*s %4095[^\n]", &start, &end, may, &offset, name) != 5)
        return;
    uintptr_t first = behind_mappings(start < from ? from : start);
    end = end < to ? end : to;
    if (first >= end || may[1] != 'w' || may[3] != 's' ||
        stat(name, &status) != 0 || !is_persistent(name, &status))
        return;
    int file = open(name, O_RDONLY | O_CLOEXEC);
    if (file >= 0)
        map_file(first, end - first, file, offset + (first - start), name);
    /* It is not closed: the program's locks of the file would be gone (fcntl(2)). */
}

static void map_lines(uintptr_t from, uintptr_t to)
{
    /* The caller may be a signal's handler, whose stack is small. */
    static char text[2 * sizeof memories->name];
    size_t used = 0;
    ssize_t got;
    int maps = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    while ((got = read(maps, text + used, sizeof text - 1 - used)) > 0) {
        text[used + got] = 0;
        char *line = text;
        for (char *end; (end = strchr(line, '\n')) != NULL; line = end + 1) {
            *end = 0;
            map_line(line, from, to);
        }
        used = strlen(line);
        memmove(text, line, used);
    }
    close(maps);
}

int mprotect(void *at, size_t bytes, int protection)
{
    /* A store that is still to be told is read while it can be. */
    recorder_keep();
    int failed = syscall(SYS_mprotect, at, bytes, protection);
    uintptr_t start = (uintptr_t)at, end = start + paged(bytes);
    if (is_recording && !failed && (protection & PROT_WRITE) != 0 && behind_mappings(start) < end)
        map_lines(start, end);
    recorder_release();
    return failed;
}

/* Notes that a mapping has moved, or has another size, which may reach beyond the file's end. */
static void remap(uintptr_t at, size_t bytes, uintptr_t start, size_t wanted)
{
    for (int index = 0; index < mapping_count; index++) {
        struct mapping before = mappings[index];
        if (at < before.start || at >= before.end)
            continue;
        unmap_all(at, at + bytes);
        map(start, wanted, before.memory, offset_of(&before, at));
        return;
    }
}

void *mremap(void *at, size_t bytes, size_t wanted, int flags, ...)
{
    va_list arguments;
    va_start(arguments, flags);
    void *to = (flags & MREMAP_FIXED) != 0 ? va_arg(arguments, void *) : NULL;
    va_end(arguments);
    bytes = paged(bytes);
    wanted = paged(wanted);
    recorder_compares((uintptr_t)at, (uintptr_t)at + bytes, CALLER);
    if (to != NULL)
        recorder_compares((uintptr_t)to, (uintptr_t)to + wanted, CALLER);
    recorder_keep();
    void *start = (void *)syscall(SYS_mremap, at, bytes, wanted, flags, to);
    if (is_recording && start != MAP_FAILED) {
        if (to != NULL)
            unmap_all((uintptr_t)to, (uintptr_t)to + wanted);
        remap((uintptr_t)at, bytes, (uintptr_t)start, wanted);
    }
    recorder_release();
    return start;
}

int truncate(const char *name, off_t bytes)
{
    recorder_drain();
    int failed = syscall(SYS_truncate, name, bytes);
    struct stat status;
    struct memory *memory = NULL;
    if (is_recording && !failed && stat(name, &status) == 0)
        memory = known(&status);
    if (memory != NULL)
        resize(memory, &status);
    return failed;
}

int truncate64(const char *name, off64_t bytes)
{
    return truncate(name, bytes);
}

int ftruncate(int file, off_t bytes)
{
    recorder_drain();
    return recorder_resized(file, syscall(SYS_ftruncate, file, bytes));
}

int ftruncate64(int file, off64_t bytes)
{
    return ftruncate(file, bytes);
}

int fallocate(int file, int mode, off_t offset, off_t bytes)
{
    recorder_keep();
    int failed = syscall(SYS_fallocate, file, mode, offset, bytes);
    int zeroes = (mode & (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_ZERO_RANGE)) != 0;
    struct memory *memory = failed || !zeroes ? NULL : memory_of_file(file);
    size_t end = offset + bytes;
    if (memory != NULL)
        tell_zeros(memory, offset, end < memory->bytes ? end : memory->bytes);
    recorder_release();
    return recorder_resized(file, failed);
}

int fallocate64(int file, int mode, off64_t offset, off64_t bytes)
{
    return fallocate(file, mode, offset, bytes);
}

/* Calls the C library's own, which also works where the system has no fallocate. */
int posix_fallocate(int file, off_t offset, off_t bytes)
{
    int (*next)(int, off_t, off_t) =
        (int (*)(int, off_t, off_t))dlsym(RTLD_NEXT, "posix_fallocate");
    return recorder_resized(file, next(file, offset, bytes));
}

int posix_fallocate64(int file, off64_t offset, off64_t bytes)
{
    return posix_fallocate(file, offset, bytes);
}

/* Linux does nothing of its own for MS_ASYNC. */
int msync(void *at, size_t bytes, int flags)
{
    recorder_keep();
    int failed = syscall(SYS_msync, at, bytes, flags);
    recorder_release();
    if (!failed && (flags & MS_SYNC) != 0)
        recorder_syncs((uintptr_t)at, paged(bytes), CALLER);
    return failed;
}

static int synced(int file, int failed, struct from from)
{
    struct memory *memory = failed ? NULL : memory_of_file(file);
    if (memory != NULL)
        recorder_syncs_all(memory, from);
    return failed;
}

int fsync(int file)
{
    recorder_keep();
    int failed = syscall(SYS_fsync, file);
    recorder_release();
    return synced(file, failed, CALLER);
}

int fdatasync(int file)
{
    recorder_keep();
    int failed = syscall(SYS_fdatasync, file);
    recorder_release();
    return synced(file, failed, CALLER);
}
