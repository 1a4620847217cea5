/* Dropout: PyTorch draws other numbers, so it is held to its promises instead. */
#include "ops/golden.h"

#include <paracord/autograd.h>
#include <paracord/random.h>

enum { N = 40001 };
static float x[N], y[N], z[N];

static void zero_or_scaled(void **state)
{
    (void)state;
    const double rates[] = {0.1, 0.5, 0.9};
    for (int r = 0; r < 3; r++)
        PC_SCOPE {
            pc_seed(11);
            double p = rates[r];
            pc_tensor *a = pc_add_scalar(pc_rand(PC_SHAPE(N), PC_F32, test_device()), 1);
            assert_ok(pc_read(a, x, sizeof x));
            assert_ok(pc_read(pc_fn_dropout(a, p), y, sizeof y));
            int zeros = 0;
            for (int i = 0; i < N; i++) {
                zeros += y[i] == 0;
                if (y[i] != 0)
                    assert_close((double)y[i], (double)x[i] / (1 - p), 1e-5);
            }
            assert_close((double)zeros / N, p, 5 * sqrt(p * (1 - p) / N));
        }
    assert_no_leak();
}

/* Drawn in memory order, whatever that is, with what stays for the gradient or without; the gradient, which may lie in
 * another order, has the same zeros. */
static void gradients_have_the_same_zeros(void **state)
{
    (void)state;
    enum { A = 3, B = 5, C = 37, ALL = A * B * C };
    static const pc_dtype dtypes[] = {PC_F32, PC_F16, PC_BF16, PC_F64};
    static float plain[ALL], kept[ALL], gradient[ALL];
    for (int k = 0; k < 16; k++)
        PC_SCOPE {
            const pc_dtype dtype = dtypes[k / 4];
            const bool turned = k & 1, other = k & 2;
            pc_tensor *a = pc_full(PC_SHAPE(A, C, B), 1, dtype, test_device());
            a = pc_detach(turned ? pc_permute(a, PC_SHAPE(0, 2, 1)) : pc_reshape(a, PC_SHAPE(A, B, C)));
            pc_tensor *g = pc_full(PC_SHAPE(A, C, B), 2, dtype, test_device());
            g = turned != other ? pc_permute(g, PC_SHAPE(0, 2, 1)) : pc_reshape(g, PC_SHAPE(A, B, C));
            pc_seed(5);
            assert_ok(pc_read(pc_contiguous(pc_cast(pc_fn_dropout(a, .75), PC_F32)), plain, sizeof plain));
            assert_ok(pc_require_grad(a, true));
            pc_seed(5);
            pc_tensor *dropped = pc_fn_dropout(a, .75);
            assert_int_equal(pc_tensor_stride(dropped, 2), pc_tensor_stride(a, 2));
            assert_ok(pc_backward_with(dropped, g));
            assert_ok(pc_read(pc_contiguous(pc_cast(pc_detach(dropped), PC_F32)), kept, sizeof kept));
            assert_ok(pc_read(pc_contiguous(pc_cast(pc_grad(a), PC_F32)), gradient, sizeof gradient));
            int zeros = 0;
            for (int i = 0; i < ALL; i++) {
                zeros += kept[i] == 0;
                assert_true(kept[i] == plain[i] && (kept[i] == 0 || kept[i] == 4) && gradient[i] == 2 * kept[i]);
            }
            assert_true(zeros > ALL / 2 && zeros < ALL);
        }
    assert_no_leak();
}

static void ends_of_the_range(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_tensor *a = pc_randn(PC_SHAPE(3, 5), PC_F64, test_device());
        assert_close(pc_item(pc_sum(pc_ne(pc_fn_dropout(a, 0), a))), 0, 0);
        assert_close(pc_item(pc_sum(pc_ne(pc_fn_dropout(a, 1), pc_scalar(0, PC_F64, test_device())))), 0, 0);
        assert_int_equal(pc_tensor_count(pc_fn_dropout(pc_zeros(PC_SHAPE(0, 2), PC_F32, test_device()), 0.5)), 0);
    }
    assert_no_leak();
}

/* The same seed and step give the same elements; a call takes one step. */
static void follows_the_generator(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_tensor *a = pc_ones(PC_SHAPE(N), PC_F32, test_device());
        pc_seed(5);
        pc_generator before = pc_generator_get();
        assert_ok(pc_read(pc_fn_dropout(a, 0.5), x, sizeof x));
        assert_int_equal(pc_generator_get().step, before.step + 1);
        assert_ok(pc_read(pc_fn_dropout(a, 0.5), y, sizeof y));
        pc_generator_set(before);
        assert_ok(pc_read(pc_fn_dropout(a, 0.5), z, sizeof z));
        assert_memory_equal(x, z, sizeof x);
        assert_memory_not_equal(x, y, sizeof x);
    }
}

/* Bit by bit: also what a device computes of its own, logarithms and sines. */
static void draws_of_the_cpu(void **state)
{
    (void)state;
    static const pc_dtype dtypes[] = {PC_F16, PC_BF16, PC_F32, PC_F64};
    enum { COUNT = 30001 };
    static char here[COUNT * 8], there[COUNT * 8];
    for (int i = 0; i < 8; i++)
        PC_SCOPE {
            const size_t bytes = COUNT * pc_dtype_size(dtypes[i / 2]);
            pc_tensor *(*const draw)(pc_shape, pc_dtype, pc_device) = i % 2 ? pc_randn : pc_rand;
            const pc_generator before = pc_generator_get();
            assert_ok(pc_read(draw(PC_SHAPE(COUNT), dtypes[i / 2], PC_DEVICE_CPU), here, bytes));
            pc_generator_set(before);
            assert_ok(pc_read(draw(PC_SHAPE(COUNT), dtypes[i / 2], test_device()), there, bytes));
            assert_memory_equal(here, there, bytes);
        }
}

/* Whichever the dtype, also of a transposed input. */
static void drops_the_same(void **state)
{
    static const pc_dtype dtypes[] = {PC_F64, PC_F16, PC_BF16};
    (void)state;
    for (size_t d = 0; d < GOLDEN_COUNT(dtypes); d++)
        PC_SCOPE {
            pc_tensor *a = pc_ones(PC_SHAPE(30, 20), PC_F32, test_device());
            pc_generator before = pc_generator_get();
            pc_tensor *single = pc_fn_dropout(pc_transpose(a, 0, 1), 0.5);
            pc_generator_set(before);
            pc_tensor *other = pc_fn_dropout(pc_transpose(pc_cast(a, dtypes[d]), 0, 1), 0.5);
            assert_close(pc_item(pc_sum(pc_ne(pc_cast(other, PC_F32), single))), 0, 0);
        }
    assert_no_leak();
}

static pc_tensor *as_it_is(pc_tensor *a)
{
    return a;
}

static pc_tensor *every_second(pc_tensor *a)
{
    return pc_slice(a, 2, 1, 11, 2);
}

static pc_tensor *part_of_rows(pc_tensor *a)
{
    return pc_slice(a, 1, 2, 6, 3);
}

static pc_tensor *repeated(pc_tensor *a)
{
    return pc_expand(pc_slice(a, 1, 0, 1, 1), PC_SHAPE(5, 7, 11));
}

static pc_tensor *part_turned(pc_tensor *a)
{
    return pc_transpose(pc_slice(a, 2, 0, 3, 1), 1, 2);
}

/* Tensors with gaps are dropped, and their gradients, as copies without are. */
static void with_gaps(void **state)
{
    static pc_tensor *(*const views[])(pc_tensor *) = {as_it_is, every_second, part_of_rows, repeated, part_turned};
    (void)state;
    for (size_t v = 0; v < GOLDEN_COUNT(views); v++)
        for (int half = 0; half < 2; half++)
            PC_SCOPE {
                pc_tensor *a = pc_cast(pc_randn(PC_SHAPE(5, 7, 11), PC_F32, test_device()), half ? PC_BF16 : PC_F32);
                pc_tensor *leaf[2] = {pc_detach(a), pc_clone(a)}, *out[2];
                const pc_generator before = pc_generator_get();
                for (int copied = 0; copied < 2; copied++) {
                    assert_ok(pc_require_grad(leaf[copied], true));
                    pc_tensor *view = views[v](leaf[copied]);
                    pc_generator_set(before);
                    out[copied] = pc_fn_dropout(copied ? pc_contiguous(view) : view, 0.5);
                    assert_ok(pc_backward(pc_sum(pc_mul(out[copied], pc_detach(out[copied])))));
                }
                assert_close(pc_item(pc_sum(pc_ne(out[0], out[1]))), 0, 0);
                assert_close(pc_item(pc_sum(pc_ne(pc_grad(leaf[0]), pc_grad(leaf[1])))), 0, 0);
            }
    assert_no_leak();
}

/* The gradient passes where the element did, with the same scale; also of a transposed input. */
static void gradient(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_tensor *a = pc_ones(PC_SHAPE(30, 20), PC_F64, test_device());
        assert_ok(pc_require_grad(a, true));
        pc_tensor *out = pc_fn_dropout(pc_transpose(a, 0, 1), 0.25);
        assert_ok(pc_backward(pc_sum(out)));
        assert_close(pc_item(pc_sum(pc_ne(pc_transpose(pc_grad(a), 0, 1), out))), 0, 0);
        pc_tensor *b = pc_ones(PC_SHAPE(4), PC_F32, test_device());
        assert_ok(pc_require_grad(b, true));
        assert_ok(pc_backward(pc_sum(pc_fn_dropout(b, 1))));
        assert_close(pc_item(pc_sum(pc_grad(b))), 0, 0);
    }
    assert_no_leak();
}

static void bad_input(void **state)
{
    (void)state;
    PC_SCOPE {
        pc_tensor *a = pc_ones(PC_SHAPE(4), PC_F32, test_device());
        pc_generator before = pc_generator_get();
        assert_fails(pc_fn_dropout(a, -0.1), PC_ERR_ARGUMENT, "-0.1");
        assert_fails(pc_fn_dropout(a, 1.5), PC_ERR_ARGUMENT, "0 to 1");
        assert_fails(pc_fn_dropout(a, NAN), PC_ERR_ARGUMENT, "nan");
        assert_fails(pc_fn_dropout(pc_cast(a, PC_I32), 0.5), PC_ERR_DTYPE, "int32");
        assert_fails(pc_fn_dropout(NULL, 0.5), PC_ERR_ARGUMENT, "NULL");
        assert_int_equal(pc_generator_get().step, before.step);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_have_the_same_zeros),
        cmocka_unit_test(zero_or_scaled),
        cmocka_unit_test(ends_of_the_range),
        cmocka_unit_test(follows_the_generator),
        cmocka_unit_test(draws_of_the_cpu),
        cmocka_unit_test(drops_the_same),
        cmocka_unit_test(with_gaps),
        cmocka_unit_test(gradient),
        cmocka_unit_test(bad_input),
    };
    return run_with_golden("ops.dropout", NULL, 0, tests, GOLDEN_COUNT(tests));
}
