/* keras_public.c: keras.h over the description and the modules. */
#include "io/keras_module.h"
#include "io/keras_order.h"

#include <paracord/no_grad.h>

pc_status pc_keras_save(const char *path, const pc_module *net, pc_keras_options options)
{
    if (!net)
        return pc_failed() ? pc_error_last()->status : pc__fail(PC_ERR_ARGUMENT, "pc_keras_save: the network is NULL");
    if (options.height < 1 || options.width < 1 || options.channels < 1)
        return pc__fail(PC_ERR_ARGUMENT,
                        "pc_keras_save: height %d, width %d and channels %d of the pictures must be at least 1",
                        options.height, options.width, options.channels);
    pc__keras_model model = {.name = "sequential"};
    int64_t input[3] = {options.channels, options.height, options.width};
    pc_status status =
        pc__module_to_keras(net, input, options.head, options.optimizer, options.optimizer_state, &model);
    if (status == PC_OK)
        status = pc__keras_name_classes(&model, options.class_names, options.class_count);
    if (status == PC_OK)
        status = pc__keras_write(path, &model);
    pc__keras_free(&model);
    return status;
}

static void describe(const pc__keras_model *model, pc_keras_info *info)
{
    const int64_t *size = model->input_shape;
    if (model->input_rank >= 2) {
        info->height = (int)PC__MAX(size[0], 0);
        info->width = (int)PC__MAX(size[1], 0);
        info->channels = model->input_rank == 3 ? (int)PC__MAX(size[2], 0) : 1;
    }
    snprintf(info->optimizer, sizeof info->optimizer, "%s", model->training.optimizer_class);
    snprintf(info->loss, sizeof info->loss, "%s", model->training.loss);
    info->lr = model->training.optimizer ? model->training.learning_rate : __builtin_nan("");
}

pc_module *pc_keras_load(const char *path, pc_keras_info *info)
{
    pc__keras_model model = {0};
    pc_keras_info unread;
    info = info ? info : &unread;
    *info = (pc_keras_info){0};
    if (pc__keras_read(path, &model) != PC_OK)
        return NULL;
    pc_module *net = pc__module_from_keras(&model, path, &info->head, &info->rescale);
    describe(&model, info);
    pc__keras_free(&model);
    if (net)
        pc_module_train(net, false);
    return net;
}

typedef struct restoring {
    const char *path;
    pc_optimizer *optimizer;
    int parameter;     /* the next one */
    int64_t before[3]; /* what was flattened last */
} restoring;

static pc_status differs(const restoring *r)
{
    return pc__fail(PC_ERR_STATE, "%s: its optimiser state belongs to another network than the optimiser's", r->path);
}

/* The slots of one weight into the optimiser's next parameter. */
static pc_status restore(restoring *r, const pc__keras_weight *weight)
{
    pc_optimizer *o = r->optimizer;
    int64_t count = pc__keras_weight_size(weight);
    if (r->parameter >= o->count || pc_tensor_count(o->parameters[r->parameter]) != count)
        return differs(r);
    float *own = pc__alloc((size_t)count * sizeof *own);
    pc_status status = own ? PC_OK : PC_ERR_MEMORY;
    for (int s = 0; s < o->slots && status == PC_OK; s++) {
        pc_tensor *state = o->state[s * o->count + r->parameter];
        if (!weight->slot[s]) {
            status = differs(r);
            break;
        }
        if (weight->rank == 4)
            pc__order_conv_array(own, weight->slot[s], weight->shape, true);
        else if (weight->rank == 2)
            pc__order_dense_array(own, weight->slot[s], weight->shape, r->before, true);
        else
            memcpy(own, weight->slot[s], (size_t)count * sizeof *own);
        PC_SCOPE {
            status = pc_copy(state, pc_from_data(own, pc_tensor_shape(state), PC_F32, PC_DEVICE_CPU));
        }
    }
    pc__free(own);
    r->parameter++;
    return status;
}

static pc_status restore_layer(restoring *r, const pc__keras_layer *layer)
{
    bool flat_input = layer->kind == PC__KERAS_DENSE;
    if (layer->kernel.rank)
        PC__TRY(restore(r, &layer->kernel));
    if (layer->bias.rank)
        PC__TRY(restore(r, &layer->bias));
    if (flat_input)
        r->before[0] = 0;
    return PC_OK;
}

/* What a Flatten takes: found from the next dense layer's rows and the channels before it. */
static void note_flatten(restoring *r, const pc__keras_model *model, int at)
{
    int64_t channels = model->input_rank == 3 ? model->input_shape[2] : 1;
    for (int i = 0; i < at; i++)
        if (model->layers[i].kind == PC__KERAS_CONV2D)
            channels = model->layers[i].units;
    for (int i = at; i < model->layer_count; i++)
        if (model->layers[i].kind == PC__KERAS_DENSE) {
            r->before[0] = model->layers[i].kernel.shape[0] / channels; /* pixels, as height x 1 */
            r->before[1] = 1;
            r->before[2] = channels;
            return;
        }
}

pc_status pc_keras_load_optimizer(const char *path, pc_optimizer *optimizer)
{
    if (!optimizer)
        return pc_failed() ? pc_error_last()->status
                           : pc__fail(PC_ERR_ARGUMENT, "pc_keras_load_optimizer: the optimiser is NULL");
    pc__keras_model model = {0};
    PC__TRY(pc__keras_read(path, &model));
    const pc__keras_training *t = &model.training;
    restoring r = {.path = path, .optimizer = optimizer};
    bool same = t->optimizer == (strcmp(optimizer->name, "adam") == 0 ? PC__KERAS_ADAM : PC__KERAS_SGD);
    pc_status status = PC_OK;
    if (!t->has_state)
        status = pc__fail(PC_ERR_NOT_FOUND, "%s: the file has no optimiser state", path);
    else if (!same)
        status =
            pc__fail(PC_ERR_STATE, "%s: the file's optimiser is %s, not %s", path, t->optimizer_class, optimizer->name);
    PC_NO_GRAD {
        for (int i = 0; i < model.layer_count && status == PC_OK; i++) {
            if (model.layers[i].kind == PC__KERAS_FLATTEN)
                note_flatten(&r, &model, i);
            status = restore_layer(&r, &model.layers[i]);
        }
    }
    if (status == PC_OK && r.parameter != optimizer->count)
        status = differs(&r);
    if (status == PC_OK) {
        pc__optimizer_adopt(optimizer, t->iterations);
        optimizer->settings.lr = t->learning_rate;
    }
    pc__keras_free(&model);
    return status;
}
