/* file_write.c: whole files out. A temporary is locked while its writer lives, so that what a killed one has left is
 * known from what another one is writing. */
#include "io/file.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

#define MIDDLE ".paracord-"
#define END ".tmp"

/* Writers of one path at one time. */
enum { WRITERS_MAX = 1000, SUFFIX_ROOM = sizeof MIDDLE "999" END, LINKS_MAX = 40 };

/* A name's last part, which is the whole of it where it has no folder. */
static const char *last_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* Where the link leads; 0, or errno. */
static int follow(char path[PATH_MAX])
{
    char aim[PATH_MAX], next[PATH_MAX];
    const ssize_t n = readlink(path, aim, sizeof aim - 1);
    if (n < 0)
        return errno;
    aim[n] = 0;
    const int folder = *aim == '/' ? 0 : (int)(last_of(path) - path);
    if (snprintf(next, sizeof next, "%.*s%s", folder, path, aim) >= (int)sizeof next)
        return ENAMETOOLONG;
    memcpy(path, next, sizeof next);
    return 0;
}

/* The file that a name leads to, which need not be there; 0, or errno. */
static int find_target(const char *path, char target[PATH_MAX])
{
    struct stat info;
    if (realpath(path, target))
        return 0;
    if (snprintf(target, PATH_MAX, "%s", path) >= PATH_MAX)
        return ENAMETOOLONG;
    int problem = 0;
    for (int i = 0; !problem && lstat(target, &info) == 0 && S_ISLNK(info.st_mode); i++)
        problem = i < LINKS_MAX ? follow(target) : ELOOP;
    return problem;
}

/* A name that leaves no room for the suffix is cut. */
static char *temporary_of(const char *target, int number)
{
    const int folder = (int)(last_of(target) - target);
    const size_t room = strlen(target) + SUFFIX_ROOM;
    char *name = pc__alloc(room);
    if (name)
        snprintf(name, room, "%.*s%.*s" MIDDLE "%d" END, folder, target, (int)(NAME_MAX + 1 - SUFFIX_ROOM),
                 target + folder, number);
    return name;
}

char *pc__file_temporary(const char *path, int number)
{
    char target[PATH_MAX];
    const int problem = find_target(path, target);
    if (problem)
        (void)pc__fail_file(problem, "cannot write %s", path);
    return problem ? NULL : temporary_of(target, number);
}

bool pc__file_is_temporary(const char *name, size_t n)
{
    const char *at = name + n;
    if (strlen(name) < n || strncmp(at, MIDDLE, sizeof MIDDLE - 1) != 0)
        return false;
    at += sizeof MIDDLE - 1;
    return strcmp(at + strspn(at, "0123456789"), END) == 0;
}

/* A file in the place of /dev/null would be the end of many a program. */
static pc_status check_target(const char *path)
{
    struct stat info;
    if (stat(path, &info) != 0 || S_ISREG(info.st_mode))
        return PC_OK;
    if (S_ISDIR(info.st_mode))
        return pc__fail_file(EISDIR, "cannot write %s", path);
    return pc__fail(PC_ERR_FILE, "cannot write %s: it is %s, not a regular file", path, pc__file_kind(info.st_mode));
}

/* Whether the name is still that of the open file. */
static bool is_at(int fd, const char *name)
{
    struct stat here, there;
    return fstat(fd, &here) == 0 && lstat(name, &there) == 0 && here.st_dev == there.st_dev &&
           here.st_ino == there.st_ino;
}

typedef enum hold { LOCKED, HELD_BY_ANOTHER, NO_LOCKS } hold;

/* One byte far behind any content: where locks bind others (SMB), that they write is no matter. It is the open file's, also
 * in a child. */
static hold lock(int fd)
{
    struct flock byte = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = (off_t)1 << 62, .l_len = 1};
    if (fcntl(fd, F_OFD_SETLK, &byte) == 0)
        return LOCKED;
    return errno == EAGAIN || errno == EACCES ? HELD_BY_ANOTHER : NO_LOCKS;
}

/* A new, locked file; 0, or errno: EEXIST where another writer has it, who may be a killed one. Between its making and
 * its lock somebody may have taken it for a killed one's. A file system that has no locks goes without. */
static int make(const char *name, mode_t mode, int *fd)
{
    *fd = open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (*fd < 0)
        return errno;
    if (lock(*fd) != HELD_BY_ANOTHER && is_at(*fd, name))
        return 0;
    close(*fd);
    *fd = -1;
    return EEXIST;
}

/* What nobody has locked was left by a killed writer. */
static void remove_left(const char *name)
{
    const int fd = open(name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return;
    if (lock(fd) == LOCKED && is_at(fd, name))
        unlink(name);
    close(fd);
}

pc_status pc__file_sweep(const char *path)
{
    enum { GAP = 8 }; /* numbers of writers that have ended, before one that was killed */
    for (int i = 0, missing = 0; missing < GAP && i < WRITERS_MAX; i++) {
        char *name = pc__file_temporary(path, i);
        if (!name)
            return pc_error_last()->status;
        missing = access(name, F_OK) == 0 ? 0 : missing + 1;
        remove_left(name);
        pc__free(name);
    }
    return PC_OK;
}

/* As readable as the target is, from the beginning on. */
static mode_t mode_for(const char *target)
{
    struct stat info;
    return stat(target, &info) == 0 ? (info.st_mode & 0777) | S_IRUSR | S_IWUSR : 0666;
}

static void end(pc__draft *d)
{
    if (d->fd >= 0)
        close(d->fd);
    pc__free(d->target);
    pc__free(d->temporary);
    *d = (pc__draft){.fd = -1};
}

/* The first that no living writer has; 0, or errno, or -1: the library's error. */
static int make_one(pc__draft *d)
{
    const mode_t mode = mode_for(d->target);
    for (int i = 0; i < WRITERS_MAX; i++) {
        pc__free(d->temporary);
        d->temporary = temporary_of(d->target, i);
        d->number = i;
        if (!d->temporary)
            return -1;
        int problem = make(d->temporary, mode, &d->fd);
        if (problem == EEXIST) {
            remove_left(d->temporary);
            problem = make(d->temporary, mode, &d->fd);
        }
        if (problem != EEXIST)
            return problem;
    }
    return EBUSY;
}

pc_status pc__file_begin(const char *path, pc__draft *d)
{
    char target[PATH_MAX];
    *d = (pc__draft){.fd = -1};
    PC__TRY(check_target(path));
    int problem = find_target(path, target);
    if (!problem) {
        d->target = pc__strdup(target);
        problem = d->target ? make_one(d) : -1;
    }
    if (!problem)
        return PC_OK;
    end(d);
    return problem < 0 ? PC_ERR_MEMORY : pc__fail_file(problem, "cannot write %s", path);
}

void pc__file_drop(pc__draft *d)
{
    if (d->fd >= 0 && is_at(d->fd, d->temporary))
        unlink(d->temporary);
    end(d);
}

static void sync_folder_of(const char *path)
{
    char copy[PATH_MAX];
    if (snprintf(copy, sizeof copy, "%s", path) >= (int)sizeof copy)
        return;
    int fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0) {
        fsync(fd); /* some file systems refuse this for folders: the rename has still happened */
        close(fd);
    }
}

/* Over its target, with the mode of that; 0, or errno. */
static int put_in_place(const pc__draft *d)
{
    struct stat info;
    if (fsync(d->fd) != 0)
        return errno;
    if (!is_at(d->fd, d->temporary)) /* removed, or another's where hosts do not see each other's locks */
        return ESTALE;
    if (stat(d->target, &info) ==
        0) /* last, as a killed one's that nobody may write could not be locked, to be removed */
        (void)fchmod(d->fd, info.st_mode & 0777);
    return rename(d->temporary, d->target) == 0 ? 0 : errno;
}

pc_status pc__file_commit(pc__draft *d, const char *path)
{
    pc_status status = check_target(path);
    const int problem = status == PC_OK ? put_in_place(d) : 0;
    if (problem)
        status = pc__fail_file(problem, "cannot write %s", path);
    if (status == PC_OK)
        sync_folder_of(d->target);
    else
        pc__file_drop(d);
    end(d);
    return status;
}

int pc__file_put(int fd, const void *bytes, size_t n)
{
    for (const char *at = bytes; n;) {
        ssize_t put = write(fd, at, n);
        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0)
            return errno;
        at += put, n -= (size_t)put;
    }
    return 0;
}

pc_status pc__file_write(const char *path, const void *bytes, size_t n)
{
    pc__draft d;
    PC__TRY(pc__file_begin(path, &d));
    const int problem = pc__file_put(d.fd, bytes, n);
    if (!problem)
        return pc__file_commit(&d, path);
    pc__file_drop(&d);
    return pc__fail_file(problem, "cannot write %s", path);
}
