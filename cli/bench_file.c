/* bench_file.c: a picture's file, whole or not at all. */
#include "bench.h"

#include "bench_plot.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A file beside the target, so that it can be put in its place as a whole. NULL: errno. */
static FILE *open_beside(const char *path, char *temporary, size_t n)
{
    struct stat there;
    if (!stat(path, &there) && !S_ISREG(there.st_mode)) {
        errno = S_ISDIR(there.st_mode) ? EISDIR : EINVAL;
        return NULL;
    }
    if (snprintf(temporary, n, "%s.XXXXXX", path) >= (int)n) {
        errno = ENAMETOOLONG;
        return NULL;
    }
    const int file = mkostemp(temporary, O_CLOEXEC);
    if (file < 0)
        return NULL;
    const mode_t mask = umask(0);
    umask(mask);
    (void)fchmod(file, 0666 & ~mask);
    return fdopen(file, "w");
}

static bool failed(const cli_command *command, const char *path)
{
    cli_error(command, "cannot write %s: %s", path, errno == EINVAL ? "it is no ordinary file" : strerror(errno));
    return false;
}

bool bench_may_write(const cli_command *command, const char *path)
{
    char temporary[4096];
    FILE *file = open_beside(path, temporary, sizeof temporary);
    if (!file)
        return failed(command, path);
    fclose(file);
    remove(temporary);
    return true;
}

bool bench_roofline(const bench *b, const char *path, bool (*write)(const bench_plot *plot, FILE *out))
{
    char temporary[4096];
    bench_plot plot;
    FILE *out = open_beside(path, temporary, sizeof temporary);
    if (!out)
        return failed(b->p.command, path);
    bench_draw(b, &plot);
    const bool drawn = write(&plot, out);
    bool fine = drawn && !fflush(out) && !ferror(out) && !fsync(fileno(out));
    int number = errno;
    if (fclose(out) && fine)
        fine = false, number = errno;
    if (fine && rename(temporary, path))
        fine = false, number = errno;
    if (fine)
        return true;
    remove(temporary);
    errno = number;
    return drawn ? failed(b->p.command, path) : !cli_failed(b->p.command);
}
