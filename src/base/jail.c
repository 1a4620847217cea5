/* jail.c: the child in jail: made, asked, ended. */
#include "base/jail.h"

#include "base/child.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PATIENCE_MS 10000 /* for a child to end that has closed its socket, or was killed */
#define TIMES_IN_ALL 10   /* of the computing time: the rest is for slow disks and busy machines */

static int64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* All or nothing; the other end may be gone. */
static bool send_all(int socket, const void *bytes, size_t n)
{
    for (size_t done = 0; done < n;) {
        const ssize_t sent = send(socket, (const char *)bytes + done, n - done, MSG_NOSIGNAL);
        if (sent < 0 && errno != EINTR)
            return false;
        done += sent > 0 ? (size_t)sent : 0;
    }
    return true;
}

/* `deadline` -1: wait for ever. */
static bool receive_all(int socket, void *bytes, size_t n, int64_t deadline)
{
    for (size_t done = 0; done < n;) {
        struct pollfd one = {.fd = socket, .events = POLLIN};
        const int64_t left = deadline - now_ms();
        const int ready = deadline < 0 ? 1 : left <= 0 ? 0 : poll(&one, 1, (int)PC__MIN(left, 1 << 30));
        if (ready == 0) {
            errno = ETIMEDOUT;
            return false;
        }
        const ssize_t got = ready > 0 ? recv(socket, (char *)bytes + done, n - done, 0) : -1;
        if (got == 0 || (got < 0 && errno != EINTR)) {
            errno = 0;
            return false;
        }
        done += got > 0 ? (size_t)got : 0;
    }
    return true;
}

bool pc__cell_listen(const pc__jail_cell *cell, void *question, size_t n)
{
    return receive_all(cell->socket, question, n, -1);
}

void pc__cell_answer(const pc__jail_cell *cell, const void *answer, size_t n)
{
    if (!send_all(cell->socket, answer, n))
        _exit(0); /* nobody listens any more */
}

_Noreturn static void live(const pc__jail_plan *plan, pc__jail_cell cell)
{
    int files[2] = {cell.socket, plan->file};
    pc__child_forget_files(files, plan->file >= 0 ? 2 : 1);
    cell.socket = files[0], cell.file = plan->file >= 0 ? files[1] : -1;
    const unsigned lost = pc__jail_give_up(plan->memory, plan->seconds);
    pc__cell_answer(&cell, &lost, sizeof lost);
    plan->serve(&cell, plan->context);
    _exit(0);
}

static void release(pc__jail *jail)
{
    if (jail->socket >= 0)
        close(jail->socket);
    if (jail->handle >= 0)
        close(jail->handle);
    if (jail->room)
        munmap(jail->room, jail->room_bytes);
    *jail = (pc__jail){.socket = -1, .handle = -1};
}

static pid_t start(pc__jail *jail, const pc__jail_plan *plan, const int ends[2])
{
    const pid_t child = pc__child_fork();
    if (child == 0)
        live(plan, (pc__jail_cell){.socket = ends[1], .room = jail->room, .room_bytes = jail->room_bytes});
    close(ends[1]);
    jail->socket = ends[0];
#ifdef SYS_pidfd_open
    if (child > 0)
        jail->handle = (int)syscall(SYS_pidfd_open, child, 0u);
#endif
    return child;
}

bool pc__jail_start(pc__jail *jail, const pc__jail_plan *plan)
{
    int ends[2];
    *jail = (pc__jail){.socket = -1, .handle = -1, .memory = plan->memory, .seconds = plan->seconds};
    if (!pc__child_may_allocate()) {
        errno = EDEADLK;
        return false;
    }
    /* A mapping, and no file: nobody can cut it short under who reads it, and no limit of file sizes is about it. */
    void *room = mmap(NULL, plan->room, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (room == MAP_FAILED)
        return false;
    jail->room = room, jail->room_bytes = plan->room;
    jail->deadline = now_ms() + (int64_t)plan->seconds * 1000 * TIMES_IN_ALL;
    jail->child = socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0 ? start(jail, plan, ends) : -1;
    if (jail->child > 0 && receive_all(jail->socket, &jail->lost, sizeof jail->lost, jail->deadline))
        return true;
    const int problem = errno;
    pc__jail_end(jail);
    errno = problem;
    return false;
}

/* Why there is no answer: the child is ended with that. */
static void find_out(pc__jail *jail, bool too_long, char why[PC__JAIL_WORDS])
{
    int status = 0;
    if (jail->child <= 0) {
        snprintf(why, PC__JAIL_WORDS, "the process that read it has ended before");
        return;
    }
    const pid_t ended = too_long ? 0 : pc__child_wait(jail->child, jail->handle, PATIENCE_MS, &status);
    const int number = ended > 0 && WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    if (ended != 0)
        jail->child = 0; /* gone, whoever waited for it */
    if (too_long || number == SIGXCPU)
        snprintf(why, PC__JAIL_WORDS, "it took more than the %d seconds that it gets",
                 too_long ? jail->seconds * TIMES_IN_ALL : jail->seconds);
    else if (number)
        snprintf(why, PC__JAIL_WORDS, "the process that read it crashed (%s), within its limit of %lld MB of memory",
                 strsignal(number), (long long)(jail->memory >> 20));
    else
        snprintf(why, PC__JAIL_WORDS, "the process that read it ended");
}

bool pc__jail_ask(pc__jail *jail, const void *question, size_t n, void *answer, size_t answer_n,
                  char why[PC__JAIL_WORDS])
{
    errno = 0;
    if (jail->child > 0 && send_all(jail->socket, question, n) &&
        receive_all(jail->socket, answer, answer_n, jail->deadline))
        return true;
    find_out(jail, errno == ETIMEDOUT, why);
    return false;
}

bool pc__jail_take(const pc__jail *jail, void *bytes, size_t n)
{
    if (n > jail->room_bytes)
        return false;
    memcpy(bytes, jail->room, n);
    return true;
}

void pc__jail_end(pc__jail *jail)
{
    if (jail->child > 0)
        pc__child_end(jail->child, jail->handle, PATIENCE_MS);
    release(jail);
}
