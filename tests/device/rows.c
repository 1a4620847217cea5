/* Every row that can do an op on a GPU (docs/cuda.md) makes what the CPU makes; a plan says which one did; and
 * PARACORD_ONLY, which is read once, so that each case is this program again, puts one in front. */
#include "device.h"

#include "base/base.h"

#include <math.h>
#include <paracord/autograd.h>
#include <paracord/ops.h>
#include <paracord/random.h>
#include <paracord/trace.h>
#include <sys/wait.h>
#include <unistd.h>

enum op { CONV, LINEAR, MATMUL };

/* A call with its gradients. */
typedef struct shape {
    const char *name;
    enum op op;
    pc_dtype dtype;
    int64_t n, in, out; /* rows or pictures, channels or columns */
    int pool;
} shape;

static const shape shapes[] = {
    {"colours", CONV, PC_F32, 2, 3, 8, 1},        {"colours16", CONV, PC_BF16, 2, 3, 8, 2},
    {"patches", CONV, PC_BF16, 2, 32, 32, 1},     {"halves", CONV, PC_F16, 2, 8, 16, 2},
    {"odd", CONV, PC_BF16, 2, 20, 7, 1},          {"narrow", CONV, PC_BF16, 2, 5, 7, 1},
    {"narrow32", CONV, PC_F32, 2, 4, 11, 2},      {"few", LINEAR, PC_F32, 4, 64, 2, 0},
    {"columns", LINEAR, PC_F32, 32, 1060, 96, 0}, {"logit", LINEAR, PC_F32, 32, 64, 1, 0},
    {"product", MATMUL, PC_F32, 5, 7, 6, 0},      {"columns4", MATMUL, PC_F32, 40, 60, 4, 0},
    {"ranks2", MATMUL, PC_BF16, 520, 2, 1024, 0},
};

static const shape *shape_of(const char *name)
{
    for (int i = 0; i < PC__COUNT(shapes); i++)
        if (strcmp(shapes[i].name, name) == 0)
            return &shapes[i];
    fail_msg("there is no shape %s", name);
    return NULL;
}

/* --- the child: a shape on the CPU, and recorded on the device --- */

typedef struct results {
    pc_tensor *x, *weight, *y;
} results;

/* The same numbers everywhere. */
static pc_tensor *random_like(pc_shape size, pc_dtype dtype, pc_device device)
{
    pc_tensor *t = pc_cast(pc_mul_scalar(pc_randn(size, PC_F32, PC_DEVICE_CPU), 0.25), dtype);
    return pc_to(t, device, dtype, false);
}

static pc_tensor *call(const shape *s, pc_tensor *x, pc_tensor *weight)
{
    if (s->op == MATMUL)
        return pc_matmul(x, weight);
    if (s->op == LINEAR)
        return pc_fn_linear(x, weight, NULL, PC_ACTIVATION_NONE);
    return pc_fn_conv2d(
        x, weight, NULL,
        (pc_fn_conv2d_options){.stride = {1, 1}, .padding = {1, 1}, .activation = PC_ACTIVATION_RELU, .pool = s->pool});
}

static results operands(const shape *s, pc_device device)
{
    const bool conv = s->op == CONV;
    pc_seed(5);
    results r = {.x = random_like(conv ? PC_SHAPE(s->n, s->in, 8, 8) : PC_SHAPE(s->n, s->in), s->dtype, device),
                 .weight = random_like(conv              ? PC_SHAPE(s->out, s->in, 3, 3)
                                       : s->op == MATMUL ? PC_SHAPE(s->in, s->out)
                                                         : PC_SHAPE(s->out, s->in),
                                       s->dtype, device)};
    assert_ok(pc_require_grad(r.x, true));
    assert_ok(pc_require_grad(r.weight, true));
    return r;
}

static void run(const shape *s, results *r)
{
    r->y = call(s, r->x, r->weight);
    assert_not_null_ok(r->y);
    assert_ok(pc_backward(pc_sum(pc_mul(r->y, r->y))));
}

static void near(const char *what, pc_tensor *got, pc_tensor *want, pc_dtype dtype)
{
    pc_tensor *here = pc_to(got, PC_DEVICE_CPU, PC_F32, false), *there = pc_cast(want, PC_F32);
    assert_not_null_ok(here);
    pc_tensor *difference = pc_sub(here, there);
    const double apart = sqrt(pc_item(pc_max(pc_mul(difference, difference)))),
                 most = sqrt(pc_item(pc_max(pc_mul(there, there))));
    if (!(apart <= (dtype == PC_F32 ? 1e-5 : 4e-2) * (1e-3 + most)))
        fail_msg("%s is %g apart, of %g", what, apart, most);
}

static char *recorded(const shape *s, results *r)
{
    assert_ok(pc_graph_begin(pc_stream_current(test_device())));
    run(s, r);
    pc_graph *graph = pc_graph_end(pc_stream_current(test_device()));
    assert_not_null_ok(graph);
    assert_ok(pc_graph_launch(graph, NULL));
    assert_ok(pc_device_synchronize(test_device()));
    char *text = pc_graph_text(graph);
    pc_graph_free(graph);
    return text;
}

static const char *asked; /* the shape */

static void as_the_cpu_does(void **state)
{
    (void)state;
    const shape *s = shape_of(asked);
    PC_SCOPE {
        results want = operands(s, PC_DEVICE_CPU), got = operands(s, test_device());
        run(s, &want);
        char *text = recorded(s, &got);
        assert_non_null(text);
        near("the result", got.y, want.y, s->dtype);
        near("the first gradient", pc_grad(got.x), pc_grad(want.x), s->dtype);
        near("the second gradient", pc_grad(got.weight), pc_grad(want.weight), s->dtype);
        fputs(text, stdout);
        pc_text_free(text);
    }
}

static void that_cannot_be_built(void **state)
{
    (void)state;
    const shape *s = shape_of("product");
    PC_SCOPE {
        results r = operands(s, test_device());
        assert_ok(pc_graph_begin(pc_stream_current(test_device())));
        assert_not_null_ok(call(s, r.x, r.weight));
        setenv("PARACORD_EMULATOR_REFUSES", "1", 1);
        assert_null(pc_graph_end(pc_stream_current(test_device())));
        unsetenv("PARACORD_EMULATOR_REFUSES");
    }
}

/* --- the parent --- */

/* What the program says on both outputs when it is run for a shape with a variable set; it must succeed. */
static const char *said(const char *variable, const char *value, const char *what)
{
    static char text[1 << 16];
    int ends[2], status;
    size_t n = 0;
    assert_int_equal(pipe(ends), 0);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        if (dup2(ends[1], STDOUT_FILENO) < 0 || dup2(ends[1], STDERR_FILENO) < 0)
            _exit(126);
        setenv(variable, value, 1);
        execl("/proc/self/exe", "test.device.rows", what, (char *)NULL);
        _exit(127);
    }
    close(ends[1]);
    for (ssize_t part; (part = read(ends[0], text + n, sizeof text - 1 - n)) > 0;)
        n += (size_t)part;
    text[n] = 0;
    close(ends[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        fail_msg("%s=%s: %s fails:\n%s", variable, value, what, text);
    return text;
}

/* The line of the plan for an op ends with these words, in front of its place. */
static void plan_says(const char *only, const char *what, const char *op, const char *note)
{
    const char *text = said("PARACORD_ONLY", only, what);
    char name[32], words[80];
    snprintf(name, sizeof name, " %s ", op);
    snprintf(words, sizeof words, "; %s  (", note);
    const char *line = strstr(text, name), *end = line ? strchr(line, '\n') : NULL;
    const char *found = line ? strstr(line, words) : NULL;
    if (!end || !found || found > end)
        fail_msg("PARACORD_ONLY=%s: %s of shape %s is not \"%s\" in:\n%s", only, op, what, note, text);
}

static void skip_without_rows(void)
{
    if (test_device().type != PC_CUDA)
        skip();
}

static void each_row_of_convolutions(void **state)
{
    (void)state;
    skip_without_rows();
    const char *const cases[][4] = {
        {"conv2d=colours", "colours", "conv2d", "by colours"},
        {"conv2d=colours", "colours16", "conv2d", "by colours"},
        {"conv2d=tile", "colours", "conv2d", "by tile"},
        {"conv2d=float32", "colours16", "conv2d", "by float32"},
        {"conv2d=direct", "narrow", "conv2d", "by direct"},
        {"conv2d=direct", "narrow32", "conv2d", "by direct"},
        {"conv2d=direct", "halves", "conv2d", "by direct"},
        {"conv2d=tile", "narrow32", "conv2d", "by tile"},
        {"conv2d=float32", "narrow", "conv2d", "by float32"},
        {"conv2d=patches", "patches", "conv2d", "by patches"},
        {"conv2d=plain", "patches", "conv2d", "by plain"},
        {"conv2d_weights=plain,conv2d_input=plain", "odd", "conv2d_backward", "both gradients by plain"},
        {"conv2d=split", "colours", "conv2d", "by split"},
        {"conv2d=split", "odd", "conv2d", "by split"},
        {"conv2d_input=split,conv2d_weights=patches", "patches", "conv2d_backward",
         "the input's gradient by split, the weights' by patches"},
        {"conv2d=half", "patches", "conv2d", "by half"},
        {"conv2d=half", "halves", "conv2d", "by half"},
        {"conv2d=shallow", "narrow", "conv2d", "by shallow"},
        {"conv2d=shallow", "halves", "conv2d", "by shallow"},
        {"conv2d_weights=shallow,conv2d_input=shallow", "narrow", "conv2d_backward", "both gradients by shallow"},
        {"conv2d_weights=shallow,conv2d_input=half", "halves", "conv2d_backward",
         "the input's gradient by half, the weights' by shallow"},
        {"conv2d_weights=colours,conv2d_input=tile", "colours", "conv2d_backward",
         "the input's gradient by tile, the weights' by colours"},
        {"conv2d_weights=tile,conv2d_input=tile", "colours", "conv2d_backward", "both gradients by tile"},
        {"conv2d_weights=direct,conv2d_input=direct", "colours", "conv2d_backward", "both gradients by direct"},
        {"conv2d_weights=direct,conv2d_input=direct", "narrow", "conv2d_backward", "both gradients by direct"},
        {"conv2d_weights=direct,conv2d_input=half", "halves", "conv2d_backward",
         "the input's gradient by half, the weights' by direct"},
        {"conv2d_weights=patches,conv2d_input=patches", "patches", "conv2d_backward", "both gradients by patches"},
        {"conv2d_weights=half conv2d_input=half", "patches", "conv2d_backward", "both gradients by half"},
        {"conv2d_weights=patches conv2d_input=half", "patches", "conv2d_backward",
         "the input's gradient by half, the weights' by patches"},
        {"conv2d_input=half,conv2d_weights=half", "halves", "conv2d_backward", "both gradients by half"},
        {"conv2d_input=float32", "halves", "conv2d_backward", "both gradients by float32"},
    };
    for (int i = 0; i < PC__COUNT(cases); i++)
        plan_says(cases[i][0], cases[i][1], cases[i][2], cases[i][3]);
}

static void each_row_of_products(void **state)
{
    (void)state;
    skip_without_rows();
    const char *const cases[][4] = {
        {"linear=few", "few", "linear", "by few"},
        {"linear=small", "few", "linear", "by small"},
        {"linear=product,matmul=tile", "few", "linear", "by tile"},
        {"linear=product,matmul=padded", "few", "linear", "by padded"},
        {"linear=small", "logit", "linear", "by small"},
        {"linear=head", "logit", "linear", "by head"},
        {"linear_backward=few", "few", "linear_backward", "by few"},
        {"linear_backward=small", "few", "linear_backward", "by small"},
        {"linear_backward=columns", "columns", "linear_backward", "by columns"},
        {"linear_backward=small", "columns", "linear_backward", "by small"},
        {"matmul=tile", "product", "matmul", "by tile"},
        {"matmul=outer", "product", "matmul", "by outer"},
        {"matmul=thin", "product", "matmul", "by thin"},
        {"matmul=staged", "product", "matmul", "by staged"},
        {"matmul=padded", "product", "matmul", "by padded"},
        {"matmul=padded", "ranks2", "matmul", "by padded"},
        {"", "columns4", "matmul", "by thin"},
        {"", "ranks2", "matmul", "by outer"},
    };
    for (int i = 0; i < PC__COUNT(cases); i++)
        plan_says(cases[i][0], cases[i][1], cases[i][2], cases[i][3]);
}

/* A row that does not take the shape changes nothing, nor does one that is not there; without a row the first does it. */
static void the_usual_order_goes_on(void **state)
{
    (void)state;
    skip_without_rows();
    plan_says("linear=head", "few", "linear", "by few");
    plan_says("", "few", "linear", "by few");
    plan_says("", "logit", "linear", "by head");
    if (!emulated())
        return; /* cuDNN and cuBLASLt come first on GPUs */
    plan_says("conv2d=patches,conv2d=-plain", "colours", "conv2d", "by colours");
    plan_says("conv2d_weights=colours,conv2d_weights=-plain,conv2d_input=-plain", "odd", "conv2d_backward",
              "both gradients by float32");
    plan_says("conv2d=cudnn", "colours", "conv2d", "by plain");
    plan_says("matmul=cublaslt", "columns4", "matmul", "by thin");
    plan_says("matmul=-outer", "product", "matmul", "by staged");
    plan_says("", "colours", "conv2d", "by plain");
    plan_says("", "patches", "conv2d", "by split");
    plan_says("", "narrow32", "conv2d_backward", "both gradients by tile");
}

/* "op=-row". */
static void without_a_row(void **state)
{
    (void)state;
    skip_without_rows();
    plan_says("linear=-few", "few", "linear", "by small");
    if (!emulated())
        return; /* cuDNN is next there */
    plan_says("conv2d=-split", "halves", "conv2d", "by half");
    plan_says("conv2d=-split", "patches", "conv2d", "by patches");
    plan_says("conv2d=-split,conv2d=-plain", "odd", "conv2d", "by float32");
    plan_says("conv2d=-plain,conv2d=-split", "narrow", "conv2d", "by shallow"); /* too few places for direct */
    plan_says("conv2d_input=-split", "patches", "conv2d_backward", "both gradients by patches");
}

/* How often `words` are in `text`. */
static int count(const char *text, const char *words)
{
    int n = 0;
    for (; (text = strstr(text, words)); text++)
        n++;
    return n;
}

static void names_that_are_none(void **state)
{
    (void)state;
    skip_without_rows();
    const char *text = said("PARACORD_ONLY", "conv3d=cudnn,linear=cudnn,matmul=tile,conv2d", "product");
    assert_int_equal(count(text, "PARACORD_ONLY"), 3);
    assert_int_equal(count(text, "\"conv3d=cudnn\"; write op=row with an op of these: conv2d, conv2d_input, "
                                 "conv2d_weights, linear, linear_backward, matmul, attention, attention_backward\n"),
                     1);
    assert_int_equal(count(text, "linear has no row \"cudnn\" on cuda; its rows are head, few, small, product\n"), 1);
    assert_int_equal(count(text, "conv2d has no row \"\" on cuda; its rows are cudnn, plain, colours, "), 1);
}

/* PARACORD_PLAN=print, once for each recording, with what the device says; also of one that fails. */
static void printed(void **state)
{
    (void)state;
    const bool on_gpu = test_device().type == PC_CUDA;
    const char *text = said("PARACORD_PLAN", "print", "product");
    assert_int_equal(count(text, "plan of recording 1 on "), 2); /* and what the case itself prints */
    assert_int_equal(count(text, "; by "), on_gpu ? 2 * 3 : 0);  /* forward, and two gradients */
    if (emulated())
        assert_int_equal(count(said("PARACORD_PLAN", "print", "refused"), "plan of recording 1 on "), 1);
}

/* Outside of recordings the timeline says it. */
static void timed(void **state)
{
    (void)state;
    skip_without_rows();
    char path[] = "/tmp/paracord-rows-XXXXXX", text[1 << 16];
    const int file = mkstemp(path);
    assert_true(file >= 0);
    PC_SCOPE {
        results r = operands(shape_of("product"), test_device());
        assert_ok(pc_trace_start(path));
        run(shape_of("product"), &r);
        assert_ok(pc_device_synchronize(test_device()));
        assert_ok(pc_trace_stop());
    }
    const ssize_t n = read(file, text, sizeof text - 1);
    close(file);
    unlink(path);
    assert_true(n > 0);
    text[n] = 0;
    const int products = count(text, "\"by staged\"") + count(text, "\"by outer\"");
    assert_int_equal(products, 2 * 3); /* in the rows of stream and engine: forward, and two gradients */
}

int main(int argc, char **argv)
{
    if (argc == 2) {
        const struct CMUnitTest right[] = {cmocka_unit_test(as_the_cpu_does)};
        const struct CMUnitTest refused[] = {cmocka_unit_test(that_cannot_be_built)};
        asked = argv[1];
        return strcmp(asked, "refused") ? cmocka_run_group_tests(right, NULL, NULL)
                                        : cmocka_run_group_tests(refused, NULL, NULL);
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_row_of_convolutions),
        cmocka_unit_test(each_row_of_products),
        cmocka_unit_test(the_usual_order_goes_on),
        cmocka_unit_test(without_a_row),
        cmocka_unit_test(names_that_are_none),
        cmocka_unit_test(printed),
        cmocka_unit_test(timed),
    };
    return cmocka_run_group_tests_name("device.rows", tests, NULL, NULL);
}
