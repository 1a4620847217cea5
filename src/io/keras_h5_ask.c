/* keras_h5_ask.c: what keras_h5.h has to ask, and what is made of the answers. They come from a process that may have
 * been taken over by the file: nothing in them is believed before it is checked. */
#include "base/base.h"

#if PC_HAVE_HDF5 && PC_HAVE_CJSON

#include "io/keras_h5_ask.h"

static void *take_memory(void *context, uint64_t bytes)
{
    return *(void **)context = pc__alloc((size_t)bytes);
}

static pc_status too_much(const pc__h5_file *file)
{
    return pc__fail(PC_ERR_FORMAT,
                    "%s: what it holds takes more than %.0f MB of memory, which is what a file of %.1f MB gets: "
                    "if it is what you want, unpack the file first: h5repack -f NONE %s unpacked.h5",
                    file->path, (double)file->source.limit / 1e6, (double)file->source.size / 1e6, file->path);
}

static pc_status read_place(const pc__h5_file *file, const pc__h5_answer *answer, void **bytes)
{
    *bytes = pc__alloc((size_t)answer->bytes);
    if (!*bytes)
        return PC_ERR_MEMORY;
    if (pc__h5_bytes(&file->source, answer->place, *bytes, (size_t)answer->bytes))
        return PC_OK;
    pc__free(*bytes);
    *bytes = NULL;
    return pc__fail(PC_ERR_FORMAT, "cannot read %s: it ends too early", file->path);
}

/* The answer; its bytes, if it has any, in *bytes (from pc__alloc). */
static pc_status ask(pc__h5_file *file, const pc__h5_question *question, pc__h5_answer *answer, void **bytes)
{
    void *got = NULL;
    if (file->apart)
        PC__TRY(pc__h5_ask_apart(file, question, answer));
    else
        pc__h5_answer_here(file->path, &file->source, question, &(pc__h5_room){take_memory, &got}, answer);
    pc_status status = pc__error_put(&answer->error);
    if (status == PC_OK && answer->bytes > (uint64_t)file->left)
        status = too_much(file);
    if (status == PC_OK && answer->place != PC__H5_NOWHERE)
        status = read_place(file, answer, &got);
    else if (status == PC_OK && file->apart && answer->bytes)
        status = pc__h5_take_apart(file, answer->bytes, &got);
    file->left -= status == PC_OK ? (int64_t)answer->bytes : 0;
    if (status != PC_OK || !bytes) {
        pc__free(got);
        got = NULL;
    }
    if (bytes)
        *bytes = got;
    return status;
}

pc_status pc__h5_ask_to_open(pc__h5_file *file)
{
    pc__h5_answer answer;
    pc_status status = ask(file, &(pc__h5_question){.kind = PC__H5_OPEN}, &answer, NULL);
    file->root = status == PC_OK ? answer.object : H5I_INVALID_HID;
    return status;
}

void pc__h5_close(pc__h5_node node)
{
    pc__h5_answer answer;
    if (!node.file)
        return;
    if (node.id == node.file->root)
        pc__h5_release(node.file);
    else
        (void)!ask(node.file, &(pc__h5_question){.kind = PC__H5_CLOSE, .object = node.id}, &answer, NULL);
}

pc_status pc__h5_group(const char *path, pc__h5_node parent, const char *name, pc__h5_node *group)
{
    (void)path;
    pc__h5_answer answer;
    *group = (pc__h5_node){parent.file, H5I_INVALID_HID};
    PC__TRY(
        ask(parent.file, &(pc__h5_question){.kind = PC__H5_GROUP, .object = parent.id, .name = name}, &answer, NULL));
    group->id = answer.object;
    return PC_OK;
}

bool pc__h5_has(pc__h5_node parent, const char *name)
{
    pc__h5_answer answer;
    pc__h5_question question = {.kind = PC__H5_HAS, .object = parent.id, .name = name};
    return ask(parent.file, &question, &answer, NULL) == PC_OK && answer.found;
}

/* Texts as they come: one behind the other, each with its zero. */
static pc_status unpack(const char *path, const char *bytes, uint64_t n, int count, pc__names *names)
{
    pc_status status = PC_OK;
    for (int i = 0; i < count && status == PC_OK; i++) {
        const size_t length = n ? strnlen(bytes, n) : 0;
        if (length == n)
            return pc__fail(PC_ERR_FORMAT, "%s: its texts came back damaged", path);
        status = pc__names_add(names, bytes, length);
        bytes += length + 1, n -= length + 1;
    }
    return status;
}

pc_status pc__h5_names(const char *path, pc__h5_node object, const char *name, pc__names *names, bool *found)
{
    pc__h5_answer answer;
    void *bytes;
    PC__TRY(
        ask(object.file, &(pc__h5_question){.kind = PC__H5_TEXTS, .object = object.id, .name = name}, &answer, &bytes));
    pc_status status = unpack(path, bytes, answer.bytes, answer.count, names);
    pc__free(bytes);
    if (found)
        *found = answer.found != 0;
    if (status != PC_OK)
        pc__names_free(names);
    return status;
}

pc_status pc__h5_text(const char *path, pc__h5_node object, const char *name, char **text)
{
    pc__names names = {0};
    bool found;
    *text = NULL;
    PC__TRY(pc__h5_names(path, object, name, &names, &found));
    if (!found)
        return PC_OK;
    pc_status status = PC_OK;
    if (names.count != 1)
        status =
            pc__fail(PC_ERR_FORMAT, "%s: the attribute '%s' holds %d texts instead of one", path, name, names.count);
    if (status == PC_OK) {
        *text = names.items[0];
        names.count = 0;
    }
    pc__names_free(&names);
    return status;
}

void pc__h5_shape(pc__h5_node group, const char *name, int *rank, int64_t *shape)
{
    pc__h5_answer answer;
    pc__h5_question question = {.kind = PC__H5_SHAPE, .object = group.id, .name = name};
    bool good =
        ask(group.file, &question, &answer, NULL) == PC_OK && answer.rank >= 0 && answer.rank <= PC__KERAS_RANK_MAX;
    *rank = good ? answer.rank : -1;
    if (good)
        memcpy(shape, answer.shape, (size_t)answer.rank * sizeof *shape);
}

/* What comes back has the size that was asked for: the other process is not believed. */
static pc_status check_floats(const char *path, const char *what, const pc__h5_question *question,
                              const pc__h5_answer *answer)
{
    int64_t elements = 1;
    bool good = true;
    for (int i = 0; i < question->rank && good; i++) {
        good = answer->shape[i] > 0 && (question->shape[i] < 0 || question->shape[i] == answer->shape[i]) &&
               !__builtin_mul_overflow(elements, answer->shape[i], &elements) && elements <= PC__KERAS_ELEMENTS_MAX;
    }
    if (good && answer->bytes == (uint64_t)elements * sizeof(float))
        return PC_OK;
    return pc__fail(PC_ERR_FORMAT, "%s: %s came back damaged", path, what);
}

pc_status pc__h5_floats(const char *path, pc__h5_node group, const char *name, const char *what, int rank,
                        int64_t *shape, float **values)
{
    pc__h5_question question = {.kind = PC__H5_FLOATS, .object = group.id, .name = name, .what = what, .rank = rank};
    pc__h5_answer answer;
    void *bytes;
    *values = NULL;
    memcpy(question.shape, shape, (size_t)rank * sizeof *shape);
    PC__TRY(ask(group.file, &question, &answer, &bytes));
    pc_status status = check_floats(path, what, &question, &answer);
    if (status != PC_OK) {
        pc__free(bytes);
        return status;
    }
    memcpy(shape, answer.shape, (size_t)rank * sizeof *shape);
    *values = bytes;
    return PC_OK;
}

bool pc__h5_integer(pc__h5_node group, const char *name, int64_t *value)
{
    pc__h5_answer answer;
    pc__h5_question question = {.kind = PC__H5_INTEGER, .object = group.id, .name = name};
    bool found = ask(group.file, &question, &answer, NULL) == PC_OK && answer.found;
    *value = found ? answer.integer : *value;
    return found;
}

bool pc__h5_real(pc__h5_node group, const char *name, double *value)
{
    pc__h5_answer answer;
    pc__h5_question question = {.kind = PC__H5_REAL, .object = group.id, .name = name};
    bool found = ask(group.file, &question, &answer, NULL) == PC_OK && answer.found;
    *value = found ? answer.real : *value;
    return found;
}

#endif
