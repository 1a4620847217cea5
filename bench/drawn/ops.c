/* ops.c: ops by their names, as functions of a case's inputs and words. */
#include "drawn/drawn.h"

#include <string.h>

#define UNARY(name)                                                                                                    \
    static pc_tensor *do_##name(drawn *d)                                                                              \
    {                                                                                                                  \
        return pc_##name(d->in[0]);                                                                                    \
    }
#define BINARY(name)                                                                                                   \
    static pc_tensor *do_##name(drawn *d)                                                                              \
    {                                                                                                                  \
        return pc_##name(d->in[0], d->in[1]);                                                                          \
    }
#define ALONG(name)                                                                                                    \
    static pc_tensor *do_##name(drawn *d)                                                                              \
    {                                                                                                                  \
        return pc_##name(d->in[0], d->dim);                                                                            \
    }
#define OVER(name)                                                                                                     \
    static pc_tensor *do_##name(drawn *d)                                                                              \
    {                                                                                                                  \
        return pc_##name(d->in[0], d->dims, d->keepdim);                                                               \
    }
#define POOL(name)                                                                                                     \
    static pc_tensor *do_##name(drawn *d)                                                                              \
    {                                                                                                                  \
        return pc_fn_##name(d->in[0], (pc_fn_pool2d_options){.kernel = {d->kernel, d->kernel},                         \
                                                             .stride = {d->stride, d->stride},                         \
                                                             .padding = {d->padding, d->padding}});                    \
    }

UNARY(neg)
UNARY(exp)
UNARY(log)
UNARY(sqrt)
UNARY(relu)
UNARY(sigmoid)
UNARY(tanh)
UNARY(erf)
UNARY(silu)
UNARY(gelu)
UNARY(gelu_tanh)
UNARY(abs)
UNARY(square)
UNARY(rsqrt)
UNARY(sin)
UNARY(cos)
UNARY(softplus)
UNARY(relu6)
UNARY(floor)
UNARY(round)
UNARY(sign)
UNARY(max)
UNARY(min)
UNARY(contiguous)
UNARY(clone)
BINARY(add)
BINARY(sub)
BINARY(mul)
BINARY(div)
BINARY(minimum)
BINARY(maximum)
BINARY(pow)
BINARY(lt)
BINARY(dot)
BINARY(mse)
BINARY(bce_with_logits)
BINARY(matmul)
ALONG(cumsum)
ALONG(softmax)
ALONG(log_softmax)
OVER(sum_dims)
OVER(mean_dims)
OVER(any_dims)
OVER(all_dims)
POOL(max_pool2d)
POOL(avg_pool2d)

#define WITH(name, ...)                                                                                                \
    static pc_tensor *do_##name(drawn *d)                                                                              \
    {                                                                                                                  \
        return pc_##name(d->in[0], __VA_ARGS__);                                                                       \
    }
WITH(mul_scalar, 1.5)
WITH(pow_scalar, 2.5)
WITH(leaky_relu, 0.1)
WITH(elu, 1)
WITH(clamp, -0.5, 0.5)

static pc_tensor *do_cross_entropy(drawn *d)
{
    return pc_cross_entropy(d->in[0], d->index);
}

static pc_tensor *do_where(drawn *d)
{
    return pc_where(d->in[0], d->in[1], d->in[2]);
}

static pc_tensor *do_embedding(drawn *d)
{
    return pc_fn_embedding(d->in[0], d->index, (pc_fn_embedding_options){0});
}

static pc_tensor *do_gather(drawn *d)
{
    return pc_gather(d->in[0], d->dim, d->index);
}

static pc_tensor *do_sort(drawn *d)
{
    return pc_sort(d->in[0], d->dim, false, NULL);
}

static pc_tensor *do_topk(drawn *d)
{
    return pc_topk(d->in[0], d->k, d->dim, true, NULL);
}

static pc_tensor *do_max_dim(drawn *d)
{
    return pc_max_dim(d->in[0], d->dim, d->keepdim, NULL);
}

static pc_tensor *do_min_dim(drawn *d)
{
    return pc_min_dim(d->in[0], d->dim, d->keepdim, NULL);
}

static pc_tensor *do_prod_dim(drawn *d)
{
    return pc_prod_dim(d->in[0], d->dim, d->keepdim);
}

static pc_tensor *do_var_dims(drawn *d)
{
    return pc_var_dims(d->in[0], d->dims, d->p, d->keepdim);
}

static pc_tensor *do_std_dims(drawn *d)
{
    return pc_std_dims(d->in[0], d->dims, d->p, d->keepdim);
}

static pc_tensor *do_norm_dims(drawn *d)
{
    return pc_norm_dims(d->in[0], d->p, d->dims, d->keepdim);
}

static pc_tensor *do_argmin(drawn *d)
{
    return pc_argmin(d->in[0], d->dim, d->keepdim);
}

static pc_tensor *do_argmax(drawn *d)
{
    return pc_argmax(d->in[0], d->dim, d->keepdim);
}

static pc_shape last_of(const pc_tensor *t)
{
    return PC_SHAPE(pc_tensor_size(t, -1));
}

static pc_tensor *do_layer_norm(drawn *d)
{
    return pc_fn_layer_norm(d->in[0], last_of(d->in[0]), d->in[1], d->in[2], 1e-5);
}

static pc_tensor *do_rms_norm(drawn *d)
{
    return pc_fn_rms_norm(d->in[0], last_of(d->in[0]), d->in[1], 1e-6);
}

static pc_tensor *do_group_norm(drawn *d)
{
    return pc_fn_group_norm(d->in[0], d->groups, d->in[1], d->in[2], 1e-5);
}

static pc_tensor *do_batch_norm(drawn *d)
{
    return pc_fn_batch_norm(d->in[0], NULL, NULL, d->in[1], d->in[2], true, 0, 1e-5);
}

static pc_tensor *do_linear(drawn *d)
{
    return pc_fn_linear(d->in[0], d->in[1], d->in[2], d->activation);
}

static pc_tensor *do_conv2d(drawn *d)
{
    return pc_fn_conv2d(d->in[0], d->in[1], d->in[2],
                        (pc_fn_conv2d_options){.stride = {d->stride, d->stride},
                                               .padding = {d->padding, d->padding},
                                               .activation = d->activation,
                                               .dilation = {d->dilation, d->dilation},
                                               .groups = d->groups});
}

static pc_tensor *do_conv_transpose2d(drawn *d)
{
    return pc_fn_conv_transpose2d(d->in[0], d->in[1], d->in[2],
                                  (pc_fn_conv_transpose2d_options){.stride = {d->stride, d->stride},
                                                                   .padding = {d->padding, d->padding},
                                                                   .groups = d->groups});
}

static pc_tensor *do_copy(drawn *d)
{
    return pc_copy(d->in[1], d->in[0]) == PC_OK ? d->in[1] : NULL;
}

static pc_tensor *do_cast(drawn *d)
{
    return pc_cast(d->in[0], d->to);
}

static pc_tensor *do_dropout(drawn *d)
{
    return pc_fn_dropout(d->in[0], d->p);
}

static pc_tensor *do_attention(drawn *d)
{
    return pc_fn_attention(d->in[0], d->in[1], d->in[2], (pc_fn_attention_options){.causal = d->causal});
}

BINARY(gt)
BINARY(logical_and)
UNARY(isnan)
UNARY(isfinite)

#define LOSS(name, ...)                                                                                                \
    static pc_tensor *do_##name(drawn *d)                                                                              \
    {                                                                                                                  \
        return pc_##name(d->in[0], d->in[1], __VA_ARGS__);                                                             \
    }
LOSS(l1_loss, PC_REDUCTION_MEAN)
LOSS(huber_loss, 0.5, PC_REDUCTION_MEAN)
LOSS(kl_div, false, PC_REDUCTION_BATCH_MEAN)

static pc_tensor *do_argsort(drawn *d)
{
    return pc_argsort(d->in[0], d->dim, false);
}

static pc_tensor *do_flip(drawn *d)
{
    return pc_flip(d->in[0], d->dims);
}

static pc_tensor *do_roll(drawn *d)
{
    return pc_roll(d->in[0], PC_SHAPE(d->k), PC_SHAPE(d->dim));
}

static pc_tensor *do_repeat(drawn *d)
{
    return pc_repeat(d->in[0], d->dims);
}

static pc_tensor *do_tril(drawn *d)
{
    return pc_tril(d->in[0], d->k);
}

static pc_tensor *do_triu(drawn *d)
{
    return pc_triu(d->in[0], d->k);
}

static pc_tensor *do_cat(drawn *d)
{
    return pc_cat((pc_tensor *[]){d->in[0], d->in[1]}, 2, d->dim);
}

static pc_tensor *do_stack(drawn *d)
{
    return pc_stack((pc_tensor *[]){d->in[0], d->in[1]}, 2, d->dim);
}

/* So many more before and after each of the last two dimensions. */
static pc_tensor *do_pad(drawn *d)
{
    static const pc_pad_mode modes[] = {PC_PAD_CONSTANT, PC_PAD_REFLECT, PC_PAD_REPLICATE};
    return pc_pad(d->in[0], d->dims, d->dims, modes[d->k], 0);
}

static pc_tensor *do_masked_fill(drawn *d)
{
    return pc_masked_fill(d->in[0], d->in[1], 0.5);
}

static pc_tensor *do_index_select(drawn *d)
{
    return pc_index_select(d->in[0], d->dim, d->index);
}

static pc_tensor *do_index_add(drawn *d)
{
    return pc_index_add(d->in[0], d->dim, d->index, d->in[1]);
}

static pc_tensor *do_scatter_add(drawn *d)
{
    return pc_scatter_add(d->in[0], d->dim, d->index, d->in[1]);
}

static pc_tensor *do_upsample_nearest(drawn *d)
{
    return pc_fn_upsample(d->in[0], (pc_fn_upsample_options){.size = {d->dims.dim[0], d->dims.dim[1]}});
}

static pc_tensor *do_upsample_bilinear(drawn *d)
{
    return pc_fn_upsample(
        d->in[0], (pc_fn_upsample_options){.size = {d->dims.dim[0], d->dims.dim[1]}, .mode = PC_UPSAMPLE_BILINEAR});
}

static pc_tensor *do_grid_sample(drawn *d)
{
    return pc_fn_grid_sample(d->in[0], d->in[1], (pc_fn_grid_sample_options){0});
}

static pc_tensor *do_adaptive_avg_pool2d(drawn *d)
{
    return pc_fn_adaptive_avg_pool2d(d->in[0], d->dims.dim[0], d->dims.dim[1]);
}

static pc_tensor *do_adaptive_max_pool2d(drawn *d)
{
    return pc_fn_adaptive_max_pool2d(d->in[0], d->dims.dim[0], d->dims.dim[1]);
}

#define ROW(op_name, ...)                                                                                              \
    {                                                                                                                  \
        .name = #op_name, .make = do_##op_name, ##__VA_ARGS__                                                          \
    }
static const op ops[] = {
    ROW(neg),
    ROW(exp),
    ROW(log, .kinds = {POSITIVE}),
    ROW(sqrt, .kinds = {POSITIVE}),
    ROW(relu),
    ROW(sigmoid),
    ROW(tanh),
    ROW(erf),
    ROW(silu),
    ROW(gelu),
    ROW(gelu_tanh),
    ROW(abs),
    ROW(square),
    ROW(rsqrt, .kinds = {POSITIVE}),
    ROW(sin),
    ROW(cos),
    ROW(softplus),
    ROW(relu6),
    ROW(floor),
    ROW(round),
    ROW(sign),
    ROW(mul_scalar),
    ROW(pow_scalar, .kinds = {POSITIVE}),
    ROW(leaky_relu),
    ROW(elu),
    ROW(clamp),
    ROW(max),
    ROW(min),
    ROW(contiguous),
    ROW(clone),
    ROW(add),
    ROW(sub),
    ROW(mul),
    ROW(div, .kinds = {ANY, POSITIVE}),
    ROW(minimum),
    ROW(maximum),
    ROW(pow, .kinds = {POSITIVE, ANY}),
    ROW(lt),
    ROW(where, .kinds = {TRUTH, ANY, ANY}),
    ROW(dot),
    ROW(mse),
    ROW(bce_with_logits, .kinds = {ANY, TRUTH_OF_NUMBERS}),
    ROW(matmul),
    ROW(cross_entropy, .has_labels = true),
    ROW(embedding),
    ROW(gather),
    ROW(cumsum),
    ROW(sort),
    ROW(topk),
    ROW(softmax),
    ROW(log_softmax),
    ROW(sum_dims),
    ROW(mean_dims),
    ROW(any_dims),
    ROW(all_dims),
    ROW(var_dims),
    ROW(std_dims),
    ROW(norm_dims),
    ROW(max_dim),
    ROW(min_dim),
    ROW(prod_dim, .kinds = {POSITIVE}),
    ROW(argmax),
    ROW(argmin),
    ROW(max_pool2d),
    ROW(avg_pool2d),
    ROW(linear),
    ROW(conv2d),
    ROW(conv_transpose2d),
    ROW(copy, .writes_input = true),
    ROW(cast),
    ROW(dropout),
    ROW(attention),
    ROW(layer_norm),
    ROW(rms_norm),
    ROW(group_norm),
    ROW(batch_norm),
    ROW(argsort),
    ROW(gt),
    ROW(logical_and, .kinds = {TRUTH, TRUTH}),
    ROW(isnan),
    ROW(isfinite),
    ROW(l1_loss),
    ROW(huber_loss),
    ROW(kl_div, .kinds = {ANY, POSITIVE}),
    ROW(flip),
    ROW(roll),
    ROW(repeat),
    ROW(tril),
    ROW(triu),
    ROW(cat),
    ROW(stack),
    ROW(pad),
    ROW(masked_fill, .kinds = {ANY, TRUTH}),
    ROW(index_select),
    ROW(index_add),
    ROW(scatter_add),
    ROW(upsample_nearest),
    ROW(upsample_bilinear),
    ROW(grid_sample),
    ROW(adaptive_avg_pool2d),
    ROW(adaptive_max_pool2d),
};

const op *op_named(const char *name)
{
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        if (strcmp(ops[i].name, name) == 0)
            return &ops[i];
    return NULL;
}
