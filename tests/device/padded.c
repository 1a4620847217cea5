/* What is copied for a product of odd sizes: nothing where plans have left room behind rows, as for logits. No GPU. */
#ifdef PC_TEST_CUDA

#include "support.h"

#include "cuda/matmul/padded.h"

enum { TOKENS = 16384, CLASSES = 50257, PITCH = 50264, WIDTH = 768 };

static char memory[256] __attribute__((aligned(256)));

static const pc__cuda_gemm logits = {.dtype = PC__CUDA_BF16,
                                     .m = TOKENS,
                                     .n = CLASSES,
                                     .k = WIDTH,
                                     .batch = 1,
                                     .a = memory,
                                     .b = memory,
                                     .c = memory,
                                     .a_rs = WIDTH,
                                     .a_cs = 1,
                                     .b_rs = 1,
                                     .b_cs = WIDTH,
                                     .pitch = PITCH,
                                     .zeros = PC__CUDA_GEMM_ZEROS_B};
static const pc__cuda_gemm input = {.dtype = PC__CUDA_BF16,
                                    .m = TOKENS,
                                    .n = WIDTH,
                                    .k = CLASSES,
                                    .batch = 1,
                                    .a = memory,
                                    .b = memory,
                                    .c = memory,
                                    .a_rs = PITCH,
                                    .a_cs = 1,
                                    .b_rs = WIDTH,
                                    .b_cs = 1,
                                    .zeros = PC__CUDA_GEMM_ZEROS_A | PC__CUDA_GEMM_ZEROS_B};
static const pc__cuda_gemm weight = {.dtype = PC__CUDA_BF16,
                                     .wide = 1,
                                     .m = CLASSES,
                                     .n = WIDTH,
                                     .k = TOKENS,
                                     .batch = 1,
                                     .a = memory,
                                     .b = memory,
                                     .c = memory,
                                     .a_rs = 1,
                                     .a_cs = PITCH,
                                     .b_rs = WIDTH,
                                     .b_cs = 1,
                                     .zeros = PC__CUDA_GEMM_ZEROS_A};

static pc__cuda_padded planned(const pc__cuda_gemm *g, int64_t m, int64_t n, int64_t k)
{
    pc__cuda_padded plan;
    assert_true(pc__cuda_padded_plan(g, NULL, &plan));
    assert_int_equal(plan.inner.m, m);
    assert_int_equal(plan.inner.n, n);
    assert_int_equal(plan.inner.k, k);
    return plan;
}

static void nothing_of_logits(void **state)
{
    (void)state;
    const pc__cuda_padded forward = planned(&logits, TOKENS, PITCH, WIDTH),
                          back = planned(&input, TOKENS, WIDTH, PITCH),
                          weights = planned(&weight, 50256, WIDTH, TOKENS);
    assert_int_equal(forward.bytes + back.bytes + weights.bytes, 0);
    assert_int_equal(forward.inner.pitch, PITCH);
    assert_int_equal(forward.rest.m + back.rest.m, 0);
    assert_int_equal(weights.rest.m, 1);
    assert_true((uintptr_t)weights.rest.a - (uintptr_t)memory == 50256 * 2);
    assert_true((uintptr_t)weights.rest.c - (uintptr_t)memory == (size_t)50256 * WIDTH * 4);
}

/* Behind which there is somebody else's memory; and a bias. */
static void a_weight_without_room(void **state)
{
    (void)state;
    pc__cuda_gemm g = logits;
    g.zeros = 0, g.bias = memory;
    pc__cuda_padded plan = planned(&g, TOKENS, PITCH, WIDTH);
    assert_int_equal(plan.count, 2);
    assert_int_equal(plan.cut_size, 0);
    assert_ptr_equal(plan.inner.c, memory);
    g = input, g.zeros = PC__CUDA_GEMM_ZEROS_A;
    plan = planned(&g, TOKENS, WIDTH, PITCH);
    assert_int_equal(plan.count, 1);
    assert_ptr_equal(plan.inner.a, memory);
}

static void all_of_dense_logits(void **state)
{
    (void)state;
    pc__cuda_gemm g = logits;
    g.zeros = 0, g.pitch = 0;
    pc__cuda_padded plan = planned(&g, TOKENS, PITCH, WIDTH);
    assert_int_equal(plan.count, 1);
    assert_int_equal(plan.cut_size, 2);
    g = input, g.zeros = 0, g.a_rs = CLASSES;
    assert_int_equal(planned(&g, TOKENS, WIDTH, PITCH).count, 2);
    g = weight, g.zeros = 0, g.a_cs = CLASSES;
    plan = planned(&g, PITCH, WIDTH, TOKENS);
    assert_int_equal(plan.cut_size, 4);
    assert_int_equal(plan.rest.m, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(nothing_of_logits), cmocka_unit_test(a_weight_without_room),
                                       cmocka_unit_test(all_of_dense_logits)};
    return cmocka_run_group_tests_name("device.padded", tests, NULL, NULL);
}

#else
#include "no_plug_in.h"
#endif
