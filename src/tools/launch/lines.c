/* lines.c: what ranks write, in whole lines with the rank in front. */
#if PC_HAVE_UV
#include "launch/parts.h"

#include <signal.h>

#define READ_AT_ONCE 65536
#define LINE_MAX_BYTES (1u << 20) /* longer ones come out in parts */

static void print(pc__lines *l, const char *text, size_t n)
{
    fputs(l->label, l->to);
    fwrite(text, 1, n, l->to);
    if (!n || text[n - 1] != '\n')
        fputc('\n', l->to);
}

/* Print the whole lines, and keep what is behind them. */
static void cut(pc__lines *l, bool all)
{
    size_t at = 0;
    while (at < l->length) {
        const char *end = memchr(l->text + at, '\n', l->length - at);
        const size_t n = end ? (size_t)(end - l->text) - at + 1 : l->length - at;
        if (!end && !all && n < LINE_MAX_BYTES)
            break;
        print(l, l->text + at, n);
        at += n;
    }
    memmove(l->text, l->text + at, l->length - at);
    l->length -= at;
    if (at && fflush(l->to) != 0 && !l->launch->signalled) { /* whoever read it has gone */
        pc__launch_tell(l->launch, "what ranks write cannot be written any more; stopping them");
        pc__launch_interrupt(l->launch, SIGTERM);
    }
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
    } else if (n < 0)
        pc__lines_end(l);
}

bool pc__lines_begin(pc__launch *launch, pc__lines *lines, int rank, int file, FILE *to)
{
    *lines = (pc__lines){.to = to, .launch = launch};
    snprintf(lines->label, sizeof lines->label, "[%d] ", rank);
    lines->pipe.data = lines;
    uv_pipe_init(&launch->loop, &lines->pipe, 0);
    lines->open = true;
    return uv_pipe_open(&lines->pipe, file) == 0 && uv_read_start((uv_stream_t *)&lines->pipe, room, came) == 0;
}
#endif
