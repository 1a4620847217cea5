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

/* What there is memory for is another batch, and yet the one of the checkpoint is taken: the same is learnt. */
static void a_chosen_batch_goes_on(void **state)
{
    (void)state;
    const job want = undisturbed();
    const int n = ranks_most() < 2 ? ranks_most() : 2;
    for (int i = 0; i < 2; i++) {
        job part = {.stop_at = STEPS / 2}, rest = {.batch = -1, .resume = true};
        drop_run();
        ranks_work(i ? n : 1, work, &part);
        assert_true(part.interrupted);
        ranks_work(i ? 1 : n, work, &rest);
        assert_learnt(&rest, &want);
    }
}

static void move_run(const char *from, const char *to)
{
    char one[LONGEST], other[LONGEST];
    assert_int_equal(rename(in_folder(one, from), in_folder(other, to)), 0);
}

/* As on hosts that share no disk: of the same step, but learnt otherwise; then of another step. */
static void ranks_of_other_checkpoints(void **state)
{
    (void)state;
    if (ranks_are_processes() || ranks_most() < 2)
        skip();
    drop_run();
    job j = {.stop_at = STEPS / 2, .accumulate = 3};
    assert_ok(train(&j, NULL, 0, test_device()));
    move_run("run", "run-1");
    for (int i = 0; i < 2; i++) {
        rank_work ranks[RANKS_MAX];
        char said[64];
        job k = {.stop_at = i ? 0 : STEPS / 2};
        drop_run();
        assert_ok(train(&k, NULL, 0, test_device()));
        snprintf(said, sizeof said, "/run of step %d, and rank 1 from another one, of step %d", (int)k.steps,
                 (int)j.steps);
        k = (job){.resume = true, .apart = true};
        ranks_run(2, ranks, work, &k);
        for (int r = 0; r < 2; r++)
            if (ranks[r].error.status != PC_ERR_STATE || !strstr(ranks[r].error.message, r ? "rank 1 from" : said))
                fail_msg("rank %d of other checkpoints: \"%s\"", r, ranks[r].error.message);
    }
    drop_run();
    char path[LONGEST];
    assert_int_equal(rmdir(in_folder(path, "run")), 0);
    move_run("run-1", "run");
    drop_run();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_learn_the_same),         cmocka_unit_test(host_memory_does),
        cmocka_unit_test(another_number_goes_on),     cmocka_unit_test(a_chosen_batch_goes_on),
        cmocka_unit_test(ranks_of_other_checkpoints),
    };
    return cmocka_run_group_tests(tests, make_folder, drop_folder);
}
