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

/* An input's neighbours as they are in memory: nothing waits for them before all inputs are on their way. */
struct raw {
    uint32_t word[NEIGHBOURS];
    bool packed; /* two 16-bit numbers in each of the first words, else one in each */
};

__device__ __forceinline__ raw fetch_dense(const void *data, bool wide, uint32_t i, uint32_t n)
{
    raw x = {{}, false};
    const char *from = static_cast<const char *>(data) + i * (wide ? 4ull : 2ull);
    const uintptr_t place = reinterpret_cast<uintptr_t>(from);
    if (wide && n == NEIGHBOURS && place % 16 == 0) {
        const uint4 all = *reinterpret_cast<const uint4 *>(from);
        x.word[0] = all.x, x.word[1] = all.y, x.word[2] = all.z, x.word[3] = all.w;
    } else if (!wide && n == NEIGHBOURS && place % 8 == 0) {
        const uint2 all = *reinterpret_cast<const uint2 *>(from);
        x.word[0] = all.x, x.word[1] = all.y;
        x.packed = true;
    } else {
#pragma unroll
        for (int k = 0; k < NEIGHBOURS; k++)
            if (k < n)
                x.word[k] =
                    wide ? reinterpret_cast<const uint32_t *>(from)[k] : reinterpret_cast<const uint16_t *>(from)[k];
    }
    return x;
}

/* Two divisions for all neighbours; where they are neighbours in the input too, one access. */
__device__ __forceinline__ raw fetch_broadcast(const void *data, bool wide, uint32_t i, uint32_t inner, uint32_t n)
{
    const uint32_t outer = inner == 1 ? i : i / inner;
    uint32_t at = outer % n, rest = i - outer * inner;
    if (inner == 1 && at + NEIGHBOURS <= n)
        return fetch_dense(data, wide, at, NEIGHBOURS);
    raw x = {{}, false};
#pragma unroll
    for (int k = 0; k < NEIGHBOURS; k++) {
        x.word[k] = wide ? static_cast<const uint32_t *>(data)[at] : static_cast<const uint16_t *>(data)[at];
        if (++rest == inner) {
            rest = 0;
            at = at + 1 == n ? 0 : at + 1;
        }
    }
    return x;
}

__device__ __forceinline__ raw fetch(const pc__cuda_region &r, int k, uint32_t i, uint32_t n)
{
    const pc__region_in &in = r.region.in[k];
    const bool wide = r.in_dtype[k] == PC__CUDA_F32;
    return in.n ? fetch_broadcast(r.in[k], wide, i, uint32_t(in.inner), uint32_t(in.n))
                : fetch_dense(r.in[k], wide, i, n);
}

__device__ __forceinline__ item numbers_of(const raw &x, int dtype)
{
    item y;
#pragma unroll
    for (int k = 0; k < NEIGHBOURS; k++) {
        const uint32_t half = (x.packed ? x.word[k / 2] >> k % 2 * 16 : x.word[k]) & 0xffff;
        y.v[k] = dtype == PC__CUDA_F32    ? __uint_as_float(x.word[k])
                 : dtype == PC__CUDA_BF16 ? __uint_as_float(half << 16)
                                          : __half2float(__ushort_as_half(static_cast<unsigned short>(half)));
    }
    return y;
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

/* The most frequent ones are asked for in front of the table of all, whose place in it must be read from memory. */
__device__ __forceinline__ item apply_function(int function, const item &a, const item &b)
{
    if (function == PC__REGION_CAST)
        return a;
    if (function == PC__POINTWISE_add)
        return each(pc::of_add<float>(), a, b);
    if (function == PC__POINTWISE_mul)
        return each(pc::of_mul<float>(), a, b);
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

/* Of up to INS inputs: few take few registers, and a multiprocessor has room for all the threads that it can have. */
template <int INS>
__global__ void __launch_bounds__(REGION_THREADS, INS == 1 ? 2048 / REGION_THREADS : 0)
    run_region(const __grid_constant__ pc__cuda_region r)
{
    extern __shared__ __align__(16) char shared[];
    item *value = reinterpret_cast<item *>(shared) + threadIdx.x; /* REGION_THREADS apart */
    const uint32_t count = uint32_t(r.region.count), i = (blockIdx.x * REGION_THREADS + threadIdx.x) * NEIGHBOURS;
    pc::wait_for_earlier();
    if (i >= count)
        return;
    const uint32_t n = min(count - i, uint32_t(NEIGHBOURS));
    raw in[INS];
#pragma unroll
    for (int k = 0; k < INS; k++)
        if (k < r.region.ins)
            in[k] = fetch(r, k, i, n);
#pragma unroll
    for (int k = 0; k < INS; k++)
        if (k < r.region.ins)
            value[k * REGION_THREADS] = numbers_of(in[k], r.in_dtype[k]);
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
    (void)pc::start_grid(r->region.ins <= 1   ? run_region<1>
                         : r->region.ins <= 3 ? run_region<3>
                                              : run_region<PC__REGION_IN>,
                         dim3((unsigned)((items + REGION_THREADS - 1) / REGION_THREADS)), dim3(REGION_THREADS), bytes,
                         r->queue, r->early, *r);
}
