/* Ops that the program registers behave as the library's own: on streams, the tape, in recordings and steps, in
 * timelines, from many threads. */
#include "device.h"
#include "ops/registered.h"

#include <math.h>
#include <paracord/random.h>
#include <paracord/step.h>
#include <paracord/trace.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

static void assert_same_numbers(const pc_tensor *a, const pc_tensor *b)
{
    const size_t bytes = (size_t)pc_tensor_count(a) * pc_dtype_size(pc_tensor_dtype(a));
    void *x = malloc(bytes), *y = malloc(bytes);
    assert_ok(pc_read(a, x, bytes));
    assert_ok(pc_read(b, y, bytes));
    assert_memory_equal(x, y, bytes);
    free(x);
    free(y);
}

static double farthest(pc_tensor *a, pc_tensor *b)
{
    pc_tensor *d = pc_sub(a, b);
    return pc_item(pc_max(pc_mul(d, d)));
}

/* a x + b x z by the library's ops. */
static pc_tensor *blend_of_ops(pc_tensor *x, pc_tensor *z, double a, double b)
{
    return pc_add(pc_mul_scalar(x, a), pc_mul(pc_mul_scalar(x, b), z));
}

static void what_the_formula_says(void **state)
{
    (void)state;
    static const pc_dtype dtypes[] = {PC_F32, PC_F64};
    for (int d = 0; d < 2; d++)
        PC_SCOPE {
            pc_tensor *x = wave(PC_SHAPE(31, 130), .1, dtypes[d]), *z = wave(PC_SHAPE(130, 31), .07, dtypes[d]);
            assert_close(farthest(blend(x, x, 2, -.5), blend_of_ops(x, x, 2, -.5)), 0, 1e-12);
            pc_tensor *turned = pc_transpose(z, 0, 1); /* which its kernels do not take as it is */
            assert_close(farthest(blend(x, turned, 2, 3), blend_of_ops(x, turned, 2, 3)), 0, 1e-11);
            pc_tensor *none = wave(PC_SHAPE(0, 3), 1, dtypes[d]);
            assert_int_equal(pc_tensor_count(blend(none, none, 1, 1)), 0);
        }
}

static void several_results_of_any_strides(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_tensor *x = pc_slice(pc_transpose(wave(PC_SHAPE(9, 20), .3, PC_F64), 0, 1), 1, 2, 7, 2), *out[2];
        assert_ok(pc_op_call(ends_op(), &x, 1, NULL, out));
        assert_close(farthest(out[0], pc_mul_scalar(pc_reshape(pc_slice(x, 1, 0, 1, 1), PC_SHAPE(20)), 2)), 0, 0);
        assert_close(farthest(out[1], pc_mul_scalar(pc_reshape(pc_slice(x, 1, 2, 3, 1), PC_SHAPE(20)), 3)), 0, 0);
    }
}

static void in_place(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_tensor *t = pc_zeros(PC_SHAPE(2, 300), PC_F32, test_device());
        pc_tensor *whole = pc_arange(7, 607, 1, PC_F32, test_device());
        assert_ok(number(t, 7));
        assert_close(farthest(t, pc_reshape(whole, PC_SHAPE(2, 300))), 0, 0);
        assert_fails(number(pc_transpose(t, 0, 1), 7), PC_ERR_SHAPE, "test.numbered: output 0 of shape [300, 2]");
        assert_fails(number(pc_zeros(PC_SHAPE(3), PC_I32, test_device()), 7), PC_ERR_DTYPE,
                     "test.numbered: int32; it writes float32");
        assert_fails(number(NULL, 7), PC_ERR_ARGUMENT, "test.numbered: output 0, which it is to write, is NULL");
        assert_ok(pc_require_grad(t, true));
        assert_fails(number(t, 7), PC_ERR_STATE, "test.numbered: in place on a tensor that requires a gradient");
    }
}

/* --- gradients --- */

/* d sum(w f(x, z)) by differences in element i of t. */
static double difference(pc_tensor *t, int64_t i, pc_tensor *(*f)(pc_tensor *x, pc_tensor *z), pc_tensor *x,
                         pc_tensor *z, pc_tensor *w)
{
    const double step = 1e-4;
    double value[2];
    PC_NO_GRAD {
        PC_SCOPE {
            pc_tensor *place = pc_slice(pc_reshape(t, PC_SHAPE(-1)), 0, i, i + 1, 1), *before = pc_clone(place);
            for (int k = 0; k < 2; k++) {
                assert_ok(pc_copy(place, pc_add_scalar(before, k ? step : -step)));
                value[k] = pc_item(pc_sum(pc_mul(w, f(x, z))));
            }
            assert_ok(pc_copy(place, before));
        }
    }
    return (value[1] - value[0]) / (2 * step);
}

static void check_gradient(pc_tensor *(*f)(pc_tensor *x, pc_tensor *z), pc_shape shape)
{
    PC_SCOPE {
        pc_tensor *x = wave(shape, .9, PC_F64), *z = wave(shape, .4, PC_F64), *leaf[2] = {x, z};
        assert_ok(pc_require_grad(x, true));
        assert_ok(pc_require_grad(z, true));
        pc_tensor *y = f(x, z), *w = wave(pc_tensor_shape(y), .23, PC_F64);
        assert_ok(pc_backward(pc_sum(pc_mul(w, y))));
        for (int k = 0; k < 2; k++)
            for (int64_t i = 0; i < pc_tensor_count(x); i++) {
                pc_tensor *place = pc_slice(pc_reshape(pc_grad(leaf[k]), PC_SHAPE(-1)), 0, i, i + 1, 1);
                assert_close(pc_item(place), difference(leaf[k], i, f, x, z, w), 1e-6);
            }
    }
}

static pc_tensor *blends(pc_tensor *x, pc_tensor *z)
{
    return blend(blend(x, z, 2, 3), pc_transpose(pc_exp(pc_transpose(z, 0, 1)), 0, 1), -1, .5);
}

/* Only its second result is used. */
static pc_tensor *last_column(pc_tensor *x, pc_tensor *z)
{
    pc_tensor *out[2], *both = pc_mul(x, z);
    assert_ok(pc_op_call(ends_op(), &both, 1, NULL, out));
    return out[1];
}

static pc_tensor *both_columns(pc_tensor *x, pc_tensor *z)
{
    pc_tensor *out[2], *both = pc_mul(x, z);
    assert_ok(pc_op_call(ends_op(), &both, 1, NULL, out));
    return pc_mul(out[0], out[1]);
}

static void gradients(void **state)
{
    (void)state;
    check_gradient(blends, PC_SHAPE(3, 4));
    check_gradient(last_column, PC_SHAPE(3, 4));
    check_gradient(both_columns, PC_SHAPE(2, 3));
}

static void a_saved_input_that_changed(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_tensor *x = wave(PC_SHAPE(5), 1, PC_F32), *z = wave(PC_SHAPE(5), 2, PC_F32);
        assert_ok(pc_require_grad(x, true));
        pc_tensor *y = pc_sum(blend(x, z, 1, 1));
        assert_ok(pc_fill(z, 1));
        assert_fails(pc_backward(y), PC_ERR_STATE,
                     "test.blend needs its input of shape [5], which was changed in place");
    }
}

/* --- streams and recordings --- */

static void memory_until_the_work_is_done(void **state)
{
    (void)state;
    pc_stream *side = pc_stream(test_device());
    for (int turn = 0; turn < 20; turn++)
        PC_SCOPE {
            pc_tensor *x = wave(PC_SHAPE(3000), .01, PC_F32), *z = wave(PC_SHAPE(3000), .02, PC_F32), *y = NULL;
            pc_tensor *want = blend_of_ops(blend_of_ops(x, z, 1, 2), z, 3, 1);
            PC_WITH_STREAM(side) {
                PC_SCOPE {
                    y = pc_keep(blend(pc_add_scalar(x, 0), z, 1, 2));
                }
                assert_not_null_ok(pc_full(PC_SHAPE(3000), 1e30, PC_F32, test_device()));
            }
            assert_close(farthest(blend(y, z, 3, 1), want), 0, 1e-8); /* on the default stream */
        }
    pc_stream_free(side);
}

static int ticks; /* of an engine, whose work is waited for */

static pc_status tick_kernel(const pc_op_run *run)
{
    ticks++;
    memcpy(run->out[0].data, run->in[0].data, (size_t)run->in[0].count * 4);
    return PC_OK;
}

static const pc_op *tick_op(bool side_effects)
{
    const char *name = side_effects ? "test.tick" : "test.tack";
    const pc_op *op = pc_op_find(name);
    return op ? op
              : pc_op_register(&(pc_op_spec){
                    .name = name, .inputs = 1, .outputs = 1, .side_effects = side_effects, .cpu = tick_kernel});
}

static int ticks_of_a_launch(bool side_effects)
{
    pc_device device = test_device();
    PC_SCOPE {
        pc_tensor *x = pc_ones(PC_SHAPE(4), PC_F32, device), *out = pc_zeros(PC_SHAPE(4), PC_F32, device);
        assert_ok(pc_graph_begin(NULL));
        PC_SCOPE {
            pc_tensor *made[3];
            for (int i = 0; i < 3; i++)
                assert_ok(pc_op_call(tick_op(side_effects), &x, 1, NULL, &made[i]));
            assert_ok(pc_copy(out, pc_add(made[0], made[1]))); /* nobody looks at the third */
        }
        pc_graph *graph = pc_graph_end(NULL);
        assert_not_null_ok(graph);
        assert_ok(pc_stream_synchronize(NULL));
        ticks = 0;
        assert_ok(pc_graph_launch(graph, NULL));
        assert_close(pc_item(pc_sum(out)), 8, 0);
        pc_graph_free(graph);
    }
    return ticks;
}

static void passes_and_side_effects(void **state)
{
    (void)state;
    if (test_device().type == PC_CUDA)
        skip(); /* kernels of a GPU are not seen from here */
    assert_int_equal(ticks_of_a_launch(true), 3);
    assert_int_equal(ticks_of_a_launch(false), getenv("PARACORD_PLAN") ? 3 : 1);
}

static void mixed_work(pc_tensor *out, pc_tensor *x, pc_tensor *z)
{
    PC_SCOPE {
        pc_tensor *a = blend(x, z, 2, 3), *b = blend(x, z, 2, 3), *c = blend(x, z, 2, 4);
        assert_not_null_ok(blend(b, c, 1, 1)); /* for nobody */
        pc_tensor *d = pc_mul(pc_exp(pc_add(a, b)), c), *line = pc_empty(pc_tensor_shape(x), PC_F32, test_device());
        assert_ok(number(line, 1));
        assert_ok(
            pc_copy(out, pc_div(pc_tanh(blend(d, pc_transpose(line, 0, 1), 1e-3, 1e-4)), pc_add_scalar(line, 1))));
    }
}

static void recorded_and_not(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_tensor *x = wave(PC_SHAPE(40, 40), .1, PC_F32), *z = wave(PC_SHAPE(40, 40), .2, PC_F32);
        pc_tensor *plain = pc_zeros(PC_SHAPE(40, 40), PC_F32, test_device()), *recorded = pc_clone(plain);
        assert_ok(pc_graph_begin(NULL));
        mixed_work(recorded, x, z);
        pc_graph *graph = pc_graph_end(NULL);
        assert_not_null_ok(graph);
        char *text = pc_graph_text(graph);
        assert_non_null(strstr(text, "test.blend"));
        if (!getenv("PARACORD_PLAN") && !strstr(text, "taken out: 1 duplicates, 1 dead"))
            fail_msg("%s", text);
        pc_text_free(text);
        for (int i = 0; i < 3; i++) {
            assert_ok(pc_saxpy(x, .5, z));
            mixed_work(plain, x, z);
            assert_ok(pc_graph_launch(graph, NULL));
            assert_same_numbers(plain, recorded);
        }
        pc_graph_free(graph);
    }
}

static pc_graph *scaled(pc_tensor *out, pc_tensor *x, double a)
{
    assert_ok(pc_graph_begin(NULL));
    PC_SCOPE {
        assert_ok(pc_copy(out, blend(x, x, a, 0)));
    }
    return pc_graph_end(NULL);
}

static void an_update_of_other_work(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_tensor *x = pc_ones(PC_SHAPE(5), PC_F32, test_device()), *y = pc_full(PC_SHAPE(5), 7, PC_F32, test_device());
        pc_tensor *out = pc_zeros(PC_SHAPE(5), PC_F32, test_device());
        pc_graph *graph = scaled(out, x, 2), *other = scaled(out, y, 2), *more = scaled(out, x, 3);
        assert_ok(pc_graph_update(graph, other));
        assert_ok(pc_graph_launch(graph, NULL));
        assert_close(pc_item(pc_max(out)), 14, 0);
        assert_fails(pc_graph_update(graph, more), PC_ERR_SHAPE, "test.blend, does other work");
        pc_graph_free(graph);
        pc_graph_free(other);
        pc_graph_free(more);
    }
}

/* --- a training step --- */

typedef struct job {
    pc_module *net;
    pc_optimizer *optimizer;
    pc_tensor *x;
} job;

static pc_status learn(void *user)
{
    job *j = user;
    pc_status status = PC_OK;
    PC_SCOPE {
        pc_tensor *y = pc_forward(j->net, j->x), *loss = pc_mean(blend(y, pc_tanh(y), 1, 2));
        status = pc_backward(loss);
        if (status == PC_OK)
            status = pc_optimizer_step(j->optimizer);
    }
    return status;
}

static job begin_job(void)
{
    pc_seed(5);
    job j = {.net = on_device(pc_linear(6, 4)), .x = wave(PC_SHAPE(8, 6), .3, PC_F32)};
    j.optimizer = pc_adam(j.net, .lr = .01);
    return j;
}

static void end_job(job *j)
{
    pc_optimizer_free(j->optimizer);
    pc_module_free(j->net);
    pc_tensor_free(j->x);
}

static void in_steps(void **state)
{
    (void)state;
    job plain = begin_job(), recorded = begin_job();
    pc_step *step = pc_step_new(learn, &recorded, recorded.optimizer);
    for (int i = 0; i < 6; i++) {
        assert_ok(learn(&plain));
        assert_ok(pc_step_run(step));
    }
    assert_null(pc_step_why(step));
    assert_same_numbers(pc_module_parameter(plain.net, "weight"), pc_module_parameter(recorded.net, "weight"));
    pc_step_free(step);
    end_job(&plain);
    end_job(&recorded);
}

/* --- threads --- */

enum { THREADS = 8, NAMES = 6 };

static atomic_int registered;

static void *register_and_call(void *unused)
{
    (void)unused;
    for (int i = 0; i < NAMES; i++) {
        char name[40];
        snprintf(name, sizeof name, "test.shared.%d", i);
        const pc_op *op = pc_op_find(name);
        if (!op)
            op = pc_op_register(&(pc_op_spec){.name = name,
                                              .inputs = 2,
                                              .outputs = 1,
                                              .attribute_bytes = sizeof(blend_attributes),
                                              .cpu = blend_kernel,
                                              .cuda = on_cuda("own_blend")});
        if (op)
            registered++;
        pc_error_clear(); /* another thread was first */
        op = op ? op : pc_op_find(name);
        PC_SCOPE {
            pc_tensor *x = pc_full(PC_SHAPE(50), i, PC_F64, test_device()), *in[] = {x, x}, *y = NULL;
            if (pc_op_call(op, in, 2, &(blend_attributes){1, 2}, &y) != PC_OK || pc_item(pc_max(y)) != i + 2 * i * i)
                registered = -1000;
        }
    }
    return NULL;
}

static void many_threads(void **state)
{
    (void)state;
    pthread_t thread[THREADS];
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, register_and_call, NULL), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(thread[i], NULL);
    assert_true(registered >= NAMES);
}

/* --- timelines --- */

static void in_the_timeline(void **state)
{
    (void)state;
    char path[] = "/tmp/paracord-register-XXXXXX", line[4096];
    const int file = mkstemp(path);
    assert_true(file >= 0);
    assert_ok(pc_trace_start(path));
    PC_SCOPE {
        pc_tensor *x = wave(PC_SHAPE(5), 1, PC_F32);
        assert_not_null_ok(blend(x, x, 1, 1));
        assert_ok(pc_device_synchronize(test_device()));
    }
    assert_ok(pc_trace_stop());
    FILE *rows = fdopen(file, "r");
    bool found = false;
    while (fgets(line, sizeof line, rows))
        found |= strstr(line, "\"test.blend\"") != NULL;
    fclose(rows);
    unlink(path);
    assert_true(found);
}

/* --- a recorded call is built as its thread wanted products when it was recorded --- */

static pc_precision seen_precision;
static pc_choice seen_choice;

static pc_status look(const pc_op_run *run)
{
    (void)run;
    seen_precision = pc_matmul_precision_get();
    seen_choice = pc_choice_get();
    return PC_OK;
}

static void built_as_recorded(void **state)
{
    (void)state;
    if (test_device().type != PC_CUDA) /* the host's kernels run when it is launched, and have one precision */
        return;
    const pc_op *op = pc_op_register(
        &(pc_op_spec){.name = "test.look", .inputs = 1, .outputs = 1, .side_effects = true, .cpu = look, .cuda = look});
    assert_not_null_ok(op);
    PC_SCOPE {
        pc_tensor *x = pc_ones(PC_SHAPE(4), PC_F32, test_device()), *y;
        assert_ok(pc_graph_begin(NULL));
        const pc_precision precision = pc_matmul_precision_set(PC_PRECISION_TF32);
        const pc_choice choice = pc_choice_set(PC_CHOICE_MEASURED);
        assert_ok(pc_op_call(op, &x, 1, NULL, &y));
        (void)pc_matmul_precision_set(precision);
        (void)pc_choice_set(choice);
        pc_graph *graph = pc_graph_end(NULL);
        assert_not_null_ok(graph);
        assert_int_equal(seen_precision, PC_PRECISION_TF32);
        assert_int_equal(seen_choice, PC_CHOICE_MEASURED);
        assert_int_equal(pc_matmul_precision_get(), precision);
        assert_int_equal(pc_choice_get(), choice);
        pc_graph_free(graph);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(what_the_formula_says, nothing_left),
        cmocka_unit_test_teardown(several_results_of_any_strides, nothing_left),
        cmocka_unit_test_teardown(in_place, nothing_left),
        cmocka_unit_test_teardown(gradients, nothing_left),
        cmocka_unit_test_teardown(a_saved_input_that_changed, nothing_left),
        cmocka_unit_test_teardown(memory_until_the_work_is_done, nothing_left),
        cmocka_unit_test_teardown(passes_and_side_effects, nothing_left),
        cmocka_unit_test_teardown(recorded_and_not, nothing_left),
        cmocka_unit_test_teardown(an_update_of_other_work, nothing_left),
        cmocka_unit_test_teardown(in_steps, nothing_left),
        cmocka_unit_test_teardown(many_threads, nothing_left),
        cmocka_unit_test_teardown(in_the_timeline, nothing_left),
        cmocka_unit_test_teardown(built_as_recorded, nothing_left),
    };
    assert_ok(pc_device_set_current(test_device()));
    return cmocka_run_group_tests_name("ops.register", tests, NULL, NULL);
}
