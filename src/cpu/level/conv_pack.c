/* conv_pack.c: weights as the tile reads them, [panel of TILE_WIDTH outputs][kh][kw][c][width of the panel], from either
 * order, forward and leading back. Panels are turned by blocks that stay in the cache. */
#include "cpu/level/conv.h"
#include "cpu/level/micro.h"
#include "cpu/level/turn.h"
#include "base/parallel.h"

enum {
    BLOCK = 512 /* weights of an output that are turned at once, about */,
    FAR = 32 /* inputs between a row of a block and the next */
};

typedef struct packing {
    geometry g;
    const void *weight;
    real *packed;
    bool back;
    int64_t step;  /* weights of an output at once */
    real *rooms;   /* 16-bit: TILE_WIDTH x step per thread */
    real *stages;  /* as many for a turned block, where its rows are to lie far apart; or NULL */
    int64_t steps; /* tasks of a panel */
} packing;

/* `rows` outputs or inputs, `columns` weights of each, from element `at`: where they lie, or as reals in the room. */
static const real *rows_of(const packing *p, int64_t at, int64_t rows, int64_t columns, int64_t *distance)
{
    real *room = p->rooms + pc__thread() * TILE_WIDTH * p->step;
    if (!p->g.s->half)
        return (const real *)p->weight + at;
    for (int64_t i = 0; i < rows; i++)
        take_reals(&p->g, room + i * columns, element(&p->g, p->weight, at + i * *distance), columns);
    *distance = columns;
    return room;
}

static void turned(real *to, int64_t to_row, const real *from, int64_t from_row, int64_t rows, int64_t columns)
{
    const int64_t size = sizeof(real);
    pc__turn((char *)to, to_row * size, (const char *)from, from_row * size, rows, columns, sizeof(real));
}

/* Rows of a block, a tap each, that lie some pages apart meet in the same sets of the cache: they are made side by side, and
 * go as runs of all inputs. */
static void stage_block(const packing *p, const real *from, int64_t distance, int64_t count, int64_t width,
                        int64_t columns, real *to)
{
    const pc__conv *s = p->g.s;
    const int64_t area = s->kh * s->kw, inputs = columns / area, run = inputs * width;
    real *stage = p->stages + pc__thread() * TILE_WIDTH * p->step;
    if (count < width)
        memset(stage, 0, (size_t)(area * run) * sizeof *stage);
    for (int64_t i = 0; i < inputs; i++)
        turned(stage + i * width, run, from + i * area, distance, count, area);
    for (int64_t tap = 0; tap < area; tap++)
        memcpy(to + tap * s->c * width, stage + tap * run, (size_t)run * sizeof *stage);
}

/* Inputs [c, c + inputs) of a panel, or where weights lie channels last, as many places of [kh][kw][c]. */
static void pack_block(const packing *p, int64_t first, int64_t count, int64_t width, int64_t k, int64_t columns,
                       real *to)
{
    const pc__conv *s = p->g.s;
    const int64_t area = s->kh * s->kw;
    int64_t distance = p->g.out;
    const real *from = rows_of(p, first * p->g.out + k, count, columns, &distance);
    if (s->weights_last || area == 1) {
        turned(to + k * width, width, from, distance, count, columns);
        return;
    }
    if (p->stages) {
        stage_block(p, from, distance, count, width, columns, to + k / area * width);
        return;
    }
    for (int64_t i = 0; i < columns; i += area)
        turned(to + (k + i) / area * width, s->c * width, from + i, distance, count, area);
}

/* The convolution that leads back has inputs and outputs exchanged and the kernel turned around: input c of it. */
static void pack_back(const packing *p, int64_t first, int64_t count, int64_t width, int64_t c, real *to)
{
    const pc__conv *s = p->g.s;
    const int64_t area = s->kh * s->kw, all = s->o * area, last = (area - 1) * s->c + c;
    if (s->weights_last) {
        for (int64_t tap = 0; tap < area; tap++)
            take_reals(&p->g, to + (last - tap * s->c) * width, element(&p->g, p->weight, c * all + tap * s->o + first),
                       count);
        return;
    }
    int64_t distance = area;
    const real *from = rows_of(p, c * all + first * area, 1, count * area, &distance);
    turned(to + last * width, -s->c * width, from, area, count, area);
}

static void pack_task(void *context, int64_t task)
{
    const packing *p = context;
    const pc__conv *s = p->g.s;
    const int64_t depth = s->kh * p->g.run, first = task / p->steps * TILE_WIDTH;
    const int64_t count = PC__MIN(TILE_WIDTH, s->o - first), width = round_up(count, W);
    const int64_t k = task % p->steps * p->step, columns = PC__MIN(p->step, depth - k);
    real *to = p->packed + first * depth;
    if (p->back)
        pack_back(p, first, count, width, task % p->steps, to);
    else
        pack_block(p, first, count, width, k, columns, to);
}

pc_status PC__R(conv2d_pack)(const pc__conv *s, const void *weight, bool back, real *packed)
{
    packing p = {.g = geometry_of(s), .weight = weight, .packed = packed, .back = back};
    const int64_t area = s->kh * s->kw, depth = area * s->c;
    if (s->o * depth == 0)
        return PC_OK;
    p.step = back ? area : s->weights_last ? PC__MIN(BLOCK, depth) : PC__MAX(BLOCK / area, 1) * area;
    p.steps = back ? s->c : (depth + p.step - 1) / p.step;
    const int threads = pc__threads(16 * s->o * depth);
    const bool far = !back && !s->weights_last && area > 1 && s->c >= FAR;
    const size_t room = (size_t)(threads * TILE_WIDTH * p.step) * sizeof(real), rooms = s->half ? room : 0;
    char *memory = rooms || far ? pc__alloc_aligned(rooms + (far ? room : 0), 64) : NULL;
    if ((rooms || far) && !memory)
        return PC_ERR_MEMORY;
    p.rooms = (real *)(void *)memory;
    p.stages = far ? (real *)(void *)(memory + rooms) : NULL;
    if (s->o % W) {
        const int64_t last = s->o / TILE_WIDTH * TILE_WIDTH;
        memset(packed + last * depth, 0, (size_t)(depth * round_up(s->o - last, W)) * sizeof(real));
    }
    pc__parallel(threads, (s->o + TILE_WIDTH - 1) / TILE_WIDTH * p.steps, pack_task, &p);
    pc__free(memory);
    return PC_OK;
}
