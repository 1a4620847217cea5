/* ask.c: the connection to NCCL's RAS threads: lines of text, each with a deadline. */
#include "ras/parts.h"

#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define USUAL_HOST "localhost"
#define USUAL_PORT "28028"
#define TIMEOUT 5
#define GREETING_MS 2000     /* a thread of NCCL that runs answers at once */
#define ANSWER_MAX (8 << 20) /* of a job with very many ranks */

typedef struct talk {
    const char *address; /* for errors */
    char host[96], port[16];
    int socket;
    int64_t deadline;
} talk;

static int64_t now_ms(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

/* "HOST", "HOST:PORT", "[ADDRESS]:PORT"; colons without brackets and more than one are an address of IPv6. */
static pc_status read_address(talk *t, const char *text)
{
    const char *end = text[0] == '[' ? strchr(text, ']') : NULL;
    const char *host = end ? text + 1 : text, *colon = strrchr(end ? end : text, ':');
    if (!end && colon && strchr(text, ':') != colon)
        colon = NULL;
    const size_t n = end ? (size_t)(end - host) : colon ? (size_t)(colon - host) : strlen(host);
    char *rest = NULL;
    const long port = colon ? strtol(colon + 1, &rest, 10) : 1;
    const bool behind = end && end[1] && end[1] != ':';
    if (n >= sizeof t->host || (text[0] == '[' && !end) || behind || (colon && (!colon[1] || *rest)) || port < 1 ||
        port > 65535)
        return pc__fail(PC_ERR_ARGUMENT, "\"%.80s\" is no address of a job: write HOST:PORT, as in NCCL_RAS_ADDR",
                        text);
    snprintf(t->host, sizeof t->host, "%.*s", (int)n, n ? host : USUAL_HOST);
    snprintf(t->port, sizeof t->port, "%s", colon ? colon + 1 : USUAL_PORT);
    return PC_OK;
}

/* False at the deadline. */
static bool wait_for(const talk *t, short events)
{
    struct pollfd one = {.fd = t->socket, .events = events};
    int ready;
    do {
        const int64_t left = t->deadline - now_ms();
        ready = left > 0 ? poll(&one, 1, (int)left) : 0;
    } while (ready < 0 && errno == EINTR);
    return ready > 0;
}

/* errno, or 0. */
static int connect_to(talk *t, const struct addrinfo *to)
{
    int problem = 0;
    socklen_t n = sizeof problem;
    t->socket = socket(to->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (t->socket < 0)
        return errno;
    t->deadline = now_ms() + GREETING_MS;
    problem = connect(t->socket, to->ai_addr, to->ai_addrlen) == 0 ? 0 : errno;
    if (problem == EINPROGRESS) {
        problem = ETIMEDOUT;
        if (wait_for(t, POLLOUT) && getsockopt(t->socket, SOL_SOCKET, SO_ERROR, &problem, &n))
            problem = errno;
    }
    if (problem) {
        close(t->socket);
        t->socket = -1;
    }
    return problem;
}

static pc_status say_nobody(const talk *t, int problem)
{
    const bool here = !strcmp(t->host, USUAL_HOST) && !strcmp(t->port, USUAL_PORT);
    if (problem == ETIMEDOUT)
        return pc__fail_cause(PC_ERR_TIMEOUT, strerror(problem),
                              "%s does not answer: a firewall between, or the host is down; ask on the job's own host",
                              t->address);
    if (problem != ECONNREFUSED)
        return pc__fail_cause(PC_ERR_NOT_FOUND, strerror(problem), "%s cannot be reached: %s", t->address,
                              strerror(problem));
    return pc__fail_cause(
        PC_ERR_NOT_FOUND, strerror(problem),
        here ? "nobody listens on %s: no job with NCCL 2.24 or newer runs on this host, or NCCL_RAS_ENABLE=0 is set "
               "for it; "
               "ask on the job's host, and give HOST:PORT where it sets NCCL_RAS_ADDR"
             : "nobody listens on %s: the job is over, or has another NCCL_RAS_ADDR, or an NCCL older than 2.24",
        t->address);
}

static pc_status open_connection(talk *t)
{
    struct addrinfo *list = NULL;
    const struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    const int unknown = getaddrinfo(t->host, t->port, &hints, &list);
    if (unknown)
        return pc__fail_cause(PC_ERR_NOT_FOUND, gai_strerror(unknown),
                              "there is no host \"%s\" (%s): correct the address", t->host, gai_strerror(unknown));
    int problem = 0;
    for (const struct addrinfo *to = list; to && t->socket < 0; to = to->ai_next) {
        const int other = connect_to(t, to);
        problem = problem == ECONNREFUSED ? problem : other; /* the usual one speaks of the address that is meant */
    }
    freeaddrinfo(list);
    return t->socket >= 0 ? PC_OK : say_nobody(t, problem);
}

static bool send_line(const talk *t, const char *line)
{
    for (size_t n = strlen(line); n;) {
        const ssize_t sent = send(t->socket, line, n, MSG_NOSIGNAL);
        if (sent < 0 && errno != EAGAIN && errno != EINTR)
            return false;
        if (sent < 0 && !wait_for(t, POLLOUT))
            return false;
        line += sent > 0 ? sent : 0;
        n -= sent > 0 ? (size_t)sent : 0;
    }
    return true;
}

/* More bytes: how many, 0 at the end of the connection, -1 when none come in time. */
static ssize_t receive(const talk *t, char *text, size_t n)
{
    for (;;) {
        if (!wait_for(t, POLLIN))
            return -1;
        const ssize_t got = recv(t->socket, text, n, 0);
        if (got >= 0 || (errno != EAGAIN && errno != EINTR))
            return got > 0 ? got : 0;
    }
}

/* The line that answers one of ours, byte by byte: what is behind it is the next answer. */
static pc_status ask_line(talk *t, const char *line, char answer[128])
{
    size_t n = 0;
    t->deadline = now_ms() + GREETING_MS;
    bool alive = send_line(t, line);
    ssize_t got = 1;
    while (alive && n < 127 && (got = receive(t, answer + n, 1)) == 1 && answer[n] != '\n')
        n++;
    answer[n] = 0;
    if (alive && got == 1)
        return PC_OK;
    if (got < 0)
        return pc__fail(
            PC_ERR_TIMEOUT,
            "%s took the connection and says nothing: the process that listens there is stopped or hangs; ask "
            "another host of the job",
            t->address);
    return pc__fail(
        PC_ERR_STATE,
        "%s closed the connection: it is no job of NCCL's, or it just ended; see who listens there (ss -ltnp)",
        t->address);
}

static pc_status greet(talk *t, int timeout)
{
    char answer[128], line[32];
    PC__TRY(ask_line(t, "client protocol 2\n", answer));
    if (strncasecmp(answer, "server protocol ", 16) != 0)
        return pc__fail(
            PC_ERR_STATE,
            "what listens on %s is no job of NCCL's: it does not speak its protocol; see who it is (ss -ltnp)",
            t->address);
    snprintf(line, sizeof line, "timeout %d\n", timeout);
    return ask_line(t, line, answer); /* a version that does not know it says so, and has its own */
}

static pc_status collect(talk *t, int timeout, pc__text *text)
{
    char part[4096];
    ssize_t n = 0;
    t->deadline = now_ms() + 1000 * (3 * (int64_t)timeout + 2);
    if (send_line(t, "verbose status\n"))
        while (text->length < ANSWER_MAX && (n = receive(t, part, sizeof part)) > 0)
            pc__text_append(text, part, (size_t)n);
    if (text->failed)
        return pc__fail(PC_ERR_MEMORY, "no memory for the answer of %s", t->address);
    if (text->length)
        return PC_OK;
    return n < 0 ? pc__fail(PC_ERR_TIMEOUT,
                            "%s did not tell its status within %d s: its process hangs; ask another host of the job",
                            t->address, 3 * timeout + 2)
                 : pc__fail(PC_ERR_STATE, "%s ended the connection without its status: the job just ended; ask again",
                            t->address);
}

pc_status pc__ras_ask(const pc_ras_options *options, char address[128], pc__text *text)
{
    talk t = {.address = address, .socket = -1};
    const char *set = getenv("NCCL_RAS_ADDR");
    const int timeout = options->timeout > 0 ? PC__MIN(options->timeout, 3600) : TIMEOUT;
    PC__TRY(read_address(&t, options->address ? options->address : set && *set ? set : USUAL_HOST ":" USUAL_PORT));
    snprintf(address, 128, strchr(t.host, ':') ? "[%s]:%s" : "%s:%s", t.host, t.port);
    pc_status status = open_connection(&t);
    if (status == PC_OK)
        status = greet(&t, timeout);
    if (status == PC_OK)
        status = collect(&t, timeout, text);
    if (t.socket >= 0)
        close(t.socket);
    return status;
}
