/* The recorded process: from its beginning to its end, and what it says of itself. */

#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "indelible.h"
#include "inner.h"

static char folder[512];
/* The recorded process: a child that shares its memory (vfork) has another id. */
static pid_t process;

/* What the program says. */

void indelible_measured(void)
{
    forget(CALLER);
}

void indelible_begin(void)
{
    recorder_transaction(BEGINS, CALLER);
}

void indelible_commit(void)
{
    recorder_transaction(COMMITS, CALLER);
}

void indelible_abort(void)
{
    recorder_transaction(ABORTS, CALLER);
}

/* The files that `record` reads. */

static int create(const char *name, int more)
{
    char path[600];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return open(path, O_WRONLY | O_CREAT | O_CLOEXEC | more, 0600);
}

/* Writes where the parts of the program lie, so that `record` finds lines of the source. */
static void copy_maps(void)
{
    int from = open("/proc/self/maps", O_RDONLY | O_CLOEXEC), to = create("maps", 0);
    char part[4096];
    ssize_t bytes;
    while ((bytes = read(from, part, sizeof part)) > 0)
        counts.failed += write(to, part, bytes) != bytes;
    close(from);
    close(to);
}

/* Writes the places that operations come from. It may come late, when no other text is written. */
static void copy_places(void)
{
    static struct text to;
    open_text(&to, create("places", 0));
    put_places(&to);
    write_out(&to);
    close(to.file);
}

static void finish(void)
{
    if (!is_recording || getpid() != process)
        return;
    recorder_keep();
    look_at_files();
    recorder_compares(0, UINTPTR_MAX, NOWHERE);
    note_open(UNENDED, NOWHERE);
    end_recording();
    write_out(&head);
    write_out(&body);
    copy_maps();
    copy_places();
    int status = create("status", 0);
    dprintf(status,
            "stores %lu\nstreams %lu\nloads %lu\nflushes %lu\nfences %lu\nmarks %lu\n"
            "transactions %lu\nwork %lu\nunseen %lu\nunseen_at %lu\nunseen_from %lu\n"
            "threads %lu\nnested %lu\nforks %lu\nfull %lu\ncrowded %lu\nfailed %lu\n"
            "wrong %d\nwrong_at %lu\nwrong_from %lu\nwrong_since %lu\n",
            counts.stores, counts.streams, counts.loads, counts.flushes, counts.fences,
            counts.marks, counts.transactions, counts.work, counts.unseen, counts.unseen_at,
            counts.unseen_from.at, counts.threads, counts.nested, counts.forks, counts.full,
            counts.crowded, counts.failed, counts.wrong, counts.wrong_at, counts.wrong_from.at,
            counts.wrong_since.at);
    for (int index = 0; index < memory_count; index++)
        dprintf(status, "%c%lu %zu %s", 0, memories[index].place, memories[index].bytes,
                memories[index].name);
    close(status);
}

static void has_forked(void)
{
    counts.forks++;
}

/* A child of the program is not recorded. */
static void leave(void)
{
    is_recording = 0;
}

__attribute__((constructor)) static void start(void)
{
    const char *where = getenv("INDELIBLE_RECORD");
    if (where == NULL)
        return;
    snprintf(folder, sizeof folder, "%s", where);
    unsetenv("INDELIBLE_RECORD");
    pool = getenv("INDELIBLE_RECORD_POOL");
    tells_loads = getenv("INDELIBLE_RECORD_LOADS") != NULL;
    const char *most = getenv("INDELIBLE_RECORD_BYTES");
    bytes_max = most == NULL ? UINT64_MAX : strtoul(most, NULL, 10);
    const char *chance = getenv("INDELIBLE_RECORD_SEED");
    seed_with(chance == NULL ? 1 : strtoul(chance, NULL, 10));
    int own = create("head", O_EXCL);
    if (own < 0) {
        /* Another program was recorded before, under the same shell. */
        close(create("others", 0));
        return;
    }
    open_text(&head, own);
    open_text(&body, create("body", 0));
    process = getpid();
    /* These bytes lie where the first thread's stack begins. */
    stack_end = getauxval(AT_RANDOM);
    become(&threads[0]);
    pthread_atfork(NULL, has_forked, leave);
    at_quick_exit(finish);
    is_recording = body.file >= 0;
}

__attribute__((destructor)) static void end(void)
{
    finish();
}

/* A program that ends in this way runs no destructors. */
__attribute__((noreturn)) void _exit(int code)
{
    finish();
    for (;;)
        syscall(SYS_exit_group, code);
}

__attribute__((noreturn)) void _Exit(int code)
{
    _exit(code);
}
