/* Sums over batches, added up where the results are: the host's bits. */
#include "device.h"

#include "ops/score.h"
#include "train/score.h"

#include <paracord/ops.h>

static void add_batches(pc_dtype dtype, int64_t width)
{
    const pc_device device = test_device();
    const int64_t sizes[] = {1, 7, 32, 255, 256, 300};
    const bool binary = width == 1;
    pc_tensor *sums = pc_zeros(PC_SHAPE(3), PC_F64, device);
    pc__score want = {0};
    for (int i = 0; i < 6; i++) {
        enum { MOST = 300 * 5 };
        float logits[MOST], floats[300], loss = 0.1f + (float)i / 3;
        int64_t n = sizes[i], numbers[300];
        for (int64_t k = 0; k < n * width; k++)
            logits[k] = (float)((int)(pc_uniform(3, (uint64_t)i, (uint64_t)k) * 7) - 3); /* equals, and 0 */
        for (int64_t k = 0; k < n; k++) {
            numbers[k] = (int64_t)(pc_uniform(4, (uint64_t)i, (uint64_t)k) * (binary ? 2 : (double)width));
            floats[k] = (float)numbers[k];
            numbers[k] = !binary && k % 7 == 6 ? -100 : numbers[k];
        }
        pc_tensor *y = binary ? pc_from_data(floats, PC_SHAPE(n, 1), PC_F32, device)
                              : pc_from_data(numbers, PC_SHAPE(n), PC_I64, device);
        pc_tensor *x = pc_cast(pc_from_data(logits, PC_SHAPE(n, width), PC_F32, device), dtype);
        assert_ok(pc__score_step(sums, x, y, pc_full(PC_SHAPE(), loss, PC_F32, device)));
        pc__score_add(&want, logits, width, binary ? (void *)floats : numbers, binary, n, (double)loss);
    }
    double got[3];
    assert_ok(pc_read(sums, got, sizeof got));
    assert_true(got[0] == want.loss);
    assert_true(got[1] == (double)want.correct && want.correct > 0 && want.correct < want.seen);
    assert_true(got[2] == (double)want.ignored && (want.ignored > 0) == !binary);
}

static void sums_are_the_hosts(void **state)
{
    (void)state;
    const pc_dtype dtypes[] = {PC_F32, PC_F16, PC_BF16};
    const int64_t widths[] = {1, 2, 5};
    for (int d = 0; d < 3; d++)
        for (int w = 0; w < 3; w++)
            PC_SCOPE {
                add_batches(dtypes[d], widths[w]);
            }
    assert_no_leak();
}

static void other_shapes_are_refused(void **state)
{
    (void)state;
    const pc_device device = test_device();
    PC_SCOPE {
        pc_tensor *sums = pc_zeros(PC_SHAPE(3), PC_F64, device), *logits = pc_zeros(PC_SHAPE(4, 3), PC_F32, device),
                  *y = pc_zeros(PC_SHAPE(4), PC_I64, device), *loss = pc_zeros(PC_SHAPE(), PC_F32, device);
        assert_ok(pc__score_step(sums, logits, y, loss));
        assert_fails(pc__score_step(sums, logits, sums, loss) == PC_OK, PC_ERR_DTYPE, "labels float64");
        assert_fails(pc__score_step(sums, logits, pc_zeros(PC_SHAPE(3), PC_I64, device), loss) == PC_OK, PC_ERR_SHAPE,
                     "n labels");
        assert_fails(pc__score_step(sums, loss, y, loss) == PC_OK, PC_ERR_SHAPE, "[n, width]");
        assert_fails(pc__score_step(sums, NULL, y, loss) == PC_OK, PC_ERR_ARGUMENT, "NULL");
    }
    assert_no_leak();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_are_the_hosts),
        cmocka_unit_test(other_shapes_are_refused),
    };
    return cmocka_run_group_tests_name("ops.score", tests, NULL, NULL);
}
