/* grid_sample.c: pictures read at places of one's own, made of other ops: rows of channels are picked by their numbers, so that
 * gradients are added up as those of index_select are, in a fixed order. */
#include "ops/number.h"
#include "ops/table.h"

#include <math.h>
#include <paracord/no_grad.h>
#include <paracord/sample.h>

static const char who[] = "grid_sample";

/* One of the two axes of x: places along it that are asked for, [n, h', w'], and how many there are. */
typedef struct axis {
    pc_tensor *at;
    int64_t size;
} axis;

static pc_tensor *filled(double value, const pc_tensor *like)
{
    return pc_scalar(value, (pc_dtype)like->dtype, like->storage->device);
}

/* From -1..1 to places. */
static pc_tensor *place_of(pc_tensor *g, int64_t size, bool corners)
{
    if (corners)
        return pc_mul_scalar(pc_add_scalar(g, 1), (double)(size - 1) / 2);
    return pc_div_scalar(pc_sub_scalar(pc_mul_scalar(pc_add_scalar(g, 1), (double)size), 1), 2);
}

/* The floor, whose gradient is 0, and not asked for. */
static pc_tensor *whole(pc_tensor *at)
{
    pc_tensor *floor = NULL;
    PC_NO_GRAD
        floor = pc_floor(at);
    return floor;
}

/* Between low and low + span, there and back again. */
static pc_tensor *reflected(pc_tensor *at, double low, double span)
{
    if (span <= 0)
        return pc_mul_scalar(at, 0);
    pc_tensor *off = pc_sub_scalar(at, low);
    if (!off)
        return NULL;
    off = pc_where(pc_lt(off, filled(0, off)), pc_neg(off), off);
    pc_tensor *turns = whole(pc_div_scalar(off, span));
    pc_tensor *rest = pc_sub(off, pc_mul_scalar(turns, span));
    pc_tensor *half = pc_mul_scalar(turns, 0.5), *is_back = pc_ne(half, pc_floor(half));
    return pc_add_scalar(pc_where(is_back, pc__with_number(PC__OP_sub, rest, span, true), rest), low);
}

static axis axis_of(pc_tensor *grid, int i, int64_t size, const pc_fn_grid_sample_options *o)
{
    pc_tensor *at = place_of(pc_squeeze(pc_slice(grid, 3, i, i + 1, 1), 3), size, o->align_corners);
    if (at && o->padding == PC_GRID_REFLECTION)
        at = o->align_corners ? reflected(at, 0, (double)(size - 1)) : reflected(at, -0.5, (double)size);
    if (at && o->padding != PC_GRID_ZEROS)
        at = pc_clamp(at, 0, (double)(size - 1));
    return (axis){at, size};
}

/* Whether a whole place is one of x's; not where it is NaN. */
static pc_tensor *is_there(pc_tensor *at, int64_t size)
{
    return at ? pc_logical_and(pc_ge(at, filled(0, at)), pc_le(at, filled((double)(size - 1), at))) : NULL;
}

static pc_tensor *number_of(pc_tensor *there, pc_tensor *at)
{
    return at ? pc_cast(pc_where(there, at, filled(0, at)), PC_I64) : NULL;
}

/* Of the whole places (x, y) the rows of channels, [places, c], times weights (NULL: 1), and 0 where there are none. */
static pc_tensor *picked(pc_tensor *rows, axis x, axis y, pc_tensor *weight)
{
    pc_tensor *there = pc_logical_and(is_there(x.at, x.size), is_there(y.at, y.size));
    pc_tensor *column = number_of(there, x.at), *row = number_of(there, y.at);
    if (!there || !column || !row)
        return NULL;
    const int64_t n = there->shape[0], count = pc_tensor_count(there);
    pc_tensor *picture = pc_mul_scalar(pc_arange(0, (double)n, 1, PC_I64, there->storage->device), (double)y.size);
    pc_tensor *line = pc_add(row, pc_reshape(picture, PC_SHAPE(n, 1, 1)));
    pc_tensor *index = pc_reshape(pc_add(pc_mul_scalar(line, (double)x.size), column), PC_SHAPE(count));
    pc_tensor *value = pc_index_select(rows, 0, index);
    if (weight) /* far outside it is infinite or NaN, whose product with a gradient of 0 would be NaN */
        value = pc_mul(value, pc_reshape(pc_where(there, weight, filled(0, weight)), PC_SHAPE(count, 1)));
    return value ? pc_where(pc_reshape(there, PC_SHAPE(count, 1)), value, filled(0, value)) : NULL;
}

static pc_tensor *bilinear(pc_tensor *rows, axis x, axis y)
{
    pc_tensor *corner[2] = {whole(y.at), whole(x.at)}, *sum = NULL;
    pc_tensor *part[2] = {pc_sub(y.at, corner[0]), pc_sub(x.at, corner[1])};
    for (int k = 0; k < 4; k++) {
        const int down = k / 2, right = k % 2;
        pc_tensor *by[2];
        for (int i = 0; i < 2; i++)
            by[i] = (i ? right : down) ? part[i] : pc__with_number(PC__OP_sub, part[i], 1, true);
        const axis column = {right ? pc_add_scalar(corner[1], 1) : corner[1], x.size};
        const axis row = {down ? pc_add_scalar(corner[0], 1) : corner[0], y.size};
        pc_tensor *term = picked(rows, column, row, pc_mul(by[0], by[1]));
        sum = sum ? pc_add(sum, term) : term;
        if (!sum)
            return NULL;
    }
    return sum;
}

static pc_tensor *sampled(pc_tensor *x, pc_tensor *grid, pc_dtype dtype, const pc_fn_grid_sample_options *o)
{
    const pc_dtype wide = pc__is_half(dtype) ? PC_F32 : dtype;
    const int64_t n = x->shape[0], c = x->shape[1], h = x->shape[2], w = x->shape[3];
    pc_tensor *rows = pc_reshape(pc_permute(pc__as_dtype(x, wide), PC_SHAPE(0, 2, 3, 1)), PC_SHAPE(n * h * w, c));
    pc_tensor *places = pc__as_dtype(grid, wide);
    const axis across = axis_of(places, 0, w, o), down = axis_of(places, 1, h, o);
    if (!rows || !across.at || !down.at)
        return NULL;
    pc_tensor *y = o->nearest ? picked(rows, (axis){pc_round(across.at), w}, (axis){pc_round(down.at), h}, NULL)
                              : bilinear(rows, across, down);
    y = pc_reshape(pc__as_dtype(y, dtype), PC_SHAPE(n, grid->shape[1], grid->shape[2], c));
    return pc_permute(y, PC_SHAPE(0, 3, 1, 2));
}

pc_tensor *pc_fn_grid_sample(pc_tensor *x, pc_tensor *grid, pc_fn_grid_sample_options options)
{
    enum { MOST = 1 << 24 };
    PC__NEED_OR(NULL, x);
    PC__NEED_OR(NULL, grid);
    if (x->ndim != 4 || grid->ndim != 4 || grid->shape[3] != 2 || x->shape[0] != grid->shape[0] || x->shape[2] < 1 ||
        x->shape[3] < 1)
        return pc__null(PC_ERR_SHAPE,
                        "%s: the input has shape %s and the grid %s; they must be [n, c, h, w], with places, and "
                        "[n, h', w', 2]",
                        who, PC__SHAPE_OF(x), PC__SHAPE_OF(grid));
    if (!pc__is_float(x->dtype) || !pc__is_float(grid->dtype))
        return pc__null(PC_ERR_DTYPE, "%s: the input is %s and the grid %s; both must be floating", who,
                        pc_dtype_name(x->dtype), pc_dtype_name(grid->dtype));
    if (PC__MAX(x->shape[2], x->shape[3]) > MOST && pc__promote(x, grid) != PC_F64)
        return pc__null(PC_ERR_SHAPE,
                        "%s: an input of shape %s has more than %d rows or columns, which float32 does not count", who,
                        PC__SHAPE_OF(x), MOST);
    if ((int)options.padding < PC_GRID_ZEROS || (int)options.padding > PC_GRID_REFLECTION)
        return pc__null(PC_ERR_ARGUMENT, "%s: there is no padding %d; they are zeros, border and reflection", who,
                        (int)options.padding);
    const bool by_channels = pc__is_channels_last(x) && !pc__is_contiguous(x);
    pc_tensor *result = NULL;
    PC_SCOPE {
        pc_tensor *y = sampled(x, grid, pc__promote(x, grid), &options);
        result = pc_keep(y && !by_channels ? pc_contiguous(y) : y);
    }
    return result;
}
