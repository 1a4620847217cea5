/* Forward passes of which inputs and results alone are kept: the bits of those that keep all, in less memory. */
#include "nn/networks.h"

#include <paracord/amp.h>
#include <paracord/module.h>
#include <paracord/step.h>

enum { BLOCKS = 6, BATCH = 4, WIDTH = 16, LOSSES = 4 };

static pc_module *block(void)
{
    return pc_residual(pc_sequential(pc_conv2d(4, 4, 3, .padding = 1), pc_batch_norm2d(4),
                                     pc_activation(PC_ACTIVATION_GELU), pc_dropout(0.3),
                                     pc_conv2d(4, 4, 3, .padding = 1)),
                       .activation = PC_ACTIVATION_RELU);
}

/* What is kept of blocks: all; inputs and results; of the body inside too. */
typedef enum kept { ALL, LITTLE, LESS } kept;

static pc_module *network(kept what)
{
    pc_module *net = pc_sequential(pc_conv2d(3, 4, 3, .padding = 1));
    for (int i = 0; i < BLOCKS; i++) {
        assert_ok(pc_module_append(net, block()));
        pc_module_set_checkpoint(pc_module_child(net, i + 1), what != ALL);
        pc_module_set_checkpoint(pc_module_child_named(pc_module_child(net, i + 1), "body"), what == LESS);
    }
    assert_ok(pc_module_append(net, pc_flatten()));
    assert_ok(pc_module_append(net, pc_linear(4 * WIDTH * WIDTH, 3)));
    return on_device(net);
}

typedef struct job {
    pc_module *net;
    pc_optimizer *sgd;
    pc_tensor *x, *labels, *loss;
    pc_dtype dtype;
} job;

static pc_status learn(void *user)
{
    job *j = user;
    pc_status status = PC_ERR_STATE;
    PC_SCOPE {
        pc_tensor *loss = NULL;
        PC_AUTOCAST(j->dtype) {
            loss = pc_cross_entropy(pc_forward(j->net, j->x), j->labels);
        }
        status = pc_backward(loss);
        status = status == PC_OK ? pc_optimizer_step(j->sgd) : status;
        PC_NO_GRAD {
            status = status == PC_OK ? pc_copy(j->loss, loss) : status;
        }
    }
    return status;
}

static job begin(kept what, pc_dtype dtype)
{
    pc_seed(6);
    job j = {.net = network(what), .dtype = dtype};
    j.sgd = pc_sgd(j.net, .lr = 0.05, .momentum = 0.9);
    j.x = pc_randn(PC_SHAPE(BATCH, 3, WIDTH, WIDTH), PC_F32, test_device());
    j.labels = pc_from_data((const int64_t[]){0, 1, 2, 1}, PC_SHAPE(BATCH), PC_I64, test_device());
    j.loss = pc_zeros(PC_SHAPE_SCALAR, PC_F32, test_device());
    return j;
}

/* Losses of some steps, and what the running statistics are behind them. */
static void losses(kept what, bool recorded, pc_dtype dtype, double *values)
{
    PC_SCOPE {
        job j = begin(what, dtype);
        pc_step *step = pc_step_new(learn, &j, j.sgd);
        for (int i = 0; i < LOSSES; i++) {
            assert_ok(recorded ? pc_step_run(step) : learn(&j));
            values[i] = pc_item(j.loss);
        }
        assert_null(pc_step_why(step));
        values[LOSSES] = pc_item(pc_sum(pc_module_buffer(j.net, "2.body.1.running_var")));
        values[LOSSES + 1] = pc_item(pc_module_buffer(j.net, "2.body.1.num_batches_tracked"));
        values[LOSSES + 2] = (double)pc_generator_get().step;
        pc_step_free(step);
        pc_optimizer_free(j.sgd);
        pc_module_free(j.net);
    }
    assert_nothing_left();
}

static void compare(bool recorded, pc_dtype dtype)
{
    double all[LOSSES + 3], some[LOSSES + 3];
    losses(ALL, recorded, dtype, all);
    for (kept what = LITTLE; what <= LESS; what++) {
        losses(what, recorded, dtype, some);
        for (int i = 0; i < LOSSES + 3; i++)
            assert_close(some[i], all[i], 0);
    }
    assert_true(fabs(all[LOSSES - 1] - all[0]) > 1e-3);
}

static void the_same_bits(void **state)
{
    (void)state;
    compare(false, PC_F32);
}

static void the_same_bits_recorded(void **state)
{
    (void)state;
    compare(true, PC_F32);
}

static void the_same_bits_in_16_bits(void **state)
{
    (void)state;
    compare(false, PC_BF16);
    compare(true, PC_BF16);
}

/* --- memory --- */

static int64_t most_in_use(kept what, bool recorded)
{
    int64_t most = 0;
    PC_SCOPE {
        job j = begin(what, PC_F32);
        const int64_t before = test_memory().in_use;
        pc_step *step = pc_step_new(learn, &j, j.sgd);
        for (int i = 0; i < 2; i++)
            assert_ok(recorded ? pc_step_run(step) : learn(&j));
        (void)pc_item(j.loss);
        most = (recorded ? test_memory().in_use : test_memory().peak) - before;
        pc_step_free(step);
        pc_optimizer_free(j.sgd);
        pc_module_free(j.net);
    }
    return most;
}

/* The peak is that of the process so far: what takes less comes first. */
static void less_memory(void **state)
{
    (void)state;
    const int64_t some = most_in_use(LITTLE, false), all = most_in_use(ALL, false);
    print_message("bytes at once: %lld, keeping all %lld\n", (long long)some, (long long)all);
    assert_true(some * 10 < all * 7);
}

/* Where nothing is cached temporaries share no memory. */
static void less_memory_in_recordings(void **state)
{
    (void)state;
    const char *cache = getenv("PARACORD_CACHE");
    if (cache && strcmp(cache, "off") == 0)
        skip();
    const int64_t some = most_in_use(LITTLE, true), all = most_in_use(ALL, true);
    print_message("bytes of the recording: %lld, keeping all %lld\n", (long long)some, (long long)all);
    assert_true(some * 10 < all * 7);
}

/* --- by itself --- */

static void of_any_module(void **state)
{
    (void)state;
    pc_seed(3);
    pc_module *net = on_device(pc_sequential(pc_linear(3, 3, .activation = PC_ACTIVATION_TANH), pc_dropout(0.5)));
    PC_SCOPE {
        pc_tensor *x = pc_randn(PC_SHAPE(4, 3), PC_F32, test_device());
        assert_ok(pc_require_grad(x, true));
        const pc_generator from = pc_generator_get();
        pc_tensor *y = pc_forward(net, x);
        assert_ok(pc_backward(pc_sum(y)));
        pc_tensor *dx = pc_tensor_retain(pc_grad(x)), *dw = pc_clone(pc_grad(pc_module_parameter(net, "0.weight")));
        pc_zero_grad(x);
        pc_module_zero_grad(net);
        pc_generator_set(from);
        pc_tensor *z = pc_checkpoint(net, x);
        assert_true(distance(z, y) == 0);
        assert_int_equal(pc_generator_get().step, from.step + 1);
        assert_non_null(pc_rand(PC_SHAPE(2), PC_F32, test_device())); /* between the two passes */
        const pc_generator between = pc_generator_get();
        assert_ok(pc_backward(pc_sum(z)));
        assert_int_equal(pc_generator_get().step, between.step);
        assert_true(distance(pc_grad(x), dx) == 0);
        assert_true(distance(pc_grad(pc_module_parameter(net, "0.weight")), dw) == 0);
        pc_tensor_free(dx);
        PC_NO_GRAD {
            assert_false(pc_requires_grad(pc_checkpoint(net, x)));
        }
        assert_ok(pc_module_freeze(net, "*"));
        assert_false(pc_requires_grad(pc_checkpoint(net, pc_detach(x))));
        assert_true(pc_requires_grad(pc_checkpoint(net, x)));
    }
    pc_module_free(net);
    assert_nothing_left();
}

/* The second forward pass would be another one, silently. A mode that was changed and changed back is the same. */
static void modes_that_have_changed(void **state)
{
    (void)state;
    pc_module *net = on_device(pc_sequential(pc_linear(3, 4), pc_sequential(pc_dropout(0.5)), pc_linear(4, 1)));
    pc_module *deep = pc_module_child(pc_module_child(net, 1), 0);
    PC_SCOPE {
        pc_tensor *x = pc_ones(PC_SHAPE(2, 3), PC_F32, test_device());
        for (int part = 0; part < 2; part++) {
            pc_module *changed = part ? deep : net;
            pc_tensor *loss = pc_sum(pc_checkpoint(net, x));
            pc_module_set_training(changed, false);
            assert_fails(pc_backward(loss), PC_ERR_STATE, "the training mode of the checkpoint of Sequential");
            assert_null(pc_grad(pc_module_parameter(net, "0.weight")));
            loss = pc_sum(pc_checkpoint(net, x));
            pc_module_set_training(net, true);
            assert_fails(pc_backward(loss), PC_ERR_STATE, "or of a part of it");
            loss = pc_sum(pc_checkpoint(net, x));
            pc_module_set_training(net, false);
            pc_module_set_training(net, true);
            assert_ok(pc_backward(loss));
            assert_non_null(pc_grad(pc_module_parameter(net, "0.weight")));
            pc_module_zero_grad(net);
        }
    }
    pc_module_free(net);
    assert_nothing_left();
}

static pc_tensor *broken(void *context, pc_tensor *x)
{
    int *calls = context;
    if (++*calls < 2)
        return pc_mul_scalar(x, 2);
    (void)pc_fail(PC_ERR_STATE, "the second time is one too many");
    return NULL;
}

static void what_goes_wrong(void **state)
{
    (void)state;
    int calls = 0;
    pc_module *net = pc_function_module(broken, &calls);
    PC_SCOPE {
        pc_tensor *x = pc_ones(PC_SHAPE(2), PC_F32, test_device());
        assert_ok(pc_require_grad(x, true));
        pc_tensor *y = pc_checkpoint(net, x);
        assert_fails(pc_backward(pc_sum(y)), PC_ERR_STATE, "one too many");
        assert_true(pc_grad_enabled());
        assert_fails(pc_checkpoint(NULL, x), PC_ERR_ARGUMENT, "module is NULL");
        calls = 0;
        pc_tensor *h = pc_mul_scalar(x, 1);
        y = pc_checkpoint(net, h);
        PC_NO_GRAD {
            assert_ok(pc_fill(h, 3));
        }
        assert_fails(pc_backward(pc_sum(y)), PC_ERR_STATE, "changed in place since");
    }
    pc_module_free(net);
    assert_nothing_left();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(less_memory), /* first, for the peak */
        cmocka_unit_test(less_memory_in_recordings),
        cmocka_unit_test(the_same_bits),
        cmocka_unit_test(the_same_bits_recorded),
        cmocka_unit_test(the_same_bits_in_16_bits),
        cmocka_unit_test(of_any_module),
        cmocka_unit_test(modes_that_have_changed),
        cmocka_unit_test(what_goes_wrong),
    };
    return cmocka_run_group_tests_name("nn.checkpoint", tests, NULL, NULL);
}
