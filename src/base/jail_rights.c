/* jail_rights.c: what a child in jail gives up, in the order in which it can still do so. */
#include "base/jail.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Sanitizers keep terabytes of address space. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define HUGE_SPACE
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define HUGE_SPACE
#endif
#endif

/* Bytes of address space that the process has; -1 when the system does not say. */
static int64_t space_now(void)
{
#ifdef HUGE_SPACE
    return -1;
#endif
    char text[64] = "";
    int file = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    ssize_t n = file >= 0 ? read(file, text, sizeof text - 1) : -1;
    if (file >= 0)
        close(file);
    return n > 0 ? strtoll(text, NULL, 10) * sysconf(_SC_PAGESIZE) : -1;
}

/* `beyond`: the hard limit's distance. Past the soft limit of computing time comes a signal of its own, SIGXCPU. */
static bool limit(int what, rlim_t most, rlim_t beyond)
{
    struct rlimit now;
    if (getrlimit(what, &now) != 0)
        return false;
    now.rlim_max = PC__MIN(most + beyond, now.rlim_max);
    now.rlim_cur = PC__MIN(most, now.rlim_max);
    return setrlimit(what, &now) == 0;
}

static unsigned give_up_resources(int64_t space, int64_t memory, int seconds)
{
    bool fine = limit(RLIMIT_CPU, (rlim_t)seconds, 1) && limit(RLIMIT_FSIZE, 0, 0);
    fine = limit(RLIMIT_CORE, 0, 0) && limit(RLIMIT_NOFILE, 0, 0) && fine;
    return (fine ? PC__JAIL_LIMITS : 0) |
           (space > 0 && limit(RLIMIT_AS, (rlim_t)(space + memory), 0) ? PC__JAIL_MEMORY : 0);
}

#ifdef SYS_landlock_create_ruleset
/* linux/landlock.h of any age: all that is handled is forbidden, since no rule allows any of it. */
static bool give_up_files(void)
{
    struct {
        uint64_t files, network, scoped;
    } handled = {0};
    static const uint64_t files[] = {0, 0x1fff, 0x3fff, 0x7fff, 0x7fff, 0xffff}; /* by version of the interface */
    const long version = syscall(SYS_landlock_create_ruleset, NULL, 0, 1u);
    if (version < 1)
        return false;
    handled.files = files[PC__MIN(version, (long)PC__COUNT(files) - 1)];
    handled.network = version >= 4 ? 3 : 0; /* bind, connect */
    handled.scoped = version >= 6 ? 3 : 0;  /* sockets and signals of others */
    const size_t size = version >= 6 ? 24 : version >= 4 ? 16 : 8;
    const int rules = (int)syscall(SYS_landlock_create_ruleset, &handled, size, 0u);
    return rules >= 0 && syscall(SYS_landlock_restrict_self, rules, 0u) == 0 && close(rules) == 0;
}
#else
static bool give_up_files(void)
{
    return false;
}
#endif

unsigned pc__jail_give_up(int64_t memory, int seconds)
{
    unsigned lost = 0;
    const int64_t space = space_now(); /* from a file */
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && give_up_files())
        lost |= PC__JAIL_LANDLOCK;
    lost |= give_up_resources(space, memory, seconds);
    if (pc__jail_filter())
        lost |= PC__JAIL_SECCOMP;
    return lost;
}
