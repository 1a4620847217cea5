/* root.c: reading this machine, a folder that holds one, or a recording; and keeping what was read. */
#include "probe/root_parts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <unistd.h>

pc__root *pc__root_open(const char *path, bool recording)
{
    struct stat status;
    pc__root *root = pc__calloc(1, sizeof *root);
    if (!root)
        return NULL;
    *root = (pc__root){.folder = -1, .live = !path, .recording = recording};
    if (!path)
        path = "/";
    if (stat(path, &status)) {
        pc__fail_file(errno, "cannot read the machine in %s", path);
    } else if (!S_ISDIR(status.st_mode)) {
        if (pc__recording_read(path, &root->entries, &root->count) == PC_OK)
            return root;
    } else {
        root->folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (root->folder >= 0)
            return root;
        pc__fail_file(errno, "cannot read the machine in %s", path);
    }
    pc__root_close(root);
    return NULL;
}

void pc__root_close(pc__root *root)
{
    if (!root)
        return;
    if (root->folder >= 0)
        close(root->folder);
    pc__recording_free(root->entries, root->count);
    pc__text_free(&root->kept);
    pc__free(root->seen);
    for (int i = 0; i < root->listing_count; i++) {
        pc__free(root->listings[i].path);
        pc__text_free(&root->listings[i].names);
    }
    pc__free(root->environment);
    pc__free(root);
}

bool pc__root_live(const pc__root *root)
{
    return root->live;
}

bool pc__root_is_folder(const pc__root *root)
{
    return !root->live && root->folder >= 0;
}

bool pc__root_starved(const pc__root *root)
{
    return root->starved;
}

static const pc__root_entry *entry_at(const pc__root *root, const char *path)
{
    return pc__recording_find(root->entries, root->count, path);
}

/* At most n bytes of a regular file, from its beginning, or with `tail` from its end. */
static ssize_t read_bytes(pc__root *root, const char *path, char *text, size_t n, bool tail)
{
    if (root->folder < 0) {
        const pc__root_entry *entry = entry_at(root, path);
        if (!entry || !entry->content || entry->link) {
            errno = ENOENT;
            return -1;
        }
        size_t length = PC__MIN(n, entry->length);
        memcpy(text, entry->content + (tail ? entry->length - length : 0), length);
        return (ssize_t)length;
    }
    struct stat status;
    int file = pc__root_open_in(root, path, O_RDONLY);
    if (file < 0)
        return -1;
    size_t length = 0;
    ssize_t got = 1;
    if (fstat(file, &status) || !S_ISREG(status.st_mode)) {
        errno = EINVAL;
        got = -1;
    } else if (tail && status.st_size > (off_t)n) {
        lseek(file, status.st_size - (off_t)n, SEEK_SET);
    }
    for (; got > 0 && length<n; length += got> 0 ? (size_t)got : 0)
        got = read(file, text + length, n - length);
    int number = errno;
    close(file);
    errno = number;
    return got < 0 && !length ? -1 : (ssize_t)length;
}

ssize_t pc__root_read(pc__root *root, const char *path, char *text, size_t n)
{
    ssize_t length = read_bytes(root, path, text, n - 1, false);
    text[PC__MAX(length, 0)] = 0;
    if (length >= 0)
        pc__root_keep_content(root, path, text, (size_t)length, false);
    return length;
}

bool pc__root_line(pc__root *root, const char *path, char *line, size_t n)
{
    if (pc__root_read(root, path, line, n) < 0)
        return false;
    size_t skip = strspn(line, " \t"), end;
    memmove(line, line + skip, strlen(line + skip) + 1);
    line[strcspn(line, "\r\n")] = 0;
    for (end = strlen(line); end && strchr(" \t", line[end - 1]); end--)
        line[end - 1] = 0;
    return end > 0;
}

static char *read_whole(pc__root *root, const char *path, size_t limit, bool tail)
{
    for (size_t room = 16384;; room *= 4) {
        room = PC__MIN(room, limit);
        char *text = pc__try_alloc_aligned(room + 1, 16);
        ssize_t length = text ? read_bytes(root, path, text, room, tail) : -1;
        root->starved |= !text;
        if (length < 0) {
            pc__free(text);
            return NULL;
        }
        text[length] = 0;
        if ((size_t)length < room || room == limit)
            return text;
        pc__free(text);
    }
}

char *pc__root_text(pc__root *root, const char *path, size_t limit, bool tail)
{
    char *text = read_whole(root, path, limit, tail);
    if (text)
        pc__root_keep_content(root, path, text, strlen(text), false);
    return text;
}

char *pc__root_whole(pc__root *root, const char *path, size_t limit, bool tail)
{
    return read_whole(root, path, limit, tail);
}

char *pc__root_lines(pc__root *root, const char *path, const char *prefix)
{
    char *text = read_whole(root, path, 16 << 20, false), *to = text;
    char *last = text ? text + strlen(text) : NULL;
    size_t n = strlen(prefix);
    for (char *line = text, *end; line < last; line = end) {
        end = memchr(line, '\n', (size_t)(last - line));
        end = end ? end + 1 : last;
        if ((size_t)(end - line) < n || memcmp(line, prefix, n))
            continue;
        memmove(to, line, (size_t)(end - line));
        to += end - line;
    }
    if (!text)
        return NULL;
    *to = 0;
    if (*text)
        pc__root_keep_content(root, path, text, strlen(text), false);
    return text;
}

bool pc__root_link(pc__root *root, const char *path, char *target, size_t n)
{
    ssize_t length = -1;
    if (root->folder < 0) {
        const pc__root_entry *entry = entry_at(root, path);
        if (entry && entry->link)
            length = snprintf(target, n, "%s", entry->content);
    } else {
        length = pc__root_link_in(root, path, target, n);
    }
    if (length <= 0 || (size_t)length >= n)
        return false;
    target[length] = 0;
    pc__root_keep_content(root, path, target, (size_t)length, true);
    return true;
}

static void keep_status(pc__root *root, const char *path, const pc__root_status *status)
{
    pc__root_entry entry = {.path = (char *)path,
                            .has_status = true,
                            .mode = status->mode,
                            .uid = status->uid,
                            .gid = status->gid,
                            .major = status->major,
                            .total = -1,
                            .free = -1};
    pc__root_keep(root, &entry, 's');
}

bool pc__root_stat(pc__root *root, const char *path, pc__root_status *status)
{
    if (root->folder < 0) {
        const pc__root_entry *entry = entry_at(root, path);
        if (!entry || !entry->has_status)
            return false;
        *status = (pc__root_status){entry->mode, entry->uid, entry->gid, entry->major};
        keep_status(root, path, status);
        return true;
    }
    struct stat found;
    int file = pc__root_open_in(root, path, O_PATH);
    if (file < 0)
        return false;
    bool fine = !fstat(file, &found);
    close(file);
    if (!fine)
        return false;
    *status = (pc__root_status){found.st_mode & 07777, found.st_uid, found.st_gid, 0};
    if (S_ISCHR(found.st_mode))
        status->major = (int)major(found.st_rdev);
    else if (S_ISREG(found.st_mode) && !strncmp(path, "dev/", 4))
        status->major = PC__NO_DEVICE;
    keep_status(root, path, status);
    return true;
}

bool pc__root_exists(pc__root *root, const char *path)
{
    pc__root_status status = {.mode = 0444};
    if (root->folder >= 0 || pc__root_stat(root, path, &status))
        return root->folder < 0 || pc__root_stat(root, path, &status);
    size_t n = strlen(path);
    for (int i = 0; i < root->count; i++)
        if (!strncmp(root->entries[i].path, path, n) &&
            (!root->entries[i].path[n] || root->entries[i].path[n] == '/')) {
            keep_status(root, path, &status);
            return true;
        }
    return false;
}

bool pc__root_space(pc__root *root, const char *path, int64_t *total, int64_t *free_bytes)
{
    pc__root_entry entry = {.path = (char *)path, .total = -1};
    if (root->live) {
        struct statvfs space;
        int file = pc__root_open_in(root, path, O_RDONLY | O_DIRECTORY);
        if (file >= 0 && !fstatvfs(file, &space)) {
            entry.total = (int64_t)(space.f_blocks * space.f_frsize);
            entry.free = (int64_t)(space.f_bavail * space.f_frsize);
        }
        if (file >= 0)
            close(file);
    } else {
        const pc__root_entry *known = root->folder < 0 ? entry_at(root, path) : NULL;
        if (known)
            entry = *known;
    }
    if (entry.total < 0)
        return false;
    *total = entry.total;
    *free_bytes = entry.free;
    pc__root_keep(root, &(pc__root_entry){.path = (char *)path, .total = entry.total, .free = entry.free}, 'v');
    return true;
}

const char *pc__root_env(pc__root *root, const char *name)
{
    if (root->live) {
        return getenv(name);
    }
    if (!root->environment_read) {
        root->environment_read = true;
        root->environment = read_whole(root, "answers/environment", 65536, false);
        root->environment_end = root->environment ? root->environment + strlen(root->environment) : NULL;
        for (char *c = root->environment; c < root->environment_end; c++)
            *c = *c == '\n' ? 0 : *c;
    }
    size_t n = strlen(name);
    for (const char *line = root->environment; line < root->environment_end; line += strlen(line) + 1)
        if (!strncmp(line, name, n) && line[n] == '=')
            return line + n + 1;
    return NULL;
}
