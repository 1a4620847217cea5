/* screen.c: the terminal as a page, by ncurses in its form for wide letters. */
#include "screen.h"

#include <errno.h>
#include <stdio.h>

#define LIBRARY "libncursesw.so.6"

#ifdef PC_HAVE_NCURSES

#define NCURSES_NOMACROS 1 /* functions can be looked up, macros cannot */
#include <dlfcn.h>
#include <ncurses.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>
#include <wchar.h>

#include "text.h"

char *tigetstr(const char *name); /* of term.h, whose macros take half of all short names */

#define FUNCTIONS(X)                                                                                                   \
    X(newterm)                                                                                                         \
    X(endwin)                                                                                                          \
    X(delscreen)                                                                                                       \
    X(newwin)                                                                                                          \
    X(delwin)                                                                                                          \
    X(cbreak)                                                                                                          \
    X(noecho)                                                                                                          \
    X(keypad)                                                                                                          \
    X(nodelay)                                                                                                         \
    X(curs_set)                                                                                                        \
    X(has_colors)                                                                                                      \
    X(start_color)                                                                                                     \
    X(use_default_colors)                                                                                              \
    X(init_pair)                                                                                                       \
    X(tigetstr)                                                                                                        \
    X(wgetch)                                                                                                          \
    X(werase)                                                                                                          \
    X(wmove)                                                                                                           \
    X(wattr_set)                                                                                                       \
    X(waddnwstr)                                                                                                       \
    X(wrefresh)                                                                                                        \
    X(resizeterm)                                                                                                      \
    X(getmaxx)                                                                                                         \
    X(getmaxy)

static struct {
#define MEMBER(name) __typeof__(&name) name;
    FUNCTIONS(MEMBER)
} curses;

static struct {
    SCREEN *terminal;
    WINDOW *page;
    bool keys, styles, colours;
    struct termios before;
    char farewell[128]; /* gives the terminal back where no function may be called */
    volatile sig_atomic_t stopped, suspended;
} screen;

static bool open_library(char *why, int n)
{
    void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        snprintf(why, (size_t)n, "ncurses cannot be opened (%s)", dlerror());
        return false;
    }
#define LOOK_UP(name)                                                                                                  \
    if (!(*(void **)&curses.name = dlsym(library, #name))) {                                                           \
        snprintf(why, (size_t)n, LIBRARY " has no " #name);                                                            \
        dlclose(library);                                                                                              \
        return false;                                                                                                  \
    }
    FUNCTIONS(LOOK_UP)
    return true; /* it stays open: its handlers of signals do */
}

/* The first signal asks the loop to leave; one more finds it waiting for a driver that hangs. */
static void handle(int number)
{
    if (screen.stopped) {
        ssize_t wrote = write(STDOUT_FILENO, screen.farewell, strlen(screen.farewell));
        if (screen.keys)
            tcsetattr(STDIN_FILENO, TCSANOW, &screen.before);
        _exit(128 + (wrote < 0 ? SIGHUP : number));
    }
    screen.stopped = number;
}

static void handle_suspend(int number)
{
    screen.suspended = number;
}

/* ncurses would give the terminal back in its own handler, in the middle of whatever it was drawing, and would ignore
 * the signal while it draws. It leaves a handler alone that is there before it begins. */
static void catch_suspend(void)
{
    struct sigaction action = {.sa_handler = handle_suspend, .sa_flags = SA_RESTART};
    sigemptyset(&action.sa_mask);
    sigaction(SIGTSTP, &action, NULL);
}

static void suspend(void)
{
    struct winsize size;
    curses.endwin();
    signal(SIGTSTP, SIG_DFL);
    raise(SIGTSTP); /* comes back when the program goes on */
    screen.suspended = 0;
    catch_suspend();
    if (!ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) && size.ws_row && size.ws_col)
        curses.resizeterm(size.ws_row, size.ws_col);
    curses.wrefresh(screen.page); /* takes the terminal again */
}

/* Changes of size are ncurses' matter. */
static void catch_signals(void)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGQUIT, SIGHUP};
    struct sigaction action = {.sa_handler = handle, .sa_flags = SA_RESTART};
    sigemptyset(&action.sa_mask);
    screen.stopped = 0;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        sigaction(numbers[i], &action, NULL);
}

static void choose_colours(void)
{
    static const short inks[CLI_INKS] = {[CLI_INK_GREEN] = COLOR_GREEN,
                                         [CLI_INK_CYAN] = COLOR_CYAN,
                                         [CLI_INK_YELLOW] = COLOR_YELLOW,
                                         [CLI_INK_RED] = COLOR_RED};
    const char *refused = getenv("NO_COLOR");
    screen.styles = !(refused && *refused);
    screen.colours = screen.styles && curses.has_colors() && curses.start_color() == OK;
    if (!screen.colours)
        return;
    short background = curses.use_default_colors() == OK ? -1 : COLOR_BLACK;
    for (short i = CLI_INK_GREEN; i < CLI_INKS; i++)
        curses.init_pair(i, inks[i], background);
}

/* What the terminal understands, for the case that no function may be called. */
static void note_farewell(void)
{
    static const char *const names[] = {"sgr0", "cnorm", "rmcup"};
    screen.farewell[0] = 0;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *text = curses.tigetstr(names[i]);
        size_t used = strlen(screen.farewell);
        if (text && text != (char *)-1)
            snprintf(screen.farewell + used, sizeof screen.farewell - used, "%.40s", text);
    }
}

bool cli_screen_begin(char *why, int n)
{
    const char *name = getenv("TERM");
    cli_utf8(); /* reads the locale */
    if (!open_library(why, n))
        return false;
    screen.keys = tcgetattr(STDIN_FILENO, &screen.before) == 0;
    catch_suspend();
    screen.terminal = curses.newterm(NULL, stdout, stdin);
    const char *move = screen.terminal ? curses.tigetstr("cup") : NULL;
    screen.page = move && move != (char *)-1 ? curses.newwin(0, 0, 0, 0) : NULL;
    if (!screen.page) {
        cli_screen_end();
        signal(SIGTSTP, SIG_DFL);
        snprintf(why, (size_t)n, "ncurses cannot draw on a terminal of the kind \"%s\" (TERM)", name ? name : "");
        return false;
    }
    curses.cbreak();
    curses.noecho();
    curses.curs_set(0);
    curses.keypad(screen.page, TRUE);
    curses.nodelay(screen.page, TRUE);
    choose_colours();
    note_farewell();
    catch_signals();
    return true;
}

void cli_screen_end(void)
{
    if (screen.page)
        curses.delwin(screen.page);
    if (screen.terminal) {
        curses.endwin();
        curses.delscreen(screen.terminal);
    }
    screen.page = NULL;
    screen.terminal = NULL;
}

void cli_screen_clear(int *lines, int *columns)
{
    *lines = curses.getmaxy(screen.page);
    *columns = curses.getmaxx(screen.page);
    curses.werase(screen.page);
}

void cli_screen_show(void)
{
    curses.wrefresh(screen.page);
}

int cli_screen_put(int line, int column, int end, cli_ink ink, const char *text)
{
    static const attr_t styles[CLI_INKS] = {[CLI_INK_HEADING] = WA_BOLD, [CLI_INK_FAINT] = WA_DIM};
    int edge = curses.getmaxx(screen.page);
    mbstate_t state = {0};
    edge = end > 0 && end < edge ? end : edge;
    if (line < 0 || line >= curses.getmaxy(screen.page) || column < 0 || column >= edge)
        return column;
    curses.wattr_set(screen.page, screen.styles ? styles[ink] : 0, screen.colours && ink >= CLI_INK_GREEN ? ink : 0,
                     NULL);
    curses.wmove(screen.page, line, column);
    for (size_t left = strlen(text), n; left; left -= n, text += n) {
        wchar_t letter;
        n = mbrtowc(&letter, text, left, &state);
        if (n == 0 || n > left) {
            n = 1;
            letter = L'?';
            memset(&state, 0, sizeof state);
        }
        int width = wcwidth(letter);
        letter = width < 0 ? L'?' : letter;
        width = width < 0 ? 1 : width;
        if (column + width > edge)
            break;
        curses.waddnwstr(screen.page, &letter, 1);
        column += width;
    }
    return column;
}

int cli_screen_key(int64_t milliseconds)
{
    struct pollfd keyboard = {.fd = screen.keys ? STDIN_FILENO : -1, .events = POLLIN};
    bool any = poll(&keyboard, 1, (int)(milliseconds > 60000 ? 60000 : milliseconds)) > 0;
    if (screen.stopped || (any && keyboard.revents & (POLLHUP | POLLERR | POLLNVAL)))
        return CLI_KEY_STOP;
    if (screen.suspended) {
        suspend();
        return CLI_KEY_RESIZED;
    }
    int key = curses.wgetch(screen.page); /* also learns there of another size */
    return key == ERR          ? CLI_KEY_NONE
           : key == KEY_RESIZE ? CLI_KEY_RESIZED
           : key == KEY_UP     ? CLI_KEY_UP
           : key == KEY_DOWN   ? CLI_KEY_DOWN
                               : key;
}

#else

bool cli_screen_begin(char *why, int n)
{
    snprintf(why, (size_t)n, "this Paracord was built without ncurses (libncurses-dev)");
    return false;
}

void cli_screen_end(void)
{
}

void cli_screen_clear(int *lines, int *columns)
{
    *lines = *columns = 0;
}

void cli_screen_show(void)
{
}

int cli_screen_put(int line, int column, int end, cli_ink ink, const char *text)
{
    (void)line, (void)end, (void)ink, (void)text;
    return column;
}

int cli_screen_key(int64_t milliseconds)
{
    (void)milliseconds;
    return CLI_KEY_STOP;
}

#endif
