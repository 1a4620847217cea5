/* slabs.cu: sums of slabs (slabs.cuh), a thread for a pack of results. */
#include "cuda/reduce/slabs.cuh"

#include "cuda/shared/dtype.cuh"

namespace
{

/* Four rows of column k; what is not there is 0. */
template <class T, int N> __device__ __forceinline__ pc::math<T> four(const slab_words<T, N> (&rows)[4], int k)
{
    typedef pc::math<T> M;
    return (M(rows[0].at(k)) + M(rows[1].at(k))) + (M(rows[2].at(k)) + M(rows[3].at(k)));
}

/* A quotient of float32 has the bits that one of float64 has when it is rounded to float32. */
template <class O, class M, int N>
__device__ __forceinline__ void store_sums(const pc__cuda_slabs &s, unsigned own, const M (&sum)[N])
{
    slab<O, N> results;
    const M divisor = static_cast<M>(s.divisor);
    if (divisor == M(1)) {
#pragma unroll
        for (int k = 0; k < N; k++)
            results.v[k] = O(static_cast<pc::math<O>>(sum[k]));
    } else {
#pragma unroll
        for (int k = 0; k < N; k++)
            results.v[k] = O(static_cast<pc::math<O>>(sum[k] / divisor));
    }
    static_cast<slab<O, N> *>(s.out)[own] = results;
}

template <class T, int N>
__global__ void __launch_bounds__(SLABS_THREADS) add_slabs(const __grid_constant__ pc__cuda_slabs s)
{
    typedef pc::math<T> M;
    const unsigned own = own_slab();
    slab_words<T, N> low[4], high[4];
    M sum[N];
    pc::wait_for_earlier();
    if (own >= s.count)
        return;
    read_slabs(s, own, 0, low);
    if (s.rows > 4)
        read_slabs(s, own, 4, high);
#pragma unroll
    for (int k = 0; k < N; k++)
        sum[k] = four(low, k);
    if (s.rows > 4) {
#pragma unroll
        for (int k = 0; k < N; k++)
            sum[k] += four(high, k);
    }
    if constexpr (!(M(0.5) > M(0))) {
        store_sums<T>(s, own, sum);
    } else {
        switch (s.to) {
        case PC__CUDA_F16:
            return store_sums<pc::f16>(s, own, sum);
        case PC__CUDA_BF16:
            return store_sums<pc::bf16>(s, own, sum);
        case PC__CUDA_F32:
            return store_sums<float>(s, own, sum);
        default:
            return store_sums<double>(s, own, sum);
        }
    }
}

template <class T> void launch(const pc__cuda_slabs *s)
{
    constexpr int N = PC__SLABS_SUM_PACK(sizeof(T));
    s->pack == N ? start_slabs(add_slabs<T, N>, s) : start_slabs(add_slabs<T, 1>, s);
}

} // namespace

void pc__cuda_slabs_sum(const pc__cuda_slabs *s)
{
    if (s->from == PC__CUDA_I64)
        return launch<unsigned long long>(s);
    with_number(s->from, [&](auto number) { launch<decltype(number)>(s); });
}
