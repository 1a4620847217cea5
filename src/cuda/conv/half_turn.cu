/* half_turn.cu: in front of the gradients of a convolution of 16-bit numbers. What lies in planes is turned to channels
 * last, all of it by one kernel, since both gradients read it so; that kernel packs the weights, too. */
#include "cuda/conv/half.h"
#include "cuda/conv/order.cuh"
#include "cuda/conv/pack.cuh"
#include "cuda/shared/dependent_launch.cuh"

#define SIDE 64 /* channels and pixels of a block */
#define WARPS 8

namespace
{

/* Of 16-bit numbers the bits. NULL: not wanted. */
struct planes {
    const uint16_t *dy, *y;
    const uint8_t *argmax;
};

struct turned {
    uint16_t *dy, *y;
    uint8_t *argmax;
};

/* A tile of channels by pixels of a picture. */
struct place {
    int channels, area;
    int channel, pixel; /* the first */
    long long picture;
};

/* A thread's share of a tile on its way to shared memory, so that all of it is under way at once: two numbers, T2,
 * where PAIRS, of each channel two pixels. */
template <bool PAIRS, class T2, class T> struct share {
    static constexpr int N = PAIRS ? 2 : 1, ACROSS = SIDE / (32 * N), COUNT = SIDE / WARPS * ACROSS;
    T2 at[COUNT];

    __device__ __forceinline__ static int channel(int j)
    {
        return j / ACROSS * WARPS + threadIdx.x / 32;
    }

    __device__ __forceinline__ static int pixel(int j)
    {
        return (j % ACROSS * 32 + threadIdx.x % 32) * N;
    }

    __device__ __forceinline__ void read(const T *from, const place &p)
    {
#pragma unroll
        for (int j = 0; j < COUNT; j++) {
            const T *source = from + p.picture + (long long)(p.channel + channel(j)) * p.area + p.pixel + pixel(j);
            at[j] = 0;
            if (p.channel + channel(j) < p.channels && p.pixel + pixel(j) < p.area)
                at[j] = PAIRS ? *(const T2 *)source : (T2)*source;
        }
    }

    __device__ __forceinline__ void put(T (&tile)[SIDE][SIDE + 4 / sizeof(T)]) const
    {
#pragma unroll
        for (int j = 0; j < COUNT; j++) {
            T *to = &tile[channel(j)][pixel(j)];
            if (PAIRS)
                *(T2 *)to = at[j];
            else
                *to = (T)at[j];
        }
    }
};

/* Of each pixel two channels are written. */
template <bool PAIRS, class T2, class T>
__device__ __forceinline__ void write_tile(T *to, const T (&tile)[SIDE][SIDE + 4 / sizeof(T)], const place &p)
{
    constexpr int N = PAIRS ? 2 : 1, BITS = 8 * sizeof(T);
    for (int k = threadIdx.x / 32; k < SIDE && p.pixel + k < p.area; k += WARPS)
        for (int i = threadIdx.x % 32 * N; i < SIDE; i += 32 * N)
            if (p.channel + i < p.channels) {
                T *at = to + p.picture + (long long)(p.pixel + k) * p.channels + p.channel + i;
                if (PAIRS)
                    *(T2 *)at = (T2)(tile[i][k] | (T2)tile[i + 1][k] << BITS);
                else
                    *at = tile[i][k];
            }
}

/* A block a tile of a picture, of which there are `down` along its pixels; blocks beyond the pictures' pack weights, if any. For
 * pairs five blocks a multiprocessor: what waits for memory wants loads under way. */
template <bool PAIRS>
__global__ void __launch_bounds__(WARPS * 32, PAIRS ? 5 : 1)
    turn_kernel(const planes from, const turned to, unsigned pictures, unsigned down, int channels, int area,
                const packing<uint16_t> weights)
{
    __shared__ __align__(4) uint16_t gradients[SIDE][SIDE + 2], values[SIDE][SIDE + 2];
    __shared__ __align__(4) uint8_t places[SIDE][SIDE + 4];
    const unsigned picture = blockIdx.x / down, tile = blockIdx.x - picture * down;
    const place p = {channels, area, (int)blockIdx.y * SIDE, (int)tile * SIDE, (long long)picture * channels * area};
    share<PAIRS, unsigned, uint16_t> dy, y;
    share<PAIRS, uint16_t, uint8_t> argmax;
    pc::wait_for_earlier();
    if (picture >= pictures) {
        const unsigned block = (blockIdx.x - pictures * down) * gridDim.y + blockIdx.y;
        weights.move((int)(block * WARPS * 32 + threadIdx.x));
        return;
    }
    dy.read(from.dy, p);
    if (from.argmax)
        argmax.read(from.argmax, p);
    if (from.y)
        y.read(from.y, p);
    dy.put(gradients);
    if (from.argmax)
        argmax.put(places);
    if (from.y)
        y.put(values);
    __syncthreads();
    write_tile<PAIRS, unsigned>(to.dy, gradients, p);
    if (from.argmax)
        write_tile<PAIRS, uint16_t>(to.argmax, places, p);
    if (from.y)
        write_tile<PAIRS, unsigned>(to.y, values, p);
}

/* Elements of dy in whole 256 bytes. */
size_t room(const pc__cuda_conv *s)
{
    return ((size_t)s->n * s->yh * s->yw * s->o + 255) / 256 * 256;
}

} // namespace

size_t pc__cuda_conv_turn_scratch(const pc__cuda_conv *s, bool pack)
{
    return 5 * room(s) + (pack ? filter_bytes(s) : 0);
}

void pc__cuda_conv_turn(cudaStream_t queue, const pc__cuda_conv *s, const void *weight, const void **y,
                        const uint8_t **argmax, const void **dy, void **packed, void *scratch)
{
    const size_t elements = room(s);
    const int area = s->yh * s->yw;
    const planes from = {(const uint16_t *)*dy, needs_y(*s) ? (const uint16_t *)*y : NULL,
                         s->pool > 1 ? *argmax : NULL};
    char *at = (char *)scratch;
    const turned to = {(uint16_t *)at, (uint16_t *)(at + 2 * elements), (uint8_t *)(at + 4 * elements)};
    const int down = (area + SIDE - 1) / SIDE, across = (s->o + SIDE - 1) / SIDE;
    const long long each = (long long)down * across * WARPS * 32; /* numbers packed beside a picture */
    packing<uint16_t> weights = {};
    *packed = weight ? at + 5 * elements : NULL;
    if (weight)
        weights = packing_of<uint16_t>(s, weight, *packed, true);
    const dim3 grid((unsigned)((s->n + (weights.count() + each - 1) / each) * down), (unsigned)across);
    const bool pairs = area % 2 == 0 && s->o % 2 == 0 && (uintptr_t)from.dy % 4 == 0 && (uintptr_t)from.y % 4 == 0 &&
                       (uintptr_t)from.argmax % 2 == 0;
    pc::start_grid(pairs ? turn_kernel<true> : turn_kernel<false>, grid, dim3(WARPS * 32), 0, queue, s->early, from, to,
                   (unsigned)s->n, (unsigned)down, s->o, area, weights);
    *dy = to.dy;
    *y = from.y ? to.y : NULL;
    *argmax = from.argmax ? to.argmax : NULL;
}
