/* safetensors_write.c: tensors into a safetensors file, one at a time through a buffer. */
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
        for (const char *c = list[i].name; *c; c += pc__utf8_length(c))
            if (!pc__utf8_length(c))
                return pc__fail(PC_ERR_ARGUMENT, "cannot write %s: the name of tensor %d is not UTF-8", path, i);
        if (strcmp(list[i].name, "__metadata__") == 0)
            return pc__fail(PC_ERR_ARGUMENT, "cannot write %s: no tensor can be called \"__metadata__\"", path);
    }
    return count ? check_names(path, list, count) : PC_OK;
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

static pc_status put_all(int fd, const char *path, const pc__text *header, const pc_parameter *list, int count,
                         uint8_t *buffer)
{
    int problem = pc__file_put(fd, header->data, header->length);
    for (int i = 0; !problem && i < count; i++) {
        const size_t bytes = bytes_of(list[i].tensor);
        if (bytes)
            PC__TRY(pc__read(list[i].tensor, buffer, bytes, "pc_weights_write"));
        problem = pc__file_put(fd, buffer, bytes);
    }
    return problem ? pc__fail_file(problem, "cannot write %s", path) : PC_OK;
}

static pc_status put_file(const char *path, const char *temporary, const pc__text *header, const pc_parameter *list,
                          int count)
{
    size_t most = 1;
    for (int i = 0; i < count; i++)
        most = PC__MAX(most, bytes_of(list[i].tensor));
    uint8_t *buffer = pc__alloc(most);
    if (!buffer)
        return PC_ERR_MEMORY;
    const int fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    pc_status status =
        fd < 0 ? pc__fail_file(errno, "cannot write %s", path) : put_all(fd, path, header, list, count, buffer);
    if (fd >= 0 && close(fd) != 0 && status == PC_OK)
        status = pc__fail_file(errno, "cannot write %s", path);
    if (fd >= 0 && status != PC_OK)
        unlink(temporary);
    pc__free(buffer);
    return status == PC_OK ? pc__file_commit(temporary, path) : status;
}

pc_status pc_weights_write(const char *path, const pc_parameter *list, int count, const pc_weights_note_pair *notes)
{
    PC__NEED(path);
    if (count)
        PC__NEED(list);
    PC__TRY(check(path, list, count));
    pc__text header = {0};
    add_header(&header, list, count, notes);
    char *temporary = header.failed ? NULL : pc__file_temporary(path);
    const pc_status status = temporary ? put_file(path, temporary, &header, list, count) : PC_ERR_MEMORY;
    pc__free(temporary);
    pc__text_free(&header);
    return status;
}
