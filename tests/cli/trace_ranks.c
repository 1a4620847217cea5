/* trace_ranks.c: timelines of ranks, made here, as one: clocks, who waits for whom, and files that do not go together. */
#include "trace.h"

#include "comma.h"
#include "failing.h"

#include <math.h>

/* A rank's file: its clock begins at `origin` and shows `ahead` ns less than the job's. */
static trace_file begin_rank(const char *folder, int rank, double origin, double ahead)
{
    char name[32];
    snprintf(name, sizeof name, "trace.rank%d.json", rank);
    trace_file t = {.path = joined(folder, name)};
    t.file = fopen(t.path.s, "w");
    assert_non_null(t.file);
    fprintf(t.file,
            "[\n{\"name\":\"paracord\",\"ph\":\"M\",\"pid\":1,\"tid\":1,\"args\":{\"version\":\"1\",\"clock_start_ns\":"
            "%.0f}},\n"
            "{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":1,\"args\":{\"name\":\"host\"}},\n"
            "{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":2,\"args\":{\"name\":\"collectives\"}},\n"
            "{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":10,\"args\":{\"name\":\"cuda:0\"}},\n",
            origin);
    fprintf(t.file,
            "{\"name\":\"paracord "
            "rank\",\"ph\":\"M\",\"pid\":1,\"tid\":1,\"args\":{\"rank\":%d,\"size\":2,\"start\":0,\"job\":\"j\","
            "\"at_ns\":%.0f,\"offset_ns\":%.0f,\"error_ns\":%d}},\n",
            rank, origin, ahead, 2000 * rank);
    fprintf(t.file, "{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":2,\"tid\":%d,\"args\":{\"name\":\"rank %d\"}},\n",
            rank + 1, rank);
    name_row(&t, 10, 7, "stream 7");
    name_row(&t, 10, 8, "stream 8");
    name_row(&t, 10, 101, "engine compute");
    return t;
}

static void call(trace_file *t, int rank, const char *name, int number, double at, double duration)
{
    fprintf(t->file,
            "{\"name\":\"%s\",\"cat\":\"collective\",\"ph\":\"X\",\"pid\":2,\"tid\":%d,\"ts\":%.3f,\"dur\":%.3f,"
            "\"args\":{\"group\":"
            "\"world\",\"number\":%d,\"member\":%d,\"rank\":%d,\"of\":2,\"dtype\":\"float32\",\"bytes\":4096,"
            "\"device\":\"cpu\"}},\n",
            name, rank + 1, at, duration, number, rank, rank);
}

/* The device's work `ticket` of stream 7 is a call, which the host has queued. */
static void queued_call(trace_file *t, int rank, int number, int ticket, double at, double duration)
{
    fprintf(t->file,
            "{\"name\":\"all_reduce\",\"cat\":\"collective\",\"ph\":\"i\",\"s\":\"t\",\"pid\":2,\"tid\":%d,\"ts\":1,"
            "\"args\":{\"group\":"
            "\"world\",\"number\":%d,\"member\":%d,\"rank\":%d,\"of\":2,\"bytes\":4096,\"device\":\"cuda:0\","
            "\"stream\":7,\"ticket\":%d}},\n",
            rank + 1, number, rank, rank, ticket);
    for (int engine = 0; engine < 2; engine++)
        fprintf(t->file,
                "{\"ph\":\"X\",\"cat\":\"%s\",\"name\":\"all_reduce\",\"ts\":%.3f,\"dur\":%.3f,\"pid\":10,\"tid\":%d,"
                "\"args\":{"
                "\"ticket\":%d,\"stream\":7}},\n",
                engine ? "engine" : "work", at, duration, engine ? 101 : 7, ticket);
}

static void compute(trace_file *t, double at, double duration)
{
    for (int engine = 0; engine < 2; engine++)
        fprintf(t->file,
                "{\"ph\":\"X\",\"cat\":\"%s\",\"name\":\"matmul\",\"ts\":%.3f,\"dur\":%.3f,\"pid\":10,\"tid\":%d,"
                "\"args\":{\"ticket\":99,"
                "\"stream\":8}},\n",
                engine ? "engine" : "work", at, duration, engine ? 101 : 8);
}

static pc_timeline *merged(const char *folder, pc_timeline_summary *summary)
{
    const char *paths[] = {folder};
    pc_timeline *timeline = pc_timeline_open_all(paths, 1);
    assert_not_null_ok(timeline);
    assert_ok(pc_timeline_summarise(timeline, summary));
    return timeline;
}

#define NEAR(value, wanted) assert_true(fabs((value) - (wanted)) < 0.01)

/* Rank 1 has a clock of its own. On the job's it comes 30 us late to the first call, and rank 0 5 us to the second one. */
static void clocks_and_waiting(void **state)
{
    const char *folder = *state;
    pc_timeline_summary s;
    trace_file a = begin_rank(folder, 0, 5e9, 0), b = begin_rank(folder, 1, 7e12, 5e9 - 7e12);
    call(&a, 0, "all_reduce", 1, 100, 50);
    call(&b, 1, "all_reduce", 1, 130, 20);
    call(&a, 0, "broadcast", 2, 205, 10);
    call(&b, 1, "broadcast", 2, 200, 15);
    end_trace(&a);
    end_trace(&b);
    pc_timeline *t = merged(folder, &s);
    assert_int_equal(s.rank_count, 2);
    assert_int_equal(s.collective_count, 2);
    assert_int_equal(s.unmatched, 0);
    assert_string_equal(s.collectives[0].name, "all_reduce");
    assert_int_equal(s.collectives[0].first, 0);
    assert_int_equal(s.collectives[0].last, 1);
    NEAR(s.collectives[0].spread, 30);
    NEAR(s.collectives[0].waited, 30);
    NEAR(s.collectives[0].took, 50);
    NEAR(s.collectives[1].spread, 5);
    NEAR(s.ranks[0].in_calls, 60);
    NEAR(s.ranks[0].waited, 30);
    NEAR(s.ranks[1].waited, 5);
    NEAR(s.ranks[1].caused, 30);
    assert_int_equal(s.ranks[1].last, 1);
    assert_true(isnan(s.ranks[0].overlapped));
    NEAR(s.clock_error, 2);
    NEAR(s.wall, 115);
    assert_string_equal(
        s.rank_words,
        "most waiting is for rank 1: it came last to 1 of 2 calls, and the others waited 30.0 us for it in "
        "sum, 86 % of all waiting");
    forget(t, &s);
}

/* Between two looks at the clocks rank 1's has lost 100 us in 1 ms. */
static void clocks_that_drift(void **state)
{
    const char *folder = *state;
    pc_timeline_summary s;
    trace_file a = begin_rank(folder, 0, 5e9, 0), b = begin_rank(folder, 1, 5e9, 0);
    fprintf(b.file, "{\"name\":\"paracord "
                    "rank\",\"ph\":\"M\",\"pid\":1,\"tid\":1,\"args\":{\"rank\":1,\"size\":2,\"start\":0,\"job\":\"j\","
                    "\"at_ns\":5001000000,\"offset_ns\":100000,\"error_ns\":0}},\n");
    call(&a, 0, "all_reduce", 1, 550, 10);
    call(&b, 1, "all_reduce", 1, 500, 10); /* at 550 */
    call(&a, 0, "all_reduce", 2, 1100, 10);
    call(&b, 1, "all_reduce", 2, 1010, 10); /* at 1110: the last look counts from then on */
    end_trace(&a);
    end_trace(&b);
    pc_timeline *t = merged(folder, &s);
    NEAR(s.collectives[0].spread, 10);
    assert_int_equal(s.collectives[0].number, 2);
    NEAR(s.collectives[1].spread, 0);
    forget(t, &s);
}

/* What a stream's queue holds is known by its ticket; such work is no computing, and what is beside it is. */
static void calls_in_queues(void **state)
{
    const char *folder = *state;
    pc_timeline_summary s;
    trace_file a = begin_rank(folder, 0, 5e9, 0), b = begin_rank(folder, 1, 5e9, 0);
    queued_call(&a, 0, 1, 12, 100, 40);
    queued_call(&b, 1, 1, 15, 120, 20);
    compute(&a, 90, 20);
    compute(&b, 10, 20);
    end_trace(&a);
    end_trace(&b);
    pc_timeline *t = merged(folder, &s);
    assert_int_equal(s.collective_count, 1);
    NEAR(s.collectives[0].spread, 20);
    NEAR(s.ranks[0].in_calls, 40);
    NEAR(s.ranks[0].overlapped, 0.25);
    NEAR(s.ranks[1].overlapped, 0);
    assert_int_equal(s.device_count, 2);
    assert_string_equal(s.devices[0].device, "rank 0 cuda:0");
    const test_path page = joined(folder, "all.html"), file = joined(folder, "all.json");
    assert_ok(pc_timeline_page(t, page.s));
    char other[] = "/tmp/paracord-trace-XXXXXX", place[64] = "";
    assert_non_null(mkdtemp(other));
    (void)comma_locale(other, place, sizeof place); /* JSON is JSON there too */
    const pc_status status = pc_timeline_write(t, file.s);
    comma_locale_end(place);
    rmdir(other);
    assert_int_equal(status, PC_OK);
    forget(t, &s);
    t = summarised(file.s, &s); /* the same work, in one file */
    assert_int_equal(s.device_count, 2);
    NEAR(s.wall, 130);
    assert_int_equal(remove(page.s) + remove(file.s), 0);
    forget(t, &s);
}

static void calls_without_others(void **state)
{
    const char *folder = *state;
    pc_timeline_summary s;
    trace_file a = begin_rank(folder, 0, 5e9, 0), b = begin_rank(folder, 1, 5e9, 0);
    call(&a, 0, "all_reduce", 1, 100, 50);
    call(&b, 1, "broadcast", 1, 130, 20);
    call(&b, 1, "broadcast", 2, 230, 20);
    end_trace(&a);
    end_trace(&b);
    pc_timeline *t = merged(folder, &s);
    assert_int_equal(s.collective_count, 0);
    assert_int_equal(s.unmatched, 3);
    assert_string_equal(s.rank_words, "no call of all ranks of a group: nobody is seen to wait for others");
    forget(t, &s);
}

static void refuses(const char *const *paths, int count, pc_status status, const char *words)
{
    pc_error_clear();
    assert_null(pc_timeline_open_all(paths, count));
    assert_int_equal(pc_error_last()->status, status);
    if (!strstr(pc_error_last()->message, words))
        fail_msg("no \"%s\" in: %s", words, pc_error_last()->message);
    pc_error_clear();
}

static void files_that_do_not_go_together(void **state)
{
    const char *folder = *state;
    pc_timeline_summary s;
    trace_file a = begin_rank(folder, 0, 5e9, 0), b = begin_rank(folder, 1, 5e9, 0);
    call(&a, 0, "all_reduce", 1, 100, 50);
    call(&b, 1, "all_reduce", 1, 100, 50);
    end_trace(&a);
    fputs("{\"ph\":\"X\",\"na", b.file); /* its program was killed */
    assert_int_equal(fclose(b.file), 0);
    pc_timeline *t = merged(folder, &s);
    assert_true(s.cut);
    assert_string_equal(s.cut_file, "trace.rank1.json");
    assert_int_equal(s.collective_count, 1);
    forget(t, &s);
    const test_path alone = launching(folder), damaged = trace_of(folder, "damaged.json", "[\n{\"ph\":}\n]\n");
    refuses((const char *[]){a.path.s, alone.s}, 2, PC_ERR_FORMAT, "launch.json does not say which rank wrote it");
    refuses((const char *[]){a.path.s, a.path.s}, 2, PC_ERR_FORMAT, "are both of rank 0");
    refuses((const char *[]){a.path.s, damaged.s}, 2, PC_ERR_FORMAT, "damaged.json: an event is not valid JSON");
    refuses((const char *[]){"nowhere/", a.path.s}, 2, PC_ERR_FILE, "nowhere/");
    refuses((const char *[]){a.path.s}, 0, PC_ERR_ARGUMENT, "count is 0");
    const test_path other =
        trace_of(folder, "other.json",
                 "[\n{\"name\":\"paracord rank\",\"ph\":\"M\",\"pid\":1,\"args\":{\"rank\":1,\"size\":2,\"start\":1,"
                 "\"job\":\"j\",\"at_ns\":0,\"offset_ns\":0,\"error_ns\":0}}\n]\n");
    refuses((const char *[]){a.path.s, other.s}, 2, PC_ERR_FORMAT, "are of two jobs, or of two starts of one");
    assert_int_equal(remove(alone.s) + remove(damaged.s) + remove(other.s) + remove(a.path.s) + remove(b.path.s), 0);
    refuses((const char *[]){folder}, 1, PC_ERR_NOT_FOUND, "holds no timelines of ranks");
}

static bool whole_way(const char *const *paths, const char *page)
{
    pc_timeline_summary s;
    pc_timeline *t = pc_timeline_open_all(paths, 1);
    const bool fine = t && pc_timeline_summarise(t, &s) == PC_OK;
    if (fine)
        pc_timeline_summary_free(&s);
    const bool written = fine && pc_timeline_write(t, page) == PC_OK;
    pc_timeline_free(t);
    return written;
}

static void every_allocation_fails_once(void **state)
{
    const char *folder = *state, *const paths[] = {folder};
    const test_path page = joined(folder, "all");
    trace_file a = begin_rank(folder, 0, 5e9, 0), b = begin_rank(folder, 1, 5e9, 0);
    queued_call(&a, 0, 1, 12, 100, 40);
    queued_call(&b, 1, 1, 15, 120, 20);
    call(&a, 0, "all_reduce", 2, 200, 50);
    call(&b, 1, "all_reduce", 2, 210, 50);
    compute(&a, 90, 20);
    end_trace(&a);
    end_trace(&b);
    assert_int_equal(pc_allocator_live(), 0);
    assert_ok(pc_allocator_set(&failing));
    bool fine = false;
    int n = 0;
    for (; !fine && n < 5000; n++) {
        countdown = n;
        pc_error_clear();
        fine = whole_way(paths, page.s);
        if (!fine && pc_error_last()->status != PC_ERR_MEMORY)
            fail_msg("allocation %d failing: %s", n, pc_error_last()->message);
        if (pc_allocator_live() != 0)
            fail_msg("allocation %d failing leaks", n);
    }
    assert_in_range(n, 50, 4999);
    assert_ok(pc_allocator_set(NULL));
    assert_int_equal(remove(page.s) + remove(a.path.s) + remove(b.path.s), 0);
}

static int prepare(void **state)
{
    static char folder[] = "/tmp/paracord-ranks-XXXXXX";
    *state = mkdtemp(folder);
    return *state ? 0 : -1;
}

static int tidy(void **state)
{
    return rmdir(*state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_allocation_fails_once), cmocka_unit_test(clocks_and_waiting),
        cmocka_unit_test(clocks_that_drift),           cmocka_unit_test(calls_in_queues),
        cmocka_unit_test(calls_without_others),        cmocka_unit_test(files_that_do_not_go_together),
    };
    return cmocka_run_group_tests(tests, prepare, tidy);
}
