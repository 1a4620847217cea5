/* torch_archive.c: a file of torch.save as a zip archive: its directory alone is read, and the pickle. Storages are never
 * packed, so a tensor is read from its place in the file. */
#include "io/torch_file.h"

enum {
    END = 22,        /* bytes of the record at the end, behind which there may be a comment */
    COMMENT = 65535, /* the longest */
    ENTRY = 46,      /* bytes of an entry of the directory, and its name and more */
    LOCAL = 30,      /* of what stands in front of a file */
    DIRECTORY_MAX = 1 << 28,
    PICKLE_MAX = 1 << 28
};

static uint32_t whole(const uint8_t *at, int bytes)
{
    uint32_t value = 0;
    for (int i = 0; i < bytes; i++)
        value |= (uint32_t)at[i] << 8 * i;
    return value;
}

static pc_status damaged(const pc_weights *w, const char *how)
{
    return pc__fail(PC_ERR_FORMAT, "%s is a damaged archive: %s", w->path, how);
}

typedef struct directory {
    const pc_weights *w;
    uint8_t *bytes; /* from pc__alloc */
    size_t n;
    int64_t size; /* of the file */
} directory;

static pc_status open_directory(const pc_weights *w, int64_t size, directory *d)
{
    const size_t n = (size_t)PC__MIN(size, (int64_t)END + COMMENT);
    uint8_t *tail = pc__alloc(n);
    if (!tail)
        return PC_ERR_MEMORY;
    pc_status status = pc__weights_bytes(w, size - (int64_t)n, tail, n);
    size_t at = n < END ? 0 : n - END + 1;
    while (at > 0 && memcmp(tail + at - 1, "PK\5\6", 4) != 0)
        at--;
    uint32_t bytes = 0, begin = 0;
    if (at)
        bytes = whole(tail + at - 1 + 12, 4), begin = whole(tail + at - 1 + 16, 4);
    pc__free(tail);
    PC__TRY(status);
    if (!at)
        return damaged(w, "it is truncated");
    if (begin == UINT32_MAX || bytes == UINT32_MAX)
        return pc__fail(PC_ERR_UNSUPPORTED,
                        "%s is an archive of more than 4 GB, which is not read here; save its "
                        "state dict by safetensors.torch.save_file",
                        w->path);
    if ((int64_t)begin + bytes > size || bytes > DIRECTORY_MAX)
        return damaged(w, "its directory is not where it says");
    *d = (directory){w, pc__alloc((size_t)bytes + 1), bytes, size};
    return d->bytes ? pc__weights_bytes(w, begin, d->bytes, bytes) : PC_ERR_MEMORY;
}

typedef struct entry {
    const char *name; /* without an end */
    size_t length;
    int64_t begin, bytes; /* begin: of the head in front of it */
    bool packed;
} entry;

/* The entry at *at, behind which *at is then; false: there is none. */
static bool next_entry(const directory *d, size_t *at, entry *e)
{
    const uint8_t *b = d->bytes + *at;
    if (d->n - *at < ENTRY || memcmp(b, "PK\1\2", 4) != 0)
        return false;
    *e = (entry){.name = (const char *)b + ENTRY,
                 .length = whole(b + 28, 2),
                 .begin = whole(b + 42, 4),
                 .bytes = whole(b + 24, 4),
                 .packed = whole(b + 10, 2) != 0 || whole(b + 8, 2) & 1};
    const size_t all = ENTRY + e->length + whole(b + 30, 2) + whole(b + 32, 2);
    if (d->n - *at < all)
        return false;
    *at += all;
    return true;
}

/* Where the bytes themselves begin. */
static pc_status place(const directory *d, entry *e)
{
    uint8_t head[LOCAL];
    if (e->packed)
        return pc__fail(PC_ERR_UNSUPPORTED, "%s: %.*s is packed, which torch.save does not do", d->w->path,
                        (int)PC__MIN(e->length, (size_t)64), e->name);
    if (e->begin + LOCAL > d->size)
        return damaged(d->w, "a file in it is not where it says");
    PC__TRY(pc__weights_bytes(d->w, e->begin, head, LOCAL));
    e->begin += LOCAL + whole(head + 26, 2) + whole(head + 28, 2);
    return memcmp(head, "PK\3\4", 4) == 0 && e->begin + e->bytes <= d->size
               ? PC_OK
               : damaged(d->w, "a file in it is not where it says");
}

static bool ends_in(const entry *e, const char *end, size_t *front)
{
    const size_t n = strlen(end);
    *front = e->length - n;
    return e->length >= n && memcmp(e->name + *front, end, n) == 0;
}

static pc_status take_pickle(const directory *d, entry *e, uint8_t **pickle, size_t *n)
{
    PC__TRY(place(d, e));
    if (e->bytes > PICKLE_MAX)
        return damaged(d->w, "its pickle is too large");
    *n = (size_t)e->bytes;
    *pickle = pc__alloc(*n + 1);
    return *pickle ? pc__weights_bytes(d->w, e->begin, *pickle, *n) : PC_ERR_MEMORY;
}

static pc_status take_storage(const directory *d, entry *e, size_t front, pc__torch_storages *s)
{
    const size_t length = e->length - front;
    if (length < 1 || length >= sizeof s->list->key)
        return PC_OK;
    PC__TRY(place(d, e));
    PC__TRY(pc__grow((void **)&s->list, &s->room, s->count, sizeof *s->list));
    pc__torch_storage *own = &s->list[s->count++];
    *own = (pc__torch_storage){.begin = e->begin, .bytes = e->bytes};
    memcpy(own->key, e->name + front, length);
    return PC_OK;
}

/* NAME/data.pkl says what NAME is; NAME/data/KEY are the storages. */
static pc_status take(const directory *d, uint8_t **pickle, size_t *n, pc__torch_storages *s)
{
    entry e, main = {.name = NULL};
    size_t front = 0;
    for (size_t at = 0; !main.name && next_entry(d, &at, &e);)
        if (ends_in(&e, "/data.pkl", &front))
            main = e;
    if (!main.name)
        return pc__fail(PC_ERR_FORMAT, "%s is an archive, but none of torch.save: there is no data.pkl in it",
                        d->w->path);
    PC__TRY(take_pickle(d, &main, pickle, n));
    for (size_t at = 0; next_entry(d, &at, &e);) {
        char order[8] = "";
        if (e.length <= front || memcmp(e.name, main.name, front) != 0)
            continue;
        if (e.length > front + 6 && memcmp(e.name + front, "/data/", 6) == 0)
            PC__TRY(take_storage(d, &e, front + 6, s));
        else if (e.length == front + 10 && memcmp(e.name + front, "/byteorder", 10) == 0 &&
                 e.bytes < (int64_t)sizeof order) {
            PC__TRY(place(d, &e));
            PC__TRY(pc__weights_bytes(d->w, e.begin, order, (size_t)e.bytes));
            if (strcmp(order, "little") != 0)
                return pc__fail(PC_ERR_UNSUPPORTED, "%s was written by a machine of another byte order", d->w->path);
        }
    }
    return PC_OK;
}

pc_status pc__torch_archive(const pc_weights *w, int64_t size, uint8_t **pickle, size_t *n,
                            pc__torch_storages *storages)
{
    directory d = {.bytes = NULL};
    pc_status status = open_directory(w, size, &d);
    if (status == PC_OK)
        status = take(&d, pickle, n, storages);
    pc__free(d.bytes);
    return status;
}
