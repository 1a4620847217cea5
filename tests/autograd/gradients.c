/* Gradients against five-point differences in float64: every differentiable op, through views, broadcasting, strided
 * inputs and fused variants. */
#include "channels_last.h"
#include "device.h"

#include <math.h>
#include <paracord/autograd.h>
#include <paracord/loss.h>
#include <paracord/ops.h>
#include <paracord/random.h>
#include <paracord/sample.h>

enum { INPUTS = 3, VALUES = 400 };

typedef struct check {
    const char *name;
    pc_tensor *(*f)(pc_tensor **x); /* any shape; summed with uneven weights */
    pc_shape shape[INPUTS];         /* ndim -1: no more inputs */
    double low;                     /* values start here; 0: -1 */
} check;

static double values[INPUTS][VALUES];

/* Numbers between low and low + 2 that are far from each other and from 0: no maximum ties, no kink is stepped over. */
static void draw(double *x, int64_t n, double low, uint64_t seed)
{
    int64_t order[VALUES];
    assert_true(n <= VALUES);
    pc_permutation(seed, 77, order, n);
    for (int64_t i = 0; i < n; i++)
        x[i] = low + 2 * ((double)order[i] + 0.31 + 0.3 * pc_uniform(seed, 78, (uint64_t)i)) / (double)n;
}

static int64_t count(pc_shape shape)
{
    int64_t n = 1;
    for (int i = 0; i < shape.ndim; i++)
        n *= shape.dim[i];
    return n;
}

/* f of the present values, as one number; with `backward` the gradients go to grad. */
static double evaluate(const check *c, int n_in, bool backward, double grad[INPUTS][VALUES])
{
    double result = 0;
    pc_seed(4); /* dropout draws the same every time */
    PC_SCOPE {
        pc_tensor *x[INPUTS] = {NULL};
        for (int i = 0; i < n_in; i++) {
            x[i] = pc_from_data(values[i], c->shape[i], PC_F64, test_device());
            assert_ok(pc_require_grad(x[i], backward));
        }
        pc_tensor *y = pc_flatten_from(c->f(x), 0);
        pc_tensor *weight = pc_add_scalar(pc_arange(0, (double)pc_tensor_count(y), 1, PC_F64, test_device()), 1.5);
        weight = pc_div(pc_scalar(2, PC_F64, test_device()), weight);
        pc_tensor *loss = pc_sum(pc_mul(y, weight));
        result = pc_item(loss);
        if (pc_failed())
            fail_msg("%s: %s", c->name, pc_error_last()->message);
        if (backward)
            assert_ok(pc_backward(loss));
        for (int i = 0; backward && i < n_in; i++)
            assert_ok(pc_read(pc_grad(x[i]), grad[i], (size_t)count(c->shape[i]) * sizeof(double)));
    }
    return result;
}

/* (f(x - 2h) - 8 f(x - h) + 8 f(x + h) - f(x + 2h)) / 12h, exact to h^4 */
static double difference(const check *c, int n_in, double *x)
{
    const double h = 1e-3, at = *x, weight[4] = {1, -8, 8, -1}, step[4] = {-2, -1, 1, 2};
    double sum = 0;
    for (int k = 0; k < 4; k++) {
        *x = at + step[k] * h;
        sum += weight[k] * evaluate(c, n_in, false, NULL);
    }
    *x = at;
    return sum / (12 * h);
}

static void compare(void **state)
{
    const check *c = *state;
    static double grad[INPUTS][VALUES];
    int n_in = 0;
    for (; n_in < INPUTS && c->shape[n_in].ndim >= 0; n_in++)
        draw(values[n_in], count(c->shape[n_in]), c->low != 0 ? c->low : -1, (uint64_t)n_in + 1);
    pc_error_clear();
    evaluate(c, n_in, true, grad);
    for (int i = 0; i < n_in; i++)
        for (int64_t k = 0; k < count(c->shape[i]); k++) {
            double want = difference(c, n_in, &values[i][k]);
            if (!(fabs(grad[i][k] - want) <= 1e-8 + 1e-7 * fabs(want)))
                fail_msg("%s: gradient %d of input %d is %.12g, want %.12g", c->name, (int)k, i, grad[i][k], want);
        }
    assert_no_leak();
}

#define F(name, expression)                                                                                            \
    static pc_tensor *name(pc_tensor **x)                                                                              \
    {                                                                                                                  \
        return expression;                                                                                             \
    }

static pc_tensor *turned(pc_tensor *t)
{
    return pc_transpose(t, 0, 1);
}

/* the same pictures with channels-last memory */
static pc_tensor *last(pc_tensor *t)
{
    return as_channels_last(t);
}

static pc_tensor *indices(int64_t a, int64_t b, int64_t c, int64_t d)
{
    return pc_from_data((int64_t[]){a, b, c, d}, PC_SHAPE(4), PC_I64, test_device());
}

static pc_tensor *half(pc_tensor *like)
{
    pc_tensor *places = pc_arange(0, (double)pc_tensor_count(like), 1, PC_I32, test_device());
    return pc_lt(places, pc_scalar((double)pc_tensor_count(like) / 2, PC_F64, test_device()));
}

F(f_add, pc_add(x[0], x[1]))
F(f_sub, pc_sub(x[0], x[1]))
F(f_mul, pc_mul(x[0], x[1]))
F(f_div, pc_div(x[0], x[1]))
F(f_turned_add, pc_add(turned(x[0]), x[1]))
F(f_turned_div, pc_div(turned(x[0]), x[1]))
F(f_own_product, pc_mul(x[0], x[0]))
F(f_mixed, pc_div(pc_mul(x[0], pc_sub(x[0], x[1])), pc_add(pc_mul(x[1], x[1]), x[0])))
F(f_numbers, pc_div_scalar(pc_sub_scalar(pc_mul_scalar(pc_add_scalar(x[0], 2), 3), 1), 4))
F(f_neg, pc_neg(x[0]))
F(f_minimum, pc_minimum(x[0], x[1]))
F(f_maximum, pc_maximum(turned(x[0]), x[1]))
F(f_pow, pc_pow(x[0], x[1]))
F(f_pow_scalar, pc_pow_scalar(x[0], 2.5))
F(f_pow_whole, pc_pow_scalar(x[0], 3))
F(f_pow_below, pc_pow_scalar(x[0], -2))
F(f_leaky_relu, pc_leaky_relu(x[0], 0.3))
F(f_elu, pc_elu(x[0], 0.7))
F(f_clamp, pc_clamp(x[0], -0.6, 0.6))
#define PC__FUNCTION(name, dtypes, cost, saves, autocast, f, derivative) F(f_##name, pc_##name(x[0]))
#include "ops/pointwise.def"
F(f_expanded_exp, pc_exp(pc_expand(x[0], PC_SHAPE(3, 4))))
F(f_where, pc_where(half(x[0]), pc_mul(x[0], x[0]), pc_exp(x[0])))
F(f_where_broadcast, pc_where(half(x[0]), x[0], pc_mul_scalar(x[1], 3)))
F(f_cast, pc_mul(pc_cast(x[0], PC_F64), x[0]))
F(f_sum, pc_mul(pc_sum(x[0]), x[0]))
F(f_mean, pc_mul(pc_mean(turned(x[0])), turned(x[0])))
F(f_max, pc_mul(pc_max(x[0]), x[0]))
F(f_sum_dims, pc_mul(pc_sum_dims(x[0], PC_SHAPE(0, 2), true), x[0]))
F(f_mean_dims, pc_exp(pc_mean_dims(x[0], PC_SHAPE(-1, 0), false)))
F(f_min, pc_mul(pc_min(x[0]), x[0]))
F(f_min_dim, pc_mul(pc_min_dim(x[0], 1, true, NULL), x[0]))
F(f_prod, pc_mul(pc_prod(x[0]), x[0]))
F(f_prod_dim, pc_mul(pc_prod_dim(x[0], 1, true), x[0]))
F(f_prod_of_zero, pc_prod(pc_mul(x[0], pc_sub_scalar(pc_arange(0, 6, 1, PC_F64, test_device()), 3))))
F(f_var, pc_mul(pc_var(x[0], 1), x[0]))
F(f_var_dims, pc_mul(pc_var_dims(x[0], PC_SHAPE(0, 2), 0, true), x[0]))
F(f_std, pc_mul(pc_std(x[0], 1), x[0]))
F(f_std_dims, pc_mul(pc_std_dims(x[0], PC_SHAPE(1), 1, true), x[0]))
F(f_norm, pc_mul(pc_norm(x[0], 2), x[0]))
F(f_norm_1, pc_mul(pc_norm_dims(x[0], 1, PC_SHAPE(0, 2), true), x[0]))
F(f_norm_2, pc_mul(pc_norm_dims(x[0], 2, PC_SHAPE(0, 2), true), x[0]))
F(f_norm_most, pc_mul(pc_norm_dims(x[0], INFINITY, PC_SHAPE(0, 2), true), x[0]))
F(f_norm_least, pc_mul(pc_norm_dims(x[0], -INFINITY, PC_SHAPE(1), true), x[0]))
F(f_norm_3, pc_mul(pc_norm_dims(x[0], 3, PC_SHAPE(1), true), x[0]))
F(f_norm_half, pc_mul(pc_norm_dims(x[0], 0.5, PC_SHAPE(1), true), x[0]))
F(f_dot, pc_mul(pc_dot(x[0], x[1]), x[0]))
F(f_max_dim, pc_mul(pc_max_dim(x[0], 1, true, NULL), x[0]))
F(f_max_dim_turned, pc_exp(pc_max_dim(pc_permute(x[0], PC_SHAPE(2, 0, 1)), 0, false, NULL)))
F(f_views, pc_mul(pc_reshape(pc_permute(x[0], PC_SHAPE(2, 0, 1)), PC_SHAPE(4, -1)),
                  pc_exp(pc_flatten_from(pc_permute(x[0], PC_SHAPE(2, 0, 1)), 1))))
F(f_slice, pc_mul(pc_slice(x[0], 1, 0, 4, 2), pc_slice(x[0], 1, 1, 4, 2)))
F(f_overlapping, pc_mul(pc_slice(pc_flatten_from(x[0], 0), 0, 1, 9, 1), pc_slice(pc_flatten_from(x[0], 0), 0, 0, 8, 1)))
F(f_squeeze, pc_exp(pc_squeeze(pc_unsqueeze(pc_unsqueeze(x[0], 1), -1), 1)))
F(f_expand, pc_mul(pc_expand(x[0], PC_SHAPE(2, 3, 4)), pc_expand(x[1], PC_SHAPE(2, 3, 4))))
F(f_copies, pc_mul(pc_contiguous(turned(x[0])), pc_clone(turned(x[0]))))
F(f_to, pc_exp(pc_to(x[0], test_device(), PC_F64, true)))
F(f_cat, pc_exp(pc_cat((pc_tensor *[]){x[0], turned(x[1]), pc_mul(x[0], x[0])}, 3, 1)))
F(f_index_select, pc_exp(pc_index_select(x[0], 1, indices(2, 0, 2, 3))))
F(f_index_turned, pc_exp(pc_index_select(turned(x[0]), 0, indices(1, 1, 1, 3))))
F(f_embedding,
  pc_exp(pc_fn_embedding(x[0], pc_reshape(indices(1, 0, 1, 1), PC_SHAPE(2, 2)), (pc_fn_embedding_options){0})))
F(f_embedding_padded,
  pc_exp(pc_fn_embedding(x[0], indices(1, 0, 1, 2), (pc_fn_embedding_options){.padded = true, .padding_idx = 3})))
F(f_index_add, pc_exp(pc_index_add(x[0], 1, indices(2, 0, 2, 2), x[1])))
F(f_index_copy, pc_exp(pc_index_copy(x[0], 1, indices(2, 0, 4, 1), x[1])))
F(f_index_put, pc_exp(pc_index_put(x[0], indices(-1, 0, 2, -1), x[1], true)))
F(f_gather, pc_exp(pc_gather(x[0], 0, pc_reshape(indices(1, 0, 1, 1), PC_SHAPE(2, 2)))))
F(f_scatter_add, pc_exp(pc_scatter_add(x[0], 1, pc_reshape(indices(2, 0, 2, 2), PC_SHAPE(2, 2)), x[1])))
F(f_pad, pc_exp(pc_pad(x[0], PC_SHAPE(1, 2), PC_SHAPE(-1, 0), PC_PAD_CONSTANT, 0.5)))
F(f_pad_reflect, pc_exp(pc_pad(turned(x[0]), PC_SHAPE(1, 2), PC_SHAPE(2, 1), PC_PAD_REFLECT, 0)))
F(f_pad_replicate, pc_exp(pc_pad(x[0], PC_SHAPE(1, 2), PC_SHAPE(2, 0), PC_PAD_REPLICATE, 0)))
F(f_flip, pc_exp(pc_flip(turned(x[0]), PC_SHAPE(0, 1))))
F(f_roll, pc_exp(pc_roll(x[0], PC_SHAPE(1, -1), PC_SHAPE(0, 1))))
F(f_repeat, pc_exp(pc_repeat(x[0], PC_SHAPE(2, 1, 3))))
F(f_tril, pc_exp(pc_tril(x[0], 1)))
F(f_triu, pc_exp(pc_triu(x[0], 0)))
F(f_sort, pc_exp(pc_sort(x[0], 1, true, NULL)))
F(f_sort_turned, pc_exp(pc_sort(turned(x[0]), 1, false, NULL)))
F(f_topk, pc_exp(pc_topk(x[0], 2, 0, false, NULL)))
F(f_cumsum, pc_exp(pc_cumsum(x[0], 1)))
F(f_cumsum_turned, pc_exp(pc_cumsum(turned(x[0]), 1)))
F(f_matmul, pc_matmul(x[0], x[1]))
F(f_matmul_turned, pc_matmul(turned(x[0]), turned(x[1])))
F(f_matmul_permuted, pc_matmul(pc_permute(x[0], PC_SHAPE(1, 0, 2)), x[1]))
F(f_matmul_self, pc_matmul(x[0], turned(x[0])))
F(f_matmul_expanded, pc_matmul(pc_expand(x[0], PC_SHAPE(3, 4)), x[1]))
F(f_linear, pc_fn_linear(x[0], x[1], x[2], PC_ACTIVATION_NONE))
F(f_linear_relu, pc_fn_linear(x[0], x[1], x[2], PC_ACTIVATION_RELU))
F(f_linear_sigmoid, pc_fn_linear(x[0], x[1], x[2], PC_ACTIVATION_SIGMOID))
F(f_linear_tanh, pc_fn_linear(x[0], x[1], x[2], PC_ACTIVATION_TANH))
F(f_linear_gelu, pc_fn_linear(x[0], x[1], x[2], PC_ACTIVATION_GELU))
F(f_linear_no_bias, pc_fn_linear(turned(x[0]), x[1], NULL, PC_ACTIVATION_TANH))
F(f_softmax, pc_softmax(x[0], 1))
F(f_layer_norm, pc_fn_layer_norm(x[0], PC_SHAPE(4), x[1], x[2], 0.25))
F(f_rms_norm, pc_fn_rms_norm(x[0], PC_SHAPE(4), x[1], 0.25))
F(f_group_norm, pc_fn_group_norm(x[0], 2, x[1], x[2], 0.25))
F(f_stored_norm, pc_fn_batch_norm(x[0], pc_zeros(PC_SHAPE(3), PC_F64, test_device()),
                                  pc_ones(PC_SHAPE(3), PC_F64, test_device()), x[1], x[2], false, 0, 0.25))
F(f_batch_norm, pc_fn_batch_norm(x[0], NULL, NULL, x[1], x[2], true, 0.1, 0.25))
F(f_softmax_0, pc_softmax(x[0], 0))
F(f_log_softmax, pc_log_softmax(x[0], -1))
F(f_log_softmax_turned, pc_log_softmax(turned(x[0]), 0))
/* false on the diagonal */
static pc_tensor *off_diagonal(int64_t l, int64_t s)
{
    pc_tensor *rows = pc_reshape(pc_arange(0, (double)l, 1, PC_I32, test_device()), PC_SHAPE(l, 1));
    return pc_ne(rows, pc_arange(0, (double)s, 1, PC_I32, test_device()));
}

F(f_attention, pc_fn_attention(x[0], x[1], x[2], (pc_fn_attention_options){.scale = 0.7}))
F(f_self_attention,
  pc_fn_self_attention(pc_permute(x[0], PC_SHAPE(1, 0, 2, 3)), (pc_fn_attention_options){.causal = true}))
F(f_attention_causal, pc_fn_attention(x[0], x[1], x[2], (pc_fn_attention_options){.causal = true}))
F(f_attention_dropout, pc_fn_attention(x[0], x[1], x[2], (pc_fn_attention_options){.dropout = 0.3}))
F(f_attention_views, pc_fn_attention(pc_transpose(x[0], 1, 2), pc_transpose(x[1], 0, 1), x[2],
                                     (pc_fn_attention_options){.mask = off_diagonal(3, 4)}))
F(f_dropout, pc_fn_dropout(pc_mul(x[0], x[0]), 0.4))
F(f_bce, pc_bce_with_logits(pc_mul_scalar(x[0], 5), x[1]))
F(f_bce_turned, pc_bce_with_logits(turned(x[0]), pc_expand(x[1], PC_SHAPE(4, 3))))
F(f_mse, pc_mse(x[0], pc_exp(x[1])))
F(f_mse_self, pc_mse(x[0], pc_mul(x[0], x[0])))
F(f_cross_entropy, pc_cross_entropy(x[0], indices(0, 2, 2, 1)))
F(f_cross_entropy_turned, pc_cross_entropy(pc_mul_scalar(turned(x[0]), 9), indices(0, 2, 2, 1)))
F(f_huber, pc_huber_loss(x[0], x[1], 0.6, PC_REDUCTION_NONE))
F(f_smooth_l1, pc_smooth_l1_loss(x[0], x[1], 0.6, PC_REDUCTION_MEAN))
F(f_l1, pc_l1_loss(x[0], x[1], PC_REDUCTION_SUM))
F(f_kl_div, pc_kl_div(x[0], x[1], false, PC_REDUCTION_BATCH_MEAN))
F(f_kl_div_log, pc_kl_div(x[0], x[1], true, PC_REDUCTION_NONE))
F(f_bce_probabilities, pc_fn_bce(pc_sigmoid(x[0]), x[1], (pc_fn_bce_options){.reduction = PC_REDUCTION_SUM}))
F(f_bce_weights, pc_fn_bce_with_logits(x[0], x[1], (pc_fn_bce_options){.weight = x[2], .pos_weight = x[2]}))
#define CLASSES(name, ...)                                                                                             \
    F(name, pc_fn_cross_entropy(x[0], indices(0, 2, 2, 1), (pc_fn_cross_entropy_options){__VA_ARGS__}))
CLASSES(f_classes, .ignore = true, .ignore_index = 2)
CLASSES(f_classes_sum, .ignore = true, .reduction = PC_REDUCTION_SUM)
CLASSES(f_classes_weights, .weight = pc_exp(x[1]), .label_smoothing = 0.2)
F(f_classes_soft, pc_fn_cross_entropy(x[0], x[1], (pc_fn_cross_entropy_options){.label_smoothing = 0.2}))
#define UPSAMPLE(name, ...) F(name, pc_fn_upsample(x[0], (pc_fn_upsample_options){__VA_ARGS__}))
UPSAMPLE(f_nearest, .size = {3, 7})
UPSAMPLE(f_bilinear, .size = {3, 7}, .mode = PC_UPSAMPLE_BILINEAR)
UPSAMPLE(f_bilinear_corners, .scale = {2, 0.5}, .mode = PC_UPSAMPLE_BILINEAR, .align_corners = true)
F(f_avg_pool_uneven, pc_fn_avg_pool2d(x[0], (pc_fn_pool2d_options){.kernel = {3, 2},
                                                                   .stride = {2, 3},
                                                                   .padding = {1, 0},
                                                                   .ceil_mode = true,
                                                                   .exclude_padding = true}))
F(f_max_pool_ceil,
  pc_fn_max_pool2d(x[0], (pc_fn_pool2d_options){.kernel = {3, 2}, .stride = {2, 3}, .ceil_mode = true}))
F(f_adaptive_avg, pc_fn_adaptive_avg_pool2d(x[0], 3, 4))
F(f_adaptive_max, pc_fn_adaptive_max_pool2d(x[0], 3, 4))
#define SAMPLE(name, ...)                                                                                              \
    F(name, pc_fn_grid_sample(x[0], pc_tanh(pc_mul_scalar(x[1], 2)), (pc_fn_grid_sample_options){__VA_ARGS__}))
SAMPLE(f_grid_zeros, .align_corners = true)
SAMPLE(f_grid_border, .padding = PC_GRID_BORDER)
SAMPLE(f_grid_reflection, .padding = PC_GRID_REFLECTION)
F(f_residual, pc_mul_scalar(pc_add(x[0], pc_add(x[0], pc_exp(x[0]))), 1))
F(f_residual_twice, pc_mul_scalar(pc_add(x[0], pc_add(x[0], pc_add(pc_exp(x[0]), pc_add(x[0], pc_tanh(x[0]))))), 1))
F(f_used_often, pc_mul(pc_add(x[0], pc_mul(x[0], x[0])), pc_sub(x[0], pc_exp(x[0]))))
F(f_deep, pc_tanh(pc_matmul(pc_tanh(pc_matmul(x[0], x[1])), turned(pc_sigmoid(x[1])))))

#define CONV(name, picture, ...) F(name, pc_fn_conv2d(picture, x[1], x[2], (pc_fn_conv2d_options){__VA_ARGS__}))
CONV(f_conv, x[0], 0)
CONV(f_conv_stride, x[0], .stride = {2, 1}, .padding = {1, 2})
CONV(f_conv_relu, x[0], .activation = PC_ACTIVATION_RELU)
CONV(f_conv_sigmoid, x[0], .activation = PC_ACTIVATION_SIGMOID)
CONV(f_conv_tanh, x[0], .activation = PC_ACTIVATION_TANH, .stride = {2, 2})
CONV(f_conv_pool, x[0], .pool = 2)
CONV(f_conv_relu_pool, x[0], .activation = PC_ACTIVATION_RELU, .pool = 2, .padding = {1, 1})
CONV(f_conv_sigmoid_pool, x[0], .activation = PC_ACTIVATION_SIGMOID, .pool = 2)
CONV(f_conv_tanh_pool, x[0], .activation = PC_ACTIVATION_TANH, .pool = 3)
CONV(f_conv_silu_pool, x[0], .activation = PC_ACTIVATION_SILU, .pool = 3)
CONV(f_conv_dilated, x[0], .dilation = {2, 1}, .padding = {1, 0})
CONV(f_conv_dilated_stride, x[0], .dilation = {2, 3}, .stride = {3, 2}, .padding = {2, 1})
CONV(f_conv_groups, x[0], .groups = 2, .activation = PC_ACTIVATION_TANH, .padding = {1, 0})
CONV(f_conv_depthwise, x[0], .groups = 2, .padding = {1, 1})
CONV(f_conv_depthwise_stride, x[0], .groups = 2, .padding = {0, 1}, .stride = {2, 1}, .dilation = {1, 2})
CONV(f_conv_same, x[0], .same = true, .dilation = {1, 3})
#define BACK(name, ...) F(name, pc_fn_conv_transpose2d(x[0], x[1], x[2], (pc_fn_conv_transpose2d_options){__VA_ARGS__}))
BACK(f_conv_back, .stride = {2, 1}, .padding = {1, 0}, .output_padding = {1, 0})
BACK(f_conv_back_dilated, .dilation = {2, 3}, .stride = {1, 2}, .output_padding = {1, 2})
BACK(f_conv_back_groups, .groups = 2, .stride = {1, 2})
BACK(f_conv_back_depthwise, .groups = 2, .padding = {1, 1})
F(f_conv1d, pc_fn_conv1d(x[0], x[1], x[2], (pc_fn_conv1d_options){.stride = 2, .padding = 1}))
F(f_conv1d_groups, pc_fn_conv1d(x[0], x[1], x[2], (pc_fn_conv1d_options){.groups = 2, .dilation = 2, .same = true}))
CONV(f_conv_last, last(x[0]), .activation = PC_ACTIVATION_RELU, .pool = 2)
CONV(f_conv_sliced, pc_slice(pc_slice(x[0], 2, 0, 6, 1), 3, 1, 6, 1), .activation = PC_ACTIVATION_TANH)
F(f_conv_no_bias,
  pc_fn_conv2d(x[0], x[1], NULL, (pc_fn_conv2d_options){.activation = PC_ACTIVATION_SIGMOID, .pool = 2}))
F(f_conv_turned, pc_fn_conv2d(pc_transpose(x[0], 2, 3), pc_transpose(x[1], 2, 3), x[2], (pc_fn_conv2d_options){0}))
F(f_max_pool, pc_fn_max_pool2d(x[0], (pc_fn_pool2d_options){.kernel = {2, 3}}))
F(f_max_pool_over,
  pc_fn_max_pool2d(x[0], (pc_fn_pool2d_options){.kernel = {3, 3}, .stride = {2, 1}, .padding = {1, 1}}))
F(f_max_pool_last, pc_fn_max_pool2d(last(x[0]), (pc_fn_pool2d_options){.kernel = {2, 2}}))
F(f_avg_pool, pc_fn_avg_pool2d(x[0], (pc_fn_pool2d_options){.kernel = {2, 3}}))
F(f_avg_pool_over,
  pc_fn_avg_pool2d(last(x[0]), (pc_fn_pool2d_options){.kernel = {3, 3}, .stride = {1, 2}, .padding = {1, 0}}))
F(f_net, pc_bce_with_logits(pc_fn_linear(pc_flatten_from(pc_fn_conv2d(x[0], x[1], NULL,
                                                                      (pc_fn_conv2d_options){
                                                                          .activation = PC_ACTIVATION_RELU, .pool = 2}),
                                                         1),
                                         x[2], NULL, PC_ACTIVATION_NONE),
                            pc_full(PC_SHAPE(2, 1), 0.5, PC_F64, test_device())))

#define S(...)                                                                                                         \
    {                                                                                                                  \
        (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)),                                                     \
        {                                                                                                              \
            __VA_ARGS__                                                                                                \
        }                                                                                                              \
    }
#define SCALAR                                                                                                         \
    {                                                                                                                  \
        0,                                                                                                             \
        {                                                                                                              \
            0                                                                                                          \
        }                                                                                                              \
    }
#define NONE                                                                                                           \
    {                                                                                                                  \
        -1,                                                                                                            \
        {                                                                                                              \
            0                                                                                                          \
        }                                                                                                              \
    }

/* name, shapes of the inputs, lowest value */
#define ONE(f, a)                                                                                                      \
    {                                                                                                                  \
#f, f, {a, NONE, NONE }, 0                                                                                     \
    }
#define ONE_FROM(f, a, low)                                                                                            \
    {                                                                                                                  \
#f, f, {a, NONE, NONE }, low                                                                                   \
    }
#define TWO(f, a, b)                                                                                                   \
    {                                                                                                                  \
#f, f, {a, b, NONE }, 0                                                                                        \
    }
#define TWO_FROM(f, a, b, low)                                                                                         \
    {                                                                                                                  \
#f, f, {a, b, NONE }, low                                                                                      \
    }
#define THREE(f, a, b, c)                                                                                              \
    {                                                                                                                  \
#f, f, {a, b, c }, 0                                                                                           \
    }
static const check checks[] = {
    TWO(f_add, S(2, 3), S(2, 3)),
    TWO(f_add, S(2, 1, 3), S(4, 1)),
    TWO(f_add, SCALAR, S(3)),
    TWO(f_sub, S(3), S(2, 3)),
    TWO(f_mul, S(2, 3), S(3)),
    TWO(f_mul, S(2, 1), S(1, 3)),
    TWO_FROM(f_div, S(2, 3), S(3), 0.5),
    TWO_FROM(f_div, SCALAR, S(2, 2), 0.5),
    TWO(f_turned_add, S(3, 2), S(2, 3)),
    TWO_FROM(f_turned_div, S(3, 2), S(1, 3), 0.5),
    ONE(f_own_product, S(5)),
    TWO_FROM(f_mixed, S(2, 3), S(2, 1), 0.5),
    ONE(f_numbers, S(2, 3)),
    ONE(f_neg, S(4)),
    TWO(f_minimum, S(2, 3), S(3)),
    TWO(f_maximum, S(3, 2), S(2, 3)),
    TWO_FROM(f_pow, S(2, 3), S(3), 0.5),
    TWO_FROM(f_pow, SCALAR, S(2, 2), 0.5),
    ONE_FROM(f_pow_scalar, S(5), 0.25),
    ONE(f_pow_whole, S(5)),
    ONE_FROM(f_pow_below, S(5), 0.5),
    ONE(f_leaky_relu, S(7)),
    ONE(f_elu, S(7)),
    ONE(f_clamp, S(9)),
    ONE(f_exp, S(2, 3)),
#define PC__FUNCTION(name, dtypes, cost, saves, autocast, f, derivative) ONE_FROM(f_##name, S(5), 0.25),
#include "ops/pointwise.def"
    ONE(f_relu, S(9)),
    ONE(f_abs, S(9)),
    ONE(f_square, S(7)),
    ONE(f_sin, S(7)),
    ONE(f_cos, S(7)),
    ONE(f_relu6, S(9)),
    ONE(f_softplus, S(7)),
    ONE(f_sigmoid, S(2, 3)),
    ONE(f_tanh, S(2, 3)),
    ONE(f_erf, S(7)),
    ONE(f_silu, S(7)),
    ONE(f_gelu, S(7)),
    ONE(f_gelu_tanh, S(7)),
    ONE(f_expanded_exp, S(3, 1)),
    ONE(f_where, S(7)),
    TWO(f_where_broadcast, S(4), SCALAR),
    ONE(f_cast, S(3)),
    ONE(f_sum, S(2, 3)),
    ONE(f_mean, S(2, 3)),
    ONE(f_max, S(2, 3)),
    ONE(f_sum_dims, S(2, 3, 4)),
    ONE(f_mean_dims, S(2, 3, 4)),
    ONE(f_min, S(7)),
    ONE(f_min_dim, S(3, 4)),
    ONE(f_prod, S(5)),
    ONE(f_prod_dim, S(2, 3, 2)),
    ONE(f_prod_of_zero, S(6)),
    ONE(f_var, S(2, 3)),
    ONE(f_var_dims, S(2, 3, 4)),
    ONE(f_std, S(2, 3)),
    ONE(f_std_dims, S(2, 3, 4)),
    ONE(f_norm, S(2, 3)),
    ONE(f_norm_1, S(2, 3, 4)),
    ONE(f_norm_2, S(2, 3, 4)),
    ONE(f_norm_most, S(2, 3, 4)),
    ONE(f_norm_least, S(2, 3)),
    ONE(f_norm_3, S(2, 3)),
    ONE(f_norm_half, S(2, 3)),
    TWO(f_dot, S(5), S(5)),
    ONE(f_max_dim, S(3, 4)),
    ONE(f_max_dim_turned, S(2, 3, 4)),
    ONE(f_views, S(2, 3, 4)),
    ONE(f_slice, S(3, 4)),
    ONE(f_overlapping, S(3, 3)),
    ONE(f_squeeze, S(2, 3)),
    TWO(f_expand, S(3, 1), S(2, 1, 4)),
    ONE(f_copies, S(2, 3)),
    ONE(f_to, S(2, 3)),
    TWO(f_cat, S(2, 3), S(4, 2)),
    ONE(f_index_select, S(2, 4)),
    ONE(f_index_turned, S(2, 4)),
    ONE(f_embedding, S(3, 2)),
    ONE(f_embedding_padded, S(4, 2)),
    TWO(f_index_add, S(2, 3), S(2, 4)),
    TWO(f_index_copy, S(2, 5), S(2, 4)),
    TWO(f_index_put, S(3, 2), S(4, 2)),
    ONE(f_gather, S(2, 3)),
    TWO(f_scatter_add, S(3, 4), S(2, 3)),
    ONE(f_pad, S(3, 2)),
    ONE(f_pad_reflect, S(3, 4)),
    ONE(f_pad_replicate, S(2, 3)),
    ONE(f_flip, S(2, 3)),
    ONE(f_roll, S(3, 2)),
    ONE(f_repeat, S(2, 2)),
    ONE(f_tril, S(3, 3)),
    ONE(f_triu, S(3, 3)),
    ONE(f_sort, S(2, 4)),
    ONE(f_sort_turned, S(3, 2)),
    ONE(f_topk, S(4, 2)),
    ONE(f_cumsum, S(2, 4)),
    ONE(f_cumsum_turned, S(2, 3)),
    TWO(f_matmul, S(2, 3), S(3, 4)),
    TWO(f_matmul, S(3), S(3)),
    TWO(f_matmul, S(2, 3), S(3)),
    TWO(f_matmul, S(3), S(3, 2)),
    TWO(f_matmul, S(2, 2, 3), S(2, 3, 2)),
    TWO(f_matmul, S(2, 1, 2, 3), S(3, 3, 2)),
    TWO(f_matmul, S(2, 2, 3), S(3)),
    TWO(f_matmul, S(3), S(2, 3, 2)),
    TWO(f_matmul, S(2, 3, 2), S(2, 4)),
    TWO(f_matmul, S(2, 2, 3, 2), S(1, 2, 3)),
    TWO(f_matmul, S(1, 3, 2), S(3, 2, 2)),
    TWO(f_matmul_permuted, S(3, 2, 2), S(2, 4)),
    TWO(f_matmul_turned, S(3, 2), S(4, 3)),
    ONE(f_matmul_self, S(3, 2)),
    TWO(f_matmul_expanded, S(1, 4), S(4, 2)),
    THREE(f_linear, S(2, 3), S(4, 3), S(4)),
    THREE(f_linear, S(2, 2, 3), S(4, 3), S(4)),
    THREE(f_linear, S(3), S(4, 3), S(4)),
    THREE(f_linear_relu, S(3, 3), S(4, 3), S(4)),
    THREE(f_linear_sigmoid, S(2, 2, 3), S(4, 3), S(4)),
    THREE(f_linear_tanh, S(2, 3), S(4, 3), S(4)),
    THREE(f_linear_gelu, S(2, 3), S(4, 3), S(4)),
    TWO(f_linear_no_bias, S(3, 2), S(4, 3)),
    ONE(f_softmax, S(2, 4)),
    ONE(f_softmax_0, S(3, 2)),
    ONE(f_log_softmax, S(2, 4)),
    ONE(f_log_softmax_turned, S(3, 4)),
    THREE(f_layer_norm, S(3, 4), S(4), S(4)),
    TWO(f_rms_norm, S(3, 4), S(4)),
    THREE(f_group_norm, S(2, 4, 3), S(4), S(4)),
    THREE(f_batch_norm, S(2, 3, 2, 2), S(3), S(3)),
    THREE(f_stored_norm, S(2, 3, 2, 2), S(3), S(3)),
    ONE(f_dropout, S(12)),
    THREE(f_attention, S(2, 3, 4), S(2, 5, 4), S(2, 5, 3)),
    ONE(f_self_attention, S(2, 3, 4, 3)),
    THREE(f_attention_causal, S(2, 5, 3), S(1, 4, 3), S(2, 4, 2)),
    THREE(f_attention_dropout, S(2, 4, 3), S(2, 6, 3), S(2, 6, 2)),
    THREE(f_attention_views, S(2, 5, 3), S(4, 2, 5), S(2, 4, 3)),
    TWO_FROM(f_bce, S(2, 3), S(2, 3), 0.1),
    TWO_FROM(f_bce_turned, S(3, 4), S(4, 1), 0.1),
    TWO(f_mse, S(2, 3), S(2, 3)),
    ONE(f_mse_self, S(5)),
    ONE(f_cross_entropy, S(4, 3)),
    ONE(f_cross_entropy_turned, S(3, 4)),
    TWO_FROM(f_huber, S(2, 5), S(2, 5), 0.1),
    TWO_FROM(f_smooth_l1, S(2, 5), S(2, 5), 0.1),
    TWO_FROM(f_l1, S(2, 5), S(2, 5), 0.1),
    TWO_FROM(f_kl_div, S(3, 2), S(3, 2), 0.1),
    TWO(f_kl_div_log, S(3, 2), S(3, 2)),
    TWO_FROM(f_bce_probabilities, S(2, 3), S(2, 3), 0.1),
    THREE(f_bce_weights, S(2, 3), S(2, 3), S(3)),
    ONE(f_classes, S(4, 3)),
    ONE(f_classes_sum, S(4, 3)),
    TWO(f_classes_weights, S(4, 3), S(3)),
    TWO_FROM(f_classes_soft, S(2, 3), S(2, 3), 0.1),
    ONE(f_nearest, S(1, 2, 4, 3)),
    ONE(f_bilinear, S(1, 2, 4, 3)),
    ONE(f_bilinear_corners, S(1, 2, 3, 4)),
    ONE(f_adaptive_avg, S(1, 2, 5, 6)),
    ONE(f_adaptive_max, S(1, 2, 5, 6)),
    TWO(f_grid_zeros, S(2, 2, 4, 3), S(2, 2, 3, 2)),
    TWO(f_grid_border, S(2, 2, 4, 3), S(2, 2, 3, 2)),
    TWO(f_grid_reflection, S(2, 2, 4, 3), S(2, 2, 3, 2)),
    ONE(f_avg_pool_uneven, S(1, 2, 6, 4)),
    ONE(f_max_pool_ceil, S(1, 2, 6, 4)),
    ONE(f_residual, S(4)),
    ONE(f_residual_twice, S(4)),
    ONE(f_used_often, S(4)),
    TWO(f_deep, S(2, 3), S(3, 4)),
    THREE(f_conv, S(2, 2, 4, 3), S(2, 2, 2, 2), S(2)),
    THREE(f_conv_stride, S(1, 2, 5, 4), S(2, 2, 3, 2), S(2)),
    THREE(f_conv_relu, S(1, 2, 4, 4), S(3, 2, 2, 2), S(3)),
    THREE(f_conv_sigmoid, S(1, 2, 4, 4), S(3, 2, 2, 2), S(3)),
    THREE(f_conv_tanh, S(1, 2, 5, 5), S(3, 2, 2, 2), S(3)),
    THREE(f_conv_pool, S(1, 2, 5, 5), S(3, 2, 2, 2), S(3)),
    THREE(f_conv_relu_pool, S(1, 2, 4, 5), S(3, 2, 2, 2), S(3)),
    THREE(f_conv_sigmoid_pool, S(1, 2, 5, 5), S(3, 2, 2, 2), S(3)),
    THREE(f_conv_tanh_pool, S(1, 1, 7, 7), S(3, 1, 2, 2), S(3)),
    THREE(f_conv_silu_pool, S(1, 1, 7, 7), S(3, 1, 2, 2), S(3)),
    THREE(f_conv_dilated, S(2, 2, 4, 3), S(2, 2, 2, 2), S(2)),
    THREE(f_conv_dilated_stride, S(1, 2, 6, 7), S(2, 2, 2, 2), S(2)),
    THREE(f_conv_groups, S(2, 4, 3, 3), S(4, 2, 2, 2), S(4)),
    THREE(f_conv_depthwise, S(2, 2, 3, 4), S(2, 1, 3, 3), S(2)),
    THREE(f_conv_depthwise_stride, S(1, 2, 4, 4), S(4, 1, 2, 2), S(4)),
    THREE(f_conv_same, S(1, 1, 3, 4), S(2, 1, 2, 2), S(2)),
    THREE(f_conv_back, S(2, 2, 2, 3), S(2, 3, 3, 2), S(3)),
    THREE(f_conv_back_dilated, S(1, 2, 2, 2), S(2, 1, 2, 2), S(1)),
    THREE(f_conv_back_groups, S(2, 4, 2, 2), S(4, 1, 2, 3), S(2)),
    THREE(f_conv_back_depthwise, S(1, 2, 3, 3), S(2, 1, 3, 2), S(2)),
    THREE(f_conv1d, S(2, 2, 5), S(3, 2, 3), S(3)),
    THREE(f_conv1d_groups, S(1, 4, 5), S(2, 2, 2), S(2)),
    THREE(f_conv_last, S(2, 2, 5, 5), S(3, 2, 2, 2), S(3)),
    THREE(f_conv_sliced, S(1, 1, 6, 6), S(2, 1, 3, 2), S(2)),
    TWO(f_conv_no_bias, S(1, 2, 5, 5), S(3, 2, 2, 2)),
    THREE(f_conv_turned, S(1, 2, 3, 4), S(2, 2, 3, 2), S(2)),
    ONE(f_max_pool, S(1, 2, 5, 6)),
    ONE(f_max_pool_over, S(1, 2, 5, 4)),
    ONE(f_max_pool_last, S(2, 2, 4, 4)),
    ONE(f_avg_pool, S(1, 2, 5, 6)),
    ONE(f_avg_pool_over, S(1, 2, 5, 4)),
    THREE(f_net, S(2, 1, 5, 5), S(2, 1, 2, 2), S(1, 8)),
};

int main(void)
{
    enum { COUNT = sizeof checks / sizeof checks[0] };
    struct CMUnitTest tests[COUNT];
    for (int i = 0; i < COUNT; i++)
        tests[i] = (struct CMUnitTest){checks[i].name, compare, NULL, NULL, (void *)&checks[i]};
    return cmocka_run_group_tests_name("autograd.gradients", tests, NULL, NULL);
}
