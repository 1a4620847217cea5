/* model.c: GPT-2's layers. Each block adds to the residual stream what attention, and then two linear layers, make of it
 * normalised. */
#include "gpt/model.h"

#include "parallel/cut.h"
#include "nn/layers.h"
#include "ops/factory.h"

#include <math.h>
#include <paracord/autograd.h>
#include <paracord/random.h>

static pc_tensor *drop(const pc_module *module, pc_tensor *x, double p)
{
    return x && p > 0 && pc_module_is_training(module) ? pc_fn_dropout(x, p) : x;
}

/* --- attention --- */

typedef struct attention {
    int heads, rank; /* this rank's heads; its number */
    double dropout;
} attention;

/* Ranks have other heads, and draw other zeros for them; what follows is drawn alike again. */
static pc_tensor *self_attention(const attention *a, pc_tensor *qkv, double p)
{
    const pc_fn_attention_options options = {.causal = true, .dropout = p};
    if (p == 0 || !a->rank)
        return pc_fn_self_attention(qkv, options);
    pc_generator drawing = pc_generator_get();
    const uint64_t seed = drawing.seed;
    drawing.seed += (uint64_t)a->rank * 0xd1b54a32d192ed03u;
    pc_generator_set(drawing);
    pc_tensor *y = pc_fn_self_attention(qkv, options);
    drawing = pc_generator_get();
    drawing.seed = seed;
    pc_generator_set(drawing);
    return y;
}

static pc_tensor *attend(pc_module *module, pc_tensor *x)
{
    const attention *a = pc_module_data(module);
    const int64_t batch = x->shape[0], length = x->shape[1];
    pc_tensor *all = pc_forward(pc_module_child(module, 0), x);
    const int64_t width = all ? all->shape[2] / 3 : 0;
    all = pc_permute(pc_reshape(all, PC_SHAPE(batch, length, 3, a->heads, width / a->heads)), PC_SHAPE(2, 0, 3, 1, 4));
    const double p = pc_module_is_training(module) ? a->dropout : 0;
    pc_tensor *y = all ? self_attention(a, all, p) : NULL;
    y = pc_reshape(pc_transpose(y, 1, 2), PC_SHAPE(batch, length, width));
    return y ? drop(module, pc_forward(pc_module_child(module, 1), y), a->dropout) : NULL;
}

static const pc_module_class attention_class = {.name = "GPT2Attention", .forward = attend};

/* --- the two linear layers --- */

static pc_tensor *think(pc_module *module, pc_tensor *x)
{
    pc_tensor *inside = pc_forward(pc_module_child(module, 0), x);
    return inside ? drop(module, pc_forward(pc_module_child(module, 1), inside), *(double *)pc_module_data(module))
                  : NULL;
}

static const pc_module_class mlp_class = {.name = "GPT2MLP", .forward = think};

/* --- a block --- */

static pc_tensor *add_half(pc_module *block, int norm, int half, pc_tensor *x)
{
    pc_tensor *seen = pc_forward(pc_module_child(block, norm), x);
    return seen ? pc_add(x, pc_forward(pc_module_child(block, half), seen)) : NULL;
}

static pc_tensor *run_block(pc_module *module, pc_tensor *x)
{
    pc_tensor *y = NULL;
    PC_SCOPE {
        y = add_half(module, PC__GPT_LN_1, PC__GPT_ATTENTION, x);
        y = y ? pc_keep(add_half(module, PC__GPT_LN_2, PC__GPT_MLP, y)) : NULL;
    }
    return y;
}

static const pc_module_class block_class = {.name = "GPT2Block", .forward = run_block};

/* --- all of it --- */

static pc_tensor *look_up(pc_module *module, pc_tensor *x)
{
    return pc_fn_embedding(pc__module_own(module, "weight"), x, (pc_fn_embedding_options){0});
}

static const pc_module_class table_class = {.name = "Embedding", .forward = look_up};

static pc_tensor *run_all(pc_module *module, pc_tensor *x)
{
    for (int i = 0; x && i < pc_module_child_count(module); i++)
        x = pc_forward(pc_module_child(module, i), x);
    return x;
}

static const pc_module_class list_class = {.name = "ModuleList", .forward = run_all};

static pc_tensor *run_transformer(pc_module *module, pc_tensor *tokens)
{
    const double p = *(double *)pc_module_data(module);
    pc_tensor *places = pc__module_own(pc_module_child(module, PC__GPT_PLACES), "weight");
    pc_tensor *x = pc_forward(pc_module_child(module, PC__GPT_TOKENS), tokens);
    x = drop(module, pc_add(x, pc_slice(places, 0, 0, tokens->shape[1], 1)), p);
    x = x ? pc_forward(pc_module_child(module, PC__GPT_BLOCKS), x) : NULL;
    return x ? pc_forward(pc_module_child(module, PC__GPT_NORM), x) : NULL;
}

static const pc_module_class transformer_class = {.name = "GPT2Model", .forward = run_transformer};

static pc_tensor *forward(pc_module *module, pc_tensor *tokens)
{
    const pc_gpt_options *o = pc_module_data(module);
    if (tokens->ndim != 2 || tokens->shape[1] < 1 || tokens->shape[1] > o->context)
        return pc__null(PC_ERR_SHAPE,
                        "gpt: tokens of shape %s are not [batch, length] with a length of 1 to %d, its context",
                        PC__SHAPE_OF(tokens), o->context);
    pc_tensor *logits = NULL;
    PC_SCOPE {
        pc_tensor *x = pc_forward(pc_module_child(module, 0), tokens);
        pc_tensor *table = pc__module_own(pc__gpt_part(module, PC__GPT_TOKENS), "weight");
        x = x && pc__gpt_is_cut(o) ? pc_copy_to_group(x, o->group) : x;
        logits = x ? pc_keep(pc_fn_linear(x, table, NULL, PC_ACTIVATION_NONE)) : NULL;
    }
    return logits;
}

static void describe(const pc_module *module, char *text, size_t n)
{
    const pc_gpt_options *o = pc_module_data(module);
    snprintf(text, n, "layers=%d, heads=%d, width=%d, context=%d, vocabulary=%lld", o->layers, o->heads, o->width,
             o->context, (long long)o->vocabulary);
}

const pc_module_class pc__gpt_class = {.name = "GPT2LMHeadModel", .forward = forward, .describe = describe};

const pc_gpt_options *pc__gpt_of(const pc_module *module, const char *who)
{
    if (module->type == &pc__gpt_class)
        return pc_module_data(module);
    return pc__null(PC_ERR_ARGUMENT, "%s: the module is a %s; pc_gpt_new and pc_gpt_open make GPTs", who,
                    module->type->name);
}

pc_tensor *pc_gpt_loss(pc_tensor *logits, pc_tensor *targets)
{
    PC__NEED_OR(NULL, logits);
    PC__NEED_OR(NULL, targets);
    if (logits->ndim != 3 || targets->ndim != 2 || logits->shape[0] != targets->shape[0] ||
        logits->shape[1] != targets->shape[1])
        return pc__null(PC_ERR_SHAPE,
                        "gpt_loss: logits %s are not [batch, length, vocabulary] for targets %s, [batch, length]",
                        PC__SHAPE_OF(logits), PC__SHAPE_OF(targets));
    pc_tensor *loss = NULL;
    PC_SCOPE {
        loss = pc_keep(
            pc_cross_entropy(pc_reshape(logits, PC_SHAPE(logits->shape[0] * logits->shape[1], logits->shape[2])),
                             pc_reshape(targets, PC_SHAPE(-1))));
    }
    return loss;
}

/* --- made --- */

typedef struct maker {
    const pc_gpt_options *o;
    bool draw;
} maker;

/* Normal with that deviation; of a deviation below 0 zeros. */
static pc_status add_parameter(const maker *m, pc_module *module, const char *name, pc_shape shape, double deviation)
{
    pc_status status = PC_OK;
    PC_SCOPE {
        pc_tensor *t = deviation < 0 ? pc_zeros(shape, PC_F32, PC_DEVICE_CPU) : pc_empty(shape, PC_F32, PC_DEVICE_CPU);
        status = t ? PC_OK : pc_error_last()->status;
        if (status == PC_OK && deviation >= 0 && m->draw)
            status = pc__fill_normal(t, 0, deviation);
        if (status == PC_OK)
            status = pc_module_add_parameter(module, name, t);
    }
    return status;
}

static pc_module *checked(pc_module *module, pc_status status)
{
    if (status == PC_OK)
        return module;
    pc_module_free(module);
    return NULL;
}

static pc_module *linear(const maker *m, int64_t in, int64_t out, pc_activation_kind activation, double deviation)
{
    pc_module *module = pc_module_new(&pc__linear_class, sizeof(pc__linear_layer));
    if (!module)
        return NULL;
    *(pc__linear_layer *)pc_module_data(module) = (pc__linear_layer){in, out, activation};
    pc_status status = add_parameter(m, module, "weight", PC_SHAPE(out, in), deviation);
    if (status == PC_OK)
        status = add_parameter(m, module, "bias", PC_SHAPE(out), -1);
    return checked(module, status);
}

static pc_module *table(const maker *m, int64_t rows)
{
    pc_module *module = pc_module_new(&table_class, 0);
    return module ? checked(module, add_parameter(m, module, "weight", PC_SHAPE(rows, m->o->width), 0.02)) : NULL;
}

/* That of tokens, which is drawn whole and then cut. */
static pc_module *token_table(const maker *m)
{
    pc_module *whole = table(m, m->o->vocabulary);
    if (!whole || !pc__gpt_is_cut(m->o))
        return whole;
    pc_module *part =
        pc__parallel_embedding_of(pc__module_own(whole, "weight"), m->o->group, (pc_fn_embedding_options){0});
    pc_module_free(whole);
    return part;
}

static pc_module *norm(const maker *m)
{
    return pc_layer_norm_new(PC_SHAPE(m->o->width), (pc_layer_norm_options){.eps = PC__GPT_EPS});
}

/* Two linear layers in a module of that class, the second with smaller weights. The first one's outputs are `blocks` layers'. */
static pc_module *two(const maker *m, const pc_module_class *type, size_t bytes, const char *first, int64_t inside,
                      int64_t from, pc_activation_kind activation, int blocks)
{
    pc_module *module = pc_module_new(type, bytes);
    if (!module)
        return NULL;
    const bool cut = pc__gpt_is_cut(m->o);
    pc_module *up = linear(m, m->o->width, inside, activation, 0.02);
    up = cut ? pc__column_linear_of(up, m->o->group, false, blocks) : up;
    pc_status status = up ? pc_module_add_child(module, first, up) : pc_error_last()->status;
    if (status != PC_OK)
        return checked(module, status);
    pc_module *down = linear(m, from, m->o->width, PC_ACTIVATION_NONE, 0.02 / sqrt(2.0 * m->o->layers));
    down = cut ? pc__row_linear_of(down, m->o->group, false) : down;
    return checked(module, down ? pc_module_add_child(module, "c_proj", down) : pc_error_last()->status);
}

static pc_module *block(const maker *m)
{
    const int64_t width = m->o->width;
    pc_module *module = pc_module_new(&block_class, 0);
    if (!module)
        return NULL;
    pc_status status = pc_module_add_child(module, "ln_1", norm(m));
    pc_module *attention_part =
        status == PC_OK ? two(m, &attention_class, sizeof(attention), "c_attn", 3 * width, width, PC_ACTIVATION_NONE, 3)
                        : NULL;
    const int ranks = pc__gpt_is_cut(m->o) ? pc_group_size(m->o->group) : 1;
    if (attention_part)
        *(attention *)pc_module_data(attention_part) =
            (attention){m->o->heads / ranks, ranks > 1 ? pc_group_rank(m->o->group) : 0, m->o->dropout};
    status = status == PC_OK ? pc_module_add_child(module, "attn", attention_part) : status;
    status = status == PC_OK ? pc_module_add_child(module, "ln_2", norm(m)) : status;
    pc_module *mlp = status == PC_OK
                         ? two(m, &mlp_class, sizeof(double), "c_fc", 4 * width, 4 * width, PC_ACTIVATION_GELU_TANH, 1)
                         : NULL;
    if (mlp)
        *(double *)pc_module_data(mlp) = m->o->dropout;
    return checked(module, status == PC_OK ? pc_module_add_child(module, "mlp", mlp) : status);
}

static pc_module *blocks(const maker *m)
{
    pc_module *module = pc_module_new(&list_class, 0);
    pc_status status = module ? PC_OK : PC_ERR_MEMORY;
    for (int i = 0; i < m->o->layers && status == PC_OK; i++) {
        char name[16];
        snprintf(name, sizeof name, "%d", i);
        status = pc_module_add_child(module, name, block(m));
    }
    return module ? checked(module, status) : NULL;
}

static pc_module *transformer(const maker *m)
{
    pc_module *module = pc_module_new(&transformer_class, sizeof(double));
    if (!module)
        return NULL;
    *(double *)pc_module_data(module) = m->o->dropout;
    pc_status status = pc_module_add_child(module, "wte", token_table(m));
    status = status == PC_OK ? pc_module_add_child(module, "wpe", table(m, m->o->context)) : status;
    status = status == PC_OK ? pc_module_add_child(module, "h", blocks(m)) : status;
    status = status == PC_OK ? pc_module_add_child(module, "ln_f", norm(m)) : status;
    return checked(module, status);
}

/* The module's own; options first, as others read them alone. */
typedef struct own {
    pc_gpt_options o;
    pc__gpt_ends ends;
} own;

pc__gpt_ends *pc__gpt_ends_of(const pc_module *gpt)
{
    return &((own *)pc_module_data(gpt))->ends;
}

pc_module *pc__gpt_make(const pc_gpt_options *options, bool draw)
{
    enum { GPT2 = 50256 };
    pc_module *module = pc_module_new(&pc__gpt_class, sizeof(own));
    if (!module)
        return NULL;
    own *made = pc_module_data(module);
    const int end = options->vocabulary > GPT2 ? PC__GPT_UNSAID : PC__GPT_NO_TOKEN;
    *made = (own){.o = *options, .ends = {end, end}};
    made->o.size = NULL;
    const maker m = {&made->o, draw};
    return checked(module, pc_module_add_child(module, "transformer", transformer(&m)));
}
