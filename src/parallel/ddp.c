/* ddp.c: data parallel training: every rank has all gradients. */
#include "parallel/pipeline.h"
#include "parallel/lacking.h"
#include "parallel/narrow.h"

#include "nn/module.h"

#include <paracord/autograd.h>
#include <paracord/data_parallel.h>
#include <paracord/no_grad.h>

struct pc_ddp {
    pc__reducer reducer;
};

static pc_status reduce(pc__reducer *r, int bucket)
{
    PC__TRY(pc__lacking_tell(r, r->buckets.bucket[bucket].first, r->buckets.bucket[bucket].last));
    return pc__narrow_all_reduce(r, r->buckets.bucket[bucket].flat);
}

static pc_status prepare(pc_ddp *d, pc_module *module, pc_group *group, pc_ddp_options options)
{
    const pc__reduction how = {.who = "pc_ddp_new", .parts = 1, .dtype = options.reduce_dtype, .reduce = reduce};
    PC__TRY(pc__narrow_check(how.who, how.dtype));
    PC__TRY(pc__reducer_open(&d->reducer, module, group, how, options.bucket_mb));
    PC__TRY(pc__reducer_share(&d->reducer, true));
    for (int i = 0; i < d->reducer.count; i++) /* it lies in no bucket */
        pc_zero_grad(d->reducer.parameter[i]);
    pc__reducer_start(&d->reducer);
    return PC_OK;
}

pc_ddp *pc_ddp_new(pc_module *module, pc_group *group, pc_ddp_options options)
{
    PC__NEED_OR(NULL, module);
    PC__NEED_OR(NULL, group);
    pc_ddp *d = pc__calloc(1, sizeof *d);
    pc_status status = d ? PC_OK : PC_ERR_MEMORY;
    PC_SCOPE {
        PC_NO_GRAD {
            if (status == PC_OK)
                status = prepare(d, module, group, options);
        }
    }
    if (status == PC_OK)
        return d;
    pc_ddp_free(d);
    return NULL;
}

void pc_ddp_free(pc_ddp *ddp)
{
    if (!ddp)
        return;
    pc__reducer_close(&ddp->reducer);
    pc__free(ddp);
}

pc_group *pc__ddp_group(pc_ddp *ddp)
{
    return ddp->reducer.group;
}

void pc__ddp_hold(pc_ddp *ddp, bool on)
{
    ddp->reducer.held = on;
}

/* Steps that were recorded do what backward passes did then: they are recorded anew. */
void pc_ddp_set_sync(pc_ddp *ddp, bool on)
{
    PC__NEED_OR(, ddp);
    if (ddp->reducer.sync != on)
        ddp->reducer.module->version++;
    ddp->reducer.sync = on;
}

pc_status pc_ddp_share_buffers(pc_ddp *ddp)
{
    PC__NEED(ddp);
    pc_status status = PC_OK;
    PC_NO_GRAD {
        status = pc__reducer_share(&ddp->reducer, false);
    }
    return status;
}
