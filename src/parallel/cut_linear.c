/* cut_linear.c: linear layers whose outputs, or inputs, are cut up among ranks. */
#include "dist/group.h"
#include "parallel/cut.h"
#include "nn/layers.h"
#include "ops/activation.h"

#include <paracord/tensor_parallel.h>

typedef struct layer {
    int64_t in, out; /* of the whole */
    pc_activation_kind activation;
    pc_group *group;
    bool around; /* columns: gather the outputs; rows: split the inputs */
    pc__cut weight, bias;
} layer;

/* Outputs of all ranks, block by block. */
static pc_tensor *gather(const layer *l, pc_tensor *y)
{
    if (l->weight.blocks == 1)
        return pc_gather_from_group(y, l->group, -1);
    pc_shape shape = pc_shape_of(y->ndim, y->shape), blocks = shape;
    shape.dim[y->ndim - 1] = l->out;
    blocks.dim[y->ndim - 1] = l->weight.blocks;
    blocks.dim[blocks.ndim++] = -1;
    return pc_reshape(pc_gather_from_group(pc_reshape(y, blocks), l->group, -1), shape);
}

static pc_tensor *column_forward(pc_module *module, pc_tensor *x)
{
    const layer *l = pc_module_data(module);
    pc_tensor *y = NULL;
    PC_SCOPE {
        y = pc_fn_linear(pc_copy_to_group(x, l->group), pc__module_own(module, "weight"),
                         pc__module_own(module, "bias"), l->activation);
        y = pc_keep(y && l->around ? gather(l, y) : y);
    }
    return y;
}

/* The bias follows the sum, or it would be added once for each rank. */
static pc_tensor *row_forward(pc_module *module, pc_tensor *x)
{
    const layer *l = pc_module_data(module);
    pc_tensor *y = NULL, *bias = pc__module_own(module, "bias");
    PC_SCOPE {
        pc_tensor *own = l->around ? pc_split_to_group(x, l->group, -1) : x;
        y = pc_fn_linear(own, pc__module_own(module, "weight"), NULL, PC_ACTIVATION_NONE);
        y = y ? pc_reduce_from_group(y, l->group) : NULL;
        y = y && bias ? pc_add(y, pc_cast(bias, pc_tensor_dtype(y))) : y;
        y = pc_keep(pc__activated(l->activation, y));
    }
    return y;
}

static void describe(const pc_module *module, char *text, size_t n)
{
    const layer *l = pc_module_data(module);
    const char *activation = pc__activation_name(l->activation);
    snprintf(text, n, "in_features=%lld, out_features=%lld, bias=%s, part %d of %d%s%s", (long long)l->in,
             (long long)l->out, pc__module_own(module, "bias") ? "True" : "False", l->group->rank, l->group->size,
             activation ? ", activation=" : "", activation ? activation : "");
}

static const pc_module_class column_class = {.name = "ColumnParallelLinear",
                                             .forward = column_forward,
                                             .describe = describe},
                             row_class = {.name = "RowParallelLinear", .forward = row_forward, .describe = describe};

/* Weights are drawn as the whole layer's. */
static pc_status add(pc_module *module, const pc_module *whole)
{
    const layer *l = pc_module_data(module);
    pc_tensor *bias = pc__module_own(whole, "bias");
    PC__TRY(pc__cut_parameter(module, "weight", pc__module_own(whole, "weight"), &l->weight));
    if (!bias)
        return PC_OK;
    return l->bias.group ? pc__cut_parameter(module, "bias", bias, &l->bias)
                         : pc_module_add_parameter(module, "bias", bias);
}

static pc_module *make(const pc_module_class *type, layer l, pc_module *whole)
{
    const pc__linear_layer *w = whole ? pc_module_data(whole) : NULL;
    pc_module *module = w ? pc_module_new(type, sizeof l) : NULL;
    if (module) {
        l.in = w->in;
        l.out = w->out;
        l.activation = w->activation;
        *(layer *)pc_module_data(module) = l;
        if (add(module, whole) != PC_OK) {
            pc_module_free(module);
            module = NULL;
        }
    }
    pc_module_free(whole);
    return module;
}

pc_module *pc__column_linear_of(pc_module *whole, pc_group *group, bool gather_output, int blocks)
{
    const pc__cut cut = {group, 0, blocks, whole ? ((const pc__linear_layer *)pc_module_data(whole))->out : 0};
    return make(&column_class, (layer){.group = group, .around = gather_output, .weight = cut, .bias = cut}, whole);
}

pc_module *pc__row_linear_of(pc_module *whole, pc_group *group, bool whole_input)
{
    const pc__cut cut = {group, 1, 1, whole ? ((const pc__linear_layer *)pc_module_data(whole))->in : 0};
    return make(&row_class, (layer){.group = group, .around = whole_input, .weight = cut}, whole);
}

pc_module *pc_column_linear_new(int64_t in, int64_t out, pc_group *group, pc_column_linear_options options)
{
    PC__NEED_OR(NULL, group);
    const int blocks = options.blocks ? options.blocks : 1;
    if (pc__cut_check("column_linear", "outputs", out, blocks, group) != PC_OK)
        return NULL;
    const pc_linear_options whole = {
        .no_bias = options.no_bias, .activation = options.activation, .init = options.init};
    return pc__column_linear_of(pc_linear_new(in, out, whole), group, options.gather_output, blocks);
}

pc_module *pc_row_linear_new(int64_t in, int64_t out, pc_group *group, pc_row_linear_options options)
{
    PC__NEED_OR(NULL, group);
    if (pc__cut_check("row_linear", "inputs", in, 1, group) != PC_OK)
        return NULL;
    const pc_linear_options whole = {
        .no_bias = options.no_bias, .activation = options.activation, .init = options.init};
    return pc__row_linear_of(pc_linear_new(in, out, whole), group, options.whole_input);
}
