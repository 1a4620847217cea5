/* safetensors_header.c: what a file says of its tensors, believed only as far as it holds together. */
#include "io/json_read.h"
#include "io/safetensors.h"

#include <stdlib.h>

static const pc__weight_type types[] = {
#define ROW(name, bits, dtype, how) {name, bits, dtype, how},
    PC__WEIGHT_TYPES(ROW)
#undef ROW
};

const pc__weight_type *pc__weight_type_named(const char *name)
{
    for (int i = 0; i < PC__COUNT(types); i++)
        if (strcmp(types[i].name, name) == 0)
            return &types[i];
    return NULL;
}

const pc__weight_type *pc__weight_type_for(pc_dtype dtype)
{
    for (int i = 0; i < PC__COUNT(types); i++)
        if (types[i].dtype == dtype && !types[i].how)
            return &types[i];
    return NULL;
}

static pc_status unreadable(const pc_weights *w)
{
    return pc__fail(PC_ERR_FORMAT, "%s: the header of the safetensors file cannot be understood", w->path);
}

static pc_status take_shape(const pc_weights *w, pc__json *in, pc__weight *t)
{
    t->ndim = 0, t->count = 1;
    bool empty = false;
    for (pc__json_open(in, '['); pc__json_next(in, ']');) {
        int64_t size;
        if (!pc__json_whole(in, &size))
            break;
        if (t->ndim < PC_MAX_DIMS)
            t->shape[t->ndim] = size;
        t->ndim++;
        empty = empty || size == 0;
        if (size && __builtin_mul_overflow(t->count, size, &t->count))
            return pc__fail(PC_ERR_FORMAT, "%s: the tensor \"%.80s\" claims an absurd shape", w->path, t->name);
    }
    t->count = empty ? 0 : t->count;
    return in->bad ? unreadable(w) : PC_OK;
}

static pc_status take_offsets(const pc_weights *w, pc__json *in, pc__weight *t)
{
    pc__json_open(in, '[');
    const bool whole = pc__json_next(in, ']') && pc__json_whole(in, &t->begin) && pc__json_next(in, ']') &&
                       pc__json_whole(in, &t->end) && !pc__json_next(in, ']');
    return whole && !in->bad ? PC_OK : unreadable(w);
}

static pc_status take_type(const pc_weights *w, pc__json *in, pc__text *text, pc__weight *t)
{
    if (!pc__json_string_in(in, text))
        return unreadable(w);
    t->type = pc__weight_type_named(text->data);
    return t->type ? PC_OK
                   : pc__fail(PC_ERR_FORMAT,
                              "%s: the tensor \"%.80s\" is of the type \"%.20s\", which is none of the "
                              "format's that this version knows",
                              w->path, t->name, text->data);
}

static pc_status check_size(const pc_weights *w, const pc__weight *t)
{
    int64_t bits;
    if (__builtin_mul_overflow(t->count, t->type->bits, &bits) || t->end < t->begin || bits % 8 ||
        t->end - t->begin != bits / 8)
        return pc__fail(PC_ERR_FORMAT, "%s: the tensor \"%.80s\" has bytes %lld to %lld, which its shape does not need",
                        w->path, t->name, (long long)t->begin, (long long)t->end);
    return PC_OK;
}

static pc_status take_tensor(const pc_weights *w, pc__json *in, pc__text *text, pc__weight *t)
{
    static const char *const keys[] = {"dtype", "shape", "data_offsets"};
    bool seen[3] = {false, false, false};
    for (pc__json_open(in, '{'); pc__json_next(in, '}');) {
        int which = 0;
        if (!pc__json_key(in, text))
            break;
        while (which < 3 && strcmp(text->data, keys[which]) != 0)
            which++;
        if (which == 3) { /* what others note there */
            pc__json_skip(in);
            continue;
        }
        if (seen[which])
            return unreadable(w);
        seen[which] = true;
        PC__TRY(which == 0 ? take_type(w, in, text, t) : which == 1 ? take_shape(w, in, t) : take_offsets(w, in, t));
    }
    if (in->bad || !seen[0] || !seen[1] || !seen[2])
        return unreadable(w);
    return check_size(w, t);
}

static pc_status take_notes(pc_weights *w, pc__json *in, pc__text *text)
{
    for (pc__json_open(in, '{'); pc__json_next(in, '}');) {
        if (!pc__json_key(in, text))
            break;
        PC__TRY(pc__grow((void **)&w->notes, &w->note_room, w->note_count, sizeof *w->notes));
        pc__weight_note *note = &w->notes[w->note_count++];
        *note = (pc__weight_note){.key = pc__strdup(text->data)};
        if (!note->key)
            return PC_ERR_MEMORY;
        if (!pc__json_string_in(in, text))
            break;
        note->text = pc__strdup(text->data);
        if (!note->text)
            return PC_ERR_MEMORY;
    }
    return in->bad ? unreadable(w) : PC_OK;
}

static pc_status take_entry(pc_weights *w, pc__json *in, pc__text *text)
{
    if (!pc__json_key(in, text))
        return unreadable(w);
    if (strcmp(text->data, "__metadata__") == 0)
        return w->notes ? unreadable(w) : take_notes(w, in, text);
    PC__TRY(pc__grow((void **)&w->list, &w->room, w->count, sizeof *w->list));
    pc__weight *t = &w->list[w->count++];
    *t = (pc__weight){.name = pc__strdup(text->data)};
    return t->name ? take_tensor(w, in, text, t) : PC_ERR_MEMORY;
}

static int by_place(const void *a, const void *b)
{
    const pc__weight *s = a, *t = b;
    return s->begin != t->begin ? (s->begin > t->begin) - (s->begin < t->begin) : (s->end > t->end) - (s->end < t->end);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const pc__weight *)a)->name, ((const pc__weight *)b)->name);
}

static void sort(const pc_weights *w, int (*order)(const void *, const void *))
{
    if (w->count)
        qsort(w->list, (size_t)w->count, sizeof *w->list, order);
}

/* No byte belongs to two tensors or to none. */
static pc_status check_places(const pc_weights *w, int64_t left)
{
    int64_t at = 0;
    sort(w, by_place);
    for (int i = 0; i < w->count; i++) {
        const pc__weight *t = &w->list[i];
        if (t->end > left)
            return pc__fail(PC_ERR_FORMAT, "%s is truncated: the tensor \"%.80s\" ends at byte %lld of %lld", w->path,
                            t->name, (long long)t->end, (long long)left);
        if (t->begin != at)
            return pc__fail(PC_ERR_FORMAT,
                            "%s: the tensor \"%.80s\" begins at byte %lld, and the one in front of it ends at %lld",
                            w->path, t->name, (long long)t->begin, (long long)at);
        at = t->end;
    }
    if (at != left)
        return pc__fail(PC_ERR_FORMAT, "%s: behind its tensors, which end at byte %lld, there are %lld more", w->path,
                        (long long)at, (long long)(left - at));
    return PC_OK;
}

pc_status pc__weights_sort(const pc_weights *w)
{
    sort(w, by_name);
    for (int i = 1; i < w->count; i++)
        if (strcmp(w->list[i].name, w->list[i - 1].name) == 0)
            return pc__fail(PC_ERR_FORMAT, "%s: two tensors are called \"%.80s\"", w->path, w->list[i].name);
    return PC_OK;
}

static pc_status take_entries(pc_weights *w, pc__json *in, pc__text *text)
{
    for (pc__json_open(in, '{'); pc__json_next(in, '}');)
        PC__TRY(take_entry(w, in, text));
    return pc__json_ended(in) ? PC_OK : unreadable(w);
}

pc_status pc__weights_header(pc_weights *w, const char *bytes, size_t n, int64_t left)
{
    pc__json in = pc__json_of(bytes, n);
    pc__text text = {0};
    pc_status status = take_entries(w, &in, &text);
    if (text.failed)
        status = PC_ERR_MEMORY;
    pc__text_free(&text);
    if (status == PC_OK)
        status = check_places(w, left);
    return status == PC_OK ? pc__weights_sort(w) : status;
}

const pc__weight *pc__weights_find(const pc_weights *w, const char *name)
{
    const pc__weight key = {.name = (char *)name};
    return w->count ? bsearch(&key, w->list, (size_t)w->count, sizeof key, by_name) : NULL;
}
