/* Modules: names, ownership, state, modes, moving, modules of the program's own, and how they print. */
#include "nn/networks.h"

#include <paracord/ema.h>
#include <paracord/module.h>
#include <paracord/weights.h>
#include <unistd.h>

/* --- modules of the program's own --- */

static pc_tensor *regress(pc_module *module, pc_tensor *x)
{
    return pc_forward(pc_module_child(module, 0), x);
}

static const pc_module_class regression_class = {.name = "LinearRegression", .forward = regress};

static pc_module *regression(void)
{
    pc_module *module = pc_module_new(&regression_class, 0);
    if (module && pc_module_add_child(module, "linear", pc_linear(1, 1)) == PC_OK)
        return module;
    pc_module_free(module);
    return NULL;
}

static pc_tensor *pass_block(pc_module *module, pc_tensor *x)
{
    pc_tensor *y = NULL;
    PC_SCOPE {
        pc_tensor *h = pc_forward(pc_module_child(module, 0), x);
        h = pc_mean_dims(h, PC_SHAPE(2, 3), false);
        y = pc_keep(pc_forward(pc_module_child(module, 1), h));
    }
    return y;
}

static const pc_module_class block_class = {.name = "Block", .forward = pass_block};

static pc_module *block(void)
{
    pc_module *module = pc_module_new(&block_class, 0);
    pc_module *body = pc_sequential(pc_conv2d(3, 8, 3, .stride = 2, .padding = 1, .no_bias = true),
                                    pc_activation(PC_ACTIVATION_RELU));
    if (pc_module_add_child(module, "body", body) == PC_OK &&
        pc_module_add_child(module, "head", pc_linear(8, 2)) == PC_OK)
        return module;
    pc_module_free(module);
    return NULL;
}

static pc_module *article(void)
{
    return pc_sequential(pc_conv2d(3, 32, 3, .stride = 3), pc_activation(PC_ACTIVATION_RELU), pc_max_pool2d(2),
                         pc_flatten(), pc_linear(3200, 128), pc_activation(PC_ACTIVATION_RELU), pc_dropout(0.5),
                         pc_linear(128, 1), pc_activation(PC_ACTIVATION_SIGMOID));
}

/* --- printing --- */

static pc_module *make(const char *name)
{
    if (strcmp(name, "linear") == 0)
        return pc_linear(4, 3);
    if (strcmp(name, "linear_no_bias") == 0)
        return pc_linear(4, 3, .no_bias = true);
    if (strcmp(name, "conv") == 0)
        return pc_conv2d(3, 32, 3, .stride = 3);
    if (strcmp(name, "conv_padded") == 0)
        return pc_conv2d(1, 2, 5, .padding = 2, .no_bias = true);
    if (strcmp(name, "conv_dilated") == 0)
        return pc_conv2d(4, 8, 3, .padding = 2, .dilation = 2, .groups = 2);
    if (strcmp(name, "conv_depthwise") == 0)
        return pc_conv2d(8, 8, 3, .kernel_size = {3, 5}, .strides = {2, 1}, .paddings = {1, 2}, .dilations = {1, 3},
                         .groups = 8, .no_bias = true);
    if (strcmp(name, "conv_same") == 0)
        return pc_conv2d(2, 3, 4, .kernel_size = {4, 3}, .same = true, .dilations = {1, 2});
    if (strcmp(name, "transposed") == 0)
        return pc_conv_transpose2d(4, 6, 3, .stride = 2, .padding = 1, .output_padding = 1);
    if (strcmp(name, "transposed_more") == 0)
        return pc_conv_transpose2d(4, 6, 3, .kernel_size = {3, 2}, .strides = {2, 1}, .paddings = {0, 1},
                                   .dilations = {1, 2}, .output_paddings = {1, 0}, .groups = 2, .no_bias = true);
    if (strcmp(name, "conv1d") == 0)
        return pc_conv1d(2, 3, 5, .stride = 2, .padding = 1);
    if (strcmp(name, "conv1d_more") == 0)
        return pc_conv1d(4, 4, 3, .same = true, .dilation = 2, .groups = 4, .no_bias = true);
    if (strcmp(name, "max_pool") == 0)
        return pc_max_pool2d(2);
    if (strcmp(name, "max_pool_padded") == 0)
        return pc_max_pool2d(3, .stride = 2, .padding = 1);
    if (strcmp(name, "avg_pool") == 0)
        return pc_avg_pool2d(2);
    if (strcmp(name, "avg_pool_padded") == 0)
        return pc_avg_pool2d(3, .stride = 1, .padding = 1);
    if (strcmp(name, "flatten") == 0)
        return pc_flatten();
    if (strcmp(name, "relu") == 0)
        return pc_activation(PC_ACTIVATION_RELU);
    if (strcmp(name, "sigmoid") == 0)
        return pc_activation(PC_ACTIVATION_SIGMOID);
    if (strcmp(name, "tanh") == 0)
        return pc_activation(PC_ACTIVATION_TANH);
    if (strcmp(name, "dropout") == 0)
        return pc_dropout(0.25);
    if (strcmp(name, "article") == 0)
        return article();
    if (strcmp(name, "nested") == 0)
        return pc_sequential(pc_sequential(pc_linear(2, 3), pc_activation(PC_ACTIVATION_TANH)), pc_linear(3, 1));
    if (strcmp(name, "max_pool_ceil") == 0)
        return pc_max_pool2d(3, .stride = 2, .ceil_mode = true);
    if (strcmp(name, "avg_pool_ceil") == 0)
        return pc_avg_pool2d(3, .stride = 2, .padding = 1, .ceil_mode = true, .exclude_padding = true);
    if (strcmp(name, "adaptive_avg") == 0)
        return pc_adaptive_avg_pool2d(1, 1);
    if (strcmp(name, "adaptive_max") == 0)
        return pc_adaptive_max_pool2d(3, 0);
    if (strcmp(name, "upsample") == 0)
        return pc_upsample(.scale = {2});
    if (strcmp(name, "upsample_uneven") == 0)
        return pc_upsample(.scale = {2, 1.5}, .mode = PC_UPSAMPLE_BILINEAR);
    if (strcmp(name, "upsample_size") == 0)
        return pc_upsample(.size = {4, 5}, .mode = PC_UPSAMPLE_BILINEAR, .align_corners = true);
    if (strcmp(name, "attention") == 0)
        return pc_multihead_attention(6, 3);
    if (strcmp(name, "attention_no_bias") == 0)
        return pc_multihead_attention(6, 2, .no_bias = true);
    return strcmp(name, "regression") == 0 ? regression() : strcmp(name, "block") == 0 ? block() : NULL;
}

static void prints_as_pytorch(void **state)
{
    (void)state;
    FILE *file = golden_open();
    char line[256], name[64], want[2048];
    int lines, cases = 0;
    while (fgets(line, sizeof line, file)) {
        if (sscanf(line, "print %63s %d", name, &lines) != 2)
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
    assert_int_equal(cases, 33);
    assert_nothing_left();
}

/* --- names and state --- */

static void parameters_have_names(void **state)
{
    (void)state;
    static const char *const want[] = {"0.weight", "0.bias", "4.weight", "4.bias", "7.weight", "7.bias"};
    pc_module *net = article(), *own = block();
    pc_parameter list[8];
    assert_int_equal(pc_module_parameter_list(net, list, 8), 6);
    for (int i = 0; i < 6; i++) {
        assert_string_equal(list[i].name, want[i]);
        assert_true(pc_requires_grad(list[i].tensor));
        assert_ptr_equal(pc_module_parameter(net, want[i]), list[i].tensor);
    }
    assert_int_equal(pc_module_parameter_list(net, list, 2), 6); /* no room, but counted */
    assert_int_equal(pc_module_parameter_elements(net), 3 * 32 * 9 + 32 + 3200 * 128 + 128 + 128 + 1);
    assert_int_equal(pc_module_parameter_list(own, list, 8), 3);
    assert_string_equal(list[0].name, "body.0.weight");
    assert_string_equal(list[2].name, "head.bias");
    assert_fails(pc_module_parameter(net, "0.weights"), PC_ERR_NOT_FOUND, "0.weights");
    assert_int_equal(pc_module_parameter_list(NULL, list, 8), 0);
    pc_module_free(net);
    pc_module_free(own);
    assert_nothing_left();
}

static pc_module *small(void)
{
    return on_device(pc_sequential(pc_linear(3, 4), pc_activation(PC_ACTIVATION_TANH), pc_linear(4, 2)));
}

static void state_goes_from_one_to_the_other(void **state)
{
    (void)state;
    pc_seed(1);
    pc_module *a = small(), *b = small();
    pc_parameter list[4];
    assert_int_equal(pc_module_parameter_list(a, list, 4), 4);
    PC_SCOPE {
        pc_tensor *x = pc_randn(PC_SHAPE(5, 3), PC_F32, test_device());
        assert_true(distance(pc_forward(a, x), pc_forward(b, x)) > 1e-3);
        assert_ok(pc_module_load(b, list, 4));
        assert_true(distance(pc_forward(a, x), pc_forward(b, x)) == 0);
        assert_ok(pc_module_to(b, test_device(), PC_F64)); /* values convert on the way */
        assert_ok(pc_module_load(b, list, 4));
        assert_int_equal(pc_tensor_dtype(pc_module_parameter(b, "0.weight")), PC_F64);
        assert_true(distance(pc_module_parameter(b, "0.weight"), list[0].tensor) == 0);
    }
    pc_module_free(a);
    pc_module_free(b);
    assert_nothing_left();
}

static void wrong_state_changes_nothing(void **state)
{
    (void)state;
    pc_module *a = small(), *b = small();
    pc_parameter list[5];
    assert_int_equal(pc_module_parameter_list(a, list, 4), 4);
    PC_SCOPE {
        pc_tensor *before = pc_clone(pc_detach(pc_module_parameter(b, "0.weight")));
        pc_parameter other = list[3];
        assert_fails(pc_module_load(b, list, 3), PC_ERR_NOT_FOUND, "2.bias");
        snprintf(list[3].name, sizeof list[3].name, "2.offset");
        assert_fails(pc_module_load(b, list, 4), PC_ERR_NOT_FOUND, "2.bias");
        list[3] = other;
        list[4] = (pc_parameter){"3.bias", other.tensor};
        assert_fails(pc_module_load(b, list, 5), PC_ERR_NOT_FOUND, "the state has 3.bias, which the module has not");
        list[3].tensor = pc_zeros(PC_SHAPE(3), PC_F32, test_device());
        assert_fails(pc_module_load(b, list, 4), PC_ERR_SHAPE, "[3] in the state and [2]");
        list[3].tensor = NULL;
        assert_fails(pc_module_load(b, list, 4), PC_ERR_NOT_FOUND, "2.bias");
        assert_true(distance(pc_module_parameter(b, "0.weight"), before) == 0);
    }
    pc_module_free(a);
    pc_module_free(b);
    assert_nothing_left();
}

/* --- modes and moving --- */

static void modes_reach_all_below(void **state)
{
    (void)state;
    pc_module *net = pc_sequential(pc_sequential(pc_dropout(0.5)), pc_dropout(0.5));
    pc_seed(4);
    PC_SCOPE {
        pc_tensor *x = pc_ones(PC_SHAPE(1000), PC_F32, test_device());
        double kept = pc_item(pc_mean(pc_forward(net, x))); /* 1 within five deviations of sqrt(3 / 1000) */
        assert_close(kept, 1, 0.28);
        assert_true(distance(pc_forward(net, x), x) > 0.1);
        pc_module_set_training(net, false);
        assert_false(pc_module_is_training(pc_module_child(pc_module_child(net, 0), 0)));
        pc_generator before = pc_generator_get();
        assert_true(distance(pc_forward(net, x), x) == 0);
        assert_int_equal(pc_generator_get().step, before.step); /* evaluation draws nothing */
        pc_module_set_training(net, true);
        assert_true(distance(pc_forward(net, x), x) > 0.1);
    }
    pc_module_free(net);
    assert_nothing_left();
}

static void moves_to_float64(void **state)
{
    (void)state;
    pc_seed(2);
    pc_module *net = small();
    PC_SCOPE {
        pc_tensor *x = pc_randn(PC_SHAPE(5, 3), PC_F32, test_device());
        pc_tensor *y = pc_forward(net, x);
        assert_ok(pc_module_to(net, test_device(), PC_F64));
        assert_fails(pc_forward(net, x), PC_ERR_DTYPE, "float64");
        pc_tensor *z = pc_forward(net, pc_cast(x, PC_F64));
        assert_int_equal(pc_tensor_dtype(z), PC_F64);
        assert_true(distance(y, z) < 1e-6);
        assert_ok(pc_backward(pc_sum(z)));
        assert_int_equal(pc_tensor_dtype(pc_grad(pc_module_parameter(net, "0.weight"))), PC_F64);
        assert_fails(pc_module_to(net, test_device(), PC_I64), PC_ERR_DTYPE, "int64");
    }
    pc_module_free(net);
    assert_nothing_left();
}

/* --- ownership --- */

static int destroyed;

static void count_end(pc_module *module)
{
    destroyed += *(int *)pc_module_data(module);
}

static pc_tensor *same(pc_module *module, pc_tensor *x)
{
    (void)module;
    return pc_cast(x, pc_tensor_dtype(x));
}

static void say(const pc_module *module, char *text, size_t n)
{
    snprintf(text, n, "times=%d", *(int *)pc_module_data(module));
}

static const pc_module_class counted_class = {
    .name = "Counted", .forward = same, .describe = say, .destroy = count_end};

static pc_module *counted(void)
{
    pc_module *module = pc_module_new(&counted_class, sizeof(int));
    if (module)
        *(int *)pc_module_data(module) = 1;
    return module;
}

/* Two names of one tensor, such as an embedding's weight that the last layer has too, are trained as one. */
static void tied_parameters_stay_tied(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_module *outer = pc_module_list_new(NULL, 0), *inner = pc_module_list_new(NULL, 0);
        pc_tensor *shared = pc_randn(PC_SHAPE(3, 2), PC_F32, PC_DEVICE_CPU);
        assert_ok(pc_module_add_parameter(outer, "a", shared));
        assert_ok(pc_module_add_parameter(outer, "own", pc_clone(pc_detach(shared))));
        assert_ok(pc_module_add_parameter(inner, "b", shared));
        assert_ok(pc_module_add_buffer(inner, "c", pc_detach(shared)));
        assert_ok(pc_module_append(outer, inner));
        for (int turn = 0; turn < 2; turn++) {
            assert_ok(pc_module_to(outer, test_device(), turn ? PC_F32 : PC_F64));
            pc_tensor *a = pc_module_parameter(outer, "a");
            assert_int_equal(pc_tensor_dtype(a), turn ? PC_F32 : PC_F64);
            assert_ptr_equal(pc_module_parameter(outer, "0.b"), a);
            assert_ptr_not_equal(pc_module_parameter(outer, "own"), a);
            assert_true(pc_requires_grad(a));
            assert_close(
                pc_item(pc_max(pc_abs(pc_sub(pc_cast(pc_module_parameter(outer, "own"), PC_F64), pc_cast(a, PC_F64))))),
                0, 0);
        }
        pc_module_free(outer);
    }
    assert_nothing_left();
}

static void constructors_release_on_failure(void **state)
{
    (void)state;
    destroyed = 0;
    pc_module *fine = counted();
    char *text = pc_module_text(fine);
    assert_string_equal(text, "Counted(times=1)");
    pc_text_free(text);
    assert_fails(pc_sequential(counted(), fine, NULL, counted()), PC_ERR_ARGUMENT, "NULL");
    assert_int_equal(destroyed, 3);
    assert_fails(pc_sequential_new(NULL, 0), PC_ERR_ARGUMENT, "at least one");
    assert_fails(pc_module_add_child(NULL, "a", counted()), PC_ERR_ARGUMENT, "NULL");
    assert_int_equal(destroyed, 4);
    pc_module *outer = pc_sequential(counted());
    assert_fails(pc_module_add_child(outer, "0", counted()), PC_ERR_ARGUMENT, "already");
    assert_fails(pc_module_add_child(outer, "a.b", counted()), PC_ERR_ARGUMENT, "without dots");
    assert_fails(pc_module_add_child(outer, NULL, counted()), PC_ERR_ARGUMENT, "name is NULL");
    assert_int_equal(destroyed, 7);
    assert_fails(pc_module_new(NULL, 8), PC_ERR_ARGUMENT, "type is NULL");
    pc_module_free(outer);
    assert_int_equal(destroyed, 8);
    assert_nothing_left();
}

/* One module in two places would be released twice: it is refused, and released once. */
static void a_module_has_one_place(void **state)
{
    (void)state;
    destroyed = 0;
    pc_module *twice = counted();
    assert_fails(pc_sequential(counted(), twice, counted(), twice), PC_ERR_ARGUMENT, "of its own");
    assert_int_equal(destroyed, 3);
    twice = counted();
    assert_fails(pc_sequential(NULL, twice, twice), PC_ERR_ARGUMENT, "NULL");
    assert_int_equal(destroyed, 4);
    pc_module *outer = pc_sequential(counted()), *inner = pc_module_child(outer, 0);
    assert_fails(pc_sequential(inner, counted()), PC_ERR_ARGUMENT, "of its own");
    assert_int_equal(destroyed, 5);
    assert_fails(pc_module_add_child(outer, "self", outer), PC_ERR_ARGUMENT, "of its own");
    pc_module_free(outer);
    assert_int_equal(destroyed, 6);
    assert_nothing_left();
}

static void wrong_parameters(void **state)
{
    (void)state;
    pc_module *module = counted();
    PC_SCOPE {
        pc_tensor *w = pc_zeros(PC_SHAPE(2, 3), PC_F32, test_device());
        assert_fails(pc_module_add_parameter(module, "w", NULL), PC_ERR_ARGUMENT, "NULL");
        assert_fails(pc_module_add_parameter(module, "w", pc_transpose(w, 0, 1)), PC_ERR_ARGUMENT, "contiguous");
        assert_fails(pc_module_add_parameter(module, "w", pc_zeros(PC_SHAPE(2), PC_I64, test_device())), PC_ERR_DTYPE,
                     "int64");
        assert_ok(pc_module_add_parameter(module, "w", w));
        assert_fails(pc_module_add_parameter(module, "w", w), PC_ERR_ARGUMENT, "already");
        assert_fails(pc_module_add_parameter(module, "v", pc_neg(w)), PC_ERR_STATE, "leaf");
    }
    assert_true(distance(pc_module_parameter(module, "w"), pc_module_parameter(module, "w")) == 0);
    pc_module_free(module);
    assert_nothing_left();
}

static void wrong_layers(void **state)
{
    (void)state;
    assert_fails(pc_linear(0, 1), PC_ERR_ARGUMENT, "linear");
    assert_fails(pc_linear(1, 1, .activation = (pc_activation_kind)9), PC_ERR_ARGUMENT, "activation 9");
    assert_fails(pc_linear(1, 1, .init = (pc_init_kind)9), PC_ERR_ARGUMENT, "initialiser 9");
    assert_fails(pc_linear(1 << 30, 1 << 30), PC_ERR_MEMORY, "memory");
    assert_fails(pc_conv2d(3, 0, 3), PC_ERR_ARGUMENT, "conv2d");
    assert_fails(pc_conv2d(3, 1, 3, .padding = -1), PC_ERR_ARGUMENT, "padding -1");
    assert_fails(pc_max_pool2d(0), PC_ERR_ARGUMENT, "kernel 0");
    assert_fails(pc_avg_pool2d(2, .padding = 2), PC_ERR_ARGUMENT, "half the kernel");
    assert_fails(pc_dropout(1.5), PC_ERR_ARGUMENT, "1.5");
    assert_fails(pc_dropout(NAN), PC_ERR_ARGUMENT, "nan");
    assert_fails(pc_activation((pc_activation_kind)7), PC_ERR_ARGUMENT, "7");
    pc_module *net = on_device(pc_sequential(pc_linear(3, 2)));
    PC_SCOPE {
        assert_fails(pc_forward(net, NULL), PC_ERR_ARGUMENT, "NULL");
        assert_fails(pc_forward(NULL, pc_zeros(PC_SHAPE(1), PC_F32, test_device())), PC_ERR_ARGUMENT, "NULL");
        assert_fails(pc_forward(net, pc_zeros(PC_SHAPE(2, 4), PC_F32, test_device())), PC_ERR_SHAPE, "[2, 4]");
    }
    pc_module_free(net);
    assert_nothing_left();
}

static pc_module *nested(pc_module *net, int levels)
{
    pc_named_module around = {"a_name_of_20_letters", NULL};
    for (int i = 0; i < levels && net; i++) {
        around.module = net;
        net = pc_module_dict_new(&around, 1);
    }
    return net;
}

/* A name that was cut would be none of the module's in a file, or another parameter's; what needs no names goes on. */
static void names_that_are_too_long_are_refused(void **state)
{
    (void)state;
    pc_parameter list[4];
    pc_module *inner = pc_linear(2, 2), *net = on_device(nested(inner, 4)); /* 4 x 21 + 6 letters */
    assert_int_equal(pc_module_state_list(net, list, 2), 2);
    assert_int_equal(strlen(list[0].name), 90);
    assert_non_null(pc_module_parameter(net, list[1].name));
    net = nested(net, 1);
    static const char words[] =
        "a_name_of_20_letters.a_name_of_20_letters.a_name_of_20_lette...\" is longer than 95 bytes";
    assert_fails(pc_module_parameter_list(net, list, 4) == -1 ? NULL : net, PC_ERR_ARGUMENT, words);
    assert_fails(pc_module_state_list(net, NULL, 0) == -1 ? NULL : net, PC_ERR_ARGUMENT, words);
    assert_fails(pc_module_load(net, list, 2), PC_ERR_ARGUMENT, words);
    assert_fails(pc_module_load_matching(net, list, 2, NULL), PC_ERR_ARGUMENT, words);
    assert_fails(pc_module_parameter(net, list[0].name), PC_ERR_ARGUMENT, words);
    assert_fails(pc_module_buffer(net, list[0].name), PC_ERR_ARGUMENT, words);
    assert_fails(pc_module_freeze(net, "*"), PC_ERR_ARGUMENT, words);
    assert_fails(pc_weights_save(net, "/tmp/paracord-too-long.safetensors"), PC_ERR_ARGUMENT, words);
    assert_int_equal(access("/tmp/paracord-too-long.safetensors", F_OK), -1);
    assert_fails(pc_adam(net), PC_ERR_ARGUMENT, words);
    assert_fails(pc_ema_new(net, 0.9), PC_ERR_ARGUMENT, words);
    assert_int_equal(pc_module_parameter_elements(net), 6);
    pc_module_zero_grad(net);
    assert_ok(pc_module_to(net, test_device(), PC_F64));
    assert_int_equal(pc_tensor_dtype(pc_module_parameter(inner, "weight")), PC_F64);
    assert_true(pc_requires_grad(pc_module_parameter(inner, "weight")));
    pc_module_free(net);
    net = nested(pc_flatten(), 6); /* no name is too long where there is none */
    assert_int_equal(pc_module_state_list(net, NULL, 0), 0);
    pc_module_free(net);
    assert_nothing_left();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(prints_as_pytorch),
        cmocka_unit_test(parameters_have_names),
        cmocka_unit_test(state_goes_from_one_to_the_other),
        cmocka_unit_test(wrong_state_changes_nothing),
        cmocka_unit_test(modes_reach_all_below),
        cmocka_unit_test(moves_to_float64),
        cmocka_unit_test(tied_parameters_stay_tied),
        cmocka_unit_test(constructors_release_on_failure),
        cmocka_unit_test(a_module_has_one_place),
        cmocka_unit_test(names_that_are_too_long_are_refused),
        cmocka_unit_test(wrong_parameters),
        cmocka_unit_test(wrong_layers),
    };
    return cmocka_run_group_tests_name("nn.module", tests, NULL, NULL);
}
