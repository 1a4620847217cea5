/* keras_module.c: modules from Keras's description. */
#include "io/keras_module.h"

#include "io/keras_order.h"

#include <paracord/autograd.h>

typedef struct builder {
    const char *path;
    const pc__keras_layer *layer;
    int64_t size[3]; /* height, width, channels of what flows; features in size[2] once flat */
    bool flat;
    int64_t before[3]; /* what was flattened last: the order of the next dense layer's rows */
} builder;

static pc_module *refuse(const builder *b, const char *why)
{
    return pc__null(PC_ERR_UNSUPPORTED, "%s: layer \"%.60s\": %s", b->path, b->layer->name, why);
}

static bool ours(pc__keras_activation from, pc_activation_kind *to)
{
    static const pc_activation_kind kinds[] = {PC_NONE, PC_RELU, PC_SIGMOID, PC_TANH};
    if (from > PC__KERAS_TANH)
        return false;
    *to = kinds[from];
    return true;
}

/* Padding on each side that does what "same" asks for, and one more below or to the right where it comes out uneven;
 * false when the size that it depends on is open. */
static bool same_padding(const builder *b, int padding[2], int extra[2])
{
    const pc__keras_layer *l = b->layer;
    for (int i = 0; i < 2; i++) {
        padding[i] = extra[i] = 0;
        if (!l->same)
            continue;
        if (b->size[i] < 1)
            return false;
        int64_t out = (b->size[i] + l->stride[i] - 1) / l->stride[i];
        int64_t total = PC__MAX((out - 1) * l->stride[i] + l->window[i] - b->size[i], 0);
        padding[i] = (int)(total / 2);
        extra[i] = (int)(total % 2);
    }
    return true;
}

static bool shrink(builder *b, const int padding[2], const int extra[2])
{
    const pc__keras_layer *l = b->layer;
    for (int i = 0; i < 2; i++) {
        int64_t padded = b->size[i] + 2 * padding[i] + extra[i];
        b->size[i] = padded < l->window[i] ? 0 : (padded - l->window[i]) / l->stride[i] + 1;
        if (b->size[i] < 1)
            return false;
    }
    return true;
}

static pc_module *conv2d(builder *b)
{
    const pc__keras_layer *l = b->layer;
    pc_conv2d_spec spec = {.stride = {l->stride[0], l->stride[1]}};
    int64_t in = b->size[2];
    if (b->flat || !ours(l->activation, &spec.activation))
        return refuse(b, b->flat ? "a convolution needs a picture" : "softmax is only supported at the end");
    int extra[2];
    if (!same_padding(b, spec.padding, extra))
        return refuse(b, "its padding \"same\" needs a picture size that the file leaves open");
    if (!shrink(b, spec.padding, extra))
        return refuse(b, "the picture is smaller than its window");
    b->size[2] = l->units;
    pc_module *module = pc__conv2d_layer_new(in, l->units, l->window, &spec, !l->use_bias, PC_INIT_GLOROT);
    if (pc__order_conv(module, l, true) != PC_OK) {
        pc_module_free(module);
        return NULL;
    }
    memcpy(((pc__conv2d_layer *)pc_module_data(module))->extra, extra, sizeof extra);
    return module;
}

static pc_module *dense(builder *b)
{
    const pc__keras_layer *l = b->layer;
    pc_linear_options options = {.no_bias = !l->use_bias, .init = PC_INIT_GLOROT};
    if (!b->flat || !ours(l->activation, &options.activation))
        return refuse(b, b->flat ? "softmax is only supported at the end"
                                 : "a dense layer on pictures needs a Flatten before it");
    pc_module *module = pc_linear_new(b->size[2], l->units, options);
    pc_status status = pc__order_dense(module, l, b->before, true);
    b->size[2] = l->units;
    b->before[0] = 0;
    return status == PC_OK ? module : (pc_module_free(module), NULL);
}

static pc_module *pool(builder *b)
{
    const pc__keras_layer *l = b->layer;
    pc_pool2d_spec spec = {.kernel = {l->window[0], l->window[1]}, .stride = {l->stride[0], l->stride[1]}};
    bool average = l->kind == PC__KERAS_AVG_POOL2D;
    int extra[2];
    if (b->flat || !same_padding(b, spec.padding, extra))
        return refuse(b, b->flat ? "pooling needs a picture"
                                 : "its padding \"same\" needs a picture size that the file leaves open");
    if (!shrink(b, spec.padding, extra))
        return refuse(b, "the picture is smaller than its window");
    pc_module *module = pc__pool2d_layer_new(average ? &pc__avg_pool2d_class : &pc__max_pool2d_class, &spec);
    if (module) {
        pc__pool2d_layer *layer = pc_module_data(module);
        memcpy(layer->extra, extra, sizeof extra);
        layer->exclude_padding = average && l->same;
    }
    return module;
}

static pc_module *flatten(builder *b)
{
    if (!b->flat) {
        memcpy(b->before, b->size, sizeof b->before);
        b->size[2] *= b->size[0] * b->size[1];
        b->flat = true;
    }
    return pc_flatten();
}

static pc_module *activation(builder *b)
{
    pc_activation_kind kind;
    return ours(b->layer->activation, &kind) ? pc_activation(kind) : refuse(b, "softmax is only supported at the end");
}

static pc_module *build(builder *b)
{
    switch (b->layer->kind) {
    case PC__KERAS_CONV2D:
        return conv2d(b);
    case PC__KERAS_DENSE:
        return dense(b);
    case PC__KERAS_MAX_POOL2D:
    case PC__KERAS_AVG_POOL2D:
        return pool(b);
    case PC__KERAS_FLATTEN:
        return flatten(b);
    case PC__KERAS_DROPOUT:
        return pc_dropout(b->layer->rate);
    case PC__KERAS_ACTIVATION:
        return activation(b);
    default:
        return refuse(b, "a Rescaling layer is only supported in front, without offset");
    }
}

/* Take the final sigmoid or softmax off: the number of layers left, the last of them without its activation. */
static int behead(pc__keras_layer *layers, int count, pc_keras_head *head)
{
    *head = PC_KERAS_LOGITS;
    if (!count)
        return 0;
    pc__keras_layer *last = &layers[count - 1];
    bool carries = last->kind == PC__KERAS_DENSE || last->kind == PC__KERAS_ACTIVATION;
    if (!carries || (last->activation != PC__KERAS_SIGMOID && last->activation != PC__KERAS_SOFTMAX))
        return count;
    *head = last->activation == PC__KERAS_SIGMOID ? PC_KERAS_SIGMOID : PC_KERAS_SOFTMAX;
    last->activation = PC__KERAS_LINEAR;
    return last->kind == PC__KERAS_ACTIVATION ? count - 1 : count;
}

static pc_module *build_all(const pc__keras_model *model, pc__keras_layer *layers, int from, int count,
                            const char *path)
{
    pc_module **children = pc__calloc((size_t)count + 1, sizeof *children);
    if (!children)
        return NULL;
    builder b = {.path = path, .flat = model->input_rank == 1};
    for (int i = 0; i < 3; i++)
        b.size[i] = model->input_rank == 3   ? model->input_shape[i]
                    : model->input_rank == 2 ? (i < 2 ? model->input_shape[i] : 1)
                                             : model->input_shape[0];
    int made = 0;
    for (int i = from; i < count; i++, made++) {
        b.layer = &layers[i];
        children[made] = build(&b);
        if (!children[made])
            break;
    }
    pc_module *module = NULL;
    if (made == count - from)
        module = pc_sequential_new(children, made);
    else
        for (int i = 0; i < made; i++)
            pc_module_free(children[i]);
    pc__free(children);
    return module;
}

pc_module *pc__module_from_keras(const pc__keras_model *model, const char *path, pc_keras_head *head, double *scale)
{
    size_t bytes = (size_t)model->layer_count * sizeof *model->layers;
    pc__keras_layer *layers = pc__alloc(bytes);
    if (!layers)
        return NULL;
    if (bytes)
        memcpy(layers, model->layers, bytes);
    int count = behead(layers, model->layer_count, head), from = 0;
    *scale = 0;
    if (count && layers[0].kind == PC__KERAS_RESCALING && layers[0].offset == 0)
        *scale = layers[0].scale, from = 1;
    pc_module *module = count > from ? build_all(model, layers, from, count, path)
                                     : pc__null(PC_ERR_FORMAT, "%s: the model has no layers", path);
    pc__free(layers);
    return module;
}
