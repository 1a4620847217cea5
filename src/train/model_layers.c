/* model_layers.c: what a Keras file says of its network, layer by layer, whether this library can run it or not. */
#include "train/classifier.h"
#include "train/summary.h"

/* All numbers of a layer; -1 where neither the file nor the shapes say. */
static int64_t numbers_of(const pc__keras_layer *layer)
{
    int64_t count = 0;
    if (layer->stored >= 0 || layer->refused)
        return layer->stored;
    for (int i = 0; i < layer->weight_count; i++) {
        for (int d = 0; d < layer->weights[i].rank; d++)
            if (layer->weights[i].shape[d] < 0)
                return -1;
        count += pc__keras_weight_size(&layer->weights[i]);
    }
    return count;
}

/* Pictures as everywhere here: channels, height, width. */
static void fill(const pc__keras_model *model, int node, pc__layer_row *row)
{
    const pc__keras_node *at = &model->nodes[node];
    const pc__keras_layer *layer = &model->layers[at->layer];
    snprintf(row->kind, sizeof row->kind, "%.31s", layer->class_name);
    snprintf(row->layer, sizeof row->layer, "%.30s %.30s%s", layer->class_name, layer->name,
             layer->refused ? " (not supported)" : "");
    row->parameters = numbers_of(layer);
    row->output.ndim = at->rank;
    for (int i = 0; i < at->rank; i++)
        row->output.dim[at->rank == 3 ? (i + 1) % 3 : i] = at->shape[i];
}

static const pc__keras_layer *first_refused(const pc__keras_model *model)
{
    for (int i = 0; i < model->layer_count; i++)
        if (model->layers[i].refused)
            return &model->layers[i];
    return NULL;
}

static void add_json(pc__text *json, const pc__keras_model *model, const pc__layer_row *rows)
{
    const pc__keras_layer *problem = first_refused(model);
    pc__text_add(json, "{\"supported\": %s, \"layers\": [", problem || model->refused ? "false" : "true");
    for (int i = 0; i < model->node_count; i++) {
        const pc__keras_layer *layer = &model->layers[model->nodes[i].layer];
        pc__text_add(json, "%s{\"layer\": ", i ? ", " : "");
        pc__json_string(json, layer->class_name);
        pc__text_add(json, ", \"name\": ");
        pc__json_string(json, layer->name);
        pc__text_add(json, ", \"output\": [");
        for (int d = 0; d < rows[i].output.ndim; d++)
            pc__text_add(json, rows[i].output.dim[d] < 0 ? "%snull" : "%s%lld", d ? ", " : "",
                         (long long)rows[i].output.dim[d]);
        pc__text_add(json, rows[i].parameters < 0 ? "], \"parameters\": null" : "], \"parameters\": %lld",
                     (long long)rows[i].parameters);
        pc__text_add(json, ", \"problem\": ");
        if (layer->refused)
            pc__json_string(json, layer->problem);
        else
            pc__text_add(json, "null");
        pc__text_add(json, "}");
    }
    pc__text_add(json, "]}");
}

pc_status pc_model_layers(const char *model_path, char **text, char **json)
{
    PC__NEED(text);
    PC__NEED(json);
    *text = *json = NULL;
    PC__NEED(model_path);
    pc__keras_model model;
    PC__TRY(pc__keras_read_layers(model_path, &model));
    pc__text table = {0}, object = {0};
    pc__layer_row *rows = pc__calloc((size_t)model.node_count + 1, sizeof *rows);
    for (int i = 0; rows && i < model.node_count; i++)
        fill(&model, i, &rows[i]);
    if (rows) {
        pc__summary_text(&table, rows, model.node_count);
        add_json(&object, &model, rows);
    }
    pc__free(rows);
    pc__keras_free(&model);
    if (!rows || table.failed || object.failed) {
        pc__text_free(&table);
        pc__text_free(&object);
        return PC_ERR_MEMORY;
    }
    *text = table.data, *json = object.data;
    return PC_OK;
}
