/* seen.c: the timeline of ranks that are threads names the one that comes late. */
#include "dist/threads.h"

#include <math.h>
#include <paracord-tools/timeline.h>
#include <paracord/trace.h>
#include <unistd.h>

static void steps(rank_work *r)
{
    PC_SCOPE {
        pc_tensor *t = pc_ones(PC_SHAPE(100), PC_F32, r->device), *x = pc_ones(PC_SHAPE(64, 64), PC_F32, r->device);
        for (int i = 0; i < 12; i++) {
            PC_SCOPE {
                if (r->rank == 1) {
                    RANK_OK(pc_device_synchronize(r->device));
                    usleep(40000);
                }
                RANK_OK(pc_group_all_reduce(r->group, t, PC_GROUP_MEAN));
                RANK_TRUE(pc_matmul(x, x) != NULL);
            }
        }
        RANK_OK(pc_device_synchronize(r->device));
    }
}

static void the_straggler_is_named(void **state)
{
    (void)state;
    char path[64];
    if (ranks_most() < 3)
        skip();
    snprintf(path, sizeof path, "/tmp/paracord-seen-%d.json", (int)getpid());
    assert_ok(pc_trace_start(path));
    ranks_work(3, steps, NULL);
    assert_ok(pc_trace_stop());
    pc_timeline_summary s;
    pc_timeline *t = pc_timeline_open(path);
    assert_not_null_ok(t);
    assert_ok(pc_timeline_summarise(t, &s));
    assert_int_equal(s.rank_count, 3);
    assert_int_equal(s.collective_count, 12);
    assert_int_equal(s.unmatched, 0);
    assert_string_equal(s.collectives[0].name, "all_reduce");
    assert_int_equal(s.collectives[0].bytes, 400);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(s.ranks[i].rank, i);
        assert_int_equal(s.ranks[i].calls, 12);
        assert_true(isnan(s.ranks[i].overlapped) == (test_device().type == PC_CPU));
        assert_true(s.ranks[i].waited <= s.ranks[i].in_calls + 1);
    }
    if (test_device().type != PC_CUDA && !strstr(s.rank_words, "rank 1 is the straggler: it came last to "))
        fail_msg("%s", s.rank_words);
    assert_true(s.ranks[1].caused > s.ranks[0].caused && s.ranks[1].caused > s.ranks[2].caused);
    pc_timeline_summary_free(&s);
    pc_timeline_free(t);
    assert_int_equal(unlink(path), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_straggler_is_named)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
