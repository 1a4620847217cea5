/* Philox against the known answers of its authors' Random123 kat_vectors, and what is built on it. */
#include "base/base.h"
#include "support.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(philox_known_answers),
        cmocka_unit_test(uniform_and_permutation),
    };
    return cmocka_run_group_tests_name("base.random", tests, NULL, NULL);
}
