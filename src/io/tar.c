/* tar.c: members of tar files by libarchive. */
#include "io/tar.h"

#include "io/library.h"

#define WHAT "a tar file"
#define PACKAGE "libarchive13"

#if PC_HAVE_ARCHIVE
#include <archive.h>
#include <archive_entry.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#define FUNCTIONS(X)                                                                                                   \
    X(archive_read_new)                                                                                                \
    X(archive_read_free)                                                                                               \
    X(archive_read_support_format_tar)                                                                                 \
    X(archive_read_support_filter_all)                                                                                 \
    X(archive_read_set_format_option)                                                                                  \
    X(archive_read_open_fd)                                                                                            \
    X(archive_read_next_header)                                                                                        \
    X(archive_read_data_block)                                                                                         \
    X(archive_error_string)                                                                                            \
    X(archive_filter_bytes)                                                                                            \
    X(archive_filter_code)                                                                                             \
    X(archive_entry_pathname)                                                                                          \
    X(archive_entry_size)                                                                                              \
    X(archive_entry_filetype)                                                                                          \
    X(archive_entry_hardlink)                                                                                          \
    X(archive_entry_sparse_count)

static struct {
#define MEMBER(name) __typeof__(name) *name;
    FUNCTIONS(MEMBER)
#undef MEMBER
} lib;

enum { RECORD = 512 };

struct pc__tar {
    const char *path;
    int fd;
    struct archive *archive;
    struct archive_entry *entry;
    const void *block; /* of the member's bytes: the first, which is read already */
    size_t block_bytes;
    int64_t block_at;
    int block_status; /* libarchive's, of reading it */
    int64_t end;      /* in the file, behind the last member; -1: not known */
};

static pc_status open_library(const char *path)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static const char *const files[] = {"libarchive.so.13", NULL};
#define SYMBOL(name) {#name, (void **)&lib.name},
    const pc__symbol symbols[] = {FUNCTIONS(SYMBOL)};
#undef SYMBOL
    pthread_mutex_lock(&lock);
    const pc_status status =
        lib.archive_read_new ? PC_OK : pc__library_open(path, WHAT, PACKAGE, files, symbols, PC__COUNT(symbols));
    pthread_mutex_unlock(&lock);
    return status;
}

static pc_status broken(const pc__tar *t)
{
    const char *words = lib.archive_error_string(t->archive);
    return pc__fail_cause(PC_ERR_FORMAT, words ? words : "", "%s is no tar file, or is truncated or broken", t->path);
}

static bool failed(int status)
{
    return status != ARCHIVE_OK && status != ARCHIVE_WARN;
}

static void read_block(pc__tar *t)
{
    la_int64_t at = 0;
    t->block = NULL;
    t->block_bytes = 0;
    t->block_status = lib.archive_read_data_block(t->archive, &t->block, &t->block_bytes, &at);
    t->block_at = at;
}

/* Where the member's bytes are in the file, if they are there as they are: looked up, not believed. */
static int64_t place_of(const pc__tar *t, int64_t offset, int64_t size)
{
    struct stat info;
    uint8_t there[512];
    const size_t n = PC__MIN(t->block_bytes, sizeof there);
    if (lib.archive_filter_code(t->archive, 0) != ARCHIVE_FILTER_NONE || lib.archive_entry_sparse_count(t->entry) ||
        t->block_at != 0 || fstat(t->fd, &info) != 0 || size > info.st_size - offset)
        return -1;
    return pread(t->fd, there, n, (off_t)offset) == (ssize_t)n && (n == 0 || memcmp(there, t->block, n) == 0) ? offset
                                                                                                              : -1;
}

static pc_status show(pc__tar *t, pc__tar_fn each, void *context)
{
    const int64_t offset = lib.archive_filter_bytes(t->archive, 0);
    const char *name = lib.archive_entry_pathname(t->entry);
    t->end = -1;
    const bool is_file = lib.archive_entry_filetype(t->entry) == AE_IFREG;
    pc__tar_member member = {name, lib.archive_entry_size(t->entry), -1,
                             is_file ? NULL : lib.archive_entry_hardlink(t->entry)};
    if (!name || (!is_file && !member.link))
        return PC_OK;
    if (member.link)
        return each(context, t, &member);
    read_block(t);
    if (failed(t->block_status) && t->block_status != ARCHIVE_EOF)
        return broken(t);
    member.offset = place_of(t, offset, member.size);
    if (member.offset >= 0)
        t->end = offset + (member.size + RECORD - 1) / RECORD * RECORD;
    return each(context, t, &member);
}

/* A file that was cut off between two members has all of some, and nothing says that there were more but the records of
 * zeros that are not there. */
static pc_status check_end(const pc__tar *t)
{
    struct stat info;
    if (t->end < 0 || fstat(t->fd, &info) != 0 || info.st_size >= t->end + RECORD)
        return PC_OK;
    return pc__fail(PC_ERR_FORMAT,
                    "%s is truncated: there is no end mark behind its last member; if that is all, give it one: "
                    "truncate -s +1024 %s",
                    t->path, t->path);
}

static pc_status walk(pc__tar *t, pc__tar_fn each, void *context)
{
    for (;;) {
        const int status = lib.archive_read_next_header(t->archive, &t->entry);
        if (status == ARCHIVE_EOF)
            return check_end(t);
        if (failed(status))
            return broken(t);
        PC__TRY(show(t, each, context));
    }
}

pc_status pc__tar_read(const char *path, int fd, pc__tar_fn each, void *context)
{
    enum { BLOCK = 1 << 16 };
    PC__TRY(open_library(path));
    pc__tar t = {.path = path, .fd = fd, .archive = lib.archive_read_new(), .end = -1};
    if (!t.archive)
        return pc__fail(PC_ERR_MEMORY, "cannot read %s: libarchive has no memory", path);
    pc_status status = PC_ERR_FORMAT;
    if (failed(lib.archive_read_support_format_tar(t.archive)) ||
        failed(lib.archive_read_support_filter_all(t.archive)) ||
        failed(lib.archive_read_set_format_option(t.archive, "tar", "read_concatenated_archives", "1")) ||
        failed(lib.archive_read_open_fd(t.archive, fd, BLOCK)))
        status = broken(&t);
    else
        status = walk(&t, each, context);
    lib.archive_read_free(t.archive);
    return status;
}

static pc_status append(pc__tar *t, int64_t most, pc__text *text)
{
    /* holes before a block are zeros */
    static const char zeros[4096];
    if (t->block_at < (int64_t)text->length || t->block_at + (int64_t)t->block_bytes > most)
        return pc__fail(PC_ERR_MEMORY, "%s: a member takes more than %lld bytes, and there is no room for them",
                        t->path, (long long)most);
    while ((int64_t)text->length < t->block_at && !text->failed)
        pc__text_append(text, zeros, PC__MIN(sizeof zeros, (size_t)t->block_at - text->length));
    pc__text_append(text, t->block, t->block_bytes);
    return text->failed ? PC_ERR_MEMORY : PC_OK;
}

pc_status pc__tar_take(pc__tar *t, int64_t most, uint8_t **bytes, size_t *n)
{
    pc__text text = {0};
    pc_status status = PC_OK;
    *bytes = NULL;
    for (; status == PC_OK && !failed(t->block_status); read_block(t))
        status = append(t, most, &text);
    if (status == PC_OK && t->block_status != ARCHIVE_EOF)
        status = broken(t);
    if (status == PC_OK && !text.data) { /* of an empty member, too */
        pc__text_append(&text, "", 1);
        text.length = 0;
    }
    if (status != PC_OK || text.failed) {
        pc__text_free(&text);
        return status != PC_OK ? status : PC_ERR_MEMORY;
    }
    *bytes = (uint8_t *)text.data;
    *n = text.length;
    return PC_OK;
}

#else

pc_status pc__tar_read(const char *path, int fd, pc__tar_fn each, void *context)
{
    (void)fd, (void)each, (void)context;
    return pc__library_missing(path, WHAT, PACKAGE);
}

pc_status pc__tar_take(pc__tar *tar, int64_t most, uint8_t **bytes, size_t *n)
{
    (void)tar, (void)most, (void)bytes, (void)n;
    return PC_ERR_UNSUPPORTED;
}

#endif
