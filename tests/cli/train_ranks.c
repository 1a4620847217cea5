/* paracord train --devices: the history of a run alone, at any number of devices and over a resume; one rank speaks and
 * writes; Ctrl-C ends all. */
#include "job.h"

#include "train/metrics.h"

#include <math.h>
#include <paracord/keras.h>

static test_path root;

static int prepare(void **state)
{
    (void)state;
    root = folder_in_memory();
    setenv("PARACORD_SIM", "4", 1);
    setenv("PARACORD_GROUP_TIMEOUT", "60", 1);
    draw_pictures(joined(root.s, "faces").s, 21, 6); /* 42 by 8: the last batch is of two */
    return 0;
}

static int tidy(void **state)
{
    (void)state;
    remove_root(&root);
    return 0;
}

/* The settings of all runs, but for how long, where to, and where on. */
#define TRAIN(out, epochs, ...)                                                                                        \
    "train", joined(root.s, "faces").s, "--size", "16", "--batch", "8", "--optimizer", "sgd", "--lr", "0.02", "--out", \
        joined(root.s, (out)).s, "--epochs", (epochs), __VA_ARGS__

static pc__history history_of(const char *run_name)
{
    pc__history h;
    assert_ok(pc__metrics_read(joined(joined(root.s, run_name).s, "metrics.jsonl").s, &h));
    return h;
}

static void assert_near(double a, double b)
{
    if (!(fabs(a - b) <= 1e-5 * (1 + fabs(b))))
        fail_msg("%.9g is not %.9g", a, b);
}

static void assert_same_history(const char *a, const char *b)
{
    pc__history x = history_of(a), y = history_of(b);
    assert_int_equal(x.count, y.count);
    for (int i = 0; i < x.count; i++) {
        assert_int_equal(x.epochs[i].epoch, y.epochs[i].epoch);
        assert_near(x.epochs[i].loss, y.epochs[i].loss);
        assert_near(x.epochs[i].accuracy, y.epochs[i].accuracy);
        assert_near(x.epochs[i].test_loss, y.epochs[i].test_loss);
        assert_near(x.epochs[i].test_accuracy, y.epochs[i].test_accuracy);
    }
    pc__history_free(&x);
    pc__history_free(&y);
    assert_true(exists(joined(root.s, a).s, "model.h5") && exists(joined(root.s, a).s, "report.html"));
    assert_no_temporaries(joined(root.s, a).s);
}

static int times(const char *text, const char *words)
{
    int n = 0;
    for (; (text = strstr(text, words)); text++)
        n++;
    return n;
}

static void alone(void)
{
    job_end e;
    if (exists(root.s, "alone"))
        return;
    run(&e, TRAIN("alone", "3", "--device", "cpu"));
    assert_went_well(&e);
}

static void devices(void **state)
{
    (void)state;
    static const char *const lists[][2] = {{"cpu,cpu", " 1 other rank"},
                                           {"sim:0,sim:1", "on sim:0 and 1 other rank"},
                                           {"sim:0,sim:1,sim:2", " 2 other ranks"}};
    job_end e;
    alone();
    for (int i = 0; i < 3; i++) {
        run(&e, TRAIN(lists[i][0], "3", "--devices", lists[i][0]));
        assert_went_well(&e);
        assert_true(times(e.err, "\n") <= 1); /* a class that is never named is said once */
        assert_int_equal(times(e.out, lists[i][1]), 1);
        assert_int_equal(times(e.out, "epoch 2/3"), 1);
        assert_int_equal(times(e.out, "done in"), 1);
        assert_same_history(lists[i][0], "alone");
    }
}

static void going_on(void **state)
{
    (void)state;
    job_end e;
    alone();
    run(&e, TRAIN("parts", "1", "--devices", "sim:0,sim:1"));
    assert_went_well(&e);
    run(&e, TRAIN("parts", "2", "--resume", "--devices", "cpu,cpu,cpu"));
    assert_went_well(&e);
    assert_int_equal(times(e.out, "going on after epoch 1"), 1);
    run(&e, TRAIN("parts", "3", "--resume", "--device", "cpu"));
    assert_went_well(&e);
    assert_same_history("parts", "alone");
}

/* --- --zero and --accumulate --- */

static void assert_same_network(const char *a, const char *b)
{
    enum { MOST = 16 };
    pc_parameter x[MOST], y[MOST];
    pc_module *nets[2] = {pc_keras_load(joined(joined(root.s, a).s, "model.h5").s, NULL),
                          pc_keras_load(joined(joined(root.s, b).s, "model.h5").s, NULL)};
    assert_non_null(nets[0]);
    assert_non_null(nets[1]);
    const int count = pc_module_state_list(nets[0], x, MOST);
    assert_true(count > 0 && count <= MOST && count == pc_module_state_list(nets[1], y, MOST));
    for (int i = 0; i < count; i++) {
        const int64_t n = pc_tensor_count(x[i].tensor);
        assert_int_equal(n, pc_tensor_count(y[i].tensor));
        const float *p = pc_data(x[i].tensor), *q = pc_data(y[i].tensor);
        for (int64_t k = 0; k < n; k++)
            assert_near((double)p[k], (double)q[k]);
    }
    pc_module_free(nets[0]);
    pc_module_free(nets[1]);
}

#define ROW(name, value) "<div><dt>" name "</dt><dd>" value "</dd></div>\n"

static void shared_out(void **state)
{
    (void)state;
    static const struct {
        const char *name, *devices, *zero, *accumulate, *words, *reported;
    } jobs[] = {{"parts alone", "cpu", "3", "3", "on cpu, each batch in 3 parts", /* alone nothing is shared out */
                 ROW("seed", "0") ROW("accumulate", "3") "</dl>"},
                {"parts", "sim:0,sim:1", "0", "2", "1 other rank, each batch in 2 parts",
                 ROW("seed", "0") ROW("ranks", "2") ROW("accumulate", "2") "</dl>"},
                {"one", "sim:0,sim:1", "1", "1", "1 other rank, stage 1 of ZeRO",
                 ROW("ranks", "2") ROW("ZeRO", "stage 1") "</dl>"},
                {"two", "cpu,cpu,cpu", "2", "1", "2 other ranks, stage 2 of ZeRO", ROW("ZeRO", "stage 2") "</dl>"},
                {"three", "sim:0,sim:1,sim:2", "3", "2", "stage 3 of ZeRO, each batch in 2 parts",
                 ROW("ranks", "3") ROW("ZeRO", "stage 3") ROW("accumulate", "2") "</dl>"}};
    job_end e;
    alone();
    for (int i = 0; i < 5; i++) {
        run(&e, TRAIN(jobs[i].name, "3", "--devices", jobs[i].devices, "--zero", jobs[i].zero, "--accumulate",
                      jobs[i].accumulate));
        assert_went_well(&e);
        if (!strstr(e.out, jobs[i].words))
            fail_msg("%s", e.out);
        assert_int_equal(times(e.err, "--zero 3 shares out nothing: one rank trains alone"), i == 0);
        size_t n;
        char *page = content(joined(root.s, jobs[i].name).s, "report.html", &n);
        assert_non_null(strstr(page, jobs[i].reported));
        free(page);
        assert_same_history(jobs[i].name, "alone");
        assert_same_network(jobs[i].name, "alone");
    }
}

/* From one stage and number of ranks to another, and to none. */
static void sharing_goes_on(void **state)
{
    (void)state;
    static const char *const turns[][6] = {{"sim:0,sim:1", "3", "cpu,cpu,cpu", "1", "cpu", "0"},
                                           {"cpu", "0", "sim:0,sim:1", "2", "sim:0,sim:1,sim:2", "3"}};
    job_end e;
    alone();
    for (int i = 0; i < 2; i++) {
        const char *out = i ? "shared later" : "shared first";
        run(&e, TRAIN(out, "1", "--devices", turns[i][0], "--zero", turns[i][1]));
        assert_went_well(&e);
        run(&e, TRAIN(out, "2", "--resume", "--devices", turns[i][2], "--zero", turns[i][3], "--accumulate", "2"));
        assert_went_well(&e);
        assert_int_equal(times(e.out, "going on after epoch 1"), 1);
        run(&e, TRAIN(out, "3", "--resume", "--devices", turns[i][4], "--zero", turns[i][5]));
        assert_went_well(&e);
        assert_same_history(out, "alone");
        assert_same_network(out, "alone");
    }
}

/* As processes, where an MPI is there to move their data; then on in threads. */
static void launched(void **state)
{
    (void)state;
    job_end e;
    alone();
    leaks_of_children(false);
    run(&e, "launch", "-n", "2", "--", binary(), TRAIN("launched", "2", "--device", "cpu", "--zero", "3"));
    leaks_of_children(true);
    if (e.status && (strstr(e.err, "MPI") || strstr(e.err, "libuv")))
        skip();
    assert_int_equal(e.status, 0);
    assert_int_equal(times(e.out, "stage 3 of ZeRO"), 1);
    run(&e, TRAIN("launched", "3", "--resume", "--devices", "cpu,cpu,cpu", "--zero", "1"));
    assert_went_well(&e);
    assert_same_history("launched", "alone");
    assert_same_network("launched", "alone");
}

/* With no copy of the best network beside it. */
static void last_is_whole(void **state)
{
    (void)state;
    job_end e;
    run(&e, TRAIN("last alone", "2", "--keep", "last", "--device", "cpu"));
    assert_went_well(&e);
    run(&e, TRAIN("last", "2", "--keep", "last", "--devices", "sim:0,sim:1", "--zero", "3"));
    assert_went_well(&e);
    assert_same_network("last", "last alone");
}

/* What differs from one device is said where one looks. */
static void help_says_what_differs(void **state)
{
    (void)state;
    job_end e;
    setenv("COLUMNS", "1000", 1);
    run(&e, "train", "--help");
    unsetenv("COLUMNS");
    assert_went_well(&e);
    const char *devices = strstr(e.out, "--devices"), *zero = strstr(e.out, "--zero");
    const char *words = devices ? strstr(devices, "but for batch norms") : NULL;
    assert_true(devices && zero && words && words < zero);
}

static void numbers_are_checked(void **state)
{
    (void)state;
    job_end e;
    run(&e, TRAIN("no", "1", "--zero", "4"));
    assert_refused(&e, 2, "--zero");
    run(&e, TRAIN("no", "1", "--accumulate", "0"));
    assert_refused(&e, 2, "--accumulate");
    run(&e, TRAIN("no", "1", "--devices", "cpu,cpu", "--zero", "2", "--precision", "f16"));
    assert_refused(&e, 1, "take bfloat16 or float32");
    run(&e, TRAIN("no", "1", "--arch", "resnet18", "--accumulate", "8"));
    assert_refused(&e, 1, "choose a smaller --accumulate");
    assert_false(exists(root.s, "no"));
}

/* Ctrl-C while epochs pass; then on to the end. */
static void interrupted(void **state)
{
    (void)state;
    static const char *const lists[] = {"cpu,cpu,cpu", "sim:0,sim:1", "sim:0,sim:1,sim:2"},
                             *const names[] = {"stopped", "stopped too", "stopped shared out"},
                             *const stages[] = {"0", "0", "3"};
    for (int i = 0; i < 3; i++) {
        job_end e;
        const int out = nameless_file(), err = nameless_file();
        const pid_t child = start(ARGUMENTS(TRAIN(names[i], "100000", "--devices", lists[i], "--zero", stages[i])),
                                  (job_limits){0}, dup(out), dup(err));
        for (double end = seconds_now() + 60; seconds_now() < end; sleep_for(0.02)) {
            struct stat info;
            if (stat(joined(joined(root.s, names[i]).s, "metrics.jsonl").s, &info) == 0 && info.st_size > 400)
                break;
        }
        kill(child, SIGINT);
        e.status = wait_for(child);
        read_back(out, e.out, sizeof e.out);
        read_back(err, e.err, sizeof e.err);
        if (e.status != 130 && e.status != -SIGINT)
            fail_msg("exit status %d: %s", e.status, e.err);
        assert_int_equal(times(e.out, "stopped after epoch"), 1);
        assert_int_equal(times(e.out, "--resume"), 1);
        pc__history h = history_of(names[i]);
        char more[16];
        snprintf(more, sizeof more, "%d", h.count + 2);
        run(&e, TRAIN(names[i], more, "--resume", "--devices", lists[!i]));
        assert_went_well(&e);
        pc__history_free(&h);
        h = history_of(names[i]);
        assert_int_equal(h.count, atoi(more));
        pc__history_free(&h);
    }
}

static void refused(void **state)
{
    (void)state;
    job_end e;
    run(&e, TRAIN("no", "1", "--devices", "sim:0,sim:0"));
    assert_refused(&e, 2, "sim:0 is there twice");
    run(&e, TRAIN("no", "1", "--devices", "nothing"));
    assert_refused(&e, 2, "nothing");
    run(&e, "train", joined(root.s, "nowhere").s, "--devices", "cpu,cpu");
    assert_refused(&e, 1, "nowhere");
    put_bytes(root.s, "taken", "", 0); /* a file is where the folder is to be: the first rank alone sees it */
    run(&e, TRAIN("taken/run", "1", "--devices", "cpu,cpu,cpu"));
    assert_refused(&e, 1, "taken");
    assert_null(strstr(e.err, "rank"));
    assert_false(exists(root.s, "no"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(devices),
        cmocka_unit_test(going_on),
        cmocka_unit_test(shared_out),
        cmocka_unit_test(sharing_goes_on),
        cmocka_unit_test(launched),
        cmocka_unit_test(last_is_whole),
        cmocka_unit_test(help_says_what_differs),
        cmocka_unit_test(numbers_are_checked),
        cmocka_unit_test(interrupted),
        cmocka_unit_test(refused),
    };
    return cmocka_run_group_tests(tests, prepare, tidy);
}
