/* general: any of a list of ops on any shape, dtype and dimensions. bench/peers/general.py draws them and asks for each
 * beside PyTorch; usage: general [threads]. A line "op dtype shape numbers" on standard input, such as "softmax bfloat16 64x1000 1", is answered by
 * the microseconds of a call: the least of several goes, since machines are shared.
 */
#include <math.h>
#include <paracord.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { GOES = 15, MOST = 8 };

/* What an op works on: x and y of the shape, g the gradient of a loss that `leaf` has led to, labels of its rows. */
static pc_tensor *x, *y, *leaf, *labels;
static int64_t number[MOST];
static pc_shape dims;

static pc_fn_pool2d_options window(void)
{
    const int kernel = (int)number[0], stride = (int)number[1], padding = (int)number[2];
    return (pc_fn_pool2d_options){
        .kernel = {kernel, kernel}, .stride = {stride, stride}, .padding = {padding, padding}};
}

#define UNARY(name)                                                                                                    \
    static pc_tensor *of_##name(void)                                                                                  \
    {                                                                                                                  \
        return pc_##name(x);                                                                                           \
    }
#define OP(name, value)                                                                                                \
    static pc_tensor *of_##name(void)                                                                                  \
    {                                                                                                                  \
        return value;                                                                                                  \
    }
/* Forward and backward, the gradient all ones. */
#define WITH_GRADIENT(name, value)                                                                                     \
    static pc_tensor *of_##name(void)                                                                                  \
    {                                                                                                                  \
        pc_tensor *result = value;                                                                                     \
        if (pc_backward(result && pc_tensor_ndim(result) ? pc_sum(result) : result) == PC_OK)                          \
            pc_zero_grad(leaf);                                                                                        \
        return result;                                                                                                 \
    }
UNARY(exp)
OP(log, pc_log(y))
UNARY(tanh)
UNARY(sigmoid)
UNARY(erf)
UNARY(gelu)
UNARY(gelu_tanh)
UNARY(silu)
UNARY(relu)
OP(softmax, pc_softmax(x, (int)number[0]))
OP(log_softmax, pc_log_softmax(x, (int)number[0]))
WITH_GRADIENT(softmax_grad, pc_softmax(leaf, (int)number[0]))
OP(add, pc_add(x, y))
OP(mul_scalar, pc_mul_scalar(x, 2))
OP(add_row, pc_add(x, pc_slice(y, 0, 0, 1, 1)))
OP(add_column, pc_add(x, pc_slice(y, -1, 0, 1, 1)))
OP(add_permuted, pc_add(y, pc_transpose(x, (int)number[0], (int)number[1])))
OP(exp_permuted, pc_exp(pc_permute(x, dims)))
OP(contiguous, pc_contiguous(pc_permute(x, dims)))
OP(sum, pc_sum_dims(x, dims, false))
OP(mean, pc_mean_dims(x, dims, false))
OP(max, dims.ndim ? pc_max_dim(x, (int)number[0], false, NULL) : pc_max(x))
OP(argmax, pc_argmax(x, (int)number[0], false))
OP(sum_permuted, pc_sum_dims(pc_transpose(x, 0, -1), dims, false))
OP(matmul, pc_matmul(x, y))
OP(cross_entropy, pc_cross_entropy(x, labels))
OP(bce, pc_bce_with_logits(x, y))
OP(mse, pc_mse(x, y))
WITH_GRADIENT(cross_entropy_grad, pc_cross_entropy(leaf, labels))
WITH_GRADIENT(bce_grad, pc_bce_with_logits(leaf, y))
WITH_GRADIENT(mse_grad, pc_mse(leaf, y))
OP(max_pool, pc_fn_max_pool2d(x, window()))
OP(avg_pool, pc_fn_avg_pool2d(x, window()))
WITH_GRADIENT(max_pool_grad, pc_fn_max_pool2d(leaf, window()))
WITH_GRADIENT(avg_pool_grad, pc_fn_avg_pool2d(leaf, window()))

static const struct {
    const char *name;
    pc_tensor *(*call)(void);
} ops[] = {
#define ROW(name)                                                                                                      \
    {                                                                                                                  \
#name, of_##name                                                                                               \
    }
    ROW(exp),
    ROW(log),
    ROW(tanh),
    ROW(sigmoid),
    ROW(erf),
    ROW(gelu),
    ROW(gelu_tanh),
    ROW(silu),
    ROW(relu),
    ROW(softmax),
    ROW(log_softmax),
    ROW(softmax_grad),
    ROW(add),
    ROW(mul_scalar),
    ROW(add_row),
    ROW(add_column),
    ROW(add_permuted),
    ROW(exp_permuted),
    ROW(contiguous),
    ROW(sum),
    ROW(mean),
    ROW(max),
    ROW(argmax),
    ROW(sum_permuted),
    ROW(matmul),
    ROW(cross_entropy),
    ROW(bce),
    ROW(mse),
    ROW(cross_entropy_grad),
    ROW(bce_grad),
    ROW(mse_grad),
    ROW(max_pool),
    ROW(avg_pool),
    ROW(max_pool_grad),
    ROW(avg_pool_grad)};

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double calls(pc_tensor *(*call)(void), int count)
{
    const double start = now();
    for (int i = 0; i < count; i++)
        PC_SCOPE {
            (void)call();
        }
    return (now() - start) / count;
}

/* A go is 2 ms at least. */
static double seconds(pc_tensor *(*call)(void))
{
    double least = INFINITY;
    (void)calls(call, 1);
    const double first = calls(call, 1);
    const int count = first < 2e-3 ? (int)(2e-3 / first) + 1 : 1;
    for (int i = 0; i < GOES; i++)
        least = fmin(least, calls(call, count));
    return least;
}

static int numbers(const char *text, const char *between, int64_t *values)
{
    int n = 0;
    char copy[128], *rest = NULL;
    snprintf(copy, sizeof copy, "%s", text);
    for (char *word = strtok_r(copy, between, &rest); word && n < MOST; word = strtok_r(NULL, between, &rest))
        values[n++] = atoll(word);
    return n;
}

/* x and y: for a product the second shape's rows are the first one's columns. */
static void prepare(const char *op, pc_dtype dtype, pc_shape shape)
{
    pc_shape second = shape;
    if (strcmp(op, "matmul") == 0) {
        second.dim[shape.ndim - 2] = shape.dim[shape.ndim - 1];
        second.dim[shape.ndim - 1] = number[0];
    } else if (strcmp(op, "add_permuted") == 0) {
        second.dim[number[0]] = shape.dim[number[1]];
        second.dim[number[1]] = shape.dim[number[0]];
    }
    const pc_device cpu = pc_device_pick("cpu");
    x = pc_cast(pc_randn(shape, PC_F32, cpu), dtype);
    y = pc_cast(pc_rand(second, PC_F32, cpu), dtype);
    leaf = pc_clone(x);
    if (pc_tensor_dtype(leaf) >= PC_F16)
        (void)!pc_require_grad(leaf, true);
    if (shape.ndim == 2 && strncmp(op, "cross", 5) == 0)
        labels = pc_argmax(pc_randn(shape, PC_F32, cpu), 1, false);
}

static pc_dtype dtype_of(const char *name)
{
    for (int d = 0; d < PC_DTYPE_COUNT; d++)
        if (strcmp(name, pc_dtype_name((pc_dtype)d)) == 0)
            return (pc_dtype)d;
    return PC_F32;
}

int main(int argc, char **argv)
{
    pc_threads_set(argc > 1 ? atoi(argv[1]) : 0);
    char line[256], op[32], dtype[16], shape[64], rest[64];
    while (fgets(line, sizeof line, stdin)) {
        int64_t sizes[MOST];
        rest[0] = 0;
        if (sscanf(line, "%31s %15s %63s %63s", op, dtype, shape, rest) < 3)
            continue;
        const int n = numbers(rest, ",", number);
        dims = pc_shape_of(n, number);
        double time = 0;
        PC_SCOPE {
            prepare(op, dtype_of(dtype), pc_shape_of(numbers(shape, "x", sizes), sizes));
            for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
                if (strcmp(ops[i].name, op) == 0)
                    time = seconds(ops[i].call);
        }
        if (pc_failed())
            return pc_report(stderr);
        printf("%.3f\n", 1e6 * time);
        fflush(stdout);
    }
    return 0;
}
