/* The page and the picture of paracord trace view: they stand alone, names from outside stay names, and a real browser
 * draws them. */
#include "trace.h"

#include <paracord/image.h>

static test_path root;

static int prepare(void **state)
{
    (void)state;
    root = new_root(); /* on a disk: browsers may not see /dev/shm */
    return 0;
}

static int tidy(void **state)
{
    (void)state;
    remove_root(&root);
    return 0;
}

static const char *browser(void)
{
    static const char *const names[] = {"chromium", "chromium-browser", "google-chrome"};
    char line[64];
    for (int i = 0; i < 3; i++) {
        snprintf(line, sizeof line, "command -v %s >/dev/null", names[i]);
        if (system(line) == 0)
            return names[i];
    }
    return NULL;
}

#define NEED_BROWSER()                                                                                                 \
    do {                                                                                                               \
        if (!browser()) {                                                                                              \
            print_message("skipped: no chromium, chromium-browser or google-chrome in PATH\n");                        \
            skip();                                                                                                    \
        }                                                                                                              \
    } while (0)

/* Open page#where in the browser, with one more option; what it prints. The caller frees it. */
static char *browse(const char *option, const char *page, const char *where)
{
    char line[3 * sizeof root.s];
    size_t room = (size_t)8 << 20;
    assert_true(
        snprintf(line, sizeof line,
                 "timeout 60 %s --headless --no-sandbox --disable-gpu --hide-scrollbars --user-data-dir=%s/profile "
                 "%s 'file://%s%s' 2>/dev/null",
                 browser(), root.s, option, page, where) < (int)sizeof line);
    FILE *pipe = popen(line, "r");
    assert_non_null(pipe);
    char *text = malloc(room);
    assert_non_null(text);
    text[fread(text, 1, room - 1, pipe)] = 0;
    assert_int_equal(pclose(pipe), 0);
    return text;
}

/* data-NAME of the page's body; -1 where there is none. */
static long long told(const char *dom, const char *name)
{
    char key[64];
    const char *body = strstr(dom, "<body");
    snprintf(key, sizeof key, "data-%s=\"", name);
    const char *at = body ? strstr(body, key) : NULL;
    return at && at < strchr(body, '>') ? atoll(at + strlen(key)) : -1;
}

static test_path page_of(const char *trace)
{
    job_end e;
    test_path page = {{0}};
    run(&e, "trace", "view", trace);
    assert_went_well(&e);
    assert_int_equal(sscanf(e.out, "wrote %4095s", page.s), 1);
    return page;
}

static void the_page_stands_alone(void **state)
{
    (void)state;
    size_t n;
    page_of(launching(root.s).s);
    assert_no_temporaries(root.s);
    char *html = content(root.s, "launch.html", &n);
    assert_null(strstr(html, "http:"));
    assert_null(strstr(html, "https:"));
    assert_null(strstr(html, " src="));
    assert_non_null(strstr(html, "default-src 'none'"));
    assert_non_null(strstr(html, "launch-bound"));
    assert_non_null(strstr(html, "<footer>Paracord " PC_VERSION " &#183; this file stands alone"));
    const char *data = strstr(html, "id='data'>"), *end = strstr(html, "}</script>");
    assert_true(data && end > data);
    assert_in_range(n - (size_t)(end - data), 10000, 30000); /* the page without its data */
    free(html);
}

static void a_browser_draws_rows_and_finds(void **state)
{
    (void)state;
    NEED_BROWSER();
    test_path page = page_of(launching(root.s).s);
    char *dom = browse("--dump-dom", page.s, "");
    assert_int_equal(told(dom, "ready"), 1);
    assert_int_equal(told(dom, "rows"), 3); /* main, stream 7, engine compute: rows without events are left out */
    assert_int_equal(told(dom, "events"), 300);
    assert_int_equal(told(dom, "drawn"), 300);
    assert_int_equal(told(dom, "span"), 2500000);
    assert_non_null(strstr(dom, "<td>relu</td><td>400 us</td><td>100.0 %</td><td>100</td><td>4.00 us</td>"));
    free(dom);
    dom = browse("--dump-dom", page.s, "#from=250000&span=250000&find=RELU");
    assert_int_equal(told(dom, "matches"), 300);
    assert_int_equal(told(dom, "from"), 250000);
    assert_in_range(told(dom, "drawn"), 30, 34); /* a tenth of the time is in view */
    free(dom);
    dom = browse("--dump-dom", page.s, "#find=nowhere");
    assert_int_equal(told(dom, "matches"), 0);
    free(dom);
}

static void arrows_go_to_the_events_they_name(void **state)
{
    (void)state;
    NEED_BROWSER();
    trace_file t = begin_trace(root.s, "arrows.json");
    work(&t, COPY_IN, "copy in", 0, 50, 4096);
    work(&t, COPY_IN, "copy after", 50, 9, 4096); /* begins where the one before ends */
    work(&t, COMPUTE, "matmul", 60, 50, 0);
    work(&t, COMPUTE, "other", 120, 50, 0);
    fputs("{\"ph\":\"s\",\"id\":9,\"cat\":\"wait\",\"ts\":49.999,\"pid\":2,\"tid\":103},\n"
          "{\"ph\":\"f\",\"bp\":\"e\",\"id\":9,\"cat\":\"wait\",\"ts\":60,\"pid\":2,\"tid\":101},\n"
          "{\"ph\":\"f\",\"bp\":\"e\",\"id\":8,\"cat\":\"wait\",\"ts\":120,\"pid\":2,\"tid\":101},\n",
          t.file);
    end_trace(&t);
    test_path page = page_of(t.path.s);
    char *dom = browse("--dump-dom", page.s, "#find=matmul&next=1"); /* the first match: in the stream's row */
    assert_int_equal(told(dom, "arrows"), 1);
    free(dom);
    dom = browse("--dump-dom", page.s, "#event=4"); /* stream 7 has 0 to 3; the engine's matmul */
    assert_non_null(strstr(dom, "<dt>waited for</dt><dd><button>copy in (engine copy in)</button>"));
    assert_int_equal(told(dom, "arrows"), 2); /* drawn faint with all, and bold as the chosen one's */
    free(dom);
}

/* What shares a pixel with something tiny before it is drawn all the same. */
static void long_after_tiny(void **state)
{
    (void)state;
    NEED_BROWSER();
    trace_file t = begin_trace(root.s, "tiny.json");
    for (int i = 0; i < 5; i++) {
        host(&t, "op", "tiny", 1000.0 * i, 0.1);
        host(&t, "op", "tiny", 1000.0 * i + 0.2, 0.1);
        host(&t, "wait", "pc_item", 1000.0 * i + 0.4, 500);
    }
    end_trace(&t);
    char *dom = browse("--dump-dom", page_of(t.path.s).s, "");
    assert_int_equal(told(dom, "drawn"), 10); /* a pixel and a bar each */
    free(dom);
}

static void names_stay_names(void **state)
{
    (void)state;
    static const char hostile[] = "</script><script>document.body.dataset.broken=1</script><!--<b>\\\" & 'x'\\u2028";
    char text[1024];
    size_t n;
    snprintf(text, sizeof text,
             "[{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":1,\"args\":{\"name\":\"%s\"}},"
             "{\"ph\":\"X\",\"cat\":\"wait\",\"name\":\"%s\",\"ts\":0,\"dur\":5,\"pid\":1,\"tid\":1,"
             "\"args\":{\"site\":\"%s\",\"note\":\"%s\"}}]",
             hostile, hostile, hostile, hostile);
    trace_of(root.s, "<img src=x onerror=alert(1)>.json", text);
    job_end e;
    test_path trace = joined(root.s, "<img src=x onerror=alert(1)>.json"), page = joined(root.s, "hostile.html");
    run(&e, "trace", "view", trace.s, "--out", page.s);
    assert_went_well(&e);
    char *html = content(root.s, "hostile.html", &n);
    assert_null(strstr(html, "</script><script>d"));
    assert_null(strstr(html, "<!--"));
    assert_null(strstr(html, "<img"));
    free(html);
    NEED_BROWSER();
    char *dom = browse("--dump-dom", page.s, "#event=0");
    assert_int_equal(told(dom, "ready"), 1);
    assert_int_equal(told(dom, "broken"), -1);
    assert_non_null(strstr(dom, "<h1 id=\"name\">&lt;img src=x onerror=alert(1)&gt;.json</h1>"));
    free(dom);
}

static int colours_in(const pc_image *image)
{
    static bool seen[4096]; /* four bits a channel */
    int count = 0;
    memset(seen, 0, sizeof seen);
    for (size_t i = 0; i < (size_t)image->width * (size_t)image->height; i++) {
        const uint8_t *p = image->pixels + i * (size_t)image->channels;
        int colour = (p[0] >> 4) << 8 | (p[1] >> 4) << 4 | p[2] >> 4;
        count += !seen[colour];
        seen[colour] = true;
    }
    return count;
}

static void the_picture_is_not_blank(void **state)
{
    (void)state;
    NEED_BROWSER();
    char option[sizeof root.s + 64];
    static const char *const widths[] = {"800", "1600"};
    test_path page = page_of(launching(root.s).s), shot = joined(root.s, "shot.png");
    for (int i = 0; i < 2; i++) {
        pc_image image;
        snprintf(option, sizeof option, "--window-size=%s,900 --screenshot=%s", widths[i], shot.s);
        free(browse(option, page.s, ""));
        assert_ok(pc_image_read(shot.s, PC_OPTIONS(pc_image_options, .channels = 3), &image));
        assert_int_equal(image.width, atoi(widths[i]));
        assert_in_range(colours_in(&image), 12, 4096);
        pc_image_free(&image);
    }
}

static int count(const char *text, const char *what)
{
    int n = 0;
    for (const char *at = text; (at = strstr(at, what)); at++)
        n++;
    return n;
}

static char *picture_of(const char *trace, const char *range)
{
    size_t n;
    job_end e;
    test_path picture = joined(root.s, "picture.svg");
    run(&e, "trace", "view", trace, "-o", picture.s, range ? "--range" : NULL, range);
    assert_went_well(&e);
    return content(root.s, "picture.svg", &n);
}

static void a_picture_shows_all_or_a_range(void **state)
{
    (void)state;
    trace_file t = begin_trace(root.s, "picture.json");
    host(&t, "range", "epoch", 100, 100);
    host(&t, "op", "relu", 101, 50);
    host(&t, "op", "later", 300, 50);
    work(&t, COMPUTE, "relu", 110, 20, 0);
    work(&t, COPY_IN, "copy in", 140, 50, 4096);
    work(&t, COMPUTE, "later", 310, 20, 0);
    fputs("{\"ph\":\"s\",\"id\":9,\"cat\":\"wait\",\"ts\":129.9,\"pid\":2,\"tid\":101},\n"
          "{\"ph\":\"f\",\"bp\":\"e\",\"id\":9,\"cat\":\"wait\",\"ts\":140,\"pid\":2,\"tid\":103},\n",
          t.file);
    end_trace(&t);
    char *svg = picture_of(t.path.s, NULL);
    assert_int_equal(count(svg, "<title>"), 9); /* work stands in its stream's row and in its engine's */
    assert_int_equal(count(svg, "<title>epoch: 100 us, train.c:41 (step)</title>"), 1);
    assert_int_equal(count(svg, "class=\"arrow\""), 1);
    assert_null(strstr(svg, "<script"));
    free(svg);
    svg = picture_of(t.path.s, "epoch");
    assert_int_equal(count(svg, "<title>"), 5); /* the range itself is the frame */
    assert_null(strstr(svg, "later"));
    assert_non_null(strstr(svg, "staged: the source is pageable"));
    free(svg);
    job_end e;
    run(&e, "trace", "view", t.path.s, "-o", "x.svg", "--range", "nowhere");
    assert_refused(&e, 1, "no range or op named \"nowhere\"");
    const test_path other = joined(root.s, "x.png"); /* a page by the name of a picture */
    run(&e, "trace", "view", t.path.s, "-o", other.s);
    assert_refused(&e, 2, "x.png: must end in .html (a page), .svg (a picture) or .json (a timeline)");
    assert_false(exists(root.s, "x.png"));
}

/* Equal work that shares pixels is drawn once. */
static void a_picture_stays_small(void **state)
{
    (void)state;
    trace_file t = begin_trace(root.s, "many.json");
    for (int i = 0; i < 2000; i++)
        host(&t, "op", "tiny <&\xff>", i, 0.5);
    end_trace(&t);
    char *svg = picture_of(t.path.s, NULL);
    assert_in_range(strlen(svg), 10000, 80000);
    free(svg);
}

static void a_browser_draws_the_picture(void **state)
{
    (void)state;
    NEED_BROWSER();
    pc_image image;
    char option[sizeof root.s + 64];
    trace_file t = begin_trace(root.s, "odd.json");
    host(&t, "op", "</svg><!-- & ]]> '\\u0001\\u2028", 0, 5);
    host(&t, "wait", "\xc3\xa9\xff", 6, 5);
    work(&t, COMPUTE, "</title><script>", 5, 5, 0);
    end_trace(&t);
    free(picture_of(t.path.s, NULL));
    test_path shot = joined(root.s, "shot.png"), picture = joined(root.s, "picture.svg");
    snprintf(option, sizeof option, "--window-size=900,300 --screenshot=%s", shot.s);
    free(browse(option, picture.s, ""));
    assert_ok(pc_image_read(shot.s, PC_OPTIONS(pc_image_options, .channels = 3), &image));
    assert_in_range(colours_in(&image), 8, 4096);
    pc_image_free(&image);
    char *dom = browse("--dump-dom", picture.s, "");
    assert_null(strstr(dom, "parsererror")); /* what browsers say of XML that is not well-formed */
    assert_int_equal(count(dom, "<rect"), 5);
    free(dom);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_page_stands_alone),
        cmocka_unit_test(a_browser_draws_rows_and_finds),
        cmocka_unit_test(arrows_go_to_the_events_they_name),
        cmocka_unit_test(long_after_tiny),
        cmocka_unit_test(names_stay_names),
        cmocka_unit_test(the_picture_is_not_blank),
        cmocka_unit_test(a_picture_shows_all_or_a_range),
        cmocka_unit_test(a_picture_stays_small),
        cmocka_unit_test(a_browser_draws_the_picture),
    };
    return cmocka_run_group_tests_name("cli.trace_page", tests, prepare, tidy);
}
