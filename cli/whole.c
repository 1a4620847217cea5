/* whole.c: see whole.h. */
#include "whole.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* Where the name leads by its links, also to what is not there yet. */
static bool find_target(const char *path, char target[PATH_MAX])
{
    char aim[PATH_MAX], next[PATH_MAX];
    if (realpath(path, target))
        return true;
    if (snprintf(target, PATH_MAX, "%s", path) < PATH_MAX)
        for (int links = 0; links < 40; links++) {
            const ssize_t n = readlink(target, aim, sizeof aim - 1);
            if (n < 0)
                return true;
            aim[n] = 0;
            const char *slash = *aim == '/' ? NULL : strrchr(target, '/');
            const int folder = slash ? (int)(slash + 1 - target) : 0;
            if (snprintf(next, sizeof next, "%.*s%s", folder, target, aim) >= (int)sizeof next)
                break;
            memcpy(target, next, sizeof next);
        }
    errno = ELOOP;
    return false;
}

/* Whether the name is still that of the open file, and nobody else writes it; a file system that has no locks goes
 * without. */
static bool is_ours(int fd, const char *name)
{
    struct stat here, there;
    return (!flock(fd, LOCK_EX | LOCK_NB) || errno != EWOULDBLOCK) && !fstat(fd, &here) && !lstat(name, &there) &&
           here.st_dev == there.st_dev && here.st_ino == there.st_ino;
}

/* One that nobody writes: a new one, or what a killed command has left, if that can be written. */
static int open_one(const char *target, mode_t mode, char *temporary, size_t n)
{
    for (int i = 0; i < 100; i++) {
        if (snprintf(temporary, n, "%s.paracord-%d.tmp", target, i) >= (int)n) {
            errno = ENAMETOOLONG;
            return -1;
        }
        int fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
        if (fd < 0 && errno != EEXIST)
            return -1;
        if (fd < 0)
            fd = open(temporary, O_WRONLY | O_NOFOLLOW | O_CLOEXEC);
        if (fd >= 0 && is_ours(fd, temporary) && !ftruncate(fd, 0))
            return fd;
        if (fd >= 0)
            close(fd);
    }
    errno = EBUSY;
    return -1;
}

/* Beside the file that a link leads to, so that the link stays, as readable as that; `target` is that file. */
static FILE *open_beside(const char *path, char target[PATH_MAX], char *temporary, size_t n)
{
    struct stat there;
    const bool is_there = !stat(path, &there);
    if (is_there && !S_ISREG(there.st_mode)) {
        errno = S_ISDIR(there.st_mode) ? EISDIR : EINVAL;
        return NULL;
    }
    const mode_t mode = is_there ? (there.st_mode & 0777) | S_IRUSR | S_IWUSR : 0666;
    const int fd = find_target(path, target) ? open_one(target, mode, temporary, n) : -1;
    FILE *out = fd >= 0 ? fdopen(fd, "w") : NULL;
    if (fd >= 0 && !out) {
        (void)remove(temporary);
        close(fd);
    }
    return out;
}

/* With the mode of what is there. */
static bool put_in_place(FILE *out, const char *temporary, const char *target)
{
    struct stat there;
    if (fsync(fileno(out)))
        return false;
    if (!stat(target, &there))
        (void)fchmod(fileno(out), there.st_mode & 0777);
    return !rename(temporary, target);
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
    remove(temporary);
    fclose(file);
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
    const bool fine = made && !fflush(out) && !ferror(out) && put_in_place(out, temporary, target);
    const int number = errno;
    if (!fine)
        remove(temporary);
    fclose(out);
    errno = number;
    return fine || (made ? failed(command, path) : !cli_failed(command));
}
