/* patch_finish.cuh: what follows the product of a forward convolution from a patch: pooling, bias, activation, and
 * the results' way to memory. */
#ifndef PC__CUDA_CONV_PATCH_FINISH_CUH
#define PC__CUDA_CONV_PATCH_FINISH_CUH

#include "cuda/conv/patch.cuh"

namespace
{

template <class T> struct patch_data {
    const T *x, *weight, *bias;
    T *y;
    uint8_t *argmax;
    bool whole; /* outputs side by side, in eights that lie on 16 bytes */
};

/* What every result goes through, found out once. */
struct ending {
    int activation;
    bool simple, relu, marks; /* simple: no activation, or a ReLU */
};

__device__ inline ending ending_of(const pc__cuda_conv &s)
{
    const bool relu = s.activation == ACTIVATION_RELU;
    return {s.activation, relu || s.activation == ACTIVATION_NONE, relu, marks_dead(s)};
}

/* The larger; NaN is larger than all. */
__device__ inline float larger_of(float a, float b)
{
#if TENSOR_UNITS
    float larger;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(larger) : "f"(a), "f"(b));
    return larger;
#else
    return a > b || a != a ? a : b;
#endif
}

/* A call: unrolled for every result they would be most of a kernel. */
__device__ __noinline__ float by_activation(int kind, float x)
{
    return activated(kind, x);
}

/* Eight results side by side, two to a word, and their marks, four to a word. */
struct alignas(16) packed_results {
    unsigned y[4], most[2];
};

/* This thread's outputs 8 h to 8 h + 7: with POOL 2 of its window, else of row q of its four. Of a window with a NaN
 * the last place counts. */
template <class T, int POOL, bool SIMPLE, class Sums>
__device__ inline packed_results finish(const ending &e, const Sums &t, const float *bias, int h, int q)
{
    packed_results r = {};
    float y[EIGHT];
#pragma unroll
    for (int j = 0; j < EIGHT; j++) {
        const int n = h * 4 + j / 2;
        float most = t.sum[q / 2][n][q % 2 * 2 + j % 2];
        if (POOL == 2) {
            const float a = t.sum[0][n][j % 2], b = t.sum[0][n][2 + j % 2], c = t.sum[1][n][j % 2];
            most = larger_of(larger_of(a, b), larger_of(c, t.sum[1][n][2 + j % 2]));
            unsigned place = a == most ? 0 : b == most ? 1 : c == most ? 2 : 3;
            y[j] = most + bias[j];
            place = e.marks && y[j] <= 0 ? PC__CUDA_CONV_DEAD : place;
            r.most[j / 4] |= place << j % 4 * 8;
        } else {
            y[j] = most + bias[j];
        }
        if (SIMPLE)
            y[j] = e.relu ? larger_of(y[j], 0.0f) : y[j];
        if (!SIMPLE)
            y[j] = by_activation(e.activation, y[j]);
    }
#pragma unroll
    for (int j = 0; j < 4; j++)
        r.y[j] = pc::word_of<T>(y[2 * j], y[2 * j + 1]);
    return r;
}

/* Where a band's results wait to be written plane by plane: rows of outputs for each window, an odd number of words. */
template <class T> struct staged {
    T *y;          /* [window][outputs + 2] */
    uint8_t *most; /* [window][outputs + 4] */
};

__host__ __device__ inline int staged_bytes(int windows, int outputs)
{
    return windows * ((outputs + 2) * 2 + outputs + 4);
}

template <class T> __device__ inline staged<T> staged_at(void *at, int windows, int outputs)
{
    return {(T *)at, (uint8_t *)((T *)at + windows * (outputs + 2))};
}

/* The results of a tile; start: the band's first pixel of y, count: how many it has; bias: floats in shared memory. */
template <class T, int POOL, int NC, int NT>
__device__ inline void emit(const pc__cuda_conv &s, const ending &e, const patch_data<T> &d, const staged<T> &to,
                            const patch_sums<T, NC, 2, NT> &t, const float *bias, long long start, int tile, int count)
{
    const int lane = threadIdx.x % LANES, begin = blockIdx.y * NT * 8;
#pragma unroll
    for (int q = 0; q < (POOL == 2 ? 1 : 4); q++) {
        const int at = POOL == 2 ? tile * 8 + lane / 4 : tile * 32 + lane / 4 + q * 8;
#pragma unroll
        for (int h = 0; h < NT / 4; h++) {
            const int column = h * 32 + lane % 4 * EIGHT, o = begin + column, left = s.o - o;
            const packed_results r = e.simple ? finish<T, POOL, true>(e, t, bias + column, h, q)
                                              : finish<T, POOL, false>(e, t, bias + column, h, q);
            if (at >= count || left <= 0)
                continue;
            if (s.planes) {
                unsigned *y = (unsigned *)(to.y + at * (NT * 8 + 2) + column);
                unsigned *most = (unsigned *)(to.most + at * (NT * 8 + 4) + column);
#pragma unroll
                for (int j = 0; j < 4; j++)
                    y[j] = r.y[j];
                most[0] = r.most[0], most[1] = r.most[1];
                continue;
            }
            store_eight(d.y + (start + at) * s.o + o, *(const eight<T> *)r.y, left, d.whole);
            if (POOL == 2 && d.argmax)
                store_eight(d.argmax + (start + at) * s.o + o, *(const eight<uint8_t> *)r.most, left, d.whole);
        }
    }
}

/* This block's biases, as floats. */
template <class T> __device__ inline void take_bias(const pc__cuda_conv &s, const T *from, float *to, int outputs)
{
    for (int i = threadIdx.x; i < outputs; i += blockDim.x) {
        const int o = blockIdx.y * outputs + i;
        to[i] = from && o < s.o ? (float)from[o] : 0.0f;
    }
}

/* A band's results, from row `first` of an image on, to the planes of this block's outputs: a warp an output, two
 * results at a time where they lie so. */
template <class T, int POOL>
__device__ inline void write_planes(const pc__cuda_conv &s, const patch_data<T> &d, const staged<T> &from, int outputs,
                                    long long image, int first, int count)
{
    const int area = s.yh * s.yw, lane = threadIdx.x % LANES, begin = blockIdx.y * outputs;
    const long long start = (image * s.o + begin) * area + first * s.yw;
    const bool places = POOL == 2 && d.argmax;
    const bool pairs = area % 2 == 0 && first * s.yw % 2 == 0 && count % 2 == 0 && (uintptr_t)d.y % 4 == 0 &&
                       (uintptr_t)d.argmax % 2 == 0;
    const int warp = threadIdx.x / LANES, warps = blockDim.x / LANES, most = min(outputs, s.o - begin);
    const int wide = outputs + 2, wide_most = outputs + 4;
    for (int i = pairs ? lane * 2 : lane; i < count; i += pairs ? LANES * 2 : LANES) {
        const uint16_t *y = (const uint16_t *)from.y + i * wide;
        const uint8_t *marks = from.most + i * wide_most;
        T *to = d.y + start + (long long)warp * area + i;
        uint8_t *argmax = d.argmax + start + (long long)warp * area + i;
        for (int k = warp; k < most; k += warps, to += warps * area, argmax += warps * area) {
            if (pairs)
                *(unsigned *)to = y[k] | (unsigned)y[k + wide] << 16;
            else
                to->bits = y[k];
            if (places && pairs)
                *(uint16_t *)argmax = (uint16_t)(marks[k] | marks[k + wide_most] << 8);
            else if (places)
                *argmax = marks[k];
        }
    }
}

} // namespace

#endif
