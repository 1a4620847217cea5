/* functions.cuh: what is computed element by element, each formula once for all dtypes that share their arithmetic:
 * integers wrap, so they are added and multiplied unsigned. The walks are in loop.cuh and small.cu. */
#ifndef PC__CUDA_FUNCTIONS_CUH
#define PC__CUDA_FUNCTIONS_CUH

#include "cuda/shared/brief.cuh"
#include "cuda/shared/half.cuh"
#include "cuda/shared/real.cuh"
#include "cuda/pointwise/loop.cuh"

namespace pc
{

/* What C has no name for of one kind. Integers wrap, so the least one's size is itself. */
template <class T> __device__ __forceinline__ T absolute(T a)
{
    if constexpr (T(-1) > T(0))
        return a;
    else
        return a < T(0) ? T(0 - uint64_t(int64_t(a))) : a;
}
__device__ __forceinline__ float absolute(float a)
{
    return fabsf(a);
}
__device__ __forceinline__ double absolute(double a)
{
    return fabs(a);
}

template <class T> __device__ __forceinline__ T sign_of(T a)
{
    if constexpr (T(-1) > T(0))
        return a != T(0);
    else
        return T((a > T(0)) - (a < T(0))); /* 0 of NaN */
}

/* Halves to even; integers as they are, and below. */
template <class T> __device__ __forceinline__ T rounded_even(T a)
{
    if constexpr (T(0.5) != T(0))
        return rint(a);
    else
        return a;
}

template <class T> __device__ __forceinline__ T rounded_down(T a)
{
    if constexpr (T(0.5) != T(0))
        return floor(a);
    else
        return a;
}

/* Of integers by squaring; of powers below 0 those of 1 and -1 are left. */
template <class T> __device__ __forceinline__ T power(T a, T b)
{
    if constexpr (T(0.5) != T(0)) {
        return pow(a, b);
    } else {
        const bool below = !(T(-1) > T(0)) && int64_t(b) < 0;
        uint64_t x = uint64_t(int64_t(a)), result = below && x != 1 && x + 1 != 0 ? 0 : 1;
        for (uint64_t left = below ? 0 - uint64_t(int64_t(b)) : uint64_t(b); left && result; left >>= 1, x *= x)
            result *= left & 1 ? x : 1;
        return T(result);
    }
}

/* The rows of ops/pointwise.def as function objects, of_NAME<T>; of bool, truth_of_NAME. */
#define NUM(x) static_cast<decltype(a + a)>(x)
#define EXP(x) exp(x)
#define LOGISTIC(x) logistic_of(x)
#define TIMES_LOGISTIC(y, x) ((y)*logistic_of(x))
#define LOG(x) log(x)
#define SQRT(x) sqrt(x)
#define TANH(x) tanh(x)
#define ERF(x) erf(x)
#define EXPM1(x) expm1(x)
#define LOG1P(x) log1p(x)
#define SIN(x) sin(x)
#define COS(x) cos(x)
#define ABS(x) absolute(x)
#define SIGN(x) sign_of(x)
#define FLOOR(x) rounded_down(x)
#define ROUND(x) rounded_even(x)
#define POW(x, y) power(x, y)

/* `cost` in additions (ops/pointwise.def). */
#define PC__IS_COSTLY(cost) static constexpr bool costly = (cost) >= 4, slow = (cost) >= PC__CUDA_SLOW;
#define PC__ONE_INPUT(name, cost, f)                                                                                   \
    template <class T> struct of_##name : shape_of<T, 1, T> {                                                          \
        PC__IS_COSTLY(cost)                                                                                            \
        __device__ T operator()(T x) const                                                                             \
        {                                                                                                              \
            const math<T> a = x;                                                                                       \
            return static_cast<T>(f);                                                                                  \
        }                                                                                                              \
    };
#define PC__TWO_INPUTS(name, cost, f)                                                                                  \
    template <class T> struct of_##name : shape_of<T, 2, T, T> {                                                       \
        PC__IS_COSTLY(cost)                                                                                            \
        static __device__ T of(math<T> a, math<T> b)                                                                   \
        {                                                                                                              \
            return static_cast<T>(f);                                                                                  \
        }                                                                                                              \
        __device__ T operator()(T x, T y) const                                                                        \
        {                                                                                                              \
            return of(x, y);                                                                                           \
        }                                                                                                              \
    };
#define PC__TWO_INPUTS_AND_NUMBER(name, cost, f)                                                                       \
    template <class T> struct of_##name : shape_of<T, 2, T, T> {                                                       \
        PC__IS_COSTLY(cost)                                                                                            \
        static constexpr bool parametric = true;                                                                       \
        math<T> number;                                                                                                \
        __device__ T operator()(T x, T y) const                                                                        \
        {                                                                                                              \
            const math<T> a = x, b = y, c = number;                                                                    \
            return static_cast<T>(f);                                                                                  \
        }                                                                                                              \
    };
#define PC__TRUTH_FLOATS(name, f)
#define PC__TRUTH_NUMBERS(name, f)
#define PC__TRUTH_ORDERED(name, f)
#define PC__TRUTH_INTEGERS(name, f)
#define PC__TRUTH_ALL(name, f)                                                                                         \
    struct truth_of_##name : shape_of<uint8_t, 2, uint8_t, uint8_t> {                                                  \
        __device__ uint8_t operator()(uint8_t a, uint8_t b) const                                                      \
        {                                                                                                              \
            return (f) != 0;                                                                                           \
        }                                                                                                              \
    };

#define PC__FUNCTION(name, dtypes, cost, saves, autocast, f, derivative)                                               \
    PC__ONE_INPUT(name, cost, f)                                                                                       \
    PC__TWO_INPUTS(name##_backward, cost, derivative)
#define PC__UNARY(name, dtypes, cost, flags, f) PC__ONE_INPUT(name, cost, f)
#define PC__BINARY(name, dtypes, cost, flags, f) PC__TWO_INPUTS(name, cost, f) PC__TRUTH_##dtypes(name, f)
#define PC__PARAMETRIC(name, cost, f) PC__TWO_INPUTS_AND_NUMBER(name, cost, f)
#include "ops/pointwise.def"

/* In 16 bits (brief.cuh). */
#define PC__BRIEF_ALONE(name, T)                                                                                       \
    template <> struct of_##name<T> : shape_of<T, 1, T> {                                                              \
        PC__IS_COSTLY(4)                                                                                               \
        __device__ T operator()(T x) const                                                                             \
        {                                                                                                              \
            return T(brief_##name::of(float(x)));                                                                      \
        }                                                                                                              \
    };
#define PC__BRIEF(name, T)                                                                                             \
    PC__BRIEF_ALONE(name, T)                                                                                           \
    template <> struct of_##name##_backward<T> : shape_of<T, 2, T, T> {                                                \
        PC__IS_COSTLY(4)                                                                                               \
        static __device__ T of(float g, float x)                                                                       \
        {                                                                                                              \
            return T(g * brief_##name::slope(x));                                                                      \
        }                                                                                                              \
        __device__ T operator()(T g, T x) const                                                                        \
        {                                                                                                              \
            return of(float(g), float(x));                                                                             \
        }                                                                                                              \
    };
PC__BRIEF(gelu, f16)
PC__BRIEF(gelu, bf16)
PC__BRIEF(gelu_tanh, f16)
PC__BRIEF(gelu_tanh, bf16)
PC__BRIEF(silu, f16)
PC__BRIEF(silu, bf16)
PC__BRIEF_ALONE(rsqrt, f16) /* whose slope is of their value */
PC__BRIEF_ALONE(rsqrt, bf16)
PC__BRIEF_ALONE(sigmoid, f16)
PC__BRIEF_ALONE(sigmoid, bf16)
PC__BRIEF_ALONE(tanh, f16)
PC__BRIEF_ALONE(tanh, bf16)
#undef PC__BRIEF
#undef PC__BRIEF_ALONE

/* Of a number, too, or of one that the gradient has. */
#define PC__BRIEF_BY_NUMBER(name, T)                                                                                   \
    template <> struct of_##name<T> : shape_of<T, 2, T, T> {                                                           \
        PC__IS_COSTLY(4)                                                                                               \
        static __device__ T of(float x, float y)                                                                       \
        {                                                                                                              \
            return T(brief_##name::of(x, y));                                                                          \
        }                                                                                                              \
        __device__ T operator()(T x, T y) const                                                                        \
        {                                                                                                              \
            return of(float(x), float(y));                                                                             \
        }                                                                                                              \
    };                                                                                                                 \
    template <> struct of_##name##_backward<T> : shape_of<T, 2, T, T> {                                                \
        PC__IS_COSTLY(4)                                                                                               \
        static constexpr bool parametric = true;                                                                       \
        float number;                                                                                                  \
        __device__ T operator()(T g, T x) const                                                                        \
        {                                                                                                              \
            return T(brief_##name::through(float(g), float(x), number));                                               \
        }                                                                                                              \
    };
PC__BRIEF_BY_NUMBER(pow, f16)
PC__BRIEF_BY_NUMBER(pow, bf16)
PC__BRIEF_BY_NUMBER(elu, f16)
PC__BRIEF_BY_NUMBER(elu, bf16)
#undef PC__BRIEF_BY_NUMBER

#undef NUM
#undef EXP
#undef LOGISTIC
#undef TIMES_LOGISTIC
#undef LOG
#undef SQRT
#undef TANH
#undef ERF
#undef EXPM1
#undef LOG1P
#undef SIN
#undef COS
#undef ABS
#undef SIGN
#undef FLOOR
#undef ROUND
#undef POW
#undef PC__IS_COSTLY
#undef PC__ONE_INPUT
#undef PC__TWO_INPUTS
#undef PC__TWO_INPUTS_AND_NUMBER
#undef PC__TRUTH_FLOATS
#undef PC__TRUTH_NUMBERS
#undef PC__TRUTH_ORDERED
#undef PC__TRUTH_INTEGERS
#undef PC__TRUTH_ALL

/* A function, with its parameter if it has one. */
template <class F, class Number> __host__ __device__ __forceinline__ F function_of(Number number)
{
    F f;
    if constexpr (F::parametric)
        f.number = static_cast<decltype(f.number)>(number);
    return f;
}

/* A function of two inputs with a number for one of them. */
template <template <class> class F, class T> struct with_number : shape_of<T, 1, T> {
    static constexpr bool costly = F<T>::costly, slow = F<T>::slow;
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
