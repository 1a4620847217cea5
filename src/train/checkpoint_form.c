/* checkpoint_form.c: bytes of a checkpoint, and whether they can be believed. */
#include "train/checkpoint_form.h"

#include "io/checksum.h"
#include "io/file.h"

#include <limits.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/stat.h>

enum { MAGIC = 8, VERSION_AT = 6 };
static const char magic[MAGIC + 1] = "PCCKPT07", before[MAGIC + 1] = "PCCKPT06", first[MAGIC + 1] = "PCCKPT05";

typedef struct front {
    char magic[MAGIC];
    uint64_t length, checksum;
} front;

void pc__checkpoint_put_head(pc__text *out, const pc__checkpoint_header *h, const char *about, const pc__curve *curve)
{
    front f = {{0}, 0, 0};
    memcpy(f.magic, magic, MAGIC);
    pc__text_append(out, (const char *)&f, sizeof f);
    pc__text_append(out, (const char *)h, sizeof *h);
    pc__text_append(out, about, (size_t)h->about);
    pc__text_append(out, (const char *)curve->groups, (size_t)h->curve_count * sizeof *curve->groups);
}

void pc__checkpoint_seal(pc__text *out)
{
    front f;
    if (out->failed)
        return;
    memcpy(&f, out->data, sizeof f);
    f.length = out->length - sizeof f;
    f.checksum = pc__checksum(PC__CHECKSUM_BEGIN, out->data + sizeof f, f.length);
    memcpy(out->data, &f, sizeof f);
}

pc_status pc__checkpoint_damaged(const char *path, const char *how)
{
    return pc__fail(PC_ERR_FORMAT, "%s is no checkpoint that can be resumed: %s; delete it to begin anew", path, how);
}

static bool is_possible_epoch(const pc__checkpoint_epoch *e, int64_t most)
{
    return e->epoch >= 0 && e->epoch <= most && e->epochs >= 0 && e->epochs <= INT_MAX && e->never_named >= 0 &&
           e->never_named <= INT_MAX && (e->has_test == 0 || e->has_test == 1) && e->metrics >= 0 &&
           e->metrics <= PC_METRICS_MAX && (e->uneven == 0 || e->uneven == 1);
}

/* A file that someone made may say anything: only what a training can be in is believed. */
static bool is_possible(const pc__checkpoint_header *h)
{
    bool position = h->epoch >= 0 && h->epoch < INT_MAX && h->batch >= 0 && h->correct >= 0 && h->correct <= h->seen &&
                    h->ignored >= 0 && h->ignored <= h->seen - h->correct && h->seconds >= 0;
    bool counts = h->parameters >= 0 && h->tensors >= h->parameters && (h->kept == 0 || h->kept >= h->parameters) &&
                  (h->kept == 0 || h->best.epoch > 0);
    return position && counts && is_possible_epoch(&h->last, h->epoch) && is_possible_epoch(&h->best, h->epoch) &&
           h->step >= 0 && isfinite(h->lr) && (h->finished == 0 || h->finished == 1);
}

/* Behind the header: `n` bytes. */
static bool take_rest(pc__checkpoint_file *file, const uint8_t *bytes, size_t n)
{
    const pc__checkpoint_header *h = &file->header;
    if (h->about < 0 || (uint64_t)h->about > n || h->curve_count < 0 || h->curve_count > PC__CURVE_GROUPS ||
        h->curve_width < (h->curve_count > 0) || h->curve_width > INT64_MAX / (2 * PC__CURVE_GROUPS))
        return false;
    const size_t about = (size_t)h->about, curve = (size_t)h->curve_count * sizeof *file->curve.groups;
    if (n - about < curve)
        return false;
    file->about = (const char *)bytes;
    file->curve.width = h->curve_width;
    file->curve.count = h->curve_count;
    memcpy(file->curve.groups, bytes + about, curve);
    file->tensors = bytes + about + curve;
    file->tensor_bytes = n - about - curve;
    return true;
}

/* Bytes of the header that a file which begins so has; 0: it is none that is read here. */
static size_t header_of(const uint8_t *bytes, size_t n)
{
    if (n >= MAGIC && (memcmp(bytes, magic, MAGIC) == 0 || memcmp(bytes, before, MAGIC) == 0))
        return sizeof(pc__checkpoint_header);
    return n >= MAGIC && memcmp(bytes, first, MAGIC) == 0 ? offsetof(pc__checkpoint_header, ignored) : 0;
}

static pc_status take(const char *path, const uint8_t *bytes, size_t n, pc__checkpoint_file *file)
{
    front f;
    const size_t header = header_of(bytes, n), head = sizeof f + header;
    if (!header && n >= MAGIC && memcmp(bytes, magic, VERSION_AT) == 0)
        return pc__fail(PC_ERR_FORMAT,
                        "%s was written by another version of Paracord (%.8s, and this one reads %s); go on with it by "
                        "that version, or delete it to begin anew",
                        path, (const char *)bytes, magic);
    if (!header || n < head)
        return pc__checkpoint_damaged(path, "it does not begin like one");
    memcpy(&f, bytes, sizeof f);
    if (f.length != n - sizeof f)
        return pc__checkpoint_damaged(path, "it is truncated");
    if (f.checksum != pc__checksum(PC__CHECKSUM_BEGIN, bytes + sizeof f, f.length))
        return pc__checkpoint_damaged(path, "its checksum is wrong");
    file->counts = memcmp(bytes, magic, MAGIC) != 0;
    memcpy(&file->header, bytes + sizeof f, header);
    file->header.settings[sizeof file->header.settings - 1] = 0;
    if (!is_possible(&file->header) || !take_rest(file, bytes + head, n - head))
        return pc__checkpoint_damaged(path, "no training can stand where it says");
    return PC_OK;
}

pc_status pc__checkpoint_open(const char *path, pc__checkpoint_file *file)
{
    size_t n;
    *file = (pc__checkpoint_file){0};
    PC__TRY(pc__file_read(path, &file->bytes, &n));
    pc_status status = take(path, file->bytes, n, file);
    if (status != PC_OK)
        pc__checkpoint_close(file);
    return status;
}

void pc__checkpoint_close(pc__checkpoint_file *file)
{
    pc__free(file->bytes);
    *file = (pc__checkpoint_file){0};
}

bool pc__is_checkpoint(const char *path)
{
    char begin[VERSION_AT] = {0};
    struct stat info; /* opening a FIFO would wait for a writer */
    FILE *file = stat(path, &info) == 0 && S_ISREG(info.st_mode) ? fopen(path, "rbe") : NULL;
    size_t n = file ? fread(begin, 1, sizeof begin, file) : 0;
    if (file)
        fclose(file);
    return n == sizeof begin && memcmp(begin, magic, sizeof begin) == 0;
}
