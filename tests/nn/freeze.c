/* State dicts that fit in part, and parameters that stay as they are. */
#include "nn/networks.h"

#include <paracord/module.h>
#include <paracord/step.h>

static pc_module *small(void)
{
    return on_device(pc_sequential(pc_linear(3, 4), pc_activation(PC_ACTIVATION_TANH), pc_linear(4, 2)));
}

/* --- state dicts --- */

static void strict_names_all_that_differs(void **state)
{
    (void)state;
    pc_module *a = small();
    pc_parameter list[5];
    assert_int_equal(pc_module_parameter_list(a, list, 4), 4);
    assert_fails(pc_module_load(a, list, 2), PC_ERR_NOT_FOUND,
                 "the state has no 2.weight, 2.bias (2 missing, 0 unexpected)");
    snprintf(list[3].name, sizeof list[3].name, "2.offset");
    assert_fails(pc_module_load(a, list, 4), PC_ERR_NOT_FOUND,
                 "the state has no 2.bias, and has 2.offset, which the module has not (1 missing, 1 unexpected)");
    list[4] = list[0];
    assert_fails(pc_module_load(a, list, 5), PC_ERR_NOT_FOUND,
                 "has 2.offset, 0.weight, which the module has not, or not twice (1 missing, 2 unexpected)");
    snprintf(list[3].name, sizeof list[3].name, "2.bias");
    assert_fails(pc_module_load(a, list, 5), PC_ERR_NOT_FOUND,
                 "the state has 0.weight twice (0 missing, 1 unexpected)");
    pc_module_free(a);
    assert_nothing_left();
}

static void matching_takes_what_there_is(void **state)
{
    (void)state;
    pc_seed(1);
    pc_module *a = small(), *b = small();
    pc_parameter list[4];
    pc_load_report report;
    assert_int_equal(pc_module_parameter_list(a, list, 4), 4);
    PC_SCOPE {
        pc_tensor *bias = pc_clone(pc_detach(pc_module_parameter(b, "2.bias")));
        snprintf(list[3].name, sizeof list[3].name, "2.offset");
        assert_ok(pc_module_load_matching(b, list, 4, &report));
        assert_int_equal(report.loaded, 3);
        assert_int_equal(report.missing, 1);
        assert_int_equal(report.unexpected, 1);
        assert_string_equal(report.missing_names, "2.bias");
        assert_string_equal(report.unexpected_names, "2.offset");
        assert_true(distance(pc_module_parameter(b, "0.weight"), list[0].tensor) == 0);
        assert_true(distance(pc_module_parameter(b, "2.bias"), bias) == 0);
        assert_ok(pc_module_load_matching(b, list, 0, NULL));
        list[2].tensor = pc_zeros(PC_SHAPE(3), PC_F32, test_device());
        list[0].tensor = pc_zeros(PC_SHAPE(4, 3), PC_F32, test_device());
        assert_fails(pc_module_load_matching(b, list, 4, &report), PC_ERR_SHAPE, "2.weight");
        assert_true(distance(pc_module_parameter(b, "0.weight"), list[0].tensor) > 0);
    }
    pc_module_free(a);
    pc_module_free(b);
    assert_nothing_left();
}

static void long_lists_of_names_are_cut(void **state)
{
    (void)state;
    pc_module *net = pc_module_list_new(NULL, 0);
    for (int i = 0; i < 100; i++)
        assert_ok(pc_module_append(net, pc_linear(1, 1, .no_bias = true)));
    pc_load_report report;
    assert_ok(pc_module_load_matching(net, NULL, 0, &report));
    assert_int_equal(report.missing, 100);
    const size_t length = strlen(report.missing_names);
    assert_true(length > 400 && length < sizeof report.missing_names);
    assert_memory_equal(report.missing_names, "0.weight, 1.weight, ", 20);
    assert_string_equal(report.missing_names + length - 5, ", ...");
    assert_fails(pc_module_load(net, NULL, 0), PC_ERR_NOT_FOUND, "(100 missing, 0 unexpected)");
    pc_module_free(net);
    assert_nothing_left();
}

/* --- frozen parameters --- */

typedef struct job {
    pc_module *net;
    pc_optimizer *adamw;
    pc_tensor *x;
} job;

static pc_status learn(void *user)
{
    job *j = user;
    pc_status status = PC_ERR_STATE;
    PC_SCOPE {
        status = pc_backward(pc_mean(pc_forward(j->net, j->x)));
        status = status == PC_OK ? pc_optimizer_step(j->adamw) : status;
    }
    return status;
}

static bool moved(const job *j, const char *name, pc_tensor *before)
{
    return distance(pc_module_parameter(j->net, name), before) > 0;
}

static void frozen_ones_stay(void **state, bool recorded)
{
    (void)state;
    pc_seed(2);
    job j = {.net = small()};
    j.adamw = pc_adamw(j.net, .lr = 0.1, .weight_decay = 0.5);
    pc_step *step = pc_step_new(learn, &j, j.adamw);
    PC_SCOPE {
        j.x = pc_randn(PC_SHAPE(5, 3), PC_F32, test_device());
        pc_tensor *first = pc_clone(pc_detach(pc_module_parameter(j.net, "0.weight")));
        pc_tensor *last = pc_clone(pc_detach(pc_module_parameter(j.net, "2.bias")));
        assert_ok(pc_module_freeze(j.net, "0.*"));
        assert_false(pc_requires_grad(pc_module_parameter(j.net, "0.bias")));
        assert_ok(recorded ? pc_step_run(step) : learn(&j));
        assert_false(moved(&j, "0.weight", first));
        assert_true(moved(&j, "2.bias", last));
        assert_ok(pc_module_unfreeze(j.net, "0.weight"));
        assert_ok(recorded ? pc_step_run(step) : learn(&j));
        assert_true(moved(&j, "0.weight", first));
        assert_null(pc_step_why(step));
        assert_fails(pc_module_freeze(j.net, "3.*"), PC_ERR_NOT_FOUND, "no parameter of the Sequential");
    }
    pc_step_free(step);
    pc_optimizer_free(j.adamw);
    pc_module_free(j.net);
    assert_nothing_left();
}

static void optimisers_leave_frozen_ones(void **state)
{
    frozen_ones_stay(state, false);
}

static void recorded_steps_leave_frozen_ones(void **state)
{
    frozen_ones_stay(state, true);
}

/* The backward pass goes by what is frozen when it goes, and so do the sums that it leaves out. */
static void frozen_behind_the_forward_pass(void **state)
{
    (void)state;
    pc_module *net = small();
    pc_optimizer *sgd = pc_sgd(net, .lr = 1);
    for (int checkpointed = 0; checkpointed < 2; checkpointed++)
        PC_SCOPE {
            pc_tensor *last = pc_clone(pc_detach(pc_module_parameter(net, "2.weight")));
            pc_tensor *first = pc_clone(pc_detach(pc_module_parameter(net, "0.bias")));
            pc_module_set_checkpoint(net, checkpointed);
            pc_tensor *loss = pc_sum(pc_forward(net, pc_ones(PC_SHAPE(2, 3), PC_F32, test_device())));
            assert_ok(pc_module_freeze(net, "2.*"));
            assert_ok(pc_module_freeze(net, "0.weight"));
            assert_ok(pc_backward(loss));
            assert_null(pc_grad(pc_module_parameter(net, "2.weight")));
            assert_null(pc_grad(pc_module_parameter(net, "2.bias")));
            assert_null(pc_grad(pc_module_parameter(net, "0.weight")));
            assert_ok(pc_optimizer_step(sgd));
            assert_true(distance(pc_module_parameter(net, "2.weight"), last) == 0);
            assert_true(distance(pc_module_parameter(net, "0.bias"), first) > 0);
            assert_ok(pc_module_unfreeze(net, "*"));
            pc_module_zero_grad(net);
            loss = pc_sum(pc_forward(net, pc_ones(PC_SHAPE(2, 3), PC_F32, test_device())));
            assert_ok(pc_module_freeze(net, "*")); /* nothing wants the last record's */
            assert_ok(pc_backward(loss));
            assert_null(pc_grad(pc_module_parameter(net, "0.bias")));
            assert_ok(pc_module_unfreeze(net, "*"));
        }
    pc_optimizer_free(sgd);
    pc_module_free(net);
    assert_nothing_left();
}

static void what_was_collected_is_forgotten(void **state)
{
    (void)state;
    pc_module *net = small();
    PC_SCOPE {
        assert_ok(pc_backward(pc_sum(pc_forward(net, pc_ones(PC_SHAPE(1, 3), PC_F32, test_device())))));
        assert_ok(pc_module_freeze(net, "*"));
        assert_null(pc_grad(pc_module_parameter(net, "0.weight")));
        assert_false(pc_requires_grad(pc_forward(net, pc_ones(PC_SHAPE(1, 3), PC_F32, test_device()))));
        assert_ok(pc_module_unfreeze(net, "2.*"));
        assert_ok(pc_module_to(net, test_device(), PC_F64)); /* which keeps what is frozen */
        assert_false(pc_requires_grad(pc_module_parameter(net, "0.weight")));
        assert_true(pc_requires_grad(pc_module_parameter(net, "2.weight")));
    }
    pc_module_free(net);
    assert_nothing_left();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(strict_names_all_that_differs),    cmocka_unit_test(matching_takes_what_there_is),
        cmocka_unit_test(long_lists_of_names_are_cut),      cmocka_unit_test(optimisers_leave_frozen_ones),
        cmocka_unit_test(recorded_steps_leave_frozen_ones), cmocka_unit_test(frozen_behind_the_forward_pass),
        cmocka_unit_test(what_was_collected_is_forgotten),
    };
    return cmocka_run_group_tests_name("nn.freeze", tests, NULL, NULL);
}
