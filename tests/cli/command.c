/* The command from outside: exit statuses, one-line errors, help, manual pages and completion of every sub-command. */
#include <errno.h>
#include <stdbool.h>

#include "command.h"
#include "shell.h"

static const char *const commands[] = {"train",          "eval",       "predict",       "show",       "pictures",
                                       "pictures check", "gpt",        "gpt train",     "gpt sample", "gpt eval",
                                       "trace",          "trace view", "trace summary", "add",        "saxpy",
                                       "matmul",         "mandelbrot", "devices",       "topo",       "doctor",
                                       "bench",          "cloud",      "cloud list",    "cloud pick", "cloud cost",
                                       "cloud update",   "cloud run",  "help",          "man",        "completion"};
enum { COMMANDS = sizeof commands / sizeof *commands };

static bool installed(const char *program)
{
    char line[128], output[OUTPUT_MAX];
    snprintf(line, sizeof line, "command -v %s", program);
    return shell(output, line) == 0;
}

/* The line fails with `status` and one line on stderr that begins so; nothing on stdout. */
static void assert_refused(const char *words, int status, const char *begins)
{
    char line[512], output[OUTPUT_MAX];
    snprintf(line, sizeof line, "{ \"$P\" %s; } 2>/dev/null", words);
    int got = shell(output, line);
    if (got != status || output[0])
        fail_msg("paracord %s: exit status %d, want %d; printed \"%s\"", words, got, status, output);
    snprintf(line, sizeof line, "{ \"$P\" %s; } 2>&1 >/dev/null", words);
    shell(output, line);
    char *end = strchr(output, '\n');
    if (strncmp(output, begins, strlen(begins)) || !end || end[1])
        fail_msg("paracord %s: want one line \"%s...\", got \"%s\"", words, begins, output);
}

static void wrong_usage_is_2(void **state)
{
    (void)state;
    NEED_BINARY();
    assert_refused("trian x", 2, "paracord: there is no command trian; did you mean train?");
    assert_refused("zzz", 2, "paracord: there is no command zzz; paracord help lists the commands");
    assert_refused("--verison", 2, "paracord: there is no option --verison; did you mean --version?");
    assert_refused("train", 2, "paracord train: DIR is missing; usage: paracord train [OPTIONS] DIR");
    assert_refused("train --epochs 0 x", 2, "paracord train: --epochs 0: must be 1 to 100000");
    assert_refused("train --epoch 3 x", 2, "paracord train: there is no option --epoch; did you mean --epochs?");
    assert_refused("train --lr 0 x", 2, "paracord train: --lr 0: must be more than 0, at most");
    assert_refused("train --arch resnet x", 2,
                   "paracord train: --arch resnet: must be article, two-conv, mlp, lenet, vgg11, ");
    assert_refused("predict m.h5", 2, "paracord predict: FILE is missing");
    assert_refused("pictures check a b", 2, "paracord pictures check: b: one argument too many");
    assert_refused("pictures p1 --train 0 --test 0", 2,
                   "paracord pictures: --train 0 and --test 0: there is nothing to draw");
    assert_refused("gpt trian", 2, "paracord gpt: ACTION trian: must be train, sample or eval; did you mean train?");
    assert_refused("trace vieww", 2,
                   "paracord trace: ACTION vieww: must be view, summary or calls; did you mean view?");
    assert_refused("doctor jobs", 2, "paracord doctor: jobs: one argument too many; did you mean paracord doctor job?");
    assert_refused("pictures chek x", 2,
                   "paracord pictures: x: one argument too many; did you mean paracord pictures "
                   "check?");
    assert_refused("bench copi 2>&1 | sed 's/.*such as/such as/' >&2; false", 1,
                   "such as product.f16; did you mean copy?");
    assert_refused("bench colective 2>&1 | sed 's/.*such as/such as/' >&2; false", 1,
                   "such as product.f16; did you mean collective?");
    assert_refused("completion csh", 2, "paracord completion: SHELL csh: must be bash, zsh or fish\n");
    assert_refused("completion tcsh", 2, "paracord completion: SHELL tcsh: must be bash, zsh or fish");
    assert_refused("help trin", 2, "paracord help: there is no command trin; did you mean train?");
    assert_refused("man pictures chck", 2,
                   "paracord man: there is no command pictures chck; did you mean pictures check?");
}

/* It is drawn all the same: scripts may have such a folder. */
static void a_folder_like_a_command_is_told(void **state)
{
    (void)state;
    NEED_BINARY();
    char output[OUTPUT_MAX];
    assert_int_equal(shell(output,
                           "cd $(mktemp -d) && for d in chek chek ./chek2 cats; do "
                           "\"$P\" pictures $d --train 1 --test 1 --size 16 2>&1 >out || exit 9; done; rm -r $PWD"),
                     0);
    assert_string_equal(output,
                        "paracord pictures: drawing into a new folder chek; paracord pictures check DIR is another "
                        "command\n");
}

static void failure_is_1(void **state)
{
    (void)state;
    NEED_BINARY();
    assert_refused("show /nonexistent/model.h5", 1,
                   "paracord show: cannot open /nonexistent/model.h5: No such file or directory");
    assert_refused("predict /nonexistent/model.h5 x.jpg", 1, "paracord predict: ");
    assert_refused("eval /nonexistent/model.h5 /nonexistent", 1, "paracord eval: ");
    if (!access("/dev/full", W_OK)) {
        assert_refused("--version >/dev/full", 1, "paracord: cannot write the output: No space left on device");
        assert_refused("help train >/dev/full", 1, "paracord help: cannot write the output");
    }
}

/* In a process of its own: what fails behind the writing is not the reason. */
static void finishes_late(const char *line)
{
    if (!freopen("/dev/full", "w", stdout) || !freopen(line, "w", stderr))
        exit(99);
    printf("something");
    fflush(stdout);
    errno = EAGAIN;
    const int status = cli_finish(NULL, 0);
    fflush(stderr);
    _exit(status);
}

static void the_cause_is_that_of_the_writing(void **state)
{
    (void)state;
    char line[] = "/tmp/paracord-finish-XXXXXX", text[128] = "";
    const int file = mkstemp(line);
    int status;
    if (access("/dev/full", W_OK))
        skip();
    const pid_t child = fork();
    if (!child)
        finishes_late(line);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(WEXITSTATUS(status), 1);
    (void)!read(file, text, sizeof text - 1);
    close(file);
    unlink(line);
    assert_string_equal(text, "paracord: cannot write the output: No space left on device\n");
}

static void alone_it_shows_the_overview(void **state)
{
    (void)state;
    NEED_BINARY();
    char output[OUTPUT_MAX];
    assert_int_equal(shell(output, "\"$P\" 2>&1"), 2);
    assert_non_null(strstr(output, "Usage: paracord COMMAND"));
    assert_int_equal(shell(output, "\"$P\" --help"), 0);
    for (int i = 0; i < COMMANDS; i++)
        assert_non_null(strstr(output, commands[i]));
}

static void it_knows_its_version(void **state)
{
    (void)state;
    NEED_BINARY();
    char output[OUTPUT_MAX];
    assert_int_equal(shell(output, "\"$P\" --version"), 0);
    assert_string_equal(output, "paracord " PC_VERSION "\n");
}

/* Help at a width: no line is longer, unless it holds one thing that cannot be broken. */
static void check_width(const char *command, int width)
{
    char line[128], output[OUTPUT_MAX];
    snprintf(line, sizeof line, "COLUMNS=%d \"$P\" %s --help", width, command);
    assert_int_equal(shell(output, line), 0);
    for (char *text = output, *end; (end = strchr(text, '\n')); text = end + 1) {
        bool literal = !strncmp(text, "Usage:", 6) || strstr(text, "DIR/t") || !strncmp(text, "      paracord", 14);
        *end = 0;
        if (!literal && (int)strlen(text) > width && (width >= 80 || strlen(text) > 80))
            fail_msg("paracord %s --help at width %d: %zu columns: %s", command, width, strlen(text), text);
        if (strlen(text) && text[strlen(text) - 1] == ' ')
            fail_msg("paracord %s --help: blanks at the end of: %s", command, text);
    }
}

static void help_fits_the_width(void **state)
{
    (void)state;
    NEED_BINARY();
    for (int i = 0; i < COMMANDS; i++) {
        check_width(commands[i], 40);
        check_width(commands[i], 80);
        check_width(commands[i], 200);
    }
    check_width("help", 80);
}

static void both_spellings_of_help_agree(void **state)
{
    (void)state;
    NEED_BINARY();
    char one[OUTPUT_MAX], two[OUTPUT_MAX], line[128];
    for (int i = 0; i < COMMANDS; i++) {
        snprintf(line, sizeof line, "\"$P\" %s -h", commands[i]);
        assert_int_equal(shell(one, line), 0);
        snprintf(line, sizeof line, "\"$P\" help %s", commands[i]);
        assert_int_equal(shell(two, line), 0);
        assert_string_equal(one, two);
        assert_null(strchr(one, '\033'));
    }
}

/* Every "--name" at the head of a line of the help, in turn; NULL after the last. */
static char *next_option(char **help, char name[64])
{
    while (**help) {
        char *line = *help, *end = line + strcspn(line, "\n"), *dashes = strstr(line, "--");
        *help = *end ? end + 1 : end;
        if (strncmp(line, "  ", 2) || !dashes || dashes - line > 6)
            continue;
        dashes += strncmp(dashes, "--[no-]", 7) ? 2 : 7;
        snprintf(name, 64, "%.*s", (int)strspn(dashes, "abcdefghijklmnopqrstuvwxyz0123456789-"), dashes);
        return name;
    }
    return NULL;
}

static void man_pages_have_every_option(void **state)
{
    (void)state;
    NEED_BINARY();
    char help[OUTPUT_MAX], page[OUTPUT_MAX], line[128], name[64];
    int options = 0;
    for (int i = 0; i < COMMANDS; i++) {
        snprintf(line, sizeof line, "\"$P\" help %s", commands[i]);
        shell(help, line);
        snprintf(line, sizeof line, "\"$P\" man %s | sed 's/\\\\-/-/g'", commands[i]);
        shell(page, line);
        for (char *at = help; next_option(&at, name); options++) {
            char wanted[80];
            snprintf(wanted, sizeof wanted, "\\fB--%s\\fR", name);
            if (!strstr(page, wanted))
                fail_msg("paracord man %s: no %s", commands[i], wanted);
        }
    }
    assert_in_range(options, 40, 400);
}

/* Of commands whose status says something of its own. */
static void man_pages_have_their_statuses(void **state)
{
    (void)state;
    NEED_BINARY();
    static const char *const wanted[][2] = {
        {"launch", "That of the rank that failed first; 128 and the number of the signal that ended it."},
        {"launch", "Stopped by an interrupt (Ctrl-C) or by SIGTERM."},
        {"doctor", "Something is wrong, which standard output says"},
        {"doctor job", "The job runs."},
        {"pictures check", "Every picture is whole."},
        {"train", "The command failed; one line on standard error names the thing"},
    };
    char page[OUTPUT_MAX], line[128];
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        snprintf(line, sizeof line, "\"$P\" man %s | sed 's/\\\\-/-/g;1,/EXIT STATUS/d'", wanted[i][0]);
        shell(page, line);
        if (!strstr(page, wanted[i][1]))
            fail_msg("paracord man %s: no \"%s\" in %s", wanted[i][0], wanted[i][1], page);
    }
}

static void man_pages_render_without_warnings(void **state)
{
    (void)state;
    NEED_BINARY();
    if (!installed("groff"))
        skip();
    char output[OUTPUT_MAX], line[128];
    for (int i = -1; i < COMMANDS; i++) {
        snprintf(line, sizeof line, "\"$P\" man %s | groff -man -ww -Tutf8 2>&1 >/dev/null", i < 0 ? "" : commands[i]);
        shell(output, line);
        assert_string_equal(output, "");
    }
}

static void completion_scripts_parse(void **state)
{
    (void)state;
    NEED_BINARY();
    static const char *const shells[] = {"bash", "zsh", "fish"};
    char output[OUTPUT_MAX], line[256];
    for (int i = 0; i < 3; i++) {
        snprintf(line, sizeof line, "\"$P\" completion %s", shells[i]);
        assert_int_equal(shell(output, line), 0);
        assert_non_null(strstr(output, "article two-conv mlp lenet"));
        if (!installed(shells[i]))
            continue;
        snprintf(line, sizeof line, "t=$(mktemp) && \"$P\" completion %s >$t && %s -n $t 2>&1; s=$?; rm -f $t; exit $s",
                 shells[i], shells[i]);
        if (shell(output, line))
            fail_msg("%s: %s", shells[i], output);
    }
}

/* What bash offers for a line of words, the last one unfinished. */
static void assert_offers(const char *words, const char *offers)
{
    char output[OUTPUT_MAX], line[512];
    snprintf(
        line, sizeof line,
        "bash -c 'source <(\"$P\" completion bash); COMP_WORDS=(paracord %s); COMP_CWORD=$((${#COMP_WORDS[@]}-1)); "
        "_paracord; echo \"${COMPREPLY[*]}\"' 2>&1",
        words);
    shell(output, line);
    output[strcspn(output, "\n")] = 0;
    if (strcmp(output, offers))
        fail_msg("paracord %s<tab>: want \"%s\", got \"%s\"", words, offers, output);
}

static void bash_completes(void **state)
{
    (void)state;
    NEED_BINARY();
    if (!installed("bash"))
        skip();
    assert_offers("tra", "train trace");
    assert_offers("trace v", "view");
    assert_offers("train --ar", "--arch");
    assert_offers("train --arch \"\"",
                  "article two-conv mlp lenet vgg11 resnet18 resnet34 resnet50 mobilenet_v2 vit_tiny "
                  "vit_b_16");
    assert_offers("train --arch = l", "lenet");
    assert_offers("train --no", "--normalise --no-flip --no-exif");
    assert_offers("train --epochs \"\"", "");
    assert_offers("pictures check --j", "--json");
    assert_offers("completion z", "zsh");
    assert_offers("bench cop", "copy copy.to-device copy.to-host copy.both copy.device copy.peer");
    assert_offers("bench sync product.b", "product.bf16");
    assert_offers("matmul --device c", "cpu cuda");
    assert_offers("train --device c", "cpu cuda");
    assert_offers("cloud cost --device c", "cpu cuda");
    assert_offers("cloud run g6f.", "g6f.large g6f.xlarge g6f.2xlarge g6f.4xlarge");
    assert_offers("cloud list g6",
                  "g6 g6e g6f g6.xlarge g6.2xlarge g6.4xlarge g6.8xlarge g6.12xlarge g6.16xlarge "
                  "g6.24xlarge g6.48xlarge g6e.xlarge g6e.2xlarge g6e.4xlarge g6e.8xlarge g6e.12xlarge "
                  "g6e.16xlarge g6e.24xlarge g6e.48xlarge g6f.large g6f.xlarge g6f.2xlarge g6f.4xlarge");
    assert_offers("help clo", "cloud");
    assert_offers("help gpt \"\"", "train sample eval");
    assert_offers("man pictures c", "check");
    assert_offers("help gpt train \"\"", "");
    assert_offers("mandelbrot -p \"\"", "fire ocean forest rainbow grey");
}

static void fish_completes(void **state)
{
    (void)state;
    NEED_BINARY();
    if (!installed("fish"))
        skip();
    static const char *const lines[][2] = {{"bench launch.", "launch.graph launch.kernel "},
                                           {"matmul --device c", "cpu cuda "},
                                           {"mandelbrot --palette fo", "forest "}};
    char output[OUTPUT_MAX], line[512];
    for (int i = 0; i < 3; i++) {
        snprintf(line, sizeof line,
                 "fish -N -c '$P completion fish | source; complete -C \"paracord %s\"' 2>/dev/null | cut -f1 | sort | "
                 "tr '\\n' ' '",
                 lines[i][0]);
        shell(output, line);
        assert_string_equal(output, lines[i][1]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wrong_usage_is_2),
        cmocka_unit_test(a_folder_like_a_command_is_told),
        cmocka_unit_test(failure_is_1),
        cmocka_unit_test(the_cause_is_that_of_the_writing),
        cmocka_unit_test(alone_it_shows_the_overview),
        cmocka_unit_test(it_knows_its_version),
        cmocka_unit_test(help_fits_the_width),
        cmocka_unit_test(both_spellings_of_help_agree),
        cmocka_unit_test(man_pages_have_every_option),
        cmocka_unit_test(man_pages_have_their_statuses),
        cmocka_unit_test(man_pages_render_without_warnings),
        cmocka_unit_test(completion_scripts_parse),
        cmocka_unit_test(bash_completes),
        cmocka_unit_test(fish_completes),
    };
    return cmocka_run_group_tests_name("cli.command", tests, NULL, NULL);
}
