/* Mixed precision: how often parameters are cast, that recordings cast them together, and that this changes no bit. */
#include "channels_last.h"
#include "counted.h"
#include "networks.h"

#include <paracord/amp.h>
#include <paracord/ops.h>
#include <paracord/step.h>

static void assert_casts(casts got, int single, int lists)
{
    if (got.single != single || got.lists != lists)
        fail_msg("%d casts and %d of lists, want %d and %d", got.single, got.lists, single, lists);
}

enum { CONV, CONV_BIAS, CONV_2, CONV_2_BIAS, LINEAR, LINEAR_BIAS, LINEAR_2, LINEAR_2_BIAS, PARAMETERS };

typedef struct network {
    pc_module *net;
    pc_tensor *of[PARAMETERS];
    pc_tensor *x, *labels; /* of the scope */
} network;

/* Four layers with parameters. */
static network make(pc_dtype dtype)
{
    pc_seed(3);
    network n = {.net = on_device(pc_sequential(pc_conv2d(2, 4, 3, .activation = PC_ACTIVATION_RELU), pc_max_pool2d(2),
                                                pc_conv2d(4, 8, 3), pc_activation(PC_ACTIVATION_RELU), pc_flatten(),
                                                pc_linear(32, 8, .activation = PC_ACTIVATION_TANH), pc_linear(8, 3)))};
    pc_parameter list[PARAMETERS];
    assert_int_equal(pc_module_parameter_list(n.net, list, PARAMETERS), PARAMETERS);
    for (int i = 0; i < PARAMETERS; i++)
        n.of[i] = list[i].tensor;
    n.x = pc_cast(pc_randn(PC_SHAPE(5, 2, 10, 10), PC_F32, test_device()), dtype);
    n.labels = pc_from_data((int64_t[]){0, 1, 2, 0, 1}, PC_SHAPE(5), PC_I64, test_device());
    return n;
}

static casts of_forward(const network *n)
{
    start_timeline();
    assert_not_null_ok(pc_forward(n->net, n->x));
    return stop_counting();
}

/* Orders of memory alone: how many casts a forward pass makes that have nothing to do with dtypes. */
static int orders(void)
{
    casts forward = {0, 0};
    PC_SCOPE {
        network n = make(PC_F32);
        forward = of_forward(&n);
        pc_module_free(n.net);
    }
    assert_int_equal(forward.lists, 0);
    return forward.single;
}

static void casts_are_made_when_due(void **state)
{
    (void)state;
    const int plain = orders();
    PC_SCOPE {
        network n = make(PC_BF16);
        PC_AUTOCAST(PC_BF16) {
            assert_casts(of_forward(&n), plain + PARAMETERS, 0);
            assert_casts(of_forward(&n), plain, 0); /* they are kept */
            PC_NO_GRAD
                assert_ok(pc_fill(n.of[LINEAR], 1));
            assert_casts(of_forward(&n), plain + 1, 0); /* but not of what has changed */
            PC_NO_GRAD {
                assert_casts(of_forward(&n), plain + PARAMETERS, 0); /* without history */
                assert_ok(pc_fill(n.of[CONV], 1));
                assert_ok(pc_fill(n.of[CONV_2_BIAS], 1));
                assert_casts(of_forward(&n), plain + 2, 0);
            }
            assert_ok(pc_require_grad(n.of[CONV], false));
            assert_casts(of_forward(&n), plain + 2, 0); /* no parameter: for each use; and one has changed */
            assert_casts(of_forward(&n), plain + 1, 0);
            PC_AUTOCAST(PC_F32)
                assert_fails(pc_forward(n.net, n.x), PC_ERR_DTYPE, "conv2d");
            PC_AUTOCAST(PC_F16)
                assert_casts(of_forward(&n), plain + PARAMETERS + 1, 0); /* and x */
            assert_ok(pc_backward(pc_sum(pc_forward(n.net, n.x))));
            assert_casts(of_forward(&n), plain + PARAMETERS, 0); /* a backward lets those before go */
        }
        PC_AUTOCAST(PC_BF16)
            assert_casts(of_forward(&n), plain + PARAMETERS, 0);
        pc_module_free(n.net);
    }
    assert_nothing_left();
}

/* What the program may write by a pointer is cast for each use. */
static void pointers_change_parameters(void **state)
{
    (void)state;
    const int plain = orders();
    PC_SCOPE {
        network n = make(PC_BF16);
        assert_non_null(pc_device_pointer(n.of[LINEAR]));
        PC_AUTOCAST(PC_BF16) {
            assert_casts(of_forward(&n), plain + PARAMETERS, 0);
            assert_casts(of_forward(&n), plain + 1, 0);
        }
        pc_module_free(n.net);
    }
    assert_nothing_left();
}

/* A recording writes when it is launched. */
static void a_launch_changes_parameters(void **state)
{
    (void)state;
    const int plain = orders();
    PC_SCOPE {
        network n = make(PC_BF16);
        pc_stream *stream = pc_stream_current(test_device());
        pc_graph *graph = NULL;
        PC_NO_GRAD {
            assert_ok(pc_graph_begin(stream));
            assert_ok(pc_fill(n.of[LINEAR], 1));
            assert_not_null_ok(graph = pc_graph_end(stream));
        }
        PC_AUTOCAST(PC_BF16) {
            assert_casts(of_forward(&n), plain + PARAMETERS, 0);
            assert_casts(of_forward(&n), plain, 0);
            assert_ok(pc_graph_launch(graph, stream));
            assert_casts(of_forward(&n), plain + 1, 0);
        }
        pc_graph_free(graph);
        pc_module_free(n.net);
    }
    assert_nothing_left();
}

/* --- recordings --- */

typedef struct training {
    network n;
    pc_optimizer *sgd;
} training;

static pc_status train(void *user)
{
    const training *t = user;
    pc_status status = PC_OK;
    PC_SCOPE {
        pc_tensor *loss = NULL;
        PC_AUTOCAST(PC_BF16)
            loss = pc_cross_entropy(pc_forward(t->n.net, t->n.x), t->n.labels);
        status = loss ? pc_backward(loss) : pc_error_last()->status;
        if (status == PC_OK)
            status = pc_optimizer_step(t->sgd);
    }
    return status;
}

/* Three steps; the weights after them. */
static void train_for(bool recorded, pc_tensor *weights[PARAMETERS])
{
    training t = {.n = make(PC_BF16)};
    t.sgd = pc_sgd(t.n.net, .lr = 0.25);
    pc_step *step = recorded ? pc_step_new(train, &t, t.sgd) : NULL;
    for (int i = 0; i < 3; i++)
        assert_ok(step ? pc_step_run(step) : train(&t));
    if (step && pc_step_why(step))
        fail_msg("not recorded: %s", pc_step_why(step));
    pc_step_free(step);
    for (int i = 0; i < PARAMETERS; i++)
        assert_not_null_ok(weights[i] = pc_detach(t.n.of[i]));
    pc_optimizer_free(t.sgd);
    pc_module_free(t.n.net);
}

static void steps_have_the_bits_of_calls(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_tensor *called[PARAMETERS], *recorded[PARAMETERS];
        train_for(false, called);
        train_for(true, recorded);
        for (int i = 0; i < PARAMETERS; i++)
            assert_true(distance(recorded[i], called[i]) == 0);
    }
    assert_nothing_left();
}

/* In what is left of a plan. */
static casts of_plan(const pc_graph *graph)
{
    casts n = {0, 0};
    char *text = pc_graph_text(graph);
    assert_non_null(text);
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
        n.single += strstr(line, "  cast ") && !strstr(line, "taken out");
        n.lists += strstr(line, "  cast_many ") != NULL;
    }
    pc_text_free(text);
    return n;
}

/* A forward and a backward pass as a recording. */
static casts of_recording(pc_dtype pictures, pc_dtype products, bool channels_last)
{
    casts found = {0, 0};
    PC_SCOPE {
        network n = make(pictures);
        pc_stream *stream = pc_stream_current(test_device());
        if (channels_last)
            n.x = as_channels_last(n.x);
        assert_ok(pc_graph_begin(stream));
        PC_AUTOCAST(products)
            assert_ok(pc_backward(pc_cross_entropy(pc_forward(n.net, n.x), n.labels)));
        pc_graph *graph = pc_graph_end(stream);
        assert_not_null_ok(graph);
        found = of_plan(graph);
        pc_graph_free(graph);
        pc_module_free(n.net);
    }
    return found;
}

/* Forward the parameters are one list, channels-last pictures of float32 among them, and so are those gradients of the
 * backward pass that have 16 bits; the loss takes the logits and gives their gradient as they are. */
static void recordings_cast_lists(void **state)
{
    (void)state;
    if (getenv("PARACORD_PLAN"))
        skip();
    const casts plain = of_recording(PC_F32, PC_F32, false), last = of_recording(PC_F32, PC_F32, true);
    assert_int_equal(plain.lists + last.lists, 0);
    assert_casts(of_recording(PC_BF16, PC_BF16, false), plain.single, 2);
    assert_casts(of_recording(PC_F32, PC_BF16, true), last.single, 2);
    assert_nothing_left();
}

/* What a recording has cast is cast by its launches: nobody outside may take it, nor another recording. */
static void casts_of_a_recording_stay_in_it(void **state)
{
    (void)state;
    const int plain = orders();
    PC_SCOPE {
        network n = make(PC_BF16);
        pc_stream *stream = pc_stream_current(test_device());
        pc_graph *graphs[2];
        double sums[3];
        PC_AUTOCAST(PC_BF16)
            PC_NO_GRAD {
                pc_tensor *y[2], *before = pc_forward(n.net, n.x);
                for (int i = 0; i < 2; i++) {
                    assert_ok(pc_graph_begin(stream));
                    start_timeline();
                    y[i] = pc_forward(n.net, n.x);
                    assert_not_null_ok(pc_forward(n.net, n.x));
                    assert_casts(stop_counting(), 2 * plain + PARAMETERS, 0); /* kept, too */
                    assert_not_null_ok(graphs[i] = pc_graph_end(stream));
                }
                assert_true(distance(pc_forward(n.net, n.x), before) == 0);
                for (int i = 0; i < 2; i++) {
                    assert_ok(pc_graph_launch(graphs[i], stream));
                    assert_true(distance(y[i], before) == 0);
                }
                assert_ok(pc_fill(n.of[LINEAR_2], 0));
                assert_ok(pc_fill(n.of[LINEAR_2_BIAS], 2));
                for (int i = 0; i < 2; i++) {
                    assert_ok(pc_graph_launch(graphs[i], stream));
                    sums[i] = pc_item(pc_sum(y[i]));
                }
                sums[2] = pc_item(pc_sum(pc_forward(n.net, n.x)));
            }
        for (int i = 0; i < 3; i++)
            assert_close(sums[i], 30, 0);
        for (int i = 0; i < 2; i++)
            pc_graph_free(graphs[i]);
        pc_module_free(n.net);
    }
    assert_nothing_left();
}

int main(void)
{
    (void)pc_choice_set(PC_CHOICE_OWN); /* the same copies between orders of memory in every dtype */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(casts_are_made_when_due),     cmocka_unit_test(pointers_change_parameters),
        cmocka_unit_test(a_launch_changes_parameters), cmocka_unit_test(steps_have_the_bits_of_calls),
        cmocka_unit_test(recordings_cast_lists),       cmocka_unit_test(casts_of_a_recording_stay_in_it),
    };
    return cmocka_run_group_tests_name("nn.casts", tests, NULL, NULL);
}
