/* torch_names.c: which tensors a pickle has, and under which names. */
#include "io/torch_file.h"

/* How deep dictionaries lie in each other; how often one that has several names may be walked through, in items; and how many
 * bytes of the names in front of a tensor's own count as an item. */
enum { DEPTH = 16, AGAIN = 8, AGAIN_FEW = 1024, NAME = 16 };

typedef struct walk {
    pc_weights *w; /* NULL: tensors are only counted */
    const pc__pickle *p;
    const pc__torch_storages *storages;
    const char *path;
    pc__text name; /* of the value that the walk is at */
    int64_t left;  /* items that it may still come to */
    int found;
    bool unnamed; /* a key on the way here is neither text nor a whole number */
} walk;

static pc_status add(walk *s, const pc__pickled *call)
{
    pc_weights *w = s->w;
    s->found++;
    if (!w)
        return PC_OK;
    if (s->unnamed)
        return pc__fail(PC_ERR_FORMAT, "%s: a tensor's name is neither text nor a whole number: \"%.80s\"", s->path,
                        s->name.data);
    PC__TRY(pc__grow((void **)&w->list, &w->room, w->count, sizeof *w->list));
    pc__weight *t = &w->list[w->count++];
    *t = (pc__weight){.name = pc__alloc(s->name.length + 1)};
    if (!t->name)
        return PC_ERR_MEMORY;
    memcpy(t->name, s->name.data, s->name.length);
    t->name[s->name.length] = 0;
    if (strlen(t->name) != s->name.length)
        return pc__fail(PC_ERR_FORMAT, "%s: a tensor's name has a zero byte in it", s->path);
    return pc__torch_tensor_take(w, s->p, call, t, s->storages);
}

static bool holds_others(const pc__pickled *v)
{
    return v->kind == PC__PICKLED_DICT || v->kind == PC__PICKLED_LIST;
}

/* The number of an item of a list, or a key. */
static void add_name(walk *s, const pc__pickled *key, int number)
{
    if (s->name.length)
        pc__text_append(&s->name, ".", 1);
    if (key && key->kind == PC__PICKLED_TEXT)
        pc__text_append(&s->name, key->text, key->length);
    else if (!key || key->kind == PC__PICKLED_WHOLE)
        pc__text_add(&s->name, "%lld", (long long)(key ? key->whole : number));
    else
        pc__text_append(&s->name, "?", 1);
    s->unnamed |= key && key->kind != PC__PICKLED_TEXT && key->kind != PC__PICKLED_WHOLE;
}

/* What is in a dictionary or a list, and in those in it: "part.layer.weight". Files may say that one contains itself, or
 * others many times, so depth and items are counted. */
static pc_status visit(walk *s, const pc__pickled *of, int depth)
{
    const pc__pickle *p = s->p;
    const size_t length = s->name.length;
    const bool unnamed = s->unnamed;
    int number = 0;
    for (int i = of->first; i >= 0; i = p->items[i].next, number++) {
        const pc__pickled *key = of->kind == PC__PICKLED_DICT ? &p->values[p->items[i].value] : NULL;
        i = key ? p->items[i].next : i;
        const pc__pickled *value = &p->values[p->items[i].value], *call = pc__torch_tensor_of(p, value);
        s->left -= 1 + (call ? (int64_t)length / NAME : 0);
        if (s->left < 0 || (depth == DEPTH && holds_others(value)))
            return pc__fail(PC_ERR_FORMAT,
                            "%s: its dictionaries contain each other, lie more than %d deep or have very long names",
                            s->path, DEPTH);
        if (!call && !holds_others(value))
            continue;
        if (s->w)
            add_name(s, key, number);
        PC__TRY(s->name.failed ? PC_ERR_MEMORY : call ? add(s, call) : visit(s, value, depth + 1));
        s->name.length = length;
        s->unnamed = unnamed;
    }
    return PC_OK;
}

static pc_status walk_through(walk *s, const pc__pickled *of)
{
    s->found = 0;
    const pc_status status = holds_others(of) ? visit(s, of, 1) : PC_OK;
    pc__text_free(&s->name);
    return status;
}

/* A training's checkpoint has the state dict under one of these; where two have tensors, neither is it. */
static pc_status find_state(walk *s, const pc__pickled *all, const pc__pickled **state)
{
    static const char *const names[] = {"state_dict", "model", "model_state_dict", "model_state"};
    const pc__pickle *p = s->p;
    int found = 0;
    *state = all;
    for (int i = all->first; i >= 0 && all->kind == PC__PICKLED_DICT; i = p->items[p->items[i].next].next)
        for (int k = 0; k < PC__COUNT(names); k++) {
            const pc__pickled *value = &p->values[p->items[p->items[i].next].value];
            if (value->kind != PC__PICKLED_DICT ||
                !pc__pickled_is(&p->values[p->items[i].value], PC__PICKLED_TEXT, names[k]))
                continue;
            PC__TRY(walk_through(s, value));
            if (s->found)
                *state = found++ ? all : value;
        }
    return PC_OK;
}

pc_status pc__torch_state(pc_weights *w, const pc__pickle *p, pc__torch_storages *storages)
{
    const pc__pickled *state;
    const int64_t items = (int64_t)AGAIN * p->item_count + AGAIN_FEW;
    walk s = {.p = p, .storages = storages, .path = w->path, .left = items};
    PC__TRY(find_state(&s, &p->values[p->root], &state));
    pc__torch_sort(storages);
    s.w = w;
    s.left = items;
    PC__TRY(walk_through(&s, state));
    return w->count ? PC_OK
                    : pc__fail(PC_ERR_FORMAT,
                               "%s has no tensors by name; torch.save(network.state_dict(), ...) writes such", w->path);
}
