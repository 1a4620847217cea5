/* trace_calls.c: what ranks have left of their calls, made here: rings that have forgotten, queues, several groups, damage. */
#include "job.h"

#include "failing.h"

#include <dirent.h>
#include <paracord-tools/calls.h>
#include <unistd.h>

static test_path folder;

typedef struct rank_file {
    test_path path;
    FILE *file;
    int rank, calls;
} rank_file;

static rank_file begin_file(int rank, int size, int start)
{
    char name[48];
    rank_file f = {.rank = rank};
    if (start)
        snprintf(name, sizeof name, "calls.start%d.rank%d.json", start, rank);
    else
        snprintf(name, sizeof name, "calls.rank%d.json", rank);
    f.path = joined(folder.s, name);
    f.file = fopen(f.path.s, "w");
    assert_non_null(f.file);
    fprintf(f.file,
            "{\"paracord_calls\":1,\"version\":\"1\",\"job\":\"j\",\"start\":%d,\"rank\":%d,\"size\":%d,\"process\":7,"
            "\"host\":\"h\","
            "\"written\":%d,\"offset_ns\":%d,\"now_ns\":9000000000,\"why\":\"somebody waited\",\"calls\":[",
            start, rank, size, 1000 + rank, rank * 1000);
    return f;
}

/* Times are seconds; 0: not yet. */
static void add(rank_file *f, const char *group, int number, const char *op, int count, int of, const char *device,
                const char *state, double entered, double finished)
{
    fprintf(f->file,
            "%s{\"group\":\"%s\",\"number\":%d,\"op\":\"%s\",\"dtype\":\"float32\",\"count\":%d,\"bytes\":%d,"
            "\"reduction\":\"sum\","
            "\"peer\":-1,\"rank\":%d,\"of\":%d,\"member\":%d,\"device\":\"%s\",\"queued_ns\":500,\"entered_ns\":%.0f,"
            "\"finished_ns\":%.0f,\"state\":\"%s\"}",
            f->calls++ ? "," : "", group, number, op, count, 4 * count, f->rank % of, of, f->rank, device,
            entered * 1e9, finished * 1e9, state);
}

static void end_file(rank_file *f)
{
    fputs("]}\n", f->file);
    assert_int_equal(fclose(f->file), 0);
}

/* The files of a test. */
static void empty(const char *path)
{
    DIR *list = opendir(path);
    assert_non_null(list);
    for (const struct dirent *entry; (entry = readdir(list));)
        if (entry->d_name[0] != '.')
            assert_int_equal(unlink(joined(path, entry->d_name).s), 0);
    closedir(list);
}

static pc_calls *summed(pc_calls_summary *s)
{
    pc_calls *calls = pc_calls_open(folder.s);
    assert_not_null_ok(calls);
    assert_ok(pc_calls_summarise(calls, s));
    return calls;
}

static void done(pc_calls *calls, pc_calls_summary *s)
{
    pc_calls_summary_free(s);
    pc_calls_free(calls);
    empty(folder.s);
}

static void says(const char *text, const char *words)
{
    if (!strstr(text, words))
        fail_msg("no \"%s\" in: %s", words, text);
}

/* One finding, which says both. */
static void finds(const char *words, const char *more)
{
    pc_calls_summary s;
    pc_calls *calls = summed(&s);
    assert_int_equal(s.finding_count, 1);
    says(s.findings[0].words, words);
    says(s.findings[0].words, more);
    done(calls, &s);
}

/* Rank 1 has forgotten the calls before the 101st. */
static void a_full_ring(void **state)
{
    (void)state;
    pc_calls_summary s;
    rank_file a = begin_file(0, 2, 0), b = begin_file(1, 2, 0);
    for (int i = 1; i <= 1100; i++) {
        if (i <= 1000)
            add(&a, "world", i, "all_reduce", 8, 2, "cpu", "done", 1 + i * 1e-3, 1 + i * 1e-3 + 1e-4);
        if (i > 100)
            add(&b, "world", i, i == 900 ? "broadcast" : "all_reduce", 8, 2, "cpu", "done", 1 + i * 1e-3,
                1 + i * 1e-3 + 1e-4);
    }
    end_file(&a);
    end_file(&b);
    pc_calls *calls = summed(&s);
    assert_int_equal(s.finding_count, 1);
    assert_int_equal(s.findings[0].number, 900);
    says(s.findings[0].words, "call 900 of world: ");
    assert_int_equal(s.row_count, 6);
    assert_int_equal(s.rows[0].number, 896);
    assert_int_equal(s.rows[5].number, 901);
    done(calls, &s);
}

/* Two groups whose ranks wait for each other: each is in one and not in the other. */
static void groups_that_wait_for_each_other(void **state)
{
    (void)state;
    pc_calls_summary s;
    rank_file a = begin_file(0, 2, 0), b = begin_file(1, 2, 0);
    add(&a, "world", 1, "all_reduce", 8, 2, "cpu", "done", 1, 1.5);
    add(&b, "world", 1, "all_reduce", 8, 2, "cpu", "done", 1, 1.5);
    add(&a, "world", 2, "all_reduce", 8, 2, "cpu", "running", 3, 0);
    add(&b, "world.1", 1, "broadcast", 4, 2, "cpu", "running", 2, 0);
    end_file(&a);
    end_file(&b);
    pc_calls *calls = summed(&s);
    assert_int_equal(s.finding_count, 2);
    says(s.findings[0].words,
         "rank 0 never came to call 1 of world.1, broadcast of 16 bytes (4 float32, sum), in which rank 1 has "
         "been for 7.0 s: it has been in 2 of world, all_reduce of 32 bytes (8 float32, sum) for 6.0 s");
    says(s.findings[1].words, "rank 1 never came to call 2 of world, ");
    assert_string_equal(s.ranks[0].state, "running");
    done(calls, &s);
}

/* A device's queue: what it has not begun is no call yet; one kind of device is compared with itself alone. */
static void devices_and_queues(void **state)
{
    (void)state;
    pc_calls_summary s;
    rank_file a = begin_file(0, 2, 0), b = begin_file(1, 2, 0);
    add(&a, "world", 1, "all_reduce", 8, 2, "cuda:0", "done", 0, 0);
    add(&b, "world", 1, "all_reduce", 8, 2, "cuda:1", "queued", 0, 0);
    add(&b, "world", 0, "broadcast", 8, 2, "cuda:1", "queued", 0, 0);
    add(&a, "world", 1, "barrier_like", 1, 2, "cpu", "done", 5, 6);
    add(&b, "world", 1, "barrier_like", 1, 2, "cpu", "done", 5, 6);
    end_file(&a);
    end_file(&b);
    pc_calls *calls = summed(&s);
    assert_int_equal(s.finding_count, 1);
    says(s.findings[0].words,
         "all ranks are in call 1 of world, all_reduce of 32 bytes (8 float32, sum), and 1 of them are done");
    assert_string_equal(s.ranks[1].state, "done");
    done(calls, &s);
}

static void no_file_of_some(void **state)
{
    (void)state;
    pc_calls_summary s;
    rank_file old = begin_file(2, 4, 0);
    add(&old, "world", 1, "all_reduce", 8, 4, "cpu", "running", 1, 0);
    end_file(&old);
    for (int r = 0; r < 4; r += 3) {
        rank_file f = begin_file(r, 4, 2);
        add(&f, "world", 1, "all_reduce", 8, 4, "cpu", "running", 1, 0);
        end_file(&f);
    }
    pc_calls *calls = summed(&s);
    assert_int_equal(s.start, 2);
    assert_int_equal(s.there, 2);
    assert_string_equal(s.absent, "ranks 1, 2");
    assert_string_equal(s.left_out, "calls.rank2.json");
    assert_int_equal(s.finding_count, 1);
    says(s.findings[0].words, "ranks 1, 2 never came to call 1 of world");
    says(s.findings[0].words, "it has left no file");
    assert_string_equal(s.rows[0].absent, "");
    done(calls, &s);
}

/* Rank 2 was killed in front of the second call: rank 0 is done with the first, in which rank 1 has still to hear of it. */
static void no_file_of_one_that_came(void **state)
{
    (void)state;
    for (double since = 8.999; since > 4; since -= 4) {
        rank_file a = begin_file(0, 3, 0), b = begin_file(1, 3, 0);
        add(&a, "world", 1, "all_reduce", 8, 3, "cpu", "done", since, since + 1e-4);
        add(&a, "world", 2, "all_reduce", 8, 3, "cpu", "failed", since + 2e-4, since + 3e-4);
        add(&b, "world", 1, "all_reduce", 8, 3, "cpu", "running", since, 0);
        end_file(&a);
        end_file(&b);
        finds(since > 8 ? "rank 2 never came to call 2 of world, " : "all ranks are in call 1",
              since > 8 ? "it has left no file" : "or a rank that has left no file");
    }
}

/* The root of a broadcast is done before others come. */
static void done_before_others_come(void **state)
{
    (void)state;
    rank_file a = begin_file(0, 3, 0), b = begin_file(1, 3, 0);
    add(&a, "world", 1, "broadcast", 8, 3, "cpu", "done", 8.999, 8.9991);
    add(&b, "world", 1, "broadcast", 8, 3, "cpu", "running", 8.999, 0);
    end_file(&a);
    end_file(&b);
    finds("rank 2 never came to call 1 of world, broadcast", "it has left no file");
}

static void refused_files(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "",
        "{",
        "[]",
        "{}",
        "{\"paracord_calls\":2}",
        "{\"paracord_calls\":1,\"rank\":2,\"size\":2,\"why\":\"\",\"calls\":[]}",
        "{\"paracord_calls\":1,\"rank\":0,\"size\":1,\"why\":\"\",\"calls\":[{}]}",
        "{\"paracord_calls\":1,\"rank\":0,\"size\":1,\"why\":\"\",\"calls\":[{\"op\":\"x\",\"of\":2,\"rank\":2}]}",
        "{\"paracord_calls\":1,\"rank\":0,\"size\":1,\"why\":\"\",\"calls\":[{\"op\":\"x\",\"of\":1,\"state\":\"?\"}]}",
        "{\"paracord_calls\":1,\"rank\":0,\"size\":1,\"why\":\"\",\"calls\":[]} more",
        "{\"paracord_calls\":1,\"rank\":0,\"size\":1,\"why\":\"\",\"now_ns\":1e99,\"calls\":[]}"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        put_bytes(folder.s, "calls.rank0.json", texts[i], strlen(texts[i]));
        pc_error_clear();
        assert_null(pc_calls_open(folder.s));
        if (pc_error_last()->status != PC_ERR_FORMAT ||
            !strstr(pc_error_last()->message, "calls.rank0.json: it is cut off"))
            fail_msg("%zu: %s", i, pc_error_last()->message);
    }
    pc_error_clear();
    empty(folder.s);
    assert_null(pc_calls_open("/nonexistent"));
    assert_int_equal(pc_error_last()->status, PC_ERR_FILE);
    pc_error_clear();
}

static void every_allocation_fails_once(void **state)
{
    (void)state;
    for (int r = 0; r < 2; r++) {
        rank_file f = begin_file(r, 2, 0);
        add(&f, "world", 1, r ? "broadcast" : "all_reduce", 8, 2, "cpu", "done", 1, 1.5);
        end_file(&f);
    }
    int n = 0;
    assert_int_equal(pc_allocator_live(), 0);
    assert_ok(pc_allocator_set(&failing));
    for (bool fine = false; !fine && n < 5000; n++) {
        pc_calls_summary s;
        countdown = n;
        pc_error_clear();
        pc_calls *calls = pc_calls_open(folder.s);
        fine = calls && pc_calls_summarise(calls, &s) == PC_OK;
        if (fine)
            pc_calls_summary_free(&s);
        pc_calls_free(calls);
        if (!fine && pc_error_last()->status != PC_ERR_MEMORY)
            fail_msg("allocation %d failing: %s", n, pc_error_last()->message);
        if (pc_allocator_live() != 0)
            fail_msg("allocation %d failing leaks", n);
    }
    assert_in_range(n, 8, 4999);
    assert_ok(pc_allocator_set(NULL));
    empty(folder.s);
}

static int prepare(void **state)
{
    static char made[] = "/tmp/paracord-calls-XXXXXX";
    (void)state;
    if (!mkdtemp(made))
        return -1;
    snprintf(folder.s, sizeof folder.s, "%s", made);
    return 0;
}

static int tidy(void **state)
{
    (void)state;
    return rmdir(folder.s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_allocation_fails_once),
        cmocka_unit_test(a_full_ring),
        cmocka_unit_test(groups_that_wait_for_each_other),
        cmocka_unit_test(devices_and_queues),
        cmocka_unit_test(no_file_of_some),
        cmocka_unit_test(no_file_of_one_that_came),
        cmocka_unit_test(done_before_others_come),
        cmocka_unit_test(refused_files),
    };
    return cmocka_run_group_tests(tests, prepare, tidy);
}
