/* shell.h: the command in lines of a shell. PC_TEST_COMMAND is its path; $PARACORD_BIN overrides it. */
#ifndef PC_TEST_SHELL_H
#define PC_TEST_SHELL_H

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support.h"

#define OUTPUT_MAX 262144

static inline const char *binary(void)
{
    const char *path = getenv("PARACORD_BIN");
    return path ? path : PC_TEST_COMMAND;
}

/* Run a shell line in which $P is the command; what it prints and its exit status (-1: it did not exit). */
static inline int shell(char output[OUTPUT_MAX], const char *line)
{
    setenv("P", binary(), 1);
    FILE *pipe = popen(line, "r");
    assert_non_null(pipe);
    size_t n = fread(output, 1, OUTPUT_MAX - 1, pipe);
    output[n] = 0;
    int status = pclose(pipe);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* Leave the test when there is no command to run. */
#define NEED_BINARY()                                                                                                  \
    do {                                                                                                               \
        if (access(binary(), X_OK))                                                                                    \
            skip();                                                                                                    \
    } while (0)

#endif
