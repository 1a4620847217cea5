/* pack.cuh: weights of 16-bit numbers in the order in which the products of half.cuh read them. */
#ifndef PC__CUDA_CONV_PACK_CUH
#define PC__CUDA_CONV_PACK_CUH

#include "cuda/conv/conv.h"

namespace
{

/* packed[output][tap][inner] from weights with these distances. */
template <class T> struct packing {
    const T *from;
    T *packed;
    int taps, inner, outputs, step, output;

    __host__ __device__ inline int count() const
    {
        return taps * inner * outputs;
    }

    __device__ inline const T *source_of(int i) const
    {
        const int rest = i / inner;
        return from + rest % taps + i % inner * step + rest / taps * output;
    }

    __device__ inline void move(int i) const
    {
        if (i < count())
            packed[i] = *source_of(i);
    }
};

/* Of weights [o][c][kh][kw], for a product that leads from c to o, or back. */
template <class T> packing<T> packing_of(const pc__cuda_conv *s, const void *from, void *packed, bool back)
{
    const int area = s->kh * s->kw, across = s->c * area;
    return {(const T *)from,      (T *)packed,         area, back ? s->o : s->c, back ? s->c : s->o,
            back ? across : area, back ? area : across};
}

inline size_t filter_bytes(const pc__cuda_conv *s)
{
    return ((size_t)s->o * s->c * s->kh * s->kw * 2 + 255) / 256 * 256;
}

} // namespace

#endif
