/* radix_tensor.cuh: what the first pass of a sort by digits reads, a tensor's elements, and what its last one writes: them in order,
 * and their places. */
#ifndef PC__CUDA_RADIX_TENSOR_CUH
#define PC__CUDA_RADIX_TENSOR_CUH

#include "cuda/index/radix.cuh"

namespace
{

/* A key in as many bits as its type has. */
__device__ __forceinline__ uint64_t short_key(unsigned bits, unsigned infinity)
{
    if ((bits & 0x7fff) > infinity)
        return 0xffff;
    bits = bits == 0x8000 ? 0 : bits;
    return bits >> 15 ? ~bits & 0xffff : bits | 0x8000;
}
template <class T> __device__ __forceinline__ uint64_t whole_key(T x)
{
    return key_of(x);
}
template <> __device__ __forceinline__ uint64_t whole_key(pc::f16 x)
{
    return short_key(x.bits, 0x7c00);
}
template <> __device__ __forceinline__ uint64_t whole_key(pc::bf16 x)
{
    return short_key(x.bits, 0x7f80);
}

template <class T> struct from_tensor {
    typedef item<T> I;
    typedef T raw;
    const T *from;
    int64_t n, inner;
    bool down;

    __device__ __forceinline__ from_tensor of(int64_t list) const
    {
        const int64_t outer = quotient(list, inner);
        return {from + outer * n * inner + (list - outer * inner), n, inner, down};
    }
    __device__ __forceinline__ T load(unsigned i) const
    {
        return from[i * inner];
    }
    __device__ __forceinline__ I make(T x, unsigned i) const
    {
        return I::of(whole_key(x), i, down);
    }
};
template <class U> struct to_tensors {
    const U *from;
    U *values;
    int64_t *places;
    int64_t n, inner, count;

    __device__ __forceinline__ to_tensors of(int64_t list) const
    {
        const int64_t outer = quotient(list, inner), rest = list - outer * inner, at = outer * count * inner + rest;
        return {from + outer * n * inner + rest, values + at, places + at, n, inner, count};
    }
    template <class I> __device__ __forceinline__ void put(unsigned i, const I &item) const
    {
        if (i >= count)
            return;
        values[i * inner] = from[item.place() * inner];
        places[i * inner] = item.place();
    }
};

template <int> struct word_of {
    typedef uint8_t type;
};
template <> struct word_of<2> {
    typedef uint16_t type;
};
template <> struct word_of<4> {
    typedef uint32_t type;
};
template <> struct word_of<8> {
    typedef uint64_t type;
};

} // namespace

#endif
