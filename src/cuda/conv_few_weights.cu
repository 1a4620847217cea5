/* conv_few_weights.cu: the gradients of the weights and bias of a convolution of three channels. A lane is an output
 * channel with 27 weights and the bias in registers. Of a pooling window only the place of the maximum carries any
 * gradient, and it is another for each lane: each reads the 27 inputs under its own. Pieces of the pictures, a block
 * each, leave their sums in memory. */
#include "cuda/conv_few.cuh"

#define PIECES_EACH 3 /* blocks for each multiprocessor */
#define SUMS (DEPTH + 1)

namespace
{

struct gradient_data {
    const float *x, *y, *dy;
    const uint8_t *argmax;
    float *sums;     /* [piece][SUMS][o] */
    int bands, each; /* in all, and of a piece */
};

/* A gradient, and where the inputs under it lie in the band from the window's first on. */
struct entry {
    float g;
    int offset;
};

/* Entries of the band's windows, [window][channel], with PLACES of them for each window: 1, or the 4 pixels. */
template <int POOL, int STRIDE>
__device__ inline void list(const pc__cuda_conv &s, const cut &c, const gradient_data &d, int image, int first,
                            int rows, int begin, entry *entries)
{
    constexpr int PITCH = LANES + 1;
    const int lane = threadIdx.x % LANES, warp = threadIdx.x / LANES, warps = blockDim.x / LANES;
    const int wide = POOL == 2 ? c.wide : s.yw;
    const int count = (POOL == 2 ? rows : min(2 * rows, s.yh - 2 * first)) * wide;
    const long long start = ((long long)image * s.yh + (POOL == 2 ? first : 2 * first)) * s.yw;
    const long long from = pixel_at(s, (long long)image * s.yh * s.yw), step = channel_step(s);
    const int outer = s.planes ? LANES : count, inner = s.planes ? count : LANES;
    for (int a = warp; a < outer; a += warps)
        for (int b = lane; b < inner; b += LANES) {
            const int channel = s.planes ? a : b, i = s.planes ? b : a;
            entry e = {0, 0};
            if (begin + channel < s.o) {
                const long long at = s.planes ? from + (begin + channel) * step + (start - (long long)image * step) + i
                                              : (start + i) * s.o + begin + channel;
                e.g = d.dy[at];
                if (needs_y(s))
                    e.g = activation_gradient(s.activation, e.g, d.y[at]);
                const int place = POOL == 2 ? d.argmax[at] : 0;
                e.g = place < 4 ? e.g : 0;
                e.offset = place < 4 ? place / 2 * STRIDE * c.pitch + place % 2 * STRIDE * COLORS : 0;
            }
            entries[i * PITCH + channel] = e;
        }
}

template <int POOL, int STRIDE>
__global__ void __launch_bounds__(256) few_weights_kernel(const pc__cuda_conv s, const cut c, const gradient_data d)
{
    extern __shared__ __align__(16) float band[];
    entry *entries = (entry *)(band + c.pitch * c.height);
    const int lane = threadIdx.x % LANES, warp = threadIdx.x / LANES, warps = blockDim.x / LANES;
    const int begin = blockIdx.y * LANES, end = min((int)(blockIdx.x + 1) * d.each, d.bands);
    const int side = POOL == 2 ? 2 : 1;
    float sum[SUMS] = {};
    pc::wait_for_earlier();
    pc::let_next_start();
    for (int at = blockIdx.x * d.each; at < end; at++) {
        const int image = at / c.bands, first = (at - image * c.bands) * c.rows, rows = min(c.rows, c.high - first);
        const int wide = POOL == 2 ? c.wide : s.yw;
        const int count = (POOL == 2 ? rows : min(2 * rows, s.yh - 2 * first)) * wide;
        load_band(s, c, d.x + (long long)image * s.h * s.w * COLORS, first * 2 * STRIDE - s.ph, band);
        list<POOL, STRIDE>(s, c, d, image, first, rows, begin, entries);
        wait_loaded();
#pragma unroll 2
        for (int i = warp; i < count; i += warps) {
            const int down = i / wide, right = i - down * wide;
            const entry e = entries[i * (LANES + 1) + lane];
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
    for (int k = 0; k < SUMS; k++)
        parts[(warp * SUMS + k) * LANES + lane] = sum[k];
    __syncthreads();
    for (int k = warp; k < SUMS; k += warps) {
        float all = 0;
        for (int i = 0; i < warps; i++)
            all += parts[(i * SUMS + k) * LANES + lane];
        if (begin + lane < s.o)
            d.sums[((long long)blockIdx.x * SUMS + k) * s.o + begin + lane] = all;
    }
}

size_t bytes_for(const pc__cuda_conv *s, const cut &c, int warps)
{
    const size_t entries = (size_t)c.rows * c.wide * (s->pool == 2 ? 1 : 4) * (LANES + 1) * sizeof(entry);
    const size_t work = band_bytes(c) + entries, parts = (size_t)warps * SUMS * LANES * sizeof(float);
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
    const int chunks = over(s->o, LANES), wanted = over(s->multiprocessors * PIECES_EACH, chunks);
    while (rows > 1 &&
           (s->n * over(cut_of(s, 1).high, rows) < wanted || bytes_for(s, cut_of(s, rows), 8) > SHARED_MOST))
        rows--;
    p.c = cut_of(s, rows);
    p.bands = (int)(s->n * p.c.bands);
    p.each = over(p.bands, p.bands < wanted ? p.bands : wanted);
    p.pieces = over(p.bands, p.each < 1 ? 1 : p.each);
    const int windows = p.c.rows * p.c.wide;
    p.warps = windows < 16 ? 5 : 8;
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
    return (size_t)plan_of(s).pieces * SUMS * s->o * sizeof(float);
}

int pc__cuda_conv_few_weights(cudaStream_t queue, const pc__cuda_conv *s, const float *x, const float *y,
                              const uint8_t *argmax, const float *dy, float *sums)
{
    const plan p = plan_of(s);
    const gradient_data d = {x, y, dy, argmax, sums, p.bands, p.each};
    s->pool == 2 ? launch<2>(queue, s, p, d) : launch<1>(queue, s, p, d);
    return p.pieces;
}
