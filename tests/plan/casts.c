/* Which casts of a recording are done together, and that results have the bits of calls. */
#include "device.h"
#include "plans.h"

#include <paracord/ops.h>
#include <paracord/random.h>

enum { SIDE = 40, LAYERS = 3 };

typedef struct layers {
    pc_tensor *x, *weight[LAYERS], *gradient[LAYERS];
} layers;

static layers make_layers(void)
{
    layers l = {.x = pc_randn(PC_SHAPE(SIDE, SIDE), PC_F32, test_device())};
    for (int i = 0; i < LAYERS; i++)
        l.weight[i] = pc_randn(PC_SHAPE(SIDE, SIDE), PC_F32, test_device());
    return l;
}

/* Each layer casts its weight when it comes to it, and its gradient as soon as it is there; `between` is done behind the
 * first gradient. */
static void pass_through(layers *l, void (*between)(layers *l))
{
    pc_tensor *y[LAYERS + 1] = {pc_cast(l->x, PC_BF16)};
    for (int i = 0; i < LAYERS; i++)
        assert_not_null_ok(y[i + 1] = pc_softmax(pc_matmul(y[i], pc_cast(l->weight[i], PC_BF16)), 1));
    for (int i = LAYERS - 1; i >= 0; i--) {
        l->gradient[i] = pc_cast(pc_matmul(pc_transpose(y[i], 0, 1), y[LAYERS]), PC_F32);
        if (between && i == LAYERS - 1)
            between(l);
    }
    for (int i = 0; i < LAYERS; i++)
        assert_ok(pc_saxpy(l->weight[i], .125, l->gradient[i]));
}

static void assert_same_layers(const layers *a, const layers *b)
{
    static float x[SIDE * SIDE], y[SIDE * SIDE];
    for (int i = 0; i < LAYERS; i++) {
        assert_ok(pc_read(a->weight[i], x, sizeof x));
        assert_ok(pc_read(b->weight[i], y, sizeof y));
        assert_memory_equal(x, y, sizeof x);
    }
}

/* The plan of it says `words`, and its launches have the bits of calls. */
static void as_calls(void (*between)(layers *l), const char *words)
{
    PC_SCOPE {
        pc_seed(5);
        layers called = make_layers();
        pc_seed(5);
        layers recorded = make_layers();
        begin();
        PC_SCOPE {
            pass_through(&recorded, between);
        }
        pc_graph *graph = ended();
        if (!plain())
            says(graph, words);
        for (int i = 0; i < 2; i++) {
            PC_SCOPE {
                pass_through(&called, between);
            }
            assert_ok(pc_graph_launch(graph, NULL));
            assert_same_layers(&called, &recorded);
        }
        pc_graph_free(graph);
    }
    assert_no_leak();
}

static void write_a_gradient(layers *l)
{
    assert_ok(pc_saxpy(l->gradient[LAYERS - 1], .5, l->weight[0]));
}

static void write_a_weight(layers *l)
{
    assert_ok(pc_fill(l->weight[1], .5));
}

static void read_a_gradient(layers *l)
{
    assert_ok(pc_saxpy(l->weight[0], .5, l->gradient[LAYERS - 1]));
}

static void do_nothing(void *context)
{
    (void)context;
}

static void call_the_host(layers *l)
{
    (void)l;
    assert_ok(pc_stream_call(pc_stream_current(test_device()), do_nothing, NULL));
}

/* Four at the start, of weights and x; three at the end, of gradients. */
static void are_one_call(void **state)
{
    (void)state;
    as_calls(NULL, "5 into lists of casts");
    as_calls(write_a_weight, "5 into lists of casts");  /* which was cast before */
    as_calls(read_a_gradient, "4 into lists of casts"); /* the first one's must be there */
    as_calls(write_a_gradient, "4 into lists of casts");
    as_calls(call_the_host, "4 into lists of casts"); /* which may look at anything */
}

/* Not in front of what makes the contents. */
static void of_what_is_there(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_tensor *a = pc_ones(PC_SHAPE(SIDE, SIDE), PC_F32, test_device()),
                  *b = pc_zeros(PC_SHAPE(SIDE, SIDE), PC_F32, test_device()), *out = NULL;
        begin();
        PC_SCOPE {
            pc_tensor *left = pc_softmax(pc_cast(a, PC_F16), 1);
            assert_ok(pc_fill(b, 3));
            out = pc_tensor_retain(pc_matmul(left, pc_max_dim(pc_cast(b, PC_F16), 1, true, NULL)));
            assert_ok(pc_fill(b, 0));
        }
        pc_graph *graph = ended();
        for (int i = 0; i < 2; i++) {
            assert_ok(pc_graph_launch(graph, NULL));
            assert_close(pc_item(pc_max(out)), 3, .01);
        }
        pc_graph_free(graph);
        pc_tensor_free(out);
    }
    assert_no_leak();
}

/* What moves does not pass what moves too: the first cast here could be done with the third, the last with the second. */
static void of_casts(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_tensor *x = pc_full(PC_SHAPE(SIDE, SIDE), 3, PC_F32, test_device()), *out[4],
                  *y = pc_ones(PC_SHAPE(SIDE, 2), PC_BF16, test_device()); /* of another shape: no region has both */
        begin();
        PC_SCOPE {
            pc_tensor *narrow = pc_cast(x, PC_BF16), *rows = pc_softmax(pc_cast(y, PC_F32), 1);
            pc_tensor *other = pc_cast(rows, PC_BF16);
            pc_tensor *all[] = {rows, pc_softmax(other, 1), pc_softmax(narrow, 1),
                                pc_max_dim(pc_cast(narrow, PC_F32), 0, false, NULL)};
            for (int i = 0; i < 4; i++)
                out[i] = pc_tensor_retain(all[i]);
        }
        pc_graph *graph = ended();
        if (!plain())
            says(graph, "1 into lists of casts");
        assert_ok(pc_graph_launch(graph, NULL));
        assert_close(pc_item(pc_max(out[3])), 3, 0);
        for (int i = 0; i < 4; i++)
            pc_tensor_free(out[i]);
        pc_graph_free(graph);
    }
    assert_no_leak();
}

static void follow(pc_stream *stream, pc_stream *other)
{
    pc_event *event = pc_event_new(test_device());
    assert_ok(pc_event_record(event, other));
    assert_ok(pc_event_wait(event, stream));
    pc_event_free(event);
}

/* One stream's casts are no work of another one, and stay on their side of waits. */
static void and_streams(void **state)
{
    (void)state;
    if (test_device().type == PC_CPU)
        skip(); /* nothing waits there */
    PC_SCOPE {
        pc_stream *main = pc_stream(test_device()), *side = pc_stream(test_device());
        pc_tensor *x[4], *out[4];
        for (int i = 0; i < 4; i++)
            x[i] = pc_full(PC_SHAPE(SIDE, SIDE), 2 + i, PC_F32, test_device());
        assert_ok(pc_graph_begin(main));
        PC_SCOPE {
            pc_tensor *narrow[4];
            follow(side, main);
            PC_WITH_STREAM(side) {
                narrow[0] = pc_cast(x[0], PC_BF16);
            }
            PC_WITH_STREAM(main) {
                narrow[1] = pc_cast(x[1], PC_BF16);
                follow(side, main);
                assert_ok(pc_fill(x[2], 3));
                narrow[2] = pc_cast(x[2], PC_BF16);
                out[2] = pc_tensor_retain(pc_softmax(narrow[2], 1));
                follow(main, side);
                narrow[3] = pc_cast(x[3], PC_BF16);
                for (int i = 0; i < 4; i++)
                    if (i != 2)
                        out[i] = pc_tensor_retain(pc_softmax(narrow[i], 1));
            }
        }
        pc_graph *graph = pc_graph_end(main);
        assert_not_null_ok(graph);
        if (!plain())
            says(graph, "0 into lists of casts");
        assert_ok(pc_graph_launch(graph, main));
        for (int i = 0; i < 4; i++) {
            assert_close(pc_item(pc_max(out[i])), 1. / SIDE, 1e-3);
            pc_tensor_free(out[i]);
        }
        pc_graph_free(graph);
        pc_stream_free(main);
        pc_stream_free(side);
    }
    assert_no_leak();
}

/* Of one pair of dtypes, and of what is dense. */
static void of_a_kind(void **state)
{
    (void)state;
    PC_SCOPE {
        static const pc_dtype from[] = {PC_F32, PC_F16, PC_BF16, PC_F32, PC_F32};
        pc_tensor *x[5], *out[5];
        for (int i = 0; i < 5; i++)
            x[i] = pc_full(PC_SHAPE(SIDE, SIDE + i), 3, from[i], test_device());
        begin();
        PC_SCOPE {
            pc_tensor *casts[] = {pc_cast(x[0], PC_F16), pc_cast(x[1], PC_F32), pc_cast(x[2], PC_F32),
                                  pc_cast(pc_slice(x[3], 1, 0, SIDE, 2), PC_F16), pc_cast(x[4], PC_BF16)};
            for (int i = 0; i < 5; i++)
                out[i] = pc_tensor_retain(pc_sum(casts[i]));
        }
        pc_graph *graph = ended();
        if (!plain())
            says(graph, "0 into lists of casts");
        assert_ok(pc_graph_launch(graph, NULL));
        for (int i = 0; i < 5; i++) {
            assert_close(pc_item(out[i]), 3 * SIDE * (i == 3 ? SIDE / 2 : SIDE + i), 16);
            pc_tensor_free(out[i]);
        }
        pc_graph_free(graph);
    }
    assert_no_leak();
}

/* Two tensors of one memory of the program's. */
static void under_two_names(void **state)
{
    (void)state;
    static float numbers[SIDE];
    only_on_the_cpu();
    PC_SCOPE {
        pc_tensor *a = pc_from_memory(numbers, PC_SHAPE(SIDE), PC_F32, NULL, NULL),
                  *b = pc_from_memory(numbers, PC_SHAPE(SIDE), PC_F32, NULL, NULL),
                  *other = pc_ones(PC_SHAPE(SIDE), PC_F32, test_device());
        assert_ok(pc_fill(a, 5));
        begin();
        pc_tensor *narrow = pc_cast(a, PC_BF16);
        assert_ok(pc_fill(b, 7));
        pc_tensor *late = pc_cast(other, PC_BF16);
        pc_graph *graph = ended();
        assert_ok(pc_graph_launch(graph, NULL));
        assert_close(pc_item(pc_max(narrow)), 5, 0);
        assert_close(pc_item(pc_max(late)), 1, 0);
        pc_graph_free(graph);
    }
    assert_no_leak();
}

/* Of two casts into one memory, between which a third one stands, the later one's value stays. */
static void into_one_memory(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_tensor *x[3], *both = pc_zeros(PC_SHAPE(SIDE), PC_F16, test_device()),
                         *most = pc_zeros(PC_SHAPE_SCALAR, PC_F16, test_device());
        for (int i = 0; i < 3; i++)
            x[i] = pc_full(PC_SHAPE(SIDE), 1 + i, PC_F32, test_device());
        begin();
        PC_SCOPE {
            assert_ok(pc_copy(both, pc_cast(x[0], PC_F16)));
            pc_tensor *narrow = pc_cast(x[1], PC_F16);
            assert_ok(pc_copy(both, pc_cast(x[2], PC_F16)));
            assert_ok(pc_copy(most, pc_max(narrow)));
        }
        pc_graph *graph = ended();
        if (!plain())
            says(graph, "1 into lists of casts");
        assert_ok(pc_graph_launch(graph, NULL));
        assert_close(pc_item(pc_max(both)), 3, 0);
        assert_close(pc_item(most), 2, 0);
        pc_graph_free(graph);
    }
    assert_no_leak();
}

/* What casts of two kinds did to one memory: the value that calls leave. Each kind has another cast that it goes with. */
static void check_order(pc_dtype first, pc_dtype memory, pc_dtype last, bool reads)
{
    PC_SCOPE {
        pc_tensor *x = pc_full(PC_SHAPE(SIDE), 1, first, test_device()),
                  *z = pc_full(PC_SHAPE(SIDE), 9, last, test_device()),
                  *h = pc_full(PC_SHAPE(SIDE), 2, last, test_device()),
                  *k = pc_full(PC_SHAPE(SIDE), 3, reads ? memory : first, test_device()),
                  *both = pc_full(PC_SHAPE(SIDE), 1, memory, test_device()), *left[3];
        for (int i = 0; i < 3; i++)
            left[i] = pc_zeros(PC_SHAPE_SCALAR, PC_F32, test_device());
        begin();
        PC_SCOPE {
            pc_tensor *y = reads ? pc_cast(both, first) : NULL;
            if (!reads)
                assert_ok(pc_copy(both, pc_cast(x, memory)));
            pc_tensor *f = pc_cast(h, memory), *c = pc_cast(k, reads ? first : memory);
            assert_ok(pc_copy(left[0], pc_cast(pc_max(c), PC_F32)));
            assert_ok(pc_copy(left[1], pc_cast(pc_max(f), PC_F32)));
            assert_ok(pc_copy(both, pc_cast(z, memory)));
            if (reads)
                assert_ok(pc_copy(left[2], pc_cast(pc_max(y), PC_F32)));
        }
        pc_graph *graph = ended();
        assert_ok(pc_graph_launch(graph, NULL));
        assert_close(pc_item(pc_max(both)), 9, 0);
        assert_close(pc_item(left[0]), 3, 0);
        assert_close(pc_item(left[1]), 2, 0);
        if (reads)
            assert_close(pc_item(left[2]), 1, 0);
        pc_graph_free(graph);
    }
}

static void of_two_kinds_keep_their_order(void **state)
{
    (void)state;
    check_order(PC_F16, PC_F32, PC_BF16, false);
    check_order(PC_F16, PC_F32, PC_F16, true);
    check_order(PC_BF16, PC_F32, PC_F16, true);
    check_order(PC_F32, PC_BF16, PC_F32, true);
    assert_no_leak();
}

/* A cast that a region does costs nothing. */
static void of_regions_stay_there(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_tensor *x[2], *out[2];
        for (int i = 0; i < 2; i++)
            x[i] = pc_full(PC_SHAPE(SIDE + i), .5, PC_F32, test_device());
        begin();
        for (int i = 0; i < 2; i++)
            PC_SCOPE {
                out[i] = pc_tensor_retain(pc_gelu(pc_cast(x[i], PC_BF16)));
            }
        pc_graph *graph = ended();
        if (!plain())
            says(graph, "2 into regions, 0 into lists of casts");
        pc_graph_free(graph);
        for (int i = 0; i < 2; i++)
            pc_tensor_free(out[i]);
    }
    assert_no_leak();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(are_one_call),    cmocka_unit_test(of_what_is_there),
        cmocka_unit_test(of_casts),        cmocka_unit_test(of_regions_stay_there),
        cmocka_unit_test(into_one_memory), cmocka_unit_test(of_two_kinds_keep_their_order),
        cmocka_unit_test(and_streams),     cmocka_unit_test(of_a_kind),
        cmocka_unit_test(under_two_names),
    };
    return cmocka_run_group_tests_name("plan.casts", tests, NULL, NULL);
}
