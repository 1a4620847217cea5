/* keras_graph.c: from the lists of layers in model_config to layers and nodes. Models inside a model are taken apart:
 * their layers become the model's own, and every call of them nodes of its own. */
#include "base/base.h"

#if PC_HAVE_HDF5 && PC_HAVE_CJSON

#include "io/keras_part.h"

#define DEPTH_MAX 8
#define NODES_MAX 16384
#define WORK_MAX 100000000

typedef struct container container;

typedef struct entry {
    const char *name;
    int layer;          /* -1: none: an input, or a model */
    container *model;   /* of a model inside */
    const cJSON *calls; /* inbound nodes */
    int *outputs;       /* of each call done, the node; -2: not done yet */
    int call_count;
    const cJSON *built; /* the shape that it takes, where the file states it */
} entry;

struct container {
    const cJSON *config; /* Functional: with the ends; NULL: Sequential */
    entry *entries;
    int count;
};

typedef struct reader {
    const char *path;
    pc__keras_model *model;
    int group;
    int64_t work; /* what is left to do before the file is taken for a trap */
} reader;

enum { OPEN = -2 };

char pc__keras_model_class(const char *class_name)
{
    if (strcmp(class_name, "Sequential") == 0)
        return 'S';
    return strcmp(class_name, "Functional") == 0 || strcmp(class_name, "Model") == 0 ? 'F' : 0;
}

static void container_free(container *c)
{
    if (!c)
        return;
    for (int i = 0; i < c->count; i++) {
        container_free(c->entries[i].model);
        pc__free(c->entries[i].outputs);
    }
    pc__free(c->entries);
    pc__free(c);
}

static pc_status declare_layer(const reader *r, const cJSON *config, const char *class_name, const char *name,
                               bool frozen, const char *location, entry *e)
{
    pc__keras_layer *layer = pc__keras_add_layer(r->model, PC__KERAS_UNKNOWN);
    if (!layer)
        return PC_ERR_MEMORY;
    if (r->model->layer_count > PC__KERAS_LAYERS_MAX)
        return pc__fail(PC_ERR_FORMAT, "%s: model_config has over %d layers", r->path, PC__KERAS_LAYERS_MAX);
    e->layer = r->model->layer_count - 1;
    snprintf(layer->name, sizeof layer->name, "%s", name);
    layer->group = r->group;
    layer->location = pc__strdup(location);
    PC__TRY(layer->location ? PC_OK : PC_ERR_MEMORY);
    PC__TRY(pc__keras_layer_parse(&(pc__keras_source){layer, config, r->model->version}, class_name));
    layer->frozen = layer->frozen || frozen;
    return PC_OK;
}

static pc_status declare(reader *r, const cJSON *layers, const cJSON *config, bool frozen, const char *location,
                         int depth, container **made);

/* Ops of keras.ops are no layers: they have no place among the weights. */
static bool is_op(const cJSON *item)
{
    const char *module = pc__keras_json_string(item, "module");
    return module && strstr(module, ".ops.");
}

static pc_status declare_one(reader *r, const cJSON *item, int index, bool sequential, bool frozen, const char *inside,
                             pc__names *used, int depth, entry *e)
{
    const char *class_name = pc__keras_json_string(item, "class_name");
    const cJSON *config = pc__keras_json_get(item, "config");
    char what[48], name[PC__KERAS_NAME_MAX], *location = NULL;
    snprintf(what, sizeof what, "layer %d", index);
    if (!class_name || !config)
        return pc__fail(PC_ERR_FORMAT, "%s: %s in model_config has no class_name or config", r->path, what);
    char kind = pc__keras_model_class(class_name);
    const char *text = cJSON_IsObject(config) ? pc__keras_json_string(config, "name") : NULL;
    if (kind && !text)
        text = class_name; /* Keras before 2.3 */
    PC__TRY(pc__keras_json_name(r->path, what, text, name));
    e->name = pc__keras_json_string(item, "name");
    e->name = e->name ? e->name : pc__keras_json_string(config, "name");
    e->layer = -1;
    e->calls = pc__keras_json_get(item, "inbound_nodes");
    e->built = pc__keras_json_get(pc__keras_json_get(item, "build_config"), "input_shape");
    if (!is_op(item))
        PC__TRY(pc__keras_native_locate(class_name, inside, used, &location));
    pc_status status = PC_OK;
    if (depth == 0)
        r->group++;
    if (kind) {
        const cJSON *trainable = pc__keras_json_get(config, "trainable");
        status = declare(r, cJSON_IsArray(config) ? config : pc__keras_json_get(config, "layers"),
                         kind == 'F' ? config : NULL, frozen || cJSON_IsFalse(trainable), location ? location : "",
                         depth + 1, &e->model);
    } else if (strcmp(class_name, "InputLayer") == 0) {
        if (sequential && index > 0)
            status = pc__fail(PC_ERR_UNSUPPORTED, "%s: layer '%.64s' is a second input, which is not supported",
                              r->path, name);
    } else {
        status = declare_layer(r, config, class_name, name, frozen, location ? location : "", e);
    }
    pc__free(location);
    return status;
}

/* Register all layers of a list, those of models in it too. */
static pc_status declare(reader *r, const cJSON *layers, const cJSON *config, bool frozen, const char *location,
                         int depth, container **made)
{
    *made = NULL;
    if (!cJSON_IsArray(layers) || cJSON_GetArraySize(layers) > PC__KERAS_LAYERS_MAX || depth > DEPTH_MAX)
        return pc__fail(PC_ERR_FORMAT, "%s: model_config has no list of at most %d layers", r->path,
                        PC__KERAS_LAYERS_MAX);
    container *c = *made = pc__calloc(1, sizeof *c);
    if (!c)
        return PC_ERR_MEMORY;
    c->config = config;
    c->entries = pc__calloc((size_t)cJSON_GetArraySize(layers) + 1, sizeof *c->entries);
    if (!c->entries)
        return PC_ERR_MEMORY;
    pc__names used = {0};
    pc_status status = PC_OK;
    const cJSON *item;
    cJSON_ArrayForEach(item, layers)
    {
        entry *e = &c->entries[c->count++];
        status = declare_one(r, item, c->count - 1, !config, frozen, location, &used, depth, e);
        if (status != PC_OK)
            break;
        e->call_count = PC__MAX(cJSON_GetArraySize(e->calls), 1);
        e->outputs = pc__alloc((size_t)e->call_count * sizeof *e->outputs);
        if (!e->outputs) {
            status = PC_ERR_MEMORY;
            break;
        }
    }
    pc__names_free(&used);
    return status;
}

static pc_status apply(reader *r, container *c, int input, int depth, int *output);

/* One call of an entry. */
static pc_status call(reader *r, const entry *e, const int *from, int count, int depth, int *output)
{
    r->work -= WORK_MAX / NODES_MAX;
    if (r->work < 0)
        return pc__fail(PC_ERR_FORMAT, "%s: the model has over %d calls of layers", r->path, NODES_MAX);
    if (e->model && count != 1)
        return pc__fail(PC_ERR_UNSUPPORTED, "%s: the model '%.64s' in it takes %d inputs, which is not supported",
                        r->path, e->name, count);
    if (e->model)
        return apply(r, e->model, from[0], depth + 1, output);
    PC__TRY(pc__keras_add_node(r->model, e->layer, from, count));
    *output = r->model->node_count - 1;
    return PC_OK;
}

static entry *find(const container *c, const char *name)
{
    for (int i = 0; i < c->count; i++)
        if (c->entries[i].name && strcmp(c->entries[i].name, name) == 0)
            return &c->entries[i];
    return NULL;
}

/* The nodes that a call takes from; false while one of them is not there. */
static bool resolve(const reader *r, const container *c, const pc__keras_inbound *inbound, int *from)
{
    for (int i = 0; i < inbound->count; i++) {
        const entry *e = find(c, inbound->from[i].layer);
        int call_number = inbound->from[i].node;
        if (!e || call_number >= e->call_count || e->outputs[call_number] == OPEN)
            return false;
        from[i] = e->outputs[call_number];
        if (from[i] >= 0 && inbound->from[i].shape && !r->model->nodes[from[i]].rank) {
            pc__keras_node *node = &r->model->nodes[from[i]];
            (void)pc__keras_json_shape(inbound->from[i].shape, &node->rank, node->shape);
        }
    }
    return true;
}

/* What the arguments make of the layer itself. */
static void settle(const reader *r, const entry *e, const pc__keras_inbound *inbound)
{
    pc__keras_layer *layer = e->layer >= 0 ? &r->model->layers[e->layer] : NULL;
    if (!layer || layer->kind == PC__KERAS_UNKNOWN)
        return;
    const bool part = strcmp(layer->class_name, "GetItem") == 0;
    if (inbound->odd || (!part && inbound->ellipsis))
        (void)pc__keras_refuse(layer, PC_ERR_UNSUPPORTED,
                               "(%s) is called with more than tensors, which is not supported", layer->class_name);
    else if (part)
        (void)pc__keras_channels(layer, inbound);
    else if (inbound->constants && (inbound->count != 1 || e->call_count != 1))
        (void)pc__keras_refuse(layer, PC_ERR_UNSUPPORTED, "(%s) is used with a number in a way that is not supported",
                               layer->class_name);
    else if (inbound->constants)
        (void)pc__keras_constant(layer, inbound);
}

static pc_status stray(const reader *r, const container *c)
{
    const char *name = "(none)";
    for (int i = c->count; i--;)
        for (int k = 0; k < c->entries[i].call_count; k++)
            if (c->entries[i].outputs[k] == OPEN)
                name = c->entries[i].name;
    return pc__fail(PC_ERR_FORMAT, "%s: the layers of the model hang together wrongly (at layer '%.64s')", r->path,
                    name ? name : "(no name)");
}

static pc_status try_call(reader *r, container *c, entry *e, int number, int depth, bool *done)
{
    pc__keras_inbound inbound;
    int from[PC__COUNT(inbound.from)];
    pc__keras_inbound_parse(cJSON_GetArrayItem(e->calls, number), &inbound);
    r->work -= (int64_t)c->count * inbound.count;
    if (r->work < 0)
        return stray(r, c);
    *done = inbound.count > 0 && resolve(r, c, &inbound, from);
    if (!*done)
        return PC_OK;
    settle(r, e, &inbound);
    return call(r, e, from, inbound.count, depth, &e->outputs[number]);
}

pc_status pc__keras_set_aside(pc_status status, pc__keras_model *model)
{
    if (status != PC_ERR_UNSUPPORTED)
        return status;
    const pc_error why = pc__error_take();
    if (model->refused)
        return PC_OK;
    model->problem = pc__strdup(why.message);
    model->refused = status;
    return model->problem ? PC_OK : PC_ERR_MEMORY;
}

/* The shapes that calls state of what they take. */
static void state_shapes(const reader *r, const container *c)
{
    for (int i = 0; i < c->count; i++) {
        if (c->entries[i].model)
            state_shapes(r, c->entries[i].model);
        for (int k = 0; k < cJSON_GetArraySize(c->entries[i].calls); k++) {
            pc__keras_inbound inbound;
            pc__keras_inbound_parse(cJSON_GetArrayItem(c->entries[i].calls, k), &inbound);
            for (int f = 0; f < inbound.count; f++) {
                const entry *from = find(c, inbound.from[f].layer);
                pc__keras_node *node = from && from->layer >= 0 ? &r->model->nodes[from->layer] : NULL;
                if (node && inbound.from[f].shape)
                    (void)pc__keras_json_shape(inbound.from[f].shape, &node->rank, node->shape);
            }
        }
    }
}

/* A model that cannot be had: each layer is a node, and joined to none. */
static pc_status list_layers(const reader *r, const container *c)
{
    r->model->node_count = r->model->edge_count = 0;
    for (int i = 0; i < r->model->layer_count; i++)
        PC__TRY(pc__keras_add_node(r->model, i, NULL, 0));
    state_shapes(r, c);
    return PC_OK;
}

/* The one end of ["conv2d", 0, 0], [["conv2d", 0, 0]] or their like in a dict; NULL when there are several. */
static const cJSON *one_end(const cJSON *ends)
{
    while ((cJSON_IsArray(ends) || cJSON_IsObject(ends)) && cJSON_GetArraySize(ends) == 1)
        ends = ends->child;
    return cJSON_IsArray(ends) && cJSON_IsString(cJSON_GetArrayItem(ends, 0)) ? ends : NULL;
}

/* The ends of a model by their names: " (left, right)". */
static void name_ends(const cJSON *ends, char *text, size_t room)
{
    size_t n = 0;
    const cJSON *item;
    text[0] = 0;
    cJSON_ArrayForEach(item, ends)
    {
        while (cJSON_IsArray(item) && cJSON_IsArray(item->child))
            item = item->child;
        const char *name = cJSON_GetStringValue(cJSON_GetArrayItem(item, 0));
        if (name && n + 8 < room)
            n += (size_t)snprintf(text + n, room - n, "%s%.40s", n ? ", " : " (", name);
        n = PC__MIN(n, room - 2);
    }
    snprintf(text + n, room - n, "%s", n ? ")" : "");
}

static entry *end_of(const reader *r, const container *c, const char *key, int *number)
{
    const cJSON *end = one_end(pc__keras_json_get(c->config, key)), *node = cJSON_GetArrayItem(end, 1);
    *number = cJSON_IsNumber(node) && node->valuedouble >= 0 && node->valuedouble < PC__KERAS_LAYERS_MAX
                  ? (int)node->valuedouble
                  : 0;
    entry *e = end ? find(c, cJSON_GetStringValue(cJSON_GetArrayItem(end, 0))) : NULL;
    if (e && *number < e->call_count)
        return e;
    const cJSON *ends = pc__keras_json_get(c->config, key);
    char names[128];
    name_ends(ends, names, sizeof names);
    if (end || cJSON_GetArraySize(ends) < 2)
        (void)pc__fail(PC_ERR_FORMAT, "%s: the model has not one of its %s", r->path, key);
    else
        (void)pc__fail(PC_ERR_UNSUPPORTED,
                       "%s: the model has %d %s%s; models of one input and one output are supported", r->path,
                       cJSON_GetArraySize(ends), strcmp(key, "input_layers") ? "outputs" : "inputs", names);
    return NULL;
}

/* Calls in an order in which each finds what it takes: passes over the list, nearly always one. */
static pc_status apply_functional(reader *r, container *c, int input, int depth, int *output)
{
    int number;
    entry *first = end_of(r, c, "input_layers", &number);
    int last_number;
    entry *last = first ? end_of(r, c, "output_layers", &last_number) : NULL;
    if (!last)
        return pc_error_last()->status;
    for (int i = 0; i < c->count; i++)
        for (int k = 0; k < c->entries[i].call_count; k++)
            c->entries[i].outputs[k] = OPEN;
    first->outputs[number] = input;
    for (bool moved = true; moved;) {
        moved = false;
        for (int i = 0; i < c->count; i++)
            for (int k = 0; k < c->entries[i].call_count; k++) {
                bool done = false;
                if (c->entries[i].outputs[k] == OPEN)
                    PC__TRY(try_call(r, c, &c->entries[i], k, depth, &done));
                moved = moved || done;
            }
    }
    *output = last->outputs[last_number];
    return *output == OPEN ? stray(r, c) : PC_OK;
}

static pc_status apply_sequential(reader *r, container *c, int input, int depth, int *output)
{
    *output = input;
    for (int i = 0; i < c->count; i++) {
        if (*output >= 0 && c->entries[i].built && !r->model->nodes[*output].rank) {
            pc__keras_node *node = &r->model->nodes[*output];
            (void)pc__keras_json_shape(c->entries[i].built, &node->rank, node->shape);
        }
        if (c->entries[i].model || c->entries[i].layer >= 0)
            PC__TRY(call(r, &c->entries[i], (int[]){*output}, 1, depth, output));
    }
    return PC_OK;
}

static pc_status apply(reader *r, container *c, int input, int depth, int *output)
{
    return c->config ? apply_functional(r, c, input, depth, output) : apply_sequential(r, c, input, depth, output);
}

/* A (height, width) is read as a picture of one channel, which a layer in front takes away again. */
static pc_status take_channel(pc__keras_model *model, int *output)
{
    pc__keras_layer *layer = pc__keras_add(model, PC__KERAS_RESHAPE);
    if (!layer)
        return PC_ERR_MEMORY;
    snprintf(layer->name, sizeof layer->name, "height_and_width");
    layer->rank = 2;
    layer->group = -1;
    layer->target[0] = model->input_shape[0];
    layer->target[1] = model->input_shape[1];
    model->input_rank = 3;
    model->input_shape[2] = 1;
    *output = 0;
    if (layer->target[0] < 0 && layer->target[1] < 0)
        (void)pc__keras_refuse(layer, PC_ERR_UNSUPPORTED,
                               "takes pictures of a height and width that the file leaves "
                               "open");
    return PC_OK;
}

pc_status pc__keras_graph_parse(const char *path, const cJSON *layers, const cJSON *config, pc__keras_model *model)
{
    reader r = {.path = path, .model = model, .group = -1, .work = WORK_MAX};
    container *top = NULL;
    int input = PC__KERAS_PICTURE, output = input;
    pc_status status = model->input_rank == 2 ? take_channel(model, &input) : PC_OK;
    if (status == PC_OK)
        status = declare(&r, layers, config, false, "", 0, &top);
    if (status == PC_OK && !model->refused)
        status = pc__keras_set_aside(apply(&r, top, input, 0, &output), model);
    if (status == PC_OK && model->refused) {
        status = list_layers(&r, top);
        output = 0;
    }
    container_free(top);
    if (status == PC_OK && output < 0)
        status = pc__fail(PC_ERR_FORMAT, "%s: the model has no layers", path);
    model->output = output;
    return status;
}

#endif
