/* server.h: a server on a free port of 127.0.0.1 that speaks as NCCL's RAS threads do, or not at all as it should. */
#ifndef PC_TEST_RAS_SERVER_H
#define PC_TEST_RAS_SERVER_H

#include <arpa/inet.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <unistd.h>

#include "support.h"

typedef enum server_kind {
    SPEAKS,          /* the protocol; `answers` one after another */
    OLD,             /* the protocol, and knows no time-out */
    GARBAGE,         /* bytes in place of a greeting */
    GARBAGE_LATER,   /* in place of the status */
    SILENT,          /* takes the connection, says nothing */
    SILENT_LATER,    /* greets, and tells no status */
    CLOSES,          /* at once */
    CLOSES_LATER,    /* without a status */
    HALF,            /* half of the status, then it ends */
    HALF_THEN_SILENT /* half of it, then nothing */
} server_kind;

typedef struct server {
    server_kind kind;
    const char *const *answers;
    int asked;
    int listening, port;
    pthread_t thread;
    char address[32];
    atomic_bool stop;
} server;

/* Test helper threads cannot fail a test: what is not said shows in what the client makes of it. */
static inline void server_say(int to, const char *text, size_t n)
{
    (void)!send(to, text, n, MSG_NOSIGNAL);
}

static inline bool server_hear(int from, char line[256])
{
    size_t n = 0;
    while (n < 255 && read(from, line + n, 1) == 1 && line[n] != '\n')
        n++;
    const bool whole = line[n] == '\n';
    line[n] = 0;
    return whole;
}

static inline void server_stay(const server *s)
{
    while (!atomic_load(&s->stop))
        usleep(2000);
}

static inline void server_tell_status(server *s, int to)
{
    static const char bytes[] = "\001\377{[%s%n\n\n#-1 (\n12 ranks\nRank\nGroup\n7 7 7 7\n\0x";
    const char *answer = s->answers[s->asked];
    s->asked += s->answers[s->asked + 1] != NULL;
    const size_t n = strlen(answer);
    if (s->kind == GARBAGE_LATER)
        server_say(to, bytes, sizeof bytes);
    else if (s->kind == HALF || s->kind == HALF_THEN_SILENT)
        server_say(to, answer, n / 2);
    else if (s->kind != CLOSES_LATER && s->kind != SILENT_LATER)
        for (size_t i = 0; i < n; i += 7) /* in pieces */
            server_say(to, answer + i, n - i < 7 ? n - i : 7);
    if (s->kind == SILENT_LATER || s->kind == HALF_THEN_SILENT)
        server_stay(s);
}

static inline void server_serve(server *s, int to)
{
    static const char garbage[] = "HTTP/1.1 400 Bad Request\r\nserver: x\r\n\r\n";
    char line[256];
    if (s->kind == SILENT)
        server_stay(s);
    if (s->kind == GARBAGE)
        server_say(to, garbage, sizeof garbage - 1);
    if (s->kind == CLOSES)
        return;
    while (server_hear(to, line)) {
        if (!strncasecmp(line, "client protocol ", 16) && s->kind != GARBAGE)
            server_say(to, "SERVER PROTOCOL 2\n", 18);
        else if (!strncasecmp(line, "timeout ", 8) && s->kind != OLD)
            server_say(to, "OK\n", 3);
        else if (!strcasecmp(line, "verbose status")) {
            server_tell_status(s, to);
            return;
        } else
            server_say(to, "ERROR: Unknown command\n", 23);
    }
}

static inline void *server_main(void *context)
{
    server *s = context;
    while (!atomic_load(&s->stop)) {
        const int to = accept(s->listening, NULL, NULL);
        if (to < 0)
            break;
        server_serve(s, to);
        close(to);
    }
    return NULL;
}

static inline void server_start(server *s, server_kind kind, const char *const *answers)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof at;
    *s = (server){.kind = kind, .answers = answers};
    s->listening = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(s->listening, (struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(getsockname(s->listening, (struct sockaddr *)&at, &n), 0);
    assert_int_equal(listen(s->listening, 8), 0);
    snprintf(s->address, sizeof s->address, "127.0.0.1:%d", ntohs(at.sin_port));
    assert_int_equal(pthread_create(&s->thread, NULL, server_main, s), 0);
}

static inline void server_end(server *s)
{
    atomic_store(&s->stop, true);
    shutdown(s->listening, SHUT_RDWR);
    pthread_join(s->thread, NULL);
    close(s->listening);
}

/* --- what jobs say, in the words of NCCL's versions (NVIDIA NCCL User Guide, RAS) --- */

#define RAS_HEAD                                                                                                       \
    "NCCL version 2.28.7 compiled with CUDA 13.0\nCUDA runtime version 13000, driver version 13000\n\n"                \
    "Job summary\n===========\n\n"                                                                                     \
    "  Nodes  Processes         GPUs  Processes     GPUs\n(total)   per node  per process    (total)  (total)\n"       \
    "      4          8            1         32       32\n"
#define RAS_TABLE                                                                                                      \
    "\nCommunicators... (0.00s)\n=============\n\n"                                                                    \
    "Group     Comms     Nodes     Ranks     Ranks     Ranks    Status  Errors\n"                                      \
    "    #  in group  per comm  per node  per comm  in group\n"
#define RAS_ERRORS "\nErrors\n======\n\n"
#define RAS_WARNINGS "Warnings\n========\n\n"
#define RAS_BEHIND(calls, most)                                                                                        \
    RAS_HEAD RAS_TABLE                                                                                                 \
        "    0         1         4         8        32        32   RUNNING  MISMATCH\n" RAS_ERRORS RAS_WARNINGS        \
        "#0-0 (27a079b828ff1a75) MISMATCH\n  Communicator ranks have different AllReduce operation counts\n"           \
        "  30 ranks have launched up to operation " most "\n  2 ranks have launched up to operation " calls            \
        "\n  Rank 5 -- GPU 5 managed by process 483077 on node 172.16.64.210\n"                                        \
        "  Rank 7 -- GPU 7 managed by process 483079 on node 172.16.64.210\n\n"

static const char ras_fine[] = RAS_HEAD RAS_TABLE
    "    0         8         4         1         4        32   RUNNING      OK\n" RAS_ERRORS RAS_WARNINGS;

static const char ras_missing[] = RAS_HEAD RAS_TABLE
    "    0         1         4       7-8        32        32   RUNNING  INCOMPLETE\n" RAS_ERRORS
    "INCOMPLETE\n  Missing communicator data from 1 job process\n"
    "  Process 3487984 on node 172.16.64.213 managing GPU 5\n\n"
    "#0-0 (cf264af53edbe986) INCOMPLETE\n  Missing communicator data from 1 rank\n  The missing rank: "
    "21\n\n" RAS_WARNINGS "TIMEOUT\n  Encountered 2 communication timeouts while gathering communicator data\n\n";

#endif
