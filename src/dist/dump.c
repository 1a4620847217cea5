/* dump.c: the file of a process's last calls. It goes to a temporary beside it first, so that what is there is whole. */
#include "dist/dump.h"

#include "device/backend.h"
#include "device/trace.h"
#include "store/client.h"
#include "store/clock.h"
#include "dist/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <paracord/dist.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define ONE_NS 1000000000

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of writing */
static int64_t written;

static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int running;
} begun = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0};

const char *pc__dump_folder(void)
{
    const char *folder = getenv("PARACORD_DIST_DUMP");
    return folder && folder[0] ? folder : NULL;
}

/* What a device has done since: of a stream that is gone everything. */
static pc__journal_state state_of(const pc__journal_entry *e)
{
    if (e->state != PC__CALL_QUEUED || !e->ticket)
        return (pc__journal_state)e->state;
    pc_stream *stream = pc__stream_hold(e->stream);
    if (!stream)
        return PC__CALL_DONE;
    const uint64_t done = atomic_load_explicit(&stream->done, memory_order_acquire);
    pc__stream_let_go(stream);
    return done >= e->ticket ? PC__CALL_DONE : PC__CALL_QUEUED;
}

static void add_entry(pc__text *out, const pc__journal_entry *e, bool first)
{
    static const char *const states[] = {"queued", "running", "done", "failed", "recorded"};
    static const char *const reductions[] = {"sum", "mean", "min", "max"};
    char device[PC_DEVICE_NAME_MAX];
    const bool reduces = e->reduction >= 0 && e->reduction < PC__COUNT(reductions);
    pc__text_add(out, "%s{\"group\":", first ? "\n" : ",\n");
    pc__json_string(out, e->group);
    pc__text_add(out, ",\"number\":%llu,\"op\":", (unsigned long long)e->number);
    pc__json_string(out, pc__journal_op(e));
    pc__text_add(out, ",\"dtype\":\"%s\",\"count\":%lld,\"bytes\":%lld",
                 e->dtype < 0 ? "" : pc_dtype_name((pc_dtype)e->dtype), (long long)e->count,
                 (long long)(e->dtype < 0 ? 0 : e->count * (int64_t)pc_dtype_size((pc_dtype)e->dtype)));
    pc__text_add(out, ",\"reduction\":\"%s\",\"peer\":%d,\"rank\":%d,\"of\":%d,\"member\":%d,\"device\":\"%s\"",
                 reduces ? reductions[e->reduction] : "", e->peer, e->rank, e->size, e->member,
                 pc_device_name(e->device, device));
    pc__text_add(out, ",\"queued_ns\":%lld,\"entered_ns\":%lld,\"finished_ns\":%lld,\"state\":\"%s\"}",
                 (long long)e->queued, (long long)e->entered, (long long)e->finished, states[state_of(e)]);
}

/* What has begun before `now` is all there is to it. */
static void add_all(pc__text *out, const char *why, const pc__journal_entry *entries, int n)
{
    char host[64] = "";
    struct timespec wall;
    const pc__clock clock = pc__clock_get();
    (void)gethostname(host, sizeof host - 1);
    clock_gettime(CLOCK_REALTIME, &wall);
    pc__text_add(out,
                 "{\"paracord_calls\":1,\"version\":\"%s\",\"job\":\"%016llx\",\"start\":%d,\"rank\":%d,\"size\":%d",
                 PC_VERSION, (unsigned long long)(clock.known ? clock.job : (uint64_t)getpid()), pc_dist_generation(),
                 pc_dist_rank(), pc_dist_size());
    pc__text_add(out, ",\"process\":%d,\"host\":", (int)getpid());
    pc__json_string(out, host);
    pc__text_add(out, ",\n\"written\":%lld,\"offset_ns\":%lld,\"offset_error_ns\":%lld,\"now_ns\":%lld,\n\"why\":",
                 (long long)wall.tv_sec, (long long)clock.offset, (long long)clock.error, (long long)pc__now());
    pc__json_string(out, why);
    pc__text_add(out, ",\n\"calls\":[");
    for (int i = 0; i < n; i++)
        add_entry(out, &entries[i], i == 0);
    pc__text_add(out, "\n]}\n");
}

/* 0, or errno. */
static int put(const char *path, const pc__text *text)
{
    size_t done = 0;
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    int problem = fd < 0 ? errno : 0;
    while (!problem && done < text->length) {
        const ssize_t n = write(fd, text->data + done, text->length - done);
        if (n >= 0)
            done += (size_t)n;
        else if (errno != EINTR)
            problem = errno;
    }
    if (fd >= 0 && close(fd) != 0 && !problem)
        problem = errno;
    return problem;
}

static int write_file(const char *folder, const pc__text *text)
{
    char path[4096], temporary[4096 + 16], start[32] = "";
    if (pc_dist_generation())
        snprintf(start, sizeof start, "start%d.", pc_dist_generation());
    const int n = snprintf(path, sizeof path, "%s/calls.%srank%d.json", folder, start, pc_dist_rank());
    if (n >= (int)sizeof path)
        return ENAMETOOLONG;
    snprintf(temporary, sizeof temporary, "%s.%d", path, (int)getpid());
    (void)mkdir(folder, 0777);
    int problem = put(temporary, text);
    if (!problem && rename(temporary, path) != 0)
        problem = errno;
    if (problem)
        (void)unlink(temporary);
    return problem;
}

static int write_text(const char *folder, const char *why)
{
    pc__text text = {0};
    pc__journal_entry *entries = pc__alloc(PC__JOURNAL_CALLS * sizeof *entries);
    if (entries)
        add_all(&text, why, entries, pc__journal_read(entries, PC__JOURNAL_CALLS));
    const int problem = !entries || text.failed ? ENOMEM : write_file(folder, &text);
    pc__free(entries);
    pc__text_free(&text);
    return problem;
}

void pc__dump_write(const char *why)
{
    const char *folder = pc__dump_folder();
    if (!folder)
        return;
    const pc_error before = pc__error_take();
    pthread_mutex_lock(&lock);
    const bool again = written && pc__now() - written < ONE_NS;
    const int problem = again ? 0 : write_text(folder, why);
    if (!again)
        written = pc__now();
    pthread_mutex_unlock(&lock);
    char words[128];
    if (problem)
        pc__log(PC_LOG_WARNING, "the last calls of rank %d are not in %s: %s", pc_dist_rank(), folder,
                strerror_r(problem, words, sizeof words));
    pc_error_clear();
    (void)pc__error_put(&before);
}

void pc__dump_all(const char *why)
{
    pc__call call;
    pc__body body;
    char words[PC__WHY_MAX];
    if (!pc__dump_folder())
        return;
    snprintf(words, sizeof words, "%s", why); /* which may be the error that goes now */
    const pc_error before = pc__error_take();
    pc__call_begin(&call, PC__WIRE_DUMP);
    pc__put_text(&call.frame, words);
    if (pc_dist_size() > 1)
        (void)pc__call_perform(&call, "dump", PC__CALL_NOW, &body);
    pc__call_end(&call);
    pc__dump_write(words);
    pc_error_clear();
    (void)pc__error_put(&before);
}

static void *write_main(void *why)
{
    pc__dump_write(why);
    pc__free(why);
    pthread_mutex_lock(&begun.lock);
    begun.running--;
    pthread_cond_broadcast(&begun.changed);
    pthread_mutex_unlock(&begun.lock);
    return NULL;
}

void pc__dump_begin(const char *why)
{
    pthread_t thread;
    sigset_t all, before;
    char *copy = pc__dump_folder() ? pc__strdup(why) : NULL;
    if (!copy)
        return;
    sigfillset(&all); /* signals are for the program's threads */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_mutex_lock(&begun.lock);
    const bool fine = pthread_create(&thread, NULL, write_main, copy) == 0;
    begun.running += fine;
    pthread_mutex_unlock(&begun.lock);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (fine)
        pthread_detach(thread);
    else
        pc__free(copy);
}

void pc__dump_settle(void)
{
    pthread_mutex_lock(&begun.lock);
    while (begun.running)
        pthread_cond_wait(&begun.changed, &begun.lock);
    pthread_mutex_unlock(&begun.lock);
}
