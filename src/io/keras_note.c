/* keras_note.c: Paracord's own words in a Keras file that is there, as attributes (in .keras: in metadata.json) and in
 * the model's name. Keras drops the former when it saves the model again, and keeps the latter. */
#include "io/keras.h"

#if PC_HAVE_HDF5 && PC_HAVE_CJSON

#include "io/file.h"
#include "io/keras_h5_ask.h"
#include "io/keras_part.h"
#include "io/zip.h"

#define NAMES "paracord_class_names"
#define NOTE "paracord"

pc_status pc__keras_put_own(const char *path, hid_t file, const pc__keras_model *model)
{
    if (model->class_count)
        PC__TRY(pc__h5_put_names(path, file, NAMES, model->class_names, model->class_count));
    return model->note ? pc__h5_put_text(path, file, NOTE, model->note) : PC_OK;
}

/* Printed, and freed. */
static pc_status print(cJSON *json, bool good, char **text)
{
    char *printed = good ? cJSON_PrintUnformatted(json) : NULL;
    *text = printed ? pc__strdup(printed) : NULL;
    const pc_status status = *text     ? PC_OK
                             : printed ? PC_ERR_MEMORY
                                       : pc__fail(PC_ERR_MEMORY, "out of memory for JSON");
    cJSON_free(printed);
    cJSON_Delete(json);
    return status;
}

static bool set(cJSON *object, const char *key, cJSON *value)
{
    cJSON_DeleteItemFromObjectCaseSensitive(object, key);
    if (value && cJSON_AddItemToObject(object, key, value))
        return true;
    cJSON_Delete(value);
    return false;
}

/* The model's configuration under another name; NULL where it has no place for one (Keras before 2.3), or none is
 * given.
 */
static pc_status rename_model(const char *path, const char *text, const char *name, char **renamed)
{
    cJSON *json;
    *renamed = NULL;
    if (!text || !name[0])
        return PC_OK;
    PC__TRY(pc__keras_json_parse(path, "model_config", text, &json));
    cJSON *config = cJSON_GetObjectItemCaseSensitive(json, "config");
    if (!cJSON_IsObject(config)) {
        cJSON_Delete(json);
        return PC_OK;
    }
    return print(json, set(config, "name", cJSON_CreateString(name)), renamed);
}

/* ---- .h5: HDF5 changes a copy in memory, in a child: the file may be made to harm */

typedef struct noting {
    const char *path;
    const uint8_t *bytes;
    size_t n;
    const pc__keras_model *model;
    const char *config; /* NULL: stays */
} noting;

typedef struct noted {
    pc_error error;
    uint64_t n;
} noted;

static pc_status change(const noting *what, hid_t file)
{
    pc__h5_remove_attribute(file, NAMES);
    pc__h5_remove_attribute(file, NOTE);
    PC__TRY(pc__keras_put_own(what->path, file, what->model));
    if (!what->config)
        return PC_OK;
    pc__h5_remove_attribute(file, "model_config");
    return pc__h5_put_text(what->path, file, "model_config", what->config);
}

static pc_status changed_image(const noting *what, void *(*take)(void *context, uint64_t bytes), void *context,
                               size_t *n)
{
    hid_t file;
    PC__TRY(pc__h5_edit(what->path, what->bytes, what->n, &file));
    pc_status status = change(what, file);
    if (status == PC_OK)
        status = pc__h5_image(what->path, file, take, context, n);
    H5Fclose(file);
    return status;
}

static void *take_room(void *context, uint64_t bytes)
{
    const pc__jail_cell *cell = context;
    return bytes <= cell->room_bytes ? cell->room : pc__null(PC_ERR_FORMAT, "what is to be written has no room");
}

static void serve(const pc__jail_cell *cell, void *context)
{
    char question;
    static noted answer;
    size_t n = 0;
    if (!pc__cell_listen(cell, &question, 1))
        return;
    pc_error_clear();
    const pc_status status = changed_image(context, take_room, (void *)cell, &n);
    answer = (noted){.error = pc__error_take(), .n = n};
    answer.error.status = status;
    pc__cell_answer(cell, &answer, sizeof answer);
}

/* The child's bytes, which nobody here looks into. */
static pc_status take_answer(const noting *what, pc__jail *jail, uint8_t **bytes, size_t *n)
{
    char why[PC__JAIL_WORDS];
    noted answer;
    if (!pc__jail_ask(jail, "", 1, &answer, sizeof answer, why))
        return pc__fail_cause(PC_ERR_FORMAT, why, "cannot change %s: it is damaged, or made to harm who does",
                              what->path);
    pc__h5_make_safe(&answer.error);
    PC__TRY(pc__error_put(&answer.error));
    *n = (size_t)answer.n;
    *bytes = answer.n && answer.n <= jail->room_bytes ? pc__alloc(*n) : NULL;
    if (*bytes && pc__jail_take(jail, *bytes, *n))
        return PC_OK;
    return pc_failed() ? pc_error_last()->status : pc__fail(PC_ERR_FORMAT, "cannot change %s", what->path);
}

static void *take_memory(void *context, uint64_t bytes)
{
    return *(void **)context = pc__alloc((size_t)bytes);
}

static pc_status change_apart(const noting *what, uint8_t **bytes, size_t *n)
{
    pc__h5_source source = {.fd = -1, .bytes = what->bytes, .size = what->n};
    pc__h5_set_limit(&source);
    pc__jail_plan plan = pc__h5_plan(&source);
    pc__jail jail;
    plan.serve = serve, plan.context = (void *)what;
    if (pc__h5_start(&jail, &plan, what->path, source.size, "changed")) {
        pc_status status = take_answer(what, &jail, bytes, n);
        pc__jail_end(&jail);
        return status;
    }
    pc__h5_quiet quiet = pc__h5_enter();
    pc_status status = changed_image(what, take_memory, bytes, n);
    pc__h5_leave(quiet);
    return status;
}

static pc_status note_h5(noting *what, uint8_t **bytes, size_t *n)
{
    pc__h5_node file;
    char *text, *config = NULL;
    PC__TRY(pc__h5_open_bytes(what->path, what->bytes, what->n, &file));
    pc_status status = pc__h5_text(what->path, file, "model_config", &text);
    pc__h5_close(file);
    if (status == PC_OK)
        status = rename_model(what->path, text, what->model->name, &config);
    what->config = config;
    if (status == PC_OK)
        status = change_apart(what, bytes, n);
    pc__free(text);
    pc__free(config);
    return status;
}

/* ---- .keras */

static bool set_names(cJSON *json, const pc__keras_model *model)
{
    cJSON_DeleteItemFromObjectCaseSensitive(json, NAMES);
    return !model->class_count ||
           set(json, NAMES, cJSON_CreateStringArray((const char *const *)model->class_names, model->class_count));
}

static pc_status own_metadata(const char *path, const char *text, const pc__keras_model *model, char **changed)
{
    cJSON *json;
    PC__TRY(pc__keras_json_parse(path, "metadata.json", text, &json));
    cJSON_DeleteItemFromObjectCaseSensitive(json, NOTE);
    bool good = cJSON_IsObject(json) && set_names(json, model);
    good = good && (!model->note || set(json, NOTE, cJSON_CreateString(model->note)));
    return print(json, good, changed);
}

static pc_status note_zip(const noting *what, uint8_t **bytes, size_t *n)
{
    pc__zip zip;
    char *config = NULL, *metadata = NULL, *renamed = NULL, *changed = NULL;
    PC__TRY(pc__zip_open(what->path, what->bytes, what->n, &zip));
    pc_status status = pc__keras_zip_text(&zip, "config.json", &config);
    if (status == PC_OK)
        status = pc__keras_zip_text(&zip, "metadata.json", &metadata);
    if (status == PC_OK)
        status = rename_model(what->path, config, what->model->name, &renamed);
    if (status == PC_OK)
        status = own_metadata(what->path, metadata, what->model, &changed);
    const pc__zip_text texts[] = {{"config.json", renamed ? renamed : config}, {"metadata.json", changed}};
    if (status == PC_OK)
        status = pc__zip_replace(&zip, texts, PC__COUNT(texts), bytes, n);
    pc__free(config);
    pc__free(metadata);
    pc__free(renamed);
    pc__free(changed);
    return status;
}

pc_status pc__keras_note(const char *path, const pc__keras_model *model)
{
    uint8_t *bytes, *changed = NULL;
    size_t n, changed_n = 0;
    PC__TRY(pc__file_read(path, &bytes, &n));
    noting what = {.path = path, .bytes = bytes, .n = n, .model = model};
    const bool archive = n >= 4 && memcmp(bytes, "PK\3\4", 4) == 0;
    pc_status status = archive ? note_zip(&what, &changed, &changed_n) : note_h5(&what, &changed, &changed_n);
    if (status == PC_OK)
        status = pc__file_write(path, changed, changed_n);
    pc__free(bytes);
    pc__free(changed);
    return status;
}

#endif
