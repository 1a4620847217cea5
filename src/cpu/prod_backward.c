/* prod_backward.c: the gradient of products: of an element the product of the others, times the result's gradient. Of neighbouring
 * results zeros are counted first and the rest is multiplied; then a quotient is an element's, but for a zero. */
#include "cpu/cpu.h"
#include "base/parallel.h"
#include "ops/reduce.h"
#include "tensor/call.h"

enum {
    COLUMNS = 64, /* neighbouring results of a task */
    LANES = 16,   /* parts of a row, which are multiplied side by side */
};

typedef struct work {
    const pc__reduce_attributes *a;
    const void *g, *x;
    void *dx;
    int64_t across; /* tasks beside each other */
} work;

/* What an element's gradient is: a zero's, and another one's, which is divided by it. */
#define BACKWARD(T)                                                                                                    \
    static inline T gradient_##T(T x, T of_zero, T of_other)                                                           \
    {                                                                                                                  \
        const T quotient = of_other / (x == 0 ? 1 : x);                                                                \
        return x == 0 ? of_zero : quotient;                                                                            \
    }                                                                                                                  \
    static void parts_##T(const T *x, const T *g, int64_t reduced, int64_t inner, int64_t n, T *of_zero, T *of_other)  \
    {                                                                                                                  \
        double product[COLUMNS];                                                                                       \
        int64_t zeros[COLUMNS] = {0};                                                                                  \
        const int64_t lanes = inner == 1 ? LANES : n, step = inner == 1 ? LANES : inner;                               \
        const int64_t rows = inner == 1 ? reduced / LANES : reduced;                                                   \
        for (int64_t j = 0; j < lanes; j++)                                                                            \
            product[j] = 1;                                                                                            \
        for (int64_t r = 0; r < rows; r++)                                                                             \
            for (int64_t j = 0; j < lanes; j++) {                                                                      \
                const T v = x[r * step + j];                                                                           \
                zeros[j] += v == 0;                                                                                    \
                product[j] *= v == 0 ? 1 : (double)v;                                                                  \
            }                                                                                                          \
        for (int64_t i = rows * lanes; inner == 1 && i < reduced; i++) {                                               \
            zeros[0] += x[i] == 0;                                                                                     \
            product[0] *= x[i] == 0 ? 1 : (double)x[i];                                                                \
        }                                                                                                              \
        if (inner == 1)                                                                                                \
            for (int64_t j = 1; j < lanes; j++) {                                                                      \
                zeros[0] += zeros[j];                                                                                  \
                product[0] *= product[j];                                                                              \
            }                                                                                                          \
        for (int64_t j = 0; j < n; j++) {                                                                              \
            const T all = (T)((double)g[j] * product[j]);                                                              \
            of_zero[j] = zeros[j] == 1 ? all : 0;                                                                      \
            of_other[j] = zeros[j] == 0 ? all : 0;                                                                     \
        }                                                                                                              \
    }                                                                                                                  \
    static void task_##T(void *context, int64_t task)                                                                  \
    {                                                                                                                  \
        const work *w = context;                                                                                       \
        const int64_t reduced = w->a->reduced, inner = w->a->inner, outer = task / w->across;                          \
        const int64_t column = task % w->across * COLUMNS, n = PC__MIN(COLUMNS, inner - column);                       \
        const T *x = (const T *)w->x + outer * reduced * inner + column;                                               \
        T *dx = (T *)w->dx + outer * reduced * inner + column, of_zero[COLUMNS], of_other[COLUMNS];                    \
        parts_##T(x, (const T *)w->g + outer * inner + column, reduced, inner, n, of_zero, of_other);                  \
        for (int64_t i = 0; inner == 1 && i < reduced; i++)                                                            \
            dx[i] = gradient_##T(x[i], of_zero[0], of_other[0]);                                                       \
        for (int64_t r = 0; inner > 1 && r < reduced; r++)                                                             \
            for (int64_t j = 0; j < n; j++)                                                                            \
                dx[r * inner + j] = gradient_##T(x[r * inner + j], of_zero[j], of_other[j]);                           \
    }
BACKWARD(float)
BACKWARD(double)

pc_status pc__cpu_prod_backward(const pc_call *call)
{
    const pc__reduce_attributes *a = call->attributes;
    work w = {.a = a,
              .g = pc__data(call->in[0]),
              .x = pc__data(call->in[1]),
              .dx = pc__data(call->out[0]),
              .across = (a->inner + COLUMNS - 1) / COLUMNS};
    pc__parallel(pc__threads(a->outer * a->reduced * a->inner * 16), a->outer * w.across,
                 call->in[0]->dtype == PC_F64 ? task_double : task_float, &w);
    return PC_OK;
}
