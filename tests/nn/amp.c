/* Mixed precision: which dtypes ops compute in, and casts that are kept. */
#include "failing.h"
#include "networks.h"

#include <paracord/amp.h>
#include <paracord/ops.h>
#include <paracord/step.h>

static const pc_dtype halves[] = {PC_F16, PC_BF16};

static pc_tensor *ones(pc_shape shape, pc_dtype dtype)
{
    return pc_ones(shape, dtype, test_device());
}

static void assert_dtype(pc_tensor *t, pc_dtype want)
{
    assert_not_null_ok(t);
    if (pc_tensor_dtype(t) != want)
        fail_msg("a result is %s, want %s", pc_dtype_name(pc_tensor_dtype(t)), pc_dtype_name(want));
}

/* As torch.autocast's lists. */
static void ops_choose_their_dtype(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++)
        PC_SCOPE {
            pc_dtype half = halves[i];
            pc_tensor *f = ones(PC_SHAPE(2, 2), PC_F32), *h = ones(PC_SHAPE(2, 2), half);
            pc_tensor *wide = ones(PC_SHAPE(2, 2), PC_F64), *labels = pc_zeros(PC_SHAPE(2), PC_I64, test_device());
            pc_tensor *x = ones(PC_SHAPE(1, 2, 3, 3), PC_F32), *w = ones(PC_SHAPE(2, 2, 3, 3), PC_F32);
            pc_tensor *row = ones(PC_SHAPE(2), PC_F32);
            assert_int_equal(pc_autocast_dtype(), PC_F32);
            PC_AUTOCAST(half) {
                assert_int_equal(pc_autocast_dtype(), half);
                assert_dtype(pc_matmul(f, f), half);
                assert_dtype(pc_matmul(h, f), half);
                assert_dtype(pc_matmul(wide, wide), PC_F64);
                assert_dtype(pc_fn_linear(f, f, row, PC_ACTIVATION_RELU), half);
                assert_dtype(pc_fn_linear(h, f, NULL, PC_ACTIVATION_NONE), half);
                assert_dtype(pc_fn_conv2d(x, w, row, (pc_fn_conv2d_options){.pool = 0}), half);
                assert_dtype(pc_softmax(h, 1), PC_F32);
                assert_dtype(pc_log_softmax(h, 0), PC_F32);
                assert_dtype(pc_sum(h), PC_F32);
                assert_dtype(pc_mean(h), PC_F32);
                assert_dtype(pc_sum_dims(h, PC_SHAPE(0), true), PC_F32);
                assert_dtype(pc_exp(h), PC_F32);
                assert_dtype(pc_log(h), PC_F32);
                assert_dtype(pc_bce_with_logits(h, f), PC_F32);
                assert_dtype(pc_mse(h, h), PC_F32);
                assert_dtype(pc_cross_entropy(h, labels), PC_F32);
                assert_dtype(pc_softmax(wide, 1), PC_F64);
                assert_dtype(pc_relu(h), half);
                assert_dtype(pc_tanh(f), PC_F32);
                assert_dtype(pc_add(h, f), PC_F32);
                PC_AUTOCAST(PC_F32) {
                    assert_dtype(pc_matmul(f, f), PC_F32);
                    assert_dtype(pc_softmax(h, 1), half);
                }
                PC_AUTOCAST(halves[1 - i])
                    assert_dtype(pc_matmul(h, f), halves[1 - i]);
                assert_dtype(pc_matmul(f, f), half);
            }
            assert_dtype(pc_matmul(f, f), PC_F32);
            assert_fails(pc_matmul(f, h), PC_ERR_DTYPE, "one floating dtype");
            PC_AUTOCAST(half) {
                assert_fails(pc_matmul(f, NULL), PC_ERR_ARGUMENT, "matmul");
                assert_fails(pc_fn_linear(NULL, f, NULL, PC_ACTIVATION_NONE), PC_ERR_ARGUMENT, "linear");
                assert_fails(pc_fn_conv2d(x, NULL, NULL, (pc_fn_conv2d_options){.pool = 0}), PC_ERR_ARGUMENT, "conv2d");
            }
        }
    assert_nothing_left();
}

/* Gradients of parameters are float32, and near those of float32. */
static void gradients(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        pc_seed(5);
        pc_module *net =
            on_device(pc_sequential(pc_conv2d(2, 4, 3, .activation = PC_ACTIVATION_RELU), pc_max_pool2d(2),
                                    pc_flatten(), pc_linear(36, 8, .activation = PC_ACTIVATION_TANH), pc_linear(8, 3)));
        pc_parameter list[8];
        int n = pc_module_parameter_list(net, list, 8);
        assert_int_equal(n, 6);
        PC_SCOPE {
            pc_tensor *x = pc_randn(PC_SHAPE(5, 2, 8, 8), PC_F32, test_device()), *exact[8], *loss[2];
            pc_tensor *labels = pc_from_data((int64_t[]){0, 1, 2, 0, 1}, PC_SHAPE(5), PC_I64, test_device());
            for (int pass = 0; pass < 2; pass++) {
                pc_dtype dtype = pass ? halves[i] : PC_F32;
                PC_AUTOCAST(dtype)
                    loss[pass] = pc_cross_entropy(pc_forward(net, x), labels);
                assert_dtype(loss[pass], PC_F32);
                assert_ok(pc_backward(loss[pass]));
                for (int k = 0; k < n; k++) {
                    assert_dtype(pc_grad(list[k].tensor), PC_F32);
                    if (pass == 0)
                        exact[k] = pc_clone(pc_grad(list[k].tensor));
                    else
                        assert_close(distance(pc_grad(list[k].tensor), exact[k]), 0, i ? 0.02 : 0.003);
                }
                pc_module_zero_grad(net);
            }
            assert_close(distance(loss[1], loss[0]), 0, i ? 0.02 : 0.003);
        }
        pc_module_free(net);
    }
    assert_nothing_left();
}

/* What adds up in float32 stays so: 257 is no number of bfloat16. */
static void sums_of_gradients_are_not_rounded(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_tensor *w = ones(PC_SHAPE(1, 1), PC_F32), *bias = ones(PC_SHAPE(1), PC_F32), *y = NULL;
        assert_ok(pc_require_grad(w, true));
        assert_ok(pc_require_grad(bias, true));
        PC_AUTOCAST(PC_BF16)
            y = pc_sum(pc_fn_linear(ones(PC_SHAPE(257, 1), PC_F32), w, bias, PC_ACTIVATION_NONE));
        assert_ok(pc_backward(y));
        assert_dtype(pc_grad(w), PC_F32);
        assert_dtype(pc_grad(bias), PC_F32);
        assert_close(pc_item(pc_grad(w)), 257, 0);
        assert_close(pc_item(pc_grad(bias)), 257, 0);
        pc_tensor *half = ones(PC_SHAPE(1, 1), PC_BF16); /* a leaf of 16 bits has a gradient of 16 bits */
        assert_ok(pc_require_grad(half, true));
        assert_ok(pc_backward(pc_sum(pc_fn_linear(ones(PC_SHAPE(257, 1), PC_BF16), half, NULL, PC_ACTIVATION_NONE))));
        assert_dtype(pc_grad(half), PC_BF16);
        assert_close(pc_item(pc_grad(half)), 256, 0);
        pc_tensor *made = pc_relu(half); /* and so has what a 16-bit op made */
        pc_zero_grad(half);
        assert_ok(pc_backward(pc_sum(pc_fn_linear(ones(PC_SHAPE(257, 1), PC_BF16), made, NULL, PC_ACTIVATION_NONE))));
        assert_dtype(pc_grad(half), PC_BF16);
        assert_close(pc_item(pc_grad(half)), 256, 0);
    }
    assert_nothing_left();
}

/* A parameter is cast once: two uses of it are one entry of its record, and no use sees a stale one. */
static void casts_are_kept(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_tensor *w = ones(PC_SHAPE(2, 2), PC_F32), *x = ones(PC_SHAPE(2, 2), PC_F32);
        assert_ok(pc_require_grad(w, true));
        PC_AUTOCAST(PC_BF16) {
            for (int round = 0; round < 3; round++) { /* a backward inside: its casts' records are gone through */
                pc_tensor *y = pc_sum(pc_matmul(pc_matmul(x, w), w));
                assert_close(pc_item(y), round < 2 ? 16 : 64, 0);
                assert_ok(pc_backward(y));
                assert_dtype(pc_grad(w), PC_F32);
                assert_close(pc_item(pc_sum(pc_grad(w))), round < 2 ? 32 : 64, 0);
                pc_zero_grad(w);
                if (round == 1)
                    PC_NO_GRAD
                        assert_ok(pc_fill(w, 2));
            }
            PC_NO_GRAD
                assert_false(pc_requires_grad(pc_matmul(x, w)));
            assert_true(pc_requires_grad(pc_matmul(x, w)));
            PC_NO_GRAD
                assert_ok(pc_fill(w, 3));
            assert_close(pc_item(pc_sum(pc_matmul(x, w))), 24, 0);
        }
    }
    assert_nothing_left();
}

typedef struct two_losses {
    pc_tensor *w, *bias, *x;
    bool together, inside; /* in one scope; with the backward passes in it */
    pc_status again;       /* of the first loss */
} two_losses;

static pc_status two_backwards(void *user)
{
    two_losses *l = user;
    pc_status status[2] = {PC_OK, PC_OK};
    PC_SCOPE {
        pc_tensor *loss[2];
        pc_autocast_scope scope = pc_autocast_enter(PC_BF16);
        for (int i = 0; i < 2; i++) {
            loss[i] = pc_mean(pc_fn_linear(i ? pc_mul_scalar(l->x, 2) : l->x, l->w, l->bias, PC_ACTIVATION_NONE));
            if (!l->together)
                status[i] = pc_backward(loss[i]);
        }
        if (!l->inside)
            pc_autocast_leave(&scope);
        for (int i = 0; i < 2 && l->together; i++)
            status[i] = pc_backward(loss[i]);
        pc_autocast_leave(&scope);
        l->again = pc_failed() ? PC_OK : pc_backward(loss[0]);
        if (l->again == PC_ERR_STATE)
            pc_error_clear();
    }
    return status[0] ? status[0] : status[1];
}

/* Two losses go through one cast of a parameter, each by itself; their own records are gone through once. */
static void losses_share_casts(void **state)
{
    (void)state;
    PC_SCOPE {
        two_losses l = {.w = ones(PC_SHAPE(3, 4), PC_F32), .bias = ones(PC_SHAPE(3), PC_F32)};
        l.x = ones(PC_SHAPE(2, 4), PC_F32);
        assert_ok(pc_require_grad(l.w, true));
        assert_ok(pc_require_grad(l.bias, true));
        for (int way = 0; way < 4; way++) { /* the last: as a recording */
            l.together = way > 0;
            l.inside = way == 2;
            if (way < 3) {
                assert_ok(two_backwards(&l));
                assert_int_equal(l.again, PC_ERR_STATE);
            } else {
                pc_stream *stream = pc_stream_current(test_device());
                assert_ok(pc_graph_begin(stream));
                assert_ok(two_backwards(&l));
                pc_graph *graph = pc_graph_end(stream);
                assert_not_null_ok(graph);
                assert_ok(pc_graph_launch(graph, stream));
                pc_graph_free(graph);
            }
            assert_close(distance(pc_grad(l.w), pc_full(PC_SHAPE(3, 4), 1, PC_F32, test_device())), 0, 0.01);
            assert_close(distance(pc_grad(l.bias), pc_full(PC_SHAPE(3), 2.0 / 3, PC_F32, test_device())), 0, 0.01);
            pc_zero_grad(l.w);
            pc_zero_grad(l.bias);
        }
    }
    assert_nothing_left();
}

/* A parameter that changed between two losses is cast again, and each loss has its own cast. */
static void losses_have_casts_of_their_own_weights(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_tensor *w = ones(PC_SHAPE(1, 1), PC_F32), *x = ones(PC_SHAPE(1, 1), PC_F32), *loss[2];
        assert_ok(pc_require_grad(w, true));
        assert_ok(pc_require_grad(x, true));
        PC_AUTOCAST(PC_BF16)
            for (int i = 0; i < 2; i++) {
                loss[i] = pc_sum(pc_matmul(x, w));
                PC_NO_GRAD
                    assert_ok(pc_fill(w, 4));
            }
        for (int i = 0; i < 2; i++) {
            assert_close(pc_item(loss[i]), i ? 4 : 1, 0);
            assert_ok(pc_backward(loss[i]));
            assert_close(pc_item(pc_grad(x)), i ? 5 : 1, 0);
            assert_close(pc_item(pc_grad(w)), i + 1, 0);
        }
    }
    assert_nothing_left();
}

/* The second use of a parameter takes no memory for another cast. */
static void one_cast_a_scope(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_tensor *w = ones(PC_SHAPE(256, 256), PC_F32), *x = ones(PC_SHAPE(2, 256), PC_BF16);
        assert_ok(pc_require_grad(w, true));
        PC_AUTOCAST(PC_BF16) {
            int64_t before = test_memory().in_use;
            assert_dtype(pc_matmul(x, w), PC_BF16);
            int64_t first = test_memory().in_use - before;
            assert_dtype(pc_matmul(x, w), PC_BF16);
            int64_t second = test_memory().in_use - before - first;
            assert_true(first - second >= 256 * 256 * 2);
        }
    }
    assert_nothing_left();
}

typedef struct two_layers {
    pc_module *net;
    pc_optimizer *sgd;
    pc_tensor *x;
} two_layers;

static pc_status two_layers_step(void *user)
{
    const two_layers *l = user;
    pc_status status = PC_OK;
    PC_SCOPE {
        pc_tensor *loss = pc_sum(pc_forward(l->net, l->x));
        status = loss ? pc_backward(loss) : pc_error_last()->status;
        if (status == PC_OK)
            status = pc_optimizer_step(l->sgd);
    }
    return status;
}

/* Steps inside one scope, each after a forward pass whose casts nobody has gone back through. */
static void steps_in_a_scope(bool recorded, float weights[2])
{
    two_layers l = {.net =
                        on_device(pc_sequential(pc_linear(1, 1, .no_bias = true), pc_linear(1, 1, .no_bias = true)))};
    pc_parameter list[2];
    assert_int_equal(pc_module_parameter_list(l.net, list, 2), 2);
    for (int i = 0; i < 2; i++)
        PC_NO_GRAD
            assert_ok(pc_fill(list[i].tensor, 1));
    l.sgd = pc_sgd(l.net, .lr = 0.25);
    PC_SCOPE {
        l.x = ones(PC_SHAPE(1, 1), PC_F32);
        pc_step *step = recorded ? pc_step_new(two_layers_step, &l, l.sgd) : NULL;
        PC_AUTOCAST(PC_BF16)
            for (int i = 0; i < 4; i++) {
                assert_dtype(pc_forward(l.net, l.x), PC_BF16);
                assert_ok(step ? pc_step_run(step) : two_layers_step(&l));
            }
        if (step && pc_step_why(step))
            fail_msg("not recorded: %s", pc_step_why(step));
        pc_step_free(step);
        for (int i = 0; i < 2; i++)
            assert_ok(pc_read(list[i].tensor, &weights[i], sizeof(float)));
    }
    pc_optimizer_free(l.sgd);
    pc_module_free(l.net);
}

/* Each launch casts the parameters as they are then. */
static void recordings_cast_anew(void **state)
{
    (void)state;
    float plain[2], recorded[2];
    steps_in_a_scope(false, plain);
    steps_in_a_scope(true, recorded);
    assert_true(plain[0] == recorded[0] && plain[1] == recorded[1]);
    assert_nothing_left();
}

static double learn(pc_dtype dtype, int steps)
{
    pc_seed(1);
    pc_module *net = on_device(pc_sequential(pc_linear(8, 32, .activation = PC_ACTIVATION_RELU), pc_linear(32, 1)));
    pc_optimizer *adam = pc_adam(net, .lr = 1e-2);
    pc_scaler *scaler = dtype == PC_F16 ? pc_scaler(test_device()) : NULL;
    double last = INFINITY;
    PC_SCOPE {
        pc_tensor *x = pc_randn(PC_SHAPE(64, 8), PC_F32, test_device());
        pc_tensor *sums = pc_sum_dims(x, PC_SHAPE(1), true);
        pc_tensor *y = pc_cast(pc_gt(sums, pc_scalar(0, PC_F32, test_device())), PC_F32);
        for (int i = 0; i < steps; i++)
            PC_SCOPE {
                pc_tensor *loss = NULL;
                PC_AUTOCAST(dtype)
                    loss = pc_bce_with_logits(pc_forward(net, x), y);
                assert_ok(pc_backward(scaler ? pc_scaler_scale(scaler, loss) : loss));
                if (scaler) {
                    assert_ok(pc_scaler_step(scaler, adam));
                    assert_ok(pc_scaler_update(scaler));
                } else {
                    assert_ok(pc_optimizer_step(adam));
                }
                last = pc_item(loss);
            }
    }
    pc_scaler_free(scaler);
    pc_optimizer_free(adam);
    pc_module_free(net);
    return last;
}

static void learns(void **state)
{
    (void)state;
    double single = learn(PC_F32, 100);
    assert_true(single < 0.02);
    for (int i = 0; i < 2; i++)
        assert_close(learn(halves[i], 100), single, 0.3 * single);
    assert_nothing_left();
}

/* --- every allocation of a step fails once --- */

static bool train_a_little(void)
{
    pc_module *net = pc_sequential(pc_conv2d(1, 2, 3, .activation = PC_ACTIVATION_RELU), pc_max_pool2d(2), pc_flatten(),
                                   pc_linear(8, 1));
    pc_optimizer *adam = pc_adam(net);
    pc_scaler *scaler = pc_scaler(test_device(), .initial = 256);
    bool fine = adam && scaler;
    PC_SCOPE {
        pc_tensor *x = pc_rand(PC_SHAPE(2, 1, 6, 6), PC_F32, test_device()), *loss = NULL;
        pc_tensor *y = pc_ones(PC_SHAPE(2, 1), PC_F32, test_device());
        PC_AUTOCAST(PC_F16)
            loss = pc_add(pc_bce_with_logits(pc_forward(net, x), y), pc_mean(pc_forward(net, x)));
        fine = fine && pc_backward(pc_scaler_scale(scaler, loss)) == PC_OK && pc_scaler_step(scaler, adam) == PC_OK &&
               pc_scaler_update(scaler) == PC_OK && pc_scaler_value(scaler) == 256;
    }
    pc_scaler_free(scaler);
    pc_optimizer_free(adam);
    pc_module_free(net);
    return fine;
}

static void every_allocation_fails_once(void **state)
{
    (void)state;
    only_on_the_cpu();
    assert_nothing_left();
    assert_ok(pc_allocator_set(&failing));
    bool reached = true;
    for (int i = 0; reached; i++) {
        pc_error_clear();
        countdown = i;
        bool fine = train_a_little();
        reached = countdown < 0;
        countdown = -1;
        if (fine == pc_failed())
            fail_msg("allocation %d failed: %s, and the error says: %s", i, fine ? "all is fine" : "an error",
                     pc_error_last()->message);
        if (!reached)
            assert_true(fine && i > 100);
        pc_error_clear();
        assert_nothing_left();
    }
    assert_ok(pc_allocator_set(NULL));
}

static void bad_input(void **state)
{
    (void)state;
    pc_device nowhere = {-1, 0};
    assert_fails(pc_scaler(test_device(), .growth = 0.5), PC_ERR_ARGUMENT, "grows by 0.5");
    assert_fails(pc_scaler(test_device(), .backoff = 1), PC_ERR_ARGUMENT, "backs off by 1");
    assert_fails(pc_scaler(test_device(), .initial = -1), PC_ERR_ARGUMENT, "scale of -1");
    assert_fails(pc_scaler(test_device(), .initial = 1e-40), PC_ERR_ARGUMENT, "at least 6e-08");
    assert_fails(pc_scaler(test_device(), .interval = -1), PC_ERR_ARGUMENT, "-1 steps");
    assert_fails(pc_scaler(nowhere), PC_ERR_DEVICE, "device");
    assert_fails(pc_scaler_scale(NULL, NULL), PC_ERR_ARGUMENT, "pc_scaler_scale");
    assert_fails(pc_scaler_step(NULL, NULL) == PC_OK, PC_ERR_ARGUMENT, "pc_scaler_step");
    assert_fails(pc_scaler_unscale(NULL, NULL) == PC_OK, PC_ERR_ARGUMENT, "pc_scaler_unscale");
    assert_fails(pc_scaler_update(NULL) == PC_OK, PC_ERR_ARGUMENT, "pc_scaler_update");
    assert_fails(isnan(pc_scaler_value(NULL)), PC_ERR_ARGUMENT, "pc_scaler_value");
    pc_scaler_free(NULL);
    assert_nothing_left();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ops_choose_their_dtype),
        cmocka_unit_test(gradients),
        cmocka_unit_test(sums_of_gradients_are_not_rounded),
        cmocka_unit_test(casts_are_kept),
        cmocka_unit_test(losses_share_casts),
        cmocka_unit_test(losses_have_casts_of_their_own_weights),
        cmocka_unit_test(one_cast_a_scope),
        cmocka_unit_test(recordings_cast_anew),
        cmocka_unit_test(learns),
        cmocka_unit_test(every_allocation_fails_once),
        cmocka_unit_test(bad_input),
    };
    return cmocka_run_group_tests_name("nn.amp", tests, NULL, NULL);
}
