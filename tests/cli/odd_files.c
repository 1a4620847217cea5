/* What stands where a file should: a FIFO, a device, a socket, a folder. Nothing waits for it; and standard input is
 * read where a file is. */
#include "shell.h"

#include <sys/socket.h>
#include <sys/un.h>

static char root[] = "/tmp/paracord-odd-XXXXXX", output[OUTPUT_MAX];

/* One trained network, pictures, and one of each that is no file, under every name that a command may look at. */
static int prepare(void **state)
{
    (void)state;
    if (access(binary(), X_OK))
        return 0;
    if (!mkdtemp(root) || chdir(root) != 0)
        return -1;
    assert_int_equal(shell(output, "$P pictures data --train 6 --test 3 --size 32 && "
                                   "$P train data --epochs 1 --size 24 --out run 2>&1 && rm run/checkpoint && "
                                   "mkfifo f.jpg f.png f.h5 f.json f.txt run/checkpoint"),
                     0);
    struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "s.jpg"};
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    close(fd);
    return 0;
}

static int tidy(void **state)
{
    (void)state;
    setenv("ROOT", root, 1);
    assert_int_equal(chdir("/"), 0);
    return access(root, F_OK) == 0 ? shell(output, "rm -r \"$ROOT\"") : 0;
}

static void nothing_waits_for_a_pipe(void **state)
{
    (void)state;
    NEED_BINARY();
    static const char *const lines[] = {
        "predict run/model.h5 f.jpg",
        "predict run/model.h5 f.png",
        "predict run/model.h5 s.jpg",
        "predict run/model.h5 /dev/zero",
        "predict run/model.h5 /dev/null",
        "predict run/model.h5 data",
        "predict f.h5 f.jpg",
        "predict /dev/zero f.jpg",
        "show f.h5",
        "show s.jpg",
        "show data",
        "eval f.h5 data",
        "train data --epochs 1 --size 24 --out run --resume",
        "trace view f.json",
        "trace summary f.json",
        "trace summary /dev/zero",
        "cloud cost f.h5 data",
        "cloud update f.json",
        "doctor --root f.txt",
        "devices --root f.txt",
        "topo --root f.txt",
    };
    for (int i = 0; i < (int)(sizeof lines / sizeof *lines); i++) {
        char line[256];
        snprintf(line, sizeof line, "timeout -k 1 20 $P %s 2>&1 >/dev/null </dev/null", lines[i]);
        const int status = shell(output, line);
        const char *end = strchr(output, '\n');
        if (status != 1 || strncmp(output, "paracord ", 9) != 0 || !end || end[1])
            fail_msg("%s: exit status %d and \"%s\"", lines[i], status, output);
    }
    assert_int_equal(shell(output, "timeout 20 $P predict run/model.h5 f.jpg 2>&1"), 1);
    assert_non_null(strstr(output, "f.jpg: it is a named pipe, not a regular file"));
}

/* The user's own copy of the catalogue is one. */
static void the_catalogue_is_a_pipe(void **state)
{
    (void)state;
    NEED_BINARY();
    assert_int_equal(shell(output, "mkdir -p share/paracord && mkfifo share/paracord/cloud.txt && "
                                   "XDG_DATA_HOME=$PWD/share timeout 20 $P cloud list L4 2>&1 >/dev/null"),
                     1);
    assert_non_null(strstr(output, "cloud.txt: it is a named pipe"));
}

static void standard_input_is_a_file(void **state)
{
    (void)state;
    NEED_BINARY();
    static const char *const lines[] = {
        "$P predict run/model.h5 - < $F",
        "cat $F | $P predict run/model.h5 -",
        "cat $F | $P predict run/model.h5 /dev/stdin",
        "cat $F | (exec 7<&0; $P predict run/model.h5 /dev/fd/7 < /dev/null)",
        "$P predict - $F < run/model.h5",
        "cat run/model.h5 | $P predict - $F",
        "(sleep 0.2; cat $F) | $P predict run/model.h5 -",
    };
    char want[256], line[256];
    assert_int_equal(shell(output, "ls data/test/*/* | head -1"), 0);
    output[strcspn(output, "\n")] = 0;
    setenv("F", output, 1);
    assert_int_equal(shell(output, "$P predict run/model.h5 $F 2>&1"), 0);
    snprintf(want, sizeof want, "%.255s", output);
    for (int i = 0; i < (int)(sizeof lines / sizeof *lines); i++) {
        snprintf(line, sizeof line, "{ %s; } 2>&1", lines[i]);
        if (shell(output, line) != 0 || strcmp(output, want) != 0)
            fail_msg("%s: \"%s\" instead of \"%s\"", lines[i], output, want);
    }
    assert_int_equal(shell(output, "$P show run/model.h5 > shown; $P show - < run/model.h5 | diff - shown && "
                                   "cat run/model.h5 | $P show - | diff - shown | grep -c '[0-9]* parameters'"),
                     0);
    assert_int_equal(shell(output, "echo '[]' | $P trace summary - 2>&1; $P show - 2>&1 < /dev/null"), 1);
    assert_non_null(strstr(output, "/dev/stdin is empty"));
}

/* Nothing comes: Ctrl-C and SIGTERM end it. */
static void waiting_for_input_can_be_stopped(void **state)
{
    (void)state;
    NEED_BINARY();
    static const char *const lines[] = {"predict run/model.h5 -", "predict - x.jpg", "show -", "trace summary -"};
    for (int i = 0; i < (int)(sizeof lines / sizeof *lines); i++) {
        char line[256];
        snprintf(line, sizeof line, "mkfifo w%d; exec 8<>w%d; timeout -k 3 -s %s 0.5 $P %s <&8 2>&1", i, i,
                 i % 2 ? "INT" : "TERM", lines[i]);
        assert_int_equal(shell(output, line), 124); /* 137 after kill -9 */
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_waits_for_a_pipe),
        cmocka_unit_test(the_catalogue_is_a_pipe),
        cmocka_unit_test(standard_input_is_a_file),
        cmocka_unit_test(waiting_for_input_can_be_stopped),
    };
    return cmocka_run_group_tests_name("cli.odd_files", tests, prepare, tidy);
}
