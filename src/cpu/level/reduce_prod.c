/* reduce_prod.c: products. */
#include "cpu/cpu.h"
#include "cpu/level/reduce_lanes.h"

PC__WHOLE(u64, uint64_t, uint64_t, PC__TIMES, PC__AS_IS)
PC__WHOLE(prod_f32, float, double, PC__TIMES, PC__AS_IS)
PC__WHOLE(f64, double, double, PC__TIMES, PC__AS_IS)
#define take_prod_f32(room, x, n) ((void)(x), room)
PC__BY_SINGLES(prod, f16)
PC__BY_SINGLES(prod, bf16)

PC__FOLD(i64, uint64_t, uint64_t, uint64_t, 1, PC__TIMES, whole_u64, PC__IN_PLACE, u)
PC__FOLD(f16, pc_f16, float, double, 1, PC__TIMES, whole_prod_f16, take_prod_f16, d)
PC__FOLD(bf16, pc_bf16, float, double, 1, PC__TIMES, whole_prod_bf16, take_prod_bf16, d)
PC__FOLD(f32, float, float, double, 1, PC__TIMES, whole_prod_f32, PC__IN_PLACE, d)
PC__FOLD(f64, double, double, double, 1, PC__TIMES, whole_f64, PC__IN_PLACE, d)

PC__KERNEL(prod)
{
#define ROW(name)                                                                                                      \
    {                                                                                                                  \
        row_##name, columns_##name, join_##name, pc__reduce_store                                                      \
    }
    static const pc__reduction products[PC_DTYPE_COUNT] = {
        [PC_I64] = ROW(i64), [PC_F16] = ROW(f16), [PC_BF16] = ROW(bf16), [PC_F32] = ROW(f32), [PC_F64] = ROW(f64)};
    const pc__reduce_attributes *a = call->attributes;
    (void)stream;
    if (a->reduced == 1 && call->out[0]->dtype == call->in[0]->dtype) {
        memcpy(pc__data(call->out[0]), pc__data(call->in[0]),
               (size_t)(a->outer * a->inner) * pc_dtype_size(call->in[0]->dtype));
        return PC_OK;
    }
    return pc__reduce(call, &products[call->in[0]->dtype], NULL);
}

PC__KERNEL(prod_backward)
{
    (void)stream;
    return pc__cpu_prod_backward(call);
}
