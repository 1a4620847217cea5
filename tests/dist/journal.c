/* journal.c: the last calls of ranks that are threads, in memory and as the file that is written when one does not come. */
#include "dist/threads.h"

#include "dist/dump.h"
#include "dist/journal.h"
#include "ops/table.h"

#include <paracord-tools/calls.h>
#include <paracord-tools/timeline.h>
#include <paracord/trace.h>
#include <unistd.h>

static pc__journal_entry entries[PC__JOURNAL_CALLS];

/* The newest ones of the group whose calls came last, by one rank. */
static int of_rank(int rank, const pc__journal_entry **list, int most)
{
    const int all = pc__journal_read(entries, PC__JOURNAL_CALLS);
    int n = 0;
    for (int i = all - 1; i >= 0 && n < most; i--)
        if (entries[i].rank == rank && !strcmp(entries[i].group, entries[all - 1].group))
            list[n++] = &entries[i];
    return n;
}

static void some_calls(rank_work *r)
{
    PC_SCOPE {
        pc_tensor *t = pc_ones(PC_SHAPE(6), PC_F64, r->device),
                  *all = pc_zeros(PC_SHAPE(r->size * 6), PC_F64, r->device);
        RANK_OK(pc_group_all_reduce(r->group, t, PC_GROUP_MAX));
        RANK_OK(pc_group_broadcast(r->group, t, 1));
        if (r->rank == 0)
            RANK_OK(pc_group_send(r->group, t, 1));
        if (r->rank == 1)
            RANK_OK(pc_group_receive(r->group, t, 0));
        RANK_OK(pc_group_all_gather(r->group, all, t));
        RANK_OK(pc_device_synchronize(r->device));
    }
}

static void calls_are_kept(void **state)
{
    (void)state;
    if (ranks_most() < 3)
        skip();
    ranks_work(3, some_calls, NULL);
    for (int rank = 0; rank < 3; rank++) {
        const pc__journal_entry *e[8] = {NULL};
        const int n = of_rank(rank, e, 8), pairs = rank < 2;
        assert_int_equal(n, 3 + pairs);
        assert_string_equal(pc__journal_op(e[0]), "all_gather");
        assert_int_equal(e[0]->number, 3);
        assert_int_equal(e[0]->count, 6);
        assert_int_equal(e[0]->dtype, PC_F64);
        assert_int_equal(e[0]->peer, -1);
        assert_int_equal(e[0]->reduction, -1);
        assert_int_equal(e[0]->size, 3);
        assert_int_equal(e[0]->member, rank);
        const pc__journal_entry *broadcast = e[1 + pairs], *reduce = e[2 + pairs];
        assert_string_equal(pc__journal_op(broadcast), "broadcast");
        assert_int_equal(broadcast->peer, 1);
        assert_int_equal(broadcast->number, 2);
        assert_string_equal(pc__journal_op(reduce), "all_reduce");
        assert_int_equal(reduce->reduction, PC_GROUP_MAX);
        if (pairs) {
            assert_string_equal(pc__journal_op(e[1]), rank ? "receive" : "send");
            assert_int_equal(e[1]->peer, 1 - rank);
            assert_int_equal(e[1]->number, 2);
        }
        for (int i = 0; i < n && test_device().type != PC_CUDA; i++) {
            assert_int_equal(e[i]->state, PC__CALL_DONE);
            assert_true(e[i]->entered > 0 && e[i]->finished >= e[i]->entered);
            assert_true(test_device().type == PC_CPU ? e[i]->queued == 0 : e[i]->queued <= e[i]->entered);
        }
    }
}

static void many_calls(rank_work *r)
{
    PC_SCOPE {
        pc_tensor *t = pc_ones(PC_SHAPE(2), PC_F32, r->device);
        for (int i = 0; i < 700; i++) {
            RANK_OK(pc_group_all_reduce(r->group, t, PC_GROUP_MEAN));
            if (i % 100 == 0) /* what is queued for longer than a thousand others is noted when it begins */
                RANK_OK(pc_device_synchronize(r->device));
        }
        RANK_OK(pc_device_synchronize(r->device));
    }
}

static void the_last_thousand(void **state)
{
    (void)state;
    if (ranks_most() < 2)
        skip();
    ranks_work(2, many_calls, NULL);
    const pc__journal_entry *e[1] = {NULL};
    assert_int_equal(pc__journal_read(entries, PC__JOURNAL_CALLS), PC__JOURNAL_CALLS);
    assert_int_equal(of_rank(1, e, 1), 1);
    assert_int_equal(e[0]->number, 700);
    assert_int_equal(pc__journal_read(entries, 3), 3);
}

static void recorded(rank_work *r)
{
    PC_SCOPE {
        pc_tensor *t = pc_ones(PC_SHAPE(2), PC_F32, r->device);
        RANK_OK(pc_group_all_reduce(r->group, t, PC_GROUP_MEAN));
        pc_stream *stream = pc_group_stream(r->group, r->device);
        RANK_OK(pc_graph_begin(stream));
        RANK_OK(pc_group_all_reduce(r->group, t, PC_GROUP_MEAN));
        pc_graph *graph = pc_graph_end(stream);
        RANK_TRUE(graph != NULL);
        for (int i = 0; i < 3; i++)
            RANK_OK(pc_graph_launch(graph, stream));
        RANK_OK(pc_group_broadcast(r->group, t, 0));
        RANK_OK(pc_device_synchronize(r->device));
        pc_graph_free(graph);
    }
}

static void launches_are_calls(void **state)
{
    (void)state;
    if (ranks_most() < 2 || test_device().type == PC_CPU)
        skip();
    ranks_work(2, recorded, NULL);
    const pc__journal_entry *e[8] = {NULL};
    int64_t highest = 0, notes = 0;
    const int n = of_rank(0, e, 8);
    for (int i = 0; i < n; i++) {
        highest = e[i]->number > (uint64_t)highest ? (int64_t)e[i]->number : highest;
        notes += e[i]->state == PC__CALL_RECORDED;
    }
    assert_int_equal(notes, test_device().type == PC_CUDA ? 2 : 1);
    assert_int_equal(highest, 5); /* one call, three launches, one call */
}

static void too_few(rank_work *r)
{
    RANK_OK(pc_group_set_timeout(r->group, 0.5));
    PC_SCOPE {
        pc_tensor *t = pc_ones(PC_SHAPE(4), PC_F32, r->device);
        for (int i = 0; i < 3; i++)
            RANK_OK(pc_group_all_reduce(r->group, t, PC_GROUP_SUM));
        if (r->rank != 1)
            RANK_OK(pc_group_reduce(r->group, t, PC_GROUP_SUM, 2));
    }
}

static void a_missing_rank_is_named(void **state)
{
    (void)state;
    char folder[] = "/tmp/paracord-journal-XXXXXX", file[64];
    rank_work ranks[RANKS_MAX];
    if (ranks_most() < 3 || test_device().type == PC_CUDA)
        skip();
    assert_non_null(mkdtemp(folder));
    setenv("PARACORD_DIST_DUMP", folder, 1);
    ranks_run(3, ranks, too_few, NULL);
    unsetenv("PARACORD_DIST_DUMP");
    pc_calls *calls = pc_calls_open(folder);
    pc_calls_summary s;
    assert_not_null_ok(calls);
    assert_ok(pc_calls_summarise(calls, &s));
    assert_int_equal(s.size, 3);
    assert_int_equal(s.there, 3);
    assert_true(strstr(s.why, "has waited 0.5 s for rank 1"));
    bool told = false;
    for (int i = 0; i < s.finding_count; i++)
        told = told ||
               (s.findings[i].number == 4 && strstr(s.findings[i].words, "rank 1 never came to call 4 of threads") &&
                strstr(s.findings[i].words, "reduce of 16 bytes (4 float32, sum, root 2), in which ranks 0, 2 have") &&
                strstr(s.findings[i].words, "it is in no call; its last one was 3 of threads"));
    assert_true(told);
    assert_string_equal(s.ranks[0].state, "running");
    assert_string_equal(s.ranks[1].state, "done");
    pc_calls_summary_free(&s);
    pc_calls_free(calls);
    snprintf(file, sizeof file, "%s/calls.rank0.json", folder);
    assert_int_equal(unlink(file), 0);
    assert_int_equal(rmdir(folder), 0);
}

static pc_status queues(pc__comm *comm, pc_stream *stream, const pc_call *call)
{
    (void)comm, (void)stream, (void)call;
    return PC_OK;
}

/* As on GPUs: the engine puts work into the stream's queue, here that of the op in front of it. */
static void an_engine_that_queues(void **state)
{
    (void)state;
    static const pc__engine engine = {.name = "queue", .run = queues};
    static const int members[] = {0, 1};
    static const char name[48] = "queue group";
    char folder[] = "/tmp/paracord-queue-XXXXXX", file[64], trace[64];
    if (ranks_most() < 2 || test_device().type != PC_SIM)
        skip();
    assert_non_null(mkdtemp(folder));
    snprintf(trace, sizeof trace, "%s/trace", folder);
    assert_ok(pc_trace_start(trace));
    PC_SCOPE {
        pc_stream *stream = pc_stream_current(test_device());
        pc_tensor *t = pc_matmul(pc_ones(PC_SHAPE(64, 64), PC_F32, test_device()),
                                 pc_ones(PC_SHAPE(64, 64), PC_F32, test_device()));
        assert_non_null(t);
        pc__comm comm = {.engine = &engine,
                         .device = test_device(),
                         .rank = 1,
                         .size = 2,
                         .group = name,
                         .members = members,
                         .log = &pc__group_log};
        const pc__collective attributes = {.comm = &comm};
        const pc_call call = {.op = &pc__ops[PC__OP_all_reduce], .n_out = 1, .out = {t}, .attributes = &attributes};
        assert_ok(pc__collective_run(stream, &call));
        comm.log->launches(&comm, stream);
        assert_int_equal(comm.begun, 2);
        assert_ok(pc_device_synchronize(test_device()));
    }
    assert_ok(pc_trace_stop());
    const int all = pc__journal_read(entries, PC__JOURNAL_CALLS);
    const pc__journal_entry *e = &entries[all - 2], *graph = &entries[all - 1];
    assert_int_equal(e->state, PC__CALL_QUEUED);
    assert_true(e->ticket > 0 && e->entered == 0 && e->finished == 0);
    assert_int_equal(graph->number, 2);
    assert_string_equal(pc__journal_op(graph), "a graph with collectives");
    setenv("PARACORD_DIST_DUMP", folder, 1);
    usleep(1100000); /* dumps within a second are one */
    pc__dump_write("a test");
    unsetenv("PARACORD_DIST_DUMP");
    pc_calls_summary s;
    pc_calls *calls = pc_calls_open(folder);
    assert_not_null_ok(calls);
    assert_ok(pc_calls_summarise(calls, &s));
    assert_string_equal(s.ranks[1].entered, "2 of queue group, a graph with collectives");
    assert_string_equal(s.ranks[1].state, "done"); /* the device is past its ticket */
    pc_calls_summary_free(&s);
    pc_calls_free(calls);
    pc_timeline_summary times;
    pc_timeline *t = pc_timeline_open(trace);
    assert_not_null_ok(t);
    assert_ok(pc_timeline_summarise(t, &times));
    assert_int_equal(times.rank_count, 1);
    assert_true(times.ranks[0].in_calls > 0); /* what the device has taken for that ticket */
    assert_true(times.ranks[0].overlapped == 0);
    pc_timeline_summary_free(&times);
    pc_timeline_free(t);
    snprintf(file, sizeof file, "%s/calls.rank0.json", folder);
    assert_int_equal(unlink(file) + unlink(trace) + rmdir(folder), 0);
}

/* What cannot be written is logged, and changes no error. */
static void a_folder_that_cannot_be_written(void **state)
{
    (void)state;
    rank_work ranks[RANKS_MAX];
    if (ranks_most() < 3 || test_device().type == PC_CUDA)
        skip();
    setenv("PARACORD_DIST_DUMP", "/dev/null/there", 1);
    usleep(1100000); /* dumps within a second are one */
    ranks_run(3, ranks, too_few, NULL);
    unsetenv("PARACORD_DIST_DUMP");
    assert_true(strstr(ranks[0].error.message, "has waited 0.5 s for rank 1"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_are_kept),
        cmocka_unit_test(the_last_thousand),
        cmocka_unit_test(launches_are_calls),
        cmocka_unit_test(a_missing_rank_is_named),
        cmocka_unit_test(a_folder_that_cannot_be_written),
        cmocka_unit_test(an_engine_that_queues),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
