/* reduce_max.c: maxima and minima with their places. */
#include "cpu/level/reduce_extreme.h"

#include "cpu/cpu.h"

#define EXTREME(name, T, C, I, BEATS, LOSES, of, load, unordered, member)                                              \
    PC__PANELS(name, T, C, I, LOSES, load, member)                                                                     \
    PC__EXTREME(name, T, C, I, BEATS, of, unordered, panels_##name, member)
#define EXTREMES(kind, B, L)                                                                                           \
    PC__PANELS(kind##_u8, uint8_t, int32_t, int32_t, L, PC__LOAD_U8, i)                                                \
    PC__EXTREME(kind##_u8, uint8_t, uint8_t, int32_t, B, PC__AS_IS, PC__NEVER, panels_##kind##_u8, i)                  \
    EXTREME(kind##_i32, int32_t, int32_t, int32_t, B, L, PC__AS_IS, PC__LOAD, PC__NEVER, i)                            \
    EXTREME(kind##_i64, int64_t, int64_t, int64_t, B, L, PC__AS_IS, PC__LOAD, PC__NEVER, i)                            \
    EXTREME(kind##_f16, pc_f16, float, int32_t, B, L, pc__f16_float, pc__vector_f16, PC__IS_NAN, f)                    \
    EXTREME(kind##_bf16, pc_bf16, float, int32_t, B, L, pc__bf16_float, pc__vector_bf16, PC__IS_NAN, f)                \
    EXTREME(kind##_f32, float, float, int32_t, B, L, PC__AS_IS, PC__LOAD, PC__IS_NAN, f)                               \
    EXTREME(kind##_f64, double, double, int64_t, B, L, PC__AS_IS, PC__LOAD, PC__IS_NAN, d)
EXTREMES(max, PC__LARGER, PC__AT_MOST)
EXTREMES(min, PC__SMALLER, PC__AT_LEAST)

PC__EXTREME_STORE(u8, uint8_t, (uint8_t), i)
PC__EXTREME_STORE(i32, int32_t, (int32_t), i)
PC__EXTREME_STORE(i64, int64_t, PC__AS_IS, i)
PC__EXTREME_STORE(f16, pc_f16, pc__f16_of, f)
PC__EXTREME_STORE(bf16, pc_bf16, pc__bf16_of, f)
PC__EXTREME_STORE(f32, float, PC__AS_IS, f)
PC__EXTREME_STORE(f64, double, PC__AS_IS, d)

static pc_status extreme(const pc_call *call, const pc__reduction *kinds)
{
    const pc__reduce_attributes *a = call->attributes;
    int64_t *index = pc__data(call->out[1]);
    const size_t results = (size_t)(a->outer * a->inner);
    if (a->whole || a->reduced == 1) /* nobody is told the places, or there is one */
        memset(index, 0, results * sizeof *index);
    if (a->reduced == 1) {
        memcpy(pc__data(call->out[0]), pc__data(call->in[0]), results * pc_dtype_size(call->in[0]->dtype));
        return PC_OK;
    }
    return pc__reduce(call, &kinds[call->in[0]->dtype], a->whole ? NULL : index);
}

#define ROW(kind, name)                                                                                                \
    {                                                                                                                  \
        row_##kind##_##name, columns_##kind##_##name, join_##kind##_##name, store_##name                               \
    }
#define ROWS(kind)                                                                                                     \
    [PC_BOOL] = ROW(kind, u8), [PC_U8] = ROW(kind, u8), [PC_I32] = ROW(kind, i32), [PC_I64] = ROW(kind, i64),          \
    [PC_F16] = ROW(kind, f16), [PC_BF16] = ROW(kind, bf16), [PC_F32] = ROW(kind, f32), [PC_F64] = ROW(kind, f64)

PC__KERNEL(max)
{
    static const pc__reduction maxima[PC_DTYPE_COUNT] = {ROWS(max)};
    (void)stream;
    return extreme(call, maxima);
}

PC__KERNEL(min)
{
    static const pc__reduction minima[PC_DTYPE_COUNT] = {ROWS(min)};
    (void)stream;
    return extreme(call, minima);
}

PC__KERNEL(max_backward)
{
    const pc__reduce_attributes *a = call->attributes;
    return a->whole && pc__is_half((pc_dtype)call->in[0]->dtype)
               ? PC__K(in_floats)(stream, call, PC__K(op_max_backward))
               : pc__cpu_max_backward(call);
}
