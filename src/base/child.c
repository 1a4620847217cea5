/* child.c: forks that keep out of the program's way. */
#include "base/child.h"

#include "base/site.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define FILES_MOST 65536 /* numbers of open files that are tried one by one */

/* The sanitizers' run times are the program's, however this library was compiled. */
extern void __asan_init(void) __attribute__((weak));
extern void __tsan_init(void) __attribute__((weak));

/* How many threads the process has; 0 when nobody says. */
static int64_t count_threads(void)
{
    char text[1024] = "";
    const int file = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
    const ssize_t n = file >= 0 ? read(file, text, sizeof text - 1) : -1;
    if (file >= 0)
        close(file);
    const char *name_end = n > 0 ? strrchr(text, ')') : NULL; /* field 2 of stat; 20 is how many threads there are */
    int field = 2;
    for (; name_end && field < 20; field++)
        name_end = strchr(name_end + 1, ' ');
    return name_end ? strtol(name_end, NULL, 10) : 0;
}

/* The thread sanitizer starts a thread of its own with the program's first one; it takes no lock of the allocator. A
 * thread that was joined is counted until the kernel has taken it away. */
static bool has_one_thread(void)
{
    const int64_t own = __tsan_init ? 2 : 1;
    int64_t threads = count_threads();
    for (int turn = 0; turn < 20 && threads > own; turn++) {
        usleep(500);
        threads = count_threads();
    }
    return threads > 0 && threads <= own;
}

bool pc__child_may_allocate(void)
{
    return (!__asan_init && !__tsan_init) || has_one_thread();
}

static void forget_signals(const sigset_t *none_blocked)
{
    for (int number = 1; number < NSIG; number++)
        signal(number, number == SIGINT || number == SIGPIPE ? SIG_IGN : SIG_DFL);
    sigprocmask(SIG_SETMASK, none_blocked, NULL);
}

pid_t pc__child_fork(void)
{
    const pid_t parent = getpid();
    (void)pc__site_here(); /* its first call takes the loader's lock, which other threads may hold at the fork */
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

/* Kernels before 5.9, and filters that do not know the call, have no close_range. */
static void close_from(int first)
{
    struct rlimit most;
#ifdef SYS_close_range
    if (syscall(SYS_close_range, (unsigned)first, ~0u, 0u) == 0)
        return;
#endif
    const bool known = getrlimit(RLIMIT_NOFILE, &most) == 0 && most.rlim_cur < FILES_MOST;
    for (int file = first, end = known ? (int)most.rlim_cur : FILES_MOST; file < end; file++)
        close(file);
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
    close_from(3 + count);
}

static int64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

pid_t pc__child_wait(pid_t child, int handle, int patience_ms, int *status)
{
    pid_t ended;
    const int64_t deadline = now_ms() + patience_ms;
    for (int turn = 0; (ended = waitpid(child, status, WNOHANG)) == 0; turn++) {
        const int64_t left = deadline - now_ms();
        if (left <= 0)
            break;
        if (handle >= 0) /* readable when it has ended */
            poll(&(struct pollfd){.fd = handle, .events = POLLIN}, 1, (int)left);
        else
            usleep(turn < 10 ? 100 : 1000);
    }
    return ended;
}

void pc__child_end(pid_t child, int handle, int patience_ms)
{
#ifdef SYS_pidfd_send_signal
    const bool told = handle >= 0 && (syscall(SYS_pidfd_send_signal, handle, SIGKILL, NULL, 0u) == 0 || errno == ESRCH);
#else
    const bool told = false;
#endif
    if (!told)
        kill(child, SIGKILL);
    pc__child_wait(child, handle, patience_ms, NULL);
}
