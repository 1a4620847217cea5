/* finite.c: which op made the first infinity or NaN. */
#include "ops/finite.h"

#include <math.h>
#include <paracord/no_grad.h>
#include <paracord/ops.h>

_Thread_local bool pc__finite_watched;

void pc__finite_watch(bool on)
{
    pc__finite_watched = on;
}

typedef struct kinds {
    bool nan, infinite;
    int64_t at; /* of the first of these */
    double number;
} kinds;

static void look(const double *values, int64_t n, kinds *k)
{
    for (int64_t i = 0; i < n; i++) {
        if (isfinite(values[i]))
            continue;
        if (k->at < 0)
            k->at = i, k->number = values[i];
        k->nan |= isnan(values[i]) != 0;
        k->infinite |= isinf(values[i]) != 0;
    }
}

/* As doubles on the host, made by ops, which are not watched meanwhile. */
static pc_status find(const pc_tensor *t, kinds *k)
{
    *k = (kinds){.at = -1};
    const int64_t n = pc_tensor_count(t);
    if (!pc__is_float((pc_dtype)t->dtype) || n == 0)
        return PC_OK;
    double *values = pc__alloc((size_t)n * sizeof *values);
    pc_status status = values ? PC_OK : PC_ERR_MEMORY;
    const bool watched = pc__finite_watched;
    pc__finite_watched = false;
    if (values)
        PC_NO_GRAD {
            PC_SCOPE {
                pc_tensor *wide = pc_cast((pc_tensor *)t, PC_F64);
                status = wide ? pc_read(wide, values, (size_t)n * sizeof *values) : pc_error_last()->status;
            }
        }
    pc__finite_watched = watched;
    if (status == PC_OK)
        look(values, n, k);
    pc__free(values);
    return status;
}

pc_status pc__finite_find(const pc_tensor *t, int64_t *at, double *number)
{
    kinds k;
    PC__TRY(find(t, &k));
    *at = k.at;
    *number = k.number;
    return PC_OK;
}

/* Infinite because the program said so. */
static bool is_given(const char *op)
{
    static const char *const names[] = {"masked_fill", "where", "fill"};
    for (int i = 0; i < PC__COUNT(names); i++)
        if (strcmp(op, names[i]) == 0)
            return true;
    return false;
}

pc_status pc__finite_check(const pc_call *call)
{
    kinds in = {.at = -1}, of;
    for (int i = 0; i < call->n_in; i++) {
        PC__TRY(find(call->in[i], &of));
        in.nan |= of.nan;
        in.infinite |= of.infinite;
    }
    for (int i = 0; i < call->n_out; i++) {
        PC__TRY(find(call->out[i], &of));
        const bool news = (of.nan && !in.nan) || (of.infinite && !in.infinite && !in.nan);
        if (news && !is_given(call->op->name))
            return pc__fail(PC_ERR_RANGE, "%s made %s", call->op->name, of.nan ? "NaN" : "an infinity");
    }
    return PC_OK;
}
