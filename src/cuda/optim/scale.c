/* scale.c: what a loss scaler does: all gradients in a launch, as many as its arguments hold. */
#include "cuda/optim/scale.h"

#include "cuda/runtime/cuda.h"
#include "ops/scale.h"

static pc_status launch(pc_stream *stream, const pc_call *call, pc__cuda_gradients *g, int dtype, unsigned blocks)
{
    if (!g->count)
        return PC_OK;
    pc__cuda_unscale(pc__cuda_queue(stream), pc__cuda_early(stream), g, dtype, blocks);
    g->count = 0;
    return pc__cuda_launched(call);
}

/* Neighbours of one dtype together. */
pc_status pc__cuda_op_unscale(pc_stream *stream, const pc_call *call)
{
    pc__cuda_gradients g = {.numbers = pc__data(call->out[0])};
    unsigned blocks = 0;
    for (int i = 0; i < call->n_in; i++) {
        const pc_tensor *t = call->in[i];
        const int64_t n = pc__count(t->ndim, t->shape);
        if (g.count == PC__UNSCALE_MOST || (i > 0 && t->dtype != call->in[i - 1]->dtype)) {
            PC__TRY(launch(stream, call, &g, call->in[i - 1]->dtype, blocks));
            blocks = 0;
        }
        if (n == 0)
            continue;
        g.data[g.count] = pc__data(t);
        g.n[g.count] = n;
        g.starts[g.count++] = blocks;
        blocks += (unsigned)((n + PC__UNSCALE_PIECE - 1) / PC__UNSCALE_PIECE);
    }
    return call->n_in ? launch(stream, call, &g, call->in[call->n_in - 1]->dtype, blocks) : PC_OK;
}

pc_status pc__cuda_op_scale_update(pc_stream *stream, const pc_call *call)
{
    pc__cuda_scale_update(pc__cuda_queue(stream), pc__cuda_early(stream), pc__data(call->out[0]), call->attributes);
    return pc__cuda_launched(call);
}
