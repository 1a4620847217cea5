/* vit.c: vision transformers (Dosovitskiy et al. 2020) of patches of 16 x 16 pixels, by torchvision's names: class_token,
 * encoder.layers.encoder_layer_0.self_attention.in_proj_weight, heads.head.bias. */
#include "models/models.h"
#include "nn/layers.h"

#include <math.h>

enum { PATCH = 16, LAYERS_MAX = 64 };

#define EPSILON 1e-6 /* of layer norms */

/* --- tokens: steps of the chain, which read a parameter of the module that they are a part of --- */

/* [n, width, rows, columns] -> [n, 1 + rows * columns, width]: the class token in front of the patches. */
static pc_tensor *make_tokens(pc_module *module, pc_tensor *x)
{
    pc_tensor *first = pc__module_own(module->parent, "class_token"), *y = NULL;
    PC_SCOPE {
        const int64_t n = x->shape[0], width = x->shape[1];
        pc_tensor *patches = pc_transpose(pc_reshape(x, PC_SHAPE(n, width, x->shape[2] * x->shape[3])), 1, 2);
        pc_tensor *both[] = {pc_expand(first, PC_SHAPE(n, 1, width)), patches};
        y = pc_keep(pc_cat(both, 2, 1));
    }
    return y;
}

/* Each place's own numbers are added. */
static pc_tensor *place_tokens(pc_module *module, pc_tensor *x)
{
    pc_tensor *places = pc__module_own(module->parent, "pos_embedding");
    if (x->shape[1] != places->shape[1])
        return pc__null(
            PC_ERR_SHAPE,
            "a vision transformer for %lld patches of %d x %d pixels was given %lld: pictures have the size "
            "that it was made for",
            (long long)places->shape[1] - 1, PATCH, PATCH, (long long)x->shape[1] - 1);
    return pc_add(x, places);
}

/* [n, tokens, width] -> [n, width]: the class token's. */
static pc_tensor *take_first(pc_module *module, pc_tensor *x)
{
    pc_tensor *y = NULL;
    (void)module;
    PC_SCOPE {
        y = pc_keep(pc_reshape(pc_slice(x, 1, 0, 1, 1), PC_SHAPE(x->shape[0], x->shape[2])));
    }
    return y;
}

static const pc_module_class tokens_class = {.name = "Tokens", .forward = make_tokens},
                             places_class = {.name = "Places", .forward = place_tokens},
                             first_class = {.name = "ClassToken", .forward = take_first};

/* --- a layer: x + attention(norm(x)), then the same with two linear layers --- */

static pc_tensor *add_half(pc_module *layer, int norm, int half, pc_tensor *x)
{
    pc_tensor *y = pc_forward(pc_module_child(layer, norm), x);
    y = y ? pc_forward(pc_module_child(layer, half), y) : NULL;
    return y ? pc_add(x, y) : NULL;
}

static pc_tensor *run_layer(pc_module *module, pc_tensor *x)
{
    pc_tensor *y = NULL;
    PC_SCOPE {
        y = add_half(module, 0, 1, x);
        y = y ? pc_keep(add_half(module, 2, 3, y)) : NULL;
    }
    return y;
}

static const pc_module_class layer_class = {.name = "EncoderBlock", .forward = run_layer},
                             mlp_class = {.name = "MLPBlock", .forward = pc__run_in_order},
                             chain_class = {.name = "Sequential", .forward = pc__run_in_order},
                             encoder_class = {.name = "Encoder", .forward = pc__run_in_order},
                             net_class = {.name = "VisionTransformer", .forward = pc__run_in_order};

static pc_module *mlp(int width)
{
    return pc_module_of(&mlp_class, {"0", pc_linear(width, 4 * width, .init = PC_INIT_GLOROT)},
                        {"1", pc_activation(PC_ACTIVATION_GELU)}, {"2", pc_dropout(0)},
                        {"3", pc_linear(4 * width, width, .init = PC_INIT_GLOROT)}, {"4", pc_dropout(0)});
}

static pc_module *layer(int width, int heads)
{
    return pc_module_of(&layer_class, {"ln_1", pc_layer_norm(PC_SHAPE(width), .eps = EPSILON)},
                        {"self_attention", pc_multihead_attention(width, heads)},
                        {"ln_2", pc_layer_norm(PC_SHAPE(width), .eps = EPSILON)}, {"mlp", mlp(width)});
}

static pc_module *layers(int count, int width, int heads)
{
    pc_named_module list[LAYERS_MAX];
    char names[LAYERS_MAX][32];
    for (int i = 0; i < count; i++) {
        snprintf(names[i], sizeof names[i], "encoder_layer_%d", i);
        list[i] = (pc_named_module){names[i], layer(width, heads)};
    }
    return pc_module_of_new(&chain_class, list, count);
}

/* --- all of it --- */

/* Normal numbers of that deviation, or zeros, as a parameter. */
static pc_status add_own(pc_module *module, const char *name, pc_shape shape, double deviation)
{
    pc_status status = PC_OK;
    PC_SCOPE {
        pc_tensor *t = pc_zeros(shape, PC_F32, PC_DEVICE_CPU);
        status = t ? pc__picture_normal(t, deviation) : pc_error_last()->status;
        status = status == PC_OK ? pc_module_add_parameter(module, name, t) : status;
    }
    return status;
}

static pc_status begin(pc_module *net, int width, int64_t patches, int channels)
{
    pc_module *encoder = pc_module_child_named(net, "encoder");
    PC__TRY(add_own(net, "class_token", PC_SHAPE(1, 1, width), 0));
    PC__TRY(add_own(encoder, "pos_embedding", PC_SHAPE(1, 1 + patches, width), 0.02));
    PC__TRY(pc__picture_normal(pc_module_parameter(net, "conv_proj.weight"), 1 / sqrt(PATCH * PATCH * channels)));
    PC__TRY(pc__picture_normal(pc_module_parameter(net, "conv_proj.bias"), 0));
    PC__TRY(pc__picture_normal(pc_module_parameter(net, "heads.head.weight"), 0));
    return pc__picture_normal(pc_module_parameter(net, "heads.head.bias"), 0);
}

static pc_module *vit(int count, int width, int heads, int classes, const pc__picture_options *o)
{
    pc_module *encoder =
        pc_module_of(&encoder_class, {"places", pc_module_new(&places_class, 0)}, {"dropout", pc_dropout(o->dropout)},
                     {"layers", layers(count, width, heads)}, {"ln", pc_layer_norm(PC_SHAPE(width), .eps = EPSILON)});
    pc_module *head = pc_module_of(&chain_class, {"head", pc_linear(width, classes)});
    pc_module *net = pc_module_of(&net_class, {"conv_proj", pc_conv2d(o->channels, width, PATCH, .stride = PATCH)},
                                  {"tokens", pc_module_new(&tokens_class, 0)}, {"encoder", encoder},
                                  {"first", pc_module_new(&first_class, 0)}, {"heads", head});
    const int64_t patches = (int64_t)(o->height / PATCH) * (o->width / PATCH);
    if (net && begin(net, width, patches, o->channels) == PC_OK)
        return net;
    pc_module_free(net);
    return NULL;
}

pc_module *pc__vit_tiny(int classes, const pc__picture_options *o)
{
    return vit(12, 192, 3, classes, o);
}

pc_module *pc__vit_b_16(int classes, const pc__picture_options *o)
{
    return vit(12, 768, 12, classes, o);
}
