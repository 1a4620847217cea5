/* keras_optimizer.c: what the optimizer keeps: the iteration and its slots for every trainable weight. */
#include "base/base.h"

#if PC_HAVE_HDF5 && PC_HAVE_CJSON

#include "io/keras_part.h"

#define NUMBERED_MAX (3 * 4 * PC__KERAS_LAYERS_MAX) /* variables of an optimizer */

/* The slots in the file's order: `per` of each trainable weight. Keras 3 and late Keras 2 put those of one weight
 * together (m v m v), earlier ones those of one sort (m m v v). */
typedef struct slots {
    const pc__names *names;
    int first, weights, per;
    bool by_sort;
} slots;

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

static const char *slot_name(const slots *all, int weight, int slot)
{
    int at = all->by_sort ? slot * all->weights + weight : weight * all->per + slot;
    return all->names->items[all->first + at];
}

/* Trainable weights in order; NULL at the end. */
static pc__keras_weight *next_trainable(pc__keras_model *model, int *layer, int *weight)
{
    for (; *layer < model->layer_count; (*layer)++, *weight = 0) {
        pc__keras_layer *at = &model->layers[*layer];
        while (!at->frozen && !pc__keras_in_config(at) && *weight < at->weight_count) {
            pc__keras_weight *next = &at->weights[(*weight)++];
            if (!next->fixed)
                return next;
        }
    }
    return NULL;
}

static int count_trainable(pc__keras_model *model)
{
    int layer = 0, weight = 0, count = 0;
    while (next_trainable(model, &layer, &weight))
        count++;
    return count;
}

/* Two moments, whatever is done with the decay. */
static bool is_adam(const pc__keras_training *training)
{
    return training->optimizer == PC__KERAS_ADAM || training->optimizer == PC__KERAS_ADAMW;
}

/* Find the slots among the names. False when their number fits no form that is known. */
static bool find_slots(pc__h5_node group, pc__keras_model *model, const pc__names *names, slots *all)
{
    int rank;
    int64_t shape[PC__KERAS_RANK_MAX];
    pc__keras_training *training = &model->training;
    *all = (slots){.names = names, .weights = count_trainable(model)};
    if (!names->count || !pc__h5_integer(group, names->items[0], &training->iterations))
        return false;
    double rate;
    for (all->first = 1; all->first < names->count; all->first++) {
        const char *name = names->items[all->first];
        pc__h5_shape(group, name, &rank, shape);
        if (rank != 0)
            break;
        /* The current rate, where training_config has a schedule or another one; it is only float32. */
        if (strstr(name, "learning_rate") && pc__h5_real(group, name, &rate) &&
            (float)rate != (float)training->learning_rate)
            training->learning_rate = rate;
    }
    int left = names->count - all->first;
    const bool adam = is_adam(training);
    all->per = adam ? 2 : left ? 1 : 0;
    /* Keras before 2.4 adds a dummy for amsgrad to each. */
    bool dummies = adam && left == 3 * all->weights;
    all->by_sort = dummies || (left > 1 && ends_with(names->items[all->first], "/m:0") &&
                               ends_with(names->items[all->first + 1], "/m:0"));
    return dummies || left == all->per * all->weights;
}

static bool slots_fit(pc__h5_node group, pc__keras_model *model, const slots *all)
{
    int layer = 0, index = 0, rank;
    int64_t shape[PC__KERAS_RANK_MAX];
    for (int i = 0; i < all->weights; i++) {
        const pc__keras_weight *weight = next_trainable(model, &layer, &index);
        for (int slot = 0; slot < all->per; slot++) {
            pc__h5_shape(group, slot_name(all, i, slot), &rank, shape);
            if (rank != weight->rank || memcmp(shape, weight->shape, (size_t)rank * sizeof *shape) != 0)
                return false;
        }
    }
    return true;
}

static pc_status read_slots(const char *path, pc__h5_node group, pc__keras_model *model, const slots *all)
{
    int layer = 0, index = 0;
    for (int i = 0; i < all->weights; i++) {
        pc__keras_weight *weight = next_trainable(model, &layer, &index);
        for (int slot = 0; slot < all->per; slot++)
            PC__TRY(pc__h5_floats(path, group, slot_name(all, i, slot), "the optimizer's state", weight->rank,
                                  weight->shape, &weight->slot[slot]));
    }
    model->training.has_state = true;
    return PC_OK;
}

static pc_status read_state(const char *path, pc__h5_node group, pc__keras_model *model, const pc__names *names)
{
    slots all;
    if (find_slots(group, model, names, &all) && slots_fit(group, model, &all))
        return read_slots(path, group, model, &all);
    pc__log(PC_LOG_WARNING, "%s: the optimizer's state does not fit the model and is left out", path);
    return PC_OK;
}

static bool is_known(const pc__keras_training *training)
{
    return training->optimizer == PC__KERAS_SGD || (is_adam(training) && !training->amsgrad);
}

pc_status pc__keras_state_read(const char *path, pc__h5_node file, pc__keras_model *model)
{
    pc__h5_node group;
    pc__names names = {0};
    if (!is_known(&model->training) || !pc__h5_has(file, "optimizer_weights"))
        return PC_OK;
    PC__TRY(pc__h5_group(path, file, "optimizer_weights", &group));
    pc_status status = pc__h5_names(path, group, "weight_names", &names, NULL);
    if (status == PC_OK)
        status = read_state(path, group, model, &names);
    pc__names_free(&names);
    pc__h5_close(group);
    return status;
}

/* In a .keras file its variables have numbers for names. Before the first step there are no slots. */
pc_status pc__keras_native_state_read(const char *path, pc__h5_node file, pc__keras_model *model)
{
    pc__h5_node group;
    char name[16];
    pc__names names = {0};
    if (!is_known(&model->training) || !pc__h5_has(file, "optimizer"))
        return PC_OK;
    PC__TRY(pc__h5_group(path, file, "optimizer/vars", &group));
    pc_status status = PC_OK;
    for (int i = 0; i < NUMBERED_MAX && status == PC_OK; i++) {
        int n = snprintf(name, sizeof name, "%d", i);
        if (!pc__h5_has(group, name))
            break;
        status = pc__names_add(&names, name, (size_t)n);
    }
    if (status == PC_OK && names.count > 2)
        status = read_state(path, group, model, &names);
    pc__names_free(&names);
    pc__h5_close(group);
    return status;
}

static pc_status put_named(const char *path, hid_t group, pc__names *names, const char *name, int rank,
                           const int64_t *shape, hid_t type, const void *values)
{
    PC__TRY(pc__names_add(names, name, strlen(name)));
    return pc__h5_put(path, group, name, rank, shape, type, values);
}

static pc_status write_slots(const char *path, hid_t group, pc__keras_model *model, pc__names *names)
{
    const bool adam = is_adam(&model->training);
    static const char *const words[] = {"momentum", "velocity"};
    int per = adam ? 2 : model->training.momentum != 0, layer = 0, index = 0, number = 0;
    for (pc__keras_weight *weight; (weight = next_trainable(model, &layer, &index)); number++)
        for (int slot = 0; slot < per; slot++) {
            char name[PC__KERAS_NAME_MAX + 48];
            const pc__keras_layer *of = &model->layers[layer];
            snprintf(name, sizeof name, "%s/%d_%s_%s_%s", pc__keras_optimizer_name(model->training.optimizer), number,
                     of->name, weight->word, words[slot]);
            if (!weight->slot[slot])
                return pc__fail(PC_ERR_ARGUMENT, "cannot write %s: layer '%s' lacks a slot of the optimizer", path,
                                of->name);
            PC__TRY(
                put_named(path, group, names, name, weight->rank, weight->shape, H5T_IEEE_F32LE, weight->slot[slot]));
        }
    return PC_OK;
}

/* Keras 3's order: iteration, learning rate, then the slots of each weight together. */
pc_status pc__keras_state_write(const char *path, hid_t file, pc__keras_model *model)
{
    const pc__keras_training *training = &model->training;
    const char *word = pc__keras_optimizer_name(training->optimizer);
    char name[32];
    float rate = (float)training->learning_rate;
    pc__names names = {0};
    hid_t group;
    PC__TRY(pc__h5_add_group(path, file, "optimizer_weights", &group));
    snprintf(name, sizeof name, "%s/iteration", word);
    pc_status status = put_named(path, group, &names, name, 0, NULL, H5T_STD_I64LE, &training->iterations);
    snprintf(name, sizeof name, "%s/learning_rate", word);
    if (status == PC_OK)
        status = put_named(path, group, &names, name, 0, NULL, H5T_IEEE_F32LE, &rate);
    if (status == PC_OK)
        status = write_slots(path, group, model, &names);
    if (status == PC_OK)
        status = pc__h5_put_names(path, group, "weight_names", names.items, names.count);
    pc__names_free(&names);
    H5Gclose(group);
    return status;
}

#endif
