/* step.c: optimiser updates: all parameters in one call, each element once through the cache. */
#include "ops/power.h"
#include "ops/scale.h"
#include "ops/step.h"

#include "cpu/level/halves.h"
#include "cpu/level/kernels.h"

#include <math.h>

typedef struct pieces {
    const pc__step_attributes *a;
    int64_t step;
    double step_size, root2; /* adam: lr / (1 - beta1^t), sqrt(1 - beta2^t) */
} pieces;

/* p, g, and the slots s1, s2 of one run. In torch.optim's order of operations. */
#define SGD(T)                                                                                                         \
    static void sgd_##T(const pieces *q, T *p, const T *g, T *v, int64_t n)                                            \
    {                                                                                                                  \
        const pc__step_attributes *a = q->a;                                                                           \
        T lr = (T)a->lr, momentum = (T)a->momentum, decay = (T)a->weight_decay;                                        \
        bool first = q->step == 1, nesterov = a->nesterov != 0;                                                        \
        for (int64_t i = 0; i < n; i++) {                                                                              \
            T d = g[i] + decay * p[i];                                                                                 \
            if (v) {                                                                                                   \
                v[i] = first ? d : momentum * v[i] + d;                                                                \
                d = nesterov ? d + momentum * v[i] : v[i];                                                             \
            }                                                                                                          \
            p[i] -= lr * d;                                                                                            \
        }                                                                                                              \
    }
#define ADAM(T, root)                                                                                                  \
    static void adam_##T(const pieces *q, T *p, const T *g, T *m, T *v, int64_t n)                                     \
    {                                                                                                                  \
        T b1 = (T)q->a->beta1, b2 = (T)q->a->beta2, c1 = (T)(1 - q->a->beta1), c2 = (T)(1 - q->a->beta2);              \
        T epsilon = (T)q->a->epsilon, decay = (T)q->a->weight_decay, size = (T)q->step_size;                           \
        T inverse_root2 = (T)(1 / q->root2);                                                                           \
        for (int64_t i = 0; i < n; i++) {                                                                              \
            T d = g[i] + decay * p[i];                                                                                 \
            T m1 = b1 * m[i] + c1 * d, v1 = b2 * v[i] + c2 * d * d;                                                    \
            m[i] = m1;                                                                                                 \
            v[i] = v1;                                                                                                 \
            p[i] -= size * m1 / (root(v1) * inverse_root2 + epsilon);                                                  \
        }                                                                                                              \
    }
SGD(float)
SGD(double)
ADAM(float, sqrtf)
ADAM(double, sqrt)

#define RUN 16384

typedef void (*run_fn)(const pieces *q, pc_tensor **tensors, int slots, int64_t begin, int64_t n);

#define AT(T, k) ((T *)pc__data(tensors[(k)*q->a->count]) + begin)

static void run_sgd(const pieces *q, pc_tensor **tensors, int slots, int64_t begin, int64_t n)
{
    if (tensors[0]->dtype == PC_F32)
        sgd_float(q, AT(float, 0), AT(float, 1), slots ? AT(float, 2) : NULL, n);
    else
        sgd_double(q, AT(double, 0), AT(double, 1), slots ? AT(double, 2) : NULL, n);
}

static void run_adam(const pieces *q, pc_tensor **tensors, int slots, int64_t begin, int64_t n)
{
    (void)slots;
    if (tensors[0]->dtype == PC_F32)
        adam_float(q, AT(float, 0), AT(float, 1), AT(float, 2), AT(float, 3), n);
    else
        adam_double(q, AT(double, 0), AT(double, 1), AT(double, 2), AT(double, 3), n);
}

typedef struct updating {
    const pieces *q;
    pc_tensor **tensors;
    int slots;
    const pc_tensor *copy; /* of 16 bits, or NULL */
    int64_t n;
    run_fn run;
} updating;

static void run_piece(void *context, int64_t r)
{
    const updating *u = context;
    const int64_t begin = r * RUN, n = PC__MIN(RUN, u->n - begin);
    u->run(u->q, u->tensors, u->slots, begin, n);
    if (u->copy)
        pc__store_halves((pc_f16 *)pc__data(u->copy) + begin, (const float *)pc__data(u->tensors[0]) + begin, n,
                         u->copy->dtype == PC_F16);
}

static void over_all(const pc_call *call, const pieces *q, run_fn run)
{
    int count = q->a->count, slots = pc__step_lists(call) / count - 2 - q->a->copies;
    for (int i = 0; i < count; i++) {
        int64_t n = pc_tensor_count(call->in[i]);
        updating u = {q, call->in + i, slots, pc__step_copy(call, i), n, run};
        pc__parallel(pc__threads(n * 16), (n + RUN - 1) / RUN, run_piece, &u);
    }
}

static bool is_off(const pc_call *call)
{
    const pc__step_attributes *a = call->attributes;
    return a->guarded && ((const float *)pc__data(call->in[call->n_in - 1 - !a->step]))[PC__SCALER_FOUND] != 0;
}

static int64_t number(const pc_call *call)
{
    const pc__step_attributes *a = call->attributes;
    return a->step ? a->step : ++*(int64_t *)pc__data(call->in[call->n_in - 1]);
}

PC__KERNEL(sgd_step)
{
    (void)stream;
    if (!is_off(call))
        over_all(call, &(pieces){.a = call->attributes, .step = number(call)}, run_sgd);
    return PC_OK;
}

PC__KERNEL(adam_step)
{
    (void)stream;
    const pc__step_attributes *a = call->attributes;
    if (is_off(call))
        return PC_OK;
    const int64_t t = number(call);
    pieces q = {.a = a, .step_size = a->lr / (1 - pc__power(a->beta1, t)), .root2 = sqrt(1 - pc__power(a->beta2, t))};
    over_all(call, &q, run_adam);
    return PC_OK;
}
