/* elementwise.c: arithmetic, functions, comparisons and choice, element by element. */
#include "cuda/elementwise.h"

#include "cuda/each.h"

typedef struct choice {
    int op, dtype;
} choice;

static void launch_binary(const pc__cuda_launch *launch, const void *context)
{
    const choice *c = context;
    pc__cuda_binary(launch, c->op, c->dtype);
}

static void launch_unary(const pc__cuda_launch *launch, const void *context)
{
    const choice *c = context;
    pc__cuda_unary(launch, c->op, c->dtype);
}

static void launch_compare(const pc__cuda_launch *launch, const void *context)
{
    const choice *c = context;
    pc__cuda_compare(launch, (unsigned)c->op, c->dtype);
}

static void launch_where(const pc__cuda_launch *launch, const void *context)
{
    pc__cuda_where(launch, pc_dtype_size(((const choice *)context)->dtype));
}

/* `small`: a small one goes later, with others. */
static pc_status run(pc_stream *stream, const pc_call *call, unsigned dtypes, pc__cuda_launcher launcher, int op,
                     bool small)
{
    PC__TRY(pc__cuda_takes(call, dtypes));
    pc_tensor *operands[PC__CUDA_OPERANDS] = {call->out[0]};
    for (int i = 0; i < call->n_in; i++)
        operands[i + 1] = call->in[i];
    if (small && pc__cuda_small_hold(stream, op, 0, call->n_in + 1, operands))
        return PC_OK;
    return pc__cuda_each(stream, call, call->n_in + 1, operands, launcher, &(choice){op, call->in[0]->dtype});
}

#define ALL (PC__NUMBERS | PC__BIT(PC_BOOL))

#define KERNEL(name, dtypes, launcher, op)                                                                             \
    PC__CUDA_KERNEL(name)                                                                                              \
    {                                                                                                                  \
        return run(stream, call, dtypes, launcher, op, true);                                                          \
    }

KERNEL(add, ALL, launch_binary, PC__BINARY_ADD)
KERNEL(sub, PC__NUMBERS, launch_binary, PC__BINARY_SUB)
KERNEL(mul, ALL, launch_binary, PC__BINARY_MUL)
KERNEL(div, PC__FLOATS, launch_binary, PC__BINARY_DIV)
KERNEL(relu_backward, PC__FLOATS, launch_binary, PC__BINARY_RELU_BACKWARD)
KERNEL(sigmoid_backward, PC__FLOATS, launch_binary, PC__BINARY_SIGMOID_BACKWARD)
KERNEL(tanh_backward, PC__FLOATS, launch_binary, PC__BINARY_TANH_BACKWARD)

KERNEL(neg, PC__NUMBERS, launch_unary, PC__UNARY_NEG)
KERNEL(relu, PC__NUMBERS, launch_unary, PC__UNARY_RELU)
KERNEL(exp, PC__FLOATS, launch_unary, PC__UNARY_EXP)
KERNEL(log, PC__FLOATS, launch_unary, PC__UNARY_LOG)
KERNEL(sqrt, PC__FLOATS, launch_unary, PC__UNARY_SQRT)
KERNEL(sigmoid, PC__FLOATS, launch_unary, PC__UNARY_SIGMOID)
KERNEL(tanh, PC__FLOATS, launch_unary, PC__UNARY_TANH)

#define COMPARISON(name, outcomes)                                                                                     \
    PC__CUDA_KERNEL(name)                                                                                              \
    {                                                                                                                  \
        return run(stream, call, ALL, launch_compare, outcomes, false);                                                \
    }

/* With NaN nothing holds but "not equal". */
COMPARISON(eq, PC__EQUAL)
COMPARISON(ne, PC__LESS | PC__GREATER | PC__UNORDERED)
COMPARISON(lt, PC__LESS)
COMPARISON(le, PC__LESS | PC__EQUAL)
COMPARISON(gt, PC__GREATER)
COMPARISON(ge, PC__GREATER | PC__EQUAL)

PC__CUDA_KERNEL(where)
{
    pc_tensor *operands[4] = {call->out[0], call->in[0], call->in[1], call->in[2]};
    return pc__cuda_each(stream, call, 4, operands, launch_where, &(choice){0, call->out[0]->dtype});
}
