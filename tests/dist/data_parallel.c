/* One network on several devices of the process: results and gradients are those of one device. */
#include "device.h"

#include <paracord.h>

enum { DEVICES = 4, IN = 6, OUT = 3 };

static pc_device device_of(int i)
{
    const pc_device first = test_device();
    if (first.type == PC_SIM)
        return (pc_device){PC_SIM, (int16_t)i};
    const int gpus = first.type == PC_CUDA ? pc_device_count(PC_CUDA, NULL, 0) : 1;
    return (pc_device){first.type, (int16_t)(i % gpus)};
}

static pc_module *network(int device)
{
    pc_seed(4 + (uint64_t)device); /* weights of others do not count */
    pc_module *net =
        pc_sequential(pc_linear(IN, 8, .activation = PC_ACTIVATION_RELU), pc_batch_norm2d(8), pc_linear(8, OUT));
    assert_not_null_ok(net);
    assert_ok(pc_module_to(net, device_of(device), PC_F32));
    return net;
}

static pc_module *plain(int device)
{
    pc_seed(4 + (uint64_t)device);
    pc_module *net = pc_sequential(pc_linear(IN, 8, .activation = PC_ACTIVATION_RELU), pc_linear(8, OUT));
    assert_not_null_ok(net);
    assert_ok(pc_module_to(net, device_of(device), PC_F32));
    return net;
}

static void compare(int devices, int samples)
{
    pc_module *nets[DEVICES], *alone = plain(0);
    for (int i = 0; i < devices; i++)
        nets[i] = plain(i);
    pc_data_parallel *parallel = pc_data_parallel_new(nets, devices);
    assert_not_null_ok(parallel);
    pc_optimizer *a = pc_sgd(nets[0], .lr = 0.1), *b = pc_sgd(alone, .lr = 0.1);
    for (int step = 0; step < 3; step++)
        PC_SCOPE {
            pc_seed(90 + (uint64_t)step);
            pc_tensor *x = pc_randn(PC_SHAPE(samples, IN), PC_F32, device_of(0));
            assert_ok(pc_require_grad(x, true));
            pc_tensor *y = pc_data_parallel_forward(parallel, x), *z = pc_forward(alone, pc_detach(x));
            assert_not_null_ok(y);
            assert_close(pc_item(pc_max(pc_abs(pc_sub(y, z)))), 0, 1e-6);
            assert_ok(pc_backward(pc_mean(pc_mul(y, y))));
            assert_ok(pc_backward(pc_mean(pc_mul(z, z))));
            pc_parameter mine[4], theirs[4];
            assert_int_equal(pc_module_parameter_list(nets[0], mine, 4), 4);
            assert_int_equal(pc_module_parameter_list(alone, theirs, 4), 4);
            for (int i = 0; i < 4; i++)
                assert_close(pc_item(pc_max(pc_abs(pc_sub(pc_grad(mine[i].tensor), pc_grad(theirs[i].tensor))))), 0,
                             1e-6);
            assert_non_null(pc_grad(x));
            assert_ok(pc_optimizer_step(a));
            assert_ok(pc_optimizer_step(b));
        }
    pc_optimizer_free(a);
    pc_optimizer_free(b);
    pc_data_parallel_free(parallel);
    for (int i = 0; i < devices; i++)
        pc_module_free(nets[i]);
    pc_module_free(alone);
}

/* As many samples as devices, more, fewer, and pieces that are not equal. */
static void results_are_those_of_one_device(void **state)
{
    (void)state;
    if (test_device().type == PC_SIM)
        assert_ok(pc_sim_configure((pc_sim_options){.devices = DEVICES}));
    for (int n = 1; n <= DEVICES; n++)
        for (int samples = 1; samples <= 9; samples += 2)
            compare(n, samples);
}

/* With a weight under two names. */
static pc_module *tied(int device)
{
    pc_module *net = plain(device);
    assert_ok(pc_module_add_parameter(net, "again", pc_module_parameter(net, "0.weight")));
    return net;
}

static pc_tensor *loss_of_two(pc_tensor *y, pc_tensor *z)
{
    return pc_add(pc_mean(pc_square(y)), pc_mean(pc_square(z)));
}

static void fill(pc_module *net, const char *name, double value)
{
    PC_NO_GRAD {
        assert_ok(pc_fill(pc_module_parameter(net, name), value));
    }
}

/* Two passes, and an evaluation, in front of a backward pass; what is written in between counts, in whichever replica. */
static void several_forward_passes(void **state)
{
    (void)state;
    pc_module *nets[] = {tied(0), tied(1)}, *alone = tied(0);
    pc_data_parallel *parallel = pc_data_parallel_new(nets, 2);
    assert_not_null_ok(parallel);
    pc_optimizer *a = pc_sgd(nets[0], .lr = 0.1), *b = pc_sgd(alone, .lr = 0.1);
    for (int step = 0; step < 4; step++)
        PC_SCOPE {
            pc_tensor *x = pc_randn(PC_SHAPE(6, IN), PC_F32, device_of(0)), *more = pc_add_scalar(x, 1);
            if (step == 2) /* which the first one does not have */
                fill(nets[1], "0.weight", 9);
            if (step == 3) {
                fill(nets[0], "1.bias", 0.5);
                fill(alone, "1.bias", 0.5);
            }
            pc_tensor *y = pc_data_parallel_forward(parallel, x), *z = pc_data_parallel_forward(parallel, more);
            assert_close(pc_item(pc_max(pc_abs(pc_sub(y, pc_forward(alone, x))))), 0, 1e-6);
            PC_NO_GRAD {
                assert_not_null_ok(pc_data_parallel_forward(parallel, more));
            }
            assert_ok(pc_backward(loss_of_two(y, z)));
            assert_ok(pc_backward(loss_of_two(pc_forward(alone, x), pc_forward(alone, more))));
            pc_parameter mine[5], theirs[5];
            assert_int_equal(pc_module_parameter_list(nets[0], mine, 5), 5);
            assert_int_equal(pc_module_parameter_list(alone, theirs, 5), 5);
            for (int i = 0; i < 5; i++)
                assert_close(pc_item(pc_max(pc_abs(pc_sub(pc_grad(mine[i].tensor), pc_grad(theirs[i].tensor))))), 0,
                             1e-6);
            assert_ok(pc_optimizer_step(a));
            assert_ok(pc_optimizer_step(b));
        }
    pc_optimizer_free(a);
    pc_optimizer_free(b);
    pc_data_parallel_free(parallel);
    pc_module_free(nets[0]);
    pc_module_free(nets[1]);
    pc_module_free(alone);
}

/* Every pass of training writes the running statistics of all replicas; those of the first one are what counts. */
static void evaluations_between(void **state)
{
    (void)state;
    pc_module *nets[2];
    for (int i = 0; i < 2; i++) {
        nets[i] = pc_sequential(pc_linear(IN, 8), pc_batch_norm1d(8), pc_linear(8, OUT));
        assert_not_null_ok(nets[i]);
        assert_ok(pc_module_to(nets[i], device_of(i), PC_F32));
    }
    pc_data_parallel *parallel = pc_data_parallel_new(nets, 2);
    assert_not_null_ok(parallel);
    for (int step = 0; step < 3; step++)
        PC_SCOPE {
            pc_tensor *x = pc_randn(PC_SHAPE(8, IN), PC_F32, device_of(0));
            pc_tensor *y = pc_data_parallel_forward(parallel, x);
            PC_NO_GRAD {
                pc_module_set_training(nets[0], false);
                pc_tensor *got = pc_data_parallel_forward(parallel, x), *want = pc_forward(nets[0], x);
                assert_close(pc_item(pc_max(pc_abs(pc_sub(got, want)))), 0, 1e-6);
                pc_module_set_training(nets[0], true);
            }
            assert_ok(pc_backward(pc_mean(pc_square(y))));
            pc_module_zero_grad(nets[0]);
        }
    pc_data_parallel_free(parallel);
    pc_module_free(nets[0]);
    pc_module_free(nets[1]);
}

typedef struct recorded {
    pc_module *net;
    pc_data_parallel *parallel;
    pc_optimizer *sgd;
    pc_tensor *x;
} recorded;

static pc_status learn(void *user)
{
    const recorded *r = user;
    pc_status status = PC_OK;
    PC_SCOPE {
        pc_tensor *y = r->parallel ? pc_data_parallel_forward(r->parallel, r->x) : pc_forward(r->net, r->x);
        status = pc_backward(pc_mean(pc_square(y)));
    }
    return status == PC_OK ? pc_optimizer_step(r->sgd) : status;
}

/* Weights travel in every launch of a step that is recorded, and behind it. */
static void recorded_steps(void **state)
{
    (void)state;
    pc_module *nets[] = {plain(0), plain(1)}, *alone = plain(0);
    pc_data_parallel *parallel = pc_data_parallel_new(nets, 2);
    assert_not_null_ok(parallel);
    PC_SCOPE {
        pc_tensor *x = pc_randn(PC_SHAPE(6, IN), PC_F32, device_of(0));
        recorded r = {nets[0], parallel, pc_sgd(nets[0], .lr = 0.1), x},
                 one = {alone, NULL, pc_sgd(alone, .lr = 0.1), x};
        pc_step *step = pc_step_new(learn, &r, r.sgd);
        for (int i = 0; i < 6; i++) {
            assert_ok(i == 4 ? learn(&r) : pc_step_run(step));
            assert_ok(learn(&one));
        }
        pc_tensor *y = pc_data_parallel_forward(parallel, x), *z = pc_forward(alone, x);
        assert_close(pc_item(pc_max(pc_abs(pc_sub(y, z)))), 0, 1e-6);
        assert_true(test_device().type != PC_CPU || !pc_step_why(step));
        pc_step_free(step);
        pc_optimizer_free(r.sgd);
        pc_optimizer_free(one.sgd);
    }
    pc_data_parallel_free(parallel);
    pc_module_free(nets[0]);
    pc_module_free(nets[1]);
    pc_module_free(alone);
}

/* The parameters of the first count: frozen in front of the forward pass, behind it, and trained again. */
static void what_is_frozen_stays(void **state)
{
    (void)state;
    pc_module *nets[] = {plain(0), plain(1)};
    assert_ok(pc_module_freeze(nets[0], "0.*"));
    assert_ok(pc_module_freeze(nets[1], "1.*"));
    pc_data_parallel *parallel = pc_data_parallel_new(nets, 2);
    assert_not_null_ok(parallel);
    pc_tensor *first = pc_module_parameter(nets[0], "0.weight"), *last = pc_module_parameter(nets[0], "1.bias");
    for (int step = 0; step < 3; step++)
        PC_SCOPE {
            if (step == 2)
                assert_ok(pc_module_unfreeze(nets[0], "0.*"));
            pc_tensor *y = pc_data_parallel_forward(parallel, pc_ones(PC_SHAPE(4, IN), PC_F32, device_of(0)));
            if (step == 1)
                assert_ok(pc_module_freeze(nets[0], "1.*"));
            assert_ok(pc_backward(pc_sum(y)));
            assert_true((pc_grad(first) != NULL) == (step == 2));
            assert_true((pc_grad(last) != NULL) == (step == 0));
            if (step == 0) /* by both pieces */
                assert_close(pc_item(pc_max(pc_grad(last))), 4, 0);
        }
    pc_data_parallel_free(parallel);
    pc_module_free(nets[0]);
    pc_module_free(nets[1]);
}

/* As PyTorch's replicas: a normalisation that is not trained, in a network that is. */
static void each_layer_has_its_mode(void **state)
{
    (void)state;
    pc_module *nets[2];
    for (int i = 0; i < 2; i++) {
        nets[i] = pc_sequential(pc_sequential(pc_linear(IN, 8), pc_batch_norm1d(8)), pc_dropout(0.5));
        assert_not_null_ok(nets[i]);
        assert_ok(pc_module_to(nets[i], device_of(i), PC_F32));
    }
    pc_data_parallel *parallel = pc_data_parallel_new(nets, 2);
    assert_not_null_ok(parallel);
    for (int mode = 0; mode < 16; mode++)
        PC_SCOPE {
            pc_module_set_training(nets[0], mode & 1);
            pc_module_set_training(pc_module_child(nets[0], 0), mode & 2);
            pc_module_set_training(pc_module_child_named(nets[0], "0.1"), mode & 4);
            pc_module_set_training(pc_module_child(nets[0], 1), mode & 8);
            pc_tensor *x = pc_ones(PC_SHAPE(4, IN), PC_F32, device_of(0));
            assert_not_null_ok(pc_data_parallel_forward(parallel, x));
            assert_true(pc_module_is_training(nets[1]) == !!(mode & 1));
            assert_true(pc_module_is_training(pc_module_child(nets[1], 0)) == !!(mode & 2));
            assert_true(pc_module_is_training(pc_module_child_named(nets[1], "0.0")) == !!(mode & 2));
            assert_true(pc_module_is_training(pc_module_child_named(nets[1], "0.1")) == !!(mode & 4));
            assert_true(pc_module_is_training(pc_module_child(nets[1], 1)) == !!(mode & 8));
        }
    pc_data_parallel_free(parallel);
    pc_module_free(nets[0]);
    pc_module_free(nets[1]);
}

static void what_cannot_be(void **state)
{
    (void)state;
    pc_module *a = plain(0), *b = network(0), *nets[] = {a, b};
    assert_fails(pc_data_parallel_new(nets, 2) != NULL, PC_ERR_ARGUMENT, "has nothing like 1.weight, float32 [3, 8]");
    assert_fails(pc_data_parallel_new(nets, 0) != NULL, PC_ERR_ARGUMENT, "0 replicas");
    pc_data_parallel *one = pc_data_parallel_new(nets, 1);
    PC_SCOPE {
        assert_fails(pc_data_parallel_forward(one, pc_scalar(1, PC_F32, device_of(0))) != NULL, PC_ERR_SHAPE,
                     "no dimension to cut");
        assert_fails(pc_data_parallel_forward(one, NULL) != NULL, PC_ERR_ARGUMENT, "x is NULL");
    }
    pc_data_parallel_free(one);
    pc_module_free(a);
    pc_module_free(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(results_are_those_of_one_device),
        cmocka_unit_test(several_forward_passes),
        cmocka_unit_test(evaluations_between),
        cmocka_unit_test(recorded_steps),
        cmocka_unit_test(what_is_frozen_stays),
        cmocka_unit_test(each_layer_has_its_mode),
        cmocka_unit_test_teardown(what_cannot_be, nothing_left),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
