/* cache.c: the forward pass of a GPT token by token. */
#include "gpt/cache.h"

#include <paracord/no_grad.h>

static pc_tensor *weight(const pc_module *module, int child, const char *name)
{
    return pc__module_own(pc_module_child(module, child), name);
}

static pc_tensor *normalised(pc_module *norm, pc_tensor *x)
{
    return x ? pc_forward(norm, x) : NULL;
}

static pc_tensor *linear(pc_module *of, int child, pc_tensor *x)
{
    return x ? pc_forward(pc_module_child(of, child), x) : NULL;
}

/* Part i of a projection [n, 3 width] as [heads, n, each]. */
static pc_tensor *part(const pc__gpt_cache *c, pc_tensor *all, int i)
{
    const int64_t n = all ? all->shape[0] : 0, width = c->o->width;
    return pc_transpose(
        pc_reshape(pc_slice(all, 1, i * width, (i + 1) * width, 1), PC_SHAPE(n, c->o->heads, width / c->o->heads)), 0,
        1);
}

/* Put n rows behind what is kept, and give all of it. */
static pc_tensor *keep(const pc__gpt_cache *c, pc_tensor *kept, pc_tensor *rows)
{
    const int64_t end = c->length + (rows ? rows->shape[1] : 0);
    if (!rows || pc_copy(pc_slice(kept, 1, c->length, end, 1), rows) != PC_OK)
        return NULL;
    return pc_slice(kept, 1, 0, end, 1);
}

static pc_tensor *attend(const pc__gpt_cache *c, pc_module *module, int block, pc_tensor *x)
{
    pc_tensor *all = linear(module, 0, x);
    pc_tensor *q = part(c, all, 0);
    pc_tensor *k = keep(c, c->keys[block], part(c, all, 1)), *v = keep(c, c->values[block], part(c, all, 2));
    pc_tensor *y = pc_fn_attention(q, k, v, (pc_fn_attention_options){.causal = c->length == 0});
    return y ? linear(module, 1, pc_reshape(pc_transpose(y, 0, 1), PC_SHAPE(x->shape[0], c->o->width))) : NULL;
}

static pc_tensor *run_block(const pc__gpt_cache *c, int i, pc_tensor *x)
{
    pc_module *block = pc_module_child(pc__gpt_part(c->gpt, PC__GPT_BLOCKS), i);
    pc_module *mlp = pc_module_child(block, PC__GPT_MLP);
    pc_tensor *seen = normalised(pc_module_child(block, PC__GPT_LN_1), x);
    x = seen ? pc_add(x, attend(c, pc_module_child(block, PC__GPT_ATTENTION), i, seen)) : NULL;
    seen = normalised(pc_module_child(block, PC__GPT_LN_2), x);
    return seen ? pc_add(x, linear(mlp, 1, linear(mlp, 0, seen))) : NULL;
}

static pc_tensor *read_all(const pc__gpt_cache *c, const int32_t *tokens, int64_t n)
{
    pc_module *transformer = pc_module_child(c->gpt, 0);
    pc_tensor *table = weight(transformer, PC__GPT_TOKENS, "weight"),
              *places = weight(transformer, PC__GPT_PLACES, "weight");
    pc_tensor *x =
        pc_fn_embedding(table, pc_from_data(tokens, PC_SHAPE(n), PC_I32, c->device), (pc_fn_embedding_options){0});
    x = pc_add(x, pc_slice(places, 0, c->length, c->length + n, 1));
    for (int i = 0; x && i < c->o->layers; i++)
        x = run_block(c, i, x);
    x = x ? normalised(pc__gpt_part(c->gpt, PC__GPT_NORM), pc_slice(x, 0, n - 1, n, 1)) : NULL;
    return x ? pc_fn_linear(x, table, NULL, PC_ACTIVATION_NONE) : NULL;
}

pc_status pc__gpt_cache_read(pc__gpt_cache *c, const int32_t *tokens, int64_t n, float *logits)
{
    pc_status status = PC_OK;
    PC_NO_GRAD
        PC_SCOPE {
            pc_tensor *out = NULL;
            PC__EVALUATE
            {
                out = read_all(c, tokens, n);
            }
            out = out ? pc_cast(out, PC_F32) : NULL;
            status = out ? pc_read(out, logits, (size_t)c->o->vocabulary * sizeof *logits) : pc_error_last()->status;
        }
    if (status == PC_OK)
        c->length += n;
    return status;
}

pc_status pc__gpt_cache_begin(pc__gpt_cache *c, pc_module *gpt)
{
    *c = (pc__gpt_cache){.gpt = gpt, .o = pc_module_data(gpt)};
    const pc_tensor *table = weight(pc_module_child(gpt, 0), PC__GPT_TOKENS, "weight");
    const int layers = c->o->layers;
    const pc_shape shape = PC_SHAPE(c->o->heads, c->o->context, c->o->width / c->o->heads);
    c->device = pc_tensor_device(table);
    c->keys = pc__calloc((size_t)layers * 2, sizeof(pc_tensor *));
    if (!c->keys)
        return PC_ERR_MEMORY;
    c->values = c->keys + layers;
    pc_status status = PC_OK;
    PC_SCOPE {
        for (int i = 0; i < 2 * layers && status == PC_OK; i++) {
            c->keys[i] = pc_tensor_retain(pc_empty(shape, (pc_dtype)table->dtype, c->device));
            status = c->keys[i] ? PC_OK : pc_error_last()->status;
        }
    }
    return status;
}

void pc__gpt_cache_end(pc__gpt_cache *c)
{
    for (int i = 0; c->keys && i < 2 * c->o->layers; i++)
        pc_tensor_free(c->keys[i]);
    pc__free(c->keys);
    c->keys = NULL;
}
