/* bandwidth: ops of any shape that are as fast as memory where their kernels are: pooling, reductions, softmax, losses,
 * changes of memory order.
 * Usage: bandwidth [device, cuda:0 unless given] [small: shrink everything, to try the program itself] [only those whose
 * name has this, such as pool]
 * One JSON line a measurement: microseconds, median of several, of recordings where they can be recorded; and the bytes
 * that it must move at least. bench/peers/bandwidth.py runs it beside PyTorch.
 */
#include <paracord.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 11, AT_ONCE = 5 };

static pc_device device;
static int64_t scale = 1; /* what sizes are divided by */
static const char *wanted = "";

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

/* What a case works on. `x` collects gradients where the case goes backward, `g` is that of its result. */
typedef struct work {
    pc_tensor *x, *y, *g;
} work;

typedef pc_tensor *(*forward_fn)(const work *w);

typedef struct run {
    const work *w;
    forward_fn forward;
    bool backward;
} run;

/* `kept`, unless NULL: references to the result and to x's gradient. */
static void once(const run *r, pc_tensor *kept[2])
{
    PC_SCOPE {
        pc_tensor *y = NULL;
        if (r->backward) {
            y = r->forward(r->w);
            check(y && (r->w->g ? pc_backward_with(y, r->w->g) : pc_backward(y)) == PC_OK);
            if (kept)
                kept[1] = pc_tensor_retain(pc_grad(r->w->x));
            pc_zero_grad(r->w->x);
        } else {
            PC_NO_GRAD {
                y = r->forward(r->w);
            }
        }
        check(y != NULL);
        if (kept)
            kept[0] = pc_tensor_retain(y);
    }
}

/* A go, recorded; NULL where that cannot be. Results for nobody would be left out. */
static pc_graph *recorded(const run *r, pc_stream *stream)
{
    pc_graph *graph = NULL;
    pc_tensor *kept[2] = {NULL};
    check(pc_stream_set_current(device, stream) == PC_OK);
    once(r, NULL);
    check(pc_stream_synchronize(stream) == PC_OK);
    if (pc_graph_begin(stream) == PC_OK) {
        once(r, kept);
        graph = pc_graph_end(stream);
        for (int i = 0; i < 2; i++)
            pc_tensor_free(kept[i]);
    }
    if (!graph)
        fprintf(stderr, "not recorded: %s\n", pc_error_last()->message);
    pc_error_clear();
    check(pc_stream_set_current(device, NULL) == PC_OK);
    return graph;
}

static double seconds_of(const run *r)
{
    double seconds[ROUNDS], ms;
    pc_stream *stream = pc_stream(device);
    pc_event *start = pc_event_new(device), *end = pc_event_new(device);
    check(stream && start && end);
    pc_graph *graph = recorded(r, stream);
    for (int i = -2; i < ROUNDS; i++) {
        check(pc_event_record(start, graph ? stream : NULL) == PC_OK);
        for (int k = 0; k < AT_ONCE; k++)
            if (graph)
                check(pc_graph_launch(graph, stream) == PC_OK);
            else
                once(r, NULL);
        check(pc_event_record(end, graph ? stream : NULL) == PC_OK && pc_event_elapsed(start, end, &ms) == PC_OK);
        if (i >= 0)
            seconds[i] = ms * 1e-3 / AT_ONCE;
    }
    pc_graph_free(graph);
    pc_event_free(start);
    pc_event_free(end);
    pc_stream_free(stream);
    qsort(seconds, ROUNDS, sizeof *seconds, compare);
    return seconds[ROUNDS / 2];
}

/* --- the cases --- */

static pc_tensor *do_max_pool(const work *w)
{
    return pc_fn_max_pool2d(w->x, (pc_fn_pool2d_options){.kernel = {3, 3}, .stride = {2, 2}, .padding = {1, 1}});
}

static pc_tensor *do_mean_pictures(const work *w)
{
    return pc_mean_dims(w->x, PC_SHAPE(0, 2, 3), false);
}

static pc_tensor *do_sum_rows(const work *w)
{
    return pc_sum_dims(w->x, PC_SHAPE(-1), false);
}

static pc_tensor *do_sum_columns(const work *w)
{
    return pc_sum_dims(w->x, PC_SHAPE(0), false);
}

static pc_tensor *do_sum_middle(const work *w)
{
    return pc_sum_dims(w->x, PC_SHAPE(1), false);
}

static pc_tensor *do_sum_outside(const work *w)
{
    return pc_sum_dims(w->x, PC_SHAPE(0, 2), false);
}

static pc_tensor *do_argmax(const work *w)
{
    return pc_argmax(w->x, -1, false);
}

static pc_tensor *do_softmax(const work *w)
{
    return pc_softmax(w->x, -1);
}

static pc_tensor *do_log_softmax(const work *w)
{
    return pc_log_softmax(w->x, -1);
}

static pc_tensor *do_log_softmax1(const work *w)
{
    return pc_log_softmax(w->x, 1);
}

static pc_tensor *do_cross_entropy(const work *w)
{
    return pc_cross_entropy(w->x, w->y);
}

static pc_tensor *do_add_turned(const work *w)
{
    return pc_add(w->y, pc_transpose(w->x, 0, 1));
}

static pc_tensor *do_contiguous(const work *w)
{
    return pc_contiguous(w->x);
}

enum order { PLAIN, LAST, TURNED };     /* x in C order; channels last; its two dimensions exchanged */
enum backwards { NEVER, GIVEN, ALONE }; /* no gradient; for one that is given; of a single number */

typedef struct a_case {
    const char *name;
    forward_fn forward;
    pc_shape shape;
    enum order order;
    int reads;      /* bytes forward for 8 elements of x, in elements: 8 is x itself */
    int writes;     /* the same of what is written */
    int more_bytes; /* forward, for 8 elements of x, whatever the dtype */
    int both;       /* elements for 8 of x that going backward moves besides; 0: not measured */
    int more_both;  /* bytes the same way */
    enum backwards backwards;
    bool labels, other; /* y is a label for each row; or like x */
} a_case;

#define OF(...)                                                                                                        \
    {                                                                                                                  \
        .ndim = sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), .dim = { __VA_ARGS__ }                             \
    }
#define PICTURES OF(64, 64, 112, 112)
static const a_case cases[] = {
    {"maxpool3x3s2.nchw", do_max_pool, PICTURES, PLAIN, 8, 2, 8, 10, 8, GIVEN, false, false},
    {"maxpool3x3s2.nhwc", do_max_pool, PICTURES, LAST, 8, 2, 8, 10, 8, GIVEN, false, false},
    {"mean_nhw.nchw", do_mean_pictures, PICTURES, PLAIN, 8, 0, 0, 0, 0, NEVER, false, false},
    {"mean_nhw.nhwc", do_mean_pictures, PICTURES, LAST, 8, 0, 0, 0, 0, NEVER, false, false},
    {"sum_rows1000", do_sum_rows, OF(131072, 1000), PLAIN, 8, 0, 0, 0, 0, NEVER, false, false},
    {"sum_rows50257", do_sum_rows, OF(4096, 50257), PLAIN, 8, 0, 0, 0, 0, NEVER, false, false},
    {"sum_columns", do_sum_columns, OF(131072, 1000), PLAIN, 8, 0, 0, 0, 0, NEVER, false, false},
    {"sum_middle", do_sum_middle, OF(256, 1000, 512), PLAIN, 8, 0, 0, 0, 0, NEVER, false, false},
    {"sum_outside", do_sum_outside, OF(256, 1000, 512), PLAIN, 8, 0, 0, 0, 0, NEVER, false, false},
    {"argmax1000", do_argmax, OF(131072, 1000), PLAIN, 8, 0, 0, 0, 0, NEVER, false, false},
    {"argmax50257", do_argmax, OF(4096, 50257), PLAIN, 8, 0, 0, 0, 0, NEVER, false, false},
    {"softmax64", do_softmax, OF(2097152, 64), PLAIN, 8, 8, 0, 24, 0, GIVEN, false, false},
    {"softmax256", do_softmax, OF(524288, 256), PLAIN, 8, 8, 0, 24, 0, GIVEN, false, false},
    {"softmax1000", do_softmax, OF(131072, 1000), PLAIN, 8, 8, 0, 24, 0, GIVEN, false, false},
    {"softmax1001", do_softmax, OF(131072, 1001), PLAIN, 8, 8, 0, 24, 0, GIVEN, false, false},
    {"log_softmax50257", do_log_softmax, OF(4096, 50257), PLAIN, 8, 8, 0, 24, 0, GIVEN, false, false},
    {"log_softmax.dim1", do_log_softmax1, OF(64, 256, 56, 56), PLAIN, 8, 8, 0, 24, 0, GIVEN, false, false},
    {"cross_entropy1000", do_cross_entropy, OF(131072, 1000), PLAIN, 8, 0, 0, 16, 0, ALONE, true, false},
    {"cross_entropy50257", do_cross_entropy, OF(4096, 50257), PLAIN, 8, 0, 0, 16, 0, ALONE, true, false},
    {"add_turned", do_add_turned, OF(8192, 16384), PLAIN, 16, 8, 0, 0, 0, NEVER, false, true},
    {"copy_turned", do_contiguous, OF(8192, 16384), TURNED, 8, 8, 0, 0, 0, NEVER, false, false},
    {"copy_nhwc_to_nchw", do_contiguous, PICTURES, LAST, 8, 8, 0, 0, 0, NEVER, false, false},
};

static pc_tensor *fresh(const a_case *c, pc_dtype dtype, pc_shape shape)
{
    pc_tensor *t = pc_randn(shape, PC_F32, device);
    if (c->order == LAST)
        t = pc_permute(pc_contiguous(pc_permute(t, PC_SHAPE(0, 2, 3, 1))), PC_SHAPE(0, 3, 1, 2));
    t = pc_cast(t, dtype);
    return c->order == TURNED ? pc_transpose(t, 0, 1) : t;
}

static void report(const a_case *c, const char *way, pc_dtype dtype, double seconds, double bytes)
{
    printf("{\"bench\": \"bandwidth.%s.%s.%s\", \"value\": %.6g, \"unit\": \"us\", \"bytes\": %.0f}\n", c->name, way,
           pc_dtype_name(dtype), seconds * 1e6, bytes);
    fflush(stdout);
}

static void measure(const a_case *c, pc_dtype dtype)
{
    pc_shape shape = c->shape;
    shape.dim[0] = shape.dim[0] > scale ? shape.dim[0] / scale : 1;
    PC_SCOPE {
        work w = {.x = pc_detach(fresh(c, dtype, shape))};
        if (c->labels)
            w.y = pc_zeros(PC_SHAPE(shape.dim[0]), PC_I64, device);
        if (c->other)
            w.y = fresh(c, dtype, PC_SHAPE(shape.dim[1], shape.dim[0]));
        const double eighths = (double)pc_tensor_count(w.x) / 8, size = (double)pc_dtype_size(dtype);
        double bytes = eighths * ((c->reads + c->writes) * size + c->more_bytes);
        report(c, "forward", dtype, seconds_of(&(run){&w, c->forward, false}), bytes);
        if (c->backwards != NEVER) {
            check(pc_require_grad(w.x, true) == PC_OK);
            if (c->backwards == GIVEN)
                w.g = pc_clone(pc_detach(c->forward(&w)));
            bytes += eighths * (c->both * size + c->more_both);
            report(c, "both", dtype, seconds_of(&(run){&w, c->forward, true}), bytes);
        }
    }
    check(pc_memory_trim(device) == PC_OK);
}

int main(int argc, char **argv)
{
    static const pc_dtype dtypes[] = {PC_F32, PC_BF16, PC_F16};
    const char *name = argc > 1 ? argv[1] : "cuda:0";
    if (pc_device_parse(name, &device) != PC_OK || pc_device_set_current(device) != PC_OK) {
        pc_report(stderr);
        return 0; /* nothing to measure here, and it has said why */
    }
    if (argc > 2 && strcmp(argv[2], "small") == 0)
        scale = 1024;
    else if (argc > 2)
        wanted = argv[2];
    wanted = argc > 3 ? argv[3] : wanted;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int d = 0; d < 3; d++)
            if (strstr(cases[i].name, wanted))
                measure(&cases[i], dtypes[d]);
    return 0;
}
