/* functions.cuh: what is computed element by element, each formula once for all dtypes that share their arithmetic:
 * integers wrap, so they are added and multiplied unsigned. The walks are in loop.cuh and small.cu. */
#ifndef PC__CUDA_FUNCTIONS_CUH
#define PC__CUDA_FUNCTIONS_CUH

#include "cuda/shared/half.cuh"
#include "cuda/pointwise/loop.cuh"

namespace pc
{

/* The rows of ops/pointwise.def as function objects, of_NAME<T>; of bool, truth_of_NAME. */
#define NUM(x) static_cast<decltype(a + a)>(x)
#define EXP(x) exp(x)
#define LOG(x) log(x)
#define SQRT(x) sqrt(x)
#define TANH(x) tanh(x)
#define ERF(x) erf(x)

#define PC__ONE_INPUT(name, f)                                                                                         \
    template <class T> struct of_##name : shape_of<T, 1, T> {                                                          \
        __device__ T operator()(T x) const                                                                             \
        {                                                                                                              \
            const math<T> a = x;                                                                                       \
            return static_cast<T>(f);                                                                                  \
        }                                                                                                              \
    };
#define PC__TWO_INPUTS(name, f)                                                                                        \
    template <class T> struct of_##name : shape_of<T, 2, T, T> {                                                       \
        static __device__ T of(math<T> a, math<T> b)                                                                   \
        {                                                                                                              \
            return static_cast<T>(f);                                                                                  \
        }                                                                                                              \
        __device__ T operator()(T x, T y) const                                                                        \
        {                                                                                                              \
            return of(x, y);                                                                                           \
        }                                                                                                              \
    };
#define PC__TRUTH_FLOATS(name, f)
#define PC__TRUTH_NUMBERS(name, f)
#define PC__TRUTH_ALL(name, f)                                                                                         \
    struct truth_of_##name : shape_of<uint8_t, 2, uint8_t, uint8_t> {                                                  \
        __device__ uint8_t operator()(uint8_t a, uint8_t b) const                                                      \
        {                                                                                                              \
            return (f) != 0;                                                                                           \
        }                                                                                                              \
    };

#define PC__FUNCTION(name, dtypes, cost, saves, autocast, f, derivative)                                               \
    PC__ONE_INPUT(name, f)                                                                                             \
    PC__TWO_INPUTS(name##_backward, derivative)
#define PC__UNARY(name, dtypes, cost, flags, f) PC__ONE_INPUT(name, f)
#define PC__BINARY(name, dtypes, cost, flags, f) PC__TWO_INPUTS(name, f) PC__TRUTH_##dtypes(name, f)
#include "ops/pointwise.def"

#undef NUM
#undef EXP
#undef LOG
#undef SQRT
#undef TANH
#undef ERF
#undef PC__ONE_INPUT
#undef PC__TWO_INPUTS
#undef PC__TRUTH_FLOATS
#undef PC__TRUTH_NUMBERS
#undef PC__TRUTH_ALL

/* A function of two inputs with a number for one of them. */
template <template <class> class F, class T> struct with_number : shape_of<T, 1, T> {
    math<T> number;
    bool first;
    __device__ T operator()(T x) const
    {
        const math<T> a = x;
        return first ? F<T>::of(number, a) : F<T>::of(a, number);
    }
};

template <class T> struct same_of : shape_of<T, 1, T> {
    __device__ T operator()(T x) const
    {
        return x;
    }
};

template <class T> struct fill_of : shape_of<T, 0> {
    T value;
    __device__ T operator()() const
    {
        return value;
    }
};

template <class T> struct saxpy_of : shape_of<T, 2, T, T> {
    math<T> factor;
    __device__ T operator()(T y, T x) const
    {
        return static_cast<T>(y + factor * x);
    }
};

} // namespace pc

#endif
