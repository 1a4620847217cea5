/* unary.c: functions of one tensor, element by element. */
#include "ops/autocast.h"
#include "ops/table.h"

/* What integers become, and bools: float32; themselves, refused; themselves, int64. */
typedef enum taken { FLOATS, ORDERED, NUMBERS } taken;

static pc_tensor *unary(int op, pc_tensor *a, taken how)
{
    const bool is_bool = a && a->dtype == PC_BOOL;
    if (!a || pc__is_float(a->dtype) || (how != FLOATS && !is_bool))
        return pc__call(op, (pc_tensor *[]){a}, 1, NULL, 0);
    if (how == ORDERED)
        return pc__null(PC_ERR_DTYPE, "%s: a bool tensor is no number; cast it first", pc__ops[op].name);
    pc_tensor *result = NULL;
    PC_SCOPE {
        result = pc_keep(pc__call(op, (pc_tensor *[]){pc__as_dtype(a, how == FLOATS ? PC_F32 : PC_I64)}, 1, NULL, 0));
    }
    return result;
}

pc_tensor *pc_neg(pc_tensor *a)
{
    PC__NEED_OR(NULL, a);
    return unary(PC__OP_neg, a, ORDERED);
}

/* In float32 where the thread casts. */
static pc_tensor *in_float32(int op, pc_tensor *a, taken how)
{
    if (!pc__autocasting())
        return unary(op, a, how);
    pc_tensor *result = NULL;
    PC_SCOPE {
        result = pc_keep(unary(op, pc__autocast_up(a), how));
    }
    return result;
}

pc_status pc__grad_neg(pc__grad *grad)
{
    return pc__set_grad(grad, 0, pc_neg(grad->out_grad[0]));
}

/* Zeros that lie as the gradient behind does, which is as the input where that is dense. */
static pc_status no_slope(pc__grad *grad)
{
    const pc_tensor *g = grad->out_grad[0];
    pc__meta meta;
    pc__meta_like(&meta, g, (pc_dtype)g->dtype);
    pc_tensor *zeros = pc__tensor_for(&meta, grad->device, "zeros");
    return zeros && pc_fill(zeros, 0) == PC_OK ? pc__set_grad(grad, 0, zeros) : pc_error_last()->status;
}

/* The gradient from the one behind the function and what its row saves. */
static pc_status through(pc__grad *grad, int backward, pc_tensor *saved)
{
    pc_tensor *in[2] = {grad->out_grad[0], saved};
    return pc__set_grad(grad, 0, pc__call(backward, in, 2, NULL, 0));
}

#define CALL_SAME unary
#define CALL_FLOAT32 in_float32
#define SAVED_IN0 in[0]
#define SAVED_OUT0 out[0]

#define PC__FUNCTION(name, dtypes, cost, saves, autocast, f, derivative)                                               \
    pc_tensor *pc_##name(pc_tensor *a)                                                                                 \
    {                                                                                                                  \
        PC__NEED_OR(NULL, a);                                                                                          \
        return CALL_##autocast(PC__OP_##name, a, dtypes);                                                              \
    }                                                                                                                  \
    pc_status pc__grad_##name(pc__grad *grad)                                                                          \
    {                                                                                                                  \
        return through(grad, PC__OP_##name##_backward, grad->SAVED_##saves);                                           \
    }
#define PC__FLAT(name, dtypes, cost, f)                                                                                \
    pc_tensor *pc_##name(pc_tensor *a)                                                                                 \
    {                                                                                                                  \
        PC__NEED_OR(NULL, a);                                                                                          \
        return unary(PC__OP_##name, a, dtypes);                                                                        \
    }                                                                                                                  \
    pc_status pc__grad_##name(pc__grad *grad)                                                                          \
    {                                                                                                                  \
        return no_slope(grad);                                                                                         \
    }
#include "ops/pointwise.def"
