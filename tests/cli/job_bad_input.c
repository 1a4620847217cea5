/* Bad input to the command: one line on stderr that names the thing and the cause, the right exit status, and nothing
 * left that is half written. */
#include "job.h"

static test_path root, data, plain, model, out;

/* One trained network for those who use one, and a plain folder of classes. */
static int prepare(void **state)
{
    (void)state;
    job_end e;
    root = new_root();
    data = joined(root.s, "data");
    plain = joined(root.s, "data/train");
    out = joined(root.s, "out");
    model = joined(root.s, "fine/model.h5");
    draw_pictures(data.s, 6, 3);
    run(&e, "train", data.s, "--epochs", "1", "--size", "24", "--out", joined(root.s, "fine").s);
    assert_went_well(&e);
    return 0;
}

static int tidy(void **state)
{
    (void)state;
    remove_root(&root);
    return 0;
}

static void copy_file(const char *from, const char *to, double share)
{
    size_t n;
    char *bytes = content("", from, &n);
    put_bytes("", to, bytes, (size_t)((double)n * share));
    free(bytes);
}

/* A new folder of classes with `count` pictures each. */
static test_path classes(const char *name, const char *const *names, int class_count, int count)
{
    test_path folder = joined(root.s, name);
    assert_int_equal(mkdir(folder.s, 0777), 0);
    put_classes(folder.s, names, class_count, count);
    return folder;
}

#define CAT_DOG ((const char *[]){"cat", "dog"}), 2

static void assert_nothing_written(void)
{
    assert_false(exists(root.s, "out"));
}

static void absurd_values_are_wrong_usage(void **state)
{
    (void)state;
    static const char *const values[][3] = {
        {"--epochs", "0", "1 to 100000"},
        {"--epochs", "2.5", "whole number"},
        {"--epochs", "99999999999999999999", "1 to 100000"},
        {"--batch", "-3", "1 to 65536"},
        {"--size", "1e9", "whole number"},
        {"--size", "1000000000", "8 to 4096"},
        {"--size", "", "whole number"},
        {"--lr", "nan", "more than 0"},
        {"--lr", "inf", "more than 0"},
        {"--lr", "-1", "more than 0"},
        {"--lr", "0x10", "a number"},
        {"--zoom", "7", "0 to 0.99"},
        {"--shear", "-1", "0 to 89"},
        {"--momentum", "1", "0 to 0.9999"},
        {"--val-split", "1", "0 to 0.9"},
        {"--threads", "99999999", "0 to 1024"},
        {"--seed", "-1", "whole number, 0 or more"},
        {"--seed", "18446744073709551616", "at most"},
        {"--arch", "alexnet", "article, two-conv, mlp, lenet, vgg11"},
        {"--optimizer", "adma", "did you mean adam?"},
        {"--out", "", "empty"},
        {"--device", "", "empty"},
    };
    job_end e;
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        run(&e, "train", data.s, "--out", out.s, values[i][0], values[i][1]);
        assert_refused(&e, 2, values[i][0], values[i][2]);
    }
    run(&e, "train", data.s, "--out", out.s, "--bogus");
    assert_refused(&e, 2, "--bogus");
    run(&e, "train", "--out", out.s);
    assert_refused(&e, 2, "DIR is missing");
    run(&e, "train", data.s, "--out", out.s, "--epochs");
    assert_refused(&e, 2, "--epochs: needs a value");
    assert_nothing_written();
}

static void wrong_settings_fail(void **state)
{
    (void)state;
    job_end e;
    run(&e, "train", data.s, "--out", out.s, "--device", "abacus");
    assert_refused(&e, 2, "abacus", "cpu");
    run(&e, "train", data.s, "--out", out.s, "--device", "cpu:7");
    assert_refused(&e, 2, "cpu:7");
    run(&e, "train", data.s, "--out", out.s, "--arch", "lenet", "--size", "8");
    assert_refused(&e, 1, "8 x 8 are too small for lenet");
    assert_nothing_written();
}

static void folders_that_do_not_fit(void **state)
{
    (void)state;
    job_end e;
    test_path one = classes("one", (const char *[]){"cat"}, 1, 2), empty = classes("empty", CAT_DOG, 2);
    test_path few = classes("few", CAT_DOG, 3);
    assert_int_equal(mkdir(joined(empty.s, "elk").s, 0777), 0);
    test_path picture = joined(few.s, "cat/a00.jpg"), flat = joined(few.s, "cat"), gone = joined(root.s, "gone");
    const char *const refused[][3] = {
        {gone.s, gone.s, "No such file"},
        {one.s, one.s, "one class only, cat"},
        {empty.s, "class elk has no pictures", empty.s},
        {picture.s, picture.s, "is not a folder"},
        {flat.s, flat.s, "no class folders"},
    };
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        run(&e, "train", refused[i][0], "--out", out.s);
        assert_refused(&e, 1, refused[i][1], refused[i][2]);
    }
    assert_nothing_written();
    run(&e, "train", few.s, "--out", out.s, "--epochs", "1");
    assert_went_well(&e);
    assert_non_null(strstr(e.out,
                           "too few pictures to hold a share back, all are for training: cat 3, dog 3; nothing is "
                           "left to test on (--val-split 0.2)\n"));
    remove_root(&out);
    run(&e, "train", few.s, "--out", out.s, "--val-split", "0.4", "--epochs", "1");
    assert_went_well(&e);
    assert_non_null(strstr(e.out, "4 pictures in"));
    assert_non_null(strstr(e.out, "(cat 2, dog 2); another 2 to test on, held back from training\n"));
    remove_root(&out);
    run(&e, "train", few.s, "--out", out.s, "--val-split", "0", "--epochs", "1");
    assert_went_well(&e);
    assert_null(strstr(e.out, "to test on"));
    remove_root(&out);
}

static void broken_pictures(void **state)
{
    (void)state;
    job_end e;
    test_path folder = classes("broken", CAT_DOG, 5);
    put_picture(folder.s, "cat/k.jpg", 9);
    cut(folder.s, "cat/k.jpg", 0.7);
    put_bytes(folder.s, "cat/z\xff\n.jpg", "", 0);
    put_bytes(folder.s, "dog/t.jpg", "hello", 5);
    run(&e, "train", folder.s, "--out", out.s, "--epochs", "1", "--strict");
    assert_refused(&e, 1, "broken/cat/k.jpg is truncated");
    assert_nothing_written();
    run(&e, "train", folder.s, "--out", out.s, "--epochs", "1");
    assert_went_well(&e);
    assert_non_null(strstr(e.err, "skipped"));
    assert_non_null(strstr(e.err, "cat/k.jpg: is truncated"));
    assert_non_null(strstr(e.err, "cat/z\xff?.jpg: is an empty file\n"));
    assert_non_null(strstr(e.err, "dog/t.jpg: is a text file"));
    assert_non_null(strstr(e.out, "3 pictures could not be used"));
    assert_true(exists(out.s, "model.h5"));
    remove_root(&out);
    run(&e, "predict", model.s, joined(folder.s, "dog/t.jpg").s);
    assert_refused(&e, 1, "dog/t.jpg is a text file");
    run(&e, "predict", model.s, joined(folder.s, "dog/t.jpg").s, joined(folder.s, "dog/a00.jpg").s, folder.s);
    assert_int_equal(e.status, 1);
    assert_non_null(strstr(e.out, "dog/a00.jpg\nPrediction = "));
}

/* A picture of one pixel, and names that are no UTF-8 or hold a newline. */
static void odd_pictures_are_fine(void **state)
{
    (void)state;
    job_end e;
    pc_image image;
    test_path folder = classes("odd", CAT_DOG, 5);
    assert_ok(pc_image_new(1, 1, 3, &image));
    assert_ok(pc_image_write(&image, joined(folder.s, "cat/one.png").s));
    assert_ok(pc_image_write(&image, joined(folder.s, "dog/caf\xe9\n \xff.jpg").s));
    pc_image_free(&image);
    run(&e, "train", folder.s, "--out", out.s, "--epochs", "1", "--strict");
    assert_went_well(&e);
    run(&e, "predict", model.s, joined(folder.s, "dog/caf\xe9\n \xff.jpg").s, joined(folder.s, "cat/one.png").s);
    assert_went_well(&e);
    remove_root(&out);
}

static void folders_that_cannot_be_written(void **state)
{
    (void)state;
    job_end e;
    test_path file = joined(root.s, "file"), below = joined(root.s, "file/a/b");
    put_bytes(root.s, "file", "x", 1);
    run(&e, "train", data.s, "--out", file.s);
    assert_refused(&e, 1, file.s, "Not a directory");
    run(&e, "train", data.s, "--out", below.s);
    assert_refused(&e, 1, file.s, "Not a directory");
    run(&e, "train", data.s, "--out", "/proc/paracord");
    assert_refused(&e, 1, "/proc/paracord");
    run(&e, "train", data.s, "--out", "/proc");
    assert_refused(&e, 1, "cannot write /proc/metrics.jsonl");
    if (geteuid() == 0)
        return;
    test_path closed = joined(root.s, "closed");
    assert_int_equal(mkdir(closed.s, 0555), 0);
    run(&e, "train", data.s, "--out", closed.s);
    assert_refused(&e, 1, "cannot write", closed.s, "Permission denied");
}

/* Files can grow to so many bytes, as if the disk were full then; with room again the run goes on. */
static void a_full_disk(void **state)
{
    (void)state;
    job_end e;
    const char *const *train = ARGUMENTS("train", data.s, "--out", out.s, "--size", "24", "--epochs", "1", "--resume",
                                         "--optimizer", "sgd", "--keep", "last");
    run_limited(&e, (job_limits){.file_bytes = 100000}, train); /* the checkpoint has about 268,000 */
    assert_refused(&e, 1, "cannot write", "out/checkpoint", "File too large");
    assert_false(exists(out.s, "checkpoint") || exists(out.s, "model.h5"));
    assert_no_temporaries(out.s);
    run_limited(&e, (job_limits){.file_bytes = 275000}, train); /* the network about 288,000 */
    assert_refused(&e, 1, "cannot write", "out/model.h5", "File too large");
    assert_true(exists(out.s, "checkpoint"));
    assert_false(exists(out.s, "model.h5"));
    assert_no_temporaries(out.s);
    run_limited(&e, (job_limits){0}, train);
    assert_went_well(&e);
    assert_non_null(strstr(e.out, "going on after epoch 1"));
    test_path alone = joined(root.s, "alone");
    run(&e, "train", data.s, "--out", alone.s, "--size", "24", "--epochs", "1", "--optimizer", "sgd", "--keep", "last");
    assert_same_runs(out.s, alone.s);
    remove_root(&out);
    remove_root(&alone);
}

static void not_enough_memory(void **state)
{
    (void)state;
    if (SANITIZED) /* their shadow takes more than any limit */
        skip();
    job_end e;
    job_limits limits = {.memory_bytes = (rlim_t)1500 << 20};
    run_limited(&e, limits,
                ARGUMENTS("train", data.s, "--out", out.s, "--arch", "mlp", "--size", "1024", "--threads", "1"));
    assert_refused(&e, 1, "out of memory", "GB left; training takes");
    assert_nothing_written();
}

static void preparations_that_cannot_be(void **state)
{
    (void)state;
    static const char *const values[][3] = {
        {"--rescale", "1/0", "must be a number other than 0"},
        {"--mean", "1,2", "must be a number, or three for red, green and blue"},
        {"--std", "0", "--std 0: must not be 0"},
        {"--std", "1,0,1", "--std 1,0,1: must not be 0"},
        {"--classes", "a", "knows 2 classes, and 1 name is given"},
        {"--classes", "a,a", "classes 0 and 1 are both called a"},
    };
    job_end e;
    test_path picture = joined(plain.s, "cat/cat.000.jpg");
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        run(&e, "predict", model.s, picture.s, values[i][0], values[i][1]);
        if (e.status != 2 || !strstr(e.err, values[i][2]))
            fail_msg("%s %s: status %d, and %s", values[i][0], values[i][1], e.status, e.err);
        run(&e, "show", model.s, values[i][0], values[i][1]);
        assert_int_equal(e.status, 2);
    }
    run(&e, "eval", model.s, plain.s, "--device", "foo");
    assert_refused(&e, 2, "\"foo\" is no device; write auto, cpu, sim:N or cuda:N");
}

static void no_models(void **state)
{
    (void)state;
    job_end e;
    test_path picture = joined(plain.s, "cat/cat.000.jpg"), part = joined(root.s, "part.h5");
    static const double shares[] = {0, 0.0001, 0.01, 0.3, 0.999};
    for (size_t i = 0; i < sizeof shares / sizeof *shares; i++) {
        copy_file(model.s, part.s, shares[i]);
        run(&e, "show", part.s);
        assert_refused(&e, 1, part.s);
    }
    run(&e, "show", picture.s);
    assert_refused(&e, 1, picture.s, "is not an HDF5 file");
    run(&e, "predict", root.s, picture.s);
    assert_refused(&e, 1, root.s, "neither model.h5 nor model.safetensors");
    run(&e, "eval", picture.s, plain.s);
    assert_refused(&e, 1, picture.s, "is not an HDF5 file");
    test_path weights = joined(PC_TEST_GOLDEN, "keras2_weights.h5");
    run(&e, "show", weights.s);
    assert_refused(&e, 1, weights.s);
}

/* Put `now` over the first `was` in a copy of the model; both of one length. */
static test_path patched(const char *was, const char *now)
{
    size_t n, length = strlen(was);
    char *bytes = content("", model.s, &n), *found = memmem(bytes, n, was, length);
    test_path path = joined(root.s, "patched.h5");
    assert_non_null(found);
    assert_int_equal(strlen(now), length);
    memcpy(found, now, length);
    put_bytes("", path.s, bytes, n);
    free(bytes);
    return path;
}

static void wrong_models(void **state)
{
    (void)state;
    job_end e;
    static const char *const changes[][3] = {
        {"\"class_name\": \"MaxPooling2D\"", "\"class_name\": \"MaxPoolingXD\"", "MaxPoolingXD"},
        {"\"filters\": 32", "\"filters\": 33", "has the shape"},
        {"\"units\": 128", "\"units\": 129", "has the shape"},
        {"\"activation\": \"relu\"", "\"activation\": \"relv\"", "relv"},
        {"\"class_name\": \"Sequential\"", "\"class_name\": \"Subsequent\"", "Subsequent"},
    };
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        test_path path = patched(changes[i][0], changes[i][1]);
        run(&e, "show", path.s);
        assert_refused(&e, 1, path.s, changes[i][2]);
        run(&e, "predict", path.s, joined(plain.s, "cat/cat.000.jpg").s);
        assert_refused(&e, 1, path.s, changes[i][2]);
    }
    test_path others = classes("others", (const char *[]){"cat", "elk"}, 2, 2);
    run(&e, "eval", model.s, others.s);
    assert_refused(&e, 1, others.s, "dog");
    test_path more = classes("more", (const char *[]){"cat", "dog", "elk"}, 3, 2);
    run(&e, "eval", model.s, more.s);
    assert_refused(&e, 1, "more/elk", "cat, dog");
    run(&e, "eval", model.s, joined(root.s, "gone").s);
    assert_refused(&e, 1, "gone");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(absurd_values_are_wrong_usage),
        cmocka_unit_test(wrong_settings_fail),
        cmocka_unit_test(folders_that_do_not_fit),
        cmocka_unit_test(broken_pictures),
        cmocka_unit_test(odd_pictures_are_fine),
        cmocka_unit_test(folders_that_cannot_be_written),
        cmocka_unit_test(a_full_disk),
        cmocka_unit_test(not_enough_memory),
        cmocka_unit_test(preparations_that_cannot_be),
        cmocka_unit_test(no_models),
        cmocka_unit_test(wrong_models),
    };
    return cmocka_run_group_tests_name("cli.job_bad_input", tests, prepare, tidy);
}
