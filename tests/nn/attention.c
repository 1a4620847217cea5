/* The multi-head attention layer: beside PyTorch's, its parameters, and as a part of recorded steps. */
#include "nn/networks.h"

#include <paracord.h>

static pc_tensor *by_formula(pc_shape shape, int at)
{
    float values[256];
    int n = 1;
    for (int i = 0; i < shape.ndim; i++)
        n *= (int)shape.dim[i];
    assert_true(n <= 256);
    for (int i = 0; i < n; i++)
        values[i] = (float)((7 * i + 3 * at) % 11 - 5) / 8;
    return pc_from_data(values, shape, PC_F32, test_device());
}

static void set_by_formula(pc_module *module)
{
    pc_parameter list[8];
    const int n = pc_module_parameter_list(module, list, 8);
    for (int i = 0; i < n; i++)
        list[i].tensor = by_formula(pc_tensor_shape(list[i].tensor), i);
    assert_ok(pc_module_load(module, list, n));
}

static void check_case(const char *line)
{
    char name[32];
    int heads, causal, used;
    assert_int_equal(sscanf(line, "attention %31s %d %d |%n", name, &heads, &causal, &used), 3);
    const bool no_bias = strcmp(name, "attention_no_bias") == 0;
    pc_module *module = pc_multihead_attention(6, heads, .causal = causal, .no_bias = no_bias);
    assert_not_null_ok(module);
    PC_SCOPE {
        set_by_formula(on_device(module));
        pc_tensor *x = by_formula(PC_SHAPE(2, 5, 6), 9), *y = pc_forward(module, x);
        double *values = values_of(y);
        for (int i = 0; i < 60; i++) {
            char *end;
            const double want = strtod(line + used, &end);
            line = end - used;
            assert_close(values[i], want, 1e-5);
        }
        free(values);
        pc_tensor *one = pc_forward(module, pc_squeeze(pc_slice(x, 0, 0, 1, 1), 0));
        assert_true(distance(one, pc_squeeze(pc_slice(y, 0, 0, 1, 1), 0)) < 1e-6);
    }
    pc_module_free(module);
}

static void gives_what_pytorch_gives(void **state)
{
    static char line[4096];
    int cases = 0;
    FILE *file = golden_open();
    (void)state;
    while (fgets(line, sizeof line, file))
        if (strncmp(line, "attention ", 10) == 0) {
            check_case(line);
            cases++;
        }
    fclose(file);
    assert_int_equal(cases, 3);
    assert_nothing_left();
}

static void parameters_begin_as_pytorchs(void **state)
{
    static const char *const names[] = {"in_proj_weight", "in_proj_bias", "out_proj.weight", "out_proj.bias"};
    static const double most[] = {0.25, 0, 0.2041241452, 0}; /* sqrt(6 / (24 + 72)), 1 / sqrt(24) */
    pc_parameter list[8];
    (void)state;
    pc_module *module = pc_multihead_attention(24, 4);
    assert_int_equal(pc_module_parameter_list(module, list, 8), 4);
    PC_SCOPE {
        for (int i = 0; i < 4; i++) {
            assert_string_equal(list[i].name, names[i]);
            assert_true(pc_requires_grad(list[i].tensor));
            const double largest = pc_item(pc_max(pc_abs(pc_detach(list[i].tensor))));
            assert_true(largest <= most[i] + 1e-6 && largest >= 0.95 * most[i]);
        }
    }
    pc_module_free(module);
    assert_nothing_left();
}

static void bad_input(void **state)
{
    (void)state;
    assert_fails(pc_multihead_attention(6, 4), PC_ERR_ARGUMENT, "share the size equally");
    assert_fails(pc_multihead_attention(0, 1), PC_ERR_ARGUMENT, "size 0");
    assert_fails(pc_multihead_attention(4, 2, .dropout = 2), PC_ERR_ARGUMENT, "dropout is 2");
    pc_module *module = on_device(pc_multihead_attention(6, 2));
    PC_SCOPE {
        assert_fails(pc_forward(module, pc_zeros(PC_SHAPE(2, 5), PC_F32, test_device())), PC_ERR_SHAPE,
                     "[..., length, 6]");
        assert_fails(pc_forward(module, pc_zeros(PC_SHAPE(6), PC_F32, test_device())), PC_ERR_SHAPE,
                     "[..., length, 6]");
    }
    pc_module_free(module);
    assert_nothing_left();
}

/* --- steps --- */

typedef struct job {
    pc_module *net;
    pc_optimizer *optimizer;
    pc_tensor *x;
} job;

static pc_status learn(void *context)
{
    job *j = context;
    pc_status status;
    PC_SCOPE {
        status = pc_backward(pc_mean(pc_square(pc_sub(pc_forward(j->net, j->x), j->x))));
        if (status == PC_OK)
            status = pc_optimizer_step(j->optimizer);
    }
    return status;
}

/* Weights after some steps, recorded or not. */
static pc_tensor *weights_after(bool recorded)
{
    pc_tensor *weights = NULL;
    pc_seed(5);
    job j = {.net = on_device(pc_multihead_attention(8, 2, .causal = true, .dropout = 0.3))};
    j.optimizer = pc_sgd(j.net, .lr = 0.1);
    pc_tensor *x = pc_randn(PC_SHAPE(3, 7, 8), PC_F32, test_device());
    j.x = pc_tensor_retain(x);
    pc_step *step = recorded ? pc_step_new(learn, &j, j.optimizer) : NULL;
    for (int i = 0; i < 9; i++)
        assert_ok(recorded ? pc_step_run(step) : learn(&j));
    if (recorded)
        assert_null(pc_step_why(step));
    weights = pc_clone(pc_detach(pc_module_parameter(j.net, "in_proj_weight")));
    pc_step_free(step);
    pc_tensor_free(j.x);
    pc_optimizer_free(j.optimizer);
    pc_module_free(j.net);
    return weights;
}

static void recorded_steps_leave_the_same_bits(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_tensor *plain = weights_after(false), *recorded = weights_after(true);
        assert_close(pc_item(pc_sum(pc_cast(pc_ne(plain, recorded), PC_I32))), 0, 0);
    }
    assert_nothing_left();
}

/* In evaluation nothing is drawn. */
static void evaluates_without_dropout(void **state)
{
    (void)state;
    pc_module *module = on_device(pc_multihead_attention(8, 2, .dropout = 0.5));
    PC_SCOPE {
        pc_tensor *x = pc_randn(PC_SHAPE(3, 7, 8), PC_F32, test_device());
        assert_true(distance(pc_forward(module, x), pc_forward(module, x)) > 0);
        pc_module_set_training(module, false);
        assert_true(distance(pc_forward(module, x), pc_forward(module, x)) == 0);
    }
    pc_module_free(module);
    assert_nothing_left();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gives_what_pytorch_gives),
        cmocka_unit_test(parameters_begin_as_pytorchs),
        cmocka_unit_test(bad_input),
        cmocka_unit_test(recorded_steps_leave_the_same_bits),
        cmocka_unit_test(evaluates_without_dropout),
    };
    return cmocka_run_group_tests_name("nn.attention", tests, NULL, NULL);
}
