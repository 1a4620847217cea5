/* elementwise.c: arithmetic, functions, comparisons and choice, element by element. */
#include "cuda/pointwise/elementwise.h"

#include "cuda/pointwise/each.h"
#include "ops/number.h"

typedef struct choice {
    int op, dtype;
    double number;
} choice;

static void launch_pointwise(const pc__cuda_launch *launch, const void *context)
{
    const choice *c = context;
    int turned, along = pc__cuda_turned(launch, &turned);
    if (along < 0 || !pc__cuda_pointwise_tiles(launch, c->op, c->dtype, c->number, along, turned))
        pc__cuda_pointwise(launch, c->op, c->dtype, c->number);
}

static void launch_number(const pc__cuda_launch *launch, const void *context)
{
    const choice *c = context;
    pc__cuda_pointwise_number(launch, c->op, c->dtype, c->number);
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
    const pc__number *number = pc__number_of(call), *parameter = pc__parameter_of(call);
    choice c = {op, call->in[0]->dtype, parameter ? parameter->value : 0};
    if (number) {
        c.op |= number->first ? PC__NUMBER_FIRST : PC__NUMBER_SECOND;
        c.number = number->value;
        launcher = launch_number;
    }
    if (small && pc__cuda_small_hold(stream, c.op, c.number, call->n_in + 1, operands))
        return PC_OK;
    return pc__cuda_each(stream, call, call->n_in + 1, operands, launcher, &c);
}

#define TAKES_FLOATS PC__FLOATS
#define TAKES_INTEGERS (PC__BIT(PC_U8) | PC__BIT(PC_I32) | PC__BIT(PC_I64))
#define TAKES_ORDERED PC__NUMBERS
#define TAKES_NUMBERS PC__NUMBERS
#define TAKES_ALL (PC__NUMBERS | PC__BIT(PC_BOOL))

#define KERNEL(name, dtypes)                                                                                           \
    PC__CUDA_KERNEL(name)                                                                                              \
    {                                                                                                                  \
        return run(stream, call, TAKES_##dtypes, launch_pointwise, PC__POINTWISE_##name, true);                        \
    }

#define PC__FUNCTION(name, dtypes, cost, saves, autocast, f, derivative)                                               \
    KERNEL(name, dtypes)                                                                                               \
    KERNEL(name##_backward, FLOATS)
#define PC__UNARY(name, dtypes, cost, flags, f) KERNEL(name, dtypes)
#define PC__BINARY(name, dtypes, cost, flags, f) KERNEL(name, dtypes)
#define PC__PARAMETRIC(name, cost, f) KERNEL(name, FLOATS)
#include "ops/pointwise.def"

#define COMPARISON(name, outcomes)                                                                                     \
    PC__CUDA_KERNEL(name)                                                                                              \
    {                                                                                                                  \
        return run(stream, call, TAKES_ALL, launch_compare, outcomes, false);                                          \
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
    return pc__cuda_each(stream, call, 4, operands, launch_where, &(choice){0, call->out[0]->dtype, 0});
}
