/* train_checkpoint_sum.c: the checksum of a checkpoint, the first of its notes, in which it counts as zeros itself. */
#include "gpt/train.h"
#include "io/checksum.h"
#include "train/checkpoint_form.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

/* Behind the header's length, as src/io/safetensors_write.c has it. */
static const char front[] = "{\"__metadata__\":{\"checksum\":\"";
enum { DIGITS = 16, AT = 8 + sizeof front - 1, PIECE = 1 << 20 };

static pc_status read_all(int fd, const char *path, uint8_t *bytes, size_t n, int64_t at)
{
    while (n) {
        const ssize_t got = pread(fd, bytes, n, (off_t)at);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return pc__fail_file(got ? errno : EIO, "cannot read %s", path);
        bytes += got, at += got, n -= (size_t)got;
    }
    return PC_OK;
}

/* Piece by piece; `has`: the digits that are there. */
static pc_status sum_pieces(int fd, const char *path, int64_t size, uint8_t *piece, char has[DIGITS], uint64_t *sum)
{
    *sum = PC__CHECKSUM_BEGIN;
    for (int64_t at = 0; at < size; at += PIECE) {
        const size_t n = (size_t)PC__MIN(PIECE, size - at);
        PC__TRY(read_all(fd, path, piece, n, at));
        if (!at) {
            memcpy(has, piece + AT, DIGITS);
            memset(piece + AT, '0', DIGITS);
        }
        *sum = pc__checksum(*sum, piece, n);
    }
    return PC_OK;
}

/* *summed becomes true where there are digits at all. */
static pc_status sum_file(int fd, const char *path, bool *summed, char has[DIGITS], char digits[DIGITS + 1])
{
    struct stat info;
    uint64_t sum = 0;
    char begin[AT] = {0};
    if (fstat(fd, &info) != 0)
        return pc__fail_file(errno, "cannot read %s", path);
    if (info.st_size < AT + DIGITS)
        return PC_OK;
    PC__TRY(read_all(fd, path, (uint8_t *)begin, AT, 0));
    *summed = memcmp(begin + 8, front, sizeof front - 1) == 0;
    uint8_t *piece = *summed ? pc__alloc(PIECE) : NULL;
    if (*summed && !piece)
        return PC_ERR_MEMORY;
    const pc_status status = *summed ? sum_pieces(fd, path, (int64_t)info.st_size, piece, has, &sum) : PC_OK;
    pc__free(piece);
    snprintf(digits, DIGITS + 1, "%016llx", (unsigned long long)sum);
    return status;
}

static pc_status put_digits(int fd, const char *path, const char digits[DIGITS])
{
    const ssize_t put = pwrite(fd, digits, DIGITS, AT);
    return put == DIGITS ? PC_OK : pc__fail_file(put < 0 ? errno : ENOSPC, "cannot write %s", path);
}

/* Opened anew: what other hosts have written is sure to be seen then (close-to-open of NFS). */
pc_status pc__gpt_checkpoint_seal(const char *temporary, const char *path)
{
    bool summed = false;
    char has[DIGITS], digits[DIGITS + 1];
    const int fd = open(temporary, O_RDWR | O_CLOEXEC);
    if (fd < 0)
        return pc__fail_file(errno, "cannot write %s", path);
    pc_status status = sum_file(fd, path, &summed, has, digits);
    if (status == PC_OK && summed)
        status = put_digits(fd, path, digits);
    if (close(fd) != 0 && status == PC_OK)
        status = pc__fail_file(errno, "cannot write %s", path);
    return status;
}

pc_status pc__gpt_checkpoint_check(const pc_weights *file)
{
    bool summed = false;
    char has[DIGITS], digits[DIGITS + 1];
    PC__TRY(sum_file(file->fd, file->path, &summed, has, digits));
    return !summed || memcmp(has, digits, DIGITS) == 0 ? PC_OK
                                                       : pc__checkpoint_damaged(file->path, "its checksum is wrong");
}
