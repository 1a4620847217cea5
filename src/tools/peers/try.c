/* try.c: in the parent: children, their deadlines, and what they say. */
#include "peers/parts.h"

#include "base/child.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define LIMIT_MS 5000
#define SLOW 6          /* times the limit, for opening a device and for the all-reduce */
#define PATIENCE_MS 200 /* for the child to end; one that hangs in the kernel may never */
#define HANGS_MAX 3     /* each costs the limit, and more of them say no more */

typedef struct trial {
    const pc_peers_options *options;
    pc__text lines;
    int count;       /* of devices; -1: nobody said yet */
    int next;        /* pair */
    int hangs;       /* copies */
    bool stuck;      /* a device was not opened in time: nothing more is tried */
    bool wrong;      /* a copy, or the all-reduce */
    char begun[128]; /* what the child is at: "cuda:0 cuda:1" */
    int limit_ms;    /* of that */
} trial;

static int limit_of(const trial *t)
{
    return t->options->timeout_ms > 0 ? t->options->timeout_ms : LIMIT_MS;
}

static const char *type_name(const trial *t)
{
    return t->options->type == PC_SIM ? "sim" : "cuda";
}

/* After the pair that ended, or did not. */
static void note_pair(trial *t, const char *line)
{
    int from, to;
    char pattern[32];
    snprintf(pattern, sizeof pattern, "%s:%%d %s:%%d", type_name(t), type_name(t));
    if (sscanf(line, pattern, &from, &to) == 2)
        t->next = from * PC__MIN(t->count, PC_PEERS_MAX) + to + 1;
}

static void add_result(trial *t, const char *line)
{
    char state[16] = "";
    note_pair(t, line);
    if (sscanf(line, "%*s %*s %15s", state) == 1)
        t->wrong |= !strcmp(state, "corrupt") || !strcmp(state, "hangs");
    pc__text_add(&t->lines, "%s\n", line);
}

/* True with the last line of the child. */
static bool take_line(trial *t, const char *line)
{
    const bool slow = !strncmp(line, "slow ", 5);
    if (slow || !strncmp(line, "begin ", 6)) {
        snprintf(t->begun, sizeof t->begun, "%s", strchr(line, ' ') + 1);
        t->limit_ms = limit_of(t) * (slow ? SLOW : 1);
    } else if (!strncmp(line, "devices ", 8)) {
        if (t->count < 0)
            pc__text_add(&t->lines, "devices %s %s\n", type_name(t), line + 8);
        t->count = atoi(line + 8);
    } else if (strcmp(line, "done") == 0) {
        return true;
    } else {
        add_result(t, line);
    }
    return false;
}

static int64_t now_ms(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

/* More bytes before the deadline: how many, 0 when the child has ended, -1 when they do not come. */
static ssize_t receive(int socket, char *text, size_t room, int64_t deadline)
{
    struct pollfd one = {.fd = socket, .events = POLLIN};
    for (;;) {
        const int64_t left = deadline - now_ms();
        const int ready = poll(&one, 1, left > 0 ? (int)left : 0);
        if (ready > 0) {
            const ssize_t n = recv(socket, text, room, 0);
            return n > 0 ? n : 0;
        }
        if (ready == 0 || errno != EINTR)
            return -1;
    }
}

/* Listen until the child is done; false when it hung or ended before that. */
static bool listen_to(trial *t, int socket, bool *ended)
{
    char text[2048];
    size_t length = 0;
    int64_t deadline = now_ms() + t->limit_ms;
    for (;;) {
        const ssize_t n = receive(socket, text + length, sizeof text - 1 - length, deadline);
        *ended = n == 0;
        if (n <= 0)
            return false;
        length += (size_t)n;
        text[length] = 0;
        char *line = text;
        for (char *end; (end = strchr(line, '\n')); line = end + 1) {
            *end = 0;
            if (take_line(t, line))
                return true;
            deadline = now_ms() + t->limit_ms;
        }
        length -= (size_t)(line - text);
        memmove(text, line, length);
        if (length >= sizeof text - 1)
            length = 0; /* no line is so long */
    }
}

/* The child did not finish what it was at. */
static void note_end(trial *t, bool ended)
{
    char line[256];
    const bool is_open = !strncmp(t->begun, "open ", 5);
    if (ended)
        snprintf(line, sizeof line, "%s failed the process that tried it came to an end", t->begun);
    else
        snprintf(line, sizeof line, "%s hangs %.1f s", t->begun, t->limit_ms / 1000.0);
    t->stuck |= is_open;
    t->hangs += !ended && !is_open && strncmp(t->begun, "all-reduce", 10) != 0;
    if (is_open)
        pc__text_add(&t->lines, "%s\n", line);
    else
        add_result(t, line);
}

/* One child; pair as in pc__peers_work. PC_OK also where it hung, which is noted. */
static pc_status run_child(trial *t, int pair, bool without_p2p)
{
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends))
        return pc__fail(PC_ERR_BACKEND, "pc_peers_try: the system gives no socket (%s)", strerror(errno));
    const pid_t child = pc__child_fork();
    if (child == 0) {
        close(ends[0]);
        pc__peers_work_on(&(pc__peers_work){t->options->type, ends[1], pair, without_p2p});
    }
    const int problem = errno;
    close(ends[1]);
    snprintf(t->begun, sizeof t->begun, "open %s", type_name(t));
    t->limit_ms = limit_of(t) * SLOW;
    bool ended = false;
    if (child > 0 && !listen_to(t, ends[0], &ended))
        note_end(t, ended);
    close(ends[0]);
    if (child < 0)
        return pc__fail(PC_ERR_BACKEND, "pc_peers_try: the system gives no process (%s)", strerror(problem));
    pc__child_end(child, -1, PATIENCE_MS);
    return PC_OK;
}

static pc_status try_copies(trial *t)
{
    int before;
    do {
        before = t->next;
        PC__TRY(run_child(t, t->next, false));
    } while (t->next > before && t->count > 1 && !t->stuck && t->hangs < HANGS_MAX &&
             t->next < PC__MIN(t->count, PC_PEERS_MAX) * PC__MIN(t->count, PC_PEERS_MAX) - 1);
    return PC_OK;
}

pc_status pc_peers_try(pc_peers_options options, char lines[PC_PEERS_TEXT])
{
    PC__NEED(lines);
    if (options.type != PC_CUDA && options.type != PC_SIM)
        return pc__fail(PC_ERR_ARGUMENT, "pc_peers_try: devices of type cuda or sim have peers, not type %d",
                        (int)options.type);
    trial t = {.options = &options, .count = -1};
    lines[0] = 0;
    pc_status status = try_copies(&t);
    if (status == PC_OK && t.count > 1 && !t.hangs && !t.stuck)
        status = run_child(&t, -1, false);
    if (status == PC_OK && t.wrong && !t.stuck)
        status = run_child(&t, -1, true);
    if (status == PC_OK && t.lines.failed)
        status = pc__fail(PC_ERR_MEMORY, "pc_peers_try: no memory for what was tried");
    if (status == PC_OK && t.lines.data)
        snprintf(lines, PC_PEERS_TEXT, "%s", t.lines.data);
    pc__text_free(&t.lines);
    return status;
}
