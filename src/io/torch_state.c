/* torch_state.c: a tensor of a state dict, of the values that a pickle has. */
#include "io/pickle.h"
#include "io/torch_file.h"

#include <stdlib.h>

#define REBUILD "torch._utils\n_rebuild_tensor_v2"
#define REBUILD_TYPED "torch._utils\n_rebuild_tensor_v3"
#define PARAMETER "torch._utils\n_rebuild_parameter"

/* Storages, and dtypes of those that have none. */
#define TYPES(X)                                                                                                       \
    X("torch\nFloatStorage", "F32")                                                                                    \
    X("torch\nDoubleStorage", "F64")                                                                                   \
    X("torch\nHalfStorage", "F16")                                                                                     \
    X("torch\nBFloat16Storage", "BF16")                                                                                \
    X("torch\nLongStorage", "I64")                                                                                     \
    X("torch\nIntStorage", "I32")                                                                                      \
    X("torch\nShortStorage", "I16")                                                                                    \
    X("torch\nCharStorage", "I8")                                                                                      \
    X("torch\nByteStorage", "U8")                                                                                      \
    X("torch\nBoolStorage", "BOOL")                                                                                    \
    X("torch\nComplexFloatStorage", "C64")                                                                             \
    X("torch.storage\nUntypedStorage", "U8")                                                                           \
    X("torch\nuint16", "U16")                                                                                          \
    X("torch\nuint32", "U32")                                                                                          \
    X("torch\nuint64", "U64")                                                                                          \
    X("torch\nfloat8_e4m3fn", "F8_E4M3")                                                                               \
    X("torch\nfloat8_e5m2", "F8_E5M2")                                                                                 \
    X("torch\nfloat8_e8m0fnu", "F8_E8M0")

static const struct {
    const char *name, *type;
} types[] = {
#define ROW(name, type) {name, type},
    TYPES(ROW)
#undef ROW
};

/* What checkpoints have beside weights, as far as torch.load(weights_only=True) takes it: kept as it stands, and not looked at. */
#define OTHERS(X)                                                                                                      \
    X("collections\nCounter")                                                                                          \
    X("torch\nSize")                                                                                                   \
    X("torch\ndevice")                                                                                                 \
    X("torch.serialization\n_get_layout")                                                                              \
    X("_codecs\nencode")                                                                                               \
    X("__builtin__\nset")                                                                                              \
    X("__builtin__\nbytearray")                                                                                        \
    X("__builtin__\ncomplex")                                                                                          \
    X("builtins\nset")                                                                                                 \
    X("builtins\nbytearray")                                                                                           \
    X("builtins\ncomplex")                                                                                             \
    X("torch\nfloat64")                                                                                                \
    X("torch\nfloat32")                                                                                                \
    X("torch\nfloat16")                                                                                                \
    X("torch\nbfloat16")                                                                                               \
    X("torch\nint64")                                                                                                  \
    X("torch\nint32")                                                                                                  \
    X("torch\nint16")                                                                                                  \
    X("torch\nint8")                                                                                                   \
    X("torch\nuint8")                                                                                                  \
    X("torch\nbool")                                                                                                   \
    X("torch\ncomplex64")                                                                                              \
    X("torch\ncomplex128")

#define NAME(name, type) name,
#define OTHER(name) name,
const char *const pc__torch_names[] = {"collections\nOrderedDict", REBUILD, REBUILD_TYPED, PARAMETER,
                                       TYPES(NAME) OTHERS(OTHER) NULL};
#undef OTHER
#undef NAME

static const pc__weight_type *type_of(const pc__pickled *name)
{
    for (int i = 0; i < PC__COUNT(types); i++)
        if (pc__pickled_is(name, PC__PICKLED_NAME, types[i].name))
            return pc__weight_type_named(types[i].type);
    return NULL;
}

static int by_key(const void *a, const void *b)
{
    return strcmp(((const pc__torch_storage *)a)->key, ((const pc__torch_storage *)b)->key);
}

void pc__torch_sort(pc__torch_storages *s)
{
    if (s->count)
        qsort(s->list, (size_t)s->count, sizeof *s->list, by_key);
}

const pc__torch_storage *pc__torch_find(const pc__torch_storages *s, const char *key)
{
    pc__torch_storage wanted = {.begin = 0};
    snprintf(wanted.key, sizeof wanted.key, "%s", key);
    return s->count ? bsearch(&wanted, s->list, (size_t)s->count, sizeof wanted, by_key) : NULL;
}

/* ("storage", type, key, device, count), in files of before archives followed by None; a part of a storage, as versions before
 * 0.4 had there, is none that we read. */
bool pc__torch_storage_of(const pc__pickle *p, const pc__pickled *kept, const pc__weight_type **type, char key[32],
                          int64_t *count)
{
    const pc__pickled *tuple = kept && kept->kind == PC__PICKLED_KEPT ? &p->values[kept->whole] : NULL;
    const pc__pickled *name = tuple ? pc__pickle_at(p, tuple, 1) : NULL,
                      *text = tuple ? pc__pickle_at(p, tuple, 2) : NULL, *n = tuple ? pc__pickle_at(p, tuple, 4) : NULL;
    const pc__pickled *part = tuple ? pc__pickle_at(p, tuple, 5) : NULL;
    if ((part && part->kind != PC__PICKLED_NONE) || !text || text->kind != PC__PICKLED_TEXT || text->length >= 32 ||
        !n || n->kind != PC__PICKLED_WHOLE || n->whole < 0 || n->whole > INT64_MAX / 16 ||
        !pc__pickled_is(pc__pickle_at(p, tuple, 0), PC__PICKLED_TEXT, "storage"))
        return false;
    memcpy(key, text->text, text->length);
    key[text->length] = 0;
    *count = n->whole;
    *type = type_of(name);
    return *type != NULL;
}

static bool is_call(const pc__pickle *p, const pc__pickled *v, const char *name)
{
    return v && v->kind == PC__PICKLED_CALL && pc__pickled_is(&p->values[v->whole], PC__PICKLED_NAME, name);
}

/* The call that makes a tensor, also of a parameter; NULL for all else. */
const pc__pickled *pc__torch_tensor_of(const pc__pickle *p, const pc__pickled *v)
{
    if (is_call(p, v, PARAMETER))
        v = pc__pickle_at(p, v, 0);
    return is_call(p, v, REBUILD) || is_call(p, v, REBUILD_TYPED) ? v : NULL;
}

enum { DIMS = 64 }; /* PyTorch's most */

/* At most DIMS of them. */
static bool take_numbers(const pc__pickle *p, const pc__pickled *list, int64_t *numbers)
{
    for (int i = list->first; i >= 0; i = p->items[i].next) {
        const pc__pickled *number = &p->values[p->items[i].value];
        if (number->kind != PC__PICKLED_WHOLE)
            return false;
        *numbers++ = number->whole;
    }
    return true;
}

/* Sizes and strides; *span: numbers from the first to the last one, both counted. Strides of one number do not count. */
static bool take_shape(const pc__pickle *p, const pc__pickled *sizes, const pc__pickled *strides, pc__weight *t,
                       int64_t *span)
{
    int64_t size[DIMS], stride[DIMS], far;
    if (!take_numbers(p, sizes, size) || !take_numbers(p, strides, stride))
        return false;
    t->count = 1, t->ndim = sizes->count;
    *span = 1;
    for (int i = sizes->count - 1; i >= 0; i--) {
        if (size[i] < 0 || stride[i] < 0 || (size[i] && t->count > INT64_MAX / 16 / size[i]) ||
            __builtin_mul_overflow(PC__MAX(size[i] - 1, 0), stride[i], &far) ||
            __builtin_add_overflow(*span, far, span))
            return false;
        t->strided = t->strided || (size[i] != 1 && stride[i] != t->count);
        t->count *= size[i];
        if (i < PC_MAX_DIMS)
            t->shape[i] = size[i], t->strides[i] = size[i] == 1 ? 0 : stride[i];
    }
    if (!t->count)
        t->strided = false, *span = 0;
    return true;
}

static pc_status unclear(const pc_weights *w, const pc__weight *t)
{
    return pc__fail(PC_ERR_FORMAT, "%s: its pickle does not say what the tensor \"%.80s\" is", w->path, t->name);
}

/* (storage, offset, sizes, strides, requires_grad, hooks, what is to be done with the numbers), the last if there is
 * something; a typed one has its dtype in front of that, and a storage that is counted in bytes. */
pc_status pc__torch_tensor_take(pc_weights *w, const pc__pickle *p, const pc__pickled *call, pc__weight *t,
                                const pc__torch_storages *storages)
{
    const pc__pickled *kept = pc__pickle_at(p, call, 0), *offset = pc__pickle_at(p, call, 1),
                      *sizes = pc__pickle_at(p, call, 2), *strides = pc__pickle_at(p, call, 3);
    const bool typed = is_call(p, call, REBUILD_TYPED);
    const pc__pickled *work = pc__pickle_at(p, call, typed ? 7 : 6);
    char key[32];
    int64_t count, span;
    if (!offset || offset->kind != PC__PICKLED_WHOLE || offset->whole < 0 || !sizes ||
        sizes->kind != PC__PICKLED_LIST || !strides || strides->kind != PC__PICKLED_LIST ||
        strides->count != sizes->count || sizes->count > DIMS ||
        !pc__torch_storage_of(p, kept, &t->type, key, &count) || !take_shape(p, sizes, strides, t, &span))
        return unclear(w, t);
    if (typed) {
        t->type = type_of(pc__pickle_at(p, call, 6));
        if (!t->type)
            return unclear(w, t);
        count /= t->type->bits / 8;
    }
    t->unfinished = work && (work->kind != PC__PICKLED_DICT || work->count);
    const pc__torch_storage *place = pc__torch_find(storages, key);
    const int64_t first = t->count ? offset->whole : 0; /* a view of nothing may begin behind its storage */
    if (!place || first > count - span || count > place->bytes / (t->type->bits / 8))
        return pc__fail(PC_ERR_FORMAT, "%s: the numbers of the tensor \"%.80s\" are not all in it", w->path, t->name);
    t->begin = place->begin + first * (t->type->bits / 8);
    t->end = t->begin + span * (t->type->bits / 8);
    return PC_OK;
}
