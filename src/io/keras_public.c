/* keras_public.c: keras.h over the description and the modules. */
#include "io/keras_module.h"
#include "io/keras_order.h"

#include <paracord/autograd.h>
#include <paracord/no_grad.h>

pc_status pc_keras_save(const char *path, const pc_module *net, pc_keras_options options)
{
    PC__NEED(path);
    PC__NEED(net);
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
    PC__NEED_OR(NULL, path);
    if (pc__keras_read(path, &model) != PC_OK)
        return NULL;
    pc__keras_front front;
    pc_module *net = pc__module_from_keras(&model, path, &info->head, false, &front);
    info->rescale = front.found ? front.rescale : 0;
    describe(&model, info);
    pc__keras_free(&model);
    if (net)
        pc_module_set_training(net, false);
    return net;
}

static pc_status differs(const char *path)
{
    return pc__fail(PC_ERR_STATE, "%s: its optimiser state belongs to another network than the optimiser's", path);
}

/* Put slot `s` of every weight that is trained in the place of its values, or back. */
static pc_status swap(pc__keras_model *model, int s, const char *path)
{
    for (int l = 0; l < model->layer_count; l++)
        for (int i = 0; i < model->layers[l].weight_count; i++) {
            pc__keras_weight *w = &model->layers[l].weights[i];
            if (w->fixed || model->layers[l].frozen)
                continue;
            if (!w->slot[s])
                return differs(path);
            float *value = w->value;
            w->value = w->slot[s];
            w->slot[s] = value;
        }
    return PC_OK;
}

/* Frozen ones have no slots: what the optimiser has for them stays. */
static pc_status take_slot(pc_optimizer *o, int s, int i, pc_tensor *from, const char *path)
{
    if (!pc__same_shape(from, o->parameters[i]))
        return differs(path);
    return pc_requires_grad(from) ? pc_copy(o->state[s * o->count + i], from) : PC_OK;
}

/* A network whose parameters are one slot of all weights has them in the order that the optimiser's are in. */
static pc_status restore(pc__keras_model *model, const char *path, pc_optimizer *o, int s)
{
    pc_keras_head head;
    pc__keras_front front;
    PC__TRY(swap(model, s, path));
    pc_module *shadow = pc__module_from_keras(model, path, &head, false, &front);
    PC__TRY(swap(model, s, path));
    int count = shadow ? pc_module_parameter_list(shadow, NULL, 0) : 0;
    pc_parameter *list = count < 0 ? NULL : pc__calloc((size_t)count + 1, sizeof *list);
    pc_status status = shadow && list ? PC_OK : pc_error_last()->status;
    if (status == PC_OK && count != o->count)
        status = differs(path);
    if (status == PC_OK)
        (void)pc_module_parameter_list(shadow, list, count);
    for (int i = 0; i < count && status == PC_OK; i++)
        status = take_slot(o, s, i, list[i].tensor, path);
    pc__free(list);
    pc_module_free(shadow);
    return status;
}

pc_status pc_keras_load_optimizer(const char *path, pc_optimizer *optimizer)
{
    PC__NEED(path);
    PC__NEED(optimizer);
    pc__keras_model model = {0};
    PC__TRY(pc__keras_read(path, &model));
    const pc__keras_training *t = &model.training;
    const bool same = pc__keras_optimizer_named(optimizer->name) == t->optimizer;
    pc_status status = PC_OK;
    if (!t->has_state)
        status = pc__fail(PC_ERR_NOT_FOUND, "%s: the file has no optimiser state", path);
    else if (!same)
        status =
            pc__fail(PC_ERR_STATE, "%s: the file's optimiser is %s, not %s", path, t->optimizer_class, optimizer->name);
    if (status == PC_OK && optimizer->slots)
        status = pc__order_momentum(&model, path, true);
    PC_NO_GRAD {
        for (int s = 0; s < optimizer->slots && status == PC_OK; s++)
            status = restore(&model, path, optimizer, s);
    }
    if (status == PC_OK) {
        pc__optimizer_adopt(optimizer, t->iterations);
        optimizer->settings.lr = optimizer->given_lr = t->learning_rate;
    }
    pc__keras_free(&model);
    return status;
}
