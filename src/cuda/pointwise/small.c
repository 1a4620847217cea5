/* small.c: which calls are held back, and when they go. Holding changes nothing but the time at which work starts: what
 * is held is launched before anything else is put into the stream's queue (pc__cuda_queue), and before an event that
 * stands for its tickets is (pc__cuda_mark_now), by whichever thread that is. So no ticket counts as done whose work is
 * held.
 *
 * Only the thread that has the stream's turn to queue adds to the list; it finds the list empty only when all that it
 * added is launched. */
#include "cuda/runtime/state.h"

static bool may_hold(const pc_stream *stream, const pc__cuda_state *s)
{
    return !stream->recording && !s->face.scratch_level && !pc__cuda_sync && !pc__cuda_nvtx && !pc__cuda_tracing();
}

/* There are kernels for lists of these. */
static bool is_held(pc_dtype dtype)
{
    return dtype == PC_F32 || dtype == PC_F64 || dtype == PC_I32 || dtype == PC_I64;
}

/* False unless the operands are of one such dtype, and each dense and as long as the output or a single element. */
static bool plan(pc__cuda_small_call *call, int count, pc_tensor *const *operands)
{
    const pc_dtype dtype = operands[0]->dtype;
    const int64_t elements = pc__count(operands[0]->ndim, operands[0]->shape),
                  pack = (int64_t)(16 / pc_dtype_size(dtype));
    bool packed = elements >= pack;
    if (elements < 1 || elements > PC__SMALL_ELEMENTS || !is_held(dtype))
        return false;
    for (int k = 0; k < count; k++) {
        const pc_tensor *t = operands[k];
        const int64_t own = pc__count(t->ndim, t->shape);
        const bool line = own == elements && pc__is_contiguous(t);
        if (t->dtype != dtype || (!line && (k == 0 || own != 1)))
            return false;
        void *data = pc__data(t);
        packed &= line && (uintptr_t)data % 16 == 0;
        if (k == 0) {
            call->out = data;
        } else {
            call->in[k - 1] = data;
            call->step[k - 1] = line;
        }
    }
    call->packs = (uint16_t)(packed ? elements / pack : 0);
    call->tail = (uint16_t)(elements - pack * call->packs);
    return true;
}

/* False where the list is of another dtype: the call then goes right behind it. So a call that launches a list is in it
 * or behind it, and nothing of that call is left for later. */
static bool hold(pc__cuda_state *s, const pc__cuda_small_call *call, int dtype)
{
    pc__cuda_small_list *list = &s->small;
    if (list->count && list->dtype != dtype)
        return false;
    if (!list->count)
        s->small_from = atomic_load_explicit(&s->stream->ticket, memory_order_relaxed) + 1;
    list->dtype = dtype;
    list->call[list->count++] = *call;
    if (list->count == PC__SMALL_MOST)
        pc__cuda_small_go(s);
    else
        atomic_store_explicit(&s->has_small, true, memory_order_relaxed);
    return true;
}

bool pc__cuda_small_hold(pc_stream *stream, int function, double number, int count, pc_tensor *const *operands)
{
    pc__cuda_state *s = stream->implementation;
    pc__cuda_small_call call = {.which = (uint8_t)function};
    if (!may_hold(stream, s) || !plan(&call, count, operands))
        return false;
    const pc_dtype dtype = operands[0]->dtype;
    if (pc__is_float(dtype))
        call.number.fraction = number;
    else
        call.number.whole = (uint64_t)(int64_t)number;
    pthread_mutex_lock(&s->lock);
    const bool held = hold(s, &call, (int)dtype);
    pthread_mutex_unlock(&s->lock);
    return held;
}

/* It is told as what fails on the device is. */
static void not_started(pc__cuda_state *s, cudaError_t status)
{
    const pc__cuda_origin *origin = &s->origin[s->small_from % PC__CUDA_WORKS];
    const bool known = origin->ticket == s->small_from;
    char what[PC__SITE_TEXT + 80], site[PC__SITE_TEXT];
    const int n = snprintf(what, sizeof what, "%.40s, queued at %s", known ? origin->name : "a small call",
                           pc__site_text(known ? origin->site : 0, site));
    if (s->small.count > 1 && n > 0 && (size_t)n < sizeof what)
        snprintf(what + n, sizeof what - (size_t)n, " with %d small calls after it", s->small.count - 1);
    pc_error before = pc__error_take();
    (void)pc__cuda_check(status, what);
    pc__cuda_stream_fails(s, s->small_from);
    (void)pc__error_put(&before);
}

void pc__cuda_small_go(pc__cuda_state *s)
{
    if (!s->small.count)
        return;
    const int early = pc__cuda_devices[s->stream->device.index].early;
    const cudaError_t status = pc__cuda_small_start(s->own, early, &s->small);
    if (status != cudaSuccess)
        not_started(s, status);
    s->small.count = 0;
    atomic_store_explicit(&s->has_small, false, memory_order_release);
}
