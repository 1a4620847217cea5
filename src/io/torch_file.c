/* torch_file.c: files of torch.save. What was before archives is five pickles, of which the fourth is what was saved and the
 * fifth the keys of the storages, and these one after the other, each behind the number of its elements. */
#include "io/torch_file.h"

#include "io/pickle.h"

enum { PICKLES = 5, STATE = 3, KEYS = 4, FRONT_MAX = 1 << 26, KEYS_MAX = 1 << 20 };

static const uint8_t archive[] = {'P', 'K', 3, 4},
                     older[] = {0x8a, 10, 'l', 0xfc, 0x9c, 'F', 0xf9, ' ', 'j', 0xa8, 'P', 0x19};

/* A number that they all begin with, behind the protocol and, from 4 on, the head of a frame. */
bool pc__is_torch_file(const uint8_t *front)
{
    const uint8_t *number = front + (front[2] == 0x95 ? 11 : 2);
    return memcmp(front, archive, sizeof archive) == 0 ||
           (front[0] == 0x80 && front[1] >= 2 && front[1] <= 5 && memcmp(number, older, sizeof older) == 0);
}

static pc_status index_archive(pc_weights *w, int64_t size, pc__torch_storages *storages)
{
    uint8_t *bytes = NULL;
    size_t n = 0, used;
    pc__pickle pickle = {0};
    pc_status status = pc__torch_archive(w, size, &bytes, &n, storages);
    if (status == PC_OK)
        status = pc__pickle_read(w->path, bytes, n, pc__torch_names, &pickle, &used);
    if (status == PC_OK)
        status = pc__torch_state(w, &pickle, storages);
    pc__pickle_close(&pickle);
    pc__free(bytes);
    return status;
}

/* The storages that tensors have; of each, as its bytes, those of an element. */
static pc_status list_kept(const pc__pickle *state, pc__torch_storages *kept)
{
    const pc__weight_type *type;
    int64_t count;
    char key[32] = "";
    for (int i = 0; i < state->value_count; i++) {
        if (!pc__torch_storage_of(state, &state->values[i], &type, key, &count))
            continue;
        PC__TRY(pc__grow((void **)&kept->list, &kept->room, kept->count, sizeof *kept->list));
        kept->list[kept->count] = (pc__torch_storage){.bytes = type->bits / 8};
        memcpy(kept->list[kept->count++].key, key, sizeof key);
    }
    pc__torch_sort(kept);
    return PC_OK;
}

static pc_status take_storage(const pc_weights *w, const pc__torch_storages *kept, const pc__pickled *key, int64_t size,
                              int64_t *at, pc__torch_storages *storages)
{
    int64_t count = 0;
    pc__torch_storage own = {.begin = *at + 8};
    if (key->kind != PC__PICKLED_TEXT || key->length >= sizeof own.key || size - *at < 8)
        return pc__fail(PC_ERR_FORMAT, "%s is damaged or truncated: its storages are not all in it", w->path);
    memcpy(own.key, key->text, key->length);
    PC__TRY(pc__weights_bytes(w, *at, &count, sizeof count));
    const pc__torch_storage *found = pc__torch_find(kept, own.key);
    const int64_t each = found ? found->bytes : 0;
    if (!each || count < 0 || count > (size - own.begin) / each)
        return pc__fail(PC_ERR_FORMAT, "%s is damaged or truncated: its storages are not all in it", w->path);
    own.bytes = count * each;
    *at = own.begin + own.bytes;
    PC__TRY(pc__grow((void **)&storages->list, &storages->room, storages->count, sizeof *storages->list));
    storages->list[storages->count++] = own;
    return PC_OK;
}

static pc_status take_storages(const pc_weights *w, const pc__pickle *state, const pc__pickle *keys, int64_t size,
                               int64_t at, pc__torch_storages *storages)
{
    const pc__pickled *list = &keys->values[keys->root];
    pc__torch_storages kept = {0};
    if (list->kind != PC__PICKLED_LIST)
        return pc__fail(PC_ERR_FORMAT, "%s is damaged: it does not list its storages", w->path);
    if (list->count > KEYS_MAX)
        return pc__fail(
            PC_ERR_UNSUPPORTED,
            "%s has %d storages, and %d are the most that are read; in Python torch.save writes the form of "
            "today, which has no such list",
            w->path, list->count, KEYS_MAX);
    pc_status status = list_kept(state, &kept);
    for (int i = list->first; i >= 0 && status == PC_OK; i = keys->items[i].next)
        status = take_storage(w, &kept, &keys->values[keys->items[i].value], size, &at, storages);
    pc__free(kept.list);
    return status;
}

static pc_status index_older(pc_weights *w, int64_t size, pc__torch_storages *storages)
{
    const size_t n = (size_t)PC__MIN(size, (int64_t)FRONT_MAX);
    uint8_t *bytes = pc__alloc(n);
    pc__pickle pickles[PICKLES] = {{0}};
    pc_status status = bytes ? pc__weights_bytes(w, 0, bytes, n) : PC_ERR_MEMORY;
    size_t at = 0, used = 0;
    for (int i = 0; i < PICKLES && status == PC_OK; i++, at += used)
        status = pc__pickle_read(w->path, bytes + at, n - at, pc__torch_names, &pickles[i], &used);
    if (status == PC_OK)
        status = take_storages(w, &pickles[STATE], &pickles[KEYS], size, (int64_t)at, storages);
    if (status == PC_OK)
        status = pc__torch_state(w, &pickles[STATE], storages);
    for (int i = 0; i < PICKLES; i++)
        pc__pickle_close(&pickles[i]);
    pc__free(bytes);
    return status;
}

pc_status pc__torch_file_index(pc_weights *w, int64_t size)
{
    uint8_t front[PC__TORCH_FRONT] = {0};
    pc__torch_storages storages = {0};
    PC__TRY(pc__weights_bytes(w, 0, front, (size_t)PC__MIN(size, (int64_t)sizeof front)));
    const bool is_archive = memcmp(front, archive, sizeof archive) == 0;
    pc_status status = is_archive ? index_archive(w, size, &storages) : index_older(w, size, &storages);
    pc__free(storages.list);
    return status == PC_OK ? pc__weights_sort(w) : status;
}
