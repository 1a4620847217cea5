/* patch_weights.cu: the gradients of weights and bias from a patch of x, 32 channels of it, and the gradient
 * spread over its windows, 64 outputs of it, both in shared memory. A warp keeps the sums of a tap; while a band is
 * multiplied the next one is on its way. One block for each multiprocessor: two would have to keep registers in memory.
 */
#include "cuda/conv/patch.cuh"

#define TAPS_MOST 9

namespace
{

constexpr int XC = 4, GC = 8; /* chunks of channels of x, and of the gradient */

template <class T> struct weights_data {
    const T *x, *y, *dy;
    const uint8_t *argmax;
    float *sums;
    int pixels; /* of a band's gradient, in sixteens */
};

/* Eight channels of a window (or pixel) of the band's gradient. */
template <class T, int POOL> struct gradient_item {
    eight<T> value;
    eight<uint8_t> most;

    __device__ inline void load(const pc__cuda_conv &s, const weights_data<T> &d, long long start, int count, int item)
    {
        const int o = blockIdx.y * (GC * EIGHT) + item % GC * EIGHT;
        const long long at = (start + item / GC) * s.o + o;
        value = {};
        most = {};
        if (item / GC >= count || o >= s.o)
            return;
        value = *(const eight<T> *)(d.dy + at);
        if (POOL == 2)
            most = *(const eight<uint8_t> *)(d.argmax + at);
        if (needs_y(s)) {
            const eight<T> saved = *(const eight<T> *)(d.y + at);
#pragma unroll
            for (int j = 0; j < EIGHT; j++)
                value.at[j] = T(activation_gradient(s.activation, (float)value.at[j], (float)saved.at[j]));
        }
    }

    /* Rows of the gradient: pixels of the band, row by row. */
    __device__ inline void store(const pc__cuda_conv &s, char *g, int pixels, eight<float> *bias, int item) const
    {
        const int window = item / GC, row = window / s.yw, column = window - row * s.yw;
#pragma unroll
        for (int q = 0; q < POOL * POOL; q++) {
            const int p = (row * POOL + q / POOL) * s.yw * POOL + column * POOL + q % POOL;
            const eight<T> here = only(value, most, (unsigned)q);
            if (p < pixels)
                *(eight<T> *)(g + spot<GC>(p, item % GC)) = here;
        }
        eight<float> sum = bias[threadIdx.x];
#pragma unroll
        for (int j = 0; j < EIGHT; j++)
            sum.at[j] += most.at[j] < POOL * POOL ? (float)value.at[j] : 0.0f;
        bias[threadIdx.x] = sum;
    }
};

/* sum[channel][output] += x[pixel + away][channel] g[pixel][output] over the band. */
template <class T>
__device__ inline void multiply(float (&sum)[2][8][4], unsigned patch, unsigned g, const int *table, int pixels,
                                int away)
{
#if TENSOR_UNITS
    const int lane = threadIdx.x % LANES;
    const unsigned right = g + spot<GC>(lane % 16, lane / 16);
    for (int k = 0; k < pixels; k += 16) {
        const unsigned left = patch + spot<XC>(table[k + lane % 8 + lane / 16 * 8] + away, lane / 8 % 2);
        unsigned a[2][4];
        take_squares<true>(a[0], left);
        take_squares<true>(a[1], left ^ 32);
#pragma unroll
        for (int j = 0; j < 8; j += 2) {
            unsigned b[4];
            take_squares<true>(b, (right ^ (j * 16)) + k * GC * 16);
            const unsigned first[2] = {b[0], b[1]}, second[2] = {b[2], b[3]};
#pragma unroll
            for (int i = 0; i < 2; i++) {
                add_tensor(sum[i][j], a[i], first, T());
                add_tensor(sum[i][j + 1], a[i], second, T());
            }
        }
    }
#endif
}

template <class T, int POOL>
__global__ void __launch_bounds__(TAPS_MOST *LANES, 1)
    patch_weights_kernel(const pc__cuda_conv s, const cut c, const weights_data<T> d)
{
    extern __shared__ __align__(128) char shared[];
    const int lane = threadIdx.x % LANES, tap = threadIdx.x / LANES, total = (int)s.n * c.bands;
    const int x_bytes = c.height * c.width * XC * 16, g_bytes = d.pixels * GC * 16, channel = blockIdx.z * XC * EIGHT;
    const int items = c.rows * s.yw * GC, row = tap / s.kw, away = row * c.width + tap - row * s.kw;
    char *patches = shared + 2 * g_bytes;
    eight<float> *bias =
        (eight<float> *)(patches + 2 * x_bytes); /* sums of each thread: eight apart, the same channels */
    int *table = (int *)(bias + blockDim.x);
    for (int p = threadIdx.x; p < d.pixels; p += blockDim.x) { /* the patch's pixel under each of the gradient's */
        const int wide = s.yw * POOL, r = p / wide;
        table[p] = p < c.rows * POOL * wide ? r * c.width + p - r * wide : 0;
    }
    for (int i = threadIdx.x; i < 2 * g_bytes / 4; i += blockDim.x)
        ((unsigned *)shared)[i] = 0;
    bias[threadIdx.x] = {};
    if (!s.ready_x)
        pc::wait_for_earlier();
    __syncthreads();
    float sum[2][8][4] = {};
    gradient_item<T, POOL> next;
    for (int turn = -1, band = blockIdx.x - gridDim.x; band < total; turn++, band += gridDim.x) {
        const int coming = band + gridDim.x, image = coming / c.bands, first = (coming - image * c.bands) * c.rows;
        const int count = min(c.rows, s.yh - first) * s.yw;
        const long long start = ((long long)image * s.yh + first) * s.yw;
        char *g = shared + turn % 2 * g_bytes;
        if (turn >= 0) {
            const int now = band % c.bands * c.rows, here = min(c.rows, s.yh - now) * s.yw;
            if (threadIdx.x < items)
                next.store(s, g, d.pixels, bias, threadIdx.x);
            for (int i = threadIdx.x + blockDim.x; i < items; i += blockDim.x) {
                gradient_item<T, POOL> more;
                more.load(s, d, ((long long)(band / c.bands) * s.yh + now) * s.yw, here, i);
                more.store(s, g, d.pixels, bias, i);
            }
#if TENSOR_UNITS
            wait_sent<0>();
#endif
            __syncthreads();
        }
        if (coming < total) {
            send_patch<XC>(patches + (turn + 1) % 2 * x_bytes, c, d.x + (long long)image * s.h * s.w * s.c, s.h, s.w,
                           s.c, channel, first * POOL - s.ph, s.pw);
#if TENSOR_UNITS
            sent();
#endif
            if (turn < 0 && s.ready_x)
                pc::wait_for_earlier();
            next.load(s, d, start, count, threadIdx.x);
        }
        if (turn >= 0)
            multiply<T>(sum, address_of(patches + turn % 2 * x_bytes), address_of(g), table, d.pixels, away);
    }
    const int depth = s.kh * s.kw * s.c;
    float *to = d.sums + (long long)blockIdx.x * (depth + 1) * s.o;
#pragma unroll
    for (int i = 0; i < 64; i += 2) { /* four lanes write whole sectors of memory, 32 bytes */
        const int k = channel + i / 32 * 16 + i % 4 / 2 * 8 + lane / 4;
        const int o = blockIdx.y * (GC * EIGHT) + i / 4 % 8 * 8 + lane % 4 * 2;
        const float *from = &sum[i / 32][i / 4 % 8][i % 4];
        if (o < s.o)
            *(float2 *)(to + ((long long)tap * s.c + k) * s.o + o) = make_float2(from[0], from[1]);
    }
    if (blockIdx.z > 0)
        return;
    __syncthreads();
    for (int i = threadIdx.x; i < GC * EIGHT; i += blockDim.x) {
        float all = 0;
        for (int k = i / EIGHT; k < (int)blockDim.x; k += GC)
            all += bias[k].at[i % EIGHT];
        if (blockIdx.y * (GC * EIGHT) + i < s.o)
            to[(long long)depth * s.o + blockIdx.y * (GC * EIGHT) + i] = all;
    }
}

struct plan {
    cut c;
    int pixels, pieces;
    size_t shared;
};

plan plan_of(const pc__cuda_conv *s)
{
    plan p;
    int rows = s->kh * s->kw * LANES / GC / s->yw; /* an item for each thread */
    rows = rows < 1 ? 1 : rows < s->yh ? rows : s->yh;
    p.c.bands = over(s->yh, rows);
    p.c.rows = over(s->yh, p.c.bands);
    p.c.height = p.c.rows * s->pool + s->kh - 1;
    p.c.width = (s->yw * s->pool + s->kw) / 2 * 2;
    p.pixels = over((long long)p.c.rows * s->yw * s->pool * s->pool, 16) * 16;
    p.shared = (size_t)2 * (p.pixels * GC + p.c.height * p.c.width * XC) * 16 + p.pixels * sizeof(int) +
               (size_t)s->kh * s->kw * LANES * sizeof(eight<float>);
    const long long bands = s->n * p.c.bands, beside = (long long)over(s->o, GC * EIGHT) * (s->c / 32);
    const long long blocks = over(s->multiprocessors, beside);
    p.pieces = over(bands, over(bands, blocks)); /* blocks beyond these would make no other's way shorter */
    return p;
}

template <class T>
void backward(cudaStream_t queue, const pc__cuda_conv *s, const void *x, const void *y, const uint8_t *argmax,
              const void *dy, float *sums)
{
    const plan p = plan_of(s);
    const weights_data<T> d = {(const T *)x, (const T *)y, (const T *)dy, argmax, sums, p.pixels};
    const dim3 grid((unsigned)p.pieces, (unsigned)over(s->o, GC * EIGHT), (unsigned)(s->c / 32));
    void (*kernel)(pc__cuda_conv, cut, weights_data<T>) =
        s->pool == 2 ? patch_weights_kernel<T, 2> : patch_weights_kernel<T, 1>;
    pc::start_grid(kernel, grid, dim3((unsigned)(s->kh * s->kw * LANES)), p.shared, queue, s->early, *s, p.c, d);
}

} // namespace

bool pc__cuda_conv_patch_weights_fits(const pc__cuda_conv *s)
{
    return s->c % 32 == 0 && s->sh == 1 && s->sw == 1 && s->pool <= 2 && s->kh * s->kw >= 4 &&
           s->kh * s->kw <= TAPS_MOST && (double)s->n * s->yh < INT32_MAX && s->c / 32 < 65536 &&
           over(s->o, 64) < 65536 && s->yw * GC <= s->kh * s->kw * LANES && fits_alone(s, plan_of(s).shared);
}

int pc__cuda_conv_patch_pieces(const pc__cuda_conv *s)
{
    return plan_of(s).pieces;
}

void pc__cuda_conv_patch_weights(cudaStream_t queue, const pc__cuda_conv *s, const void *x, const void *y,
                                 const uint8_t *argmax, const void *dy, float *sums)
{
    if (s->dtype == PC__CUDA_F16)
        backward<pc::f16>(queue, s, x, y, argmax, dy, sums);
    else
        backward<pc::bf16>(queue, s, x, y, argmax, dy, sums);
}
