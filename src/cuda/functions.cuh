/* functions.cuh: what is computed element by element, each formula once for all dtypes that share their arithmetic:
 * integers wrap, so they are added and multiplied unsigned. The walks are in loop.cuh and small.cu. */
#ifndef PC__CUDA_FUNCTIONS_CUH
#define PC__CUDA_FUNCTIONS_CUH

#include "cuda/half.cuh"
#include "cuda/loop.cuh"

namespace pc
{

#define PC__BINARY_FUNCTION(name, expression)                                                                          \
    template <class T> struct name : shape_of<T, 2, T, T> {                                                            \
        __device__ T operator()(T x, T y) const                                                                        \
        {                                                                                                              \
            const math<T> a = x, b = y;                                                                                \
            return static_cast<T>(expression);                                                                         \
        }                                                                                                              \
    };

PC__BINARY_FUNCTION(add_of, a + b)
PC__BINARY_FUNCTION(either, a | b)
PC__BINARY_FUNCTION(sub_of, a - b)
PC__BINARY_FUNCTION(mul_of, a *b)
PC__BINARY_FUNCTION(div_of, a / b)
/* a is the gradient behind the function, b the function's value */
PC__BINARY_FUNCTION(relu_back, b <= 0 ? 0 : a)
PC__BINARY_FUNCTION(sigmoid_back, a *b *(1 - b))
PC__BINARY_FUNCTION(tanh_back, a *(1 - b * b))

#undef PC__BINARY_FUNCTION

#define PC__UNARY_FUNCTION(name, expression)                                                                           \
    template <class T> struct name : shape_of<T, 1, T> {                                                               \
        __device__ T operator()(T x) const                                                                             \
        {                                                                                                              \
            const math<T> a = x;                                                                                       \
            return static_cast<T>(expression);                                                                         \
        }                                                                                                              \
    };

template <class T> struct neg_of : shape_of<T, 1, T> {
    __device__ T operator()(T a) const
    {
        return static_cast<T>(0u - a);
    }
};
#define PC__NEG_OF(T)                                                                                                  \
    template <> struct neg_of<T> : shape_of<T, 1, T> {                                                                 \
        __device__ T operator()(T a) const                                                                             \
        {                                                                                                              \
            return static_cast<T>(-static_cast<math<T>>(a)); /* of 0 it is -0 */                                       \
        }                                                                                                              \
    };
PC__NEG_OF(f16)
PC__NEG_OF(bf16)
PC__NEG_OF(float)
PC__NEG_OF(double)
#undef PC__NEG_OF

PC__UNARY_FUNCTION(same_of, a)
PC__UNARY_FUNCTION(relu_of, a <= 0 ? 0 : a) /* keeps NaN */
PC__UNARY_FUNCTION(exp_of, exp(a))
PC__UNARY_FUNCTION(log_of, log(a))
PC__UNARY_FUNCTION(sqrt_of, sqrt(a))
PC__UNARY_FUNCTION(sigmoid_of, 1 / (1 + exp(-a)))
PC__UNARY_FUNCTION(tanh_of, tanh(a))

#undef PC__UNARY_FUNCTION

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
