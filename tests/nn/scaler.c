/* The loss scaler: its scale, and steps that are left out because of what it found. */
#include "networks.h"
#include "nn/optimizer.h"

#include <paracord/amp.h>
#include <paracord/ops.h>
#include <paracord/step.h>

/* One parameter of two numbers; its gradient is x. */
typedef struct line {
    pc_module *net;
    pc_tensor *weight;
    pc_optimizer *optimizer;
    pc_scaler *scaler;
    pc_tensor *x;
    bool unscales; /* and looks at the gradient then */
} line;

static pc_tensor *line_forward(pc_module *module, pc_tensor *x)
{
    return pc_sum(pc_mul(x, pc_module_parameter(module, "weight")));
}

static const pc_module_class line_class = {.name = "Line", .forward = line_forward};

static line line_new(bool adam)
{
    line l = {.net = pc_module_new(&line_class, 0)};
    PC_SCOPE {
        assert_ok(pc_module_add_parameter(l.net, "weight", pc_ones(PC_SHAPE(2), PC_F32, PC_DEVICE_CPU)));
    }
    l.net = on_device(l.net);
    l.weight = pc_module_parameter(l.net, "weight");
    l.optimizer = adam ? pc_adam(l.net, .lr = 0.1) : pc_sgd(l.net, .lr = 0.1, .momentum = 0.9);
    l.scaler = pc_scaler(test_device(), .initial = 1024, .interval = 3);
    l.x = pc_zeros(PC_SHAPE(2), PC_F32, test_device());
    return l;
}

static void line_free(line *l)
{
    pc_scaler_free(l->scaler);
    pc_optimizer_free(l->optimizer);
    pc_module_free(l->net);
    pc_tensor_free(l->x);
}

static pc_status line_step(void *user)
{
    line *l = user;
    float numbers[2];
    pc_status status = PC_OK;
    PC_SCOPE {
        pc_tensor *loss = pc_scaler_scale(l->scaler, pc_forward(l->net, l->x));
        status = loss ? pc_backward(loss) : pc_error_last()->status;
        if (status == PC_OK && l->unscales)
            status = pc_scaler_unscale(l->scaler, l->optimizer);
        if (status == PC_OK && l->unscales)
            status = pc_read(pc_grad(l->weight), numbers, sizeof numbers);
        if (status == PC_OK)
            status = pc_scaler_step(l->scaler, l->optimizer);
        if (status == PC_OK)
            status = pc_scaler_update(l->scaler);
    }
    return status;
}

static void line_set(line *l, float a, float b)
{
    PC_SCOPE {
        assert_ok(pc_copy(l->x, pc_from_data((float[]){a, b}, PC_SHAPE(2), PC_F32, test_device())));
    }
}

static void assert_weight(const line *l, const float want[2])
{
    float got[2];
    assert_ok(pc_read(l->weight, got, sizeof got));
    assert_true(got[0] == want[0] && got[1] == want[1]);
}

/* Steps with infinite and NaN gradients leave no trace: not in the weights, nor in the optimiser's state and count. The
 * others are those of an optimiser that never saw them. As plain calls and as a recording. */
static void infinite_gradients(bool adam, bool recorded)
{
    static const float gradients[][2] = {{1, 2}, {INFINITY, 1}, {3, -1}, {1, NAN},   {-1, 1},
                                         {2, 2}, {0.5f, 1},     {1, 1},  {1e38f, 1}, {4, 1}};
    static const double scales[] = {1024, 512, 512, 256, 256, 256, 512, 512, 256, 256};
    line all = line_new(adam), clean = line_new(adam);
    pc_step *step = recorded ? pc_step_new(line_step, &all, all.optimizer) : NULL;
    pc_scaler_free(clean.scaler);
    clean.scaler = NULL;
    for (size_t i = 0; i < sizeof gradients / sizeof *gradients; i++) {
        line_set(&all, gradients[i][0], gradients[i][1]);
        assert_ok(recorded ? pc_step_run(step) : line_step(&all));
        assert_close(pc_scaler_value(all.scaler), scales[i], 0);
        bool finite = isfinite(gradients[i][0] * 1024) && isfinite(gradients[i][1]);
        if (finite) {
            line_set(&clean, gradients[i][0], gradients[i][1]);
            PC_SCOPE {
                assert_ok(pc_backward(pc_forward(clean.net, clean.x)));
            }
            assert_ok(pc_optimizer_step(clean.optimizer));
        }
        float want[2];
        assert_ok(pc_read(clean.weight, want, sizeof want));
        assert_weight(&all, want);
        assert_null(pc_grad(all.weight));
    }
    if (step && pc_step_why(step))
        fail_msg("not recorded: %s", pc_step_why(step));
    /* a plain step afterwards goes on with the device's count */
    line *both[] = {&all, &clean};
    for (int i = 0; i < 2; i++) {
        line_set(both[i], 1, 1);
        PC_SCOPE {
            assert_ok(pc_backward(pc_forward(both[i]->net, both[i]->x)));
        }
        assert_ok(pc_optimizer_step(both[i]->optimizer));
    }
    float want[2];
    assert_ok(pc_read(clean.weight, want, sizeof want));
    assert_weight(&all, want);
    pc_step_free(step);
    line_free(&all);
    line_free(&clean);
}

static void infinite_gradients_leave_no_trace(void **state)
{
    (void)state;
    for (int adam = 0; adam < 2; adam++)
        for (int recorded = 0; recorded < 2; recorded++)
            infinite_gradients(adam, recorded);
    assert_nothing_left();
}

/* An optimiser that has left a step out takes over a count from a file, one that its device happens to expect. */
static void adopted_count(void **state)
{
    (void)state;
    int64_t updates;
    line l = line_new(true);
    for (int i = 0; i < 3; i++) {
        line_set(&l, i == 1 ? INFINITY : 1, 1);
        assert_ok(line_step(&l));
    }
    assert_ok(pc__optimizer_updates(l.optimizer, &updates));
    assert_int_equal(updates, 2);
    pc__optimizer_adopt(l.optimizer, 3);
    assert_ok(line_step(&l));
    assert_ok(pc__optimizer_updates(l.optimizer, &updates));
    assert_int_equal(updates, 4);
    line_free(&l);
    assert_nothing_left();
}

/* However many steps in a row are infinite, the scale stays a number whose inverse is one, and weights stay. */
static void the_scale_has_a_floor(void **state)
{
    (void)state;
    line l = line_new(false);
    line_set(&l, INFINITY, 1);
    for (int i = 0; i < 200; i++)
        assert_ok(line_step(&l));
    assert_weight(&l, (float[]){1, 1});
    assert_close(pc_scaler_value(l.scaler), 0x1p-24, 0);
    line_set(&l, 1e38f, 1);
    PC_SCOPE { /* a gradient of 1e39 is infinite once it is divided by the scale */
        assert_ok(pc_backward(pc_scaler_scale(l.scaler, pc_mul_scalar(pc_forward(l.net, l.x), 10))));
        assert_ok(pc_scaler_step(l.scaler, l.optimizer));
        assert_ok(pc_scaler_update(l.scaler));
    }
    assert_weight(&l, (float[]){1, 1});
    line_set(&l, 2, -1);
    for (int i = 0; i < 3; i++)
        assert_ok(line_step(&l));
    float v = 2, w = 1 - 0.1f * v; /* as without a scaler */
    v = 0.9f * v + 2, w -= 0.1f * v;
    v = 0.9f * v + 2, w -= 0.1f * v;
    float got[2];
    assert_ok(pc_read(l.weight, got, sizeof got));
    assert_close(got[0], w, 1e-6);
    assert_close(pc_scaler_value(l.scaler), 0x1p-23, 0);
    line_free(&l);
    assert_nothing_left();
}

static pc_status refuse(pc_tensor **tensors, int n, const pc__step_attributes *attributes)
{
    (void)tensors, (void)n, (void)attributes;
    return pc__fail(PC_ERR_BACKEND, "refused");
}

/* A step that could not be queued is not counted. */
static void failed_step_is_not_counted(void **state)
{
    (void)state;
    int64_t updates;
    line l = line_new(true);
    line_set(&l, 1, 1);
    assert_ok(line_step(&l));
    pc_status (*step)(pc_tensor **, int, const pc__step_attributes *) = l.optimizer->step;
    l.optimizer->step = refuse;
    assert_fails(line_step(&l) == PC_OK, PC_ERR_BACKEND, "refused");
    l.optimizer->step = step;
    assert_ok(pc__optimizer_updates(l.optimizer, &updates));
    assert_int_equal(updates, 1);
    line_free(&l);
    assert_nothing_left();
}

static void unscaled_first(void **state)
{
    (void)state;
    line l = line_new(false);
    line_set(&l, 3, -2);
    PC_SCOPE {
        assert_ok(pc_backward(pc_scaler_scale(l.scaler, pc_forward(l.net, l.x))));
        float got[2];
        assert_ok(pc_read(pc_grad(l.weight), got, sizeof got));
        assert_true(got[0] == 3072 && got[1] == -2048);
        assert_ok(pc_scaler_unscale(l.scaler, l.optimizer));
        assert_ok(pc_read(pc_grad(l.weight), got, sizeof got));
        assert_true(got[0] == 3 && got[1] == -2);
        assert_fails(pc_scaler_unscale(l.scaler, l.optimizer) == PC_OK, PC_ERR_STATE, "already");
        assert_ok(pc_scaler_step(l.scaler, l.optimizer)); /* not divided twice */
        assert_ok(pc_scaler_update(l.scaler));
        assert_weight(&l, (float[]){1 - 0.1f * 3, 1 + 0.1f * 2});
        assert_ok(pc_scaler_unscale(l.scaler, l.optimizer)); /* without gradients: nothing to do */
    }
    line_free(&l);
    assert_nothing_left();
}

/* The plain call behind a refused recording divides, as if there had been none. */
static void unscaled_in_a_refused_recording(void **state)
{
    (void)state;
    line l = line_new(false);
    l.unscales = true;
    pc_step *step = pc_step_new(line_step, &l, l.optimizer);
    for (int i = 0; i < 2; i++) {
        line_set(&l, 3, -2);
        assert_ok(pc_step_run(step));
    }
    assert_non_null(strstr(pc_step_why(step), "pc_read"));
    const float w = 1 - 0.1f * 3, v = 0.9f * 3 + 3, a = 1 + 0.1f * 2, b = 0.9f * 2 + 2;
    float got[2];
    assert_ok(pc_read(l.weight, got, sizeof got));
    assert_close(got[0], w - 0.1f * v, 1e-6);
    assert_close(got[1], a + 0.1f * b, 1e-6);
    pc_step_free(step);
    line_free(&l);
    assert_nothing_left();
}

/* What was divided before the recording is so after it, whatever the recording did; who is gone is left alone. */
static void updated_in_a_refused_recording(void **state)
{
    (void)state;
    float got[2];
    line l = line_new(false), gone = line_new(false);
    pc_optimizer *plain = pc_sgd(l.net, .lr = 0.1), *other = pc_sgd(l.net, .lr = 0.1);
    line_set(&l, 3, -2);
    PC_SCOPE {
        assert_ok(pc_backward(pc_scaler_scale(l.scaler, pc_forward(l.net, l.x))));
    }
    assert_ok(pc_scaler_unscale(l.scaler, plain));
    assert_ok(pc_graph_begin(pc_stream_current(test_device())));
    assert_ok(pc_scaler_update(l.scaler));
    assert_ok(pc_scaler_unscale(l.scaler, other));
    assert_ok(pc_scaler_unscale(gone.scaler, gone.optimizer));
    assert_ok(pc_optimizer_step(plain));
    line_free(&gone);
    assert_fails(pc_read(l.weight, got, sizeof got), PC_ERR_STATE, "being recorded");
    assert_fails(pc_graph_end(pc_stream_current(test_device())), PC_ERR_STATE, "not complete");
    assert_fails(pc_scaler_unscale(l.scaler, plain), PC_ERR_STATE, "already");
    assert_int_equal(plain->settings.step, 0);
    assert_ok(pc_optimizer_step(plain));
    assert_weight(&l, (float[]){1 - 0.1f * 3, 1 + 0.1f * 2});
    assert_ok(pc_scaler_unscale(l.scaler, other));
    pc_optimizer_free(plain);
    pc_optimizer_free(other);
    line_free(&l);
    assert_nothing_left();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_scale_has_a_floor),
        cmocka_unit_test(failed_step_is_not_counted),
        cmocka_unit_test(unscaled_first),
        cmocka_unit_test(adopted_count),
        cmocka_unit_test(unscaled_in_a_refused_recording),
        cmocka_unit_test(updated_in_a_refused_recording),
        cmocka_unit_test(infinite_gradients_leave_no_trace),
    };
    return cmocka_run_group_tests_name("nn.scaler", tests, NULL, NULL);
}
