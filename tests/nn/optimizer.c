/* Optimisers against torch.optim (golden/nn.txt), and what they do with gradients. */
#include "nn/networks.h"

#include <paracord/threads.h>

enum { N = 5 };

static pc_tensor *times(pc_module *module, pc_tensor *x)
{
    return pc_mul(x, pc_module_parameter(module, "w"));
}

static const pc_module_class weight_class = {.name = "Weight", .forward = times};

/* A module with one parameter "w". */
static pc_module *weight(const double *start, pc_dtype dtype)
{
    pc_module *module = pc_module_new(&weight_class, 0);
    PC_SCOPE {
        pc_tensor *w = pc_cast(pc_from_data(start, PC_SHAPE(N), PC_F64, test_device()), dtype);
        assert_ok(pc_module_add_parameter(module, "w", w));
    }
    return module;
}

typedef struct optimizer_case {
    char name[32], kind[8];
    double lr, momentum, nesterov, decay, beta1, beta2, epsilon, start[N];
    int steps;
} optimizer_case;

static void read_numbers(FILE *file, double *values)
{
    for (int i = 0; i < N; i++)
        assert_int_equal(fscanf(file, "%lf", &values[i]), 1);
}

static void give(pc_tensor *w, const double *values)
{
    PC_SCOPE {
        pc_tensor *g = pc_cast(pc_from_data(values, PC_SHAPE(N), PC_F64, test_device()), pc_tensor_dtype(w));
        assert_ok(pc_backward_with(w, g));
    }
}

static void follow(FILE *file, const optimizer_case *c, pc_dtype dtype, double tolerance)
{
    pc_module *module = weight(c->start, dtype);
    pc_tensor *w = pc_module_parameter(module, "w");
    pc_optimizer *o = strcmp(c->kind, "sgd") == 0 ? pc_sgd(module, .lr = c->lr, .momentum = c->momentum,
                                                           .weight_decay = c->decay, .nesterov = c->nesterov != 0)
                                                  : pc_adam(module, .lr = c->lr, .beta1 = c->beta1, .beta2 = c->beta2,
                                                            .epsilon = c->epsilon, .weight_decay = c->decay);
    assert_not_null_ok(o);
    for (int i = 0; i < c->steps; i++) {
        double values[N], want[N];
        char word[8];
        assert_int_equal(fscanf(file, " step %7[none]", word) == 1, i == 3);
        if (i != 3) {
            read_numbers(file, values);
            give(w, values);
        }
        assert_int_equal(fscanf(file, " %7[|]", word), 1);
        read_numbers(file, want);
        assert_ok(pc_optimizer_step(o));
        assert_null(pc_grad(w));
        double *got = values_of(w);
        for (int k = 0; k < N; k++)
            if (!(fabs(got[k] - want[k]) <= tolerance * (1 + fabs(want[k]))))
                fail_msg("%s, step %d, element %d: got %.12g, want %.12g", c->name, i, k, got[k], want[k]);
        free(got);
    }
    pc_optimizer_free(o);
    pc_module_free(module);
}

static void steps_as_pytorch(void **state)
{
    (void)state;
    FILE *file = golden_open();
    char line[256];
    int cases = 0;
    while (fgets(line, sizeof line, file)) {
        optimizer_case c;
        if (sscanf(line, "optimizer %31s %7s %lf %lf %lf %lf %lf %lf %lf %d", c.name, c.kind, &c.lr, &c.momentum,
                   &c.nesterov, &c.decay, &c.beta1, &c.beta2, &c.epsilon, &c.steps) != 10)
            continue;
        assert_int_equal(fscanf(file, " start"), 0);
        read_numbers(file, c.start);
        long at = ftell(file);
        follow(file, &c, PC_F64, 1e-13);
        fseek(file, at, SEEK_SET);
        follow(file, &c, PC_F32, 2e-6);
        cases++;
    }
    fclose(file);
    assert_int_equal(cases, 6);
    assert_nothing_left();
}

/* No decay is no term of the sum: 0 times infinity would be none. */
static void infinite_weights_stay(void **state)
{
    (void)state;
    static const pc_dtype dtypes[] = {PC_F32, PC_F64, PC_BF16, PC_F16};
    static const double start[N] = {-INFINITY, INFINITY, 1, -2, 3}, gradient[N] = {0, 1, -1, 0.5, 0};
    for (int i = 0; i < 4; i++)
        for (int kind = 0; kind < 6; kind++) {
            pc_module *module = weight(start, dtypes[i]);
            pc_tensor *w = pc_module_parameter(module, "w");
            pc_optimizer *o = kind == 0   ? pc_sgd(module, .lr = 0.1)
                              : kind == 1 ? pc_sgd(module, .lr = 0.1, .momentum = 0.9, .nesterov = true)
                              : kind == 2 ? pc_adam(module, .lr = 0.1)
                              : kind == 3 ? pc_adamw(module, .lr = 0.1)
                              : kind == 4 ? pc_rmsprop(module, .lr = 0.1, .momentum = 0.9)
                                          : pc_lion(module, .lr = 0.1);
            assert_not_null_ok(o);
            for (int step = 0; step < 3; step++) {
                give(w, gradient);
                assert_ok(pc_optimizer_step(o));
            }
            double *got = values_of(w);
            for (int k = 0; k < N; k++)
                if (!(k < 2 ? got[k] == start[k] : isfinite(got[k])))
                    fail_msg("optimiser %d, %s, element %d: %g", kind, pc_dtype_name(dtypes[i]), k, got[k]);
            free(got);
            pc_optimizer_free(o);
            pc_module_free(module);
        }
}

/* A weight that is no number is decayed as any: the optimiser's state has it from then on, and so has a weight that is
 * put in its place, as in PyTorch. */
static void no_number_is_decayed_too(void **state)
{
    (void)state;
    static const pc_dtype dtypes[] = {PC_F32, PC_F64};
    static const double start[N] = {NAN, INFINITY, 1, -2, 3}, sound[N] = {1, 1, 1, 1, 1},
                        gradient[N] = {1, 1, -1, 0.5, 0};
    for (int i = 0; i < 2; i++)
        for (int kind = 0; kind < 6; kind++) {
            pc_module *module = weight(start, dtypes[i]);
            pc_tensor *w = pc_module_parameter(module, "w");
            pc_optimizer *o = kind == 0 ? pc_sgd(module, .lr = 0.1, .momentum = 0.9, .weight_decay = 0.1)
                              : kind == 1
                                  ? pc_sgd(module, .lr = 0.1, .momentum = 0.9, .weight_decay = 0.1, .nesterov = true)
                              : kind == 2 ? pc_adam(module, .lr = 0.1, .weight_decay = 0.1)
                              : kind == 3 ? pc_rmsprop(module, .lr = 0.1, .momentum = 0.9, .weight_decay = 0.1)
                              : kind == 4 ? pc_adamw(module, .lr = 0.1, .weight_decay = 0.1)
                                          : pc_lion(module, .lr = 0.1, .weight_decay = 0.1);
            assert_not_null_ok(o);
            for (int step = 0; step < 2; step++) {
                give(w, gradient);
                assert_ok(pc_optimizer_step(o));
                double *got = values_of(w);
                if (isnan(got[0]) != (step == 0 || kind < 4) || !isfinite(got[2]))
                    fail_msg("optimiser %d, %s, step %d: %g", kind, pc_dtype_name(dtypes[i]), step, got[0]);
                free(got);
                PC_SCOPE {
                    PC_NO_GRAD {
                        assert_ok(
                            pc_copy(w, pc_cast(pc_from_data(sound, PC_SHAPE(N), PC_F64, test_device()), dtypes[i])));
                    }
                }
            }
            pc_optimizer_free(o);
            pc_module_free(module);
        }
}

/* Two halves of a batch and one step are one whole batch and one step. */
static void gradients_add_up(void **state)
{
    (void)state;
    pc_module *nets[2];
    for (int i = 0; i < 2; i++) {
        pc_seed(7);
        nets[i] = on_device(pc_sequential(pc_linear(3, 4, .activation = PC_ACTIVATION_TANH), pc_linear(4, 1)));
        pc_optimizer *o = pc_sgd(nets[i], .lr = 0.5, .momentum = 0.9);
        for (int step = 0; step < 3; step++)
            PC_SCOPE {
                pc_seed(100 + (uint64_t)step);
                pc_tensor *x = pc_randn(PC_SHAPE(8, 3), PC_F32, test_device());
                for (int part = 0; part <= i; part++) {
                    pc_tensor *some = i ? pc_slice(x, 0, part * 4, part * 4 + 4, 1) : x;
                    pc_tensor *y = pc_forward(nets[i], some);
                    assert_ok(pc_backward(pc_sum(pc_mul(y, y))));
                }
                assert_ok(pc_optimizer_step(o));
            }
        pc_optimizer_free(o);
    }
    assert_true(distance(pc_module_parameter(nets[0], "0.weight"), pc_module_parameter(nets[1], "0.weight")) < 1e-5);
    pc_module_free(nets[0]);
    pc_module_free(nets[1]);
    assert_nothing_left();
}

/* Values do not depend on how many threads share the work. */
static void steps_of_many_elements(void **state)
{
    (void)state;
    pc_module *nets[2];
    for (int i = 0; i < 2; i++) {
        pc_threads_set(i ? 4 : 1);
        pc_seed(3);
        nets[i] = on_device(pc_sequential(pc_linear(700, 500), pc_linear(500, 3)));
        pc_optimizer *o = pc_adam(nets[i], .lr = 0.1);
        for (int step = 0; step < 2; step++)
            PC_SCOPE {
                pc_tensor *x = pc_randn(PC_SHAPE(4, 700), PC_F32, test_device());
                assert_ok(pc_backward(pc_mean(pc_forward(nets[i], x))));
                assert_ok(pc_optimizer_step(o));
            }
        pc_optimizer_free(o);
    }
    pc_threads_set(0);
    assert_true(distance(pc_module_parameter(nets[0], "0.weight"), pc_module_parameter(nets[1], "0.weight")) == 0);
    pc_module_free(nets[0]);
    pc_module_free(nets[1]);
    assert_nothing_left();
}

enum { SEVERAL = 5 };

/* What two steps make of a parameter of each dtype: of one module, or of a module each. */
static void step_several(bool together, bool adam, double *got[SEVERAL])
{
    const pc_dtype dtypes[SEVERAL] = {PC_F32, PC_F16, PC_F64, PC_BF16, PC_F32};
    const double start[N] = {1, 2, 3, 4, 5}, gradient[N] = {1, -1, 2, 0.5, 1};
    for (int first = 0; first < SEVERAL; first += together ? SEVERAL : 1) {
        const int count = together ? SEVERAL : 1;
        pc_module *parts[SEVERAL];
        for (int i = 0; i < count; i++)
            parts[i] = weight(start, dtypes[first + i]);
        pc_module *all = pc_sequential_new(parts, count);
        pc_optimizer *o = adam ? pc_adam(all, .lr = 0.5) : pc_sgd(all, .lr = 0.5, .momentum = 0.5);
        for (int step = 0; step < 2; step++) {
            for (int i = 0; i < count; i++)
                give(pc_module_parameter(parts[i], "w"), gradient);
            assert_ok(pc_optimizer_step(o));
        }
        for (int i = 0; i < count; i++)
            got[first + i] = values_of(pc_module_parameter(parts[i], "w"));
        pc_optimizer_free(o);
        pc_module_free(all);
    }
}

static void parameters_of_several_dtypes(void **state)
{
    (void)state;
    for (int adam = 0; adam < 2; adam++) {
        double *alone[SEVERAL], *together[SEVERAL];
        step_several(false, adam, alone);
        step_several(true, adam, together);
        for (int i = 0; i < SEVERAL; i++) {
            for (int k = 0; k < N; k++)
                assert_close(together[i][k], alone[i][k], 0);
            free(alone[i]);
            free(together[i]);
        }
    }
    assert_nothing_left();
}

/* A tensor that two names lead to is updated once, as in PyTorch. */
static void shared_parameters_once(void **state)
{
    (void)state;
    const double start[N] = {1, 1, 1, 1, 1};
    pc_module *module = weight(start, PC_F32);
    pc_tensor *w = pc_module_parameter(module, "w");
    assert_ok(pc_module_add_parameter(module, "again", w));
    pc_optimizer *o = pc_sgd(module, .lr = 0.25);
    give(w, start);
    assert_ok(pc_optimizer_step(o));
    double *got = values_of(w);
    assert_close(got[0], 0.75, 0);
    free(got);
    pc_optimizer_free(o);
    pc_module_free(module);
    assert_nothing_left();
}

static void changed_values_are_noticed(void **state)
{
    (void)state;
    pc_module *net = on_device(pc_sequential(pc_linear(2, 2), pc_linear(2, 1)));
    pc_optimizer *o = pc_sgd(net, .lr = 0.1);
    PC_SCOPE {
        pc_tensor *x = pc_ones(PC_SHAPE(1, 2), PC_F32, test_device());
        pc_tensor *first = pc_sum(pc_forward(net, x)), *second = pc_sum(pc_forward(net, x));
        assert_ok(pc_backward(first));
        assert_ok(pc_optimizer_step(o));
        assert_fails(pc_backward(second), PC_ERR_STATE, "changed in place"); /* its weights are gone */
        assert_fails(pc_saxpy(pc_module_parameter(net, "0.bias"), 1, pc_ones(PC_SHAPE(2), PC_F32, test_device())),
                     PC_ERR_STATE, "PC_NO_GRAD");
    }
    pc_optimizer_free(o);
    pc_module_free(net);
    assert_nothing_left();
}

static void wrong_settings(void **state)
{
    (void)state;
    pc_module *net = pc_linear(2, 1);
    assert_fails(pc_sgd(NULL), PC_ERR_ARGUMENT, "NULL");
    assert_fails(pc_sgd(net, .lr = -1), PC_ERR_ARGUMENT, "lr -1");
    assert_fails(pc_sgd(net, .momentum = 1), PC_ERR_ARGUMENT, "momentum 1");
    assert_fails(pc_sgd(net, .nesterov = true), PC_ERR_ARGUMENT, "nesterov");
    assert_fails(pc_sgd(net, .weight_decay = NAN), PC_ERR_ARGUMENT, "decay");
    assert_fails(pc_adam(net, .lr = NAN), PC_ERR_ARGUMENT, "lr nan");
    assert_fails(pc_adam(net, .beta2 = 1), PC_ERR_ARGUMENT, "beta2 1");
    assert_fails(pc_adam(net, .epsilon = -1e-8), PC_ERR_ARGUMENT, "epsilon");
    assert_fails(pc_optimizer_step(NULL), PC_ERR_ARGUMENT, "NULL");
    pc_optimizer *o = pc_adam(net);
    assert_close(pc_optimizer_lr(o), 1e-3, 0);
    pc_optimizer_set_lr(o, 0.5);
    assert_close(pc_optimizer_lr(o), 0.5, 0);
    assert_ok(pc_optimizer_step(o)); /* nothing has a gradient: nothing happens */
    pc_module_free(net);
    pc_optimizer_free(o); /* its parameters have an owner left */
    assert_nothing_left();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_as_pytorch),         cmocka_unit_test(infinite_weights_stay),
        cmocka_unit_test(no_number_is_decayed_too), cmocka_unit_test(gradients_add_up),
        cmocka_unit_test(steps_of_many_elements),   cmocka_unit_test(parameters_of_several_dtypes),
        cmocka_unit_test(shared_parameters_once),   cmocka_unit_test(changed_values_are_noticed),
        cmocka_unit_test(wrong_settings),
    };
    return cmocka_run_group_tests_name("nn.optimizer", tests, NULL, NULL);
}
