/* kind.h: what differs between loaders: what their samples are, and how a batch is made of them. Everything else (order,
 * epochs, batches ahead, the way to a device) is done once for all kinds.
 *
 * A batch goes to another device as parts: tensors with one row a sample, dense, which a kind fills in host memory and of
 * which it makes the batch's tensors there. */
#ifndef PC__KIND_H
#define PC__KIND_H

#include "tensor/tensor.h"

#include <paracord/loader.h>

typedef struct pc__source pc__source;
typedef struct pc__made pc__made;

typedef struct pc__kind {
    /* The tensors of the batch that made->first, n and samples name, on the CPU, by up to `threads` threads. */
    pc_status (*here)(const pc__source *source, int threads, pc__made *made);
    /* The rows of its parts, into memory for each of them. */
    pc_status (*fill)(const pc__source *source, int threads, const pc__made *made, void *const *parts);
    /* Its tensors from its parts on the device: work of the current stream. */
    pc_status (*finish)(const pc__source *source, pc__made *made);
    /* Where the source has `kept` or `resident`: its tensors from these, on the program's thread and its current stream. */
    pc_status (*make_there)(const pc__source *source, pc__made *made);
    /* A number for what there is, begun with `hash`. */
    uint64_t (*fingerprint)(const pc__source *source, uint64_t hash);
    /* The class of a sample; NULL: samples have none. */
    int (*label)(const pc__source *source, int64_t sample);
    void (*close)(pc__source *source);
} pc__kind;

/* A tensor with a row of `field` for each of n samples. */
static inline void pc__rows_meta(pc__meta *meta, const pc_field *field, int64_t n)
{
    int64_t shape[PC_MAX_DIMS] = {n};
    for (int i = 0; i < field->shape.ndim; i++)
        shape[i + 1] = field->shape.dim[i];
    pc__meta_contiguous(meta, field->dtype, field->shape.ndim + 1, shape);
}

static inline size_t pc__field_bytes(const pc_field *field)
{
    return (size_t)pc__count(field->shape.ndim, field->shape.dim) * pc_dtype_size(field->dtype);
}

/* FNV-1a, over the text and its end, and over bytes. */
static inline uint64_t pc__hash_bytes(uint64_t hash, const void *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        hash = (hash ^ ((const unsigned char *)bytes)[i]) * 0x100000001b3u;
    return hash;
}

static inline uint64_t pc__hash_text(uint64_t hash, const char *text)
{
    return pc__hash_bytes(hash, text, strlen(text) + 1);
}

#endif
