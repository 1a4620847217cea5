/* rows.c: the tables of who does attention, in the order in which they are asked. */
#include "cuda/attention/rows.h"

#include "cuda/pointwise/each.h"

static bool is_half(const pc__cuda_attention *a)
{
    return pc__is_half((pc_dtype)a->dtype);
}

/* --- short: few queries and keys, a block each matrix --- */

/* Not what cuDNN can do where PC_CHOICE_CUDNN asks for that. */
static bool short_supports(const pc_stream *stream, const void *problem)
{
    const pc__attention_problem *p = problem;
    const pc__rows *rows = p->backward ? &pc__attention_backward_rows : &pc__attention_rows;
    return pc__cuda_attention_is_short(&p->a) &&
           (pc_choice_get() != PC_CHOICE_CUDNN || pc__rows_takes_all(rows, stream, short_supports) ||
            !pc__attention_cudnn_supports(stream, problem));
}

static pc_status short_run(pc_stream *stream, const pc_call *call, const void *problem, void *workspace, bool *done)
{
    (void)stream, (void)call, (void)workspace, (void)done;
    const pc__attention_problem *p = problem;
    pc__cuda_attention_short(&p->a, p->backward);
    return PC_OK;
}

/* --- queries: few of them, a block each --- */

static bool queries_supports(const pc_stream *stream, const void *problem)
{
    const pc__attention_problem *p = problem;
    (void)stream;
    return pc__cuda_attention_has_few_queries(&p->a, p->backward);
}

static pc_status queries_run(pc_stream *stream, const pc_call *call, const void *problem, void *workspace, bool *done)
{
    (void)stream, (void)call, (void)workspace, (void)done;
    const pc__attention_problem *p = problem;
    p->backward ? pc__cuda_attention_queries_backward(&p->a) : pc__cuda_attention_queries(&p->a);
    return PC_OK;
}

/* --- units: our kernels by matrix units --- */

static bool units_supports(const pc_stream *stream, const void *problem)
{
    (void)stream;
    return pc__cuda_attention_has_units(&((const pc__attention_problem *)problem)->a);
}

static pc_status with_means(const pc__attention_problem *p, void *means, void (*kernel)(const pc__cuda_attention *a))
{
    pc__cuda_attention a = p->a;
    a.means = means;
    if (a.batches * a.l > 0)
        pc__cuda_attention_means(&a);
    kernel(&a);
    return PC_OK;
}

static size_t means_bytes(const void *problem)
{
    const pc__cuda_attention *a = &((const pc__attention_problem *)problem)->a;
    return (size_t)(a->batches * a->l) * (a->dtype == PC_F64 ? sizeof(double) : sizeof(float));
}

static pc_status units_forward(pc_stream *stream, const pc_call *call, const void *problem, void *workspace, bool *done)
{
    (void)stream, (void)call, (void)workspace, (void)done;
    pc__cuda_attention_units(&((const pc__attention_problem *)problem)->a);
    return PC_OK;
}

static pc_status units_backward(pc_stream *stream, const pc_call *call, const void *problem, void *workspace,
                                bool *done)
{
    (void)stream, (void)call, (void)done;
    return with_means(problem, workspace, pc__cuda_attention_units_backward);
}

/* --- floats: 16-bit numbers of other sizes, by way of float32 --- */

static bool floats_supports(const pc_stream *stream, const void *problem)
{
    (void)stream;
    return is_half(&((const pc__attention_problem *)problem)->a);
}

static pc_status floats_run(pc_stream *stream, const pc_call *call, const void *problem, void *workspace, bool *done)
{
    (void)workspace, (void)done;
    return pc__cuda_in_floats(stream, call,
                              ((const pc__attention_problem *)problem)->backward ? pc__cuda_op_attention_backward
                                                                                 : pc__cuda_op_attention);
}

/* --- plain: products one by one --- */

static bool plain_supports(const pc_stream *stream, const void *problem)
{
    (void)stream;
    return !is_half(&((const pc__attention_problem *)problem)->a);
}

static pc_status plain_forward(pc_stream *stream, const pc_call *call, const void *problem, void *workspace, bool *done)
{
    (void)stream, (void)call, (void)workspace, (void)done;
    pc__cuda_attention_plain(&((const pc__attention_problem *)problem)->a);
    return PC_OK;
}

static pc_status plain_backward(pc_stream *stream, const pc_call *call, const void *problem, void *workspace,
                                bool *done)
{
    (void)stream, (void)call, (void)done;
    return with_means(problem, workspace, pc__cuda_attention_plain_backward);
}

static const pc__row forward[] = {
    {"short", "by short", short_supports, NULL, short_run},
    {"cudnn", "by cudnn", pc__attention_cudnn_supports, NULL, pc__attention_cudnn_run},
    {"queries", "by queries", queries_supports, NULL, queries_run},
    {"units", "by units", units_supports, NULL, units_forward},
    {"floats", NULL, floats_supports, NULL, floats_run},
    {"plain", "by plain", plain_supports, NULL, plain_forward},
};
static const pc__row backward[] = {
    {"short", "by short", short_supports, NULL, short_run},
    {"cudnn", "by cudnn", pc__attention_cudnn_supports, NULL, pc__attention_cudnn_run},
    {"queries", "by queries", queries_supports, NULL, queries_run},
    {"units", "by units", units_supports, means_bytes, units_backward},
    {"floats", NULL, floats_supports, NULL, floats_run},
    {"plain", "by plain", plain_supports, means_bytes, plain_backward},
};
pc__rows pc__attention_rows = {"attention", forward, PC__COUNT(forward), NULL, 0};
pc__rows pc__attention_backward_rows = {"attention_backward", backward, PC__COUNT(backward), NULL, 0};
