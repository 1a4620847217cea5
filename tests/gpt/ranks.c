/* A GPT trained by several ranks: by pc_ddp and all stages of ZeRO, batches in parts, going on at another number of ranks and
 * another stage: the losses of one device that was never stopped. */
#include "dist/threads.h"

#include "ranks.h"

static void all_learn_the_same(void **state)
{
    (void)state;
    const job want = undisturbed();
    job parts = {.accumulate = 3};
    drop_run();
    assert_ok(train(&parts, NULL, 0, test_device()));
    assert_learnt(&parts, &want);
    const int n = ranks_most() < 3 ? ranks_most() : 3;
    for (int zero = 0; zero <= 3; zero++) {
        job j = {.zero = zero, .accumulate = zero == 1 || zero == 3 ? 2 : 1};
        drop_run();
        ranks_work(n, work, &j);
        assert_learnt(&j, &want);
    }
}

/* Moments, and weights of stage 3, in host memory: by ranks, and by one that has no group. */
static void host_memory_does(void **state)
{
    (void)state;
    const job want = undisturbed();
    const int n = ranks_most() < 2 ? ranks_most() : 2;
    for (int zero = 1; zero <= 3; zero++)
        for (int alone = for_races() ? zero % 2 : 0; alone <= 1; alone += for_races() ? 2 : 1) {
            job j = {.zero = zero, .accumulate = zero == 3 ? 2 : 1, .offload = true};
            drop_run();
            if (alone)
                assert_ok(train(&j, NULL, 0, test_device()));
            else
                ranks_work(n, work, &j);
            assert_learnt(&j, &want);
        }
    job j = {.offload = true};
    assert_fails(train(&j, NULL, 0, test_device()), PC_ERR_ARGUMENT, "take zero 1, 2 or 3");
}

/* The checkpoint is anybody's. */
static void another_number_goes_on(void **state)
{
    (void)state;
    const job want = undisturbed();
    const int most = ranks_most() < 3 ? ranks_most() : 3;
    const struct {
        int ranks, zero;
        bool offload;
    } turns[][2] = {{{most, 3, false}, {1, 0, false}}, {{1, 0, false}, {most, 2, false}},
                    {{2, 1, false}, {most, 3, false}}, {{most, 2, false}, {2, 0, false}},
                    {{2, 3, true}, {2, 3, false}},     {{2, 3, false}, {most, 3, true}},
                    {{most, 1, true}, {1, 0, false}},  {{1, 0, false}, {1, 2, true}}};
    for (int i = 0; i < 8; i += for_races() ? 3 : 1) {
        drop_run();
        for (int k = 0; k < 2; k++) {
            job j = {
                .zero = turns[i][k].zero, .offload = turns[i][k].offload, .resume = true, .stop_at = k ? 0 : STEPS / 2};
            const int n = turns[i][k].ranks < most ? turns[i][k].ranks : most;
            ranks_work(n, work, &j);
            if (k)
                assert_learnt(&j, &want);
            else
                assert_true(j.interrupted && j.steps < STEPS);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_learn_the_same),
        cmocka_unit_test(host_memory_does),
        cmocka_unit_test(another_number_goes_on),
    };
    return cmocka_run_group_tests(tests, make_folder, drop_folder);
}
