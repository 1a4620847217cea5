/* safetensors.c: files of named tensors: opened, asked, read one tensor at a time. */
#include "io/file.h"
#include "io/safetensors.h"
#include "io/torch_file.h"
#include "tensor/read.h"

#include <errno.h>
#include <paracord/no_grad.h>
#include <unistd.h>

/* All n bytes at `from`, wherever the file's position is. */
pc_status pc__weights_bytes(const pc_weights *w, int64_t from, void *to, size_t n)
{
    for (char *at = to; n;) {
        const ssize_t got = pread(w->fd, at, n, from);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return pc__fail_file(errno, "cannot read %s", w->path);
        if (got == 0)
            return pc__fail(PC_ERR_FILE, "cannot read %s: it became shorter while it was read", w->path);
        at += got, from += got, n -= (size_t)got;
    }
    return PC_OK;
}

static pc_status no_file(const pc_weights *w)
{
    return pc__fail(PC_ERR_FORMAT, "%s is not a safetensors file, nor one of torch.save", w->path);
}

static pc_status read_header(pc_weights *w, int64_t size, bool may_be_index)
{
    uint8_t front[64] = {0};
    uint64_t n = 0;
    PC__TRY(pc__weights_bytes(w, 0, front, (size_t)PC__MIN(size, (int64_t)sizeof front)));
    if (pc__is_lfs_pointer(front, sizeof front))
        return pc__fail_lfs(w->path);
    if (pc__is_torch_file(front))
        return pc__torch_file_index(w, size);
    if (may_be_index && pc__is_weights_index(front))
        return pc__weights_index(w, size);
    for (int i = 7; i >= 0; i--)
        n = n << 8 | front[i];
    if (!front[8] || !strchr("{ \t\n\r", front[8]) || n < 2 || n > PC__WEIGHTS_HEADER_MAX)
        return no_file(w);
    if ((int64_t)n > size - 8)
        return pc__fail(PC_ERR_FORMAT, "%s is truncated in its header", w->path);
    char *header = pc__alloc((size_t)n);
    if (!header)
        return PC_ERR_MEMORY;
    w->start = 8 + (int64_t)n;
    pc_status status = pc__weights_bytes(w, 8, header, (size_t)n);
    if (status == PC_OK)
        status = pc__weights_header(w, header, (size_t)n, size - w->start);
    pc__free(header);
    return status;
}

static pc_weights *open_file(const char *path, bool may_be_index)
{
    int64_t size = 0;
    pc_weights *w = pc__calloc(1, sizeof *w);
    if (!w)
        return NULL;
    w->fd = -1;
    w->path = pc__strdup(path);
    pc_status status = w->path ? pc__file_open(path, &w->fd, &size) : PC_ERR_MEMORY;
    if (status == PC_OK && size < 0)
        status =
            pc__fail(PC_ERR_FILE, "cannot read %s: safetensors are read in any order, from a file and no pipe", path);
    if (status == PC_OK)
        status = read_header(w, size, may_be_index);
    if (status == PC_OK)
        return w;
    pc_weights_free(w);
    return NULL;
}

pc_weights *pc_weights_open(const char *path)
{
    PC__NEED_OR(NULL, path);
    return open_file(path, true);
}

pc_weights *pc__weights_open_one(const char *path)
{
    return open_file(path, false);
}

void pc_weights_free(pc_weights *w)
{
    if (!w)
        return;
    if (w->fd >= 0)
        close(w->fd);
    for (int i = 0; i < w->count; i++)
        pc__free(w->list[i].name);
    for (int i = 0; i < w->note_count; i++) {
        pc__free(w->notes[i].key);
        pc__free(w->notes[i].text);
    }
    for (int i = 0; i < w->shard_count; i++)
        pc_weights_free(w->shards[i]);
    pc__free(w->shards);
    pc__free(w->list);
    pc__free(w->notes);
    pc__free(w->path);
    pc__free(w);
}

int pc_weights_count(const pc_weights *weights)
{
    PC__NEED_OR(0, weights);
    return weights->count;
}

static void tell(const pc__weight *t, pc_weights_entry *entry)
{
    *entry = (pc_weights_entry){.name = t->name,
                                .type = t->type->name,
                                .dtype = t->type->dtype,
                                .shape = pc_shape_of(PC__MIN(t->ndim, PC_MAX_DIMS), t->shape),
                                .readable = t->ndim <= PC_MAX_DIMS && t->type->how != 'x' && !t->unfinished};
}

pc_status pc_weights_query(const pc_weights *weights, int i, pc_weights_entry *entry)
{
    PC__NEED(weights);
    PC__NEED(entry);
    if (i < 0 || i >= weights->count)
        return pc__fail(PC_ERR_RANGE, "pc_weights_query: %s has no tensor %d; it has %d", weights->path, i,
                        weights->count);
    tell(&weights->list[i], entry);
    return PC_OK;
}

static const pc__weight *find(const pc_weights *w, const char *name)
{
    const pc__weight *t = pc__weights_find(w, name);
    return t ? t : pc__null(PC_ERR_NOT_FOUND, "%s has no tensor \"%.80s\"", w->path, name);
}

pc_status pc_weights_find(const pc_weights *weights, const char *name, pc_weights_entry *entry)
{
    PC__NEED(weights);
    PC__NEED(name);
    PC__NEED(entry);
    const pc__weight *t = find(weights, name);
    if (!t)
        return pc_error_last()->status;
    tell(t, entry);
    return PC_OK;
}

const char *pc_weights_note(const pc_weights *weights, const char *key)
{
    PC__NEED_OR(NULL, weights);
    PC__NEED_OR(NULL, key);
    for (int i = 0; i < weights->note_count; i++)
        if (strcmp(weights->notes[i].key, key) == 0)
            return weights->notes[i].text;
    return NULL;
}

static int64_t whole_of(const char *word, const uint8_t *at)
{
    int16_t i16;
    uint16_t u16;
    uint32_t u32;
    memcpy(&i16, at, word[1] == '8' ? 1 : 2);
    memcpy(&u16, at, word[1] == '8' ? 1 : 2);
    if (strcmp(word, "I8") == 0)
        return (int8_t)*at;
    if (strcmp(word, "U32") == 0)
        return memcpy(&u32, at, 4), u32;
    return word[0] == 'I' ? i16 : u16;
}

/* From the end, so that it can be done where the numbers lie. */
static void widen(const pc__weight *t, uint8_t *data, int64_t count, int to)
{
    const int from = t->type->bits / 8;
    for (int64_t i = count - 1; i >= 0; i--) {
        const int64_t whole = whole_of(t->type->name, data + i * from);
        const int32_t small = (int32_t)whole;
        memcpy(data + i * to, to == 8 ? (const void *)&whole : (const void *)&small, (size_t)to);
    }
}

/* As it lies. */
static pc_tensor *read_bytes(const pc_weights *w, const pc__weight *t, pc_shape shape)
{
    pc_tensor *out = pc_empty(shape, t->type->dtype, PC_DEVICE_CPU);
    uint8_t *data = out ? pc__data(out) : NULL;
    const int64_t count = out ? pc_tensor_count(out) : 0;
    const pc_weights *file = w->shards ? w->shards[t->shard] : w;
    if (!count)
        return out;
    if (pc__weights_bytes(file, file->start + t->begin, data, (size_t)(t->end - t->begin)) != PC_OK)
        return pc__tensor_discard(out);
    if (t->type->how == 'w')
        widen(t, data, count, (int)pc_dtype_size(t->type->dtype));
    for (int64_t i = 0; t->type->dtype == PC_BOOL && i < count; i++)
        data[i] = data[i] != 0;
    return out;
}

/* All from the first number to the last one, and of these its own. */
static pc_tensor *read_strided(const pc_weights *w, const pc__weight *t)
{
    pc__meta meta = {.dtype = t->type->dtype, .ndim = t->ndim};
    memcpy(meta.shape, t->shape, sizeof meta.shape);
    memcpy(meta.strides, t->strides, sizeof meta.strides);
    pc_tensor *made = NULL;
    PC_NO_GRAD
        PC_SCOPE {
            pc_tensor *all = read_bytes(w, t, PC_SHAPE((t->end - t->begin) / (t->type->bits / 8)));
            meta.view_of = all;
            meta.offset = all ? all->offset : 0;
            made = all ? pc_keep(pc_contiguous(pc__tensor_new(&meta, PC_DEVICE_CPU))) : NULL;
        }
    return made;
}

static pc_tensor *read_tensor(const pc_weights *w, const pc__weight *t)
{
    return t->strided ? read_strided(w, t) : read_bytes(w, t, pc_shape_of(t->ndim, t->shape));
}

pc_status pc__weights_finished(const pc_weights *w, const pc__weight *t)
{
    return t->unfinished
               ? pc__fail(PC_ERR_UNSUPPORTED,
                          "%s: the tensor \"%.80s\" is to be negated, or the like, when it is read; in Python "
                          ".resolve_neg() does that",
                          w->path, t->name)
               : PC_OK;
}

pc_tensor *pc_weights_read(const pc_weights *weights, const char *name, pc_device device)
{
    PC__NEED_OR(NULL, weights);
    PC__NEED_OR(NULL, name);
    const pc__weight *t = pc__device_check(device, "pc_weights_read") == PC_OK ? find(weights, name) : NULL;
    if (!t || pc__weights_finished(weights, t) != PC_OK)
        return NULL;
    if (t->type->how == 'x' || t->ndim > PC_MAX_DIMS)
        return pc__null(PC_ERR_UNSUPPORTED,
                        "%s: the tensor \"%.80s\" has %d dimensions of %s; read are up to %d of BOOL, "
                        "U8, I8, I16, U16, I32, U32, I64, F16, BF16, F32 and F64",
                        weights->path, name, t->ndim, t->type->name, PC_MAX_DIMS);
    if (device.type == PC_DEVICE_CPU.type)
        return read_tensor(weights, t);
    pc_tensor *there = NULL;
    PC_SCOPE {
        pc_tensor *here = read_tensor(weights, t);
        there = here ? pc_keep(pc_to(here, device, t->type->dtype, false)) : NULL;
    }
    return there;
}
