/* classifier_summary.c: a trained network in words and as JSON. */
#include "train/classifier.h"
#include "train/summary.h"

/* What the numbers of a preparation are, by the names of the command's options. */
static void add_preparation_json(pc__text *json, const pc_preparation *p)
{
    static const char *const sources[] = {"assumed", "noted", "layer", "given"};
    pc__text_add(json, "], \"preparation\": {\"from\": \"%s\", \"values\": ", sources[p->source]);
    pc__preparation_print(json, p);
    pc__text_add(json, "}");
}

static void add_json(pc__text *json, const pc_classifier *c, const pc__layer_row *rows, int count, int64_t parameters)
{
    const pc__frame f = pc__preparation_frame(&c->model.file.preparation);
    if (f.height && f.width)
        pc__text_add(json, "{\"height\": %d, \"width\": %d", f.height, f.width);
    else
        pc__text_add(json, "{\"height\": null, \"width\": null");
    pc__text_add(json, ", \"channels\": %d, \"parameters\": %lld, \"bytes\": ", f.channels, (long long)parameters);
    pc__text_add(json, c->bytes ? "%lld" : "null", (long long)c->bytes);
    pc__text_add(json, ", \"classes\": [");
    for (int i = 0; i < c->model.file.class_count; i++) {
        pc__text_add(json, "%s", i ? ", " : "");
        pc__json_string(json, c->model.names[i]);
    }
    add_preparation_json(json, &c->model.file.preparation);
    pc__text_add(json, ", \"layers\": [");
    for (int i = 0; i < count; i++) {
        pc__text_add(json, "%s{\"layer\": \"%s\", \"output\": [", i ? ", " : "", rows[i].kind);
        for (int d = 0; d < rows[i].output.ndim; d++)
            pc__text_add(json, rows[i].output.dim[d] < 0 ? "%snull" : "%s%lld", d ? ", " : "",
                         (long long)rows[i].output.dim[d]);
        pc__text_add(json, "], \"parameters\": %lld}", (long long)rows[i].parameters);
    }
    pc__text_add(json, "]}");
}

/* A file may hold anything: escape sequences too. */
static void add_safe(pc__text *text, const char *name)
{
    for (; *name; name++)
        pc__text_append(text, (unsigned char)*name < ' ' || *name == 127 ? "?" : name, 1);
}

static pc_status add_text(pc__text *text, const pc_classifier *c, const pc__layer_row *rows, int count,
                          int64_t parameters)
{
    const pc__model_file *file = &c->model.file;
    char *preparation = pc_preparation_text(&file->preparation);
    if (!preparation)
        return PC_ERR_MEMORY;
    static const char *const ends[] = {"logits", "a sigmoid", "a softmax"};
    char disk[32] = "";
    if (c->bytes)
        snprintf(disk, sizeof disk, ", %.1f MB on disk", (double)c->bytes / 1e6);
    pc__summary_text(text, rows, count);
    pc__text_add(text, "\n%s parameters%s\ntakes pictures of %s\nends in %s\nclasses%s:", pc__thousands(parameters).s,
                 disk, preparation, ends[file->head], c->model.named ? "" : " (the file does not name them)");
    for (int i = 0; i < file->class_count; i++) {
        pc__text_add(text, "%s ", i ? "," : "");
        add_safe(text, c->model.names[i]);
    }
    pc__free(preparation);
    return PC_OK;
}

/* Where pictures may have any size, two of them are sent through, and what differs then is open: -1. */
static pc_status make_rows(const pc_classifier *c, pc__layer_row **rows, int *count)
{
    enum { SOME = 256, OTHER = 352 };
    const pc__frame own = pc__preparation_frame(&c->model.file.preparation);
    pc__frame some = {own.height ? own.height : SOME, own.width ? own.width : SOME, own.channels};
    PC__TRY(pc__summary_rows(c->model.file.net, some, rows, count));
    if (own.height && own.width)
        return PC_OK;
    pc__layer_row *others;
    some.height = own.height ? own.height : OTHER, some.width = own.width ? own.width : OTHER;
    pc_status status = pc__summary_rows(c->model.file.net, some, &others, count);
    for (int i = 0; status == PC_OK && i < *count; i++)
        for (int d = 0; d < others[i].output.ndim; d++)
            if ((*rows)[i].output.dim[d] != others[i].output.dim[d])
                (*rows)[i].output.dim[d] = -1;
    if (status == PC_OK)
        pc__free(others);
    else
        pc__free(*rows);
    return status;
}

pc_status pc_classifier_summary(pc_classifier *c, char **text, char **json)
{
    PC__NEED(text);
    PC__NEED(json);
    *text = *json = NULL;
    PC__NEED(c);
    pc__layer_row *rows;
    int count;
    pc__text table = {0}, object = {0};
    PC__TRY(make_rows(c, &rows, &count));
    int64_t parameters = pc_module_parameter_elements(c->model.file.net);
    pc_status status = add_text(&table, c, rows, count, parameters);
    add_json(&object, c, rows, count, parameters);
    pc__free(rows);
    if (status != PC_OK || table.failed || object.failed) {
        pc__text_free(&table);
        pc__text_free(&object);
        return PC_ERR_MEMORY;
    }
    *text = table.data, *json = object.data;
    return PC_OK;
}
