/* keras_h5_answer.c: questions about a file answered by HDF5. */
#include "base/base.h"

#if PC_HAVE_HDF5 && PC_HAVE_CJSON

#include "io/keras_h5_ask.h"

typedef struct asked {
    const char *path;
    const pc__h5_source *source;
    const pc__h5_question *question;
    const pc__h5_room *room;
    pc__h5_answer *answer;
} asked;

static void *take_room(const asked *a, uint64_t bytes)
{
    a->answer->bytes = bytes;
    return a->room->take(a->room->context, bytes);
}

static pc_status texts(const asked *a)
{
    pc__names names = {0};
    bool found = false;
    pc_status status = pc__h5_raw_names(a->path, a->question->object, a->question->name, &names, &found);
    uint64_t bytes = 0;
    for (int i = 0; i < names.count; i++)
        bytes += strlen(names.items[i]) + 1;
    char *to = status == PC_OK && bytes ? take_room(a, bytes) : NULL;
    if (status == PC_OK && bytes && !to)
        status = pc_error_last()->status;
    for (int i = 0; to && i < names.count; i++)
        to = stpcpy(to, names.items[i]) + 1;
    a->answer->count = names.count;
    a->answer->found = found;
    pc__names_free(&names);
    return status;
}

/* Where a dataset's numbers stand in the file just as memory has them, as Keras writes all weights: then nobody has to
 * carry them from process to process. */
static uint64_t place_of(const asked *a, hid_t dataset, size_t count)
{
    hid_t type = H5Dget_type(dataset), creation = H5Dget_create_plist(dataset);
    const haddr_t at = H5Dget_offset(dataset);
    const pc__h5_source *source;
    uint64_t base;
    const bool plain = type >= 0 && creation >= 0 && H5Tequal(type, H5T_NATIVE_FLOAT) > 0 &&
                       H5Pget_layout(creation) == H5D_CONTIGUOUS && at != HADDR_UNDEF &&
                       H5Dget_storage_size(dataset) == count * sizeof(float) && pc__h5_raw(dataset, &source, &base) &&
                       base == 0 && at <= a->source->size && count * sizeof(float) <= a->source->size - at;
    if (type >= 0)
        H5Tclose(type);
    if (creation >= 0)
        H5Pclose(creation);
    return plain ? at : PC__H5_NOWHERE;
}

static pc_status floats(const asked *a)
{
    const pc__h5_question *q = a->question;
    size_t count;
    hid_t dataset;
    memcpy(a->answer->shape, q->shape, sizeof q->shape);
    PC__TRY(pc__h5_raw_floats(a->path, q->object, q->name, q->what, q->rank, a->answer->shape, &dataset, &count));
    a->answer->bytes = count * sizeof(float);
    a->answer->place = place_of(a, dataset, count);
    if (a->answer->place != PC__H5_NOWHERE) {
        H5Dclose(dataset);
        return PC_OK;
    }
    float *values = take_room(a, count * sizeof *values);
    pc_status status = values ? PC_OK : pc_error_last()->status;
    if (values && H5Dread(dataset, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) < 0)
        status = pc__h5_fail("%s: cannot read %s", a->path, q->what);
    H5Dclose(dataset);
    return status;
}

static void close_object(hid_t object)
{
    if (H5Iget_type(object) == H5I_FILE)
        H5Fclose(object);
    else
        H5Gclose(object);
}

static pc_status answer(const asked *a)
{
    const pc__h5_question *q = a->question;
    pc__h5_answer *to = a->answer;
    switch (q->kind) {
    case PC__H5_OPEN:
        return pc__h5_source_open(a->path, a->source, &to->object);
    case PC__H5_CLOSE:
        close_object(q->object);
        return PC_OK;
    case PC__H5_GROUP:
        return pc__h5_raw_group(a->path, q->object, q->name, &to->object);
    case PC__H5_HAS:
        to->found = H5Lexists(q->object, q->name, H5P_DEFAULT) > 0;
        return PC_OK;
    case PC__H5_TEXTS:
        return texts(a);
    case PC__H5_SHAPE:
        pc__h5_raw_shape(q->object, q->name, &to->rank, to->shape);
        return PC_OK;
    case PC__H5_FLOATS:
        return floats(a);
    case PC__H5_INTEGER:
        to->found = pc__h5_raw_scalar(q->object, q->name, H5T_INTEGER, H5T_NATIVE_INT64, &to->integer);
        return PC_OK;
    case PC__H5_REAL:
        to->found = pc__h5_raw_scalar(q->object, q->name, H5T_FLOAT, H5T_NATIVE_DOUBLE, &to->real);
        return PC_OK;
    }
    return pc__fail(PC_ERR_ARGUMENT, "%s: an unknown question", a->path);
}

void pc__h5_answer_here(const char *path, const pc__h5_source *source, const pc__h5_question *question,
                        const pc__h5_room *room, pc__h5_answer *to)
{
    pc_error before = pc__error_take();
    memset(to, 0, sizeof *to);
    to->rank = -1;
    to->place = PC__H5_NOWHERE;
    pc_status status = answer(&(asked){path, source, question, room, to});
    H5Eclear2(H5E_DEFAULT);
    to->error = pc__error_take(); /* the first, which may be lack of memory below HDF5 */
    if (status == PC_OK)
        to->error.status = PC_OK;
    (void)!pc__error_put(&before);
}

#endif
