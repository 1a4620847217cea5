/* brief.cuh: GELU in 16 bits, where the functions of C take longer than the memory. */
#ifndef PC__CUDA_BRIEF_CUH
#define PC__CUDA_BRIEF_CUH

namespace pc
{

/* The normal distribution's share below x and its density there, by formula 7.1.26 of Abramowitz and Stegun's "Handbook of
 * Mathematical Functions", 1964, with exponentials of the special function units. The share's error is 1.5e-7 at most, and beside
 * the share itself below 5e-4 from x = -4 on, 4e-3 from -6 on. */
struct normal {
    float share, density;
};

__device__ __forceinline__ normal normal_of(float x)
{
    const float z = fabsf(x) * 0.70710678118654752440f, t = __fdividef(1.0f, fmaf(0.3275911f, z, 1.0f));
    const float e = __expf(-z * z);
    const float sum =
        fmaf(fmaf(fmaf(fmaf(1.061405429f, t, -1.453152027f), t, 1.421413741f), t, -0.284496736f), t, 0.254829592f);
    const float tail = 0.5f * t * sum * e;
    return {x < 0 ? tail : 1.0f - tail, 0.39894228040143267794f * e};
}

/* 1 / (1 + exp(-x)). */
__device__ __forceinline__ float logistic(float x)
{
    return __fdividef(1.0f, 1.0f + __expf(-x));
}

struct brief_gelu {
    static __device__ __forceinline__ float of(float x)
    {
        return x * normal_of(x).share;
    }
    static __device__ __forceinline__ float slope(float x)
    {
        const normal n = normal_of(x);
        return fmaf(x, n.density, n.share);
    }
};

/* (1 + tanh(u)) / 2 is the logistic function of 2 u. */
struct brief_gelu_tanh {
    static __device__ __forceinline__ float of(float x)
    {
        return x * logistic(x * (1.59576912160573071176f + 0.07135481627260025f * x * x));
    }
    static __device__ __forceinline__ float slope(float x)
    {
        const float share = logistic(x * (1.59576912160573071176f + 0.07135481627260025f * x * x));
        const float square = fminf(x * x, 10000.0f); /* far in front of it the share is 0 or 1 */
        return fmaf(share * (1.0f - share) * x, 1.59576912160573071176f + 0.21406444881780074f * square, share);
    }
};

} // namespace pc

#endif
