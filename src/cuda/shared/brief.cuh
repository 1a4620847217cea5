/* brief.cuh: activations, powers and roots in 16 bits, where the functions of C take longer than the memory. */
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

/* 1 / (1 + exp(-x)); 0 of x below -87.3, where it is less than 2^-126. */
__device__ __forceinline__ float logistic(float x)
{
    return __fdividef(1.0f, 1.0f + __expf(-x));
}

struct brief_rsqrt {
    static __device__ __forceinline__ float of(float x)
    {
        return rsqrtf(x);
    }
};

struct brief_sigmoid {
    static __device__ __forceinline__ float of(float x)
    {
        return logistic(x);
    }
};

struct brief_silu {
    static __device__ __forceinline__ float of(float x)
    {
        return x * logistic(x);
    }
    static __device__ __forceinline__ float slope(float x)
    {
        const float share = logistic(x);
        return fmaf(x * share, 1.0f - share, share);
    }
};

/* 1 - 2 / (1 + exp(2 |x|)), which loses digits near 0: there four terms of the series, 4e-7 of it off at most. */
struct brief_tanh {
    static __device__ __forceinline__ float of(float x)
    {
        const float size = fabsf(x), square = x * x;
        const float near = x * fmaf(square,
                                    fmaf(square, fmaf(square, -0.05396825396825396825f, 0.13333333333333333333f),
                                         -0.33333333333333333333f),
                                    1.0f);
        const float far = copysignf(1.0f - __fdividef(2.0f, 1.0f + __expf(2.0f * size)), x);
        return size < 0.25f ? near : far;
    }
};

/* exp(x) - 1 below 0; near it five terms of the series, 1.4e-6 of it off at most. */
struct brief_elu {
    static __device__ __forceinline__ float of(float x, float alpha)
    {
        const float near =
            x *
            fmaf(x,
                 fmaf(x, fmaf(x, fmaf(x, 0.00833333333333333333f, 0.04166666666666666667f), 0.16666666666666666667f),
                      0.5f),
                 1.0f);
        return x < 0 ? alpha * (x > -0.25f ? near : __expf(x) - 1.0f) : x;
    }
    static __device__ __forceinline__ float through(float g, float x, float alpha)
    {
        return x > 0 ? g : g * (alpha * __expf(x));
    }
};

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

/* x^y as 2^(y log2 |x|) by the special function units, with the C standard's answers (annex F). Their logarithm is 2^-22 off
 * between 1/2 and 2 and as much of its size elsewhere, so where |y| is up to 64 and the power one of the dtype it is less than
 * 0.03 units of float16 off, and 0.01 of bfloat16. Other powers are C's. */
struct brief_pow {
    static __device__ __forceinline__ float of(float x, float y)
    {
        if (!(fabsf(y) <= 64.0f) || y == 0)
            return y == 0 ? 1.0f : powf(x, y);
        const float size = fabsf(x), power = exp2f(y * __log2f(size));
        const float moved = y + 12582912.0f; /* 1.5 x 2^23: its last bits are y, rounded */
        const bool is_fraction = moved - 12582912.0f != y;
        const unsigned sign = is_fraction ? 0 : __float_as_uint(moved) << 31;
        const bool is_none = is_fraction && x < 0 && size != __uint_as_float(0x7f800000);
        return __uint_as_float(is_none ? 0x7fffffff : __float_as_uint(power) | (__float_as_uint(x) & sign));
    }
    /* g times the slope of x^y, whose power to y - 1 is given. */
    static __device__ __forceinline__ float times_slope(float g, float power, float y)
    {
        return y == 0 ? 0.0f : g * (power * y);
    }
    static __device__ __forceinline__ float through(float g, float x, float y)
    {
        return times_slope(g, of(x, y - 1.0f), y);
    }
};

} // namespace pc

#endif
