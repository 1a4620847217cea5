/* few_half.cu: the forward convolution of three channels of 16-bit numbers by matrix units. Depth runs over the
 * nine taps and four numbers under each, in three sixteens; a warp makes eight pooling windows by 32 outputs, whose
 * weights stay in registers. */
#include "cuda/conv/few_half.cuh"

namespace
{

constexpr int SIXTEENS = 3, N = 32;

/* Weights of a sixteen of depth and of eight outputs, as matrix units take them: two numbers each under a tap and the
 * one two taps on. `weight` is [output][c][tap]. All are read from one place on, those that are none too (bytes_for
 * has room behind the last), so that no read waits for another. */
template <class T> __device__ inline void take_weights(const T *weight, int outputs, unsigned (&to)[SIXTEENS][4][2])
{
    const int lane = threadIdx.x % LANES, g = lane / 4, t = lane % 4, c = t % 2 * 2, start = g / 2 * 8 + g % 2;
    const uint16_t *first = (const uint16_t *)weight + (start * COLORS + c) * TAPS + t / 2;
    const uint16_t *second = c == 0 ? first + TAPS : first;
#pragma unroll
    for (int i = 0; i < SIXTEENS * 4 * 2; i++) {
        const int tap = i / 8 * 4 + i % 2 * 2, o = i / 2 % 4 * 2, at = o * COLORS * TAPS + tap;
        const unsigned low = first[at], high = second[at], pair = c == 0 ? low | high << 16 : low;
        to[i / 8][i / 2 % 4][i % 2] = tap + t / 2 < TAPS && start + o < outputs ? pair : 0;
    }
}

#if TENSOR_UNITS
/* The weights of `outputs` channels, a multiple of eight, to shared memory: on their way while the band is. */
template <class T> __device__ inline void send_weights(const T *from, int outputs, T *to)
{
    const bool whole = (uintptr_t)from % 16 == 0;
    for (int i = threadIdx.x * EIGHT; whole && i < outputs * COLORS * TAPS; i += blockDim.x * EIGHT)
        send<EIGHT * sizeof(T)>(to + i, from + i, true);
    for (int i = threadIdx.x; !whole && i < outputs * COLORS * TAPS; i += blockDim.x)
        to[i] = from[i];
    sent();
}
#endif

template <class T>
__global__ void __launch_bounds__(256, 2) few_half_kernel(const pc__cuda_conv s, const cut c, const patch_data<T> d)
{
#if TENSOR_UNITS
    extern __shared__ __align__(128) char shared[];
    const int lane = threadIdx.x % LANES, warp = threadIdx.x / LANES, begin = blockIdx.y * N,
              total = (int)s.n * c.bands;
    uint2 *band = (uint2 *)shared;
    T *weight = (T *)(band + c.height * c.width);
    float *bias = (float *)(weight + N * COLORS * TAPS);
    const staged<T> to = staged_at<T>(bias + N, c.rows * s.yw, N);
    const ending e = ending_of(s);
    pc::wait_for_earlier();
    const int outputs = min(N, s.o - begin);
    send_weights(d.weight + begin * COLORS * TAPS, outputs, weight);
    const T mine = d.bias && (int)threadIdx.x < outputs ? d.bias[begin + threadIdx.x] : T(0.0f);
    unsigned b[SIXTEENS][4][2] = {};
    int away[SIXTEENS][2]; /* from a pixel to this lane's taps, in 4 bytes; those that are none read the first */
#pragma unroll
    for (int i = 0; i < SIXTEENS * 2; i++) {
        const int tap = i / 2 * 4 + i % 2 * 2 + lane % 4 / 2, real = tap < TAPS ? tap : 0;
        away[i / 2][i % 2] = (real / 3 * c.width + real % 3) * 2 + lane % 2;
    }
    for (int at = blockIdx.x; at < total; at += gridDim.x) {
        const int image = at / c.bands, first = (at - image * c.bands) * c.rows;
        const int count = min(c.rows, s.yh - first) * s.yw;
        const long long start = ((long long)image * s.yh + first) * s.yw;
        load_few(s, c, d.x + (long long)image * s.h * s.w * COLORS, first, band);
        if (at == (int)blockIdx.x) {
            if (threadIdx.x < N)
                bias[threadIdx.x] = (float)mine;
            wait_sent<0>();
        }
        __syncthreads();
        if (at == (int)blockIdx.x)
            take_weights(weight, outputs, b);
        for (int tile = warp; tile * 8 < count; tile += blockDim.x / LANES) {
            const int window = min(tile * 8 + lane / 4, count - 1), row = window / s.yw, column = window - row * s.yw;
            const unsigned *pixel = (const unsigned *)(band + row * 2 * s.sh * c.width + column * 2 * s.sw);
            patch_sums<T, 4, 2, 4> t;
            t.clear();
#pragma unroll
            for (int k = 0; k < SIXTEENS; k++)
#pragma unroll
                for (int i = 0; i < 2; i++) {
                    const unsigned *left = pixel + i * s.sh * c.width * 2, *right = left + s.sw * 2;
                    const unsigned a[4] = {left[away[k][0]], right[away[k][0]], left[away[k][1]], right[away[k][1]]};
#pragma unroll
                    for (int j = 0; j < 4; j++)
                        add_tensor(t.sum[i][j], a, b[k][j], T());
                }
            emit<T, 2>(s, e, d, to, t, bias, start, tile, count);
        }
        __syncthreads();
        if (s.planes)
            write_planes<T, 2>(s, d, to, N, image, first, count);
    }
#endif
}

size_t bytes_for(const pc__cuda_conv *s, const cut &c)
{
    const size_t turned = s->planes ? (size_t)staged_bytes(c.rows * s->yw, N) : 0;
    return few_bytes(c) + N * (COLORS * TAPS * 2 + sizeof(float)) + turned;
}

template <class T>
void forward(cudaStream_t queue, const pc__cuda_conv *s, const void *x, const void *weight, const void *bias, void *y,
             uint8_t *argmax)
{
    const bool whole = s->o % EIGHT == 0 && on_16_bytes(y) && (uintptr_t)argmax % EIGHT == 0;
    const patch_data<T> d = {(const T *)x, (const T *)weight, (const T *)bias, (T *)y, argmax, whole};
    /* nearly two blocks for each multiprocessor: two are there at once, and a third waits for its turn */
    int rows = 8;
    while (rows > 1 &&
           (s->n * over(s->yh, rows) * 8 < 15 * s->multiprocessors || bytes_for(s, few_cut_of(s, rows)) > 40 << 10))
        rows--;
    const cut c = few_cut_of(s, rows);
    const int tiles = over(c.rows * s->yw, 8), bands = (int)s->n * c.bands, blocks = s->multiprocessors * 4;
    const dim3 grid((unsigned)(bands < blocks ? bands : blocks), (unsigned)over(s->o, N));
    pc::start_grid(few_half_kernel<T>, grid,
                   dim3((unsigned)(LANES * (tiles < 2   ? 2
                                            : tiles < 8 ? tiles
                                                        : 8))),
                   bytes_for(s, c), queue, s->early, *s, c, d);
}

} // namespace

bool pc__cuda_conv_few_half_fits(const pc__cuda_conv *s)
{
    return s->pool == 2 && s->o % EIGHT == 0 && bytes_for(s, few_cut_of(s, 1)) <= 40 << 10;
}

void pc__cuda_conv_few_half_forward(cudaStream_t queue, const pc__cuda_conv *s, const void *x, const void *weight,
                                    const void *bias, void *y, uint8_t *argmax)
{
    if (s->dtype == PC__CUDA_F16)
        forward<pc::f16>(queue, s, x, weight, bias, y, argmax);
    else
        forward<pc::bf16>(queue, s, x, weight, bias, y, argmax);
}
