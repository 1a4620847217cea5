/* A recorded training step leaves the bits that plain steps leave: with short batches between, a changed learning
 * rate, and in turns; where a recording is refused, plain calls do. */
#include "faults.h"
#include "same.h"

#include "device.h"
#include "nn/step.h"

#include <paracord.h>

enum { FEATURES = 6, CLASSES = 3, BATCH = 4, SHORT = 2 };

typedef struct job {
    pc_module *net;
    pc_optimizer *optimizer;
    pc_tensor *x[PC__STEP_TURNS], *labels[PC__STEP_TURNS], *loss; /* what a whole step works with */
    int turn, turns;
    int calls;
    bool reads; /* look at the loss, in the middle */
    bool noise; /* random numbers beside dropout */
} job;

static pc_status learn_from(job *j, pc_tensor *x, pc_tensor *labels)
{
    pc_status status = PC_OK;
    j->calls++;
    PC_SCOPE {
        pc_tensor *noisy = j->noise ? pc_add(x, pc_rand(pc_tensor_shape(x), PC_F32, test_device())) : x;
        pc_tensor *loss = pc_cross_entropy(pc_forward(j->net, noisy), labels);
        float value;
        status = pc_backward(loss);
        if (status == PC_OK && j->reads)
            status = pc_read(loss, &value, sizeof value);
        if (status == PC_OK)
            status = pc_optimizer_step(j->optimizer);
        if (status == PC_OK)
            PC_NO_GRAD {
                status = pc_copy(j->loss, loss);
            }
    }
    return status;
}

static pc_status learn(void *context)
{
    job *j = context;
    return learn_from(j, j->x[j->turn], j->labels[j->turn]);
}

static pc_tensor *pictures(int seed, int64_t n)
{
    float values[BATCH * FEATURES];
    for (int i = 0; i < BATCH * FEATURES; i++)
        values[i] = (float)((i * 37 + seed * 11) % 101) / 101;
    return pc_from_data(values, PC_SHAPE(n, FEATURES), PC_F32, test_device());
}

static pc_tensor *classes(int seed, int64_t n)
{
    int64_t values[BATCH];
    for (int i = 0; i < BATCH; i++)
        values[i] = (i + seed) % CLASSES;
    return pc_from_data(values, PC_SHAPE(n), PC_I64, test_device());
}

static bool begin(job *j, bool adam, bool dropout)
{
    pc_seed(5);
    *j = (job){.turns = 1};
    j->net = dropout
                 ? pc_sequential(pc_linear(FEATURES, 5, .activation = PC_TANH), pc_dropout(0.3), pc_linear(5, CLASSES))
                 : pc_sequential(pc_linear(FEATURES, 5, .activation = PC_TANH), pc_linear(5, CLASSES));
    if (!j->net || pc_module_to(j->net, test_device(), PC_F32) != PC_OK)
        return false;
    j->optimizer = adam ? pc_adam(j->net, .lr = 1e-2) : pc_sgd(j->net, .lr = 0.05, .momentum = 0.9, .nesterov = true);
    PC_SCOPE {
        for (int i = 0; i < PC__STEP_TURNS; i++) {
            j->x[i] = pc_tensor_retain(pictures(0, BATCH));
            j->labels[i] = pc_tensor_retain(classes(0, BATCH));
        }
        j->loss = pc_tensor_retain(pc_zeros(PC_SHAPE_SCALAR, PC_F32, test_device()));
    }
    return j->optimizer && j->x[1] && j->labels[1] && j->loss;
}

static void end(job *j)
{
    for (int i = 0; i < PC__STEP_TURNS; i++) {
        pc_tensor_free(j->x[i]);
        pc_tensor_free(j->labels[i]);
    }
    pc_tensor_free(j->loss);
    pc_optimizer_free(j->optimizer);
    pc_module_free(j->net);
}

static pc_status one(job *j, pc_step *step, int i)
{
    pc_status status = PC_OK;
    PC_SCOPE {
        if (i % 5 == 4) {
            status = learn_from(j, pictures(i, SHORT), classes(i, SHORT));
        } else {
            j->turn = i % j->turns;
            status = pc_copy(j->x[j->turn], pictures(i, BATCH));
            if (status == PC_OK)
                status = pc_copy(j->labels[j->turn], classes(i, BATCH));
            if (status == PC_OK)
                status = step ? pc__step_run(step, j->turn) : learn(j);
        }
    }
    return status;
}

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
    assert_int_equal(recorded.calls, why ? 24 : 4 + 1 + 2 * turns); /* short, first, recorded */
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
    assert_true(strstr(pc_step_why(step), "step.c:") || strstr(pc_step_why(step), "+0x")); /* stripped: no lines */
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

/* A step that the host counts would be the same one with every launch. */
static void another_optimizer_is_not_recorded(void **state)
{
    (void)state;
    job j, other;
    assert_true(begin(&j, true, false) && begin(&other, true, false));
    pc_step *step = pc_step_new(learn, &j, other.optimizer);
    for (int i = 0; i < 3; i++)
        assert_ok(one(&j, step, i));
    assert_int_equal(j.optimizer->settings.step, 3);
    assert_non_null(strstr(pc_step_why(step), "pc_optimizer_step"));
    pc_step_free(step);
    assert_fails(pc_step_new(NULL, NULL, j.optimizer), PC_ERR_ARGUMENT, "function");
    assert_fails(pc_step_run(NULL), PC_ERR_ARGUMENT, "NULL");
    end(&j);
    end(&other);
}

/* --- what fails --- */

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

static int tidy(void **state)
{
    (void)state;
    assert_no_leak();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_bits_of_plain_steps),
        cmocka_unit_test(random_numbers_are_not_recorded),
        cmocka_unit_test(reading_is_not_recorded),
        cmocka_unit_test(turns_cost_nothing),
        cmocka_unit_test(gradients_add_up),
        cmocka_unit_test(turns_share_memory),
        cmocka_unit_test(another_optimizer_is_not_recorded),
        cmocka_unit_test(every_allocation_fails),
        cmocka_unit_test(the_device_fails),
    };
    return cmocka_run_group_tests_name("train.step", tests, NULL, tidy);
}
