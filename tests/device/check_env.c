/* PARACORD_CHECK=streams as its user meets it: this program runs itself, with and without a race. */
#include "device/check.h"
#include "support.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

/* Run `program` with PARACORD_CHECK set; its exit code, with what it wrote on stderr. */
static int run_child(const char *program, const char *check, const char *argument, char *text, size_t n)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        setenv("PARACORD_CHECK", check, 1);
        dup2(ends[1], 2);
        int nowhere = open("/dev/null", O_WRONLY);
        dup2(nowhere, 1);
        execl(program, program, argument, (char *)NULL);
        _exit(127);
    }
    close(ends[1]);
    size_t length = 0;
    for (ssize_t got; length < n - 1 && (got = read(ends[0], text + length, n - 1 - length)) > 0;)
        length += (size_t)got;
    text[length] = 0;
    close(ends[0]);
    int status = -1;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* What the children do. */
static int be_child(const char *what)
{
    pc_stream a = {.id = 1, .device = {PC_SIM, 0}}, b = {.id = 2, .device = {PC_SIM, 0}};
    static char memory;
    pc__check_use x = {&memory, 0, 8, true};
    bool race = strstr(what, "race") != NULL;
    for (uint64_t i = 1; i <= 3; i++) {
        pc__check_work("fill", 0, &a, i, &x, 1);
        if (!race)
            pc__check_stream_waits(&b, &a, i);
        pc__check_work("scale", 0, &b, i, &x, 1);
        if (!race)
            pc__check_stream_waits(&a, &b, i);
    }
    return strstr(what, "fails") ? 3 : 0;
}

static int lines(const char *text)
{
    int n = 0;
    for (; *text; text++)
        n += *text == '\n';
    return n;
}

static void by_the_environment(void **state)
{
    (void)state;
    char text[8192];
    const char *self = "/proc/self/exe";
    assert_int_equal(run_child(self, "streams", "child race", text, sizeof text), 66);
    assert_non_null(strstr(text, "race, write after write: scale at "));
    assert_non_null(strstr(text, "stream 2 of sim:0 writes bytes 0 to 8"));
    assert_non_null(strstr(text, "6 uses of memory followed, races found 5 times"));
    assert_int_equal(lines(text), 3); /* each pair once, and the summary */
    assert_int_equal(run_child(self, "streams", "child race fails", text, sizeof text), 66);
    assert_int_equal(run_child(self, "streams", "child fails", text, sizeof text), 3);
    assert_non_null(strstr(text, "no race found"));
    assert_int_equal(run_child(self, "", "child race", text, sizeof text), 0);
    assert_string_equal(text, "");
    assert_int_equal(run_child(self, "strems,everything", "child race", text, sizeof text), 0);
    assert_string_equal(text, "paracord: PARACORD_CHECK does not know \"strems\" \"everything\"; the valid words are "
                              "\"streams\" and \"collectives\"\n");
    assert_int_equal(run_child(self, "collectives", "child race", text, sizeof text), 0);
    assert_string_equal(text, "");
    assert_int_equal(run_child(self, "all, streams", "child race", text, sizeof text), 66);
    assert_int_equal(lines(text), 4);
}

static void the_shared_library_too(void **state)
{
    (void)state;
    if (access(PC_TEST_COMMAND, X_OK) != 0)
        skip();
    char text[8192];
    assert_int_equal(run_child(PC_TEST_COMMAND, "streams", "--version", text, sizeof text), 0);
    assert_non_null(strstr(text, "no race found"));
}

int main(int argc, char **argv)
{
    if (argc > 1 && strncmp(argv[1], "child", 5) == 0)
        return be_child(argv[1]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(by_the_environment),
        cmocka_unit_test(the_shared_library_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
