/* unary.c: functions of one tensor, element by element. */
#include "ops/autocast.h"
#include "ops/table.h"

static pc_tensor *unary(int op, pc_tensor *a, bool keeps_integers)
{
    if (!a || pc__is_float(a->dtype) || (keeps_integers && a->dtype != PC_BOOL))
        return pc__call(op, (pc_tensor *[]){a}, 1, NULL, 0);
    if (keeps_integers)
        return pc__null(PC_ERR_DTYPE, "%s: a bool tensor has no sign; cast it first", pc__ops[op].name);
    pc_tensor *result = NULL;
    PC_SCOPE {
        result = pc_keep(pc__call(op, (pc_tensor *[]){pc__as_dtype(a, PC_F32)}, 1, NULL, 0));
    }
    return result;
}

pc_tensor *pc_neg(pc_tensor *a)
{
    PC__NEED_OR(NULL, a);
    return unary(PC__OP_neg, a, true);
}

/* In float32 where the thread casts. */
static pc_tensor *in_float32(int op, pc_tensor *a, bool keeps_integers)
{
    if (!pc__autocasting())
        return unary(op, a, keeps_integers);
    pc_tensor *result = NULL;
    PC_SCOPE {
        result = pc_keep(unary(op, pc__autocast_up(a), keeps_integers));
    }
    return result;
}

pc_status pc__grad_neg(pc__grad *grad)
{
    return pc__set_grad(grad, 0, pc_neg(grad->out_grad[0]));
}

/* The gradient from the one behind the function and what its row saves. */
static pc_status through(pc__grad *grad, int backward, pc_tensor *saved)
{
    pc_tensor *in[2] = {grad->out_grad[0], saved};
    return pc__set_grad(grad, 0, pc__call(backward, in, 2, NULL, 0));
}

#define KEEPS_FLOATS false /* integers become float32 */
#define KEEPS_ORDERED true
#define CALL_SAME unary
#define CALL_FLOAT32 in_float32
#define SAVED_IN0 in[0]
#define SAVED_OUT0 out[0]

#define PC__FUNCTION(name, dtypes, cost, saves, autocast, f, derivative)                                               \
    pc_tensor *pc_##name(pc_tensor *a)                                                                                 \
    {                                                                                                                  \
        PC__NEED_OR(NULL, a);                                                                                          \
        return CALL_##autocast(PC__OP_##name, a, KEEPS_##dtypes);                                                      \
    }                                                                                                                  \
    pc_status pc__grad_##name(pc__grad *grad)                                                                          \
    {                                                                                                                  \
        return through(grad, PC__OP_##name##_backward, grad->SAVED_##saves);                                           \
    }
#include "ops/pointwise.def"
