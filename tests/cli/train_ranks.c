/* paracord train --devices: the history of a run alone, at any number of devices and over a resume; one rank speaks and
 * writes; Ctrl-C ends all. */
#include "job.h"

#include "train/metrics.h"

#include <math.h>

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

/* Ctrl-C while epochs pass; then on to the end. */
static void interrupted(void **state)
{
    (void)state;
    static const char *const lists[] = {"cpu,cpu,cpu", "sim:0,sim:1"}, *const names[] = {"stopped", "stopped too"};
    for (int i = 0; i < 2; i++) {
        job_end e;
        const int out = nameless_file(), err = nameless_file();
        const pid_t child =
            start(ARGUMENTS(TRAIN(names[i], "100000", "--devices", lists[i])), (job_limits){0}, dup(out), dup(err));
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
        cmocka_unit_test(interrupted),
        cmocka_unit_test(refused),
    };
    return cmocka_run_group_tests(tests, prepare, tidy);
}
