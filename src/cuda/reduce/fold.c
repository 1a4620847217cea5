/* fold.c: products, truths, norms, variances and dot products, in one pass or two. */
#include "cuda/reduce/fold.h"

#include "cuda/reduce/plan.h"
#include "cuda/reduce/short.h"

/* In one pass or two, whose accesses have `pack` elements where it goes by rows. */
static pc_status run_cut(pc_stream *stream, const pc_call *call, const pc__reduce_attributes *a, pc__cuda_fold *fold,
                         int pack, void (*launch)(const pc__cuda_fold *fold))
{
    const bool rows = a->inner == 1;
    fold->how = pc__cuda_plan(stream, a, fold->in, pc_dtype_size((pc_dtype)fold->from), rows ? pack : 1, true, rows);
    fold->how.divisor = a->divisor;
    if (fold->how.parts > 1) {
        const int64_t states = fold->how.outer * fold->how.parts * fold->how.inner;
        fold->between = pc__cuda_scratch(stream, (size_t)states * PC__FOLD_STATE);
        if (!fold->between)
            return PC_ERR_MEMORY;
    }
    launch(fold);
    return pc__cuda_launched(call);
}

/* Over x; `fold` has what is the kind's own. */
static pc_status run(pc_stream *stream, const pc_call *call, const pc__reduce_attributes *a, const pc_tensor *x,
                     pc__cuda_fold *fold, void (*launch)(const pc__cuda_fold *fold))
{
    if (a->outer * a->inner == 0)
        return PC_OK;
    pc__cuda_short gaps;
    if (pc__is_contiguous(x))
        return run_cut(stream, call, a, fold, pc__cuda_vector_of(fold->from), launch);
    (void)pc__cuda_plan_short(stream, a, x, 1, PC__SHORT_OTHERS, &gaps);
    fold->gaps = &gaps;
    fold->how.divisor = a->divisor;
    launch(fold);
    return pc__cuda_launched(call);
}

static pc__cuda_fold fold_of(const pc_call *call)
{
    return (pc__cuda_fold){.in = pc__data(call->in[0]),
                           .from = call->in[0]->dtype,
                           .to = call->out[0]->dtype,
                           .out = pc__data(call->out[0])};
}

PC__CUDA_KERNEL(prod)
{
    pc__cuda_fold fold = fold_of(call);
    PC__TRY(pc__cuda_takes(call, PC__FLOATS | PC__BIT(PC_I64)));
    return run(stream, call, call->attributes, call->in[0], &fold, pc__cuda_fold_prod);
}

PC__CUDA_KERNEL(any)
{
    pc__cuda_fold fold = fold_of(call);
    return run(stream, call, call->attributes, call->in[0], &fold, pc__cuda_fold_truth);
}

PC__CUDA_KERNEL(all)
{
    pc__cuda_fold fold = fold_of(call);
    fold.kind = true;
    return run(stream, call, call->attributes, call->in[0], &fold, pc__cuda_fold_truth);
}

PC__CUDA_KERNEL(norm)
{
    const pc__reduce_attributes *a = call->attributes;
    pc__cuda_fold fold = fold_of(call);
    PC__TRY(pc__cuda_takes(call, PC__FLOATS));
    fold.kind = a->norm;
    return run(stream, call, a, call->in[0], &fold, pc__cuda_fold_norm);
}

PC__CUDA_KERNEL(var)
{
    const pc__reduce_attributes *a = call->attributes;
    pc__cuda_fold fold = fold_of(call);
    PC__TRY(pc__cuda_takes(call, PC__FLOATS));
    fold.kind = a->root;
    fold.also = pc__data(call->out[1]);
    return run(stream, call, a, call->in[0], &fold, pc__cuda_fold_var);
}

PC__CUDA_KERNEL(dot)
{
    const pc__reduce_attributes row = {.outer = 1, .reduced = call->in[0]->shape[0], .inner = 1, .divisor = 1};
    pc__cuda_fold fold = fold_of(call);
    PC__TRY(pc__cuda_takes(call, PC__FLOATS));
    fold.other = pc__data(call->in[1]);
    fold.step = pc__is_contiguous(call->in[0]) ? 1 : call->in[0]->strides[0];
    fold.other_step = pc__is_contiguous(call->in[1]) ? 1 : call->in[1]->strides[0];
    const bool apart = fold.step != 1 || fold.other_step != 1;
    return run_cut(stream, call, &row, &fold, apart ? PC__DOT_PACK : pc__cuda_vector_of(fold.from), pc__cuda_fold_dot);
}

/* Of x, in[1], and the results' gradient, in[0]. */
PC__CUDA_KERNEL(prod_backward)
{
    const pc__reduce_attributes *a = call->attributes;
    const pc_tensor *x = call->in[1];
    const size_t size = pc_dtype_size(x->dtype), results = (size_t)(a->outer * a->inner);
    const int64_t count = (int64_t)results * a->reduced;
    PC__TRY(pc__cuda_takes(call, PC__BIT(PC_F32) | PC__BIT(PC_F64)));
    if (count == 0)
        return PC_OK;
    char *parts = pc__cuda_scratch(stream, 2 * results * size);
    if (!parts)
        return PC_ERR_MEMORY;
    pc__cuda_fold fold = {.in = pc__data(x),
                          .from = x->dtype,
                          .out = parts,
                          .also = parts + results * size,
                          .other = pc__data(call->in[0])};
    pc__cuda_deeper(stream, 1); /* beside `parts` */
    const pc_status status = run(stream, call, a, x, &fold, pc__cuda_fold_prod_parts);
    pc__cuda_deeper(stream, -1);
    PC__TRY(status);
    const pc__cuda_prod_backward backward = {.count = count,
                                             .reduced = a->reduced,
                                             .inner = a->inner,
                                             .x = pc__data(x),
                                             .of_zero = fold.also,
                                             .of_other = parts,
                                             .dx = pc__data(call->out[0]),
                                             .dtype = x->dtype,
                                             .early = pc__cuda_early(stream),
                                             .queue = pc__cuda_queue(stream)};
    pc__cuda_prod_to_elements(&backward);
    return pc__cuda_launched(call);
}
