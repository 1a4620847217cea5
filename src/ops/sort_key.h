/* sort_key.h: elements as whole numbers in the same order: zeros of both signs are equal, NaN is the largest. Plain C that
 * kernels include too. */
#ifndef PC__OP_SORT_KEY_H
#define PC__OP_SORT_KEY_H

#include <stdint.h>
#include <string.h>

#ifdef __CUDACC__
#define PC__KEY static __device__ __forceinline__ uint64_t
#else
#define PC__KEY static inline uint64_t
#endif

PC__KEY pc__key_u8(uint8_t x)
{
    return x;
}

PC__KEY pc__key_i32(int32_t x)
{
    return (uint32_t)x ^ 0x80000000u;
}

PC__KEY pc__key_i64(int64_t x)
{
    return (uint64_t)x ^ 0x8000000000000000u;
}

/* By the bits alone: what kernels are compiled with may take zeros of both signs for one. */
PC__KEY pc__key_f32(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    if ((bits & 0x7fffffffu) > 0x7f800000u)
        return 0xffffffffu;
    bits = bits == 0x80000000u ? 0 : bits;
    return bits ^ ((0u - (bits >> 31)) | 0x80000000u);
}

PC__KEY pc__key_f64(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    if ((bits & 0x7fffffffffffffffu) > 0x7ff0000000000000u)
        return 0xffffffffffffffffu;
    bits = bits == 0x8000000000000000u ? 0 : bits;
    return bits >> 63 ? ~bits : bits | 0x8000000000000000u;
}

#endif
