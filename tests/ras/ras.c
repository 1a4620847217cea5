/* What a job of NCCL says of its ranks: read from the words of several versions, and asked of servers that answer, and of
 * those that do not as they should. */
#include <paracord-tools/ras.h>
#include <paracord/memory.h>

#include <stdlib.h>
#include <strings.h>
#include <time.h>

#include "failing.h"
#include "server.h"

static double seconds_since(const struct timespec *start)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)(t.tv_sec - start->tv_sec) + 1e-9 * (double)(t.tv_nsec - start->tv_nsec);
}

static void a_job_that_runs(void **state)
{
    (void)state;
    pc_ras *r = pc_ras_read(ras_fine);
    assert_not_null_ok(r);
    assert_string_equal(r->version, "2.28.7");
    assert_int_equal(r->nodes, 4);
    assert_int_equal(r->processes, 32);
    assert_int_equal(r->gpus, 32);
    assert_true(r->complete);
    assert_int_equal(r->group_count, 1);
    assert_int_equal(r->groups[0].communicators, 8);
    assert_int_equal(r->groups[0].ranks, 4);
    assert_string_equal(r->groups[0].status, "RUNNING");
    assert_string_equal(r->groups[0].errors, "OK");
    assert_int_equal(r->rank_count + r->count_count, 0);
    pc_ras_free(r);
}

static void ranks_that_are_behind(void **state)
{
    (void)state;
    pc_ras *r = pc_ras_read(RAS_BEHIND("6649", "6650"));
    assert_not_null_ok(r);
    assert_int_equal(r->rank_count, 2);
    assert_int_equal(r->count_count, 2);
    const pc_ras_rank *k = &r->ranks[1];
    assert_int_equal(k->state, PC_RAS_BEHIND);
    assert_int_equal(k->rank, 7);
    assert_int_equal(k->process, 483079);
    assert_int_equal(k->calls, 6649);
    assert_int_equal(k->most, 6650);
    assert_string_equal(k->host, "172.16.64.210");
    assert_string_equal(k->gpu, "7");
    assert_string_equal(k->operation, "AllReduce");
    assert_string_equal(k->communicator, "#0-0 (27a079b828ff1a75)");
    pc_ras_free(r);
}

/* 2.24 counts all collectives together; a single rank is named in one line; a name of a GPU has words. */
static void other_words(void **state)
{
    (void)state;
    pc_ras *r = pc_ras_read(
        "Warnings\n========\n\n#0-0 (9e17) MISMATCH\n  Communicator ranks have different collective operation counts\n"
        "  3 ranks have launched up to operation 10\n"
        "  Rank 2 has launched up to operation 11 -- GPU 2 (NVML 6) managed by process 12 on node a\r\n"
        "  Communicator ranks have different status\n  3 ranks have status RUNNING\n"
        "  Rank 1 has status FINALIZE -- GPU 1 managed by process 11 on node a\n"
        "  Communicator ranks have different Broadcast operation counts\n  3 ranks have launched up to operation 2\n"
        "  Rank 0 has not launched any operations -- [process information not found]\n"
        "#0-1 (9e18) ERROR\n  Initialization error on 1 rank\n"
        "  Rank 3 reported unhandled cuda error -- GPU 3 managed by process 13 on node b\n"
        "  A line of another version\n");
    assert_not_null_ok(r);
    assert_int_equal(r->rank_count, 4);
    assert_int_equal(r->ranks[0].state, PC_RAS_AHEAD);
    assert_string_equal(r->ranks[0].gpu, "2 (NVML 6)");
    assert_string_equal(r->ranks[0].operation, "");
    assert_string_equal(r->ranks[0].host, "a");
    assert_int_equal(r->ranks[1].state, PC_RAS_DIFFERS);
    assert_string_equal(r->ranks[1].words, "FINALIZE");
    assert_int_equal(r->ranks[2].state, PC_RAS_BEHIND);
    assert_int_equal(r->ranks[2].calls, 0);
    assert_int_equal(r->ranks[2].most, 2);
    assert_int_equal(r->ranks[2].process, -1);
    assert_int_equal(r->ranks[3].state, PC_RAS_FAILED);
    assert_string_equal(r->ranks[3].words, "unhandled cuda error");
    assert_string_equal(r->ranks[3].communicator, "#0-1 (9e18)");
    pc_ras_free(r);
}

static void ranks_that_are_missing_or_dead(void **state)
{
    (void)state;
    pc_ras *r = pc_ras_read(ras_missing);
    assert_not_null_ok(r);
    assert_int_equal(r->timeouts, 2);
    assert_int_equal(r->rank_count, 2);
    assert_int_equal(r->ranks[0].state, PC_RAS_MISSING);
    assert_int_equal(r->ranks[0].rank, -1);
    assert_int_equal(r->ranks[0].process, 3487984);
    assert_string_equal(r->ranks[0].host, "172.16.64.213");
    assert_string_equal(r->ranks[0].gpu, "5");
    assert_int_equal(r->ranks[1].rank, 21);
    pc_ras_free(r);
    r = pc_ras_read(
        "Errors\n======\n\nDEAD\n  2 job processes are considered dead\n"
        "  Process 7 on node a managing GPUs 4,5\n\n#0-0 (c) INCOMPLETE\n  Missing communicator data from 4 ranks\n"
        "  The missing ranks: 3, 5-7\n");
    assert_not_null_ok(r);
    assert_int_equal(r->rank_count, 5);
    assert_int_equal(r->ranks[0].state, PC_RAS_DEAD);
    assert_string_equal(r->ranks[0].gpu, "4,5");
    assert_int_equal(r->ranks[4].rank, 7);
    assert_false(r->complete);
    pc_ras_free(r);
}

static void two_answers_tell_whether_it_moves(void **state)
{
    (void)state;
    pc_ras *a = pc_ras_read(RAS_BEHIND("6649", "6650")), *b = pc_ras_read(RAS_BEHIND("6649", "6650"));
    pc_ras *later = pc_ras_read(RAS_BEHIND("6650", "6651")), *fine = pc_ras_read(ras_fine);
    assert_false(pc_ras_moved(a, b));
    assert_true(pc_ras_moved(a, later));
    assert_true(pc_ras_moved(a, fine));
    assert_false(pc_ras_moved(fine, fine));
    pc_ras_free(a);
    pc_ras_free(b);
    pc_ras_free(later);
    pc_ras_free(fine);
}

/* Whatever is cut off or exchanged, nothing is written where it does not belong. */
static void any_bytes_are_read(void **state)
{
    (void)state;
    const char *whole = ras_missing;
    char text[sizeof ras_missing];
    uint32_t seed = 1;
    for (int turn = 0; turn < 2000; turn++) {
        memcpy(text, whole, sizeof text);
        for (int i = 0; i < turn % 9; i++) {
            seed = seed * 1664525u + 1013904223u;
            text[seed % (sizeof text - 1)] = (char)(seed >> 24);
        }
        text[(seed >> 3) % sizeof text] = 0;
        pc_ras *r = pc_ras_read(text);
        assert_not_null_ok(r);
        pc_ras_free(r);
    }
    assert_int_equal(pc_allocator_live(), 0);
}

/* Each allocation fails once: an error, and nothing stays behind. */
static void memory_runs_out(void **state)
{
    (void)state;
    assert_int_equal(pc_allocator_live(), 0);
    assert_int_equal(pc_allocator_set(&failing), PC_OK);
    bool reached = true;
    for (int i = 0; reached; i++) {
        countdown = i;
        pc_ras *r = pc_ras_read(ras_missing);
        reached = countdown < 0;
        countdown = -1;
        assert_int_equal(r == NULL, reached);
        if (reached)
            assert_int_equal(pc_error_last()->status, PC_ERR_MEMORY);
        else
            assert_true(i >= 4);
        pc_error_clear();
        pc_ras_free(r);
        assert_int_equal(pc_allocator_live(), 0);
    }
    assert_int_equal(pc_allocator_set(NULL), PC_OK);
}

static void servers_that_speak(void **state)
{
    (void)state;
    const char *const answers[] = {ras_missing, NULL};
    server s;
    for (int old = 0; old < 2; old++) {
        server_start(&s, old ? OLD : SPEAKS, answers);
        pc_ras *r = pc_ras(.address = s.address);
        assert_not_null_ok(r);
        assert_string_equal(r->address, s.address);
        assert_int_equal(r->rank_count, 2);
        assert_true(r->complete);
        pc_ras_free(r);
        assert_int_equal(setenv("NCCL_RAS_ADDR", s.address, 1), 0);
        r = pc_ras(.timeout = 1);
        assert_not_null_ok(r);
        pc_ras_free(r);
        unsetenv("NCCL_RAS_ADDR");
        server_end(&s);
    }
}

static void servers_that_do_not(void **state)
{
    (void)state;
    static const struct {
        server_kind kind;
        pc_status status;
        const char *words;
    } cases[] = {
        {GARBAGE, PC_ERR_STATE, "is no job of NCCL's"},
        {SILENT, PC_ERR_TIMEOUT, "took the connection and says nothing"},
        {SILENT_LATER, PC_ERR_TIMEOUT, "did not tell its status within 5 s"},
        {CLOSES, PC_ERR_STATE, "closed the connection"},
        {CLOSES_LATER, PC_ERR_STATE, "ended the connection without its status"},
        {GARBAGE_LATER, PC_OK, ""},
        {HALF, PC_OK, ""},
        {HALF_THEN_SILENT, PC_OK, ""},
    };
    const char *const answers[] = {ras_missing, NULL};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        server s;
        struct timespec start;
        server_start(&s, cases[i].kind, answers);
        clock_gettime(CLOCK_MONOTONIC, &start);
        pc_ras *r = pc_ras(.address = s.address, .timeout = 1);
        if (seconds_since(&start) > 9)
            fail_msg("case %d: %.1f s", (int)i, seconds_since(&start));
        if (cases[i].status == PC_OK) {
            assert_not_null_ok(r);
            assert_false(r->complete);
            pc_ras_free(r);
        } else {
            assert_null(r);
            assert_int_equal(pc_error_last()->status, cases[i].status);
            if (!strstr(pc_error_last()->message, cases[i].words))
                fail_msg("want \"%s\" in \"%s\"", cases[i].words, pc_error_last()->message);
            pc_error_clear();
        }
        server_end(&s);
    }
}

static void assert_refused(const char *address, pc_status status, const char *words)
{
    assert_null(pc_ras(.address = address));
    if (pc_error_last()->status != status || !strstr(pc_error_last()->message, words))
        fail_msg("%s: want \"%s\" in \"%s\"", address, words, pc_error_last()->message);
    pc_error_clear();
}

static void nobody_and_no_address(void **state)
{
    (void)state;
    assert_refused("127.0.0.1:1", PC_ERR_NOT_FOUND,
                   "nobody listens on 127.0.0.1:1: the job is over, or has another NCCL_RAS_ADDR");
    assert_refused("[::1]:1", PC_ERR_NOT_FOUND, "[::1]:1");
    assert_refused("no-such-host.invalid:5", PC_ERR_NOT_FOUND, "there is no host \"no-such-host.invalid\"");
    assert_refused("host:", PC_ERR_ARGUMENT, "write HOST:PORT");
    assert_refused("host:70000", PC_ERR_ARGUMENT, "write HOST:PORT");
    assert_refused("host:1x", PC_ERR_ARGUMENT, "write HOST:PORT");
    assert_refused("[::1", PC_ERR_ARGUMENT, "write HOST:PORT");
    assert_refused("[::1]x", PC_ERR_ARGUMENT, "write HOST:PORT");
}

/* Of a large job the list of ranks is one long line. */
static void long_lines_are_read_whole(void **state)
{
    (void)state;
    enum { RANKS = 400 };
    static char text[RANKS * 8 + 256];
    size_t n = (size_t)snprintf(text, sizeof text,
                                "Errors\n======\n\n#0-0 (c) INCOMPLETE\n  Missing communicator data "
                                "from %d ranks\n  The missing ranks: ",
                                RANKS);
    for (int i = 0; i < RANKS; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, "%s%d", i ? ", " : "", 1000 + 2 * i);
    snprintf(text + n, sizeof text - n, "\n");
    pc_ras *r = pc_ras_read(text);
    assert_not_null_ok(r);
    assert_int_equal(r->rank_count, RANKS);
    assert_int_equal(r->ranks[RANKS - 1].rank, 1000 + 2 * (RANKS - 1));
    pc_ras_free(r);
    assert_int_equal(pc_allocator_live(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_job_that_runs),
        cmocka_unit_test(ranks_that_are_behind),
        cmocka_unit_test(other_words),
        cmocka_unit_test(ranks_that_are_missing_or_dead),
        cmocka_unit_test(long_lines_are_read_whole),
        cmocka_unit_test(two_answers_tell_whether_it_moves),
        cmocka_unit_test(any_bytes_are_read),
        cmocka_unit_test(memory_runs_out),
        cmocka_unit_test(servers_that_speak),
        cmocka_unit_test(servers_that_do_not),
        cmocka_unit_test(nobody_and_no_address),
    };
    return cmocka_run_group_tests_name("ras.ras", tests, NULL, NULL);
}
