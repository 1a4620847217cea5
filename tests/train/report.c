/* report.html: well-formed whatever the run and its texts are like, and free of anything outside itself. */
#include "io/file.h"
#include "report/axis.h"
#include "report/parts.h"
#include "support.h"

#include <ctype.h>
#include <math.h>
#include <paracord/memory.h>
#include <stdlib.h>
#include <unistd.h>

static const uint8_t png[] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n', 1};
static const uint8_t jpeg[] = {0xff, 0xd8, 0xff, 0xe0};
static const char hostile[] = "<script>&\"'\xff\xc3\x28\x01\xe2\x82\xac\xed\xa0\x80</script>";

/* ---- a small checker of markup */

typedef struct checker {
    char open[64][16];
    int depth, tags;
} checker;

static bool never_closed(const char *name)
{
    static const char *const names[] = {"meta", "link", "img", "br"};
    for (int i = 0; i < PC__COUNT(names); i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return false;
}

/* Check the tag at `at` ("<...") and give back what follows it: attributes quoted, closing tags fit. */
static const char *check_tag(checker *c, const char *at)
{
    char name[16] = "";
    bool closing = at[1] == '/';
    at += 1 + closing;
    for (int n = 0; isalnum((unsigned char)*at) && n < 15; n++)
        name[n] = *at++, name[n + 1] = 0;
    if (!name[0])
        fail_msg("a bare < before \"%.40s\"", at);
    char quote = 0;
    bool self = false;
    for (; *at && (quote || *at != '>'); at++) {
        if (quote && *at == quote)
            quote = 0;
        else if (!quote && (*at == '"' || *at == '\''))
            quote = *at;
        else if (!quote && *at == '<')
            fail_msg("a < inside the tag %s", name);
        self = !quote && *at == '/';
    }
    assert_int_equal(*at, '>');
    c->tags++;
    if (closing) {
        if (!c->depth || strcmp(c->open[c->depth - 1], name) != 0)
            fail_msg("</%s> closes <%s> before \"%.60s\"", name, c->depth ? c->open[c->depth - 1] : "", at);
        c->depth--;
    } else if (!self && !never_closed(name)) {
        assert_true(c->depth < 64);
        strcpy(c->open[c->depth++], name);
    }
    return at + 1;
}

static void check_entity(const char *at)
{
    static const char *const known[] = {"&amp;", "&lt;", "&gt;", "&quot;", "&#39;"};
    for (int i = 0; i < PC__COUNT(known); i++)
        if (strncmp(at, known[i], strlen(known[i])) == 0)
            return;
    fail_msg("a bare & before \"%.40s\"", at);
}

static void check_utf8(const unsigned char *s)
{
    for (; *s; s++) {
        int more = *s < 0x80 ? 0 : *s >= 0xf0 ? 3 : *s >= 0xe0 ? 2 : 1;
        assert_true(*s == '\n' || *s == '\t' || *s >= ' ');
        assert_true(*s < 0x80 || *s >= 0xc2);
        while (more--)
            assert_int_equal(*++s & 0xc0, 0x80);
    }
}

static void check(const pc__text *html)
{
    assert_int_equal(strlen(html->data), html->length);
    assert_memory_equal(html->data, "<!DOCTYPE html>\n", 16);
    check_utf8((const unsigned char *)html->data);
    checker c = {.depth = 0};
    for (const char *at = html->data + 16; *at;) {
        const char *inside = c.depth ? c.open[c.depth - 1] : "";
        bool sheet = strcmp(inside, "style") == 0 || strcmp(inside, "script") == 0;
        if (*at == '<') {
            at = check_tag(&c, at);
            continue;
        }
        if (*at == '&' && !sheet)
            check_entity(at);
        at++;
    }
    assert_int_equal(c.depth, 0);
    assert_true(c.tags > 20);
    static const char *const banned[] = {"<script>&", "http:", "https:", "@import", "url(", "nan", ":inf,", "=-"};
    for (int i = 0; i < PC__COUNT(banned); i++)
        if (strstr(html->data, banned[i]))
            fail_msg("%s in the report: %.60s", banned[i], strstr(html->data, banned[i]));
}

/* ---- reports to check */

static pc__report full_report(pc__history *history)
{
    static const pc__report_setting settings[] = {{"arch", "two-conv"}, {hostile, hostile}, {"none", NULL}};
    static const pc__report_class classes[] = {{"cat", 500, 140}, {hostile, -1, -1}};
    static const pc__report_file skipped[] = {{hostile, hostile}, {"a.jpg", "empty"}},
                                 damaged[] = {{hostile, hostile}, {"b.gif", "it ends early"}};
    static const int64_t confusion[] = {96, 44, 41, 99};
    static const pc__report_sample samples[] = {
        {"a.jpg", "cat", "cat", 0.75, jpeg, sizeof jpeg},
        {hostile, hostile, "dog", NAN, png, sizeof png},
        {NULL, NULL, NULL, 7, (const uint8_t *)"GIF", 3},
        {"c", "cat", NULL, -INFINITY, NULL, 0},
    };
    return (pc__report){
        .title = hostile,
        .notice = hostile,
        .command = "paracord train --epochs 25 it's",
        .date = "2026-07-20T14:03:12Z",
        .device = "cpu",
        .version = "0.1.0",
        .seconds = 192.4,
        .planned_epochs = 30,
        .settings = settings,
        .setting_count = 3,
        .network = "Conv2d\n<Linear>",
        .data = hostile,
        .classes = classes,
        .class_count = 2,
        .skipped = {skipped, 2, 31},
        .damaged = {damaged, 2, 1207},
        .history = history,
        .confusion = confusion,
        .samples = samples,
        .sample_count = 4,
    };
}

static pc__history make_history(int count)
{
    pc__history history = {0};
    for (int epoch = 1; epoch <= count; epoch++) {
        pc__epoch_record record = pc__epoch_unknown(epoch);
        record.loss = 0.7 / epoch, record.accuracy = 1 - 0.5 / epoch;
        record.test_loss = 0.6 + 0.01 * (epoch % 7), record.test_accuracy = 0.6 + 0.01 * (epoch % 5);
        record.seconds = 1.5, record.images_per_second = 1234.5, record.lr = 1e-3;
        assert_ok(pc__history_add(&history, &record));
    }
    return history;
}

static char *render(const pc__report *report)
{
    pc__text html = {0};
    assert_ok(pc__report_render(&html, report));
    check(&html);
    return html.data;
}

static void assert_says(const char *html, const char *words)
{
    if (!strstr(html, words))
        fail_msg("the report does not say \"%s\"", words);
}

static int occurrences(const char *html, const char *words)
{
    int n = 0;
    for (; (html = strstr(html, words)); html++)
        n++;
    return n;
}

static void a_full_report_says_everything(void **state)
{
    (void)state;
    pc__history history = make_history(25);
    pc__report report = full_report(&history);
    char *html = render(&report);
    assert_says(html, "&lt;script&gt;&amp;&quot;&#39;\ufffd\ufffd(\ufffd\u20ac\ufffd\ufffd\ufffd&lt;/script&gt;");
    assert_says(html, "25 of 30 epochs");
    assert_says(html, "2026-07-20 14:03 UTC");
    assert_says(html, "195 of 280 pictures right");
    assert_says(html, "95\u202f% interval 64.0 to 74.7\u202f%");
    assert_says(html, "3\u202fmin 12\u202fs");
    assert_says(html, "1,235");
    assert_says(html, "31 files were skipped");
    assert_says(html, "and 29 more");
    assert_says(html, "1,207 files are damaged</b> and used all the same");
    assert_says(html, "<td class='path'>b.gif</td><td>it ends early</td>");
    assert_says(html, "and 1,205 more");
    assert_says(html, "data:image/jpeg;base64,/9j/4A==");
    assert_says(html, "data:image/png;base64,iVBORw0KGgoB");
    assert_int_equal(occurrences(html, "no picture"), 2);
    assert_int_equal(occurrences(html, "class='shot right'"), 1);
    assert_int_equal(occurrences(html, "class='shot wrong'"), 1);
    assert_int_equal(occurrences(html, "<svg"), 2);
    pc__free(html);
    pc__history_free(&history);
}

static void the_same_report_gives_the_same_bytes(void **state)
{
    (void)state;
    pc__history history = make_history(3);
    pc__report report = full_report(&history);
    char *one = render(&report), *two = render(&report);
    assert_string_equal(one, two);
    pc__free(one);
    pc__free(two);
    pc__history_free(&history);
}

static void nothing_known_is_not_shown_as_zero(void **state)
{
    (void)state;
    pc__history none = {0};
    char *html = render(&(pc__report){0});
    assert_says(html, "Training run");
    assert_says(html, "No epoch is finished yet");
    assert_null(strstr(html, "<svg"));
    assert_null(strstr(html, "0.0"));
    pc__free(html);
    html = render(&(pc__report){.history = &none, .planned_epochs = 25});
    assert_says(html, "0 of 25 epochs");
    pc__free(html);
    pc__epoch_record unknown = pc__epoch_unknown(1);
    html = render(&(pc__report){.final = &unknown});
    assert_says(html, "<h3>Test accuracy</h3><p class='value'><span class='none'>\u2013</span>");
    pc__free(html);
}

static void a_run_without_test_pictures_says_so(void **state)
{
    (void)state;
    pc__history history = make_history(4);
    for (int i = 0; i < 4; i++)
        history.epochs[i].test_loss = history.epochs[i].test_accuracy = NAN;
    pc__report report = full_report(&history);
    report.without_test = true;
    char *html = render(&report);
    assert_says(html, "<div class='card lead'><h3>Train accuracy</h3><p class='value'>87.5\u202f%");
    assert_says(html, "no test pictures");
    assert_null(strstr(html, "Test accuracy"));
    assert_null(strstr(html, "<span class='test'>"));
    pc__free(html);
    pc__history_free(&history);
}

static void runs_of_any_length(void **state)
{
    (void)state;
    static const int counts[] = {1, 2, 15, 16, 100, 240, 241, 1000};
    for (int i = 0; i < PC__COUNT(counts); i++) {
        pc__history history = make_history(counts[i]);
        char *html = render(&(pc__report){.history = &history});
        const char *line = strstr(html, "<path class='line test'");
        assert_non_null(line);
        size_t length = strcspn(line, ">");
        if (length > 480 * 14 + 40)
            fail_msg("%d epochs: a line of %zu characters", counts[i], length);
        assert_true(occurrences(html, "class='at'") <= 200);
        assert_int_equal(occurrences(html, "<th scope='row'>"), counts[i]);
        pc__free(html);
        pc__history_free(&history);
    }
}

static void strange_values(void **state)
{
    (void)state;
    static const double values[] = {NAN, INFINITY, -INFINITY, 0, -1, 1, 1e-320, 1e-30, 1e5, 1e99, 1e300, -1e300};
    enum { N = PC__COUNT(values) };
    for (int a = 0; a < N; a++)
        for (int b = 0; b < N; b++)
            for (int c = 0; c < N; c++) {
                pc__history history = make_history(3);
                history.epochs[0].loss = history.epochs[0].test_accuracy = values[a];
                history.epochs[1].test_loss = history.epochs[1].accuracy = values[b];
                history.epochs[2].loss = history.epochs[2].test_loss = values[c];
                history.epochs[2].seconds = history.epochs[2].images_per_second = history.epochs[2].lr = values[c];
                pc__report report = {.history = &history, .seconds = values[c]};
                char *html = render(&report);
                if (a < 3)
                    assert_says(html, "The run diverged.");
                pc__free(html);
                pc__history_free(&history);
            }
}

static void notes_say_what_the_figures_show(void **state)
{
    (void)state;
    pc__history history = make_history(10);
    static const int64_t guessing[] = {70, 70, 66, 74};
    pc__report report = full_report(&history);
    for (int i = 0; i < 10; i++)
        history.epochs[i].test_loss = i < 5 ? 0.6 - 0.02 * i : 0.5 + 0.05 * i;
    char *html = render(&report);
    assert_says(html, "by heart.</b> Test loss was lowest at epoch 5 (0.5200) and rose to 0.9500");
    assert_null(strstr(html, "guessing, so far"));
    pc__free(html);
    for (int i = 0; i < 10; i++)
        history.epochs[i].test_loss = 0.6 - 0.02 * i;
    report.confusion = guessing;
    html = render(&report);
    assert_says(html, "Still improving.");
    assert_says(html, "guessing, so far");
    pc__free(html);
    pc__history_free(&history);
}

static void many_classes_become_a_list_of_mistakes(void **state)
{
    (void)state;
    enum { N = 30 };
    int64_t *confusion = calloc(N * N, sizeof *confusion);
    pc__report_class classes[N] = {0};
    for (int i = 0; i < N * N; i++)
        confusion[i] = i % (N + 1) == 0 ? 50 : i % 11;
    confusion[3 * N + 4] = 77;
    pc__report report = {.classes = classes, .class_count = N, .confusion = confusion};
    char *html = render(&report);
    assert_says(html, "Commonest mistakes");
    assert_says(html, "<tbody>\n<tr><td>class 3</td><td>class 4</td><td>77</td></tr>\n<tr><td>class 0</td>");
    assert_says(html, "<summary>30 classes</summary>");
    pc__free(html);
    report.class_count = 7;
    html = render(&report);
    assert_says(html, "<h2>Confusion</h2>");
    assert_int_equal(occurrences(html, "class='hit'"), 7);
    pc__free(html);
    free(confusion);
}

static void axes_have_round_ticks(void **state)
{
    (void)state;
    pc__axis axis;
    char label[32];
    pc__axis_fit(&axis, 0.52, 0.74, true);
    assert_close(axis.low, 0.5, 1e-9);
    assert_close(axis.high, 0.75, 1e-9);
    pc__axis_label(&axis, axis.ticks[1], label);
    assert_string_equal(label, "55%");
    pc__axis_fit(&axis, 1, 1, true);
    assert_close(axis.high, 1, 1e-9);
    pc__axis_fit(&axis, 0.001, 2.3, false);
    assert_true(axis.logarithmic && axis.count >= 3);
    assert_close(pc__axis_at(&axis, 1e9), 1, 0);
    static const double ends[] = {-1e99, -5, -1e-9, 0, 1e-320, 1e-12, 0.3, 0.30001, 1, 7e4, 1e99};
    for (int i = 0; i < PC__COUNT(ends); i++)
        for (int j = i; j < PC__COUNT(ends); j++) {
            pc__axis_fit(&axis, ends[i], ends[j], false);
            if (!(axis.low < axis.high && axis.count >= 2))
                fail_msg("%g to %g: axis %g to %g, %d ticks", ends[i], ends[j], axis.low, axis.high, axis.count);
            double little = (axis.high - axis.low) * 1e-6;
            assert_true(axis.low <= ends[i] + little || axis.logarithmic);
            assert_true(axis.high >= ends[j] - little);
        }
}

static void base64_of_every_length(void **state)
{
    (void)state;
    static const char *const want[] = {"", "Zg==", "Zm8=", "Zm9v", "Zm9vYg==", "Zm9vYmE=", "Zm9vYmFy"}; /* RFC 4648 */
    for (size_t n = 0; n < PC__COUNT(want); n++) {
        pc__text text = {0};
        pc__html_put(&text, "");
        pc__html_base64(&text, (const uint8_t *)"foobar", n);
        assert_string_equal(text.data, want[n]);
        pc__text_free(&text);
    }
}

static void places_that_cannot_be_written(void **state)
{
    (void)state;
    pc__report report = {0};
    assert_fails(pc_report_page("/nowhere/report.html", &report), PC_ERR_FILE, "/nowhere/report.html");
    char path[] = "/tmp/paracord-report-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    assert_ok(pc_report_page(path, &report));
    uint8_t *bytes;
    size_t n;
    assert_ok(pc__file_read(path, &bytes, &n));
    char *html = render(&report);
    assert_string_equal((char *)bytes, html);
    pc__free(bytes);
    pc__free(html);
    unlink(path);
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
    const pc_allocator failing = {failing_alloc, failing_resize, release, NULL};
    char path[] = "/tmp/paracord-report-XXXXXX";
    int fd = mkstemp(path), failures = 0;
    close(fd);
    assert_ok(pc_allocator_set(&failing));
    left = 100;
    pc__history history = make_history(25);
    pc__report report = full_report(&history);
    int64_t before = pc_allocator_live();
    for (bool done = false; !done;) {
        left = failures;
        pc_status status = pc_report_page(path, &report);
        done = status == PC_OK;
        if (!done) {
            assert_int_equal(status, PC_ERR_MEMORY);
            assert_int_equal(pc_error_last()->status, PC_ERR_MEMORY);
            assert_true(++failures < 1000);
        }
        assert_int_equal(pc_allocator_live(), before);
        pc_error_clear();
    }
    assert_true(failures > 5);
    pc__history_free(&history);
    assert_ok(pc_allocator_set(NULL));
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_full_report_says_everything),
        cmocka_unit_test(the_same_report_gives_the_same_bytes),
        cmocka_unit_test(nothing_known_is_not_shown_as_zero),
        cmocka_unit_test(a_run_without_test_pictures_says_so),
        cmocka_unit_test(runs_of_any_length),
        cmocka_unit_test(strange_values),
        cmocka_unit_test(notes_say_what_the_figures_show),
        cmocka_unit_test(many_classes_become_a_list_of_mistakes),
        cmocka_unit_test(axes_have_round_ticks),
        cmocka_unit_test(base64_of_every_length),
        cmocka_unit_test(places_that_cannot_be_written),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests_name("train.report", tests, NULL, NULL);
}
