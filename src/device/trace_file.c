/* trace_file.c: the file of the running trace: its lock and its buffer, starting and stopping, and fork. */
#include "device/trace_write.h"

#include <errno.h>
#include <fcntl.h>
#include <paracord/trace.h>
#include <pthread.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FULL = 65536, ROOM = FULL + 32768, LONGEST = 100000000 /* ns without writing */ };

atomic_bool pc__trace_on;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Thread_local bool inside;
static bool fork_watched;

static struct {
    int fd;                             /* -1: there is no trace */
    int failed;                         /* errno of the first write that failed */
    bool said;                          /* that it failed */
    unsigned number;                    /* traces so far */
    int64_t origin, last;               /* when it began, when it was last written to */
    int64_t events, unwritten, dropped; /* in the file, of those in the buffer, and left out */
    size_t used;
    char path[256]; /* for messages */
} file = {.fd = -1};
static char buffer[ROOM];

static void flush(void)
{
    int before = errno;
    for (size_t done = 0; done < file.used && !file.failed;) {
        ssize_t n = write(file.fd, buffer + done, file.used - done);
        if (n >= 0)
            done += (size_t)n;
        else if (errno != EINTR)
            file.failed = errno;
    }
    if (file.failed) {
        atomic_store(&pc__trace_on, false);
        file.dropped += file.unwritten;
    } else {
        file.events += file.unwritten;
    }
    file.unwritten = 0;
    file.used = 0;
    file.last = pc__now();
    errno = before;
}

void pc__trace_put(const char *bytes, size_t n)
{
    if (file.used + n > ROOM)
        flush();
    memcpy(buffer + file.used, bytes, n);
    file.used += n;
}

void pc__trace_wrote(void)
{
    file.unwritten++;
    if (file.used >= FULL)
        flush();
}

void pc__trace_drop(void)
{
    file.dropped++;
}

int64_t pc__trace_origin(void)
{
    return file.origin;
}

unsigned pc__trace_number(void)
{
    return file.number;
}

/* False when the calling thread has the lock or waits for it: a signal handler interrupted it. */
static bool take_lock(void)
{
    if (inside)
        return false;
    inside = true;
    pthread_mutex_lock(&lock);
    return true;
}

static void unlock(void)
{
    pthread_mutex_unlock(&lock);
    inside = false;
}

bool pc__trace_enter(pc__site site, const char **place)
{
    if (!pc__tracing() || !take_lock())
        return false;
    while (file.fd >= 0 && !file.failed && !(*place = pc__trace_place(site))) {
        char text[PC__SITE_TEXT];
        pthread_mutex_unlock(&lock);
        pc__trace_place_resolve(site, text);
        pthread_mutex_lock(&lock);
        pc__trace_place_note(site, text);
    }
    if (file.fd >= 0 && !file.failed)
        return true;
    unlock();
    return false;
}

void pc__trace_leave(void)
{
    if (pc__now() - file.last > LONGEST)
        flush();
    if (!file.failed) {
        unlock();
        return;
    }
    char message[sizeof file.path + 32], words[128];
    const char *cause = strerror_r(file.failed, words, sizeof words);
    snprintf(message, sizeof message, "the trace %s ends here", file.path);
    file.said = true;
    unlock();
    pc__trace_complain(message, cause);
}

static _Thread_local bool forking;

static void before_fork(void)
{
    forking = take_lock();
}

static void after_fork(void)
{
    if (forking)
        unlock();
}

/* The file is the parent's. */
static void in_child(void)
{
    atomic_store(&pc__trace_on, false);
    if (file.fd >= 0)
        close(file.fd);
    file.fd = -1;
    after_fork();
}

/* A file that another process writes to is not touched: a program may start others that are traced as well. */
static pc_status open_file(const char *path)
{
    if (!fork_watched) {
        int number = pthread_atfork(before_fork, after_fork, in_child);
        if (number)
            return pc__fail_file(number, "pc_trace_start: cannot watch for fork");
        fork_watched = true;
    }
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    if (fd < 0)
        return pc__fail_file(errno, "cannot write the trace %s; name a file in a folder that can be written to", path);
    if (flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
        close(fd);
        return pc__fail(PC_ERR_FILE, "another process writes a trace to %s; give each process a file of its own", path);
    }
    if (ftruncate(fd, 0) != 0 && errno != EINVAL) { /* EINVAL: a pipe or a device */
        int number = errno;
        close(fd);
        return pc__fail_file(number, "cannot empty the trace %s", path);
    }
    file.fd = fd;
    return PC_OK;
}

static pc_status start(const char *path)
{
    if (file.fd >= 0)
        return pc__fail(PC_ERR_STATE, "pc_trace_start: a trace is being written to %s; pc_trace_stop ends it",
                        file.path);
    PC__TRY(open_file(path));
    snprintf(file.path, sizeof file.path, "%s", path);
    file.failed = 0;
    file.said = false;
    file.events = file.unwritten = file.dropped = 0;
    file.used = 0;
    file.number++;
    file.origin = pc__now();
    pc__trace_rows_reset();
    pc__trace_arrows_reset();
    pc__trace_head();
    flush();
    if (file.failed) {
        close(file.fd);
        file.fd = -1;
        return pc__fail_file(file.failed, "cannot write the trace %s", path);
    }
    atomic_store(&pc__trace_on, true);
    return PC_OK;
}

static pc_status interrupted(const char *who)
{
    return pc__fail(PC_ERR_STATE,
                    "%s: called in a signal handler while this thread writes to the trace; set a flag there "
                    "and call it outside",
                    who);
}

pc_status pc_trace_start(const char *path)
{
    if (!path || !path[0])
        return pc__fail(PC_ERR_ARGUMENT, "pc_trace_start: there is no path; name the file to write");
    if (!take_lock())
        return interrupted("pc_trace_start");
    pc_status status = start(path);
    unlock();
    return status;
}

static pc_status stop(void)
{
    atomic_store(&pc__trace_on, false);
    if (!file.failed) {
        pc__trace_foot(file.events + file.unwritten, file.dropped);
        flush();
    }
    if (close(file.fd) != 0 && !file.failed)
        file.failed = errno;
    file.fd = -1;
    if (file.failed)
        return pc__fail_file(file.failed, "the trace %s is not complete", file.path);
    return PC_OK;
}

pc_status pc_trace_stop(void)
{
    if (!take_lock())
        return interrupted("pc_trace_stop");
    pc_status status = PC_ERR_STATE;
    if (file.fd >= 0)
        status = stop();
    else
        pc__fail(status, "pc_trace_stop: no trace is being written; pc_trace_start begins one");
    unlock();
    return status;
}

void pc__trace_abandon(void)
{
    struct stat mine, there;
    if (!take_lock())
        return;
    if (file.fd >= 0) {
        atomic_store(&pc__trace_on, false);
        const bool regular = fstat(file.fd, &mine) == 0 && S_ISREG(mine.st_mode) && stat(file.path, &there) == 0 &&
                             mine.st_ino == there.st_ino && mine.st_dev == there.st_dev;
        if (regular)
            (void)unlink(file.path);
        close(file.fd);
        file.fd = -1;
    }
    unlock();
}

void pc__trace_finish_file(void)
{
    if (!take_lock()) /* exit was called in a signal handler: the file stays as it is */
        return;
    pc_error_clear();
    bool news = file.fd >= 0 && stop() != PC_OK && !file.said;
    unlock();
    if (news)
        pc__trace_complain(pc_error_last()->message, pc_error_last()->cause);
}
