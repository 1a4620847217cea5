/* cut_embedding.c: a table whose rows are cut up among ranks: each gives its rows, zeros for the others', and their
 * sum is what the whole table gives. */
#include "dist/group.h"
#include "parallel/cut.h"
#include "nn/layers.h"

#include <paracord/tensor_parallel.h>

typedef struct layer {
    pc__embedding_layer whole;
    pc_group *group;
    pc__cut cut;
} layer;

pc_tensor *pc__own_index(const pc_group *group, pc_tensor *index, int64_t part, int64_t all, pc_tensor **mine)
{
    const pc_device device = pc_tensor_device(index);
    const pc_dtype dtype = pc_tensor_dtype(index);
    const int64_t first = part * group->rank;
    pc_tensor *begin = pc_scalar((double)first, dtype, device), *none = pc_scalar(0, dtype, device);
    pc_tensor *end = pc_scalar((double)PC__MIN(first + part, all), dtype, device);
    pc_tensor *limit = pc_scalar((double)all, dtype, device);
    *mine = pc_logical_and(pc_ge(index, begin), pc_lt(index, end));
    pc_tensor *known = pc_logical_and(pc_ge(index, none), pc_lt(index, limit));
    return pc_where(*mine, pc_sub(index, begin), pc_where(known, none, index));
}

static pc_tensor *look_up(pc_module *module, pc_tensor *x)
{
    const layer *l = pc_module_data(module);
    pc_tensor *weight = pc__module_own(module, "weight"), *mine = NULL;
    const int64_t part = weight->shape[0], place = l->whole.spec.padding_idx - part * l->group->rank;
    pc_tensor *index = pc__own_index(l->group, x, part, l->whole.rows, &mine);
    pc_tensor *rows =
        pc_fn_embedding(weight, index,
                        (pc_fn_embedding_options){.padded = l->whole.spec.padded && place >= 0 && place < part,
                                                  .padding_idx = PC__MAX(place, 0)});
    pc_tensor *own = rows ? pc_masked_fill(rows, pc_unsqueeze(pc_logical_not(mine), -1), 0) : NULL;
    return own ? pc_reduce_from_group(own, l->group) : NULL;
}

static pc_tensor *forward(pc_module *module, pc_tensor *x)
{
    const layer *l = pc_module_data(module);
    if (l->group->size == 1)
        return pc_fn_embedding(pc__module_own(module, "weight"), x, l->whole.spec);
    if (x->dtype != PC_I64 && x->dtype != PC_I32)
        return pc__null(PC_ERR_DTYPE, "parallel_embedding: the indices are %s; they must be int64 or int32",
                        pc_dtype_name((pc_dtype)x->dtype));
    pc_tensor *y = NULL;
    PC_SCOPE {
        y = pc_keep(look_up(module, x));
    }
    return y;
}

static void describe(const pc_module *module, char *text, size_t n)
{
    const layer *l = pc_module_data(module);
    snprintf(text, n, "%lld, %lld, part %d of %d", (long long)l->whole.rows, (long long)l->whole.columns,
             l->group->rank, l->group->size);
}

static const pc_module_class embedding_class = {
    .name = "VocabParallelEmbedding", .forward = forward, .describe = describe};

pc_module *pc__parallel_embedding_of(pc_tensor *table, pc_group *group, pc_fn_embedding_options options)
{
    pc_module *module = table ? pc_module_new(&embedding_class, sizeof(layer)) : NULL;
    if (!module)
        return NULL;
    layer *l = pc_module_data(module);
    *l = (layer){{table->shape[0], table->shape[1], options}, group, {group, 0, 1, table->shape[0]}};
    if (pc__cut_parameter(module, "weight", table, &l->cut) == PC_OK)
        return module;
    pc_module_free(module);
    return NULL;
}

pc_module *pc_parallel_embedding_new(int64_t rows, int64_t columns, pc_group *group, pc_embedding_options options)
{
    PC__NEED_OR(NULL, group);
    pc_module *whole = pc_embedding_new(rows, columns, options);
    if (!whole)
        return NULL;
    const pc__embedding_layer *w = pc_module_data(whole);
    pc_module *module = pc__parallel_embedding_of(pc__module_own(whole, "weight"), group, w->spec);
    pc_module_free(whole);
    return module;
}
