/* Mixed precision: how often parameters are cast, and that casting them together changes no bit. */
#include "counted.h"
#include "networks.h"

#include <paracord/amp.h>
#include <paracord/ops.h>
#include <paracord/step.h>

#define assert_casts(counted, want_single, want_lists)                                                                 \
    do {                                                                                                               \
        const casts got_ = (counted);                                                                                  \
        if (got_.single != (want_single) || got_.lists != (want_lists))                                                \
            fail_msg("%d casts and %d of lists, want %d and %d", got_.single, got_.lists, (want_single),               \
                     (want_lists));                                                                                    \
    } while (0)

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
    network n = {.net = on_device(pc_sequential(pc_conv2d(2, 4, 3, .activation = PC_RELU), pc_max_pool2d(2),
                                                pc_conv2d(4, 8, 3), pc_activation(PC_RELU), pc_flatten(),
                                                pc_linear(32, 8, .activation = PC_TANH), pc_linear(8, 3)))};
    pc_parameter list[PARAMETERS];
    assert_int_equal(pc_module_parameter_list(n.net, list, PARAMETERS), PARAMETERS);
    for (int i = 0; i < PARAMETERS; i++)
        n.of[i] = list[i].tensor;
    n.x = pc_cast(pc_randn(PC_SHAPE(5, 2, 10, 10), PC_F32, test_device()), dtype);
    n.labels = pc_from_data((int64_t[]){0, 1, 2, 0, 1}, PC_SHAPE(5), PC_I64, test_device());
    return n;
}

/* Orders of memory alone: how many casts a forward and a backward pass make that have nothing to do with dtypes. */
static void orders(casts *forward, casts *backward)
{
    PC_SCOPE {
        network n = make(PC_F32);
        start_timeline();
        pc_tensor *y = pc_forward(n.net, n.x);
        *forward = stop_counting();
        pc_tensor *loss = pc_cross_entropy(y, n.labels);
        start_timeline();
        assert_ok(pc_backward(loss));
        *backward = stop_counting();
        pc_module_free(n.net);
    }
}

/* Forward the parameters are one list, and so are those gradients of the backward pass that have 16 bits; the loss
 * takes the logits and gives their gradient as they are. */
static void one_list_a_pass(void **state)
{
    (void)state;
    casts forward, backward;
    orders(&forward, &backward);
    assert_int_equal(forward.lists + backward.lists, 0);
    PC_SCOPE {
        network n = make(PC_BF16);
        PC_AUTOCAST(PC_BF16) {
            start_timeline();
            pc_tensor *y = pc_forward(n.net, n.x);
            assert_casts(stop_counting(), forward.single, 1);
            start_timeline();
            pc_tensor *loss = pc_cross_entropy(y, n.labels);
            assert_ok(pc_backward(loss));
            assert_casts(stop_counting(), backward.single, 1);
        }
        pc_module_free(n.net);
    }
    assert_nothing_left();
}

/* Pictures of float32, channels last, as batches are. They come among the parameters' casts where there are any to be
 * made, have the bits of a cast of their own, and are cast anew for each forward pass. */
static void pictures_come_along(void **state)
{
    (void)state;
    casts forward, backward;
    orders(&forward, &backward);
    PC_SCOPE {
        network n = make(PC_F32);
        const int order = 1; /* make()'s pictures are in C order */
        pc_tensor *x = pc_permute(pc_contiguous(pc_permute(n.x, PC_SHAPE(0, 2, 3, 1))), PC_SHAPE(0, 3, 1, 2));
        pc_tensor *y[4] = {NULL};
        const int plain = forward.single - order;
        PC_AUTOCAST(PC_BF16) {
            y[0] = pc_forward(n.net, n.x);
            assert_ok(pc_backward(pc_cross_entropy(y[0], n.labels))); /* and forget the casts */
            start_timeline();
            assert_not_null_ok(y[1] = pc_forward(n.net, x));
            assert_casts(stop_counting(), plain, 1);
            start_timeline();
            assert_not_null_ok(y[2] = pc_forward(n.net, x));
            assert_casts(stop_counting(), plain + 1, 0);
            assert_ok(pc_fill(x, 0.5));
            assert_ok(pc_backward(pc_cross_entropy(y[2], n.labels)));
            start_timeline();
            assert_not_null_ok(y[3] = pc_forward(n.net, x));
            assert_casts(stop_counting(), plain, 1);
            assert_true(distance(y[1], y[0]) == 0);
            assert_true(distance(y[2], y[0]) == 0);
            assert_true(distance(y[3], y[0]) > 0);
        }
        pc_module_free(n.net);
    }
    assert_nothing_left();
}

/* A module of the program's own. */
static pc_tensor *no_product(pc_module *module, pc_tensor *x)
{
    (void)module;
    return pc_relu(x);
}

/* Where the first layer does not cast x as it is, nothing is cast for it ahead; nor does a failure leave a cast. */
static void others_stay_as_they_are(void **state)
{
    (void)state;
    static const pc_module_class own = {"Own", no_product, NULL, NULL};
    PC_SCOPE {
        pc_module *net =
            on_device(pc_sequential(pc_sequential(pc_linear(6, 4), pc_activation(PC_RELU)), pc_linear(4, 2)));
        pc_module *behind = on_device(pc_sequential(pc_module_new(&own, 0), pc_linear(6, 4), pc_linear(4, 2)));
        pc_tensor *x = pc_randn(PC_SHAPE(3, 6), PC_F32, test_device());
        pc_tensor *narrow = pc_randn(PC_SHAPE(3, 5), PC_F32, test_device());
        PC_AUTOCAST(PC_F16) {
            start_timeline();
            assert_not_null_ok(pc_forward(net, x));
            assert_casts(stop_counting(), 0, 1);
            start_timeline();
            assert_not_null_ok(pc_forward(behind, x));
            assert_casts(stop_counting(), 1, 1); /* what comes out of the first layer */
        }
        PC_AUTOCAST(PC_F16)
            assert_fails(pc_forward(net, narrow), PC_ERR_SHAPE, "linear");
        assert_ok(pc_require_grad(x, true));
        PC_AUTOCAST(PC_F16) {
            start_timeline();
            pc_tensor *y = pc_forward(net, x);
            assert_casts(stop_counting(), 1, 1);
            assert_ok(pc_backward(pc_sum(y)));
            assert_non_null(pc_grad(x));
        }
        pc_module_free(net);
        pc_module_free(behind);
    }
    assert_nothing_left();
}

static casts of_forward(const network *n)
{
    start_timeline();
    assert_not_null_ok(pc_forward(n->net, n->x));
    return stop_counting();
}

static void casts_are_made_when_due(void **state)
{
    (void)state;
    casts forward, backward;
    orders(&forward, &backward);
    const int plain = forward.single;
    PC_SCOPE {
        network n = make(PC_BF16);
        PC_AUTOCAST(PC_BF16) {
            assert_casts(of_forward(&n), plain, 1);
            assert_casts(of_forward(&n), plain, 0); /* they are kept */
            PC_NO_GRAD
                assert_ok(pc_fill(n.of[LINEAR], 1));
            assert_casts(of_forward(&n), plain + 1, 0); /* but not of what has changed */
            PC_NO_GRAD {
                assert_casts(of_forward(&n), plain, 1); /* without history */
                assert_ok(pc_fill(n.of[CONV], 1));
                assert_ok(pc_fill(n.of[CONV_2_BIAS], 1));
                assert_casts(of_forward(&n), plain, 1);
            }
            assert_ok(pc_require_grad(n.of[CONV], false));
            assert_casts(of_forward(&n), plain + 2, 0); /* no parameter: for each use; and one has changed */
            assert_casts(of_forward(&n), plain + 1, 0);
            PC_AUTOCAST(PC_F32)
                assert_fails(pc_forward(n.net, n.x), PC_ERR_DTYPE, "conv2d");
            PC_AUTOCAST(PC_F16)
                assert_casts(of_forward(&n), plain + 2, 1); /* x, and the frozen one */
            assert_ok(pc_backward(pc_sum(pc_forward(n.net, n.x))));
            assert_casts(of_forward(&n), plain + 1, 1); /* those before were gone through */
        }
        PC_AUTOCAST(PC_BF16)
            assert_casts(of_forward(&n), plain + 1, 1);
        pc_module_free(n.net);
    }
    assert_nothing_left();
}

/* A recording writes when it is launched. */
static void a_launch_changes_parameters(void **state)
{
    (void)state;
    casts forward, backward;
    orders(&forward, &backward);
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
            assert_casts(of_forward(&n), forward.single, 1);
            assert_casts(of_forward(&n), forward.single, 0);
            assert_ok(pc_graph_launch(graph, stream));
            assert_casts(of_forward(&n), forward.single + 1, 0);
        }
        pc_graph_free(graph);
        pc_module_free(n.net);
    }
    assert_nothing_left();
}

/* --- the same bits --- */

static void gradients_of(const network *n, pc_tensor *y, pc_tensor *gradients[PARAMETERS])
{
    assert_ok(pc_backward(pc_cross_entropy(y, n->labels)));
    for (int i = 0; i < PARAMETERS; i++) {
        assert_not_null_ok(gradients[i] = pc_clone(pc_grad(n->of[i])));
        pc_zero_grad(n->of[i]);
    }
}

/* Functional ops cast for themselves. */
static pc_tensor *by_ops(const network *n)
{
    pc_tensor *const *p = n->of;
    const pc_conv2d_spec spec = {.activation = PC_RELU};
    pc_tensor *h =
        pc_fn_max_pool2d(pc_fn_conv2d(n->x, p[CONV], p[CONV_BIAS], spec), (pc_pool2d_spec){.kernel = {2, 2}});
    h = pc_fn_conv2d(h, p[CONV_2], p[CONV_2_BIAS], spec);
    h = pc_fn_linear(pc_flatten_from(h, 1), p[LINEAR], p[LINEAR_BIAS], PC_TANH);
    return pc_fn_linear(h, p[LINEAR_2], p[LINEAR_2_BIAS], PC_NONE);
}

static void gradients_have_the_bits_of_single_casts(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++)
        PC_SCOPE {
            network n = make(PC_F32);
            pc_tensor *single[PARAMETERS], *together[PARAMETERS];
            PC_AUTOCAST(i ? PC_BF16 : PC_F16) {
                gradients_of(&n, by_ops(&n), single);
                gradients_of(&n, pc_forward(n.net, n.x), together);
            }
            for (int k = 0; k < PARAMETERS; k++) {
                assert_int_equal(pc_tensor_dtype(together[k]), PC_F32);
                assert_true(distance(together[k], single[k]) == 0);
            }
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
static void train_for(bool recorded, pc_tensor *weights[PARAMETERS], casts *second)
{
    training t = {.n = make(PC_BF16)};
    t.sgd = pc_sgd(t.n.net, .lr = 0.25);
    pc_step *step = recorded ? pc_step_new(train, &t, t.sgd) : NULL;
    for (int i = 0; i < 3; i++) {
        start_timeline();
        assert_ok(step ? pc_step_run(step) : train(&t));
        casts n = stop_counting();
        if (i == 1)
            *second = n; /* which makes the recording */
    }
    if (step && pc_step_why(step))
        fail_msg("not recorded: %s", pc_step_why(step));
    pc_step_free(step);
    for (int i = 0; i < PARAMETERS; i++)
        assert_not_null_ok(weights[i] = pc_detach(t.n.of[i]));
    pc_optimizer_free(t.sgd);
    pc_module_free(t.n.net);
}

static void recordings_cast_lists(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_tensor *plain[PARAMETERS], *recorded[PARAMETERS];
        casts of_plain, of_recorded;
        train_for(false, plain, &of_plain);
        train_for(true, recorded, &of_recorded);
        assert_int_equal(of_plain.lists, 2);
        assert_casts(of_recorded, of_plain.single, 2);
        for (int i = 0; i < PARAMETERS; i++)
            assert_true(distance(recorded[i], plain[i]) == 0);
    }
    assert_nothing_left();
}

/* What a recording has cast is cast by its launches: nobody outside may take it, nor another recording. */
static void casts_of_a_recording_stay_in_it(void **state)
{
    (void)state;
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
                    assert_int_equal(stop_counting().lists, 1);
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
    (void)pc_conv_choice_set(PC_CONV_OWN); /* the same copies between orders of memory in every dtype */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_list_a_pass),
        cmocka_unit_test(pictures_come_along),
        cmocka_unit_test(others_stay_as_they_are),
        cmocka_unit_test(casts_are_made_when_due),
        cmocka_unit_test(a_launch_changes_parameters),
        cmocka_unit_test(gradients_have_the_bits_of_single_casts),
        cmocka_unit_test(recordings_cast_lists),
        cmocka_unit_test(casts_of_a_recording_stay_in_it),
    };
    return cmocka_run_group_tests_name("nn.casts", tests, NULL, NULL);
}
