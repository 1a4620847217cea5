/* real.cuh: functions of one real number, float or double alike, for templates. */
#ifndef PC__CUDA_REAL_CUH
#define PC__CUDA_REAL_CUH

#define PC__REAL_FUNCTION(name, single, full)                                                                          \
    __device__ inline float name(float x)                                                                              \
    {                                                                                                                  \
        return single(x);                                                                                              \
    }                                                                                                                  \
    __device__ inline double name(double x)                                                                            \
    {                                                                                                                  \
        return full(x);                                                                                                \
    }

PC__REAL_FUNCTION(exp_of, expf, exp)
PC__REAL_FUNCTION(log_of, logf, log)
PC__REAL_FUNCTION(log1p_of, log1pf, log1p)
PC__REAL_FUNCTION(tanh_of, tanhf, tanh)
PC__REAL_FUNCTION(root_of, sqrtf, sqrt)

#undef PC__REAL_FUNCTION

/* 1 / (1 + exp(-x)). In float32 by a reciprocal of the special function units and a step of Newton's method, without the branch that
 * a division has, and as exact; what is below 2^-126 is 0. */
__device__ inline float logistic_of(float x)
{
    const float e = expf(-x), all = 1.0f + e, near = __fdividef(1.0f, all);
    return e > 0x1p126f ? 0.0f : fmaf(near, fmaf(-all, near, 1.0f), near);
}
__device__ inline double logistic_of(double x)
{
    return 1 / (1 + exp(-x));
}

#endif
