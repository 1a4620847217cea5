/* flush.h: subnormal numbers as 0 for a while, in this thread. A vector with one of them takes x86 processors a hundred times as
 * long, and decaying averages come to them and stay: 0.9 times the least number, rounded, is that number. */
#ifndef PC__FLUSH_H
#define PC__FLUSH_H

#include <stdbool.h>

#ifdef __x86_64__
#define PC__FLUSH_BITS 0x8040u /* of MXCSR: results (FTZ) and operands (DAZ) */
#define PC__FLUSH_FLAGS 0x3fu  /* what operations have come to, for whoever asks (fenv.h) */

/* What pc__flush_end is given. */
static inline unsigned pc__flush_begin(bool flush)
{
    const unsigned was = __builtin_ia32_stmxcsr();
    if (flush)
        __builtin_ia32_ldmxcsr(was | PC__FLUSH_BITS);
    return was;
}

static inline void pc__flush_end(unsigned was)
{
    const unsigned is = __builtin_ia32_stmxcsr();
    if ((is ^ was) & PC__FLUSH_BITS)
        __builtin_ia32_ldmxcsr(was | (is & PC__FLUSH_FLAGS));
}
#else /* as fast with them */
static inline unsigned pc__flush_begin(bool flush)
{
    (void)flush;
    return 0;
}

static inline void pc__flush_end(unsigned was)
{
    (void)was;
}
#endif

#endif
