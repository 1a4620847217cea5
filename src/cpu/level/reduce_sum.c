/* reduce_sum.c: sums, of rows and down columns. */
#include "cpu/level/sum_columns.h"
#include "tensor/half.h"

#define AS_IS(x) (x)
#define OF_F16(x) ((double)pc__f16_float(x))
#define OF_BF16(x) ((double)pc__bf16_float(x))
#define LOAD_WHOLES(x) (*(const wholes *)(x))
#define LOAD_SINGLES(x) (*(const singles *)(x))
#define LOAD_DOUBLES(x) (*(const doubles *)(x))

#define SUMS_OF(name, T, sums, wide, A, load, of, member)                                                              \
    PC__SUM_ROW(name, T, sums, wide, A, of, member)                                                                    \
    PC__SUM_COLUMNS(name, T, sums, A, load, of, member)
SUMS_OF(u64, uint64_t, wholes, wholes, uint64_t, LOAD_WHOLES, AS_IS, u)
SUMS_OF(f16, pc_f16, singles, doubles, double, pc__vector_f16, OF_F16, d)
SUMS_OF(bf16, pc_bf16, singles, doubles, double, pc__vector_bf16, OF_BF16, d)
SUMS_OF(f32, float, singles, doubles, double, LOAD_SINGLES, (double), d)
SUMS_OF(f64, double, doubles, doubles, double, LOAD_DOUBLES, AS_IS, d)

#define STORE(T, of, member)                                                                                           \
    for (int64_t j = 0; j < n; j++)                                                                                    \
        ((T *)to)[j] = of(PC__MEMBER(value, j, member));                                                               \
    break

#define TO_FLOAT(x) ((float)(x))
#define TO_F16(x) pc__f16_of((float)(x))
#define TO_BF16(x) pc__bf16_of((float)(x))

static void store(void *to, pc_dtype dtype, const pc__partial *value, int64_t n)
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
    default:
        STORE(uint64_t, AS_IS, u);
    }
}

PC__KERNEL(sum)
{
#define ROW(name)                                                                                                      \
    {                                                                                                                  \
        row_##name, columns_##name, join_##name, store                                                                 \
    }
    static const pc__reduction sums[PC_DTYPE_COUNT] = {
        [PC_I64] = ROW(u64), [PC_F16] = ROW(f16), [PC_BF16] = ROW(bf16), [PC_F32] = ROW(f32), [PC_F64] = ROW(f64)};
    (void)stream;
    return pc__reduce(call, &sums[call->in[0]->dtype], NULL);
}
