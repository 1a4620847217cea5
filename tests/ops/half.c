/* 16-bit numbers against PyTorch's: golden/half.txt, made by golden/half.py. */
#include "ops/golden.h"

#include <paracord/amp.h>

enum { VALUES = 600, INPUTS = 3 };

typedef struct bits {
    pc_shape shape;
    int count;
    uint32_t of[VALUES];
} bits;

typedef struct lines {
    FILE *file;
    char line[16384], *rest;
} lines;

/* The next line that begins with `kind`; false at the end. */
static bool next_line(lines *l, const char *kind)
{
    if (!l->file)
        l->file = fopen(PC_TEST_GOLDEN "/half.txt", "r");
    assert_non_null(l->file);
    while (fgets(l->line, sizeof l->line, l->file)) {
        l->line[strcspn(l->line, "\n")] = 0;
        if (strcmp(strtok_r(l->line, " ", &l->rest), kind) == 0)
            return true;
    }
    fclose(l->file);
    l->file = NULL;
    return false;
}

static char *word(lines *l)
{
    return strtok_r(NULL, " ", &l->rest);
}

static void parse(bits *b, char *text)
{
    char *numbers = strchr(text, ':');
    assert_non_null(numbers);
    *numbers++ = 0;
    b->shape = golden_numbers(text);
    for (b->count = 0; *numbers; numbers += *numbers == ',') {
        assert_true(b->count < VALUES);
        b->of[b->count++] = (uint32_t)strtoul(numbers, &numbers, 16);
    }
}

static double value_of(uint32_t b, pc_dtype dtype)
{
    float f;
    memcpy(&f, &b, sizeof f);
    return dtype == PC_F32   ? (double)f
           : dtype == PC_F16 ? (double)pc_f16_to_float((pc_f16){(uint16_t)b})
                             : (double)pc_bf16_to_float((pc_bf16){(uint16_t)b});
}

static pc_tensor *tensor_of(const bits *b, pc_dtype dtype)
{
    uint16_t narrow[VALUES];
    for (int i = 0; i < b->count; i++)
        narrow[i] = (uint16_t)b->of[i];
    return pc_from_data(dtype == PC_F32 ? (const void *)b->of : narrow, b->shape, dtype, test_device());
}

static pc_tensor *run(const char *op, pc_tensor **in)
{
    pc_tensor *x = in[0], *y = in[1], *z = in[2];
    const struct {
        const char *name;
        pc_tensor *(*fn)(pc_tensor *);
    } unary[] = {{"exp", pc_exp},   {"log", pc_log}, {"sqrt", pc_sqrt}, {"tanh", pc_tanh}, {"sigmoid", pc_sigmoid},
                 {"relu", pc_relu}, {"neg", pc_neg}, {"sum", pc_sum},   {"mean", pc_mean}, {"max", pc_max}};
    for (size_t i = 0; i < sizeof unary / sizeof *unary; i++)
        if (strcmp(op, unary[i].name) == 0)
            return unary[i].fn(x);
    const struct {
        const char *name;
        pc_tensor *(*fn)(pc_tensor *, pc_tensor *);
    } binary[] = {{"add", pc_add}, {"sub", pc_sub},       {"mul", pc_mul},
                  {"div", pc_div}, {"matmul", pc_matmul}, {"mse", pc_mse}};
    for (size_t i = 0; i < sizeof binary / sizeof *binary; i++)
        if (strcmp(op, binary[i].name) == 0)
            return binary[i].fn(x, y);
    const struct {
        const char *name;
        pc_tensor *(*fn)(pc_tensor *, double);
        double number;
    } scalar[] = {
        {"add_scalar", pc_add_scalar, 0.1}, {"mul_scalar", pc_mul_scalar, 0.3}, {"div_scalar", pc_div_scalar, 3}};
    for (size_t i = 0; i < sizeof scalar / sizeof *scalar; i++)
        if (strcmp(op, scalar[i].name) == 0)
            return scalar[i].fn(x, scalar[i].number);
    if (strcmp(op, "to_f32") == 0)
        return pc_cast(x, PC_F32);
    if (strncmp(op, "from_f32_", 9) == 0)
        return pc_cast(x, golden_dtype(op + 9));
    if (strcmp(op, "sum_rows") == 0)
        return pc_sum_dims(x, PC_SHAPE(1), false);
    if (strcmp(op, "softmax") == 0)
        return pc_softmax(x, 1);
    if (strcmp(op, "log_softmax") == 0)
        return pc_log_softmax(x, 1);
    if (strcmp(op, "linear") == 0)
        return pc_fn_linear(x, y, z, PC_ACTIVATION_NONE);
    if (strcmp(op, "conv2d") == 0)
        return pc_fn_conv2d(x, y, z, (pc_fn_conv2d_options){.pool = 0});
    if (strcmp(op, "max_pool2d") == 0)
        return pc_fn_max_pool2d(x, (pc_fn_pool2d_options){.kernel = {2, 2}});
    if (strcmp(op, "avg_pool2d") == 0)
        return pc_fn_avg_pool2d(x, (pc_fn_pool2d_options){.kernel = {2, 2}});
    fail_msg("the golden file has no op \"%s\"", op);
    return NULL;
}

/* One place at the end of `want`. PyTorch rounds the logarithm of log_softmax's sum to 16 bits before it is taken off.
 */
static double room(const char *op, pc_dtype dtype, double want)
{
    double step = dtype == PC_F16 ? 0x1p-10 : dtype == PC_BF16 ? 0x1p-7 : 0;
    double more = strcmp(op, "log_softmax") == 0 ? 2 * step : dtype == PC_F16 ? 0x1p-24 : 0;
    return step * fabs(want) * 1.0001 + more;
}

/* Where the functions themselves differ in a float's last places, the neighbour of PyTorch's rounding is right too. */
static void ops_as_pytorch(void **state)
{
    (void)state;
    static lines l;
    static bits in[INPUTS], want;
    int cases = 0;
    while (next_line(&l, "op"))
        PC_SCOPE {
            char op[32];
            pc_tensor *given[INPUTS] = {NULL};
            double got[VALUES];
            snprintf(op, sizeof op, "%s", word(&l));
            pc_dtype from = golden_dtype(word(&l)), to = golden_dtype(word(&l));
            int n = 0;
            for (; strcmp(word(&l), "in") == 0; n++) {
                assert_true(n < INPUTS);
                parse(&in[n], word(&l));
                given[n] = tensor_of(&in[n], from);
            }
            parse(&want, word(&l));
            pc_tensor *out = run(op, given);
            assert_not_null_ok(out);
            assert_int_equal(pc_tensor_dtype(out), to);
            assert_int_equal(pc_tensor_count(out), want.count);
            golden_read(out, got);
            for (int i = 0; i < want.count; i++) {
                double w = value_of(want.of[i], to);
                if (isnan(w) ? !isnan(got[i]) : isinf(w) ? got[i] != w : !(fabs(got[i] - w) <= room(op, to, w)))
                    fail_msg("%s of %s: element %d is %.9g, want %.9g", op, pc_dtype_name(from), i, got[i], w);
            }
            cases++;
        }
    assert_true(cases > 50);
    assert_no_leak();
}

static void promotion_as_pytorch(void **state)
{
    (void)state;
    static lines l;
    int pairs = 0;
    for (; next_line(&l, "promote"); pairs++)
        PC_SCOPE {
            pc_dtype a = golden_dtype(word(&l)), b = golden_dtype(word(&l)), want = golden_dtype(word(&l));
            pc_tensor *x = pc_ones(PC_SHAPE(2), a, test_device()), *y = pc_ones(PC_SHAPE(2), b, test_device());
            assert_int_equal(pc_tensor_dtype(pc_add(x, y)), want);
            assert_int_equal(pc_tensor_dtype(pc_cat((pc_tensor *[]){x, y}, 2, 0)), want);
        }
    assert_int_equal(pairs, PC_DTYPE_COUNT * PC_DTYPE_COUNT);
    assert_no_leak();
}

static pc_tensor *cast_op(const char *name)
{
    pc_tensor *f = pc_ones(PC_SHAPE(2, 2), PC_F32, test_device()), *h = pc_cast(f, PC_BF16);
    if (strcmp(name, "matmul") == 0)
        return pc_matmul(f, f);
    if (strcmp(name, "linear") == 0)
        return pc_fn_linear(f, f, NULL, PC_ACTIVATION_NONE);
    if (strcmp(name, "conv2d") == 0)
        return pc_fn_conv2d(pc_ones(PC_SHAPE(1, 2, 3, 3), PC_F32, test_device()),
                            pc_ones(PC_SHAPE(2, 2, 3, 3), PC_F32, test_device()), NULL,
                            (pc_fn_conv2d_options){.pool = 0});
    if (strcmp(name, "relu_half") == 0)
        return pc_relu(h);
    if (strcmp(name, "tanh") == 0)
        return pc_tanh(f);
    if (strcmp(name, "add") == 0)
        return pc_add(h, f);
    if (strcmp(name, "mse") == 0)
        return pc_mse(h, h);
    if (strcmp(name, "bce_with_logits") == 0)
        return pc_bce_with_logits(h, f);
    fail_msg("the golden file has no op \"%s\"", name);
    return NULL;
}

static void autocast_as_pytorch(void **state)
{
    (void)state;
    static lines l;
    int cases = 0;
    for (; next_line(&l, "autocast"); cases++)
        PC_SCOPE {
            PC_AUTOCAST(PC_BF16) {
                pc_tensor *t = cast_op(word(&l));
                assert_not_null_ok(t);
                assert_int_equal(pc_tensor_dtype(t), golden_dtype(word(&l)));
            }
        }
    assert_int_equal(cases, 8);
    assert_no_leak();
}

static pc_tensor *parameter_of(pc_module *module, pc_tensor *x)
{
    return pc_mul(pc_module_parameter(module, "weight"), x);
}

static const pc_module_class one_class = {.name = "One", .forward = parameter_of};

static void scaler_as_pytorch(void **state)
{
    (void)state;
    static lines l;
    assert_true(next_line(&l, "scaler"));
    pc_module *net = pc_module_new(&one_class, 0);
    PC_SCOPE {
        assert_ok(pc_module_add_parameter(net, "weight", pc_ones(PC_SHAPE(1), PC_F32, PC_DEVICE_CPU)));
    }
    assert_ok(pc_module_to(net, test_device(), PC_F32));
    pc_optimizer *sgd = pc_sgd(net, .lr = 1e-30);
    double initial = strtod(word(&l), NULL);
    pc_scaler *scaler = pc_scaler(test_device(), .initial = initial, .interval = atoi(word(&l)));
    int steps = 0;
    for (char *pair; (pair = word(&l)); steps++)
        PC_SCOPE {
            char *scale;
            double g = strtod(pair, &scale);
            pc_tensor *x = pc_full(PC_SHAPE(1), g, PC_F32, test_device());
            assert_ok(pc_backward(pc_scaler_scale(scaler, pc_forward(net, x))));
            assert_ok(pc_scaler_step(scaler, sgd));
            assert_ok(pc_scaler_update(scaler));
            assert_close(pc_scaler_value(scaler), strtod(scale + 1, NULL), 0);
        }
    assert_int_equal(steps, 15);
    pc_scaler_free(scaler);
    pc_optimizer_free(sgd);
    pc_module_free(net);
    while (next_line(&l, "scaler"))
        continue;
    assert_no_leak();
}

static pc_tensor *waves(pc_shape shape, double factor, double height)
{
    static float values[VALUES];
    int64_t n = 1;
    for (int i = 0; i < shape.ndim; i++)
        n *= shape.dim[i];
    for (int64_t i = 0; i < n; i++)
        values[i] = (float)sin((double)(i + 1) * factor) * (float)height;
    return pc_from_data(values, shape, PC_F32, test_device());
}

static pc_tensor *two_layers(pc_module *module, pc_tensor *x)
{
    pc_tensor *hidden =
        pc_fn_linear(x, pc_module_parameter(module, "w1"), pc_module_parameter(module, "b1"), PC_ACTIVATION_TANH);
    return pc_fn_linear(hidden, pc_module_parameter(module, "w2"), NULL, PC_ACTIVATION_NONE);
}

static const pc_module_class two_layers_class = {.name = "TwoLayers", .forward = two_layers};

/* Losses of a training in bfloat16 stay as near to PyTorch's as roundings at other places allow. */
static void training_as_pytorch(void **state)
{
    (void)state;
    static lines l;
    int trainings = 0;
    for (; next_line(&l, "train"); trainings++) {
        pc_dtype dtype = golden_dtype(word(&l));
        pc_module *net = pc_module_new(&two_layers_class, 0);
        PC_SCOPE {
            assert_ok(pc_module_add_parameter(net, "w1", waves(PC_SHAPE(16, 12), 0.7, 0.3)));
            assert_ok(pc_module_add_parameter(net, "b1", waves(PC_SHAPE(16), 1.3, 0.1)));
            assert_ok(pc_module_add_parameter(net, "w2", waves(PC_SHAPE(3, 16), 0.9, 0.3)));
            pc_tensor *x = waves(PC_SHAPE(20, 12), 0.37, 1);
            int64_t labels[20];
            for (int i = 0; i < 20; i++)
                labels[i] = i % 3;
            pc_tensor *target = pc_from_data(labels, PC_SHAPE(20), PC_I64, test_device());
            pc_optimizer *sgd = pc_sgd(net, .lr = 0.2);
            for (int step = 0; step < 20; step++)
                PC_SCOPE {
                    pc_tensor *loss = NULL;
                    PC_AUTOCAST(dtype)
                        loss = pc_cross_entropy(pc_forward(net, x), target);
                    assert_close(pc_item(loss), strtod(word(&l), NULL), dtype == PC_F32 ? 1e-5 : 5e-3);
                    assert_ok(pc_backward(loss));
                    assert_ok(pc_optimizer_step(sgd));
                }
            pc_optimizer_free(sgd);
        }
        pc_module_free(net);
    }
    assert_int_equal(trainings, 2);
    assert_no_leak();
}

typedef pc_tensor *(*one_fn)(pc_tensor *a);
typedef pc_tensor *(*two_fn)(pc_tensor *a, pc_tensor *b);

static void assert_same_numbers(pc_tensor *found, pc_tensor *floats, int op)
{
    enum { ALL = 1 << 16 };
    static uint16_t a[ALL], b[ALL];
    const pc_dtype dtype = pc_tensor_dtype(found);
    assert_ok(pc_read(found, a, sizeof a));
    assert_ok(pc_read(pc_cast(floats, dtype), b, sizeof b));
    for (int i = 0; i < ALL; i++) {
        const double x = value_of(a[i], dtype), y = value_of(b[i], dtype);
        if (x == x || y == y ? a[i] != b[i] : false)
            fail_msg("%s, op %d, number %d: %04x, not %04x", pc_dtype_name(dtype), op, i, a[i], b[i]);
    }
}

/* Every 16-bit number, NaN among them, alone and with another one: float32's result, rounded. */
static void every_number(void **state)
{
    enum { ALL = 1 << 16 };
    static const one_fn ones[] = {pc_abs, pc_relu, pc_relu6, pc_floor, pc_round, pc_sign, pc_neg, pc_square, pc_sqrt};
    static const two_fn twos[] = {pc_add, pc_mul, pc_maximum, pc_minimum};
    static const pc_dtype dtypes[] = {PC_BF16, PC_F16};
    static uint16_t numbers[ALL], others[ALL];
    (void)state;
    for (int i = 0; i < ALL; i++)
        numbers[i] = (uint16_t)i, others[i] = (uint16_t)(i * 40503);
    for (int k = 0; k < 2; k++)
        PC_SCOPE {
            pc_tensor *x = pc_from_data(numbers, PC_SHAPE(ALL), dtypes[k], test_device()), *wide = pc_cast(x, PC_F32);
            pc_tensor *y = pc_from_data(others, PC_SHAPE(ALL), dtypes[k], test_device()), *also = pc_cast(y, PC_F32);
            for (int i = 0; i < (int)(sizeof ones / sizeof *ones); i++)
                assert_same_numbers(ones[i](x), ones[i](wide), i);
            for (int i = 0; i < (int)(sizeof twos / sizeof *twos); i++)
                assert_same_numbers(twos[i](x, y), twos[i](wide, also), 100 + i);
        }
    assert_no_leak();
}

/* Numbers whose squares are less than there is: no gradient, where the norm or the deviation is 0. */
static void numbers_next_to_none(void **state)
{
    (void)state;
    for (int kind = 0; kind < 2; kind++)
        PC_SCOPE {
            pc_tensor *x =
                pc_cast(pc_from_data((float[]){1e-23f, 2e-23f}, PC_SHAPE(2), PC_F32, test_device()), PC_BF16);
            assert_ok(pc_require_grad(x, true));
            pc_tensor *y = kind ? pc_std(x, 0) : pc_norm(x, 2);
            assert_close(pc_item(y), 0, 0);
            assert_ok(pc_backward_with(y, pc_full(pc_tensor_shape(y), 1, PC_BF16, test_device())));
            assert_close(pc_item(pc_sum(pc_abs(pc_grad(x)))), 0, 0);
        }
    assert_no_leak();
}

/* Quotients of float16 whose gradient is a number, though neither g a nor a / b^2 is. */
static void gradients_of_quotients(void **state)
{
    static const float cases[][4] = {/* a, b, g: the gradient by b */
                                     {1, 5000, 8192, -3.28e-4f},
                                     {1, 10000, 32768, -3.28e-4f},
                                     {1000, 100, 8192, -819.2f}};
    (void)state;
    for (int i = 0; i < 3; i++)
        PC_SCOPE {
            pc_tensor *t[3];
            for (int k = 0; k < 3; k++)
                t[k] = pc_cast(pc_from_data(&cases[i][k], PC_SHAPE(1), PC_F32, test_device()), PC_F16);
            assert_ok(pc_require_grad(t[1], true));
            assert_ok(pc_backward_with(pc_div(t[0], t[1]), t[2]));
            assert_close(pc_item(pc_grad(t[1])) / (double)cases[i][3], 1, 2e-3);
        }
    assert_no_leak();
}

/* Gradients that float16 has, though the gradient of the result divided by a small number is more than that; and 0 where the
 * number is. */
static void gradients_that_fit(void **state)
{
    enum { NORM, STD, QUOTIENT, KINDS };
    static const float want[KINDS][2] = {{4915.2f, 6553.6f}, {-4096, 4096}, {-819.2f, -1638.4f}};
    (void)state;
    for (int kind = 0; kind < KINDS; kind++)
        for (int zero = 0; zero < (kind == QUOTIENT ? 1 : 2); zero++)
            PC_SCOPE {
                const float numbers[] = {kind == QUOTIENT ? 100.0f
                                         : zero           ? 0.0f
                                                          : 0.06f,
                                         kind == QUOTIENT ? 50.0f
                                         : zero           ? 0.0f
                                                          : 0.08f};
                pc_tensor *x = pc_cast(pc_from_data(numbers, PC_SHAPE(2), PC_F32, test_device()), PC_F16);
                assert_ok(pc_require_grad(x, true));
                pc_tensor *top =
                    pc_cast(pc_from_data((float[]){1000, 500}, PC_SHAPE(2), PC_F32, test_device()), PC_F16);
                pc_tensor *y = kind == NORM ? pc_norm(x, 2) : kind == STD ? pc_std(x, 0) : pc_div(top, x);
                assert_ok(pc_backward_with(y, pc_full(pc_tensor_shape(y), 8192, PC_F16, test_device())));
                float got[2];
                assert_ok(pc_read(pc_cast(pc_grad(x), PC_F32), got, sizeof got));
                for (int i = 0; i < 2; i++)
                    assert_close((double)got[i], zero ? 0 : (double)want[kind][i], zero ? 0 : 10);
            }
    assert_no_leak();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(gradients_that_fit, close_scopes),
        cmocka_unit_test_teardown(numbers_next_to_none, close_scopes),
        cmocka_unit_test_teardown(gradients_of_quotients, close_scopes),
        cmocka_unit_test_teardown(promotion_as_pytorch, close_scopes),
        cmocka_unit_test_teardown(every_number, close_scopes),
        cmocka_unit_test_teardown(ops_as_pytorch, close_scopes),
        cmocka_unit_test_teardown(autocast_as_pytorch, close_scopes),
        cmocka_unit_test_teardown(scaler_as_pytorch, close_scopes),
        cmocka_unit_test_teardown(training_as_pytorch, close_scopes),
    };
    return cmocka_run_group_tests_name("ops.half", tests, NULL, NULL);
}
