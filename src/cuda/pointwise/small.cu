/* small.cu: a list of small calls in one block, one after the other. A barrier behind each makes what it wrote there
 * for all threads before the next one reads. */
#include "cuda/pointwise/small.h"

#include "cuda/pointwise/elementwise.h"
#include "cuda/shared/functions.cuh"

namespace
{

using namespace pc;

template <class T> struct number_of { /* of a floating dtype */
    typedef T with_sign;
    static constexpr bool is_floating = true;
    static __device__ T in(const pc__cuda_small_call &call)
    {
        return static_cast<T>(call.number.fraction);
    }
};

#define WHOLE_NUMBER(T, S)                                                                                             \
    template <> struct number_of<T> {                                                                                  \
        typedef S with_sign;                                                                                           \
        static constexpr bool is_floating = false;                                                                     \
        static __device__ T in(const pc__cuda_small_call &call)                                                        \
        {                                                                                                              \
            return static_cast<T>(call.number.whole);                                                                  \
        }                                                                                                              \
    };
WHOLE_NUMBER(uint32_t, int32_t)
WHOLE_NUMBER(uint64_t, int64_t)

template <class F> __device__ __forceinline__ void one(const pc__cuda_small_call &call, const F &f = F())
{
    typedef typename F::O T;
    line<F> w;
    w.out = call.out;
    for (int k = 0; k < F::inputs; k++)
        w.in[k] = call.in[k];
#pragma unroll 1
    for (uint32_t i = threadIdx.x; i < call.packs; i += THREADS)
        flat_item<F, F::pack>(w, f, i);
#pragma unroll 1
    for (uint32_t i = threadIdx.x; i < call.tail; i += THREADS) {
        const uint32_t at = call.packs * F::pack + i;
        T x[2] = {};
        for (int k = 0; k < F::inputs; k++)
            x[k] = static_cast<const T *>(call.in[k])[at * call.step[k]];
        static_cast<T *>(call.out)[at] = apply(f, x[0], x[1], '\0');
    }
}

template <template <class> class F, class T, class As = T>
__device__ __forceinline__ void one_number(const pc__cuda_small_call &call)
{
    with_number<F, As> f;
    f.number = static_cast<As>(number_of<T>::in(call));
    f.first = call.which & PC__NUMBER_FIRST;
    one(call, f);
}

#define CASE_FLOATS(name)                                                                                              \
    case PC__POINTWISE_##name:                                                                                         \
        if constexpr (number_of<T>::is_floating)                                                                       \
            return one<of_##name<T>>(call);                                                                            \
        return;
#define CASE_NUMBERS(name)                                                                                             \
    case PC__POINTWISE_##name:                                                                                         \
        return one<of_##name<T>>(call);
#define CASE_ORDERED(name)                                                                                             \
    case PC__POINTWISE_##name:                                                                                         \
        return one<of_##name<typename number_of<T>::with_sign>>(call);
#define CASE_ALL(name) CASE_NUMBERS(name)
#define CASE_INTEGERS(name)                                                                                            \
    case PC__POINTWISE_##name:                                                                                         \
        if constexpr (!number_of<T>::is_floating)                                                                      \
            return one<of_##name<T>>(call);                                                                            \
        return;
#define NUMBER_CASE(name)                                                                                              \
    case PC__POINTWISE_##name | PC__NUMBER_SECOND:                                                                     \
    case PC__POINTWISE_##name | PC__NUMBER_FIRST:
#define NUMBER_FLOATS(name)                                                                                            \
    NUMBER_CASE(name)                                                                                                  \
    if constexpr (number_of<T>::is_floating)                                                                           \
        return one_number<of_##name, T>(call);                                                                         \
    return;
#define NUMBER_NUMBERS(name) NUMBER_CASE(name) return one_number<of_##name, T>(call);
#define NUMBER_ALL(name) NUMBER_NUMBERS(name)
#define NUMBER_ORDERED(name) NUMBER_CASE(name) return one_number<of_##name, T, typename number_of<T>::with_sign>(call);
#define NUMBER_INTEGERS(name)                                                                                          \
    NUMBER_CASE(name)                                                                                                  \
    if constexpr (!number_of<T>::is_floating)                                                                          \
        return one_number<of_##name, T>(call);                                                                         \
    return;

template <class T> __device__ __forceinline__ void any(const pc__cuda_small_call &call)
{
    switch (call.which) {
#define PC__FUNCTION(name, dtypes, cost, saves, autocast, f, derivative)                                               \
    CASE_##dtypes(name) CASE_FLOATS(name##_backward)
#define PC__UNARY(name, dtypes, cost, flags, f) CASE_##dtypes(name)
#define PC__BINARY(name, dtypes, cost, flags, f) CASE_##dtypes(name) NUMBER_##dtypes(name)
#define PC__PARAMETRIC(name, cost, f)                                                                                  \
    case PC__POINTWISE_##name:                                                                                         \
        if constexpr (number_of<T>::is_floating)                                                                       \
            return one(call, function_of<of_##name<T>>(number_of<T>::in(call)));                                       \
        return;
#include "ops/pointwise.def"
    case PC__COPY:
        return one<same_of<T>>(call);
    case PC__FILL: {
        fill_of<T> f;
        f.value = number_of<T>::in(call);
        return one(call, f);
    }
    case PC__SAXPY: {
        saxpy_of<T> f;
        f.factor = number_of<T>::in(call);
        return one(call, f);
    }
    }
}

template <class T>
__global__ void __launch_bounds__(THREADS, 1) all_small(const __grid_constant__ pc__cuda_small_list list)
{
    wait_for_earlier();
    for (int k = 0; k < list.count; k++) {
        any<T>(list.call[k]);
        __syncthreads();
    }
}

} // namespace

cudaError_t pc__cuda_small_start(cudaStream_t queue, int early, const pc__cuda_small_list *list)
{
    static_assert(sizeof *list <= 4096, "the arguments of a kernel");
    static_assert(int(PC__SAXPY) < int(PC__NUMBER_SECOND), "functions and what is added to them");
    switch (list->dtype) {
    case PC__CUDA_I32:
        return start(all_small<uint32_t>, 1, THREADS, queue, early, *list);
    case PC__CUDA_I64:
        return start(all_small<uint64_t>, 1, THREADS, queue, early, *list);
    case PC__CUDA_F32:
        return start(all_small<float>, 1, THREADS, queue, early, *list);
    default:
        return start(all_small<double>, 1, THREADS, queue, early, *list);
    }
}
