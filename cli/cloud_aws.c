/* cloud_aws.c: the user's own aws command as a child: its output and its words through pipes, ended by a time limit and
 * by the signals that end this command. */
#include "cloud_aws.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "signals.h"

extern char **environ;

#define LOOK_MS 100    /* between looks at the clock and for signals */
#define PATIENCE_S 2.0 /* from asking it to end to ending it */

bool cli_read_some(int fd, cli_bytes *to)
{
    if (to->n + 65536 > to->room) {
        size_t room = to->room ? 2 * to->room : 1 << 20;
        to->full = room > CLI_BYTES_MOST;
        char *data = to->full ? NULL : realloc(to->data, room);
        if (!data)
            return false;
        to->data = data, to->room = room;
    }
    ssize_t got;
    do
        got = read(fd, to->data + to->n, to->room - to->n - 1);
    while (got < 0 && errno == EINTR);
    if (got <= 0)
        return false;
    to->n += (size_t)got;
    to->data[to->n] = 0;
    return true;
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Both pipes until both have ended: who reads one alone may wait for a writer that waits on the other. False when a
 * signal or the clock came first. */
static bool read_both(int out, int err, double end, cli_bytes *output, cli_bytes *said)
{
    struct pollfd ends[2] = {{out, POLLIN, 0}, {err, POLLIN, 0}};
    while (ends[0].fd >= 0 || ends[1].fd >= 0) {
        bool any = poll(ends, 2, LOOK_MS) > 0;
        for (int i = 0; any && i < 2; i++)
            if (ends[i].fd >= 0 && ends[i].revents && !cli_read_some(ends[i].fd, i ? said : output))
                ends[i].fd = -1;
        if (cli_signal() || now() > end)
            return false;
    }
    return true;
}

/* Until it has ended; false when the clock or a signal came first. */
static bool wait_for(pid_t child, double end, bool asked, int *status)
{
    pid_t ended;
    while ((ended = waitpid(child, status, WNOHANG)) == 0 || (ended < 0 && errno == EINTR)) {
        if (now() > end || (!asked && cli_signal()))
            return false;
        poll(NULL, 0, 10);
    }
    return true;
}

static void end_it(pid_t child)
{
    int status;
    kill(child, SIGTERM);
    if (!wait_for(child, now() + PATIENCE_S, true, &status)) {
        kill(child, SIGKILL);
        while (waitpid(child, &status, 0) < 0 && errno == EINTR)
            ;
    }
}

/* Start it with its output and its words in pipes; 0, or errno. */
static int start(const char *const *words, pid_t *child, const int out[2], const int err[2])
{
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", 0, 0);
    posix_spawn_file_actions_adddup2(&files, out[1], STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&files, err[1], STDERR_FILENO);
    for (int i = 0; i < 2; i++) {
        posix_spawn_file_actions_addclose(&files, out[i]);
        posix_spawn_file_actions_addclose(&files, err[i]);
    }
    int problem = posix_spawnp(child, words[0], &files, NULL, (char *const *)words, environ);
    posix_spawn_file_actions_destroy(&files);
    close(out[1]);
    close(err[1]);
    return problem;
}

/* The last line that has words in it. */
static const char *last_line(cli_bytes *said)
{
    char *text = said->data;
    while (said->n && strchr("\r\n ", text[said->n - 1]))
        text[--said->n] = 0;
    char *line = said->n ? strrchr(text, '\n') : NULL;
    return line ? line + 1 : said->n ? text : "it said nothing";
}

static int say_why(const cli_call *call, int problem, bool ended, double limit, cli_bytes *said)
{
    if (problem == ENOENT)
        cli_error(call->command,
                  "there is no aws command on PATH: install AWS's command line, or run what --print shows "
                  "where there is one and name the file that it wrote");
    else if (problem)
        cli_error(call->command, "cannot start aws: %s", strerror(problem));
    else if (cli_signal())
        return cli_stopped_status();
    else if (!ended)
        cli_error(call->command, "aws took longer than %g s, and was ended (--timeout gives it longer): %.300s", limit,
                  last_line(said));
    else
        cli_error(call->command, "aws failed: %.300s", last_line(said));
    return CLI_FAILED;
}

int cli_run_aws(const cli_call *call, const char *const *words, double limit, cli_bytes *output)
{
    int out[2], err[2], status = 0;
    pid_t child;
    cli_bytes said = {0};
    if (pipe(out) != 0 || pipe(err) != 0) {
        cli_error(call->command, "cannot make a pipe: %s", strerror(errno));
        return CLI_FAILED;
    }
    cli_signals_catch();
    double end = now() + limit;
    int problem = start(words, &child, out, err);
    bool ended = !problem && read_both(out[0], err[0], end, output, &said) && wait_for(child, end, false, &status);
    if (!problem && !ended)
        end_it(child);
    close(out[0]);
    close(err[0]);
    bool fine = ended && WIFEXITED(status) && WEXITSTATUS(status) == 0;
    int result = fine ? CLI_FINE : say_why(call, problem, ended, limit, &said);
    free(said.data);
    return result;
}
