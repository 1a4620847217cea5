/* autocast.c: the thread's dtype for products, and the casts of parameters that are kept while a scope is open. */
#include "ops/autocast.h"

#include "device/graph.h"
#include "ops/table.h"
#include "tensor/leaf_watch.h"
#include "tensor/node.h"

#include <paracord/no_grad.h>

/* A parameter's cast holds as long as the parameter has not changed, for calls that the tape notes or for those that it
 * does not, and in one recording or outside: a recording casts anew at each launch, and nobody else sees when. */
typedef struct kept {
    pc_tensor *of, *cast; /* one reference each */
    unsigned version;
    uint64_t recording; /* 0: none */
    bool taped;
} kept;

static _Thread_local struct {
    bool on;
    pc_dtype dtype;
    int depth;
    kept *list;
    int count, room;
} state;

static void forget(void)
{
    for (int i = 0; i < state.count; i++) {
        pc_tensor_free(state.list[i].cast);
        pc_tensor_free(state.list[i].of);
    }
    pc__free(state.list);
    state.list = NULL;
    state.count = state.room = 0;
}

static void set(pc_dtype dtype)
{
    state.on = pc__is_half(dtype);
    state.dtype = dtype;
}

pc_dtype pc_autocast_dtype(void)
{
    return state.on ? state.dtype : PC_F32;
}

pc_autocast_scope pc_autocast_enter(pc_dtype dtype)
{
    pc_autocast_scope scope = {1, pc_autocast_dtype()};
    set(dtype);
    state.depth++;
    return scope;
}

void pc_autocast_leave(pc_autocast_scope *scope)
{
    if (!scope || !scope->open)
        return;
    scope->open = 0;
    set(scope->before);
    if (--state.depth == 0)
        forget();
}

pc_dtype pc__autocast_pause(void)
{
    pc_dtype before = pc_autocast_dtype();
    forget(); /* parameters change soon, and then the memory of each goes as the walk leaves what saved it */
    set(PC_F32);
    return before;
}

void pc__autocast_resume(pc_dtype before)
{
    set(before);
}

static unsigned version_of(const pc_tensor *t)
{
    return atomic_load_explicit(&t->storage->version, memory_order_relaxed);
}

static kept *find(const pc_tensor *t)
{
    for (int i = 0; i < state.count; i++) {
        kept *k = &state.list[i];
        if (k->of == t && k->cast->dtype == state.dtype && k->taped == pc_grad_enabled())
            return k;
    }
    return NULL;
}

static uint64_t recording_of(const pc_tensor *t)
{
    const pc_stream *stream = pc_stream_current(t->storage->device);
    return stream ? pc__graph_number(stream) : 0;
}

static bool holds(const kept *k)
{
    return k->version == version_of(k->of) && k->recording == recording_of(k->of) &&
           !pc__storage_is_open(k->of->storage);
}

static pc_status keep(pc_tensor *t, pc_tensor *cast)
{
    kept *k = find(t);
    if (!k) {
        PC__TRY(pc__grow((void **)&state.list, &state.room, state.count, sizeof *state.list));
        k = &state.list[state.count++];
        *k = (kept){0};
    }
    pc__node_share(cast->node);
    pc_tensor *before[] = {k->of, k->cast};
    *k = (kept){.of = pc_tensor_retain(t),
                .cast = pc_tensor_retain(cast),
                .version = version_of(t),
                .recording = recording_of(t),
                .taped = pc_grad_enabled()};
    for (int i = 0; i < 2; i++)
        pc_tensor_free(before[i]);
    return PC_OK;
}

static pc_tensor *cast_kept(pc_tensor *t)
{
    const kept *k = find(t);
    if (k && holds(k))
        return pc__leaf_note(t) == PC_OK ? k->cast : NULL;
    pc__leaf_set *set = t->watch ? t->watch->set : NULL;
    if (set && set->half && !pc_grad_enabled()) /* its memory's version tells nothing while it has none */
        return pc__as_dtype(t, state.dtype);
    pc_tensor *cast = set && set->half ? set->half(set, t, state.dtype) : pc__as_dtype(t, state.dtype);
    return cast && keep(t, cast) == PC_OK ? cast : NULL;
}

static bool is_parameter(const pc_tensor *t)
{
    return t->dtype == PC_F32 && t->requires_grad && !t->node;
}

pc_tensor *pc__autocast_down(pc_tensor *t)
{
    if (!state.on || !t || !pc__is_float(t->dtype) || t->dtype == PC_F64 || t->dtype == state.dtype)
        return t;
    return is_parameter(t) ? cast_kept(t) : pc__as_dtype(t, state.dtype);
}

pc_tensor *pc__autocast_up(pc_tensor *t)
{
    return state.on && t && pc__is_half((pc_dtype)t->dtype) ? pc__as_dtype(t, PC_F32) : t;
}
