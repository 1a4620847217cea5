/* conv_few_weights.cu: the gradients of the weights and bias of a convolution of three channels. A lane is an output
 * channel with 27 weights and the bias in registers. Of a pooling window only the place of the maximum carries any
 * gradient, and it is another for each lane: each reads the 27 inputs under its own. Pieces of the pictures, a block
 * each, leave their sums in memory. Where there are few pictures a block has eight channels only, with four windows
 * side by side in a warp: the last block of each eight then adds up its pieces, which saves a kernel. */
#include "cuda/conv_few.cuh"
#include "cuda/conv_few_half.h"

#define PIECES_EACH 3 /* blocks for each multiprocessor */
#define BANDS_FEW 8   /* bands of one row for each multiprocessor, at most, that count as few */
#define SUMS (DEPTH + 1)

namespace
{

template <class T> struct gradient_data {
    const T *x, *y, *dy;
    const uint8_t *argmax;
    float *sums;        /* [piece][SUMS][o] */
    int bands, each;    /* in all, and of a piece */
    T *dweight, *dbias; /* of the last block, each may be NULL */
    unsigned *counters; /* NULL: another kernel adds up */
};

/* A gradient, and where the inputs under it lie in the band from the window's first on. */
struct entry {
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

/* Entries of a band, [window][channel]. */
template <class T, int POOL, int STRIDE, int GROUP>
__device__ inline void list(const pc__cuda_conv &s, const cut &c, const gradient_data<T> &d, const span &w,
                            entry *entries)
{
    const int begin = blockIdx.y * GROUP, step = channel_step(s);
    const long long picture = pixel_at(s, (long long)w.image * s.yh * s.yw);
    const int start = (POOL == 2 ? w.first : 2 * w.first) * s.yw;
    for (int e = threadIdx.x; e < w.count * GROUP; e += blockDim.x) {
        const int channel = s.planes ? e / w.count : e % GROUP, i = s.planes ? e - channel * w.count : e / GROUP;
        entry to = {0, 0};
        if (begin + channel < s.o) {
            const long long at =
                picture + (s.planes ? start + i : (long long)(start + i) * s.o) + (long long)(begin + channel) * step;
            const int place = POOL == 2 ? d.argmax[at] : 0;
            to.g = (float)d.dy[at];
            if (needs_y(s))
                to.g = activation_gradient(s.activation, to.g, (float)d.y[at]);
            to.g = place < 4 ? to.g : 0;
            to.offset = place < 4 ? place / 2 * STRIDE * c.pitch + place % 2 * STRIDE * COLORS : 0;
        }
        entries[i * (GROUP + 1) + channel] = to;
    }
}

/* dweight and dbias of this block's channels from all pieces' sums: each warp adds up some pieces, in their order. */
template <class T, int GROUP>
__device__ inline void add_up(const pc__cuda_conv &s, const gradient_data<T> &d, float *parts)
{
    constexpr int COUNT = SUMS * GROUP, EACH = (COUNT + LANES - 1) / LANES;
    const int lane = threadIdx.x % LANES, warp = threadIdx.x / LANES, warps = blockDim.x / LANES;
    const int begin = blockIdx.y * GROUP, pieces = gridDim.x;
    float sum[EACH] = {};
#pragma unroll 4
    for (int piece = warp; piece < pieces; piece += warps)
#pragma unroll
        for (int i = 0; i < EACH; i++) {
            const int e = i * LANES + lane, k = e / GROUP, o = begin + e % GROUP;
            if (k < SUMS && o < s.o)
                sum[i] += __ldcg(d.sums + ((long long)piece * SUMS + k) * s.o + o);
        }
#pragma unroll
    for (int i = 0; i < EACH; i++)
        parts[warp * EACH * LANES + i * LANES + lane] = sum[i];
    __syncthreads();
    for (int e = threadIdx.x; e < COUNT; e += blockDim.x) {
        const int k = e / GROUP, o = begin + e % GROUP;
        float all = 0;
        for (int i = 0; i < warps; i++)
            all += parts[i * EACH * LANES + e];
        if (o < s.o && k < DEPTH && d.dweight)
            d.dweight[(o * COLORS + k % COLORS) * TAPS + k / COLORS] = T(all);
        if (o < s.o && k == DEPTH && d.dbias)
            d.dbias[o] = T(all);
    }
}

template <class T, int POOL, int STRIDE, int GROUP>
__global__ void __launch_bounds__(256) few_weights_kernel(const pc__cuda_conv s, const cut c, const gradient_data<T> d)
{
    extern __shared__ __align__(16) float band[];
    __shared__ bool last;
    constexpr int BESIDE = LANES / GROUP;
    entry *entries = (entry *)(band + c.pitch * c.height);
    const int lane = threadIdx.x % LANES, warp = threadIdx.x / LANES, warps = blockDim.x / LANES;
    const int begin = blockIdx.y * GROUP, channel = lane % GROUP, side = POOL == 2 ? 2 : 1;
    const int end = min((int)(blockIdx.x + 1) * d.each, d.bands);
    float sum[SUMS] = {};
    pc::wait_for_earlier();
    pc::let_next_start();
    for (int at = blockIdx.x * d.each; at < end; at++) {
        const span w = span_of<POOL>(s, c, at);
        load_band(s, c, d.x + (long long)w.image * s.h * s.w * COLORS, w.first * 2 * STRIDE - s.ph, band);
        list<T, POOL, STRIDE, GROUP>(s, c, d, w, entries);
        wait_loaded();
#pragma unroll 2
        for (int i = warp * BESIDE + lane / GROUP; i < w.count; i += warps * BESIDE) {
            const int down = i / w.wide, right = i - down * w.wide;
            const entry e = entries[i * (GROUP + 1) + channel];
            const float *from = band + down * side * STRIDE * c.pitch + right * side * STRIDE * COLORS + e.offset;
#pragma unroll
            for (int k = 0; k < DEPTH; k++)
                sum[k] = fmaf(e.g, from[k / 9 * c.pitch + k % 9], sum[k]);
            sum[DEPTH] += e.g;
        }
        __syncthreads();
    }
    /* the warps' sums, in their order */
    float *parts = band;
#pragma unroll
    for (int k = 0; k < SUMS; k++) {
#pragma unroll
        for (int distance = GROUP; distance < LANES; distance *= 2)
            sum[k] += __shfl_xor_sync(0xffffffffu, sum[k], distance);
        if (lane < GROUP)
            parts[(warp * SUMS + k) * GROUP + lane] = sum[k];
    }
    __syncthreads();
    for (int e = threadIdx.x; e < SUMS * GROUP; e += blockDim.x) {
        float all = 0;
        for (int i = 0; i < warps; i++)
            all += parts[i * SUMS * GROUP + e];
        if (begin + e % GROUP < s.o)
            d.sums[((long long)blockIdx.x * SUMS + e / GROUP) * s.o + begin + e % GROUP] = all;
    }
    if (GROUP == LANES)
        return;
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) {
        last = atomicAdd(d.counters + blockIdx.y, 1) == gridDim.x - 1;
        if (last)
            d.counters[blockIdx.y] = 0;
    }
    __syncthreads();
    if (last) {
        __threadfence();
        add_up<T, GROUP>(s, d, parts);
    }
}

size_t bytes_for(const pc__cuda_conv *s, const cut &c, int warps, int group)
{
    const size_t entries = (size_t)c.rows * c.wide * (s->pool == 2 ? 1 : 4) * (group + 1) * sizeof(entry);
    const size_t work = band_bytes(c) + entries;
    const size_t parts = (size_t)warps * over(SUMS * group, LANES) * LANES * sizeof(float);
    return work > parts ? work : parts;
}

struct plan {
    cut c;
    int bands, each, pieces, warps, group;
};

plan plan_of(const pc__cuda_conv *s)
{
    plan p;
    const long long lines = s->n * cut_of(s, 1).high;
    p.group = lines <= (long long)BANDS_FEW * s->multiprocessors && over(s->o, 8) <= 256 ? 8 : LANES;
    const int chunks = over(s->o, p.group),
              wanted = over(s->multiprocessors * (p.group == 8 ? 2 : PIECES_EACH), chunks);
    int rows = p.group == 8 ? over(lines, wanted) : 8;
    while (rows > 1 && ((p.group == LANES && s->n * over(cut_of(s, 1).high, rows) < wanted) ||
                        bytes_for(s, cut_of(s, rows), 8, p.group) > SHARED_MOST))
        rows--;
    p.c = cut_of(s, rows);
    p.bands = (int)(s->n * p.c.bands);
    p.each = p.group == 8 ? 1 : over(p.bands, p.bands < wanted ? p.bands : wanted);
    p.pieces = over(p.bands, p.each < 1 ? 1 : p.each);
    p.warps = p.c.rows * p.c.wide < 16 && p.group == LANES ? 5 : 8;
    return p;
}

template <class T, int POOL, int GROUP>
void launch(cudaStream_t queue, const pc__cuda_conv *s, const plan &p, const gradient_data<T> &d)
{
    const dim3 grid((unsigned)p.pieces, (unsigned)over(s->o, GROUP)), block((unsigned)(LANES * p.warps));
    pc::start_grid(s->sh == 1   ? few_weights_kernel<T, POOL, 1, GROUP>
                   : s->sh == 2 ? few_weights_kernel<T, POOL, 2, GROUP>
                                : few_weights_kernel<T, POOL, 3, GROUP>,
                   grid, block, bytes_for(s, p.c, p.warps, GROUP), queue, s->early, *s, p.c, d);
}

template <class T>
void backward(cudaStream_t queue, const pc__cuda_conv *s, const plan &p, const void *x, const void *y,
              const uint8_t *argmax, const void *dy, void *dweight, void *dbias, float *sums)
{
    const gradient_data<T> d = {(const T *)x, (const T *)y, (const T *)dy, argmax,     sums,
                                p.bands,      p.each,       (T *)dweight,  (T *)dbias, s->counters};
    if (p.group == 8)
        s->pool == 2 ? launch<T, 2, 8>(queue, s, p, d) : launch<T, 1, 8>(queue, s, p, d);
    else
        s->pool == 2 ? launch<T, 2, LANES>(queue, s, p, d) : launch<T, 1, LANES>(queue, s, p, d);
}

} // namespace

size_t pc__cuda_conv_few_scratch(const pc__cuda_conv *s)
{
    if (s->c != COLORS || s->kh != 3 || s->kw != 3 || s->n * s->yh * s->yw <= 0 ||
        bytes_for(s, cut_of(s, 1), 8, LANES) > SHARED_MOST)
        return 0;
    const int ours = plan_of(s).pieces, half = is_half(s) ? pc__cuda_conv_few_half_pieces(s) : 0;
    return (size_t)(ours > half ? ours : half) * SUMS * s->o * sizeof(float);
}

void pc__cuda_conv_few_weights(cudaStream_t queue, const pc__cuda_conv *s, const void *x, const void *y,
                               const uint8_t *argmax, const void *dy, void *dweight, void *dbias, float *sums)
{
    const plan p = plan_of(s);
    const int half = is_half(s) && pc__cuda_conv_few_half_fits(s) && !s->planes && (uintptr_t)dy % 16 == 0 &&
                             (uintptr_t)argmax % 8 == 0
                         ? pc__cuda_conv_few_half_pieces(s)
                         : 0;
    if (half > 0) {
        pc__cuda_conv_few_half_weights(queue, s, x, y, argmax, dy, sums);
        pc__cuda_conv_add_pieces(queue, s, sums, DEPTH, half, dweight, dbias);
        return;
    }
    if (s->dtype == PC__CUDA_F16)
        backward<pc::f16>(queue, s, p, x, y, argmax, dy, dweight, dbias, sums);
    else if (s->dtype == PC__CUDA_BF16)
        backward<pc::bf16>(queue, s, p, x, y, argmax, dy, dweight, dbias, sums);
    else
        backward<float>(queue, s, p, x, y, argmax, dy, dweight, dbias, sums);
    if (p.group == LANES)
        pc__cuda_conv_add_pieces(queue, s, sums, DEPTH, p.pieces, dweight, dbias);
}
