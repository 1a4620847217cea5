/* The option parser: every kind of value, every way to write it, and what is said about wrong ones. */
#include <limits.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>

#include "support.h"

#include "cli/nearest.h"
#include "cli/options.h"

typedef struct settings {
    bool quiet, flip;
    int epochs;
    int64_t cache, least;
    uint64_t seed;
    double rate, share, pair[2], wide, decay;
    int size[2];
    const char *arch, *device, *out;
} settings;

static const cli_choice archs[] = {{"article", NULL}, {"two-conv", NULL}, {"mlp", NULL}, {0}};

#define AT(member) offsetof(settings, member)

static const cli_option rows[] = {
    {"epochs", 'e', CLI_INT, AT(epochs), "25", "N", .help = "Passes", .min = 1, .max = 100000},
    {"seed", 0, CLI_SEED, AT(seed), "0", "N", .help = "Seed"},
    {"cache", 0, CLI_BYTES, AT(cache), "auto", "SIZE", .help = "Bytes"},
    {"least", 0, CLI_BYTES, AT(least), "4K", "BYTES", .help = "Bytes in a range", .min = 4096, .max = 0x1p40},
    {"rate", 'l', CLI_FLOAT, AT(rate), "0.001", "RATE", .help = "Rate", .min = 0, .max = 10, .above = true},
    {"share", 0, CLI_FLOAT, AT(share), NULL, "SHARE", .help = "Share", .min = -1, .max = 1},
    {"wide", 0, CLI_FLOAT, AT(wide), NULL, "X", .help = "No upper bound", .min = 2, .max = INFINITY},
    {"decay", 0, CLI_FLOAT, AT(decay), "auto", "X", .help = "Decay", .min = 0, .max = 1, .automatic = true},
    {"pair", 'p', CLI_PAIR, AT(pair), "0.8,1.2", "A,B", .help = "Pair", .min = 0, .max = 2},
    {"size", 's', CLI_SIZE, AT(size), "64", "PIXELS", .help = "Size", .min = 8, .max = 1024},
    {"arch", 'a', CLI_CHOICE, AT(arch), "article", "NAME", .help = "Network", .choices = archs},
    {"device", 'd', CLI_TEXT, AT(device), "auto", "DEVICE", .help = "Device"},
    {"out", 'o', CLI_PATH, AT(out), NULL, "FOLDER", .help = "Folder"},
    {"quiet", 'q', CLI_FLAG, AT(quiet), NULL, NULL, .help = "Say nothing"},
    {"flip", 'f', CLI_FLAG, AT(flip), "on", NULL, .help = "Mirror"},
    {0},
};

static const cli_argument one_or_more[] = {
    {"MODEL", "A model", 1, 1, .complete = CLI_FILES},
    {"FILE", "Files", 1, INT_MAX, .complete = CLI_FILES},
    {0},
};
static const cli_argument any[] = {{"WORD", "Words", 0, INT_MAX, .complete = CLI_NOTHING}, {0}};
static const cli_argument at_most_one[] = {{"WORD", "A word", 0, 1, .choices = archs}, {0}};

#define WORDS 16

/* What came of parsing one line. */
typedef struct outcome {
    bool fine;
    settings s;
    cli_line line;
    const char *values[WORDS];
    char message[CLI_MESSAGE_MAX];
} outcome;

/* Parse words ended by NULL. */
static outcome *parse(const cli_argument *arguments, ...)
{
    static outcome o;
    char *words[WORDS];
    int n = 0;
    va_list list;
    va_start(list, arguments);
    while ((words[n] = va_arg(list, char *)) && n < WORDS - 1)
        n++;
    va_end(list);
    memset(&o, 0, sizeof o);
    o.line.values = o.values;
    o.fine = cli_parse(rows, arguments, n, words, &o.s, &o.line, o.message);
    return &o;
}

#define assert_says(words, ...)                                                                                        \
    do {                                                                                                               \
        outcome *says_ = parse(any, __VA_ARGS__, NULL);                                                                \
        assert_false(says_->fine);                                                                                     \
        assert_string_equal(says_->message, words);                                                                    \
    } while (0)

static void defaults_come_from_the_rows(void **state)
{
    (void)state;
    outcome *o = parse(any, NULL);
    assert_true(o->fine);
    assert_int_equal(o->s.epochs, 25);
    assert_close(o->s.rate, 0.001, 0);
    assert_close(o->s.pair[0], 0.8, 0);
    assert_close(o->s.pair[1], 1.2, 0);
    assert_string_equal(o->s.arch, "article");
    assert_string_equal(o->s.device, "auto");
    assert_null(o->s.out);
    assert_true(o->s.flip);
    assert_false(o->s.quiet);
    assert_int_equal(o->line.count, 0);
    assert_null(o->values[0]);
}

static void every_way_to_write_a_value(void **state)
{
    (void)state;
    assert_int_equal(parse(any, "--epochs", "3", NULL)->s.epochs, 3);
    assert_int_equal(parse(any, "--epochs=4", NULL)->s.epochs, 4);
    assert_int_equal(parse(any, "-e", "5", NULL)->s.epochs, 5);
    assert_int_equal(parse(any, "-e6", NULL)->s.epochs, 6);
    assert_int_equal(parse(any, "-e6", "--epochs", "+7", NULL)->s.epochs, 7);
    outcome *o = parse(any, "-qe9", NULL);
    assert_true(o->fine && o->s.quiet);
    assert_int_equal(o->s.epochs, 9);
    assert_string_equal(parse(any, "--out=--odd", NULL)->s.out, "--odd");
    assert_string_equal(parse(any, "-o", "-", NULL)->s.out, "-");
    assert_string_equal(parse(any, "--out", "a=b", NULL)->s.out, "a=b");
}

static void every_kind_of_value(void **state)
{
    (void)state;
    assert_true(parse(any, "--seed", "18446744073709551615", NULL)->s.seed == UINT64_MAX);
    assert_close(parse(any, "--rate", "1e-4", NULL)->s.rate, 1e-4, 0);
    assert_close(parse(any, "--share", "-.5", NULL)->s.share, -0.5, 0);
    assert_close(parse(any, "--wide", "1e300", NULL)->s.wide, 1e300, 0);
    assert_int_equal(parse(any, "--cache", "3k", NULL)->s.cache, 3 * 1024);
    assert_int_equal(parse(any, NULL)->s.least, 4096);
    assert_true(parse(any, "--least", "1T", NULL)->s.least == INT64_C(1) << 40);
    assert_close(parse(any, NULL)->s.decay, -1, 0);
    assert_close(parse(any, "--decay", "0", NULL)->s.decay, 0, 0);
    assert_close(parse(any, "--decay", "0", "--decay=auto", NULL)->s.decay, -1, 0);
    outcome *o = parse(any, "-p", "0.5,2", NULL);
    assert_true(o->fine);
    assert_close(o->s.pair[0], 0.5, 0);
    assert_close(o->s.pair[1], 2, 0);
    o = parse(any, "--size", "28", NULL);
    assert_true(o->fine && o->s.size[0] == 28 && o->s.size[1] == 28);
    o = parse(any, "-s", "48x96", NULL);
    assert_true(o->fine && o->s.size[0] == 48 && o->s.size[1] == 96);
    assert_string_equal(parse(any, "--arch", "two-conv", NULL)->s.arch, "two-conv");
    assert_string_equal(parse(any, "-d", "cuda:1", NULL)->s.device, "cuda:1");
}

static void flags_switch_on_and_off(void **state)
{
    (void)state;
    assert_false(parse(any, "--no-flip", NULL)->s.flip);
    assert_true(parse(any, "--no-flip", "--flip", NULL)->s.flip);
    assert_true(parse(any, "-q", NULL)->s.quiet);
    assert_says("there is no option --no-quiet; did you mean --quiet?", "--no-quiet");
    assert_says("--flip: takes no value", "--flip=off");
    assert_says("--no-flip: takes no value", "--no-flip=1");
}

static void values_out_of_range(void **state)
{
    (void)state;
    assert_says("--epochs 0: must be 1 to 100000", "--epochs", "0");
    assert_says("--epochs 100001: must be 1 to 100000", "-e100001");
    assert_says("--epochs 99999999999999999999: must be 1 to 100000", "-e99999999999999999999");
    assert_says("--rate 0: must be more than 0, at most 10", "--rate=0");
    assert_says("--rate 1e999: must be more than 0, at most 10", "--rate=1e999");
    assert_says("--share -1.5: must be -1 to 1", "--share", "-1.5");
    assert_says("--decay -1: must be 0 to 1, or auto", "--decay=-1");
    assert_says("--wide 1: must be 2 or more", "--wide", "1");
    assert_says("--size 7: must be a whole number for both sides, or HEIGHTxWIDTH, each 8 to 1024", "--size", "7");
    assert_says("--size 28x: must be a whole number for both sides, or HEIGHTxWIDTH, each 8 to 1024", "--size", "28x");
    assert_says("--size 28x28x3: must be a whole number for both sides, or HEIGHTxWIDTH, each 8 to 1024", "--size",
                "28x28x3");
    assert_says("--least auto: must be bytes, 4K to 1T", "--least", "auto");
    assert_says("--least 4095: must be bytes, 4K to 1T", "--least", "4095");
    assert_says("--least 2T: must be bytes, 4K to 1T", "--least", "2T");
    assert_says("--least 4X: must be bytes, 4K to 1T", "--least", "4X");
    assert_says("--pair 1,3: must be two numbers A,B, each 0 to 2", "--pair", "1,3");
    assert_says("--seed 18446744073709551616: must be at most 18446744073709551615", "--seed", "18446744073709551616");
}

static void values_that_are_none(void **state)
{
    (void)state;
    assert_says("--epochs ten: must be a whole number, 1 to 100000", "--epochs", "ten");
    assert_says("--cache 3 : must be auto, or bytes such as 500M or 4G", "--cache", "3 ");
    assert_says("--decay none: must be a number, 0 to 1, or auto", "--decay", "none");
    assert_says("--epochs 2.5: must be a whole number, 1 to 100000", "--epochs", "2.5");
    assert_says("--epochs  3: must be a whole number, 1 to 100000", "--epochs", " 3");
    assert_says("--epochs \"\": must be a whole number, 1 to 100000", "--epochs=");
    assert_says("--rate nan: must be a number, more than 0, at most 10", "--rate", "nan");
    assert_says("--rate inf: must be a number, more than 0, at most 10", "--rate", "inf");
    assert_says("--rate 0x1: must be a number, more than 0, at most 10", "--rate", "0x1");
    assert_says("--rate 1x: must be a number, more than 0, at most 10", "--rate", "1x");
    assert_says("--pair 1: must be two numbers A,B, each 0 to 2", "--pair", "1");
    assert_says("--pair 1,: must be two numbers A,B, each 0 to 2", "--pair", "1,");
    assert_says("--seed -1: must be a whole number, 0 or more", "--seed", "-1");
    assert_says("--out: must not be empty", "--out=");
    assert_says("--out: needs a value: --out FOLDER", "--out");
    assert_says("--out: needs a value: --out FOLDER", "--out", "--rate", "1");
    assert_says("--epochs: needs a value: --epochs N", "-e");
}

static void wrong_names_bring_the_nearest(void **state)
{
    (void)state;
    assert_says("there is no option --epoch; did you mean --epochs?", "--epoch", "3");
    assert_says("there is no option --epcohs; did you mean --epochs?", "--epcohs=3");
    assert_says("there is no option --dev; did you mean --device?", "--dev", "cpu");
    assert_says("there is no option --hlep; did you mean --help?", "--hlep");
    assert_says("there is no option --zzz; --help lists the options", "--zzz");
    assert_says("there is no option -x; --help lists the options", "-qx");
    assert_says("--arch artcle: must be article, two-conv or mlp; did you mean article?", "--arch", "artcle");
    assert_says("--arch vgg: must be article, two-conv or mlp", "-a", "vgg");
}

static void arguments_are_counted(void **state)
{
    (void)state;
    outcome *o = parse(one_or_more, "m.h5", "-q", "a.jpg", "--", "--b.jpg", "-e", NULL);
    assert_true(o->fine && o->s.quiet);
    assert_int_equal(o->line.count, 4);
    assert_string_equal(o->values[0], "m.h5");
    assert_string_equal(o->values[2], "--b.jpg");
    assert_string_equal(o->values[3], "-e");
    assert_null(o->values[4]);
    o = parse(one_or_more, NULL);
    assert_true(!o->fine && o->line.miscounted);
    assert_string_equal(o->message, "MODEL is missing");
    assert_string_equal(parse(one_or_more, "m.h5", NULL)->message, "FILE is missing");
    assert_string_equal(parse(one_or_more, "", NULL)->message, "MODEL must not be empty");
    o = parse(at_most_one, "mlp", "x", NULL);
    assert_true(!o->fine && o->line.miscounted);
    assert_string_equal(o->message, "x: one argument too many");
    assert_string_equal(parse(at_most_one, "mpl", NULL)->message,
                        "WORD mpl: must be article, two-conv or mlp; did you mean mlp?");
    assert_string_equal(parse(NULL, "x", NULL)->message, "x: one argument too many");
}

static void help_ends_the_reading(void **state)
{
    (void)state;
    outcome *o = parse(one_or_more, "--help", "--epochs", "0", NULL);
    assert_true(o->fine && o->line.help);
    o = parse(one_or_more, "-qh", NULL);
    assert_true(o->fine && o->line.help && o->s.quiet);
}

static void long_words_are_cut_not_overrun(void **state)
{
    (void)state;
    char word[4000] = "--";
    memset(word + 2, 'x', sizeof word - 3);
    assert_false(parse(any, word, NULL)->fine);
    assert_false(parse(any, "--arch", word, NULL)->fine);
    assert_true(strlen(parse(any, "--epochs", word + 2, NULL)->message) < CLI_MESSAGE_MAX);
}

static void edit_distances(void **state)
{
    (void)state;
    assert_int_equal(cli_edit_distance("", "abc"), 3);
    assert_int_equal(cli_edit_distance("train", "train"), 0);
    assert_int_equal(cli_edit_distance("trian", "train"), 1);
    assert_int_equal(cli_edit_distance("tran", "train"), 1);
    assert_int_equal(cli_edit_distance("kitten", "sitting"), 3);
    assert_null(cli_nearer("x", NULL, "y"));
    assert_null(cli_nearer("csh", NULL, "zsh"));
    assert_string_equal(cli_nearer("trai", "trail", "train"), "trail");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults_come_from_the_rows),
        cmocka_unit_test(every_way_to_write_a_value),
        cmocka_unit_test(every_kind_of_value),
        cmocka_unit_test(flags_switch_on_and_off),
        cmocka_unit_test(values_out_of_range),
        cmocka_unit_test(values_that_are_none),
        cmocka_unit_test(wrong_names_bring_the_nearest),
        cmocka_unit_test(arguments_are_counted),
        cmocka_unit_test(help_ends_the_reading),
        cmocka_unit_test(long_words_are_cut_not_overrun),
        cmocka_unit_test(edit_distances),
    };
    return cmocka_run_group_tests_name("cli.options", tests, NULL, NULL);
}
