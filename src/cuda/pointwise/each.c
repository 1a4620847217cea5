/* each.c: merging dimensions, cutting what is too large for 32 bits, choosing the width of accesses. */
#include "cuda/pointwise/each.h"

#include "cuda/shared/divisor.h"
#include "ops/table.h"

typedef struct loop {
    int operands, ndim;
    int64_t few; /* elements, for each of which there is a thread */
    char *data[PC__CUDA_OPERANDS];
    size_t size[PC__CUDA_OPERANDS]; /* bytes of an element */
    int64_t shape[PC_MAX_DIMS];
    int64_t strides[PC__CUDA_OPERANDS][PC_MAX_DIMS]; /* in elements; 0 where an operand repeats */
} loop;

/* What stays the same over the pieces of one call. */
typedef struct launching {
    pc__cuda_launcher launcher;
    const void *context;
    pc__cuda_launch *launch;
} launching;

pc_status pc__cuda_takes(const pc_call *call, unsigned dtypes)
{
    pc_dtype dtype = call->in[0]->dtype;
    if (dtypes & PC__BIT(dtype))
        return PC_OK;
    return pc__fail(PC_ERR_DTYPE, "%s has no kernel for %s on CUDA; pc_cast to another dtype", call->op->name,
                    pc_dtype_name(dtype));
}

/* Of an element, in additions, where C's functions compute it; 16-bit numbers have brief ones. */
static int cost_of(const pc_call *call, pc_dtype dtype)
{
    if (pc__is_half(dtype))
        return 1;
    switch (call->op->index) {
#define PC__FUNCTION(name, dtypes, cost, saves, autocast, f, derivative)                                               \
    case PC__OP_##name:                                                                                                \
        return cost;
#define PC__UNARY(name, dtypes, cost, flags, f) PC__FUNCTION(name, dtypes, cost, 0, 0, f, 0)
#define PC__BINARY(name, dtypes, cost, flags, f) PC__FUNCTION(name, dtypes, cost, 0, 0, f, 0)
#define PC__PARAMETRIC(name, cost, f) PC__FUNCTION(name, 0, cost, 0, 0, f, 0)
#include "ops/pointwise.def"
    default:
        return 1;
    }
}

/* So few elements that a thread for each takes less time than packs, whose elements a thread computes one after the other. */
static int64_t few_of(const pc_call *call, pc_dtype dtype)
{
    enum { FEW = 8192 };
    return cost_of(call, dtype) >= PC__CUDA_SLOW ? PC__CUDA_FEW_SLOW : FEW;
}

static void swap_dims(loop *l, int a, int b)
{
    int64_t t = l->shape[a];
    l->shape[a] = l->shape[b], l->shape[b] = t;
    for (int k = 0; k < l->operands; k++) {
        t = l->strides[k][a];
        l->strides[k][a] = l->strides[k][b], l->strides[k][b] = t;
    }
}

/* The output's smallest stride goes innermost: neighbouring threads then write neighbouring memory. */
static void sort_dims(loop *l)
{
    for (int i = 1; i < l->ndim; i++)
        for (int j = i; j > 0 && l->strides[0][j] > l->strides[0][j - 1]; j--)
            swap_dims(l, j, j - 1);
}

static bool mergeable(const loop *l, int outer, int inner)
{
    for (int k = 0; k < l->operands; k++)
        if (l->strides[k][outer] != l->strides[k][inner] * l->shape[inner])
            return false;
    return true;
}

static void merge_dims(loop *l)
{
    int kept = 0;
    for (int i = 1; i < l->ndim; i++) {
        if (mergeable(l, kept, i)) {
            l->shape[kept] *= l->shape[i];
        } else {
            kept++;
            l->shape[kept] = l->shape[i];
        }
        for (int k = 0; k < l->operands; k++)
            l->strides[k][kept] = l->strides[k][i];
    }
    l->ndim = kept + 1;
}

static void make(loop *l, int count, pc_tensor *const *operands)
{
    const pc_tensor *out = operands[0];
    l->operands = count;
    l->ndim = 0;
    for (int k = 0; k < count; k++) {
        l->data[k] = pc__data(operands[k]);
        l->size[k] = pc_dtype_size(operands[k]->dtype);
    }
    for (int i = 0; i < out->ndim; i++) {
        if (out->shape[i] == 1)
            continue;
        int d = l->ndim++;
        l->shape[d] = out->shape[i];
        for (int k = 0; k < count; k++) {
            const pc_tensor *t = operands[k];
            int own = i - (out->ndim - t->ndim);
            l->strides[k][d] = own < 0 || t->shape[own] == 1 ? 0 : t->strides[own];
        }
    }
    if (l->ndim == 0) {
        l->ndim = 1;
        l->shape[0] = 1;
        for (int k = 0; k < count; k++)
            l->strides[k][0] = 1;
    }
    sort_dims(l);
    merge_dims(l);
}

static int64_t pack_for(size_t widest)
{
    return PC__MIN((int64_t)(16 / widest), PC__CUDA_PACK);
}

/* Whether operand k's packs of n do not all lie on whole packs: it is read element by element. */
static bool is_askew(const loop *l, int k, int64_t n)
{
    bool askew = (uintptr_t)l->data[k] % ((size_t)n * l->size[k]) != 0;
    for (int d = 0; d < l->ndim - 1; d++)
        askew |= l->strides[k][d] % n != 0;
    return askew && l->strides[k][l->ndim - 1] == 1;
}

/* How many elements make a pack, or 1 where 16-byte accesses would cross rows, or the result's be misaligned, or are few: packs
 * of which a thread reads an operand element by element pay where there are threads enough. */
static int64_t pack_of(const loop *l)
{
    enum { FEW_ASKEW = 1 << 17 };
    size_t widest = 1;
    for (int k = 0; k < l->operands; k++)
        widest = PC__MAX(widest, l->size[k]);
    const int64_t n = pack_for(widest), elements = pc__count(l->ndim, l->shape);
    const int last = l->ndim - 1;
    if (elements <= l->few || l->shape[last] < n || (l->ndim > 1 && l->shape[last] % n) || l->strides[0][last] != 1 ||
        is_askew(l, 0, n))
        return 1;
    for (int k = 0; k < l->operands; k++)
        if (l->strides[k][last] > 1 || (elements <= FEW_ASKEW && is_askew(l, k, n)))
            return 1;
    return n;
}

static void divide_by(pc__cuda_walk *w, int d)
{
    const pc__cuda_divisor by = pc__cuda_divisor_of(w->shape[d]);
    w->magic[d] = by.magic, w->shift[d] = (uint8_t)by.shift;
}

static void launch_one(const loop *l, const launching *a)
{
    pc__cuda_walk *w = &a->launch->walk;
    const int64_t n = pack_of(l);
    const int last = l->ndim - 1;
    a->launch->packed = n > 1;
    w->ndim = l->ndim;
    w->splat = w->askew = 0;
    w->tail = (uint32_t)(l->shape[last] % n); /* 0 with several dimensions */
    w->count = 1;
    for (int d = 0; d < l->ndim; d++) {
        w->shape[d] = (uint32_t)(d == last ? l->shape[d] / n : l->shape[d]);
        w->count *= w->shape[d];
        if (d > 0) /* what is left for dimension 0 is its coordinate */
            divide_by(w, d);
    }
    for (int k = 0; k < l->operands; k++) {
        w->data[k] = l->data[k];
        for (int d = 0; d < l->ndim; d++)
            w->strides[k][d] = (uint32_t)(d == last ? l->strides[k][d] * n : l->strides[k][d]);
        w->splat |= (unsigned)(l->strides[k][last] == 0) << k;
        w->askew |= (unsigned)(n > 1 && is_askew(l, k, n)) << k;
    }
    a->launch->flat = n > 1 && l->ndim == 1 && !w->splat && !w->askew;
    a->launcher(a->launch, a->context);
}

/* Elements from an operand's first to its last along dimension d. */
static int64_t reach(const loop *l, int k, int d)
{
    return (l->shape[d] - 1) * l->strides[k][d];
}

static bool small(const loop *l)
{
    const int64_t limit = INT32_MAX / 2;
    for (int k = 0; k < l->operands; k++) {
        int64_t sum = 0;
        for (int d = 0; d < l->ndim; d++)
            sum += reach(l, k, d);
        if (sum > limit)
            return false;
    }
    return pc__count(l->ndim, l->shape) <= limit;
}

static int longest(const loop *l)
{
    int best = 0;
    int64_t most = -1;
    for (int d = 0; d < l->ndim; d++)
        for (int k = 0; k < l->operands; k++)
            if (l->shape[d] > 1 && reach(l, k, d) > most)
                most = reach(l, k, d), best = d;
    return best;
}

/* Halves along the longest way until 32 bits are enough; a cut at a multiple of 16 elements keeps packs aligned. */
static void launch_pieces(const loop *l, const launching *a)
{
    if (small(l)) {
        launch_one(l, a);
        return;
    }
    const int d = longest(l);
    int64_t half = l->shape[d] / 2;
    half = half >= 16 ? half / 16 * 16 : half;
    loop part = *l;
    part.shape[d] = half;
    launch_pieces(&part, a);
    part.shape[d] = l->shape[d] - half;
    for (int k = 0; k < l->operands; k++)
        part.data[k] += half * l->strides[k][d] * (int64_t)l->size[k];
    launch_pieces(&part, a);
}

/* What most calls are, planned without a loop: operands of one shape in C order, packs that lie where they must. */
static bool is_line(int count, pc_tensor *const *operands, int64_t elements, int64_t few, pc__cuda_launch *launch)
{
    pc__cuda_walk *w = &launch->walk;
    size_t size[PC__CUDA_OPERANDS], widest = 1;
    for (int k = 0; k < count; k++) {
        if ((k > 0 && !pc__same_shape(operands[k], operands[0])) || !pc__is_contiguous(operands[k]))
            return false;
        size[k] = pc_dtype_size(operands[k]->dtype);
        widest = PC__MAX(widest, size[k]);
        w->data[k] = pc__data(operands[k]);
    }
    const int64_t n = pack_for(widest), packs = elements <= few ? 0 : elements / n;
    if (elements > INT32_MAX / 2)
        return false;
    for (int k = 0; k < count; k++)
        if (packs && (uintptr_t)w->data[k] % ((size_t)n * size[k]))
            return false;
    w->count = (uint32_t)packs;
    w->tail = (uint32_t)(elements - packs * n);
    launch->packed = launch->flat = true;
    return true;
}

pc_status pc__cuda_each(pc_stream *stream, const pc_call *call, int count, pc_tensor *const *operands,
                        pc__cuda_launcher launcher, const void *context)
{
    const int64_t elements = pc__count(operands[0]->ndim, operands[0]->shape);
    if (elements == 0)
        return PC_OK;
    const int64_t few = few_of(call, operands[0]->dtype);
    pc__cuda_launch launch;
    launch.inputs = count - 1;
    launch.queue = pc__cuda_queue(stream);
    launch.multiprocessors = pc__cuda_multiprocessors(stream);
    launch.early = pc__cuda_early(stream);
    cudaError_t launched = cudaSuccess;
    launch.status = &launched;
    if (is_line(count, operands, elements, few, &launch)) {
        launcher(&launch, context);
    } else {
        loop l = {.few = few};
        make(&l, count, operands);
        launch_pieces(&l, &(launching){launcher, context, &launch});
    }
    return pc__cuda_check(launched, call->op->name);
}
