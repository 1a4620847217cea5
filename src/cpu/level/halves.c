/* halves.c: rows of 16-bit numbers to and from float32. */
#include "cpu/level/halves.h"

void pc__load_halves(float *restrict to, const void *restrict from, int64_t n, bool is_f16)
{
    const pc_f16 *f16 = from;
    const pc_bf16 *bf16 = from;
    int64_t i = 0;
    for (; is_f16 && i + PC__HALVES <= n; i += PC__HALVES)
        pc__take_f16(to + i, f16 + i);
    for (; is_f16 && i < n; i++)
        to[i] = pc__f16_float(f16[i]);
    for (; i < n; i++)
        to[i] = pc__bf16_float(bf16[i]);
}

void pc__store_halves(void *restrict to, const float *restrict from, int64_t n, bool is_f16)
{
    pc_f16 *f16 = to;
    pc_bf16 *bf16 = to;
    int64_t i = 0;
    for (; is_f16 && i + PC__HALVES <= n; i += PC__HALVES)
        pc__put_f16(f16 + i, from + i);
    for (; is_f16 && i < n; i++)
        f16[i] = pc__f16_of(from[i]);
    for (; i < n; i++)
        bf16[i] = pc__bf16_of(from[i]);
}
