/* paracord devices --watch in a terminal: what it draws, and that it gives the terminal back as it was: after q,
 * Ctrl-C, while it is suspended, when the terminal goes away. The terminal is one of the kernel's pairs, and between it
 * and the command stands a process that runs it as shells run their jobs. */
#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <time.h>
#include <utmp.h>

#include "shell.h"

#define MACHINES PC_TEST_GOLDEN "/machines/"
#define PATIENCE 60 /* seconds until a test that waits in vain gives up */

typedef struct job {
    int terminal, changes; /* what it draws and what is typed; its changes of state, as waitpid tells them */
    pid_t shell, pid;
    struct termios before;
    char drawn[OUTPUT_MAX];
    size_t length, seen;
} job;

static job j;

/* The shell's part: a job in the foreground, and what becomes of it. */
static void run_job(const char *const *arguments, int changes)
{
    signal(SIGTTOU, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    pid_t pid = fork();
    if (pid == 0) {
        setpgid(0, 0);
        tcsetpgrp(0, getpid());
        signal(SIGTTOU, SIG_DFL);
        signal(SIGHUP, SIG_DFL);
        execv(binary(), (char *const *)arguments);
        _exit(127);
    }
    ssize_t wrote = write(changes, &pid, sizeof pid);
    for (int status; waitpid(pid, &status, WUNTRACED) == pid;) {
        wrote = write(changes, &status, sizeof status);
        if (wrote < 0 || !WIFSTOPPED(status))
            break;
    }
    _exit(0);
}

/* The live view of a machine in a terminal of that size and kind. */
static void start(const char *machine, int lines, int columns, const char *kind)
{
    int ends[2];
    char root[512];
    snprintf(root, sizeof root, MACHINES "%s", machine);
    const char *arguments[] = {binary(), "devices", "--watch", "--interval", "0.05", "--root", root, NULL};
    struct winsize size = {.ws_row = (unsigned short)lines, .ws_col = (unsigned short)columns};
    unsetenv("COLUMNS");
    unsetenv("LINES");
    setenv("TERM", kind, 1);
    setenv("LC_ALL", "C.UTF-8", 1);
    j = (job){0};
    assert_int_equal(pipe(ends), 0);
    int slave;
    assert_int_equal(openpty(&j.terminal, &slave, NULL, NULL, &size), 0);
    assert_int_equal(tcgetattr(j.terminal, &j.before), 0);
    j.shell = fork();
    assert_true(j.shell >= 0);
    if (j.shell == 0) {
        close(j.terminal);
        login_tty(slave);
        run_job(arguments, ends[1]);
    }
    close(slave);
    close(ends[1]);
    j.changes = ends[0];
    assert_int_equal(read(j.changes, &j.pid, sizeof j.pid), sizeof j.pid);
}

/* Read what it draws until the words come, behind those that came last; false when it ended before. */
static bool draws(const char *words)
{
    time_t since = time(NULL);
    for (;;) {
        j.drawn[j.length] = 0;
        char *found = strstr(j.drawn + j.seen, words);
        if (found) {
            j.seen = (size_t)(found - j.drawn) + strlen(words);
            return true;
        }
        struct pollfd one = {.fd = j.terminal, .events = POLLIN};
        if (poll(&one, 1, PATIENCE * 1000) <= 0 || time(NULL) - since > PATIENCE)
            fail_msg("waited in vain for \"%s\" behind\n%s", words, j.drawn + j.seen);
        if (j.length > sizeof j.drawn / 2) { /* keep what may be the beginning of the words */
            size_t gone = j.length - 1000;
            memmove(j.drawn, j.drawn + gone, 1000);
            j.length = 1000;
            j.seen = j.seen > gone ? j.seen - gone : 0;
        }
        ssize_t n = read(j.terminal, j.drawn + j.length, sizeof j.drawn - 1 - j.length);
        if (n <= 0)
            return false;
        j.length += (size_t)n;
    }
}

static void type(const char *keys)
{
    assert_int_equal(write(j.terminal, keys, strlen(keys)), strlen(keys));
}

/* The next change of the job's state. */
static int change(void)
{
    int status = -1;
    time_t since = time(NULL);
    struct pollfd both[] = {{.fd = j.changes, .events = POLLIN}, {.fd = j.terminal, .events = POLLIN}};
    while (poll(both, 2, PATIENCE * 1000) > 0 && !(both[0].revents & (POLLIN | POLLHUP))) {
        char rest[4096]; /* else it waits for somebody to read */
        ssize_t n = read(j.terminal, rest, sizeof rest);
        if (n > 0 && j.length + (size_t)n < sizeof j.drawn) {
            memcpy(j.drawn + j.length, rest, (size_t)n);
            j.length += (size_t)n;
            j.drawn[j.length] = 0;
        }
        both[1].fd = n > 0 ? j.terminal : -1;
        if (time(NULL) - since > PATIENCE)
            fail_msg("it goes on and draws\n%s", j.drawn + j.seen);
    }
    assert_int_equal(read(j.changes, &status, sizeof status), sizeof status);
    return status;
}

static void assert_terminal_is_as_before(void)
{
    struct termios now;
    assert_int_equal(tcgetattr(j.terminal, &now), 0);
    assert_int_equal(now.c_lflag, j.before.c_lflag);
    assert_int_equal(now.c_iflag, j.before.c_iflag);
    assert_int_equal(now.c_oflag, j.before.c_oflag);
}

static void finish(void)
{
    close(j.terminal);
    close(j.changes);
    waitpid(j.shell, NULL, 0);
}

/* It has left by itself, with exit status 0 and everything given back. */
static void assert_left_well(void)
{
    int status = change();
    if (!WIFEXITED(status) || WEXITSTATUS(status))
        fail_msg("status %x behind\n%s", status, j.drawn);
    draws("\033[?1049l");
    assert_terminal_is_as_before();
    finish();
}

static bool screen_works;

/* Without ncurses, or what it knows of terminals, there is nothing to look at. */
#define NEED_SCREEN()                                                                                                  \
    do {                                                                                                               \
        NEED_BINARY();                                                                                                 \
        if (!screen_works)                                                                                             \
            skip();                                                                                                    \
    } while (0)

static int see_whether_it_works(void **state)
{
    (void)state;
    if (access(binary(), X_OK))
        return 0;
    start("healthy-2xa100.txt", 24, 80, "xterm");
    screen_works = draws("cuda:0"); /* lines have none */
    kill(j.pid, SIGKILL);
    finish();
    return 0;
}

static void it_takes_the_terminal_and_gives_it_back(void **state)
{
    (void)state;
    NEED_SCREEN();
    start("healthy-2xa100.txt", 24, 80, "xterm");
    assert_true(draws("44 of 300 W"));
    assert_non_null(strstr(j.drawn, "\033[?1049h")); /* the other screen */
    struct termios now;
    assert_int_equal(tcgetattr(j.terminal, &now), 0);
    assert_false(now.c_lflag & (ICANON | ECHO));
    type("x"); /* means nothing */
    type("q");
    assert_left_well();
}

static void ctrl_c_ends_it(void **state)
{
    (void)state;
    NEED_SCREEN();
    static const char *const keys[] = {"\003", "\034"}; /* Ctrl-C, Ctrl-\. */
    for (int i = 0; i < 2; i++) {
        start("healthy-2xa100.txt", 24, 80, "xterm");
        assert_true(draws("q ends"));
        type(keys[i]);
        assert_left_well();
    }
    start("healthy-2xa100.txt", 24, 80, "xterm");
    assert_true(draws("q ends"));
    kill(j.pid, SIGTERM);
    assert_left_well();
}

static void suspended_it_leaves_the_terminal(void **state)
{
    (void)state;
    NEED_SCREEN();
    start("healthy-2xa100.txt", 24, 80, "xterm");
    assert_true(draws("44 of 300 W"));
    type("\032");
    assert_true(WIFSTOPPED(change()));
    assert_terminal_is_as_before();
    kill(j.pid, SIGCONT);
    assert_true(draws("\033[?1049h"));
    assert_true(draws("44 of 300 W")); /* the whole page again */
    type("q");
    assert_left_well();
}

static void it_follows_the_size(void **state)
{
    (void)state;
    NEED_SCREEN();
    start("healthy-8xh100.txt", 5, 30, "xterm");
    assert_true(draws("down shows 5 more"));
    for (int i = 0; i < 5; i++)
        type("\033OB");          /* the key down, as this terminal has it */
    assert_true(draws("every")); /* the last devices are shown */
    struct winsize size = {.ws_row = 40, .ws_col = 120};
    assert_int_equal(ioctl(j.terminal, TIOCSWINSZ, &size), 0);
    assert_true(draws("held down by: idle"));
    size = (struct winsize){.ws_row = 1, .ws_col = 1};
    for (int i = 0; i < 20; i++) { /* none is too small */
        assert_int_equal(ioctl(j.terminal, TIOCSWINSZ, &size), 0);
        size =
            (struct winsize){.ws_row = (unsigned short)(1 + i * 7 % 13), .ws_col = (unsigned short)(1 + i * 31 % 97)};
    }
    size = (struct winsize){.ws_row = 24, .ws_col = 80};
    assert_int_equal(ioctl(j.terminal, TIOCSWINSZ, &size), 0);
    assert_true(draws("H100 80GB HBM3"));
    type("q");
    assert_left_well();
}

static void colours_can_be_refused(void **state)
{
    (void)state;
    NEED_SCREEN();
    start("healthy-2xa100.txt", 24, 80, "xterm");
    assert_true(draws("\033[32m")); /* green */
    type("q");
    assert_left_well();
    setenv("NO_COLOR", "1", 1);
    start("healthy-2xa100.txt", 24, 80, "xterm");
    assert_true(draws("44 of 300 W"));
    type("q");
    assert_left_well();
    unsetenv("NO_COLOR");
    for (int i = 30; i < 38; i++) {
        char sequence[16];
        snprintf(sequence, sizeof sequence, "\033[%dm", i);
        assert_null(strstr(j.drawn, sequence));
    }
}

/* Where no page can be drawn there are lines, and a word on why. */
static void other_terminals_get_lines(void **state)
{
    (void)state;
    NEED_BINARY();
    start("healthy-2xa100.txt", 24, 80, "dumb");
    assert_true(draws("44 of 300 W"));
    type("\003");
    change();
    assert_null(strchr(j.drawn, '\033'));
    assert_terminal_is_as_before();
    finish();
    start("healthy-2xa100.txt", 24, 80, "no-such-kind");
    assert_true(draws("44 of 300 W"));
    type("\003");
    change();
    assert_non_null(strstr(j.drawn, "no live view: "));
    assert_non_null(strstr(j.drawn, "--csv"));
    assert_terminal_is_as_before();
    finish();
}

static void it_ends_with_its_terminal(void **state)
{
    (void)state;
    NEED_SCREEN();
    start("healthy-2xa100.txt", 24, 80, "xterm");
    assert_true(draws("q ends"));
    close(j.terminal);
    int status = -1;
    assert_int_equal(read(j.changes, &status, sizeof status), sizeof status);
    assert_true(WIFEXITED(status) || WIFSIGNALED(status));
    close(j.changes);
    waitpid(j.shell, NULL, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_takes_the_terminal_and_gives_it_back),
        cmocka_unit_test(ctrl_c_ends_it),
        cmocka_unit_test(suspended_it_leaves_the_terminal),
        cmocka_unit_test(it_follows_the_size),
        cmocka_unit_test(colours_can_be_refused),
        cmocka_unit_test(other_terminals_get_lines),
        cmocka_unit_test(it_ends_with_its_terminal),
    };
    return cmocka_run_group_tests_name("cli.devices_watch", tests, see_whether_it_works, NULL);
}
