/* reduce_order.c: in which order a reduction goes over its tensor, and whether kernels read it where it lies. */
#include "ops/reduce_order.h"

#include "ops/view.h"
#include "tensor/read.h"

unsigned pc__reduce_ones_of(const pc_tensor *t)
{
    unsigned ones = 0;
    for (int i = 0; i < t->ndim && i < PC_MAX_DIMS; i++)
        ones |= (unsigned)(t->shape[i] == 1) << i;
    return ones;
}

unsigned pc__reduce_longest_run(const pc_tensor *t, unsigned mask)
{
    unsigned best = 0, run = 0;
    int64_t most = -1, count = 1;
    for (int i = 0; i <= t->ndim; i++) {
        if (i < t->ndim && (mask >> i & 1 || t->shape[i] == 1)) {
            run |= 1u << i;
            count *= t->shape[i];
            continue;
        }
        if (run & mask && count > most)
            best = run, most = count;
        run = 0, count = 1;
    }
    return best | (mask & pc__reduce_ones_of(t));
}

bool pc__reduce_is_run(const pc_tensor *t, unsigned mask)
{
    return (pc__reduce_longest_run(t, mask) & mask) == mask;
}

enum { FEW_NUMBERS = 65536 }; /* a sum of so many takes the launch, whatever their order */

/* How the dimensions that are reduced, and those that are kept, lie in memory. */
typedef struct lie {
    int64_t reduced, results; /* elements of each */
    int runs;                 /* reduced dimensions, those that are one to memory counted once */
    int64_t step;             /* of the last one */
    int64_t least, beside;    /* strides of what is kept: the smallest, and that of the last one */
} lie;

static lie lie_of(const pc_tensor *t, unsigned mask)
{
    lie l = {.reduced = 1, .results = 1, .least = INT64_MAX};
    int64_t next = 0; /* the stride of a dimension that goes on with this run */
    for (int d = t->ndim - 1; d >= 0; d--) {
        const int64_t stride = t->strides[d];
        if (t->shape[d] == 1)
            continue;
        if (mask >> d & 1) {
            l.runs += !l.runs || stride != next;
            l.step = l.reduced == 1 ? stride : l.step;
            next = stride * t->shape[d];
            l.reduced *= t->shape[d];
        } else {
            l.beside = l.least == INT64_MAX ? stride : l.beside;
            l.least = PC__MIN(l.least, stride);
            l.results *= t->shape[d];
        }
    }
    return l;
}

/* Whether CUDA reduces t to maxima, norms and the like with its gaps: what is reduced is one dimension to memory, and is long and alone, or
 * short and not side by side, in no case where that would be slow. Extremes have results side by side in a block (with_gaps() of
 * cuda/reduce/short.c), of which there must be enough for the chip. */
static bool takes_gaps(const pc_tensor *t, unsigned mask, pc__gaps gaps)
{
    enum { LONG = 4096, FEW = 1 << 18, MANY = 32768 };
    if (t->storage->device.type != PC_CUDA || !pc__reduce_is_run(t, mask))
        return false;
    const lie l = lie_of(t, mask);
    if (l.runs > 1 || l.results > INT32_MAX / 32 || l.reduced > INT32_MAX / 512)
        return false;
    if (l.step <= l.least)
        return l.reduced <= LONG || l.results >= LONG;
    const bool beside = gaps == PC__GAPS_EXTREMES && l.beside == l.least && l.results >= LONG;
    return beside || l.results >= MANY || l.reduced * l.results <= FEW;
}

/* Whether CUDA sums a view, what is reduced last, with its gaps: neighbours in memory are of one result, or are those of
 * neighbouring results, or all is so little that the order is as good as any. Results that are few it has in parts. */
static bool sums_gaps(const pc_tensor *t, unsigned mask)
{
    enum { RUNS = 3, LONG = 4096 };
    const lie l = lie_of(t, mask);
    if (l.runs > RUNS || l.results > INT32_MAX / 32 || l.reduced > INT32_MAX / (l.results < LONG ? 2 : 512))
        return false;
    return l.reduced * l.results <= FEW_NUMBERS || l.step <= l.least || l.beside == l.least;
}

/* Dimensions before d that are one to memory, all in the mask or none, the last with stride `next` (0: any): those of more than one
 * element into *found, how many elements into *count. The next dimension. */
static int take_merged(const pc_tensor *t, int d, bool in, unsigned mask, int64_t next, unsigned *found, int64_t *count)
{
    for (*found = 0, *count = 1; d >= 0; d--) {
        if (t->shape[d] == 1)
            continue;
        if ((bool)(mask >> d & 1) != in || (next && t->strides[d] != next))
            break;
        next = t->strides[d] * t->shape[d];
        *found |= 1u << d;
        *count *= t->shape[d];
    }
    return d;
}

unsigned pc__reduce_gapped_run(const pc_tensor *t, unsigned mask)
{
    /* Shorter ones are turned, and copied for it; of 16 bits a copy is half of the work. */
    const int64_t row = pc__is_half((pc_dtype)t->dtype) ? 256 : 48, columns = 16;
    unsigned run, kept;
    int64_t count;
    if (t->storage->device.type == PC_CUDA || pc__is_dense(t) || !pc__count(t->ndim, t->shape))
        return 0;
    const int d = take_merged(t, t->ndim - 1, false, mask, 1, &kept, &count);
    if (!kept)
        take_merged(t, t->ndim - 1, true, mask, 1, &run, &count);
    if (count < (kept ? columns : row))
        return 0;
    if (kept)
        take_merged(t, d, true, mask, 0, &run, &count);
    return run ? run | (mask & pc__reduce_ones_of(t)) : 0;
}

/* What is reduced behind what is kept, the largest steps first: then it may be one dimension to memory. */
static pc_tensor *reduced_last(pc_tensor *t, unsigned *mask)
{
    pc_shape by = {.ndim = t->ndim};
    int kept = 0, all;
    for (int d = 0; d < t->ndim; d++)
        if (!(*mask >> d & 1))
            by.dim[kept++] = d;
    all = kept;
    for (int d = 0; d < t->ndim; d++) {
        if (!(*mask >> d & 1))
            continue;
        int at = all++;
        for (; at > kept && t->strides[by.dim[at - 1]] < t->strides[d]; at--)
            by.dim[at] = by.dim[at - 1];
        by.dim[at] = d;
    }
    *mask = ((1u << all) - 1) & ~((1u << kept) - 1);
    return pc_permute(t, by);
}

/* A sum that CUDA makes of t where it lies: with gaps, or of so few numbers that any order is as good. NULL: it is not. */
static pc_tensor *where_it_lies(pc_tensor *t, unsigned *mask)
{
    if (t->storage->device.type != PC_CUDA || (pc__reduce_is_run(t, *mask) && pc__is_contiguous(t)) ||
        (pc__is_dense(t) && pc__count(t->ndim, t->shape) > FEW_NUMBERS))
        return NULL;
    unsigned gone = *mask;
    pc_tensor *view = reduced_last(t, &gone);
    if (!view || !sums_gaps(view, gone))
        return NULL;
    *mask = gone;
    return view;
}

static void set_own_order(const pc_tensor *t, pc_shape *order)
{
    *order = (pc_shape){.ndim = t ? t->ndim : 0};
    for (int i = 0; i < order->ndim; i++)
        order->dim[i] = i;
}

/* Whether what is kept comes in its own order, where dimension i is order->dim[i] of t. */
static bool keeps_order(const pc_tensor *t, unsigned mask, const pc_shape *order)
{
    int64_t last = -1;
    for (int i = 0; i < order->ndim; i++) {
        const int64_t d = order->dim[i];
        if (mask >> d & 1 || t->shape[d] == 1)
            continue;
        if (d < last)
            return false;
        last = d;
    }
    return true;
}

pc_tensor *pc__reduce_in_memory_order(pc_tensor *t, unsigned *mask, pc__gaps gaps, pc_shape *order)
{
    set_own_order(t, order);
    pc_tensor *lies = t && gaps == PC__GAPS_SUMS ? where_it_lies(t, mask) : NULL;
    if (lies)
        return lies;
    if (t && gaps != PC__GAPS_SUMS && !pc__is_dense(t) && takes_gaps(t, *mask, gaps))
        return t;
    if (t && gaps == PC__GAPS_SUMS && pc__reduce_gapped_run(t, *mask))
        return t;
    if (!t || pc__is_contiguous(t) || !pc__is_dense(t))
        return pc_contiguous(t);
    *order = pc__dims_by_stride(t);
    /* Of few numbers it takes longer to put results in order than to read what they are of as it lies. */
    if (gaps != PC__GAPS_SUMS && pc__count(t->ndim, t->shape) <= FEW_NUMBERS && !keeps_order(t, *mask, order) &&
        takes_gaps(t, *mask, gaps)) {
        set_own_order(t, order);
        return t;
    }
    unsigned turned = 0;
    for (int i = 0; i < t->ndim; i++)
        turned |= (*mask >> order->dim[i] & 1) << i;
    *mask = turned;
    return pc_contiguous(pc_permute(t, *order));
}

pc_tensor *pc__reduce_as_run(pc_tensor *t, unsigned *mask, pc__gaps gaps, pc_shape *order)
{
    t = pc__reduce_in_memory_order(t, mask, gaps, order);
    if (!t || pc__reduce_is_run(t, *mask))
        return t;
    pc_shape by = {.ndim = t->ndim}, now = *order;
    int kept = 0, all = t->ndim - __builtin_popcount(*mask);
    for (int d = 0; d < t->ndim; d++)
        by.dim[*mask >> d & 1 ? all++ : kept++] = d;
    for (int d = 0; d < t->ndim; d++)
        order->dim[d] = now.dim[by.dim[d]];
    *mask = ((1u << all) - 1) & ~((1u << kept) - 1);
    return pc_contiguous(pc_permute(t, by));
}

pc_tensor *pc__reduce_in_own_order(pc_tensor *t, unsigned mask, bool keepdim, const pc_shape *order)
{
    pc_shape back = {0};
    bool same = true;
    for (int d = 0; d < order->ndim && t; d++)
        for (int i = 0, at = 0; i < order->ndim; i++) {
            const bool there = keepdim || !(mask >> i & 1);
            if (there && order->dim[i] == d) {
                same = same && at == back.ndim;
                back.dim[back.ndim++] = at;
            }
            at += there;
        }
    return !t || same ? t : pc_contiguous(pc_permute(t, back));
}
