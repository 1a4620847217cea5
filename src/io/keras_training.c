/* keras_training.c: training_config: the optimizer with its numbers, and the loss. */
#include "base/base.h"

#if PC_HAVE_HDF5 && PC_HAVE_CJSON

#include "io/keras_part.h"

#include <ctype.h>
#include <math.h>

/* "keras>Adam", "Custom>Adam": a registered name ends in the class. */
static const char *plain_class(const char *name)
{
    const char *mark = strrchr(name, '>');
    return mark ? mark + 1 : name;
}

/* A number, or what a learning rate schedule starts from. */
static double learning_rate(const cJSON *config)
{
    const cJSON *rate = pc__keras_json_get(config, "learning_rate");
    if (!rate)
        rate = pc__keras_json_get(config, "lr");
    if (cJSON_IsObject(rate))
        rate = pc__keras_json_get(pc__keras_json_get(rate, "config"), "initial_learning_rate");
    return cJSON_IsNumber(rate) ? rate->valuedouble : (double)NAN;
}

static void parse_optimizer(const cJSON *item, pc__keras_training *training)
{
    const char *name = pc__keras_json_string(item, "class_name");
    const cJSON *config = pc__keras_json_get(item, "config");
    snprintf(training->optimizer_class, sizeof training->optimizer_class, "%s", name ? plain_class(name) : "");
    training->optimizer = pc__keras_optimizer_named(training->optimizer_class);
    training->learning_rate = learning_rate(config);
    training->weight_decay = pc__keras_json_number(config, "weight_decay", 0);
    training->beta_1 = pc__keras_json_number(config, "beta_1", 0.9);
    training->beta_2 = training->optimizer == PC__KERAS_RMSPROP ? pc__keras_json_number(config, "rho", 0.9)
                       : training->optimizer == PC__KERAS_LION  ? pc__keras_json_number(config, "beta_2", 0.99)
                                                                : pc__keras_json_number(config, "beta_2", 0.999);
    training->epsilon = pc__keras_json_number(config, "epsilon", 1e-7);
    training->amsgrad = cJSON_IsTrue(pc__keras_json_get(config, "amsgrad"));
    training->momentum = pc__keras_json_number(config, "momentum", 0);
    training->nesterov = cJSON_IsTrue(pc__keras_json_get(config, "nesterov"));
}

/* "BinaryCrossentropy" -> "binary_crossentropy". */
static void put_snake(const char *name, char *out, size_t room)
{
    size_t n = 0;
    for (const char *c = name; *c && n + 2 < room; c++) {
        if (isupper((unsigned char)*c) && c != name)
            out[n++] = '_';
        out[n++] = (char)tolower((unsigned char)*c);
    }
    out[n] = 0;
}

/* A name, a class with its config, or a list or object of one of these. */
static void parse_loss(const cJSON *loss, pc__keras_training *training)
{
    bool wrapped = cJSON_IsArray(loss) || (cJSON_IsObject(loss) && !pc__keras_json_get(loss, "class_name"));
    if (wrapped && cJSON_GetArraySize(loss) == 1)
        loss = loss->child;
    const cJSON *config = pc__keras_json_get(loss, "config");
    const char *name = cJSON_IsObject(loss) ? pc__keras_json_string(loss, "class_name") : cJSON_GetStringValue(loss);
    if (name && strcmp(name, "function") == 0) /* {"class_name": "function", "config": "mean_squared_error"} */
        name = cJSON_GetStringValue(config);
    if (name)
        put_snake(plain_class(name), training->loss, sizeof training->loss);
    training->from_logits = cJSON_IsTrue(pc__keras_json_get(config, "from_logits"));
    if (strcmp(training->loss, "mse") == 0)
        snprintf(training->loss, sizeof training->loss, "mean_squared_error");
}

void pc__keras_training_parse(const cJSON *json, pc__keras_training *training)
{
    const cJSON *optimizer = pc__keras_json_get(json, "optimizer_config");
    if (!optimizer)
        optimizer = pc__keras_json_get(json, "optimizer");
    if (cJSON_IsObject(optimizer))
        parse_optimizer(optimizer, training);
    parse_loss(pc__keras_json_get(json, "loss"), training);
}

static void put_field(pc__text *out, const char *key, double value)
{
    pc__text_add(out, ", \"%s\": ", key);
    pc__json_number(out, value);
}

static void print_numbers(pc__text *out, const pc__keras_training *training)
{
    switch (training->optimizer) {
    case PC__KERAS_SGD:
        put_field(out, "momentum", training->momentum);
        pc__text_add(out, ", \"nesterov\": %s", training->nesterov ? "true" : "false");
        return;
    case PC__KERAS_RMSPROP:
        put_field(out, "rho", training->beta_2);
        put_field(out, "momentum", training->momentum);
        put_field(out, "epsilon", training->epsilon);
        pc__text_add(out, ", \"centered\": false");
        return;
    case PC__KERAS_LION:
        put_field(out, "beta_1", training->beta_1);
        put_field(out, "beta_2", training->beta_2);
        return;
    default:
        put_field(out, "beta_1", training->beta_1);
        put_field(out, "beta_2", training->beta_2);
        put_field(out, "epsilon", training->epsilon);
        pc__text_add(out, ", \"amsgrad\": %s", training->amsgrad ? "true" : "false");
    }
}

/* How gradients are clipped: of all of them as one vector, or each number. */
static void print_clip(pc__text *out, const pc__keras_training *training)
{
    if (training->clip_norm > 0)
        put_field(out, "global_clipnorm", training->clip_norm);
    if (training->clip_value > 0)
        put_field(out, "clipvalue", training->clip_value);
}

static void print_optimizer(pc__text *out, const pc__keras_training *training)
{
    pc__text_add(out, "{\"class_name\": \"%s\", \"config\": {\"name\": \"%s\"",
                 pc__keras_optimizer_class(training->optimizer), pc__keras_optimizer_name(training->optimizer));
    put_field(out, "learning_rate", training->learning_rate);
    if (training->weight_decay != 0)
        put_field(out, "weight_decay", training->weight_decay);
    print_clip(out, training);
    print_numbers(out, training);
    pc__text_add(out, "}}");
}

/* from_logits needs the class: "binary_crossentropy" -> "BinaryCrossentropy". */
static void print_loss(pc__text *out, const pc__keras_training *training)
{
    if (!training->loss[0]) {
        pc__text_add(out, "null");
    } else if (!training->from_logits) {
        pc__json_string(out, training->loss);
    } else {
        char name[sizeof training->loss];
        size_t n = 0;
        for (const char *c = training->loss; *c; c++)
            if (*c != '_')
                name[n++] = (char)(c == training->loss || c[-1] == '_' ? toupper((unsigned char)*c) : *c);
        name[n] = 0;
        pc__text_add(out, "{\"class_name\": ");
        pc__json_string(out, name);
        pc__text_add(out, ", \"config\": {\"from_logits\": true}}");
    }
}

void pc__keras_training_print(pc__text *out, const pc__keras_training *training)
{
    bool counts = strstr(training->loss, "crossentropy") != NULL;
    pc__text_add(out, "{\"loss\": ");
    print_loss(out, training);
    pc__text_add(out, ", \"metrics\": %s, \"weighted_metrics\": null, \"loss_weights\": null, \"optimizer_config\": ",
                 counts ? "[\"accuracy\"]" : "null");
    print_optimizer(out, training);
    pc__text_add(out, "}");
}

#endif
