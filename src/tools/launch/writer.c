/* writer.c: a thread that writes what is given to it. Whoever reads it may pause for as long as he likes (a pager, Ctrl-S), and
 * the loop, which serves the store and watches the ranks, goes on. */
#if PC_HAVE_UV
#include "launch/parts.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#define FULL_BYTES ((size_t)8 << 20)
#define PIECE_BYTES ((size_t)65536) /* between which the loop sees that it goes on */

struct pc__writer {
    FILE *to;
    uv_async_t *wake; /* sent when what the loop has asked about may have changed */
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t more;
    pc__text waiting, taken; /* the thread has `taken` */
    uint64_t written;        /* bytes */
    bool idle, ending, asked;
    int problem; /* of errno; nothing is written behind it */
};

static int write_piece(pc__writer *w, const char *text, size_t n)
{
    const int file = fileno(w->to);
    if (file < 0) /* it is no file of the system's, and is quick */
        return fwrite(text, 1, n, w->to) == n && fflush(w->to) == 0 ? 0 : errno ? errno : EIO;
    for (size_t at = 0; at < n;) {
        const ssize_t wrote = write(file, text + at, n - at);
        if (wrote >= 0)
            at += (size_t)wrote;
        else if (errno == EAGAIN || errno == EWOULDBLOCK)
            (void)poll(&(struct pollfd){.fd = file, .events = POLLOUT}, 1, -1);
        else if (errno != EINTR)
            return errno;
    }
    return 0;
}

/* A piece may take for ever: there, and only there, the thread can be cancelled. */
static int write_taken(pc__writer *w)
{
    int problem = 0;
    for (size_t at = 0; at < w->taken.length && !problem; at += PIECE_BYTES) {
        const size_t n = PC__MIN(PIECE_BYTES, w->taken.length - at);
        pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
        problem = write_piece(w, w->taken.data + at, n);
        pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
        pthread_mutex_lock(&w->lock);
        w->written += n;
        pthread_mutex_unlock(&w->lock);
    }
    return problem;
}

static void *write_all(void *writer)
{
    pc__writer *w = writer;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    pthread_mutex_lock(&w->lock);
    for (;;) {
        w->idle = !w->waiting.length;
        pc__text_free(&w->taken);
        w->taken = w->waiting;
        w->waiting = (pc__text){0};
        if (w->asked || (w->idle && w->problem))
            uv_async_send(w->wake);
        w->asked = false;
        if (w->idle && w->ending)
            break;
        if (w->idle) {
            pthread_cond_wait(&w->more, &w->lock);
            continue;
        }
        const int before = w->problem;
        pthread_mutex_unlock(&w->lock);
        const int problem = before ? 0 : write_taken(w);
        pthread_mutex_lock(&w->lock);
        w->problem = w->problem ? w->problem : problem;
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

pc__writer *pc__writer_begin(FILE *to, uv_async_t *wake)
{
    sigset_t all, before;
    pc__writer *w = pc__calloc(1, sizeof *w);
    if (!w)
        return NULL;
    fflush(to);
    *w = (pc__writer){.to = to, .wake = wake, .idle = true};
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->more, NULL);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const int problem = pthread_create(&w->thread, NULL, write_all, w);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!problem)
        return w;
    pc__free(w);
    return pc__null(PC_ERR_MEMORY, "pc_launch: no thread to write what ranks write");
}

void pc__writer_line(pc__writer *writer, const char *label, const char *text, size_t n)
{
    if (!writer)
        return;
    pthread_mutex_lock(&writer->lock);
    pc__text *t = &writer->waiting;
    if (!writer->problem) {
        pc__text_append(t, label, strlen(label));
        pc__text_append(t, text, n);
        if (!n || text[n - 1] != '\n')
            pc__text_append(t, "\n", 1);
        if (t->failed)
            writer->problem = ENOMEM;
    }
    writer->idle = false;
    pthread_cond_signal(&writer->more);
    pthread_mutex_unlock(&writer->lock);
}

int pc__writer_look(pc__writer *writer, bool *full, bool *idle, uint64_t *written)
{
    pthread_mutex_lock(&writer->lock);
    *full = writer->waiting.length > FULL_BYTES && !writer->problem;
    *idle = writer->idle;
    *written = writer->written;
    writer->asked = *full || !*idle;
    const int problem = writer->problem;
    pthread_mutex_unlock(&writer->lock);
    return problem;
}

void pc__writer_end(pc__writer *writer)
{
    if (!writer)
        return;
    pthread_mutex_lock(&writer->lock);
    writer->ending = true;
    const bool idle = writer->idle;
    pthread_cond_signal(&writer->more);
    pthread_mutex_unlock(&writer->lock);
    if (!idle)
        pthread_cancel(writer->thread);
    pthread_join(writer->thread, NULL);
    pthread_cond_destroy(&writer->more);
    pthread_mutex_destroy(&writer->lock);
    pc__text_free(&writer->waiting);
    pc__text_free(&writer->taken);
    pc__free(writer);
}
#endif
