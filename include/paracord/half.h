/* half.h: 16-bit floating-point numbers, one at a time: the elements of tensors of PC_F16 and PC_BF16.
 *
 *     pc_bf16 row[2] = {pc_bf16_from_float(1.5f), pc_bf16_from_float(-3e38f)};
 *     pc_tensor *t = pc_from_data(row, PC_SHAPE(2), PC_BF16, device);
 *
 *               sign, exponent, fraction   largest    smallest normal   1 + next
 *     pc_f16    1, 5, 10 (IEEE binary16)   65504      6.1e-5            2^-10
 *     pc_bf16   1, 8, 7 (as a float's)     3.39e38    1.2e-38           2^-7
 *
 * From float they round to the nearest, ties to even; what is too large becomes an infinity, what is too small a
 * subnormal number or zero; NaN stays NaN. To float is exact. Usable from any thread.
 */
#ifndef PARACORD_HALF_H
#define PARACORD_HALF_H

#include <paracord/api.h>

PC_BEGIN

typedef struct pc_f16 {
    uint16_t bits;
} pc_f16;

typedef struct pc_bf16 {
    uint16_t bits;
} pc_bf16;

PC_API pc_f16 pc_f16_from_float(float value);
PC_API float pc_f16_to_float(pc_f16 value);
PC_API pc_bf16 pc_bf16_from_float(float value);
PC_API float pc_bf16_to_float(pc_bf16 value);

PC_END
#endif
