/* scale.c: what a loss scaler does: gradients divided by the scale, infinities noted, the next scale. */
#include "ops/scale.h"

#include "cpu/level/kernels.h"

#define RUN 16384

typedef struct dividing {
    void *data;
    int64_t n;
    float inverse;
    atomic_bool *found;
} dividing;

/* x - x is 0 for all that is finite. A gradient that only its scale kept so is found too. */
#define DIVIDE(T)                                                                                                      \
    static void divide_##T(void *context, int64_t run)                                                                 \
    {                                                                                                                  \
        const dividing *d = context;                                                                                   \
        T *x = (T *)d->data + run * RUN, odd = 0;                                                                      \
        int64_t n = PC__MIN(RUN, d->n - run * RUN);                                                                    \
        for (int64_t i = 0; i < n; i++) {                                                                              \
            x[i] *= (T)d->inverse;                                                                                     \
            odd += x[i] - x[i];                                                                                        \
        }                                                                                                              \
        if (odd != 0) /* NaN */                                                                                        \
            atomic_store_explicit(d->found, true, memory_order_relaxed);                                               \
    }
DIVIDE(float)
DIVIDE(double)

PC__KERNEL(unscale)
{
    (void)stream;
    float *numbers = pc__data(call->out[0]);
    atomic_bool found = false;
    for (int i = 0; i < call->n_in; i++) {
        const pc_tensor *t = call->in[i];
        dividing d = {pc__data(t), pc_tensor_count(t), 1 / numbers[PC__SCALER_SCALE], &found};
        pc__parallel(pc__threads(d.n * 4), (d.n + RUN - 1) / RUN, t->dtype == PC_F32 ? divide_float : divide_double,
                     &d);
    }
    if (atomic_load(&found))
        numbers[PC__SCALER_FOUND] = 1;
    return PC_OK;
}

PC__KERNEL(scale_update)
{
    (void)stream;
    pc__scale_next(pc__data(call->out[0]), *(const pc__scale_attributes *)call->attributes);
    return PC_OK;
}
