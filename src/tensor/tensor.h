/* tensor.h: the tensor's inside, and making tensors without any op. */
#ifndef PC__TENSOR_H
#define PC__TENSOR_H

#include "device/life.h"
#include "device/storage.h"

#include <paracord/tensor.h>

struct pc__node; /* the tape's record of the call that made a tensor: autograd/tape.h */

struct pc_tensor {
    atomic_int references;
    uint8_t dtype; /* pc_dtype */
    uint8_t ndim;
    bool requires_grad;
    uint8_t output; /* which output of `node` this is */
    bool moved;     /* a module that had it has another tensor in its place (nn/move.c) */
    bool averaged;  /* it holds an average in the place of what is trained (nn/ema.c) */
    int64_t shape[PC_MAX_DIMS];
    int64_t strides[PC_MAX_DIMS]; /* in elements */
    int64_t offset;               /* of the first element in the storage, in elements */
    pc__storage *storage;
    struct pc__node *node;        /* NULL for leaves; one reference */
    pc_tensor *grad;              /* of leaves; one reference */
    struct pc__leaf_watch *watch; /* of leaves: who watches it (tensor/leaf_watch.h); NULL: nobody */
    pc__life_slot life;
    uint64_t recording; /* number of the one that it was made in; 0: none */
};

/* Shape, strides and place of a tensor that is to be. */
typedef struct pc__meta {
    pc_dtype dtype;
    int ndim;
    int64_t shape[PC_MAX_DIMS];
    int64_t strides[PC_MAX_DIMS];
    int64_t offset;
    pc_tensor *view_of; /* share this one's storage; NULL: memory of its own */
} pc__meta;

/* --- shapes (shape.c) --- */

/* Elements of a shape. */
static inline int64_t pc__count(int ndim, const int64_t *shape)
{
    int64_t n = 1;
    for (int i = 0; i < ndim; i++)
        n *= shape[i];
    return n;
}

/* PC_ERR_SHAPE for more than 8 or negative dimensions, or more elements than fit in memory. */
pc_status pc__shape_check(const char *who, pc_shape shape, pc_dtype dtype);

/* The part of it about the number of dimensions; for lists of dimensions too. */
pc_status pc__ndim_check(const char *who, int ndim);

/* The shape as text, "[2, 3]". */
typedef struct pc__shape_text {
    char s[160];
} pc__shape_text;
pc__shape_text pc__shape_format(int ndim, const int64_t *shape);
#define PC__SHAPE_OF(t) (pc__shape_format((t)->ndim, (t)->shape).s)

/* Set meta to C order, or to the order of channels-last pictures (n, h, w, c for a shape n, c, h, w). */
void pc__meta_contiguous(pc__meta *meta, pc_dtype dtype, int ndim, const int64_t *shape);
void pc__meta_channels_last(pc__meta *meta, pc_dtype dtype, const int64_t shape[4]);

/* meta describes t (as a view of it). */
void pc__meta_of(pc__meta *meta, const pc_tensor *t);

PC__FOR_LEVELS bool pc__is_contiguous(const pc_tensor *t);
PC__FOR_LEVELS bool pc__is_channels_last(const pc_tensor *t); /* 4 dims in n, h, w, c order, and not in C order */
bool pc__is_dense(const pc_tensor *t); /* fills its memory without gaps or overlap, in any order */

/* dim counted from the end when negative; -1 and PC_ERR_RANGE when there is none such. */
int pc__dim(const char *who, int64_t dim, int ndim);

/* Join shapes by broadcasting: right-aligned, equal or 1. PC_ERR_SHAPE names both. */
pc_status pc__broadcast(const char *who, const pc_tensor *a, const pc_tensor *b, int *ndim, int64_t *shape);

static inline bool pc__same_shape(const pc_tensor *a, const pc_tensor *b)
{
    if (a->ndim != b->ndim)
        return false;
    for (int i = 0; i < a->ndim; i++)
        if (a->shape[i] != b->shape[i])
            return false;
    return true;
}

/* The same shape, and the same strides wherever they matter. */
bool pc__same_places(const pc_tensor *a, const pc_tensor *b);

/* Elements from the first to the last of a strided tensor in memory, both counted; 0 when it has none. */
static inline int64_t pc__span(const pc_tensor *t)
{
    int64_t last = 0;
    for (int i = 0; i < t->ndim; i++)
        last += (t->shape[i] - 1) * t->strides[i];
    return pc__count(t->ndim, t->shape) ? last + 1 : 0;
}

/* --- dtypes (dtype.c) --- */

static inline bool pc__is_float(pc_dtype dtype)
{
    return dtype >= PC_F16;
}

static inline bool pc__is_half(pc_dtype dtype)
{
    return dtype == PC_F16 || dtype == PC_BF16;
}

/* The dtype in which both meet. */
pc_dtype pc__join_dtypes(pc_dtype a, pc_dtype b);

pc_dtype pc__promote(const pc_tensor *a, const pc_tensor *b);

/* PC_ERR_ARGUMENT where integers of `dtype` do not hold the number; fractions are cut, and uint8 takes negative whole
 * numbers down to -255 from its other end, as in PyTorch. */
pc_status pc__number_check(const char *who, double value, pc_dtype dtype);

/* --- tensors (tensor.c) --- */

/* A tensor as meta says, on `device`; memory not initialised; handed to the scope. NULL on failure. */
pc_tensor *pc__tensor_new(const pc__meta *meta, pc_device device) PC_MUST_USE;

/* The same; `maker` (static storage) says what it is for. */
pc_tensor *pc__tensor_for(const pc__meta *meta, pc_device device, const char *maker) PC_MUST_USE;

/* In front of work with it, and of views of it: steps that are being recorded note that they found it. */
pc_status pc__tensor_found(pc_tensor *t);

/* The same, owned by the caller whatever scopes are open. */
pc_tensor *pc__tensor_unscoped(const pc__meta *meta, pc_device device) PC_MUST_USE;

/* pinned.c: the same in pinned host memory, which the device's kernels use over the bus (pc__storage_hosted). */
pc_tensor *pc__tensor_hosted(const pc__meta *meta, pc_device device, const char *maker) PC_MUST_USE;

static inline void *pc__data(const pc_tensor *t)
{
    static const uint8_t sizes[PC_DTYPE_COUNT] = {1, 1, 4, 8, 2, 2, 4, 8};
    return (char *)t->storage->data + (size_t)t->offset * sizes[t->dtype];
}

#endif
