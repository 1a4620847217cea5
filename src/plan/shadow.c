/* shadow.c: the shadows of parameters, their float32 in 16 bits, that plans read and their optimisers' steps write
 * (shadows.c); and what launches do about those that somebody else has left behind.
 *
 * A shadow holds where the version of its parameter is the one that it was made of. Whatever writes a parameter raises
 * its version, eager steps, loaded weights and launches of other graphs alike, so nobody else has to know of shadows.
 * A launch casts those that do not hold, and knows what version it leaves: the one that it found, and its own write. */
#include "plan/plan.h"

#include "device/failure.h"
#include "ops/cast_many.h"

#include <paracord/ops.h>

/* --- holding --- */

static pthread_mutex_t holding = PTHREAD_MUTEX_INITIALIZER; /* graphs of two threads may have a parameter in common */

static pc__shadow *make(const pc__storage *of, pc_dtype dtype, int64_t zeros, pc_stream *stream)
{
    pc__shadow *shadow = pc__calloc(1, sizeof *shadow);
    const size_t count = of->bytes / sizeof(float) + (size_t)zeros;
    pc__storage *storage =
        shadow ? pc__storage_block(stream, count * pc_dtype_size(dtype), "a parameter in 16 bits") : NULL;
    if (!storage) { /* the plan is right without it */
        pc_error_clear();
        pc__free(shadow);
        return NULL;
    }
    shadow->storage = storage;
    shadow->dtype = dtype;
    atomic_store(&shadow->version, -1);
    return shadow;
}

pc__shadow *pc__shadow_hold(pc__storage *of, pc_dtype dtype, int64_t zeros, pc_stream *stream)
{
    pthread_mutex_lock(&holding);
    if (!of->shadow)
        of->shadow = make(of, dtype, zeros, stream);
    pc__shadow *shadow = of->shadow && of->shadow->dtype == (int)dtype ? of->shadow : NULL;
    if (shadow)
        shadow->graphs++;
    pthread_mutex_unlock(&holding);
    return shadow;
}

void pc__shadow_let_go(pc__storage *of)
{
    pthread_mutex_lock(&holding);
    pc__shadow *shadow = of->shadow, *last = --shadow->graphs ? NULL : shadow;
    if (last)
        of->shadow = NULL;
    pthread_mutex_unlock(&holding);
    if (!last)
        return;
    pc__storage_drop(last->storage);
    pc__free(last);
}

/* --- launches --- */

/* Where a cast or a launch fails, the version was raised all the same, so the next one casts. */
static bool holds(const pc__plan_shadow *s)
{
    return atomic_load(&s->shadow->version) == s->found && !pc__storage_is_open(s->of);
}

/* Numbers from..to - 1 of the storage. */
static pc_tensor line(pc__storage *storage, pc_dtype dtype, int64_t from, int64_t to)
{
    return (pc_tensor){
        .dtype = (int)dtype, .ndim = 1, .shape = {to - from}, .strides = {1}, .offset = from, .storage = storage};
}

static int64_t count_of(const pc__plan_shadow *s)
{
    return (int64_t)(s->of->bytes / sizeof(float));
}

/* What lies behind the parameter's numbers. */
static pc_status clear_room(const pc__plan_shadow *s, pc_stream *stream)
{
    const pc_dtype dtype = (pc_dtype)s->shadow->dtype;
    pc__storage *storage = s->shadow->storage;
    pc_tensor room = line(storage, dtype, count_of(s), (int64_t)(storage->bytes / pc_dtype_size(dtype)));
    pc_status status = PC_OK;
    if (room.shape[0] > 0)
        PC_WITH_STREAM(stream)
            status = pc_fill(&room, 0);
    return status;
}

/* Those n that are stale and of that dtype. */
static pc_status cast(const pc__plan *plan, int n, pc_dtype dtype, pc_stream *stream)
{
    pc_tensor *tensor = pc__alloc(2 * (size_t)n * (sizeof *tensor + sizeof(pc_tensor *)));
    if (!tensor)
        return PC_ERR_MEMORY;
    pc_tensor **list = (pc_tensor **)(void *)(tensor + 2 * (size_t)n);
    int k = 0;
    for (int i = 0; i < plan->shadows; i++) {
        const pc__plan_shadow *s = &plan->shadow[i];
        if (!s->stale || s->shadow->dtype != (int)dtype)
            continue;
        tensor[k] = line(s->shadow->storage, dtype, 0, count_of(s));
        tensor[n + k] = line(s->of, PC_F32, 0, count_of(s));
        list[k] = &tensor[k];
        list[n + k] = &tensor[n + k];
        k++;
    }
    pc_status status = PC_ERR_STATE;
    PC_WITH_STREAM(stream)
        status = pc__cast_into(list, n);
    pc__free(tensor);
    return status;
}

pc_status pc__plan_refresh(pc__plan *plan, pc_stream *stream)
{
    int f16 = 0, bf16 = 0;
    for (int i = 0; plan && i < plan->shadows; i++) {
        pc__plan_shadow *s = &plan->shadow[i];
        s->found = atomic_load(&s->of->version);
        s->stale = !holds(s);
        PC__TRY(s->stale ? pc__storage_sound(s->of, "pc_graph_launch") : PC_OK);
        PC__TRY(s->stale ? clear_room(s, stream) : PC_OK);
        *(s->shadow->dtype == PC_F16 ? &f16 : &bf16) += s->stale;
    }
    PC__TRY(f16 ? cast(plan, f16, PC_F16, stream) : PC_OK);
    return bf16 ? cast(plan, bf16, PC_BF16, stream) : PC_OK;
}

void pc__plan_launched(pc__plan *plan)
{
    for (int i = 0; plan && i < plan->shadows; i++) {
        const pc__plan_shadow *s = &plan->shadow[i];
        atomic_store(&s->shadow->version, pc__storage_is_open(s->of) ? -1 : (int64_t)(s->found + 1));
    }
}
