/* short.c: which reductions short.cuh does, and how. */
#include "cuda/reduce/short.h"

#include "cuda/pointwise/each.h"

enum { WARP = 32 };

/* Thread groups for n elements of a result, 8 a thread; more than a warp where results are too few to fill the device. */
static int lanes_for(int64_t n, int64_t results)
{
    enum { FULL = 65536 /* threads */ };
    int lanes = 1;
    while (lanes * 8 < n && (lanes < WARP || (lanes < PC__SHORT_LANES && results * lanes < FULL)))
        lanes *= 2;
    return lanes;
}

/* Another dimension of what is kept, which takes a division to find its way in where it is not the first. */
static void keep(pc__cuda_short *s, int64_t size, int64_t stride)
{
    if (size == 1)
        return;
    s->size[s->dims] = (unsigned)size;
    s->stride[s->dims++] = stride;
}

/* Another of the dimensions that are reduced, outside of those that were there: one with them where memory says so. */
static void fold(pc__cuda_short *s, int64_t *length, int64_t size, int64_t stride)
{
    const int64_t inner = s->folds ? s->above[s->folds - 1] : s->step;
    if (*length > 1 && stride != inner * *length) {
        s->fold[s->folds] = (unsigned)*length;
        s->above[s->folds++] = stride;
        *length = size;
        return;
    }
    s->step = *length == 1 && !s->folds ? stride : s->step;
    *length *= size;
}

/* An input with gaps (ops/reduce.c says which): its reduced dimensions are one to memory, or for sums up to three. */
static pc__cuda_short with_gaps(const pc__reduce_attributes *a, const pc_tensor *t, bool side_by_side)
{
    enum { MANY = 65536, BLOCK = 128 };
    pc__cuda_short s = {.n = (int)a->reduced, .step = 1, .parts = 1};
    const int64_t results = a->outer * a->inner;
    int64_t least = INT64_MAX, beside = 0, length = 1;
    for (int d = 0; d < t->ndim; d++) {
        if (t->shape[d] == 1 || a->kept_shape[d] == 1)
            continue;
        beside = t->strides[d];
        least = PC__MIN(least, beside);
        keep(&s, t->shape[d], t->strides[d]);
    }
    for (int d = t->ndim - 1; d >= 0; d--)
        if (t->shape[d] > 1 && a->kept_shape[d] == 1)
            fold(&s, &length, t->shape[d], t->strides[d]);
    s.lanes = s.step > least && results >= (side_by_side ? MANY : MANY / 2) ? 1 : lanes_for(s.n, results);
    if (side_by_side && s.step > least && beside == least && results < MANY && results > 1) {
        s.lanes = PC__MIN(s.lanes, PC__SHORT_LANES / WARP);
        for (s.across = 2; s.across < results && s.across < PC__MAX(WARP, BLOCK / s.lanes); s.across *= 2)
            ;
    }
    return s;
}

/* Sums along the middle of many [reduced][inner], both small: columns of a block (plan.h) would be few, and blocks many. */
static bool is_narrow(const pc__reduce_attributes *a, size_t element_bytes, int pack)
{
    enum { LINES = 256 /* bytes of a row */, ROWS = 256, SINGLES = 16384 /* accesses, each with a thread there */ };
    return a->inner > 1 && a->inner * (int64_t)element_bytes <= LINES && a->reduced <= ROWS &&
           a->outer * a->inner / pack < SINGLES;
}

/* Whether a result's few elements go to a thread, or to some that have a few each: `pack` of them are an access where that
 * is possible. */
static bool is_short(const pc__reduce_attributes *a, size_t element_bytes, int pack, bool sums)
{
    enum { SHORT = 64, LONGER = 512 /* of maxima with their places */, FEW = 65536, MANY = 32768 };
    const int64_t results = a->outer * a->inner;
    if (results > INT32_MAX / 32)
        return false;
    if (sums && is_narrow(a, element_bytes, pack))
        return true;
    if (a->reduced > (sums ? SHORT : LONGER))
        return false;
    if (results * a->reduced <= FEW)
        return true;
    if (a->reduced > SHORT)
        return false;
    return a->inner == 1 ? pack == 1 || a->reduced < 4 * pack : pack == 1 && (a->reduced <= 8 || results >= MANY);
}

/* Along the middle of [outer][reduced][inner] without gaps. */
static pc__cuda_short without_gaps(const pc__reduce_attributes *a)
{
    enum { FULL = 32768 /* threads */, MOST = 4 };
    pc__cuda_short s = {.n = (int)a->reduced, .step = a->inner, .parts = 1, .lanes = 1};
    const int64_t results = a->outer * a->inner;
    if (a->inner == 1) {
        keep(&s, a->outer, a->reduced);
        s.lanes = lanes_for(s.n, results);
        return s;
    }
    keep(&s, a->outer, a->reduced * a->inner);
    keep(&s, a->inner, 1);
    if (results < FULL / MOST)
        s.lanes = lanes_for(s.n, results);
    while (s.lanes < MOST && s.lanes * 8 < s.n && results * s.lanes < FULL)
        s.lanes *= 2;
    return s;
}

bool pc__cuda_plan_short(pc_stream *stream, const pc__reduce_attributes *a, const pc_tensor *t, int pack,
                         pc__short_kind kind, pc__cuda_short *s)
{
    const bool gaps = !pc__is_contiguous(t);
    if (!gaps && !is_short(a, pc_dtype_size(t->dtype), pack, kind == PC__SHORT_SUMS))
        return false;
    *s = gaps ? with_gaps(a, t, kind != PC__SHORT_OTHERS) : without_gaps(a);
    s->results = (unsigned)(a->outer * a->inner);
    s->divisor = 1;
    s->queue = pc__cuda_queue(stream);
    s->early = pc__cuda_early(stream);
    return true;
}

void pc__cuda_cut_short(pc__cuda_short *s, int64_t reduced)
{
    enum { PIECE = 4096, ACROSS = 512 /* whose results share the block's threads */, PIECES = 4096, TOGETHER = 256 };
    const int64_t most = PC__MIN(PIECES / s->results, pc__cuda_pieces(reduced, s->across ? ACROSS : PIECE));
    if (most < 2)
        return;
    const int64_t piece = pc__cuda_pieces(pc__cuda_pieces(reduced, most), TOGETHER) * TOGETHER;
    s->whole = reduced;
    s->n = (int)piece;
    s->parts = (unsigned)pc__cuda_pieces(reduced, piece);
    s->results *= s->parts;
    s->lanes = PC__MIN(lanes_for(piece, s->results), s->across ? PC__SHORT_LANES / s->across : PC__SHORT_LANES);
}
