/* half: what an accelerator gets done in 16 bits: streams of bytes, products, and training steps with mixed precision.
 * Usage: half [device, cuda:0 unless given] [small: shrink everything, to try the program itself]
 * One JSON line a measurement: the median of several, timed by events on the device. bench/peers/half.py runs it beside
 * PyTorch.
 */
#include <paracord.h>
#include <stdlib.h>

enum { ROUNDS = 15 };

static pc_device device;
static int64_t large = (int64_t)1 << 28, rows = 65536, side = 8192;

static void check(bool fine)
{
    if (!fine || pc_failed())
        exit(pc_report(stderr) ? 1 : 1);
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void report(const char *name, pc_dtype dtype, double value, const char *unit)
{
    printf("{\"bench\": \"half.%s.%s\", \"value\": %.6g, \"unit\": \"%s\"}\n", name, pc_dtype_name(dtype), value, unit);
    fflush(stdout);
}

typedef struct operands {
    pc_tensor *a, *b;
} operands;

typedef void (*body_fn)(operands *o);

/* Seconds of device time that a body takes, after two goes that do not count. */
static double device_seconds(body_fn body, operands *o)
{
    double seconds[ROUNDS], ms;
    pc_event *start = pc_event_new(device), *end = pc_event_new(device);
    check(start && end);
    for (int i = -2; i < ROUNDS; i++) {
        check(pc_event_record(start, NULL) == PC_OK);
        body(o);
        check(pc_event_record(end, NULL) == PC_OK && pc_event_elapsed(start, end, &ms) == PC_OK);
        if (i >= 0)
            seconds[i] = ms * 1e-3;
    }
    pc_event_free(start);
    pc_event_free(end);
    qsort(seconds, ROUNDS, sizeof *seconds, compare);
    return seconds[ROUNDS / 2];
}

static void use(pc_tensor *t)
{
    check(t != NULL);
    pc_tensor_free(t);
}

static void do_add(operands *o)
{
    use(pc_add(o->a, o->b));
}

static void do_exp(operands *o)
{
    use(pc_exp(o->a));
}

static void do_sum(operands *o)
{
    use(pc_sum(o->a));
}

static void do_cast(operands *o)
{
    use(pc_cast(o->a, PC_F32));
}

static void do_softmax(operands *o)
{
    use(pc_softmax(o->a, 1));
}

static void do_matmul(operands *o)
{
    use(pc_matmul(o->a, o->b));
}

static void do_linear(operands *o)
{
    use(pc_fn_linear(o->a, o->a, o->b, PC_ACTIVATION_RELU));
}

static void bytes(pc_dtype dtype)
{
    operands o = {pc_randn(PC_SHAPE(large), dtype, device), pc_randn(PC_SHAPE(large), dtype, device)};
    const struct {
        const char *name;
        body_fn body;
        int bytes; /* for each element */
    } list[] = {{"add", do_add, 6}, {"exp", do_exp, 4}, {"sum", do_sum, 2}, {"to_float32", do_cast, 6}};
    check(o.a && o.b);
    for (size_t i = 0; i < sizeof list / sizeof *list; i++)
        report(list[i].name, dtype, (double)large * list[i].bytes / device_seconds(list[i].body, &o) * 1e-12, "TB/s");
    use(o.a);
    use(o.b);
    operands s = {.a = pc_randn(PC_SHAPE(rows, 4096), dtype, device)};
    report("softmax4096", dtype, (double)rows * 4096 * 4 / device_seconds(do_softmax, &s) * 1e-12, "TB/s");
    use(s.a);
}

static void products(pc_dtype dtype)
{
    operands o = {pc_randn(PC_SHAPE(side, side), dtype, device), pc_randn(PC_SHAPE(side, side), dtype, device)};
    check(o.a && o.b);
    const double flops = 2.0 * (double)side * (double)side * (double)side;
    report("matmul8192", dtype, flops / device_seconds(do_matmul, &o) * 1e-12, "TFLOP/s");
    use(o.b);
    o.b = pc_zeros(PC_SHAPE(side), dtype, device);
    report("linear8192.relu", dtype, flops / device_seconds(do_linear, &o) * 1e-12, "TFLOP/s");
    use(o.a);
    use(o.b);
}

/* A training step as one recording: forward in 16 bits (or not, PC_F32), backward, Adam. */
typedef struct training {
    pc_module *net;
    pc_optimizer *adam;
    pc_scaler *scaler;
    pc_dtype dtype;
    pc_tensor *x, *y;
    pc_step *step;
} training;

static pc_status learn(void *user)
{
    training *t = user;
    pc_status status = PC_OK;
    PC_SCOPE {
        pc_tensor *loss = NULL;
        PC_AUTOCAST(t->dtype) {
            loss = pc_bce_with_logits(pc_forward(t->net, t->x), t->y);
        }
        status = pc_backward(t->scaler ? pc_scaler_scale(t->scaler, loss) : loss);
        if (status == PC_OK)
            status = t->scaler ? pc_scaler_step(t->scaler, t->adam) : pc_optimizer_step(t->adam);
        if (status == PC_OK && t->scaler)
            status = pc_scaler_update(t->scaler);
    }
    return status;
}

static training *trained; /* by do_steps */

static void do_steps(operands *o)
{
    (void)o;
    for (int i = 0; i < 20; i++)
        check(pc_step_run(trained->step) == PC_OK);
}

static void steps(const char *name, pc_module *net, int64_t batch, pc_dtype dtype)
{
    training t = {.net = net, .dtype = dtype};
    check(net && pc_module_to(net, device, PC_F32) == PC_OK);
    t.adam = pc_adam(net);
    t.scaler = dtype == PC_F16 ? pc_scaler(device) : NULL;
    t.x = pc_permute(pc_rand(PC_SHAPE(batch, 64, 64, 3), PC_F32, device), PC_SHAPE(0, 3, 1, 2));
    t.y = pc_zeros(PC_SHAPE(batch, 1), PC_F32, device);
    t.step = pc_step_new(learn, &t, t.adam);
    check(t.adam && t.x && t.y && t.step);
    trained = &t;
    char line[64];
    snprintf(line, sizeof line, "step.%s.%d", name, (int)batch);
    report(line, dtype, device_seconds(do_steps, NULL) / 20 * 1e6, "us");
    pc_step_free(t.step);
    pc_scaler_free(t.scaler);
    pc_optimizer_free(t.adam);
    pc_module_free(net);
}

static pc_module *article(void)
{
    return pc_sequential(pc_conv2d(3, 32, 3, .stride = 3, .activation = PC_ACTIVATION_RELU), pc_max_pool2d(2),
                         pc_flatten(), pc_linear(3200, 128, .activation = PC_ACTIVATION_RELU), pc_linear(128, 1));
}

static pc_module *two_conv(void)
{
    return pc_sequential(pc_conv2d(3, 32, 3, .activation = PC_ACTIVATION_RELU), pc_max_pool2d(2),
                         pc_conv2d(32, 64, 3, .activation = PC_ACTIVATION_RELU), pc_max_pool2d(2), pc_flatten(),
                         pc_linear(12544, 128, .activation = PC_ACTIVATION_RELU), pc_linear(128, 1));
}

static pc_module *wide(void)
{
    return pc_sequential(pc_flatten(), pc_linear(12288, 4096, .activation = PC_ACTIVATION_RELU),
                         pc_linear(4096, 4096, .activation = PC_ACTIVATION_RELU), pc_linear(4096, 1));
}

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "cuda:0";
    if (pc_device_parse(name, &device) != PC_OK || pc_device_set_current(device) != PC_OK) {
        pc_report(stderr);
        return 0; /* nothing to measure here, and it has said why */
    }
    if (argc > 2) {
        large = 1 << 16;
        rows = 64;
        side = 128;
    }
    for (int i = 0; i < 2; i++) {
        bytes(i ? PC_F16 : PC_BF16);
        products(i ? PC_F16 : PC_BF16);
    }
    const pc_dtype dtypes[] = {PC_F32, PC_BF16, PC_F16};
    for (int i = 0; i < 3; i++)
        PC_SCOPE {
            steps("article", article(), argc > 2 ? 4 : 512, dtypes[i]);
            steps("two-conv", two_conv(), argc > 2 ? 4 : 512, dtypes[i]);
            if (argc <= 2)
                steps("wide", wide(), 512, dtypes[i]);
        }
    return 0;
}
