/* copies.c: which copies there are, and which of them hold. */
#include "nn/copies.h"

#include "device/graph.h"
#include "nn/optimizer.h"
#include "ops/cast_many.h"

static _Thread_local struct {
    pc_optimizer *of;
    bool recorded;
} watched;

void pc__copies_watch(pc_optimizer *o, bool recorded)
{
    watched.of = o;
    watched.recorded = recorded;
}

bool pc__copies_watched(void)
{
    return watched.of != NULL;
}

static int64_t version_of(const pc_tensor *t)
{
    return atomic_load_explicit(&t->storage->version, memory_order_relaxed);
}

static int place_of(const pc_optimizer *o, const pc_tensor *t)
{
    int i = 0;
    while (i < o->count && o->parameters[i] != t)
        i++;
    return i < o->count ? i : -1;
}

/* What the program writes through a pointer no version counts. */
static bool is_exposed(const pc_tensor *t)
{
    return atomic_load_explicit(&t->storage->exposed, memory_order_relaxed);
}

/* Only CUDA's steps write copies. */
static bool can_be_copied(const pc_optimizer *o, const pc_tensor *t)
{
    const pc_device device = t->storage->device;
    return device.type == PC_CUDA && pc_device_equal(device, o->parameters[0]->storage->device) && t->dtype == PC_F32 &&
           pc__is_contiguous(t) && !is_exposed(t);
}

/* To the step one would be a copy itself. */
static bool has_halves(const pc_optimizer *o)
{
    for (int i = 0; i < o->count; i++)
        if (pc__is_half((pc_dtype)o->parameters[i]->dtype))
            return true;
    return false;
}

/* Of a parameter that has a copy. */
static bool holds(const pc_optimizer *o, int i)
{
    return o->copies.version[i] == version_of(o->parameters[i]) && !is_exposed(o->parameters[i]);
}

static pc_status make_room(pc_optimizer *o)
{
    pc__copies *c = &o->copies;
    if (!c->version)
        c->version = pc__calloc((size_t)o->count, sizeof *c->version);
    if (c->version && !c->of)
        c->of = pc__calloc((size_t)o->count, sizeof *c->of);
    return c->of ? PC_OK : PC_ERR_MEMORY;
}

/* Not in a recording, whose launches may use its memory for other things before. */
static pc_status make(pc_optimizer *o, int i, pc_dtype dtype)
{
    pc__copies *c = &o->copies;
    const pc_tensor *t = o->parameters[i];
    const pc_stream *stream = pc_stream_current(t->storage->device);
    if (!can_be_copied(o, t) || !stream || pc__graph_number(stream) || (c->made && c->dtype != dtype))
        return PC_OK;
    if (!c->of && has_halves(o))
        return PC_OK;
    PC__TRY(make_room(o));
    if (c->of[i])
        return PC_OK;
    PC_SCOPE {
        c->of[i] = pc_tensor_retain(pc_empty(pc_tensor_shape(t), dtype, t->storage->device));
    }
    if (!c->of[i])
        return pc_error_last()->status;
    c->dtype = dtype;
    c->made++;
    c->version[i] = -1;
    return PC_OK;
}

pc_status pc__copy_of(pc_tensor *t, pc_dtype dtype, pc_tensor **copy)
{
    pc_optimizer *o = watched.of;
    const int i = o ? place_of(o, t) : -1;
    *copy = NULL;
    if (i < 0)
        return PC_OK;
    if (!watched.recorded)
        return make(o, i, dtype);
    pc__copies *c = &o->copies;
    if (c->made && c->of[i] && c->dtype == dtype && holds(o, i)) {
        *copy = c->of[i];
        c->used = true;
    }
    return PC_OK;
}

static void hold_all(pc_optimizer *o)
{
    for (int i = 0; o->copies.made && i < o->count; i++)
        o->copies.version[i] = version_of(o->parameters[i]);
}

void pc__copies_lost(pc_optimizer *o)
{
    for (int i = 0; o->copies.made && i < o->count; i++)
        o->copies.version[i] = -1;
}

void pc__copies_begin(pc_optimizer *o)
{
    o->copies.used = false;
    hold_all(o);
}

/* Recording has raised versions and done nothing. */
pc__copies_use pc__copies_end(pc_optimizer *o)
{
    pc__copies *c = &o->copies;
    pc__copies_use use = {c->used, c->used ? c->made : 0};
    for (int i = 0; c->made && i < o->count; i++)
        if (c->of[i] && c->version[i] != version_of(o->parameters[i]))
            use.keeps = 0;
    c->used = false;
    pc__copies_lost(o);
    return use;
}

void pc__copies_written(pc_optimizer *o)
{
    const int n = o->settings.count;
    for (int k = 0; k < n; k++)
        o->copies.version[place_of(o, o->work[k])] = version_of(o->work[k]);
}

pc_status pc__copies_refresh(pc_optimizer *o)
{
    pc__copies *c = &o->copies;
    int n = 0, k = 0;
    for (int i = 0; i < o->count; i++)
        n += c->of[i] && !holds(o, i);
    if (!n)
        return PC_OK;
    pc_tensor **into = pc__alloc(2 * (size_t)n * sizeof *into);
    if (!into)
        return PC_ERR_MEMORY;
    for (int i = 0; i < o->count; i++)
        if (c->of[i] && !holds(o, i)) {
            into[k] = c->of[i];
            into[n + k++] = o->parameters[i];
        }
    pc_status status = pc__cast_into(into, n);
    pc__free(into);
    if (status == PC_OK)
        hold_all(o);
    return status;
}

void pc__copies_launched(pc_optimizer *o, const pc__copies_use *use)
{
    if (use->reads && use->keeps == o->copies.made)
        hold_all(o);
}

void pc__copies_free(pc_optimizer *o)
{
    for (int i = 0; o->copies.of && i < o->count; i++)
        pc_tensor_free(o->copies.of[i]);
    pc__free(o->copies.of);
    pc__free(o->copies.version);
}
