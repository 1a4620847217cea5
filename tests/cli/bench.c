/* paracord bench as a user runs it, on PARACORD_TEST_DEVICE: the rows asked for and no others, whole JSON, a whole
 * picture or none, errors that name what would be right. What a time is, no test can know. */
#include "job.h"
#include "root.h"

#include "device.h"

#include <math.h>

#include <paracord/image.h>

#if PC_HAVE_CJSON
#include <cjson/cJSON.h>
#endif

static job_end e;

#define ON "--device", test_device_name()

static void assert_prints(const char *words)
{
    if (!strstr(e.out, words))
        fail_msg("no \"%s\" in:\n%s", words, e.out);
}

static void text_has_the_rows(void **state)
{
    (void)state;
    run(&e, "bench", "launch", "sync", "saxpy", ON);
    assert_went_well(&e);
    assert_prints("SIMD level ");
    assert_prints("\nsaxpy ");
    assert_prints("\nlaunch.kernel ");
    assert_prints("\nlaunch.graph ");
    assert_prints("\nsync ");
    assert_prints("memory at most");
    assert_null(strstr(e.out, "product"));
    assert_null(strstr(e.out, "stream."));
}

/* A row that this device has not says why; that is no failure. */
static void what_is_not_there_says_so(void **state)
{
    (void)state;
    if (test_device().type == PC_CUDA)
        skip();
    run(&e, "bench", "product.tf32", ON);
    assert_went_well(&e);
    assert_prints("not measured: product.tf32: only GPUs multiply in TF32");
}

#if PC_HAVE_CJSON
static double number(const cJSON *object, const char *name)
{
    const cJSON *value = cJSON_GetObjectItemCaseSensitive(object, name);
    if (!cJSON_IsNumber(value))
        fail_msg("no number %s in %s", name, cJSON_Print(object));
    return value->valuedouble;
}

static const char *words(const cJSON *object, const char *name)
{
    const cJSON *value = cJSON_GetObjectItemCaseSensitive(object, name);
    if (!cJSON_IsString(value))
        fail_msg("no text %s in %s", name, cJSON_Print(object));
    return value->valuestring;
}

/* What is measured has times in order, a rate that is amount over median, a share that is rate over limit. */
static void assert_measured(const cJSON *r)
{
    const double median = number(r, "median_s"), low = number(r, "low_quarter_s"), high = number(r, "high_quarter_s");
    assert_true(low > 0 && low <= median && median <= high);
    assert_true(number(r, "first_call_s") > 0);
    assert_true(number(r, "samples") >= 5 && number(r, "goes_per_sample") >= 1);
    if (!cJSON_IsString(cJSON_GetObjectItem(r, "unit")))
        return;
    const double rate = number(r, "rate");
    assert_true(fabs(rate * median / number(r, "amount") - 1) < 1e-3);
    const cJSON *limit = cJSON_GetObjectItem(r, "limit");
    if (cJSON_IsNumber(cJSON_GetObjectItem(limit, "rate"))) {
        assert_true(fabs(number(r, "share") * number(limit, "rate") / rate - 1) < 1e-3);
        assert_true(*words(limit, "origin"));
    } else
        assert_true(cJSON_IsNull(cJSON_GetObjectItem(r, "share")));
}

static const cJSON *row_of(const cJSON *all, const char *name)
{
    const cJSON *r;
    cJSON_ArrayForEach(r, cJSON_GetObjectItem(all, "results")) if (!strcmp(words(r, "row"), name)) return r;
    fail_msg("no row %s in %s", name, e.out);
    return NULL;
}

static void json_has_every_row(void **state)
{
    (void)state;
    const bool copies = test_device().type != PC_CPU;
    static const char *const rows[] = {"copy.device",  "add",         "saxpy",       "stream.copy",  "stream.triad",
                                       "stream.one",   "product.f64", "product.f32", "product.f16",  "product.bf16",
                                       "launch.graph", "sync",        "disk",        "launch.kernel"};
    static const char *const far[] = {"copy.to-device",     "copy.to-host",     "copy.both",
                                      "pageable.to-device", "pageable.to-host", "overlap"};
    run(&e, "bench", "--json", "--disk", root.s, ON);
    assert_went_well(&e);
    cJSON *all = cJSON_Parse(e.out);
    if (!all)
        fail_msg("no JSON: %s", e.out);
    assert_string_equal(words(all, "device"), test_device_name());
    assert_true(number(all, "cpu_threads") >= 1 && number(all, "seconds") > 0);
    assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(all, "results")), 22);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_measured(row_of(all, rows[i]));
    for (size_t i = 0; i < sizeof far / sizeof *far; i++) {
        const cJSON *r = row_of(all, far[i]);
        if (copies) {
            assert_measured(r);
        } else {
            assert_true(cJSON_IsNull(cJSON_GetObjectItem(r, "median_s")));
            assert_non_null(strstr(words(r, "verdict"), "not measured: this device computes in the host's memory"));
        }
    }
    assert_non_null(strstr(words(row_of(all, "disk"), "verdict"), "lies in memory"));
    cJSON_Delete(all);
}
#endif

/* The picture closes what it opens, and has the roofs and the dots. */
static void the_roofline_is_whole(void **state)
{
    (void)state;
    test_path path = joined(root.s, "roof.svg"), pixels = joined(root.s, "roof.png");
    run(&e, "bench", "saxpy", "product.f32", "--svg", path.s, "--png", pixels.s, ON);
    assert_went_well(&e);
    pc_image picture;
    assert_ok(pc_image_read(pixels.s, PC_OPTIONS(pc_image_options, .channels = 3), &picture));
    pc_image_free(&picture);
    static char svg[65536];
    FILE *file = fopen(path.s, "r");
    assert_non_null(file);
    svg[fread(svg, 1, sizeof svg - 1, file)] = 0;
    fclose(file);
    assert_int_equal(strncmp(svg, "<svg xmlns=", 11), 0);
    assert_string_equal(svg + strlen(svg) - 7, "</svg>\n");
    static const char *const parts[] = {">memory: ", ">saxpy ", ">product.f32 ", "Roofline of ", "class=\"a-f32\""};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (!strstr(svg, parts[i]))
            fail_msg("no %s in %s", parts[i], svg);
    assert_null(strstr(svg, "nan"));
    assert_null(strstr(svg, "inf"));
    assert_no_temporaries(root.s);
}

/* Rows without a place in it: axes, and nothing that is no number. */
static void a_roofline_can_be_empty(void **state)
{
    (void)state;
    test_path path = joined(root.s, "empty.svg");
    run(&e, "bench", "product.tf32", "--svg", path.s, "--device", "cpu");
    assert_went_well(&e);
    assert_true(exists(root.s, "empty.svg"));
}

/* A link that leads to nothing yet stays one; a file that others may not read stays so; a neighbour's name is its own. */
static void pictures_go_through_links(void **state)
{
    (void)state;
    struct stat info;
    const test_path path = joined(root.s, "link.svg"), aim = joined(root.s, "aim.svg");
    put_bytes(root.s, "aim.svg.tmp", "mine", 4);
    put_bytes(root.s, "aim.svg.paracord-0.tmp", "left by a kill", 14);
    put_link(root.s, "link.svg", "aim.svg");
    for (int i = 0; i < 2; i++) {
        run(&e, "bench", "product.tf32", "--svg", path.s, "--device", "cpu");
        assert_went_well(&e);
        assert_int_equal(lstat(path.s, &info), 0);
        assert_true(S_ISLNK(info.st_mode));
        assert_int_equal(stat(aim.s, &info), 0);
        assert_true(info.st_size > 0);
        if (i)
            assert_int_equal(info.st_mode & 0777, 0600);
        assert_int_equal(chmod(aim.s, 0600), 0);
    }
    assert_int_equal(files_with(root.s, "aim.svg"), 2);
    const test_path taken = joined(root.s, "aim.svg.paracord-0.tmp"); /* a name that nobody can write to is passed by */
    assert_int_equal(mkdir(taken.s, 0700), 0);
    run(&e, "bench", "product.tf32", "--svg", path.s, "--device", "cpu");
    assert_went_well(&e);
    assert_int_equal(rmdir(taken.s), 0);
    assert_int_equal(unlink(joined(root.s, "aim.svg.tmp").s), 0);
}

/* A full disk leaves the old picture. */
static void a_picture_that_fails_leaves_the_old_one(void **state)
{
    (void)state;
    test_path path = joined(root.s, "old.svg");
    FILE *file = fopen(path.s, "w");
    assert_non_null(file);
    fputs("old", file);
    fclose(file);
    run_limited(&e, (job_limits){.file_bytes = 100}, ARGUMENTS("bench", "sync", "--svg", path.s, "--device", "cpu"));
    assert_int_equal(e.status, 1);
    char text[8] = "";
    file = fopen(path.s, "r");
    assert_non_null(file);
    text[fread(text, 1, sizeof text - 1, file)] = 0;
    fclose(file);
    assert_string_equal(text, "old");
}

static void bad_input(void **state)
{
    (void)state;
    test_path nowhere = joined(root.s, "no/such/place.svg");
#define REFUSED(status, word, ...)                                                                                     \
    do {                                                                                                               \
        run(&e, __VA_ARGS__);                                                                                          \
        assert_refused(&e, status, word);                                                                              \
    } while (0)
    REFUSED(2, "must be copy, pageable, add, saxpy", "bench", "nonsense");
    REFUSED(2, "ROW prod: must be", "bench", "prod");
    REFUSED(2, "ROW must not be empty", "bench", "");
    REFUSED(2, "write auto, cpu, sim:N or cuda:N", "bench", "--device", "gpu");
    REFUSED(1, "the devices are: ", "bench", "--device", "sim:60");
    REFUSED(1, "No such file or directory", "bench", "--svg", nowhere.s);
    REFUSED(1, "Is a directory", "bench", "--svg", root.s);
    REFUSED(1, "No such file or directory", "bench", "--png", nowhere.s);
    REFUSED(1, "no ordinary file", "bench", "--svg", "/dev/null");
    REFUSED(1, "could not be measured", "bench", "disk", "--disk", "/nonexistent", "--device", "cpu");
    assert_prints("a file in /nonexistent: No such file or directory");
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(text_has_the_rows),
    cmocka_unit_test(what_is_not_there_says_so),
#if PC_HAVE_CJSON
    cmocka_unit_test(json_has_every_row),
#endif
    cmocka_unit_test(the_roofline_is_whole),
    cmocka_unit_test(a_roofline_can_be_empty),
    cmocka_unit_test(pictures_go_through_links),
    cmocka_unit_test(a_picture_that_fails_leaves_the_old_one),
    cmocka_unit_test(bad_input),
};

int main(void)
{
    (void)test_device(); /* skipped where it is not there */
    return cmocka_run_group_tests_name("cli.bench", tests, make_root, drop_root);
}
