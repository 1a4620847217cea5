/* level.h: names and sizes of the SIMD level that a file of this folder is being compiled for.
 *
 * Every .c file here is compiled once per level with PC__LEVEL set to its name (base, v3, v4) and PC__LEVEL_<name>
 * defined. PC__K(gemm_f32) is the name pc__gemm_f32_<level>. Without a level (tests, dispatch) only the list of
 * levels of this architecture is here. */
#ifndef PC__LEVEL_H
#define PC__LEVEL_H

#if defined(__x86_64__)
#ifdef PC__NO_LEVEL_base /* builds with sanitizers leave some out */
#define PC__OF_BASE(X)
#else
#define PC__OF_BASE(X) X(base)
#endif
#ifdef PC__NO_LEVEL_v3
#define PC__OF_V3(X)
#else
#define PC__OF_V3(X) X(v3)
#endif
#ifdef PC__NO_LEVEL_v4
#define PC__OF_V4(X)
#else
#define PC__OF_V4(X) X(v4)
#endif
#define PC__EACH_LEVEL(X) PC__OF_BASE(X) PC__OF_V3(X) PC__OF_V4(X)
#else
#define PC__EACH_LEVEL(X) X(base)
#endif

#ifdef PC__LEVEL

#define PC__K3(name, level) pc__##name##_##level
#define PC__K2(name, level) PC__K3(name, level)
#define PC__K(name) PC__K2(name, PC__LEVEL)

/* Bytes in a vector, and how many vector registers there are. */
#if defined(PC__LEVEL_v4)
#define PC__VECTOR_BYTES 64
#define PC__VECTOR_REGISTERS 32
#elif defined(PC__LEVEL_v3)
#define PC__VECTOR_BYTES 32
#define PC__VECTOR_REGISTERS 16
#else
#define PC__VECTOR_BYTES 16
#if defined(__aarch64__)
#define PC__VECTOR_REGISTERS 32
#else
#define PC__VECTOR_REGISTERS 16
#endif
#endif

#endif
#endif
