/* What is recorded, who collects gradients, and what backward refuses. */
#include "device.h"

#include <math.h>
#include <paracord/autograd.h>
#include <paracord/memory.h>
#include <paracord/ops.h>
#include <pthread.h>

static pc_tensor *leaf(double value, pc_shape shape)
{
    pc_tensor *t = pc_full(shape, value, PC_F32, test_device());
    assert_ok(pc_require_grad(t, true));
    return t;
}

static double sum_of(pc_tensor *t)
{
    double sum = 0;
    PC_NO_GRAD {
        PC_SCOPE {
            sum = pc_item(pc_sum(t));
        }
    }
    return sum;
}

static void leaves_collect_until_told_to_forget(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_tensor *w = leaf(2, PC_SHAPE(3));
        assert_null(pc_grad(w));
        assert_ok(pc_backward(pc_sum(pc_mul(w, w))));
        assert_close(sum_of(pc_grad(w)), 12, 0);
        assert_ok(pc_backward(pc_sum(pc_mul(w, w))));
        assert_close(sum_of(pc_grad(w)), 24, 0);
        assert_true(pc_tensor_is_contiguous(pc_grad(w)));
        assert_false(pc_requires_grad(pc_grad(w)));
        pc_zero_grad(w);
        assert_null(pc_grad(w));
        assert_ok(pc_backward(pc_mean(w)));
        assert_close(sum_of(pc_grad(w)), 1, 1e-6);
        pc_zero_grad(NULL);
        assert_null(pc_grad(NULL));
    }
    assert_no_leak();
}

static void what_requires_gradients(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_tensor *w = leaf(1, PC_SHAPE(2)), *x = pc_ones(PC_SHAPE(2), PC_F32, test_device());
        pc_tensor *y = pc_add(w, x), *z = pc_add(x, x);
        assert_true(pc_requires_grad(w) && pc_is_leaf(w));
        assert_true(pc_requires_grad(y) && !pc_is_leaf(y));
        assert_true(!pc_requires_grad(z) && pc_is_leaf(z));
        assert_false(pc_requires_grad(NULL) || pc_is_leaf(NULL));
        assert_false(pc_requires_grad(pc_argmax(w, 0, false)));
        assert_false(pc_requires_grad(pc_cast(w, PC_I32)));
        assert_ok(pc_require_grad(w, false));
        assert_false(pc_requires_grad(pc_add(w, x)));
        assert_ok(pc_backward(pc_sum(y))); /* recorded before */
    }
    assert_no_leak();
}

static void no_grad_and_detach_stop_recording(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_tensor *w = leaf(3, PC_SHAPE(2));
        assert_true(pc_grad_enabled());
        PC_NO_GRAD {
            assert_false(pc_grad_enabled());
            PC_NO_GRAD {
                assert_false(pc_requires_grad(pc_mul(w, w)));
            }
            assert_false(pc_grad_enabled());
            assert_false(pc_requires_grad(pc_mul(w, w)));
        }
        assert_true(pc_grad_enabled());
        pc_tensor *stopped = pc_detach(pc_mul(w, w));
        assert_true(pc_is_leaf(stopped) && !pc_requires_grad(stopped));
        assert_ok(pc_backward(pc_sum(pc_mul(w, stopped))));
        assert_close(sum_of(pc_grad(w)), 18, 0);
    }
    assert_no_leak();
}

static void refused(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_tensor *w = leaf(3, PC_SHAPE(2)), *x = pc_ones(PC_SHAPE(2), PC_F32, test_device());
        pc_tensor *y = pc_mul(w, x);
        assert_fails(pc_require_grad(y, true), PC_ERR_STATE, "the result of mul, not a leaf");
        assert_fails(pc_require_grad(pc_cast(x, PC_I64), true), PC_ERR_DTYPE, "int64");
        assert_fails(pc_require_grad(NULL, true), PC_ERR_ARGUMENT, "NULL");
        assert_fails(pc_backward(y), PC_ERR_SHAPE, "shape [2]; it must be one number");
        assert_fails(pc_backward(pc_sum(x)), PC_ERR_STATE, "pc_require_grad");
        assert_fails(pc_backward(NULL), PC_ERR_ARGUMENT, "NULL");
        assert_fails(pc_backward_with(y, NULL), PC_ERR_ARGUMENT, "NULL");
        assert_fails(pc_backward_with(NULL, x), PC_ERR_ARGUMENT, "NULL");
        assert_fails(pc_backward_with(y, pc_ones(PC_SHAPE(3), PC_F32, test_device())), PC_ERR_SHAPE, "[3]");
        assert_fails(pc_backward_with(y, pc_ones(PC_SHAPE(2), PC_F64, test_device())), PC_ERR_SHAPE, "float64");
        assert_fails(pc_backward(pc_sum(pc_add(y, pc_ones(PC_SHAPE(3), PC_F32, test_device())))), PC_ERR_SHAPE, "add");
        assert_null(pc_grad(w)); /* none of them left a trace */
        assert_ok(pc_backward_with(y, x));
        assert_close(sum_of(pc_grad(w)), 2, 0);
    }
    assert_no_leak();
}

static void a_record_is_walked_once(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_tensor *w = leaf(3, PC_SHAPE(2)), *shared = pc_exp(w);
        pc_tensor *a = pc_sum(shared), *b = pc_sum(pc_mul(shared, shared));
        assert_ok(pc_backward(a));
        double once = sum_of(pc_grad(w));
        assert_fails(pc_backward(a), PC_ERR_STATE, "second backward");
        assert_fails(pc_backward(b), PC_ERR_STATE, "exp was already differentiated");
        assert_close(sum_of(pc_grad(w)), once, 0);
    }
    assert_no_leak();
}

/* The caller's gradient stays the caller's, also when it is a leaf's first. */
static void given_gradients_are_copied(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_tensor *w = leaf(3, PC_SHAPE(2)), *g = pc_ones(PC_SHAPE(2), PC_F32, test_device());
        assert_ok(pc_backward_with(w, g));
        assert_ok(pc_backward_with(w, g));
        assert_ok(pc_backward_with(pc_add_scalar(w, 1), g));
        assert_close(sum_of(g), 2, 0);
        assert_close(sum_of(pc_grad(w)), 6, 0);
        pc_tensor *one = leaf(5, PC_SHAPE_SCALAR);
        assert_ok(pc_backward(one));
        assert_close(pc_item(pc_grad(one)), 1, 0);
    }
    assert_no_leak();
}

/* In the leaf's memory order, made for it or copied; in C order where the leaf has gaps. */
static void gradients_lie_as_their_leaves(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_tensor *turned = pc_detach(pc_permute(leaf(2, PC_SHAPE(2, 3, 4, 5)), PC_SHAPE(0, 3, 1, 2))),
                  *gaps = pc_detach(pc_slice(leaf(2, PC_SHAPE(4, 6)), 1, 0, 6, 2)),
                  *given = pc_full(PC_SHAPE(2, 5, 3, 4), 3, PC_F32, test_device());
        assert_ok(pc_require_grad(turned, true));
        assert_ok(pc_require_grad(gaps, true));
        for (int i = 0; i < 2; i++) {
            assert_ok(pc_backward(pc_sum(pc_exp(turned))));
            assert_ok(pc_backward(pc_sum(pc_mul(gaps, gaps))));
        }
        for (int d = 0; d < 4; d++)
            assert_int_equal(pc_tensor_stride(pc_grad(turned), d), pc_tensor_stride(turned, d));
        assert_close(sum_of(pc_grad(turned)), 2 * 120 * exp(2), 1e-2);
        assert_int_equal(pc_tensor_stride(pc_grad(gaps), 1), 1);
        assert_close(sum_of(pc_grad(gaps)), 2 * 12 * 4, 1e-4);
        pc_zero_grad(turned);
        assert_ok(pc_backward_with(pc_add(turned, given), given));
        assert_int_equal(pc_tensor_stride(pc_grad(turned), 1), 1);
        assert_close(sum_of(pc_grad(turned)), 360, 1e-4);
    }
    assert_no_leak();
}

static int64_t blocks_of_backward(pc_tensor *y, pc_tensor *gradient)
{
    pc_memory_stats before, after;
    assert_ok(pc_memory_query(test_device(), &before));
    assert_ok(pc_backward_with(y, gradient));
    assert_ok(pc_memory_query(test_device(), &after));
    return after.requests - before.requests;
}

/* A gradient that reaches its leaf through views is the leaf's as it is: no block more than without the views. */
static void views_of_gradients_are_taken(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_tensor *w = leaf(2, PC_SHAPE(2, 3)), *v = leaf(2, PC_SHAPE(2, 3));
        pc_tensor *flat = pc_ones(PC_SHAPE(6), PC_F32, test_device()), *given = pc_reshape(flat, PC_SHAPE(2, 3));
        const int64_t blocks = blocks_of_backward(pc_exp(w), given);
        assert_int_equal(blocks_of_backward(pc_exp(pc_reshape(v, PC_SHAPE(6))), flat), blocks);
        assert_close(sum_of(pc_grad(v)), 6 * exp(2), 1e-3);
        pc_zero_grad(v);
        pc_tensor *view = pc_reshape(v, PC_SHAPE(6));
        assert_ok(pc_backward_with(view, flat)); /* the caller's own, through a view: copied */
        assert_ok(pc_backward_with(pc_reshape(v, PC_SHAPE(6)), flat));
        assert_close(sum_of(flat), 6, 0);
        assert_close(sum_of(pc_grad(v)), 12, 0);
    }
    assert_no_leak();
}

/* A loss that outlives the scope of its intermediates takes along what backward needs. */
static void records_outlive_scopes(void **state)
{
    (void)state;
    pc_tensor *w = leaf(2, PC_SHAPE(4)), *loss = NULL;
    PC_SCOPE {
        loss = pc_keep(pc_sum(pc_mul(pc_exp(w), pc_tanh(w))));
    }
    assert_ok(pc_backward(loss));
    assert_true(sum_of(pc_grad(w)) > 0);
    pc_tensor_free(loss);
    PC_SCOPE {
        loss = pc_keep(pc_sum(pc_exp(w)));
    }
    pc_tensor_free(loss); /* and dropped without a backward */
    pc_tensor_free(w);
    assert_no_leak();
}

/* Dropping and walking a long chain takes no stack. */
static void long_chains(void **state)
{
    (void)state;
    const int length = sampled() ? 10000 : 100000; /* launches take their time */
    for (int walked = 0; walked < 2; walked++) {
        pc_tensor *w = leaf(1, PC_SHAPE_SCALAR), *y = pc_tensor_retain(w);
        for (int i = 0; i < length; i++) {
            pc_tensor *next = pc_add(y, w);
            pc_tensor_free(y);
            y = next;
        }
        if (walked) {
            assert_ok(pc_backward(y));
            assert_close(pc_item(pc_grad(w)), length + 1, 0);
        }
        pc_tensor_free(y);
        pc_tensor_free(w);
        assert_no_leak();
    }
}

/* Without a scope everything is the caller's, and what backward made goes by itself. */
static void without_scopes(void **state)
{
    (void)state;
    assert_false(pc_scope_active());
    pc_tensor *w = leaf(2, PC_SHAPE(2, 3)), *y = pc_exp(w), *turned = pc_transpose(y, 0, 1), *loss = pc_mean(turned);
    pc_tensor_free(turned);
    assert_ok(pc_backward(loss));
    pc_tensor_free(y);
    pc_tensor_free(loss);
    pc_tensor_free(w);
    assert_no_leak();
}

static void *train(void *argument)
{
    double *result = argument;
    PC_SCOPE {
        pc_tensor *w = leaf(0.5, PC_SHAPE(8, 8));
        for (int step = 0; step < 50; step++)
            PC_SCOPE {
                pc_zero_grad(w);
                if (pc_backward(pc_mean(pc_tanh(pc_matmul(w, pc_sigmoid(w))))) != PC_OK)
                    *result = -1;
                PC_NO_GRAD {
                    if (pc_saxpy(w, -0.1, pc_grad(w)) != PC_OK)
                        *result = -1;
                }
            }
        *result += sum_of(w);
    }
    return NULL;
}

static void threads_walk_their_own_records(void **state)
{
    (void)state;
    enum { THREADS = 6 };
    pthread_t thread[THREADS];
    double result[THREADS] = {0}, alone = 0;
    train(&alone);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, train, &result[i]), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(thread[i], NULL);
    for (int i = 0; i < THREADS; i++)
        assert_close(result[i], alone, 0);
    assert_no_leak();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(leaves_collect_until_told_to_forget),
        cmocka_unit_test(what_requires_gradients),
        cmocka_unit_test(no_grad_and_detach_stop_recording),
        cmocka_unit_test(refused),
        cmocka_unit_test(a_record_is_walked_once),
        cmocka_unit_test(given_gradients_are_copied),
        cmocka_unit_test(gradients_lie_as_their_leaves),
        cmocka_unit_test(views_of_gradients_are_taken),
        cmocka_unit_test(records_outlive_scopes),
        cmocka_unit_test(long_chains),
        cmocka_unit_test(without_scopes),
        cmocka_unit_test(threads_walk_their_own_records),
    };
    return cmocka_run_group_tests_name("autograd.tape", tests, NULL, NULL);
}
