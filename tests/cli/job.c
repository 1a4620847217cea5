/* The main job as a user does it: stopped by Ctrl-C and gone on with, in one folder again and again, with three
 * classes. */
#include "job.h"

static test_path root, data;

static int prepare(void **state)
{
    (void)state;
    root = folder_in_memory();
    data = joined(root.s, "data");
    draw_pictures(data.s, 12, 4);
    return 0;
}

static int tidy(void **state)
{
    (void)state;
    remove_root(&root);
    return 0;
}

#define TRAIN(out, ...) "train", data.s, "--size", "24", "--batch", "8", "--out", (out), __VA_ARGS__

/* Wait until the run in `folder` has written something. */
static void wait_for_file(const char *folder, const char *name)
{
    for (int i = 0; i < 3000 && !exists(folder, name); i++)
        sleep_for(0.01);
    assert_true(exists(folder, name));
}

/* Start, signal after the first checkpoint, and see what it said. */
static void stop_by(int number, const char *out, job_end *e)
{
    int printed = nameless_file(), said = nameless_file();
    pid_t child =
        start(ARGUMENTS(TRAIN(out, "--epochs", "100000", "--seed", "4")), (job_limits){0}, dup(printed), dup(said));
    wait_for_file(out, "checkpoint");
    sleep_for(0.05);
    kill(child, number);
    e->status = wait_for(child);
    read_back(printed, e->out, sizeof e->out);
    read_back(said, e->err, sizeof e->err);
}

static void ctrl_c_saves_and_says_how_to_go_on(void **state)
{
    (void)state;
    static job_end e, other;
    test_path out = joined(root.s, "stopped"), alone = joined(root.s, "alone");
    stop_by(SIGINT, out.s, &e);
    assert_int_equal(e.status, 130);
    const char *said = strstr(e.out, "stopped after epoch ");
    assert_non_null(said);
    assert_non_null(strstr(said, "go on with: paracord train --resume "));
    assert_non_null(strstr(said, out.s));
    const char *models[] = {out.s, joined(out.s, "checkpoint").s};
    for (int i = 0; i < 2; i++) { /* what there is already can be used */
        run(&other, "eval", models[i], data.s);
        assert_went_well(&other);
        assert_non_null(strstr(other.out, "Pictures = 8\n"));
    }
    run(&other, "show", out.s);
    assert_went_well(&other);
    assert_non_null(strstr(other.out, "classes: cat, dog"));
    assert_no_temporaries(out.s);
    int epoch = atoi(said + strlen("stopped after epoch "));
    assert_in_range(epoch, 1, 99999);
    char epochs[16];
    snprintf(epochs, sizeof epochs, "%d", epoch + 3);
    run(&e, TRAIN(out.s, "--epochs", epochs, "--seed", "4", "--resume"));
    assert_went_well(&e);
    run(&e, TRAIN(alone.s, "--epochs", epochs, "--seed", "4"));
    assert_went_well(&e);
    assert_same_runs(alone.s, out.s);
    remove_root(&out);
    remove_root(&alone);
    stop_by(SIGTERM, out.s, &e);
    assert_int_equal(e.status, 143);
    remove_root(&out);
}

static void other_settings_are_named(void **state)
{
    (void)state;
    static job_end e;
    static const char *const others[][3] = {
        {"--lr", "0.01", "--lr 0.01"},
        {"--seed", "5", "--seed 5"},
        {"--zoom", "0.1", "--zoom 0.1"},
        {"--arch", "mlp", "--arch mlp"},
        {"--size", "25", "--size 25"},
        {"--batch", "9", "--batch 9"},
        {"--init", "he", "--init he"},
        {"--optimizer", "sgd", "--optimizer sgd"},
        {"--flip", "--no-flip", "--no-flip"},
        {"--resize", "area", "--resize area"},
        {"--shorter", "30", "settled/checkpoint was made without --shorter, and this run has --shorter 30;"},
        {"--keep", "last", "settled/checkpoint was made without --keep, and this run has --keep last;"}};
    test_path out = joined(root.s, "settled"), picture = joined(data.s, "train/cat/cat.000.jpg");
    stop_by(SIGINT, out.s, &e);
    size_t before, after;
    char *was = content(out.s, "checkpoint", &before);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        run(&e, TRAIN(out.s, "--seed", "4", "--resume", others[i][0], others[i][1]));
        assert_refused(&e, 1, "settled/checkpoint was made with", others[i][2]);
    }
    test_path padded = joined(root.s, "padded");
    run(&e, TRAIN(padded.s, "--epochs", "1", "--pad", "20"));
    assert_int_equal(e.status, 0);
    run(&e, TRAIN(padded.s, "--epochs", "2", "--resume"));
    assert_refused(&e, 1, "padded/checkpoint was made with --pad 20, and this run has none;");
    remove_root(&padded);
    test_path renamed = joined(data.s, "train/cat/other.jpg");
    assert_int_equal(rename(picture.s, renamed.s), 0);
    run(&e, TRAIN(out.s, "--seed", "4", "--resume"));
    assert_int_equal(rename(renamed.s, picture.s), 0);
    assert_refused(&e, 1, "settled/checkpoint was made with the set of pictures");
    test_path tested = joined(data.s, "test/cat/cat.000.jpg"), retested = joined(data.s, "test/cat/other.jpg");
    assert_int_equal(rename(tested.s, retested.s), 0);
    run(&e, TRAIN(out.s, "--seed", "4", "--resume"));
    assert_int_equal(rename(retested.s, tested.s), 0);
    assert_refused(&e, 1, "settled/checkpoint was made with the set of test pictures");
    run(&e, TRAIN(out.s, "--seed", "4"));
    assert_refused(&e, 1, out.s, "unfinished run", "--resume", "--out");
    char *is = content(out.s, "checkpoint", &after);
    assert_int_equal(before, after);
    assert_memory_equal(was, is, before);
    put_bytes(out.s, "checkpoint", was, before / 2);
    run(&e, TRAIN(out.s, "--seed", "4", "--resume"));
    assert_refused(&e, 1, "settled/checkpoint", "truncated");
    run(&e, TRAIN(out.s, "--seed", "4"));
    assert_refused(&e, 1, "settled/checkpoint cannot be read as a run's", "--out");
    memcpy(was, "PCCKPT99", 8); /* of a later version */
    put_bytes(out.s, "checkpoint", was, before);
    run(&e, TRAIN(out.s, "--seed", "4"));
    assert_refused(&e, 1, "settled/checkpoint cannot be read as a run's", "--out");
    free(was);
    free(is);
    remove_root(&out);
}

/* Resuming a finished run gives the same files again; with more epochs it goes on; without --resume it begins anew. */
static void one_folder_again_and_again(void **state)
{
    (void)state;
    job_end e;
    test_path out = joined(root.s, "again"), two = joined(root.s, "two"), four = joined(root.s, "four");
    run(&e, TRAIN(two.s, "--epochs", "2"));
    assert_went_well(&e);
    run(&e, TRAIN(four.s, "--epochs", "4"));
    assert_went_well(&e);
    run(&e, TRAIN(out.s, "--epochs", "2", "--resume")); /* nothing there: from the start */
    assert_went_well(&e);
    assert_same_runs(two.s, out.s);
    run(&e, TRAIN(out.s, "--epochs", "2", "--resume"));
    assert_went_well(&e);
    assert_non_null(strstr(e.out, "going on after epoch 2"));
    assert_same_runs(two.s, out.s);
    run(&e, TRAIN(out.s, "--epochs", "4", "--resume"));
    assert_went_well(&e);
    assert_same_runs(four.s, out.s);
    put_bytes(out.s, "model.h5.paracord-0.tmp", "left by a kill", 14);
    put_bytes(out.s, "metrics.jsonl", "no record\nat all\n", 17);
    run(&e, TRAIN(out.s, "--epochs", "2"));
    assert_went_well(&e);
    assert_same_runs(two.s, out.s);
    remove_root(&out);
}

static void two_at_once(void **state)
{
    (void)state;
    job_end e;
    test_path out = joined(root.s, "shared");
    pid_t first = start_quietly(ARGUMENTS(TRAIN(out.s, "--epochs", "100000")));
    wait_for_file(out.s, "checkpoint");
    run(&e, TRAIN(out.s, "--epochs", "1", "--resume"));
    kill(first, SIGKILL);
    assert_int_equal(wait_for(first), -SIGKILL);
    assert_refused(&e, 1, "another run", out.s);
    remove_root(&out);
}

/* Softmax instead of sigmoid, and names that must be quoted. */
static void three_classes(void **state)
{
    (void)state;
    job_end e;
    static const char *const names[] = {"a \"cat\"", "b\\dog", "elk"};
    test_path three = joined(root.s, "three"), out = joined(root.s, "three-out");
    test_path model = joined(out.s, "model.h5"), picture = joined(three.s, "elk/a00.jpg");
    assert_int_equal(mkdir(three.s, 0777), 0);
    put_classes(three.s, names, 3, 6);
    run(&e, "train", three.s, "--size", "16", "--epochs", "3", "--out", out.s);
    assert_went_well(&e);
    assert_non_null(strstr(e.out, "15 pictures in"));
    run(&e, "eval", model.s, three.s);
    assert_went_well(&e);
    assert_non_null(strstr(e.out, "Pictures = 18\n"));
    run(&e, "eval", model.s, three.s, "--json");
    assert_non_null(strstr(e.out, "\"classes\": [\"a \\\"cat\\\"\", \"b\\\\dog\", \"elk\"]"));
    run(&e, "predict", model.s, picture.s);
    assert_went_well(&e);
    const char *probability = strstr(e.out, "Probability = ");
    assert_non_null(probability);
    assert_in_range((int)(1000 * atof(probability + 14)), 333, 1000); /* of the class that is named */
    run(&e, "show", model.s);
    assert_went_well(&e);
    assert_non_null(strstr(e.out, "softmax"));
    assert_non_null(strstr(e.out, "classes: a \"cat\", b\\dog, elk"));
}

/* Longer than most tables are made for. */
static void long_class_names(void **state)
{
    (void)state;
    static job_end e;
    char name[201];
    memset(name, 'n', 200);
    name[200] = 0;
    test_path two = joined(root.s, "long"), out = joined(root.s, "long-out"), model = joined(out.s, "model.h5");
    assert_int_equal(mkdir(two.s, 0777), 0);
    put_classes(two.s, (const char *[]){"cat", name}, 2, 3);
    run(&e, "train", two.s, "--size", "16", "--epochs", "1", "--val-split", "0", "--out", out.s);
    assert_went_well(&e);
    run(&e, "eval", model.s, two.s, "--json");
    assert_went_well(&e);
    assert_non_null(strstr(e.out, name));
}

/* A terminal is not told to change colours, title or lines by the name of a folder. */
static void names_of_classes_do_nothing(void **state)
{
    (void)state;
    static job_end e;
    const char *const odd = "a\x1b[31mRED\x1b]0;x\a\nb";
    test_path two = joined(root.s, "odd"), out = joined(root.s, "odd-out");
    assert_int_equal(mkdir(two.s, 0777), 0);
    put_classes(two.s, (const char *[]){odd}, 1, 12);
    put_classes(two.s, (const char *[]){"dog"}, 1, 2);
    run(&e, "train", two.s, "--size", "16", "--epochs", "1", "--out", out.s);
    assert_went_well(&e);
    assert_non_null(strstr(e.out, "(a?[31mRED?]0;x??b 10, dog 2)"));
    assert_non_null(strstr(e.out, "always saying a?[31mRED?]0;x??b would be right"));
    for (const char *c = e.out; *c; c++)
        assert_true(*c == '\n' || (unsigned char)*c >= ' ');
}

/* DIR itself, its test folder, and its classes. */
static void eval_finds_the_test_pictures(void **state)
{
    (void)state;
    static job_end e, f;
    test_path out = joined(root.s, "found"), model = joined(out.s, "model.h5");
    run(&e, TRAIN(out.s, "--epochs", "1"));
    run(&e, "eval", model.s, data.s);
    assert_went_well(&e);
    run(&f, "eval", model.s, joined(data.s, "test").s);
    assert_went_well(&f);
    assert_string_equal(e.out, f.out);
    assert_non_null(strstr(e.out, "Pictures = 8\n"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ctrl_c_saves_and_says_how_to_go_on),
        cmocka_unit_test(other_settings_are_named),
        cmocka_unit_test(one_folder_again_and_again),
        cmocka_unit_test(two_at_once),
        cmocka_unit_test(three_classes),
        cmocka_unit_test(long_class_names),
        cmocka_unit_test(names_of_classes_do_nothing),
        cmocka_unit_test(eval_finds_the_test_pictures),
    };
    return cmocka_run_group_tests_name("cli.job", tests, prepare, tidy);
}
