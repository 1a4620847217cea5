/* zero.c: data parallel training that shares out the optimiser's state, the gradients and the parameters: the stages of
 * ZeRO. Parameters lie in buckets as their gradients do; each rank has a part of every bucket. */
#include "parallel/zero.h"

#include "device/graph.h"
#include "dist/group.h"
#include "parallel/agree.h"
#include "parallel/lacking.h"
#include "parallel/narrow.h"
#include "parallel/norm.h"
#include "parallel/cut.h"
#include "nn/module.h"
#include "nn/optimizer.h"

#include <paracord/autograd.h>
#include <paracord/no_grad.h>
#include <paracord/ops.h>

/* Some pieces of the bucket have gradients of an earlier pass; the others get zeros then. */
static pc_status find_earlier(const pc_zero *z, int b, bool *some)
{
    *some = false;
    for (int i = 0; i < z->piece_count; i++)
        *some |= z->pieces[i].bucket == b && z->pieces[i].weights->grad;
    for (int i = 0; i < z->piece_count && *some; i++)
        if (z->pieces[i].bucket == b && !z->pieces[i].weights->grad)
            PC__TRY(pc_fill(z->pieces[i].gradient, 0));
    return PC_OK;
}

/* Gradients of several passes add up. */
static pc_status reduce_onto(pc_zero *z, int b)
{
    bool some;
    PC__TRY(find_earlier(z, b, &some));
    pc_tensor *flat = z->reducer.buckets.bucket[b].flat;
    if (!some)
        return pc__narrow_reduce_scatter(&z->reducer, z->own[b], flat);
    pc_tensor *more = pc__bucket_part(&z->reducer.buckets, b, z->reducer.group->size, (pc_dtype)flat->dtype);
    pc_status status = more ? pc__narrow_reduce_scatter(&z->reducer, more, flat) : pc_error_last()->status;
    if (status == PC_OK)
        status = pc_saxpy(z->own[b], 1, more);
    pc_tensor_free(more);
    return status;
}

/* Where buckets come and go, the one in front of the last one is reduced before memory is taken for the next. */
static pc_status reduce(pc__reducer *r, int b)
{
    pc_zero *z = (pc_zero *)r;
    if (r->how.briefly && b > 0)
        PC__TRY(pc__zero_meet(z, b, false));
    PC__TRY(reduce_onto(z, b));
    pc__zero_let_go(z, b);
    return PC_OK;
}

/* Since the last step. */
static bool adds(const pc__reducer *r)
{
    const pc_zero *z = (const pc_zero *)r;
    return z->pieces[0].weights->grad != NULL;
}

/* Gradients are those of the pieces from here on. */
static pc_status passed(pc__reducer *r)
{
    const pc_zero *z = (const pc_zero *)r;
    PC__TRY(pc__lacking_tell(r, 0, r->count - 1));
    for (int i = 0; i < r->count; i++)
        pc_zero_grad(r->parameter[i]);
    for (int i = 0; i < z->piece_count; i++)
        if (!z->pieces[i].weights->grad)
            PC__TRY(pc__leaf_gets(z->pieces[i].weights, z->pieces[i].gradient));
    return PC_OK;
}

/* The network goes on without pc_zero where there is none: what was shared out comes back. */
static pc_status move_in(pc_zero *z)
{
    PC__TRY(pc__zero_check(z));
    pc_status status = pc__zero_lay(z);
    const bool all_know = status != PC_OK && z->stage == 3; /* pc__zero_lay has told them */
    if (status == PC_OK)
        status = pc__zero_cut(z);
    if (!all_know)
        status = pc__agree_on_success(z->reducer.group, status);
    if (status == PC_OK)
        return PC_OK;
    const pc_error why = pc__error_take();
    (void)pc__zero_put_back(z);
    pc_error_clear();
    return pc__error_put(&why);
}

static pc_status prepare(pc_zero *z, pc_module *module, pc_group *group, pc_zero_options options)
{
    const pc__reduction how = {.who = "pc_zero_new",
                               .parts = group->size,
                               .stage = PC__MAX(options.stage, 1),
                               .ahead = options.ahead,
                               .dtype = options.reduce_dtype,
                               .briefly = options.stage >= 2,
                               .reduce = reduce,
                               .passed = passed,
                               .adds = adds};
    PC__TRY(pc__narrow_check(how.who, how.dtype));
    if (options.stage < 0 || options.stage > 3)
        return pc__fail(PC_ERR_ARGUMENT, "pc_zero_new: ZeRO has stages 1 to 3 (0: 1), not %d", options.stage);
    if (options.ahead < 0 || options.ahead > 64)
        return pc__fail(PC_ERR_ARGUMENT, "pc_zero_new: %d buckets ahead; it is 0 to 64", options.ahead);
    z->stage = options.stage ? options.stage : 1;
    z->ahead = options.ahead;
    z->offload = options.offload;
    PC__TRY(pc__reducer_open(&z->reducer, module, group, how, options.bucket_mb));
    PC__TRY(pc__reducer_share(&z->reducer, true));
    PC__TRY(move_in(z));
    for (int i = 0; i < z->reducer.count; i++)
        pc_zero_grad(z->reducer.parameter[i]);
    pc__reducer_start(&z->reducer);
    return PC_OK;
}

pc_zero *pc_zero_new(pc_module *module, pc_group *group, pc_zero_options options)
{
    PC__NEED_OR(NULL, module);
    PC__NEED_OR(NULL, group);
    pc_zero *z = pc__calloc(1, sizeof *z);
    pc_status status = z ? PC_OK : PC_ERR_MEMORY;
    PC_SCOPE {
        PC_NO_GRAD {
            if (status == PC_OK)
                status = prepare(z, module, group, options);
        }
    }
    if (status == PC_OK)
        return z;
    pc_zero_free(z);
    return NULL;
}

void pc_zero_free(pc_zero *zero)
{
    if (!zero)
        return;
    for (int i = 0; i < zero->piece_count; i++) {
        pc_tensor_free(zero->pieces[i].weights);
        pc_tensor_free(zero->pieces[i].gradient);
    }
    for (int b = 0; zero->own && b < zero->reducer.buckets.count; b++)
        pc_tensor_free(zero->own[b]);
    pc_module_free(zero->part);
    pc__zero_weights_free(zero);
    pc__reducer_close(&zero->reducer);
    pc__free(zero->own);
    pc__free(zero->pieces);
    pc__free(zero->others);
    pc__free(zero);
}

pc_module *pc_zero_part(pc_zero *zero)
{
    PC__NEED_OR(NULL, zero);
    return zero->part;
}

/* Of a network that is cut, what this rank's pieces have in all of its ranks. */
static pc_status norm_of_network(const pc_zero *z, pc_tensor *clip, double most)
{
    pc_tensor **list = pc__alloc((size_t)z->piece_count * sizeof *list);
    if (!list)
        return PC_ERR_MEMORY;
    pc__cut_gradients g = {.part = list, .same = list + z->piece_count};
    for (int i = 0; i < z->piece_count; i++) {
        const pc__piece *p = &z->pieces[i];
        if (p->weights->grad && p->cut)
            g.part[g.parts++] = p->gradient;
        else if (p->weights->grad)
            *--g.same = p->gradient, g.sames++;
    }
    pc_status status = PC_OK;
    PC_SCOPE {
        PC_NO_GRAD {
            status = pc__cut_norm(z->network, &g, clip, most);
        }
    }
    pc__free(list);
    return status;
}

static pc_status whole_norm(pc_optimizer *o)
{
    const pc_zero *z = o->whole;
    if (z->network)
        PC__TRY(norm_of_network(z, o->clip, o->clip_norm));
    return pc__norm_of_all(z->reducer.group, o->clip, o->clip_norm);
}

pc_status pc__zero_step(pc_zero *zero, pc_optimizer *optimizer, pc_tensor *numbers)
{
    optimizer->whole_norm = zero->reducer.group->size > 1 || zero->network ? whole_norm : NULL;
    optimizer->whole = zero;
    optimizer->others = zero->others;
    if (zero->reducer.group->size > 1) /* of all passes since the last step */
        PC__TRY(pc_group_all_reduce(zero->reducer.group, zero->reducer.numbers, PC_GROUP_MAX));
    for (int i = 0; i < zero->piece_count; i++)
        zero->others[i] = pc__lacking_number(&zero->reducer, zero->pieces[i].parameter);
    PC__TRY(pc__zero_take_parts(zero));
    PC__TRY(pc__optimizer_step(optimizer, numbers));
    return pc__zero_spread(zero);
}

pc_status pc_zero_step(pc_zero *zero, pc_optimizer *optimizer)
{
    PC__NEED(zero);
    PC__NEED(optimizer);
    if (!pc__zero_has(zero, optimizer))
        return pc__fail(
            PC_ERR_ARGUMENT,
            "pc_zero_step: the optimiser is for other tensors than this rank's part, which has the gradients; "
            "make it for pc_zero_part(zero)");
    return pc__zero_step(zero, optimizer, NULL);
}

pc_status pc_zero_share_buffers(pc_zero *zero)
{
    PC__NEED(zero);
    pc_status status = PC_OK;
    PC_NO_GRAD {
        status = pc__reducer_share(&zero->reducer, false);
    }
    return status;
}

/* Both are for code around the steps. */
static pc_status check_outside(const pc_zero *z, const char *who)
{
    for (int b = 0; b < z->reducer.buckets.count; b++)
        if (pc__graph_here(pc__bucket_device(&z->reducer.buckets, b)))
            return pc__fail(PC_ERR_STATE, "%s: a recording is under way; call it in front of that", who);
    return PC_OK;
}

pc_status pc_zero_gather(pc_zero *zero)
{
    PC__NEED(zero);
    PC__TRY(check_outside(zero, "pc_zero_gather"));
    return zero->stage < 3 || zero->gathered ? PC_OK : pc__zero_gather(zero);
}

pc_status pc_zero_release(pc_zero *zero)
{
    PC__NEED(zero);
    PC__TRY(check_outside(zero, "pc_zero_release"));
    return zero->gathered ? pc__zero_release(zero) : PC_OK;
}
