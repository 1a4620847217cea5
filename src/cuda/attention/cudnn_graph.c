/* cudnn_graph.c: attention written as cuDNN's operations. Its engines recognise the pattern: product, scale, mask,
 * softmax, product, and back the same with the softmax made again from the norms. Between them numbers are float32; what
 * a product reads is rounded to the operands' type. */
#include "cuda/attention/cudnn.h"

#if PC__HAVE_CUDNN

#include "cuda/runtime/view.h"

typedef cudnnBackendDescriptor_t descriptor;

typedef struct graph {
    pc__cudnn_builder *b;
    const pc__attention_shape *s;
    int64_t next; /* name of the next tensor between operations */
} graph;

static cudnnDataType_t type_of(const graph *g)
{
    return g->s->dtype == PC__CUDA_F16 ? CUDNN_DATA_HALF : CUDNN_DATA_BFLOAT16;
}

/* --- tensors --- */

/* An operand with rows and columns; turned: with its columns as rows. */
static descriptor operand(const graph *g, int id, int64_t rows, int64_t columns, bool turned)
{
    const int64_t *strides = g->s->strides[id];
    return pc__cudnn_tensor_make(
        g->b,
        &(pc__cudnn_tensor){.id = id,
                            .type = type_of(g),
                            .shape = {g->s->b, g->s->h, turned ? columns : rows, turned ? rows : columns},
                            .strides = {strides[0], strides[1], turned ? 1 : strides[2], turned ? strides[2] : 1}});
}

static descriptor between(graph *g, cudnnDataType_t type, int64_t rows, int64_t columns)
{
    return pc__cudnn_tensor_make(g->b,
                                 &(pc__cudnn_tensor){.id = g->next++,
                                                     .type = type,
                                                     .shape = {g->s->b, g->s->h, rows, columns},
                                                     .strides = {g->s->h * rows * columns, rows * columns, columns, 1},
                                                     .between = true});
}

static descriptor scores(graph *g)
{
    return between(g, CUDNN_DATA_FLOAT, g->s->l, g->s->s);
}

static descriptor row_numbers(graph *g)
{
    return between(g, CUDNN_DATA_FLOAT, g->s->l, 1);
}

/* NORMS or MEANS. */
static descriptor kept_rows(const graph *g, int id)
{
    return pc__cudnn_tensor_make(g->b, &(pc__cudnn_tensor){.id = id,
                                                           .type = CUDNN_DATA_FLOAT,
                                                           .shape = {g->s->b, g->s->h, g->s->l, 1},
                                                           .strides = {g->s->h * g->s->l, g->s->l, 1, 1}});
}

static descriptor number(const graph *g, int id)
{
    return pc__cudnn_tensor_make(
        g->b,
        &(pc__cudnn_tensor){
            .id = id, .type = CUDNN_DATA_FLOAT, .shape = {1, 1, 1, 1}, .strides = {1, 1, 1, 1}, .by_value = true});
}

/* --- operations --- */

static descriptor pointwise(const graph *g, cudnnPointwiseMode_t mode, descriptor x, descriptor with, descriptor y)
{
    pc__cudnn_add_pointwise(
        g->b, &(pc__cudnn_pointwise){.mode = mode, .type = CUDNN_DATA_FLOAT, .x = x, .with = with, .y = y});
    return y;
}

static descriptor along(graph *g, int64_t axis, descriptor x)
{
    const descriptor y = between(g, CUDNN_DATA_INT32, g->s->l, g->s->s);
    pc__cudnn_add_pointwise(
        g->b, &(pc__cudnn_pointwise){
                  .mode = CUDNN_POINTWISE_GEN_INDEX, .type = CUDNN_DATA_FLOAT, .axis = axis, .x = x, .y = y});
    return y;
}

/* Row i attends to columns up to i. */
static descriptor causal(graph *g, descriptor x)
{
    const descriptor row = along(g, 2, x), column = along(g, 3, x);
    const descriptor below = between(g, CUDNN_DATA_BOOLEAN, g->s->l, g->s->s), y = scores(g);
    pc__cudnn_add_pointwise(
        g->b, &(pc__cudnn_pointwise){
                  .mode = CUDNN_POINTWISE_CMP_GE, .type = CUDNN_DATA_BOOLEAN, .x = row, .with = column, .y = below});
    pc__cudnn_add_pointwise(g->b, &(pc__cudnn_pointwise){.mode = CUDNN_POINTWISE_BINARY_SELECT,
                                                         .type = CUDNN_DATA_FLOAT,
                                                         .x = x,
                                                         .with = number(g, PC__ATTENTION_MASKED),
                                                         .choose = below,
                                                         .y = y});
    return y;
}

/* scale q k' */
static descriptor scaled_products(graph *g, descriptor q, descriptor k)
{
    const descriptor products = scores(g);
    pc__cudnn_add_matmul(g->b, q, k, products);
    return pointwise(g, CUDNN_POINTWISE_MUL, products, number(g, PC__ATTENTION_SCALE), scores(g));
}

/* x' for a product. */
static descriptor turned(graph *g, descriptor x)
{
    const int64_t l = g->s->l, s = g->s->s;
    const descriptor y = pc__cudnn_tensor_make(g->b, &(pc__cudnn_tensor){.id = g->next++,
                                                                         .type = type_of(g),
                                                                         .shape = {g->s->b, g->s->h, s, l},
                                                                         .strides = {g->s->h * l * s, l * s, 1, s},
                                                                         .between = true});
    pc__cudnn_add_reshape(g->b, x, y);
    return y;
}

/* --- passes --- */

static void forward(graph *g)
{
    const pc__attention_shape *s = g->s;
    descriptor score = scaled_products(g, operand(g, PC__ATTENTION_Q, s->l, s->e, false),
                                       operand(g, PC__ATTENTION_K, s->s, s->e, true));
    if (s->causal)
        score = causal(g, score);
    const descriptor most = row_numbers(g), sum = row_numbers(g);
    pc__cudnn_add_reduction(g->b, CUDNN_REDUCE_TENSOR_MAX, score, most);
    const descriptor less = pointwise(g, CUDNN_POINTWISE_SUB, score, most, scores(g));
    const descriptor raised = pointwise(g, CUDNN_POINTWISE_EXP, less, NULL, scores(g));
    pc__cudnn_add_reduction(g->b, CUDNN_REDUCE_TENSOR_ADD, raised, sum);
    const descriptor logarithm = pointwise(g, CUDNN_POINTWISE_LOG, sum, NULL, row_numbers(g));
    pointwise(g, CUDNN_POINTWISE_ADD, most, logarithm, kept_rows(g, PC__ATTENTION_NORMS));
    const descriptor weights = pointwise(g, CUDNN_POINTWISE_DIV, raised, sum, between(g, type_of(g), s->l, s->s));
    pc__cudnn_add_matmul(g->b, weights, operand(g, PC__ATTENTION_V, s->s, s->ev, false),
                         operand(g, PC__ATTENTION_Y, s->l, s->ev, false));
}

/* The sum of g y of each row, into memory, which the engines want with a factor behind it. */
static descriptor means(graph *g, descriptor gradient)
{
    const pc__attention_shape *s = g->s;
    const descriptor y = operand(g, PC__ATTENTION_Y, s->l, s->ev, false), sum = row_numbers(g);
    const descriptor products =
        pointwise(g, CUDNN_POINTWISE_MUL, gradient, y, between(g, CUDNN_DATA_FLOAT, s->l, s->ev));
    pc__cudnn_add_reduction(g->b, CUDNN_REDUCE_TENSOR_ADD, products, sum);
    return pointwise(g, CUDNN_POINTWISE_MUL, sum, number(g, PC__ATTENTION_ONE), kept_rows(g, PC__ATTENTION_MEANS));
}

static void backward(graph *g)
{
    const pc__attention_shape *s = g->s;
    const descriptor q = operand(g, PC__ATTENTION_Q, s->l, s->e, false);
    const descriptor k = operand(g, PC__ATTENTION_K, s->s, s->e, true),
                     v = operand(g, PC__ATTENTION_V, s->s, s->ev, true);
    const descriptor gradient = operand(g, PC__ATTENTION_G, s->l, s->ev, false), mean = means(g, gradient);
    descriptor score = scaled_products(g, q, k);
    score = pointwise(g, CUDNN_POINTWISE_SUB, score, kept_rows(g, PC__ATTENTION_NORMS), scores(g));
    if (s->causal)
        score = causal(g, score);
    const descriptor weights = pointwise(g, CUDNN_POINTWISE_EXP, score, NULL, scores(g));
    pc__cudnn_add_matmul(g->b, turned(g, weights), gradient, operand(g, PC__ATTENTION_DV, s->s, s->ev, false));

    const descriptor products = scores(g);
    pc__cudnn_add_matmul(g->b, gradient, v, products);
    descriptor slopes = pointwise(g, CUDNN_POINTWISE_SUB, products, mean, scores(g));
    slopes = pointwise(g, CUDNN_POINTWISE_MUL, slopes, weights, scores(g));
    slopes = pointwise(g, CUDNN_POINTWISE_MUL, slopes, number(g, PC__ATTENTION_SCALE), scores(g));
    pc__cudnn_add_matmul(g->b, turned(g, slopes), q, operand(g, PC__ATTENTION_DK, s->s, s->e, false));

    const int64_t *strides = s->strides[PC__ATTENTION_K];
    const descriptor rows_of_k =
        pc__cudnn_tensor_make(g->b, &(pc__cudnn_tensor){.id = g->next++,
                                                        .type = type_of(g),
                                                        .shape = {s->b, s->h, s->s, s->e},
                                                        .strides = {strides[0], strides[1], strides[2], 1},
                                                        .between = true});
    pc__cudnn_add_reshape(g->b, k, rows_of_k);
    pc__cudnn_add_matmul(g->b, slopes, rows_of_k, operand(g, PC__ATTENTION_DQ, s->l, s->e, false));
}

cudnnBackendDescriptor_t pc__attention_graph(pc__cudnn_builder *b, const pc__attention_shape *shape)
{
    graph g = {.b = b, .s = shape, .next = PC__ATTENTION_NAMES};
    shape->backward ? backward(&g) : forward(&g);
    return pc__cudnn_graph_of(b);
}

int64_t pc__attention_slopes(const pc__attention_shape *s)
{
    return s->b * s->h * ((s->l + 63) / 64 * 64) * ((s->s + 63) / 64 * 64) * 2;
}

#endif
