/* linear.c: the linear layer: small ones in a launch of our own each way, others as a product. */
#include "cuda/loss/head.h"
#include "cuda/matmul/gelu.h"
#include "cuda/matmul/layer.h"
#include "cuda/matmul/linear_few.h"
#include "cuda/matmul/lt.h"
#include "cuda/matmul/rows.h"
#include "cuda/pointwise/each.h"
#include "ops/linear.h"

_Static_assert(PC__CUDA_LINEAR_TILES <= PC__CUDA_COUNTERS, "a counter for each tile");

/* A call of the layer. */
typedef struct problem {
    pc__cuda_gemm product;
    bool small; /* `layer` is there, and kernels of ours take it */
    pc__cuda_linear layer;
} problem;

static pc__cuda_gemm product_of(const pc_call *call)
{
    const pc_tensor *x = call->in[0], *w = call->in[1], *y = call->out[0];
    const pc__linear_attributes *a = call->attributes;
    return (pc__cuda_gemm){.dtype = y->dtype,
                           .activation = call->n_out > 1 ? PC_ACTIVATION_NONE : (int)a->activation,
                           .m = x->shape[0],
                           .n = w->shape[0],
                           .k = x->shape[1],
                           .batch = 1,
                           .a = pc__data(x),
                           .b = pc__data(w),
                           .bias = call->n_in > 2 ? pc__data(call->in[2]) : NULL,
                           .c = pc__data(y),
                           .a_rs = x->strides[0],
                           .a_cs = x->strides[1],
                           .b_rs = w->strides[1],
                           .b_cs = w->strides[0],
                           .pitch = pc__pitch_of(y),
                           .zeros = a->zeros ? PC__CUDA_GEMM_ZEROS_B : 0};
}

/* Of 16-bit layers with more inputs than MOST cuBLASLt's kernels are the faster ones, though they are two. */
static bool suits(const pc_tensor *x, const pc_tensor *w, const pc_tensor *y)
{
    enum { MOST = 4096 };
    return y->dtype != PC_F64 && (y->dtype == PC_F32 || x->shape[1] <= MOST) &&
           (x->strides[1] == 1 || x->shape[1] == 1) && pc__is_contiguous(w) && pc__is_contiguous(y) &&
           pc__linear_is_small(x->shape[0], w->shape[0], x->shape[1]) &&
           !pc__linear_has_good_products((pc_dtype)y->dtype, w->shape[0], x->shape[1]) &&
           x->strides[0] <= INT32_MAX / x->shape[0] &&
           pc__cuda_linear_tiles(x->shape[0], w->shape[0]) <= PC__CUDA_LINEAR_TILES;
}

cudaError_t pc__cuda_linear_forward(const pc__cuda_linear *l)
{
    return pc__cuda_linear_few_suits(l) ? pc__cuda_linear_few_forward(l) : pc__cuda_linear_small_forward(l);
}

static bool head_supports(const pc_stream *stream, const void *of)
{
    const problem *p = of;
    return p->small && p->layer.n == 1 && stream->recording;
}

static bool few_supports(const pc_stream *stream, const void *of)
{
    const problem *p = of;
    (void)stream;
    return p->small && pc__cuda_linear_few_suits(&p->layer);
}

/* In 16 bits cuBLASLt's kernels on matrix units are the faster ones where rows are whole accesses and all is one launch, or two with a
 * gelu, which takes ours as long. */
static bool is_for_units(const pc__cuda_gemm *g)
{
    enum { PACK = 8 };
    const bool gelu = g->activation == PC_ACTIVATION_GELU || g->activation == PC_ACTIVATION_GELU_TANH;
    const bool one = g->activation == PC_ACTIVATION_NONE || g->activation == PC_ACTIVATION_RELU || gelu;
    const bool rows = g->n % PACK == 0 && g->k % PACK == 0 && g->a_rs % PACK == 0 && (g->m == 1 || g->a_rs >= g->k);
    return one && rows && pc__is_half((pc_dtype)g->dtype) && ((uintptr_t)g->a | (uintptr_t)g->b) % 16 == 0 &&
           !pc__cuda_lt_missing();
}

static bool small_supports(const pc_stream *stream, const void *of)
{
    const problem *p = of;
    return p->small && (!is_for_units(&p->product) || pc__rows_takes_all(&pc__linear_rows, stream, small_supports));
}

static bool any(const pc_stream *stream, const void *of)
{
    (void)stream, (void)of;
    return true;
}

static size_t small_workspace(const void *of)
{
    return pc__cuda_linear_small_scratch(&((const problem *)of)->layer);
}

/* Of the kernel that does it where nothing comes that goes with it. */
static size_t head_workspace(const void *of)
{
    return pc__cuda_linear_few_suits(&((const problem *)of)->layer) ? 0 : small_workspace(of);
}

static pc_status head_run(pc_stream *stream, const pc_call *call, const void *of, void *workspace, bool *done)
{
    const pc__cuda_linear l = pc__layer_queued(stream, &((const problem *)of)->layer, workspace);
    (void)call;
    *done = pc__cuda_head_layer(stream, &l);
    return PC_OK;
}

static pc_status few_run(pc_stream *stream, const pc_call *call, const void *of, void *workspace, bool *done)
{
    const pc__cuda_linear l = pc__layer_queued(stream, &((const problem *)of)->layer, workspace);
    (void)call, (void)done;
    (void)pc__cuda_linear_few_forward(&l); /* whoever called asks whether it was launched */
    return PC_OK;
}

static pc_status small_run(pc_stream *stream, const pc_call *call, const void *of, void *workspace, bool *done)
{
    const pc__cuda_linear l = pc__layer_queued(stream, &((const problem *)of)->layer, workspace);
    (void)call, (void)done;
    (void)pc__cuda_linear_small_forward(&l);
    return PC_OK;
}

static pc_status product_run(pc_stream *stream, const pc_call *call, const void *of, void *workspace, bool *done)
{
    (void)workspace, (void)done;
    const pc__cuda_gemm *product = &((const problem *)of)->product;
    if (call->n_out > 1)
        return pc__matmul_gelu(stream, call, product, call->out[1]);
    return product->activation == PC_ACTIVATION_GELU || product->activation == PC_ACTIVATION_GELU_TANH
               ? pc__matmul_gelu_apart(stream, call, product, (pc_activation_kind)product->activation, call->out[0])
               : pc__matmul_run(stream, call, product);
}

static const pc__row rows[] = {
    {"head", "by head", head_supports, head_workspace, head_run},
    {"few", "by few", few_supports, NULL, few_run},
    {"small", "by small", small_supports, small_workspace, small_run},
    {"product", NULL, any, NULL, product_run},
};

pc__rows pc__linear_rows = {"linear", rows, PC__COUNT(rows), NULL, 0};

static bool by_product(const pc_stream *stream, const problem *p)
{
    const pc__row *row = pc__rows_pick(&pc__linear_rows, stream, p);
    return row && row->run == product_run;
}

PC__CUDA_KERNEL(linear)
{
    const pc_tensor *x = call->in[0], *w = call->in[1], *y = call->out[0];
    if (pc__count(y->ndim, y->shape) == 0)
        return PC_OK;
    problem p = {.product = product_of(call), .small = call->n_out == 1 && suits(x, w, y)};
    if (p.small) {
        p.layer = pc__layer_of(stream, x, y);
        p.layer.weight = pc__data(w);
        p.layer.ready_weight = pc__cuda_ready(stream, w);
        p.layer.activation = p.product.activation;
        p.layer.bias = p.product.bias;
        p.layer.y = pc__data(y);
    }
    if (((const pc__cuda_stream *)stream->implementation)->prepares)
        return by_product(stream, &p) ? product_run(stream, call, &p, NULL, &(bool){false}) : PC_OK;
    return pc__rows_run(&pc__linear_rows, stream, call, &p);
}
