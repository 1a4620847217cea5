/* fit_zero.c: a training whose parameters are shared out over the ranks, each of which has its optimiser for a part. */
#include "parallel/zero_state.h"
#include "train/fit.h"

#include "nn/module.h"

static pc_status check(const pc__fit *fit, const char *who, const pc_zero *zero)
{
    const pc_group *group = pc__zero_group(zero);
    if (pc_group_size(group) > 1 && group != fit->group)
        return pc__fail(PC_ERR_ARGUMENT,
                        "%s: zero is of another group than the one that trains; name its group in .group", who);
    if (!pc__zero_has(zero, fit->optimizer))
        return pc__fail(PC_ERR_ARGUMENT, "%s: with zero the optimiser is made for pc_zero_part(zero)", who);
    return fit->mixed != PC_MIXED_F16
               ? PC_OK
               : pc__fail(
                     PC_ERR_ARGUMENT,
                     "%s: in float16 a loss scaler looks at all gradients, of which a rank has a part with ZeRO: take "
                     "bfloat16 or float32",
                     who);
}

pc_status pc__fit_share_out(pc__fit *fit, const char *who, pc_zero *zero)
{
    if (!zero)
        return PC_OK;
    PC__TRY(check(fit, who, zero));
    const pc_module *module = pc__zero_module(zero);
    const int count = pc_module_parameter_list(module, NULL, 0);
    if (count < 0)
        return pc_error_last()->status;
    pc_parameter *list = pc__calloc((size_t)count + 1, sizeof *list);
    fit->parameters = pc__calloc((size_t)count + 1, sizeof(*fit->parameters));
    if (!list || !fit->parameters) {
        pc__free(list);
        return PC_ERR_MEMORY;
    }
    (void)pc_module_parameter_list(module, list, count);
    for (int i = 0; i < count; i++) {
        bool there = false; /* under another name */
        for (int k = 0; k < fit->parameter_count; k++)
            there |= fit->parameters[k] == list[i].tensor;
        if (!there)
            fit->parameters[fit->parameter_count++] = list[i].tensor;
    }
    pc__free(list);
    fit->zero = zero;
    return PC_OK;
}

pc__parameters pc__fit_parameters(const pc__fit *fit)
{
    return fit->zero ? (pc__parameters){fit->parameters, fit->parameter_count}
                     : (pc__parameters){fit->optimizer->parameters, fit->optimizer->count};
}

pc_status pc__fit_whole(const pc__fit *fit, bool whole)
{
    if (!fit->zero)
        return PC_OK;
    return whole ? pc_zero_gather(fit->zero) : pc_zero_release(fit->zero);
}
