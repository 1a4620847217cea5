/* spawn.c: finding the program, and a process of it. */
#if PC_HAVE_UV
#include "launch/parts.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

/* 0, or why it is no program: ENOENT, EACCES, EISDIR. */
static int why_not(const char *path)
{
    struct stat about;
    if (stat(path, &about) != 0)
        return errno;
    if (S_ISDIR(about.st_mode))
        return EISDIR;
    return access(path, X_OK) == 0 ? 0 : errno;
}

static pc_status refuse(const char *name, int why, const char *where)
{
    if (why == ENOENT || why == ENOTDIR)
        return pc__fail(PC_ERR_NOT_FOUND, "there is no program %s%s: give its path, such as ./%s", name, where, name);
    if (why == EACCES)
        return pc__fail(PC_ERR_FILE,
                        "%s is not executable: chmod +x %s, or name the program that reads it (python3 %s)", name, name,
                        name);
    return pc__fail_file(why, "cannot start %s", name);
}

pc_status pc__spawn_find(pc__launch *launch)
{
    const char *name = launch->command[0], *folders = getenv("PATH");
    int why = ENOENT;
    if (strchr(name, '/')) {
        snprintf(launch->path, sizeof launch->path, "%s", name);
        why = strlen(name) < sizeof launch->path ? why_not(name) : ENAMETOOLONG;
        return why ? refuse(name, why, "") : PC_OK;
    }
    folders = folders ? folders : "/usr/local/bin:/usr/bin:/bin";
    for (const char *at = folders; name[0] && at; at = strchr(at, ':') ? strchr(at, ':') + 1 : NULL) {
        const int n = (int)strcspn(at, ":");
        snprintf(launch->path, sizeof launch->path, "%.*s/%s", n ? n : 1, n ? at : ".", name);
        const int problem = why_not(launch->path);
        if (!problem)
            return PC_OK;
        if (problem == EACCES)
            why = EACCES;
    }
    return refuse(name, why, " in the folders of PATH");
}

/* In the child, of a process that may have threads: system calls alone. The kernel ends it with its parent. */
static void become(pc__launch *launch, pid_t parent, const void *cpus, char **environment, const int files[2], int tell)
{
    sigset_t none;
    sigemptyset(&none);
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(127);
    for (int number = 1; number < NSIG; number++)
        if (number != SIGPIPE)
            signal(number, SIG_DFL);
    sigprocmask(SIG_SETMASK, &none, NULL);
    if (cpus)
        sched_setaffinity(0, sizeof(cpu_set_t), cpus);
    const int nothing = open("/dev/null", O_RDONLY);
    dup2(nothing, 0);
    dup2(files[0], 1);
    dup2(files[1], 2);
    execve(launch->path, (char *const *)(uintptr_t)launch->command, environment);
    const int problem = errno;
    (void)!write(tell, &problem, sizeof problem);
    _exit(127);
}

bool pc__spawn(pc__launch *launch, pc__process *process, int place, char **environment, const int files[2])
{
    int tell[2], problem = 0;
    const pid_t parent = getpid();
    fflush(NULL); /* what is still in buffers would come out of the child, too */
    if (pipe2(tell, O_CLOEXEC) != 0)
        return pc__fail_file(errno, "cannot start rank %d", process->rank) == PC_OK;
    sigset_t all, before;
    sigfillset(&all);
    /* A signal before `become` has forgotten them would run this process's handlers in the child. */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const pid_t child = fork();
    if (child == 0)
        become(launch, parent, launch->cpus ? launch->cpus[place] : NULL, environment, files, tell[1]);
    problem = child < 0 ? errno : 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    close(tell[1]);
    if (child > 0)
        setpgid(child, child); /* by whoever comes first */
    if (!problem && read(tell[0], &problem, sizeof problem) != sizeof problem)
        problem = 0;
    close(tell[0]);
    process->id = child > 0 ? child : 0;
    process->runs = child > 0;
    if (problem == ENOENT)
        (void)pc__fail(PC_ERR_FILE, "cannot start %s: the program that its first line names is not there",
                       launch->path);
    else if (problem == ENOEXEC)
        (void)pc__fail(PC_ERR_FILE,
                       "cannot start %s: it is no program of this machine, or a script without #! in its first line",
                       launch->path);
    else if (problem)
        (void)pc__fail_file(problem, "cannot start %s", launch->path);
    return !problem;
}
#endif
