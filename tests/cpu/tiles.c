/* Loops whose operands lie in memory in different orders, against index arithmetic: every order of three dimensions of
 * sizes around those of vectors and tiles, elements of 1, 2, 4 and 8 bytes, and a second operand that repeats. */
#include "cpu/host.h"

#include "base/base.h"

#include <paracord/ops.h>
#include <paracord/threads.h>
#include <stdlib.h>

enum { MOST = 200000 };

static const int orders[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
static const int64_t shapes[][3] = {{1, 7, 5}, {3, 65, 33}, {47, 2, 130}, {129, 3, 48}, {2, 300, 17}, {1, 257, 259},
                                    {0, 3, 5}, {4, 0, 3},   {5000, 3, 3}, {16, 16, 16}, {5, 300, 65}};
static int32_t values[MOST];
static double got[MOST];

static int64_t whole(double value)
{
    return (int64_t)value;
}

/* y[i] = x[i in another order] + second[i], the second of a shape with ones where it repeats. */
static void check(const int64_t *shape, const int *order, pc_dtype dtype, unsigned repeats)
{
    const int64_t steps[3] = {shape[1] * shape[2], shape[2], 1}, count = shape[0] * shape[1] * shape[2];
    int64_t sides[3], own[3], at = 0;
    for (int d = 0; d < 3; d++) {
        sides[d] = shape[order[d]];
        own[d] = repeats >> d & 1 ? 1 : sides[d];
    }
    PC_SCOPE {
        pc_tensor *x =
            pc_cast(pc_from_data(values, PC_SHAPE(shape[0], shape[1], shape[2]), PC_I32, test_device()), dtype);
        pc_tensor *turned = pc_permute(x, PC_SHAPE(order[0], order[1], order[2]));
        pc_tensor *second =
            pc_cast(pc_from_data(values, PC_SHAPE(own[0], own[1], own[2]), PC_I32, test_device()), dtype);
        pc_tensor *sum = pc_contiguous(pc_add(pc_expand(second, PC_SHAPE(sides[0], sides[1], sides[2])), turned));
        assert_ok(pc_read(pc_cast(sum, PC_F64), got, (size_t)count * sizeof *got));
        for (int64_t a = 0; a < sides[0]; a++)
            for (int64_t b = 0; b < sides[1]; b++)
                for (int64_t c = 0; c < sides[2]; c++) {
                    const int32_t left = values[a * steps[order[0]] + b * steps[order[1]] + c * steps[order[2]]];
                    const int64_t i = a % own[0], j = b % own[1], k = c % own[2];
                    assert_int_equal(whole(got[at++]), left + values[(i * own[1] + j) * own[2] + k]);
                }
        assert_int_equal(at, count);
    }
}

static void any_order_of_memory(void **state)
{
    static const pc_dtype dtypes[] = {PC_U8, PC_BF16, PC_F32, PC_I64};
    (void)state;
    for (int i = 0; i < MOST; i++)
        values[i] = rand() % 100;
    for (int s = 0; s < PC__COUNT(shapes); s++)
        for (int o = 0; o < 6; o++)
            for (int d = 0; d < PC__COUNT(dtypes); d++)
                for (unsigned repeats = 0; repeats < 8; repeats++)
                    check(shapes[s], orders[o], dtypes[d], repeats);
    assert_no_leak();
}

/* Small blocks of several dimensions, each in another order: copied to order `to` of memory, which is its own inverse. */
static void check_blocks(const int64_t *shape, const int *order, const int *to, pc_dtype dtype)
{
    int64_t sides[4], steps[4], count = 1;
    for (int d = 3; d >= 0; count *= shape[d--])
        steps[d] = count;
    for (int d = 0; d < 4; d++)
        sides[d] = shape[order[d]];
    PC_SCOPE {
        pc_tensor *x = pc_cast(pc_from_data(values, pc_shape_of(4, shape), PC_I32, test_device()), dtype);
        pc_tensor *turned = pc_permute(x, PC_SHAPE(order[0], order[1], order[2], order[3]));
        pc_tensor *y =
            pc_permute(pc_zeros(PC_SHAPE(sides[to[0]], sides[to[1]], sides[to[2]], sides[to[3]]), dtype, test_device()),
                       PC_SHAPE(to[0], to[1], to[2], to[3]));
        assert_ok(pc_copy(y, turned));
        assert_ok(pc_read(pc_cast(y, PC_F64), got, (size_t)count * sizeof *got));
        for (int64_t i = 0; i < count; i++) {
            const int64_t at[4] = {i / (sides[1] * sides[2] * sides[3]), i / (sides[2] * sides[3]) % sides[1],
                                   i / sides[3] % sides[2], i % sides[3]};
            int64_t from = 0;
            for (int d = 0; d < 4; d++)
                from += at[d] * steps[order[d]];
            assert_int_equal(whole(got[i]), values[from]);
        }
    }
}

static void blocks_of_dimensions(void **state)
{
    static const int64_t list[][4] = {{40, 2, 3, 5}, {300, 2, 3, 4}, {7, 2, 2, 2}, {3, 5, 2, 60}, {2, 700, 3, 2}};
    static const int to[][4] = {{0, 1, 2, 3}, {0, 3, 2, 1}, {0, 1, 3, 2}, {3, 1, 2, 0}};
    static const pc_dtype dtypes[] = {PC_U8, PC_BF16, PC_F32, PC_I64};
    (void)state;
    for (int s = 0; s < PC__COUNT(list); s++)
        for (int a = 0; a < 256; a++) {
            const int order[4] = {a & 3, a >> 2 & 3, a >> 4 & 3, a >> 6};
            if ((1 << order[0] | 1 << order[1] | 1 << order[2] | 1 << order[3]) == 15)
                for (int t = 0; t < PC__COUNT(to); t++)
                    check_blocks(list[s], order, to[t], dtypes[(s + a + t) % PC__COUNT(dtypes)]);
        }
    assert_no_leak();
}

/* Shapes large enough for several threads: the same bits for any number of them. */
static void threads_change_nothing(void **state)
{
    (void)state;
    enum { A = 300, B = 77, C = 65 };
    float *one = malloc(sizeof(float[A * B * C])), *more = malloc(sizeof(float[A * B * C]));
    assert_true(one && more);
    PC_SCOPE {
        pc_tensor *x = pc_randn(PC_SHAPE(A, B, C), PC_F32, test_device());
        pc_tensor *turned = pc_transpose(pc_randn(PC_SHAPE(C, B, A), PC_F32, test_device()), 0, 2);
        for (int threads = 1; threads <= 3; threads++) {
            pc_threads_set(threads);
            assert_ok(pc_read(pc_gelu(pc_add(x, turned)), threads == 1 ? one : more, sizeof(float[A * B * C])));
            if (threads > 1)
                assert_memory_equal(one, more, sizeof(float[A * B * C]));
        }
        pc_threads_set(0);
    }
    free(one);
    free(more);
    assert_no_leak();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(any_order_of_memory),
    cmocka_unit_test(blocks_of_dimensions),
    cmocka_unit_test(threads_change_nothing),
};

int main(void)
{
    return cmocka_run_group_tests_name("cpu.tiles", tests, NULL, NULL);
}
