/* conv_calls.h: convolutions as the CPU knows them, and the same as calls of the host side of cuda's. */
#ifndef PC_TEST_CONV_CALLS_H
#define PC_TEST_CONV_CALLS_H

#include "channels_last.h"
#include "conv_play.h"

#include <math.h>
#include <paracord/autograd.h>
#include <paracord/ops.h>
#include <paracord/random.h>

typedef struct layer {
    int64_t n, c, h, w, o;
    int kh, kw, stride, padding, pool;
    pc_activation_kind activation;
    bool bias;
} layer;

static bool weights_last; /* those that the calls see lie channels last */

static pc__cuda_stream face;
static pc_stream stream = {.device = {PC_CUDA, 0}, .implementation = &face};
static const pc__op op = {.name = "conv2d"};

static pc_tensor *as_seen(pc_tensor *weight)
{
    return weights_last ? as_channels_last(pc_detach(weight)) : weight;
}

static pc_tensor *like(const pc_tensor *t)
{
    return as_channels_last(pc_zeros(pc_shape_of(4, t->shape), PC_F32, PC_DEVICE_CPU));
}

static void near(pc_tensor *got, pc_tensor *want)
{
    pc_tensor *difference = pc_sub(got, want);
    assert_not_null_ok(difference);
    const double apart = sqrt(pc_item(pc_max(pc_mul(difference, difference))));
    if (!(apart < 1e-5 * (1 + sqrt(pc_item(pc_max(pc_mul(want, want)))))))
        fail_msg("%g apart", apart);
}

/* What the CPU makes of a layer, the operands with it. */
typedef struct known {
    pc_tensor *x, *weight, *bias, *y, *argmax, *dy, *dx, *dweight, *dbias;
} known;

static known know(const layer *l)
{
    pc_seed(3);
    known k = {.x = as_channels_last(pc_randn(PC_SHAPE(l->n, l->c, l->h, l->w), PC_F32, PC_DEVICE_CPU)),
               .weight = pc_randn(PC_SHAPE(l->o, l->c, l->kh, l->kw), PC_F32, PC_DEVICE_CPU),
               .bias = l->bias ? pc_randn(PC_SHAPE(l->o), PC_F32, PC_DEVICE_CPU) : NULL};
    assert_ok(pc_require_grad(k.x, true));
    assert_ok(pc_require_grad(k.weight, true));
    if (k.bias)
        assert_ok(pc_require_grad(k.bias, true));
    k.y = pc_fn_conv2d(k.x, k.weight, k.bias,
                       (pc_fn_conv2d_options){.stride = {l->stride, l->stride},
                                              .padding = {l->padding, l->padding},
                                              .activation = l->activation,
                                              .pool = l->pool});
    assert_not_null_ok(k.y);
    k.argmax = pc_zeros(PC_SHAPE(l->pool > 1 ? pc__count(4, k.y->shape) : 0), PC_U8, PC_DEVICE_CPU);
    k.dy = as_channels_last(pc_randn(pc_shape_of(4, k.y->shape), PC_F32, PC_DEVICE_CPU));
    assert_ok(pc_backward_with(k.y, k.dy));
    k.dx = pc_grad(k.x), k.dweight = pc_grad(k.weight), k.dbias = k.bias ? pc_grad(k.bias) : NULL;
    return k;
}

static pc__conv2d_attributes attributes_of(const layer *l)
{
    return (pc__conv2d_attributes){.spec = {.stride = {l->stride, l->stride},
                                            .padding = {l->padding, l->padding},
                                            .activation = l->activation,
                                            .pool = l->pool}};
}

static inline pc_status forward(const layer *l, const known *k, pc_tensor **y)
{
    pc__conv2d_attributes a = attributes_of(l);
    pc_tensor *in[3] = {k->x, as_seen(k->weight), k->bias};
    const pc_call call = {.op = &op,
                          .in = in,
                          .n_in = l->bias ? 3 : 2,
                          .n_out = 2,
                          .out = { *y = like(k->y), k->argmax},
                          .attributes = &a,
                          .attribute_bytes = sizeof a};
    return pc__cuda_op_conv2d(&stream, &call);
}

/* needs: bits for x, weight, bias. */
static inline pc_status backward(const layer *l, const known *k, int needs, pc_tensor **out)
{
    pc__conv2d_attributes a = attributes_of(l);
    pc_tensor *in[5] = {k->x, as_seen(k->weight), as_channels_last(k->y), k->argmax, k->dy};
    out[0] = like(k->x), out[1] = as_seen(pc_zeros(pc_shape_of(4, k->weight->shape), PC_F32, PC_DEVICE_CPU));
    out[2] = pc_zeros(PC_SHAPE(l->o), PC_F32, PC_DEVICE_CPU);
    for (int i = 0; i < 3; i++)
        a.needs[i] = needs >> i & 1;
    const pc_call call = {.op = &op,
                          .in = in,
                          .n_in = 5,
                          .n_out = 3,
                          .out = {out[0], out[1], out[2]},
                          .attributes = &a,
                          .attribute_bytes = sizeof a};
    return pc__cuda_op_conv2d_backward(&stream, &call);
}

/* Both directions, with all gradients, are right. */
static inline void is_right(const layer *l)
{
    PC_SCOPE {
        pc_tensor *y, *out[3];
        const known k = know(l);
        assert_ok(forward(l, &k, &y));
        near(y, k.y);
        assert_ok(backward(l, &k, l->bias ? 7 : 3, out));
        near(out[0], k.dx);
        near(out[1], k.dweight);
        if (l->bias)
            near(out[2], k.dbias);
    }
}

static inline void by(int own, int cudnn)
{
    for (int i = 0; i < PC__CONV_DIRECTIONS; i++) {
        assert_int_equal(play.own[i], own);
        assert_int_equal(play.cudnn[i], cudnn);
    }
}

/* Shapes of one case: the table keeps what was chosen, so each case has shapes of its own. */
static inline layer plain(int64_t n)
{
    return (layer){n, 3, 6, 5, 4, 3, 3, 1, 1, 1, PC_ACTIVATION_RELU, true};
}

#endif
