/* few_half_weights.cu: the gradients of weights and bias of a convolution of three channels of 16-bit numbers by
 * matrix units: a product over the pixels of a band, four to a pooling window, of 27 inputs under each (and a 1 for the
 * bias) and of the gradient of 32 outputs, spread over the windows in shared memory. */
#include "cuda/conv/few_half.cuh"

#define SUMS (COLORS * TAPS + 1)

namespace
{

constexpr int GC = 4, N = GC * EIGHT, WARPS = 8; /* chunks of outputs, outputs */

template <class T> struct weights_data {
    const T *x, *y, *dy;
    const uint8_t *argmax;
    float *sums;
    int windows; /* of a band, in fours */
};

/* Eight outputs of a window, its four pixels one after the other. */
template <class T>
__device__ inline void spread_item(const pc__cuda_conv &s, const weights_data<T> &d, long long start, int count,
                                   char *g, int item)
{
    const int window = item / GC, chunk = item % GC, o = blockIdx.y * N + chunk * EIGHT;
    const long long at = (start + window) * s.o + o;
    eight<T> value = {};
    eight<uint8_t> most = {};
    if (window < count && o < s.o) {
        value = *(const eight<T> *)(d.dy + at);
        most = *(const eight<uint8_t> *)(d.argmax + at);
        if (needs_y(s)) {
            const eight<T> saved = *(const eight<T> *)(d.y + at);
#pragma unroll
            for (int j = 0; j < EIGHT; j++)
                value.at[j] = T(activation_gradient(s.activation, (float)value.at[j], (float)saved.at[j]));
        }
    }
#pragma unroll
    for (int q = 0; q < 4; q++) {
        const eight<T> here = only(value, most, (unsigned)q);
        *(eight<T> *)(g + spot<GC>(window * 4 + q, chunk)) = here;
    }
}

#if TENSOR_UNITS
/* What this lane reads of x for row m of the product under a pixel: distance in numbers. Row 27 is 1, those behind 0.
 */
__device__ inline int row_away(const cut &c, int m)
{
    const int tap = m / COLORS;
    return m < SUMS - 1 ? (tap / 3 * c.width + tap % 3) * 4 + m % COLORS : 0;
}
#endif

template <class T>
__global__ void __launch_bounds__(WARPS *LANES, 3)
    few_half_weights_kernel(const pc__cuda_conv s, const cut c, const weights_data<T> d)
{
#if TENSOR_UNITS
    extern __shared__ __align__(128) char shared[];
    const int lane = threadIdx.x % LANES, warp = threadIdx.x / LANES, total = (int)s.n * c.bands;
    char *g = shared + (size_t)(c.height * c.width * 8 + 127) / 128 * 128;
    int *table = (int *)(g + d.windows * 4 * GC * 16);
    uint2 *band = (uint2 *)shared;
    for (int i = threadIdx.x; i < d.windows; i += blockDim.x) { /* a window's first pixel, in numbers */
        const int row = i / s.yw;
        table[i] = i < c.rows * s.yw ? (row * 2 * s.sh * c.width + (i - row * s.yw) * 2 * s.sw) * 4 : 0;
    }
    bool ahead = s.ready_x && blockIdx.x < total;
    if (!ahead)
        pc::wait_for_earlier();
    const uint16_t one = T(1.0f).bits;
    const unsigned ones = one | (unsigned)one << 16;
    int away[4]; /* of rows g, g + 8, g + 16 and g + 24, from the pixels of this lane's row of a window */
#pragma unroll
    for (int i = 0; i < 4; i++)
        away[i] = row_away(c, i * 8 + lane / 4) + lane % 2 * s.sh * c.width * 4;
    float sum[2][4][4] = {};
    for (int at = blockIdx.x; at < total; at += gridDim.x) {
        const int image = at / c.bands, first = (at - image * c.bands) * c.rows;
        const int count = min(c.rows, s.yh - first) * s.yw;
        const long long start = ((long long)image * s.yh + first) * s.yw;
        load_few(s, c, d.x + (long long)image * s.h * s.w * COLORS, first, band);
        if (ahead)
            pc::wait_for_earlier();
        ahead = false;
        for (int item = threadIdx.x; item < d.windows * GC; item += blockDim.x)
            spread_item(s, d, start, count, g, item);
        __syncthreads();
        for (int k = warp; k < d.windows / 4; k += WARPS) {
            const uint16_t *near = (const uint16_t *)band + table[k * 4 + lane % 4 / 2];
            const uint16_t *far = (const uint16_t *)band + table[k * 4 + lane % 4 / 2 + 2];
            unsigned b[2][4];
            take_squares<true>(b[0], g + spot<GC>(k * 16 + lane % 16, lane / 16));
            take_squares<true>(b[1], g + spot<GC>(k * 16 + lane % 16, lane / 16 + 2));
#pragma unroll
            for (int i = 0; i < 2; i++) {
                unsigned a[4];
#pragma unroll
                for (int r = 0; r < 4; r++) {
                    const uint16_t *from = (r < 2 ? near : far) + away[i * 2 + r % 2];
                    a[r] = from[0] | (unsigned)from[s.sw * 4] << 16;
                    if (i == 1 && r % 2 == 1 && lane / 4 >= 3)
                        a[r] = lane / 4 == 3 ? ones : 0;
                }
#pragma unroll
                for (int j = 0; j < 4; j++) {
                    const unsigned pair[2] = {b[j / 2][j % 2 * 2], b[j / 2][j % 2 * 2 + 1]};
                    add_tensor(sum[i][j], a, pair, T());
                }
            }
        }
        __syncthreads();
    }
    /* the warps' sums, in their order */
    float *parts = (float *)shared;
#pragma unroll
    for (int i = 0; i < 32; i++) {
        const int m = i / 16 * 16 + i % 4 / 2 * 8 + lane / 4, n = i / 4 % 4 * 8 + lane % 4 * 2 + i % 2;
        if (m < SUMS)
            parts[(warp * SUMS + m) * N + n] = sum[i / 16][i / 4 % 4][i % 4];
    }
    __syncthreads();
    for (int e = threadIdx.x; e < SUMS * N; e += blockDim.x) {
        const int o = blockIdx.y * N + e % N;
        float all = 0;
        for (int i = 0; i < WARPS; i++)
            all += parts[i * SUMS * N + e];
        if (o < s.o)
            d.sums[((long long)blockIdx.x * SUMS + e / N) * s.o + o] = all;
    }
#endif
}

struct plan {
    cut c;
    int windows, pieces;
    size_t shared;
};

size_t bytes_for(const pc__cuda_conv *s, const cut &c)
{
    const size_t windows = (size_t)over(c.rows * s->yw, 4) * 4;
    const size_t work = (few_bytes(c) + 127) / 128 * 128 + windows * (4 * GC * 16 + sizeof(int));
    const size_t parts = (size_t)WARPS * SUMS * N * sizeof(float);
    return work > parts ? work : parts;
}

plan plan_of(const pc__cuda_conv *s)
{
    plan p;
    int rows = 8;
    while (rows > 1 &&
           (s->n * over(s->yh, rows) < 2 * s->multiprocessors || bytes_for(s, few_cut_of(s, rows)) > 48 << 10))
        rows--;
    p.c = few_cut_of(s, rows);
    p.windows = over(p.c.rows * s->yw, 4) * 4;
    p.shared = bytes_for(s, p.c);
    const long long bands = s->n * p.c.bands, blocks = over(3 * s->multiprocessors, over(s->o, N));
    p.pieces = (int)(bands < blocks ? bands : blocks);
    return p;
}

template <class T>
void backward(cudaStream_t queue, const pc__cuda_conv *s, const plan &p, const void *x, const void *y,
              const uint8_t *argmax, const void *dy, float *sums)
{
    const weights_data<T> d = {(const T *)x, (const T *)y, (const T *)dy, argmax, sums, p.windows};
    pc::start_grid(few_half_weights_kernel<T>, dim3((unsigned)p.pieces, (unsigned)over(s->o, N)), dim3(WARPS * LANES),
                   p.shared, queue, s->early, *s, p.c, d);
}

} // namespace

int pc__cuda_conv_few_half_pieces(const pc__cuda_conv *s)
{
    return bytes_for(s, few_cut_of(s, 1)) > 48 << 10 ? 0 : plan_of(s).pieces;
}

void pc__cuda_conv_few_half_weights(cudaStream_t queue, const pc__cuda_conv *s, const void *x, const void *y,
                                    const uint8_t *argmax, const void *dy, float *sums)
{
    const plan p = plan_of(s);
    if (s->dtype == PC__CUDA_F16)
        backward<pc::f16>(queue, s, p, x, y, argmax, dy, sums);
    else
        backward<pc::bf16>(queue, s, p, x, y, argmax, dy, sums);
}
