/* attention.c: multi-head self-attention. One projection gives queries, keys and values of all heads, which attention reads
 * where they lie, and the heads' results are one row again without a copy. */
#include "nn/layers.h"

typedef struct layer {
    int64_t size;
    int heads;
    bool causal;
    double dropout;
} layer;

static pc_tensor *attend(const pc_module *module, const layer *a, pc_tensor *x)
{
    const int n = x->ndim;
    pc_tensor *all = pc_fn_linear(x, pc__module_own(module, "in_proj_weight"), pc__module_own(module, "in_proj_bias"),
                                  PC_ACTIVATION_NONE);
    const int64_t batch = pc__count(n - 2, x->shape), length = x->shape[n - 2], each = a->size / a->heads;
    pc_tensor *heads = pc_permute(pc_reshape(all, PC_SHAPE(batch, length, 3, a->heads, each)), PC_SHAPE(2, 0, 3, 1, 4));
    const double p = pc_module_is_training(module) ? a->dropout : 0;
    pc_tensor *y = pc_fn_self_attention(heads, (pc_fn_attention_options){.causal = a->causal, .dropout = p});
    y = pc_reshape(pc_transpose(y, 1, 2), pc_shape_of(n, x->shape));
    return y ? pc_forward(pc_module_child(module, 0), y) : NULL;
}

static pc_tensor *forward(pc_module *module, pc_tensor *x)
{
    const layer *a = pc_module_data(module);
    if (x->ndim < 2 || x->shape[x->ndim - 1] != a->size)
        return pc__null(PC_ERR_SHAPE, "multihead_attention: an input of shape %s is not [..., length, %lld]",
                        PC__SHAPE_OF(x), (long long)a->size);
    pc_tensor *y = NULL;
    PC_SCOPE {
        y = pc_keep(attend(module, a, x));
    }
    return y;
}

static const pc_module_class attention_class = {.name = "MultiheadAttention", .forward = forward};

static pc_tensor *project(pc_module *module, pc_tensor *x)
{
    return pc__linear_forward(module, x, PC_ACTIVATION_NONE);
}

static void describe(const pc_module *module, char *text, size_t n)
{
    pc__linear_class.describe(module, text, n);
}

/* A linear layer, with the name that PyTorch prints. */
static const pc_module_class projection_class = {
    .name = "NonDynamicallyQuantizableLinear", .forward = project, .describe = describe};

/* A weight and, unless no_bias, a bias of zeros. */
static pc_status add(pc_module *module, const char *weight, const char *bias, int64_t out, int64_t in, bool no_bias,
                     pc_init_kind kind)
{
    pc_status status = PC_OK;
    PC_SCOPE {
        status = pc_module_add_parameter(module, weight, pc_init_weight(PC_SHAPE(out, in), kind, in, out));
        if (status == PC_OK && !no_bias)
            status = pc_module_add_parameter(module, bias, pc_zeros(PC_SHAPE(out), PC_F32, PC_DEVICE_CPU));
    }
    return status;
}

static pc_module *projection(int64_t size, bool no_bias)
{
    pc_module *module = pc_module_new(&projection_class, sizeof(pc__linear_layer));
    if (!module)
        return NULL;
    *(pc__linear_layer *)pc_module_data(module) = (pc__linear_layer){size, size, PC_ACTIVATION_NONE};
    if (add(module, "weight", "bias", size, size, no_bias, PC_INIT_TORCH) == PC_OK)
        return module;
    pc_module_free(module);
    return NULL;
}

pc_module *pc_multihead_attention_new(int64_t size, int heads, pc_multihead_attention_options options)
{
    if (size < 1 || size > INT32_MAX / 3 || heads < 1 || size % heads != 0)
        return pc__null(
            PC_ERR_ARGUMENT,
            "multihead_attention: size %lld, %d heads: both must be at least 1, and the heads must share the "
            "size equally",
            (long long)size, heads);
    if (!(options.dropout >= 0 && options.dropout <= 1))
        return pc__null(PC_ERR_ARGUMENT, "multihead_attention: dropout is %g; it must be 0 to 1", options.dropout);
    pc_module *module = pc_module_new(&attention_class, sizeof(layer));
    if (!module)
        return NULL;
    *(layer *)pc_module_data(module) = (layer){size, heads, options.causal, options.dropout};
    if (add(module, "in_proj_weight", "in_proj_bias", 3 * size, size, options.no_bias, PC_INIT_GLOROT) == PC_OK &&
        pc_module_add_child(module, "out_proj", projection(size, options.no_bias)) == PC_OK)
        return module;
    pc_module_free(module);
    return NULL;
}
