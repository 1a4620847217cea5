/* direct_weights.cu: the gradients of weights and bias of a convolution of few channels. A warp has some rows of the
 * kernel under some input channels, OC outputs and up to five taps of a row; its lanes share out the pixels of a piece
 * of the pictures, four neighbours at a time: eight inputs and four gradients make 4 x 5 products. Blocks leave their
 * sums in memory, which another kernel adds up. */
#include "cuda/conv/direct.cuh"

namespace
{

constexpr int WARPS = 8;
constexpr size_t SUMS_LARGEST = (size_t)16 << 20; /* bytes of all pieces' */

/* Rows of a warp: as many registers for sums. */
__host__ __device__ constexpr int rows_of(int outputs)
{
    return outputs <= 4 ? 3 : 2;
}

struct operands {
    const void *x, *y, *dy;
    const uint8_t *argmax;
    float *sums; /* [piece][depth + 1][o] */
};

/* Tasks are [rows][taps][chunk]; a warp has one, and a part of the pixels. */
struct plan {
    cut c;
    tile x, g;
    int each, chunks;              /* outputs at once */
    int taps, tasks;               /* pieces of a row of taps */
    int shared_out, parts, groups; /* tasks of a block; warps that share each; blocks with tasks of their own */
    int pieces;
    bool whole_x, whole_g;
};

/* Some taps of a row: their phase, the first in it, how many. */
struct taps {
    int phase, first, count;
};

/* The number-th; in all, where there are fewer. */
__host__ __device__ inline taps taps_at(int number, int kernel, int stride, int *in_all)
{
    int seen = 0;
    for (int phase = 0; phase < stride; phase++)
        for (int left = taps_of(phase, kernel, stride), first = 0; left > 0; seen++) {
            const int now = at_once(left);
            if (seen == number)
                return {phase, first, now};
            first += now, left -= now;
        }
    *in_all = seen;
    return {0, 0, 0};
}

/* What a warp does. */
template <int ROWS> struct task {
    int from[ROWS]; /* first inputs of its rows in the tile */
    int row, chunk; /* the first of its rows, counted over [channel][row of the kernel] */
    taps t;
    bool there, bias;
};

template <int ROWS> __device__ inline task<ROWS> task_at(const pc__cuda_conv &s, const plan &p, int number)
{
    task<ROWS> w;
    int unused;
    const int rest = number / p.chunks, group = rest / p.taps;
    w.there = number < p.tasks;
    w.chunk = number - rest * p.chunks;
    w.row = group * ROWS;
    w.t = taps_at(rest - group * p.taps, s.kw, s.sw, &unused);
    w.bias = rest == 0;
#pragma unroll
    for (int i = 0; i < ROWS; i++) {
        const int row = min(w.row + i, s.c * s.kh - 1), c = row / s.kh; /* one too many is done twice */
        w.from[i] = c * p.x.channel + (row - c * s.kh) * p.x.row + w.t.phase * p.x.pitch + w.t.first;
    }
    return w;
}

template <int ROWS, int OC> struct sums {
    float at[ROWS][OC][TAPS_MOST];
};

/* Products of four pixels with W taps. */
template <int W, int ROWS, int OC>
__device__ inline void add_unit(const task<ROWS> &w, const float *x, const float *g, int channel, sums<ROWS, OC> &sum)
{
    constexpr int N = W == 1 ? FOUR : 2 * FOUR;
    float near[ROWS][N];
#pragma unroll
    for (int i = 0; i < ROWS; i++)
        take<N>(x + w.from[i], near[i]);
#pragma unroll
    for (int k = 0; k < OC; k++) {
        float four[FOUR];
        take<FOUR>(g + k * channel, four);
#pragma unroll
        for (int i = 0; i < ROWS; i++)
#pragma unroll
            for (int q = 0; q < W; q++)
#pragma unroll
                for (int j = 0; j < FOUR; j++)
                    sum.at[i][k][q] = fmaf(four[j], near[i][q + j], sum.at[i][k][q]);
    }
}

/* A lane's units of the tiles; the table has where they begin, in x and in the gradient. */
template <int W, int ROWS, int OC>
__device__ inline void add_units(const plan &p, const task<ROWS> &w, const float *x, const float *g, const int2 *table,
                                 int first, int units, sums<ROWS, OC> &sum)
{
    for (int unit = first; unit < units; unit += p.parts * LANES) {
        const int2 at = table[unit];
        add_unit<W>(w, x + at.x, g + at.y, p.g.channel, sum);
    }
}

/* The same units' gradients alone, in a loop of their own that costs the products no registers: to the warp's own OC
 * floats. */
template <int OC>
__device__ inline void add_biases(const plan &p, const float *g, const int2 *table, int first, int units, float *to)
{
    float sum[OC] = {};
    for (int unit = first; unit < units; unit += p.parts * LANES)
#pragma unroll
        for (int k = 0; k < OC; k++) {
            float four[FOUR];
            take<FOUR>(g + table[unit].y + k * p.g.channel, four);
            sum[k] += (four[0] + four[1]) + (four[2] + four[3]);
        }
#pragma unroll
    for (int k = 0; k < OC; k++) {
        const float all = warp_join<plus>(sum[k]);
        if (threadIdx.x % LANES == 0)
            to[k] += all;
    }
}

/* The outputs of the last chunk may be fewer than of others: gradients of those that are missing are zeros. */
__device__ __noinline__ void load_tiles(const pc__cuda_conv &s, const plan &p, const operands &d, long long at,
                                        float *x, float *g)
{
    const int area = p.c.wide * p.c.high;
    const long long group = quotient(at, area), image = group * p.c.deep;
    const int inside = (int)(at - group * area), line = inside / p.c.wide, row = line * p.c.down;
    const int column = (inside - line * p.c.wide) * p.c.across * FOUR;
    const int real = (int)min((long long)p.c.deep, s.n - image);
    as_type(s.dtype, [&](auto zero) {
        typedef decltype(zero) T;
        load(pictures<T>{(const T *)d.x, s.h, s.w, s.c, are_planes(s.x_planes, s.c)}, p.x, s.c, p.whole_x, image,
             p.c.deep, real, row * s.sh - s.ph, column * s.sw - s.pw, x);
        load_gradients<T>(s, d.y, d.argmax, d.dy, p.g, p.chunks * p.each, p.whole_g, image, p.c.deep, real, row, column,
                          g);
    });
}

/* A block's sums to memory: those of lanes are added up by their warp, those of warps in the warps' order. */
template <int ROWS, int OC>
__device__ inline void leave(const pc__cuda_conv &s, const plan &p, const operands &d, const task<ROWS> &w,
                             const sums<ROWS, OC> &sum, const float *biases, float *between)
{
    constexpr int COUNT = ROWS * OC * TAPS_MOST;
    const int lane = threadIdx.x % LANES, warp = threadIdx.x / LANES, rows = s.c * s.kh;
    float *to = d.sums + (long long)blockIdx.x * (rows * s.kw + 1) * s.o;
#pragma unroll
    for (int e = 0; e < COUNT; e++) {
        const float all = warp_join<plus>(sum.at[e / TAPS_MOST / OC][e / TAPS_MOST % OC][e % TAPS_MOST]);
        if (lane == 0)
            between[warp * COUNT + e] = all;
    }
    __syncthreads();
    if (!w.there || warp >= p.shared_out)
        return;
    for (int e = lane; e < COUNT; e += LANES) {
        float all = 0;
        for (int part = 0; part < p.parts; part++)
            all += between[(part * p.shared_out + warp) * COUNT + e];
        const int i = e / TAPS_MOST, q = e % TAPS_MOST, row = w.row + i / OC, c = row / s.kh;
        const int o = w.chunk * OC + i % OC, column = (w.t.first + q) * s.sw + w.t.phase;
        if (q < w.t.count && row < rows && o < s.o)
            to[(((row - c * s.kh) * s.kw + column) * s.c + c) * s.o + o] = all;
    }
    if (w.bias && lane < OC && w.chunk * OC + lane < s.o) {
        float all = 0;
        for (int part = 0; part < p.parts; part++)
            all += biases[(part * p.shared_out + warp) * OC + lane];
        to[rows * s.kw * s.o + w.chunk * OC + lane] = all;
    }
}

template <int OC>
__global__ void __launch_bounds__(WARPS *LANES, 2)
    direct_weights_kernel(const __grid_constant__ pc__cuda_conv s, const __grid_constant__ plan p,
                          const __grid_constant__ operands d)
{
    extern __shared__ __align__(16) float biases[]; /* OC of each warp; the rest is free for sums in the end */
    constexpr int ROWS = rows_of(OC);
    float *x = biases + WARPS * OC, *g = x + p.x.picture * p.c.deep;
    int2 *table = (int2 *)(g + p.g.picture * p.c.deep);
    const int per = p.c.across * p.c.down, units = per * p.c.deep, warp = threadIdx.x / LANES;
    const int part = warp / p.shared_out, number = blockIdx.y * p.shared_out + warp - part * p.shared_out;
    const int first = part * LANES + threadIdx.x % LANES;
    const task<ROWS> w = task_at<ROWS>(s, p, number);
    sums<ROWS, OC> sum = {};
    for (int unit = threadIdx.x; unit < units; unit += blockDim.x) {
        const int picture = unit / per, rest = unit - picture * per, row = rest / p.c.across;
        const int column = (rest - row * p.c.across) * FOUR;
        table[unit] = make_int2(picture * p.x.picture + row * s.sh * p.x.row + column,
                                picture * p.g.picture + row * p.g.row + column);
    }
    for (int i = threadIdx.x; i < WARPS * OC; i += blockDim.x)
        biases[i] = 0;
    pc::wait_for_earlier();
    for (long long at = blockIdx.x; at < p.c.blocks; at += gridDim.x) {
        load_tiles(s, p, d, at, x, g);
        __syncthreads();
        const float *mine = g + w.chunk * OC * p.g.channel;
        const int count = w.there ? w.t.count : 0;
        if (count == 5)
            add_units<5>(p, w, x, mine, table, first, units, sum);
        else if (count == 4)
            add_units<4>(p, w, x, mine, table, first, units, sum);
        else if (count == 3)
            add_units<3>(p, w, x, mine, table, first, units, sum);
        else if (count == 2)
            add_units<2>(p, w, x, mine, table, first, units, sum);
        else if (count == 1)
            add_units<1>(p, w, x, mine, table, first, units, sum);
        if (w.bias && w.there)
            add_biases<OC>(p, mine, table, first, units, biases + warp * OC);
        __syncthreads();
    }
    leave(s, p, d, w, sum, biases, x);
}

/* Tiles of x and of the gradient. */
void take_tiles(const pc__cuda_conv *s, const cut &c, plan *p)
{
    p->x = tile_of((c.down - 1) * s->sh + s->kh, c.across, over(s->kw, s->sw), s->sw, s->c);
    p->g = tile_of(c.down, c.across, 1, 1, p->chunks * p->each);
}

size_t bytes_for(const plan &p, const cut &c)
{
    const size_t units = (size_t)c.across * c.down * c.deep;
    const size_t work = ((size_t)p.x.picture + p.g.picture) * c.deep * sizeof(float) + units * sizeof(int2);
    const size_t parts = (size_t)WARPS * 2 * 8 * TAPS_MOST * sizeof(float);
    return WARPS * p.each * sizeof(float) + (work > parts ? work : parts);
}

/* All but the cut. */
plan start_of(const pc__cuda_conv *s)
{
    plan p = {};
    p.chunks = over(s->o, 8), p.each = over(s->o, p.chunks);
    (void)taps_at(-1, s->kw, s->sw, &p.taps);
    p.tasks = over(s->c * s->kh, rows_of(p.each)) * p.taps * p.chunks;
    p.groups = over(p.tasks, WARPS), p.shared_out = over(p.tasks, p.groups);
    p.parts = WARPS / p.shared_out;
    return p;
}

extent extent_of(const pc__cuda_conv *s, const plan &p)
{
    const double work = (double)FOUR * s->c * s->kh * s->kw * s->o / p.groups;
    return {s->yh * s->pool, s->yw * s->pool, 1, work, 50.0 + 8 * s->c + 12 * s->o, s->sw};
}

size_t sums_bytes(const pc__cuda_conv *s)
{
    return ((size_t)s->c * s->kh * s->kw + 1) * s->o * sizeof(float);
}

plan plan_of(const pc__cuda_conv *s)
{
    plan p = start_of(s);
    p.c = cut_for(s, extent_of(s, p), [&](const cut &c) {
        plan tried = p;
        take_tiles(s, c, &tried);
        return bytes_for(tried, c);
    });
    take_tiles(s, p.c, &p);
    const long long room = SUMS_LARGEST / sums_bytes(s), many = over(s->multiprocessors * 4, p.groups);
    const long long pieces = many < p.c.blocks ? many : p.c.blocks;
    p.pieces = (int)(pieces < room ? pieces : room);
    return p;
}

template <int OC> void launch(cudaStream_t queue, const pc__cuda_conv *s, const plan &p, const operands &d)
{
    const size_t shared = bytes_for(p, p.c);
    pc::start_grid(direct_weights_kernel<OC>, dim3((unsigned)p.pieces, (unsigned)p.groups),
                   dim3((unsigned)(p.shared_out * p.parts * LANES)), shared, queue, s->early, *s, p, d);
}

} // namespace

bool pc__cuda_conv_direct_weights_fits(const pc__cuda_conv *s)
{
    if (!has_pixels(s) || s->yh <= 0 || s->yw <= 0 || sums_bytes(s) > SUMS_LARGEST)
        return false;
    plan p = start_of(s);
    const cut c = least_cut(s, extent_of(s, p));
    take_tiles(s, c, &p);
    return bytes_for(p, c) <= SHARED_MOST && p.groups < 65536;
}

size_t pc__cuda_conv_direct_scratch(const pc__cuda_conv *s)
{
    return plan_of(s).pieces * sums_bytes(s);
}

void pc__cuda_conv_direct_weights(cudaStream_t queue, const pc__cuda_conv *s, const void *x, const void *y,
                                  const uint8_t *argmax, const void *dy, void *dweight, void *dbias, float *sums)
{
    static void (*const by_channels[])(cudaStream_t, const pc__cuda_conv *, const plan &, const operands &) = {
        launch<1>, launch<2>, launch<3>, launch<4>, launch<5>, launch<6>, launch<7>, launch<8>};
    const operands d = {x, y, dy, argmax, sums};
    plan p = plan_of(s);
    p.whole_x = x_lies_in_fours(s, x);
    p.whole_g = s->o == p.chunks * p.each && gradient_lies_in_fours(s, y, dy);
    by_channels[p.each - 1](queue, s, p, d);
    pc__cuda_conv_add_pieces(queue, s, sums, s->c * s->kh * s->kw, p.pieces, dweight, dbias);
}
