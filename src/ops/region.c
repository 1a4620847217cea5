/* region.c: what a region can be made of. */
#include "ops/table.h"

#include "ops/region_of.h"

int pc__region_function(const pc__op *op)
{
    static const int functions[PC__OP_COUNT] = {
#define PC__FUNCTION(name, dtypes, cost, saves, autocast, f, derivative)                                               \
    [PC__OP_##name] = 1 + PC__POINTWISE_##name, [PC__OP_##name##_backward] = 1 + PC__POINTWISE_##name##_backward,
#define PC__UNARY(name, dtypes, cost, flags, f) [PC__OP_##name] = 1 + PC__POINTWISE_##name,
#define PC__BINARY(name, dtypes, cost, flags, f) [PC__OP_##name] = 1 + PC__POINTWISE_##name,
#define PC__PARAMETRIC(name, cost, f) [PC__OP_##name] = 1 + PC__POINTWISE_##name,
#include "ops/pointwise.def"
        [PC__OP_cast] = 1 + PC__REGION_CAST, [PC__OP_copy] = 1 + PC__REGION_CAST};
    return functions[op->index] - 1;
}

static const char *name_of(int function)
{
    static const char *const names[] = {
#define PC__FUNCTION(name, dtypes, cost, saves, autocast, f, derivative) #name, #name "_backward",
#define PC__UNARY(name, dtypes, cost, flags, f) #name,
#define PC__BINARY(name, dtypes, cost, flags, f) #name,
#define PC__PARAMETRIC(name, cost, f) #name,
#include "ops/pointwise.def"
        "cast"};
    return names[function];
}

static bool has_number(const pc__region_step *s)
{
    static const bool parametric[PC__POINTWISE_COUNT + 1] = {
#define PC__PARAMETRIC(name, cost, f) [PC__POINTWISE_##name] = true,
#include "ops/pointwise.def"
    };
    return s->a == PC__REGION_NUMBER || s->b == PC__REGION_NUMBER || parametric[s->function];
}

void pc__region_add_steps(pc__text *text, const pc_call *call)
{
    const pc__region *r = call->attributes;
    for (int i = 0; call->op->index == PC__OP_region && i < r->steps; i++) {
        pc__text_add(text, "%s%s", i ? ", " : " = ", name_of(r->step[i].function));
        if (has_number(&r->step[i]))
            pc__text_add(text, " %g", (double)r->number[i]);
    }
}

/* Nobody calls it but a plan, which knows the outputs. */
pc_status pc__infer_region(pc_call *call, pc__meta *out)
{
    (void)out;
    return pc__fail(PC_ERR_UNSUPPORTED, "%s: it is made by plans alone", call->op->name);
}
