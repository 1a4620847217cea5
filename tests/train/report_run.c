/* What a run's report says while it goes on, which epoch it marks, mistakes, thresholds, steps; and runs compared. */
#include "group.h"

#include "device.h"
#include "io/file.h"
#include "train/curve.h"
#include "report/parts.h"

#include <math.h>
#include <paracord-tools/report.h>

static test_path data;

static int prepare(void **state)
{
    open_folder(state);
    put_data();
    data = joined(root.s, "data");
    return 0;
}

static char *page(const char *folder, const char *name)
{
    uint8_t *bytes;
    size_t n;
    assert_ok(pc__file_read(joined(folder, name).s, &bytes, &n));
    return (char *)bytes;
}

static void assert_says(const char *html, const char *words)
{
    if (!strstr(html, words))
        fail_msg("the page does not say \"%s\"", words);
}

typedef struct watched {
    const char *out;
    int batches, stop_at;
    bool live; /* a page that looks for its next version, at the end of the first epoch */
} watched;

static void see(void *context, const pc_epoch_result *result)
{
    watched *w = context;
    if (result->epoch != 1)
        return;
    char *html = page(w->out, "report.html");
    w->live = strstr(html, "1 of ") && strstr(html, "<noscript><meta http-equiv='refresh'") &&
              strstr(html, "location.reload()") && strstr(html, "id='live'");
    pc__free(html);
}

static bool stop(void *context)
{
    watched *w = context;
    return ++w->batches == w->stop_at;
}

static pc_train_summary train(const char *out, watched *w, pc_train_options s)
{
    pc_train_callbacks callbacks = {.context = w, .epoch = see, .stop = stop};
    pc_train_summary summary;
    w->out = out;
    s.data = data.s;
    s.out = out;
    s.device = test_device_name();
    s.batch = 6;
    s.size = 8;
    s.arch = "mlp";
    s.callbacks = &callbacks;
    s.report = pc_report_page;
    assert_ok(pc_train_folder(s, &summary));
    return summary;
}
#define TRAIN(out, w, ...) train((out), (w), (pc_train_options){.reserved_ = 0, __VA_ARGS__})

static void while_it_goes_on(void **state)
{
    (void)state;
    char words[64];
    watched w = {.stop_at = 0}, stopped = {.stop_at = 7};
    test_path out = joined(root.s, "run");
    pc_train_summary s = TRAIN(out.s, &w, .epochs = 8, .lr = 0.01, .seed = 3);
    assert_true(w.live);
    char *html = page(out.s, "report.html");
    assert_null(strstr(html, "location.reload()"));
    assert_null(strstr(html, "<noscript>"));
    snprintf(words, sizeof words, "epoch %d, which is kept", s.kept.epoch);
    assert_says(html, words);
    snprintf(words, sizeof words, "<tr class='own'><th scope='row'>%d kept</th>", s.kept.epoch);
    assert_says(html, words);
    snprintf(words, sizeof words, "<title>kept: epoch %d</title>", s.kept.epoch);
    assert_says(html, words);
    assert_says(html, "Training loss by step");
    assert_says(html, "Learning rate");
    assert_says(html, "ROC curve");
    pc__free(html);
    test_path other = joined(root.s, "stopped");
    s = TRAIN(other.s, &stopped, .epochs = 8);
    assert_true(s.interrupted);
    html = page(other.s, "report.html");
    assert_null(strstr(html, "location.reload()"));
    assert_says(html, "Stopped in epoch 3 of 8; paracord train with --resume goes on from here.");
    pc__free(html);
}

static void nobody_asked_for_a_report(void **state)
{
    (void)state;
    test_path silent = joined(root.s, "silent");
    pc_train_summary summary;
    pc_train_options s = {.data = data.s,
                          .out = silent.s,
                          .device = test_device_name(),
                          .batch = 6,
                          .size = 8,
                          .arch = "mlp",
                          .epochs = 1};
    assert_ok(pc_train_folder(s, &summary));
    assert_int_equal(access(joined(silent.s, "model.h5").s, R_OK), 0);
    assert_int_not_equal(access(joined(silent.s, "report.html").s, F_OK), 0);
}

/* By name and with what is wrong, in the page that training writes itself. */
static void skipped_and_damaged_files_are_listed(void **state)
{
    (void)state;
    enum { END_MARK = 12 }; /* of a PNG */
    watched w = {.stop_at = 0};
    test_path odd = joined(root.s, "odd"), page_of = joined(root.s, "odd-run");
    put_classes(placed(root.s, "odd/train/").s, (const char *[]){"cat", "dog"}, 2, 9);
    put_classes(placed(root.s, "odd/test/").s, (const char *[]){"cat", "dog"}, 2, 7);
    test_path damaged = joined(odd.s, "train/cat/b01.png"), tested = joined(odd.s, "test/dog/b01.png");
    cut(odd.s, "train/dog/a00.jpg", 0.5);
    struct stat info;
    assert_int_equal(stat(damaged.s, &info), 0);
    assert_int_equal(truncate(damaged.s, info.st_size - END_MARK), 0);
    assert_int_equal(stat(tested.s, &info), 0);
    assert_int_equal(truncate(tested.s, info.st_size - END_MARK), 0);
    test_path given = data;
    data = odd;
    pc_train_summary s = TRAIN(page_of.s, &w, .epochs = 2);
    data = given;
    assert_int_equal(s.damaged, 2);
    char *html = page(page_of.s, "report.html");
    assert_says(html, "1 file was skipped</b>");
    assert_says(html, "train/dog/a00.jpg</td><td>is truncated");
    assert_says(html, "2 files are damaged</b> and used all the same");
    assert_says(html, "train/cat/b01.png</td><td>");
    assert_says(html, "test/dog/b01.png</td><td>");
    pc__free(html);
}

/* The surest of the wrong ones first. */
static void the_worst_mistakes_come_first(void **state)
{
    (void)state;
    char *html = page(joined(root.s, "stopped").s, "report.html");
    const char *at = strstr(html, "Worst mistakes"), *end = strstr(html, "<h2>Predictions</h2>");
    double before = 101;
    int shots = 0;
    assert_true(at && end && at < end);
    for (; (at = strstr(at, "<span class='sure'>")) && at < end; at++, shots++) {
        double sure = atof(at + strlen("<span class='sure'>"));
        assert_true(sure <= before && sure >= 50);
        before = sure;
    }
    assert_in_range(shots, 1, 14);
    pc__free(html);
}

static char *rendered(const pc__report *report)
{
    pc__text html = {0};
    assert_ok(pc__report_render(&html, report));
    return html.data;
}

/* Three of each class; a pair of equal logits, one of each, counts half: 6.5 of 9 pairs are in order. */
static void hits_and_false_alarms(void **state)
{
    (void)state;
    const pc__report_class classes[] = {{"cat", 3, 3}, {"dog", 3, 3}};
    pc__report_score scores[] = {{-2, false}, {0.5, false}, {1, true}, {3, true}, {0.5, true}, {1.5, false}};
    pc__report report = {.classes = classes, .class_count = 2, .scores = scores, .score_count = 6};
    char *html = rendered(&report);
    assert_says(html, "AUC 0.722");
    assert_says(html, "<output id='chosen'>");
    /* from 0.5: all dogs, and two cats */
    assert_says(html, "<tr class='own'><th scope='row'>0.50</th><td>66.7\u202f%</td><td>33.3\u202f%</td>"
                      "<td>100.0\u202f%</td><td>60.0\u202f%</td>");
    /* from 0.8, a logit of 1.39: one of each */
    assert_says(html, "<th scope='row'>0.80</th><td>50.0\u202f%</td><td>66.7\u202f%</td><td>33.3\u202f%</td>"
                      "<td>50.0\u202f%</td>");
    assert_says(html, "value='[3,3,3,3,"); /* from 0: everything */
    assert_says(html,
                ">false<tspan x='416' dy='1.1em'>alarms</tspan></text>"); /* two words have no room side by side */
    pc__free(html);
    scores[2].logit = NAN;
    html = rendered(&report);
    assert_null(strstr(html, "<script"));
    assert_null(strstr(html, "ROC"));
    pc__free(html);
}

static void a_class_that_is_never_said(void **state)
{
    (void)state;
    const int64_t confusion[] = {5, 2, 0, 1, 3, 0, 4, 1, 0};
    const pc__report_class classes[] = {{"cat", 9, 7}, {"dog", 9, 4}, {"elk & co", 2, 5}};
    pc__history history = {0};
    pc__epoch_record epoch = {.epoch = 1, .loss = 1};
    assert_ok(pc__history_add(&history, &epoch));
    char *html =
        rendered(&(pc__report){.classes = classes, .class_count = 3, .confusion = confusion, .history = &history});
    pc__history_free(&history);
    assert_says(html,
                "<b>One class is never predicted.</b> No test picture was taken for \u201celk &amp; co\u201d, of 3");
    pc__free(html);
}

/* However long the run: the same sums in bounded room. */
static void steps_become_groups(void **state)
{
    (void)state;
    static pc__curve curve;
    const int64_t steps = 3 * PC__CURVE_GROUPS + 7;
    double sum = 0, loss = 0;
    int64_t seen = 0;
    for (int64_t i = 0; i < steps; i++) {
        pc__curve_add(&curve, i, (double)i, 2);
        sum += (double)i;
    }
    assert_int_equal(curve.width, 4);
    assert_int_equal(curve.count, (steps + 3) / 4);
    for (int64_t i = 0; i < PC__CURVE_GROUPS; i++)
        loss += curve.groups[i].loss, seen += curve.groups[i].seen;
    assert_true(loss == sum && seen == 2 * steps);
    assert_true(curve.groups[1].loss == 4 + 5 + 6 + 7);
}

/* The sum of the epochs is called the same in a report and where runs are compared; the wall clock is something else. */
static void times_have_names(void **state)
{
    (void)state;
    pc__epoch_record epochs[3];
    for (int i = 0; i < 3; i++)
        epochs[i] = pc__epoch_unknown(i + 1), epochs[i].seconds = (double[]){1, 2, 6}[i];
    const pc__history history = {.epochs = epochs, .count = 3};
    char *html = rendered(&(pc__report){.history = &history, .seconds = 20});
    assert_says(
        html, "<h3>Wall clock</h3><p class='value'>20.0\u202fs</p><p class='sub'>training time 9.0\u202fs, of an epoch "
              "2.0\u202fs (median)<");
    pc__free(html);
}

static void runs_are_compared(void **state)
{
    (void)state;
    char *text, *json;
    watched w = {.stop_at = 0};
    test_path one = joined(root.s, "run"), two = joined(root.s, "<b>two"), html = joined(root.s, "all.html");
    pc_train_summary s = TRAIN(two.s, &w, .epochs = 5, .lr = 0.02, .keep = "last", .seed = 3);
    FILE *torn = fopen(joined(two.s, "metrics.jsonl").s, "a"); /* as of a run that is writing just now */
    fputs("{\"epoch\": 6, \"lo", torn);
    fclose(torn);
    char *before = page(two.s, "metrics.jsonl"), words[200];
    assert_ok(pc_runs_compare((const char *[]){one.s, two.s}, 2, html.s, &text, &json));
    snprintf(words, sizeof words, "       5     5  %8.3f", s.test_accuracy);
    assert_says(text, words);
    assert_says(text, "--lr: 0.01 (");
    assert_says(text, "--keep: not set (");
    assert_null(strstr(text, "--seed"));
    assert_says(json, "\"--lr 0.02\"");
    assert_says(json, "\"loss_by_step\": [[1, ");
    pc_text_free(text);
    pc_text_free(json);
    char *compared = page(root.s, "all.html"), *after = page(two.s, "metrics.jsonl");
    assert_string_equal(before, after);
    assert_says(compared, "&lt;b&gt;two");
    assert_null(strstr(compared, "<b>two"));
    assert_says(compared, "<h1>2 runs compared</h1>");
    assert_says(compared, "training time");
    pc__free(compared);
    pc__free(before);
    pc__free(after);
    unlink(joined(two.s, "checkpoint").s); /* its figures are still there */
    assert_ok(pc_runs_compare((const char *[]){two.s}, 1, NULL, &text, &json));
    assert_says(json, "\"finished\": null, \"kept\": null");
    pc_text_free(text);
    pc_text_free(json);
    assert_fails(pc_runs_compare((const char *[]){root.s}, 1, NULL, &text, &json), PC_ERR_NOT_FOUND, "holds no run");
    assert_fails(pc_runs_compare((const char *[]){"/nowhere"}, 1, NULL, &text, &json), PC_ERR_NOT_FOUND, "no folder");
    assert_fails(pc_runs_compare((const char *[]){one.s}, 1, "/nowhere/a.html", &text, &json), PC_ERR_FILE, "/nowhere");
    assert_null(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(while_it_goes_on),
        cmocka_unit_test(nobody_asked_for_a_report),
        cmocka_unit_test(the_worst_mistakes_come_first),
        cmocka_unit_test(skipped_and_damaged_files_are_listed),
        cmocka_unit_test(hits_and_false_alarms),
        cmocka_unit_test(a_class_that_is_never_said),
        cmocka_unit_test(steps_become_groups),
        cmocka_unit_test(times_have_names),
        cmocka_unit_test(runs_are_compared),
    };
    return cmocka_run_group_tests_name("train.report_run", tests, prepare, tidy);
}
