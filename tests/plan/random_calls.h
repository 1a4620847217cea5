/* random_calls.h: what random programs have, and the calls that they draw whose results follow from tensors alone. */
#ifndef PC_TEST_RANDOM_CALLS_H
#define PC_TEST_RANDOM_CALLS_H

#include "device.h"

#include "base/base.h"
#include "ops/number.h"
#include "ops/table.h"
#include "tensor/tensor.h"

#include <paracord/loss.h>
#include <paracord/ops.h>
#include <paracord/random.h>
#include <paracord/sample.h>

enum { STATES = 4, WEIGHTS = 3, HALVES = 2, VALUES = 8, KEPT = 3, STEPS = 24, LAUNCHES = 3, SIDE_MOST = 52 };

/* All tensors are squares of one size, of any dtype and memory order. */
typedef struct machine {
    pc_tensor *state[STATES];   /* there before, float32; the first is a leaf */
    pc_tensor *weight[WEIGHTS]; /* there before, float32; hardly anybody but steps writes them */
    pc_tensor *half[HALVES];    /* there before, float16 and bfloat16 */
    pc_tensor *value[VALUES];   /* the newest results; NULL: none yet */
    pc_tensor *kept[KEPT];      /* what the program holds after the run; NULL: nothing */
    pc_stream *main, *side, *third;
    pc_event *event; /* NULL where calls are done when they return */
} machine;

static struct {
    uint64_t seed, drawn;
    int side;
} now;

static int draw(int n)
{
    return (int)(pc_uniform(now.seed, 7, now.drawn++) * n);
}

/* Often the same ones, so that there is something to be found twice. */
static pc_tensor *any(const machine *m)
{
    pc_tensor *value = m->value[draw(3) ? draw(3) : draw(VALUES)];
    return value && draw(4) ? value : m->state[draw(STATES)];
}

/* With numbers that 16 bits have and such as they round; few, so that there is something to be found twice. */
static pc_tensor *with_number(pc_tensor *t)
{
    static const double numbers[] = {.5, .1, -1, 2, 1. / 3};
    const double number = numbers[draw(PC__COUNT(numbers))];
    switch (draw(8)) {
    case 0:
        return pc_add_scalar(t, number);
    case 1:
        return pc_sub_scalar(t, number);
    case 2:
        return pc_div_scalar(t, number);
    case 3:
        return pc__with_number(draw(2) ? PC__OP_sub : PC__OP_div, t, number, true);
    case 4:
        return draw(2) ? pc_leaky_relu(t, number) : pc_elu(t, number);
    case 5:
        return pc_pow_scalar(pc_abs(t), number * 3);
    case 6:
        return pc_clamp(t, -2, number);
    default:
        return pc_mul_scalar(t, number);
    }
}

static pc_tensor *unary(pc_tensor *t)
{
    switch (draw(11)) {
    case 0:
        return pc_tanh(t);
    case 1:
        return pc_neg(t);
    case 2:
        return pc_relu(t);
    case 3:
        return pc_sigmoid(t);
    case 4:
        return pc_gelu(t);
    case 5:
        return pc_sin(t);
    case 6:
        return pc_abs(t);
    case 7:
        return pc_softplus(t);
    case 8:
    case 9:
        return with_number(t);
    default:
        return pc_clone(t);
    }
}

static pc_tensor *binary(pc_tensor *a, pc_tensor *b)
{
    switch (draw(8)) {
    case 0:
        return pc_sub(a, b);
    case 1:
        return pc_mul(a, b);
    case 2:
        return pc_where(pc_gt(a, b), a, b);
    case 3:
        return pc_add(a, pc_slice(b, draw(2), 3, 4, 1)); /* broadcast */
    case 4:
        return pc_tanh(pc_matmul(pc_tanh(a), pc_cast(pc_tanh(b), pc_tensor_dtype(a))));
    case 5:
        return pc_minimum(a, b);
    case 6:
        return pc_maximum(a, b);
    default:
        return pc_add(a, b);
    }
}

static pc_tensor *other_order(pc_tensor *t)
{
    switch (draw(3)) {
    case 0:
        return pc_transpose(t, 0, 1);
    case 1:
        return pc_slice(pc_cat((pc_tensor *[]){t, t}, 2, 1), 1, 5, 5 + now.side, 1);
    default:
        return pc_slice(pc_cat((pc_tensor *[]){t, t}, 2, 0), 0, 0, PC_END_OF_DIM, 2);
    }
}

/* By a weight of its own numbers. */
static pc_tensor *normalized(pc_tensor *t)
{
    const pc_shape row = PC_SHAPE(now.side);
    pc_tensor *weight = draw(2) ? pc_tanh(pc_reshape(pc_slice(t, 0, 0, 1, 1), row)) : NULL;
    switch (draw(3)) {
    case 0:
        return pc_fn_rms_norm(t, row, weight, .25);
    case 1:
        return pc_fn_batch_norm(t, NULL, NULL, weight, NULL, true, 0, .25);
    default:
        return pc_fn_layer_norm(t, row, weight, draw(2) ? weight : NULL, .25);
    }
}

static pc_tensor *reduced(pc_tensor *t, int dim)
{
    switch (draw(8)) {
    case 0:
        return pc_max_dim(t, dim, true, NULL);
    case 1:
        return pc_min_dim(t, dim, true, NULL);
    case 2:
        return pc_prod_dim(t, dim, true);
    case 3:
        return pc_std_dims(t, PC_SHAPE(dim), draw(2), true);
    case 4:
        return pc_norm_dims(t, 1 + draw(3), PC_SHAPE(dim), true);
    case 5:
        return pc_cast(pc_any_dims(pc_gt(t, pc_mean(t)), PC_SHAPE(dim), true), pc_tensor_dtype(t));
    default:
        return pc_sum_dims(t, PC_SHAPE(dim), true);
    }
}

/* By a weight of its own numbers, each row alone, with gaps, or back. */
static pc_tensor *convolved(pc_tensor *t)
{
    const int64_t side = now.side;
    pc_tensor *x = pc_tanh(t), *few = pc_slice(x, 1, 0, 3, 1), *y;
    switch (draw(3)) {
    case 0:
        y = pc_fn_conv1d(pc_reshape(x, PC_SHAPE(1, side, side)), pc_reshape(few, PC_SHAPE(side, 1, 3)), NULL,
                         (pc_fn_conv1d_options){.groups = (int)side, .same = true, .dilation = 1 + draw(2)});
        break;
    case 1:
        y = pc_fn_conv2d(
            pc_reshape(x, PC_SHAPE(1, 1, side, side)), pc_reshape(pc_slice(few, 0, 0, 3, 1), PC_SHAPE(1, 1, 3, 3)),
            NULL,
            (pc_fn_conv2d_options){.same = true, .dilation = {2, 1 + draw(3)}, .activation = PC_ACTIVATION_SIGMOID});
        break;
    default:
        y = pc_fn_conv_transpose2d(pc_reshape(x, PC_SHAPE(1, side, 1, side)),
                                   pc_reshape(pc_softmax(t, 0), PC_SHAPE(side, side, 1, 1)), NULL,
                                   (pc_fn_conv_transpose2d_options){0});
    }
    return pc_reshape(y, PC_SHAPE(side, side));
}

static pc_tensor *along(pc_tensor *t)
{
    if (draw(4) == 0)
        return convolved(t);
    if (draw(3) == 0)
        return normalized(t);
    pc_tensor *rows = reduced(t, draw(2));
    return draw(2) ? pc_softmax(t, draw(2)) : pc_sub(t, pc_tanh(rows));
}

/* By indices that the numbers give. */
static pc_tensor *indexed(pc_tensor *t)
{
    pc_tensor *best = pc_argmax(t, draw(2), false), *rows = pc_tanh(t);
    switch (draw(9)) {
    case 0:
        return pc_index_select(t, draw(2), best);
    case 1:
        return pc_fn_embedding(t, best, (pc_fn_embedding_options){0});
    case 2:
        return pc_index_add(t, draw(2), best, rows);
    case 3:
        return pc_index_copy(t, draw(2), best, rows);
    case 4:
        return pc_gather(t, draw(2), pc_expand(best, PC_SHAPE(now.side, now.side)));
    case 5:
        return pc_scatter_add(t, draw(2), pc_expand(pc_unsqueeze(best, 1), PC_SHAPE(now.side, now.side)), rows);
    case 6:
        return pc_tanh(pc_cumsum(rows, draw(2)));
    case 7:
        return pc_sort(t, draw(2), draw(2), NULL);
    default:
        return draw(2) ? pc_flip(t, PC_SHAPE(draw(2))) : pc_tril(pc_roll(t, PC_SHAPE(3), PC_SHAPE(draw(2))), draw(3));
    }
}

/* Losses of elements and of rows, and as a picture of another size. */
static pc_tensor *lost_or_resized(pc_tensor *a, pc_tensor *b)
{
    const int64_t side = now.side, wide = 2 * side + 1;
    const pc_fn_cross_entropy_options rows = {.reduction = PC_REDUCTION_NONE, .ignore = true, .ignore_index = draw(2)};
    pc_tensor *picture = pc_reshape(a, PC_SHAPE(1, 1, side, side));
    switch (draw(6)) {
    case 0:
        return pc_tanh(pc_huber_loss(a, pc_cast(b, pc_tensor_dtype(a)), .5, PC_REDUCTION_NONE));
    case 1:
        return pc_tanh(pc_sub(a, pc_fn_bce_with_logits(a, pc_sigmoid(b), (pc_fn_bce_options){0})));
    case 2:
        return pc_tanh(pc_sub(a, pc_fn_cross_entropy(b, pc_argmax(a, 1, false), rows)));
    case 3:
        return pc_tanh(pc_mul(a, pc_fn_cross_entropy(b, pc_argmax(a, 1, false), (pc_fn_cross_entropy_options){0})));
    case 4:
        picture = pc_fn_upsample(picture, (pc_fn_upsample_options){.size = {wide}, .mode = (pc_upsample_mode)draw(2)});
        return pc_reshape(pc_fn_adaptive_avg_pool2d(picture, side, side), PC_SHAPE(side, side));
    default:
        return pc_reshape(pc_fn_avg_pool2d(picture, (pc_fn_pool2d_options){.kernel = {3, 3},
                                                                           .stride = {1, 1},
                                                                           .padding = {1, 1},
                                                                           .exclude_padding = draw(2)}),
                          PC_SHAPE(side, side));
    }
}

static pc_tensor *cast(pc_tensor *t)
{
    static const pc_dtype dtypes[] = {PC_F32, PC_F32, PC_BF16, PC_F16, PC_F64};
    return pc_cast(t, dtypes[draw(PC__COUNT(dtypes))]);
}

#endif
