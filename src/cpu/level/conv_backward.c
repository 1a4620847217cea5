/* conv_backward.c: gradients of the fused convolution from the places that carry any gradient at all. */
#include "cpu/level/conv.h"
#include "cpu/level/gather.h"
#include "cpu/parallel.h"

#define STRIP_BYTES 24576  /* input rows under a strip of y that stay in the first-level cache */
#define CHUNKS_MOST 8      /* pieces of the batch whose weight gradients are summed apart */
#define OUTPUTS_OF_TASK 16 /* outputs whose weight gradients one task works on: a cache line of dy */
#define WEIGHT_BYTES 32768 /* weights that stay in the first-level cache while dx is made */

typedef struct backward {
    geometry g;
    const real *x, *y, *dy;
    const uint8_t *argmax;
    int64_t width;  /* g.run rounded up to vectors */
    int64_t strip;  /* rows of y worked on at once */
    int64_t *place; /* place_offset of each place in a window */
    bool copying;   /* input goes through a padded copy that may be read past its end */
    int64_t chunk;  /* images of a chunk */
    real *sums;     /* [chunks][o][kh][width] */
    real *bias;     /* [chunks][o] */
    real *weights;  /* [kh / group][o][group][width] */
    int64_t group;  /* rows of the kernel that dx is made from at once */
    real *dx;
} backward;

/* Items for outputs whose gradient is not zero: output `o` of the pixels of `rows` rows of y, against input. */
static int64_t list_pixels(const backward *b, int64_t image, int64_t y0, int64_t rows, int64_t o, item *items)
{
    const geometry *g = &b->g;
    const pc__conv *s = g->s;
    const pc__activation activation = s->activation;
    const int64_t outputs = s->o, right = g->pool * s->sw * s->c;
    int64_t count = 0;
    for (int64_t r = 0; r < rows; r++) {
        const int64_t at = (image * g->yh + y0 + r) * g->yw * outputs + o;
        const real *dy = b->dy + at, *y = b->y ? b->y + at : dy;
        const uint8_t *argmax = b->argmax + at;
        int64_t offset = first_input_row(g, r) * g->row;
        for (int64_t i = 0; i < g->yw; i++, offset += right) {
            const real weight = activation_gradient(activation, dy[i * outputs], y[i * outputs]);
            const int64_t place = b->argmax ? b->place[argmax[i * outputs]] : 0;
            items[count] = (item){weight, (pc__lane_int)(offset + place)};
            count += weight != 0;
        }
    }
    return count;
}

/* dbias += the gradient of outputs [o, o + count) over rows of y. */
static void add_bias(const backward *b, int64_t image, int64_t y0, int64_t rows, int64_t o, int64_t count, real *dbias)
{
    const geometry *g = &b->g;
    const pc__activation activation = g->s->activation;
    const int64_t outputs = g->s->o, first = (image * g->yh + y0) * g->yw;
    for (int64_t i = first; i < first + rows * g->yw; i++) {
        const real *dy = b->dy + i * outputs + o, *y = b->y ? b->y + i * outputs + o : dy;
        for (int64_t j = 0; j < count; j++)
            dbias[j] += activation_gradient(activation, dy[j], y[j]);
    }
}

/* Weight and bias gradients of some outputs from one chunk of images. */
static void weights_task(const backward *b, int64_t task, item *items, real *copy)
{
    const geometry *g = &b->g;
    const pc__conv *s = g->s;
    const int64_t blocks = (s->o + OUTPUTS_OF_TASK - 1) / OUTPUTS_OF_TASK, kernel = s->kh * b->width;
    const int64_t chunk = task / blocks, o0 = task % blocks * OUTPUTS_OF_TASK;
    const int64_t count = PC__MIN(OUTPUTS_OF_TASK, s->o - o0), end = PC__MIN((chunk + 1) * b->chunk, s->n);
    real *sums = b->sums ? b->sums + (chunk * s->o + o0) * kernel : NULL, *bias = b->bias + chunk * s->o + o0;
    if (sums)
        memset(sums, 0, (size_t)(count * kernel) * sizeof(real));
    memset(bias, 0, (size_t)count * sizeof(real));
    for (int64_t image = chunk * b->chunk; image < end; image++)
        for (int64_t y = 0; y < g->yh; y += b->strip) {
            const int64_t rows = PC__MIN(b->strip, g->yh - y);
            add_bias(b, image, y, rows, o0, count, bias);
            if (!sums)
                continue;
            const real *input = b->x + image * s->h * s->w * s->c;
            if (b->copying)
                copy_padded(g, input, first_input_row(g, y), input_rows(g, rows), copy), input = copy;
            else
                input += first_input_row(g, y) * g->row;
            for (int64_t j = 0; j < count; j++) {
                gather sum = {
                    .items = items, .from = input, .from_row = g->row, .to = sums + j * kernel, .to_row = b->width};
                sum.count = list_pixels(b, image, y, rows, o0 + j, items);
                gather_all(sum, s->kh, b->width / W);
            }
        }
}

/* dweight[o] and dbias[o] from the chunks' sums, always in the order of the chunks. */
static void reduce_output(const backward *b, int64_t chunks, int64_t o, real *dweight, real *dbias)
{
    const pc__conv *s = b->g.s;
    const int64_t kernel = s->kh * b->width;
    real total = 0;
    for (int64_t i = 0; i < chunks; i++)
        total += b->bias[i * s->o + o];
    if (dbias)
        dbias[o] = total;
    if (!dweight)
        return;
    real *sum = b->sums + o * kernel;
    for (int64_t i = 1; i < chunks; i++)
        for (int64_t j = 0; j < kernel; j++)
            sum[j] += sum[i * s->o * kernel + j];
    for (int64_t kh = 0; kh < s->kh; kh++)
        for (int64_t kw = 0; kw < s->kw; kw++)
            for (int64_t c = 0; c < s->c; c++)
                dweight[((o * s->c + c) * s->kh + kh) * s->kw + kw] = sum[kh * b->width + kw * s->c + c];
}

static pc_status weights_backward(backward *b, real *dweight, real *dbias)
{
    const geometry *g = &b->g;
    const pc__conv *s = g->s;
    const int64_t kernel = s->kh * b->width, chunks = PC__MAX(PC__MIN(s->n, CHUNKS_MOST), 1);
    const int64_t tasks = chunks * ((s->o + OUTPUTS_OF_TASK - 1) / OUTPUTS_OF_TASK);
    const int threads = pc__threads(2 * s->n * g->yh * g->yw * s->o * (dweight ? kernel : 1));
    const int64_t items = b->strip * g->yw + 1;
    const int64_t copy = b->copying ? round_up(input_rows(g, b->strip) * g->row, W) + b->width : 0;
    const int64_t sums = chunks * s->o * (1 + (dweight ? kernel : 0));
    const size_t mine = (size_t)round_up(items * (int64_t)sizeof(item) + copy * (int64_t)sizeof(real), 64);
    char *slab = pc__alloc_aligned((size_t)round_up(sums * (int64_t)sizeof(real), 64) + (size_t)threads * mine, 64);
    if (!slab)
        return PC_ERR_MEMORY;
    b->chunk = (s->n + chunks - 1) / chunks;
    b->sums = dweight ? (real *)slab : NULL;
    b->bias = (real *)slab + (dweight ? chunks * s->o * kernel : 0);
    char *scratch = slab + round_up(sums * (int64_t)sizeof(real), 64);
    if (copy)
        memset(scratch, 0, (size_t)threads * mine);
#pragma omp parallel for num_threads(threads) if (threads > 1) schedule(dynamic)
    for (int64_t task = 0; task < tasks; task++) {
        char *own = scratch + (size_t)pc__thread() * mine;
        weights_task(b, task, (item *)(own + copy * (int64_t)sizeof(real)), (real *)own);
    }
#pragma omp parallel for num_threads(threads) if (threads > 1)
    for (int64_t o = 0; o < s->o; o++)
        reduce_output(b, chunks, o, dweight, dbias);
    pc__free(slab);
    return PC_OK;
}

/* Items of one pixel of y, grouped by place: items[place][o], counts[place]; offsets into the packed weights. */
static void list_outputs(const backward *b, int64_t at, item *items, int64_t *counts)
{
    const pc__conv *s = b->g.s;
    const pc__activation activation = s->activation;
    const int64_t places = b->g.pool * b->g.pool, step = b->group * b->width;
    const real *dy = b->dy + at, *y = b->y ? b->y + at : dy;
    memset(counts, 0, (size_t)places * sizeof(*counts));
    for (int64_t o = 0; o < s->o; o++) {
        const real weight = activation_gradient(activation, dy[o], y[o]);
        const int64_t place = b->argmax ? b->argmax[at + o] : 0;
        items[place * s->o + counts[place]] = (item){weight, (pc__lane_int)(o * step)};
        counts[place] += weight != 0;
    }
}

/* dx of one image into to[padded rows][g->row], which is zero at first. */
static void image_backward(const backward *b, int64_t image, item *items, int64_t *counts, real *to)
{
    const geometry *g = &b->g;
    const pc__conv *s = g->s;
    const int64_t places = g->pool * g->pool, list = places * s->o;
    for (int64_t y = 0; y < g->yh; y++) {
        const int64_t at = (image * g->yh + y) * g->yw * s->o;
        for (int64_t i = 0; i < g->yw; i++)
            list_outputs(b, at + i * s->o, items + i * list, counts + i * places);
        for (int64_t kh = 0; kh < s->kh; kh += b->group) {
            real *row = to + (first_input_row(g, y) + kh) * g->row;
            const int64_t rows = PC__MIN(b->group, s->kh - kh);
            for (int64_t i = 0; i < g->yw; i++, row += g->pool * s->sw * s->c)
                for (int64_t q = 0; q < places; q++) {
                    gather sum = {.items = items + i * list + q * s->o,
                                  .count = counts[i * places + q],
                                  .from = b->weights + kh * s->o * b->width,
                                  .from_row = b->width,
                                  .to = row + b->place[q],
                                  .to_row = g->row};
                    if (sum.count)
                        gather_all(sum, rows, b->width / W);
                }
        }
    }
}

/* weights[kh / group][o][group][width] from [o][c][kh][kw], the ends of rows zero. */
static void pack_rows(const backward *b, const real *weight)
{
    const pc__conv *s = b->g.s;
    memset(b->weights, 0, (size_t)(round_up(s->kh, b->group) * s->o * b->width) * sizeof(real));
    for (int64_t o = 0; o < s->o; o++)
        for (int64_t kh = 0; kh < s->kh; kh++) {
            real *row = b->weights + ((kh / b->group * s->o + o) * b->group + kh % b->group) * b->width;
            for (int64_t kw = 0; kw < s->kw; kw++)
                for (int64_t c = 0; c < s->c; c++)
                    row[kw * s->c + c] = weight[((o * s->c + c) * s->kh + kh) * s->kw + kw];
        }
}

/* Take the inner part of a padded image. */
static void copy_inner(const geometry *g, const real *padded, real *image)
{
    const pc__conv *s = g->s;
    const int64_t inner = s->w * s->c;
    for (int64_t r = 0; r < s->h; r++)
        memcpy(image + r * inner, padded + (r + s->ph) * g->row + s->pw * s->c, (size_t)inner * sizeof(real));
}

static pc_status input_backward(backward *b, const real *weight, real *dx)
{
    const geometry *g = &b->g;
    const pc__conv *s = g->s;
    const int64_t size = s->h * s->w * s->c, places = g->pool * g->pool;
    const bool fits = s->kh * s->o * b->width * (int64_t)sizeof(real) <= WEIGHT_BYTES;
    b->group = fits ? PC__MAX(s->kh, 1) : 1;
    const int threads = pc__threads(2 * s->n * g->yh * g->yw * s->o * s->kh * b->width);
    const int64_t weights = round_up(s->kh, b->group) * s->o * b->width;
    const int64_t padded = b->copying ? (s->h + 2 * s->ph) * g->row + b->width : 0;
    const int64_t items = g->yw * places * s->o + 1, counts = g->yw * places;
    const int64_t mine = round_up(padded * (int64_t)sizeof(real), 64) + round_up(items * (int64_t)sizeof(item), 64) +
                         round_up(counts * (int64_t)sizeof(int64_t), 64);
    const int64_t shared = round_up(weights * (int64_t)sizeof(real), 64);
    char *slab = pc__alloc_aligned((size_t)(shared + threads * mine), 64);
    if (!slab)
        return PC_ERR_MEMORY;
    b->weights = (real *)slab;
    pack_rows(b, weight);
#pragma omp parallel for num_threads(threads) if (threads > 1) schedule(dynamic)
    for (int64_t image = 0; image < s->n; image++) {
        char *own = slab + shared + pc__thread() * mine;
        real *to = padded ? (real *)own : dx + image * size;
        item *list = (item *)(own + round_up(padded * (int64_t)sizeof(real), 64));
        int64_t *count = (int64_t *)((char *)list + round_up(items * (int64_t)sizeof(item), 64));
        memset(to, 0, (size_t)(padded ? padded : size) * sizeof(real));
        image_backward(b, image, list, count, to);
        if (padded)
            copy_inner(g, to, dx + image * size);
    }
    pc__free(slab);
    return PC_OK;
}

pc_status PC__R(conv2d_backward)(const pc__conv *s, const void *x, const void *weight, const void *y,
                                 const uint8_t *argmax, const void *dy, void *dx, void *dweight, void *dbias)
{
    int64_t place[256];
    backward b = {.g = geometry_of(s), .x = x, .y = y, .dy = dy, .place = place};
    b.argmax = b.g.pool > 1 ? argmax : NULL;
    b.width = round_up(b.g.run, W);
    b.copying = b.g.padded || b.width != b.g.run;
    for (int64_t q = 0; q < b.g.pool * b.g.pool; q++)
        place[q] = place_offset(&b.g, q);
    const int64_t row_bytes = b.g.pool * s->sh * b.g.row * (int64_t)sizeof(real);
    b.strip = PC__MAX(STRIP_BYTES / PC__MAX(row_bytes, 1), 1);
    b.strip = PC__MAX(PC__MIN(b.strip, b.g.yh), 1);
    if (dweight || dbias)
        PC__TRY(weights_backward(&b, dweight, dbias));
    return dx ? input_backward(&b, weight, dx) : PC_OK;
}
