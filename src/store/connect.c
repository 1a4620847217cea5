/* connect.c: reaching the store: names, retries, and what is wrong where it fails. */
#include "store/connect.h"

#include "store/env.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define PAUSE_MS 50

typedef struct attempt {
    pc__address at;
    double seconds, deadline;
    const atomic_bool *given_up;
    int problem;               /* errno of the last connection */
    char refusal[PC__WHY_MAX]; /* of a server that may think better of it */
} attempt;

double pc__dist_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static bool over(const attempt *a)
{
    return pc__dist_now() >= a->deadline || (a->given_up && atomic_load(a->given_up));
}

/* Wait for an event of the socket; false at the deadline. Short turns, so that giving up is seen. */
static bool wait_for(const attempt *a, int fd, short events, double deadline)
{
    while (!over(a) && pc__dist_now() < deadline)
        if (poll(&(struct pollfd){.fd = fd, .events = events}, 1, PAUSE_MS) > 0)
            return true;
    return false;
}

/* Where the network is gone, what is sent is acknowledged by nobody: that, too, has the limit of a heart. */
static void bound_silence(int fd)
{
    double limit = 0;
    (void)pc__beat_limit(getenv, &limit);
    const unsigned ms = (unsigned)(1000 * limit);
    if (ms)
        setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &ms, sizeof ms);
}

static int connect_to(attempt *a, const struct addrinfo *to)
{
    const int fd = socket(to->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), on = 1;
    socklen_t n = sizeof a->problem;
    if (fd < 0) {
        a->problem = errno;
        return -1;
    }
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    bound_silence(fd);
    a->problem = connect(fd, to->ai_addr, to->ai_addrlen) == 0 ? 0 : errno;
    if (a->problem == EINPROGRESS) {
        a->problem = ETIMEDOUT;
        if (wait_for(a, fd, POLLOUT, pc__dist_now() + 3))
            getsockopt(fd, SOL_SOCKET, SO_ERROR, &a->problem, &n);
    }
    if (a->problem == 0)
        return fd;
    close(fd);
    return -1;
}

static int connect_any(attempt *a)
{
    char port[16];
    struct addrinfo *list = NULL;
    const struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    snprintf(port, sizeof port, "%d", a->at.port);
    const int problem = getaddrinfo(a->at.host, port, &hints, &list);
    if (problem == EAI_AGAIN && !over(a)) {
        a->problem = EHOSTUNREACH;
        return -1;
    }
    if (problem) {
        (void)pc__fail_cause(PC_ERR_ARGUMENT, gai_strerror(problem),
                             "%s: there is no host %s, where the store should be: correct the master's address",
                             a->at.what, a->at.host);
        return -1;
    }
    int fd = -1;
    for (const struct addrinfo *to = list; to && fd < 0 && !over(a); to = to->ai_next)
        fd = connect_to(a, to);
    freeaddrinfo(list);
    return fd;
}

static bool send_all(const attempt *a, int fd, const pc__text *out)
{
    size_t sent = 0;
    while (sent < out->length) {
        const ssize_t n = send(fd, out->data + sent, out->length - sent, MSG_NOSIGNAL);
        if (n > 0)
            sent += (size_t)n;
        else if (n == 0 || (errno != EAGAIN && errno != EINTR) || !wait_for(a, fd, POLLOUT, a->deadline))
            return false;
    }
    return true;
}

static bool say_hello(const attempt *a, int fd, const pc__hello *hello)
{
    pc__text out = {0};
    pc__text_append(&out, PC__WIRE_MAGIC, PC__WIRE_MAGIC_BYTES);
    pc__put_hello(&out, hello);
    const bool sent = !out.failed && send_all(a, fd, &out);
    pc__text_free(&out);
    return sent;
}

static void stranger(const attempt *a, const pc__stream_in *in)
{
    char begins[24];
    snprintf(begins, sizeof begins, "%.*s", (int)PC__MIN(in->length, sizeof begins - 1), (const char *)in->data);
    (void)pc__fail(PC_ERR_STATE,
                   "%s: what listens at %s, port %d, is no store of Paracord's (it answers \"%s\"): correct the "
                   "master's address, or choose a free port",
                   a->at.what, a->at.host, a->at.port, begins);
}

static void refused(const attempt *a)
{
    (void)pc__fail(PC_ERR_STATE, "%s: the store at %s, port %d, does not take this process: %s", a->at.what, a->at.host,
                   a->at.port, a->refusal);
}

/* What the first frame says, as `hear` tells it. The server of an earlier start may be about to go. */
static int is_welcome(attempt *a, pc__frame *frame)
{
    if (frame->kind == PC__WIRE_WELCOME)
        return 1;
    const bool early = pc__take_u8(&frame->body) == PC__WIRE_EARLY;
    pc__take_text(&frame->body, a->refusal, sizeof a->refusal);
    if (!early)
        refused(a);
    return early ? 0 : -1;
}

static void silent(const attempt *a)
{
    (void)pc__fail(PC_ERR_TIMEOUT,
                   "%s: what listens at %s, port %d, does not answer within %.3g s: its process is stopped or has no "
                   "time, or it is no store of Paracord's: wait longer, or correct the master's "
                   "address",
                   a->at.what, a->at.host, a->at.port, a->seconds);
}

/* 1: welcome; 0: the connection ended, try again; -1: an error. A server that is slow is waited for on this connection: of one
 * that came and went again it would find the hello later, and take the rank for lost. */
static int hear(attempt *a, int fd, pc__stream_in *in)
{
    pc__frame frame;
    for (;;) {
        const pc__next next = pc__stream_next(in, &frame);
        if (next == PC__NEXT_FRAME)
            return is_welcome(a, &frame);
        if (next == PC__NEXT_BROKEN) {
            stranger(a, in);
            return -1;
        }
        void *room = pc__stream_room(in, 4096);
        if (!room)
            return -1;
        if (!wait_for(a, fd, POLLIN, a->deadline)) {
            if (pc__dist_now() < a->deadline) /* given up */
                return 0;
            silent(a);
            return -1;
        }
        const ssize_t n = recv(fd, room, 4096, 0);
        if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
            return 0;
        if (n > 0)
            pc__stream_came(in, (size_t)n);
    }
}

static void nobody(const attempt *a, bool ended)
{
    char words[128];
    (void)pc__fail_cause(PC_ERR_TIMEOUT,
                         ended ? "the connection is closed without an answer"
                               : strerror_r(a->problem, words, sizeof words),
                         "%s: nobody serves the store at %s, port %d, after %.3g s: start rank 0 there, or correct the "
                         "master's address and port",
                         a->at.what, a->at.host, a->at.port, a->seconds);
}

int pc__wire_connect(pc__address address, const pc__hello *hello, double seconds, const atomic_bool *given_up,
                     pc__stream_in *in)
{
    attempt a = {address, seconds, pc__dist_now() + seconds, given_up, ETIMEDOUT, ""};
    bool ended = false;
    do {
        int fd = connect_any(&a), heard = 0;
        if (fd >= 0) {
            a.refusal[0] = 0;
            pc__stream_free(in);
            in->greeted = false;
            heard = say_hello(&a, fd, hello) ? hear(&a, fd, in) : 0;
            if (heard > 0)
                return fd;
            ended = true;
            close(fd);
        }
        if (heard < 0 || pc_failed())
            return -1;
        if (!over(&a))
            poll(NULL, 0, PAUSE_MS);
    } while (!over(&a));
    if (a.refusal[0])
        refused(&a);
    else
        nobody(&a, ended);
    return -1;
}
