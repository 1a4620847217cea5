/* child.c: forks that keep out of the program's way. */
#include "base/child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define PATIENCE_MS 100 /* for a child to end that was killed */

static void forget_signals(const sigset_t *none_blocked)
{
    for (int number = 1; number < NSIG; number++)
        signal(number, number == SIGINT || number == SIGPIPE ? SIG_IGN : SIG_DFL);
    sigprocmask(SIG_SETMASK, none_blocked, NULL);
}

pid_t pc__child_fork(void)
{
    const pid_t parent = getpid();
    sigset_t all, before, none;
    sigfillset(&all);
    sigemptyset(&none);
    /* A signal between the fork and the end of forget_signals would run the program's handler in the child. */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const pid_t child = fork();
    if (child != 0) {
        const int problem = errno;
        pthread_sigmask(SIG_SETMASK, &before, NULL);
        errno = problem;
        return child;
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(0);
    forget_signals(&none);
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0}); /* what it leaves when it crashes is nobody's */
    pc__alloc_plainly();
    return 0;
}

void pc__child_forget_files(int *files, int count)
{
    for (int i = 0; i < count; i++) /* out of the way of the numbers they get */
        files[i] = fcntl(files[i], F_DUPFD, 3 + count);
    const int nowhere = open("/dev/null", O_RDWR);
    for (int file = 0; nowhere >= 0 && file < 3; file++)
        dup2(nowhere, file);
    for (int i = 0; i < count; i++)
        if (files[i] >= 0)
            files[i] = dup2(files[i], 3 + i);
#ifdef SYS_close_range
    syscall(SYS_close_range, 3u + (unsigned)count, ~0u, 0u);
#endif
}

void pc__child_end(pid_t child, int handle)
{
#ifdef SYS_pidfd_send_signal
    if (handle >= 0)
        syscall(SYS_pidfd_send_signal, handle, SIGKILL, NULL, 0u);
    else
#endif
        kill(child, SIGKILL);
    for (int ms = 0; ms < PATIENCE_MS && waitpid(child, NULL, WNOHANG) == 0; ms++)
        usleep(ms < 10 ? 100 : 1000);
}
