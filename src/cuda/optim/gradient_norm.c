/* gradient_norm.c: the norm of all gradients together: as many in a launch as its arguments hold. */
#include "cuda/optim/gradient_norm.h"

#include "cuda/runtime/cuda.h"

static int64_t blocks_of(const pc_tensor *t, int piece)
{
    return (pc__count(t->ndim, t->shape) + piece - 1) / piece;
}

static int piece_of(const pc_call *call)
{
    int64_t all = 0;
    for (int i = 0; i < call->n_in; i++)
        all += pc__count(call->in[i]->ndim, call->in[i]->shape);
    return all <= PC__NORM_SMALL ? PC__NORM_FEW : PC__NORM_MANY;
}

static pc_status launch(pc_stream *stream, const pc_call *call, pc__cuda_norm *g, unsigned *blocks)
{
    pc__cuda_gradient_norm(pc__cuda_queue(stream), g, *blocks);
    g->first += *blocks;
    g->count = 0;
    *blocks = 0;
    return pc__cuda_launched(call);
}

pc_status pc__cuda_op_gradient_norm(pc_stream *stream, const pc_call *call)
{
    const int piece = piece_of(call);
    int64_t all = 1;
    unsigned blocks = 0;
    for (int i = 0; i < call->n_in; i++)
        all += blocks_of(call->in[i], piece);
    pc__cuda_norm g = {.early = pc__cuda_early(stream),
                       .sums = pc__cuda_scratch(stream, (size_t)all * sizeof(double)),
                       .clip = pc__data(call->out[0]),
                       .piece = piece,
                       .most = *(const double *)call->attributes};
    if (!g.sums)
        return PC_ERR_MEMORY;
    for (int i = 0; i < call->n_in; i++) {
        const pc_tensor *t = call->in[i];
        if (blocks_of(t, piece) == 0)
            continue;
        if (g.count == PC__NORM_MOST || (g.count > 0 && t->dtype != (pc_dtype)g.dtype))
            PC__TRY(launch(stream, call, &g, &blocks));
        g.dtype = (int)t->dtype;
        g.data[g.count] = pc__data(t);
        g.n[g.count] = pc__count(t->ndim, t->shape);
        g.starts[g.count++] = blocks;
        blocks += (unsigned)blocks_of(t, piece);
    }
    g.counter = pc__cuda_counters(stream);
    return launch(stream, call, &g, &blocks);
}
