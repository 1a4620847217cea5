/* described_layers.c: layers of described networks: the shapes that they take and give, made and counted. */
#include "train/described_layers.h"

#include <paracord/module.h>

double pc__place_numbers(const pc__place *at)
{
    return (double)at->channels * (at->flat ? 1 : (double)at->high * (double)at->wide);
}

static void count(pc__describing *r, double parameters, const pc__place *gives, int times)
{
    r->parameters += parameters;
    r->activations += times * pc__place_numbers(gives);
    r->largest = PC__MAX(r->largest, pc__place_numbers(gives));
}

static pc_status need_picture(const pc__described_layer *l, const pc__place *at)
{
    return !at->flat ? PC_OK
                     : pc__fail(PC_ERR_SHAPE,
                                PC__DESCRIBED "a layer \"%s\" takes pictures, and "
                                              "comes behind flatten",
                                l->line, l->kind->name);
}

/* The window's places; `same`: as many as there are. */
static pc_status slide(const pc__described_layer *l, int64_t stride, pc__place *at)
{
    const int64_t reach = l->dilation * (l->kernel - 1), padding = l->same ? reach / 2 : l->padding;
    const int64_t high = at->high + 2 * padding - reach - 1, wide = at->wide + 2 * padding - reach - 1;
    if (l->same && (reach % 2 || stride != 1))
        return pc__fail(PC_ERR_FORMAT,
                        PC__DESCRIBED "\"same\" is for odd kernels and a stride of "
                                      "1",
                        l->line);
    if (high < 0 || wide < 0)
        return pc__fail(PC_ERR_SHAPE,
                        PC__DESCRIBED "%lld x %lld places are too few for a layer "
                                      "\"%s\" of kernel %lld",
                        l->line, (long long)at->high, (long long)at->wide, l->kind->name, (long long)l->kernel);
    at->high = high / stride + 1, at->wide = wide / stride + 1;
    return PC_OK;
}

static pc_status make_conv(pc__describing *r, pc__described_layer *l, pc__place *at, pc_module **module)
{
    const int64_t in = at->channels;
    PC__TRY(need_picture(l, at));
    if (in % l->groups || l->out % l->groups)
        return pc__fail(PC_ERR_SHAPE,
                        PC__DESCRIBED "%lld groups do not share %lld channels in and "
                                      "%lld out",
                        l->line, (long long)l->groups, (long long)in, (long long)l->out);
    PC__TRY(slide(l, l->stride, at));
    at->channels = l->out;
    count(r,
          (double)l->out * (double)(in / l->groups) * (double)(l->kernel * l->kernel) + (l->bias ? (double)l->out : 0),
          at, 1);
    const int padding = (int)(l->same ? l->dilation * (l->kernel - 1) / 2 : l->padding);
    if (r->makes)
        *module = pc_conv2d(in, l->out, (int)l->kernel, .stride = (int)l->stride, .padding = padding,
                            .no_bias = !l->bias, .groups = (int)l->groups, .dilation = (int)l->dilation,
                            .activation = l->activation, .init = r->init);
    return PC_OK;
}

static pc_status make_linear(pc__describing *r, pc__described_layer *l, pc__place *at, pc_module **module)
{
    const int64_t in = at->channels;
    if (!at->flat)
        return pc__fail(PC_ERR_SHAPE,
                        PC__DESCRIBED "a linear layer takes rows of numbers: put a "
                                      "layer \"flatten\" in front of it",
                        l->line);
    at->channels = l->out;
    count(r, (double)l->out * ((double)in + l->bias), at, 1);
    if (r->makes)
        *module = pc_linear(in, l->out, .no_bias = !l->bias, .activation = l->activation, .init = r->init);
    return PC_OK;
}

static pc_status make_pool(pc__describing *r, pc__described_layer *l, pc__place *at, pc_module **module)
{
    const int64_t stride = l->given & PC__STRIDE ? l->stride : l->kernel;
    const int kernel = (int)l->kernel;
    PC__TRY(need_picture(l, at));
    if (l->same || l->padding > l->kernel / 2)
        return pc__fail(PC_ERR_FORMAT,
                        PC__DESCRIBED "the \"padding\" of pooling is 0 to half its "
                                      "kernel",
                        l->line);
    PC__TRY(slide(l, stride, at));
    count(r, 0, at, 1);
    if (r->makes && strcmp(l->kind->name, "max_pool") == 0)
        *module = pc_max_pool2d(kernel, .stride = (int)stride, .padding = (int)l->padding);
    else if (r->makes)
        *module = pc_avg_pool2d(kernel, .stride = (int)stride, .padding = (int)l->padding);
    return PC_OK;
}

static bool same_place(const pc__place *a, const pc__place *b)
{
    return a->flat == b->flat && a->channels == b->channels && (a->flat || (a->high == b->high && a->wide == b->wide));
}

static pc_status make_residual(pc__describing *r, pc__described_layer *l, pc__place *at, pc_module **module)
{
    const pc__place *rest = l->given & PC__SHORTCUT ? &l->after_shortcut : at;
    if (!same_place(&l->after_body, rest))
        return pc__fail(PC_ERR_SHAPE,
                        PC__DESCRIBED "what a residual's body gives, %lld channels "
                                      "of %lld x %lld, is not of the shape of its shortcut's, %lld of %lld x %lld",
                        l->line, (long long)l->after_body.channels, (long long)l->after_body.high,
                        (long long)l->after_body.wide, (long long)rest->channels, (long long)rest->high,
                        (long long)rest->wide);
    *at = l->after_body;
    count(r, 0, at, 2);
    if (r->makes)
        *module = pc_residual(l->body, .shortcut = l->shortcut, .activation = l->activation);
    l->body = l->shortcut = NULL; /* the residual's, on failure too */
    return PC_OK;
}

static pc_status make_norm(pc__describing *r, pc__described_layer *l, pc__place *at, pc_module **module)
{
    (void)l;
    count(r, 2 * (double)at->channels, at, 1);
    if (r->makes)
        *module = at->flat ? pc_batch_norm1d(at->channels) : pc_batch_norm2d(at->channels);
    return PC_OK;
}

static pc_status make_global_pool(pc__describing *r, pc__described_layer *l, pc__place *at, pc_module **module)
{
    PC__TRY(need_picture(l, at));
    at->high = at->wide = 1;
    count(r, 0, at, 1);
    *module = r->makes ? pc_adaptive_avg_pool2d(1, 1) : NULL;
    return PC_OK;
}

static pc_status make_flatten(pc__describing *r, pc__described_layer *l, pc__place *at, pc_module **module)
{
    (void)l;
    *at = (pc__place){.channels = (int64_t)pc__place_numbers(at), .flat = true};
    *module = r->makes ? pc_flatten() : NULL;
    return PC_OK;
}

static pc_status make_dropout(pc__describing *r, pc__described_layer *l, pc__place *at, pc_module **module)
{
    if (!(l->p >= 0 && l->p <= 1))
        return pc__fail(PC_ERR_FORMAT, PC__DESCRIBED "the \"p\" of dropout is 0 to 1", l->line);
    count(r, 0, at, 1);
    *module = r->makes ? pc_dropout(l->p) : NULL;
    return PC_OK;
}

static pc_status make_sequence(pc__describing *r, pc__described_layer *l, pc__place *at, pc_module **module)
{
    (void)r;
    *at = l->after_body;
    *module = l->body;
    l->body = NULL;
    return PC_OK;
}

static pc_status make_activation(pc__describing *r, pc__described_layer *l, pc__place *at, pc_module **module)
{
    count(r, 0, at, 1);
    *module = r->makes ? pc_activation(l->kind->activation) : NULL;
    return PC_OK;
}

const pc__described_kind pc__described_kinds[] = {
    {"conv", make_conv, PC__OUT | PC__WINDOW | PC__GROUPS | PC__DILATION | PC__BIAS | PC__ACTIVATES,
     PC__OUT | PC__KERNEL, PC_ACTIVATION_NONE},
    {"linear", make_linear, PC__OUT | PC__BIAS | PC__ACTIVATES, PC__OUT, PC_ACTIVATION_NONE},
    {"batch_norm", make_norm, 0, 0, PC_ACTIVATION_NONE},
    {"max_pool", make_pool, PC__WINDOW, PC__KERNEL, PC_ACTIVATION_NONE},
    {"avg_pool", make_pool, PC__WINDOW, PC__KERNEL, PC_ACTIVATION_NONE},
    {"global_avg_pool", make_global_pool, 0, 0, PC_ACTIVATION_NONE},
    {"flatten", make_flatten, 0, 0, PC_ACTIVATION_NONE},
    {"dropout", make_dropout, PC__P, PC__P, PC_ACTIVATION_NONE},
    {"residual", make_residual, PC__BODY | PC__SHORTCUT | PC__ACTIVATES, PC__BODY, PC_ACTIVATION_NONE},
    {"sequence", make_sequence, PC__BODY, PC__BODY, PC_ACTIVATION_NONE},
    {"relu", make_activation, 0, 0, PC_ACTIVATION_RELU},
    {"sigmoid", make_activation, 0, 0, PC_ACTIVATION_SIGMOID},
    {"tanh", make_activation, 0, 0, PC_ACTIVATION_TANH},
    {"gelu", make_activation, 0, 0, PC_ACTIVATION_GELU},
    {"silu", make_activation, 0, 0, PC_ACTIVATION_SILU},
    {NULL, NULL, 0, 0, PC_ACTIVATION_NONE}};
