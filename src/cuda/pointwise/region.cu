/* region.cu: one kernel for all regions: it reads the steps as its arguments, the same for all threads, so that nothing is
 * compiled when a program runs. A thread has a few neighbours of every value in shared memory: what a step reads and
 * writes there is a fraction of what single calls would move through memory, up to some ten steps. */
#include "cuda/pointwise/region.h"

#include "cuda/shared/dependent_launch.cuh"
#include "cuda/shared/functions.cuh"

namespace
{

enum { REGION_THREADS = 128, NEIGHBOURS = 4 };

struct alignas(16) item {
    float v[NEIGHBOURS];
};

template <class T> __device__ __forceinline__ item load_dense(const void *data, uint32_t i, uint32_t n)
{
    typedef pc::pack<T, NEIGHBOURS> pack;
    const T *from = static_cast<const T *>(data) + i;
    item x = {};
    if (n == NEIGHBOURS && reinterpret_cast<uintptr_t>(from) % sizeof(pack) == 0) {
        const pack all = *reinterpret_cast<const pack *>(from);
#pragma unroll
        for (int k = 0; k < NEIGHBOURS; k++)
            x.v[k] = all.v[k];
        return x;
    }
#pragma unroll
    for (int k = 0; k < NEIGHBOURS; k++)
        if (k < n)
            x.v[k] = from[k];
    return x;
}

/* Two divisions for all neighbours; where they are neighbours in the input too, one access. */
template <class T>
__device__ __forceinline__ item load_broadcast(const void *data, uint32_t i, uint32_t inner, uint32_t n)
{
    const uint32_t outer = inner == 1 ? i : i / inner;
    uint32_t at = outer % n, rest = i - outer * inner;
    if (inner == 1 && at + NEIGHBOURS <= n)
        return load_dense<T>(data, at, NEIGHBOURS);
    item x;
#pragma unroll
    for (int k = 0; k < NEIGHBOURS; k++) {
        x.v[k] = static_cast<const T *>(data)[at];
        if (++rest == inner) {
            rest = 0;
            at = at + 1 == n ? 0 : at + 1;
        }
    }
    return x;
}

template <class T> __device__ __forceinline__ item load(const pc__cuda_region &r, int k, uint32_t i, uint32_t n)
{
    const pc__region_in &in = r.region.in[k];
    return in.n ? load_broadcast<T>(r.in[k], i, uint32_t(in.inner), uint32_t(in.n)) : load_dense<T>(r.in[k], i, n);
}

template <class T> __device__ __forceinline__ void store(void *data, uint32_t i, uint32_t n, const item &x)
{
    typedef pc::pack<T, NEIGHBOURS> pack;
    T *to = static_cast<T *>(data) + i;
    pack all;
#pragma unroll
    for (int k = 0; k < NEIGHBOURS; k++)
        all.v[k] = T(x.v[k]);
    if (n == NEIGHBOURS && reinterpret_cast<uintptr_t>(to) % sizeof(pack) == 0) {
        *reinterpret_cast<pack *>(to) = all;
        return;
    }
#pragma unroll
    for (int k = 0; k < NEIGHBOURS; k++)
        if (k < n)
            to[k] = all.v[k];
}

template <class F> __device__ __forceinline__ item each(const F &f, const item &a, const item &b)
{
    item y;
#pragma unroll
    for (int k = 0; k < NEIGHBOURS; k++)
        if constexpr (F::inputs == 1)
            y.v[k] = f(a.v[k]);
        else
            y.v[k] = f(a.v[k], b.v[k]);
    return y;
}

__device__ __forceinline__ item apply_function(int function, const item &a, const item &b)
{
    switch (function) {
#define CASE(name)                                                                                                     \
    case PC__POINTWISE_##name:                                                                                         \
        return each(pc::of_##name<float>(), a, b);
#define PC__FUNCTION(name, dtypes, cost, saves, autocast, f, derivative) CASE(name) CASE(name##_backward)
#define PC__UNARY(name, dtypes, cost, flags, f) CASE(name)
#define PC__BINARY(name, dtypes, cost, flags, f) CASE(name)
#include "ops/pointwise.def"
#undef CASE
    default:
        return a;
    }
}

template <class T> __device__ __forceinline__ item rounded_to(item x)
{
#pragma unroll
    for (int k = 0; k < NEIGHBOURS; k++)
        x.v[k] = float(T(x.v[k]));
    return x;
}

__device__ __forceinline__ item rounded(item x, int dtype)
{
    return dtype == PC__CUDA_F32 ? x : dtype == PC__CUDA_BF16 ? rounded_to<pc::bf16>(x) : rounded_to<pc::f16>(x);
}

__device__ __forceinline__ item operand(const pc__cuda_region &r, int k, int which, const item *value)
{
    if (which != PC__REGION_NUMBER)
        return value[which * REGION_THREADS];
    item x;
#pragma unroll
    for (int i = 0; i < NEIGHBOURS; i++)
        x.v[i] = r.region.number[k];
    return x;
}

__global__ void __launch_bounds__(REGION_THREADS) run_region(const __grid_constant__ pc__cuda_region r)
{
    extern __shared__ __align__(16) char shared[];
    item *value = reinterpret_cast<item *>(shared) + threadIdx.x; /* REGION_THREADS apart */
    const uint32_t count = uint32_t(r.region.count), i = (blockIdx.x * REGION_THREADS + threadIdx.x) * NEIGHBOURS;
    pc::wait_for_earlier();
    if (i >= count)
        return;
    const uint32_t n = min(count - i, uint32_t(NEIGHBOURS));
    for (int k = 0; k < r.region.ins; k++)
        value[k * REGION_THREADS] = r.in_dtype[k] == PC__CUDA_F32    ? load<float>(r, k, i, n)
                                    : r.in_dtype[k] == PC__CUDA_BF16 ? load<pc::bf16>(r, k, i, n)
                                                                     : load<pc::f16>(r, k, i, n);
#pragma unroll 1
    for (int k = 0; k < r.region.steps; k++) {
        const pc__region_step s = r.region.step[k];
        const item y = apply_function(s.function, operand(r, k, s.a, value), operand(r, k, s.b, value));
        value[(r.region.ins + k) * REGION_THREADS] = rounded(y, s.dtype);
    }
    for (int k = 0; k < r.region.outs; k++) {
        const item x = value[r.region.out[k] * REGION_THREADS];
        if (r.out_dtype[k] == PC__CUDA_F32)
            store<float>(r.out[k], i, n, x);
        else if (r.out_dtype[k] == PC__CUDA_BF16)
            store<pc::bf16>(r.out[k], i, n, x);
        else
            store<pc::f16>(r.out[k], i, n, x);
    }
}

} // namespace

void pc__cuda_region_run(const pc__cuda_region *r)
{
    const int64_t items = (r->region.count + NEIGHBOURS - 1) / NEIGHBOURS;
    const size_t bytes = (size_t)(r->region.ins + r->region.steps) * REGION_THREADS * sizeof(item);
    (void)pc::start_grid(run_region, dim3((unsigned)((items + REGION_THREADS - 1) / REGION_THREADS)),
                         dim3(REGION_THREADS), bytes, r->queue, r->early, *r);
}
