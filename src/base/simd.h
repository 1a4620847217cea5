/* simd.h: one function, compiled for several SIMD levels, the fitting one chosen when the program starts. AVX2 without
 * fused multiply-add: floating results are the same bits at every level. */
#ifndef PC__SIMD_H
#define PC__SIMD_H

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_THREAD__)
#define PC__SIMD __attribute__((target_clones("avx2", "default")))
#else
#define PC__SIMD
#endif

#endif
