/* The progress line fits every width; what is printed for people and for programs is well formed. */
#include <math.h>
#include <stdlib.h>

#include "support.h"

#include "cli/progress.h"
#include "cli/text.h"

static const pc_progress middle = {.epoch = 7,
                                   .epochs = 25,
                                   .done = 416,
                                   .total = 1040,
                                   .loss = 0.61234,
                                   .accuracy = 0.664,
                                   .images_per_second = 1204.4,
                                   .seconds_left = 83};

/* Columns of a text of our own: every letter is one column wide. */
static int letters(const char *text)
{
    int n = 0;
    for (; *text; text++)
        n += ((unsigned char)*text & 0xC0) != 0x80;
    return n;
}

static void the_line_fits_every_width(void **state)
{
    (void)state;
    char line[CLI_PROGRESS_MAX];
    for (int width = 1; width <= 300; width++)
        for (int utf8 = 0; utf8 <= 1; utf8++) {
            cli_progress_line(&middle, width, utf8, line);
            if (letters(line) >= width && letters(line) > 0)
                fail_msg("width %d: %d columns: %s", width, letters(line), line);
        }
}

static void a_wide_line_says_everything(void **state)
{
    (void)state;
    char line[CLI_PROGRESS_MAX];
    cli_progress_line(&middle, 120, false, line);
    assert_string_equal(line,
                        "epoch  7/25  [============>                   ]   416/1040  1,204 images/s  loss 0.6123  "
                        "acc 0.664  1:23 left");
    assert_non_null(strstr(cli_progress_line(&middle, 80, true, line), "█"));
    assert_non_null(strstr(line, "images/s"));
    assert_non_null(strstr(line, "1:23 left"));
}

static void a_narrow_line_keeps_the_epoch_and_accuracy(void **state)
{
    (void)state;
    char line[CLI_PROGRESS_MAX];
    cli_progress_line(&middle, 40, false, line);
    assert_non_null(strstr(line, "epoch  7/25"));
    assert_non_null(strstr(line, "acc 0.664"));
    assert_null(strstr(line, "loss"));
}

static void unknown_numbers_are_left_out(void **state)
{
    (void)state;
    char line[CLI_PROGRESS_MAX];
    pc_progress at = {.done = 0, .total = 0, .loss = NAN, .accuracy = NAN, .seconds_left = -1};
    cli_progress_line(&at, 80, false, line);
    assert_string_equal(line, "[                                ]  0/0");
    at.total = 10;
    at.done = 30;
    assert_non_null(strstr(cli_progress_line(&at, 80, false, line), "[================================]"));
}

static void durations(void **state)
{
    (void)state;
    char text[32];
    assert_string_equal(cli_duration(0.2, text), "0:00");
    assert_string_equal(cli_duration(59.6, text), "1:00");
    assert_string_equal(cli_duration(754, text), "12:34");
    assert_string_equal(cli_duration(3723, text), "1:02:03");
}

static void thousands(void **state)
{
    (void)state;
    char text[32];
    assert_string_equal(cli_thousands(0, text), "0");
    assert_string_equal(cli_thousands(999, text), "999");
    assert_string_equal(cli_thousands(1000, text), "1,000");
    assert_string_equal(cli_thousands(-123456, text), "-123,456");
    assert_string_equal(cli_thousands(INT64_MAX, text), "9,223,372,036,854,775,807");
}

/* What a printer writes, in a buffer that lives until the next call. */
static char *printed(void (*print)(FILE *, const char *), const char *text)
{
    static char *buffer;
    size_t size;
    free(buffer);
    FILE *out = open_memstream(&buffer, &size);
    print(out, text);
    fclose(out);
    return buffer;
}

static void json_texts(void **state)
{
    (void)state;
    assert_string_equal(printed(cli_json_text, "a\"b\\c\n\x7f"), "\"a\\\"b\\\\c\\u000a\\u007f\"");
    assert_string_equal(printed(cli_json_text, "Köter 🐕"), "\"Köter 🐕\"");
    assert_string_equal(printed(cli_json_text, "\xff"
                                               "a\xc3"),
                        "\"\\ufffda\\ufffd\"");
    assert_string_equal(printed(cli_json_text, "\xed\xa0\x80"), "\"\\ufffd\\ufffd\\ufffd\"");
    assert_string_equal(printed(cli_json_text, "\xc0\xaf"), "\"\\ufffd\\ufffd\"");
}

static void shell_words(void **state)
{
    (void)state;
    assert_string_equal(printed(cli_print_shell, "a/b-1.jpg"), "a/b-1.jpg");
    assert_string_equal(printed(cli_print_shell, "my run"), "'my run'");
    assert_string_equal(printed(cli_print_shell, "it's"), "'it'\\''s'");
    assert_string_equal(printed(cli_print_shell, ""), "''");
}

static void names_cannot_drive_the_terminal(void **state)
{
    (void)state;
    assert_string_equal(printed(cli_print_safe, "a\033[31m\n.jpg"), "a?[31m?.jpg");
}

static void print_wrapped(FILE *out, const char *text)
{
    cli_wrap(out, text, cli_pad(out, 0, 4), 4, 14);
}

static void wrapping(void **state)
{
    (void)state;
    assert_string_equal(printed(print_wrapped, "one two three"), "    one two\n    three");
    assert_string_equal(printed(print_wrapped, "  123456 890 "), "    123456 890");
    assert_string_equal(printed(print_wrapped, "unbreakableword b"), "    unbreakableword\n    b");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_line_fits_every_width),
        cmocka_unit_test(a_wide_line_says_everything),
        cmocka_unit_test(a_narrow_line_keeps_the_epoch_and_accuracy),
        cmocka_unit_test(unknown_numbers_are_left_out),
        cmocka_unit_test(durations),
        cmocka_unit_test(thousands),
        cmocka_unit_test(json_texts),
        cmocka_unit_test(shell_words),
        cmocka_unit_test(names_cannot_drive_the_terminal),
        cmocka_unit_test(wrapping),
    };
    return cmocka_run_group_tests_name("cli.progress", tests, NULL, NULL);
}
