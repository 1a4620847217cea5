/* philox.h: Philox4x32-10 for hosts and kernels: plain C that .cu files include too. Constants from Salmon et al.,
 * SC11, section 5.2. */
#ifndef PC__PHILOX_H
#define PC__PHILOX_H

#include <stdint.h>

#ifdef __CUDACC__
#define PC__BOTH static __host__ __device__ inline
#else
#define PC__BOTH static inline
#endif

typedef struct pc__words {
    uint32_t w[4];
} pc__words;

PC__BOTH pc__words pc__philox(uint64_t seed, uint64_t stream, uint64_t counter)
{
    uint32_t c0 = (uint32_t)counter, c1 = (uint32_t)(counter >> 32);
    uint32_t c2 = (uint32_t)stream, c3 = (uint32_t)(stream >> 32);
    uint32_t k0 = (uint32_t)seed, k1 = (uint32_t)(seed >> 32);
    for (int round = 0; round < 10; round++) {
        const uint64_t a = (uint64_t)0xD2511F53u * c0, b = (uint64_t)0xCD9E8D57u * c2;
        c0 = (uint32_t)(b >> 32) ^ c1 ^ k0;
        c2 = (uint32_t)(a >> 32) ^ c3 ^ k1;
        c1 = (uint32_t)b;
        c3 = (uint32_t)a;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    const pc__words words = {{c0, c1, c2, c3}};
    return words;
}

/* Uniform in [0, 1), with 53 bits. */
PC__BOTH double pc__unit_f64(uint32_t high, uint32_t low)
{
    return (double)(((uint64_t)high << 21) ^ (low >> 11)) * (1.0 / 9007199254740992.0);
}

#endif
