/* The page of a training of a GPT: what is told is in it, what is not known is not shown as 0, and markup is text. */
#include "gpt/run.h"
#include "io/file.h"
#include "support.h"

#include <paracord-tools/report.h>

#include <math.h>
#include <stdlib.h>
#include <unistd.h>

static char *page_of(const pc_gpt_run *run)
{
    static char path[] = "/tmp/paracord-gpt-page-XXXXXX";
    static uint8_t *bytes;
    size_t n;
    close(mkstemp(path));
    assert_ok(pc_gpt_report_page(path, run));
    assert_ok(pc__file_read(path, &bytes, &n));
    unlink(path);
    memcpy(path + sizeof path - 7, "XXXXXX", 6);
    return (char *)bytes;
}

static void all_that_is_told(void **state)
{
    (void)state;
    pc__gpt_tested tested[] = {{100, 2.5, 2.75}, {200, 1.5, 2.25}};
    pc_gpt_run run = {.title = "a <b>",
                      .device = "cpu",
                      .settings = "layers=4\nnote=x<y\n",
                      .shared = "ranks=7\nZeRO=stage 2",
                      .network = "network  4 layers\nmemory   1 < 2 MB",
                      .step = 200,
                      .steps = 400,
                      .parameters = 812345,
                      .tokens = 768,
                      .seconds = 70,
                      .tokens_per_second = 12345,
                      .mfu = 0.25,
                      .tested = tested,
                      .tested_count = 2,
                      .sample = "<script>\n"};
    for (int i = 0; i < 200; i++)
        pc__curve_add(&run.curve, i, 4 - i / 100.0, 1);
    char *page = page_of(&run);
    static const char *const words[] = {".charts>:only-child{max-width:560px}", /* letters grow with a chart */
                                        "a &lt;b&gt;",
                                        "x&lt;y",
                                        "&lt;script&gt;",
                                        "2.250",
                                        "1.500",
                                        "12,345",
                                        "812,345",
                                        "25.0",
                                        "of 400, 768 tokens each",
                                        "9.488",
                                        "held out",
                                        "<dt>ranks</dt><dd>7</dd>",
                                        "<dt>ZeRO</dt><dd>stage 2</dd>",
                                        "<span>network  4 layers</span><span>memory   1 &lt; 2 MB</span>"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (!strstr(page, words[i]))
            fail_msg("the page has no \"%s\"", words[i]);
    assert_null(strstr(page, "<script>\n"));
    pc__free(page);
}

static void what_is_not_known(void **state)
{
    (void)state;
    const pc_gpt_run run = {.tokens_per_second = NAN, .mfu = NAN};
    char *page = page_of(&run);
    assert_non_null(strstr(page, "class='none'"));
    assert_null(strstr(page, "nan"));
    assert_null(strstr(page, "What it writes"));
    pc__free(page);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(all_that_is_told), cmocka_unit_test(what_is_not_known)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
