/* ask.c: a child process asks the driver's libraries, so that a call that hangs or crashes takes nobody with it. */
#include "probe/ask.h"

#include "base/child.h"
#include "probe/probe.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <sys/socket.h>
#include <unistd.h>

#define LIMIT_MS 3000
#define PATIENCE_MS 100 /* for the child to end; a call into a broken driver may never */
#define SLOW 4          /* what is known to take long gets so many times the limit */

struct pc__asker {
    pid_t child;
    int socket, limit_ms;
    size_t length;
    char buffer[8192];
};

void pc__say(pc__answer *answer, const char *format, ...)
{
    char line[1024];
    va_list arguments;
    va_start(arguments, format);
    int n = vsnprintf(line, sizeof line - 1, format, arguments);
    va_end(arguments);
    n = PC__MIN(n, (int)sizeof line - 2);
    for (int i = 0; i < n; i++)
        line[i] = line[i] == '\n' ? ' ' : line[i];
    line[n] = '\n';
    for (int at = 0; at <= n;) {
        ssize_t sent = send(answer->to, line + at, (size_t)(n + 1 - at), MSG_NOSIGNAL);
        if (sent < 0 && errno != EINTR)
            _exit(0); /* nobody listens any more */
        at += sent > 0 ? (int)sent : 0;
    }
}

/* 'a' asks for everything, 's' for what changes. Leaves without the exit handlers of the program. */
static void serve(int socket, const char *library)
{
    pc__child_forget_files(&socket, 1);
    pc__answer answer = {socket};
    char command;
    while (read(socket, &command, 1) == 1) {
        pc__ask_nvml(&answer, library, command == 's');
        if (command == 'a')
            pc__ask_cuda(&answer);
        pc__say(&answer, "done");
    }
    _exit(0);
}

pc__asker *pc__asker_start(const pc_machine_options *options)
{
    int ends[2];
    pc__asker *asker = pc__calloc(1, sizeof *asker);
    if (!asker || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends)) {
        pc__free(asker);
        return NULL;
    }
    asker->limit_ms = options->timeout_ms > 0 ? options->timeout_ms : LIMIT_MS;
    asker->socket = ends[0];
    asker->child = pc__child_fork();
    if (asker->child == 0) {
        close(ends[0]);
        serve(ends[1], options->nvml);
    }
    close(ends[1]);
    if (asker->child > 0)
        return asker;
    close(ends[0]);
    pc__free(asker);
    return NULL;
}

void pc__asker_end(pc__asker *asker)
{
    if (!asker)
        return;
    close(asker->socket);
    pc__child_end(asker->child, -1, PATIENCE_MS);
    pc__free(asker);
}

/* Wait for more bytes; false when there are none in time, or the child ended (*ended). */
static bool receive(pc__asker *asker, int limit_ms, bool *ended)
{
    struct pollfd one = {.fd = asker->socket, .events = POLLIN};
    int ready;
    do
        ready = poll(&one, 1, limit_ms);
    while (ready < 0 && errno == EINTR);
    if (ready <= 0)
        return false;
    if (asker->length >= sizeof asker->buffer - 1)
        asker->length = 0; /* no line is so long */
    ssize_t n = recv(asker->socket, asker->buffer + asker->length, sizeof asker->buffer - 1 - asker->length, 0);
    *ended = n <= 0;
    asker->length += n > 0 ? (size_t)n : 0;
    return n > 0;
}

bool pc__asker_ask(pc__asker *asker, bool again, void (*line)(void *context, char *line), void *context, char hung[128])
{
    bool done = false, ended = false, slow = false;
    hung[0] = 0;
    asker->length = 0;
    if (send(asker->socket, again ? "s" : "a", 1, MSG_NOSIGNAL) != 1)
        return false;
    while (!done && receive(asker, asker->limit_ms * (slow ? SLOW : 1), &ended)) {
        char *begin = asker->buffer, *end;
        asker->buffer[asker->length] = 0;
        for (; (end = memchr(begin, '\n', asker->length - (size_t)(begin - asker->buffer))); begin = end + 1) {
            *end = 0;
            slow = !strncmp(begin, "slow ", 5);
            if (slow || !strncmp(begin, "call ", 5))
                snprintf(hung, 128, "%s", begin + 5);
            else if (!strcmp(begin, "done"))
                done = true;
            else
                line(context, begin);
        }
        asker->length -= (size_t)(begin - asker->buffer);
        memmove(asker->buffer, begin, asker->length);
    }
    if (ended && !done)
        snprintf(hung + strlen(hung), 128 - strlen(hung), " (which ended the process)");
    return done;
}
