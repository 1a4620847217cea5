/* slabs_max.cu: extremes of slabs (slabs.cuh) with their places, a thread for a pack of results. */
#include "cuda/reduce/slabs.cuh"

#include "cuda/reduce/best.cuh"

namespace
{

template <class T, class Order, int N>
__device__ __forceinline__ void see_slabs(leader<T, Order> (&best)[N], const slab_words<T, N> (&rows)[4], int first,
                                          int count)
{
#pragma unroll
    for (int u = 0; u < 4; u++) {
        if (first + u < count) {
#pragma unroll
            for (int k = 0; k < N; k++)
                best[k].see(rows[u].at(k), first + u);
        }
    }
}

template <class T, class Order, int N>
__global__ void __launch_bounds__(SLABS_THREADS) best_of_slabs(const __grid_constant__ pc__cuda_slabs s)
{
    const unsigned own = own_slab();
    slab_words<T, N> low[4], high[4];
    leader<T, Order> best[N];
    pc::wait_for_earlier();
    if (own >= s.count)
        return;
    read_slabs(s, own, 0, low);
    if (s.rows > 4)
        read_slabs(s, own, 4, high);
#pragma unroll
    for (int k = 0; k < N; k++)
        best[k] = {low[0].at(k), 0};
    see_slabs(best, low, 0, s.rows);
    if (s.rows > 4)
        see_slabs(best, high, 4, s.rows);
    slab<T, N> values;
    slab<long long, N> places;
#pragma unroll
    for (int k = 0; k < N; k++) {
        values.v[k] = static_cast<T>(best[k].value);
        places.v[k] = best[k].place;
    }
    if (s.out)
        static_cast<slab<T, N> *>(s.out)[own] = values;
    reinterpret_cast<slab<long long, N> *>(s.places)[own] = places;
}

template <class T, class Order> void launch(const pc__cuda_slabs *s)
{
    constexpr int N = PC__SLABS_MAX_PACK(sizeof(T));
    s->pack == N ? start_slabs(best_of_slabs<T, Order, N>, s) : start_slabs(best_of_slabs<T, Order, 1>, s);
}

template <class Order> void of_dtype(const pc__cuda_slabs *s)
{
    switch (s->from) {
    case PC__CUDA_BOOL:
    case PC__CUDA_U8:
        return launch<uint8_t, Order>(s);
    case PC__CUDA_I32:
        return launch<int32_t, Order>(s);
    case PC__CUDA_I64:
        return launch<long long, Order>(s);
    case PC__CUDA_F16:
        return launch<pc::f16, Order>(s);
    case PC__CUDA_BF16:
        return launch<pc::bf16, Order>(s);
    case PC__CUDA_F32:
        return launch<float, Order>(s);
    default:
        return launch<double, Order>(s);
    }
}

} // namespace

void pc__cuda_slabs_max(const pc__cuda_slabs *s)
{
    s->least ? of_dtype<the_smaller>(s) : of_dtype<the_larger>(s);
}
