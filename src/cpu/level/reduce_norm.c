/* reduce_norm.c: vector norms: sums of sizes, roots of sums of squares and of cubes, the largest and the smallest size. */
#include "cpu/level/reduce_extreme.h"
#include "cpu/level/reduce_lanes.h"

#define SIZE_F32(x) __builtin_fabsf(x)
#define SIZE_F64(x) __builtin_fabs(x)
#define SIZE_F16(x) SIZE_F32(pc__f16_float(x))
#define SIZE_BF16(x) SIZE_F32(pc__bf16_float(x))
/* Of eight: without the sign. */
typedef PC__EIGHT(int32_t) eight_int32;
typedef PC__EIGHT(int64_t) eight_int64;
typedef PC__EIGHT(float) eight_float;
typedef PC__EIGHT(double) eight_double;
#define SIZES_F32(x) ((eight_float)((eight_int32)(x)&INT32_MAX))
#define SIZES_F64(x) ((eight_double)((eight_int64)(x)&INT64_MAX))
#define SQUARE(x) ((x) * (x))
#define CUBE_F32(x) ((x) * (x)*SIZE_F32(x))
#define CUBE_F64(x) ((x) * (x)*SIZE_F64(x))
#define CUBES_F32(x) ((x) * (x)*SIZES_F32(x))
#define CUBES_F64(x) ((x) * (x)*SIZES_F64(x))

#define SUMS(kind, of_single, of_singles, of_double, of_doubles)                                                       \
    PC__WHOLE(kind##_f32, float, double, PC__PLUS, of_singles)                                                         \
    PC__WHOLE(kind##_f64, double, double, PC__PLUS, of_doubles)                                                        \
    PC__TAKE_OF(kind##_f32, float, of_single)                                                                          \
    PC__TAKE_OF(kind##_f64, double, of_double)                                                                         \
    PC__BY_SINGLES(kind, f16)                                                                                          \
    PC__BY_SINGLES(kind, bf16)                                                                                         \
    PC__FOLD(kind##_f16, pc_f16, float, double, 0, PC__PLUS, whole_##kind##_f16, take_##kind##_f16, d)                 \
    PC__FOLD(kind##_bf16, pc_bf16, float, double, 0, PC__PLUS, whole_##kind##_bf16, take_##kind##_bf16, d)             \
    PC__FOLD(kind##_f32, float, float, double, 0, PC__PLUS, whole_##kind##_f32, take_##kind##_f32, d)                  \
    PC__FOLD(kind##_f64, double, double, double, 0, PC__PLUS, whole_##kind##_f64, take_##kind##_f64, d)
SUMS(sizes, SIZE_F32, SIZES_F32, SIZE_F64, SIZES_F64)
SUMS(squares, SQUARE, SQUARE, SQUARE, SQUARE)
SUMS(cubes, CUBE_F32, CUBES_F32, CUBE_F64, CUBES_F64)

#define EXTREMES(kind, BEATS)                                                                                          \
    PC__EXTREME(kind##_f16, pc_f16, float, int32_t, BEATS, SIZE_F16, PC__IS_NAN, PC__NO_PANELS, f)                     \
    PC__EXTREME(kind##_bf16, pc_bf16, float, int32_t, BEATS, SIZE_BF16, PC__IS_NAN, PC__NO_PANELS, f)                  \
    PC__EXTREME(kind##_f32, float, float, int32_t, BEATS, SIZE_F32, PC__IS_NAN, PC__NO_PANELS, f)                      \
    PC__EXTREME(kind##_f64, double, double, int64_t, BEATS, SIZE_F64, PC__IS_NAN, PC__NO_PANELS, d)
EXTREMES(most, PC__LARGER)
EXTREMES(least, PC__SMALLER)

#define ROW(kind, name, store)                                                                                         \
    {                                                                                                                  \
        row_##kind##_##name, columns_##kind##_##name, join_##kind##_##name, store                                      \
    }
#define ROWS(kind, store, store_f64)                                                                                   \
    {                                                                                                                  \
        [PC_F16] = ROW(kind, f16, store), [PC_BF16] = ROW(kind, bf16, store), [PC_F32] = ROW(kind, f32, store),        \
        [PC_F64] = ROW(kind, f64, store_f64)                                                                           \
    }

PC__KERNEL(norm)
{
    static const pc__reduction kinds[PC__NORM_KINDS][PC_DTYPE_COUNT] = {
        [PC__NORM_SUM] = ROWS(sizes, pc__reduce_store, pc__reduce_store),
        [PC__NORM_ROOT] = ROWS(squares, pc__reduce_store_roots, pc__reduce_store_roots),
        [PC__NORM_CUBE_ROOT] = ROWS(cubes, pc__reduce_store_cube_roots, pc__reduce_store_cube_roots),
        [PC__NORM_MOST] = ROWS(most, pc__reduce_store_singles, pc__reduce_store),
        [PC__NORM_LEAST] = ROWS(least, pc__reduce_store_singles, pc__reduce_store)};
    (void)stream;
    return pc__reduce(call, &kinds[((const pc__reduce_attributes *)call->attributes)->norm][call->in[0]->dtype], NULL);
}
