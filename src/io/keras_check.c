/* keras_check.c: what a model must be like to be written. */
#include "base/base.h"

#if PC_HAVE_HDF5 && PC_HAVE_CJSON

#include "io/keras_part.h"

#include <math.h>

pc__shape_text pc__keras_shape_text(int rank, const int64_t *shape)
{
    pc__shape_text out = {"(no shape)"};
    if (rank < 0)
        return out;
    size_t n = (size_t)snprintf(out.text, sizeof out.text, "(");
    for (int i = 0; i < rank && n < sizeof out.text; i++) {
        const char *comma = i ? ", " : "";
        n += (size_t)(shape[i] < 0 ? snprintf(out.text + n, sizeof out.text - n, "%sNone", comma)
                                   : snprintf(out.text + n, sizeof out.text - n, "%s%lld", comma, (long long)shape[i]));
    }
    if (n < sizeof out.text)
        snprintf(out.text + n, sizeof out.text - n, rank == 1 ? ",)" : ")");
    return out;
}

static bool same_shape(const pc__keras_weight *a, const pc__keras_weight *b)
{
    bool same = a->rank == b->rank;
    for (int i = 0; same && i < a->rank; i++)
        same = a->shape[i] > 0 && (b->shape[i] < 0 || a->shape[i] == b->shape[i]);
    return same;
}

static pc_status check_weight(const char *path, const pc__keras_layer *layer, const pc__keras_weight *has,
                              const pc__keras_weight *needs)
{
    if (!same_shape(has, needs))
        return pc__fail(PC_ERR_SHAPE, "cannot write %s: the %s of layer '%.64s' has the shape %s and needs %s", path,
                        needs->word, layer->name, pc__keras_shape_text(has->rank, has->shape).text,
                        pc__keras_shape_text(needs->rank, needs->shape).text);
    if (!has->value)
        return pc__fail(PC_ERR_ARGUMENT, "cannot write %s: the %s of layer '%.64s' has no values", path, needs->word,
                        layer->name);
    return PC_OK;
}

static pc_status check_fields(const char *path, const pc__keras_layer *layer)
{
    bool pools = layer->kind == PC__KERAS_MAX_POOL2D || layer->kind == PC__KERAS_AVG_POOL2D;
    bool convolves = layer->kind == PC__KERAS_CONV2D || layer->kind == PC__KERAS_DEPTHWISE_CONV2D ||
                     layer->kind == PC__KERAS_SEPARABLE_CONV2D;
    bool counts =
        layer->kind == PC__KERAS_CONV2D || layer->kind == PC__KERAS_SEPARABLE_CONV2D || layer->kind == PC__KERAS_DENSE;
    bool good = (unsigned)layer->activation < PC__KERAS_ACTIVATION_COUNT;
    if (good && (convolves || counts) && !pc__keras_activation_name(layer->activation)) /* gelu_tanh has none */
        return pc__fail(PC_ERR_UNSUPPORTED,
                        "cannot write %s: a %s layer has an activation that Keras has no name for (gelu's tanh form): "
                        "give the network gelu, and train it with that",
                        path, pc__keras_class_name(layer->kind));
    for (int i = 0; i < 2; i++)
        good = good && (!(pools || convolves) || (layer->window[i] >= 1 && layer->stride[i] >= 1));
    good = good && (!counts || layer->units >= 1) && (convolves || counts || !layer->use_bias);
    good = good && layer->rate >= 0 && layer->rate < 1 && isfinite(layer->scale) && isfinite(layer->offset);
    if (good)
        return PC_OK;
    return pc__fail(PC_ERR_ARGUMENT, "cannot write %s: a %s layer has fields that no Keras layer has", path,
                    pc__keras_class_name(layer->kind));
}

/* Keras's own words: "max_pooling2d", then "max_pooling2d_1". */
static void name_layer(pc__keras_model *model, int index)
{
    pc__keras_layer *layer = &model->layers[index];
    char word[PC__KERAS_NAME_MAX];
    int number = 0;
    pc__keras_snake(pc__keras_class_name(layer->kind), word);
    for (int i = 0; i < index; i++)
        number += model->layers[i].kind == layer->kind;
    for (bool taken = true; taken; number++) {
        snprintf(layer->name, sizeof layer->name, number ? "%.100s_%d" : "%.100s", word, number);
        taken = false;
        for (int i = 0; i < model->layer_count && !taken; i++)
            taken = i != index && strcmp(model->layers[i].name, layer->name) == 0;
    }
}

static pc_status check_names(const char *path, const pc__keras_model *model)
{
    for (int i = 0; i < model->layer_count; i++)
        for (int j = 0; j < i; j++)
            if (strcmp(model->layers[i].name, model->layers[j].name) == 0)
                return pc__fail(PC_ERR_ARGUMENT, "cannot write %s: two layers have the name '%.64s'", path,
                                model->layers[i].name);
    return PC_OK;
}

static pc_status check_training(const char *path, const pc__keras_training *training)
{
    if (training->optimizer == PC__KERAS_NO_OPTIMIZER)
        return PC_OK;
    if (!pc__keras_optimizer_class(training->optimizer))
        return pc__fail(PC_ERR_UNSUPPORTED,
                        "cannot write %s: its optimizer '%.60s' is none of Adam, AdamW, SGD, RMSprop, "
                        "Lion",
                        path, training->optimizer_class);
    if (training->amsgrad && training->has_state)
        return pc__fail(PC_ERR_UNSUPPORTED, "cannot write %s: the state of Adam with amsgrad is not supported", path);
    if (training->has_state && (training->optimizer == PC__KERAS_RMSPROP || training->optimizer == PC__KERAS_LION))
        return pc__fail(PC_ERR_UNSUPPORTED,
                        "cannot write %s: the state of %s is not supported; write the model without it", path,
                        pc__keras_optimizer_class(training->optimizer));
    bool good = isfinite(training->learning_rate) && isfinite(training->weight_decay) && isfinite(training->momentum) &&
                isfinite(training->beta_1) && isfinite(training->beta_2) && isfinite(training->epsilon);
    return good ? PC_OK : pc__fail(PC_ERR_ARGUMENT, "cannot write %s: a number of its optimizer is not finite", path);
}

static pc_status check_layer(const char *path, pc__keras_model *model, int node)
{
    pc__keras_wants wants;
    pc__keras_layer *layer = &model->layers[model->nodes[node].layer];
    pc_status status = pc__keras_layer_printable(layer);
    if (status == PC_OK)
        status = pc__keras_node_shape(model, node, &wants);
    if (layer->refused) {
        (void)pc__fail(status, "cannot write %s: layer '%.64s' %s", path, layer->name, layer->problem);
        layer->refused = PC_OK; /* by this writing alone */
    }
    PC__TRY(status);
    for (int i = 0; i < wants.count; i++) {
        static const pc__keras_weight none = {0};
        PC__TRY(check_weight(path, layer, i < layer->weight_count ? &layer->weights[i] : &none, &wants.items[i]));
    }
    return PC_OK;
}

pc_status pc__keras_check(const char *path, pc__keras_model *model)
{
    if (model->input_rank < 1 || model->input_rank > 3 || model->layer_count > PC__KERAS_LAYERS_MAX)
        return pc__fail(PC_ERR_ARGUMENT,
                        "cannot write %s: a model needs an input of 1 to 3 dimensions and at most %d layers", path,
                        PC__KERAS_LAYERS_MAX);
    PC__TRY(check_training(path, &model->training));
    for (int i = 0; i < model->layer_count; i++) {
        PC__TRY(check_fields(path, &model->layers[i]));
        if (!model->layers[i].name[0])
            name_layer(model, i);
    }
    for (int i = 0; i < model->node_count; i++)
        PC__TRY(check_layer(path, model, i));
    return check_names(path, model);
}

#endif
