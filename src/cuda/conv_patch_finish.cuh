/* conv_patch_finish.cuh: what follows the product of a forward convolution from a patch: pooling, bias, activation, and
 * the results' way to memory. */
#ifndef PC__CUDA_CONV_PATCH_FINISH_CUH
#define PC__CUDA_CONV_PATCH_FINISH_CUH

#include "cuda/conv_patch.cuh"

namespace
{

template <class T> struct patch_data {
    const T *x, *weight, *bias;
    T *y;
    uint8_t *argmax;
    bool whole; /* outputs side by side, in eights that lie on 16 bytes */
};

template <class T> struct eights {
    eight<T> y;
    eight<uint8_t> most;
};

/* This thread's outputs 8 h to 8 h + 7: with POOL 2 of its window, else of row q of its four. */
template <class T, int POOL, class Sums>
__device__ inline eights<T> finish(const pc__cuda_conv &s, const Sums &t, const T *bias, int left, int h, int q)
{
    eights<T> r;
#pragma unroll
    for (int j = 0; j < EIGHT; j++) {
        const int n = h * 4 + j / 2;
        float most = POOL == 2 ? t.sum[0][n][j % 2] : t.sum[q / 2][n][q % 2 * 2 + j % 2];
        int place = 0;
#pragma unroll
        for (int i = 1; i < POOL * POOL; i++) {
            const float value = t.sum[i / 2][n][i % 2 * 2 + j % 2];
            const bool more = value > most || value != value;
            most = more ? value : most;
            place = more ? i : place;
        }
        most = activated(s.activation, most + (bias && j < left ? (float)bias[j] : 0.0f));
        r.y.at[j] = T(most);
        r.most.at[j] = (uint8_t)mark_of(s, place, most);
    }
    return r;
}

/* Where a band's results wait to be written plane by plane, [output][window]. */
template <class T> struct staged {
    T *y;
    uint8_t *most;
    int pitch;
};

/* The results of a tile; start: the band's first pixel of y, count: how many it has. */
template <class T, int POOL, int NC, int NT>
__device__ inline void emit(const pc__cuda_conv &s, const patch_data<T> &d, const staged<T> &to,
                            const patch_sums<T, NC, 2, NT> &t, long long start, int tile, int count)
{
    const int lane = threadIdx.x % LANES, begin = blockIdx.y * NT * 8;
#pragma unroll
    for (int q = 0; q < (POOL == 2 ? 1 : 4); q++) {
        const int at = POOL == 2 ? tile * 8 + lane / 4 : tile * 32 + lane / 4 + q * 8;
#pragma unroll
        for (int h = 0; h < NT / 4; h++) {
            const int column = h * 32 + lane % 4 * EIGHT, o = begin + column, left = s.o - o;
            const eights<T> r = finish<T, POOL>(s, t, d.bias && left > 0 ? d.bias + o : NULL, left, h, q);
            if (at >= count || left <= 0)
                continue;
            if (s.planes) {
#pragma unroll
                for (int j = 0; j < EIGHT; j++) {
                    to.y[(column + j) * to.pitch + at] = r.y.at[j];
                    to.most[(column + j) * to.pitch + at] = r.most.at[j];
                }
                continue;
            }
            store_eight(d.y + (start + at) * s.o + o, r.y, left, d.whole);
            if (POOL == 2 && d.argmax)
                store_eight(d.argmax + (start + at) * s.o + o, r.most, left, d.whole);
        }
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
    const bool pairs = area % 2 == 0 && first * s.yw % 2 == 0 && count % 2 == 0 && (uintptr_t)d.y % 4 == 0 &&
                       (uintptr_t)d.argmax % 2 == 0,
               places = POOL == 2 && d.argmax;
    const int step = pairs ? 2 : 1;
    for (int k = threadIdx.x / LANES; k < outputs && begin + k < s.o; k += blockDim.x / LANES) {
        const T *y = from.y + k * from.pitch;
        const uint8_t *most = from.most + k * from.pitch;
        const long long at = start + (long long)k * area;
        for (int i = lane * step; i < count; i += LANES * step) {
            if (pairs)
                *(unsigned *)(d.y + at + i) = *(const unsigned *)(y + i);
            else
                d.y[at + i] = y[i];
            if (places && pairs)
                *(uint16_t *)(d.argmax + at + i) = *(const uint16_t *)(most + i);
            else if (places)
                d.argmax[at + i] = most[i];
        }
    }
}

} // namespace

#endif
