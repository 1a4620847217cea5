/* pad.c: tensors made larger, turned, moved and repeated; what no kernel of their own is worth is made of slices, joins
 * and views. */
#include "ops/index.h"
#include "ops/table.h"
#include "ops/view.h"

/* --- padding --- */

/* `n` rows along dim, all of a constant. */
static pc_tensor *constant_rows(pc_tensor *a, int dim, int64_t n, double value)
{
    pc_shape shape = pc_tensor_shape(a);
    shape.dim[dim] = n;
    return pc_full(shape, value, a->dtype, a->storage->device);
}

/* `n` rows along dim that are all as row `at`. */
static pc_tensor *repeated_rows(pc_tensor *a, int dim, int64_t n, int64_t at)
{
    pc_shape shape = pc_tensor_shape(a);
    shape.dim[dim] = n;
    pc_tensor *row = pc_slice(a, dim, at, at + 1, 1);
    return row ? pc_expand(row, shape) : NULL;
}

typedef struct padding {
    int64_t before, after;
    pc_pad_mode mode;
    double value;
} padding;

/* The rows in front (end 0) or behind (end 1) of a along dim. */
static pc_tensor *rows_at(pc_tensor *a, int dim, const padding *p, int end)
{
    const int64_t n = a->shape[dim], rows = end ? p->after : p->before;
    if (p->mode == PC_PAD_CONSTANT)
        return constant_rows(a, dim, rows, p->value);
    if (p->mode == PC_PAD_REPLICATE)
        return repeated_rows(a, dim, rows, end ? n - 1 : 0);
    pc_tensor *part = end ? pc_slice(a, dim, n - 1 - rows, n - 1, 1) : pc_slice(a, dim, 1, rows + 1, 1);
    return part ? pc_flip(part, PC_SHAPE(dim)) : NULL;
}

/* Which rows a padded dimension of n has, where none is a constant: int64. */
static pc_tensor *rows_of(int64_t n, const padding *p, pc_device device)
{
    pc_tensor *at = pc_arange((double)-p->before, (double)(n + p->after), 1, PC_I64, device);
    pc_tensor *last = pc_scalar((double)(n - 1), PC_I64, device);
    if (p->mode == PC_PAD_REFLECT)
        return pc_sub(last, pc_abs(pc_sub(last, pc_abs(at))));
    return pc_minimum(pc_maximum(at, pc_scalar(0, PC_I64, device)), last);
}

/* Along one dimension; negative numbers cut. On the CPU rows that are there are picked, in one go. NULL flows. */
static pc_tensor *pad_dim(pc_tensor *a, int dim, const padding *p)
{
    if (!a)
        return NULL;
    const pc_device device = a->storage->device;
    if (device.type == PC_CPU && p->mode != PC_PAD_CONSTANT && a->shape[dim] && PC__MAX(p->before, p->after) > 0)
        return pc_index_select(a, dim, rows_of(a->shape[dim], p, device));
    const int64_t from = p->before < 0 ? -p->before : 0, to = a->shape[dim] + (p->after < 0 ? p->after : 0);
    pc_tensor *parts[3];
    int count = 0;
    if (p->before > 0)
        parts[count++] = rows_at(a, dim, p, 0);
    parts[count++] = from > 0 || to < a->shape[dim] ? pc_slice(a, dim, from, to, 1) : a;
    if (p->after > 0)
        parts[count++] = rows_at(a, dim, p, 1);
    return count > 1 ? pc_cat(parts, count, dim) : parts[0];
}

static pc_status check_padding(const pc_tensor *a, int dim, const padding *p)
{
    const int64_t n = a->shape[dim], most = PC__MAX(p->before, p->after);
    int64_t rest;
    if (__builtin_add_overflow(p->before, p->after, &rest) || __builtin_add_overflow(rest, n, &rest) || rest < 0 ||
        p->before < -n || p->after < -n)
        return pc__fail(PC_ERR_SHAPE, "pad: %lld in front of dimension %d and %lld behind it leave nothing of %s",
                        (long long)p->before, dim, (long long)p->after, PC__SHAPE_OF(a));
    if (p->mode == PC_PAD_CONSTANT)
        return PC_OK;
    if (most > 0 && (p->mode == PC_PAD_REFLECT ? most >= n : n == 0))
        return pc__fail(PC_ERR_SHAPE, "pad: dimension %d of %s has no %lld elements to %s", dim, PC__SHAPE_OF(a),
                        (long long)most + (p->mode == PC_PAD_REFLECT),
                        p->mode == PC_PAD_REFLECT ? "reflect" : "repeat");
    return PC_OK;
}

pc_tensor *pc_pad(pc_tensor *a, pc_shape before, pc_shape after, pc_pad_mode mode, double value)
{
    PC__NEED_OR(NULL, a);
    if (pc__ndim_check("pad", before.ndim) != PC_OK)
        return NULL;
    if (before.ndim != after.ndim || before.ndim > a->ndim)
        return pc__null(PC_ERR_SHAPE, "pad: %d numbers in front and %d behind for a tensor of shape %s", before.ndim,
                        after.ndim, PC__SHAPE_OF(a));
    if ((unsigned)mode > PC_PAD_REPLICATE)
        return pc__null(PC_ERR_ARGUMENT, "pad: there is no mode %d", (int)mode);
    if (mode == PC_PAD_CONSTANT && pc__number_check("pad", value, a->dtype) != PC_OK)
        return NULL;
    const int lead = a->ndim - before.ndim;
    for (int i = 0; i < before.ndim; i++)
        if (check_padding(a, lead + i, &(padding){before.dim[i], after.dim[i], mode, value}) != PC_OK)
            return NULL;
    pc_tensor *result = NULL;
    PC_SCOPE {
        pc_tensor *t = a;
        for (int i = before.ndim - 1; i >= 0; i--)
            t = pad_dim(t, lead + i, &(padding){before.dim[i], after.dim[i], mode, value});
        result = pc_keep(t == a ? pc_clone(a) : t);
    }
    return result;
}

/* --- turning and moving --- */

/* A dense tensor whose dimensions are in another order in memory. */
static pc_tensor *flipped_as_it_lies(pc_tensor *a, uint64_t dims)
{
    const pc_shape order = pc__dims_by_stride(a);
    pc__flip_attributes attributes = {0};
    for (int i = 0; i < order.ndim; i++)
        attributes.dims |= (dims >> order.dim[i] & 1) << i;
    pc_tensor *y = PC__CALL(flip, &attributes, pc_permute(a, order));
    return pc_permute(y, pc__order_back(&order));
}

pc_tensor *pc_flip(pc_tensor *a, pc_shape dims)
{
    PC__NEED_OR(NULL, a);
    if (pc__ndim_check("flip", dims.ndim) != PC_OK)
        return NULL;
    pc__flip_attributes attributes = {0};
    for (int i = 0; i < dims.ndim; i++) {
        const int d = pc__dim("flip", dims.dim[i], a->ndim);
        if (d < 0)
            return NULL;
        if (attributes.dims >> d & 1)
            return pc__null(PC_ERR_ARGUMENT, "flip: dimension %d is named twice", d);
        attributes.dims |= 1u << d;
    }
    pc_tensor *result = NULL;
    PC_SCOPE {
        result = pc_keep(pc__is_dense(a) && !pc__is_contiguous(a) ? flipped_as_it_lies(a, attributes.dims)
                                                                  : PC__CALL(flip, &attributes, pc_contiguous(a)));
    }
    return result;
}

pc_status pc__grad_flip(pc__grad *grad)
{
    const pc__flip_attributes *a = grad->attributes;
    return pc__set_grad(grad, 0, PC__CALL(flip, a, pc_contiguous(grad->out_grad[0])));
}

/* NULL flows. */
static pc_tensor *roll_dim(pc_tensor *a, int64_t shift, int dim)
{
    const int64_t n = a ? a->shape[dim] : 0, by = n ? (shift % n + n) % n : 0;
    if (by == 0)
        return a;
    pc_tensor *parts[2] = {pc_slice(a, dim, n - by, n, 1), pc_slice(a, dim, 0, n - by, 1)};
    return pc_cat(parts, 2, dim);
}

pc_tensor *pc_roll(pc_tensor *a, pc_shape shifts, pc_shape dims)
{
    PC__NEED_OR(NULL, a);
    if (pc__ndim_check("roll", shifts.ndim) != PC_OK || pc__ndim_check("roll", dims.ndim) != PC_OK)
        return NULL;
    if (shifts.ndim < 1 || (dims.ndim ? dims.ndim != shifts.ndim : shifts.ndim != 1))
        return pc__null(PC_ERR_ARGUMENT,
                        "roll: %d shifts for %d dimensions; each has one, and all of them together one", shifts.ndim,
                        dims.ndim);
    pc_tensor *result = NULL;
    PC_SCOPE {
        pc_tensor *t = dims.ndim ? a : pc_reshape(a, PC_SHAPE(pc_tensor_count(a)));
        for (int i = 0; t && i < shifts.ndim; i++) {
            const int d = dims.ndim ? pc__dim("roll", dims.dim[i], a->ndim) : 0;
            t = d < 0 ? NULL : a->ndim ? roll_dim(t, shifts.dim[i], d) : t;
        }
        if (t && !dims.ndim)
            t = pc_reshape(t, pc_tensor_shape(a));
        result = t ? pc_keep(t == a || !dims.ndim ? pc_clone(t) : t) : NULL;
    }
    return result;
}

/* --- repeating --- */

enum { AT_ONCE = (PC_MAX_DIMS - 1) / 2 }; /* dimensions repeated by one copy: each has two there */

/* As [..., times, what is repeated, times, what is repeated], expanded along the times and copied. NULL flows. */
static pc_tensor *repeat_some(pc_tensor *a, const int64_t *times)
{
    if (!a)
        return NULL;
    pc_shape whole = pc_tensor_shape(a), once = {.ndim = 1, .dim = {1}}, all = once;
    for (int i = 0; i < a->ndim; i++) {
        if (times[i] > 1) {
            once.dim[once.ndim++] = 1;
            once.dim[once.ndim++] = 1;
            all.dim[all.ndim++] = times[i];
            all.dim[all.ndim++] = 1;
        }
        once.dim[once.ndim - 1] *= a->shape[i];
        all.dim[all.ndim - 1] *= a->shape[i];
        whole.dim[i] *= times[i];
    }
    pc_tensor *view = pc_reshape(a, once);
    return view ? pc_reshape(pc_expand(view, all), whole) : NULL;
}

/* Those behind first. */
static pc_tensor *repeat_all(pc_tensor *a, const pc_shape *times)
{
    int64_t now[PC_MAX_DIMS];
    int some = 0;
    for (int i = 0; i < times->ndim; i++)
        now[i] = 1;
    for (int i = times->ndim - 1; a && i >= 0; i--) {
        now[i] = PC__MAX(times->dim[i], 1);
        some += now[i] > 1;
        if (times->dim[i] == 0)
            a = pc_slice(a, i, 0, 0, 1);
        if (some < AT_ONCE && (i > 0 || !some))
            continue;
        a = repeat_some(a, now);
        for (int j = i; j < times->ndim; j++)
            now[j] = 1;
        some = 0;
    }
    return a;
}

pc_tensor *pc_repeat(pc_tensor *a, pc_shape times)
{
    PC__NEED_OR(NULL, a);
    if (pc__ndim_check("repeat", times.ndim) != PC_OK)
        return NULL;
    if (times.ndim < a->ndim)
        return pc__null(PC_ERR_SHAPE, "repeat: %d numbers of times for a tensor of shape %s; pc_tile takes fewer",
                        times.ndim, PC__SHAPE_OF(a));
    pc_shape shape = {.ndim = times.ndim}, whole = shape;
    for (int i = 0; i < times.ndim; i++) {
        const int own = i - (times.ndim - a->ndim);
        shape.dim[i] = own < 0 ? 1 : a->shape[own];
        if (times.dim[i] < 0 || __builtin_mul_overflow(shape.dim[i], times.dim[i], &whole.dim[i]))
            return pc__null(PC_ERR_ARGUMENT, "repeat: dimension %d cannot be repeated %lld times", i,
                            (long long)times.dim[i]);
    }
    if (pc__shape_check("repeat", whole, a->dtype) != PC_OK)
        return NULL;
    pc_tensor *result = NULL;
    PC_SCOPE {
        pc_tensor *t = repeat_all(pc_reshape(a, shape), &times);
        const bool is_new = t && t->storage != a->storage && pc__is_contiguous(t);
        result = t ? pc_keep(is_new ? t : pc_clone(t)) : NULL;
    }
    return result;
}

pc_tensor *pc_tile(pc_tensor *a, pc_shape times)
{
    PC__NEED_OR(NULL, a);
    pc_shape all = {.ndim = a->ndim};
    if (pc__ndim_check("tile", times.ndim) != PC_OK)
        return NULL;
    if (times.ndim >= a->ndim)
        return pc_repeat(a, times);
    for (int i = 0; i < a->ndim; i++) {
        const int own = i - (a->ndim - times.ndim);
        all.dim[i] = own < 0 ? 1 : times.dim[own];
    }
    return pc_repeat(a, all);
}

/* --- triangles --- */

/* a where column - row is on the kept side of the diagonal, else 0. */
static pc_tensor *triangle(const char *who, pc_tensor *a, int64_t diagonal, bool is_upper)
{
    if (a->ndim < 2)
        return pc__null(PC_ERR_SHAPE, "%s: a tensor of shape %s; it must have rows and columns", who, PC__SHAPE_OF(a));
    const int64_t n = a->shape[a->ndim - 2], m = a->shape[a->ndim - 1];
    const pc_device device = a->storage->device;
    const double shift = (double)PC__MIN(PC__MAX(diagonal, -n - 1), m + 1);
    pc_tensor *result = NULL;
    PC_SCOPE {
        /* The mask lies as a does. */
        const int64_t down = a->strides[a->ndim - 2], across = a->strides[a->ndim - 1];
        const bool columns = down > 0 && down < across && n > 1 && m > 1;
        pc_tensor *row = pc_unsqueeze(pc_arange(shift, shift + (double)n, 1, PC_I64, device), !columns);
        pc_tensor *column = pc_unsqueeze(pc_arange(0, (double)m, 1, PC_I64, device), columns);
        pc_tensor *kept = !row || !column ? NULL : is_upper ? pc_ge(column, row) : pc_le(column, row);
        if (kept && columns)
            kept = pc_transpose(kept, 0, 1);
        if (kept)
            result = pc_keep(pc_where(kept, a, pc_scalar(0, a->dtype, device)));
    }
    return result;
}

pc_tensor *pc_tril(pc_tensor *a, int64_t diagonal)
{
    PC__NEED_OR(NULL, a);
    return triangle("tril", a, diagonal, false);
}

pc_tensor *pc_triu(pc_tensor *a, int64_t diagonal)
{
    PC__NEED_OR(NULL, a);
    return triangle("triu", a, diagonal, true);
}
