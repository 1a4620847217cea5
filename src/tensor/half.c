/* half.c: 16-bit numbers for programs. */
#include "tensor/half.h"

pc_f16 pc_f16_from_float(float value)
{
    return pc__f16_of(value);
}

float pc_f16_to_float(pc_f16 value)
{
    return pc__f16_float(value);
}

pc_bf16 pc_bf16_from_float(float value)
{
    return pc__bf16_of(value);
}

float pc_bf16_to_float(pc_bf16 value)
{
    return pc__bf16_float(value);
}
