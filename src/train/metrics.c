/* metrics.c: the history in memory and the file metrics.jsonl. The form of a line is in metrics_line.c. */
#include "train/metrics.h"

#include "io/file.h"
#include "train/metrics_line.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <unistd.h>

pc__epoch_record pc__epoch_unknown(int epoch)
{
    return (pc__epoch_record){.epoch = epoch,
#define UNKNOWN(name) .name = NAN,
                              PC__EPOCH_FIELDS(UNKNOWN)
#undef UNKNOWN
    };
}

pc_status pc__history_add(pc__history *history, const pc__epoch_record *record)
{
    void *epochs = history->epochs;
    PC__TRY(pc__grow(&epochs, &history->capacity, history->count, sizeof *record));
    history->epochs = epochs;
    history->epochs[history->count++] = *record;
    return PC_OK;
}

void pc__history_free(pc__history *history)
{
    pc__free(history->epochs);
    *history = (pc__history){0};
}

static int write_synced(int fd, const char *bytes, size_t n)
{
    int problem = pc__file_put(fd, bytes, n);
    return problem || fsync(fd) == 0 || errno == EINVAL ? problem
                                                        : errno; /* EINVAL: a pipe or device, no disk behind it */
}

static pc_status append(const char *path, const char *bytes, size_t n)
{
    int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
    if (fd < 0)
        return pc__fail_file(errno, "cannot write %s", path);
    off_t before = lseek(fd, 0, SEEK_END);
    int problem = write_synced(fd, bytes, n);
    if (problem && before >= 0 && ftruncate(fd, before) != 0)
        pc__log(PC_LOG_WARNING, "%s ends in half a line, which the next resume will cut", path);
    if (close(fd) != 0 && !problem)
        problem = errno;
    return problem ? pc__fail_file(problem, "cannot write %s", path) : PC_OK;
}

pc_status pc__metrics_append(const char *path, const pc__epoch_record *record, const double *recall, int classes)
{
    pc__text line = {0};
    pc__metrics_line_write(&line, record, recall, classes);
    pc_status status = line.failed ? PC_ERR_MEMORY : append(path, line.data, line.length);
    pc__text_free(&line);
    return status;
}

/* Epochs ascend, so what stays is the beginning of the file: `kept` bytes of it. */
static pc_status read_records(const char *path, const char *bytes, size_t n, int upto, pc__history *history,
                              size_t *kept)
{
    *kept = 0;
    for (int number = 1; *kept < n; number++) {
        const char *line = bytes + *kept, *newline = memchr(line, '\n', n - *kept);
        size_t length = newline ? (size_t)(newline - line) : n - *kept;
        bool last = !newline || newline + 1 == bytes + n;
        pc__epoch_record record;
        if (!pc__metrics_line_read(line, length, &record))
            return last ? PC_OK
                        : pc__fail(PC_ERR_FORMAT,
                                   "%s, line %d is no record of an epoch; remove the line, or the whole file", path,
                                   number);
        if (history->count && record.epoch <= history->epochs[history->count - 1].epoch)
            return pc__fail(PC_ERR_FORMAT, "%s, line %d: epoch %d comes after epoch %d; remove the line that is wrong",
                            path, number, record.epoch, history->epochs[history->count - 1].epoch);
        if (record.epoch > upto)
            return PC_OK;
        PC__TRY(pc__history_add(history, &record));
        *kept += length + 1;
    }
    return PC_OK;
}

pc_status pc__metrics_load(const char *path, int upto_epoch, pc__history *history)
{
    *history = (pc__history){0};
    if (access(path, F_OK) != 0 && errno == ENOENT)
        return PC_OK;
    uint8_t *bytes;
    size_t n, kept = 0;
    PC__TRY(pc__file_read(path, &bytes, &n));
    pc_status status = read_records(path, (const char *)bytes, n, upto_epoch, history, &kept);
    if (status == PC_OK && kept > n)
        bytes[n] = '\n'; /* a whole last record without its newline gets one, in the byte behind the content */
    if (status == PC_OK && kept != n)
        status = pc__file_write(path, bytes, kept);
    pc__free(bytes);
    if (status != PC_OK)
        pc__history_free(history);
    return status;
}

pc_status pc__metrics_read(const char *path, pc__history *history)
{
    uint8_t *bytes;
    size_t n, kept;
    *history = (pc__history){0};
    PC__TRY(pc__file_read(path, &bytes, &n));
    pc_status status = read_records(path, (const char *)bytes, n, INT_MAX, history, &kept);
    pc__free(bytes);
    if (status != PC_OK)
        pc__history_free(history);
    return status;
}
