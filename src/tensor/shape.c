/* shape.c: shapes, strides and broadcasting. */
#include "tensor/tensor.h"

pc_shape pc_shape_of(int ndim, const int64_t *dims)
{
    pc_shape shape = {.ndim = ndim};
    if (ndim > 0)
        PC__NEED_OR((pc_shape){.ndim = -1}, dims);
    if (ndim < 0 || ndim > PC_MAX_DIMS)
        shape.ndim = -1;
    else if (ndim)
        memcpy(shape.dim, dims, (size_t)ndim * sizeof *dims);
    return shape;
}

pc__shape_text pc__shape_format(int ndim, const int64_t *shape)
{
    pc__shape_text text;
    int used = snprintf(text.s, sizeof text.s, "[");
    for (int i = 0; i < PC__MIN(ndim, PC_MAX_DIMS) && used < (int)sizeof text.s - 24; i++)
        used += snprintf(text.s + used, sizeof text.s - (size_t)used, "%s%lld", i ? ", " : "", (long long)shape[i]);
    snprintf(text.s + used, sizeof text.s - (size_t)used, "]");
    return text;
}

pc_status pc__ndim_check(const char *who, int ndim)
{
    if (ndim < 0 || ndim > PC_MAX_DIMS)
        return pc__fail(PC_ERR_SHAPE, "%s: a tensor has 0 to %d dimensions, not %s", who, PC_MAX_DIMS,
                        ndim < 0 ? "less than none (PC_SHAPE says so of more than it holds)" : "more");
    return PC_OK;
}

pc_status pc__shape_check(const char *who, pc_shape shape, pc_dtype dtype)
{
    PC__TRY(pc__ndim_check(who, shape.ndim));
    if ((unsigned)dtype >= PC_DTYPE_COUNT)
        return pc__fail(PC_ERR_DTYPE, "%s: there is no dtype %d", who, (int)dtype);
    int64_t bytes = (int64_t)pc_dtype_size(dtype);
    bool overflow = false; /* strides of empty tensors must be countable too: sizes of 0 count as 1 */
    for (int i = 0; i < shape.ndim; i++) {
        if (shape.dim[i] < 0)
            return pc__fail(PC_ERR_SHAPE, "%s: the shape %s has a negative size", who,
                            pc__shape_format(shape.ndim, shape.dim).s);
        overflow |= __builtin_mul_overflow(bytes, PC__MAX(shape.dim[i], 1), &bytes);
    }
    if (overflow)
        return pc__fail(PC_ERR_MEMORY, "%s: the shape %s has more elements than any memory", who,
                        pc__shape_format(shape.ndim, shape.dim).s);
    return PC_OK;
}

/* Strides of shapes that pc__shape_check has yet to refuse may not fit: then they are wrong, but defined. */
static int64_t times(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a * (uint64_t)PC__MAX(b, 1));
}

void pc__meta_contiguous(pc__meta *meta, pc_dtype dtype, int ndim, const int64_t *shape)
{
    meta->dtype = dtype;
    meta->ndim = ndim;
    meta->offset = 0;
    meta->view_of = NULL;
    int64_t stride = 1;
    for (int i = ndim - 1; i >= 0; i--) {
        meta->shape[i] = shape[i];
        meta->strides[i] = stride;
        stride = times(stride, shape[i]);
    }
}

void pc__meta_channels_last(pc__meta *meta, pc_dtype dtype, const int64_t shape[4])
{
    pc__meta_contiguous(meta, dtype, 4, shape);
    meta->strides[1] = 1;
    meta->strides[3] = PC__MAX(shape[1], 1);
    meta->strides[2] = times(meta->strides[3], shape[3]);
    meta->strides[0] = times(meta->strides[2], shape[2]);
}

void pc__meta_of(pc__meta *meta, const pc_tensor *t)
{
    meta->dtype = t->dtype;
    meta->ndim = t->ndim;
    memcpy(meta->shape, t->shape, sizeof meta->shape);
    memcpy(meta->strides, t->strides, sizeof meta->strides);
    meta->offset = t->offset;
    meta->view_of = (pc_tensor *)t;
}

bool pc__is_contiguous(const pc_tensor *t)
{
    int64_t stride = 1;
    bool in_order = true;
    for (int i = t->ndim - 1; i >= 0; i--) {
        in_order &= t->shape[i] == 1 || t->strides[i] == stride;
        stride *= t->shape[i];
    }
    return in_order || stride == 0; /* without elements every order is C order */
}

/* The next larger stride is what the dimensions inside it fill. */
bool pc__is_dense(const pc_tensor *t)
{
    if (pc__is_contiguous(t))
        return true;
    bool done[PC_MAX_DIMS];
    int left = 0;
    for (int i = 0; i < t->ndim; i++) {
        done[i] = t->shape[i] == 1;
        left += !done[i];
    }
    for (int64_t filled = 1; left > 0; left--) {
        int next = 0;
        while (next < t->ndim && (done[next] || t->strides[next] != filled))
            next++;
        if (next == t->ndim)
            return false;
        done[next] = true;
        filled *= t->shape[next];
    }
    return true;
}

bool pc__same_places(const pc_tensor *a, const pc_tensor *b)
{
    if (!pc__same_shape(a, b))
        return false;
    for (int i = 0; i < a->ndim; i++)
        if (a->shape[i] > 1 && a->strides[i] != b->strides[i])
            return false;
    return true;
}

bool pc__is_channels_last(const pc_tensor *t)
{
    if (t->ndim != 4 || pc__is_contiguous(t))
        return false;
    static const int order[4] = {1, 3, 2, 0};
    int64_t stride = 1;
    for (int i = 0; i < 4; i++) {
        int d = order[i];
        if (t->shape[d] != 1 && t->strides[d] != stride)
            return false;
        stride *= t->shape[d];
    }
    return true;
}

int pc__dim(const char *who, int64_t dim, int ndim)
{
    int limit = PC__MAX(ndim, 1); /* a zero-dim tensor takes 0 and -1, as in PyTorch */
    if (dim < -limit || dim >= limit) {
        (void)pc__fail(PC_ERR_RANGE, "%s: dimension %lld is out of range; the tensor has %d (%d to %d)", who,
                       (long long)dim, ndim, -limit, limit - 1);
        return -1;
    }
    return (int)(dim < 0 ? dim + limit : dim);
}

pc_status pc__broadcast(const char *who, const pc_tensor *a, const pc_tensor *b, int *ndim, int64_t *shape)
{
    *ndim = PC__MAX(a->ndim, b->ndim);
    for (int i = 0; i < *ndim; i++) {
        int ia = i - (*ndim - a->ndim), ib = i - (*ndim - b->ndim);
        int64_t x = ia < 0 ? 1 : a->shape[ia], y = ib < 0 ? 1 : b->shape[ib];
        if (x != y && x != 1 && y != 1)
            return pc__fail(PC_ERR_SHAPE, "%s: the shapes %s and %s do not broadcast: sizes %lld and %lld differ", who,
                            PC__SHAPE_OF(a), PC__SHAPE_OF(b), (long long)x, (long long)y);
        shape[i] = x == 1 ? y : x;
    }
    return PC_OK;
}
