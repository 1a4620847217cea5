/* again.h: this program again, since the loader reads its path at the start. */
#ifndef PC_TEST_AGAIN_H
#define PC_TEST_AGAIN_H

#include "support.h"

#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

/* Run it with the argument "ask" and libraries of `folder` found first; `environment` are pairs of a name and a value,
 * NULL for a variable that is not to be there, up to a NULL name. What it prints comes in said[0..n-1]; it must end
 * with 0. */
static inline void ask_again(const char *folder, const char *const *environment, char *said, size_t n)
{
    int ends[2], status;
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        dup2(ends[1], STDOUT_FILENO);
        setenv("LD_LIBRARY_PATH", folder, 1);
        for (; *environment; environment += 2) {
            unsetenv(environment[0]);
            if (environment[1])
                setenv(environment[0], environment[1], 1);
        }
        execl("/proc/self/exe", "test", "ask", (char *)NULL);
        _exit(127);
    }
    close(ends[1]);
    ssize_t got = read(ends[0], said, n - 1);
    said[got > 0 ? got : 0] = 0;
    close(ends[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    if (status != 0)
        fail_msg("it ended with status %d and said: %s", status, said);
}

#endif
