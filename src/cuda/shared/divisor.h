/* divisor.h: quotients by a number that the host knows, by a product instead of a division (Granlund and Montgomery, "Division by
 * invariant integers using multiplication", 1994, figure 4.1). Plain C, read by .cu files too. */
#ifndef PC__CUDA_DIVISOR_H
#define PC__CUDA_DIVISOR_H

#include <stdint.h>

/* n / by = (high half of n * magic + n) >> shift, for n below 2^31 */
typedef struct pc__cuda_divisor {
    uint32_t by, magic, shift;
} pc__cuda_divisor;

/* Of 1 to 2^31. */
static inline pc__cuda_divisor pc__cuda_divisor_of(int64_t by)
{
    pc__cuda_divisor d = {(uint32_t)by, 0, 0};
    while (((uint64_t)1 << d.shift) < d.by)
        d.shift++;
    d.magic = (uint32_t)((((uint64_t)1 << 32) * (((uint64_t)1 << d.shift) - d.by)) / d.by + 1);
    return d;
}

#endif
