/* A recorded training step leaves the bits that plain steps leave: with short batches between, a changed learning
 * rate, and in turns; where a recording is refused, plain calls do. */
#include "same.h"
#include "step_job.h"

static void compare(bool adam, bool dropout, bool noise, int turns, const char *why)
{
    job plain, recorded;
    pc_generator generator = {3, 0};
    assert_true(begin(&plain, adam, dropout) && begin(&recorded, adam, dropout));
    plain.noise = recorded.noise = noise;
    recorded.turns = turns;
    pc_step *step = pc_step_new(learn, &recorded, recorded.optimizer);
    assert_not_null_ok(step);
    for (int i = 0; i < 23; i++) {
        double rate = i < 12 ? 0.02 : 0.01;
        pc_optimizer_set_lr(plain.optimizer, rate);
        pc_optimizer_set_lr(recorded.optimizer, rate);
        pc_generator_set(generator);
        assert_ok(one(&plain, NULL, i));
        pc_generator_set(generator);
        assert_ok(one(&recorded, step, i));
        pc_generator now = pc_generator_get();
        assert_true(now.seed == generator.seed && now.step == generator.step + dropout + noise);
        generator = i == 15 ? (pc_generator){3, 1000} : now;
        assert_same(plain.optimizer, recorded.optimizer);
        assert_same_bits(plain.loss, recorded.loss);
        for (int k = 0; k < recorded.optimizer->count; k++)
            assert_null(pc_grad(recorded.optimizer->parameters[k]));
    }
    if (why)
        assert_non_null(strstr(pc_step_why(step), why));
    else
        assert_null(pc_step_why(step));
    assert_int_equal(plain.calls, 23);
    assert_int_equal(recorded.calls, why ? 25 : 4 + turns); /* short, recorded; refused twice */
    pc_step_free(step);
    end(&plain);
    end(&recorded);
}

static void the_bits_of_plain_steps(void **state)
{
    (void)state;
    for (int dropout = 0; dropout < 2; dropout++) {
        for (int turns = 1; turns <= PC__STEP_TURNS; turns++) {
            compare(true, dropout, false, turns, NULL);
            compare(false, dropout, false, turns, NULL);
        }
    }
}

static void random_numbers_are_not_recorded(void **state)
{
    (void)state;
    for (int turns = 1; turns <= PC__STEP_TURNS; turns++) {
        compare(true, false, true, turns, "random");
        compare(true, true, true, turns, "random");
    }
}

/* What a launch takes besides its recording, in operations of a simulated device: nothing, in turns or not. */
static void turns_cost_nothing(void **state)
{
    (void)state;
    enum { WARM = 4, LAUNCHES = 8 };
    const pc_device device = test_device();
    if (device.type != PC_SIM)
        skip();
    int64_t operations[PC__STEP_TURNS];
    for (int turns = 1; turns <= PC__STEP_TURNS; turns++) {
        job j;
        assert_true(begin(&j, true, true));
        j.turns = turns;
        pc_step *step = pc_step_new(learn, &j, j.optimizer);
        for (int i = 0; i < WARM + LAUNCHES; i++) {
            assert_ok(pc_device_synchronize(device));
            if (i == WARM)
                operations[turns - 1] = pc_sim_operations(device);
            j.turn = i % turns;
            assert_ok(pc__step_run(step, j.turn));
        }
        assert_ok(pc_device_synchronize(device));
        operations[turns - 1] = pc_sim_operations(device) - operations[turns - 1];
        pc_step_free(step);
        end(&j);
    }
    assert_int_equal(operations[0], operations[1]);
}

static void reading_is_not_recorded(void **state)
{
    (void)state;
    job plain, recorded;
    assert_true(begin(&plain, true, false) && begin(&recorded, true, false));
    plain.reads = recorded.reads = true;
    pc_step *step = pc_step_new(learn, &recorded, recorded.optimizer);
    assert_null(pc_step_why(step));
    for (int i = 0; i < 8; i++) {
        assert_ok(one(&plain, NULL, i));
        assert_ok(one(&recorded, step, i));
    }
    assert_same(plain.optimizer, recorded.optimizer);
    assert_true(strstr(pc_step_why(step), "step_job.h:") || strstr(pc_step_why(step), "+0x")); /* stripped: no lines */
    assert_false(pc_failed());
    pc_step_free(step);
    end(&plain);
    end(&recorded);
}

/* What steps in turns keep for their launches, they keep once. */
static void turns_share_memory(void **state)
{
    (void)state;
    int64_t in_use[PC__STEP_TURNS];
    if (getenv("PARACORD_CACHE"))
        skip(); /* for checkers of memory every tensor is by itself */
    for (int turns = 1; turns <= PC__STEP_TURNS; turns++) {
        job j;
        assert_true(begin(&j, true, true));
        j.turns = turns;
        pc_step *step = pc_step_new(learn, &j, j.optimizer);
        for (int i = 0; i < 4; i++) {
            j.turn = i % turns;
            assert_ok(pc__step_run(step, j.turn));
        }
        assert_ok(pc_device_synchronize(test_device()));
        in_use[turns - 1] = test_memory().in_use;
        pc_step_free(step);
        end(&j);
    }
    assert_int_equal(in_use[0], in_use[1]);
}

typedef struct late_job {
    job *j;
    pc_tensor *noise; /* made by the first call */
} late_job;

static pc_status learn_late(void *context)
{
    late_job *late = context;
    const float noise[FEATURES] = {.1f, -.1f, .2f};
    pc_tensor *x = NULL;
    PC_SCOPE {
        if (!late->noise)
            late->noise = pc_tensor_retain(pc_from_data(noise, PC_SHAPE(1, FEATURES), PC_F32, test_device()));
        x = pc_tensor_retain(pc_add(late->j->x[0], late->noise));
    }
    const pc_status status = x ? learn_from(late->j, x, late->j->labels[0]) : pc_error_last()->status;
    pc_tensor_free(x);
    return status;
}

/* What the first call alone does keeps no later one from being recorded. */
static void what_the_first_call_makes(void **state)
{
    (void)state;
    job plain, recorded;
    assert_true(begin(&plain, true, false) && begin(&recorded, true, false));
    late_job one = {&plain, NULL}, other = {&recorded, NULL};
    pc_step *step = pc_step_new(learn_late, &other, recorded.optimizer);
    for (int i = 0; i < 4; i++) {
        assert_ok(learn_late(&one));
        assert_ok(pc_step_run(step));
        assert_same(plain.optimizer, recorded.optimizer);
    }
    assert_null(pc_step_why(step));
    assert_true(recorded.calls < 4);
    pc_step_free(step);
    pc_tensor_free(one.noise);
    pc_tensor_free(other.noise);
    end(&plain);
    end(&recorded);
}

/* Gradients that wait to be added to are not overlooked. */
static void gradients_add_up(void **state)
{
    (void)state;
    job plain, recorded;
    assert_true(begin(&plain, true, false) && begin(&recorded, true, false));
    pc_step *step = pc_step_new(learn, &recorded, recorded.optimizer);
    for (int i = 0; i < 4; i++) {
        PC_SCOPE {
            for (int k = 0; i % 2 && k < 2; k++) {
                job *j = k ? &plain : &recorded;
                assert_ok(pc_backward(pc_cross_entropy(pc_forward(j->net, j->x[0]), j->labels[0])));
            }
        }
        assert_ok(one(&plain, NULL, i));
        assert_ok(one(&recorded, step, i));
        assert_same(plain.optimizer, recorded.optimizer);
    }
    pc_step_free(step);
    end(&plain);
    end(&recorded);
}

/* Gradients that the function leaves to an optimiser of the program's own, which steps behind every run or every second
 * one; or wait there at first. A run is a launch where none waits. */
static void compare_left(int every, bool wait, int calls)
{
    enum { RUNS = 8 };
    job jobs[2];
    pc_optimizer *rest[2];
    for (int k = 0; k < 2; k++) {
        assert_true(begin(&jobs[k], true, false));
        pc_optimizer_free(jobs[k].optimizer);
        jobs[k].optimizer = pc_adam(pc_module_child(jobs[k].net, 1), .lr = 1e-2);
        rest[k] = pc_sgd(pc_module_child(jobs[k].net, 0), .lr = 0.1);
        assert_true(jobs[k].optimizer && rest[k]);
        PC_SCOPE {
            if (wait)
                assert_ok(pc_backward(pc_sum(pc_forward(jobs[k].net, jobs[k].x[0]))));
            for (int i = 0; i < jobs[k].optimizer->count; i++)
                pc_zero_grad(jobs[k].optimizer->parameters[i]);
        }
    }
    pc_step *step = pc_step_new(learn, &jobs[1], jobs[1].optimizer);
    for (int i = 0; i < RUNS; i++) {
        assert_ok(learn(&jobs[0]));
        assert_ok(pc_step_run(step));
        for (int p = 0; p < rest[0]->count; p++) {
            assert_true(pc_grad(rest[0]->parameters[p]) && pc_grad(rest[1]->parameters[p]));
            assert_same_bits(pc_grad(rest[0]->parameters[p]), pc_grad(rest[1]->parameters[p]));
        }
        for (int k = 0; k < 2 && i % every == every - 1; k++)
            assert_ok(pc_optimizer_step(rest[k]));
        assert_same(jobs[0].optimizer, jobs[1].optimizer);
        assert_same(rest[0], rest[1]);
    }
    assert_null(pc_step_why(step));
    assert_int_equal(jobs[1].calls, calls);
    pc_step_free(step);
    for (int k = 0; k < 2; k++) {
        pc_optimizer_free(rest[k]);
        end(&jobs[k]);
    }
}

static void gradients_are_left_to_others(void **state)
{
    (void)state;
    compare_left(1, false, 1);
    compare_left(2, false, 5);
    compare_left(1, true, 3);
    compare_left(2, true, 7);
}

/* A step that the host counts would be the same one with every launch. */
static void another_optimizer_is_not_recorded(void **state)
{
    (void)state;
    job j, other, plain;
    assert_true(begin(&j, true, false) && begin(&other, true, false) && begin(&plain, true, false));
    pc_step *step = pc_step_new(learn, &j, other.optimizer);
    for (int i = 0; i < 3; i++)
        assert_ok(one(&j, step, i));
    assert_int_equal(j.optimizer->settings.step, 3);
    assert_non_null(strstr(pc_step_why(step), "pc_optimizer_step"));
    for (int i = 0; i < 3; i++)
        assert_ok(one(&plain, NULL, i));
    assert_same(plain.optimizer, j.optimizer); /* none of the gradients in them that were refused */
    assert_same_bits(plain.loss, j.loss);
    pc_step_free(step);
    assert_fails(pc_step_new(NULL, NULL, j.optimizer), PC_ERR_ARGUMENT, "function");
    assert_fails(pc_step_run(NULL), PC_ERR_ARGUMENT, "NULL");
    end(&plain);
    end(&j);
    end(&other);
}

static pc_status steps_the_other(void *context)
{
    job *const *both = context; /* the first has the network */
    pc_status status = learn(both[0]);
    return status == PC_OK ? pc_optimizer_step(both[1]->optimizer) : status;
}

/* Nor would a launch know its new rate. */
static void the_rate_of_another_optimizer(void **state)
{
    (void)state;
    job jobs[2], beside[2];
    pc_step *step = NULL;
    for (int k = 0; k < 2; k++) {
        assert_true(begin(&jobs[k], true, false));
        pc_optimizer_free(jobs[k].optimizer);
        jobs[k].optimizer = pc_adam(pc_module_child(jobs[k].net, 1), .lr = 1e-2);
        beside[k] = (job){.optimizer = pc_sgd(pc_module_child(jobs[k].net, 0), .lr = 0.1)};
        assert_true(jobs[k].optimizer && beside[k].optimizer);
    }
    job *plain[] = {&jobs[0], &beside[0]}, *recorded[] = {&jobs[1], &beside[1]};
    step = pc_step_new(steps_the_other, recorded, jobs[1].optimizer);
    for (int i = 0; i < 6; i++) {
        for (int k = 0; k < 2; k++)
            pc_optimizer_set_lr(beside[k].optimizer, i < 3 ? 0.1 : 0.01);
        assert_ok(steps_the_other(plain));
        assert_ok(pc_step_run(step));
        assert_same(jobs[0].optimizer, jobs[1].optimizer);
        assert_same(beside[0].optimizer, beside[1].optimizer);
    }
    assert_non_null(strstr(pc_step_why(step), "pc_optimizer_step"));
    pc_step_free(step);
    for (int k = 0; k < 2; k++) {
        pc_optimizer_free(beside[k].optimizer);
        end(&jobs[k]);
    }
}

static pc_status takes_a_batch(job *j, pc_tensor **x, pc_tensor **labels)
{
    pc_batch batch;
    if (!pc_loader_next(j->loader, &batch) && (pc_failed() || !pc_loader_next(j->loader, &batch)))
        return pc_error_last()->status;
    *x = batch.x;
    *labels = batch.y;
    return PC_OK;
}

static pc_status lowers_the_rate(job *j, pc_tensor **x, pc_tensor **labels)
{
    (void)x, (void)labels;
    pc_optimizer_set_lr(j->optimizer, 0.75 * pc_optimizer_lr(j->optimizer));
    return PC_OK;
}

static pc_status forgets_moments(job *j, pc_tensor **x, pc_tensor **labels)
{
    (void)x, (void)labels;
    return pc_optimizer_reset(j->optimizer);
}

/* Batches that stay on the device, or come from the host. */
static void give_batches(job *j, int kind)
{
    PC_SCOPE {
        pc_tensor *x = pc_cat((pc_tensor *[]){pictures(1, BATCH), pictures(2, BATCH), pictures(3, SHORT)}, 3, 0);
        pc_tensor *y = pc_cat((pc_tensor *[]){classes(1, BATCH), classes(2, BATCH), classes(3, SHORT)}, 3, 0);
        j->loader = pc_loader_from_tensors(x, y, .batch = 3, .shuffle = true, .device = test_device(),
                                           .resident = kind ? PC_RESIDENCE_NO : PC_RESIDENCE_AUTO);
    }
    assert_not_null_ok(j->loader);
}

/* A launch would train on one batch again and again, at the rate that was there first. */
static void what_the_host_does_is_not_recorded(void **state)
{
    (void)state;
    static const struct {
        pc_status (*first)(job *j, pc_tensor **x, pc_tensor **labels);
        const char *why;
    } kinds[] = {{takes_a_batch, "pc_loader_next"},
                 {takes_a_batch, "pc_loader_next"},
                 {lowers_the_rate, "pc_optimizer_set_lr"},
                 {forgets_moments, "pc_optimizer_reset"}};
    for (int k = 0; k < (int)(sizeof kinds / sizeof *kinds); k++) {
        job plain, recorded;
        assert_true(begin(&plain, true, false) && begin(&recorded, true, false));
        plain.first = recorded.first = kinds[k].first;
        give_batches(&plain, k);
        give_batches(&recorded, k);
        pc_step *step = pc_step_new(learn, &recorded, recorded.optimizer);
        for (int i = 0; i < 7; i++) {
            assert_ok(learn(&plain));
            assert_ok(pc_step_run(step));
            assert_same(plain.optimizer, recorded.optimizer);
            assert_same_bits(plain.loss, recorded.loss);
        }
        assert_close(pc_optimizer_lr(plain.optimizer), pc_optimizer_lr(recorded.optimizer), 0);
        assert_non_null(strstr(pc_step_why(step), kinds[k].why));
        assert_false(pc_failed());
        pc_step_free(step);
        end(&plain);
        end(&recorded);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_bits_of_plain_steps),
        cmocka_unit_test(random_numbers_are_not_recorded),
        cmocka_unit_test(reading_is_not_recorded),
        cmocka_unit_test(turns_cost_nothing),
        cmocka_unit_test(what_the_first_call_makes),
        cmocka_unit_test(gradients_add_up),
        cmocka_unit_test(gradients_are_left_to_others),
        cmocka_unit_test(turns_share_memory),
        cmocka_unit_test(another_optimizer_is_not_recorded),
        cmocka_unit_test(the_rate_of_another_optimizer),
        cmocka_unit_test(what_the_host_does_is_not_recorded),
    };
    return cmocka_run_group_tests_name("train.step", tests, NULL, tidy);
}
