/* reduce_store.c: results as they are written, rounded once. */
#include "cpu/level/reduce.h"
#include "tensor/half.h"

#include <math.h>

#define STORE(T, of, member)                                                                                           \
    for (int64_t j = 0; j < n; j++)                                                                                    \
        ((T *)to)[j] = of(PC__MEMBER(value, j, member));                                                               \
    break

#define AS_IS(x) (x)
#define TO_FLOAT(x) ((float)(x))
#define TO_F16(x) pc__f16_of((float)(x))
#define TO_BF16(x) pc__bf16_of((float)(x))

void pc__reduce_store(void *to, pc_dtype dtype, const pc__partial *value, int64_t n)
{
    switch (dtype) {
    case PC_F16:
        STORE(pc_f16, TO_F16, d);
    case PC_BF16:
        STORE(pc_bf16, TO_BF16, d);
    case PC_F32:
        STORE(float, TO_FLOAT, d);
    case PC_F64:
        STORE(double, AS_IS, d);
    case PC_BOOL:
    case PC_U8:
        STORE(uint8_t, (uint8_t), u);
    default:
        STORE(uint64_t, AS_IS, u);
    }
}

enum { TOGETHER = 64 };

/* `of` partials, some together. */
#define THROUGH(name, of)                                                                                              \
    void name(void *to, pc_dtype dtype, const pc__partial *value, int64_t n)                                           \
    {                                                                                                                  \
        pc__partial part[TOGETHER];                                                                                    \
        for (int64_t begin = 0; begin < n; begin += TOGETHER) {                                                        \
            const int64_t count = PC__MIN(TOGETHER, n - begin);                                                        \
            for (int64_t j = 0; j < count; j++)                                                                        \
                PC__MEMBER(part, j, d) = of(value + begin, j);                                                         \
            pc__reduce_store((char *)to + begin * (int64_t)pc_dtype_size(dtype), dtype, part, count);                  \
        }                                                                                                              \
    }
#define ROOT(value, j) sqrt(PC__MEMBER(value, j, d))
#define CUBE_ROOT(value, j) cbrt(PC__MEMBER(value, j, d))
#define SINGLE(value, j) ((double)PC__MEMBER(value, j, f))
THROUGH(pc__reduce_store_roots, ROOT)
THROUGH(pc__reduce_store_cube_roots, CUBE_ROOT)
THROUGH(pc__reduce_store_singles, SINGLE)
