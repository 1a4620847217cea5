/* keras_describe.c: Keras's description from modules. */
#include "io/keras_function.h"
#include "io/keras_module.h"
#include "io/keras_order.h"
#include "nn/graph.h"

#include <paracord/autograd.h>

typedef struct describer {
    pc__keras_model *model;
    const pc_optimizer *optimizer;
    const pc_module *module;
    int *parameter; /* of each child: the optimiser's number of its first one */
    int *layer;     /* of each child: its number in the model, -1: not there yet */
    /* of each node: what was flattened in our order, and not yet taken by a dense layer; all 0: nothing */
    int64_t (*before)[3];
} describer;

/* Keras has "valid" (none) and "same"; *same when our padding is what "same" means for a picture of `size`. */
static pc_status padding_of(const int64_t *size, const int *window, const int *stride, const int *padding,
                            const int *extra, bool *same)
{
    *same = padding[0] || padding[1] || extra[0] || extra[1];
    for (int i = 0; *same && i < 2; i++) {
        pc__same zeros = pc__keras_same(PC__MAX(size[i], 1), window[i], 1, stride[i]);
        bool known = size[i] > 0 || stride[i] == 1;
        if (!known || zeros.before != padding[i] || zeros.behind != (int64_t)padding[i] + extra[i])
            return pc__fail(PC_ERR_UNSUPPORTED,
                            "a padding of %d x %d is neither Keras's \"valid\" nor its \"same\": such a "
                            "layer cannot be written to a Keras file",
                            padding[0], padding[1]);
    }
    return PC_OK;
}

/* One slot of one weight: the optimiser's tensor in Keras's order. */
static pc_status slot_of(const describer *d, pc__keras_weight *weight, const int64_t before[3], bool own_order,
                         int parameter, int slot)
{
    const pc_optimizer *o = d->optimizer;
    size_t bytes = (size_t)pc__keras_weight_size(weight) * sizeof(float);
    if (parameter >= o->count || pc_tensor_count(o->parameters[parameter]) != pc__keras_weight_size(weight))
        return pc__fail(PC_ERR_STATE, "the optimiser was made for another network than the one to be written");
    weight->slot[slot] = pc__alloc(bytes);
    float *own = pc__alloc(bytes);
    pc_status status =
        own && weight->slot[slot] ? pc__read_floats(o->state[slot * o->count + parameter], own) : PC_ERR_MEMORY;
    if (status == PC_OK)
        pc__order_array(own, weight->slot[slot], weight, before, own_order, false);
    pc__free(own);
    return status;
}

static pc_status slots_of(const describer *d, pc__keras_layer *layer, const int64_t before[3], bool own_order,
                          int parameter)
{
    for (int i = 0; i < layer->weight_count && d->optimizer && !layer->frozen; i++)
        if (!layer->weights[i].fixed) {
            for (int s = 0; s < d->optimizer->slots; s++)
                PC__TRY(slot_of(d, &layer->weights[i], before, own_order, parameter, s));
            parameter++;
        }
    return PC_OK;
}

static pc_status make_weights(pc__keras_layer *layer, int rank, const int64_t *shape)
{
    PC__TRY(pc__keras_weight_make(layer, "kernel", rank, shape));
    return layer->use_bias ? pc__keras_weight_make(layer, "bias", 1, &shape[rank - 1]) : PC_OK;
}

static pc_status conv2d(pc__keras_layer *layer, pc_module *module, const pc__keras_flow *in)
{
    const pc__conv2d_layer *own = pc_module_data(module);
    if (in->rank == 3 && in->shape[2] != own->in)
        return pc__fail(PC_ERR_SHAPE, "pictures of the size given come with %lld channels to a Conv2d layer of %lld",
                        (long long)in->shape[2], (long long)own->in);
    if (own->spec.groups > 1 || own->spec.dilation[0] > 1 || own->spec.dilation[1] > 1)
        return pc__fail(PC_ERR_UNSUPPORTED, "a Conv2d with groups or a dilation cannot be written to a Keras file");
    layer->kind = PC__KERAS_CONV2D;
    layer->units = (int)own->out;
    layer->use_bias = pc__module_own(module, "bias") != NULL;
    layer->activation = pc__keras_activation_of(own->spec.activation);
    memcpy(layer->window, own->kernel, sizeof layer->window);
    memcpy(layer->stride, own->spec.stride, sizeof layer->stride);
    PC__TRY(padding_of(in->shape, layer->window, layer->stride, own->spec.padding, own->extra, &layer->same));
    PC__TRY(make_weights(layer, 4, (int64_t[]){own->kernel[0], own->kernel[1], own->in, own->out}));
    return pc__order_conv(module, layer, false);
}

/* What is flattened in front has the layer's inputs: its weights are put in another order by that. */
static pc_status check_flattened(const int64_t before[3], int64_t in)
{
    int64_t pixels, n;
    if (!before[0] || (!__builtin_mul_overflow(before[0], before[1], &pixels) &&
                       !__builtin_mul_overflow(pixels, before[2], &n) && n == in))
        return PC_OK;
    return pc__fail(PC_ERR_SHAPE,
                    "pictures of the size given come as %lld x %lld x %lld to a Linear layer of %lld inputs: give the "
                    "height, width and channels that the network was made for",
                    (long long)before[0], (long long)before[1], (long long)before[2], (long long)in);
}

/* Of a picture our last dimension is the width, and Keras's the channels. */
static pc_status linear(pc__keras_layer *layer, pc_module *module, const pc__keras_flow *in, const int64_t before[3])
{
    const pc__linear_layer *own = pc_module_data(module);
    if (in->rank == 3)
        return pc__fail(
            PC_ERR_UNSUPPORTED,
            "a Linear layer of %lld inputs that takes a picture cannot be written to a Keras file: it works "
            "along the width, and Keras's Dense along the channels; put a Flatten in front, or take a Conv2d "
            "of 1 x 1",
            (long long)own->in);
    PC__TRY(check_flattened(before, own->in));
    layer->kind = PC__KERAS_DENSE;
    layer->units = (int)own->out;
    layer->use_bias = pc__module_own(module, "bias") != NULL;
    layer->activation = pc__keras_activation_of(own->activation);
    PC__TRY(make_weights(layer, 2, (int64_t[]){own->in, own->out}));
    return pc__order_dense(module, layer, before, false);
}

static pc_status pool(pc__keras_layer *layer, const pc_module *module, const pc__keras_flow *in)
{
    const pc__pool2d_layer *own = pc_module_data(module);
    bool average = pc_module_type(module) == &pc__avg_pool2d_class;
    layer->kind = average ? PC__KERAS_AVG_POOL2D : PC__KERAS_MAX_POOL2D;
    memcpy(layer->window, own->spec.kernel, sizeof layer->window);
    memcpy(layer->stride, own->spec.stride, sizeof layer->stride);
    PC__TRY(padding_of(in->shape, layer->window, layer->stride, own->spec.padding, own->extra, &layer->same));
    if (own->spec.ceil_mode)
        return pc__fail(
            PC_ERR_UNSUPPORTED,
            "a pool with ceil_mode cannot be written to a Keras file: Keras's windows end with the picture");
    if (layer->same && average && !own->exclude_padding && !own->spec.exclude_padding)
        return pc__fail(PC_ERR_UNSUPPORTED,
                        "an average pool with padding cannot be written to a Keras file: Keras does not "
                        "count the padding");
    return PC_OK;
}

/* A layer of Keras's own: its description, with the weights as they are now. */
static pc_status function(pc__keras_layer *layer, pc_module *module)
{
    const pc__keras_layer *own = pc__keras_function_layer(module);
    *layer = *own;
    layer->raw = NULL;
    layer->weight_count = 0;
    for (int i = 0; i < own->weight_count; i++) {
        const pc__keras_weight *weight = &own->weights[i];
        PC__TRY(pc__keras_weight_make(layer, weight->word, weight->rank, weight->shape));
        layer->weights[i].fixed = weight->fixed;
        PC__TRY(pc__read_floats(pc__module_own(module, weight->word), layer->weights[i].value));
    }
    layer->raw = own->raw ? pc__strdup(own->raw) : NULL;
    return !own->raw || layer->raw ? PC_OK : PC_ERR_MEMORY;
}

static pc_status describe_child(pc__keras_layer *layer, pc_module *module, const pc__keras_flow *in,
                                const int64_t before[3])
{
    const pc_module_class *type = pc_module_type(module);
    const pc__activation_layer *activation = pc__activation_of(module);
    if (pc__keras_function_layer(module))
        return function(layer, module);
    if (type == &pc__conv2d_class)
        return conv2d(layer, module, in);
    if (type == &pc__linear_class)
        return linear(layer, module, in, before);
    if (type == &pc__max_pool2d_class || type == &pc__avg_pool2d_class)
        return pool(layer, module, in);
    if (type == &pc__dropout_class) {
        layer->kind = PC__KERAS_DROPOUT;
        layer->rate = ((pc__dropout_layer *)pc_module_data(module))->p;
    } else if (activation) {
        layer->kind = PC__KERAS_ACTIVATION;
        layer->activation = pc__keras_activation_of(activation->kind);
    } else if (type == &pc__flatten_class) {
        layer->kind = PC__KERAS_FLATTEN;
    } else {
        return pc__fail(PC_ERR_UNSUPPORTED, "a module of class %s cannot be written to a Keras file", type->name);
    }
    return PC_OK;
}

/* Keras's trainable: false, where there is something to train. What has no parameters stays as it came. */
static bool is_frozen(const pc_module *module, bool before)
{
    for (int i = 0; i < module->parameter_count; i++)
        if (pc_requires_grad(module->parameters[i].object))
            return false;
    return module->parameter_count || before;
}

/* What our order of a flattened picture means for what comes behind. */
static void note_order(const describer *d, int node, const pc_module *child, const pc__keras_flow *in,
                       const int64_t before[3])
{
    const pc_module_class *type = pc_module_type(child);
    memset(d->before[node], 0, sizeof d->before[node]);
    if (type == &pc__flatten_class && in->rank == 3)
        memcpy(d->before[node], in->shape, sizeof d->before[node]);
    else if (type == &pc__flatten_class || type == &pc__dropout_class || pc__activation_of(child))
        memcpy(d->before[node], before, sizeof d->before[node]);
}

/* One call of a child; the first one describes the layer. */
static pc_status describe_call(describer *d, int number, const int *from, int count)
{
    static const int64_t none[3] = {0};
    pc__keras_model *m = d->model;
    pc_module *child = pc_module_child(d->module, number);
    pc__keras_flow in = {.rank = from[0] < 0 ? m->input_rank : m->nodes[from[0]].rank};
    memcpy(in.shape, from[0] < 0 ? m->input_shape : m->nodes[from[0]].shape, sizeof in.shape);
    const int64_t *before = from[0] < 0 ? none : d->before[from[0]];
    if (d->layer[number] < 0) {
        pc__keras_layer *layer = pc__keras_add_layer(m, PC__KERAS_UNKNOWN);
        if (!layer)
            return PC_ERR_MEMORY;
        d->layer[number] = m->layer_count - 1;
        PC__TRY(describe_child(layer, child, &in, before));
        layer->frozen = is_frozen(child, layer->frozen);
        if (!layer->raw)
            snprintf(layer->class_name, sizeof layer->class_name, "%s", pc__keras_class_name(layer->kind));
        PC__TRY(slots_of(d, layer, before, !pc__keras_function_layer(child), d->parameter[number]));
    }
    PC__TRY(pc__keras_add_node(m, d->layer[number], from, count));
    note_order(d, m->node_count - 1, child, &in, before);
    pc__keras_wants wants;
    pc__keras_layer *layer = &m->layers[d->layer[number]];
    if (pc__keras_node_shape(m, m->node_count - 1, &wants) != PC_OK)
        return pc__fail(layer->refused ? layer->refused : PC_ERR_MEMORY, "a %s layer cannot be written: it %s",
                        layer->class_name, layer->problem);
    return PC_OK;
}

static int own_parameters(const pc_module *module)
{
    return module->parameter_count;
}

static pc_status describe_all(describer *d)
{
    const pc__graph_layer *g = pc__layer(d->module, &pc__graph_class);
    int count = g ? g->count : pc_module_child_count(d->module);
    for (int i = 0; i < count; i++) {
        int from = i - 1;
        if (g)
            PC__TRY(describe_call(d, g->nodes[i].child, g->edges + g->nodes[i].first, g->nodes[i].count));
        else
            PC__TRY(describe_call(d, i, &from, 1));
    }
    if (g)
        d->model->output = g->output;
    return PC_OK;
}

static pc_status describe(describer *d)
{
    size_t children = (size_t)pc_module_child_count(d->module) + 1;
    const pc__graph_layer *g = pc__layer(d->module, &pc__graph_class);
    size_t nodes = g ? (size_t)g->count + 1 : children;
    d->parameter = pc__calloc(children, sizeof *d->parameter);
    d->layer = pc__calloc(children, sizeof *d->layer);
    d->before = pc__calloc(nodes, sizeof *d->before);
    pc_status status = d->parameter && d->layer && d->before ? PC_OK : PC_ERR_MEMORY;
    for (int i = 0, at = 0; i < (int)children - 1 && status == PC_OK; i++) {
        d->layer[i] = -1;
        d->parameter[i] = at;
        at += own_parameters(pc_module_child(d->module, i));
    }
    if (status == PC_OK)
        status = describe_all(d);
    pc__free(d->parameter);
    pc__free(d->layer);
    pc__free(d->before);
    return status;
}

static pc_status put_head(pc__keras_model *model, pc_keras_head head)
{
    pc__keras_activation activation = head == PC_KERAS_SIGMOID ? PC__KERAS_SIGMOID : PC__KERAS_SOFTMAX;
    const pc__keras_node *node = model->node_count && model->output >= 0 ? &model->nodes[model->output] : NULL;
    pc__keras_layer *last = node ? &model->layers[node->layer] : NULL;
    if (head == PC_KERAS_LOGITS)
        return PC_OK;
    int users = 0;
    for (int i = 0; i < model->edge_count; i++)
        users += model->edges[i] == model->output;
    for (int i = 0; i < model->node_count; i++)
        users += i != model->output && node && model->nodes[i].layer == node->layer;
    if (!last || users || last->kind != PC__KERAS_DENSE || last->activation != PC__KERAS_LINEAR)
        last = pc__keras_add(model, PC__KERAS_ACTIVATION);
    if (!last)
        return PC_ERR_MEMORY;
    last->activation = activation;
    return PC_OK;
}

static pc_status describe_optimizer(const pc_optimizer *o, pc__keras_training *t)
{
    const pc__step_attributes *s = &o->settings;
    t->optimizer = pc__keras_optimizer_named(o->name);
    if (t->optimizer == PC__KERAS_OTHER_OPTIMIZER || s->groups > 1)
        return pc__fail(
            PC_ERR_UNSUPPORTED,
            "a Keras file holds adam, adamw, sgd, rmsprop or lion with one group of parameters, not %s with "
            "%d; save without the optimiser",
            o->name, s->groups);
    t->learning_rate = s->lr;
    t->weight_decay = s->group[0].weight_decay;
    t->beta_1 = s->beta1, t->beta_2 = s->beta2, t->epsilon = s->epsilon;
    t->momentum = s->momentum, t->nesterov = s->nesterov != 0;
    t->clip_norm = o->clip_norm, t->clip_value = s->clip_value;
    return pc__optimizer_updates(o, &t->iterations);
}

pc_status pc__module_to_keras(const pc_module *module, const int64_t input[3], pc_keras_head head,
                              const pc_optimizer *optimizer, bool with_state, pc__keras_model *model)
{
    describer d = {.model = model, .optimizer = with_state ? optimizer : NULL, .module = module};
    if (pc_module_type(module) != &pc__sequential_class && pc_module_type(module) != &pc__graph_class)
        return pc__fail(PC_ERR_UNSUPPORTED, "only a Sequential can be written to a Keras file, not a %s",
                        pc_module_type(module)->name);
    model->input_rank = 3;
    memcpy(model->input_shape, (int64_t[]){input[1], input[2], input[0]}, sizeof model->input_shape);
    if (optimizer) {
        PC__TRY(describe_optimizer(optimizer, &model->training));
        model->training.has_state = with_state;
        snprintf(model->training.loss, sizeof model->training.loss, "%s",
                 head == PC_KERAS_SOFTMAX ? "sparse_categorical_crossentropy" : "binary_crossentropy");
        model->training.from_logits = head == PC_KERAS_LOGITS;
    }
    PC__TRY(describe(&d));
    PC__TRY(pc__order_momentum(model, "pc_keras_save", false));
    return put_head(model, head);
}

pc_status pc__keras_name_classes(pc__keras_model *model, const char *const *names, int count)
{
    if (!count)
        return PC_OK;
    if (count < 0 || !names)
        return pc__fail(PC_ERR_ARGUMENT, "pc_keras_save: %d class_names%s", count, names ? "" : ", and they are NULL");
    model->class_names = pc__calloc((size_t)count, sizeof *model->class_names);
    if (!model->class_names)
        return PC_ERR_MEMORY;
    for (; model->class_count < count; model->class_count++) {
        if (!names[model->class_count])
            return pc__fail(PC_ERR_ARGUMENT, "pc_keras_save: class_names[%d] is NULL", model->class_count);
        model->class_names[model->class_count] = pc__strdup(names[model->class_count]);
        if (!model->class_names[model->class_count])
            return PC_ERR_MEMORY;
    }
    return PC_OK;
}
