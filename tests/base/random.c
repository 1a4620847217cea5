/* Philox against the known answers of its authors' Random123 kat_vectors, and what is built on it. */
#include "base/base.h"
#include "support.h"

#include <math.h>

static void philox_known_answers(void **state)
{
    (void)state;
    uint32_t w[4];
    pc_philox(0, 0, 0, w);
    const uint32_t zero[4] = {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8};
    assert_memory_equal(w, zero, sizeof zero);
    pc_philox(UINT64_MAX, UINT64_MAX, UINT64_MAX, w);
    const uint32_t ones[4] = {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd};
    assert_memory_equal(w, ones, sizeof ones);
}

static void uniform_and_permutation(void **state)
{
    (void)state;
    double sum = 0;
    for (int i = 0; i < 10000; i++) {
        double u = pc_uniform(7, 1, (uint64_t)i);
        assert_true(u >= 0 && u < 1);
        sum += u;
    }
    assert_close(sum / 10000, 0.5, 0.02);
    int64_t order[100], seen[100] = {0};
    pc_permutation(3, 4, order, 100);
    for (int i = 0; i < 100; i++)
        seen[order[i]]++;
    for (int i = 0; i < 100; i++)
        assert_int_equal(seen[i], 1);
}

/* By the C library, whose last bits differ from ours: what is left of them in float32 is a rounding in a billion. */
static void normal_by_definition(void **state)
{
    (void)state;
    static const uint32_t edges[] = {0,          1,          0x1fffffff, 0x20000000, 0x3fffffff, 0x40000000,
                                     0x60000000, 0x7fffffff, 0x80000000, 0x9fffffff, 0xa0000000, 0xb504f333,
                                     0xc0000000, 0xe0000000, 0xfffffffe, 0xffffffff};
    float pair[2];
    double sum = 0, squares = 0;
    for (int i = 0; i < 100000; i++) {
        uint32_t w[4];
        pc_philox(11, 0, (uint64_t)i, w);
        if (i < 256)
            w[0] = edges[i / 16], w[1] = edges[i % 16];
        const double radius = sqrt(-2 * log(((double)w[0] + 1) * 0x1p-32)), turn = (double)w[1] * 0x1p-32;
        pc_normal_pair(w[0], w[1], pair);
        assert_close(pair[0], radius * cos(turn * 6.283185307179586), 4e-7 * radius);
        assert_close(pair[1], radius * sin(turn * 6.283185307179586), 4e-7 * radius);
        if (i >= 256)
            sum += (double)pair[0] + (double)pair[1], squares += (double)pair[0] * pair[0] + (double)pair[1] * pair[1];
    }
    assert_close(sum / 2e5, 0, 0.01);
    assert_close(squares / 2e5, 1, 0.015);
    pc_normal_pair(0, 0, pair); /* the farthest: sqrt(64 log 2) */
    assert_true(pair[0] == 6.66043688f && pair[1] == 0);
    pc_normal_pair(UINT32_MAX, 5, pair);
    assert_true(pair[0] == 0 && pair[1] == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(philox_known_answers),
        cmocka_unit_test(uniform_and_permutation),
        cmocka_unit_test(normal_by_definition),
    };
    return cmocka_run_group_tests_name("base.random", tests, NULL, NULL);
}
