/* op.c: cases of a single op. */
#include "drawn/drawn.h"

#include <stdlib.h>
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
BINARY(cross_entropy)
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

static pc_tensor *do_where(drawn *d)
{
    return pc_where(d->in[0], d->in[1], d->in[2]);
}

static pc_tensor *do_embedding(drawn *d)
{
    return pc_fn_embedding(d->in[0], d->in[1], (pc_fn_embedding_options){0});
}

static pc_tensor *do_gather(drawn *d)
{
    return pc_gather(d->in[0], d->dim, d->in[1]);
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

#define ROW(name)                                                                                                      \
    {                                                                                                                  \
#name, do_##name,                                                                                              \
        {                                                                                                              \
            ANY, ANY, ANY                                                                                              \
        }                                                                                                              \
    }
static const op ops[] = {
    ROW(neg),
    ROW(exp),
    {"log", do_log, {POSITIVE}},
    {"sqrt", do_sqrt, {POSITIVE}},
    ROW(relu),
    ROW(sigmoid),
    ROW(tanh),
    ROW(erf),
    ROW(silu),
    ROW(gelu),
    ROW(gelu_tanh),
    ROW(abs),
    ROW(square),
    {"rsqrt", do_rsqrt, {POSITIVE}},
    ROW(sin),
    ROW(cos),
    ROW(softplus),
    ROW(relu6),
    ROW(floor),
    ROW(round),
    ROW(sign),
    ROW(mul_scalar),
    {"pow_scalar", do_pow_scalar, {POSITIVE}},
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
    {"div", do_div, {ANY, POSITIVE}},
    ROW(minimum),
    ROW(maximum),
    {"pow", do_pow, {POSITIVE, ANY}},
    ROW(lt),
    {"where", do_where, {TRUTH, ANY, ANY}},
    ROW(dot),
    ROW(mse),
    {"bce_with_logits", do_bce_with_logits, {ANY, TRUTH}},
    ROW(matmul),
    ROW(cross_entropy),
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
    {"prod_dim", do_prod_dim, {POSITIVE}},
    ROW(argmax),
    ROW(argmin),
    ROW(max_pool2d),
    ROW(avg_pool2d),
    ROW(linear),
    ROW(conv2d),
    ROW(conv_transpose2d),
    ROW(copy),
    ROW(cast),
    ROW(dropout),
    ROW(attention),
    ROW(layer_norm),
    ROW(rms_norm),
    ROW(group_norm),
    ROW(batch_norm),
};

static bool collects(const drawn *d, int i)
{
    return d->in[i] && d->gradient && pc_requires_grad(d->in[i]);
}

static pc_status op_go(void *context)
{
    drawn *d = context;
    pc_status status;
    PC_SCOPE {
        pc_tensor *y = d->op->make(d);
        status = !y ? pc_error_last()->status : d->gradient ? pc_backward_with(y, d->gradient) : PC_OK;
    }
    for (int i = 0; i < INPUTS_MOST; i++)
        if (collects(d, i))
            pc_zero_grad(d->in[i]);
    return status;
}

static pc_status read_words(drawn *d)
{
    const words *w = &d->words;
    for (size_t i = 0; i < sizeof ops / sizeof *ops && w->count > 1; i++)
        if (strcmp(ops[i].name, w->word[1]) == 0)
            d->op = &ops[i];
    if (!d->op)
        return pc_fail(PC_ERR_ARGUMENT, "op '%s' is not known", w->count > 1 ? w->word[1] : "");
    d->dim = number_of(w, "dim", 0);
    d->k = number_of(w, "k", 1);
    d->keepdim = number_of(w, "keep", 0);
    d->dims = numbers_between(word_of(w, "dims") ? word_of(w, "dims") : "", '.', NULL);
    d->causal = number_of(w, "causal", 0);
    d->kernel = number_of(w, "kernel", 1);
    d->stride = number_of(w, "stride", 1);
    d->padding = number_of(w, "pad", 0);
    d->groups = number_of(w, "groups", 1);
    d->dilation = number_of(w, "dilation", 1);
    d->p = strtod(word_of(w, "p") ? word_of(w, "p") : "0", NULL);
    if (word_of(w, "act") && activation_of(word_of(w, "act"), &d->activation) != PC_OK)
        return pc_error_last()->status;
    return word_of(w, "to") ? dtype_of(word_of(w, "to"), &d->to) : PC_OK;
}

/* Inputs are leaves, whatever view of memory they are. */
static pc_status make_inputs(drawn *d, bool both)
{
    static const char *const names[INPUTS_MOST] = {"x", "y", "z"};
    for (int i = 0; i < INPUTS_MOST; i++) {
        const char *text = word_of(&d->words, names[i]);
        const number_kind kind = d->op->kinds[i];
        if (!text)
            continue;
        pc_tensor *t = tensor_of(text, (uint32_t)i + 1, kind, d->dtype, d->device);
        if (kind == TRUTH && d->op->make == do_bce_with_logits)
            t = pc_cast(t, d->dtype);
        d->in[i] = pc_keep(t);
        if (!t || (both && kind != TRUTH && d->op->make != do_copy && pc_require_grad(t, true) != PC_OK))
            return pc_error_last()->status;
    }
    if (d->op->make == do_cross_entropy)
        d->in[1] = pc_keep(labels_of(pc_tensor_size(d->in[0], 0), pc_tensor_size(d->in[0], 1), d->device));
    const char *index = word_of(&d->words, "index");
    if (index) {
        const pc_shape shape = numbers_between(index, 'x', NULL);
        int64_t count = 1;
        for (int i = 0; i < shape.ndim; i++)
            count *= shape.dim[i];
        d->in[1] = pc_keep(pc_reshape(labels_of(count, pc_tensor_size(d->in[0], d->dim), d->device), shape));
    }
    return pc_error_last()->status;
}

/* The result's gradient lies in memory as the result does. */
static pc_status make_gradient(drawn *d)
{
    pc_tensor *y = d->op->make(d), *gradient = NULL;
    PC_NO_GRAD {
        gradient = pc_clone(pc_detach(y));
        pc_tensor *numbers = numbers_of(pc_tensor_shape(y), 9, ANY, 1, pc_tensor_dtype(y), d->device);
        if (!numbers || pc_copy(gradient, numbers) != PC_OK)
            return pc_error_last()->status;
    }
    d->gradient = pc_keep(gradient);
    return d->gradient ? PC_OK : pc_error_last()->status;
}

pc_status op_begin(drawn *d)
{
    const char *pass = word_of(&d->words, "pass");
    const bool both = pass && strcmp(pass, "both") == 0;
    pc_status status = read_words(d);
    d->go = op_go;
    if (status == PC_OK)
        PC_SCOPE {
            status = make_inputs(d, both);
            if (status == PC_OK && both)
                status = make_gradient(d);
        }
    return status;
}

pc_status op_tell(drawn *d)
{
    static const char *const names[INPUTS_MOST] = {"dx", "dy", "dz"};
    pc_status status;
    PC_SCOPE {
        pc_tensor *y = d->op->make(d);
        status = y ? tell("result", y) : pc_error_last()->status;
        if (status == PC_OK && d->gradient)
            status = pc_backward_with(y, d->gradient);
        for (int i = 0; status == PC_OK && i < INPUTS_MOST; i++)
            if (collects(d, i)) {
                status = tell(names[i], pc_grad(d->in[i]));
                pc_zero_grad(d->in[i]);
            }
    }
    return status;
}
