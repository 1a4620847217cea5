/* Functions around forward passes, and in the way of gradients. */
#include "nn/networks.h"

#include <paracord/module.h>
#include <paracord/step.h>

typedef struct seen {
    int before, after;
    pc_shape in, out;
    double factor; /* not 0: results times this */
    const pc_module *module;
} seen;

static pc_status note_before(void *context, pc_module *module, pc_tensor **in, int in_count)
{
    seen *s = context;
    s->before++;
    s->module = module;
    assert_int_equal(in_count, 1);
    s->in = pc_tensor_shape(in[0]);
    return PC_OK;
}

static pc_status note_after(void *context, pc_module *module, pc_tensor *const *in, int in_count, pc_tensor **out,
                            int out_count)
{
    seen *s = context;
    (void)in;
    s->after++;
    s->module = module;
    assert_int_equal(in_count + out_count, 2);
    s->out = pc_tensor_shape(out[0]);
    if (s->factor != 0)
        out[0] = pc_mul_scalar(out[0], s->factor);
    return out[0] ? PC_OK : PC_ERR_STATE;
}

/* Of layers that would run as one, too. */
static void hooks_see_layers(void **state)
{
    (void)state;
    pc_seed(1);
    pc_module *net = on_device(pc_sequential(pc_conv2d(3, 4, 3), pc_activation(PC_ACTIVATION_RELU), pc_max_pool2d(2),
                                             pc_flatten(), pc_linear(4, 2)));
    seen conv = {0}, relu = {0}, pool = {0};
    pc_tensor *x = NULL, *plain = NULL, *hooked = NULL;
    PC_SCOPE {
        x = pc_tensor_retain(pc_randn(PC_SHAPE(2, 3, 4, 4), PC_F32, test_device()));
    }
    plain = pc_forward(net, x);
    const int first = pc_module_add_hook(pc_module_child(net, 0), note_before, note_after, &conv);
    assert_true(first > 0);
    assert_true(pc_module_add_hook(pc_module_child(net, 1), NULL, note_after, &relu) > 0);
    assert_true(pc_module_add_hook(pc_module_child(net, 2), note_before, NULL, &pool) > 0);
    hooked = pc_forward(net, x);
    assert_true(distance(plain, hooked) < 1e-6);
    pc_tensor_free(hooked);
    assert_ptr_equal(conv.module, pc_module_child(net, 0));
    assert_int_equal(conv.in.dim[1], 3);
    assert_int_equal(conv.out.dim[2], 2);
    assert_int_equal(relu.after, 1);
    assert_int_equal(relu.out.dim[1], 4);
    assert_int_equal(pool.in.dim[3], 2);
    assert_ok(pc_module_remove_hook(pc_module_child(net, 0), first));
    assert_fails(pc_module_remove_hook(pc_module_child(net, 0), first), PC_ERR_NOT_FOUND,
                 "Conv2d module has no hook 1");
    pc_tensor_free(pc_forward(net, x));
    assert_int_equal(conv.before, 1);
    assert_int_equal(relu.after, 2);
    assert_fails(pc_module_add_hook(net, NULL, NULL, NULL), PC_ERR_ARGUMENT, "before and after are NULL");
    pc_tensor_free(x);
    pc_tensor_free(plain);
    pc_module_free(net);
    assert_nothing_left();
}

static pc_status twice_the_input(void *context, pc_module *module, pc_tensor **in, int in_count)
{
    (void)context, (void)module, (void)in_count;
    in[0] = pc_mul_scalar(in[0], 2);
    return in[0] ? PC_OK : PC_ERR_STATE;
}

static pc_status refuse(void *context, pc_module *module, pc_tensor **in, int in_count)
{
    (void)context, (void)in, (void)in_count;
    return pc_fail(PC_ERR_STATE, "%s is not to be called", pc_module_type(module)->name);
}

static void hooks_replace_and_refuse(void **state)
{
    (void)state;
    pc_module *net = on_device(pc_linear(2, 3, .no_bias = true));
    seen s = {.factor = 5};
    PC_SCOPE {
        pc_tensor *x = pc_ones(PC_SHAPE(1, 2), PC_F32, test_device()), *y = pc_forward(net, x);
        assert_true(pc_module_add_hook(net, twice_the_input, NULL, NULL) > 0);
        const int second = pc_module_add_hook(net, NULL, note_after, &s);
        assert_true(distance(pc_forward(net, x), pc_mul_scalar(y, 10)) < 1e-6);
        assert_ok(pc_backward(pc_sum(pc_forward(net, x))));
        assert_close(pc_item(pc_mean(pc_grad(pc_module_parameter(net, "weight")))), 10, 1e-6);
        assert_ok(pc_module_remove_hook(net, second));
        assert_true(distance(pc_forward(net, x), pc_mul_scalar(y, 2)) < 1e-6);
        assert_true(pc_module_add_hook(net, refuse, NULL, NULL) > 0);
        assert_fails(pc_forward(net, x), PC_ERR_STATE, "Linear is not to be called");
    }
    pc_module_free(net);
    assert_nothing_left();
}

/* --- gradients --- */

typedef struct watcher {
    int calls;
    pc_tensor *kept;
    double factor;
    bool wrong;
} watcher;

static pc_tensor *watch_gradient(void *context, pc_tensor *gradient)
{
    watcher *w = context;
    w->calls++;
    if (w->wrong)
        return pc_sum(gradient);
    pc_tensor_free(w->kept);
    w->kept = pc_tensor_retain(gradient);
    return w->factor != 0 ? pc_mul_scalar(gradient, w->factor) : gradient;
}

static void gradients_go_by_hooks(void **state)
{
    (void)state;
    watcher looks = {0}, scales = {.factor = 10}, wrong = {.wrong = true};
    PC_SCOPE {
        pc_tensor *w = pc_full(PC_SHAPE(3), 2, PC_F32, test_device());
        assert_ptr_equal(pc_gradient_hook(w, watch_gradient, &looks), w); /* nothing to differentiate */
        assert_ok(pc_require_grad(w, true));
        pc_tensor *h = pc_gradient_hook(pc_mul(w, w), watch_gradient, &looks);
        pc_tensor *y = pc_mul_scalar(pc_gradient_hook(h, watch_gradient, &scales), 3);
        assert_close(pc_item(pc_sum(y)), 36, 1e-5);
        assert_ok(pc_backward(pc_sum(y)));
        assert_int_equal(looks.calls + scales.calls, 2);
        assert_close(pc_item(pc_mean(scales.kept)), 3, 0);
        assert_close(pc_item(pc_mean(looks.kept)), 30, 0);
        assert_close(pc_item(pc_mean(pc_grad(w))), 120, 0);
        assert_fails(pc_backward(pc_sum(pc_gradient_hook(w, watch_gradient, &wrong))), PC_ERR_SHAPE,
                     "gave [] for a gradient of shape [3]");
        assert_fails(pc_gradient_hook(w, NULL, NULL), PC_ERR_ARGUMENT, "function is NULL");
    }
    pc_tensor_free(looks.kept);
    pc_tensor_free(scales.kept);
    assert_nothing_left();
}

/* --- recorded: hooks are called once, what they queue is done at each launch --- */

typedef struct job {
    pc_module *net;
    pc_optimizer *sgd;
    pc_tensor *x, *sum;
    int calls;
} job;

static pc_status add_up(void *context, pc_module *module, pc_tensor *const *in, int in_count, pc_tensor **out,
                        int out_count)
{
    job *j = context;
    pc_status status = PC_OK;
    (void)module, (void)in, (void)in_count, (void)out_count;
    j->calls++;
    PC_NO_GRAD {
        status = pc_saxpy(j->sum, 1, pc_sum(out[0]));
    }
    return status;
}

static pc_tensor *halve(void *context, pc_tensor *gradient)
{
    ((job *)context)->calls++;
    return pc_mul_scalar(gradient, 0.5);
}

static pc_status learn(void *user)
{
    job *j = user;
    pc_status status = PC_ERR_STATE;
    PC_SCOPE {
        status = pc_backward(pc_mean(pc_gradient_hook(pc_forward(j->net, j->x), halve, j)));
        status = status == PC_OK ? pc_optimizer_step(j->sgd) : status;
    }
    return status;
}

static double after_steps(bool recorded, int *calls)
{
    pc_seed(4);
    double sum = 0;
    job j = {.net = on_device(pc_sequential(pc_linear(2, 2), pc_activation(PC_ACTIVATION_TANH)))};
    j.sgd = pc_sgd(j.net, .lr = 0.5);
    pc_step *step = pc_step_new(learn, &j, j.sgd);
    assert_true(pc_module_add_hook(pc_module_child(j.net, 0), NULL, add_up, &j) > 0);
    PC_SCOPE {
        j.x = pc_randn(PC_SHAPE(3, 2), PC_F32, test_device());
        j.sum = pc_zeros(PC_SHAPE_SCALAR, PC_F32, test_device());
        for (int i = 0; i < 3; i++)
            assert_ok(recorded ? pc_step_run(step) : learn(&j));
        *calls = j.calls;
        assert_ok(pc_module_remove_hook(pc_module_child(j.net, 0), 1));
        assert_ok(recorded ? pc_step_run(step) : learn(&j)); /* which adds nothing more */
        assert_null(pc_step_why(step));
        sum = pc_item(j.sum);
    }
    pc_step_free(step);
    pc_optimizer_free(j.sgd);
    pc_module_free(j.net);
    assert_nothing_left();
    return sum;
}

static void recorded_hooks_are_repeated(void **state)
{
    (void)state;
    int plain, recorded;
    const double sum = after_steps(false, &plain);
    assert_close(after_steps(true, &recorded), sum, 0);
    assert_int_equal(plain, 6);
    assert_int_equal(recorded, 2);
}

static pc_status read_it(void *context, pc_module *module, pc_tensor *const *in, int in_count, pc_tensor **out,
                         int out_count)
{
    (void)module, (void)in, (void)in_count, (void)out_count;
    ((job *)context)->calls++;
    return isnan(pc_item(pc_sum(out[0]))) ? PC_ERR_STATE : PC_OK;
}

static void hooks_that_read_make_plain_calls(void **state)
{
    (void)state;
    job j = {.net = on_device(pc_sequential(pc_linear(2, 2)))};
    j.sgd = pc_sgd(j.net, .lr = 0.5);
    pc_step *step = pc_step_new(learn, &j, j.sgd);
    assert_true(pc_module_add_hook(j.net, NULL, read_it, &j) > 0);
    PC_SCOPE {
        j.x = pc_ones(PC_SHAPE(3, 2), PC_F32, test_device());
        for (int i = 0; i < 3; i++)
            assert_ok(pc_step_run(step));
        assert_non_null(pc_step_why(step));
        assert_true(j.calls >= 6); /* each run, and its gradient */
    }
    assert_false(pc_failed());
    pc_step_free(step);
    pc_optimizer_free(j.sgd);
    pc_module_free(j.net);
    assert_nothing_left();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hooks_see_layers),
        cmocka_unit_test(hooks_replace_and_refuse),
        cmocka_unit_test(gradients_go_by_hooks),
        cmocka_unit_test(recorded_hooks_are_repeated),
        cmocka_unit_test(hooks_that_read_make_plain_calls),
    };
    return cmocka_run_group_tests_name("nn.hooks", tests, NULL, NULL);
}
