/* Moving averages of weights, and gradients that add up over several backward passes. */
#include "nn/networks.h"

#include <paracord/amp.h>
#include <paracord/ema.h>
#include <paracord/module.h>
#include <paracord/step.h>

static pc_tensor *formula(pc_shape shape, int at, int64_t n)
{
    double values[16];
    for (int64_t i = 0; i < n; i++)
        values[i] = (double)((7 * i + 3 * at) % 11 - 5) / 8;
    return pc_from_data(values, shape, PC_F64, test_device());
}

static void averages_are_pytorchs(void **state)
{
    (void)state;
    pc_module *net = pc_linear(5, 1, .no_bias = true);
    assert_ok(pc_module_to(net, test_device(), PC_F64));
    pc_ema *ema = pc_ema_new(net, 0.9);
    pc_parameter list[2];
    assert_int_equal(pc_ema_state_list(ema, list, 2), 2);
    assert_string_equal(list[0].name, "n_averaged");
    assert_string_equal(list[1].name, "module.weight");
    FILE *file = golden_open();
    char line[512];
    int at, cases = 0;
    while (fgets(line, sizeof line, file)) {
        if (sscanf(line, "average %d", &at) != 1)
            continue;
        PC_SCOPE {
            PC_NO_GRAD {
                assert_ok(pc_copy(pc_module_parameter(net, "weight"), formula(PC_SHAPE(1, 5), at, 5)));
            }
            assert_ok(pc_ema_update(ema));
            double *got = values_of(list[1].tensor);
            char *text = strchr(line, '|') + 1;
            for (int i = 0; i < 5; i++)
                assert_close(got[i], strtod(text, &text), 1e-14);
            free(got);
        }
        assert_close(pc_item(list[0].tensor), ++cases, 0);
    }
    fclose(file);
    assert_int_equal(cases, 4);
    pc_ema_free(ema);
    pc_module_free(net);
    assert_nothing_left();
}

static void assert_same_bits(pc_tensor *a, pc_tensor *b)
{
    float x[6], y[6];
    assert_ok(pc_read(a, x, sizeof x));
    assert_ok(pc_read(b, y, sizeof y));
    assert_memory_equal(x, y, sizeof x);
}

/* Whatever the weights were when the averages were made. */
static void first_ones_are_the_parameters(void **state)
{
    (void)state;
    static const double before[] = {1e30, NAN, INFINITY};
    pc_module *net = on_device(pc_linear(3, 2));
    for (size_t i = 0; i < sizeof before / sizeof *before; i++)
        PC_SCOPE {
            pc_parameter list[3];
            pc_tensor *weight = pc_module_parameter(net, "weight"),
                      *drawn = pc_randn(PC_SHAPE(2, 3), PC_F32, test_device());
            PC_NO_GRAD {
                assert_ok(pc_fill(weight, before[i]));
            }
            pc_ema *ema = pc_ema_new(net, 0.9);
            assert_int_equal(pc_ema_state_list(ema, list, 3), 3);
            for (int again = 0; again < 2; again++) {
                PC_NO_GRAD {
                    assert_ok(pc_copy(weight, drawn));
                }
                assert_ok(pc_ema_update(ema));
                assert_same_bits(list[1].tensor, drawn);
                assert_ok(pc_ema_update(ema));
                assert_same_bits(list[1].tensor, drawn);
                PC_NO_GRAD { /* a state of averages that nothing has gone into */
                    assert_ok(pc_fill(list[0].tensor, 0));
                    assert_ok(pc_fill(list[1].tensor, before[i]));
                }
                assert_ok(pc_ema_load(ema, list, 3));
            }
            pc_ema_free(ema);
        }
    pc_module_free(net);
    assert_nothing_left();
}

/* --- in steps --- */

typedef struct job {
    pc_module *net;
    pc_optimizer *sgd;
    pc_ema *ema;
    pc_tensor *x, *y;
    int parts; /* backward passes of a step */
} job;

static pc_status learn(void *user)
{
    job *j = user;
    pc_status status = PC_OK;
    const int64_t rows = pc_tensor_size(j->x, 0) / j->parts;
    for (int i = 0; i < j->parts && status == PC_OK; i++)
        PC_SCOPE {
            pc_tensor *x = pc_slice(j->x, 0, i * rows, (i + 1) * rows, 1),
                      *y = pc_slice(j->y, 0, i * rows, (i + 1) * rows, 1);
            status = pc_backward(pc_mul_scalar(pc_mse(pc_forward(j->net, x), y), 1.0 / j->parts));
        }
    status = status == PC_OK ? pc_optimizer_step(j->sgd) : status;
    return status == PC_OK ? pc_ema_update(j->ema) : status;
}

static job begin(int parts, pc_dtype dtype)
{
    pc_seed(9);
    job j = {.net = pc_sequential(pc_linear(3, 8, .activation = PC_ACTIVATION_TANH), pc_linear(8, 2)), .parts = parts};
    j.x = pc_randn(PC_SHAPE(8, 3), dtype, test_device());
    j.y = pc_randn(PC_SHAPE(8, 2), dtype, test_device());
    assert_ok(pc_module_to(j.net, test_device(), dtype));
    j.sgd = pc_sgd(j.net, .lr = 0.3, .momentum = 0.9, .nesterov = true);
    j.ema = pc_ema_new(j.net, 0.7);
    return j;
}

static void end(job *j)
{
    pc_ema_free(j->ema);
    pc_optimizer_free(j->sgd);
    pc_module_free(j->net);
}

/* Weights and averages behind three steps are those of three steps of one pass, called one by one. */
static void steps(int parts, bool recorded, double tolerance)
{
    PC_SCOPE {
        job a = begin(1, PC_F32), b = begin(parts, PC_F32);
        pc_parameter averages[2][5], weights[2][4];
        pc_step *step = pc_step_new(learn, &b, b.sgd);
        for (int i = 0; i < 3; i++) {
            assert_ok(learn(&a));
            assert_ok(recorded ? pc_step_run(step) : learn(&b));
        }
        assert_null(pc_step_why(step));
        assert_int_equal(pc_ema_state_list(a.ema, averages[0], 5), 5);
        assert_int_equal(pc_ema_state_list(b.ema, averages[1], 5), 5);
        assert_int_equal(
            pc_module_parameter_list(a.net, weights[0], 4) + pc_module_parameter_list(b.net, weights[1], 4), 8);
        for (int i = 0; i < 4; i++) {
            assert_true(distance(weights[0][i].tensor, weights[1][i].tensor) <= tolerance);
            assert_true(distance(averages[0][i + 1].tensor, averages[1][i + 1].tensor) <= tolerance);
            assert_true(distance(averages[1][i + 1].tensor, weights[1][i].tensor) > 1e-4);
        }
        assert_close(pc_item(averages[1][0].tensor), 3, 0);
        pc_step_free(step);
        end(&a);
        end(&b);
    }
    assert_nothing_left();
}

static void recorded_updates_are_the_same(void **state)
{
    (void)state;
    steps(1, true, 0);
}

static void gradients_add_up(void **state)
{
    (void)state;
    steps(4, false, 1e-6);
}

static void recorded_gradients_add_up(void **state)
{
    (void)state;
    steps(4, true, 1e-6);
}

/* --- in and out --- */

static void in_and_out(pc_dtype dtype)
{
    PC_SCOPE {
        job j = begin(1, dtype);
        pc_step *step = pc_step_new(learn, &j, j.sgd);
        pc_parameter list[5];
        assert_ok(pc_step_run(step));
        assert_ok(pc_step_run(step));
        (void)pc_ema_state_list(j.ema, list, 5);
        pc_tensor *own = pc_module_parameter(j.net, "0.weight"), *before = pc_clone(pc_detach(own));
        assert_int_equal(pc_tensor_dtype(list[1].tensor), dtype == PC_BF16 ? PC_F32 : dtype);
        assert_ok(pc_ema_swap_in(j.ema));
        assert_true(distance(own, pc_cast(list[1].tensor, dtype)) == 0);
        assert_true(distance(own, before) > 0);
        assert_fails(pc_ema_swap_in(j.ema), PC_ERR_STATE, "already in the network");
        assert_fails(pc_ema_update(j.ema), PC_ERR_STATE, "pc_ema_swap_out first");
        assert_fails(pc_step_run(step), PC_ERR_STATE, "pc_ema_swap_out first"); /* and not by a launch */
        assert_ok(pc_ema_swap_out(j.ema));
        assert_true(distance(own, before) == 0);
        assert_fails(pc_ema_swap_out(j.ema), PC_ERR_STATE, "not in the network");
        assert_ok(pc_step_run(step));
        assert_true(distance(own, before) > 0);
        pc_step_free(step);
        end(&j);
    }
    assert_nothing_left();
}

static void averages_go_in_and_out(void **state)
{
    (void)state;
    in_and_out(PC_F32);
    in_and_out(PC_BF16);
}

static void state_is_kept(void **state)
{
    (void)state;
    PC_SCOPE {
        job a = begin(1, PC_F32), b = begin(1, PC_F32);
        pc_parameter list[2][5];
        assert_ok(learn(&a));
        assert_ok(learn(&a));
        (void)pc_ema_state_list(a.ema, list[0], 5);
        (void)pc_ema_state_list(b.ema, list[1], 5);
        assert_ok(pc_ema_load(b.ema, list[0], 5));
        assert_close(pc_item(list[1][0].tensor), 2, 0);
        assert_true(distance(list[0][3].tensor, list[1][3].tensor) == 0);
        assert_ok(pc_ema_update(a.ema));
        pc_parameter weights[4];
        assert_ok(pc_module_load(b.net, weights, pc_module_parameter_list(a.net, weights, 4)));
        assert_ok(pc_ema_update(b.ema)); /* not the first one */
        assert_true(distance(list[0][3].tensor, list[1][3].tensor) == 0);
        assert_fails(pc_ema_load(b.ema, list[0], 4), PC_ERR_NOT_FOUND, "4 entries");
        snprintf(list[0][2].name, sizeof list[0][2].name, "bias");
        assert_fails(pc_ema_load(b.ema, list[0], 5), PC_ERR_NOT_FOUND, "no \"module.0.bias\"");
        end(&a);
        end(&b);
    }
    assert_fails(pc_ema_new(NULL, 0.5), PC_ERR_ARGUMENT, "module is NULL");
    pc_module *flat = pc_flatten(), *linear = pc_linear(1, 1);
    assert_fails(pc_ema_new(flat, 0.5), PC_ERR_ARGUMENT, "has no parameters");
    assert_fails(pc_ema_new(linear, 1), PC_ERR_ARGUMENT, "decay is 1");
    pc_module_free(flat);
    pc_module_free(linear);
    assert_nothing_left();
}

/* What trains or averages the tensors that a module had before it moved says so; what is frozen, or used by others that still
 * have it, does not matter. */
static void networks_that_move_on(void **state)
{
    (void)state;
    PC_SCOPE {
        job j = begin(1, PC_F32);
        assert_ok(learn(&j));
        assert_ok(pc_module_to(j.net, test_device(), PC_F32)); /* nothing to do */
        assert_ok(learn(&j));
        assert_ok(pc_module_to(pc_module_child(j.net, 1), test_device(), PC_F64));
        assert_fails(pc_optimizer_step(j.sgd), PC_ERR_STATE, "pc_module_to has moved \"1.weight\" since");
        assert_fails(pc_ema_update(j.ema), PC_ERR_STATE, "pc_module_to has moved \"module.1.weight\" since");
        assert_fails(pc_ema_swap_in(j.ema), PC_ERR_STATE, "pc_module_to has moved");
        end(&j);
        pc_module *one = pc_linear(1, 1, .no_bias = true), *other = pc_flatten();
        pc_tensor *shared = pc_module_parameter(one, "weight");
        assert_ok(pc_module_add_parameter(other, "weight", shared));
        pc_optimizer *sgd = pc_sgd(other);
        pc_scaler *scaler = pc_scaler(test_device());
        assert_ok(pc_module_to(one, PC_DEVICE_CPU, PC_F64));
        assert_ok(pc_backward(pc_sum(shared)));
        assert_ok(pc_optimizer_step(sgd));
        assert_fails(pc_scaler_step(scaler, sgd), PC_ERR_STATE, "moved \"weight\"");
        assert_ok(pc_require_grad(shared, false));
        assert_ok(pc_optimizer_step(sgd));
        pc_scaler_free(scaler);
        pc_optimizer_free(sgd);
        pc_module_free(one);
        pc_module_free(other);
    }
    assert_nothing_left();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(averages_are_pytorchs),
        cmocka_unit_test(first_ones_are_the_parameters),
        cmocka_unit_test(recorded_updates_are_the_same),
        cmocka_unit_test(gradients_add_up),
        cmocka_unit_test(recorded_gradients_add_up),
        cmocka_unit_test(averages_go_in_and_out),
        cmocka_unit_test(state_is_kept),
        cmocka_unit_test(networks_that_move_on),
    };
    return cmocka_run_group_tests_name("nn.ema", tests, NULL, NULL);
}
