/* Errors of calls that fail at once: they name the program's line, and the layer. The tests link the library
 * statically. */
#include "base/base.h"
#include "device.h"

#include <stdio.h>

#include <paracord/autograd.h>
#include <paracord/ops.h>

#ifndef PC_HAVE_DW
#define PC_HAVE_DW 0
#endif

/* This program was not stripped, and the library knows how to read lines. */
static bool has_lines(void)
{
    static char part[1 << 20], section[] = "\0?debug_line"; /* spelled so that it is not found in the program's data */
    bool found = false;
    FILE *program = fopen("/proc/self/exe", "rb");
    assert_non_null(program);
    section[1] = '.';
    for (size_t n; !found && (n = fread(part, 1, sizeof part, program)) > 0;)
        found = memmem(part, n, section, sizeof section) != NULL;
    fclose(program);
    return PC_HAVE_DW && found;
}

/* "places.c:86 (function)"; the place in the program where that is all it has. */
static const char *place_of(int line, const char *function)
{
    static char want[80];
    if (!has_lines())
        return "test.nn.places+0x";
    snprintf(want, sizeof want, "places.c:%d (%s)", line, function);
    return want;
}

static void assert_place(int line, const char *function)
{
    const char *want = place_of(line, function);
    assert_memory_equal(pc_error_place(), want, strlen(want) + has_lines());
}

/* What pc_report writes: one line, with the place at its end. */
static void assert_reported(const char *first, const char *last)
{
    char text[2048] = "";
    FILE *out = fmemopen(text, sizeof text, "w");
    assert_non_null(out);
    assert_int_equal(pc_report(out), 1);
    fclose(out);
    assert_ptr_equal(strchr(text, '\n'), text + strlen(text) - 1);
    assert_int_equal(strncmp(text, first, strlen(first)), 0);
    assert_non_null(strstr(text, last));
}

static void an_op_names_the_line(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_tensor *a = pc_zeros(PC_SHAPE(2, 3), PC_F32, test_device()),
                  *b = pc_zeros(PC_SHAPE(4), PC_F32, test_device());
        pc_tensor *c = pc_relu(pc_add(a, b));
        const int line = __LINE__ - 1;
        assert_null(c);
        pc_tensor *later = pc_matmul(c, b); /* the first error stays */
        assert_null(later);
        assert_place(line, "an_op_names_the_line");
        char end[96];
        snprintf(end, sizeof end, " [%s%s", place_of(line, "an_op_names_the_line"), has_lines() ? "]\n" : "");
        assert_reported("paracord: add: the shapes [2, 3] and [4] do not broadcast", end);
        pc_error_clear();
        assert_string_equal(pc_error_place(), "");
        const pc_status status = pc_fail(PC_ERR_STATE, "an error of the program's");
        assert_int_equal(status, PC_ERR_STATE);
        assert_place(__LINE__ - 2, "an_op_names_the_line");
        pc_error_clear();
    }
    assert_no_leak();
}

static void an_error_keeps_its_place_from_thread_to_thread(void **state)
{
    (void)state;
    const pc_status status = pc_fail(PC_ERR_STATE, "here");
    const int line = __LINE__ - 1;
    assert_int_equal(status, PC_ERR_STATE);
    const pc_error taken = pc__error_take();
    assert_string_equal(pc_error_place(), "");
    assert_int_equal(pc__error_put(&taken), PC_ERR_STATE);
    assert_place(line, "an_error_keeps_its_place_from_thread_to_thread");
    pc_error_clear();
}

static void a_sequential_names_the_layer(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_module *net = on_device(pc_sequential(pc_flatten(), pc_linear(6, 8, .activation = PC_ACTIVATION_RELU),
                                                 pc_dropout(0.5), pc_sequential(pc_linear(8, 4), pc_linear(5, 2))));
        pc_tensor *x = pc_zeros(PC_SHAPE(3, 2, 3), PC_F32, test_device());
        assert_fails(pc_forward(net, x), PC_ERR_SHAPE,
                     "layer 3.1 (Linear(in_features=5, out_features=2, bias=True)): linear: an input");
        assert_fails(pc_forward(net, pc_zeros(PC_SHAPE(3, 7), PC_F32, test_device())), PC_ERR_SHAPE,
                     "layer 1 (Linear(in_features=6, ");
        pc_tensor *y = pc_forward(net, x);
        const int line = __LINE__ - 1;
        assert_null(y);
        assert_place(line, "a_sequential_names_the_layer");
        assert_reported("paracord: layer 3.1 (Linear(", "[out, in]");
        pc_error_clear();
        /* an error that was there before is not the layer's */
        assert_fails(pc_forward(net, pc_add(x, NULL)), PC_ERR_ARGUMENT, "pc_add: b is NULL");
        pc_error_clear();
        (void)!pc_fail(PC_ERR_STATE, "before");
        assert_null(pc_forward(net, x));
        assert_string_equal(pc_error_last()->message, "before");
        pc_error_clear();
        pc_module_free(net);
    }
    assert_no_leak();
}

static void the_first_of_layers_that_run_as_one_is_named(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_module *net =
            on_device(pc_sequential(pc_conv2d(3, 4, 3), pc_activation(PC_ACTIVATION_RELU), pc_max_pool2d(2)));
        assert_fails(pc_forward(net, pc_zeros(PC_SHAPE(1, 3, 3, 3), PC_F32, test_device())), PC_ERR_SHAPE,
                     "layer 0 (Conv2d(3, 4, ");
        pc_module_free(net);
    }
    assert_no_leak();
}

static pc_tensor *fail_long(pc_module *module, pc_tensor *x)
{
    (void)module, (void)x;
    (void)!pc_fail(PC_ERR_STATE, "%0500d", 1);
    return NULL;
}

/* In front of a message that fills its room the layer still stands, whole, and its end is cut. */
static void long_messages_are_cut_at_the_end(void **state)
{
    (void)state;
    static const pc_module_class type = {.name = "Long", .forward = fail_long};
    PC_SCOPE {
        pc_module *net = pc_sequential(pc_module_new(&type, 0));
        pc_tensor *x = pc_zeros(PC_SHAPE(1), PC_F32, test_device());
        assert_fails(pc_forward(net, x), PC_ERR_STATE, "layer 0 (Long()): 000");
        pc_module_free(net);
    }
    assert_no_leak();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_op_names_the_line),
        cmocka_unit_test(an_error_keeps_its_place_from_thread_to_thread),
        cmocka_unit_test(a_sequential_names_the_layer),
        cmocka_unit_test(the_first_of_layers_that_run_as_one_is_named),
        cmocka_unit_test(long_messages_are_cut_at_the_end),
    };
    return cmocka_run_group_tests_name("nn.places", tests, NULL, NULL);
}
