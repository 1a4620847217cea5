/* region.cu: one kernel for all regions: it reads the steps as its arguments, the same for all threads, so that nothing is
 * compiled when a program runs. A thread has a few neighbours of every input and of the step before in registers; what
 * later steps read as well is in shared memory. */
#include "cuda/pointwise/region.h"

#include "cuda/pointwise/region_input.cuh"
#include "cuda/shared/dependent_launch.cuh"

namespace
{

enum { REGION_THREADS = 128, FEW = 4, MANY = 8, MANY_SLOTS = 4, MANY_COUNT = 1 << 19, MANY_FLOATS = 1 << 20 };

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

/* What is computed otherwise in 16 bits (shared/brief.cuh). */
__device__ __forceinline__ bool is_brief_power(int function)
{
    return function == PC__POINTWISE_pow || function == PC__POINTWISE_pow_backward;
}

__device__ __forceinline__ bool is_brief(int function)
{
    return function == PC__POINTWISE_gelu || function == PC__POINTWISE_gelu_tanh ||
           function == PC__POINTWISE_gelu_backward || function == PC__POINTWISE_gelu_tanh_backward ||
           function == PC__POINTWISE_silu || function == PC__POINTWISE_silu_backward ||
           function == PC__POINTWISE_sigmoid || function == PC__POINTWISE_tanh || function == PC__POINTWISE_rsqrt ||
           function == PC__POINTWISE_elu || function == PC__POINTWISE_elu_backward || is_brief_power(function);
}

/* A power, or a times the slope of one at b. */
template <int N>
__device__ __forceinline__ item<N> brief_power(int function, const item<N> &a, const item<N> &b, float number)
{
    const bool backward = function == PC__POINTWISE_pow_backward;
    item<N> y;
#pragma unroll
    for (int k = 0; k < N; k++) {
        const float power = pc::brief_pow::of(backward ? b.v[k] : a.v[k], backward ? number - 1.0f : b.v[k]);
        y.v[k] = backward ? pc::brief_pow::times_slope(a.v[k], power, number) : power;
    }
    return y;
}

template <int N>
__device__ __forceinline__ item<N> brief(int function, const item<N> &a, const item<N> &b, const float &number)
{
    if (is_brief_power(function))
        return brief_power(function, a, b, number);
    item<N> y;
#pragma unroll
    for (int k = 0; k < N; k++)
        y.v[k] = function == PC__POINTWISE_gelu            ? pc::brief_gelu::of(a.v[k])
                 : function == PC__POINTWISE_gelu_tanh     ? pc::brief_gelu_tanh::of(a.v[k])
                 : function == PC__POINTWISE_silu          ? pc::brief_silu::of(a.v[k])
                 : function == PC__POINTWISE_sigmoid       ? pc::brief_sigmoid::of(a.v[k])
                 : function == PC__POINTWISE_tanh          ? pc::brief_tanh::of(a.v[k])
                 : function == PC__POINTWISE_rsqrt         ? pc::brief_rsqrt::of(a.v[k])
                 : function == PC__POINTWISE_elu           ? pc::brief_elu::of(a.v[k], b.v[k])
                 : function == PC__POINTWISE_elu_backward  ? pc::brief_elu::through(a.v[k], b.v[k], number)
                 : function == PC__POINTWISE_silu_backward ? a.v[k] * pc::brief_silu::slope(b.v[k])
                 : function == PC__POINTWISE_gelu_backward ? a.v[k] * pc::brief_gelu::slope(b.v[k])
                                                           : a.v[k] * pc::brief_gelu_tanh::slope(b.v[k]);
    return y;
}

/* The most frequent ones are asked for in front of the table of all, whose place in it must be read from memory. */
template <int N, region_kind KIND>
__device__ __forceinline__ item<N> apply_function(int function, int dtype, const item<N> &a, const item<N> &b,
                                                  const float &number)
{
    if (KIND != FLOATS && dtype != PC__CUDA_F32 && is_brief(function))
        return brief(function, a, b, number);
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
#define PC__PARAMETRIC(name, cost, f)                                                                                  \
    case PC__POINTWISE_##name:                                                                                         \
        return each(pc::function_of<pc::of_##name<float>>(number), a, b);
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

template <int N, region_kind KIND> __device__ __forceinline__ item<N> rounded(const item<N> &x, int dtype)
{
    if (KIND == FLOATS || dtype == PC__CUDA_F32)
        return x;
    return KIND == BFLOAT16S || (KIND == ANY && dtype == PC__CUDA_BF16) ? rounded_to<pc::bf16>(x)
                                                                        : rounded_to<pc::f16>(x);
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

/* What a thread has: the inputs, the value of the step before, and those in shared memory. */
template <int INS, int N, region_kind KIND> struct thread_values {
    raw<N, KIND> in[INS];
    item<N> last;
    values<N> kept;
};

template <int INS, int N, region_kind KIND>
__device__ __forceinline__ item<N> operand(const pc__cuda_region &r, int k, int which,
                                           const thread_values<INS, N, KIND> &own)
{
    if (which == PC__REGION_NUMBER) {
        item<N> x;
#pragma unroll
        for (int i = 0; i < N; i++)
            x.v[i] = r.region.number[k];
        return x;
    }
    if (which >= r.region.ins)
        return which == r.region.ins + k - 1 ? own.last : own.kept.get(r.slot[which - r.region.ins]);
    raw<N, KIND> x = own.in[0];
#pragma unroll
    for (int i = 1; i < INS; i++)
        if (which == i)
            x = own.in[i];
    return numbers_of(x, r.in_dtype[which]);
}

template <int N, region_kind KIND>
__device__ __forceinline__ void write(const pc__cuda_region &r, int k, uint32_t i, uint32_t n, const item<N> &x)
{
    if (KIND == FLOATS || (KIND == ANY && r.out_dtype[k] == PC__CUDA_F32))
        store<float>(r.out[k], i, n, x);
    else if (KIND == BFLOAT16S || (KIND == ANY && r.out_dtype[k] == PC__CUDA_BF16))
        store<pc::bf16>(r.out[k], i, n, x);
    else
        store<pc::f16>(r.out[k], i, n, x);
}

enum { NOWHERE = 255 };

/* Blocks of a multiprocessor that must fit; 0: as it comes. Few inputs take few registers, and there is room for all the threads
 * that it can have; what takes inputs of any dtype, for half of them, as the others have. */
template <int INS, int N, region_kind KIND> constexpr int least_blocks()
{
    return N == FEW ? (INS == 1 ? 2048 / REGION_THREADS : 0) : KIND == ANY ? 1024 / REGION_THREADS : 0;
}

/* Of up to INS inputs. */
template <int INS, int N, region_kind KIND>
__global__ void __launch_bounds__(REGION_THREADS, (least_blocks<INS, N, KIND>()))
    run_region(const __grid_constant__ pc__cuda_region r)
{
    extern __shared__ __align__(16) char shared[];
    thread_values<INS, N, KIND> own;
    own.kept.own = reinterpret_cast<float4 *>(shared) + threadIdx.x;
    const uint32_t count = uint32_t(r.region.count), i = (blockIdx.x * REGION_THREADS + threadIdx.x) * N;
    pc::wait_for_earlier();
    if (i >= count)
        return;
    const uint32_t n = min(count - i, uint32_t(N));
#pragma unroll
    for (int k = 0; k < INS; k++)
        if (k < r.region.ins)
            own.in[k] = fetch<N, KIND>(r, k, i, n);
#pragma unroll 1
    for (int k = 0; k < r.region.steps; k++) {
        const pc__region_step s = r.region.step[k];
        const item<N> a = operand(r, k, s.a, own), b = s.b == s.a ? a : operand(r, k, s.b, own);
        own.last = rounded<N, KIND>(apply_function<N, KIND>(s.function, s.dtype, a, b, r.region.number[k]), s.dtype);
        if (r.slot[k] != NOWHERE)
            own.kept.put(r.slot[k], own.last);
        for (int o = 0; o < r.region.outs; o++)
            if (r.region.out[o] == r.region.ins + k)
                write<N, KIND>(r, o, i, n, own.last);
    }
}

/* Places for what a step reads that is not the next one; how many. */
int give_slots(pc__cuda_region *r)
{
    int slots = 0;
    for (int k = 0; k < r->region.steps; k++) {
        const int value = r->region.ins + k;
        bool later = false;
        for (int j = k + 2; j < r->region.steps; j++)
            later = later || r->region.step[j].a == value || r->region.step[j].b == value;
        r->slot[k] = uint8_t(later ? slots++ : NOWHERE);
    }
    return slots;
}

template <int INS, int N, region_kind KIND> void launch_with(const pc__cuda_region *r, int slots)
{
    const int64_t items = (r->region.count + N - 1) / N;
    const size_t bytes = (size_t)slots * REGION_THREADS * sizeof(item<N>);
    (void)pc::start_grid(run_region<INS, N, KIND>, dim3((unsigned)((items + REGION_THREADS - 1) / REGION_THREADS)),
                         dim3(REGION_THREADS), bytes, r->queue, r->early, *r);
}

template <int N, region_kind KIND> void launch(const pc__cuda_region *r, int slots)
{
    r->region.ins <= 1   ? launch_with<1, N, KIND>(r, slots)
    : r->region.ins <= 3 ? launch_with<3, N, KIND>(r, slots)
                         : launch_with<PC__REGION_IN, N, KIND>(r, slots);
}

/* The kind of one dtype where all inputs, outputs and steps have that; of 16 bits, steps may be float32 too. */
region_kind kind_of(const pc__cuda_region *r)
{
    const int dtype = r->out_dtype[0];
    bool alike = true;
    for (int k = 0; k < r->region.ins; k++)
        alike = alike && r->in_dtype[k] == dtype;
    for (int k = 0; k < r->region.outs; k++)
        alike = alike && r->out_dtype[k] == dtype;
    for (int k = 0; k < r->region.steps; k++)
        alike = alike && (r->region.step[k].dtype == dtype || r->region.step[k].dtype == PC__CUDA_F32);
    return !alike ? ANY : dtype == PC__CUDA_F32 ? FLOATS : dtype == PC__CUDA_F16 ? FLOAT16S : BFLOAT16S;
}

} // namespace

void pc__cuda_region_run(const pc__cuda_region *region)
{
    if (pc__cuda_region_bounds(region))
        return;
    pc__cuda_region r = *region;
    const region_kind kind = kind_of(&r);
    const int slots = give_slots(&r);
    const bool two_or_three = r.region.ins == 2 || r.region.ins == 3;
    /* Neighbours fill an access where they are enough work for the chip and leave room in shared memory for many threads. */
    if (is_half(kind) && r.region.count >= MANY_COUNT && slots <= MANY_SLOTS)
        kind == FLOAT16S ? launch<MANY, FLOAT16S>(&r, slots) : launch<MANY, BFLOAT16S>(&r, slots);
    else if (two_or_three && r.region.count >= MANY_FLOATS && slots <= MANY_SLOTS)
        kind == FLOATS ? launch_with<3, MANY, FLOATS>(&r, slots) : launch_with<3, MANY, ANY>(&r, slots);
    else
        kind == FLOATS ? launch<FEW, FLOATS>(&r, slots) : launch<FEW, ANY>(&r, slots);
}
