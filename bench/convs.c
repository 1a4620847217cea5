/* convs: convolutions of an accelerator, piece by piece: forward, the gradients of the weights and of the input, for
 * the layers of `article` and `two-conv` and some others. Usage: convs [device, cuda:0 unless given] [only pieces whose
 * names contain this] One JSON line a piece: microseconds, the median of replays of a graph of the same call, ten
 * times; by our kernels and, where cuDNN takes the piece, by our call of it (NAME.cudnn), with all that is around it
 * either way. Peer: bench/peers/convs.py. */
#include <paracord.h>
#include <stdlib.h>
#include <string.h>

#include "ops/conv2d.h"
#include "ops/table.h"
#include "train/arch.h"

enum { ROUNDS = 15, CALLS = 10 };

static pc_device device;
static pc_stream *stream;
static const char *wanted = "";
static bool by_cudnn; /* cuDNN was chosen since this was set to false */

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

/* A layer with its tensors. */
typedef struct layer {
    pc__conv2d_attributes a;
    pc_tensor *x, *weight, *bias, *y[2], *dy;
} layer;

static void do_forward(layer *l)
{
    pc_tensor *out[PC__OUT_MAX];
    check(pc__call_all(PC__OP_conv2d, (pc_tensor *[]){l->x, l->weight, l->bias}, 3, &l->a, sizeof l->a, out) == PC_OK);
}

static void backward(layer *l, bool input)
{
    pc_tensor *out[PC__OUT_MAX];
    pc__conv2d_attributes a = l->a;
    a.needs[0] = input;
    a.needs[1] = a.needs[2] = !input;
    check(pc__call_all(PC__OP_conv2d_backward, (pc_tensor *[]){l->x, l->weight, l->y[0], l->y[1], l->dy}, 5, &a,
                       sizeof a, out) == PC_OK);
}

static void do_weights(layer *l)
{
    backward(l, false);
}

static void do_input(layer *l)
{
    backward(l, true);
}

static double microseconds(void (*body)(layer *l), layer *l)
{
    double times[ROUNDS], ms;
    for (int i = 0; i < 2; i++)
        PC_SCOPE
            body(l);
    check(pc_device_synchronize(device) == PC_OK && pc_graph_begin(stream) == PC_OK);
    pc_graph *graph = NULL;
    PC_SCOPE { /* results for nobody would be left out of the recording */
        for (int i = 0; i < CALLS; i++)
            body(l);
        graph = pc_graph_end(stream);
    }
    pc_event *start = pc_event_new(device), *end = pc_event_new(device);
    check(graph && start && end);
    for (int i = -3; i < ROUNDS; i++) {
        check(pc_event_record(start, NULL) == PC_OK && pc_graph_launch(graph, NULL) == PC_OK);
        check(pc_event_record(end, NULL) == PC_OK && pc_event_elapsed(start, end, &ms) == PC_OK);
        if (i >= 0)
            times[i] = ms * 1e3 / CALLS;
    }
    pc_event_free(start);
    pc_event_free(end);
    pc_graph_free(graph);
    qsort(times, ROUNDS, sizeof *times, compare);
    return times[ROUNDS / 2];
}

static void listen(void *context, pc_log_level level, const char *line)
{
    (void)context, (void)level;
    by_cudnn |= strstr(line, ": cuDNN's way ") != NULL;
}

/* The choice comes with the first call, so only what cuDNN does is told under its name. */
static void tell(const char *name, void (*body)(layer *l), layer *l)
{
    printf("{\"bench\": \"convs.%s\", \"value\": %.5g, \"unit\": \"us\"}\n", name, microseconds(body, l));
    (void)pc_choice_set(PC_CHOICE_CUDNN);
    by_cudnn = false;
    PC_SCOPE
        body(l);
    if (by_cudnn)
        printf("{\"bench\": \"convs.%s.cudnn\", \"value\": %.5g, \"unit\": \"us\"}\n", name, microseconds(body, l));
    (void)pc_choice_set(PC_CHOICE_OWN);
    fflush(stdout);
}

static const struct shape {
    const char *name;
    int side, in, out, kernel, stride, padding, pool;
    bool planes, input; /* Flatten follows; the gradient of the input is wanted */
    int batches[2];
} shapes[] = {
    {"article", 64, 3, 32, 3, 3, 0, 2, true, false, {32, 512}},
    {"two-conv.1", 64, 3, 32, 3, 1, 0, 2, false, false, {32, 512}},
    {"two-conv.2", 31, 32, 64, 3, 1, 0, 2, true, true, {32, 512}},
    {"plain-3x3", 56, 128, 128, 3, 1, 1, 1, false, true, {32, 0}},
    {"plain-1x1", 56, 64, 256, 1, 1, 0, 1, false, true, {32, 0}},
    {"plain-64", 56, 64, 64, 3, 1, 1, 1, false, true, {4, 32}},
    {"plain-down", 56, 64, 128, 3, 2, 1, 1, false, true, {32, 0}},
    {"plain-256", 14, 256, 256, 3, 1, 1, 1, false, true, {4, 32}},
    {"plain-512", 7, 512, 512, 3, 1, 1, 1, false, true, {32, 0}},
    {"plain-1x1-1024", 14, 1024, 256, 1, 1, 0, 1, false, true, {32, 0}},
    {"plain-5x5", 28, 32, 64, 5, 1, 2, 1, false, true, {32, 0}},
    {"first-7x7", 224, 3, 64, 7, 2, 3, 1, false, false, {32, 0}},
    {"narrow-3x3", 28, 1, 32, 3, 1, 0, 2, false, false, {128, 0}},
};

static void measure(const struct shape *s, int batch, pc_dtype dtype, const char *kind)
{
    static const struct {
        const char *name;
        void (*body)(layer *l);
    } pieces[] = {{"forward", do_forward}, {"weights", do_weights}, {"input", do_input}};
    char name[96];
    bool any = false;
    for (int i = 0; i < 2 + s->input; i++) {
        snprintf(name, sizeof name, "%s.%d.%s.%s", s->name, batch, pieces[i].name, kind);
        any |= strstr(name, wanted) != NULL;
    }
    if (any)
        PC_SCOPE {
            layer l = {.a = {.spec = {.stride = {s->stride, s->stride},
                                      .padding = {s->padding, s->padding},
                                      .activation = PC_ACTIVATION_RELU,
                                      .pool = s->pool},
                             .wants_argmax = true,
                             .planes = s->planes}};
            l.x = pc__channels_last(pc_cast(pc_rand(PC_SHAPE(batch, s->in, s->side, s->side), PC_F32, device), dtype));
            l.weight = pc_cast(pc_randn(PC_SHAPE(s->out, s->in, s->kernel, s->kernel), PC_F32, device), dtype);
            l.bias = pc_cast(pc_randn(PC_SHAPE(s->out), PC_F32, device), dtype);
            check(l.x && l.weight && l.bias);
            pc_tensor *out[PC__OUT_MAX];
            check(pc__call_all(PC__OP_conv2d, (pc_tensor *[]){l.x, l.weight, l.bias}, 3, &l.a, sizeof l.a, out) ==
                  PC_OK);
            l.y[0] = out[0], l.y[1] = out[1];
            l.dy = pc_add(l.y[0], pc_rand(pc_shape_of(4, l.y[0]->shape), dtype, device));
            l.dy = s->planes ? pc_contiguous(l.dy) : pc__channels_last(l.dy);
            check(l.dy != NULL);
            for (int i = 0; i < 2 + s->input; i++) {
                snprintf(name, sizeof name, "%s.%d.%s.%s", s->name, batch, pieces[i].name, kind);
                if (!strstr(name, wanted))
                    continue;
                tell(name, pieces[i].body, &l);
            }
        }
}

/* --- training steps of networks of convolutions in mixed precision, as one graph --- */

typedef struct training {
    pc_module *net;
    pc_optimizer *adam;
    pc_tensor *x, *y;
} training;

static pc_status do_step(void *context)
{
    training *t = context;
    PC_SCOPE {
        pc_tensor *loss = NULL;
        PC_AUTOCAST(PC_BF16)
            loss = pc_bce_with_logits(pc_forward(t->net, t->x), t->y);
        check(pc_backward(loss) == PC_OK && pc_optimizer_step(t->adam) == PC_OK);
    }
    return PC_OK;
}

static void step(const char *network, int batch)
{
    char name[64];
    snprintf(name, sizeof name, "step.%s.%d.bf16", network, batch);
    if (!strstr(name, wanted))
        return;
    PC_SCOPE {
        training t = {.net = pc__arch_new(network, (pc__frame){64, 64, 3}, 1, PC_INIT_GLOROT)};
        check(t.net && pc_module_to(t.net, device, PC_F32) == PC_OK);
        t.adam = pc_adam(t.net, .lr = 1e-3);
        t.x = pc__channels_last(pc_rand(PC_SHAPE(batch, 3, 64, 64), PC_F32, device));
        t.y = pc_zeros(PC_SHAPE(batch, 1), PC_F32, device);
        pc_step *recorded = pc_step_new(do_step, &t, t.adam);
        pc_event *start = pc_event_new(device), *end = pc_event_new(device);
        double times[ROUNDS], ms;
        check(t.adam && t.x && t.y && recorded && start && end);
        for (int i = -3; i < ROUNDS; i++) {
            check(pc_event_record(start, NULL) == PC_OK);
            for (int k = 0; k < CALLS; k++)
                check(pc_step_run(recorded) == PC_OK);
            check(pc_event_record(end, NULL) == PC_OK && pc_event_elapsed(start, end, &ms) == PC_OK);
            if (i >= 0)
                times[i] = ms * 1e3 / CALLS;
        }
        qsort(times, ROUNDS, sizeof *times, compare);
        printf("{\"bench\": \"convs.%s\", \"value\": %.5g, \"unit\": \"us\"}\n", name, times[ROUNDS / 2]);
        fflush(stdout);
        pc_event_free(start);
        pc_event_free(end);
        pc_step_free(recorded);
        pc_optimizer_free(t.adam);
        pc_module_free(t.net);
    }
}

int main(int argc, char **argv)
{
    if (pc_device_parse(argc > 1 ? argv[1] : "cuda:0", &device) != PC_OK || pc_device_set_current(device) != PC_OK) {
        pc_report(stderr);
        return 0; /* nothing to measure here, and it has said why */
    }
    wanted = argc > 2 ? argv[2] : "";
    stream = pc_stream(device);
    check(stream && pc_stream_set_current(device, stream) == PC_OK);
    pc_log_set(listen, NULL, PC_LOG_DEBUG);
    (void)pc_choice_set(PC_CHOICE_OWN);
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (int b = 0; b < 2 && shapes[i].batches[b]; b++)
            for (int k = 0; k < 3; k++) {
                static const char *const kinds[] = {"f32", "tf32", "bf16"};
                (void)pc_matmul_precision_set(k == 1 ? PC_PRECISION_TF32 : PC_PRECISION_F32);
                measure(&shapes[i], shapes[i].batches[b], k == 2 ? PC_BF16 : PC_F32, kinds[k]);
            }
    (void)pc_matmul_precision_set(PC_PRECISION_F32);
    for (int batch = 32; batch <= 512; batch *= 16) {
        step("article", batch);
        step("two-conv", batch);
    }
    check(pc_stream_set_current(device, NULL) == PC_OK);
    pc_stream_free(stream);
    return 0;
}
