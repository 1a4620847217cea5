/* few.cu: sums and extremes of rows that are few and short, by fold_few.cuh. */
#include "cuda/reduce/few.h"

#include "cuda/reduce/best.cuh"
#include "cuda/reduce/fold_few.cuh"
#include "cuda/reduce/result.cuh"
#include "cuda/reduce/store_as.cuh"
#include "cuda/shared/dtype.cuh"
#include "cuda/shared/sums.cuh"

namespace
{

/* Short runs in the input's type, and those in a wider one. */
template <class T, class A> struct total {
    typedef T type;
    typedef A state;
    void *out;
    double divisor;
    int to;
    explicit total(const pc__cuda_few *few) : out(few->out), divisor(few->divisor), to(few->to)
    {
    }
    __device__ __forceinline__ A nothing() const
    {
        return 0;
    }
    template <int EACH> __device__ __forceinline__ void row_of_few(A &all, const T (&x)[EACH], int count) const
    {
        typedef pc::math<T> M;
        M run = 0;
#pragma unroll
        for (int u = 0; u < EACH; u++)
            run += u < count ? M(x[u]) : M(0);
        all = sum_of_lanes(static_cast<A>(run), 32);
    }
    __device__ __forceinline__ void store(A all, int64_t i) const
    {
        if constexpr (A(0.5) > A(0))
            store_as(out, to, i, result_of<double>(all, divisor));
        else
            static_cast<T *>(out)[i] = result_of<T>(all, divisor);
    }
};

template <class T, class Order> struct farthest {
    typedef T type;
    typedef leader<T, Order> state;
    T *out;
    int64_t *places;
    explicit farthest(const pc__cuda_few *few) : out(static_cast<T *>(few->out)), places(few->places)
    {
    }
    __device__ __forceinline__ state nothing() const
    {
        return {};
    }
    /* The row's first element stands in where a lane has none. */
    template <int EACH> __device__ __forceinline__ void row_of_few(state &all, const T (&x)[EACH], int count) const
    {
        typedef pc::math<T> M;
        all = {static_cast<M>(__shfl_sync(0xffffffffu, M(x[0]), 0)), 0};
#pragma unroll
        for (int u = 0; u < EACH; u++)
            if (u < count)
                all.see(x[u], threadIdx.x % 32 + u * 32);
        for (int step = 16; step > 0; step /= 2) {
            const M other = static_cast<M>(__shfl_xor_sync(0xffffffffu, all.value, step));
            all.meet(other, __shfl_xor_sync(0xffffffffu, all.place, step));
        }
    }
    __device__ __forceinline__ void store(const state &all, int64_t i) const
    {
        put(out, i, all.value);
        places[i] = all.place;
    }
};

template <class F> void start(const pc__cuda_few *few, const F &f)
{
    start_few(few->rows, few->n, f, static_cast<const typename F::type *>(few->in), few->queue, few->early);
}

template <class Order> void extreme(const pc__cuda_few *few)
{
    switch (few->from) {
    case PC__CUDA_BOOL:
    case PC__CUDA_U8:
        return start(few, farthest<uint8_t, Order>(few));
    case PC__CUDA_I32:
        return start(few, farthest<int32_t, Order>(few));
    case PC__CUDA_I64:
        return start(few, farthest<long long, Order>(few));
    case PC__CUDA_F16:
        return start(few, farthest<pc::f16, Order>(few));
    case PC__CUDA_BF16:
        return start(few, farthest<pc::bf16, Order>(few));
    case PC__CUDA_F32:
        return start(few, farthest<float, Order>(few));
    default:
        return start(few, farthest<double, Order>(few));
    }
}

} // namespace

void pc__cuda_few_sum(const pc__cuda_few *few)
{
    if (few->from == PC__CUDA_I64)
        return start(few, total<unsigned long long, unsigned long long>(few));
    with_number(few->from, [&](auto number) { start(few, total<decltype(number), double>(few)); });
}

void pc__cuda_few_max(const pc__cuda_few *few)
{
    few->least ? extreme<the_smaller>(few) : extreme<the_larger>(few);
}
