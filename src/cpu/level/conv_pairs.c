/* conv_pairs.c: what goes into the tile of pairs: weights of bfloat16 in pairs along the rows of the kernel, and rows of
 * pictures, and of gradients at them, as they are. */
#include "cpu/level/conv.h"
#include "cpu/level/pairs.h"
#include "cpu/level/turn.h"
#include "base/parallel.h"

/* Weight (output, input, place of the kernel) is weight[output * out + input * channel + place * tap]. */
typedef struct packing {
    const pc__conv *s;
    const pc_bf16 *weight;
    int64_t out, channel, tap;
    int64_t row, depth; /* numbers of a row of the kernel in pairs, of all its rows */
    uint32_t *packed;
    pc_bf16 *rooms; /* per thread: a panel's outputs one by one, [TILE_WIDTH][depth] */
} packing;

static void turned(pc_bf16 *to, int64_t to_row, const pc_bf16 *from, int64_t from_row, int64_t rows, int64_t columns)
{
    pc__turn((char *)to, to_row * 2, (const char *)from, from_row * 2, rows, columns, 2);
}

/* [output][kh][kw][c] of a panel: whichever of its distances is 1 says what is read together. */
static void gather(const packing *p, int64_t first, int64_t count, pc_bf16 *to)
{
    const pc__conv *s = p->s;
    for (int64_t r = 0; r < s->kh; r++, to += p->row) {
        const pc_bf16 *from = p->weight + first * p->out + r * s->kw * p->tap;
        for (int64_t o = 0; o < count; o++) {
            pc_bf16 *row = to + o * p->depth;
            if (p->channel == 1)
                memcpy(row, from + o * p->out, (size_t)(s->kw * s->c) * sizeof *row);
            else if (p->tap == 1)
                turned(row, s->c, from + o * p->out, p->channel, s->c, s->kw);
            else if (p->tap == -1)
                turned(row + (s->kw - 1) * s->c, -s->c, from + o * p->out - (s->kw - 1), p->channel, s->c, s->kw);
            if (p->row > s->kw * s->c)
                row[p->row - 1].bits = 0;
        }
        for (int64_t w = 0; w < s->kw && p->channel != 1 && p->tap * p->tap != 1; w++)
            turned(to + w * s->c, p->depth, from + w * p->tap, p->channel, s->c, count);
    }
}

static void pack_panel(void *context, int64_t panel)
{
    const packing *p = context;
    const int64_t first = panel * TILE_WIDTH, count = PC__MIN(TILE_WIDTH, p->s->o - first), width = round_up(count, W);
    pc_bf16 *room = p->rooms + pc__thread() * TILE_WIDTH * p->depth;
    uint32_t *to = p->packed + first * p->depth / 2;
    if (count < width)
        memset(to, 0, (size_t)(p->depth / 2 * width) * sizeof *to);
    gather(p, first, count, room);
    pc__turn((char *)to, width * 4, (const char *)room, p->depth * 2, count, p->depth / 2, 4);
}

pc_status PC__K(conv2d_pack_pairs)(const pc__conv *s, const void *weight, bool back, uint32_t *packed)
{
    const geometry g = geometry_of(s);
    const int64_t area = s->kh * s->kw, row = round_up(g.run, 2);
    packing p = {.s = s, .weight = weight, .packed = packed, .row = row, .depth = s->kh * row};
    p.out = g.out, p.channel = g.channel, p.tap = g.tap;
    if (back) { /* inputs and outputs exchanged, the kernel turned around */
        p.out = s->weights_last ? 1 : area, p.tap = s->weights_last ? -s->o : -1, p.channel = s->o * area;
        p.weight -= (area - 1) * p.tap;
    }
    const int threads = pc__threads(16 * s->o * p.depth);
    if (!(p.rooms = pc__alloc_aligned((size_t)(threads * TILE_WIDTH * p.depth + 1) * sizeof *p.rooms, 64)))
        return PC_ERR_MEMORY;
    pc__parallel(threads, (s->o + TILE_WIDTH - 1) / TILE_WIDTH, pack_panel, &p);
    pc__free(p.rooms);
    return PC_OK;
}

/* Zero where y, the values of a ReLU, is not above zero, nor NaN. */
static void cut(pc_bf16 *dy, const pc_bf16 *y, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        const uint16_t bits = y[i].bits;
        if ((bits >> 15 || !bits) && (bits & 0x7fff) <= 0x7f80)
            dy[i].bits = 0;
    }
}

/* As copy_padded; `y` are the values of a ReLU, or NULL. */
void PC__K(copy_padded_pairs)(const geometry *g, const pc_bf16 *image, const pc_bf16 *y, int64_t first, int64_t rows,
                              pc_bf16 *out)
{
    const pc__conv *s = g->s;
    const int64_t side = s->pw * s->c, inner = s->w * s->c;
    for (int64_t r = 0; r < rows; r++, out += g->row) {
        const int64_t from = first + r - s->ph;
        if (from < 0 || from >= s->h) {
            memset(out, 0, (size_t)g->row * sizeof *out);
            continue;
        }
        memset(out, 0, (size_t)side * sizeof *out);
        memcpy(out + side, image + from * inner, (size_t)inner * sizeof *out);
        memset(out + side + inner, 0, (size_t)side * sizeof *out);
        if (y)
            cut(out + side, y + from * inner, inner);
    }
}

enum { PIECE = 16384 };

typedef struct cutting {
    const pc_bf16 *dy, *y;
    pc_bf16 *out;
    int64_t n;
} cutting;

static void cut_piece(void *context, int64_t piece)
{
    const cutting *c = context;
    const int64_t from = piece * PIECE, n = PC__MIN(PIECE, c->n - from);
    memcpy(c->out + from, c->dy + from, (size_t)n * sizeof *c->out);
    cut(c->out + from, c->y + from, n);
}

void PC__K(copy_cut_pairs)(const pc_bf16 *dy, const pc_bf16 *y, int64_t n, pc_bf16 *out)
{
    cutting c = {dy, y, out, n};
    pc__parallel(pc__threads(n * 4), (n + PIECE - 1) / PIECE, cut_piece, &c);
}
