/* gradient_norm.c: the norm of all gradients together. Sums of runs of a fixed length are added up in their order, so
 * that the number of threads does not show. */
#include "ops/step.h"

#include "cpu/level/kernels.h"

#include <math.h>

#define RUN 16384
#define LANES 8 /* sums side by side in a run */

typedef struct squaring {
    const void *data;
    int64_t n;
    double *sum; /* of each run */
} squaring;

#define SQUARES(T)                                                                                                     \
    static void square_##T(void *context, int64_t run)                                                                 \
    {                                                                                                                  \
        const squaring *s = context;                                                                                   \
        const T *x = (const T *)s->data + run * RUN;                                                                   \
        const int64_t n = PC__MIN(RUN, s->n - run * RUN), whole = n / LANES * LANES;                                   \
        double lane[LANES] = {0}, sum = 0;                                                                             \
        for (int64_t i = 0; i < whole; i += LANES)                                                                     \
            for (int k = 0; k < LANES; k++)                                                                            \
                lane[k] += (double)x[i + k] * (double)x[i + k];                                                        \
        for (int64_t i = whole; i < n; i++)                                                                            \
            sum += (double)x[i] * (double)x[i];                                                                        \
        for (int k = 0; k < LANES; k++)                                                                                \
            sum += lane[k];                                                                                            \
        s->sum[run] = sum;                                                                                             \
    }
SQUARES(float)
SQUARES(double)

static int64_t runs_of(const pc_tensor *t)
{
    return (pc_tensor_count(t) + RUN - 1) / RUN;
}

PC__KERNEL(gradient_norm)
{
    (void)stream;
    int64_t most = 0;
    double total = 0;
    for (int i = 0; i < call->n_in; i++)
        most = PC__MAX(most, runs_of(call->in[i]));
    double *sum = pc__alloc(PC__MAX((size_t)most, 1) * sizeof *sum);
    if (!sum)
        return PC_ERR_MEMORY;
    for (int i = 0; i < call->n_in; i++) {
        const pc_tensor *t = call->in[i];
        squaring s = {pc__data(t), pc_tensor_count(t), sum};
        pc__parallel(pc__threads(s.n), runs_of(t), t->dtype == PC_F32 ? square_float : square_double, &s);
        for (int64_t run = 0; run < runs_of(t); run++)
            total += sum[run];
    }
    pc__free(sum);
    double *clip = pc__data(call->out[0]);
    const double norm = sqrt(total), factor = *(const double *)call->attributes / (norm + 1e-6);
    clip[0] = norm;
    clip[1] = factor > 1 ? 1 : factor;
    return PC_OK;
}
