/* Convolutions whose groups are so little work that the CPU's threads have one each. */
#include "ops/slopes.h"
#include "train/faults.h"

#include <paracord.h>
#include <paracord/random.h>
#include <paracord/threads.h>

/* Those of eight groups of eight channels, in the order [n][h][w][c]. */
static pc_tensor *drawn(pc_shape shape, pc_dtype dtype)
{
    return pc_permute(pc_cast(pc_randn(shape, PC_F32, PC_DEVICE_CPU), dtype), PC_SHAPE(0, 3, 1, 2));
}

static void have_the_same_bits(void **state)
{
    (void)state;
    static const pc_dtype dtypes[] = {PC_F32, PC_F16, PC_BF16, PC_F64};
    static const int counts[] = {1, 2, 5};
    for (int i = 0; i < 8; i++)
        PC_SCOPE {
            const int gap = 1 + i / 4, side = 20 - 2 * gap;
            const pc_fn_conv2d_options o = {.groups = 8, .dilation = {gap, gap}};
            slopes got[3];
            pc_seed(40 + i);
            pc_tensor *x = drawn(PC_SHAPE(2, 20, 20, 64), dtypes[i % 4]),
                      *dy = drawn(PC_SHAPE(2, side, side, 64), dtypes[i % 4]);
            pc_tensor *w = pc_cast(pc_randn(PC_SHAPE(64, 8, 3, 3), PC_F32, PC_DEVICE_CPU), dtypes[i % 4]);
            for (int k = 0; k < 3; k++) {
                pc_threads_set(counts[k]);
                got[k] = slopes_of(x, w, dy, o);
                assert_true(all_equal(got[k].y, got[0].y) && all_equal(got[k].dx, got[0].dx) &&
                            all_equal(got[k].dw, got[0].dw));
            }
        }
}

static bool both_ways(void *unused)
{
    (void)unused;
    bool fine = false;
    PC_SCOPE {
        pc_tensor *x = pc_full(PC_SHAPE(2, 64, 20, 20), 1, PC_BF16, PC_DEVICE_CPU);
        pc_tensor *w = pc_full(PC_SHAPE(64, 8, 3, 3), 1, PC_BF16, PC_DEVICE_CPU);
        fine = pc_require_grad(x, true) == PC_OK && pc_require_grad(w, true) == PC_OK &&
               pc_backward(pc_sum(pc_fn_conv2d(x, w, NULL, (pc_fn_conv2d_options){.groups = 8}))) == PC_OK;
    }
    return fine;
}

/* A thread that gets none tells the caller. */
static void out_of_memory(void **state)
{
    (void)state;
    pc_threads_set(3);
    fail_each("groups on threads", both_ways, NULL, false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(have_the_same_bits), cmocka_unit_test(out_of_memory)};
    return cmocka_run_group_tests_name("cpu.groups", tests, NULL, NULL);
}
