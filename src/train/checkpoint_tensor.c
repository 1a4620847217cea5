/* checkpoint_tensor.c: one tensor of a checkpoint. */
#include "train/checkpoint_form.h"

#include <paracord/autograd.h>

typedef struct head {
    char dtype[16];
    int64_t ndim, shape[PC_MAX_DIMS];
} head;
_Static_assert(sizeof(head) == 16 + (1 + PC_MAX_DIMS) * 8, "a head has no gaps");

size_t pc__checkpoint_put_room(pc__text *out, const pc_tensor *t)
{
    static const char zeros[4096];
    head h = {.ndim = t->ndim};
    snprintf(h.dtype, sizeof h.dtype, "%s", pc_dtype_name((pc_dtype)t->dtype));
    memcpy(h.shape, t->shape, (size_t)t->ndim * sizeof *t->shape);
    pc__text_append(out, (const char *)&h, sizeof h);
    const size_t at = out->length;
    for (size_t left = (size_t)pc_tensor_count(t) * pc_dtype_size((pc_dtype)t->dtype); left && !out->failed;) {
        const size_t n = PC__MIN(left, sizeof zeros);
        pc__text_append(out, zeros, n);
        left -= n;
    }
    return at;
}

static bool take_dtype(const head *h, pc_dtype *dtype)
{
    for (int i = 0; i < PC_DTYPE_COUNT; i++)
        if (strncmp(h->dtype, pc_dtype_name((pc_dtype)i), sizeof h->dtype) == 0) {
            *dtype = (pc_dtype)i;
            return true;
        }
    return false;
}

static bool take_shape(const head *h, pc__checkpoint_tensor *is)
{
    if (h->ndim < 0 || h->ndim > PC_MAX_DIMS)
        return false;
    is->count = 1;
    is->ndim = (int)h->ndim;
    for (int i = 0; i < is->ndim; i++) {
        if (h->shape[i] < 0 || __builtin_mul_overflow(is->count, h->shape[i], &is->count))
            return false;
        is->shape[i] = h->shape[i];
    }
    return true;
}

bool pc__checkpoint_next(const pc__checkpoint_file *file, size_t *at, pc_dtype older, pc__checkpoint_tensor *is)
{
    const uint8_t *bytes = file->tensors + *at;
    const size_t n = file->tensor_bytes - *at, front = file->counts ? sizeof is->count : sizeof(head);
    head h;
    *is = (pc__checkpoint_tensor){.dtype = older};
    if (n < front)
        return false;
    memcpy(file->counts ? (void *)&is->count : &h, bytes, front);
    if (!file->counts && (!take_dtype(&h, &is->dtype) || !take_shape(&h, is)))
        return false;
    const size_t size = pc_dtype_size(is->dtype);
    if (is->count < 0 || (uint64_t)is->count > (n - front) / size)
        return false;
    is->numbers = bytes + front;
    *at += front + (size_t)is->count * size;
    return true;
}

pc_status pc__checkpoint_pass(const char *path, const pc__checkpoint_file *file, size_t *at, pc_dtype older)
{
    pc__checkpoint_tensor is;
    return pc__checkpoint_next(file, at, older, &is) ? PC_OK : pc__checkpoint_cut(path, file, "it ends too early");
}

pc_status pc__checkpoint_cut(const char *path, const pc__checkpoint_file *file, const char *how)
{
    return !file->counts
               ? pc__checkpoint_damaged(path, how)
               : pc__fail(PC_ERR_STATE,
                          "%s, which an older version of Paracord wrote, does not have the numbers of this network in "
                          "this dtype; take the network, and the dtype, that it was made with",
                          path);
}

static bool same_shape(const pc__checkpoint_file *file, const pc__checkpoint_tensor *is, const pc_tensor *t)
{
    if (file->counts)
        return is->count == pc_tensor_count(t);
    return is->ndim == t->ndim && memcmp(is->shape, t->shape, (size_t)t->ndim * sizeof *t->shape) == 0;
}

bool pc__checkpoint_fits(const pc__checkpoint_file *file, size_t *at, const pc_tensor *t, pc__checkpoint_tensor *is)
{
    return pc__checkpoint_next(file, at, (pc_dtype)t->dtype, is) && is->dtype == (pc_dtype)t->dtype &&
           same_shape(file, is, t);
}

static pc_status other_shape(const char *path, const pc__checkpoint_file *file, const pc__checkpoint_tensor *is,
                             const pc_tensor *t, const char *name)
{
    char was[160], now[160];
    snprintf(was, sizeof was, "%s", pc__shape_format(is->ndim, is->shape).s);
    snprintf(now, sizeof now, "%s", PC__SHAPE_OF(t));
    if (file->counts) {
        snprintf(was, sizeof was, "%lld numbers", (long long)is->count);
        snprintf(now, sizeof now, "%lld", (long long)pc_tensor_count(t));
    }
    return pc__fail(
        PC_ERR_STATE,
        "%s is of another network, which has other shapes: there %.95s has %s, and here %s; take the network "
        "that it was made with",
        path, name, was, now);
}

pc_status pc__checkpoint_misfit(const char *path, const pc__checkpoint_file *file, size_t at, const pc_tensor *t,
                                const char *name)
{
    pc__checkpoint_tensor is;
    const bool whole = pc__checkpoint_next(file, &at, (pc_dtype)t->dtype, &is);
    const char *const was = pc_dtype_name(is.dtype);
    if (!whole)
        return pc__checkpoint_cut(path, file, "it ends too early");
    if (!same_shape(file, &is, t))
        return other_shape(path, file, &is, t, name);
    return pc__fail(
        PC_ERR_STATE,
        "%s has %.95s in %s, and this network has it in %s; take the network in %s (pc_module_to), or choose "
        "another file",
        path, name, was, pc_dtype_name((pc_dtype)t->dtype), was);
}

pc_status pc__checkpoint_take(const char *path, const pc__checkpoint_file *file, size_t *at, pc_tensor *t,
                              const char *name)
{
    pc__checkpoint_tensor is;
    const size_t here = *at;
    if (!pc__checkpoint_fits(file, at, t, &is))
        return pc__checkpoint_misfit(path, file, here, t, name);
    pc_status status = PC_OK;
    PC_SCOPE {
        PC_NO_GRAD {
            status = pc_copy(t, pc_from_data(is.numbers, pc_tensor_shape(t), (pc_dtype)t->dtype, PC_DEVICE_CPU));
        }
    }
    return status;
}
