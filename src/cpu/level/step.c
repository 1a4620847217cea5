/* step.c: optimiser updates: all parameters in one call, each element once through the cache. */
#include "ops/power.h"
#include "ops/scale.h"
#include "ops/step.h"

#include "cpu/level/float_bits.h"
#include "cpu/level/flush.h"
#include "cpu/level/halves.h"
#include "cpu/level/kernels.h"

#include <math.h>

/* What all elements of a group share: in front of the loops in float64, as torch.optim has it. */
typedef struct pieces {
    const pc__step_attributes *a;
    int64_t step;
    double lr, decay;     /* added to the gradient */
    double keep;          /* what a decay of the weight's own leaves of it */
    double size, inverse; /* adam: lr / (1 - beta1^t), 1 / sqrt(1 - beta2^t) */
    double factor, bound; /* of gradients: taken times the one, then between the other and its negative */
} pieces;

/* A gradient as it is taken; NaN stays. */
#define TAKEN(T, g)                                                                                                    \
    T d = (g)*factor;                                                                                                  \
    d = d < -bound ? -bound : d > bound ? bound : d;
/* No decay is no term: 0 times an infinite weight is no number. By its bits, for a branch would have each loop be compiled
 * twice; with a decay a weight that is no number goes into gradient and slots. */
#define DECAYED(T, p)                                                                                                  \
    pc__##T##_bits w = {.f = decay * (p)};                                                                             \
    w.u &= decays;                                                                                                     \
    d += w.f;
#define SHARED(T)                                                                                                      \
    const T lr = (T)q->lr, decay = (T)q->decay, keep = (T)q->keep, factor = (T)q->factor, bound = (T)q->bound,         \
            b1 = (T)q->a->beta1, b2 = (T)q->a->beta2, c1 = (T)(1 - q->a->beta1), c2 = (T)(1 - q->a->beta2),            \
            epsilon = (T)q->a->epsilon, momentum = (T)q->a->momentum, size = (T)q->size, inverse = (T)q->inverse;      \
    const __typeof__(((pc__##T##_bits *)NULL)->u) decays = (T)q->decay != 0 ? -1 : 0;                                  \
    (void)lr, (void)decay, (void)decays, (void)keep, (void)b1, (void)b2, (void)c1, (void)c2, (void)epsilon,            \
        (void)momentum, (void)size, (void)inverse;

/* p, g, and the slots s1, s2 of one run. In torch.optim's order of operations. */
#define RULES(T, root)                                                                                                 \
    static void sgd_##T(const pieces *q, T *p, const T *g, T *v, T *none, int64_t n)                                   \
    {                                                                                                                  \
        SHARED(T)                                                                                                      \
        (void)none;                                                                                                    \
        const bool first = q->step == 1, nesterov = q->a->nesterov != 0;                                               \
        for (int64_t i = 0; i < n; i++) {                                                                              \
            TAKEN(T, g[i])                                                                                             \
            DECAYED(T, p[i])                                                                                           \
            if (v) {                                                                                                   \
                v[i] = first ? d : momentum * v[i] + d;                                                                \
                d = nesterov ? d + momentum * v[i] : v[i];                                                             \
            }                                                                                                          \
            p[i] -= lr * d;                                                                                            \
        }                                                                                                              \
    }                                                                                                                  \
    static void adam_##T(const pieces *q, T *p, const T *g, T *m, T *v, int64_t n)                                     \
    {                                                                                                                  \
        SHARED(T)                                                                                                      \
        for (int64_t i = 0; i < n; i++) {                                                                              \
            TAKEN(T, g[i])                                                                                             \
            DECAYED(T, p[i])                                                                                           \
            const T m1 = b1 * m[i] + c1 * d, v1 = b2 * v[i] + c2 * d * d;                                              \
            m[i] = m1;                                                                                                 \
            v[i] = v1;                                                                                                 \
            p[i] = keep * p[i] - size * m1 / (root(v1) * inverse + epsilon);                                           \
        }                                                                                                              \
    }                                                                                                                  \
    static void rmsprop_##T(const pieces *q, T *p, const T *g, T *s, T *v, int64_t n)                                  \
    {                                                                                                                  \
        SHARED(T)                                                                                                      \
        for (int64_t i = 0; i < n; i++) {                                                                              \
            TAKEN(T, g[i])                                                                                             \
            DECAYED(T, p[i])                                                                                           \
            s[i] = b2 * s[i] + c2 * d * d;                                                                             \
            d = d / (root(s[i]) + epsilon);                                                                            \
            if (v)                                                                                                     \
                d = v[i] = momentum * v[i] + d;                                                                        \
            p[i] -= lr * d;                                                                                            \
        }                                                                                                              \
    }                                                                                                                  \
    static void lion_##T(const pieces *q, T *p, const T *g, T *m, T *none, int64_t n)                                  \
    {                                                                                                                  \
        SHARED(T)                                                                                                      \
        (void)none;                                                                                                    \
        for (int64_t i = 0; i < n; i++) {                                                                              \
            TAKEN(T, g[i])                                                                                             \
            const T u = b1 * m[i] + c1 * d;                                                                            \
            m[i] = b2 * m[i] + c2 * d;                                                                                 \
            p[i] = keep * p[i] - (u > 0 ? lr : u < 0 ? -lr : u); /* NaN stays */                                       \
        }                                                                                                              \
    }
RULES(float, sqrtf)
RULES(double, sqrt)

#define RUN 16384

typedef void (*run_fn)(const pieces *q, pc_tensor **tensors, int slots, int64_t begin, int64_t n);

#define AT(T, k) (slots + 2 > (k) ? (T *)pc__data(tensors[(k)*q->a->count]) + begin : NULL)
#define RUNS(name)                                                                                                     \
    static void run_##name(const pieces *q, pc_tensor **tensors, int slots, int64_t begin, int64_t n)                  \
    {                                                                                                                  \
        if (tensors[0]->dtype == PC_F32)                                                                               \
            name##_float(q, AT(float, 0), AT(float, 1), AT(float, 2), AT(float, 3), n);                                \
        else                                                                                                           \
            name##_double(q, AT(double, 0), AT(double, 1), AT(double, 2), AT(double, 3), n);                           \
    }
RUNS(sgd)
RUNS(adam)
RUNS(rmsprop)
RUNS(lion)

typedef struct updating {
    const pieces *q;
    pc_tensor **tensors;
    int slots;
    const pc_tensor *copy; /* of 16 bits, or NULL */
    int64_t n;
    run_fn run;
    bool flushes;
} updating;

static void run_piece(void *context, int64_t r)
{
    const updating *u = context;
    const int64_t begin = r * RUN, n = PC__MIN(RUN, u->n - begin);
    const unsigned was = pc__flush_begin(u->flushes);
    u->run(u->q, u->tensors, u->slots, begin, n);
    pc__flush_end(was);
    if (u->copy)
        pc__store_halves((pc_f16 *)pc__data(u->copy) + begin, (const float *)pc__data(u->tensors[0]) + begin, n,
                         u->copy->dtype == PC_F16);
}

/* Beside epsilon the root of a subnormal square is nothing; lion moves by the sign of a number, however small. */
static bool flushes(const pc_call *call)
{
    const pc__step_attributes *a = call->attributes;
    const int op = call->op->index;
    return op == PC__OP_sgd_step || (op != PC__OP_lion_step && a->epsilon >= 1e-10);
}

static void update_all(const pc_call *call, const pieces *of, run_fn run)
{
    const pc__step_attributes *a = call->attributes;
    const int slots = pc__step_lists(call) / a->count - 2 - a->copies;
    for (int i = 0; i < a->count; i++) {
        const int64_t n = pc_tensor_count(call->in[i]);
        updating u = {&of[pc__step_group(a, i)], call->in + i, slots, pc__step_copy(call, i), n, run, flushes(call)};
        pc__parallel(pc__threads(n * 16), (n + RUN - 1) / RUN, run_piece, &u);
    }
}

static bool is_off(const pc_call *call)
{
    const pc_tensor *scaler = pc__step_extra_of(call, PC__STEP_SCALER);
    return scaler && ((const float *)pc__data(scaler))[PC__SCALER_FOUND] != 0;
}

static int64_t number(const pc_call *call)
{
    const pc__step_attributes *a = call->attributes;
    const pc_tensor *counter = pc__step_extra_of(call, PC__STEP_COUNTER);
    return counter ? ++*(int64_t *)pc__data(counter) : a->step;
}

static void step(const pc_call *call, run_fn run)
{
    const pc__step_attributes *a = call->attributes;
    const pc_tensor *rate = pc__step_extra_of(call, PC__STEP_RATE), *clip = pc__step_extra_of(call, PC__STEP_CLIP);
    pieces of[PC__STEP_GROUPS];
    if (is_off(call))
        return;
    const int64_t t = number(call);
    for (int i = 0; i < a->groups; i++) {
        const double decay = a->group[i].weight_decay;
        pieces *q = &of[i];
        *q = (pieces){.a = a, .step = t, .factor = clip ? ((const double *)pc__data(clip))[1] : 1};
        q->lr = (rate ? *(const double *)pc__data(rate) : a->lr) * a->group[i].lr_scale;
        q->decay = a->decoupled ? 0 : decay;
        q->keep = a->decoupled ? 1 - q->lr * decay : 1;
        q->bound = a->clip_value > 0 ? a->clip_value : (double)INFINITY;
        q->size = q->lr / (1 - pc__power(a->beta1, t));
        q->inverse = 1 / sqrt(1 - pc__power(a->beta2, t));
    }
    update_all(call, of, run);
}

PC__KERNEL(sgd_step)
{
    (void)stream;
    step(call, run_sgd);
    return PC_OK;
}

PC__KERNEL(adam_step)
{
    (void)stream;
    step(call, run_adam);
    return PC_OK;
}

PC__KERNEL(rmsprop_step)
{
    (void)stream;
    step(call, run_rmsprop);
    return PC_OK;
}

PC__KERNEL(lion_step)
{
    (void)stream;
    step(call, run_lion);
    return PC_OK;
}
