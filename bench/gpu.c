/* gpu: what an accelerator gets done: streams of bytes, products, the cost of small calls, copies, training steps.
 * Usage: gpu [device, cuda:0 unless given] [small: shrink everything, to try the program itself; steps: those alone]
 * [of the steps those whose name has this, such as two-conv.32]
 * One JSON line a measurement: the median of several, timed by events on the device, or on the host where it says so.
 */
#include <paracord.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ROUNDS = 15 };

static pc_device device;
static int64_t large = (int64_t)1 << 28, rows = 65536, side = 8192, pinned_bytes = 256 << 20;

static void check(bool fine)
{
    if (!fine || pc_failed())
        exit(pc_report(stderr) ? 1 : 1);
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, int n)
{
    qsort(values, (size_t)n, sizeof *values, compare);
    return values[n / 2];
}

static void report(const char *name, double value, const char *unit)
{
    printf("{\"bench\": \"gpu.%s\", \"value\": %.6g, \"unit\": \"%s\"}\n", name, value, unit);
    fflush(stdout);
}

typedef void (*body_fn)(void *context);

/* Seconds of device time that a body takes, after two goes that do not count. */
static double device_seconds(body_fn body, void *context)
{
    double seconds[ROUNDS], ms;
    pc_event *start = pc_event_new(device), *end = pc_event_new(device);
    check(start && end);
    for (int i = -2; i < ROUNDS; i++) {
        check(pc_event_record(start, NULL) == PC_OK);
        body(context);
        check(pc_event_record(end, NULL) == PC_OK);
        check(pc_event_elapsed(start, end, &ms) == PC_OK);
        if (i >= 0)
            seconds[i] = ms * 1e-3;
    }
    pc_event_free(start);
    pc_event_free(end);
    return median(seconds, ROUNDS);
}

/* --- bytes --- */

typedef struct operands {
    pc_tensor *a, *b, *out;
} operands;

static void use(pc_tensor *t)
{
    check(t != NULL);
    pc_tensor_free(t);
}

static void do_copy(void *context)
{
    operands *o = context;
    check(pc_copy(o->out, o->a) == PC_OK);
}

static void do_add(void *context)
{
    operands *o = context;
    use(pc_add(o->a, o->b));
}

static void do_saxpy(void *context)
{
    operands *o = context;
    check(pc_saxpy(o->b, 1e-9, o->a) == PC_OK);
}

static void do_exp(void *context)
{
    operands *o = context;
    use(pc_exp(o->a));
}

static void do_sum(void *context)
{
    operands *o = context;
    use(pc_sum(o->a));
}

static void do_softmax(void *context)
{
    operands *o = context;
    use(pc_softmax(o->a, 1));
}

static void bytes(void)
{
    operands o = {pc_randn(PC_SHAPE(large), PC_F32, device), pc_randn(PC_SHAPE(large), PC_F32, device),
                  pc_empty(PC_SHAPE(large), PC_F32, device)};
    check(o.a && o.b && o.out);
    const struct {
        const char *name;
        body_fn body;
        int arrays;
    } list[] = {
        {"copy", do_copy, 2}, {"add", do_add, 3}, {"saxpy", do_saxpy, 3}, {"exp", do_exp, 2}, {"sum", do_sum, 1}};
    for (size_t i = 0; i < sizeof list / sizeof *list; i++)
        report(list[i].name, (double)large * 4 * list[i].arrays / device_seconds(list[i].body, &o) * 1e-12, "TB/s");
    use(o.a);
    use(o.b);
    use(o.out);
    operands s = {.a = pc_randn(PC_SHAPE(rows, 4096), PC_F32, device)};
    check(s.a);
    report("softmax4096", (double)rows * 4096 * 8 / device_seconds(do_softmax, &s) * 1e-12, "TB/s");
    use(s.a);
}

/* --- the Mandelbrot set --- */

enum { PICTURES = 20 }; /* between two marks: they alone take some microseconds */

typedef struct picture {
    pc_tensor *counts;
    pc_mandelbrot_options spec;
} picture;

static void do_pictures(void *context)
{
    const picture *p = context;
    for (int i = 0; i < PICTURES; i++)
        check(pc_mandelbrot(p->counts, p->spec) == PC_OK);
}

static void mandelbrot(void)
{
    picture p = {pc_zeros(PC_SHAPE(1024, 1536), PC_I32, device), {.iterations = 20}};
    check(p.counts && pc_device_synchronize(device) == PC_OK);
    const double start = now();
    check(pc_mandelbrot(p.counts, p.spec) == PC_OK && pc_device_synchronize(device) == PC_OK);
    report("mandelbrot.first", (now() - start) * 1e6, "us");
    report("mandelbrot.20", device_seconds(do_pictures, &p) / PICTURES * 1e6, "us");
    p.spec.iterations = 1000;
    report("mandelbrot.1000", device_seconds(do_pictures, &p) / PICTURES * 1e6, "us");
    use(p.counts);
}

/* --- products --- */

static void do_matmul(void *context)
{
    operands *o = context;
    use(pc_matmul(o->a, o->b));
}

static void products(void)
{
    operands o = {pc_randn(PC_SHAPE(side, side), PC_F32, device), pc_randn(PC_SHAPE(side, side), PC_F32, device), NULL};
    check(o.a && o.b);
    const double flops = 2.0 * (double)side * (double)side * (double)side;
    report("matmul8192.f32", flops / device_seconds(do_matmul, &o) * 1e-12, "TFLOP/s");
    (void)pc_matmul_precision_set(PC_PRECISION_TF32);
    report("matmul8192.tf32", flops / device_seconds(do_matmul, &o) * 1e-12, "TFLOP/s");
    (void)pc_matmul_precision_set(PC_PRECISION_F32);
    use(o.a);
    use(o.b);
}

/* --- small calls --- */

enum { SMALL_OPS = 2000 };

static void small_calls(void)
{
    operands o = {pc_ones(PC_SHAPE(16), PC_F32, device), pc_ones(PC_SHAPE(16), PC_F32, device), NULL};
    double seconds[ROUNDS];
    for (int i = -2; i < ROUNDS; i++) {
        double start = now();
        for (int k = 0; k < SMALL_OPS; k++)
            use(pc_add(o.a, o.b));
        if (i >= 0)
            seconds[i] = (now() - start) / SMALL_OPS;
        check(pc_device_synchronize(device) == PC_OK);
    }
    report("add16.eager.host", median(seconds, ROUNDS) * 1e6, "us");
    pc_stream *stream = pc_stream(device);
    check(stream && pc_stream_set_current(device, stream) == PC_OK && pc_graph_begin(stream) == PC_OK);
    pc_graph *graph = NULL;
    PC_SCOPE { /* results for nobody would be left out of the recording */
        for (int k = 0; k < SMALL_OPS; k++)
            check(pc_add(o.a, o.b) != NULL);
        graph = pc_graph_end(stream);
    }
    check(graph != NULL);
    double ms;
    pc_event *start = pc_event_new(device), *end = pc_event_new(device);
    for (int i = -2; i < ROUNDS; i++) {
        check(pc_event_record(start, NULL) == PC_OK && pc_graph_launch(graph, NULL) == PC_OK);
        check(pc_event_record(end, NULL) == PC_OK && pc_event_elapsed(start, end, &ms) == PC_OK);
        if (i >= 0)
            seconds[i] = ms * 1e-3 / SMALL_OPS;
    }
    report("add16.graph", median(seconds, ROUNDS) * 1e6, "us");
    pc_event_free(start);
    pc_event_free(end);
    pc_graph_free(graph);
    check(pc_stream_set_current(device, NULL) == PC_OK);
    pc_stream_free(stream);
    use(o.a);
    use(o.b);
}

/* Ten layers of 64 to 64, forward and backward, batch 64. */
static void do_chain(void *context)
{
    pc_module *net = context;
    PC_SCOPE {
        pc_tensor *x = pc_ones(PC_SHAPE(64, 64), PC_F32, device);
        check(pc_backward(pc_sum(pc_forward(net, x))) == PC_OK);
        pc_module_zero_grad(net);
    }
}

static void chain(void)
{
    pc_module *net =
        pc_sequential(pc_linear(64, 64), pc_linear(64, 64), pc_linear(64, 64), pc_linear(64, 64), pc_linear(64, 64),
                      pc_linear(64, 64), pc_linear(64, 64), pc_linear(64, 64), pc_linear(64, 64), pc_linear(64, 64));
    check(net && pc_module_to(net, device, PC_F32) == PC_OK);
    double seconds[ROUNDS];
    for (int i = -5; i < ROUNDS; i++) {
        check(pc_device_synchronize(device) == PC_OK);
        double start = now();
        for (int k = 0; k < 20; k++)
            do_chain(net);
        check(pc_device_synchronize(device) == PC_OK);
        if (i >= 0)
            seconds[i] = (now() - start) / 20;
    }
    report("chain10.eager", median(seconds, ROUNDS) * 1e6, "us");
    pc_module_free(net);
}

/* --- copies between host and device --- */

static void do_transfer(void *context)
{
    operands *o = context;
    check(pc_copy(o->out, o->a) == PC_OK);
}

static void copies(void)
{
    pc_tensor *host = pc_empty_pinned(PC_SHAPE(pinned_bytes), PC_U8, device),
              *there = pc_zeros(PC_SHAPE(pinned_bytes), PC_U8, device);
    check(host && there && pc_fill(host, 1) == PC_OK);
    operands in = {.a = host, .out = there}, out = {.a = there, .out = host};
    report("pinned.to_device", (double)pinned_bytes / device_seconds(do_transfer, &in) * 1e-9, "GB/s");
    report("pinned.to_host", (double)pinned_bytes / device_seconds(do_transfer, &out) * 1e-9, "GB/s");
    use(host);
    use(there);
}

/* --- training steps --- */

typedef struct training {
    pc_module *net;
    pc_optimizer *adam;
    pc_tensor *x, *y;
    pc_dtype dtype; /* of its products */
    int at_once;    /* steps in a call */
} training;

static pc_status do_step(void *context)
{
    training *t = context;
    for (int i = 0; i < t->at_once; i++)
        PC_SCOPE {
            pc_tensor *loss = NULL;
            PC_AUTOCAST(t->dtype) {
                loss = pc_bce_with_logits(pc_forward(t->net, t->x), t->y);
            }
            check(pc_backward(loss) == PC_OK);
            check(pc_optimizer_step(t->adam) == PC_OK);
        }
    return PC_OK;
}

enum { STEPS = 20 }; /* between two waits */

/* Seconds of a step, by the host's clock: called as it is, or as one recording. */
static double step_seconds(training *t, bool recorded)
{
    pc_step *step = recorded ? pc_step_new(do_step, t, t->adam) : NULL;
    check(step || !recorded);
    double seconds[ROUNDS];
    for (int i = -5; i < ROUNDS; i++) {
        check(pc_device_synchronize(device) == PC_OK);
        double start = now();
        for (int k = 0; k < STEPS; k++)
            check((recorded ? pc_step_run(step) : do_step(t)) == PC_OK);
        check(pc_device_synchronize(device) == PC_OK);
        if (i >= 0)
            seconds[i] = (now() - start) / STEPS / t->at_once;
    }
    pc_step_free(step);
    return median(seconds, ROUNDS);
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

static void steps(const char *network, pc_module *net, int batch, const char *wanted)
{
    training t = {.net = net, .dtype = PC_F32, .at_once = 1};
    char name[32], line[64];
    snprintf(name, sizeof name, "%s.%d", network, batch);
    if (!strstr(name, wanted)) {
        pc_module_free(net);
        return;
    }
    check(net && pc_module_to(net, device, PC_F32) == PC_OK);
    t.adam = pc_adam(net, .lr = 1e-3);
    pc_tensor *pictures = pc_rand(PC_SHAPE(batch, 64, 64, 3), PC_F32, device);
    t.x = pc_permute(pictures, PC_SHAPE(0, 3, 1, 2)); /* as loaders give them */
    pc_tensor_free(pictures);
    t.y = pc_zeros(PC_SHAPE(batch, 1), PC_F32, device);
    check(t.adam && t.x && t.y);
    for (int recorded = 0; recorded < 2; recorded++) {
        snprintf(line, sizeof line, "step.%s%s", name, recorded ? ".graph" : "");
        report(line, step_seconds(&t, recorded) * 1e6, "us");
    }
    t.at_once = 4;
    snprintf(line, sizeof line, "step.%s.graph4", name);
    report(line, step_seconds(&t, true) * 1e6, "us");
    t.at_once = 1, t.dtype = PC_BF16;
    snprintf(line, sizeof line, "step.%s.bf16.graph", name);
    report(line, step_seconds(&t, true) * 1e6, "us");
    pc_optimizer_free(t.adam);
    pc_module_free(net);
    use(t.x);
    use(t.y);
}

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "cuda:0", *wanted = argc > 3 ? argv[3] : "";
    if (pc_device_parse(name, &device) != PC_OK || pc_device_set_current(device) != PC_OK) {
        pc_report(stderr);
        return 0; /* nothing to measure here, and it has said why */
    }
    if (argc > 2 && strcmp(argv[2], "small") == 0) {
        large = 1 << 20;
        rows = 64;
        side = 256;
        pinned_bytes = 1 << 20;
    }
    if (argc < 3 || strcmp(argv[2], "steps") != 0) {
        bytes();
        mandelbrot();
        products();
        small_calls();
        chain();
        copies();
    }
    for (int batch = 32; batch <= 512; batch *= 16) {
        steps("article", article(), batch, wanted);
        steps("two-conv", two_conv(), batch, wanted);
    }
    return 0;
}
