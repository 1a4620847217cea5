/* pool_adaptive.c: pooling to a given size. Means are those of the whole picture, or of whole rows, or resampled by area, or where
 * windows are equal those of pool2d: on GPUs, for on the CPU that would ask for another order of memory. Maxima are those of equal
 * windows, of a picture that has the last place of a shorter window again. */
#include "ops/pool2d.h"
#include "ops/resampled.h"
#include "ops/table.h"

static pc_status check(const char *who, const pc_tensor *x, int64_t size[2])
{
    if (x->ndim != 4 || !pc__is_float(x->dtype))
        return pc__fail(x->ndim != 4 ? PC_ERR_SHAPE : PC_ERR_DTYPE,
                        "%s: the input is %s %s; it must be floating [n, c, h, w]", who, pc_dtype_name(x->dtype),
                        PC__SHAPE_OF(x));
    for (int i = 0; i < 2; i++) {
        if (size[i] < 0 || size[i] > INT32_MAX)
            return pc__fail(PC_ERR_ARGUMENT, "%s: a result of %lld x %lld; both must be at least 0 and below 2^31", who,
                            (long long)size[0], (long long)size[1]);
        size[i] = size[i] ? size[i] : x->shape[2 + i];
        if (x->shape[2 + i] < 1 || x->shape[2 + i] > INT32_MAX)
            return pc__fail(PC_ERR_SHAPE, "%s: an input of shape %s has no places to pool", who, PC__SHAPE_OF(x));
    }
    return PC_OK;
}

/* Whether windows are all of one size, which is *spec's. */
static bool are_equal(const pc_tensor *x, const int64_t size[2], pc_fn_pool2d_options *spec)
{
    *spec = (pc_fn_pool2d_options){.kernel = {(int)(x->shape[2] / size[0]), (int)(x->shape[3] / size[1])}};
    return x->shape[2] % size[0] == 0 && x->shape[3] % size[1] == 0;
}

static pc_tensor *by_area(pc_tensor *x, const int64_t size[2])
{
    const pc__resample_attributes a = {{{x->shape[2], size[0], 0, PC__AREA}, {x->shape[3], size[1], 0, PC__AREA}}};
    return pc__resampled(x, &a);
}

/* Windows of whole rows lie together. */
static pc_tensor *of_whole_rows(pc_tensor *x, int64_t rows)
{
    const int64_t *s = x->shape;
    pc_tensor *windows = pc_reshape(x, PC_SHAPE(s[0], s[1], rows, s[2] / rows * s[3]));
    return windows ? pc_mean_dims(windows, PC_SHAPE(3), true) : NULL;
}

pc_tensor *pc_fn_adaptive_avg_pool2d(pc_tensor *x, int64_t rows, int64_t columns)
{
    int64_t size[2] = {rows, columns};
    pc_fn_pool2d_options spec;
    PC__NEED_OR(NULL, x);
    if (check("adaptive_avg_pool2d", x, size) != PC_OK)
        return NULL;
    if (size[0] == 1 && size[1] == 1)
        return pc_mean_dims(x, PC_SHAPE(2, 3), true);
    const bool equal = are_equal(x, size, &spec);
    if (equal && x->storage->device.type == PC_CUDA)
        return pc_fn_avg_pool2d(x, spec);
    pc_tensor *result = NULL;
    PC_SCOPE {
        result = pc_keep(equal && size[1] == 1 && pc__is_contiguous(x) ? of_whole_rows(x, size[0]) : by_area(x, size));
    }
    return result;
}

/* Places of the longest window; at most two where there are more windows than places. */
static int64_t longest(int64_t in, int64_t out)
{
    const pc__axis axis = {in, out, 0, PC__AREA};
    int64_t most = out > in ? 2 : 1;
    for (int64_t o = 0; o < out && out <= in; o++)
        most = PC__MAX(most, pc__taps_of(&axis, o).count);
    return most;
}

/* The places under each of `out` windows, `length` of each: int64 [out * length]. Quotients of whole numbers below 2^53 are
 * never rounded up to a whole one, so their floors are right. */
static pc_tensor *places(int64_t in, int64_t out, int64_t length, pc_device device)
{
    pc_tensor *window = pc_mul_scalar(pc_arange(0, (double)out, 1, PC_F64, device), (double)in);
    pc_tensor *first = pc_floor(pc_div_scalar(window, (double)out));
    pc_tensor *last = pc_floor(pc_div_scalar(pc_add_scalar(window, (double)(in - 1)), (double)out));
    pc_tensor *along = pc_add(pc_unsqueeze(first, 1), pc_arange(0, (double)length, 1, PC_F64, device));
    return pc_reshape(pc_cast(pc_minimum(along, pc_unsqueeze(last, 1)), PC_I64), PC_SHAPE(out * length));
}

/* NULL flows. Rows are picked where they lie, of pictures whose channels are last too. */
static pc_tensor *largest(pc_tensor *x, const int64_t size[2], bool last)
{
    pc_tensor *lies = last ? pc_permute(x, PC_SHAPE(0, 2, 3, 1)) : x;
    int length[2];
    for (int i = 0; i < 2; i++) {
        const int64_t in = x->shape[2 + i];
        length[i] = (int)longest(in, size[i]);
        if (lies && length[i] * size[i] != in)
            lies = pc_index_select(lies, (last ? 1 : 2) + i, places(in, size[i], length[i], x->storage->device));
    }
    pc_tensor *whole = last ? pc_permute(lies, PC_SHAPE(0, 3, 1, 2)) : lies;
    return whole ? pc_fn_max_pool2d(whole, (pc_fn_pool2d_options){.kernel = {length[0], length[1]}}) : NULL;
}

pc_tensor *pc_fn_adaptive_max_pool2d(pc_tensor *x, int64_t rows, int64_t columns)
{
    int64_t size[2] = {rows, columns};
    pc_fn_pool2d_options spec;
    PC__NEED_OR(NULL, x);
    if (check("adaptive_max_pool2d", x, size) != PC_OK)
        return NULL;
    if (are_equal(x, size, &spec))
        return pc_fn_max_pool2d(x, spec);
    pc_tensor *result = NULL;
    PC_SCOPE {
        const bool last = pc__is_channels_last(x) && !pc__is_contiguous(x);
        pc_tensor *y = largest(x, size, last);
        result = pc_keep(last ? pc__channels_last(y) : pc_contiguous(y));
    }
    return result;
}
