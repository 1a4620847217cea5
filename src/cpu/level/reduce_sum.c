/* reduce_sum.c: sums, of rows and down columns. */
#include "cpu/level/reduce_lanes.h"
#include "cpu/level/sum_columns.h"
#include "tensor/half.h"

PC__WHOLE(u64, uint64_t, uint64_t, PC__PLUS, PC__AS_IS)
PC__WHOLE(sum_f32, float, double, PC__PLUS, PC__AS_IS)
PC__WHOLE(f64, double, double, PC__PLUS, PC__AS_IS)
PC__FOLD_ROW(i64, uint64_t, uint64_t, uint64_t, 0, PC__PLUS, whole_u64, PC__IN_PLACE, u)
PC__FOLD_ROW(f32, float, float, double, 0, PC__PLUS, whole_sum_f32, PC__IN_PLACE, d)
PC__FOLD_ROW(f64, double, double, double, 0, PC__PLUS, whole_f64, PC__IN_PLACE, d)

#define LOAD_WHOLES(x) (*(const wholes *)(x))
#define LOAD_SINGLES(x) (*(const singles *)(x))
#define LOAD_DOUBLES(x) (*(const doubles *)(x))
PC__SUM_COLUMNS(i64, uint64_t, wholes, uint64_t, LOAD_WHOLES, PC__AS_IS, u)
PC__SUM_COLUMNS(f32, float, singles, double, LOAD_SINGLES, (double), d)
PC__SUM_COLUMNS(f64, double, doubles, double, LOAD_DOUBLES, PC__AS_IS, d)

/* Sums of 16-bit numbers stay exact longer. */
#define OF_F16(x) ((double)pc__f16_float(x))
#define OF_BF16(x) ((double)pc__bf16_float(x))
#define HALVES(name, load, of)                                                                                         \
    PC__SUM_ROW(name, pc_##name, of)                                                                                   \
    PC__SUM_COLUMNS(name, pc_##name, singles, double, load, of, d)
HALVES(f16, pc__vector_f16, OF_F16)
HALVES(bf16, pc__vector_bf16, OF_BF16)

PC__KERNEL(sum)
{
#define ROW(name)                                                                                                      \
    {                                                                                                                  \
        row_##name, columns_##name, join_##name, pc__reduce_store                                                      \
    }
    static const pc__reduction sums[PC_DTYPE_COUNT] = {
        [PC_I64] = ROW(i64), [PC_F16] = ROW(f16), [PC_BF16] = ROW(bf16), [PC_F32] = ROW(f32), [PC_F64] = ROW(f64)};
    (void)stream;
    return pc__reduce(call, &sums[call->in[0]->dtype], NULL);
}
