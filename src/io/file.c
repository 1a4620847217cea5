/* file.c: whole files in, and folders. */
#include "io/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* More than any file that is read as a whole; what a pipe brings has no size to look at. */
#define STREAM_MAX ((size_t)4 << 30)

/* The descriptor that a name like /dev/stdin stands for, -1 for names of files. */
static int standing_for(const char *path)
{
    static const char *const folders[] = {"/dev/fd/", "/proc/self/fd/"};
    if (strcmp(path, "/dev/stdin") == 0)
        return STDIN_FILENO;
    for (int i = 0; i < PC__COUNT(folders); i++) {
        const size_t n = strlen(folders[i]);
        char *end;
        if (strncmp(path, folders[i], n) == 0 && path[n] >= '0' && path[n] <= '9') {
            const long number = strtol(path + n, &end, 10);
            return *end == 0 && number <= INT_MAX ? (int)number : -1;
        }
    }
    return -1;
}

const char *pc__file_kind(mode_t mode)
{
    return S_ISDIR(mode) ? "a folder" : S_ISFIFO(mode) ? "a named pipe" : S_ISSOCK(mode) ? "a socket" : "a device";
}

static pc_status refuse(const char *path, mode_t mode)
{
    return pc__fail(PC_ERR_FILE, "cannot read %s: it is %s, not a regular file%s", path, pc__file_kind(mode),
                    S_ISFIFO(mode) ? "; what comes through a pipe can be read as /dev/stdin" : "");
}

static pc_status look(int fd, const char *path, bool streams, int64_t *size)
{
    struct stat info;
    if (fstat(fd, &info) != 0)
        return pc__fail_file(errno, "cannot read %s", path);
    *size = S_ISREG(info.st_mode) ? (int64_t)info.st_size : -1;
    if (*size >= 0 || (streams && !S_ISDIR(info.st_mode) && !S_ISBLK(info.st_mode)))
        return PC_OK;
    return refuse(path, info.st_mode);
}

pc_status pc__file_open(const char *path, int *fd, int64_t *size)
{
    const int standing = standing_for(path);
    struct stat info;
    *size = -1;
    *fd = -1;
    /* not opened at all: that alone rewinds a tape, and wakes who waits at the other end of a FIFO */
    if (standing < 0 && stat(path, &info) == 0 && !S_ISREG(info.st_mode))
        return refuse(path, info.st_mode);
    /* O_NONBLOCK: what the name stands for may have changed since, and nobody may ever come to write into a FIFO. A
     * descriptor that is open already is taken as it is: opening its name again needs rights that the program may not
     * have, and sockets cannot be opened. */
    *fd =
        standing >= 0 ? fcntl(standing, F_DUPFD_CLOEXEC, 0) : open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (*fd < 0)
        return pc__fail_file(errno, "cannot open %s", path);
    pc_status status = look(*fd, path, standing >= 0, size);
    if (status != PC_OK) {
        close(*fd);
        *fd = -1;
    }
    return status;
}

/* Up to `n` bytes, fewer only at the end; -1 with errno. Of a regular file from its beginning on, wherever others have
 * read to by the same descriptor; that may be non-blocking, when it is theirs. */
static ssize_t read_some(int fd, bool regular, uint8_t *bytes, size_t n)
{
    size_t done = 0;
    while (done < n) {
        const ssize_t got = regular ? pread(fd, bytes + done, n - done, (off_t)done) : read(fd, bytes + done, n - done);
        if (got == 0)
            break;
        if (got > 0)
            done += (size_t)got;
        else if (errno == EAGAIN)
            poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, -1);
        else if (errno != EINTR)
            return -1;
    }
    return (ssize_t)done;
}

static pc_status read_stream(int fd, const char *path, uint8_t **bytes, size_t *n)
{
    for (size_t room = (size_t)1 << 16;; room *= 2) {
        uint8_t *moved = pc__realloc(*bytes, room + 1);
        if (!moved)
            return PC_ERR_MEMORY;
        *bytes = moved;
        const ssize_t got = read_some(fd, false, *bytes + *n, room - *n);
        if (got < 0)
            return pc__fail_file(errno, "cannot read %s", path);
        *n += (size_t)got;
        if (*n < room)
            return PC_OK;
        if (room >= STREAM_MAX)
            return pc__fail(PC_ERR_FILE, "cannot read %s: more than %zu GiB come out of it", path, STREAM_MAX >> 30);
    }
}

static pc_status read_regular(int fd, const char *path, int64_t size, uint8_t **bytes, size_t *n)
{
    *bytes = pc__alloc((size_t)size + 1);
    if (!*bytes)
        return PC_ERR_MEMORY;
    const ssize_t got = read_some(fd, true, *bytes, (size_t)size);
    if (got < 0)
        return pc__fail_file(errno, "cannot read %s", path);
    if (got < size)
        return pc__fail(PC_ERR_FILE, "cannot read %s: it became shorter while it was read", path);
    *n = (size_t)got;
    return PC_OK;
}

bool pc__is_lfs_pointer(const void *head, size_t n)
{
    static const char words[] = "version https://git-lfs.github.com/spec/";
    return n >= sizeof words - 1 && memcmp(head, words, sizeof words - 1) == 0;
}

pc_status pc__fail_lfs(const char *path)
{
    return pc__fail(PC_ERR_FORMAT,
                    "%s is a Git LFS pointer, not the file itself; run \"git lfs pull\" in its repository to fetch it",
                    path);
}

pc_status pc__file_take(int fd, const char *path, int64_t size, uint8_t **bytes, size_t *n)
{
    *bytes = NULL, *n = 0;
    pc_status status = size < 0 ? read_stream(fd, path, bytes, n) : read_regular(fd, path, size, bytes, n);
    close(fd);
    if (status == PC_OK && pc__is_lfs_pointer(*bytes, *n))
        status = pc__fail_lfs(path);
    if (status != PC_OK) {
        pc__free(*bytes);
        *bytes = NULL, *n = 0;
        return status;
    }
    (*bytes)[*n] = 0;
    return PC_OK;
}

pc_status pc__file_read(const char *path, uint8_t **bytes, size_t *n)
{
    int fd;
    int64_t size;
    *bytes = NULL, *n = 0;
    PC__TRY(pc__file_open(path, &fd, &size));
    return pc__file_take(fd, path, size, bytes, n);
}

pc_status pc__folder_make(const char *path)
{
    char partial[PATH_MAX];
    if (snprintf(partial, sizeof partial, "%s", path) >= (int)sizeof partial)
        return pc__fail(PC_ERR_FILE, "cannot make the folder %.64s...: the name is too long", path);
    for (char *p = partial + 1;; p++)
        if (*p == '/' || *p == 0) {
            char kept = *p;
            *p = 0;
            struct stat info;
            if (mkdir(partial, 0777) != 0 && (errno != EEXIST || stat(partial, &info) != 0 || !S_ISDIR(info.st_mode)))
                return pc__fail_file(errno == EEXIST ? ENOTDIR : errno, "cannot make the folder %s", partial);
            *p = kept;
            if (!kept)
                return PC_OK;
        }
}
