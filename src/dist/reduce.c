/* reduce.c: block by block, so that what several ranks share goes through the cache once. */
#include "dist/reduce.h"

#include "base/parallel.h"

#include <paracord/half.h>

enum { BLOCK = 1024 };

typedef struct job {
    pc_group_op reduction;
    void *const *to;
    const void *const *from;
    int targets, sources;
    int64_t count;
} job;

#define SAME(x) (x)

/* NaNs win in min and max, as in PyTorch. */
#define REDUCE(name, type, sum_type, wide, narrow)                                                                     \
    static void name(void *context, int64_t block)                                                                     \
    {                                                                                                                  \
        const job *j = context;                                                                                        \
        const int64_t begin = block * BLOCK, n = PC__MIN(j->count - begin, BLOCK);                                     \
        sum_type sums[BLOCK];                                                                                          \
        for (int64_t i = 0; i < n; i++)                                                                                \
            sums[i] = wide(((const type *)j->from[0])[begin + i]);                                                     \
        for (int r = 1; r < j->sources; r++) {                                                                         \
            const type *x = (const type *)j->from[r] + begin;                                                          \
            if (j->reduction == PC_GROUP_MIN)                                                                          \
                for (int64_t i = 0; i < n; i++) {                                                                      \
                    const sum_type v = wide(x[i]);                                                                     \
                    sums[i] = v < sums[i] || v != v ? v : sums[i];                                                     \
                }                                                                                                      \
            else if (j->reduction == PC_GROUP_MAX)                                                                     \
                for (int64_t i = 0; i < n; i++) {                                                                      \
                    const sum_type v = wide(x[i]);                                                                     \
                    sums[i] = v > sums[i] || v != v ? v : sums[i];                                                     \
                }                                                                                                      \
            else                                                                                                       \
                for (int64_t i = 0; i < n; i++)                                                                        \
                    sums[i] += wide(x[i]);                                                                             \
        }                                                                                                              \
        if (j->reduction == PC_GROUP_MEAN)                                                                             \
            for (int64_t i = 0; i < n; i++)                                                                            \
                sums[i] /= (sum_type)j->sources;                                                                       \
        for (int k = 0; k < j->targets; k++)                                                                           \
            for (int64_t i = 0; i < n; i++)                                                                            \
                ((type *)j->to[k])[begin + i] = narrow(sums[i]);                                                       \
    }

REDUCE(reduce_u8, uint8_t, uint8_t, SAME, SAME)
REDUCE(reduce_i32, int32_t, int32_t, SAME, SAME)
REDUCE(reduce_i64, int64_t, int64_t, SAME, SAME)
REDUCE(reduce_f32, float, float, SAME, SAME)
REDUCE(reduce_f64, double, double, SAME, SAME)
REDUCE(reduce_f16, pc_f16, float, pc_f16_to_float, pc_f16_from_float)
REDUCE(reduce_bf16, pc_bf16, float, pc_bf16_to_float, pc_bf16_from_float)

void pc__reduce_ranks(pc_dtype dtype, pc_group_op reduction, void *const *to, int targets, const void *const *from,
                      int sources, int64_t count)
{
    static const pc__part_fn parts[PC_DTYPE_COUNT] = {
        [PC_BOOL] = reduce_u8, [PC_U8] = reduce_u8,     [PC_I32] = reduce_i32, [PC_I64] = reduce_i64,
        [PC_F16] = reduce_f16, [PC_BF16] = reduce_bf16, [PC_F32] = reduce_f32, [PC_F64] = reduce_f64};
    job j = {reduction, to, from, targets, sources, count};
    const int64_t blocks = (count + BLOCK - 1) / BLOCK;
    pc__parallel(pc__threads(count * sources), blocks, parts[dtype], &j);
}
