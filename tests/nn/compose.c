/* Modules of modules: residual blocks, lists, dictionaries, functions, several inputs and outputs. */
#include "nn/networks.h"

#include <paracord/amp.h>
#include <paracord/module.h>
#include <paracord/step.h>

/* --- as they print --- */

static pc_module *make(const char *name)
{
    if (strcmp(name, "list") == 0)
        return pc_module_list(pc_linear(2, 2), pc_linear(2, 2), pc_activation(PC_ACTIVATION_RELU), pc_linear(2, 3));
    if (strcmp(name, "lists") == 0)
        return pc_module_list(pc_sequential(pc_linear(2, 2), pc_activation(PC_ACTIVATION_RELU)),
                              pc_sequential(pc_linear(2, 2), pc_activation(PC_ACTIVATION_RELU)));
    if (strcmp(name, "empty") == 0)
        return pc_module_list_new(NULL, 0);
    return pc_module_dict({"encoder", pc_linear(4, 2)}, {"decoder", pc_module_list(pc_linear(2, 4))});
}

static void print_as_pytorch(void **state)
{
    (void)state;
    FILE *file = golden_open();
    char line[256], name[64], want[2048];
    int lines, cases = 0;
    while (fgets(line, sizeof line, file)) {
        if (sscanf(line, "told %63s %d", name, &lines) != 2)
            continue;
        want[0] = 0;
        while (lines-- > 0 && fgets(line, sizeof line, file))
            strncat(want, line, sizeof want - strlen(want) - 1);
        want[strlen(want) - 1] = 0; /* the last newline */
        pc_module *module = make(name);
        assert_not_null_ok(module);
        char *text = pc_module_text(module);
        assert_string_equal(text, want);
        pc_text_free(text);
        pc_module_free(module);
        cases++;
    }
    fclose(file);
    assert_int_equal(cases, 4);
    pc_module *block = pc_residual(pc_linear(2, 2), .activation = PC_ACTIVATION_RELU);
    char *text = pc_module_text(block);
    assert_string_equal(text, "Residual(\n"
                              "  activation=relu\n"
                              "  (body): Linear(in_features=2, out_features=2, bias=True)\n"
                              ")");
    pc_text_free(text);
    pc_module_free(block);
    assert_nothing_left();
}

/* --- residual blocks --- */

static void residual_adds_what_goes_by(void **state)
{
    (void)state;
    pc_seed(3);
    pc_module *plain = on_device(pc_residual(pc_linear(3, 3))),
              *both = on_device(pc_residual(pc_linear(3, 4), .shortcut = pc_linear(3, 4, .no_bias = true),
                                            .activation = PC_ACTIVATION_GELU)),
              *wrong = on_device(pc_residual(pc_linear(3, 4)));
    PC_SCOPE {
        pc_tensor *x = pc_randn(PC_SHAPE(5, 3), PC_F32, test_device());
        assert_true(distance(pc_forward(plain, x), pc_add(pc_forward(pc_module_child(plain, 0), x), x)) == 0);
        pc_tensor *sum = pc_add(pc_forward(pc_module_child_named(both, "body"), x),
                                pc_forward(pc_module_child_named(both, "shortcut"), x));
        assert_true(distance(pc_forward(both, x), pc_gelu(sum)) == 0);
        assert_fails(pc_forward(wrong, x), PC_ERR_SHAPE, "the body gives [5, 4] and the shortcut [5, 3]");
    }
    pc_parameter list[4];
    assert_int_equal(pc_module_parameter_list(both, list, 4), 3);
    assert_string_equal(list[1].name, "body.bias");
    assert_string_equal(list[2].name, "shortcut.weight");
    pc_module_free(plain);
    pc_module_free(both);
    pc_module_free(wrong);
    assert_fails(pc_residual(NULL, .shortcut = pc_linear(1, 1)), PC_ERR_ARGUMENT, "body is NULL");
    assert_fails(pc_residual(pc_linear(1, 1), .shortcut = pc_linear(0, 1)), PC_ERR_ARGUMENT, "linear");
    assert_fails(pc_residual(pc_linear(1, 1), .activation = (pc_activation_kind)99), PC_ERR_ARGUMENT, "activation 99");
    assert_nothing_left();
}

/* --- lists and names --- */

static pc_tensor *chain(pc_module *module, pc_tensor *x)
{
    return pc_forward_child(module, "second", pc_forward_child(module, "first", x));
}

static const pc_module_class chain_class = {.name = "Chain", .forward = chain};

static void children_have_names(void **state)
{
    (void)state;
    pc_module *list = pc_module_list(pc_linear(1, 1), pc_linear(1, 2));
    assert_ok(pc_module_append(list, pc_sequential(pc_linear(2, 3))));
    assert_int_equal(pc_module_child_count(list), 3);
    assert_string_equal(pc_module_child_name(list, 2), "2");
    assert_null(pc_module_child_name(list, 3));
    pc_module *net = pc_module_dict({"layers", list}, {"head", pc_linear(3, 1)});
    assert_ptr_equal(pc_module_child_named(net, "layers"), list);
    assert_ptr_equal(pc_module_child_named(net, "layers.2.0"), pc_module_child(pc_module_child(list, 2), 0));
    static const char *const none[] = {"", ".", "layer", "layers.", "layers..2", "layers.3", ".layers", "head.0"};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        assert_fails(pc_module_child_named(net, none[i]), PC_ERR_NOT_FOUND, "has no child named");
    PC_SCOPE {
        pc_tensor *x = pc_zeros(PC_SHAPE(2, 1), PC_F32, test_device());
        assert_fails(pc_forward(net, x), PC_ERR_UNSUPPORTED, "a ModuleDict has no forward pass of its own");
        assert_fails(pc_forward(list, x), PC_ERR_UNSUPPORTED, "a ModuleList");
    }
    assert_fails(pc_module_append(net, pc_linear(1, 1)), PC_ERR_ARGUMENT, "a ModuleDict is no list");
    pc_module *own = pc_module_of(&chain_class, {"first", pc_linear(1, 2)}, {"second", pc_linear(2, 3)});
    PC_SCOPE {
        pc_tensor *x = pc_zeros(PC_SHAPE(2, 1), PC_F32, PC_DEVICE_CPU), *h = pc_forward_child(own, "first", x);
        assert_true(distance(pc_forward(own, x), pc_forward_child(own, "second", h)) == 0);
        assert_fails(pc_forward_child(own, "third", x), PC_ERR_NOT_FOUND, "the Chain module has no child named");
    }
    pc_module_free(own);
    assert_fails(pc_module_of(&chain_class, {"first", pc_linear(1, 1)}, {"second", NULL}), PC_ERR_ARGUMENT,
                 "pc_module_of: child 1 is NULL");
    assert_fails(pc_module_of(NULL, {"first", pc_linear(1, 1)}), PC_ERR_ARGUMENT, "type is NULL");
    pc_module_free(net);
    pc_module *twice = pc_linear(1, 1);
    assert_fails(pc_module_list(twice, pc_linear(1, 1), twice), PC_ERR_ARGUMENT, "of its own");
    assert_fails(pc_module_list(pc_linear(1, 1), NULL, pc_linear(1, 1)), PC_ERR_ARGUMENT, "child 1 is NULL");
    assert_fails(pc_module_dict({"a", pc_linear(1, 1)}, {NULL, pc_linear(1, 1)}), PC_ERR_ARGUMENT, "name of child 1");
    assert_fails(pc_module_dict({"a", pc_linear(1, 1)}, {"a", pc_linear(1, 1)}, {"b", pc_linear(1, 1)}),
                 PC_ERR_ARGUMENT, "already");
    assert_nothing_left();
}

/* --- functions, and classes of several tensors --- */

static pc_tensor *scaled(void *context, pc_tensor *x)
{
    const double *factor = context;
    return factor ? pc_mul_scalar(pc_add_scalar(x, 1), *factor) : x;
}

static pc_tensor *nothing(void *context, pc_tensor *x)
{
    (void)context, (void)x;
    return NULL;
}

static void functions_stand_where_layers_stand(void **state)
{
    (void)state;
    double factor = 3;
    pc_module *net = pc_sequential(pc_function_module(scaled, &factor), pc_function_module(scaled, NULL)),
              *null = pc_function_module(nothing, NULL);
    pc_tensor *x = NULL, *y = NULL, *itself = NULL;
    PC_SCOPE {
        x = pc_tensor_retain(pc_full(PC_SHAPE(2), 4, PC_F32, test_device()));
    }
    y = pc_forward(net, x);
    itself = pc_forward(pc_module_child(net, 1), x); /* x, with one more owner */
    assert_ptr_equal(itself, x);
    PC_SCOPE {
        assert_close(pc_item(pc_mean(y)), 15, 0);
    }
    assert_fails(pc_forward(null, x), PC_ERR_ARGUMENT, "returned NULL");
    assert_fails(pc_function_module(NULL, NULL), PC_ERR_ARGUMENT, "NULL");
    pc_tensor_free(y);
    pc_tensor_free(itself);
    pc_tensor_free(x);
    pc_module_free(net);
    pc_module_free(null);
    assert_nothing_left();
}

/* Gives the distance of two embeddings, and their sum. */
static pc_status twins(pc_module *module, pc_tensor *const *in, int in_count, pc_tensor **out, int out_count)
{
    (void)in_count;
    if (out_count > 2)
        return pc_fail(PC_ERR_ARGUMENT, "twins: %d outputs", out_count);
    pc_module *tower = pc_module_child(module, 0);
    pc_tensor *a = pc_forward(tower, in[0]), *b = pc_forward(tower, in[1]);
    out[0] = pc_abs(pc_sub(a, b));
    if (out_count > 1)
        out[1] = pc_add(a, b);
    return out[0] ? PC_OK : pc_error_last()->status;
}

static const pc_module_class twins_class = {.name = "Twins", .forward_many = twins, .inputs = 2};

static pc_module *twin_network(void)
{
    pc_module *module = pc_module_new(&twins_class, 0);
    if (module && pc_module_add_child(module, "tower", pc_linear(3, 4, .activation = PC_ACTIVATION_TANH)) == PC_OK)
        return module;
    pc_module_free(module);
    return NULL;
}

static void several_in_and_out(void **state)
{
    (void)state;
    pc_seed(5);
    pc_module *net = on_device(twin_network()), *plain = on_device(pc_linear(3, 1));
    PC_SCOPE {
        pc_tensor *in[2] = {pc_randn(PC_SHAPE(2, 3), PC_F32, test_device()),
                            pc_randn(PC_SHAPE(2, 3), PC_F32, test_device())};
        pc_tensor *out[3] = {NULL};
        assert_ok(pc_forward_many(net, in, 2, out, 2));
        pc_tensor *a = pc_forward(pc_module_child(net, 0), in[0]), *b = pc_forward(pc_module_child(net, 0), in[1]);
        assert_true(distance(out[0], pc_abs(pc_sub(a, b))) == 0);
        assert_true(distance(out[1], pc_add(a, b)) == 0);
        assert_true(distance(pc_forward2(net, in[0], in[1]), out[0]) == 0);
        assert_ok(pc_backward(pc_sum(out[1])));
        assert_non_null(pc_grad(pc_module_parameter(net, "tower.weight")));
        out[0] = in[0];
        assert_fails(pc_forward_many(net, in, 2, out, 3), PC_ERR_ARGUMENT, "twins: 3 outputs");
        assert_null(out[0]);
        assert_fails(pc_forward(net, in[0]), PC_ERR_ARGUMENT,
                     "Twins takes 2 tensors and gives 1; 1 were given and 1 asked for");
        assert_fails(pc_forward2(plain, in[0], in[1]), PC_ERR_ARGUMENT, "Linear gives one tensor of one, and 1 of 2");
        assert_ok(pc_forward_many(plain, in, 1, out, 1));
        assert_fails(pc_forward_many(plain, in, 0, out, 1), PC_ERR_ARGUMENT, "0 inputs");
        in[1] = NULL;
        assert_fails(pc_forward_many(net, in, 2, out, 1), PC_ERR_ARGUMENT, "NULL");
    }
    pc_module_free(net);
    pc_module_free(plain);
    assert_nothing_left();
}

/* Without a scope the caller owns the results, and nothing else is left. */
static void results_have_owners(void **state)
{
    (void)state;
    pc_module *net = on_device(twin_network());
    pc_tensor *in[2], *out[2];
    for (int i = 0; i < 2; i++)
        in[i] = pc_full(PC_SHAPE(1, 3), i, PC_F32, test_device());
    assert_ok(pc_forward_many(net, in, 2, out, 2));
    for (int i = 0; i < 2; i++) {
        pc_tensor_free(in[i]);
        pc_tensor_free(out[i]);
    }
    pc_module_free(net);
    assert_nothing_left();
}

/* --- recorded, and in 16 bits --- */

typedef struct job {
    pc_module *net;
    pc_optimizer *sgd;
    pc_tensor *x[2], *loss;
} job;

static pc_status learn(void *user)
{
    job *j = user;
    pc_status status = PC_ERR_STATE;
    PC_SCOPE {
        pc_tensor *y = NULL;
        PC_AUTOCAST(PC_BF16) {
            y = pc_forward2(j->net, j->x[0], j->x[1]);
        }
        pc_tensor *loss = pc_mean(pc_mul(pc_cast(y, PC_F32), pc_cast(y, PC_F32)));
        status = pc_backward(loss);
        status = status == PC_OK ? pc_optimizer_step(j->sgd) : status;
        PC_NO_GRAD {
            status = status == PC_OK ? pc_copy(j->loss, loss) : status;
        }
    }
    return status;
}

static double after_steps(bool recorded)
{
    pc_seed(8);
    double last = NAN;
    pc_module *net = pc_module_new(&twins_class, 0);
    assert_ok(pc_module_add_child(net, "tower",
                                  pc_sequential(pc_linear(3, 4),
                                                pc_residual(pc_linear(4, 4), .activation = PC_ACTIVATION_RELU),
                                                pc_function_module(scaled, NULL))));
    job j = {.net = on_device(net)};
    j.sgd = pc_sgd(j.net, .lr = 0.1);
    PC_SCOPE {
        for (int i = 0; i < 2; i++)
            j.x[i] = pc_randn(PC_SHAPE(6, 3), PC_F32, test_device());
        j.loss = pc_zeros(PC_SHAPE_SCALAR, PC_F32, test_device());
        pc_step *step = pc_step_new(learn, &j, j.sgd);
        for (int i = 0; i < 4; i++)
            assert_ok(recorded ? pc_step_run(step) : learn(&j));
        assert_null(pc_step_why(step));
        last = pc_item(j.loss);
        pc_step_free(step);
    }
    pc_optimizer_free(j.sgd);
    pc_module_free(j.net);
    assert_nothing_left();
    return last;
}

static void recorded_steps_are_the_same(void **state)
{
    (void)state;
    const double called = after_steps(false);
    assert_true(called > 0);
    assert_close(after_steps(true), called, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(print_as_pytorch),
        cmocka_unit_test(residual_adds_what_goes_by),
        cmocka_unit_test(children_have_names),
        cmocka_unit_test(functions_stand_where_layers_stand),
        cmocka_unit_test(several_in_and_out),
        cmocka_unit_test(results_have_owners),
        cmocka_unit_test(recorded_steps_are_the_same),
    };
    return cmocka_run_group_tests_name("nn.compose", tests, NULL, NULL);
}
