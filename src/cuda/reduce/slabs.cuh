/* slabs.cuh: what a thread reads of up to eight rows that lie over each other. Nothing of it is a loop or a division, which take
 * longer than so few elements. */
#ifndef PC__CUDA_SLABS_CUH
#define PC__CUDA_SLABS_CUH

#include "cuda/reduce/slabs.h"
#include "cuda/shared/dependent_launch.cuh"
#include "cuda/shared/divisor.cuh"
#include "cuda/shared/half.cuh"

namespace
{

enum { SLABS_THREADS = 128 };

template <class T, int N> struct alignas(sizeof(T) * N <= 16 ? sizeof(T) * N : 16) slab {
    T v[N];
};

/* The same as it lies in memory: two 16-bit numbers are one register until they are computed with. */
template <class T, int N, bool TWO = sizeof(T) == 2 && N % 2 == 0> struct slab_words {
    slab<T, N> numbers;

    __device__ __forceinline__ T at(int k) const
    {
        return numbers.v[k];
    }
};

template <class T, int N> struct slab_words<T, N, true> {
    slab<uint32_t, N / 2> words;

    __device__ __forceinline__ T at(int k) const
    {
        return pc::of_bits<T>(static_cast<uint16_t>(words.v[k / 2] >> k % 2 * 16));
    }
};

/* Which pack of results a thread has: below `count`. */
__device__ __forceinline__ unsigned own_slab()
{
    return blockIdx.x * SLABS_THREADS + threadIdx.x;
}

/* Those rows of the pack; of what there is none, zeros. */
template <int ROWS, class T, int N>
__device__ __forceinline__ void read_slabs(const pc__cuda_slabs &s, unsigned own, int first,
                                           slab_words<T, N> (&rows)[ROWS])
{
    const unsigned outer = pc::over(own, s.across), column = own - outer * s.across.by;
    typedef slab_words<T, N> words;
    const words *from =
        static_cast<const words *>(s.in) + (static_cast<uint64_t>(outer) * s.rows + first) * s.across.by + column;
#pragma unroll
    for (int u = 0; u < ROWS; u++) {
        rows[u] = {};
        if (first + u < s.rows)
            rows[u] = *from;
        from += s.across.by;
    }
}

inline void start_slabs(void (*kernel)(pc__cuda_slabs), const pc__cuda_slabs *s)
{
    (void)pc::start(kernel, (s->count + SLABS_THREADS - 1) / SLABS_THREADS, SLABS_THREADS, s->queue, s->early, *s);
}

} // namespace

#endif
