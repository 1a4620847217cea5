/* bce.c: binary cross-entropy of probabilities, element by element. */
#include "cpu/level/each.h"
#include "cpu/level/functions.h"

/* log(1 - x) within 2 units for x from 0 to 1: the logarithm of the difference as it was rounded, and what that left out. */
static inline float rest_f32(float x)
{
    const float rest = 1 - x;
    return pc__log_f32(rest) + ((1 - rest) - x) / (rest == 0 ? 1 : rest);
}

static inline double rest_f64(double x)
{
    return log1p(-x);
}

/* -(b log a + (1 - b) log(1 - a)), whose logarithms are at least -100; NaN stays. */
#define CUT(value) ((value) < -100 ? -100 : (value))
PC__DENSE2(bce_f32, float, float, (b - 1) * CUT(rest_f32(a)) - b * CUT(LOG(a)))
PC__DENSE2(bce_f64, double, double, (b - 1) * CUT(rest_f64(a)) - b * CUT(LOG(a)))

PC__KERNEL(bce)
{
    static const pc__dense_fn loops[PC_DTYPE_COUNT] = {[PC_F32] = bce_f32, [PC_F64] = bce_f64};
    (void)stream;
    return pc__each(call, loops, 96);
}
