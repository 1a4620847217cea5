/* lines.c: what ranks write, in whole lines with the rank in front. */
#if PC_HAVE_UV
#include "launch/parts.h"

#include <signal.h>
#include <sys/stat.h>

#define GIVE_UP_MS 1000
#define READ_AT_ONCE 65536
#define LINE_MAX_BYTES (1u << 20) /* longer ones come out in parts */

/* Hand on the whole lines, and keep what is behind them. */
static void cut(pc__lines *l, bool all)
{
    size_t at = 0;
    while (at < l->length) {
        const char *end = memchr(l->text + at, '\n', l->length - at);
        const size_t n = end ? (size_t)(end - l->text) - at + 1 : l->length - at;
        if (!end && !all && n < LINE_MAX_BYTES)
            break;
        pc__writer_line(l->to, l->label, l->text + at, n);
        at += n;
    }
    memmove(l->text, l->text + at, l->length - at);
    l->length -= at;
}

static bool is_full(pc__writer *writer)
{
    bool full, idle;
    uint64_t written;
    (void)pc__writer_look(writer, &full, &idle, &written);
    return full;
}

static void closed(uv_handle_t *pipe)
{
    pc__lines *l = pipe->data;
    pc__free(l->text);
    l->text = NULL;
    l->closing = false;
}

void pc__lines_end(pc__lines *lines)
{
    if (!lines->open)
        return;
    lines->open = false;
    lines->closing = true;
    if (lines->length)
        cut(lines, true);
    uv_close((uv_handle_t *)&lines->pipe, closed);
}

static void room(uv_handle_t *pipe, size_t suggested, uv_buf_t *buffer)
{
    pc__lines *l = pipe->data;
    (void)suggested;
    if (l->capacity - l->length < READ_AT_ONCE) {
        const size_t capacity = 2 * l->capacity + READ_AT_ONCE;
        char *text = pc__realloc(l->text, capacity);
        if (!text) {
            *buffer = uv_buf_init(NULL, 0);
            return;
        }
        l->text = text;
        l->capacity = capacity;
    }
    *buffer = uv_buf_init(l->text + l->length, READ_AT_ONCE);
}

static void came(uv_stream_t *pipe, ssize_t n, const uv_buf_t *buffer)
{
    pc__lines *l = pipe->data;
    (void)buffer;
    if (n > 0) {
        l->length += (size_t)n;
        cut(l, false);
        l->paused = is_full(l->to);
        if (l->paused)
            uv_read_stop(pipe);
    } else if (n < 0)
        pc__lines_end(l);
}

bool pc__lines_begin(pc__launch *launch, pc__lines *lines, int rank, int file, pc__writer *to)
{
    *lines = (pc__lines){.to = to, .launch = launch};
    snprintf(lines->label, sizeof lines->label, "[%d] ", rank);
    lines->pipe.data = lines;
    uv_pipe_init(&launch->loop, &lines->pipe, 0);
    lines->open = true;
    return uv_pipe_open(&lines->pipe, file) == 0 && uv_read_start((uv_stream_t *)&lines->pipe, room, came) == 0;
}

static void go_on(pc__launch *l)
{
    for (int i = 0; l->processes && i < 2 * l->options.ranks; i++) {
        pc__lines *lines = &l->processes[i / 2].lines[i % 2];
        if (!lines->open || !lines->paused || is_full(lines->to))
            continue;
        lines->paused = false;
        uv_read_start((uv_stream_t *)&lines->pipe, room, came);
    }
}

static void tell_unwritten(pc__launch *l, int problem)
{
    const bool stop = !l->over && !l->signalled;
    l->unwritten = true;
    pc__launch_tell(l, "what ranks write cannot be written any more (%s)%s", strerror(problem),
                    stop ? "; stopping them" : "");
    if (stop)
        pc__launch_interrupt(l, SIGTERM);
}

/* Whether all is written; how many bytes so far. */
static bool look(pc__launch *l, uint64_t *written)
{
    pc__writer *const writers[] = {l->out, l->err};
    bool all = true;
    *written = 0;
    for (int i = 0; i < PC__COUNT(writers); i++) {
        bool full, idle;
        uint64_t n;
        const int problem = pc__writer_look(writers[i], &full, &idle, &n);
        all = all && idle;
        *written += n;
        if (problem && !l->unwritten)
            tell_unwritten(l, problem);
    }
    return all;
}

static void woken(uv_async_t *wake)
{
    uint64_t written;
    (void)look(wake->data, &written);
    go_on(wake->data);
}

static bool are_one(FILE *a, FILE *b)
{
    struct stat x, y;
    return a == b ||
           (fstat(fileno(a), &x) == 0 && fstat(fileno(b), &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino);
}

pc_status pc__output_begin(pc__launch *launch)
{
    const pc_launch_options *o = &launch->options;
    uv_async_init(&launch->loop, &launch->wake, woken);
    launch->wake.data = launch;
    launch->out = pc__writer_begin(o->out, &launch->wake);
    if (launch->out)
        launch->err = are_one(o->out, o->err) ? launch->out : pc__writer_begin(o->err, &launch->wake);
    return launch->err ? PC_OK : pc_error_last()->status;
}

/* Signals are heard all the while, and timers wake the loop. Whether all is written. */
static bool wait_for_writers(pc__launch *l)
{
    uint64_t before = 0, written, since = 0;
    while (!look(l, &written)) {
        if (!since || written != before || !l->signalled)
            since = uv_now(&l->loop);
        before = written;
        if (uv_now(&l->loop) > since + GIVE_UP_MS)
            return false;
        uv_run(&l->loop, UV_RUN_ONCE);
    }
    return !l->unwritten;
}

bool pc__output_end(pc__launch *launch)
{
    for (int i = 0; launch->processes && i < 2 * launch->options.ranks; i++)
        pc__lines_end(&launch->processes[i / 2].lines[i % 2]);
    const bool all = launch->err && wait_for_writers(launch);
    pc__writer_end(launch->out);
    if (launch->err != launch->out)
        pc__writer_end(launch->err);
    launch->out = launch->err = NULL;
    uv_close((uv_handle_t *)&launch->wake, NULL);
    return all;
}
#endif
