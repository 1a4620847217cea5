/* Nothing that goes wrong in training steps is lost, call by call or recorded; weights and a reset optimiser go on. */
#include "faults.h"
#include "device/sim_support.h"
#include "step_job.h"

enum { STEPS = 7 };

static float expected[FEATURES * 5];

/* True: the weights are as expected, or are the first. */
static bool train_for_a_while(void *adam)
{
    job j;
    float weights[FEATURES * 5];
    bool fine = begin(&j, adam != NULL, false);
    pc_step *step = fine ? pc_step_new(learn, &j, j.optimizer) : NULL;
    fine = step != NULL;
    for (int i = 0; fine && i < STEPS; i++)
        fine = one(&j, step, i) == PC_OK;
    fine = fine && pc_read(j.optimizer->parameters[0], weights, sizeof weights) == PC_OK;
    pc_step_free(step);
    end(&j);
    if (fine && expected[0] != 0)
        assert_memory_equal(weights, expected, sizeof weights);
    if (fine)
        memcpy(expected, weights, sizeof weights);
    return fine;
}

static void every_allocation_fails(void **state)
{
    (void)state;
    only_on_the_cpu();
    for (int adam = 0; adam < 2; adam++) {
        expected[0] = 0;
        assert_true(train_for_a_while(adam ? "adam" : NULL));
        fail_each("recorded steps", train_for_a_while, adam ? "adam" : NULL, false);
        fail_each("recorded steps, all later ones too", train_for_a_while, adam ? "adam" : NULL, true);
    }
}

/* Nothing that goes wrong on the device is lost between plain steps, a recording and its launches. */
static void the_device_fails(void **state)
{
    (void)state;
    pc_device device = test_device();
    if (device.type != PC_SIM)
        skip();
    expected[0] = 0;
    assert_ok(pc_device_synchronize(device));
    int64_t before = pc_sim_operations(device);
    assert_true(train_for_a_while("adam"));
    int64_t operations = pc_sim_operations(device) - before;
    for (int64_t i = 1; i <= operations; i++) {
        assert_ok(pc_sim_inject(device, PC_SIM_FAIL_ANY, i));
        assert_false(train_for_a_while("adam") && pc_device_synchronize(device) == PC_OK);
        (void)!pc_device_synchronize(device);
        pc_error_clear();
    }
    for (int64_t i = 1; i <= 40; i++) {
        assert_ok(pc_memory_trim(device));
        assert_ok(pc_sim_inject(device, PC_SIM_FAIL_MEMORY, i));
        bool fine = train_for_a_while("adam");
        assert_int_equal(pc_error_last()->status, fine ? PC_OK : PC_ERR_MEMORY);
        assert_ok(pc_sim_inject(device, PC_SIM_NO_FAULT, 0));
        pc_error_clear();
        assert_ok(pc_device_synchronize(device));
    }
    assert_true(train_for_a_while("adam"));
}

/* Start and steps from given weights; the weights after them. */
static pc_status from_weights(job *j, pc_step *step, const pc_tensor *start[], float weights[])
{
    PC_NO_GRAD {
        for (int i = 0; i < j->optimizer->count; i++)
            PC__TRY(pc_copy(j->optimizer->parameters[i], (pc_tensor *)start[i]));
    }
    if (j->optimizer->slots)
        PC__TRY(pc_optimizer_reset(j->optimizer));
    for (int i = 0; i < j->optimizer->count; i++)
        pc_zero_grad(j->optimizer->parameters[i]);
    pc_seed(5);
    for (int i = 0; i < STEPS; i++)
        PC__TRY(one(j, step, i));
    return pc_read(j->optimizer->parameters[0], weights, FEATURES * 5 * sizeof *weights);
}

/* After a failure, wherever it was, weights and a reset are all that it takes to go on, with the bits of the first
 * time; SGD without a momentum keeps nothing and takes no reset. */
static void goes_on_after(bool adam, bool momentum)
{
    job j;
    pc_tensor *start[8];
    float first[FEATURES * 5], again[FEATURES * 5];
    assert_true(begin(&j, adam, true));
    if (!adam && !momentum) {
        pc_optimizer_free(j.optimizer);
        j.optimizer = pc_sgd(j.net, .lr = 0.05);
    }
    for (int i = 0; i < j.optimizer->count; i++)
        PC_SCOPE {
            start[i] = pc_tensor_retain(pc_clone(pc_detach(j.optimizer->parameters[i])));
        }
    pc_step *step = pc_step_new(learn, &j, j.optimizer);
    assert_ok(from_weights(&j, step, (const pc_tensor **)start, first));
    int64_t before = pc_sim_operations(test_device());
    assert_ok(from_weights(&j, step, (const pc_tensor **)start, again));
    assert_memory_equal(first, again, sizeof first);
    const int64_t operations = pc_sim_operations(test_device()) - before;
    for (int64_t i = 1; i <= operations; i++) {
        assert_ok(pc_sim_inject(test_device(), PC_SIM_FAIL_ANY, i));
        assert_int_not_equal(from_weights(&j, step, (const pc_tensor **)start, again), PC_OK);
        (void)!pc_device_synchronize(test_device());
        pc_error_clear();
        assert_ok(from_weights(&j, step, (const pc_tensor **)start, again));
        assert_memory_equal(first, again, sizeof first);
    }
    pc_step_free(step);
    for (int i = 0; i < j.optimizer->count; i++)
        pc_tensor_free(start[i]);
    end(&j);
}

static void goes_on_after_a_failure(void **state)
{
    (void)state;
    if (test_device().type != PC_SIM)
        skip();
    goes_on_after(true, false);
    goes_on_after(false, true);
    goes_on_after(false, false);
}

/* Without a reset the error names the optimiser and the parameter, call by call and recorded. */
static void lost_moments_are_named(void **state)
{
    (void)state;
    if (test_device().type != PC_SIM)
        skip();
    for (int recorded = 0; recorded < 2; recorded++) {
        job j;
        assert_true(begin(&j, true, false));
        pc_step *step = pc_step_new(learn, &j, j.optimizer);
        for (int i = 0; i < 3; i++)
            assert_ok(one(&j, recorded ? step : NULL, i));
        assert_ok(pc_device_synchronize(test_device()));
        assert_ok(pc_sim_inject(test_device(), PC_SIM_FAIL_KERNEL, 1));
        stop_stream(pc_stream_current(test_device())); /* the failure is told when all of the step is queued */
        assert_ok(one(&j, recorded ? step : NULL, 4));
        let_go();
        (void)!pc_device_synchronize(test_device());
        pc_error_clear();
        PC_NO_GRAD {
            for (int i = 0; i < j.optimizer->count; i++)
                assert_ok(pc_fill(j.optimizer->parameters[i], 0.1));
        }
        assert_int_equal(one(&j, recorded ? step : NULL, 5), PC_ERR_BACKEND);
        const char *said = pc_error_last()->message;
        if (!strstr(said, "adam") || !strstr(said, "parameter 0 [5, 6]") || !strstr(said, "pc_optimizer_reset"))
            fail_msg("\"%s\"", said);
        pc_error_clear();
        pc_step_free(step);
        end(&j);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_allocation_fails),
        cmocka_unit_test(the_device_fails),
        cmocka_unit_test(goes_on_after_a_failure),
        cmocka_unit_test(lost_moments_are_named),
    };
    return cmocka_run_group_tests_name("train.step_failures", tests, NULL, tidy);
}
