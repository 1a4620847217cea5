/* lifetimes.c: things that end in the wrong order or not at all: threads inside scopes, parts under their parent,
 * braces that longjmp went over, memory that is not aligned. */
#include "support.h"

#include <paracord/autograd.h>
#include <paracord/log.h>
#include <paracord/memory.h>
#include <paracord/nn.h>
#include <paracord/stream.h>
#include <pthread.h>

static int drops, warnings;

static void count_drop(void *object)
{
    (void)object;
    drops++;
}

static void count_warning(void *context, pc_log_level level, const char *line)
{
    (void)context, (void)line;
    warnings += level == PC_LOG_WARNING;
}

static void assert_nothing_left(void)
{
    assert_ok(pc_memory_trim(PC_DEVICE_CPU));
    assert_int_equal(pc_allocator_live(), 0);
    assert_false(pc_failed());
}

/* --- threads --- */

static void *end_inside_scopes(void *unused)
{
    (void)unused;
    PC_SCOPE {
        (void)!pc_zeros(PC_SHAPE(1000), PC_F32, PC_DEVICE_CPU);
        (void)pc_scope_enter();
        (void)!pc_scope_own(&drops, count_drop);
        (void)!pc_ones(PC_SHAPE(1000), PC_F32, PC_DEVICE_CPU);
        pthread_exit(NULL);
    }
    return NULL;
}

static void *leave_a_scope_open(void *unused)
{
    (void)unused;
    (void)pc_scope_enter();
    (void)!pc_scope_own(&drops, count_drop);
    (void)!pc_exp(pc_ones(PC_SHAPE(1000), PC_F32, PC_DEVICE_CPU));
    return NULL;
}

static void a_thread_that_ends_drops_what_its_scopes_own(void **state)
{
    (void)state;
    pthread_t thread;
    void *(*const ends[])(void *) = {leave_a_scope_open, end_inside_scopes};
    drops = warnings = 0;
    pc_log_set(count_warning, NULL, PC_LOG_WARNING);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(pthread_create(&thread, NULL, ends[i], NULL), 0);
        assert_int_equal(pthread_join(thread, NULL), 0);
        assert_int_equal(drops, i + 1);
        assert_int_equal(warnings, i + 1);
        assert_nothing_left();
    }
    pc_log_set(NULL, NULL, PC_LOG_WARNING);
}

/* --- longjmp --- */

static jmp_buf back;

static void jump_out(pc_tensor *t)
{
    PC_NO_GRAD {
        PC_MANUAL_ORDER {
            PC_SCOPE {
                (void)!pc_exp(t);
                longjmp(back, 1);
            }
        }
    }
}

static void a_scope_outside_ends_what_longjmp_left(void **state)
{
    (void)state;
    pc_tensor *t = pc_ones(PC_SHAPE(4), PC_F32, PC_DEVICE_CPU);
    assert_ok(pc_require_grad(t, true));
    warnings = 0;
    pc_log_set(count_warning, NULL, PC_LOG_WARNING);
    pc_scope outside = pc_scope_enter();
    if (setjmp(back) == 0)
        jump_out(t);
    assert_false(pc_grad_enabled());
    pc_scope_leave(&outside);
    assert_true(pc_grad_enabled());
    assert_false(pc_scope_active());
    assert_int_equal(warnings, 1);
    PC_SCOPE {
        assert_true(pc_requires_grad(pc_exp(t)));
    }
    PC_NO_GRAD { /* in order there is nothing to say */
        PC_SCOPE {
            PC_NO_GRAD {
                (void)!pc_exp(t);
            }
        }
        assert_false(pc_grad_enabled());
    }
    assert_int_equal(warnings, 1);
    pc_log_set(NULL, NULL, PC_LOG_WARNING);
    pc_tensor_free(t);
    assert_nothing_left();
}

static void leaving_what_was_not_entered_changes_nothing(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++) {
        int open = 1;
        pc_no_grad_leave(&open);
        assert_true(pc_grad_enabled());
    }
    PC_NO_GRAD {
        assert_false(pc_grad_enabled());
    }
}

/* --- modules --- */

static void a_part_is_not_freed_under_its_parent(void **state)
{
    (void)state;
    pc_module *net = pc_sequential(pc_linear(4, 4), pc_sequential(pc_linear(4, 2)));
    assert_not_null_ok(net);
    for (int i = 0; i < 2; i++)
        assert_fails((pc_module_free(pc_module_child(net, i)), 1), PC_ERR_STATE, "is a part of a Sequential");
    pc_module *inner = pc_module_child(net, 1);
    assert_fails((pc_module_free(pc_module_child(inner, 0)), 1), PC_ERR_STATE, "free the outermost");
    PC_SCOPE {
        pc_tensor *y = pc_forward(net, pc_ones(PC_SHAPE(1, 4), PC_F32, PC_DEVICE_CPU));
        assert_not_null_ok(y);
    }
    pc_module_free(net);
    assert_nothing_left();
}

static void modules_hold_no_ring(void **state)
{
    (void)state;
    pc_module *net = pc_sequential(pc_sequential(pc_flatten()));
    pc_module *inner = pc_module_child(net, 0);
    assert_fails(pc_module_add_child(inner, "ring", net), PC_ERR_ARGUMENT, "a module of its own");
    assert_int_equal(pc_module_child_count(inner), 1);
    pc_module_free(net);
    assert_nothing_left();
}

static void modules_nest_a_thousand_deep(void **state)
{
    (void)state;
    pc_module *net = pc_linear(2, 2);
    int depth = 1;
    for (; depth < 100000; depth++) {
        pc_module *around = pc_sequential(net);
        if (!around)
            break;
        net = around;
    }
    assert_int_equal(depth, 1000);
    assert_int_equal(pc_error_last()->status, PC_ERR_ARGUMENT);
    assert_non_null(strstr(pc_error_last()->message, "1000 are the most"));
    pc_error_clear();
    assert_nothing_left(); /* what did not fit was released */

    net = pc_linear(2, 2);
    for (depth = 1; depth < 1000; depth++)
        net = pc_sequential(net);
    assert_not_null_ok(net);
    PC_SCOPE {
        pc_tensor *y = pc_forward(net, pc_ones(PC_SHAPE(1, 2), PC_F32, PC_DEVICE_CPU));
        assert_not_null_ok(y);
        assert_ok(pc_backward(pc_sum(y)));
    }
    pc_module_set_training(net, false);
    pc_text_free(pc_module_text(net));
    pc_module *inside = net;
    while (pc_module_child_count(inside))
        inside = pc_module_child(inside, 0);
    assert_fails(pc_module_add_child(inside, "deeper", pc_flatten()), PC_ERR_ARGUMENT, "1001th level");
    pc_module_free(net);
    assert_nothing_left();
}

/* --- memory --- */

static void memory_in_place_is_aligned(void **state)
{
    (void)state;
    static _Alignas(16) char memory[256];
    for (int dtype = 0; dtype < PC_DTYPE_COUNT; dtype++) {
        const size_t size = pc_dtype_size((pc_dtype)dtype);
        for (size_t offset = 0; offset < 16; offset++) {
            if (offset % size) {
                assert_fails(pc_from_memory(memory + offset, PC_SHAPE(4), (pc_dtype)dtype, NULL, NULL), PC_ERR_ARGUMENT,
                             "is not aligned to the");
                continue;
            }
            pc_tensor *t = pc_from_memory(memory + offset, PC_SHAPE(4), (pc_dtype)dtype, NULL, NULL);
            assert_not_null_ok(t);
            pc_tensor_free(t);
        }
        pc_tensor *copy = pc_from_data(memory + 1, PC_SHAPE(4), (pc_dtype)dtype, PC_DEVICE_CPU);
        assert_not_null_ok(copy);
        assert_ok(pc_read(copy, memory + 101, 4 * size));
        pc_tensor_free(copy);
    }
    assert_nothing_left();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_thread_that_ends_drops_what_its_scopes_own),
                                       cmocka_unit_test(a_scope_outside_ends_what_longjmp_left),
                                       cmocka_unit_test(leaving_what_was_not_entered_changes_nothing),
                                       cmocka_unit_test(a_part_is_not_freed_under_its_parent),
                                       cmocka_unit_test(modules_hold_no_ring),
                                       cmocka_unit_test(modules_nest_a_thousand_deep),
                                       cmocka_unit_test(memory_in_place_is_aligned)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
