/* metrics.jsonl: what is written reads back, a torn line and later epochs are cut, the rest stays byte for byte. */
#include "comma.h"
#include "io/file.h"
#include "support.h"
#include "train/metrics.h"
#include "train/metrics_line.h"
#include "report/parts.h"

#include <locale.h>
#include <math.h>
#include <paracord/memory.h>
#include <stdlib.h>
#include <unistd.h>

static char folder[] = "/tmp/paracord-metrics-XXXXXX";
static char path[64];

static int make_folder(void **state)
{
    (void)state;
    if (!mkdtemp(folder))
        return -1;
    snprintf(path, sizeof path, "%s/metrics.jsonl", folder);
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    unlink(path);
    return rmdir(folder);
}

static void put(const char *text)
{
    assert_ok(pc__file_write(path, text, strlen(text)));
}

static void assert_content(const char *want)
{
    uint8_t *bytes;
    size_t n;
    assert_ok(pc__file_read(path, &bytes, &n));
    assert_string_equal((const char *)bytes, want);
    pc__free(bytes);
}

static pc__epoch_record sample(int epoch)
{
    return (pc__epoch_record){.epoch = epoch,
                              .loss = 0.1 + 0.2,
                              .accuracy = 0.5 + epoch / 128.0,
                              .test_loss = NAN,
                              .test_accuracy = NAN,
                              .test_balanced_accuracy = 0.25,
                              .seconds = 1e-300,
                              .images_per_second = 123456789.125,
                              .lr = 1e-3};
}

static void append_epochs(int first, int last)
{
    for (int epoch = first; epoch <= last; epoch++) {
        pc__epoch_record record = sample(epoch);
        assert_ok(pc__metrics_append(path, &record, NULL, 0));
    }
}

static void lines_read_back_exactly(void **state)
{
    (void)state;
    pc__history history;
    unlink(path);
    append_epochs(1, 3);
    assert_ok(pc__metrics_load(path, 3, &history));
    assert_int_equal(history.count, 3);
    for (int i = 0; i < 3; i++) {
        pc__epoch_record want = sample(i + 1), got = history.epochs[i];
        assert_int_equal(got.epoch, want.epoch);
        assert_true(got.loss == want.loss && got.accuracy == want.accuracy && got.seconds == want.seconds);
        assert_true(got.images_per_second == want.images_per_second && got.lr == want.lr);
        assert_true(isnan(got.test_loss) && isnan(got.test_accuracy));
    }
    pc__history_free(&history);
}

static void a_line_is_plain_json(void **state)
{
    (void)state;
    pc__epoch_record record = sample(7);
    record.test_loss = INFINITY;
    unlink(path);
    assert_ok(pc__metrics_append(path, &record, NULL, 0));
    assert_content("{\"epoch\": 7, \"loss\": 0.30000000000000004, \"accuracy\": 0.5546875, \"test_loss\": null, "
                   "\"test_accuracy\": null, \"test_balanced_accuracy\": 0.25, \"seconds\": 1e-300, "
                   "\"images_per_second\": 123456789.125, "
                   "\"lr\": 0.001}\n");
}

static void the_locale_changes_nothing(void **state)
{
    (void)state;
    char place[64] = "", shown[16];
    bool comma = comma_locale(folder, place, sizeof place);
    snprintf(shown, sizeof shown, "%.1f", 0.5);
    pc__history history = {0};
    pc__text abroad = {0}, at_home = {0};
    if (comma) {
        assert_string_equal(shown, "0,5");
        unlink(path);
        append_epochs(1, 1);
        assert_ok(pc__metrics_load(path, 1, &history));
        assert_ok(pc__report_render(&abroad, &(pc__report){.history = &history, .seconds = 12.5}));
        snprintf(shown, sizeof shown, "%.1f", 0.5);
    }
    comma_locale_end(place);
    if (!comma) {
        print_message("no locale with a decimal comma can be made here\n");
        skip();
    }
    assert_string_equal(shown, "0,5"); /* the thread's own locale came back */
    assert_int_equal(history.count, 1);
    assert_true(history.epochs[0].accuracy == 0.5078125);
    assert_ok(pc__report_render(&at_home, &(pc__report){.history = &history, .seconds = 12.5}));
    assert_string_equal(abroad.data, at_home.data);
    pc__text_free(&abroad);
    pc__text_free(&at_home);
    pc__history_free(&history);
}

static void later_epochs_are_cut(void **state)
{
    (void)state;
    pc__history history;
    unlink(path);
    append_epochs(1, 2);
    uint8_t *two;
    size_t n;
    assert_ok(pc__file_read(path, &two, &n));
    append_epochs(3, 5);
    assert_ok(pc__metrics_load(path, 2, &history));
    assert_int_equal(history.count, 2);
    pc__history_free(&history);
    assert_content((const char *)two);
    pc__free(two);
    assert_ok(pc__metrics_load(path, 0, &history));
    assert_int_equal(history.count, 0);
    assert_content("");
}

static void a_torn_line_is_cut(void **state)
{
    (void)state;
    static const char *const torn[] = {"{\"epoch\": 3, \"lo", "{", "{\"epoch\": 3, \"loss\": 0.", "\n", "\x01\x02"};
    for (int i = 0; i < PC__COUNT(torn); i++) {
        pc__history history;
        char text[128];
        snprintf(text, sizeof text, "{\"epoch\": 1}\n{\"epoch\": 2}\n%s", torn[i]);
        put(text);
        assert_ok(pc__metrics_load(path, 9, &history));
        assert_int_equal(history.count, 2);
        assert_content("{\"epoch\": 1}\n{\"epoch\": 2}\n");
        pc__history_free(&history);
    }
    static const char zeros[] = "{\"epoch\": 1}\n\0\0\0\0\0";
    assert_ok(pc__file_write(path, zeros, sizeof zeros));
    pc__history history;
    assert_ok(pc__metrics_load(path, 9, &history));
    assert_int_equal(history.count, 1);
    assert_content("{\"epoch\": 1}\n");
    pc__history_free(&history);
}

static void unknown_keys_stay(void **state)
{
    (void)state;
    const char *text =
        "{\"note\": \"a \\\"b\\\" }\", \"epoch\": 1, \"more\": {\"x\": [1, -2.5e3, {}, []], \"y\": true}, "
        "\"loss\": 2}\r\n";
    pc__history history;
    char without[256];
    snprintf(without, sizeof without, "%.*s", (int)strlen(text) - 1, text);
    put(without); /* a whole last record whose newline an editor took */
    assert_ok(pc__metrics_load(path, 9, &history));
    assert_content(text);
    assert_int_equal(history.count, 1);
    assert_true(history.epochs[0].loss == 2 && isnan(history.epochs[0].accuracy));
    pc__history_free(&history);
}

static void garbage_in_the_middle_is_an_error(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "hello",
        "[]",
        "{}",
        "{\"epoch\": 0}",
        "{\"epoch\": 1.5}",
        "{\"epoch\": 1e10}",
        "{\"epoch\": \"1\"}",
        "{\"epoch\": 1, \"loss\": \"x\"}",
        "{\"epoch\": 1, \"loss\": 0x10}",
        "{\"epoch\": 1, \"loss\": nan}",
        "{\"epoch\": 1} x",
        "{\"epoch\": 1,}",
        "{\"epoch\" 1}",
    };
    pc__history history;
    for (int i = 0; i < PC__COUNT(bad); i++) {
        char text[128];
        snprintf(text, sizeof text, "%s\n{\"epoch\": 2}\n", bad[i]);
        put(text);
        assert_fails(pc__metrics_load(path, 9, &history), PC_ERR_FORMAT, "line 1 is no record");
        assert_content(text);
        assert_null(history.epochs);
    }
    char deep[400] = "{\"epoch\": 1, \"x\": ";
    memset(deep + strlen(deep), '[', 300);
    assert_false(pc__metrics_line_read(deep, strlen(deep), &(pc__epoch_record){0}));
    put("{\"epoch\": 2}\n{\"epoch\": 2}\n{\"epoch\": 3}\n");
    assert_fails(pc__metrics_load(path, 9, &history), PC_ERR_FORMAT, "epoch 2 comes after epoch 2");
}

static void places_that_cannot_be_written(void **state)
{
    (void)state;
    pc__epoch_record record = sample(1);
    pc__history history;
    assert_fails(pc__metrics_append("/nowhere/metrics.jsonl", &record, NULL, 0), PC_ERR_FILE, "/nowhere/metrics.jsonl");
    if (access("/dev/full", W_OK) == 0) /* a full disk */
        assert_fails(pc__metrics_append("/dev/full", &record, NULL, 0), PC_ERR_FILE, "/dev/full");
    assert_fails(pc__metrics_load(folder, 1, &history), PC_ERR_FILE, "not a regular file");
    unlink(path);
    assert_ok(pc__metrics_load(path, 5, &history));
    assert_int_equal(history.count, 0);
    assert_true(access(path, F_OK) != 0);
}

static int left; /* allocations that still succeed */

static void *failing_alloc(void *context, size_t bytes, size_t alignment)
{
    (void)context, (void)alignment;
    return left-- > 0 ? malloc(bytes) : NULL;
}

static void *failing_resize(void *context, void *block, size_t bytes)
{
    (void)context;
    return left-- > 0 ? realloc(block, bytes) : NULL;
}

static void release(void *context, void *block)
{
    (void)context;
    free(block);
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    unlink(path);
    append_epochs(1, 20);
    const pc_allocator failing = {failing_alloc, failing_resize, release, NULL};
    pc__history history;
    pc__epoch_record record = sample(21);
    int64_t before = pc_allocator_live();
    bool done = false;
    assert_ok(pc_allocator_set(&failing));
    for (int n = 0; !done; n++) {
        assert_true(n < 100);
        left = n;
        pc_status status = pc__metrics_append(path, &record, NULL, 0);
        if (status == PC_OK)
            status = pc__metrics_load(path, 20, &history);
        assert_int_equal(status, pc_error_last()->status);
        assert_true(status == PC_OK || status == PC_ERR_MEMORY);
        done = status == PC_OK;
        if (done)
            pc__history_free(&history);
        assert_int_equal(pc_allocator_live(), before);
        pc_error_clear();
        left = 100;
        assert_ok(pc__metrics_load(path, 20, &history)); /* whatever failed, the twenty are there */
        assert_int_equal(history.count, 20);
        pc__history_free(&history);
    }
    assert_ok(pc_allocator_set(NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_read_back_exactly),
        cmocka_unit_test(a_line_is_plain_json),
        cmocka_unit_test(the_locale_changes_nothing),
        cmocka_unit_test(later_epochs_are_cut),
        cmocka_unit_test(a_torn_line_is_cut),
        cmocka_unit_test(unknown_keys_stay),
        cmocka_unit_test(garbage_in_the_middle_is_an_error),
        cmocka_unit_test(places_that_cannot_be_written),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests_name("train.metrics", tests, make_folder, remove_folder);
}
