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

#endif
