/* safetensors_write.c: tensors into a safetensors file, one at a time through a buffer, or by several processes at once. */
#include "io/file.h"
#include "io/safetensors.h"
#include "tensor/read.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

static int by_name(const void *a, const void *b)
{
    return strcmp((*(pc_parameter *const *)a)->name, (*(pc_parameter *const *)b)->name);
}

static pc_status check_names(const char *path, const pc_parameter *list, int count)
{
    const pc_parameter **sorted = pc__alloc((size_t)count * sizeof *sorted);
    if (!sorted)
        return PC_ERR_MEMORY;
    for (int i = 0; i < count; i++)
        sorted[i] = &list[i];
    pc_status status = PC_OK;
    qsort(sorted, (size_t)count, sizeof *sorted, by_name);
    for (int i = 1; i < count && status == PC_OK; i++)
        if (strcmp(sorted[i]->name, sorted[i - 1]->name) == 0)
            status =
                pc__fail(PC_ERR_ARGUMENT, "cannot write %s: two tensors are called \"%.80s\"", path, sorted[i]->name);
    pc__free(sorted);
    return status;
}

static pc_status check(const char *path, const pc_parameter *list, int count)
{
    if (count < 0)
        return pc__fail(PC_ERR_ARGUMENT, "cannot write %s: %d tensors", path, count);
    for (int i = 0; i < count; i++) {
        if (!list[i].tensor)
            return pc__fail(PC_ERR_ARGUMENT, "cannot write %s: the tensor \"%.80s\" is NULL", path, list[i].name);
        if (!pc__is_utf8(list[i].name))
            return pc__fail(PC_ERR_ARGUMENT, "cannot write %s: the name of tensor %d is not UTF-8", path, i);
        if (strcmp(list[i].name, "__metadata__") == 0)
            return pc__fail(PC_ERR_ARGUMENT, "cannot write %s: no tensor can be called \"__metadata__\"", path);
    }
    return count ? check_names(path, list, count) : PC_OK;
}

static pc_status check_notes(const char *path, const pc_weights_note_pair *notes)
{
    for (; notes && notes->key; notes++)
        if (!pc__is_utf8(notes->key) || (notes->text && !pc__is_utf8(notes->text)))
            return pc__fail(PC_ERR_ARGUMENT, "cannot write %s: the note \"%.80s\" is not UTF-8", path, notes->key);
    return PC_OK;
}

static size_t bytes_of(const pc_tensor *t)
{
    return (size_t)pc_tensor_count(t) * pc_dtype_size(t->dtype);
}

static void add_notes(pc__text *out, const pc_weights_note_pair *notes)
{
    pc__text_add(out, "\"__metadata__\":{");
    for (const char *comma = ""; notes->key; notes++, comma = ",") {
        pc__text_add(out, "%s", comma);
        pc__json_string(out, notes->key);
        pc__text_add(out, ":");
        pc__json_string(out, notes->text ? notes->text : "");
    }
    pc__text_add(out, "}");
}

static void add_tensor(pc__text *out, const pc_parameter *p, size_t *at)
{
    pc__json_string(out, p->name);
    pc__text_add(out, ":{\"dtype\":\"%s\",\"shape\":[", pc__weight_type_for(p->tensor->dtype)->name);
    for (int i = 0; i < p->tensor->ndim; i++)
        pc__text_add(out, "%s%lld", i ? "," : "", (long long)p->tensor->shape[i]);
    pc__text_add(out, "],\"data_offsets\":[%zu,%zu]}", *at, *at + bytes_of(p->tensor));
    *at += bytes_of(p->tensor);
}

/* Padded with spaces, so that the tensors begin at a multiple of 8 bytes. */
static void add_header(pc__text *out, const pc_parameter *list, int count, const pc_weights_note_pair *notes)
{
    const bool noted = notes && notes->key;
    size_t at = 0;
    pc__text_append(out, "\0\0\0\0\0\0\0\0{", 9);
    if (noted)
        add_notes(out, notes);
    for (int i = 0; i < count; i++) {
        pc__text_add(out, "%s", noted || i ? "," : "");
        add_tensor(out, &list[i], &at);
    }
    pc__text_add(out, "}");
    while (!out->failed && out->length % 8)
        pc__text_append(out, " ", 1);
    for (int i = 0; !out->failed && i < 8; i++)
        out->data[i] = (char)((uint64_t)(out->length - 8) >> 8 * i);
}

/* Where tensor number i begins, behind the header. */
static int64_t begin_of(const pc_parameter *list, int i)
{
    size_t at = 0;
    for (int k = 0; k < i; k++)
        at += bytes_of(list[k].tensor);
    return (int64_t)at;
}

static int put_at(int fd, const uint8_t *bytes, size_t n, int64_t at)
{
    while (n) {
        const ssize_t written = pwrite(fd, bytes, n, (off_t)at);
        if (written < 0 && errno != EINTR)
            return errno;
        const size_t done = written > 0 ? (size_t)written : 0;
        bytes += done, n -= done, at += (int64_t)done;
    }
    return 0;
}

int64_t pc__runs_next(const pc__runs *runs, int64_t x, int64_t end, int64_t *at)
{
    *at = x;
    if (!runs->run)
        return end - x;
    const int64_t in = x % runs->run;
    const bool kept = in < runs->kept;
    *at = kept ? runs->first + x / runs->run * runs->step + in : -1;
    return PC__MIN(end - x, (kept ? runs->kept : runs->run) - in);
}

/* The bytes of a part of the tensor that begins there. */
static int put_part(int fd, const pc__weights_part *part, int64_t begin, const uint8_t *bytes, int64_t n)
{
    int problem = 0;
    for (int64_t done = 0, at, run; done < n && !problem; done += run) {
        run = pc__runs_next(&part->runs, part->at + done, part->at + n, &at);
        problem = at < 0 ? 0 : put_at(fd, bytes + done, (size_t)run, begin + at);
    }
    return problem;
}

/* Parts come in the order of their tensors, mostly, so that where these begin is counted on. */
static pc_status put_parts(int fd, const char *path, int64_t start, const pc_parameter *list,
                           const pc__weights_part *parts, int count, uint8_t *buffer)
{
    int tensor = 0;
    int64_t begin = start;
    for (int i = 0; i < count; i++) {
        if (parts[i].tensor < tensor)
            tensor = parts[i].tensor, begin = start + begin_of(list, tensor);
        for (; tensor < parts[i].tensor; tensor++)
            begin += (int64_t)bytes_of(list[tensor].tensor);
        const size_t bytes = bytes_of(parts[i].t);
        if (bytes)
            PC__TRY(pc__read(parts[i].t, buffer, bytes, "pc_weights_write"));
        const int problem = put_part(fd, &parts[i], begin, buffer, (int64_t)bytes);
        if (problem)
            return pc__fail_file(problem, "cannot write %s", path);
    }
    return PC_OK;
}

pc_status pc__weights_put(const char *path, const char *temporary, int64_t start, const pc_parameter *list,
                          const pc__weights_part *parts, int count)
{
    size_t most = 1;
    for (int i = 0; i < count; i++)
        most = PC__MAX(most, bytes_of(parts[i].t));
    uint8_t *buffer = pc__alloc(most);
    if (!buffer)
        return PC_ERR_MEMORY;
    const int fd = open(temporary, O_WRONLY | O_CLOEXEC);
    pc_status status =
        fd < 0 ? pc__fail_file(errno, "cannot write %s", path) : put_parts(fd, path, start, list, parts, count, buffer);
    if (status == PC_OK && fsync(fd) != 0)
        status = pc__fail_file(errno, "cannot write %s", path);
    if (fd >= 0 && close(fd) != 0 && status == PC_OK)
        status = pc__fail_file(errno, "cannot write %s", path);
    pc__free(buffer);
    return status;
}

static pc_status fill(const char *path, const pc__text *header, int64_t bytes, pc__draft *draft)
{
    PC__TRY(pc__file_begin(path, draft));
    int problem = pc__file_put(draft->fd, header->data, header->length);
    if (!problem && ftruncate(draft->fd, (off_t)header->length + (off_t)bytes) != 0)
        problem = errno;
    if (problem)
        pc__file_drop(draft);
    return problem ? pc__fail_file(problem, "cannot write %s", path) : PC_OK;
}

pc_status pc__weights_begin(const char *path, const pc_parameter *list, int count, const pc_weights_note_pair *notes,
                            pc__draft *draft, int64_t *start)
{
    *draft = (pc__draft){.fd = -1};
    PC__TRY(check(path, list, count));
    PC__TRY(check_notes(path, notes));
    pc__text header = {0};
    add_header(&header, list, count, notes);
    const pc_status status = header.failed ? PC_ERR_MEMORY : fill(path, &header, begin_of(list, count), draft);
    *start = (int64_t)header.length;
    pc__text_free(&header);
    return status;
}

pc_status pc_weights_write(const char *path, const pc_parameter *list, int count, const pc_weights_note_pair *notes)
{
    pc__draft draft;
    int64_t start;
    PC__NEED(path);
    if (count)
        PC__NEED(list);
    PC__TRY(pc__weights_begin(path, list, count, notes, &draft, &start));
    pc__weights_part *parts = pc__alloc((size_t)count * sizeof *parts);
    for (int i = 0; parts && i < count; i++)
        parts[i] = (pc__weights_part){.tensor = i, .t = list[i].tensor};
    pc_status status = parts ? pc__weights_put(path, draft.temporary, start, list, parts, count) : PC_ERR_MEMORY;
    if (status == PC_OK)
        status = pc__file_commit(&draft, path);
    else
        pc__file_drop(&draft);
    pc__free(parts);
    return status;
}
