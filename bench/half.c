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
    use(pc_fn_linear(o->a, o->a, o->b, PC_RELU));
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
    return 0;
}
