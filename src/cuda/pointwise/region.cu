/* region.cu: one kernel for all regions: it reads the steps as its arguments, the same for all threads, so that nothing is
 * compiled when a program runs. A thread has a few neighbours of every value in shared memory: what a step reads and
 * writes there is a fraction of what single calls would move through memory, up to some ten steps. */
#include "cuda/pointwise/region.h"

#include "cuda/shared/dependent_launch.cuh"
#include "cuda/shared/functions.cuh"

namespace
{

enum { REGION_THREADS = 128, FEW = 4, MANY = 8, MANY_VALUES = 6, MANY_COUNT = 1 << 19 };

/* N neighbours of a value. */
template <int N> struct item {
    float v[N];
};

/* An input's neighbours as they are in memory: nothing waits for them before all inputs are on their way. */
template <int N> struct raw {
    uint32_t word[N];
    bool packed; /* two 16-bit numbers in each of the first words, else one in each */
};

/* As many words at `from`, which lies on their size, 16 bytes at most. */
template <int WORDS> __device__ __forceinline__ void fetch_words(const char *from, uint32_t *word)
{
    constexpr int EACH = WORDS < 4 ? WORDS : 4;
#pragma unroll
    for (int i = 0; i < WORDS; i += EACH) {
        const pc::pack<uint32_t, EACH> some = reinterpret_cast<const pc::pack<uint32_t, EACH> *>(from)[i / EACH];
#pragma unroll
        for (int k = 0; k < EACH; k++)
            word[i + k] = some.v[k];
    }
}

template <int N> __device__ __forceinline__ raw<N> fetch_dense(const void *data, bool wide, uint32_t i, uint32_t n)
{
    constexpr int HALVES = N / 2 * 4; /* bytes of an access at most, where a number has two */
    raw<N> x = {{}, false};
    const char *from = static_cast<const char *>(data) + i * (wide ? 4ull : 2ull);
    const uintptr_t place = reinterpret_cast<uintptr_t>(from);
    if (wide && n == N && place % 16 == 0) {
        fetch_words<N>(from, x.word);
    } else if (!wide && n == N && place % HALVES == 0) {
        fetch_words<N / 2>(from, x.word);
        x.packed = true;
    } else {
#pragma unroll
        for (int k = 0; k < N; k++)
            if (k < n)
                x.word[k] =
                    wide ? reinterpret_cast<const uint32_t *>(from)[k] : reinterpret_cast<const uint16_t *>(from)[k];
    }
    return x;
}

/* Two divisions for all neighbours; where they are neighbours in the input too, one access. */
template <int N>
__device__ __forceinline__ raw<N> fetch_broadcast(const void *data, bool wide, uint32_t i, uint32_t inner, uint32_t n)
{
    const uint32_t outer = inner == 1 ? i : i / inner;
    uint32_t at = outer % n, rest = i - outer * inner;
    if (inner == 1 && at + N <= n)
        return fetch_dense<N>(data, wide, at, N);
    raw<N> x = {{}, false};
#pragma unroll
    for (int k = 0; k < N; k++) {
        x.word[k] = wide ? static_cast<const uint32_t *>(data)[at] : static_cast<const uint16_t *>(data)[at];
        if (++rest == inner) {
            rest = 0;
            at = at + 1 == n ? 0 : at + 1;
        }
    }
    return x;
}

template <int N> __device__ __forceinline__ raw<N> fetch(const pc__cuda_region &r, int k, uint32_t i, uint32_t n)
{
    const pc__region_in &in = r.region.in[k];
    const bool wide = r.in_dtype[k] == PC__CUDA_F32;
    return in.n ? fetch_broadcast<N>(r.in[k], wide, i, uint32_t(in.inner), uint32_t(in.n))
                : fetch_dense<N>(r.in[k], wide, i, n);
}

template <int N> __device__ __forceinline__ item<N> numbers_of(const raw<N> &x, int dtype)
{
    item<N> y;
#pragma unroll
    for (int k = 0; k < N; k++) {
        const uint32_t half = (x.packed ? x.word[k / 2] >> k % 2 * 16 : x.word[k]) & 0xffff;
        y.v[k] = dtype == PC__CUDA_F32    ? __uint_as_float(x.word[k])
                 : dtype == PC__CUDA_BF16 ? __uint_as_float(half << 16)
                                          : __half2float(__ushort_as_half(static_cast<unsigned short>(half)));
    }
    return y;
}

template <class T, int N> __device__ __forceinline__ void store(void *data, uint32_t i, uint32_t n, const item<N> &x)
{
    constexpr int EACH = N * sizeof(T) > 16 ? 16 / sizeof(T) : N;
    typedef pc::pack<T, EACH> pack;
    T *to = static_cast<T *>(data) + i;
    if (n == N && reinterpret_cast<uintptr_t>(to) % sizeof(pack) == 0) {
#pragma unroll
        for (int first = 0; first < N; first += EACH) {
            pack some;
#pragma unroll
            for (int k = 0; k < EACH; k++)
                some.v[k] = T(x.v[first + k]);
            *reinterpret_cast<pack *>(to + first) = some;
        }
        return;
    }
#pragma unroll
    for (int k = 0; k < N; k++)
        if (k < n)
            to[k] = T(x.v[k]);
}

template <class F, int N> __device__ __forceinline__ item<N> each(const F &f, const item<N> &a, const item<N> &b)
{
    item<N> y;
#pragma unroll
    for (int k = 0; k < N; k++)
        if constexpr (F::inputs == 1)
            y.v[k] = f(a.v[k]);
        else
            y.v[k] = f(a.v[k], b.v[k]);
    return y;
}

/* The most frequent ones are asked for in front of the table of all, whose place in it must be read from memory. */
template <int N> __device__ __forceinline__ item<N> apply_function(int function, const item<N> &a, const item<N> &b)
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
#define FLOATS_CASE(name) CASE(name)
#define NUMBERS_CASE(name) CASE(name)
#define ORDERED_CASE(name) CASE(name)
#define ALL_CASE(name) CASE(name)
#define INTEGERS_CASE(name)
#define PC__FUNCTION(name, dtypes, cost, saves, autocast, f, derivative) CASE(name) CASE(name##_backward)
#define PC__UNARY(name, dtypes, cost, flags, f) CASE(name)
#define PC__BINARY(name, dtypes, cost, flags, f) dtypes##_CASE(name)
#include "ops/pointwise.def"
#undef CASE
    default:
        return a;
    }
}

template <class T, int N> __device__ __forceinline__ item<N> rounded_to(item<N> x)
{
#pragma unroll
    for (int k = 0; k < N; k++)
        x.v[k] = float(T(x.v[k]));
    return x;
}

template <int N> __device__ __forceinline__ item<N> rounded(const item<N> &x, int dtype)
{
    return dtype == PC__CUDA_F32 ? x : dtype == PC__CUDA_BF16 ? rounded_to<pc::bf16>(x) : rounded_to<pc::f16>(x);
}

/* A thread's values in shared memory, by fours, so that a warp's accesses lie in different banks. */
template <int N> struct values {
    float4 *own;

    __device__ __forceinline__ void put(int which, const item<N> &x) const
    {
#pragma unroll
        for (int k = 0; k < N; k += 4)
            own[(which * (N / 4) + k / 4) * REGION_THREADS] = make_float4(x.v[k], x.v[k + 1], x.v[k + 2], x.v[k + 3]);
    }

    __device__ __forceinline__ item<N> get(int which) const
    {
        item<N> x;
#pragma unroll
        for (int k = 0; k < N; k += 4) {
            const float4 four = own[(which * (N / 4) + k / 4) * REGION_THREADS];
            x.v[k] = four.x, x.v[k + 1] = four.y, x.v[k + 2] = four.z, x.v[k + 3] = four.w;
        }
        return x;
    }
};

template <int N>
__device__ __forceinline__ item<N> operand(const pc__cuda_region &r, int k, int which, const values<N> &value)
{
    if (which != PC__REGION_NUMBER)
        return value.get(which);
    item<N> x;
#pragma unroll
    for (int i = 0; i < N; i++)
        x.v[i] = r.region.number[k];
    return x;
}

/* Of up to INS inputs: few take few registers, and a multiprocessor has room for all the threads that it can have. */
template <int INS, int N>
__global__ void __launch_bounds__(REGION_THREADS, INS == 1 && N == FEW ? 2048 / REGION_THREADS : 0)
    run_region(const __grid_constant__ pc__cuda_region r)
{
    extern __shared__ __align__(16) char shared[];
    const values<N> value = {reinterpret_cast<float4 *>(shared) + threadIdx.x};
    const uint32_t count = uint32_t(r.region.count), i = (blockIdx.x * REGION_THREADS + threadIdx.x) * N;
    pc::wait_for_earlier();
    if (i >= count)
        return;
    const uint32_t n = min(count - i, uint32_t(N));
    raw<N> in[INS];
#pragma unroll
    for (int k = 0; k < INS; k++)
        if (k < r.region.ins)
            in[k] = fetch<N>(r, k, i, n);
#pragma unroll
    for (int k = 0; k < INS; k++)
        if (k < r.region.ins)
            value.put(k, numbers_of(in[k], r.in_dtype[k]));
#pragma unroll 1
    for (int k = 0; k < r.region.steps; k++) {
        const pc__region_step s = r.region.step[k];
        const item<N> y = apply_function(s.function, operand(r, k, s.a, value), operand(r, k, s.b, value));
        value.put(r.region.ins + k, rounded(y, s.dtype));
    }
    for (int k = 0; k < r.region.outs; k++) {
        const item<N> x = value.get(r.region.out[k]);
        if (r.out_dtype[k] == PC__CUDA_F32)
            store<float>(r.out[k], i, n, x);
        else if (r.out_dtype[k] == PC__CUDA_BF16)
            store<pc::bf16>(r.out[k], i, n, x);
        else
            store<pc::f16>(r.out[k], i, n, x);
    }
}

template <int N> void launch(const pc__cuda_region *r)
{
    const int64_t items = (r->region.count + N - 1) / N;
    const size_t bytes = (size_t)(r->region.ins + r->region.steps) * REGION_THREADS * sizeof(item<N>);
    (void)pc::start_grid(r->region.ins <= 1   ? run_region<1, N>
                         : r->region.ins <= 3 ? run_region<3, N>
                                              : run_region<PC__REGION_IN, N>,
                         dim3((unsigned)((items + REGION_THREADS - 1) / REGION_THREADS)), dim3(REGION_THREADS), bytes,
                         r->queue, r->early, *r);
}

/* 16-bit numbers have as many neighbours as an access holds, where these are enough work for the chip and leave room in
 * shared memory for many threads. */
bool has_many(const pc__cuda_region *r)
{
    bool narrow = r->region.count >= MANY_COUNT && r->region.ins + r->region.steps <= MANY_VALUES;
    for (int k = 0; k < r->region.ins; k++)
        narrow = narrow && r->in_dtype[k] != PC__CUDA_F32;
    for (int k = 0; k < r->region.outs; k++)
        narrow = narrow && r->out_dtype[k] != PC__CUDA_F32;
    return narrow;
}

} // namespace

void pc__cuda_region_run(const pc__cuda_region *r)
{
    has_many(r) ? launch<MANY>(r) : launch<FEW>(r);
}
