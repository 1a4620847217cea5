/* weights_index.c: weights in several files. transformers writes an index beside them, which has each tensor's file:
 * {"metadata": {...}, "weight_map": {"h.0.ln_1.weight": "model-00001-of-00002.safetensors", ...}}. */
#include "io/file.h"
#include "io/json_read.h"
#include "io/safetensors.h"

#include <string.h>

/* The first byte of a safetensors file may be the same, as part of a length; its ninth is another such then. */
bool pc__is_weights_index(const uint8_t *front)
{
    return front[0] == '{' && front[8] != '{';
}

static pc_status unreadable(const pc_weights *w)
{
    return pc__fail(PC_ERR_FORMAT, "%s is no file of weights, and as an index of such files it cannot be understood",
                    w->path);
}

static pc_status open_shard(pc_weights *w, const char *path, int *which)
{
    for (*which = w->shard_count - 1; *which >= 0; --*which) /* tensors of one file follow each other */
        if (strcmp(w->shards[*which]->path, path) == 0)
            return PC_OK;
    PC__TRY(pc__grow((void **)&w->shards, &w->shard_room, w->shard_count, sizeof *w->shards));
    pc_weights *shard = pc__weights_open_one(path);
    if (!shard)
        return pc_error_last()->status;
    *which = w->shard_count++;
    w->shards[*which] = shard;
    return PC_OK;
}

/* Of a name that is nothing but a file's beside the index. */
static pc_status find_shard(pc_weights *w, const char *file, int *which)
{
    const char *slash = strrchr(w->path, '/');
    pc__text path = {0};
    if (!*file || strchr(file, '/'))
        return pc__fail(PC_ERR_FORMAT, "%s: \"%.80s\" is no name of a file beside it", w->path, file);
    pc__text_add(&path, "%.*s%s", slash ? (int)(slash + 1 - w->path) : 0, w->path, file);
    const pc_status status = path.failed ? PC_ERR_MEMORY : open_shard(w, path.data, which);
    pc__text_free(&path);
    return status;
}

static pc_status take_tensor(pc_weights *w, pc__json *in, pc__text *name, pc__text *file)
{
    int which = 0;
    if (!pc__json_key(in, name) || !pc__json_string_in(in, file))
        return name->failed || file->failed ? PC_ERR_MEMORY : unreadable(w);
    PC__TRY(find_shard(w, file->data, &which));
    pc__weight *there = (pc__weight *)pc__weights_find(w->shards[which], name->data);
    if (!there)
        return pc__fail(PC_ERR_FORMAT, "%s: the tensor \"%.80s\" is not in %s", w->path, name->data,
                        w->shards[which]->path);
    if (there->named) /* now, and not when all are sorted: there may be millions */
        return pc__fail(PC_ERR_FORMAT, "%s names the tensor \"%.80s\" twice", w->path, name->data);
    there->named = true;
    PC__TRY(pc__grow((void **)&w->list, &w->room, w->count, sizeof *w->list));
    pc__weight *t = &w->list[w->count++];
    *t = *there;
    t->shard = which;
    t->name = pc__strdup(name->data);
    return t->name ? PC_OK : PC_ERR_MEMORY;
}

static pc_status take_index(pc_weights *w, pc__json *in, pc__text *key, pc__text *file)
{
    bool found = false;
    for (pc__json_open(in, '{'); pc__json_next(in, '}');) {
        if (!pc__json_key(in, key))
            break;
        if (found || strcmp(key->data, "weight_map") != 0) {
            pc__json_skip(in);
            continue;
        }
        found = true;
        for (pc__json_open(in, '{'); pc__json_next(in, '}');)
            PC__TRY(take_tensor(w, in, key, file));
    }
    if (!pc__json_ended(in))
        return unreadable(w);
    return found
               ? pc__weights_sort(w)
               : pc__fail(PC_ERR_FORMAT,
                          "%s is no file of weights, and no index of such files, as it has no \"weight_map\"", w->path);
}

pc_status pc__weights_index(pc_weights *w, int64_t size)
{
    uint8_t *bytes = NULL;
    size_t n = 0;
    if (size > PC__WEIGHTS_HEADER_MAX)
        return unreadable(w);
    const pc_status read = pc__file_take(w->fd, w->path, size, &bytes, &n);
    w->fd = -1;
    if (read != PC_OK)
        return read;
    pc__json in = pc__json_of(bytes, n);
    pc__text key = {0}, file = {0};
    pc_status status = take_index(w, &in, &key, &file);
    if (key.failed || file.failed)
        status = PC_ERR_MEMORY;
    pc__text_free(&key);
    pc__text_free(&file);
    pc__free(bytes);
    return status;
}
