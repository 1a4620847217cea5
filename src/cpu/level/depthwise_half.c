/* depthwise_half.c: convolutions of each channel alone of 16-bit numbers, channels last. Numbers become float32 in registers, PC__HALVES
 * channels at once in the order that halves.h takes them in, which weights and sums have too: where each number is under few
 * taps, to write it as float32 first would take longer than all else. */
#include "cpu/level/depthwise.h"
#include "cpu/level/halves.h"

#include "base/parallel.h"

#if DEPTHWISE_HALVES
enum {
    N = PC__HALVES,
    COLUMNS = 4,
    SLIDE_COLUMNS = PC__VECTOR_REGISTERS == 32 ? 8 : 3,
    SLIDE_MOST = PC__VECTOR_REGISTERS == 32 ? 7 : 3,
};

/* Columns of y that share what their windows have in common: as many as leave registers for the weights of a row. */
#define SLIDE(taps) ((taps) == 7 ? 6 : SLIDE_COLUMNS)

typedef struct lone {
    const pc__grouped *s;
    const pc_bf16 *x;
    const float *packed, *bias; /* packed[block][tap][N], bias[block][N] */
    pc_bf16 *y;
    int64_t first, end; /* columns whose windows lie within x */
    bool slides;
    int64_t lots; /* columns that many apart are done together: as many as taps are apart, where they slide */
} lone;

/* The taps of a window that lie within x, and the first one of all. */
typedef struct window {
    int64_t top, left, from_row, end_row, from, end;
} window;

INLINE void take(vec *to, const pc_bf16 *from, const bool is_f16)
{
    if (is_f16)
        pc__take_f16((float *)to, (const pc_f16 *)from);
    else
        pc__take_bf16((float *)to, from);
}

INLINE void put(pc_bf16 *to, const vec *from, const bool is_f16)
{
    if (is_f16)
        pc__put_f16((pc_f16 *)to, (const float *)from);
    else
        pc__put_bf16(to, (const float *)from);
}

/* `many` columns of y, whose windows have these taps; image and y at the block's first channel. */
INLINE void columns_run(const lone *d, const window *in, const pc_bf16 *image, const float *packed, const float *bias,
                        pc_bf16 *y, const int many, const bool is_f16)
{
    const pc__grouped *s = d->s;
    const int64_t apart = d->lots * s->c, next = s->sw * apart, tap = s->dw * s->c;
    vec sum[COLUMNS][2];
    UNROLL for (int i = 0; i < many; i++) sum[i][0] = LOAD(bias), sum[i][1] = LOAD(bias + W);
    for (int64_t r = in->from_row; r < in->end_row; r++) {
        const float *weight = packed + (r * s->kw + in->from) * N;
        const pc_bf16 *at = image + ((in->top + r * s->dh) * s->w + in->left + in->from * s->dw) * s->c;
        for (int64_t k = in->end - in->from; k > 0; k--, weight += N, at += tap) {
            const vec by[2] = {LOAD(weight), LOAD(weight + W)};
            UNROLL for (int i = 0; i < many; i++)
            {
                vec x[2];
                take(x, at + i * next, is_f16);
                sum[i][0] += x[0] * by[0], sum[i][1] += x[1] * by[1];
            }
        }
    }
    UNROLL for (int i = 0; i < many; i++) put(y + i * apart, sum[i], is_f16);
}

/* The same of `many` columns as far apart as their taps, without a stride: what they share of a row is taken once. */
INLINE void slide_run(const lone *d, const window *in, const pc_bf16 *image, const float *packed, const float *bias,
                      pc_bf16 *y, const int taps, const int many, const bool is_f16)
{
    const pc__grouped *s = d->s;
    const int64_t apart = d->lots * s->c;
    vec sum[SLIDE_COLUMNS][2];
    UNROLL for (int i = 0; i < many; i++) sum[i][0] = LOAD(bias), sum[i][1] = LOAD(bias + W);
    for (int64_t r = in->from_row; r < in->end_row; r++) {
        const float *weight = packed + r * taps * N;
        const pc_bf16 *at = image + ((in->top + r * s->dh) * s->w + in->left) * s->c;
        vec by[SLIDE_MOST][2];
        UNROLL for (int k = 0; k < taps; k++) by[k][0] = LOAD(weight + k * N), by[k][1] = LOAD(weight + k * N + W);
        UNROLL for (int j = 0; j < many + taps - 1; j++)
        {
            vec x[2];
            take(x, at + j * apart, is_f16);
            UNROLL for (int k = 0; k < taps; k++) if (j >= k && j - k < many)
            {
                sum[j - k][0] += x[0] * by[k][0];
                sum[j - k][1] += x[1] * by[k][1];
            }
        }
    }
    UNROLL for (int i = 0; i < many; i++) put(y + i * apart, sum[i], is_f16);
}

INLINE void some_columns(const lone *d, const window *in, const pc_bf16 *image, const float *packed, const float *bias,
                         pc_bf16 *y, int64_t many, const bool is_f16)
{
    if (many == 1)
        columns_run(d, in, image, packed, bias, y, 1, is_f16);
    else if (!d->slides)
        columns_run(d, in, image, packed, bias, y, COLUMNS, is_f16);
    else if (d->s->kw == 3)
        slide_run(d, in, image, packed, bias, y, 3, SLIDE(3), is_f16);
#if PC__VECTOR_REGISTERS == 32
    else if (d->s->kw == 5)
        slide_run(d, in, image, packed, bias, y, 5, SLIDE(5), is_f16);
    else
        slide_run(d, in, image, packed, bias, y, 7, SLIDE(7), is_f16);
#endif
}

/* Of so many columns those of a lot. */
static inline int64_t in_lot(const lone *d, int64_t lot, int64_t columns)
{
    return d->lots == 1 ? columns : columns > lot ? (columns - lot + d->lots - 1) / d->lots : 0;
}

/* A lot of a row of a block. Where fewer columns than go together are left, some of those before are done once more. */
INLINE void lot_run(const lone *d, window *in, const pc_bf16 *image, const float *packed, const float *bias, pc_bf16 *y,
                    int64_t lot, const bool is_f16)
{
    const pc__grouped *s = d->s;
    const int64_t together = d->slides ? SLIDE(s->kw) : COLUMNS;
    const int64_t count = in_lot(d, lot, s->ow), first = in_lot(d, lot, d->first), end = in_lot(d, lot, d->end);
    for (int64_t i = 0, many; i < count; i += many) {
        const bool inner = i >= first && i < end;
        many = inner && end - first >= together && 2 * (end - i) > together ? together : 1;
        i = inner ? PC__MIN(i, end - many) : i;
        const int64_t q = lot + i * d->lots;
        in->left = q * s->sw - s->pw;
        pc__taps_within(in->left, s->w, s->dw, s->kw, &in->from, &in->end);
        some_columns(d, in, image, packed, bias, y + q * s->c, many, is_f16);
    }
}

/* Where a block of channels begins: the last one lies over the one before. */
static int64_t channel_of(const pc__grouped *s, int64_t block)
{
    return PC__MIN(block * N, s->c - N);
}

static void row_run(void *context, int64_t task)
{
    const lone *d = context;
    const pc__grouped *s = d->s;
    const pc_bf16 *image = d->x + task / s->oh * s->h * s->w * s->c;
    pc_bf16 *y = d->y + task * s->ow * s->c;
    window in = {.top = task % s->oh * s->sh - s->ph};
    pc__taps_within(in.top, s->h, s->dh, s->kh, &in.from_row, &in.end_row);
    for (int64_t b = 0; b * N < s->c; b++) {
        const int64_t c = channel_of(s, b);
        const float *packed = d->packed + b * s->kh * s->kw * N, *bias = d->bias + b * N;
        for (int64_t lot = 0; lot < PC__MIN(d->lots, s->ow); lot++)
            if (s->is_f16)
                lot_run(d, &in, image + c, packed, bias, y + c, lot, true);
            else
                lot_run(d, &in, image + c, packed, bias, y + c, lot, false);
    }
}

int64_t PC__R(depthwise_halves_packed)(const pc__grouped *s)
{
    return (s->kh * s->kw + 1) * ((s->c + N - 1) / N) * N;
}

void PC__R(depthwise_halves_pack)(const pc__grouped *s, const void *weights, bool turned, const void *biases, float *to)
{
    const pc_bf16 *weight = weights, *bias = biases;
    const int64_t taps = s->kh * s->kw, blocks = (s->c + N - 1) / N;
    float *sums = to + taps * blocks * N;
    for (int64_t b = 0; b < blocks; b++) {
        const int64_t c = channel_of(s, b);
        for (int64_t k = 0; k < taps; k++) {
            pc_bf16 some[N];
            vec both[2];
            for (int i = 0; i < N; i++)
                some[i] = weight[(c + i) * taps + (turned ? taps - 1 - k : k)];
            take(both, some, s->is_f16);
            memcpy(to + (b * taps + k) * N, both, sizeof both);
        }
        vec both[2] = {{0}};
        if (bias)
            take(both, bias + c, s->is_f16);
        memcpy(sums + b * N, both, sizeof both);
    }
}

void PC__R(depthwise_halves_rows)(const pc__grouped *s, const void *x, const float *packed, void *y)
{
    const int64_t taps = s->kh * s->kw, blocks = (s->c + N - 1) / N, room = s->w - 1 - (s->kw - 1) * s->dw + s->pw;
    lone d = {.s = s, .x = x, .packed = packed, .bias = packed + taps * blocks * N, .y = y};
    d.first = s->pw <= 0 ? 0 : PC__MIN((s->pw + s->sw - 1) / s->sw, s->ow);
    d.end = room < 0 ? d.first : PC__MAX(PC__MIN(room / s->sw + 1, s->ow), d.first);
    d.slides = s->sw == 1 && (s->kw == 3 || s->kw == 5 || s->kw == 7) && s->kw <= SLIDE_MOST &&
               d.end - d.first >= SLIDE(s->kw) * s->dw;
    d.lots = d.slides ? s->dw : 1;
    pc__parallel(pc__threads(8 * s->n * s->oh * s->ow * s->c * taps), s->n * s->oh, row_run, &d);
}

pc_status PC__R(depthwise_halves)(const pc__grouped *s, const void *x, const void *weight, bool turned,
                                  const void *bias, void *y)
{
    float *packed = pc__alloc_aligned((size_t)PC__R(depthwise_halves_packed)(s) * sizeof *packed, 64);
    if (!packed)
        return PC_ERR_MEMORY;
    PC__R(depthwise_halves_pack)(s, weight, turned, bias, packed);
    PC__R(depthwise_halves_rows)(s, x, packed, y);
    pc__free(packed);
    return PC_OK;
}
#endif
