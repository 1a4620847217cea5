/* overlap.c: do two strided views have a byte in common? Their first bytes are `a` and `b`, and byte p of element (i,
 * j,
 * ..) lies at a + i s + j t + .. + p. With b's indices counted from their ends all terms are positive, and the question
 * is whether a sum of bounded multiples of the strides can be one given number. It is answered by trying multiples of
 * the largest stride first; what the smaller ones can still make, by their greatest common divisor and their sum, ends
 * most tries at once. (NumPy's solve_may_share_memory asks the same.) */
#include "tensor/overlap.h"

#include <stdlib.h>

enum { TERMS_MAX = 2 * (PC_MAX_DIMS + 1), TRIES_MAX = 20000 };

typedef struct term {
    int64_t stride, most; /* 0 to `most` times */
} term;

typedef struct sum {
    int count, tries;
    term terms[TERMS_MAX];
    /* Of the terms from i on: */
    int64_t largest[TERMS_MAX + 1]; /* what they can make at most */
    int64_t divisor[TERMS_MAX + 1]; /* which divides all that they make */
    bool full[TERMS_MAX + 1];       /* they make every multiple of it up to that */
} sum;

static void add_term(sum *s, int64_t stride, int64_t most)
{
    if (stride == 0 || most == 0)
        return;
    for (int i = 0; i < s->count; i++)
        if (s->terms[i].stride == stride) {
            s->terms[i].most += most;
            return;
        }
    s->terms[s->count++] = (term){stride, most};
}

static int64_t add_terms(sum *s, const pc_tensor *t)
{
    const int64_t size = (int64_t)pc_dtype_size(t->dtype);
    int64_t last = size - 1;
    add_term(s, 1, size - 1);
    for (int i = 0; i < t->ndim; i++) {
        add_term(s, t->strides[i] * size, t->shape[i] - 1);
        last += t->strides[i] * size * (t->shape[i] - 1);
    }
    return last;
}

static int larger_first(const void *a, const void *b)
{
    const int64_t x = ((const term *)a)->stride, y = ((const term *)b)->stride;
    return x < y ? 1 : x > y ? -1 : 0;
}

static int64_t common_divisor(int64_t a, int64_t b)
{
    while (b) {
        const int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

static void prepare(sum *s)
{
    qsort(s->terms, (size_t)s->count, sizeof s->terms[0], larger_first);
    s->largest[s->count] = s->divisor[s->count] = 0;
    s->full[s->count] = true;
    for (int i = s->count - 1; i >= 0; i--) {
        const term *t = &s->terms[i];
        s->largest[i] = s->largest[i + 1] + t->stride * t->most;
        s->divisor[i] = common_divisor(t->stride, s->divisor[i + 1]);
        s->full[i] = s->full[i + 1] && (i == s->count - 1 || (s->divisor[i] == s->divisor[i + 1] &&
                                                              t->stride <= s->largest[i + 1] + s->divisor[i]));
    }
}

/* Can the terms from i on make `wanted`? */
static bool can_make(sum *s, int i, int64_t wanted)
{
    if (wanted < 0 || wanted > s->largest[i] || (s->divisor[i] ? wanted % s->divisor[i] : wanted) != 0)
        return false;
    if (s->full[i] || ++s->tries > TRIES_MAX)
        return true;
    const term *t = &s->terms[i];
    const int64_t rest = wanted - s->largest[i + 1];
    const int64_t least = rest > 0 ? (rest + t->stride - 1) / t->stride : 0;
    for (int64_t n = PC__MIN(t->most, wanted / t->stride); n >= least; n--)
        if (can_make(s, i + 1, wanted - n * t->stride))
            return true;
    return false;
}

pc__shared pc__overlap(const pc_tensor *a, const pc_tensor *b)
{
    /* Only memory of the program can be in two storages. */
    if (a->storage != b->storage && !(a->storage->foreign && b->storage->foreign))
        return PC__APART;
    if (!pc__count(a->ndim, a->shape) || !pc__count(b->ndim, b->shape))
        return PC__APART;
    const uintptr_t begin_a = (uintptr_t)pc__data(a), begin_b = (uintptr_t)pc__data(b);
    if (begin_a == begin_b && a->dtype == b->dtype && pc__same_places(a, b))
        return PC__SAME_PLACES;
    sum s = {0};
    (void)add_terms(&s, a);
    const int64_t last = add_terms(&s, b);
    prepare(&s);
    return can_make(&s, 0, (int64_t)(begin_b - begin_a) + last) ? PC__CROSSING : PC__APART;
}
