/* products.c: matrix products: short sums, few rows or columns, where memory alone counts, and little work by kernels of our own; else
 * cuBLASLt where it is there and takes the shape, with operands that lie askew copied where that pays. */
#include "cuda/matmul/lt.h"
#include "cuda/matmul/outer.h"
#include "cuda/matmul/padded.h"
#include "cuda/matmul/rows.h"
#include "cuda/matmul/staged.h"
#include "cuda/matmul/thin.h"
#include "ops/matmul.h"

#include <paracord/ops.h>

_Static_assert(PC__CUDA_THIN_COUNTERS <= PC__CUDA_COUNTERS, "a counter for each tile");

static bool has_matrix_units(const pc__cuda_gemm *g)
{
    return g->dtype == PC__CUDA_F16 || g->dtype == PC__CUDA_BF16 ||
           (g->dtype == PC__CUDA_F32 && pc_matmul_precision_get() == PC_PRECISION_TF32);
}

static bool outer_supports(const pc_stream *stream, const void *problem)
{
    const pc__cuda_gemm *g = problem;
    return !g->pitch && pc__cuda_outer_fits(g) &&
           (pc__rows_takes_all(&pc__matmul_rows, stream, outer_supports) ||
            pc__cuda_outer_suits(g, g->dtype == PC__CUDA_F32 && has_matrix_units(g)));
}

static pc_status outer_run(pc_stream *stream, const pc_call *call, const void *problem, void *workspace, bool *done)
{
    (void)call, (void)workspace, (void)done;
    pc__cuda_outer(pc__cuda_queue(stream), problem, pc__cuda_multiprocessors(stream), pc__cuda_early(stream));
    return PC_OK;
}

static bool thin_supports(const pc_stream *stream, const void *problem)
{
    const pc__cuda_gemm *g = problem;
    return !g->pitch && pc__cuda_thin_fits(g) &&
           (pc__rows_takes_all(&pc__matmul_rows, stream, thin_supports) || pc__cuda_thin_suits(g));
}

static pc_status thin_run(pc_stream *stream, const pc_call *call, const void *problem, void *workspace, bool *done)
{
    const int multiprocessors = pc__cuda_multiprocessors(stream);
    const size_t bytes = pc__cuda_thin_scratch(problem, multiprocessors);
    (void)call, (void)done;
    workspace = bytes ? pc__cuda_scratch(stream, bytes) : NULL;
    if (bytes && !workspace)
        return PC_ERR_MEMORY;
    pc__cuda_thin(pc__cuda_queue(stream), problem, multiprocessors, pc__cuda_early(stream), workspace,
                  pc__cuda_counters(stream));
    return PC_OK;
}

static bool staged_supports(const pc_stream *stream, const void *problem)
{
    const pc__cuda_gemm *g = problem;
    return pc__cuda_staged_fits(g) &&
           (pc__rows_takes_all(&pc__matmul_rows, stream, staged_supports) || pc__cuda_staged_suits(g));
}

static pc_status staged_run(pc_stream *stream, const pc_call *call, const void *problem, void *workspace, bool *done)
{
    (void)call, (void)workspace, (void)done;
    pc__cuda_staged(pc__cuda_queue(stream), problem, pc__cuda_early(stream));
    return PC_OK;
}

static bool padded_supports(const pc_stream *stream, const void *problem)
{
    const pc__cuda_gemm *g = problem;
    pc__cuda_padded plan;
    if (((const pc__cuda_stream *)stream->implementation)->scratch_level != 0 || !pc__cuda_padded_plan(g, NULL, &plan))
        return false;
    return pc__rows_takes_all(&pc__matmul_rows, stream, padded_supports) ||
           (has_matrix_units(g) && !pc__cuda_lt_missing() &&
            pc__cuda_padded_suits(g, &plan, pc__cuda_multiprocessors(stream)));
}

/* What cuBLASLt works in is scratch memory of the next level: that of this one holds the copies. */
static pc_status multiply(pc_stream *stream, const pc__cuda_gemm *g)
{
    bool done;
    pc__cuda_deeper(stream, 1);
    const pc_status status = pc__cuda_lt_gemm(stream, g, &done);
    pc__cuda_deeper(stream, -1);
    if (status == PC_OK && !done)
        pc__cuda_gemm_plain(pc__cuda_queue(stream), g);
    return status;
}

/* A few rows. */
static pc_status multiply_rest(pc_stream *stream, const pc__cuda_gemm *g)
{
    bool done;
    if (pc__cuda_thin_fits(g))
        return thin_run(stream, NULL, g, NULL, &done);
    pc__cuda_gemm_plain(pc__cuda_queue(stream), g);
    return PC_OK;
}

/* Without room for the copies the next row does it. */
static pc_status padded_run(pc_stream *stream, const pc_call *call, const void *problem, void *workspace, bool *done)
{
    const int early = pc__cuda_early(stream);
    pc__cuda_padded plan;
    (void)call;
    (void)pc__cuda_padded_plan(problem, NULL, &plan);
    if (plan.bytes) {
        workspace = pc__cuda_try_scratch(stream, plan.bytes);
        *done = workspace != NULL;
        if (!*done)
            return PC_OK;
        (void)pc__cuda_padded_plan(problem, workspace, &plan);
    }
    if (plan.count)
        pc__cuda_pad_all(pc__cuda_queue(stream), plan.pads, plan.count, plan.size, early);
    PC__TRY(multiply(stream, &plan.inner));
    if (plan.cut_size)
        pc__cuda_cut_back(pc__cuda_queue(stream), &plan.cut, plan.cut_size, pc__cuda_early(stream));
    return plan.rest.m ? multiply_rest(stream, &plan.rest) : PC_OK;
}

static bool cublaslt_supports(const pc_stream *stream, const void *problem)
{
    (void)stream, (void)problem;
    return !pc__cuda_lt_missing(); /* shapes it refuses when it is asked for them */
}

static pc_status cublaslt_run(pc_stream *stream, const pc_call *call, const void *problem, void *workspace, bool *done)
{
    (void)call, (void)workspace;
    return pc__cuda_lt_gemm(stream, problem, done);
}

static bool any(const pc_stream *stream, const void *problem)
{
    (void)stream, (void)problem;
    return true;
}

static pc_status tile_run(pc_stream *stream, const pc_call *call, const void *problem, void *workspace, bool *done)
{
    (void)call, (void)workspace, (void)done;
    pc__cuda_gemm_plain(pc__cuda_queue(stream), problem);
    return PC_OK;
}

static const pc__row rows[] = {
    {"outer", "by outer", outer_supports, NULL, outer_run},
    {"thin", "by thin", thin_supports, NULL, thin_run},
    {"staged", "by staged", staged_supports, NULL, staged_run},
    {"padded", "by padded", padded_supports, NULL, padded_run},
    {"cublaslt", "by cuBLASLt", cublaslt_supports, NULL, cublaslt_run},
    {"tile", "by tile", any, NULL, tile_run},
};

pc__rows pc__matmul_rows = {"matmul", rows, PC__COUNT(rows), NULL, 0};

bool pc__matmul_takes_advice(const pc__row *row)
{
    return (row->run == padded_run || row->run == cublaslt_run) && !pc__cuda_lt_missing();
}

/* The leading dimensions of a product, innermost last, joined where both operands let them be one. */
typedef struct batches {
    int ndim;
    int64_t size[PC_MAX_DIMS], a[PC_MAX_DIMS], b[PC_MAX_DIMS]; /* strides in elements, 0 where broadcast */
} batches;

static int64_t lead_stride(const pc_tensor *t, int from_end)
{
    const int d = t->ndim - from_end;
    return d >= 0 && t->shape[d] != 1 ? t->strides[d] : 0;
}

static batches batches_of(const pc_tensor *a, const pc_tensor *b, const pc_tensor *y)
{
    batches l = {0};
    for (int d = 0; d < y->ndim - 2; d++) {
        const int64_t size = y->shape[d], at_a = lead_stride(a, y->ndim - d), at_b = lead_stride(b, y->ndim - d);
        if (size == 1)
            continue;
        const int last = l.ndim - 1;
        if (l.ndim && l.a[last] == at_a * size && l.b[last] == at_b * size) {
            l.size[last] *= size, l.a[last] = at_a, l.b[last] = at_b;
            continue;
        }
        l.size[l.ndim] = size, l.a[l.ndim] = at_a, l.b[l.ndim] = at_b;
        l.ndim++;
    }
    return l;
}

/* A batch against one b whose rows of a go on from matrix to matrix is one product. */
static void join_rows(pc__cuda_gemm *g)
{
    if (g->batch == 1 || g->b_batch != 0 || g->a_batch != g->m * g->a_rs)
        return;
    g->m *= g->batch;
    g->batch = 1;
}

pc_status pc__cuda_op_matmul(pc_stream *stream, const pc_call *call)
{
    const pc_tensor *a = call->in[0], *b = call->in[1], *y = call->out[0];
    if (pc__count(y->ndim, y->shape) == 0)
        return PC_OK;
    const batches l = batches_of(a, b, y);
    const pc__matmul_attributes *attributes = call->attributes;
    const int64_t size = (int64_t)pc_dtype_size(a->dtype), m = y->shape[y->ndim - 2], n = y->shape[y->ndim - 1];
    pc__cuda_gemm g = {.dtype = a->dtype,
                       .wide = y->dtype != a->dtype,
                       .activation = PC_ACTIVATION_NONE,
                       .m = m,
                       .n = n,
                       .k = a->shape[a->ndim - 1],
                       .batch = l.ndim ? l.size[l.ndim - 1] : 1,
                       .a_rs = a->strides[a->ndim - 2],
                       .a_cs = a->strides[a->ndim - 1],
                       .a_batch = l.ndim ? l.a[l.ndim - 1] : 0,
                       .b_rs = b->strides[b->ndim - 2],
                       .b_cs = b->strides[b->ndim - 1],
                       .b_batch = l.ndim ? l.b[l.ndim - 1] : 0,
                       .pitch = pc__pitch_of(y)};
    if (attributes)
        g.zeros =
            (attributes->zeros[0] ? PC__CUDA_GEMM_ZEROS_A : 0) | (attributes->zeros[1] ? PC__CUDA_GEMM_ZEROS_B : 0);
    const int64_t step = g.batch * m * n, count = pc__count(y->ndim, y->shape) / step;
    join_rows(&g);
    for (int64_t i = 0; i < count; i++) {
        int64_t rest = i, at_a = 0, at_b = 0;
        for (int d = l.ndim - 2; d >= 0; d--) {
            at_a += rest % l.size[d] * l.a[d], at_b += rest % l.size[d] * l.b[d];
            rest /= l.size[d];
        }
        g.a = (const char *)pc__data(a) + at_a * size;
        g.b = (const char *)pc__data(b) + at_b * size;
        g.c = (char *)pc__data(y) + i * step * (int64_t)pc_dtype_size(y->dtype);
        PC__TRY(pc__matmul_run(stream, call, &g));
    }
    return PC_OK;
}
