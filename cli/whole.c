/* whole.c: see whole.h. */
#include "whole.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Beside the file that a link leads to, so that the link stays; `target` is that file. */
static FILE *open_beside(const char *path, char target[PATH_MAX], char *temporary, size_t n)
{
    struct stat there;
    if (!stat(path, &there) && !S_ISREG(there.st_mode)) {
        errno = S_ISDIR(there.st_mode) ? EISDIR : EINVAL;
        return NULL;
    }
    if (!realpath(path, target))
        snprintf(target, PATH_MAX, "%s", path);
    if (snprintf(temporary, n, "%s.tmp", target) >= (int)n) {
        errno = ENAMETOOLONG;
        return NULL;
    }
    return fopen(temporary, "we");
}

static bool failed(const cli_command *command, const char *path)
{
    cli_error(command, "cannot write %s: %s", path, errno == EINVAL ? "it is no ordinary file" : strerror(errno));
    return false;
}

bool cli_may_write(const cli_command *command, const char *path)
{
    char target[PATH_MAX], temporary[PATH_MAX];
    FILE *file = open_beside(path, target, temporary, sizeof temporary);
    if (!file)
        return failed(command, path);
    fclose(file);
    remove(temporary);
    return true;
}

bool cli_write_whole(const cli_command *command, const char *path, bool (*write)(const void *context, FILE *out),
                     const void *context)
{
    char target[PATH_MAX], temporary[PATH_MAX];
    FILE *out = open_beside(path, target, temporary, sizeof temporary);
    if (!out)
        return failed(command, path);
    const bool made = write(context, out);
    bool fine = made && !fflush(out) && !ferror(out) && !fsync(fileno(out));
    int number = errno;
    if (fclose(out) && fine)
        fine = false, number = errno;
    if (fine && rename(temporary, target))
        fine = false, number = errno;
    if (fine)
        return true;
    remove(temporary);
    errno = number;
    return made ? failed(command, path) : !cli_failed(command);
}
