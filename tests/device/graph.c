/* Recorded work: a training step, launched again and again. PARACORD_TEST_DEVICE picks the device; cpu unless set. */
#include "device.h"

#include <paracord/autograd.h>
#include <paracord/memory.h>
#include <paracord/ops.h>
#include <paracord/random.h>
#include <paracord/stream.h>
#include <stdlib.h>

enum { STEPS = 12 };

/* A small fit: weights, a picture batch, and buffers that live outside of the recording. */
typedef struct fit {
    pc_tensor *x, *y, *kernel, *bias, *weight, *loss;
} fit;

static pc_tensor *parameter(pc_tensor *t)
{
    assert_ok(pc_require_grad(t, true));
    return t;
}

static fit fit_new(void)
{
    pc_seed(9);
    return (fit){.x = pc_randn(PC_SHAPE(4, 1, 6, 6), PC_F32, test_device()),
                 .y = pc_from_data((float[]){0, 1, 1, 0}, PC_SHAPE(4, 1), PC_F32, test_device()),
                 .kernel = parameter(pc_randn(PC_SHAPE(3, 1, 3, 3), PC_F32, test_device())),
                 .bias = parameter(pc_zeros(PC_SHAPE(3), PC_F32, test_device())),
                 .weight = parameter(pc_randn(PC_SHAPE(1, 12), PC_F32, test_device())),
                 .loss = pc_zeros(PC_SHAPE_SCALAR, PC_F32, test_device())};
}

static void step(const fit *f)
{
    PC_SCOPE {
        pc_fn_conv2d_options spec = {.activation = PC_ACTIVATION_RELU, .pool = 2};
        pc_tensor *h = pc_flatten_from(pc_fn_conv2d(f->x, f->kernel, f->bias, spec), 1);
        pc_tensor *loss = pc_bce_with_logits(pc_fn_linear(h, f->weight, NULL, PC_ACTIVATION_NONE), f->y);
        assert_ok(pc_backward(loss));
        assert_ok(pc_copy(f->loss, pc_detach(loss)));
        pc_tensor *parameters[] = {f->kernel, f->bias, f->weight};
        PC_NO_GRAD {
            for (int i = 0; i < 3; i++) {
                assert_ok(pc_saxpy(parameters[i], -0.5, pc_grad(parameters[i])));
                pc_zero_grad(parameters[i]);
            }
        }
    }
}

static int count_of(const char *text, const char *words)
{
    int n = 0;
    for (; (text = strstr(text, words)); text++)
        n++;
    return n;
}

/* Gradients are taken as they are, though the recording holds their memory too. */
static void recorded_steps_copy_no_gradients(void **state)
{
    (void)state;
    PC_SCOPE {
        fit f = fit_new();
        step(&f);
        assert_ok(pc_graph_begin(pc_stream_current(test_device())));
        step(&f);
        pc_graph *graph = pc_graph_end(pc_stream_current(test_device()));
        assert_not_null_ok(graph);
        char *text = pc_graph_text(graph);
        assert_not_null_ok(text);
        assert_int_equal(count_of(text, " copy "), 1); /* of the loss */
        assert_int_equal(count_of(text, " saxpy "), 3);
        pc_text_free(text);
        assert_ok(pc_graph_launch(graph, NULL));
        pc_graph_free(graph);
    }
}

static void launches_repeat_the_step(void **state)
{
    (void)state;
    double want[STEPS];
    PC_SCOPE {
        fit f = fit_new();
        for (int i = 0; i < STEPS; i++) {
            step(&f);
            want[i] = pc_item(f.loss);
        }
    }
    assert_true(want[STEPS - 1] < want[0]);
    PC_SCOPE {
        fit f = fit_new();
        pc_stream *stream = pc_stream(test_device());
        assert_ok(pc_stream_set_current(test_device(), stream));
        assert_ok(pc_graph_begin(stream));
        step(&f);
        pc_graph *graph = pc_graph_end(stream);
        assert_not_null_ok(graph);
        assert_close(pc_item(f.loss), 0, 0); /* nothing ran yet */
        for (int i = 0; i < STEPS; i++) {
            assert_ok(pc_graph_launch(graph, i % 2 ? NULL : stream));
            assert_close(pc_item(f.loss), want[i], 0);
        }
        pc_graph_free(graph);
        assert_ok(pc_stream_set_current(test_device(), NULL));
        pc_stream_free(stream);
    }
    assert_ok(pc_memory_trim(test_device()));
    assert_int_equal(test_memory().in_use, 0);
}

/* Its launch gives the values that a backward pass needs; another one changes them. */
static void a_forward_pass_alone(void **state)
{
    (void)state;
    for (int launches = 1; launches < 3; launches++)
        PC_SCOPE {
            pc_tensor *x = parameter(pc_zeros(PC_SHAPE(3), PC_F32, test_device()));
            pc_stream *stream = pc_stream_current(test_device());
            assert_ok(pc_graph_begin(stream));
            pc_tensor *y = pc_sum(pc_exp(x));
            pc_graph *graph = pc_graph_end(stream);
            assert_not_null_ok(graph);
            for (int i = 0; i < launches; i++)
                assert_ok(pc_graph_launch(graph, NULL));
            if (launches == 1) {
                assert_ok(pc_backward(y));
                assert_close(pc_item(pc_sum(pc_grad(x))), 3, 0);
            } else {
                assert_fails(pc_backward(y), PC_ERR_STATE, "changed");
            }
            pc_graph_free(graph);
        }
}

/* New inputs are written into the tensors that the graph holds. */
static void inputs_change_between_launches(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_tensor *x = pc_zeros(PC_SHAPE(3), PC_F32, test_device()), *y = pc_zeros(PC_SHAPE(3), PC_F32, test_device());
        pc_stream *stream = pc_stream_current(test_device());
        assert_ok(pc_graph_begin(stream));
        PC_SCOPE {
            assert_ok(pc_copy(y, pc_exp(pc_mul(x, pc_full(PC_SHAPE(3), 2, PC_F32, test_device())))));
        }
        pc_graph *graph = pc_graph_end(stream);
        for (int i = 0; i < 4; i++) {
            assert_ok(pc_fill(x, i * 0.5));
            PC_SCOPE {
                /* would land in the graph's memory, were it free */
                assert_not_null_ok(pc_full(PC_SHAPE(3), 99, PC_F32, test_device()));
            }
            assert_ok(pc_graph_launch(graph, NULL));
            const double want[] = {1, 2.718281828, 7.389056099, 20.085536923};
            assert_close(pc_item(pc_max(y)), want[i], 1e-5);
        }
        pc_graph_free(graph);
    }
}

/* Nobody ever computes what a refused recording was to make, and nobody takes its memory for a result. */
static void refused_results_stay_without_contents(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_tensor *x = pc_ones(PC_SHAPE(3), PC_F32, test_device());
        float host[3];
        assert_ok(pc_graph_begin(pc_stream_current(test_device())));
        pc_tensor *y = pc_add(x, x);
        assert_fails(pc_read(y, host, sizeof host), PC_ERR_STATE, "being recorded");
        assert_fails(pc_graph_end(pc_stream_current(test_device())), PC_ERR_STATE, "not complete");
        assert_fails(pc_read(y, host, sizeof host), PC_ERR_STATE, "no result until all of it is written again");
        assert_fails(pc_item(pc_sum(y)), PC_ERR_STATE, "no result");
        assert_close(pc_item(pc_sum(x)), 3, 0);
        assert_ok(pc_fill(y, 2));
        assert_close(pc_item(pc_sum(y)), 6, 0);
    }
}

/* Gradients are those from before the recording: the ones that it took away, added to, or made. */
static void refused_gradients_are_put_back(void **state)
{
    (void)state;
    for (int dropped = 0; dropped < 2; dropped++)
        PC_SCOPE {
            pc_tensor *old = parameter(pc_ones(PC_SHAPE(3), PC_F32, test_device()));
            pc_tensor *added = parameter(pc_ones(PC_SHAPE(3), PC_F32, test_device()));
            pc_tensor *new = parameter(pc_ones(PC_SHAPE(3), PC_F32, test_device()));
            assert_ok(pc_backward(pc_sum(pc_add(old, added))));
            const pc_tensor *before[] = {pc_grad(old), pc_grad(added)};
            pc_stream *stream = pc_stream(test_device());
            PC_WITH_STREAM(stream) {
                assert_ok(pc_graph_begin(stream));
                pc_zero_grad(old);
                for (int i = 0; i < 2; i++)
                    assert_ok(pc_backward(pc_sum(pc_mul(pc_mul(old, added), new))));
                pc_zero_grad(old);
                pc_zero_grad(new);
                assert_ok(pc_backward(pc_sum(pc_mul(old, new))));
                if (!dropped) {
                    assert_fails(pc_stream_synchronize(stream), PC_ERR_STATE, "being recorded");
                    assert_fails(pc_graph_end(stream), PC_ERR_STATE, "not complete");
                }
            }
            pc_stream_free(stream);
            assert_ptr_equal(pc_grad(old), before[0]);
            assert_ptr_equal(pc_grad(added), before[1]);
            assert_null(pc_grad(new));
            assert_ok(pc_backward(pc_sum(pc_mul(pc_mul(old, added), new))));
            assert_close(pc_item(pc_sum(pc_grad(old))), 6, 0);
            assert_close(pc_item(pc_sum(pc_grad(added))), 6, 0);
            assert_close(pc_item(pc_sum(pc_grad(new))), 3, 0);
        }
}

/* What was computed before has its gradient: nothing of the recording has written. What was computed in it has none, as often
 * as there is one, and whatever is written later. */
static void refused_writes_change_no_versions(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_tensor *w = parameter(pc_ones(PC_SHAPE(3), PC_F32, test_device()));
        pc_tensor *x = pc_full(PC_SHAPE(3), 2, PC_F32, test_device()), *inside[2];
        pc_tensor *before = pc_sum(pc_mul(w, x)), *again = pc_sum(pc_mul(w, x));
        pc_stream *stream = pc_stream(test_device());
        for (int i = 0; i < 2; i++)
            PC_WITH_STREAM(stream) {
                assert_ok(pc_graph_begin(stream));
                assert_ok(pc_fill(x, 7));
                inside[i] = pc_sum(pc_mul(w, x));
                assert_ok(pc_fill(x, 8));
                assert_fails(pc_stream_synchronize(stream), PC_ERR_STATE, "being recorded");
                assert_fails(pc_graph_end(stream), PC_ERR_STATE, "not complete");
            }
        pc_stream_free(stream);
        assert_ok(pc_backward(before));
        assert_close(pc_item(pc_sum(pc_grad(w))), 6, 0);
        for (int i = 0; i < 4; i++) {
            assert_fails(pc_backward(inside[i % 2]), PC_ERR_STATE, "");
            assert_ok(pc_fill(x, 3));
        }
        assert_fails(pc_backward(again), PC_ERR_STATE, "changed in place");
    }
}

/* Reading, waiting and data from the host have no place in a recording. */
static void errors_while_recording(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_tensor *x = pc_ones(PC_SHAPE(3), PC_F32, test_device());
        pc_stream *stream = pc_stream_current(test_device());
        float host[3];
        assert_ok(pc_graph_begin(stream));
        assert_fails(pc_graph_begin(stream), PC_ERR_STATE, "already being recorded");
        assert_fails(pc_item(pc_sum(x)), PC_ERR_STATE, "being recorded");
        assert_fails(pc_read(x, host, sizeof host), PC_ERR_STATE, "pc_read");
        assert_fails(pc_tensor_text(x), PC_ERR_STATE, "recorded");
        assert_fails(pc_from_data(host, PC_SHAPE(3), PC_F32, test_device()), PC_ERR_STATE, "before pc_graph_begin");
        assert_fails(pc_stream_synchronize(stream), PC_ERR_STATE, "being recorded");
        assert_fails(pc_add(x, pc_ones(PC_SHAPE(2), PC_F32, test_device())), PC_ERR_SHAPE, "add");
        assert_fails(pc_graph_end(stream), PC_ERR_STATE, "not complete: pc_item"); /* it was refused something */
        assert_fails(pc_graph_end(stream), PC_ERR_STATE, "not being recorded");
        assert_ok(pc_graph_begin(stream));
        pc_graph *graph = pc_graph_end(stream); /* empty */
        assert_not_null_ok(graph);
        assert_ok(pc_graph_begin(stream));
        assert_fails(pc_graph_launch(graph, stream), PC_ERR_STATE, "being recorded");
        pc_graph_free(pc_graph_end(stream));
        assert_ok(pc_graph_launch(graph, stream));
        pc_graph_free(graph);
    }
}

/* What a launch finds wrong is reported by the launch, where work runs at once. */
static void errors_in_a_launch(void **state)
{
    (void)state;
    if (test_device().type != PC_CPU)
        skip();
    PC_SCOPE {
        pc_tensor *x = pc_ones(PC_SHAPE(3), PC_F32, test_device()),
                  *index = pc_zeros(PC_SHAPE(2), PC_I64, test_device());
        pc_stream *stream = pc_stream_current(test_device());
        assert_ok(pc_graph_begin(stream));
        assert_not_null_ok(pc_index_select(x, 0, index));
        pc_graph *graph = pc_graph_end(stream);
        assert_ok(pc_graph_launch(graph, NULL));
        assert_ok(pc_fill(index, 3));
        assert_fails(pc_graph_launch(graph, NULL), PC_ERR_RANGE, "index_select");
        pc_graph_free(graph);
    }
}

static void note_release(void *context)
{
    ++*(int *)context;
}

/* Dropping the program's memory is no reading of it: a recording does not mind. */
static void memory_goes_while_recording(void **state)
{
    (void)state;
    float host[3] = {1, 2, 3};
    int released = 0;
    pc_stream *stream = pc_stream_current(PC_DEVICE_CPU);
    assert_ok(pc_graph_begin(stream));
    pc_tensor_free(pc_from_memory(host, PC_SHAPE(3), PC_F32, note_release, &released));
    assert_false(pc_failed());
    assert_int_equal(released, 1);
    pc_graph_free(pc_graph_end(stream));
}

/* A graph needs no stream to live; a stream takes its unfinished recording with it. */
static void graphs_outlive_streams(void **state)
{
    (void)state;
    assert_ok(pc_device_synchronize(test_device()));
    assert_ok(pc_memory_trim(test_device()));
    int64_t before = pc_allocator_live();
    PC_SCOPE {
        pc_tensor *x = pc_zeros(PC_SHAPE(3), PC_F32, test_device());
        pc_stream *stream = pc_stream(test_device());
        assert_ok(pc_stream_set_current(test_device(), stream));
        assert_ok(pc_graph_begin(stream));
        assert_ok(pc_fill(x, 2));
        pc_graph *graph = pc_graph_end(stream);
        assert_ok(pc_graph_begin(stream));
        assert_ok(pc_fill(x, 3));
        pc_stream_free(stream);
        assert_ok(pc_graph_launch(graph, NULL));
        assert_close(pc_item(pc_max(x)), 2, 0);
        pc_graph_free(graph);
    }
    assert_ok(pc_device_synchronize(test_device()));
    assert_ok(pc_memory_trim(test_device()));
    assert_int_equal(pc_allocator_live(), before);
}

/* What another stream does with results of the recording is part of it; with what it only reads, is not. */
static void other_streams_join_by_data(void **state)
{
    (void)state;
    pc_stream *stream = pc_stream(test_device()), *other = pc_stream(test_device());
    pc_graph *graph = NULL;
    PC_SCOPE {
        pc_tensor *x = pc_full(PC_SHAPE(3), 1, PC_F32, test_device()), *behind = NULL, *beside = NULL;
        PC_WITH_STREAM(stream) {
            assert_ok(pc_graph_begin(stream));
            pc_tensor *y = pc_mul_scalar(x, 3);
            PC_WITH_STREAM(other) {
                beside = pc_mul_scalar(x, 5);
                behind = pc_mul_scalar(y, 2);
            }
            graph = pc_graph_end(stream);
        }
        assert_not_null_ok(graph);
        assert_close(pc_item(pc_sum(beside)), 15, 0);
        assert_ok(pc_fill(x, 2));
        assert_ok(pc_graph_launch(graph, NULL));
        assert_close(pc_item(pc_sum(behind)), 36, 0);
        assert_close(pc_item(pc_sum(beside)), 15, 0);
    }
    pc_graph_free(graph);
    pc_stream_free(stream);
    pc_stream_free(other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(other_streams_join_by_data, nothing_left),
        cmocka_unit_test(recorded_steps_copy_no_gradients),
        cmocka_unit_test(launches_repeat_the_step),
        cmocka_unit_test(a_forward_pass_alone),
        cmocka_unit_test(inputs_change_between_launches),
        cmocka_unit_test(errors_while_recording),
        cmocka_unit_test(errors_in_a_launch),
        cmocka_unit_test(memory_goes_while_recording),
        cmocka_unit_test(refused_results_stay_without_contents),
        cmocka_unit_test(refused_gradients_are_put_back),
        cmocka_unit_test(refused_writes_change_no_versions),
        cmocka_unit_test(graphs_outlive_streams),
    };
    return cmocka_run_group_tests_name("device.graph", tests, NULL, NULL);
}
