/* file.c: whole files in, whole files out. */
#include "io/file.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

static pc_status read_all(int fd, const char *path, uint8_t *bytes, size_t n)
{
    size_t done = 0;
    while (done < n) {
        ssize_t got = read(fd, bytes + done, n - done);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return pc__fail_file(errno, "cannot read %s", path);
        if (got == 0)
            return pc__fail(PC_ERR_FILE, "cannot read %s: it became shorter while it was read", path);
        done += (size_t)got;
    }
    return PC_OK;
}

pc_status pc__file_read(const char *path, uint8_t **bytes, size_t *n)
{
    *bytes = NULL, *n = 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return pc__fail_file(errno, "cannot open %s", path);
    struct stat info;
    pc_status status = PC_OK;
    if (fstat(fd, &info) != 0)
        status = pc__fail_file(errno, "cannot read %s", path);
    else if (!S_ISREG(info.st_mode))
        status = pc__fail(PC_ERR_FILE, "cannot read %s: it is not a regular file", path);
    uint8_t *content = status == PC_OK ? pc__alloc((size_t)info.st_size + 1) : NULL;
    if (status == PC_OK && !content)
        status = PC_ERR_MEMORY;
    if (status == PC_OK)
        status = read_all(fd, path, content, (size_t)info.st_size);
    close(fd);
    if (status != PC_OK) {
        pc__free(content);
        return status;
    }
    content[info.st_size] = 0;
    *bytes = content;
    *n = (size_t)info.st_size;
    return PC_OK;
}

char *pc__file_temporary(const char *path)
{
    size_t n = strlen(path) + sizeof ".tmp";
    char *name = pc__alloc(n);
    if (name)
        snprintf(name, n, "%s.tmp", path);
    return name;
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

pc_status pc__file_commit(const char *temporary, const char *path)
{
    int fd = open(temporary, O_RDWR | O_CLOEXEC);
    int problem = fd < 0 || fsync(fd) != 0 ? errno : 0;
    if (fd >= 0 && close(fd) != 0 && !problem)
        problem = errno;
    if (!problem && rename(temporary, path) != 0)
        problem = errno;
    if (problem) {
        unlink(temporary);
        return pc__fail_file(problem, "cannot write %s", path);
    }
    sync_folder_of(path);
    return PC_OK;
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
    char *temporary = pc__file_temporary(path);
    if (!temporary)
        return PC_ERR_MEMORY;
    int fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    int problem = fd < 0 ? errno : pc__file_put(fd, bytes, n);
    if (fd >= 0 && close(fd) != 0 && !problem)
        problem = errno;
    pc_status status = PC_OK;
    if (problem) {
        if (fd >= 0)
            unlink(temporary);
        status = pc__fail_file(problem, "cannot write %s", path);
    } else {
        status = pc__file_commit(temporary, path);
    }
    pc__free(temporary);
    return status;
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
