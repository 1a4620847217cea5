/* Drawn networks of products with activations, poolings and copies behind them, call by call and as a graph, in which
 * products do those themselves: results and gradients agree, whoever else reads what is in between; on the CPU to the bit, but in 16
 * bits and behind a pooling.
 * PARACORD_CASES=20000 draws so many, PARACORD_SEED=N begins there. */
#include "channels_last.h"
#include "device.h"

#include <math.h>
#include <paracord/autograd.h>
#include <paracord/ops.h>
#include <paracord/random.h>
#include <stdio.h>

enum { BLOCKS = 3, LEAVES = 2 * BLOCKS + 4, SEEN = LEAVES + 2 * BLOCKS + 4 };

/* What is drawn of a convolution and of what follows it. */
typedef struct block {
    int out, kernel, stride, padding, window, activation;
    bool bias, activated, pool_first, ceil, kept, read_twice, detached;
} block;

typedef struct network {
    pc_dtype dtype;
    int blocks, channels, side, count;
    block of[BLOCKS];
    int hidden, activation; /* of the linear layers; 0: there are none */
    bool trained, input_learns, batched;
    pc_tensor *x, *leaf[LEAVES];
    int leaves;
} network;

typedef struct seen {
    pc_tensor *of[SEEN];
    int count;
} seen;

static struct {
    uint64_t seed, drawn;
} now;

static int draw(int n)
{
    return (int)(pc_uniform(now.seed, 9, now.drawn++) * n);
}

/* So small that sums over all dimensions but the first stay near one. */
static pc_tensor *numbers(pc_shape shape, pc_dtype dtype)
{
    int64_t n = 1;
    for (int i = 0; i < shape.ndim; i++)
        n *= shape.dim[i];
    const double most = shape.ndim > 1 ? sqrt(3. * (double)shape.dim[0] / (double)n) : 1;
    float *values = malloc((size_t)n * sizeof *values);
    for (int64_t i = 0; i < n; i++)
        values[i] = (float)(most * (2 * pc_uniform(now.seed, 11, now.drawn++) - 1));
    pc_tensor *t = pc_cast(pc_from_data(values, shape, PC_F32, test_device()), dtype);
    free(values);
    assert_not_null_ok(t);
    return t;
}

static void add_leaf(network *n, pc_shape shape)
{
    n->leaf[n->leaves] = numbers(shape, n->dtype);
    assert_ok(pc_require_grad(n->leaf[n->leaves++], n->trained));
}

static int size_behind(int side, int window, int stride, int padding)
{
    return side + 2 * padding < window ? 0 : (side + 2 * padding - window) / stride + 1;
}

/* In 16 bits products do not round what they pool, or take the sigmoid of, before: of numbers that rounding makes equal a
 * pooling takes the first, they the largest, and gradients that cancel differ by more than any tolerance. */
static bool is_rounded(const network *n)
{
    return n->trained && (n->dtype == PC_F16 || n->dtype == PC_BF16);
}

/* False: the picture is used up. */
static bool draw_block(network *n, block *b, int *channels, int *side)
{
    *b = (block){.out = draw(3) ? 1 + draw(9) : 12 + draw(8),
                 .kernel = 1 + draw(5),
                 .stride = 1 + (draw(4) == 0),
                 .window = draw(2) && !is_rounded(n) ? 2 + draw(2) : 1,
                 .activation = draw(is_rounded(n) ? 2 : 4),
                 .bias = draw(4),
                 .activated = draw(4) == 0,
                 .pool_first = draw(6) == 0,
                 .ceil = draw(6) == 0,
                 .kept = draw(8) == 0,
                 .read_twice = draw(8) == 0,
                 .detached = draw(12) == 0};
    b->padding = draw(b->kernel);
    const int after = size_behind(*side, b->kernel, b->stride, b->padding);
    if (after < b->window)
        return false;
    add_leaf(n, PC_SHAPE(b->out, *channels, b->kernel, b->kernel));
    add_leaf(n, PC_SHAPE(b->out));
    *channels = b->out;
    *side = (after + (b->ceil ? b->window - 1 : 0)) / b->window;
    return true;
}

static network draw_network(void)
{
    static const pc_dtype dtypes[] = {PC_F32, PC_F32, PC_F64, PC_BF16, PC_F16};
    network n = {.dtype = dtypes[draw(5)], .channels = 1 + draw(4), .side = 5 + draw(12), .count = 1 + draw(3)};
    n.trained = draw(4);
    n.input_learns = n.trained && draw(3) == 0;
    n.batched = draw(3) == 0;
    int channels = n.channels, side = n.side;
    while (n.blocks < BLOCKS && draw_block(&n, &n.of[n.blocks], &channels, &side))
        n.blocks++;
    n.x = numbers(PC_SHAPE(n.count, n.channels, n.side, n.side), n.dtype);
    if (draw(2))
        n.x = as_channels_last(n.x);
    assert_ok(pc_require_grad(n.x, n.input_learns));
    if (draw(2)) {
        n.hidden = 1 + draw(70);
        n.activation = draw(is_rounded(&n) ? 2 : 4);
        add_leaf(&n, PC_SHAPE(n.hidden, n.batched ? side : channels * side * side));
        add_leaf(&n, PC_SHAPE(n.hidden));
    }
    return n;
}

static void see(seen *s, pc_tensor *t)
{
    s->of[s->count++] = pc_tensor_retain(t);
}

static pc_tensor *activated(pc_tensor *t, int activation)
{
    return activation == 1 ? pc_relu(t) : activation == 2 ? pc_tanh(t) : activation == 3 ? pc_sigmoid(t) : t;
}

static pc_tensor *pooled(pc_tensor *t, const block *b)
{
    const pc_fn_pool2d_options options = {.kernel = {b->window, b->window}, .ceil_mode = b->ceil};
    return b->window > 1 ? pc_fn_max_pool2d(t, options) : t;
}

/* Its steps, between which somebody else may look. */
static pc_tensor *run_block(const block *b, pc_tensor *h, pc_tensor *const *leaf, seen *s, pc_tensor **loss)
{
    h = pc_fn_conv2d(h, leaf[0], b->bias ? leaf[1] : NULL,
                     (pc_fn_conv2d_options){.stride = {b->stride, b->stride},
                                            .padding = {b->padding, b->padding},
                                            .activation = b->activated ? PC_ACTIVATION_RELU : PC_ACTIVATION_NONE});
    if (b->read_twice)
        *loss = pc_add(*loss, pc_sum(pc_cast(h, PC_F64)));
    h = b->pool_first ? activated(pooled(h, b), b->activation) : activated(h, b->activation);
    if (b->kept)
        see(s, h);
    if (b->detached)
        *loss = pc_add(*loss, pc_sum(pc_cast(pc_detach(h), PC_F64)));
    return b->pool_first ? h : pooled(h, b);
}

static bool has_pooling(const network *n)
{
    bool pooled = false;
    for (int i = 0; i < n->blocks; i++)
        pooled |= n->of[i].window > 1;
    return pooled;
}

static void run(const network *n, seen *s)
{
    PC_SCOPE {
        pc_tensor *h = n->x, *loss = pc_zeros(PC_SHAPE(), PC_F64, test_device());
        for (int i = 0; i < n->blocks; i++)
            h = run_block(&n->of[i], h, &n->leaf[2 * i], s, &loss);
        if (n->hidden) {
            h = n->batched ? h : pc_flatten_from(h, 1);
            h = activated(pc_fn_linear(h, n->leaf[2 * n->blocks], n->leaf[2 * n->blocks + 1], PC_ACTIVATION_NONE),
                          n->activation);
        }
        assert_not_null_ok(h);
        see(s, h);
        loss = pc_add(loss, pc_sum(pc_cast(pc_mul(h, h), PC_F64)));
        assert_not_null_ok(loss);
        see(s, loss);
        if (n->trained && pc_requires_grad(loss)) {
            assert_ok(pc_backward(loss));
            for (int i = 0; i <= n->leaves; i++) {
                pc_tensor *leaf = i < n->leaves ? n->leaf[i] : n->x;
                if (pc_grad(leaf))
                    see(s, pc_grad(leaf));
                pc_zero_grad(leaf);
            }
        }
    }
}

static bool same_bits(pc_tensor *a, pc_tensor *b)
{
    const size_t bytes = (size_t)pc_tensor_count(a) * pc_dtype_size(pc_tensor_dtype(a));
    char *values = malloc(2 * bytes + 1);
    assert_ok(pc_read(a, values, bytes));
    assert_ok(pc_read(b, values + bytes, bytes));
    const bool same = memcmp(values, values + bytes, bytes) == 0;
    free(values);
    return same;
}

/* What the CPU computes in float32 and more keeps its bits, but pooled convolutions add up otherwise. Else sums of few numbers below one: rounding is of the order of the
 * largest. */
static void agree(const network *n, const seen *want, const seen *got, int i)
{
    const bool half = n->dtype == PC_BF16 || n->dtype == PC_F16;
    if (!half && !has_pooling(n) && test_device().type != PC_CUDA && !same_bits(want->of[i], got->of[i]))
        fail_msg("PARACORD_SEED=%llu: result %d, %s, has other bits", (unsigned long long)now.seed, i,
                 pc_dtype_name(n->dtype));
    const double tolerance = n->dtype == PC_F64 ? 1e-12 : n->dtype == PC_F32 ? 2e-5 : n->dtype == PC_F16 ? 1e-2 : 6e-2;
    PC_SCOPE {
        pc_tensor *a = pc_cast(want->of[i], PC_F64), *b = pc_cast(got->of[i], PC_F64);
        const double most = pc_item(pc_sqrt(pc_mean(pc_mul(a, a)))),
                     apart = pc_item(pc_sqrt(pc_mean(pc_mul(pc_sub(a, b), pc_sub(a, b)))));
        if (!(apart <= tolerance * (most + 1e-3)))
            fail_msg("PARACORD_SEED=%llu: result %d, %s, is %g apart, of %g", (unsigned long long)now.seed, i,
                     pc_dtype_name(n->dtype), apart, most);
    }
}

static void drop(seen *s)
{
    for (int i = 0; i < s->count; i++)
        pc_tensor_free(s->of[i]);
    *s = (seen){.count = 0};
}

/* How many calls products took over. */
static int taken_over(const pc_graph *graph)
{
    char *text = pc_graph_text(graph);
    assert_not_null_ok(text);
    int n = 0;
    const char *at = strstr(text, " into epilogues");
    while (at && at > text && at[-1] >= '0' && at[-1] <= '9')
        at--;
    if (at)
        (void)sscanf(at, "%d", &n);
    pc_text_free(text);
    return n;
}

static int one_case(uint64_t seed)
{
    now.seed = seed;
    now.drawn = 0;
    int n = 0;
    PC_SCOPE {
        const network drawn = draw_network();
        seen plain = {.count = 0}, graphed = plain;
        run(&drawn, &plain);
        pc_stream *stream = pc_stream_current(test_device());
        assert_ok(pc_graph_begin(stream));
        run(&drawn, &graphed);
        pc_graph *graph = pc_graph_end(stream);
        assert_not_null_ok(graph);
        n = taken_over(graph);
        for (int i = 0; i < 2; i++)
            assert_ok(pc_graph_launch(graph, NULL));
        assert_int_equal(plain.count, graphed.count);
        for (int i = 0; i < plain.count; i++)
            agree(&drawn, &plain, &graphed, i);
        drop(&plain);
        drop(&graphed);
        pc_graph_free(graph);
    }
    return n;
}

static int64_t number(const char *variable, int64_t otherwise)
{
    const char *text = getenv(variable);
    return text ? strtoll(text, NULL, 10) : otherwise;
}

static void products_do_what_follows_them(void **state)
{
    (void)state;
    const int64_t from = number("PARACORD_SEED", 1), cases = number("PARACORD_CASES", emulated() ? 60 : 300);
    int n = 0;
    for (int64_t i = 0; i < cases; i++)
        n += one_case((uint64_t)(from + i));
    if (!getenv("PARACORD_PLAN") && cases >= 60)
        assert_true(n > cases);
    assert_no_leak();
}

/* Poolings, too, where planes would be taken without one: that call is the faster one, and bits behind poolings are not promised. */
static void few_outputs_pool(void **state)
{
    (void)state;
    PC_SCOPE {
        network n = {.dtype = PC_F32,
                     .blocks = 1,
                     .trained = true,
                     .of = {{.out = 8, .kernel = 3, .stride = 1, .padding = 1, .window = 4, .activation = 1}}};
        seen s = {.count = 0};
        n.x = as_channels_last(numbers(PC_SHAPE(4, 3, 16, 16), PC_F32));
        add_leaf(&n, PC_SHAPE(8, 3, 3, 3));
        add_leaf(&n, PC_SHAPE(8));
        pc_stream *stream = pc_stream_current(test_device());
        assert_ok(pc_graph_begin(stream));
        run(&n, &s);
        pc_graph *graph = pc_graph_end(stream);
        assert_not_null_ok(graph);
        if (test_device().type != PC_CUDA && !getenv("PARACORD_PLAN"))
            assert_true(taken_over(graph) >= 4); /* with the gradients of both */
        drop(&s);
        pc_graph_free(graph);
    }
    assert_no_leak();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(products_do_what_follows_them),
                                       cmocka_unit_test(few_outputs_pool)};
    return cmocka_run_group_tests_name("plan.epilogues", tests, NULL, NULL);
}
