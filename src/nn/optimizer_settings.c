/* optimizer_settings.c: what may change between an optimiser's steps: rate, clipping, groups of parameters. */
#include "nn/optimizer.h"

#include <fnmatch.h>
#include <math.h>

double pc_optimizer_lr(const pc_optimizer *optimizer)
{
    PC__NEED_OR((double)NAN, optimizer);
    return optimizer->settings.lr;
}

void pc_optimizer_set_lr(pc_optimizer *optimizer, double lr)
{
    PC__NEED_OR(, optimizer);
    if (!pc__optimizer_is_decay(lr))
        (void)pc__fail(PC_ERR_ARGUMENT, "pc_optimizer_set_lr: lr %g must be at least 0 and finite; it stays %g", lr,
                       optimizer->settings.lr);
    else if (pc__optimizer_allows("pc_optimizer_set_lr", "a rate that the host sets") == PC_OK)
        optimizer->settings.lr = optimizer->given_lr = lr;
}

pc_status pc_optimizer_set_clip(pc_optimizer *optimizer, pc_clip_kind kind, double most)
{
    PC__NEED(optimizer);
    if ((unsigned)kind >= PC_CLIP_KINDS || (kind != PC_CLIP_NONE && !pc__optimizer_is_rate(most)))
        return pc__fail(
            PC_ERR_ARGUMENT,
            "pc_optimizer_set_clip: kind %d, at most %g: PC_CLIP_NONE, or PC_CLIP_NORM or PC_CLIP_VALUE with "
            "a finite number above 0",
            (int)kind, most);
    optimizer->clip_norm = kind == PC_CLIP_NORM ? most : 0;
    optimizer->settings.clip_value = kind == PC_CLIP_VALUE ? most : 0;
    return PC_OK;
}

pc_status pc_optimizer_gradient_norm(const pc_optimizer *optimizer, double *norm)
{
    PC__NEED(optimizer);
    PC__NEED(norm);
    double clip[2];
    if (!optimizer->clip || optimizer->clip_norm <= 0)
        return pc__fail(PC_ERR_STATE, "pc_optimizer_gradient_norm: no step was clipped by its norm; "
                                      "pc_optimizer_set_clip(optimizer, PC_CLIP_NORM, most) in front of one");
    PC__TRY(pc_read(optimizer->clip, clip, sizeof clip));
    *norm = clip[0];
    return PC_OK;
}

static bool belongs(const pc_optimizer *o, int i, const char *pattern, int max_dims)
{
    return (max_dims == 0 || o->parameters[i]->ndim <= max_dims) && fnmatch(pattern, o->names[i].name, 0) == 0;
}

pc_status pc_optimizer_add_group(pc_optimizer *optimizer, const char *pattern, pc_group_options options)
{
    PC__NEED(optimizer);
    PC__NEED(pattern);
    pc_optimizer *o = optimizer;
    pc__step_attributes *a = &o->settings;
    const double scale = options.lr_scale != 0 ? options.lr_scale : 1;
    const double decay = options.no_decay            ? 0
                         : options.weight_decay != 0 ? options.weight_decay
                                                     : a->group[0].weight_decay;
    int found = 0;
    if (!pc__optimizer_is_rate(scale) || !pc__optimizer_is_decay(decay) || options.max_dims < 0)
        return pc__fail(
            PC_ERR_ARGUMENT,
            "pc_optimizer_group \"%s\": lr_scale %g must be above 0, weight decay %g at least 0, both finite, "
            "and max_dims %d at least 0",
            pattern, scale, decay, options.max_dims);
    if (a->groups == PC__STEP_GROUPS)
        return pc__fail(PC_ERR_ARGUMENT, "pc_optimizer_group \"%s\": there are %d groups, which is the most", pattern,
                        a->groups);
    for (int i = 0; i < o->count; i++)
        found += belongs(o, i, pattern, options.max_dims);
    if (!found && !o->is_part) /* else another part may have them */
        return pc__fail(
            PC_ERR_ARGUMENT, "pc_optimizer_group \"%s\": none of %d parameters has such a name%s; the first is \"%s\"",
            pattern, o->count, options.max_dims ? " and as few dimensions" : "", o->count ? o->names[0].name : "");
    for (int i = 0; i < o->count; i++)
        if (belongs(o, i, pattern, options.max_dims))
            o->group[i] = (uint8_t)a->groups;
    a->group[a->groups].lr_scale = scale;
    a->group[a->groups].weight_decay = decay;
    a->groups++;
    return PC_OK;
}
