/* few_weights.cu: the gradients of the weights and bias of a convolution of three channels. A lane is an output
 * channel with 27 weights and the bias in registers. Of a pooling window only the place of the maximum carries any
 * gradient, and it is another for each lane: each reads the 27 inputs under its own. Pieces of the pictures, a block
 * each, leave their sums in memory, which another kernel adds up. */
#include "cuda/conv/few.cuh"
#include "cuda/conv/few_half.h"

#define PIECES_EACH 3 /* blocks for each multiprocessor */
#define SUMS (DEPTH + 1)
#define AT_ONCE 4 /* entries of a thread on their way */

namespace
{

struct gradient_data {
    const float *x, *y, *dy;
    const uint8_t *argmax;
    float *sums;     /* [piece][SUMS][o] */
    int bands, each; /* in all, and of a piece */
};

/* A gradient, and where the inputs under it lie in the band from the window's first on. */
struct alignas(8) entry {
    float g;
    int offset;
};

/* The windows of a band that carry gradient: those of y, or with no pooling its pixels. */
struct span {
    int image, first, count, wide;
};

template <int POOL> __device__ inline span span_of(const pc__cuda_conv &s, const cut &c, int band)
{
    const int image = band / c.bands, first = (band - image * c.bands) * c.rows, rows = min(c.rows, c.high - first);
    const int wide = POOL == 2 ? c.wide : s.yw;
    return {image, first, (POOL == 2 ? rows : min(2 * rows, s.yh - 2 * first)) * wide, wide};
}

/* Entries of a band, [window][channel]; some of each thread are on their way at once. */
template <int POOL, int STRIDE>
__device__ inline void list(const pc__cuda_conv &s, const cut &c, const gradient_data &d, const span &w, entry *entries)
{
    const int begin = blockIdx.y * LANES, left = s.o - begin, step = channel_step(s);
    const int start = (POOL == 2 ? w.first : 2 * w.first) * s.yw;
    const long long at = picture_at(s, w.image) + (long long)begin * step + (s.planes ? start : (long long)start * s.o);
    const float *dy = d.dy + at, *y = d.y + at;
    const uint8_t *argmax = d.argmax + at;
    const bool with_y = needs_y(s);
    /* as they lie in memory: lines of windows of a channel, or of channels of a window */
    const int across = s.planes ? w.count : LANES, lines = s.planes ? LANES : w.count;
    const int line_end = s.planes ? min(left, LANES) : w.count, rest_end = s.planes ? w.count : left;
    const int line_apart = s.planes ? 1 : LANES + 1, rest_apart = s.planes ? LANES + 1 : 1;
    const int outer = s.planes ? step : s.o;
    const int down = (int)(blockDim.x / (unsigned)across), beside = (int)blockDim.x - down * across;
    int line = (int)(threadIdx.x / (unsigned)across), rest = (int)threadIdx.x - line * across;
    while (line < lines) {
        float g[AT_ONCE], value[AT_ONCE];
        int place[AT_ONCE], to[AT_ONCE];
#pragma unroll
        for (int k = 0; k < AT_ONCE; k++) {
            const int offset = line * outer + rest;
            const bool there = line < line_end && rest < rest_end;
            to[k] = line < lines ? line * line_apart + rest * rest_apart : -1;
            g[k] = there ? dy[offset] : 0;
            value[k] = there && with_y ? y[offset] : 0;
            place[k] = there && POOL == 2 ? argmax[offset] : 0;
            line += down;
            rest += beside;
            if (rest >= across) {
                rest -= across;
                line++;
            }
        }
        float all[AT_ONCE];
#pragma unroll
        for (int k = 0; k < AT_ONCE; k++)
            all[k] = with_y ? activation_gradient(s.activation, g[k], value[k]) : g[k];
#pragma unroll
        for (int k = 0; k < AT_ONCE; k++) {
            const int under = (place[k] & 2 ? STRIDE * c.pitch : 0) + (place[k] & 1 ? STRIDE * COLORS : 0);
            if (to[k] >= 0)
                entries[to[k]] = place[k] < 4 ? entry{all[k], under} : entry{0, 0};
        }
    }
}

template <int POOL, int STRIDE>
__global__ void __launch_bounds__(256) few_weights_kernel(const pc__cuda_conv s, const cut c, const gradient_data d)
{
    extern __shared__ __align__(16) float band[];
    entry *entries = (entry *)(band + c.pitch * c.height);
    const int lane = threadIdx.x % LANES, warp = threadIdx.x / LANES, warps = blockDim.x / LANES;
    const int begin = blockIdx.y * LANES, side = POOL == 2 ? 2 : 1;
    const int end = min((int)(blockIdx.x + 1) * d.each, d.bands);
    float sum[SUMS] = {};
    int at = blockIdx.x * d.each;
    span w = span_of<POOL>(s, c, at);
    bool ahead = s.ready_x && passes(c) && at < end;
    if (!ahead)
        pc::wait_for_earlier();
    while (at < end) {
        load_band(s, c, d.x + (long long)w.image * s.h * s.w * COLORS, w.first * 2 * STRIDE - s.ph, band);
        if (ahead)
            pc::wait_for_earlier();
        ahead = false;
        list<POOL, STRIDE>(s, c, d, w, entries);
        wait_loaded();
        int down = 0, right = warp;
        for (; right >= w.wide; right -= w.wide)
            down++;
        for (int i = warp; i < w.count; i += warps) {
            const entry e = entries[i * (LANES + 1) + lane];
            const float *from = band + down * side * STRIDE * c.pitch + right * side * STRIDE * COLORS + e.offset;
#pragma unroll
            for (int k = 0; k < DEPTH; k++)
                sum[k] = fmaf(e.g, from[k / 9 * c.pitch + k % 9], sum[k]);
            sum[DEPTH] += e.g;
            for (right += warps; right >= w.wide; right -= w.wide)
                down++;
        }
        __syncthreads();
        if (++at < end)
            w = span_of<POOL>(s, c, at);
    }
    /* the warps' sums, in their order */
    float *parts = band;
#pragma unroll
    for (int k = 0; k < SUMS; k++)
        parts[(warp * SUMS + k) * LANES + lane] = sum[k];
    __syncthreads();
    for (int e = 4 * threadIdx.x; e < SUMS * LANES; e += 4 * blockDim.x) {
        vector<float, 4> all = {};
#pragma unroll 4
        for (int i = 0; i < warps; i++) {
            const vector<float, 4> part = *(const vector<float, 4> *)(parts + i * SUMS * LANES + e);
#pragma unroll
            for (int j = 0; j < 4; j++)
                all.at[j] += part.at[j];
        }
        const int o = begin + e % LANES;
        float *to = d.sums + ((long long)blockIdx.x * SUMS + e / LANES) * s.o + o;
#pragma unroll
        for (int j = 0; j < 4; j++)
            if (o + j < s.o)
                to[j] = all.at[j];
    }
}

size_t bytes_for(const pc__cuda_conv *s, const cut &c, int warps)
{
    const size_t entries = (size_t)c.rows * c.wide * (s->pool == 2 ? 1 : 4) * (LANES + 1) * sizeof(entry);
    const size_t work = band_bytes(c) + entries;
    const size_t parts = (size_t)warps * SUMS * LANES * sizeof(float);
    return work > parts ? work : parts;
}

struct plan {
    cut c;
    int bands, each, pieces, warps;
};

plan plan_of(const pc__cuda_conv *s)
{
    plan p;
    int rows = 8;
    const int wanted = over(s->multiprocessors * PIECES_EACH, over(s->o, LANES));
    while (rows > 1 &&
           (s->n * over(cut_of(s, 1).high, rows) < wanted || bytes_for(s, cut_of(s, rows), 8) > SHARED_MOST))
        rows--;
    p.c = cut_of(s, rows);
    p.bands = (int)(s->n * p.c.bands);
    p.each = over(p.bands, p.bands < wanted ? p.bands : wanted);
    p.pieces = over(p.bands, p.each < 1 ? 1 : p.each);
    p.warps = p.c.rows * p.c.wide < 16 ? 5 : 8;
    return p;
}

template <int POOL> void launch(cudaStream_t queue, const pc__cuda_conv *s, const plan &p, const gradient_data &d)
{
    const dim3 grid((unsigned)p.pieces, (unsigned)over(s->o, LANES)), block((unsigned)(LANES * p.warps));
    pc::start_grid(s->sh == 1   ? few_weights_kernel<POOL, 1>
                   : s->sh == 2 ? few_weights_kernel<POOL, 2>
                                : few_weights_kernel<POOL, 3>,
                   grid, block, bytes_for(s, p.c, p.warps), queue, s->early, *s, p.c, d);
}

} // namespace

size_t pc__cuda_conv_few_scratch(const pc__cuda_conv *s)
{
    if (s->c != COLORS || s->kh != 3 || s->kw != 3 || s->n * s->yh * s->yw <= 0 ||
        bytes_for(s, cut_of(s, 1), 8) > SHARED_MOST)
        return 0;
    return (size_t)(is_half(s) ? pc__cuda_conv_few_half_pieces(s) : plan_of(s).pieces) * SUMS * s->o * sizeof(float);
}

void pc__cuda_conv_few_weights(cudaStream_t queue, const pc__cuda_conv *s, const void *x, const void *y,
                               const uint8_t *argmax, const void *dy, void *dweight, void *dbias, float *sums)
{
    if (is_half(s)) {
        pc__cuda_conv_few_half_weights(queue, s, x, y, argmax, dy, sums);
        pc__cuda_conv_add_pieces(queue, s, sums, DEPTH, pc__cuda_conv_few_half_pieces(s), dweight, dbias);
        return;
    }
    const plan p = plan_of(s);
    const gradient_data d = {(const float *)x, (const float *)y, (const float *)dy, argmax, sums, p.bands, p.each};
    s->pool == 2 ? launch<2>(queue, s, p, d) : launch<1>(queue, s, p, d);
    pc__cuda_conv_add_pieces(queue, s, sums, DEPTH, p.pieces, dweight, dbias);
}
