/* keras_describe.c: Keras's description from modules. */
#include "io/keras_module.h"
#include "io/keras_order.h"

#include <math.h>

typedef struct describer {
    pc__keras_model *model;
    const pc_optimizer *optimizer;
    int parameter;   /* the optimiser's number of the next one */
    int64_t size[3]; /* height, width, channels of what flows */
    bool flat;
    int64_t before[3]; /* what was flattened last */
} describer;

static pc__keras_activation theirs(pc_activation_kind kind)
{
    static const pc__keras_activation kinds[] = {PC__KERAS_LINEAR, PC__KERAS_RELU, PC__KERAS_SIGMOID, PC__KERAS_TANH};
    return kinds[kind];
}

/* Keras has "valid" (none) and "same"; *same when our padding is what "same" means here. */
static pc_status padding_of(const describer *d, const int *window, const int *stride, const int *padding,
                            const int *extra, bool *same)
{
    *same = padding[0] || padding[1] || extra[0] || extra[1];
    for (int i = 0; *same && i < 2; i++) {
        int64_t out = (d->size[i] + stride[i] - 1) / stride[i];
        int64_t total = PC__MAX((out - 1) * stride[i] + window[i] - d->size[i], 0);
        if (total != 2 * (int64_t)padding[i] + extra[i])
            return pc__fail(PC_ERR_UNSUPPORTED,
                            "a padding of %d x %d is neither Keras's \"valid\" nor its \"same\": such a "
                            "layer cannot be written to a Keras file",
                            padding[0], padding[1]);
    }
    return PC_OK;
}

static void shrink(describer *d, const int *window, const int *stride, const int *padding, const int *extra)
{
    for (int i = 0; i < 2; i++)
        d->size[i] = (d->size[i] + 2 * padding[i] + extra[i] - window[i]) / stride[i] + 1;
}

/* One slot of one weight: the optimiser's tensor in Keras's order. */
static pc_status slot_of(const describer *d, pc__keras_weight *weight, int parameter, int slot)
{
    const pc_optimizer *o = d->optimizer;
    size_t bytes = (size_t)pc__keras_weight_size(weight) * sizeof(float);
    if (parameter >= o->count || pc_tensor_count(o->parameters[parameter]) != pc__keras_weight_size(weight))
        return pc__fail(PC_ERR_STATE, "the optimiser was made for another network than the one to be written");
    weight->slot[slot] = pc__alloc(bytes);
    float *own = pc__alloc(bytes);
    pc_status status =
        own && weight->slot[slot] ? pc__read_floats(o->state[slot * o->count + parameter], own) : PC_ERR_MEMORY;
    if (status == PC_OK && weight->rank == 4)
        pc__order_conv_array(own, weight->slot[slot], weight->shape, false);
    else if (status == PC_OK && weight->rank == 2)
        pc__order_dense_array(own, weight->slot[slot], weight->shape, d->before, false);
    else if (status == PC_OK)
        memcpy(weight->slot[slot], own, bytes);
    pc__free(own);
    return status;
}

static pc_status slots_of(describer *d, pc__keras_layer *layer)
{
    pc__keras_weight *weights[2] = {&layer->kernel, &layer->bias};
    for (int i = 0; i < 2; i++) {
        if (!weights[i]->rank)
            continue;
        for (int s = 0; d->optimizer && s < d->optimizer->slots; s++)
            PC__TRY(slot_of(d, weights[i], d->parameter, s));
        d->parameter++;
    }
    return PC_OK;
}

static pc_status make_weights(pc__keras_layer *layer, int rank, const int64_t *shape)
{
    PC__TRY(pc__keras_weight_make(&layer->kernel, rank, shape));
    return layer->use_bias ? pc__keras_weight_make(&layer->bias, 1, &shape[rank - 1]) : PC_OK;
}

static pc_status conv2d(describer *d, pc_module *module, const pc__conv2d_layer *own)
{
    pc__keras_layer *layer = pc__keras_add(d->model, PC__KERAS_CONV2D);
    if (!layer)
        return PC_ERR_MEMORY;
    layer->units = (int)own->out;
    layer->use_bias = pc__module_own(module, "bias") != NULL;
    layer->activation = theirs(own->spec.activation);
    memcpy(layer->window, own->kernel, sizeof layer->window);
    memcpy(layer->stride, own->spec.stride, sizeof layer->stride);
    PC__TRY(padding_of(d, layer->window, layer->stride, own->spec.padding, own->extra, &layer->same));
    PC__TRY(make_weights(layer, 4, (int64_t[]){own->kernel[0], own->kernel[1], own->in, own->out}));
    PC__TRY(pc__order_conv(module, layer, false));
    shrink(d, layer->window, layer->stride, own->spec.padding, own->extra);
    d->size[2] = own->out;
    return slots_of(d, layer);
}

static pc_status linear(describer *d, pc_module *module, const pc__linear_layer *own)
{
    pc__keras_layer *layer = pc__keras_add(d->model, PC__KERAS_DENSE);
    if (!layer)
        return PC_ERR_MEMORY;
    layer->units = (int)own->out;
    layer->use_bias = pc__module_own(module, "bias") != NULL;
    layer->activation = theirs(own->activation);
    PC__TRY(make_weights(layer, 2, (int64_t[]){own->in, own->out}));
    PC__TRY(pc__order_dense(module, layer, d->before, false));
    PC__TRY(slots_of(d, layer));
    d->before[0] = 0;
    return PC_OK;
}

static pc_status pool(describer *d, const pc__pool2d_layer *own, pc__keras_kind kind)
{
    pc__keras_layer *layer = pc__keras_add(d->model, kind);
    if (!layer)
        return PC_ERR_MEMORY;
    memcpy(layer->window, own->spec.kernel, sizeof layer->window);
    memcpy(layer->stride, own->spec.stride, sizeof layer->stride);
    PC__TRY(padding_of(d, layer->window, layer->stride, own->spec.padding, own->extra, &layer->same));
    if (layer->same && kind == PC__KERAS_AVG_POOL2D && !own->exclude_padding)
        return pc__fail(PC_ERR_UNSUPPORTED,
                        "an average pool with padding cannot be written to a Keras file: Keras does not "
                        "count the padding");
    shrink(d, layer->window, layer->stride, own->spec.padding, own->extra);
    return PC_OK;
}

static pc_status plain(describer *d, pc__keras_kind kind, pc__keras_activation activation, double rate)
{
    pc__keras_layer *layer = pc__keras_add(d->model, kind);
    if (!layer)
        return PC_ERR_MEMORY;
    layer->activation = activation;
    layer->rate = rate;
    if (kind == PC__KERAS_FLATTEN && !d->flat) {
        d->flat = true;
        memcpy(d->before, d->size, sizeof d->before);
    }
    return PC_OK;
}

static pc_status describe(describer *d, pc_module *module)
{
    const pc_module_class *type = pc_module_type(module);
    const pc__activation_layer *activation = pc__activation_of(module);
    if (type == &pc__conv2d_class)
        return conv2d(d, module, pc_module_data(module));
    if (type == &pc__linear_class)
        return linear(d, module, pc_module_data(module));
    if (type == &pc__max_pool2d_class)
        return pool(d, pc_module_data(module), PC__KERAS_MAX_POOL2D);
    if (type == &pc__avg_pool2d_class)
        return pool(d, pc_module_data(module), PC__KERAS_AVG_POOL2D);
    if (type == &pc__flatten_class)
        return plain(d, PC__KERAS_FLATTEN, PC__KERAS_LINEAR, 0);
    if (type == &pc__dropout_class)
        return plain(d, PC__KERAS_DROPOUT, PC__KERAS_LINEAR, ((pc__dropout_layer *)pc_module_data(module))->p);
    if (activation)
        return plain(d, PC__KERAS_ACTIVATION, theirs(activation->kind), 0);
    return pc__fail(PC_ERR_UNSUPPORTED, "a module of class %s cannot be written to a Keras file", type->name);
}

static pc_status put_head(pc__keras_model *model, pc_keras_head head)
{
    pc__keras_activation activation = head == PC_KERAS_SIGMOID ? PC__KERAS_SIGMOID : PC__KERAS_SOFTMAX;
    pc__keras_layer *last = model->layer_count ? &model->layers[model->layer_count - 1] : NULL;
    if (head == PC_KERAS_LOGITS)
        return PC_OK;
    if (!last || last->kind != PC__KERAS_DENSE || last->activation != PC__KERAS_LINEAR)
        last = pc__keras_add(model, PC__KERAS_ACTIVATION);
    if (!last)
        return PC_ERR_MEMORY;
    last->activation = activation;
    return PC_OK;
}

static pc_status describe_optimizer(const pc_optimizer *o, pc__keras_training *t)
{
    const pc__step_attributes *s = &o->settings;
    bool adam = strcmp(o->name, "adam") == 0;
    t->optimizer = adam ? PC__KERAS_ADAM : PC__KERAS_SGD;
    t->learning_rate = s->lr;
    t->weight_decay = s->weight_decay;
    t->beta_1 = s->beta1, t->beta_2 = s->beta2, t->epsilon = s->epsilon;
    t->momentum = s->momentum, t->nesterov = s->nesterov != 0;
    return pc__optimizer_updates(o, &t->iterations);
}

pc_status pc__module_to_keras(const pc_module *module, const int64_t input[3], pc_keras_head head,
                              const pc_optimizer *optimizer, bool with_state, pc__keras_model *model)
{
    describer d = {.model = model, .optimizer = with_state ? optimizer : NULL, .size = {input[1], input[2], input[0]}};
    if (pc_module_type(module) != &pc__sequential_class)
        return pc__fail(PC_ERR_UNSUPPORTED, "only a Sequential can be written to a Keras file, not a %s",
                        pc_module_type(module)->name);
    model->input_rank = 3;
    memcpy(model->input_shape, d.size, sizeof d.size);
    if (optimizer) {
        PC__TRY(describe_optimizer(optimizer, &model->training));
        model->training.has_state = with_state;
        snprintf(model->training.loss, sizeof model->training.loss, "%s",
                 head == PC_KERAS_SOFTMAX ? "sparse_categorical_crossentropy" : "binary_crossentropy");
        model->training.from_logits = head == PC_KERAS_LOGITS;
    }
    for (int i = 0; i < pc_module_child_count(module); i++)
        PC__TRY(describe(&d, pc_module_child(module, i)));
    return put_head(model, head);
}

pc_status pc__keras_name_classes(pc__keras_model *model, const char *const *names, int count)
{
    if (!count)
        return PC_OK;
    model->class_names = pc__calloc((size_t)count, sizeof *model->class_names);
    if (!model->class_names)
        return PC_ERR_MEMORY;
    for (; model->class_count < count; model->class_count++) {
        model->class_names[model->class_count] = pc__strdup(names[model->class_count]);
        if (!model->class_names[model->class_count])
            return PC_ERR_MEMORY;
    }
    return PC_OK;
}
